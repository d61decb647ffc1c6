//! What a vector has in common with other types.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::mem::needs_drop;
use std::ops::{Deref, DerefMut, Index, IndexMut};
use std::slice::{self, SliceIndex};

use durum_format::types::{Count, Type};

use super::PVec;
use crate::described::{Described, Walk};
use crate::typed::as_target::as_target;
use crate::typed::collections::collection::collection;
use crate::typed::journal::Journal;
use crate::typed::layout::{WORD, structure};
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::{PSafe, name_of};
use crate::typed::typed_tx::TypedTx;
use crate::typed::values::PClone;

unsafe fn drop_buffer<T: PSafe>(tx: &TypedTx, buffer: usize, len: usize) {
    if needs_drop::<T>() {
        tx.close_ranges(buffer, len * size_of::<T>());
        for at in 0..len {
            // SAFETY: the vector owned the elements, and is gone.
            unsafe { tx.drop_value::<T>(buffer + at * size_of::<T>()) };
        }
    }
    tx.free(buffer);
}

impl<T: PSafe, P: PoolType> Deref for PVec<T, P> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: so many elements lie there.
        unsafe { slice::from_raw_parts(self.start(), self.len) }
    }
}

impl<T: PSafe, P: PoolType> DerefMut for PVec<T, P> {
    /// All elements, to be changed: announced as a whole.
    fn deref_mut(&mut self) -> &mut [T] {
        let (start, len) = (self.buffer, self.len);
        let all: *mut [T] = self.slice_mut();
        Self::open_to_changes(all, start, len);
        // SAFETY: borrowed as the vector is.
        unsafe { &mut *all }
    }
}

impl<T: PSafe, P: PoolType, I: SliceIndex<[T]>> Index<I> for PVec<T, P> {
    type Output = I::Output;

    #[inline]
    fn index(&self, at: I) -> &I::Output {
        &self.as_slice()[at]
    }
}

impl<T: PSafe, P: PoolType, I: SliceIndex<[T]>> IndexMut<I> for PVec<T, P> {
    /// The element or the elements, to be changed: these are announced, and no others.
    #[inline]
    fn index_mut(&mut self, at: I) -> &mut I::Output {
        let (start, len) = (self.buffer, self.len);
        let found: *mut I::Output = &mut self.slice_mut()[at];
        Self::open_to_changes(found, start, len);
        // SAFETY: borrowed as the vector is.
        unsafe { &mut *found }
    }
}

// SAFETY: the compiler measures size and offsets. The buffer is an allocation of elements, zero where there are none if
// they have pointers.
unsafe impl<T: PSafe, P: PoolType> Described for PVec<T, P> {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Owned(format!("PVec<{}>", name_of::<T>())))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        structure!(name_of::<Self>(), {
            buffer: match Self::IS_EMPTY_TYPE {
                true => Type::pointer_to_any(),
                false => walk.pointer_to::<Row<T>>(),
            },
            capacity: WORD,
            len: WORD,
        })
    }
}

impl<T: PSafe + PClone<P>, P: PoolType> PClone<P> for PVec<T, P> {
    fn pclone(&self, j: &Journal<P>) -> Self {
        let mut copy = Self::with_capacity(self.len, j);
        copy.extend(self.iter().map(|value| value.pclone(j)), j);
        copy
    }
}

impl<T: PSafe + PartialEq, P: PoolType> PartialEq<[T]> for PVec<T, P> {
    fn eq(&self, other: &[T]) -> bool {
        self.as_slice() == other
    }
}

impl<T: PSafe + PartialEq, P: PoolType, const N: usize> PartialEq<[T; N]> for PVec<T, P> {
    fn eq(&self, other: &[T; N]) -> bool {
        self.as_slice() == other
    }
}

/// Elements in a row up to the end of their allocation, as a description: what vectors and tables keep them in.
#[derive(Debug)]
pub struct Row<T>(PhantomData<T>);

// SAFETY: an allocation of these holds `T`s only; the tail says as many as fit.
unsafe impl<T: PSafe> Described for Row<T> {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Owned(format!("[{}]", name_of::<T>())))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        T::layout(walk).array(Count::Tail)
    }
}

collection! {
    PVec<T> of T {
        Threads: T::Threads,
        inserts where: [],
        address: buffer,
        extent: len,
        drop: drop_buffer::<T>,
    }
}

as_target! {
    [T: PSafe, P: PoolType] PVec<T, P>, to T: Debug PartialEq Eq PartialOrd Ord Hash;
}
