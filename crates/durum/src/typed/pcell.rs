//! `PCell`: a value that is replaced as a whole.

use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use super::cell_impls::cell;
use super::journal::Journal;
use super::pool_type::PoolType;
use super::psafe::{PSafe, name_of};
use super::values::PClone;

/// A value that can be replaced while it is shared, as `Cell` is (Corundum Table 1): copied out, copied in. Of one
/// thread at a time.
#[repr(transparent)]
pub struct PCell<T: PSafe, P: PoolType> {
    value: UnsafeCell<T>,
    _pool: PhantomData<(*mut (), P)>,
}

/// Named so that an error message says what to do.
#[doc(hidden)]
#[allow(non_camel_case_types)]
#[derive(Debug)]
pub struct PCell_serves_one_thread__use_PMutex<T>(PhantomData<std::cell::Cell<T>>);

cell! { PCell<T> { "A cell", check: T::POOL.assert_fits(P::ID), Threads: PCell_serves_one_thread__use_PMutex, WORDS: T::WORDS } }

impl<T: PSafe, P: PoolType> PCell<T, P> {
    /// A copy of the value.
    #[inline(always)]
    pub fn get(&self) -> T
    where
        T: Copy,
    {
        // SAFETY: one thread, and nobody has a reference to the value.
        unsafe { *self.value.get() }
    }

    /// Replaces the value, and drops the old one.
    #[inline]
    pub fn set(&self, value: T, j: &Journal<P>) {
        drop(self.replace(value, j));
    }

    /// Replaces the value, and gives the old one.
    #[inline]
    pub fn replace(&self, value: T, j: &Journal<P>) -> T {
        // What is moved in and out is counted where the value lies in the pool.
        j.tx().open_to_changes(self.value.get());
        // SAFETY: one thread, and nobody has a reference to the value.
        unsafe { ptr::replace(self.value.get(), value) }
    }

    /// Takes the value, and leaves the default.
    pub fn take(&self, j: &Journal<P>) -> T
    where
        T: Default,
    {
        self.replace(T::default(), j)
    }

    /// Replaces the value by what `change` makes of it.
    pub fn update(&self, change: impl FnOnce(T) -> T, j: &Journal<P>)
    where
        T: Copy,
    {
        self.set(change(self.get()), j);
    }
}

impl<T: PSafe + Copy, P: PoolType> PClone<P> for PCell<T, P> {
    fn pclone(&self, _: &Journal<P>) -> Self {
        Self::with(self.get())
    }
}

impl<T: PSafe + Copy + fmt::Debug, P: PoolType> fmt::Debug for PCell<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PCell").field(&self.get()).finish()
    }
}

impl<T: PSafe + Copy + PartialEq, P: PoolType> PartialEq for PCell<T, P> {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl<T: PSafe + Copy + Eq, P: PoolType> Eq for PCell<T, P> {}
