//! Insertion and removal, with the splits and merges that follow.
//!
//! Each step first does what can fail, allocating and announcing, and then changes the tree into another one.

use super::PBTreeMap;
use super::node::{Node, SLOTS};
use super::path::{LEVELS_MAX, Path, Step};
use crate::typed::collections::map::slot::Place;
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::PSafe;
use crate::typed::typed_tx::TypedTx;

/// A node with fewer entries takes one from its neighbour, or is merged with it.
const ENTRIES_MIN: usize = 5;
/// Two nodes are merged if that leaves room for a few insertions.
const MERGED_MAX: usize = 12;

impl<K: PSafe, V: PSafe, P: PoolType> PBTreeMap<K, V, P> {
    /// Puts an entry into a gap.
    pub(super) fn put(
        &mut self,
        gap: &mut Path<K, V>,
        key: K,
        value: V,
        tx: &TypedTx,
    ) -> Place<K, V> {
        if self.root == 0 {
            let leaf = Node::allocate(1, tx);
            (self.root, self.height) = (leaf.address(), 1);
            // One owner more in the hands of whoever has the map.
            tx.gain(1);
            gap.push(leaf, 0);
        }
        if gap.end().node.is_full() {
            self.make_room(gap, tx);
        }
        let Step { node, at } = gap.end();
        node.announce_room(1, tx);
        let place = node.insert_slot(at);
        place.put(key, value, tx);
        self.len += 1;
        place
    }

    /// Splits the leaf that a gap is in, and before that the nodes above which have no room for one more entry.
    #[cold]
    fn make_room(&mut self, gap: &mut Path<K, V>, tx: &TypedTx) {
        let has_room = |level: &usize| !gap.step(*level).node.is_full();
        let above = match (0..gap.len()).rev().find(has_room) {
            Some(level) => level,
            None => {
                self.add_root(gap, tx);
                0
            }
        };
        for level in above + 1..gap.len() {
            split(gap, level, tx);
        }
    }

    /// Puts a node above the root, which becomes its only child.
    fn add_root(&mut self, gap: &mut Path<K, V>, tx: &TypedTx) {
        assert!(
            self.height < LEVELS_MAX,
            "a tree of so many levels has no room in memory"
        );
        let root = Node::allocate(self.height + 1, tx);
        root.set_child(0, self.root);
        (self.root, self.height) = (root.address(), root.height());
        gap.push_root(root);
    }

    /// Takes the entry out to which a path leads. Then it leads to the gap where the entry was.
    pub(super) fn take(&mut self, path: &mut Path<K, V>, tx: &TypedTx) -> (K, V) {
        let Step { node, at } = path.end();
        if node.is_leaf() {
            node.announce_removal(at, tx);
            // Nothing fails from here on.
            let entry = node.entry(at).take(tx);
            node.remove_slot(at);
            self.len -= 1;
            self.fill(path, tx);
            return entry;
        }
        let place = node.entry(at);
        path.step_before();
        let Step { node: leaf, at } = path.end();
        if at == 0 {
            // Empty: filling it up has failed before.
            self.fill(path, tx);
            path.go_to_entry_behind();
            return self.take(path, tx);
        }
        place.announce(tx);
        leaf.announce_removal(at - 1, tx);
        // Nothing fails from here on. The entry before takes the place, because the children stay as they are then.
        let entry = place.take(tx);
        leaf.entry(at - 1).move_to(place, tx);
        leaf.remove_slot(at - 1);
        path.end_mut().at -= 1;
        self.len -= 1;
        self.fill(path, tx);
        path.go_to_entry_behind();
        path.step_over();
        entry
    }

    /// Fills the nodes of a path up that have too few entries, from the leaf on. The path still leads to the same gap.
    fn fill(&mut self, path: &mut Path<K, V>, tx: &TypedTx) {
        for level in (1..path.len()).rev() {
            if path.step(level).node.len() >= ENTRIES_MIN {
                return;
            }
            fill_up(path, level, tx);
        }
        let root = path.step(0).node;
        if root.len() == 0 {
            (self.root, self.height) = match root.is_leaf() {
                true => {
                    tx.gain(-1);
                    (0, 0)
                }
                false => (root.child(0).address(), self.height - 1),
            };
            path.pop_root();
            tx.free(root.address());
        }
    }
}

/// Splits the node at a level of a path. The one above has room. The path still leads to the same gap.
fn split<K: PSafe, V: PSafe>(path: &mut Path<K, V>, level: usize, tx: &TypedTx) {
    let (above, Step { node, at }) = (path.step(level - 1), path.step(level));
    // Whoever inserts in order fills nodes and leaves them.
    let middle = match at {
        SLOTS => MERGED_MAX,
        _ => SLOTS / 2,
    };
    let right = Node::allocate(node.height(), tx);
    above.node.announce_room(1, tx);
    (middle..SLOTS).for_each(|at| node.announce_removal(at, tx));
    // Nothing fails from here on.
    if !node.is_leaf() {
        right.set_child(0, node.child(middle + 1).address());
    }
    for at in middle + 1..SLOTS {
        node.move_entry(at, right, at - middle - 1, tx);
    }
    let separator = above.node.insert_slot(above.at);
    node.entry(middle).move_to(separator, tx);
    above.node.set_child(above.at + 1, right.address());
    (middle..SLOTS).rev().for_each(|at| node.remove_slot(at));
    if at > middle {
        path.step_mut(level - 1).at += 1;
        *path.step_mut(level) = Step {
            node: right,
            at: at - middle - 1,
        };
    }
}

/// Merges the node at a level of a path with a neighbour, or takes an entry from it. The path still leads to the same
/// gap.
fn fill_up<K: PSafe, V: PSafe>(path: &mut Path<K, V>, level: usize, tx: &TypedTx) {
    let (above, Step { node, .. }) = (path.step(level - 1), path.step(level));
    if above.at > 0 {
        let left = above.node.child(above.at - 1);
        let left_len = left.len();
        if left_len + 1 + node.len() <= MERGED_MAX {
            merge(left, above.node, above.at - 1, node, tx);
            path.step_mut(level - 1).at -= 1;
            let step = path.step_mut(level);
            (step.node, step.at) = (left, left_len + 1 + step.at);
        } else {
            take_from_left(left, above.node, above.at - 1, node, tx);
            path.step_mut(level).at += 1;
        }
    } else if above.node.len() > 0 {
        let right = above.node.child(1);
        if node.len() + 1 + right.len() <= MERGED_MAX {
            merge(node, above.node, 0, right, tx);
        } else {
            take_from_right(node, above.node, 0, right, tx);
        }
    }
    // Else it has no neighbour, after a merge that failed: small nodes do no harm.
}

/// Moves the entry of `above` between two nodes, and those of the right one, to the left one.
fn merge<K: PSafe, V: PSafe>(
    left: Node<K, V>,
    above: Node<K, V>,
    between: usize,
    right: Node<K, V>,
    tx: &TypedTx,
) {
    left.announce_room(1 + right.len(), tx);
    above.announce_removal(between, tx);
    // Nothing fails from here on.
    let place = left.insert_slot(left.len());
    above.entry(between).move_to(place, tx);
    if !left.is_leaf() {
        left.set_child(left.len(), right.child(0).address());
    }
    for at in 0..right.len() {
        right.move_entry(at, left, left.len(), tx);
    }
    above.remove_slot(between);
    tx.free(right.address());
}

/// Moves the last entry of the left node up, and the one that was there down to the right node.
fn take_from_left<K: PSafe, V: PSafe>(
    left: Node<K, V>,
    above: Node<K, V>,
    between: usize,
    right: Node<K, V>,
    tx: &TypedTx,
) {
    let (last, between) = (left.len() - 1, above.entry(between));
    left.announce_removal(last, tx);
    between.announce(tx);
    right.announce_room(1, tx);
    if !right.is_leaf() {
        right.announce_child(0, tx);
    }
    // Nothing fails from here on.
    between.move_to(right.insert_slot(0), tx);
    if !right.is_leaf() {
        right.set_child(1, right.child(0).address());
        right.set_child(0, left.child(last + 1).address());
    }
    left.entry(last).move_to(between, tx);
    left.remove_slot(last);
}

/// Moves the first entry of the right node up, and the one that was there down to the left node.
fn take_from_right<K: PSafe, V: PSafe>(
    left: Node<K, V>,
    above: Node<K, V>,
    between: usize,
    right: Node<K, V>,
    tx: &TypedTx,
) {
    let between = above.entry(between);
    right.announce_removal(0, tx);
    between.announce(tx);
    left.announce_room(1, tx);
    if !right.is_leaf() {
        right.announce_child(0, tx);
    }
    // Nothing fails from here on.
    between.move_to(left.insert_slot(left.len()), tx);
    if !right.is_leaf() {
        left.set_child(left.len(), right.child(0).address());
        right.set_child(0, right.child(1).address());
    }
    right.entry(0).move_to(between, tx);
    right.remove_slot(0);
}
