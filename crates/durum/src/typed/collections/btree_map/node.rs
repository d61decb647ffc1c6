//! Nodes of B-trees, as they lie in the pool. What is here calls no code of the user.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::mem::{MaybeUninit, needs_drop, offset_of};
use std::ptr;

use durum_format::types::{Count, Field, Type};

use crate::described::{Described, Walk};
use crate::typed::collections::map::slot::{Place, Slot, copies, map_name};
use crate::typed::layout::WORD;
use crate::typed::psafe::PSafe;
use crate::typed::typed_tx::{QueuedDrop, TypedTx};

/// Slots of a node: as many as one word can order. A leaf of pairs of words then is the largest object that slabs have.
pub(super) const SLOTS: usize = 15;

#[repr(C)]
struct Leaf<K, V> {
    order: Order,
    slots: [MaybeUninit<Slot<K, V>>; SLOTS],
}

#[repr(C)]
struct Inner<K, V> {
    leaf: Leaf<K, V>,
    /// The first child, and for each slot the child behind the entry there. Zero where there is none.
    children: [u64; 1 + SLOTS],
}

/// The number of entries in the lowest four bits, then their slots in the order of the keys, then the vacant slots.
#[derive(Clone, Copy)]
struct Order(u64);

impl Order {
    const NONE: Self = Self(0xedcb_a987_6543_2100);

    fn len(self) -> usize {
        (self.0 & 15) as usize
    }

    fn slot(self, at: usize) -> usize {
        (self.0 >> (4 + 4 * at) & 15) as usize
    }

    fn with_len(self, len: usize) -> Self {
        Self(self.0 & !15 | len as u64)
    }

    /// Moves what stands at one place of the order to another one.
    #[inline]
    fn moved(self, from: usize, to: usize) -> Self {
        let before = |at: usize| (1u64 << (4 + 4 * at)) - 1;
        let slot = self.slot(from) as u64;
        let others = self.0 & before(from) | self.0 >> 4 & !before(from);
        Self(others & before(to) | slot << (4 + 4 * to) | (others & !before(to)) << 4)
    }

    /// The first vacant slot becomes that of the entry at `at`.
    #[inline]
    fn inserted(self, at: usize) -> Self {
        let len = self.len();
        self.moved(len, at).with_len(len + 1)
    }

    /// The slot of the entry at `at` becomes the first vacant one.
    fn removed(self, at: usize) -> Self {
        let len = self.len() - 1;
        self.moved(at, len).with_len(len)
    }
}

/// A node in the pool.
pub(super) struct Node<K, V> {
    address: usize,
    /// Levels from here down: 1 for a leaf.
    height: usize,
    _entries: PhantomData<(*mut K, *mut V)>,
}

copies! { Node }

impl<K: PSafe, V: PSafe> Node<K, V> {
    /// Bytes of an entry, with its padding.
    pub(super) const SLOT_BYTES: usize = size_of::<Slot<K, V>>();

    pub(super) fn at(address: usize, height: usize) -> Self {
        Self {
            address,
            height,
            _entries: PhantomData,
        }
    }

    /// Allocates a node without entries.
    pub(super) fn allocate(height: usize, tx: &TypedTx) -> Self {
        let leaf = size_of::<Leaf<K, V>>();
        let children = match height {
            1 => 0,
            _ => size_of::<[u64; 1 + SLOTS]>(),
        };
        let address = tx.allocate::<NodeType<K, V>>(leaf + children, align_of::<Leaf<K, V>>());
        let made = Self::at(address, height);
        let bytes = ptr::with_exposed_provenance_mut::<u8>(address);
        let zero_from = match Place::<K, V>::HAS_POINTERS {
            true => 0,
            false => leaf,
        };
        // SAFETY: just allocated, with as many bytes.
        unsafe {
            bytes
                .add(zero_from)
                .write_bytes(0, leaf + children - zero_from)
        };
        made.set_order(Order::NONE);
        made
    }

    pub(super) fn address(self) -> usize {
        self.address
    }

    pub(super) fn height(self) -> usize {
        self.height
    }

    pub(super) fn is_leaf(self) -> bool {
        self.height == 1
    }

    /// Its bytes.
    pub(super) fn bytes(self) -> usize {
        match self.is_leaf() {
            true => size_of::<Leaf<K, V>>(),
            false => size_of::<Inner<K, V>>(),
        }
    }

    /// Whether its order names slots that there are, each once.
    pub(super) fn has_order(self) -> bool {
        let order = self.order();
        let mut slots = (0..order.len()).map(|at| order.slot(at));
        let mut seen = 0u64;
        slots.all(|slot| {
            let is_new = slot < SLOTS && seen & 1 << slot == 0;
            seen |= 1 << slot;
            is_new
        })
    }

    /// Where its slots begin.
    pub(super) fn slots_address(self) -> usize {
        self.address + offset_of!(Leaf<K, V>, slots)
    }

    /// Where the slot of the entry at `at` begins.
    pub(super) fn slot_address(self, at: usize) -> usize {
        self.slots_address() + self.order().slot(at) * Self::SLOT_BYTES
    }

    fn order(self) -> Order {
        // SAFETY: a node that the map owns.
        unsafe { ptr::with_exposed_provenance::<Order>(self.address).read() }
    }

    /// Replaces the order, which is announced or fresh.
    fn set_order(self, order: Order) {
        // SAFETY: a node that the map owns; whoever changes the map has it to himself.
        unsafe { ptr::with_exposed_provenance_mut::<Order>(self.address).write(order) };
    }

    pub(super) fn len(self) -> usize {
        self.order().len()
    }

    pub(super) fn is_full(self) -> bool {
        self.len() == SLOTS
    }

    fn place(self, slot: usize) -> Place<K, V> {
        Place::of_slot(self.slots_address(), slot)
    }

    /// The entry at `at` in the order of the keys.
    #[inline]
    pub(super) fn entry(self, at: usize) -> Place<K, V> {
        self.place(self.order().slot(at))
    }

    /// Address of the pointer to the child before the entry at `at`.
    fn child_address(self, at: usize) -> usize {
        let index = match at {
            0 => 0,
            _ => 1 + self.order().slot(at - 1),
        };
        self.address + offset_of!(Inner<K, V>, children) + index * size_of::<u64>()
    }

    /// The child before the entry at `at`, or behind the last one.
    #[inline]
    pub(super) fn child(self, at: usize) -> Self {
        // SAFETY: an inner node, which has one child more than entries.
        let child = unsafe { ptr::with_exposed_provenance::<usize>(self.child_address(at)).read() };
        Self::at(child, self.height - 1)
    }

    /// Replaces a pointer to a child, which is announced or fresh.
    pub(super) fn set_child(self, at: usize, child: usize) {
        // SAFETY: an inner node that the map owns; whoever changes the map has it to himself.
        unsafe { ptr::with_exposed_provenance_mut::<usize>(self.child_address(at)).write(child) };
    }

    pub(super) fn announce_child(self, at: usize, tx: &TypedTx) {
        tx.announce(self.child_address(at), size_of::<u64>());
    }

    /// Prepares the node for `count` more entries, with the children behind them.
    #[inline]
    pub(super) fn announce_room(self, count: usize, tx: &TypedTx) {
        let (order, len) = (self.order(), self.len());
        self.announce_order(tx);
        for at in len..len + count {
            self.place(order.slot(at)).announce(tx);
            if !self.is_leaf() {
                self.announce_child(at + 1, tx);
            }
        }
    }

    /// Prepares the node for giving up the entry at `at`, with the child behind it.
    pub(super) fn announce_removal(self, at: usize, tx: &TypedTx) {
        self.announce_order(tx);
        if Place::<K, V>::HAS_POINTERS {
            self.entry(at).announce(tx);
        }
        if !self.is_leaf() {
            self.announce_child(at + 1, tx);
        }
    }

    #[inline]
    fn announce_order(self, tx: &TypedTx) {
        tx.announce(self.address, size_of::<Order>());
    }

    /// Makes a slot, which is announced, that of the entry at `at`. Entry and child behind it are still to be stored.
    pub(super) fn insert_slot(self, at: usize) -> Place<K, V> {
        self.set_order(self.order().inserted(at));
        self.entry(at)
    }

    /// Gives up the slot of the entry at `at`, which was taken or moved, and the child behind it.
    pub(super) fn remove_slot(self, at: usize) {
        self.entry(at).wipe();
        if !self.is_leaf() {
            self.set_child(at + 1, 0);
        }
        self.set_order(self.order().removed(at));
    }

    /// Moves the entry at `at`, with the child behind it, to another node, where it is announced, before the entry at
    /// `target_at`.
    pub(super) fn move_entry(self, at: usize, target: Self, target_at: usize, tx: &TypedTx) {
        let place = target.insert_slot(target_at);
        self.entry(at).move_to(place, tx);
        if !self.is_leaf() {
            target.set_child(target_at + 1, self.child(at + 1).address);
        }
    }
}

/// Drops the entries of a node whose map is gone, and frees it; its children are put off.
pub(super) unsafe fn drop_node<K: PSafe, V: PSafe>(tx: &TypedTx, address: usize, height: usize) {
    let node = Node::<K, V>::at(address, height);
    if needs_drop::<K>() || needs_drop::<V>() {
        for at in 0..node.len() {
            // SAFETY: the map owned the entry, and is gone.
            unsafe { node.entry(at).drop_entry(tx) };
        }
    }
    if !node.is_leaf() {
        for at in 0..=node.len() {
            tx.queue_drop(QueuedDrop {
                address: node.child(at).address,
                extent: height - 1,
                drop: drop_node::<K, V>,
            });
        }
    }
    tx.free(address);
}

/// The type of an allocation with a node in it. Behind a leaf nothing follows, behind an inner node its children.
pub(super) struct NodeType<K, V>(PhantomData<(K, V)>);

// SAFETY: the compiler measures size and offsets. A slot without an entry is zero where entries have pointers, and so
// are children that are not there.
unsafe impl<K: PSafe, V: PSafe> Described for NodeType<K, V> {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Owned(map_name::<K, V>("PBTreeMap") + ".node"))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        let slots = offset_of!(Leaf<K, V>, slots);
        let mut fields = vec![Field::new("order", 0, WORD)];
        fields.extend(Slot::<K, V>::row("PBTreeMap", SLOTS, slots, walk));
        let children = walk.pointer_to::<Self>().array(Count::Tail);
        let children_at = offset_of!(Inner<K, V>, children) as u64;
        fields.push(Field::new("children", children_at, children));
        let (size, align) = (size_of::<Leaf<K, V>>(), align_of::<Leaf<K, V>>());
        let name = map_name::<K, V>("PBTreeMap") + ".node";
        Type::structure(name, size as u64, align as u64, fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(order: Order) -> Vec<usize> {
        (0..order.len()).map(|at| order.slot(at)).collect()
    }

    #[test]
    fn an_order_is_always_one_of_all_slots() {
        let (mut order, mut model) = (Order::NONE, Vec::new());
        let mut state = 1u64;
        for _ in 0..10_000 {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            let random = (state >> 33) as usize;
            if random.is_multiple_of(2) && model.len() < SLOTS {
                let at = random / 2 % (model.len() + 1);
                let slot = order.slot(order.len());
                order = order.inserted(at);
                model.insert(at, slot);
            } else if !model.is_empty() {
                let at = random / 2 % model.len();
                order = order.removed(at);
                model.remove(at);
            }
            assert_eq!(slots(order), model);
            let mut all: Vec<usize> = (0..SLOTS).map(|at| order.slot(at)).collect();
            all.sort_unstable();
            assert_eq!(all, (0..SLOTS).collect::<Vec<_>>());
        }
    }
}
