//! The read indicator of a [`ReadersWriter`](super::ReadersWriter): who is inside, without a word that all write to.

use std::ptr;

use crossbeam_utils::CachePadded;

use crate::primitive::{AtomicPtr, AtomicU64, Ordering, leased_number, limit};

/// Stripes of the first block; each block has twice as many as the one before.
const FIRST_STRIPES: usize = limit(8, 1);
const BLOCKS: usize = limit(16, 2);

/// A counter has the readers that are inside below, and above it how many have come so far.
pub(super) type Counter = CachePadded<AtomicU64>;
pub(super) const CAME: u64 = 1 << 32;
const INSIDE: u64 = CAME - 1;

/// How many readers are inside: one counter for each thread. Threads of the same number share one, which costs time and
/// nothing else.
#[derive(Debug)]
pub(super) struct Readers {
    /// Block `n` has twice as many counters as block `n - 1`, and is made when the first thread needs it.
    blocks: [AtomicPtr<Counter>; BLOCKS],
}

impl Readers {
    pub(super) fn new() -> Self {
        Self {
            blocks: std::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    fn len(block: usize) -> usize {
        FIRST_STRIPES << block
    }

    /// The block of a thread's counter, and its place there.
    fn place(number: usize) -> (usize, usize) {
        let number = number % (FIRST_STRIPES * ((1 << BLOCKS) - 1));
        let block = (number / FIRST_STRIPES + 1).ilog2() as usize;
        (block, number - FIRST_STRIPES * ((1 << block) - 1))
    }

    #[inline]
    pub(super) fn of_this_thread(&self) -> &Counter {
        let number = leased_number();
        // Of the first block without arithmetic.
        let (block, at) = match number < FIRST_STRIPES {
            true => (0, number),
            false => Self::place(number),
        };
        let mut counters = self.blocks[block].load(Ordering::SeqCst);
        if counters.is_null() {
            counters = self.make(block);
        }
        // SAFETY: a block has `len` counters, `at` is less, and blocks stay until `drop`.
        unsafe { &*counters.add(at) }
    }

    #[cold]
    fn make(&self, block: usize) -> *mut Counter {
        let counters: Box<[Counter]> = (0..Self::len(block)).map(|_| Counter::default()).collect();
        let made = Box::into_raw(counters).cast::<Counter>();
        match self.blocks[block].compare_exchange(
            ptr::null_mut(),
            made,
            Ordering::SeqCst,
            Ordering::SeqCst,
        ) {
            Ok(_) => made,
            Err(other) => {
                // SAFETY: made above, and nobody has seen it.
                unsafe { Self::free(made, block) };
                other
            }
        }
    }

    /// # Safety
    /// `counters` is a block of this number that nobody uses any more.
    unsafe fn free(counters: *mut Counter, block: usize) {
        let counters = ptr::slice_from_raw_parts_mut(counters, Self::len(block));
        // SAFETY: made by `make` as a boxed slice of this length.
        drop(unsafe { Box::from_raw(counters) });
    }

    /// Whether `is_fine` says so of all counters. A block that does not exist yet has no reader that came before
    /// whoever asks.
    fn all(&self, mut is_fine: impl FnMut(&Counter) -> bool) -> bool {
        (0..BLOCKS).all(|block| {
            let counters = self.blocks[block].load(Ordering::SeqCst);
            // SAFETY: a block has `len` counters, `at` is less, and blocks stay until `drop`.
            let mut at = (0..Self::len(block)).map(|at| unsafe { &*counters.add(at) });
            counters.is_null() || at.all(&mut is_fine)
        })
    }

    /// Whether none is inside.
    pub(super) fn is_empty(&self) -> bool {
        self.all(|counter| counter.load(Ordering::SeqCst) & INSIDE == 0)
    }

    /// How many have come so far, but by this counter.
    pub(super) fn came_but_by(&self, own: &Counter) -> u64 {
        let mut came = 0u64;
        self.all(|counter| {
            if !ptr::eq(counter, own) {
                came = came.wrapping_add(counter.load(Ordering::Relaxed) / CAME);
            }
            true
        });
        came
    }
}

impl Drop for Readers {
    fn drop(&mut self) {
        for block in 0..BLOCKS {
            let counters = self.blocks[block].load(Ordering::SeqCst);
            if !counters.is_null() {
                // SAFETY: nobody else has this lock any more.
                unsafe { Self::free(counters, block) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_counter_of_its_own_until_there_are_half_a_million() {
        let mut next = (0, 0);
        for number in 0..FIRST_STRIPES * ((1 << BLOCKS) - 1) {
            assert_eq!(Readers::place(number), next, "{number}");
            next.1 += 1;
            if next.1 == Readers::len(next.0) {
                next = (next.0 + 1, 0);
            }
        }
        assert_eq!(next, (BLOCKS, 0));
        assert_eq!(Readers::place(FIRST_STRIPES * ((1 << BLOCKS) - 1)), (0, 0));
    }
}
