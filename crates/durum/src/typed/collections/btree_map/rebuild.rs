//! A tree that is built anew: its nodes stay what they are, and the entries are put into their places in the order of
//! the keys.

use std::cmp::Ordering;
use std::ptr;

use durum_service::{NewPuddles, Result, Room};

use super::PBTreeMap;
use super::node::{Node, SLOTS};
use super::path::LEVELS_MAX;
use crate::typed::collections::map::rebuild::{
    DAMAGED, Keys, MapType, NO_KEY, Outcome, Rebuild, asked, doubled,
};
use crate::typed::collections::map::slot::map_name;
use crate::typed::pool_type::PoolType;
use crate::typed::psafe::PSafe;

impl<K: PSafe, V: PSafe, P: PoolType> MapType for PBTreeMap<K, V, P> {
    fn parts() -> [String; 2] {
        [".node", ".slot"].map(|part| map_name::<K, V>("PBTreeMap") + part)
    }
}

impl<K: PSafe + Ord, V: PSafe, P: PoolType> Rebuild for PBTreeMap<K, V, P> {
    fn room(&self, most: u64) -> u64 {
        let fits = self.len as u64 <= most;
        let room = whole_room::<K, V>(self.len).filter(|_| fits && self.len > 0);
        room.unwrap_or(0) as u64
    }

    unsafe fn rebuild(&self, new: &mut NewPuddles, room: &mut Room) -> Outcome {
        let Some(root) = self.root().filter(|_| self.len > 0) else {
            return Ok(Ok(()));
        };
        let slot = Node::<K, V>::SLOT_BYTES;
        let entries = self.len.checked_mul(slot);
        let (node, all) = (node_room::<K, V>(), whole_room::<K, V>(self.len));
        let fits = entries.is_some_and(|bytes| bytes.max(self.len) as u64 <= new.bytes());
        let Some(all) = all.filter(|_| self.height <= LEVELS_MAX && fits) else {
            return Ok(Err(DAMAGED.to_owned()));
        };
        let mut left = self.len;
        if !is_whole(root, new, &mut left)? || left > 0 {
            return Ok(Err(DAMAGED.to_owned()));
        }
        let (node, rest) = room.zeroed(all)?.split_at_mut(node);
        let (words, sorted) = rest.split_at_mut(self.len * size_of::<u64>());
        // SAFETY: any bytes are words.
        let (_, places, _) = unsafe { words.align_to_mut::<u64>() };
        let mut places_left = places.iter_mut();
        note(root, &mut |address| {
            if let Some(place) = places_left.next() {
                *place = address;
            }
        });
        let keys = Keys::<K>::new();
        let is_key = |at: &u64| {
            // SAFETY: a slot of a node that is whole; nobody writes the tree meanwhile.
            unsafe { keys.is_key(ptr::with_exposed_provenance(*at as usize)) }
        };
        if !places.iter().all(is_key) {
            return Ok(Err(NO_KEY.to_owned()));
        }
        let put_in_order = asked("`Ord`", || {
            let compared = |a: &u64, b: &u64| key_at::<K>(*a).cmp(key_at::<K>(*b));
            if places.is_sorted_by(|a, b| compared(a, b) == Ordering::Less) {
                return Ok(false);
            }
            places.sort_unstable_by(compared);
            let mut pairs = places.windows(2);
            let same = pairs.find(|pair| compared(&pair[0], &pair[1]) == Ordering::Equal);
            same.map_or(Ok(true), |same| Err(doubled(key_at::<K>(same[0]))))
        });
        match put_in_order.and_then(|sorted| sorted) {
            Err(why) => return Ok(Err(why)),
            Ok(false) => return Ok(Ok(())),
            Ok(true) => {}
        }
        for (from, to) in places.iter().zip(sorted.chunks_exact_mut(slot.max(1))) {
            // SAFETY: an entry in a node, and as many bytes.
            unsafe {
                let from = ptr::with_exposed_provenance::<u8>(*from as usize);
                ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len());
            }
        }
        let mut filling = Filling {
            node,
            sorted,
            next: 0,
        };
        filling.fill(root, new)?;
        Ok(Ok(()))
    }
}

/// Bytes for the slots of a node.
fn node_room<K: PSafe, V: PSafe>() -> usize {
    (SLOTS * Node::<K, V>::SLOT_BYTES).next_multiple_of(size_of::<u64>())
}

/// Bytes for a node that is being filled, where each entry is, and all entries in order.
fn whole_room<K: PSafe, V: PSafe>(len: usize) -> Option<usize> {
    let each = Node::<K, V>::SLOT_BYTES + size_of::<u64>();
    len.checked_mul(each)?.checked_add(node_room::<K, V>())
}

/// The key of an entry whose slot begins there.
fn key_at<'a, K>(slot: u64) -> &'a K {
    // SAFETY: the key is the first field of a slot; nobody writes the tree meanwhile.
    unsafe { &*ptr::with_exposed_provenance::<K>(slot as usize) }
}

/// Whether a node and those below are what they are to be, with `left` entries at most, from which theirs are taken.
fn is_whole<K: PSafe, V: PSafe>(
    node: Node<K, V>,
    new: &mut NewPuddles,
    left: &mut usize,
) -> Result<bool> {
    let size = new.object(node.address() as u64)?;
    let has_room = size.is_some_and(|size| node.bytes() as u64 <= size);
    let is_owned = new.claim(node.bytes() as u64);
    if node.height() == 0 || !has_room || !is_owned || !node.has_order() || node.len() == 0 {
        return Ok(false);
    }
    let Some(rest) = left.checked_sub(node.len()) else {
        return Ok(false);
    };
    *left = rest;
    if !node.is_leaf() {
        for at in 0..=node.len() {
            if !is_whole(node.child(at), new, left)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Gives the slots of all entries in their order.
fn note<K: PSafe, V: PSafe>(node: Node<K, V>, tell: &mut impl FnMut(u64)) {
    for at in 0..=node.len() {
        if !node.is_leaf() {
            note(node.child(at), tell);
        }
        if at < node.len() {
            tell(node.slot_address(at) as u64);
        }
    }
}

/// Puts entries into nodes.
struct Filling<'f> {
    /// Room for the slots of a node.
    node: &'f mut [u8],
    /// All entries in order.
    sorted: &'f [u8],
    /// How many were before.
    next: usize,
}

impl Filling<'_> {
    fn fill<K: PSafe, V: PSafe>(&mut self, node: Node<K, V>, new: &mut NewPuddles) -> Result<()> {
        let mut numbers = [0; SLOTS];
        for at in 0..=node.len() {
            if !node.is_leaf() {
                self.fill(node.child(at), new)?;
            }
            if let Some(number) = numbers[..node.len()].get_mut(at) {
                *number = self.next;
                self.next += 1;
            }
        }
        let (slot, slots) = (Node::<K, V>::SLOT_BYTES, node.slots_address());
        let size = SLOTS * slot;
        let room = &mut self.node[..size];
        // SAFETY: the slots of a node, vacant ones too.
        let before =
            unsafe { std::slice::from_raw_parts(ptr::with_exposed_provenance::<u8>(slots), size) };
        room.copy_from_slice(before);
        for (at, number) in numbers[..node.len()].iter().enumerate() {
            let to = node.slot_address(at) - slots;
            let entry = &self.sorted[number * slot..(number + 1) * slot];
            room[to..to + slot].copy_from_slice(entry);
        }
        new.write(slots as u64, room)
    }
}
