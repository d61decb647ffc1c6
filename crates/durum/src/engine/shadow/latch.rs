//! A lock that costs its one steady user no atomic read-modify-write.
//!
//! The processor carries an atomic read-modify-write out when everything before it has left for the cache, and a fence
//! is under way until what was written back is on the media. So each of them on the way from one commit's fence to the
//! next one's write-backs adds what comes after it to the time that the fence takes. Without any, the next transaction
//! is gathered while the fence of the last one is under way: measured, a thousand instructions cost nothing then.
//!
//! - *Alone*: one thread commits, and nobody else has asked for the value. It says that it is at work, and looks
//!   whether somebody has come since. The other side of that handshake is a fence in all threads (membarrier), which
//!   the visitor pays; as at the [gate](crate::gate), of which the tests go through all interleavings.
//! - Otherwise a flag, taken by a compare-and-swap and let go by a plain store. Who has to wait for it takes naps: a
//!   queue of waiters would have to be looked at when letting go.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crossbeam_utils::{Backoff, CachePadded};

use crate::{asymmetric, contention};

/// How long a thread sleeps that has waited for some microseconds in vain.
const NAP: Duration = Duration::from_micros(50);

/// A value that one thread at a time works on.
#[derive(Debug)]
pub(super) struct Latch<T> {
    value: UnsafeCell<T>,
    is_taken: AtomicBool,
    /// The member that is alone is at work.
    is_busy: CachePadded<AtomicBool>,
    /// Why nobody is alone: visitors, every member but one, and one more before the first member has come.
    others: AtomicU32,
    members: AtomicU32,
    /// Whether a member may ever be alone.
    possible: OnceLock<bool>,
}

// SAFETY: the value is handed from thread to thread, one at a time.
unsafe impl<T: Send> Sync for Latch<T> {}

/// The right to work on the value, until it is dropped.
#[derive(Debug)]
pub(super) struct Held<'a, T> {
    latch: &'a Latch<T>,
    /// What says that somebody works on it.
    flag: &'a AtomicBool,
    is_visit: bool,
    /// Shared between threads if the value may be.
    _value: PhantomData<&'a mut T>,
}

impl<T> Latch<T> {
    pub(super) const fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            is_taken: AtomicBool::new(false),
            is_busy: CachePadded::new(AtomicBool::new(false)),
            others: AtomicU32::new(1),
            members: AtomicU32::new(0),
            possible: OnceLock::new(),
        }
    }

    /// A member comes, who will take the value often. With `may_be_alone`, the first of them tries to make that cheap.
    pub(super) fn join(&self, may_be_alone: bool) {
        let is_first = self.members.fetch_add(1, Ordering::AcqRel) == 0;
        let mut was_decided = true;
        let is_possible = *self.possible.get_or_init(|| {
            was_decided = false;
            may_be_alone && asymmetric::can_fence_all()
        });
        if is_possible && !was_decided {
            // ORDER (of threads): whoever comes after this sees that somebody may be alone, and asks; whoever came
            // before is counted.
            self.others.fetch_sub(1, Ordering::AcqRel);
        }
        if !is_first {
            self.come();
        }
    }

    /// A member goes.
    pub(super) fn leave(&self) {
        if self.members.fetch_sub(1, Ordering::AcqRel) > 1 {
            self.go();
        }
    }

    /// How many members there are.
    pub(super) fn members(&self) -> u32 {
        self.members.load(Ordering::Relaxed)
    }

    /// Sees to it that no member is alone with the value any more.
    #[cold]
    fn come(&self) {
        self.others.fetch_add(1, Ordering::SeqCst);
        if self.possible.get() == Some(&true) {
            // ORDER (of threads): a member that has not seen the count has its flag up by now, for all to see.
            asymmetric::fence_all();
            let backoff = Backoff::new();
            // ORDER (of threads): what the member did to the value is seen.
            while self.is_busy.load(Ordering::Acquire) {
                Self::pause(&backoff);
            }
        }
    }

    fn go(&self) {
        // ORDER (of threads): what was done to the value is seen by the member that finds itself alone.
        self.others.fetch_sub(1, Ordering::Release);
    }

    /// The value, for a member, if there is nobody else. Only for threads that have [joined](Latch::join): another
    /// would be taken for the member.
    #[inline(always)]
    pub(super) fn try_alone(&self) -> Option<Held<'_, T>> {
        // ORDER (of threads): the flag belongs to the last member. Another that has gone since has let go of it before.
        if self.others.load(Ordering::Acquire) != 0 {
            return None;
        }
        debug_assert!(
            !self.is_busy.load(Ordering::Relaxed),
            "not within what it guards"
        );
        self.is_busy.store(true, Ordering::Relaxed);
        // ORDER (of threads): the flag before the count; the processor's part is done by the fence of who comes.
        asymmetric::light_fence();
        if self.others.load(Ordering::Acquire) == 0 {
            return Some(Held {
                latch: self,
                flag: &self.is_busy,
                is_visit: false,
                _value: PhantomData,
            });
        }
        self.is_busy.store(false, Ordering::Release);
        None
    }

    /// The value, for a member that is not alone, if nobody works on it. For members only: who is alone does not look
    /// at this.
    #[inline]
    pub(super) fn try_among_others(&self) -> Option<Held<'_, T>> {
        self.is_taken
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .ok()?;
        Some(Held {
            latch: self,
            flag: &self.is_taken,
            is_visit: false,
            _value: PhantomData,
        })
    }

    /// The value, for whoever needs it once in a while, if nobody works on it.
    pub(super) fn try_lock(&self) -> Option<Held<'_, T>> {
        self.come();
        let mut held = self.try_among_others();
        match &mut held {
            Some(held) => held.is_visit = true,
            None => self.go(),
        }
        held
    }

    /// The value, for whoever needs it once in a while, when nobody works on it any more.
    pub(super) fn lock(&self) -> Held<'_, T> {
        self.come();
        let (backoff, mut was_taken) = (Backoff::new(), false);
        loop {
            if let Some(mut held) = self.try_among_others() {
                held.is_visit = true;
                return held;
            }
            if !was_taken {
                contention::count();
                was_taken = true;
            }
            Self::pause(&backoff);
        }
    }

    fn pause(backoff: &Backoff) {
        match backoff.is_completed() {
            true => std::thread::sleep(NAP),
            false => backoff.snooze(),
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: whoever holds it is alone with the value.
        unsafe { &*self.latch.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.latch.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // ORDER (of threads): what was done to the value is seen by who takes it next.
        self.flag.store(false, Ordering::Release);
        if self.is_visit {
            self.latch.go();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;

    /// Two numbers that only an exclusion keeps equal.
    type Pair = (u64, u64);

    fn change(pair: &mut Pair) {
        let next = pair.0 + 1;
        pair.0 = next;
        std::hint::black_box(&mut *pair);
        assert_eq!(pair.1 + 1, next);
        pair.1 = next;
    }

    /// What a commit does: the number of changes made alone.
    fn work(latch: &Latch<Pair>, rounds: u64) -> u64 {
        let mut alone = 0;
        for _ in 0..rounds {
            match latch.try_alone() {
                Some(mut pair) => {
                    change(&mut pair);
                    alone += 1;
                }
                None => loop {
                    if let Some(mut pair) = latch.try_among_others() {
                        break change(&mut pair);
                    }
                    std::thread::yield_now();
                },
            }
        }
        alone
    }

    #[test]
    fn members_and_visitors_come_and_go() {
        let latch = Latch::new((0, 0));
        latch.join(true);
        let rounds = 20_000;
        std::thread::scope(|scope| {
            let member = scope.spawn(|| work(&latch, rounds));
            scope.spawn(|| {
                for turn in 0..100 {
                    match turn % 2 == 0 {
                        true => change(&mut latch.lock()),
                        false => {
                            while latch.try_lock().map(|mut pair| change(&mut pair)).is_none() {}
                        }
                    }
                    std::thread::yield_now();
                }
            });
            scope.spawn(|| {
                for _ in 0..50 {
                    latch.join(true);
                    work(&latch, rounds / 50);
                    latch.leave();
                    std::thread::yield_now();
                }
            });
            member.join().unwrap();
        });
        assert_eq!(*latch.lock(), (2 * rounds + 100, 2 * rounds + 100));
        let is_possible = asymmetric::can_fence_all();
        assert_eq!(work(&latch, 10), if is_possible { 10 } else { 0 });
        latch.join(true);
        assert_eq!(work(&latch, 10), 0, "two are not alone");
        latch.leave();
        assert_eq!(work(&latch, 10), if is_possible { 10 } else { 0 });
        assert_eq!(latch.members(), 1);
    }

    #[test]
    fn a_visitor_waits_for_who_is_alone() {
        let latch = Latch::new((0, 0));
        latch.join(true);
        if !asymmetric::can_fence_all() {
            return;
        }
        let held = latch.try_alone().unwrap();
        std::thread::scope(|scope| {
            let visit = scope.spawn(|| change(&mut latch.lock()));
            std::thread::sleep(Duration::from_millis(20));
            assert!(!visit.is_finished());
            drop(held);
            visit.join().unwrap();
        });
        assert_eq!(latch.lock().0, 1);
    }

    #[test]
    fn where_nobody_may_be_alone_nobody_is() {
        let latch = Latch::new((0, 0));
        latch.join(false);
        assert_eq!(work(&latch, 10), 0);
    }

    #[test]
    fn who_comes_too_late_takes_nothing_away() {
        let latch = Latch::new(());
        let held = latch.lock();
        assert!(latch.try_lock().is_none() && latch.try_among_others().is_none());
        assert!(latch.try_lock().is_none(), "it is still held");
        drop(held);
        assert!(latch.try_lock().is_some());
    }

    #[test]
    fn a_panic_lets_go() {
        let latch = Latch::new(());
        latch.join(true);
        let _ = catch_unwind(AssertUnwindSafe(|| {
            let _held = latch.lock();
            assert!(latch.try_lock().is_none());
            panic!("on purpose");
        }));
        let held = latch.try_lock();
        assert!(held.is_some() && latch.try_lock().is_none());
    }
}
