//! Iterators over vectors.

use std::slice;

use crate::typed::psafe::PSafe;
use crate::typed::running::Running;

/// Elements to be changed, each announced when it is given.
#[derive(Debug)]
pub struct IterMut<'a, T: PSafe> {
    pub(super) elements: slice::IterMut<'a, T>,
    pub(super) running: &'a Running,
}

impl<'a, T: PSafe> Iterator for IterMut<'a, T> {
    type Item = &'a mut T;

    fn next(&mut self) -> Option<&'a mut T> {
        let element = self.elements.next()?;
        self.running.open_to_changes(element);
        Some(element)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.elements.size_hint()
    }
}

impl<T: PSafe> DoubleEndedIterator for IterMut<'_, T> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let element = self.elements.next_back()?;
        self.running.open_to_changes(element);
        Some(element)
    }
}

impl<T: PSafe> ExactSizeIterator for IterMut<'_, T> {}
