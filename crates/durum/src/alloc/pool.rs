//! Finding room in a pool: slabs owned by threads, slabs with room that nobody owns, puddles, growth.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

use durum_format::puddle;
use durum_format::{GRANULE, UNIT, extent};

use super::ground::Ground;
use super::heap::{LARGE_GRANULES, PuddleHeap};
use super::puddle::{Puddle, puddle_at};
use super::slab::{Class, Slab};
use crate::contention;
use crate::error::{Error, Result};
use crate::fault::guarded;
use crate::steps;

/// Alignments up to this one can be asked for.
pub(crate) const ALIGN_MAX: usize = 64 << 10;

/// From so many bytes on, an object's contents that are known when it is allocated go home by themselves, on an engine
/// that can do that.
pub(crate) const FILLED_MIN: usize = 32 << 10;

/// A pool that grows for an object of so many granules is about to be filled with such.
const FILLED_GRANULES: usize = FILLED_MIN / GRANULE as usize;

/// Pools double up to this size; larger ones grow by a quarter. Every page of a new puddle is made and cleared, used or
/// not, which takes longer than what else a puddle costs.
const DOUBLED_MAX: u64 = 32 << 20;

/// The slabs that one thread owns in one pool.
#[derive(Debug)]
pub(crate) struct ThreadCache {
    pub(crate) pool_key: u64,
    /// The most used ones move to the front.
    slabs: Vec<(Class, Arc<Slab>)>,
}

impl ThreadCache {
    pub(crate) fn new(pool_key: u64) -> Self {
        Self {
            pool_key,
            slabs: Vec::new(),
        }
    }

    /// Returns every owned slab to the pool: the thread ends.
    pub(crate) fn give_back(&mut self, pool: &impl Allocate) {
        for (_, slab) in self.slabs.drain(..) {
            pool.disown(slab);
        }
    }
}

/// An element that was reserved.
pub(crate) struct Element {
    pub(super) slab: NonNull<Slab>,
    pub(super) index: usize,
}

/// Allocation in a pool, for whatever is one.
pub(crate) trait Allocate: Ground {
    /// A large object is about to be allocated together with its contents.
    fn note_filling(&self) {
        if !self.heap().fills.load(Ordering::Relaxed) {
            self.heap().fills.store(true, Ordering::Relaxed);
        }
    }

    fn list(&self, slab: Arc<Slab>) {
        let mut lists = contention::lock(&self.heap().with_room);
        lists.entry(slab.class).or_default().push(slab);
    }

    fn disown(&self, slab: Arc<Slab>) {
        if !slab.published.load(Ordering::Relaxed) {
            // Nobody else can know this slab.
            if slab.retire() {
                if let Some(puddle) = puddle_at(slab.address) {
                    // SAFETY: puddles live while their store is open, and the pool is.
                    let puddle = unsafe { puddle.as_ref() };
                    if let Some(heap) = puddle.heap.get() {
                        heap.release_slab(puddle, &slab);
                    }
                }
            } else {
                // Filled by the running transaction. Whether that commits or not, whoever gives an element back offers
                // the slab.
                slab.owned.store(false, Ordering::SeqCst);
            }
        } else if slab.disown() {
            self.list(slab);
        }
    }

    /// After an element was released by a thread that does not own the slab: others may want it now.
    fn offer(&self, slab: &Slab, empty: bool) {
        if slab.wants_listing()
            && let Some(slab) = slab.shared()
        {
            self.list(slab);
        }
        if empty
            && !slab.owned.load(Ordering::SeqCst)
            && let Some(slab) = slab.shared()
        {
            self.note_empty(slab);
        }
    }

    fn note_empty(&self, slab: Arc<Slab>) {
        contention::lock(&self.heap().empty).push(slab);
        self.heap().has_empty.store(true, Ordering::Release);
    }

    /// The slabs that were seen empty, the last one in the pool first. They may have been used again.
    fn take_empty_slabs(&self) -> Vec<Arc<Slab>> {
        if !self.heap().has_empty.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut empty = {
            let mut empty = contention::lock(&self.heap().empty);
            self.heap().has_empty.store(false, Ordering::Release);
            std::mem::take(&mut *empty)
        };
        steps::add(empty.len());
        empty.sort_unstable_by_key(|slab| std::cmp::Reverse(slab.address));
        empty
    }

    /// Keeps them for a later commit.
    fn put_empty_slabs(&self, slabs: Vec<Arc<Slab>>) {
        slabs.into_iter().for_each(|slab| self.note_empty(slab));
    }

    /// Puts a slab back into use whose retirement was rolled back.
    fn revive_slab(&self, slab: Arc<Slab>) {
        slab.revive();
        self.offer(&slab, true);
    }

    /// Reserves an element for an object of this class.
    fn reserve_element(&self, cache: &mut ThreadCache, class: Class) -> Result<Element> {
        if let Some(at) = cache.slabs.iter().position(|(other, _)| *other == class) {
            let slab = &cache.slabs[at].1;
            let alone = self.try_alone();
            let reserved = slab.reserve(alone.is_some());
            drop(alone);
            if let Some((index, first)) = reserved {
                let slab = NonNull::from(&**slab);
                if first {
                    self.note_occupied(slab, true);
                }
                if at > 0 {
                    cache.slabs.swap(at, at / 2);
                }
                return Ok(Element { slab, index });
            }
            let (_, slab) = cache.slabs.swap_remove(at);
            self.disown(slab);
        }
        let (slab, index) = match self.listed_element(class) {
            Some(found) => found,
            None => {
                self.load_one_more()?;
                match self.listed_element(class) {
                    Some(found) => found,
                    None => self.new_slab(class)?,
                }
            }
        };
        let pointer = NonNull::from(&*slab);
        cache.slabs.push((class, slab));
        Ok(Element {
            slab: pointer,
            index,
        })
    }

    /// An element of a slab that has room and had no owner; its owner is the caller now.
    fn listed_element(&self, class: Class) -> Option<(Arc<Slab>, usize)> {
        loop {
            let slab = self.take_listed(class)?;
            slab.owned.store(true, Ordering::SeqCst);
            slab.listed.store(false, Ordering::SeqCst);
            if let Some((index, first)) = slab.reserve(false) {
                if first {
                    self.note_occupied(NonNull::from(&*slab), true);
                }
                return Some((slab, index));
            }
            // Filled or retired since it was listed.
            if slab.disown() {
                self.list(slab);
            }
        }
    }

    fn note_occupied(&self, slab: NonNull<Slab>, occupied: bool) {
        // SAFETY: the caller holds or just released an element of the slab.
        let address = unsafe { slab.as_ref() }.address;
        if let Some(puddle) = puddle_at(address) {
            // SAFETY: puddles live while their store is open, and the pool is.
            if let Some(heap) = unsafe { puddle.as_ref() }.heap.get() {
                heap.slab_occupied(occupied);
            }
        }
    }

    fn take_listed(&self, class: Class) -> Option<Arc<Slab>> {
        contention::lock(&self.heap().with_room)
            .get_mut(&class)?
            .pop()
    }

    /// Loads one more puddle that was not looked at yet: it may hold slabs with room of this class.
    fn load_one_more(&self) -> Result<()> {
        let unloaded = {
            let puddles = self
                .heap()
                .puddles
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            puddles
                .iter()
                .find(|puddle| puddle.heap.get().is_none())
                .cloned()
        };
        if let Some(puddle) = unloaded {
            self.heap_of(&puddle)?;
        }
        Ok(())
    }

    fn new_slab(&self, class: Class) -> Result<(Arc<Slab>, usize)> {
        let geometry = extent::slab_geometry(class.element_size);
        let granules = (geometry.extent_size / GRANULE) as usize;
        let take = |puddle: &Puddle, heap: &PuddleHeap| heap.reserve_slab(puddle, class);
        let (puddle, found) = match self.place_here(granules, take)?.1 {
            Some(placed) => placed,
            None => {
                // Before it grows the pool uses what little room its slabs have.
                self.list_any_room(class);
                match self.listed_element(class) {
                    Some(found) => return Ok(found),
                    None => self.place(granules, take)?,
                }
            }
        };
        // SAFETY: puddles live while their store is open, and the pool is.
        write_slab_header(unsafe { puddle.as_ref() }, &found.0);
        Ok(found)
    }

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
                self.note_empty(slab.clone());
            }
            if slab.wants_listing() {
                self.list(slab);
            }
        }
        Ok(heap)
    }

    /// Offers every slab of a class that has any room.
    #[cold]
    fn list_any_room(&self, class: Class) {
        let mut found = Vec::new();
        let puddles = self
            .heap()
            .puddles
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        for heap in puddles.iter().filter_map(|puddle| puddle.heap.get()) {
            heap.slabs_of(class, |slab| {
                if slab.wants_listing_with_any_room() {
                    found.push(slab.clone());
                }
            });
        }
        drop(puddles);
        found.into_iter().for_each(|slab| self.list(slab));
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
            let _once = contention::lock(&self.heap().resize);
            if self
                .heap()
                .puddles
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .len()
                > known
            {
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
            let puddles = self
                .heap()
                .puddles
                .read()
                .unwrap_or_else(PoisonError::into_inner);
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
        let known = self
            .heap()
            .puddles
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut free = 0;
        for puddle in &known {
            free += self.load_heap(puddle)?.allocatable_bytes() as u64;
        }
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
        let space = rustix::fs::statvfs(path)
            .map_err(|error| Error::system("asking about a file system", error))?;
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
            .puddles
            .read()
            .unwrap_or_else(PoisonError::into_inner)
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
        self.heap()
            .puddles
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .push(puddle.clone());
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
        steps::add(
            self.heap()
                .puddles
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .len(),
        );
        let (mut unused, used): (Vec<_>, Vec<_>) = self
            .heap()
            .puddles
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
            .cloned()
            .partition(|puddle| {
                !puddle.is_root && puddle.heap.get().is_some_and(PuddleHeap::is_unused)
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
        let puddles = self
            .heap()
            .puddles
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
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
            .puddles
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .retain(|puddle| !is_in_closed(puddle.address));
        for list in contention::lock(&self.heap().with_room).values_mut() {
            list.retain(|slab| !is_in_closed(slab.address));
        }
        closed
            .into_iter()
            .for_each(|puddle| self.remove_puddle(puddle));
    }
}

impl<P: Ground> Allocate for P {}

/// The extent of the object that an allocation of `size` bytes aligned to `align` needs.
pub(super) fn object_extent(size: usize, align: usize) -> Result<(usize, usize)> {
    let refused = || Error::ObjectSize {
        size,
        align,
        size_max: (1 << 40) - 1,
        align_max: ALIGN_MAX,
    };
    if !align.is_power_of_two() || align > ALIGN_MAX || size >= 1 << 40 {
        return Err(refused());
    }
    let (data_offset, granules) =
        extent::object_extent(size as u64, align as u64).ok_or_else(refused)?;
    Ok((data_offset as usize, granules as usize))
}

/// Bytes of a puddle that no extent covers, as far as is known.
fn free_bytes(puddle: &Arc<Puddle>) -> u64 {
    let heap = puddle.heap.get();
    heap.map_or(0, |heap| heap.free_bytes() as u64)
}

/// Writes the header of a slab that is not published yet; its bitmap follows with the commit that publishes it.
fn write_slab_header(puddle: &Puddle, slab: &Slab) {
    let words = extent::encode(&extent::ExtentHeader {
        type_id: slab.class.type_id,
        kind: extent::ExtentKind::Slab {
            extent_size: slab.geometry.extent_size,
        },
    });
    let Some(header) = extent::SlabHeader::new(slab.class.element_size) else {
        return;
    };
    let words = [words[0], words[1], header.encode()];
    let target = puddle.at(slab.address - puddle.address);
    // SAFETY: the extent was reserved, so nobody else touches its bytes; 24 bytes fit into every slab.
    unsafe {
        durum_persist::line::copy(target.as_ptr(), words.as_ptr().cast(), size_of_val(&words))
    };
}
