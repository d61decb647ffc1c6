//! What lies so far into an object, as a path by which [`find`](super::find) comes there: without cells, options and
//! counts, and what is in a map by its key.

use super::memory::Memory;
use super::path::OF_KEY;
use super::place::Place;
use super::shape::{self, Shape, Slots};
use super::{ListKind, Object, Objects};
use crate::types::{Struct, Type};

/// Values in values.
const STEPS_MAX: usize = 256;

/// What a key of a map is called.
pub(super) type KeyName<'o, O> = fn(&mut Memory<'o, O>, &Place<'o>) -> String;

/// The largest part of an object that begins at an offset, as whoever has a pointer there means it.
pub(super) fn part_beginning<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    object: &Object,
    offset: u64,
    key_name: KeyName<'o, O>,
) -> Option<String> {
    let target = object.start.saturating_add(offset);
    let is_wanted = |place: &Place<'o>| place.address == target;
    match down_to(memory, object, offset, key_name, is_wanted) {
        (part, 0) if !part.is_empty() => Some(part),
        _ => None,
    }
}

/// The way down to the smallest part in which an offset lies, or to the first one that is wanted: what it is called,
/// and how far into it the offset is.
pub(super) fn down_to<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    object: &Object,
    offset: u64,
    key_name: KeyName<'o, O>,
    is_wanted: impl Fn(&Place<'o>) -> bool,
) -> (String, u64) {
    let mut part = String::new();
    let descriptor = memory.objects.descriptor(object.type_id);
    let place = descriptor.and_then(|descriptor| Place::of_object(object, descriptor).ok());
    let Some(mut place) = place else {
        return (part, offset);
    };
    let target = object.start.saturating_add(offset);
    for _ in 0..STEPS_MAX {
        if is_wanted(&place) && !part.is_empty() {
            break;
        }
        match inner(memory, &place, target, key_name, &mut part) {
            Ok(Some(inner)) => place = inner,
            Ok(None) | Err(_) => break,
        }
    }
    let rest = target.checked_sub(place.address);
    rest.map_or((String::new(), offset), |rest| (part, rest))
}

/// The next smaller part that has the target in it. What it is called is added to `part`.
fn inner<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    place: &Place<'o>,
    target: u64,
    key_name: KeyName<'o, O>,
    part: &mut String,
) -> Result<Option<Place<'o>>, String> {
    let Some(distance) = target.checked_sub(place.address) else {
        return Ok(None);
    };
    if !place.is_row() {
        let group = shape::group(place.ty).and_then(|(size, slots)| Some((size, slots?)));
        let node = || shape::node(place.ty).map(|(_, slots)| (u64::MAX, slots));
        if let Some((size, slots)) = group.or_else(node) {
            let begin = distance - distance % size.max(1);
            return Ok(in_slot(
                memory,
                place,
                (begin, &slots),
                target,
                key_name,
                part,
            ));
        }
        if let Some(node) = shape::binary_node(place.ty) {
            let entry = place.field(node.entry);
            let (key, value) = (entry.field(node.key), entry.field(node.value));
            return Ok(of_entry(memory, (key, value), target, key_name, part));
        }
    }
    if let Some(elements) = memory.elements(place)? {
        let first = elements.at(0).address;
        let index = target
            .checked_sub(first)
            .map(|it| it / elements.stride.max(1));
        let index = index.filter(|index| *index < elements.count);
        let Some(index) = index.filter(|_| elements.kind != ListKind::Vector) else {
            return Ok(None);
        };
        part.push_str(&format!("[{index}]"));
        return Ok(Some(elements.at(index)));
    }
    let fields = match (place.shape(), place.ty) {
        (Shape::Cell(value), _) => return Ok(Some(memory.inner(place, value)?)),
        (Shape::Objects(objects), _) => {
            let table = place.field(objects);
            return Ok(Some(match memory.objects_of(&table)?[..] {
                [(_, only)] if only.address == target => only,
                _ => table,
            }));
        }
        (Shape::Counted { value, .. }, _) => return Ok(value.map(|value| place.field(value))),
        (Shape::Plain, Type::Struct(Struct { fields, .. })) => fields,
        (Shape::Plain, Type::Variants(variants)) => &memory.case(place, variants)?.fields,
        _ => return Ok(None),
    };
    let found = fields.iter().rev().find(|field| field.offset <= distance);
    Ok(found.map(|field| {
        part.push_str(&format!(".{}", field.name));
        place.field(field)
    }))
}

/// The key or the value of an entry in a part of a map that begins so far into its object.
fn in_slot<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    map: &Place<'o>,
    (begin, slots): (u64, &Slots<'o>),
    target: u64,
    key_name: KeyName<'o, O>,
    part: &mut String,
) -> Option<Place<'o>> {
    let begin = map.part(map.ty, map.address + begin);
    let distance = target.checked_sub(begin.address + slots.offset)?;
    let slot = distance.checked_div(slots.size)?;
    let (key, value) = (slot < slots.count).then(|| slots.entry(&begin, slot))?;
    of_entry(memory, (key, value), target, key_name, part)
}

fn of_entry<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    (key, value): (Place<'o>, Place<'o>),
    target: u64,
    key_name: KeyName<'o, O>,
    part: &mut String,
) -> Option<Place<'o>> {
    let is_in = |place: &Place<'o>| {
        let size = place.ty.layout().map_or(0, |layout| layout.size);
        (place.address..place.address.saturating_add(size)).contains(&target)
    };
    if is_in(&value) {
        part.push_str(&format!("[{}]", key_name(memory, &key)));
        return Some(value);
    }
    if is_in(&key) {
        part.push_str(&format!("[{OF_KEY}{}]", key_name(memory, &key)));
        return Some(key);
    }
    None
}
