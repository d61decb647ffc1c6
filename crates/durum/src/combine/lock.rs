//! The readers-writer lock: C-RW-WP with one writer, who is the leader of the updates (Calciu et al., "NUMA-aware
//! reader-writer locks"; Romulus §5.2).
//!
//! ```text
//! reader                                  writer
//! 1  own counter + 1                      1  writing = 1
//! 2  read `writing`; 1: step back, wait   2  wait until every counter is 0
//! ```
//!
//! Both first write and then look at what the other one writes, all of it sequentially consistent: of two who come at
//! the same time, one sees the other. A reader writes to its own counter only, on a cache line that no other thread
//! writes to while it reads, so readers do not slow each other down however many they are.
//!
//! *Preference.* A writer does not wait for readers that come after it. A reader that has waited in vain for a while
//! says so (`impatient`), and no writer begins before all who have said so are in. So a reader waits for two writers at
//! most, and a writer for those readers that came before it.
//!
//! *The owner.* A thread that has written several times and met nobody [owns](Owner) the lock: it writes without the
//! flag and the counters, and nobody leads meanwhile. Everybody else who comes, to read or to lead, takes it from that
//! thread first. What the owner reads it reads as all others do: it keeps no reader out.

use std::ptr;

use crossbeam_utils::CachePadded;

use crate::asymmetric::{Inside, Owner, Turns};
use crate::primitive::{
    AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Condvar, Mutex, Ordering, UnsafeCell, limit,
    locked, order, relax, waited,
};

/// How often a thread looks before it goes to sleep: about a microsecond, which is what most of what it waits for
/// takes.
const SPINS: usize = limit(200, 1);
/// Stripes of the first block of the read indicator; each block has twice as many as the one before.
const FIRST_STRIPES: usize = limit(8, 1);
/// Blocks of the read indicator.
const BLOCKS: usize = limit(16, 2);

/// A counter has the readers that are inside below, and above it how many have come so far.
type Counter = CachePadded<AtomicU64>;
const CAME: u64 = 1 << 32;
const INSIDE: u64 = CAME - 1;

/// How many readers are inside: one counter for each thread. Threads of the same number share one, which costs time and
/// nothing else.
#[derive(Debug)]
struct Readers {
    /// Block `n` has twice as many counters as block `n - 1`, and is made when the first thread needs it.
    blocks: [AtomicPtr<Counter>; BLOCKS],
}

impl Readers {
    fn new() -> Self {
        Self {
            blocks: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    fn len(block: usize) -> usize {
        FIRST_STRIPES << block
    }

    /// The block of a thread's counter, and its place there.
    fn place(number: usize) -> (usize, usize) {
        let number = number % (FIRST_STRIPES * ((1 << BLOCKS) - 1));
        let block = (number / FIRST_STRIPES + 1).ilog2() as usize;
        (block, number - FIRST_STRIPES * ((1 << block) - 1))
    }

    #[inline]
    fn of(&self, number: usize) -> &Counter {
        // Of the first block without arithmetic.
        let (block, at) = match number < FIRST_STRIPES {
            true => (0, number),
            false => Self::place(number),
        };
        let mut counters = self.blocks[block].load(Ordering::SeqCst);
        if counters.is_null() {
            counters = self.make(block);
        }
        // SAFETY: a block has `len` counters, `at` is less, and blocks stay until `drop`.
        unsafe { &*counters.add(at) }
    }

    #[cold]
    fn make(&self, block: usize) -> *mut Counter {
        let counters: Box<[Counter]> = (0..Self::len(block)).map(|_| Counter::default()).collect();
        let made = Box::into_raw(counters).cast::<Counter>();
        match self.blocks[block].compare_exchange(
            ptr::null_mut(),
            made,
            Ordering::SeqCst,
            Ordering::SeqCst,
        ) {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: made above, and nobody has seen it.
                unsafe { Self::free(made, block) };
                other
            }
        }
    }

    /// # Safety
    /// `counters` is a block of this number that nobody uses any more.
    unsafe fn free(counters: *mut Counter, block: usize) {
        let counters = ptr::slice_from_raw_parts_mut(counters, Self::len(block));
        // SAFETY: made by `make` as a boxed slice of this length.
        drop(unsafe { Box::from_raw(counters) });
    }

    /// Whether `is_fine` says so of all counters. A block that does not exist yet has no reader that came before
    /// whoever asks.
    fn all(&self, mut is_fine: impl FnMut(&Counter) -> bool) -> bool {
        (0..BLOCKS).all(|block| {
            let counters = self.blocks[block].load(Ordering::SeqCst);
            // SAFETY: a block has `len` counters, `at` is less, and blocks stay until `drop`.
            let mut at = (0..Self::len(block)).map(|at| unsafe { &*counters.add(at) });
            counters.is_null() || at.all(&mut is_fine)
        })
    }

    /// Whether none is inside.
    fn is_empty(&self) -> bool {
        self.all(|counter| counter.load(Ordering::SeqCst) & INSIDE == 0)
    }

    /// How many have come so far, but by this counter.
    fn came_but_by(&self, own: &Counter) -> u64 {
        let mut came = 0u64;
        self.all(|counter| {
            if !ptr::eq(counter, own) {
                came = came.wrapping_add(counter.load(Ordering::Relaxed) / CAME);
            }
            true
        });
        came
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        for block in 0..BLOCKS {
            let counters = self.blocks[block].load(Ordering::SeqCst);
            if !counters.is_null() {
                // SAFETY: nobody else has this lock any more.
                unsafe { Self::free(counters, block) };
            }
        }
    }
}

/// Where a reader that is inside is counted.
#[derive(Debug)]
pub(crate) struct Place<'l>(&'l Counter);

/// The lock. Writers but the owner are one at a time by other means: they lead
/// ([`Announcements`](super::announce::Announcements)).
#[derive(Debug)]
pub(crate) struct ReadersWriter {
    /// 1 while a writer is inside or waits for readers to leave.
    writing: CachePadded<AtomicU32>,
    readers: Readers,
    owner: CachePadded<Owner>,
    /// The last turns of writers. Only the writer uses it, and not the owner.
    turns: UnsafeCell<Turns>,
    /// Readers that have waited in vain. Changed under `sleepers` only.
    impatient: AtomicUsize,
    sleepers: Mutex<()>,
    changed: Condvar,
}

// SAFETY: `turns` is used by one thread at a time, the writer, as `write` and `end_write` ask for.
unsafe impl Sync for ReadersWriter {}

impl ReadersWriter {
    pub(crate) fn new() -> Self {
        Self {
            writing: CachePadded::new(AtomicU32::new(0)),
            readers: Readers::new(),
            owner: CachePadded::new(Owner::new(true)),
            turns: UnsafeCell::new(Turns::default()),
            impatient: AtomicUsize::new(0),
            sleepers: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// Enters as a reader, by the thread's number. A thread that is inside does not enter again.
    #[inline]
    pub(crate) fn enter(&self, number: usize) -> Place<'_> {
        let counter = self.readers.of(number);
        if !self.try_enter(counter) {
            self.wait_and_enter(counter);
        }
        Place(counter)
    }

    #[inline]
    fn try_enter(&self, counter: &Counter) -> bool {
        loop {
            counter.fetch_add(CAME + 1, Ordering::SeqCst);
            order();
            // Acquire among the rest: what the writer before has stored is seen.
            if self.writing.load(Ordering::SeqCst) != 0 {
                counter.fetch_sub(1, Ordering::SeqCst);
                return false;
            }
            // After the flag: while that was up somebody may have become the owner.
            if !self.owner.is_there() || self.owner.is_this_thread() {
                return true;
            }
            // This may wake a writer, under a mutex that a reader holds which is impatient. Such a reader does not come
            // here: no writer that raises the flag after it became impatient begins before it is in, and one that
            // raised it before has found no owner, and cannot become one while this counter is up.
            self.step_out(counter);
            self.owner.come();
        }
    }

    /// Release among the rest: the writer that finds nobody comes after all that was read here.
    #[inline]
    fn step_out(&self, counter: &Counter) {
        counter.fetch_sub(1, Ordering::SeqCst);
        order();
        if self.writing.load(Ordering::SeqCst) != 0 {
            self.wake();
        }
    }

    #[cold]
    fn wait_and_enter(&self, counter: &Counter) {
        // The writer may have counted this thread for a moment, and gone to sleep for that; each time that it tries.
        self.wake();
        for _ in 0..SPINS {
            relax();
            if self.writing.load(Ordering::SeqCst) != 0 {
                continue;
            }
            if self.try_enter(counter) {
                return;
            }
            self.wake();
        }
        // From here on it tries under the mutex, without which the writer does not go to sleep.
        let mut sleepers = locked(&self.sleepers);
        self.impatient.fetch_add(1, Ordering::SeqCst);
        loop {
            order();
            if self.writing.load(Ordering::SeqCst) == 0 && self.try_enter(counter) {
                break;
            }
            sleepers = waited(&self.changed, sleepers);
        }
        self.impatient.fetch_sub(1, Ordering::SeqCst);
        drop(sleepers);
        self.changed.notify_all();
    }

    /// Leaves as a reader.
    #[inline]
    pub(crate) fn leave(&self, place: Place<'_>) {
        self.step_out(place.0);
    }

    /// Wakes all who sleep, because something has changed that they look at.
    #[cold]
    fn wake(&self) {
        // Whoever is between looking and sleeping holds the mutex.
        drop(locked(&self.sleepers));
        self.changed.notify_all();
    }

    /// Enters as the owner, if this thread is that: it is alone until what this returns is dropped. For a thread that
    /// is not inside.
    #[inline]
    pub(crate) fn try_write_as_owner(&self) -> Option<Inside<'_>> {
        self.owner.try_enter()
    }

    /// What [`try_write_as_owner`](Self::try_write_as_owner) gave, and was forgotten.
    ///
    /// # Safety
    /// It was, and there is no other.
    #[inline]
    pub(crate) unsafe fn written_as_owner(&self) -> Inside<'_> {
        // SAFETY: as the caller promises.
        unsafe { self.owner.entered() }
    }

    /// Enters as the writer, when all readers have left.
    ///
    /// # Safety
    /// The caller leads, until it has ended to write.
    #[inline]
    pub(crate) unsafe fn write(&self) {
        // Nobody becomes the owner but who leads.
        if self.owner.is_there() {
            self.owner.come();
        }
        if self.impatient.load(Ordering::SeqCst) > 0 {
            self.let_impatient_in();
        }
        self.writing.swap(1, Ordering::SeqCst);
        order();
        if !self.readers.is_empty() {
            self.wait_for_readers();
        }
    }

    #[cold]
    fn let_impatient_in(&self) {
        let mut sleepers = locked(&self.sleepers);
        while self.impatient.load(Ordering::SeqCst) > 0 {
            sleepers = waited(&self.changed, sleepers);
        }
    }

    #[cold]
    fn wait_for_readers(&self) {
        for _ in 0..SPINS {
            relax();
            if self.readers.is_empty() {
                return;
            }
        }
        let mut sleepers = locked(&self.sleepers);
        loop {
            order();
            if self.readers.is_empty() {
                return;
            }
            sleepers = waited(&self.changed, sleepers);
        }
    }

    /// Leaves as the writer: what it has stored is durable by now, so nobody sees anything that a crash could take
    /// back. `number` is this thread's if it has written for nobody else: if it goes on so, it owns the lock.
    ///
    /// # Safety
    /// As for [`write`](Self::write), which this ends.
    #[inline]
    pub(crate) unsafe fn end_write(&self, number: Option<usize>) {
        let owns = self.turns.with_mut(|turns| {
            // SAFETY: the caller is the one writer.
            let turns = unsafe { &mut *turns };
            match number {
                Some(number) => self
                    .owner
                    .look_back(turns, || self.readers.came_but_by(self.readers.of(number))),
                None => {
                    *turns = Turns::default();
                    false
                }
            }
        });
        if owns {
            // Before the flag goes down, behind which readers look at it, and who leads next, too.
            self.owner.give();
        }
        self.writing.swap(0, Ordering::SeqCst);
        order();
        if self.impatient.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_counter_of_its_own_until_there_are_half_a_million() {
        let mut next = (0, 0);
        for number in 0..FIRST_STRIPES * ((1 << BLOCKS) - 1) {
            assert_eq!(Readers::place(number), next, "{number}");
            next.1 += 1;
            if next.1 == Readers::len(next.0) {
                next = (next.0 + 1, 0);
            }
        }
        assert_eq!(next, (BLOCKS, 0));
        assert_eq!(Readers::place(FIRST_STRIPES * ((1 << BLOCKS) - 1)), (0, 0));
    }
}
