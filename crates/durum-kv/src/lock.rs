//! The lock between those who read and the one who writes, around what it guards: durum's
//! [`ReadersWriter`](durum::asymmetric::ReadersWriter), with a [`FairLock`] for the turn.
//!
//! The flag stays up for as long as a writer changes memory: about a microsecond. A turn may last longer, and keeps
//! only writers out. The owner reads, too, by plain stores.

use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::asymmetric::{self, Owner, Place};
use crate::fair_lock::FairLock;

/// Of how deep the owner is inside: it writes. Below that, how often it reads or has the turn.
const WRITES: usize = 1 << 32;

/// Something that many read and one changes.
pub(crate) struct ReadersWriter<T> {
    lock: asymmetric::ReadersWriter,
    turn: FairLock,
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
    place: Option<Place<'l>>,
    /// Stays in its thread.
    _here: std::marker::PhantomData<*const ()>,
}

/// Whoever has it may write; one thread at a time.
pub(crate) struct Turn<'l, T> {
    lock: &'l ReadersWriter<T>,
    is_owner: bool,
    /// Stays in its thread.
    _here: std::marker::PhantomData<*const ()>,
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
    /// Where turns `are_short` a thread that writes without meeting others has it cheaper. Those who come wait then
    /// until its turn is over.
    pub(crate) fn new(value: T, are_short: bool) -> Self {
        Self {
            lock: asymmetric::ReadersWriter::new(are_short),
            turn: FairLock::new(!are_short),
            value: UnsafeCell::new(value),
        }
    }

    #[inline(always)]
    fn owner(&self) -> &Owner {
        self.lock.owner()
    }

    /// Goes inside as the owner, if this thread is that.
    #[inline(always)]
    fn enter(&self) -> bool {
        if !self.owner().is_this_thread() {
            return false;
        }
        let depth = self.owner().busy().depth();
        if depth == 0 {
            return self.owner().enter();
        }
        // Inside already, so nobody else is before this has left; but what it changes it does not read.
        assert!(
            depth < WRITES,
            "whoever writes does not read at the same time"
        );
        self.owner().busy().deepen(depth + 1);
        true
    }

    #[inline(always)]
    fn leave(&self) {
        let busy = self.owner().busy();
        busy.leave(busy.depth() - 1);
    }

    /// Waits until nobody writes.
    #[inline]
    pub(crate) fn read(&self) -> Reading<'_, T> {
        let place = match self.enter() {
            true => None,
            false => Some(self.lock.enter()),
        };
        Reading {
            lock: self,
            place,
            _here: std::marker::PhantomData,
        }
    }

    /// The turn, if nobody has it.
    #[inline]
    pub(crate) fn try_turn(&self) -> Option<Turn<'_, T>> {
        if self.owner().busy().depth() == 0 && self.enter() {
            return Some(self.begun(true));
        }
        self.turn.try_take().then(|| self.turn_among_others())
    }

    /// The turn, when it comes. For as long as one likes: those who read need not wait for its end.
    pub(crate) fn turn(&self) -> Turn<'_, T> {
        self.turn.take();
        self.turn_among_others()
    }

    fn turn_among_others(&self) -> Turn<'_, T> {
        self.lock.begin_turn();
        self.begun(false)
    }

    fn begun(&self, is_owner: bool) -> Turn<'_, T> {
        Turn {
            lock: self,
            is_owner,
            _here: std::marker::PhantomData,
        }
    }

    #[cfg(test)]
    pub(crate) fn owner_word(&self) -> usize {
        self.owner().word()
    }
}

impl<'l, T> Turn<'l, T> {
    /// Waits until nobody reads, and keeps readers out.
    ///
    /// # Safety
    /// The last one that this turn has given is gone.
    #[inline]
    pub(crate) unsafe fn write(&self) -> Writing<'l, T> {
        let is_owner = self.is_owner;
        match is_owner {
            true => {
                let busy = self.lock.owner().busy();
                let depth = busy.depth();
                assert!(depth == 1, "whoever writes does not read at the same time");
                busy.deepen(depth + WRITES);
            }
            // SAFETY: this has the turn, and nobody else of it writes, as the caller promises.
            false => unsafe { self.lock.lock.write() },
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
        if self.is_owner {
            return self.lock.leave();
        }
        // SAFETY: this has the turn until it is given up, behind this; what it has given is gone.
        unsafe { self.lock.lock.end_turn(true) };
        self.lock.turn.give_up();
    }
}

impl<T> Deref for Reading<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: the place keeps writers out; or this is the owner, who does not write now.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> Drop for Reading<'_, T> {
    #[inline]
    fn drop(&mut self) {
        match self.place.take() {
            None => self.lock.leave(),
            Some(place) => self.lock.lock.leave(place),
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
                let busy = self.lock.owner().busy();
                // It has the turn still, so this is not its way out.
                busy.deepen(busy.depth() - WRITES);
            }
            // SAFETY: begun by `Turn::write`.
            false => unsafe { self.lock.lock.end_write() },
        }
    }
}
