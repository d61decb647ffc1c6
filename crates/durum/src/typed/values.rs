//! Values that a transaction makes in a pool: what a new root begins with, and copies.

use std::marker::PhantomData;
use std::panic::{RefUnwindSafe, UnwindSafe};

use super::journal::Journal;
use super::psafe::{InOption, PSafe};

/// What a pool's root, or a part of it, can be made of when the pool is new. Derive it, where every field is `Root`:
/// numbers, options, cells, collections and pointers are.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the root of pool `{P}`, nor a part of it",
    label = "not `Root`",
    note = "derive `PSafe` and `Root`; or implement `Root` to say what a new pool begins with, as `fn init(_: &Journal<P>) -> Self {{ Self::default() }}` does"
)]
pub trait Root<P>: PSafe {
    /// The root of a pool that is new.
    fn init(j: &Journal<P>) -> Self;
}

/// Copies that may allocate in the pool, or count references. Derive it for structs and enums.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be cloned in pool `{P}`",
    label = "not `PClone`",
    note = "derive `PClone`; where the derive cannot see which pool a type belongs to, add `#[durum(pool = P)]`"
)]
pub trait PClone<P>: Sized {
    /// A copy, as `Clone` makes one: deep for [`Pbox`](super::Pbox), another reference for [`Prc`](super::Prc) and
    /// [`Parc`](super::Parc).
    fn pclone(&self, j: &Journal<P>) -> Self;
}

macro_rules! plain {
    ($($type:ty),* $(,)?) => { $(
        impl<P> Root<P> for $type {
            fn init(_: &Journal<P>) -> Self {
                Self::default()
            }
        }

        impl<P> PClone<P> for $type {
            #[inline]
            fn pclone(&self, _: &Journal<P>) -> Self {
                *self
            }
        }
    )* };
}

plain! { u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64, bool, char, () }

impl<T: 'static + UnwindSafe + RefUnwindSafe, P> Root<P> for PhantomData<T> {
    fn init(_: &Journal<P>) -> Self {
        PhantomData
    }
}

impl<T, P> PClone<P> for PhantomData<T> {
    fn pclone(&self, _: &Journal<P>) -> Self {
        PhantomData
    }
}

impl<T: Root<P>, P, const N: usize> Root<P> for [T; N] {
    fn init(j: &Journal<P>) -> Self {
        std::array::from_fn(|_| T::init(j))
    }
}

impl<T: PClone<P>, P, const N: usize> PClone<P> for [T; N] {
    fn pclone(&self, j: &Journal<P>) -> Self {
        std::array::from_fn(|at| self[at].pclone(j))
    }
}

impl<T: PSafe + InOption, P> Root<P> for Option<T> {
    fn init(_: &Journal<P>) -> Self {
        None
    }
}

impl<T: PClone<P>, P> PClone<P> for Option<T> {
    fn pclone(&self, j: &Journal<P>) -> Self {
        self.as_ref().map(|value| value.pclone(j))
    }
}

macro_rules! tuples {
    ($(($($name:ident $index:tt),+))*) => { $(
        impl<$($name: Root<Pool>,)+ Pool> Root<Pool> for ($($name,)+) {
            fn init(j: &Journal<Pool>) -> Self {
                ($($name::init(j),)+)
            }
        }

        impl<$($name: PClone<Pool>,)+ Pool> PClone<Pool> for ($($name,)+) {
            fn pclone(&self, j: &Journal<Pool>) -> Self {
                ($(self.$index.pclone(j),)+)
            }
        }
    )* };
}

tuples! {
    (A 0)
    (A 0, B 1)
    (A 0, B 1, C 2)
    (A 0, B 1, C 2, D 3)
    (A 0, B 1, C 2, D 3, E 4)
    (A 0, B 1, C 2, D 3, E 4, F 5)
}
