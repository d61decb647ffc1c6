//! `LogFree`: words that are changed without a transaction, in an order that the program chooses (Corundum §3.9).

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;

use super::cell_impls::cell;
use super::journal::Journal;
use super::pool_type::PoolType;
use super::psafe::{PSafe, name_of};
use crate::error::Result;

/// A word that is durable when [`LogFree::publish`] returns, whatever becomes of the transaction.
///
/// For structures that are consistent at every moment because words are written in the right order, as lock-free ones
/// are: what is to be reachable is made durable first ([`LogFree::persist`]), then the word that makes it reachable. An
/// abort does not bring the old word back.
#[repr(transparent)]
pub struct LogFree<T: PSafe + Copy, P: PoolType> {
    value: UnsafeCell<T>,
    _pool: PhantomData<(*mut (), P)>,
}

/// Named so that an error message says what to do.
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub struct LogFree_serves_one_thread__use_PMutex<T>(PhantomData<std::cell::Cell<T>>);

cell! { LogFree<T: Copy> { "A word", check: Self::IS_WORD, Threads: LogFree_serves_one_thread__use_PMutex, WORDS: T::WORDS } }

impl<T: PSafe + Copy, P: PoolType> LogFree<T, P> {
    const IS_WORD: () = assert!(
        size_of::<T>() <= 8 && align_of::<T>() == size_of::<T>() && !T::OWNERS,
        "a log-free word has 1, 2, 4 or 8 bytes and owns nothing: more could be torn by a power cut"
    );

    /// The value.
    #[inline(always)]
    pub fn get(&self) -> T {
        // SAFETY: one thread, and nobody has a reference to the value.
        unsafe { *self.value.get() }
    }

    /// Replaces the value. It is durable when this returns: after a crash the word is the old one or this one.
    ///
    /// # Safety
    /// At every moment, whichever of its published values the word has and whatever else the crash left, the structure
    /// is one that the program can go on with. An abort of the transaction does not undo this. The running transaction
    /// has not announced the word: it would be durable only at the commit.
    ///
    /// # Errors
    /// `Poisoned`.
    pub unsafe fn publish(&self, value: T, j: &Journal<P>) -> Result<()> {
        // SAFETY: one thread, and nobody has a reference to the value. One store: the size is a machine's.
        unsafe { self.value.get().write_volatile(value) };
        // SAFETY: this word is this thread's.
        unsafe { Self::persist(self, j) }
    }

    /// Makes an object durable as it is now, before a word is published that leads to it.
    ///
    /// # Safety
    /// No other thread changes anything in the object, not what is in a [`PMutex`](super::PMutex) either: its half-done
    /// changes would become durable.
    ///
    /// # Errors
    /// `NotInPool`, `Poisoned`.
    pub unsafe fn persist<U: PSafe>(object: &U, j: &Journal<P>) -> Result<()> {
        // SAFETY: as the caller promises.
        unsafe { j.tx().open().pool.persist(object, size_of::<U>()) }
    }
}

impl<T: PSafe + Copy + fmt::Debug, P: PoolType> fmt::Debug for LogFree<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LogFree").field(&self.get()).finish()
    }
}
