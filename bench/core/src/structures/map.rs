//! A chained hash map with a fixed number of buckets, 8-byte keys and values of one size. The peers' `map.c` and, with
//! deletions, `fixed.c` are the same algorithm.

use super::numbers::Numbers;
use super::{InCopies, InTurns, Memory, Stored, Update, copy_of};
use crate::error::Result;
use crate::inputs::{Op, Value, Walk};
use crate::side::{self, LARGE_VALUE, SMALL_VALUE};

/// One entry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Node<V> {
    key: u64,
    next: *mut Node<V>,
    value: V,
}

type ValueNode = Node<Value>;
type SmallNode = Node<[u8; SMALL_VALUE]>;
type LargeNode = Node<[u8; LARGE_VALUE]>;
type NumberNode = Node<u64>;

durum::describe!(ValueNode as "bench map node" { key, next, value });
durum::describe!(SmallNode as "bench map node of small bytes" { key, next, value });
durum::describe!(LargeNode as "bench map node of large bytes" { key, next, value });
durum::describe!(NumberNode as "bench map node of a number" { key, next, value });

/// log2 of the number of buckets of the map of numbers (Romulus, SPAA'18, §6.2).
const FIXED_BUCKET_BITS: u32 = 11;

/// A map in some memory, by default of the values of YCSB.
pub struct Map<M, V = Value> {
    memory: M,
    // INVARIANT: an array of `1 << bucket_bits` chains; each pointer in them is null or names a node of the map.
    buckets: *mut *mut Node<V>,
    bucket_bits: u32,
}

// SAFETY: the buckets and nodes are the map's own, in memory that may be used from any thread if `M` may.
unsafe impl<M: Send, V: Send> Send for Map<M, V> {}

impl<M: Memory, V: Copy> Map<M, V>
where
    Node<V>: Stored,
{
    /// An empty map in new memory.
    pub fn new(mut memory: M, bucket_bits: u32) -> Result<Self> {
        let buckets = memory.zeroed_array(1 << bucket_bits)?;
        Ok(Map {
            memory,
            buckets,
            bucket_bits,
        })
    }

    #[inline]
    fn bucket_index(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.bucket_bits)) as usize
    }

    #[inline]
    fn bucket(&self, key: u64) -> *mut *mut Node<V> {
        // SAFETY: the index is below the length of the array, by the invariant.
        unsafe { self.buckets.add(self.bucket_index(key)) }
    }

    /// The key's node, or null.
    #[inline]
    fn find(&self, key: u64) -> *mut Node<V> {
        // SAFETY: an element of the array.
        let mut node = unsafe { *self.bucket(key) };
        // SAFETY: nodes of the map, by the invariant.
        while !node.is_null() && unsafe { (*node).key } != key {
            // SAFETY: as above.
            node = unsafe { (*node).next };
        }
        node
    }

    /// The key's value in the copy of the map that lies `distance` bytes behind it.
    #[inline]
    fn value_in_copy(&self, key: u64, distance: usize) -> Option<&V> {
        // SAFETY: an element of the array, in the copy; nobody changes it meanwhile.
        let mut node: *const Node<V> = unsafe { *copy_of(self.bucket(key), distance) };
        while !node.is_null() {
            // SAFETY: a node of the map, by the invariant, in the copy.
            let seen = unsafe { &*copy_of(node, distance) };
            if seen.key == key {
                return Some(&seen.value);
            }
            node = seen.next;
        }
        None
    }

    #[inline]
    fn insert(&mut self, key: u64, value: V) -> Result<()> {
        let head = self.bucket(key);
        self.memory.update(|update| {
            let node = update.alloc::<Node<V>>()?;
            // SAFETY: an element of the array.
            let next = unsafe { *head };
            // SAFETY: the node is fresh and large enough.
            unsafe { node.write(Node { key, next, value }) };
            // SAFETY: an element of the array; nothing is being edited.
            unsafe { update.store(head, node) }
        })
    }

    /// Sets the key's value, whether the key is there or not.
    #[inline]
    fn set(&mut self, key: u64, value: V) -> Result<()>
    where
        V: Stored,
    {
        let node = self.find(key);
        if node.is_null() {
            return self.insert(key, value);
        }
        self.memory.update(|update| {
            // SAFETY: a field of a node of the map; nothing is being edited.
            unsafe { update.store(&raw mut (*node).value, value) }
        })
    }

    /// Deletes a key; whether it was there.
    #[inline]
    fn delete(&mut self, key: u64) -> Result<bool> {
        let mut link = self.bucket(key);
        loop {
            // SAFETY: an element of the array, or a field of a node.
            let node = unsafe { *link };
            if node.is_null() {
                return Ok(false);
            }
            // SAFETY: a node of the map, by the invariant.
            let (found, next) = unsafe { ((*node).key, (*node).next) };
            if found == key {
                return self.memory.update(|update| {
                    // SAFETY: as above; nothing is being edited.
                    unsafe { update.store(link, next)? };
                    // SAFETY: nothing names the node once this update has happened.
                    unsafe { update.free(node)? };
                    Ok(true)
                });
            }
            // SAFETY: a field of a node.
            link = unsafe { &raw mut (*node).next };
        }
    }

    /// Shows every node.
    #[inline]
    fn each(&self, mut see: impl FnMut(&Node<V>)) {
        for bucket in 0..1usize << self.bucket_bits {
            // SAFETY: an element of the array, by the invariant.
            let mut node = unsafe { *self.buckets.add(bucket) };
            while !node.is_null() {
                // SAFETY: a node of the map, by the invariant; nobody writes to it meanwhile.
                let current = unsafe { &*node };
                see(current);
                node = current.next;
            }
        }
    }
}

impl<M: Memory> side::Map for Map<M, Value> {
    fn load(&mut self, entries: &[Op]) -> Result<()> {
        for entry in entries {
            self.insert(entry.key, Value::of(entry.value))?;
        }
        Ok(())
    }

    fn run(&mut self, ops: &[Op]) -> Result<u64> {
        let mut sum = 0u64;
        for op in ops {
            let node = self.find(op.key);
            if node.is_null() {
                // A read of a key that is not there makes the sum wrong, and the harness says so.
                if op.value != 0 {
                    self.insert(op.key, Value::of(op.value))?;
                }
                continue;
            }
            if op.value == 0 {
                // SAFETY: a node of the map.
                sum = sum.wrapping_add(unsafe { (*node).value.digest() });
            } else {
                self.memory.update(|update| {
                    let value = Value::of(op.value);
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
        self.each(|node| {
            walk.sum = walk.sum.wrapping_add(node.key ^ node.value.digest());
            walk.count += 1;
        });
        walk
    }
}

// SAFETY: reading only reads, and the memory is not used meanwhile.
unsafe impl<M: Memory> InTurns for Map<M, Value> {
    const STEPS: usize = 1;

    fn load(&mut self, entries: &[Op]) -> Result<()> {
        side::Map::load(self, entries)
    }

    #[inline]
    fn update(&mut self, _: usize, op: &Op) -> Result<()> {
        side::Map::run(self, std::slice::from_ref(op)).map(drop)
    }

    #[inline]
    fn read(&self, key: u64) -> u64 {
        self.read_at(key, 0)
    }

    fn walk(&mut self) -> Walk {
        side::Map::walk(self)
    }
}

impl<M: Memory> InCopies for Map<M, Value> {
    #[inline]
    fn read_at(&self, key: u64, distance: usize) -> u64 {
        self.value_in_copy(key, distance).map_or(0, Value::digest)
    }
}

impl<M: Memory> Map<M, u64> {
    /// An empty map of numbers, with 2,048 buckets.
    pub fn fixed(memory: M) -> Result<Self> {
        Self::new(memory, FIXED_BUCKET_BITS)
    }
}

// SAFETY: reading only reads, and the memory is not used meanwhile.
unsafe impl<M: Memory> Numbers for Map<M, u64> {
    const SORTED: bool = false;

    #[inline]
    fn put(&mut self, key: u64, value: u64) -> Result<()> {
        self.set(key, value)
    }

    #[inline]
    fn take(&mut self, key: u64) -> Result<bool> {
        self.delete(key)
    }

    #[inline]
    fn value_at(&self, key: u64, distance: usize) -> u64 {
        self.value_in_copy(key, distance).copied().unwrap_or(0)
    }

    fn show(&self, see: &mut dyn FnMut(u64, u64)) -> bool {
        self.each(|node| see(node.key, node.value));
        true
    }
}

impl<M: Memory, const N: usize> Map<M, [u8; N]>
where
    Node<[u8; N]>: Stored,
    [u8; N]: Stored,
{
    /// Shows every entry.
    pub fn visit(&self, see: &mut dyn FnMut(u64, &[u8])) {
        self.each(|node| see(node.key, &node.value));
    }
}

impl<M: Memory, const N: usize> side::Put for &mut Map<M, [u8; N]>
where
    Node<[u8; N]>: Stored,
    [u8; N]: Stored,
{
    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        self.set(key, bytes(value))
    }

    fn load(&mut self, keys: &[u64], values: &[u8]) -> Result<()> {
        let mut entries: Vec<(usize, u64, [u8; N])> = keys
            .iter()
            .zip(values.chunks_exact(N))
            .map(|(key, value)| (self.bucket_index(*key), *key, bytes(value)))
            .collect();
        // Each chain's head is stored once: an update may not see what it has stored before.
        entries.sort_unstable_by_key(|(bucket, ..)| *bucket);
        let buckets = self.buckets;
        self.memory.update(|update| {
            for chain in entries.chunk_by(|left, right| left.0 == right.0) {
                // SAFETY: an index of the array.
                let head = unsafe { buckets.add(chain[0].0) };
                // SAFETY: an element of the array.
                let mut first = unsafe { *head };
                for (_, key, value) in chain {
                    let node = update.alloc::<Node<[u8; N]>>()?;
                    // SAFETY: the node is fresh and large enough.
                    unsafe {
                        node.write(Node {
                            key: *key,
                            next: first,
                            value: *value,
                        })
                    };
                    first = node;
                }
                // SAFETY: an element of the array; nothing is being edited.
                unsafe { update.store(head, first)? };
            }
            Ok(())
        })
    }
}

/// A value as the map stores it. The harness makes no others.
fn bytes<const N: usize>(value: &[u8]) -> [u8; N] {
    value.try_into().expect("a value of the map's size")
}
