//! A B-tree of order 8: at most 8 children and 7 keys in a node, at least 3 keys except in the root.
//!
//! One pass from the root: a full node is split before an insertion enters it, and a node with 3 keys gets a fourth
//! before a deletion enters it, so nothing is ever repaired upwards. The peers' `tree.c` is the same algorithm; a
//! change belongs in both.

use std::ptr::null_mut;

use super::numbers::Numbers;
use super::{Memory, Update, copy_of};
use crate::error::Result;

const KEYS_MAX: usize = 7;
const KEYS_MIN: usize = 3;

/// One node.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Node {
    count: u64,
    keys: [u64; KEYS_MAX],
    values: [u64; KEYS_MAX],
    /// All null in a leaf.
    children: [*mut Node; KEYS_MAX + 1],
}

/// The root object.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Top {
    node: *mut Node,
}

durum::describe!(Node as "bench tree node" { count, keys, values, children });
durum::describe!(Top as "bench tree" { node });

impl Node {
    fn count(&self) -> usize {
        self.count as usize
    }

    fn is_leaf(&self) -> bool {
        self.children[0].is_null()
    }

    /// The first place whose key is not below `key`.
    #[inline]
    fn place_of(&self, key: u64) -> usize {
        let mut place = 0;
        while place < self.count() && self.keys[place] < key {
            place += 1;
        }
        place
    }

    fn has_key(&self, place: usize, key: u64) -> bool {
        place < self.count() && self.keys[place] == key
    }

    /// Opens a gap for one entry at `place`; the children stay where they are.
    fn open_gap(&mut self, place: usize) {
        let count = self.count();
        self.keys.copy_within(place..count, place + 1);
        self.values.copy_within(place..count, place + 1);
        self.count += 1;
    }

    fn close_gap(&mut self, place: usize) {
        let count = self.count();
        self.keys.copy_within(place + 1..count, place);
        self.values.copy_within(place + 1..count, place);
        self.count -= 1;
    }

    fn put(&mut self, place: usize, (key, value): (u64, u64)) {
        self.keys[place] = key;
        self.values[place] = value;
    }

    fn entry(&self, place: usize) -> (u64, u64) {
        (self.keys[place], self.values[place])
    }
}

/// A tree in some memory.
pub struct Tree<M> {
    memory: M,
    // INVARIANT: the root object of `memory`; its pointer and those of the nodes are null or name nodes of the tree.
    top: *mut Top,
}

impl<M: Memory> Tree<M> {
    /// An empty tree in new memory.
    pub fn new(mut memory: M) -> Result<Self> {
        let top = memory.root()?;
        Ok(Tree { memory, top })
    }
}

// SAFETY: reading only reads, and the memory is not used meanwhile.
unsafe impl<M: Memory> Numbers for Tree<M> {
    const SORTED: bool = true;

    #[inline]
    fn put(&mut self, key: u64, value: u64) -> Result<()> {
        let top = self.top;
        // SAFETY: the invariant of `top`.
        self.memory
            .update(|update| unsafe { insert(update, top, key, value) })
    }

    #[inline]
    fn take(&mut self, key: u64) -> Result<bool> {
        let top = self.top;
        // SAFETY: the invariant of `top`.
        self.memory
            .update(|update| unsafe { delete(update, top, key) })
    }

    #[inline]
    fn value_at(&self, key: u64, distance: usize) -> u64 {
        // SAFETY: the invariant of `top`, in the copy; nobody writes meanwhile.
        let mut node: *const Node = unsafe { (*copy_of(self.top, distance)).node };
        while !node.is_null() {
            // SAFETY: a node of the tree, by the invariant, in the copy.
            let seen = unsafe { &*copy_of(node, distance) };
            let place = seen.place_of(key);
            if seen.has_key(place, key) {
                return seen.values[place];
            }
            node = seen.children[place];
        }
        0
    }

    fn sum_from(&self, key: u64, length: u64) -> Option<u64> {
        let (mut left, mut sum) = (length, 0);
        // SAFETY: the invariant of `top`; nobody writes meanwhile.
        unsafe { scan_below((*self.top).node, key, &mut left, &mut sum) };
        Some(sum)
    }

    fn show(&self, see: &mut dyn FnMut(u64, u64)) -> bool {
        // SAFETY: the invariant of `top`; nobody writes meanwhile.
        unsafe { show_below((*self.top).node, see) };
        true
    }
}

/// # Safety
/// `node` is null or a node of a tree that nobody writes meanwhile.
unsafe fn show_below(node: *const Node, see: &mut dyn FnMut(u64, u64)) {
    if node.is_null() {
        return;
    }
    // SAFETY: a node, by contract.
    let node = unsafe { &*node };
    for place in 0..=node.count() {
        // SAFETY: null or a node, as all children.
        unsafe { show_below(node.children[place], see) };
        if place < node.count() {
            see(node.keys[place], node.values[place]);
        }
    }
}

/// Adds up the values of the next `left` entries whose keys are not below `key`.
///
/// # Safety
/// As for [`show_below`].
unsafe fn scan_below(node: *const Node, key: u64, left: &mut u64, sum: &mut u64) {
    if node.is_null() {
        return;
    }
    // SAFETY: a node, by contract.
    let node = unsafe { &*node };
    for place in node.place_of(key)..=node.count() {
        // SAFETY: null or a node, as all children.
        unsafe { scan_below(node.children[place], key, left, sum) };
        if place == node.count() || *left == 0 {
            return;
        }
        *sum = sum.wrapping_add(node.values[place]);
        *left -= 1;
    }
}

// The functions below share a contract: the pointers they are given name nodes of the tree (or its root object) as
// the running update sees it.

/// Tells the update that the entries from `place` on moved, and with them the count.
fn entries_changed<U: Update>(update: &mut U, node: &Node, places: std::ops::Range<usize>) {
    changed!(update, std::slice::from_ref(&node.count));
    changed!(update, node.keys[places.clone()]);
    changed!(update, node.values[places]);
}

/// # Safety
/// The shared contract.
unsafe fn new_node<U: Update>(update: &mut U) -> std::result::Result<*mut Node, U::Error> {
    let node = update.alloc::<Node>()?;
    // SAFETY: fresh and large enough.
    unsafe { (&raw mut (*node).count).write(0) };
    // SAFETY: fresh and large enough.
    unsafe { (&raw mut (*node).children).write([null_mut(); KEYS_MAX + 1]) };
    Ok(node)
}

/// Splits the full child at `place` of `parent`; its middle entry moves up to that place.
///
/// # Safety
/// The shared contract; `parent` is not full.
unsafe fn split_child<U: Update>(
    update: &mut U,
    parent: *mut Node,
    place: usize,
) -> std::result::Result<(), U::Error> {
    let left_at = see!(update, parent).children[place];
    // SAFETY: the shared contract.
    let right_at = unsafe { new_node(update)? };
    let left = edit!(update, left_at);
    // SAFETY: fresh; its keys and values are written below before anybody reads them.
    let right = unsafe { &mut *right_at };
    let moved = KEYS_MAX - KEYS_MIN - 1;
    right.keys[..moved].copy_from_slice(&left.keys[KEYS_MIN + 1..]);
    right.values[..moved].copy_from_slice(&left.values[KEYS_MIN + 1..]);
    if !left.is_leaf() {
        right.children[..=moved].copy_from_slice(&left.children[KEYS_MIN + 1..]);
    }
    right.count = moved as u64;
    left.count = KEYS_MIN as u64;
    changed!(update, std::slice::from_ref(&left.count));
    let middle = left.entry(KEYS_MIN);

    let up = edit!(update, parent);
    let children = up.count() + 1;
    up.open_gap(place);
    up.children.copy_within(place + 1..children, place + 2);
    up.put(place, middle);
    up.children[place + 1] = right_at;
    entries_changed(update, up, place..up.count());
    changed!(update, up.children[place + 1..=children]);
    Ok(())
}

/// # Safety
/// The shared contract.
unsafe fn insert<U: Update>(
    update: &mut U,
    top: *mut Top,
    key: u64,
    value: u64,
) -> std::result::Result<(), U::Error> {
    // SAFETY: the root object.
    let mut node = unsafe { (*top).node };
    if node.is_null() {
        // SAFETY: the shared contract.
        node = unsafe { new_node(update)? };
        // SAFETY: fresh.
        let fresh = unsafe { &mut *node };
        fresh.count = 1;
        fresh.put(0, (key, value));
        // SAFETY: a field of the root object, which is never edited.
        return unsafe { update.store(&raw mut (*top).node, node) };
    }
    if see!(update, node).count() == KEYS_MAX {
        // SAFETY: the shared contract.
        let above = unsafe { new_node(update)? };
        // SAFETY: fresh.
        unsafe { (*above).children[0] = node };
        // SAFETY: the shared contract; `above` is empty.
        unsafe { split_child(update, above, 0)? };
        // SAFETY: a field of the root object, which is never edited.
        unsafe { update.store(&raw mut (*top).node, above)? };
        node = above;
    }
    loop {
        let seen = see!(update, node);
        let place = seen.place_of(key);
        if seen.has_key(place, key) {
            let node = edit!(update, node);
            node.values[place] = value;
            changed!(update, node.values[place..=place]);
            return Ok(());
        }
        if seen.is_leaf() {
            let leaf = edit!(update, node);
            leaf.open_gap(place);
            leaf.put(place, (key, value));
            entries_changed(update, leaf, place..leaf.count());
            return Ok(());
        }
        let child = seen.children[place];
        if see!(update, child).count() == KEYS_MAX {
            // The entry that comes up decides between the halves.
            // SAFETY: the shared contract; `node` is not full, or it had been split.
            unsafe { split_child(update, node, place)? };
        } else {
            node = child;
        }
    }
}

/// Joins the children at `place` and `place + 1` of `parent` around the entry between them.
///
/// # Safety
/// The shared contract; both children have the fewest keys.
unsafe fn merge_children<U: Update>(
    update: &mut U,
    parent: *mut Node,
    place: usize,
) -> std::result::Result<*mut Node, U::Error> {
    let seen = see!(update, parent);
    let (left_at, right_at) = (seen.children[place], seen.children[place + 1]);
    let middle = seen.entry(place);
    let right = see!(update, right_at);
    let left = edit!(update, left_at);
    let (begin, count) = (left.count(), right.count());
    let end = begin + 1 + count;
    left.put(begin, middle);
    left.keys[begin + 1..end].copy_from_slice(&right.keys[..count]);
    left.values[begin + 1..end].copy_from_slice(&right.values[..count]);
    if !right.is_leaf() {
        left.children[begin + 1..=end].copy_from_slice(&right.children[..=count]);
        changed!(update, left.children[begin + 1..=end]);
    }
    left.count = end as u64;
    entries_changed(update, left, begin..end);

    let up = edit!(update, parent);
    let children = up.count() + 1;
    up.close_gap(place);
    up.children.copy_within(place + 2..children, place + 1);
    entries_changed(update, up, place..up.count());
    changed!(update, up.children[place + 1..children - 1]);
    // SAFETY: nothing names the right node any more.
    unsafe { update.free(right_at)? };
    Ok(left_at)
}

/// An entry moves from the left neighbour through the parent into the child at `place`.
///
/// # Safety
/// The shared contract; the neighbour has an entry to spare.
unsafe fn borrow_from_left<U: Update>(
    update: &mut U,
    parent: *mut Node,
    place: usize,
) -> std::result::Result<(), U::Error> {
    let seen = see!(update, parent);
    let (left_at, child_at) = (seen.children[place - 1], seen.children[place]);
    let middle = seen.entry(place - 1);
    let left = edit!(update, left_at);
    let last = left.count() - 1;
    let (spare, spare_child) = (left.entry(last), left.children[last + 1]);
    left.count -= 1;
    changed!(update, std::slice::from_ref(&left.count));

    let child = edit!(update, child_at);
    let children = child.count() + 1;
    child.open_gap(0);
    child.put(0, middle);
    entries_changed(update, child, 0..children);
    if !child.is_leaf() {
        child.children.copy_within(..children, 1);
        child.children[0] = spare_child;
        changed!(update, child.children[..=children]);
    }

    let up = edit!(update, parent);
    up.put(place - 1, spare);
    changed!(update, up.keys[place - 1..place]);
    changed!(update, up.values[place - 1..place]);
    Ok(())
}

/// # Safety
/// As for [`borrow_from_left`].
unsafe fn borrow_from_right<U: Update>(
    update: &mut U,
    parent: *mut Node,
    place: usize,
) -> std::result::Result<(), U::Error> {
    let seen = see!(update, parent);
    let (child_at, right_at) = (seen.children[place], seen.children[place + 1]);
    let middle = seen.entry(place);
    let right = edit!(update, right_at);
    let (spare, spare_child) = (right.entry(0), right.children[0]);
    let children = right.count() + 1;
    if !right.is_leaf() {
        right.children.copy_within(1..children, 0);
        changed!(update, right.children[..children - 1]);
    }
    right.close_gap(0);
    entries_changed(update, right, 0..right.count());

    let child = edit!(update, child_at);
    let end = child.count();
    child.put(end, middle);
    child.count += 1;
    entries_changed(update, child, end..end + 1);
    if !child.is_leaf() {
        child.children[end + 1] = spare_child;
        changed!(update, child.children[end + 1..=end + 1]);
    }

    let up = edit!(update, parent);
    up.put(place, spare);
    changed!(update, up.keys[place..=place]);
    changed!(update, up.values[place..=place]);
    Ok(())
}

/// The node into which a deletion may descend at `place`: it has more than the fewest keys.
///
/// # Safety
/// The shared contract.
unsafe fn fill_child<U: Update>(
    update: &mut U,
    node: *mut Node,
    place: usize,
) -> std::result::Result<*mut Node, U::Error> {
    let seen = see!(update, node);
    let count = seen.count();
    let child = seen.children[place];
    if see!(update, child).count() > KEYS_MIN {
        return Ok(child);
    }
    if place > 0 && see!(update, seen.children[place - 1]).count() > KEYS_MIN {
        // SAFETY: the shared contract; the neighbour has an entry to spare.
        unsafe { borrow_from_left(update, node, place)? };
        return Ok(child);
    }
    if place < count && see!(update, seen.children[place + 1]).count() > KEYS_MIN {
        // SAFETY: the shared contract; the neighbour has an entry to spare.
        unsafe { borrow_from_right(update, node, place)? };
        return Ok(child);
    }
    // SAFETY: the shared contract; neither child has an entry to spare.
    unsafe { merge_children(update, node, if place < count { place } else { place - 1 }) }
}

/// The last entry below `node`, or the first.
///
/// # Safety
/// The shared contract.
unsafe fn outermost<U: Update>(update: &U, node: *mut Node, last: bool) -> (u64, u64) {
    let mut seen = see!(update, node);
    while !seen.is_leaf() {
        let place = if last { seen.count() } else { 0 };
        seen = see!(update, seen.children[place]);
    }
    seen.entry(if last { seen.count() - 1 } else { 0 })
}

/// # Safety
/// The shared contract.
unsafe fn delete<U: Update>(
    update: &mut U,
    top: *mut Top,
    mut key: u64,
) -> std::result::Result<bool, U::Error> {
    // SAFETY: the root object.
    let mut node = unsafe { (*top).node };
    if node.is_null() {
        return Ok(false);
    }
    let mut found = false;
    loop {
        let seen = see!(update, node);
        let place = seen.place_of(key);
        let here = seen.has_key(place, key);
        if seen.is_leaf() {
            if here && seen.count() == 1 {
                // Only a leaf at the top can run empty.
                // SAFETY: a field of the root object, which is never edited.
                unsafe { update.store(&raw mut (*top).node, null_mut())? };
                // SAFETY: nothing names the node any more.
                unsafe { update.free(node)? };
            } else if here {
                let leaf = edit!(update, node);
                leaf.close_gap(place);
                entries_changed(update, leaf, place..leaf.count());
            }
            return Ok(found || here);
        }
        let child;
        if !here {
            // SAFETY: the shared contract.
            child = unsafe { fill_child(update, node, place)? };
        } else {
            let (left, right) = (seen.children[place], seen.children[place + 1]);
            let from_left = see!(update, left).count() > KEYS_MIN;
            if from_left || see!(update, right).count() > KEYS_MIN {
                // The nearest key takes this one's place, and is what remains to be deleted below.
                child = if from_left { left } else { right };
                // SAFETY: the shared contract.
                let entry = unsafe { outermost(update, child, from_left) };
                let node = edit!(update, node);
                node.put(place, entry);
                changed!(update, node.keys[place..=place]);
                changed!(update, node.values[place..=place]);
                key = entry.0;
                found = true;
            } else {
                // SAFETY: the shared contract; neither child has an entry to spare.
                child = unsafe { merge_children(update, node, place)? };
            }
        }
        if see!(update, node).count() == 0 {
            // The top gave its last key away: the tree is one level lower.
            // SAFETY: a field of the root object, which is never edited.
            unsafe { update.store(&raw mut (*top).node, child)? };
            // SAFETY: nothing names the node any more.
            unsafe { update.free(node)? };
        }
        node = child;
    }
}
