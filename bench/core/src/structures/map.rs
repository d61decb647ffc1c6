//! A chained hash map with a fixed number of buckets, 8-byte keys and 100-byte values.

use super::{Memory, Update};
use crate::error::Result;
use crate::inputs::{Op, Value, Walk};
use crate::side;

/// One entry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Node {
    key: u64,
    next: *mut Node,
    value: Value,
}

durum::describe!(Node as "bench map node" { key, next, value });

/// A map in some memory.
pub struct Map<M> {
    memory: M,
    // INVARIANT: an array of `1 << bucket_bits` chains; each pointer in them is null or names a node of the map.
    buckets: *mut *mut Node,
    bucket_bits: u32,
}

impl<M: Memory> Map<M> {
    /// An empty map in new memory.
    pub fn new(mut memory: M, bucket_bits: u32) -> Result<Self> {
        let buckets = memory.zeroed_array(1 << bucket_bits)?;
        Ok(Map {
            memory,
            buckets,
            bucket_bits,
        })
    }

    fn bucket(&self, key: u64) -> *mut *mut Node {
        let index = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.bucket_bits);
        // SAFETY: the index is below the length of the array, by the invariant.
        unsafe { self.buckets.add(index as usize) }
    }
}

impl<M: Memory> side::Map for Map<M> {
    fn load(&mut self, entries: &[Op]) -> Result<()> {
        for entry in entries {
            let head = self.bucket(entry.key);
            self.memory.update(|update| {
                let node = update.alloc::<Node>()?;
                // SAFETY: an element of the array.
                let next = unsafe { *head };
                // SAFETY: the node is fresh and large enough.
                unsafe {
                    node.write(Node {
                        key: entry.key,
                        next,
                        value: Value::of(entry.value),
                    })
                };
                // SAFETY: an element of the array; nothing is being edited.
                unsafe { update.store(head, node) }
            })?;
        }
        Ok(())
    }

    fn run(&mut self, ops: &[Op]) -> Result<u64> {
        let mut sum = 0u64;
        for op in ops {
            // SAFETY: an element of the array.
            let mut node = unsafe { *self.bucket(op.key) };
            // SAFETY: nodes of the map, by the invariant.
            while !node.is_null() && unsafe { (*node).key } != op.key {
                // SAFETY: as above.
                node = unsafe { (*node).next };
            }
            if node.is_null() {
                continue; // the sum will be wrong, and the harness says so
            }
            if op.value == 0 {
                // SAFETY: a node of the map.
                sum = sum.wrapping_add(unsafe { (*node).value.digest() });
            } else {
                let value = Value::of(op.value);
                self.memory.update(|update| {
                    // SAFETY: a field of a node of the map; nothing is being edited.
                    unsafe { update.store(&raw mut (*node).value, value) }
                })?;
            }
        }
        Ok(sum)
    }

    fn walk(&mut self) -> Walk {
        let mut walk = Walk {
            sorted: true,
            ..Walk::default()
        };
        for bucket in 0..1usize << self.bucket_bits {
            // SAFETY: an element of the array, by the invariant.
            let mut node = unsafe { *self.buckets.add(bucket) };
            while !node.is_null() {
                // SAFETY: a node of the map, by the invariant.
                let Node { key, next, value } = unsafe { *node };
                walk.sum = walk.sum.wrapping_add(key ^ value.digest());
                walk.count += 1;
                node = next;
            }
        }
        walk
    }
}
