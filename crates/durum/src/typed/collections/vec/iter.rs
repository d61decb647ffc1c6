//! Iterators over vectors.

use std::slice;

use super::PVec;
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::PSafe;
use crate::typed::typed_tx::TypedTx;

/// Elements to be changed, each announced when it is given.
#[derive(Debug)]
pub struct IterMut<'a, T: PSafe> {
    pub(super) elements: slice::IterMut<'a, T>,
    /// None where there is nothing to announce.
    pub(super) tx: Option<&'a TypedTx>,
}

impl<'a, T: PSafe> IterMut<'a, T> {
    #[inline]
    fn opened(&self, element: *mut T) -> &'a mut T {
        if let Some(tx) = self.tx {
            tx.open_to_changes(element);
        }
        // SAFETY: borrowed as the vector is, and given once.
        unsafe { &mut *element }
    }
}

impl<'a, T: PSafe> Iterator for IterMut<'a, T> {
    type Item = &'a mut T;

    fn next(&mut self) -> Option<&'a mut T> {
        let element: *mut T = self.elements.next()?;
        Some(self.opened(element))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.elements.size_hint()
    }
}

impl<T: PSafe> DoubleEndedIterator for IterMut<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let element: *mut T = self.elements.next_back()?;
        Some(self.opened(element))
    }
}

impl<T: PSafe> ExactSizeIterator for IterMut<'_, T> {}

impl<T: PSafe, P: PoolType> IntoIterator for PVec<T, P> {
    type Item = T;
    type IntoIter = std::vec::IntoIter<T>;

    /// Takes all elements out, as [`PVec::drain`] does. Only in a transaction, as everything that has a vector by
    /// value.
    fn into_iter(mut self) -> Self::IntoIter {
        self.drain(..)
    }
}

impl<'a, T: PSafe, P: PoolType> IntoIterator for &'a PVec<T, P> {
    type Item = &'a T;
    type IntoIter = slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<'a, T: PSafe, P: PoolType> IntoIterator for &'a mut PVec<T, P> {
    type Item = &'a mut T;
    type IntoIter = IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter_mut()
    }
}
