//! The array of integers.

use super::memory::{PlainMemory, Written};
use crate::error::Result;
use crate::side;
use crate::structures::{Memory, Update};

/// An array in an arena.
pub(super) struct PlainSwap<W> {
    memory: PlainMemory<W>,
    // INVARIANT: an array of `count` integers in `memory`.
    values: *mut u64,
    count: usize,
}

impl<W: Written> PlainSwap<W> {
    pub(super) fn new(mut memory: PlainMemory<W>, count: usize) -> Result<Self> {
        let values = memory.zeroed_array::<u64>(count)?;
        for index in 0..count {
            // SAFETY: inside the array.
            unsafe { values.add(index).write(index as u64) };
        }
        Ok(PlainSwap {
            memory,
            values,
            count,
        })
    }
}

impl<W: Written> side::Swap for PlainSwap<W> {
    fn values(&self) -> &[u64] {
        // SAFETY: the invariant of `values`; it changes only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.values, self.count) }
    }

    fn run(&mut self, pairs: &[[u32; 2]], per_tx: usize) -> Result<()> {
        let values = self.values;
        for pairs in pairs.chunks_exact(per_tx) {
            self.memory.update(|update| {
                for [left, right] in pairs {
                    // SAFETY: the pairs index the array.
                    let (left, right) =
                        unsafe { (values.add(*left as usize), values.add(*right as usize)) };
                    // SAFETY: elements of the array.
                    let (old_left, old_right) = unsafe { (*left, *right) };
                    // SAFETY: an element of the array.
                    unsafe { update.store(left, old_right)? };
                    // SAFETY: an element of the array.
                    unsafe { update.store(right, old_left)? };
                }
                Ok(())
            })?;
        }
        Ok(())
    }
}
