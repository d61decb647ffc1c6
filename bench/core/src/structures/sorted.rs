//! A singly linked list of entries, sorted by key (Romulus, SPAA'18, §6.2).

use super::numbers::Numbers;
use super::{Memory, Update, copy_of};
use crate::error::Result;

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
    first: *mut Node,
}

durum::describe!(Node as "bench sorted list node" { key, value, next });
durum::describe!(Top as "bench sorted list" { first });

/// A list in some memory.
pub struct List<M> {
    memory: M,
    // INVARIANT: the root object of `memory`; its pointer and those of the nodes are null or name nodes of the list.
    top: *mut Top,
}

impl<M: Memory> List<M> {
    /// An empty list in new memory.
    pub fn new(mut memory: M) -> Result<Self> {
        let top = memory.root()?;
        Ok(List { memory, top })
    }
}

// SAFETY: reading only reads, and the memory is not used meanwhile.
unsafe impl<M: Memory> Numbers for List<M> {
    const SORTED: bool = true;

    #[inline]
    fn put(&mut self, key: u64, value: u64) -> Result<()> {
        let top = self.top;
        self.memory.update(|update| {
            // SAFETY: the invariant of `top`.
            let (link, node) = unsafe { find(top, key) };
            // SAFETY: a node of the list, if it is one.
            if !node.is_null() && unsafe { (*node).key } == key {
                // SAFETY: a field of a node; nothing is being edited.
                return unsafe { update.store(&raw mut (*node).value, value) };
            }
            let fresh = update.alloc::<Node>()?;
            // SAFETY: the node is fresh and large enough.
            unsafe {
                fresh.write(Node {
                    key,
                    value,
                    next: node,
                })
            };
            // SAFETY: a field of the root or of a node; nothing is being edited.
            unsafe { update.store(link, fresh) }
        })
    }

    #[inline]
    fn take(&mut self, key: u64) -> Result<bool> {
        let top = self.top;
        self.memory.update(|update| {
            // SAFETY: the invariant of `top`.
            let (link, node) = unsafe { find(top, key) };
            // SAFETY: a node of the list, if it is one.
            if node.is_null() || unsafe { (*node).key } != key {
                return Ok(false);
            }
            // SAFETY: as above.
            let next = unsafe { (*node).next };
            // SAFETY: a field of the root or of a node; nothing is being edited.
            unsafe { update.store(link, next)? };
            // SAFETY: nothing names the node once this update has happened.
            unsafe { update.free(node)? };
            Ok(true)
        })
    }

    #[inline]
    fn value_at(&self, key: u64, distance: usize) -> u64 {
        // SAFETY: the invariant of `top`, in the copy; nobody writes meanwhile.
        let mut node: *const Node = unsafe { (*copy_of(self.top, distance)).first };
        while !node.is_null() {
            // SAFETY: a node of the list, by the invariant, in the copy.
            let seen = unsafe { &*copy_of(node, distance) };
            if seen.key >= key {
                return if seen.key == key { seen.value } else { 0 };
            }
            node = seen.next;
        }
        0
    }

    fn show(&self, see: &mut dyn FnMut(u64, u64)) -> bool {
        // SAFETY: the invariant of `top`.
        let mut node = unsafe { (*self.top).first };
        while !node.is_null() {
            // SAFETY: a node of the list, by the invariant.
            let Node { key, value, next } = unsafe { *node };
            see(key, value);
            node = next;
        }
        true
    }
}

/// The first node whose key is not below `key`, or null, and the link that leads there.
///
/// # Safety
/// The root object of a list that nobody else changes.
#[inline]
unsafe fn find(top: *mut Top, key: u64) -> (*mut *mut Node, *mut Node) {
    // SAFETY: the root object.
    let mut link = unsafe { &raw mut (*top).first };
    loop {
        // SAFETY: a field of the root or of a node.
        let node = unsafe { *link };
        // SAFETY: a node of the list, if it is one.
        if node.is_null() || unsafe { (*node).key } >= key {
            return (link, node);
        }
        // SAFETY: as above.
        link = unsafe { &raw mut (*node).next };
    }
}
