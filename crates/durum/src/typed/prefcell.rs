//! `PRefCell`: references to a value in the pool, checked at run time.
//!
//! The cell's word (`borrow_word`) says who borrows: the number of readers, or bit 63 and the number of the transaction
//! that borrows it to write. That one expires with its transaction, so a guard that was forgotten does no harm. Readers
//! may stay when a transaction ends: reading needs none.

use std::cell::{Cell, UnsafeCell};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use super::as_target::as_target;
use super::borrow_word::{BorrowWord, WRITER};
use super::cell_impls::cell;
use super::journal::Journal;
use super::later::Later;
use super::pool_type::PoolType;
use super::psafe::{PSafe, name_of};
use super::typed_tx::{TypedTx, give_up};
use super::values::PClone;

/// A value in the pool that is borrowed as the one in a `RefCell` is (Corundum Table 1). Of one thread at a time.
#[repr(C)]
pub struct PRefCell<T: PSafe, P: PoolType> {
    word: BorrowWord,
    value: UnsafeCell<T>,
    _pool: PhantomData<(*mut (), P)>,
}

/// Named so that an error message says what to do.
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub struct PRefCell_serves_one_thread__use_PMutex<T>(PhantomData<Cell<T>>);

/// The value of a [`PRefCell`], borrowed to read.
pub struct PRef<'a, T: PSafe> {
    word: &'a BorrowWord,
    value: &'a T,
    _one_thread: PhantomData<*mut ()>,
}

/// The value of a [`PRefCell`], borrowed to write. It is announced to the transaction when it is written to for the
/// first time.
pub struct PRefMut<'a, T: PSafe> {
    word: &'a BorrowWord,
    value: &'a UnsafeCell<T>,
    tx: &'a TypedTx,
    is_open: Cell<bool>,
    /// Among the cells that were written to, by `later`.
    is_noted: Cell<bool>,
}

/// Why a cell could not be borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BorrowError {
    /// A guard of `borrow_mut` lives.
    #[error("the cell is borrowed to write")]
    Written,
    /// A guard of `borrow` lives.
    #[error("the cell is borrowed to read")]
    Read,
}

cell! { PRefCell<T> { "A cell", check: T::POOL.assert_fits(P::ID), Threads: PRefCell_serves_one_thread__use_PMutex, WORDS: true, word } }

impl<T: PSafe, P: PoolType> PRefCell<T, P> {
    #[inline(always)]
    fn word(&self) -> &BorrowWord {
        P::binding().words.of(&self.word)
    }

    /// Whether the transaction that a word names is running: then its guard lives.
    #[inline]
    fn is_written(word: u64) -> bool {
        // SAFETY: null, or this thread's.
        let tx = unsafe { P::current().as_ref() };
        word & WRITER != 0 && tx.is_some_and(|tx| tx.depth() > 0 && tx.id() == word & !WRITER)
    }

    /// Borrows the value to read. Also outside of transactions.
    ///
    /// # Panics
    /// If it is borrowed to write.
    #[inline]
    #[track_caller]
    pub fn borrow(&self) -> PRef<'_, T> {
        match self.try_borrow() {
            Ok(guard) => guard,
            Err(error) => panic!("{error}"),
        }
    }

    /// Borrows the value to read, if it is not borrowed to write.
    ///
    /// # Errors
    /// `Written`.
    #[inline]
    pub fn try_borrow(&self) -> Result<PRef<'_, T>, BorrowError> {
        let word = self.word();
        let mut readers = word.load();
        if readers & WRITER != 0 {
            if Self::is_written(readers) {
                return Err(BorrowError::Written);
            }
            readers = 0;
        }
        if readers == u64::from(u32::MAX) {
            give_up("a cell is borrowed more than four thousand million times");
        }
        word.store(readers + 1);
        Ok(PRef {
            word,
            // SAFETY: nobody writes while there are readers.
            value: unsafe { &*self.value.get() },
            _one_thread: PhantomData,
        })
    }

    /// Borrows the value to write, until the guard is dropped.
    ///
    /// # Panics
    /// If it is borrowed.
    #[inline]
    #[track_caller]
    pub fn borrow_mut<'a>(&'a self, j: &'a Journal<P>) -> PRefMut<'a, T> {
        match self.try_borrow_mut(j) {
            Ok(guard) => guard,
            Err(error) => panic!("{error}"),
        }
    }

    /// Borrows the value to write, if it is not borrowed.
    ///
    /// # Errors
    /// `Written`, `Read`.
    #[inline]
    pub fn try_borrow_mut<'a>(&'a self, j: &'a Journal<P>) -> Result<PRefMut<'a, T>, BorrowError> {
        let (word, tx) = (self.word(), j.tx());
        let old = word.load();
        if old != 0 {
            if old & WRITER == 0 {
                return Err(BorrowError::Read);
            }
            if old == WRITER | tx.id() {
                return Err(BorrowError::Written);
            }
        }
        word.store(WRITER | tx.id());
        Ok(PRefMut {
            word,
            value: &self.value,
            tx,
            is_open: Cell::new(false),
            is_noted: Cell::new(false),
        })
    }

    /// Replaces the value, and gives the old one.
    ///
    /// # Panics
    /// If it is borrowed.
    #[track_caller]
    pub fn replace(&self, value: T, j: &Journal<P>) -> T {
        std::mem::replace(&mut *self.borrow_mut(j), value)
    }

    /// Takes the value, and leaves the default.
    ///
    /// # Panics
    /// If it is borrowed.
    #[track_caller]
    pub fn take(&self, j: &Journal<P>) -> T
    where
        T: Default,
    {
        self.replace(T::default(), j)
    }

    /// The value of a cell that is in nobody else's hands.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

impl<T: PSafe> Deref for PRef<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        self.value
    }
}

impl<T: PSafe> Drop for PRef<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        let readers = self.word.load();
        self.word.store(readers - 1);
    }
}

impl<T: PSafe> PRefMut<'_, T> {
    /// The value, to be changed in parts: announced is what [`Later::change`] is called of, not the whole.
    #[inline]
    pub fn later(&mut self) -> Later<'_, T> {
        // What is changed may be anywhere below. A reader who is still there when that is rolled back is a reader of
        // this cell.
        if !self.is_noted.replace(true) && self.tx.holds(self.value.get().addr()) {
            self.tx.note_written(self.word);
        }
        // SAFETY: the only borrower, who lends it.
        unsafe { Later::of_place(self.value.get(), Some(self.tx)) }
    }
}

impl<T: PSafe> Deref for PRefMut<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the only borrower.
        unsafe { &*self.value.get() }
    }
}

impl<T: PSafe> DerefMut for PRefMut<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        if !self.is_open.get() {
            if self.tx.open_to_changes(self.value.get()) {
                self.tx.note_written(self.word);
            }
            self.is_open.set(true);
        } else if T::WORDS && self.tx.holds(self.value.get().addr()) {
            let address = self.value.get().addr();
            self.tx.reset_words::<T>(address, size_of::<T>());
        }
        // SAFETY: the only borrower, of memory that is announced.
        unsafe { &mut *self.value.get() }
    }
}

impl<T: PSafe> Drop for PRefMut<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.word.store(0);
    }
}

impl<T: PSafe + PClone<P>, P: PoolType> PClone<P> for PRefCell<T, P> {
    /// A cell with a copy of the value.
    ///
    /// # Panics
    /// If it is borrowed to write.
    fn pclone(&self, j: &Journal<P>) -> Self {
        Self::with(self.borrow().pclone(j))
    }
}

impl<T: PSafe + fmt::Debug, P: PoolType> fmt::Debug for PRefCell<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("PRefCell");
        match self.try_borrow() {
            Ok(value) => out.field("value", &*value),
            Err(_) => out.field("value", &format_args!("<borrowed>")),
        };
        out.finish()
    }
}

impl<T: PSafe + PartialEq, P: PoolType> PartialEq for PRefCell<T, P> {
    /// # Panics
    /// If either is borrowed to write.
    fn eq(&self, other: &Self) -> bool {
        *self.borrow() == *other.borrow()
    }
}

impl<T: PSafe + Eq, P: PoolType> Eq for PRefCell<T, P> {}

as_target! {
    ['a, T: PSafe] PRef<'a, T>, to T: Debug Display;
    ['a, T: PSafe] PRefMut<'a, T>, to T: Debug Display;
}
