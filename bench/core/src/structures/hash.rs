//! A chained hash map that grows: twice as many chains when there are as many entries. It counts them in its root
//! object, as the map of the Romulus paper (SPAA'18, §6.2) does. The peers' `programs/hash.c` is the same algorithm.

use super::numbers::Numbers;
use super::{Memory, Update, copy_of};
use crate::error::Result;

const CHAINS_FIRST: u64 = 8;

/// One entry.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Node {
    key: u64,
    value: u64,
    next: *mut Node,
}

/// The root object.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Top {
    /// Null while `chain_count` is 0.
    chains: *mut *mut Node,
    chain_count: u64,
    /// Number of entries.
    length: u64,
}

durum::describe!(Node as "bench hash node" { key, value, next });
durum::describe!(Top as "bench hash" { chains, chain_count, length });

impl Top {
    #[inline]
    fn chain_of(&self, key: u64) -> usize {
        ((key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) % self.chain_count) as usize
    }

    /// The link that leads to the node with a key, or the end of its chain; and where it leads.
    ///
    /// # Safety
    /// The root object of a map that has chains, which nobody else changes.
    #[inline]
    unsafe fn find(&self, key: u64) -> (*mut *mut Node, *mut Node) {
        // SAFETY: the index is below the number of chains.
        let mut link = unsafe { self.chains.add(self.chain_of(key)) };
        loop {
            // SAFETY: a chain, or a field of a node.
            let node = unsafe { *link };
            // SAFETY: a node of the map, if it is one.
            if node.is_null() || unsafe { (*node).key } == key {
                return (link, node);
            }
            // SAFETY: as above.
            link = unsafe { &raw mut (*node).next };
        }
    }
}

/// A map in some memory.
pub struct Hash<M> {
    memory: M,
    // INVARIANT: the root object of `memory`: as many chains as it says; their pointers and those of the nodes are null
    // or name nodes of the map.
    top: *mut Top,
}

impl<M: Memory> Hash<M> {
    /// An empty map in new memory.
    pub fn new(mut memory: M) -> Result<Self> {
        let top = memory.root()?;
        Ok(Hash { memory, top })
    }
}

// SAFETY: reading only reads, and the memory is not used meanwhile.
unsafe impl<M: Memory> Numbers for Hash<M> {
    const SORTED: bool = false;

    #[inline]
    fn put(&mut self, key: u64, value: u64) -> Result<()> {
        let top = self.top;
        self.memory.update(|update| {
            // SAFETY: the invariant of `top`.
            let mut seen = unsafe { *top };
            if seen.chain_count > 0 {
                // SAFETY: as above; there are chains.
                let (_, node) = unsafe { seen.find(key) };
                if !node.is_null() {
                    // SAFETY: a field of a node; nothing is being edited.
                    return unsafe { update.store(&raw mut (*node).value, value) };
                }
            }
            let grows = seen.length >= seen.chain_count;
            if grows {
                // SAFETY: the invariant of `top`.
                seen = unsafe { grown(update, seen)? };
            }
            let node = update.alloc::<Node>()?;
            // SAFETY: the index is below the number of chains.
            let head = unsafe { seen.chains.add(seen.chain_of(key)) };
            // SAFETY: a chain.
            let next = unsafe { *head };
            // SAFETY: the node is fresh and large enough.
            unsafe { node.write(Node { key, value, next }) };
            seen.length += 1;
            if grows {
                // SAFETY: a fresh chain.
                unsafe { head.write(node) };
                // SAFETY: the root object; nothing is being edited.
                unsafe { update.store(top, seen) }
            } else {
                // SAFETY: a chain; nothing is being edited.
                unsafe { update.store(head, node)? };
                // SAFETY: a field of the root object; nothing is being edited.
                unsafe { update.store(&raw mut (*top).length, seen.length) }
            }
        })
    }

    #[inline]
    fn take(&mut self, key: u64) -> Result<bool> {
        let top = self.top;
        self.memory.update(|update| {
            // SAFETY: the invariant of `top`.
            let seen = unsafe { *top };
            if seen.chain_count == 0 {
                return Ok(false);
            }
            // SAFETY: as above; there are chains.
            let (link, node) = unsafe { seen.find(key) };
            if node.is_null() {
                return Ok(false);
            }
            // SAFETY: a node of the map.
            let next = unsafe { (*node).next };
            // SAFETY: a chain or a field of a node; nothing is being edited.
            unsafe { update.store(link, next)? };
            // SAFETY: a field of the root object; nothing is being edited.
            unsafe { update.store(&raw mut (*top).length, seen.length - 1)? };
            // SAFETY: nothing names the node once this update has happened.
            unsafe { update.free(node)? };
            Ok(true)
        })
    }

    #[inline]
    fn value_at(&self, key: u64, distance: usize) -> u64 {
        // SAFETY: the invariant of `top`, in the copy; nobody writes meanwhile.
        let top = unsafe { &*copy_of(self.top, distance) };
        if top.chain_count == 0 {
            return 0;
        }
        // SAFETY: the index is below the number of chains; in the copy.
        let head = unsafe { copy_of(top.chains.add(top.chain_of(key)), distance) };
        // SAFETY: a chain.
        let mut node: *const Node = unsafe { *head };
        while !node.is_null() {
            // SAFETY: a node of the map, by the invariant, in the copy.
            let seen = unsafe { &*copy_of(node, distance) };
            if seen.key == key {
                return seen.value;
            }
            node = seen.next;
        }
        0
    }

    fn show(&self, see: &mut dyn FnMut(u64, u64)) -> bool {
        // SAFETY: the invariant of `top`; nobody writes meanwhile.
        let top = unsafe { &*self.top };
        let mut length = 0;
        for chain in 0..top.chain_count as usize {
            // SAFETY: a chain.
            let mut node = unsafe { *top.chains.add(chain) };
            while !node.is_null() {
                // SAFETY: a node of the map, by the invariant.
                let Node { key, value, next } = unsafe { *node };
                see(key, value);
                length += 1;
                node = next;
            }
        }
        top.length == length
    }
}

/// Makes room for twice as many, and puts every node into its new chain: the root object as it will be.
///
/// # Safety
/// `old` is the root object of a map that nobody else changes.
#[cold]
unsafe fn grown<U: Update>(update: &mut U, old: Top) -> std::result::Result<Top, U::Error> {
    let chain_count = CHAINS_FIRST.max(2 * old.chain_count);
    let new = Top {
        chains: update.alloc_zeroed(chain_count as usize)?,
        chain_count,
        ..old
    };
    for chain in 0..old.chain_count as usize {
        // SAFETY: a chain.
        let mut node = unsafe { *old.chains.add(chain) };
        while !node.is_null() {
            // SAFETY: a node of the map.
            let Node { key, next, .. } = unsafe { *node };
            // SAFETY: the index is below the number of new chains.
            let head = unsafe { new.chains.add(new.chain_of(key)) };
            // SAFETY: a field of a node; nothing is being edited. It was read before, and is not read again.
            unsafe { update.store(&raw mut (*node).next, *head)? };
            // SAFETY: a fresh chain.
            unsafe { head.write(node) };
            node = next;
        }
    }
    if !old.chains.is_null() {
        // SAFETY: nothing names the old chains once this update has happened.
        unsafe { update.free_array(old.chains, old.chain_count as usize)? };
    }
    Ok(new)
}
