//! The readers-writer lock of [`Pool::update`](crate::Pool::update) and of `durum-kv`: C-RW-WP with one writer at a
//! time (Calciu et al., "NUMA-aware reader-writer locks"; Romulus §5.2).
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
//! *Turns.* Who writes has the turn before and after, which is given by other means: a mutex, or leadership. In a turn
//! one writes as often as one likes.
//!
//! *Preference.* A writer does not wait for readers that come after it. A reader that has waited in vain for a while
//! says so (`impatient`), and no writer begins before all who have said so are in. So a reader waits for two writers at
//! most, and a writer for those readers that came before it.
//!
//! *The owner.* An atomic read-modify-write waits until everything that was written back before it is on the media.
//! Hence a thread that has had several turns and met nobody [owns](Owner) the lock: it has its turns without the flag
//! and the counters. Everybody else who comes, to read or for a turn, takes the lock from it first.

use crossbeam_utils::CachePadded;

use super::read_indicator::{CAME, Counter, Readers};
use super::{Owner, Turns};
use crate::primitive::{
    AtomicU32, AtomicUsize, Condvar, Mutex, Ordering, UnsafeCell, limit, locked, order, relax,
    waited,
};

/// How often a thread looks before it goes to sleep: about a microsecond, which is what most of what it waits for
/// takes.
const SPINS: usize = limit(200, 1);

/// Where a reader that is inside is counted.
#[derive(Debug)]
pub struct Place<'l>(&'l Counter);

/// The lock. It guards nothing itself.
#[derive(Debug)]
pub struct ReadersWriter {
    /// 1 while a writer is inside or waits for readers to leave.
    writing: CachePadded<AtomicU32>,
    readers: Readers,
    owner: CachePadded<Owner>,
    /// The last turns. Only who has the turn uses it, and not the owner.
    turns: UnsafeCell<Turns>,
    /// Readers that have waited in vain. Changed under `sleepers` only.
    impatient: AtomicUsize,
    sleepers: Mutex<()>,
    changed: Condvar,
}

// SAFETY: `turns` is used by one thread at a time, who has the turn, as `end_turn` asks for.
unsafe impl Sync for ReadersWriter {}

impl ReadersWriter {
    /// With `may_be_owned` a thread that is alone with it becomes its owner.
    pub fn new(may_be_owned: bool) -> Self {
        Self {
            writing: CachePadded::new(AtomicU32::new(0)),
            readers: Readers::new(),
            owner: CachePadded::new(Owner::new(may_be_owned)),
            turns: UnsafeCell::new(Turns::default()),
            impatient: AtomicUsize::new(0),
            sleepers: Mutex::new(()),
            changed: Condvar::new(),
        }
    }

    /// Who has its turns without the flag and the counters.
    #[inline(always)]
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// Enters as a reader. A thread that has the turn may, while it does not write; the owner while it is not inside.
    #[inline]
    pub fn enter(&self) -> Place<'_> {
        let counter = self.readers.of_this_thread();
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
            // This wakes nobody where the reader is impatient, and holds the mutex: the flag is down. Who had raised it
            // has become the owner since, and the next one to have a turn takes the lock from that first, and then
            // finds the impatient one.
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
    pub fn leave(&self, place: Place<'_>) {
        self.step_out(place.0);
    }

    /// Wakes all who sleep, because something has changed that they look at.
    #[cold]
    fn wake(&self) {
        // Whoever is between looking and sleeping holds the mutex.
        drop(locked(&self.sleepers));
        self.changed.notify_all();
    }

    /// The turn begins of a thread that is not the owner inside. Nobody owns the lock from here on.
    #[inline]
    pub fn begin_turn(&self) {
        // Nobody becomes the owner but who has the turn.
        if self.owner.is_there() {
            self.owner.come();
        }
    }

    /// Enters as the writer, when all readers have left.
    ///
    /// # Safety
    /// The caller has the turn, and is not inside.
    #[inline]
    pub unsafe fn write(&self) {
        if self.impatient.load(Ordering::SeqCst) > 0 {
            self.let_impatient_in();
        }
        self.raise_flag();
        if !self.readers.is_empty() {
            self.wait_for_readers();
        }
    }

    #[inline]
    fn raise_flag(&self) {
        self.writing.swap(1, Ordering::SeqCst);
        order();
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

    /// Leaves as the writer.
    ///
    /// # Safety
    /// As for [`write`](Self::write), which this ends.
    #[inline]
    pub unsafe fn end_write(&self) {
        self.lower_flag();
    }

    #[inline]
    fn lower_flag(&self) {
        self.writing.swap(0, Ordering::SeqCst);
        order();
        if self.impatient.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
    }

    /// The turn ends. If the thread goes on so it owns the lock, but not by turns in which it wrote for others
    /// (`is_alone`).
    ///
    /// # Safety
    /// The caller has the turn, and is not inside.
    #[inline]
    pub unsafe fn end_turn(&self, is_alone: bool) {
        let owns = self.turns.with_mut(|turns| {
            // SAFETY: the caller has the turn.
            let turns = unsafe { &mut *turns };
            if !is_alone {
                *turns = Turns::default();
                return false;
            }
            let own = self.readers.of_this_thread();
            self.owner
                .look_back(turns, || self.readers.came_but_by(own))
        });
        if owns {
            self.become_owner();
        }
    }

    /// Not if somebody reads, or waits for that under the mutex, who would have to wake this thread.
    #[cold]
    fn become_owner(&self) {
        if self.impatient.load(Ordering::SeqCst) > 0 {
            return;
        }
        self.raise_flag();
        if self.readers.is_empty() {
            // Before the flag goes down, behind which readers look at it, and whoever has the next turn, too.
            self.owner.give();
        }
        self.lower_flag();
    }
}
