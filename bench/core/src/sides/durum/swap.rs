//! Arrays of integers.

use super::memory::DurumMemory;
use super::pool::Style;
use crate::error::Result;
use crate::side;
use crate::structures::Memory;

/// An array in a pool.
#[derive(Clone, Copy)]
struct Integers {
    // INVARIANT: an array of `count` integers in the pool.
    values: *mut u64,
    count: usize,
}

impl Integers {
    fn new(memory: &mut DurumMemory, count: usize) -> Result<Self> {
        let values = memory.zeroed_array::<u64>(count)?;
        let filled = memory.temp.pool.transaction(|tx| {
            // SAFETY: the whole array; one thread.
            unsafe { tx.add_bytes(values.cast(), count * 8, durum::Announce::Clobber)? };
            for index in 0..count {
                // SAFETY: inside the array, and announced.
                unsafe { values.add(index).write(index as u64) };
            }
            Ok::<_, durum::Error>(())
        });
        filled.map_err(memory.said())?;
        Ok(Integers { values, count })
    }

    fn values(&self) -> &[u64] {
        // SAFETY: the invariant of `values`; who has the array lets nobody change it.
        unsafe { std::slice::from_raw_parts(self.values, self.count) }
    }

    fn run_in_place(self, memory: &DurumMemory, pairs: &[[u32; 2]]) -> Result<()> {
        let values = self.values;
        let done = memory.temp.transaction(|tx| {
            for [left, right] in pairs {
                // SAFETY: the pairs index the array.
                let (left, right) =
                    unsafe { (values.add(*left as usize), values.add(*right as usize)) };
                // SAFETY: an element of the array; one thread.
                unsafe { tx.add(left)? };
                // SAFETY: as above.
                unsafe { tx.add(right)? };
                // SAFETY: elements of the array, announced.
                unsafe { left.swap(right) };
            }
            Ok(())
        });
        done.map_err(memory.said())
    }

    /// Sets become visible at the commit only, so later pairs of a transaction look into `pending` first.
    fn run_deferred(
        self,
        memory: &DurumMemory,
        pairs: &[[u32; 2]],
        pending: &mut Pending,
    ) -> Result<()> {
        let values = self.values;
        let done = memory.temp.transaction(|tx| {
            pending.begin();
            for [left, right] in pairs {
                // SAFETY: the pairs index the array.
                let (old_left, old_right) = unsafe {
                    (
                        pending.read(values, *left as usize),
                        pending.read(values, *right as usize),
                    )
                };
                pending.write(*left as usize, old_right);
                pending.write(*right as usize, old_left);
            }
            for index in &pending.written {
                let index = *index as usize;
                // SAFETY: an element of the array; one thread.
                unsafe { tx.set(values.add(index), pending.values[index])? };
            }
            Ok(())
        });
        done.map_err(memory.said())
    }

    fn run(
        self,
        memory: &DurumMemory,
        pairs: &[[u32; 2]],
        per_tx: usize,
        pending: &mut Pending,
    ) -> Result<()> {
        for pairs in pairs.chunks_exact(per_tx) {
            match memory.style {
                Style::InPlace => self.run_in_place(memory, pairs)?,
                Style::Deferred => self.run_deferred(memory, pairs, pending)?,
            }
        }
        memory.temp.settle().map_err(memory.said())
    }
}

/// An array in a pool of its own.
pub(super) struct DurumSwap {
    memory: DurumMemory,
    integers: Integers,
    pending: Pending,
}

impl DurumSwap {
    pub(super) fn new(mut memory: DurumMemory, count: usize) -> Result<Self> {
        Ok(DurumSwap {
            integers: Integers::new(&mut memory, count)?,
            pending: Pending::new(count),
            memory,
        })
    }
}

impl side::Swap for DurumSwap {
    fn values(&self) -> &[u64] {
        self.integers.values()
    }

    fn run(&mut self, pairs: &[[u32; 2]], per_tx: usize) -> Result<()> {
        (self.integers).run(&self.memory, pairs, per_tx, &mut self.pending)
    }
}

/// Arrays in one pool.
pub(super) struct DurumSwaps {
    memory: DurumMemory,
    arrays: Vec<Integers>,
}

// SAFETY: threads share the pool, which they may, and keep to their arrays.
unsafe impl Sync for DurumSwaps {}

impl DurumSwaps {
    pub(super) fn new(mut memory: DurumMemory, count: usize, arrays: usize) -> Result<Self> {
        let arrays = (0..arrays).map(|_| Integers::new(&mut memory, count));
        Ok(DurumSwaps {
            arrays: arrays.collect::<Result<_>>()?,
            memory,
        })
    }
}

impl side::Swaps for DurumSwaps {
    fn values(&self, array: usize) -> Vec<u64> {
        self.arrays[array].values().to_vec()
    }

    fn run(&self, array: usize, pairs: &[[u32; 2]], per_tx: usize) -> Result<()> {
        let integers = self.arrays[array];
        let mut pending = Pending::new(integers.count);
        integers.run(&self.memory, pairs, per_tx, &mut pending)
    }
}

/// What the running transaction wrote, by index.
struct Pending {
    values: Vec<u64>,
    /// The transaction that wrote the value last.
    writers: Vec<u32>,
    /// Each index once.
    written: Vec<u32>,
    transaction: u32,
}

impl Pending {
    fn new(count: usize) -> Pending {
        Pending {
            values: vec![0; count],
            writers: vec![0; count],
            written: Vec::with_capacity(count),
            transaction: 0,
        }
    }

    #[inline]
    fn begin(&mut self) {
        self.written.clear();
        self.transaction = self.transaction.wrapping_add(1);
        if self.transaction == 0 {
            self.writers.fill(0);
            self.transaction = 1;
        }
    }

    /// # Safety
    /// `values[index]` is valid.
    #[inline]
    unsafe fn read(&self, values: *const u64, index: usize) -> u64 {
        if self.writers[index] == self.transaction {
            self.values[index]
        } else {
            // SAFETY: valid by contract.
            unsafe { *values.add(index) }
        }
    }

    #[inline]
    fn write(&mut self, index: usize, value: u64) {
        if self.writers[index] != self.transaction {
            self.writers[index] = self.transaction;
            self.written.push(index as u32);
        }
        self.values[index] = value;
    }
}
