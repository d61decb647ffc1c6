//! The puddles of a pool: finding one with room, growing, and giving back what is unused.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use durum_format::{GRANULE, UNIT, puddle};

use super::ground::Ground;
use super::headers::ALIGN_MAX;
use super::heap::{LARGE_GRANULES, PuddleHeap};
use super::puddle::Puddle;
use crate::contention;
use crate::error::{Error, Result};
use crate::fault::guarded;
use crate::steps;

/// From so many bytes on, an object's contents that are known when it is allocated go home by themselves, on an engine
/// that can do that.
pub(crate) const FILLED_MIN: usize = 32 << 10;

/// A pool that grows for an object of so many granules is about to be filled with such.
const FILLED_GRANULES: usize = FILLED_MIN / GRANULE as usize;

/// Pools double up to this size; larger ones grow by a quarter. Every page of a new puddle is made and cleared, used or
/// not, which takes longer than what else a puddle costs.
const DOUBLED_MAX: u64 = 32 << 20;

/// The puddles of whatever is a pool.
pub(crate) trait Grow: Ground {
    /// The volatile heap of a puddle, rebuilt from the media at the first call.
    #[inline]
    fn heap_of<'p>(&self, puddle: &'p Puddle) -> Result<&'p PuddleHeap> {
        match puddle.heap.get() {
            Some(heap) => Ok(heap),
            None => self.load_heap_once(puddle),
        }
    }

    #[cold]
    fn load_heap_once<'p>(&self, puddle: &'p Puddle) -> Result<&'p PuddleHeap> {
        let _once = contention::lock(&self.heap().resize);
        self.load_heap(puddle)
    }

    fn load_heap<'p>(&self, puddle: &'p Puddle) -> Result<&'p PuddleHeap> {
        if let Some(heap) = puddle.heap.get() {
            return Ok(heap);
        }
        let mut with_room = Vec::new();
        let heap = PuddleHeap::load(puddle, |slab| with_room.push(slab))?;
        let heap = puddle.heap.get_or_init(|| heap);
        for slab in with_room {
            if slab.is_empty() {
                self.heap().note_empty(slab.clone());
            }
            if slab.wants_listing() {
                self.heap().list(slab);
            }
        }
        Ok(heap)
    }

    /// Finds a puddle where `take` succeeds; the pool grows if there is none.
    fn place<R>(
        &self,
        granules: usize,
        mut take: impl FnMut(&Puddle, &PuddleHeap) -> Option<R>,
    ) -> Result<(NonNull<Puddle>, R)> {
        loop {
            let (known, placed) = self.place_here(granules, &mut take)?;
            if let Some(placed) = placed {
                return Ok(placed);
            }
            if self.map_more()? {
                continue;
            }
            let _once = contention::lock(&self.heap().resize);
            if self.heap().puddles().len() > known {
                continue;
            }
            self.grow(granules)?;
        }
    }

    /// Finds a puddle where `take` succeeds, if there is one among those that the pool has: how many these are.
    fn place_here<R>(
        &self,
        granules: usize,
        mut take: impl FnMut(&Puddle, &PuddleHeap) -> Option<R>,
    ) -> Result<(usize, Option<(NonNull<Puddle>, R)>)> {
        'again: loop {
            let puddles = self.heap().puddles();
            // In one go, and without counting references: each atomic operation waits for the last commit's fence.
            for puddle in puddles.iter() {
                let Some(heap) = puddle.heap.get() else {
                    // Not under the lock: who loads heaps may be waiting for it.
                    let puddle = puddle.clone();
                    drop(puddles);
                    self.heap_of(&puddle)?;
                    continue 'again;
                };
                if heap.may_fit(granules)
                    && let Some(taken) = take(puddle, heap)
                {
                    return Ok((puddles.len(), Some((NonNull::from(&**puddle), taken))));
                }
            }
            return Ok((puddles.len(), None));
        }
    }

    /// Grows until at least `bytes` are free, and keeps that many. After an error the pool is as large as before.
    fn make_room(&self, bytes: u64) -> Result<()> {
        let mut made = Vec::new();
        {
            let _once = contention::lock(&self.heap().resize);
            if let Err(error) = self.grow_to(bytes, &mut made) {
                made.retain(|puddle| puddle.heap.get().is_some_and(PuddleHeap::close_if_unused));
                self.give_puddles_back(made);
                return Err(error);
            }
            self.heap().wanted.fetch_max(bytes, Ordering::Relaxed);
        }
        // Others need not wait for that.
        made.iter().for_each(|puddle| puddle.populate());
        Ok(())
    }

    /// Adds puddles to `made` until at least `bytes` are free. Under the lock of `resize`.
    fn grow_to(&self, bytes: u64, made: &mut Vec<Arc<Puddle>>) -> Result<()> {
        let (mut free, mut seen) = (0, 0);
        while {
            let known: Vec<_> = self.heap().puddles()[seen..].to_vec();
            for puddle in &known {
                free += self.load_heap(puddle)?.allocatable_bytes() as u64;
            }
            seen += known.len();
            free < bytes && self.map_more()?
        } {}
        if free < bytes {
            self.check_space(bytes - free)?;
        }
        while free < bytes {
            let most = self.heap().growth_max.max(UNIT) / UNIT * UNIT;
            let size = puddle::size_for_heap(bytes - free).map_or(most, |size| size.min(most));
            let puddle = self.add_puddle(size, UNIT, true)?;
            free += self.load_heap(&puddle)?.allocatable_bytes() as u64;
            made.push(puddle);
        }
        Ok(())
    }

    /// Refuses to grow by more than the file system has, before it is filled up for nothing.
    fn check_space(&self, bytes: u64) -> Result<()> {
        let path = self.directory();
        // The directory of a service may lie where this process does not see it. Growing tells, too.
        let Ok(space) = rustix::fs::statvfs(path) else {
            return Ok(());
        };
        // A file system without blocks is one without a limit.
        if space.f_blocks > 0 && bytes > space.f_bavail.saturating_mul(space.f_frsize) {
            let path = path.to_owned();
            return Err(Error::Store(durum_service::Error::StorageFull {
                path,
                bytes,
            }));
        }
        Ok(())
    }

    /// Adds a puddle that holds at least `granules` in one piece.
    fn grow(&self, granules: usize) -> Result<()> {
        let total: u64 = self
            .heap()
            .puddles()
            .iter()
            .map(|puddle| puddle.size as u64)
            .sum();
        // An empty unit holds an aligned block of 1 MiB; what is larger goes to the front of an empty puddle.
        let needed = match granules > LARGE_GRANULES {
            true => puddle::size_for_heap(granules as u64 * GRANULE + ALIGN_MAX as u64),
            false => Some(UNIT),
        };
        let needed = needed.unwrap_or(u64::MAX);
        let wanted = match total < DOUBLED_MAX {
            true => total,
            false => total / 4,
        };
        let wanted = wanted.clamp(UNIT, self.heap().growth_max.max(UNIT)) / UNIT * UNIT;
        // Such objects go home without private pages, but not where there are large ones.
        let has_large_pages =
            granules < FILLED_GRANULES || !self.heap().fills.load(Ordering::Relaxed);
        self.add_puddle(wanted.max(needed), needed, has_large_pages)?;
        Ok(())
    }

    /// Adds a puddle of `size` bytes; on a nearly full disk, or near the limit of addresses, a smaller one, but not
    /// below `needed`. On a full one logs give back what they can spare.
    fn add_puddle(&self, mut size: u64, needed: u64, has_large_pages: bool) -> Result<Arc<Puddle>> {
        use durum_service::Error::{AddressSpace, StorageFull};
        let mut may_take_log = true;
        let puddle = loop {
            match self.make_puddle(size) {
                Err(Error::Store(StorageFull { .. } | AddressSpace { .. })) if size > needed => {
                    size = (size / 2 / UNIT * UNIT).max(needed)
                }
                Err(Error::Store(StorageFull { .. })) if may_take_log => {
                    self.give_log_back()?;
                    may_take_log = false;
                }
                other => break other?,
            }
        };
        puddle.prepare_fresh(has_large_pages);
        self.load_heap(&puddle)?;
        self.heap().puddles_mut().push(puddle.clone());
        Ok(puddle)
    }

    /// Gives unused puddles back to the file system, after extents were given back. What [`PoolOptions::spare_max`] and
    /// `make_room` say is kept: a pool that shrinks and grows again should not have to ask for files, and for pages,
    /// each time.
    ///
    /// [`PoolOptions::spare_max`]: crate::PoolOptions::spare_max
    fn shrink(&self) {
        // After a failure the logs still name what they would restore: nothing may go before the next opener has
        // replayed them.
        if self.poison().check().is_ok() {
            let wanted = self.heap().wanted.load(Ordering::Relaxed);
            self.give_back_unused(self.heap().spare_max, wanted);
        }
    }

    /// Gives unused puddles back, the largest first, until at most `spare_max` bytes of them are left, or as many as
    /// the used ones have; with 0, all of them. But none that is needed for `wanted` bytes to be free.
    fn give_back_unused(&self, spare_max: u64, wanted: u64) {
        let _once = contention::lock(&self.heap().resize);
        steps::add(self.heap().puddles().len());
        let (mut unused, used): (Vec<_>, Vec<_>) =
            self.heap().puddles().iter().cloned().partition(|puddle| {
                // One that a snapshot shows stays until the next time.
                let may_go = !puddle.is_root && !puddle.kept_lines.stays();
                may_go && puddle.heap.get().is_some_and(PuddleHeap::is_unused)
            });
        unused.sort_by_key(|puddle| std::cmp::Reverse(puddle.size));
        let total = |puddles: &[Arc<Puddle>]| -> u64 {
            puddles.iter().map(|puddle| puddle.size as u64).sum()
        };
        // A pool grows by doubling: what it took last must not go at once.
        let kept = match spare_max {
            0 => 0,
            _ => spare_max.max(total(&used)),
        };
        let mut bytes = total(&unused);
        let mut unused_free: u64 = unused.iter().map(free_bytes).sum();
        let mut closed = Vec::new();
        for puddle in unused {
            if bytes <= kept {
                break;
            }
            let others = unused_free - free_bytes(&puddle);
            if others < wanted {
                continue;
            }
            if puddle.heap.get().is_some_and(PuddleHeap::close_if_unused) {
                bytes -= puddle.size as u64;
                unused_free = others;
                closed.push(puddle);
            }
        }
        self.give_puddles_back(closed);
    }

    /// Loads the heaps of puddles that hold nothing, such as a crash leaves when a transaction was rolled back that the
    /// pool had grown for: only of loaded heaps it is known that they are unused.
    fn load_empty_heaps(&self) {
        let puddles = self.heap().puddles().clone();
        for puddle in puddles.iter().filter(|puddle| puddle.heap.get().is_none()) {
            let bitmap = puddle.at(puddle::BITMAP_OFFSET as usize).cast::<u64>();
            let mut words = 0..puddle::bitmap_words(puddle.size as u64) as usize;
            // SAFETY: the bitmap of a mapped puddle; nobody allocates in a pool that is being closed.
            let is_empty = guarded(|| words.all(|word| unsafe { bitmap.add(word).read() } == 0));
            if is_empty && puddle.check_failed().is_ok() {
                // Where that fails the puddle stays, which is no loss but of room.
                let _ = self.load_heap(puddle);
            }
        }
    }

    /// Removes closed puddles.
    fn give_puddles_back(&self, mut closed: Vec<Arc<Puddle>>) {
        if closed.is_empty() {
            return;
        }
        if let Err(error) = self.drain() {
            // What the logs would write there comes later. Until then they stay, closed, and are empty when the pool is
            // opened again.
            tracing::warn!(puddles = closed.len(), %error, "empty puddles could not be given back");
            return;
        }
        closed.sort_unstable_by_key(|puddle| puddle.address);
        let is_in_closed = |address: usize| {
            let behind = closed.partition_point(|puddle| puddle.address <= address);
            behind > 0 && closed[behind - 1].contains(address, 1)
        };
        self.heap()
            .puddles_mut()
            .retain(|puddle| !is_in_closed(puddle.address));
        for list in contention::lock(&self.heap().with_room).values_mut() {
            list.retain(|slab| !is_in_closed(slab.address));
        }
        closed
            .into_iter()
            .for_each(|puddle| self.remove_puddle(puddle));
    }
}

impl<P: Ground> Grow for P {}

/// Bytes of a puddle that no extent covers, as far as is known.
fn free_bytes(puddle: &Arc<Puddle>) -> u64 {
    let heap = puddle.heap.get();
    heap.map_or(0, |heap| heap.free_bytes() as u64)
}
