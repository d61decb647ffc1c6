//! The array of floating-point numbers.

use std::ops::Range;
use std::slice;

use super::memory::DurumMemory;
use super::pool::Style;
use crate::error::Result;
use crate::side::{self, euler};
use crate::structures::Memory;

/// An array in a pool, of which threads change parts of their own.
pub(super) struct DurumArray {
    memory: DurumMemory,
    // INVARIANT: an array of `count` numbers in the pool.
    numbers: *mut f64,
    count: usize,
}

// SAFETY: threads share the pool, which they may, and keep to their parts of the array.
unsafe impl Sync for DurumArray {}

impl DurumArray {
    pub(super) fn new(mut memory: DurumMemory, count: usize) -> Result<Self> {
        let numbers = memory.zeroed_array::<f64>(count)?;
        let filled = memory.temp.pool.transaction(|tx| {
            // SAFETY: the whole array; one thread.
            unsafe { tx.add_bytes(numbers.cast(), count * 8, durum::Announce::Clobber)? };
            for index in 0..count {
                // SAFETY: inside the array, and announced.
                unsafe { numbers.add(index).write(index as f64) };
            }
            Ok::<_, durum::Error>(())
        });
        filled.map_err(memory.said())?;
        Ok(DurumArray {
            memory,
            numbers,
            count,
        })
    }
}

impl side::Array for DurumArray {
    fn euler(&self, range: Range<usize>, per_tx: usize) -> Result<()> {
        assert!(range.end <= self.count);
        let mut results = Vec::with_capacity(per_tx);
        for first in range.clone().step_by(per_tx) {
            let count = per_tx.min(range.end - first);
            let done = self.memory.temp.pool.transaction(|tx| {
                // SAFETY: within the array; this thread alone uses the part.
                let part = unsafe { self.numbers.add(first) };
                match self.memory.style {
                    Style::InPlace => {
                        // SAFETY: as above.
                        unsafe {
                            tx.add_bytes(part.cast(), count * 8, durum::Announce::default())?;
                        }
                        // SAFETY: as above, and announced.
                        for number in unsafe { slice::from_raw_parts_mut(part, count) } {
                            *number = euler(*number);
                        }
                        Ok::<_, durum::Error>(())
                    }
                    Style::Deferred => {
                        results.clear();
                        // SAFETY: as above.
                        let numbers = unsafe { slice::from_raw_parts(part, count) };
                        results.extend(numbers.iter().map(|number| euler(*number)));
                        // SAFETY: as above.
                        unsafe { tx.set_bytes(part.cast(), results.as_ptr().cast(), count * 8) }
                    }
                }
            });
            done.map_err(self.memory.said())?;
        }
        Ok(())
    }

    fn numbers(&self) -> &[f64] {
        // SAFETY: the invariant of `numbers`; nobody changes them meanwhile.
        unsafe { slice::from_raw_parts(self.numbers, self.count) }
    }
}
