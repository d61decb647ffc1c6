//! The lock between those who read and the one who writes: readers share nothing, writers go first.
//!
//! Readers announce themselves in one of several counters, each on a cache line of its own, so that two processors that
//! read disturb each other only where their threads share a counter. A writer raises a flag and waits until all
//! counters are zero. Reading costs two atomic additions.
//!
//! ```text
//! read                                   write (whoever has the turn)
//! 1  own counter += 1                    1  flag = true
//! 2  flag up: counter -= 1, wait         2  wait until every counter is 0
//! ```
//!
//! Both steps are sequentially consistent: of a reader and a writer that meet, at least one sees the other.
//!
//! The flag stays up for as long as a writer changes memory: about a microsecond. Who waits longer than that sleeps. A
//! writer lets those go first who have slept, for a moment, so that a row of writers does not keep them out for good.
//!
//! *The owner.* An atomic read-modify-write waits until everything that was written back before it is on the media.
//! Hence a thread that has written several times without meeting anybody [owns](durum::asymmetric::Owner) the lock, and
//! says that it is inside by plain stores.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::TryLockError;

use crossbeam_utils::CachePadded;

use crate::asymmetric::{Owner, Turns};
use crate::primitive::{
    AtomicBool, AtomicU64, AtomicUsize, Condvar, Mutex, MutexGuard, Ordering, limit, locked, order,
    relax, thread_number, waited, yield_now,
};

/// How often one looks before one sleeps, or lets other threads run.
const SPINS: usize = limit(200, 0);
/// How often a writer looks whether those who slept have come through.
const COURTESY: usize = limit(100, 0);
/// A writer waits for each counter of readers.
const COUNTERS_MAX: usize = limit(32, 2);

/// A counter has the readers that are inside below, and above it how many have come so far.
const CAME: u64 = 1 << 32;
const INSIDE: u64 = CAME - 1;

/// Of how deep the owner is inside: it writes. Below that, how often it reads or has the turn.
const WRITES: usize = 1 << 32;

/// How many counters readers share: a power of two.
fn counters() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    (2 * processors).next_power_of_two().min(COUNTERS_MAX)
}

/// Something that many read and one changes.
pub(crate) struct ReadersWriter<T> {
    counters: Box<[CachePadded<AtomicU64>]>,
    flag: CachePadded<AtomicBool>,
    owner: CachePadded<Owner>,
    turn: Mutex<Turns>,
    /// Readers that sleep, or are about to.
    sleepers: AtomicUsize,
    sleep: Mutex<()>,
    awake: Condvar,
    value: UnsafeCell<T>,
}

impl<T> fmt::Debug for ReadersWriter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadersWriter").finish_non_exhaustive()
    }
}

// SAFETY: the value goes with the lock.
unsafe impl<T: Send> Send for ReadersWriter<T> {}
// SAFETY: `Reading` gives shared references to several threads, `Writing` a unique one to one.
unsafe impl<T: Send + Sync> Sync for ReadersWriter<T> {}

/// Nobody changes the value while this lives.
pub(crate) struct Reading<'l, T> {
    lock: &'l ReadersWriter<T>,
    /// None: by the owner.
    counter: Option<&'l AtomicU64>,
    /// Stays in its thread.
    _here: std::marker::PhantomData<*const ()>,
}

/// Whoever has it may write; one thread at a time.
pub(crate) struct Turn<'l, T> {
    lock: &'l ReadersWriter<T>,
    /// None: by the owner.
    among_others: Option<MutexGuard<'l, Turns>>,
}

impl<T> fmt::Debug for Turn<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turn").finish_non_exhaustive()
    }
}

/// Nobody else sees the value while this lives.
pub(crate) struct Writing<'l, T> {
    lock: &'l ReadersWriter<T>,
    is_owner: bool,
}

impl<T> ReadersWriter<T> {
    /// With `may_be_owned` a thread that writes without meeting others has it cheaper. Those who come wait then until
    /// its turn is over.
    pub(crate) fn new(value: T, may_be_owned: bool) -> Self {
        let counter = |_| CachePadded::new(AtomicU64::new(0));
        Self {
            counters: (0..counters()).map(counter).collect(),
            flag: CachePadded::new(AtomicBool::new(false)),
            owner: CachePadded::new(Owner::new(may_be_owned)),
            turn: Mutex::new(Turns::default()),
            sleepers: AtomicUsize::new(0),
            sleep: Mutex::new(()),
            awake: Condvar::new(),
            value: UnsafeCell::new(value),
        }
    }

    /// Goes inside as the owner, if this thread is that.
    #[inline(always)]
    fn enter(&self) -> bool {
        if !self.owner.is_this_thread() {
            return false;
        }
        let depth = self.owner.busy().depth();
        if depth == 0 {
            return self.owner.enter();
        }
        // Inside already, so nobody else is before this has left; but what it changes it does not read.
        if depth < WRITES {
            self.owner.busy().deepen(depth + 1);
        }
        depth < WRITES
    }

    #[inline(always)]
    fn leave(&self) {
        self.owner.busy().leave(self.owner.busy().depth() - 1);
    }

    /// Waits until nobody writes.
    #[inline]
    pub(crate) fn read(&self) -> Reading<'_, T> {
        let counter = match self.enter() {
            true => None,
            false => Some(self.enter_among_others()),
        };
        Reading {
            lock: self,
            counter,
            _here: std::marker::PhantomData,
        }
    }

    #[inline]
    fn own_counter(&self) -> usize {
        thread_number() & (self.counters.len() - 1)
    }

    #[inline]
    fn enter_among_others(&self) -> &AtomicU64 {
        let counter = &self.counters[self.own_counter()];
        loop {
            counter.fetch_add(CAME + 1, Ordering::SeqCst);
            order();
            let is_written = self.flag.load(Ordering::SeqCst);
            // After the flag: while that was up somebody may have become the owner.
            if !is_written && !self.owner.is_there() {
                return counter;
            }
            counter.fetch_sub(1, Ordering::SeqCst);
            match is_written {
                true => self.wait_for_writer(),
                false => self.owner.come(),
            }
        }
    }

    #[cold]
    fn wait_for_writer(&self) {
        for _ in 0..SPINS {
            if !self.flag.load(Ordering::Relaxed) {
                return;
            }
            relax();
        }
        // Before the look at the flag: a writer that takes it down after this look sees that somebody sleeps.
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        order();
        let mut asleep = locked(&self.sleep);
        while self.flag.load(Ordering::SeqCst) {
            asleep = waited(&self.awake, asleep);
        }
        drop(asleep);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// The turn, if nobody has it.
    #[inline]
    pub(crate) fn try_turn(&self) -> Option<Turn<'_, T>> {
        if self.owner.busy().depth() == 0 && self.enter() {
            return Some(Turn {
                lock: self,
                among_others: None,
            });
        }
        match self.turn.try_lock() {
            Ok(turns) => Some(self.turn_among_others(turns)),
            Err(TryLockError::Poisoned(poisoned)) => {
                Some(self.turn_among_others(poisoned.into_inner()))
            }
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The turn, when it comes. For as long as one likes: those who read need not wait for its end.
    pub(crate) fn turn(&self) -> Turn<'_, T> {
        self.turn_among_others(locked(&self.turn))
    }

    fn turn_among_others<'l>(&'l self, turns: MutexGuard<'l, Turns>) -> Turn<'l, T> {
        // Nobody becomes the owner but who has the turn.
        if self.owner.is_there() {
            self.owner.come();
        }
        Turn {
            lock: self,
            among_others: Some(turns),
        }
    }

    /// Readers that have come by other counters than this thread's.
    fn others_came(&self) -> u64 {
        let own = self.own_counter();
        let others = self
            .counters
            .iter()
            .enumerate()
            .filter(|(at, _)| *at != own);
        others
            .map(|(_, counter)| counter.load(Ordering::Relaxed) / CAME)
            .sum()
    }

    /// For who has the turn. Not if somebody reads.
    #[cold]
    fn become_owner(&self) {
        self.flag.store(true, Ordering::SeqCst);
        order();
        let mut counters = self.counters.iter();
        if counters.all(|counter| counter.load(Ordering::SeqCst) & INSIDE == 0) {
            // Before the flag goes down, behind which readers look at it.
            self.owner.give();
        }
        self.take_flag_down();
    }

    #[inline]
    fn take_flag_down(&self) {
        self.flag.store(false, Ordering::SeqCst);
        order();
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            // Whoever is between its look at the flag and its sleep holds the mutex.
            drop(self.sleep.lock());
            self.awake.notify_all();
        }
    }

    #[inline]
    fn keep_readers_out(&self) {
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            self.let_sleepers_pass();
        }
        self.flag.store(true, Ordering::SeqCst);
        order();
        for counter in &self.counters {
            let mut looks = 0;
            while counter.load(Ordering::SeqCst) & INSIDE > 0 {
                looks += 1;
                match looks < SPINS {
                    true => relax(),
                    false => yield_now(),
                }
            }
        }
    }

    #[cold]
    fn let_sleepers_pass(&self) {
        for _ in 0..COURTESY {
            if self.sleepers.load(Ordering::Relaxed) == 0 {
                return;
            }
            yield_now();
        }
    }

    #[cfg(test)]
    pub(crate) fn owner(&self) -> usize {
        self.owner.word()
    }
}

impl<'l, T> Turn<'l, T> {
    /// Waits until nobody reads, and keeps readers out.
    ///
    /// # Safety
    /// The last one that this turn has given is gone.
    #[inline]
    pub(crate) unsafe fn write(&self) -> Writing<'l, T> {
        let is_owner = self.among_others.is_none();
        match is_owner {
            true => {
                let busy = self.lock.owner.busy();
                let depth = busy.depth();
                assert!(depth == 1, "whoever writes does not read at the same time");
                busy.deepen(depth + WRITES);
            }
            false => self.lock.keep_readers_out(),
        }
        Writing {
            lock: self.lock,
            is_owner,
        }
    }
}

impl<T> Drop for Turn<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match &mut self.among_others {
            None => self.lock.leave(),
            Some(turns) => {
                let came = || self.lock.others_came();
                if self.lock.owner.look_back(turns, came) {
                    self.lock.become_owner();
                }
            }
        }
    }
}

impl<T> Deref for Reading<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the counter keeps writers out; or this is the owner, who does not write now.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> Drop for Reading<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match self.counter {
            None => self.lock.leave(),
            // Release: what was read was read before a writer finds the counter at zero.
            Some(counter) => {
                counter.fetch_sub(1, Ordering::Release);
            }
        }
    }
}

impl<T> Deref for Writing<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: the flag keeps readers out, or nobody but the owner is inside; and there is one writer.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Writing<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as in `deref`; borrowed as a whole, so nobody else of this thread refers to the value.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Writing<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match self.is_owner {
            true => {
                let busy = self.lock.owner.busy();
                // It has the turn still, so this is not its way out.
                busy.deepen(busy.depth() - WRITES);
            }
            false => self.lock.take_flag_down(),
        }
    }
}
