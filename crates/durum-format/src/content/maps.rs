//! The entries of maps.

use std::ops::ControlFlow;

use super::Objects;
use super::memory::Memory;
use super::place::Place;
use super::shape::{self, Shape, Slots};
use crate::types::{Descriptor, Field};

/// Groups and nodes of a map that are looked at, at most: who has made them is not believed.
const STEPS_MAX: u64 = 1 << 24;
/// So many are looked at in a map that says that it has no entries.
const STEPS_MIN: u64 = 4096;
/// Levels of a binary tree.
const LEVELS_MAX: usize = 4096;

/// How many steps it takes to see all nodes of a tree with so many entries, at most: one down to a node and one up.
/// With more the tree is none, nodes lead in a circle.
fn steps_max(count: u64) -> u64 {
    count
        .saturating_mul(2)
        .saturating_add(STEPS_MIN)
        .min(STEPS_MAX)
}

const TOO_MANY: &str = "it has more nodes than entries, or than are looked at";

/// Whoever is told of an entry: the places of its key and value.
pub(super) type Visit<'v, 'd, M> = dyn FnMut(&mut M, Place<'d>, Place<'d>) -> ControlFlow<()> + 'v;

impl<'o, O: Objects + ?Sized> Memory<'o, O> {
    /// How many entries a map says that it has, and each of them as long as `visit` wants more; `None` for what is no
    /// map.
    pub(super) fn entries<'d>(
        &mut self,
        place: &Place<'d>,
        visit: &mut Visit<'_, 'd, Self>,
    ) -> Result<Option<u64>, String>
    where
        'o: 'd,
    {
        match place.shape() {
            Shape::HashMap {
                table,
                groups,
                len,
                line,
            } => {
                let count = self.word(place, len)?;
                let (table, groups) = (self.word(place, table)?, self.word(place, groups)?);
                if groups > 0 {
                    self.table(place, line, (table, groups), visit)?;
                }
                Ok(Some(count))
            }
            Shape::TreeMap {
                root,
                height,
                len,
                line,
            } => {
                let count = self.word(place, len)?;
                let (root, height) = (self.word(place, root)?, self.word(place, height)?);
                if height > 64 {
                    return Err(format!("it says that it is {height} levels high"));
                }
                let mut walk = TreeWalk {
                    of: place.of,
                    line,
                    steps: steps_max(count),
                };
                if height > 0 {
                    let _ = walk.node(self, root, height, visit)?;
                }
                Ok(Some(count))
            }
            Shape::BinaryMap { root, len, line } => {
                let count = self.word(place, len)?;
                let root = self.word(place, root)?;
                self.binary(place, line, (root, steps_max(count)), visit)?;
                Ok(Some(count))
            }
            _ => Ok(None),
        }
    }

    /// The entries of a map of C++, in their order.
    fn binary<'d>(
        &mut self,
        map: &Place<'d>,
        line: usize,
        (root, steps): (u64, u64),
        visit: &mut Visit<'_, 'd, Self>,
    ) -> Result<(), String>
    where
        'o: 'd,
    {
        let (mut waiting, mut next) = (Vec::new(), root);
        for _ in 0..steps {
            if next != 0 {
                let (object, descriptor) = self.object_of_line(next, map.of, line)?;
                let Some(parts) = shape::binary_node(descriptor.root()) else {
                    return Err("its node is none".to_owned());
                };
                let node = Place::of_object(&object, descriptor)?;
                next = self.word(&node, parts.left)?;
                waiting.push((node, parts));
                if waiting.len() > LEVELS_MAX {
                    return Err(format!("it has more than {LEVELS_MAX} levels"));
                }
                continue;
            }
            let Some((node, parts)) = waiting.pop() else {
                return Ok(());
            };
            let entry = node.field(parts.entry);
            let (key, value) = (entry.field(parts.key), entry.field(parts.value));
            if visit(self, key, value).is_break() {
                return Ok(());
            }
            next = self.word(&node, parts.right)?;
        }
        Err(TOO_MANY.to_owned())
    }

    /// The entries of a table of so many groups.
    fn table<'d>(
        &mut self,
        map: &Place<'d>,
        line: usize,
        (table, groups): (u64, u64),
        visit: &mut Visit<'_, 'd, Self>,
    ) -> Result<(), String>
    where
        'o: 'd,
    {
        let (object, descriptor) = self.object_of_line(table, map.of, line)?;
        let Some((stride, slots)) = shape::group(descriptor.root()) else {
            return Err("its table is none".to_owned());
        };
        let all = Place::of_object(&object, descriptor)?;
        let room = (all.end - all.address) / stride.max(1);
        if groups > room {
            return Err(format!("it has {groups} groups, and room for {room}"));
        }
        for group in 0..groups.min(STEPS_MAX) {
            let group = all.part(all.ty, all.address + group * stride);
            let tags = self.word(&group, 0)?.to_le_bytes();
            for (slot, _) in (0..7).zip(tags).filter(|(_, tag)| tag & 0x80 != 0) {
                let Some(slots) = slots else {
                    continue;
                };
                if slot >= slots.count {
                    return Err(format!("slot {slot} of a group is taken, which has none"));
                }
                let (key, value) = slots.entry(&group, slot);
                if visit(self, key, value).is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

impl<'d> Slots<'d> {
    /// Key and value in a slot of a part of a map's object.
    pub(super) fn entry(&self, part: &Place<'d>, slot: u64) -> (Place<'d>, Place<'d>) {
        let at = part.address + self.offset + slot * self.size;
        let place = |field: &'d Field<usize>| part.part(&field.ty, at + field.offset);
        (place(self.key), place(self.value))
    }
}

/// On the way through a tree.
struct TreeWalk<'d> {
    of: &'d Descriptor,
    line: usize,
    steps: u64,
}

impl<'d> TreeWalk<'d> {
    fn node<'o: 'd, O: Objects + ?Sized>(
        &mut self,
        memory: &mut Memory<'o, O>,
        address: u64,
        height: u64,
        visit: &mut Visit<'_, 'd, Memory<'o, O>>,
    ) -> Result<ControlFlow<()>, String> {
        let Some(steps) = self.steps.checked_sub(1) else {
            return Err(TOO_MANY.to_owned());
        };
        self.steps = steps;
        let (object, descriptor) = memory.object_of_line(address, self.of, self.line)?;
        let Some((children, slots)) = shape::node(descriptor.root()) else {
            return Err("its node is none".to_owned());
        };
        let node = Place::of_object(&object, descriptor)?;
        let order = memory.word(&node, 0)?;
        let child = |memory: &mut Memory<'o, O>, at: u64| memory.word(&node, children + 8 * at);
        if height > 1 {
            let first = child(memory, 0)?;
            if self.node(memory, first, height - 1, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        for at in 0..order & 15 {
            let slot = order >> (4 + 4 * at) & 15;
            if slot >= slots.count {
                return Err(format!("its order names slot {slot}, which is none"));
            }
            let (key, value) = slots.entry(&node, slot);
            if visit(memory, key, value).is_break() {
                return Ok(ControlFlow::Break(()));
            }
            if height > 1 {
                let next = child(memory, 1 + slot)?;
                if self.node(memory, next, height - 1, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
