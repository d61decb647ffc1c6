//! Ways through a tree: from the root to a gap in a leaf, or to an entry.
//!
//! Between any two neighbouring entries of a tree there is exactly one gap of a leaf, and one before the first entry
//! and behind the last one.

use arrayvec::ArrayVec;

use super::node::Node;
use crate::typed::collections::map::slot::{Place, copies};
use crate::typed::psafe::PSafe;

/// More levels than fit in the memory there is, even if every node has six children.
pub(super) const LEVELS_MAX: usize = 18;

/// A node on the way, and which way goes on: in inner nodes to which child, in a leaf to which gap. In the last node of
/// a way to an entry it is that entry's place in the order.
pub(super) struct Step<K, V> {
    pub(super) node: Node<K, V>,
    pub(super) at: usize,
}

/// Room for the longest one, of which only what is used is ever touched: most have a few steps.
pub(super) struct Path<K, V>(ArrayVec<Step<K, V>, LEVELS_MAX>);

copies! { Step }

impl<K, V> Clone for Path<K, V> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K: PSafe, V: PSafe> Path<K, V> {
    pub(super) fn new() -> Self {
        Self(ArrayVec::new_const())
    }

    /// To the gap before the first entry under `root`.
    pub(super) fn first(root: Option<Node<K, V>>) -> Self {
        let mut path = Self::new();
        root.into_iter().for_each(|root| path.descend(root, |_| 0));
        path
    }

    /// To the gap behind the last entry under `root`.
    pub(super) fn last(root: Option<Node<K, V>>) -> Self {
        let mut path = Self::new();
        root.into_iter()
            .for_each(|root| path.descend(root, Node::len));
        path
    }

    /// Goes down to a gap in a leaf.
    pub(super) fn descend(
        &mut self,
        mut node: Node<K, V>,
        mut choose: impl FnMut(Node<K, V>) -> usize,
    ) {
        loop {
            let at = choose(node);
            self.push(node, at);
            if node.is_leaf() {
                return;
            }
            node = node.child(at);
        }
    }

    #[inline]
    pub(super) fn push(&mut self, node: Node<K, V>, at: usize) {
        self.0.push(Step { node, at });
    }

    /// The tree has a new root, with one child so far.
    pub(super) fn push_root(&mut self, node: Node<K, V>) {
        self.0.insert(0, Step { node, at: 0 });
    }

    /// The root's only child is the root now, if there is one.
    pub(super) fn pop_root(&mut self) {
        self.0.remove(0);
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn step(&self, level: usize) -> Step<K, V> {
        self.0[level]
    }

    pub(super) fn step_mut(&mut self, level: usize) -> &mut Step<K, V> {
        &mut self.0[level]
    }

    /// The last step, of a path that has any.
    pub(super) fn end(&self) -> Step<K, V> {
        self.0[self.0.len() - 1]
    }

    pub(super) fn end_mut(&mut self) -> &mut Step<K, V> {
        let end = self.0.len() - 1;
        &mut self.0[end]
    }

    /// The entry that it leads to.
    pub(super) fn entry(&self) -> Place<K, V> {
        let Step { node, at } = self.end();
        node.entry(at)
    }

    /// From a gap to the entry behind it. If there is none it stays.
    pub(super) fn go_to_entry_behind(&mut self) -> bool {
        let level = self.0.iter().rposition(|step| step.at < step.node.len());
        if let Some(level) = level {
            self.0.truncate(level + 1);
        }
        level.is_some()
    }

    /// From a gap to the entry before it. If there is none it stays.
    pub(super) fn go_to_entry_before(&mut self) -> bool {
        let level = self.0.iter().rposition(|step| step.at > 0);
        if let Some(level) = level {
            self.0[level].at -= 1;
            self.0.truncate(level + 1);
        }
        level.is_some()
    }

    /// From an entry to the gap behind it.
    pub(super) fn step_over(&mut self) {
        let end = self.end_mut();
        end.at += 1;
        let Step { node, at } = *end;
        if !node.is_leaf() {
            self.descend(node.child(at), |_| 0);
        }
    }

    /// From an entry to the gap before it.
    pub(super) fn step_before(&mut self) {
        let Step { node, at } = self.end();
        if !node.is_leaf() {
            self.descend(node.child(at), Node::len);
        }
    }

    /// Passes the entry behind the gap, and gives it.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Place<K, V>> {
        self.go_to_entry_behind().then(|| {
            let entry = self.entry();
            self.step_over();
            entry
        })
    }

    /// Passes the entry before the gap, and gives it.
    #[inline]
    pub(super) fn next_back(&mut self) -> Option<Place<K, V>> {
        self.go_to_entry_before().then(|| {
            let entry = self.entry();
            self.step_before();
            entry
        })
    }

    /// Where the gap is among those of the tree, for comparisons.
    pub(super) fn position(&self) -> impl Iterator<Item = usize> {
        self.0.iter().map(|step| step.at)
    }
}
