//! A singly linked list with head and tail.

use std::ptr::null_mut;

use super::{Memory, Update};
use crate::error::Result;
use crate::inputs::Walk;
use crate::side;

/// One element.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Node {
    value: u64,
    next: *mut Node,
}

/// Both ends; null when the list is empty.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    head: *mut Node,
    tail: *mut Node,
}

durum::describe!(Node as "bench list node" { value, next });
durum::describe!(Ends as "bench list" { head, tail });

/// A list in some memory.
pub struct List<M> {
    memory: M,
    // INVARIANT: the root object of `memory`; its pointers and those of the nodes are null or name nodes of the list.
    ends: *mut Ends,
}

impl<M: Memory> List<M> {
    /// An empty list in new memory.
    pub fn new(mut memory: M) -> Result<Self> {
        let ends = memory.root()?;
        Ok(List { memory, ends })
    }
}

impl<M: Memory> side::List for List<M> {
    fn append(&mut self, values: &[u64]) -> Result<()> {
        let ends = self.ends;
        for value in values {
            self.memory.update(|update| {
                let node = update.alloc::<Node>()?;
                // SAFETY: the node is fresh and large enough.
                unsafe {
                    node.write(Node {
                        value: *value,
                        next: null_mut(),
                    })
                };
                // SAFETY: the invariant of `ends`.
                let tail = unsafe { (*ends).tail };
                let link = if tail.is_null() {
                    // SAFETY: the invariant of `ends`.
                    unsafe { &raw mut (*ends).head }
                } else {
                    // SAFETY: the invariant of `ends`: a tail that is not null is a node.
                    unsafe { &raw mut (*tail).next }
                };
                // SAFETY: `link` is a field of the root or of a node; nothing is being edited.
                unsafe { update.store(link, node)? };
                // SAFETY: a field of the root; nothing is being edited.
                unsafe { update.store(&raw mut (*ends).tail, node) }
            })?;
        }
        Ok(())
    }

    fn sum(&mut self) -> Walk {
        let mut walk = Walk {
            sorted: true,
            ..Walk::default()
        };
        // SAFETY: the invariant of `ends`.
        let mut node = unsafe { (*self.ends).head };
        while !node.is_null() {
            // SAFETY: a node of the list, by the invariant.
            let Node { value, next } = unsafe { *node };
            walk.sum = walk.sum.wrapping_add(value);
            walk.count += 1;
            node = next;
        }
        walk
    }

    fn pop(&mut self, count: usize) -> Result<u64> {
        let ends = self.ends;
        let mut sum = 0u64;
        for _ in 0..count {
            // SAFETY: the invariant of `ends`.
            let head = unsafe { (*ends).head };
            if head.is_null() {
                break;
            }
            // SAFETY: a node of the list, by the invariant.
            sum = sum.wrapping_add(unsafe { (*head).value });
            self.memory.update(|update| {
                // SAFETY: as above.
                let next = unsafe { (*head).next };
                // SAFETY: a field of the root; nothing is being edited.
                unsafe { update.store(&raw mut (*ends).head, next)? };
                if next.is_null() {
                    // SAFETY: a field of the root; nothing is being edited.
                    unsafe { update.store(&raw mut (*ends).tail, next)? };
                }
                // SAFETY: nothing names the node once this update has happened.
                unsafe { update.free(head) }
            })?;
        }
        Ok(sum)
    }
}
