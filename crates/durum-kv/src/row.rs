//! A short row of things in one piece of memory.

use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Deref, DerefMut};

/// A row that numbers are entered into, one by one.
pub(crate) trait Numbers: Default + Deref<Target = [u64]> {
    fn insert(&mut self, index: usize, number: u64);
    fn push(&mut self, number: u64);
    fn remove(&mut self, index: usize);
    fn truncate(&mut self, len: usize);
}

impl Numbers for Vec<u64> {
    fn insert(&mut self, index: usize, number: u64) {
        self.insert(index, number);
    }

    fn push(&mut self, number: u64) {
        self.push(number);
    }

    fn remove(&mut self, index: usize) {
        self.remove(index);
    }

    fn truncate(&mut self, len: usize) {
        self.truncate(len);
    }
}

/// Up to `N` things, where this is.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Row<T: Copy, const N: usize> {
    // INVARIANT: at most N; so many of `items` are there.
    len: u32,
    items: [MaybeUninit<T>; N],
}

impl<T: Copy, const N: usize> Default for Row<T, N> {
    fn default() -> Self {
        Self {
            len: 0,
            items: [const { MaybeUninit::uninit() }; N],
        }
    }
}

impl<T: Copy + fmt::Debug, const N: usize> fmt::Debug for Row<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&**self).finish()
    }
}

impl<T: Copy, const N: usize> Deref for Row<T, N> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the invariant of `len`.
        unsafe { std::slice::from_raw_parts(self.items.as_ptr().cast(), self.len as usize) }
    }
}

impl<T: Copy, const N: usize> DerefMut for Row<T, N> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.items.as_mut_ptr().cast(), self.len as usize) }
    }
}

impl<T: Copy, const N: usize> Row<T, N> {
    /// What the caller has room for.
    pub(crate) fn push(&mut self, item: T) {
        self.items[self.len as usize] = MaybeUninit::new(item);
        self.len += 1;
    }

    pub(crate) fn insert(&mut self, index: usize, item: T) {
        let len = self.len as usize;
        assert!(index <= len && len < N, "the caller looked for room");
        self.items.copy_within(index..len, index + 1);
        self.items[index] = MaybeUninit::new(item);
        self.len += 1;
    }

    pub(crate) fn remove(&mut self, index: usize) -> T {
        let item = self[index];
        self.items.copy_within(index + 1..self.len as usize, index);
        self.len -= 1;
        item
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len as u32);
    }
}

impl<const N: usize> Numbers for Row<u64, N> {
    fn insert(&mut self, index: usize, number: u64) {
        self.insert(index, number);
    }

    fn push(&mut self, number: u64) {
        self.push(number);
    }

    fn remove(&mut self, index: usize) {
        self.remove(index);
    }

    fn truncate(&mut self, len: usize) {
        self.truncate(len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behaves_like_a_vector() {
        let (mut row, mut model) = (Row::<u16, 5>::default(), Vec::new());
        for step in 0..200u16 {
            let place = usize::from(step * 7 % 11);
            match step % 3 {
                0 | 1 if model.len() < 5 => {
                    row.insert(place % (model.len() + 1), step);
                    model.insert(place % (model.len() + 1), step);
                }
                2 if step % 5 == 0 => {
                    row.truncate(place);
                    model.truncate(place);
                }
                _ if !model.is_empty() => {
                    assert_eq!(
                        row.remove(place % model.len()),
                        model.remove(place % model.len())
                    );
                }
                _ => {
                    row.push(step);
                    model.push(step);
                }
            }
            assert_eq!(&row[..], &model[..]);
        }
    }
}
