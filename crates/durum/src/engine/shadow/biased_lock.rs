//! A lock that costs its one steady user no atomic read-modify-write.
//!
//! - *Alone*: one thread commits, and nobody else has asked for the value. The lock has a [`Bias`] to it; who comes
//!   pays for the handshake.
//! - Otherwise a flag, taken by a compare-and-swap and let go by a plain store. Who has to wait for it takes naps: a
//!   queue of waiters would have to be looked at when letting go.

use std::cell::UnsafeCell;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use crossbeam_utils::CachePadded;

use crate::asymmetric::{Bias, Busy, can_fence_all};
use crate::contention;
use crate::primitive::{AtomicU32, Ordering, Patience};

/// In `possible`: the first member has not come yet.
const UNDECIDED: u32 = 0;
const NEVER: u32 = 1;
const POSSIBLE: u32 = 2;

/// A value that one thread at a time works on.
#[derive(Debug)]
pub(super) struct BiasedLock<T> {
    value: UnsafeCell<T>,
    taken: Busy,
    /// The word counts why nobody is alone: visitors, every member but one, and one more before the first member has
    /// come. So at 0 whoever is a member is the holder.
    bias: CachePadded<Bias>,
    members: AtomicU32,
    /// Whether a member may ever be alone.
    possible: AtomicU32,
}

// SAFETY: the value is handed from thread to thread, one at a time.
unsafe impl<T: Send> Sync for BiasedLock<T> {}

/// The right to work on the value, until it is dropped.
#[derive(Debug)]
pub(super) struct Held<'a, T> {
    lock: &'a BiasedLock<T>,
    /// What says that somebody works on it.
    busy: &'a Busy,
    is_visit: bool,
    /// Shared between threads if the value may be.
    _value: PhantomData<&'a mut T>,
}

impl<T> BiasedLock<T> {
    pub(super) fn new(value: T) -> Self {
        Self {
            value: UnsafeCell::new(value),
            taken: Busy::new(),
            bias: CachePadded::new(Bias::new(1)),
            members: AtomicU32::new(0),
            possible: AtomicU32::new(UNDECIDED),
        }
    }

    /// A member comes, who will take the value often. With `may_be_alone`, the first of them tries to make that cheap.
    pub(super) fn join(&self, may_be_alone: bool) {
        let is_first = self.members.fetch_add(1, Ordering::AcqRel) == 0;
        if self.possible.load(Ordering::Acquire) == UNDECIDED {
            self.decide(may_be_alone);
        }
        if !is_first {
            self.come();
        }
    }

    fn decide(&self, may_be_alone: bool) {
        let possible = match may_be_alone && can_fence_all() {
            true => POSSIBLE,
            false => NEVER,
        };
        let decided = self.possible.compare_exchange(
            UNDECIDED,
            possible,
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        if decided.is_ok() && possible == POSSIBLE {
            // ORDER (of threads): whoever comes after this sees that somebody may be alone, and asks; whoever came
            // before is counted.
            self.bias.word.fetch_sub(1, Ordering::AcqRel);
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
        self.bias.word.fetch_add(1, Ordering::SeqCst);
        if self.possible.load(Ordering::Acquire) == POSSIBLE {
            self.bias.wait_for_holder();
        }
    }

    fn go(&self) {
        // ORDER (of threads): what was done to the value is seen by the member that finds itself alone.
        self.bias.word.fetch_sub(1, Ordering::Release);
    }

    fn held<'a>(&'a self, busy: &'a Busy) -> Held<'a, T> {
        Held {
            lock: self,
            busy,
            is_visit: false,
            _value: PhantomData,
        }
    }

    /// The value, for a member, if there is nobody else. Only for threads that have [joined](BiasedLock::join): another
    /// would be taken for the member.
    #[inline(always)]
    pub(super) fn try_alone(&self) -> Option<Held<'_, T>> {
        // ORDER (of threads): the flag belongs to the last member. Another that has gone since has let go of it before.
        self.bias.enter_if(0).then(|| self.held(&self.bias.busy))
    }

    /// The value, for a member, when nobody works on it any more: at once, if there is nobody else.
    #[inline(always)]
    pub(super) fn lock_as_member(&self) -> Held<'_, T> {
        self.try_alone().unwrap_or_else(|| self.wait_among_others())
    }

    /// The bias to the member that is alone, whose value of the word is 0.
    pub(super) fn bias(&self) -> &Bias {
        &self.bias
    }

    /// The value, for a member that is not alone, if nobody works on it. For members only: who is alone does not look
    /// at this.
    #[inline]
    pub(super) fn try_among_others(&self) -> Option<Held<'_, T>> {
        self.taken.try_take().then(|| self.held(&self.taken))
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
        let mut held = self.wait_among_others();
        held.is_visit = true;
        held
    }

    #[inline(never)]
    fn wait_among_others(&self) -> Held<'_, T> {
        let (patience, mut was_taken) = (Patience::new(), false);
        loop {
            if let Some(held) = self.try_among_others() {
                return held;
            }
            if !was_taken {
                contention::count();
                was_taken = true;
            }
            patience.wait();
        }
    }
}

impl<T> Deref for Held<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: whoever holds it is alone with the value.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for Held<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: whoever holds it is alone with the value.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for Held<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // ORDER (of threads): what was done to the value is seen by who takes it next.
        self.busy.leave(0);
        if self.is_visit {
            self.lock.go();
        }
    }
}
