//! A red-black tree: a red node has no red child, and each way down from the top meets as many black nodes (Romulus,
//! SPAA'18, §6.2).
//!
//! Nodes know their children only. An update notes the way that it takes down, changes the tree at its end, and comes
//! back along it as far as colours must change. The peers' `redblack.c` is the same algorithm; a change belongs in
//! both.

use std::ptr::null_mut;

use super::numbers::Numbers;
use super::{Memory, Update, copy_of};
use crate::error::Result;

/// Where lesser keys are, and greater ones.
const LESS: usize = 0;
const GREATER: usize = 1;
/// Steps of the longest way in a tree of 2^32 entries.
const STEPS_USUAL: usize = 64;

/// One node.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Node {
    key: u64,
    value: u64,
    children: [*mut Node; 2],
    /// 1, or 0 if it is black.
    red: u64,
}

/// The root object.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Top {
    node: *mut Node,
}

durum::describe!(Node as "bench red-black node" { key, value, children, red });
durum::describe!(Top as "bench red-black tree" { node });

/// From a node to its child on one side.
#[derive(Clone, Copy, Debug)]
struct Step {
    node: *mut Node,
    side: usize,
}

/// A tree in some memory.
pub struct Tree<M> {
    memory: M,
    // INVARIANT: the root object of `memory`; its pointer and those of the nodes are null or name nodes of the tree.
    top: *mut Top,
    /// Room for the way of an update.
    way: Vec<Step>,
}

impl<M: Memory> Tree<M> {
    /// An empty tree in new memory.
    pub fn new(mut memory: M) -> Result<Self> {
        let top = memory.root()?;
        let way = Vec::with_capacity(STEPS_USUAL);
        Ok(Tree { memory, top, way })
    }

    /// Runs one update.
    #[inline]
    fn update<R>(
        &mut self,
        body: impl FnOnce(&mut Change<'_, M::Update<'_>>) -> std::result::Result<R, M::Error>,
    ) -> Result<R> {
        let Tree { memory, top, way } = self;
        way.clear();
        memory.update(|update| {
            // SAFETY: the invariant of `top`.
            let node = unsafe { (**top).node };
            let mut change = Change {
                update: &mut *update,
                top: node,
                way,
            };
            let result = body(&mut change)?;
            let now = change.top;
            if now != node {
                // SAFETY: a field of the root object, which is never edited.
                unsafe { update.store(&raw mut (**top).node, now)? };
            }
            Ok(result)
        })
    }
}

// SAFETY: reading only reads, and neither the memory nor the room for a way is used meanwhile.
unsafe impl<M: Memory> Numbers for Tree<M> {
    const SORTED: bool = true;

    #[inline]
    fn put(&mut self, key: u64, value: u64) -> Result<()> {
        // SAFETY: the change is that of a tree, by the invariant of `top`.
        self.update(|change| unsafe { change.insert(key, value) })
    }

    #[inline]
    fn take(&mut self, key: u64) -> Result<bool> {
        // SAFETY: as above.
        self.update(|change| unsafe { change.delete(key) })
    }

    #[inline]
    fn value_at(&self, key: u64, distance: usize) -> u64 {
        // SAFETY: the invariant of `top`, in the copy; nobody writes meanwhile.
        let mut node: *const Node = unsafe { (*copy_of(self.top, distance)).node };
        while !node.is_null() {
            // SAFETY: a node of the tree, by the invariant, in the copy.
            let seen = unsafe { &*copy_of(node, distance) };
            if seen.key == key {
                return seen.value;
            }
            node = seen.children[usize::from(seen.key < key)];
        }
        0
    }

    fn show(&self, see: &mut dyn FnMut(u64, u64)) -> bool {
        // SAFETY: the invariant of `top`; nobody writes meanwhile.
        unsafe {
            let top = (*self.top).node;
            !is_red(top) && show_below(top, see).is_some()
        }
    }
}

/// Shows each entry. How many black nodes each way down meets, if it is the same number, and no red node has a red
/// child.
///
/// # Safety
/// `node` is null or a node of a tree that nobody writes meanwhile.
unsafe fn show_below(node: *const Node, see: &mut dyn FnMut(u64, u64)) -> Option<usize> {
    if node.is_null() {
        return Some(0);
    }
    // SAFETY: a node, by contract.
    let Node {
        key,
        value,
        children,
        red,
    } = unsafe { *node };
    // SAFETY: null or a node, as all children.
    let less = unsafe { show_below(children[LESS], see) };
    see(key, value);
    // SAFETY: as above.
    let greater = unsafe { show_below(children[GREATER], see) };
    // SAFETY: as above.
    let red_below = children.iter().any(|child| unsafe { is_red(*child) });
    match red {
        0 => less.filter(|_| less == greater).map(|black| black + 1),
        _ => less.filter(|_| less == greater && !red_below),
    }
}

/// # Safety
/// `node` is null or a node that nobody writes meanwhile.
unsafe fn is_red(node: *const Node) -> bool {
    // SAFETY: a node, by contract.
    !node.is_null() && unsafe { (*node).red } != 0
}

/// A running update: the tree as it sees it.
struct Change<'c, U> {
    update: &'c mut U,
    /// The uppermost node, or null. It is stored when the change is over.
    top: *mut Node,
    /// The way down to where the tree is changed.
    way: &'c mut Vec<Step>,
}

// The functions below share a contract: nodes that they are given, `top` and those of the way are nodes of the tree as
// the running update sees it.
impl<U: Update> Change<'_, U> {
    /// Goes down to the node with a key, or, if there is none, to where it would be: null.
    ///
    /// # Safety
    /// The shared contract.
    unsafe fn find(&mut self, key: u64) -> *mut Node {
        let mut node = self.top;
        while !node.is_null() {
            let seen = see!(self.update, node);
            if seen.key == key {
                break;
            }
            let side = usize::from(seen.key < key);
            self.way.push(Step { node, side });
            node = seen.children[side];
        }
        node
    }

    /// # Safety
    /// The shared contract; or null, which is black.
    unsafe fn is_red(&self, node: *mut Node) -> bool {
        !node.is_null() && see!(self.update, node).red != 0
    }

    /// # Safety
    /// The shared contract.
    unsafe fn paint(&mut self, node: *mut Node, red: u64) -> std::result::Result<(), U::Error> {
        let node = edit!(self.update, node);
        node.red = red;
        changed!(self.update, std::slice::from_ref(&node.red));
        Ok(())
    }

    /// # Safety
    /// The shared contract; the child may be null.
    unsafe fn set_child(
        &mut self,
        node: *mut Node,
        side: usize,
        child: *mut Node,
    ) -> std::result::Result<(), U::Error> {
        let node = edit!(self.update, node);
        node.children[side] = child;
        changed!(self.update, node.children[side..=side]);
        Ok(())
    }

    /// Puts a node where so many steps of the way lead.
    ///
    /// # Safety
    /// The shared contract; the node may be null.
    unsafe fn hang(&mut self, steps: usize, node: *mut Node) -> std::result::Result<(), U::Error> {
        let Some(last) = steps.checked_sub(1) else {
            self.top = node;
            return Ok(());
        };
        let above = self.way[last];
        // SAFETY: the shared contract.
        unsafe { self.set_child(above.node, above.side, node) }
    }

    /// Turns a node down to one side: its child on the other side gets its colour, and is to get its place. The node
    /// itself becomes red or black.
    ///
    /// # Safety
    /// The shared contract; there is such a child.
    unsafe fn rotate(
        &mut self,
        node: *mut Node,
        side: usize,
        red: u64,
    ) -> std::result::Result<*mut Node, U::Error> {
        let lower = edit!(self.update, node);
        let raised = lower.children[1 - side];
        let upper = edit!(self.update, raised);
        lower.children[1 - side] = upper.children[side];
        upper.children[side] = node;
        upper.red = lower.red;
        lower.red = red;
        changed!(self.update, lower.children[1 - side..=1 - side]);
        changed!(self.update, std::slice::from_ref(&lower.red));
        changed!(self.update, upper.children[side..=side]);
        changed!(self.update, std::slice::from_ref(&upper.red));
        Ok(raised)
    }

    /// # Safety
    /// The shared contract.
    unsafe fn insert(&mut self, key: u64, value: u64) -> std::result::Result<(), U::Error> {
        // SAFETY: the shared contract.
        let known = unsafe { self.find(key) };
        if !known.is_null() {
            let node = edit!(self.update, known);
            node.value = value;
            changed!(self.update, std::slice::from_ref(&node.value));
            return Ok(());
        }
        let node = self.update.alloc::<Node>()?;
        let steps = self.way.len();
        let fresh = Node {
            key,
            value,
            children: [null_mut(); 2],
            // Only the top must be black.
            red: u64::from(steps > 0),
        };
        // SAFETY: fresh and large enough.
        unsafe { node.write(fresh) };
        // SAFETY: the shared contract.
        unsafe { self.hang(steps, node)? };
        // SAFETY: as above.
        unsafe { self.part_reds(steps) }
    }

    /// A red node was put where so many steps lead: perhaps below a red one.
    ///
    /// # Safety
    /// The shared contract.
    unsafe fn part_reds(&mut self, mut steps: usize) -> std::result::Result<(), U::Error> {
        // A red parent is not the top, so there is one above it.
        while let [.., above, parent] = self.way[..steps] {
            // SAFETY: here and below, the shared contract.
            if !unsafe { self.is_red(parent.node) } {
                break;
            }
            let uncle = see!(self.update, above.node).children[1 - above.side];
            // SAFETY: as above; perhaps null.
            if !unsafe { self.is_red(uncle) } {
                if parent.side != above.side {
                    // To the outer side, by taking its parent's place.
                    // SAFETY: as above; the red node is that child.
                    let raised = unsafe { self.rotate(parent.node, above.side, 1)? };
                    // SAFETY: as above.
                    unsafe { self.set_child(above.node, above.side, raised)? };
                }
                // SAFETY: as above; the upper one of the red nodes is that child.
                let raised = unsafe { self.rotate(above.node, 1 - above.side, 1)? };
                // SAFETY: as above.
                return unsafe { self.hang(steps - 2, raised) };
            }
            // SAFETY: as above.
            unsafe { self.paint(parent.node, 0)? };
            // SAFETY: as above; not null, since it is red.
            unsafe { self.paint(uncle, 0)? };
            steps -= 2;
            if steps > 0 {
                // SAFETY: as above.
                unsafe { self.paint(above.node, 1)? };
            }
        }
        Ok(())
    }

    /// # Safety
    /// The shared contract.
    unsafe fn delete(&mut self, key: u64) -> std::result::Result<bool, U::Error> {
        // SAFETY: the shared contract.
        let node = unsafe { self.find(key) };
        if node.is_null() {
            return Ok(false);
        }
        let mut gone = node;
        let children = see!(self.update, node).children;
        if children.iter().all(|child| !child.is_null()) {
            // The next greater entry moves here, and its node goes: it has no lesser child.
            self.way.push(Step {
                node,
                side: GREATER,
            });
            gone = children[GREATER];
            loop {
                let less = see!(self.update, gone).children[LESS];
                if less.is_null() {
                    break;
                }
                self.way.push(Step {
                    node: gone,
                    side: LESS,
                });
                gone = less;
            }
            let Node { key, value, .. } = *see!(self.update, gone);
            let node = edit!(self.update, node);
            (node.key, node.value) = (key, value);
            changed!(self.update, std::slice::from_ref(&node.key));
            changed!(self.update, std::slice::from_ref(&node.value));
        }
        let Node { children, red, .. } = *see!(self.update, gone);
        let heir = match children[LESS].is_null() {
            true => children[GREATER],
            false => children[LESS],
        };
        // SAFETY: here and below, the shared contract.
        unsafe { self.hang(self.way.len(), heir)? };
        // SAFETY: nothing names the node any more.
        unsafe { self.update.free(gone)? };
        if red == 0 {
            match heir.is_null() {
                // SAFETY: as above.
                true => unsafe { self.add_black()? },
                // An only child is red.
                // SAFETY: as above.
                false => unsafe { self.paint(heir, 0)? },
            }
        }
        Ok(true)
    }

    /// Ways that begin as the noted one does meet one black node less than all others: gives them another one.
    ///
    /// # Safety
    /// The shared contract.
    unsafe fn add_black(&mut self) -> std::result::Result<(), U::Error> {
        while let Some(Step { node: parent, side }) = self.way.pop() {
            let other = 1 - side;
            // Not null: there are black nodes on its side.
            let mut sibling = see!(self.update, parent).children[other];
            // SAFETY: here and below, the shared contract.
            if unsafe { self.is_red(sibling) } {
                // SAFETY: as above; the sibling is that child.
                let node = unsafe { self.rotate(parent, side, 1)? };
                // SAFETY: as above.
                unsafe { self.hang(self.way.len(), node)? };
                self.way.push(Step { node, side });
                // A child of the red one.
                sibling = see!(self.update, parent).children[other];
            }
            let nephews = see!(self.update, sibling).children;
            // SAFETY: as above; perhaps null.
            let [near, far] = [side, other].map(|side| unsafe { self.is_red(nephews[side]) });
            if !near && !far {
                // SAFETY: as above.
                unsafe { self.paint(sibling, 1)? };
                // SAFETY: as above.
                if unsafe { self.is_red(parent) } {
                    // SAFETY: as above.
                    return unsafe { self.paint(parent, 0) };
                }
                // One is missing on both sides now: below the parent.
                continue;
            }
            let mut outer = nephews[other];
            if !far {
                // SAFETY: as above; the near one is that child.
                let raised = unsafe { self.rotate(sibling, other, 1)? };
                // SAFETY: as above.
                unsafe { self.set_child(parent, other, raised)? };
                outer = sibling;
            }
            // SAFETY: as above; it is red.
            unsafe { self.paint(outer, 0)? };
            // SAFETY: as above; the sibling, or what was raised to its place, is that child.
            let raised = unsafe { self.rotate(parent, side, 0)? };
            // SAFETY: as above.
            return unsafe { self.hang(self.way.len(), raised) };
        }
        Ok(())
    }
}
