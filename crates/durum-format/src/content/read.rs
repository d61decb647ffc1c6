//! From objects to a tree of what they mean.

use std::ops::ControlFlow;

use super::cuts::{Cuts, Limits};
use super::memory::Memory;
use super::names::{name_of, type_name, without_keeper};
use super::path::OF_KEY;
use super::place::{Elements, Place, are_bytes};
use super::shape::{self, Shape};
use super::{At, CELL, Content, List, ListKind, Object, Objects, Shown, Target, part};
use crate::types::{Field, Primitive, Strength, Struct, Type};

/// Values in values, pointers followed: deeper is not read, whatever is asked for, so that no stack is too small.
const NESTING_MAX: usize = 256;
/// Values that are read for one look.
const VALUES_MAX: usize = 1 << 20;
/// Keys are named by what they hold. Where a key leads into another one, or into itself, that one's name is a part of
/// it; further ones are not told.
const KEYS_MAX: usize = 2;
/// Places of a row that are looked at for those that have something in them.
const PLACES_MAX: u64 = 1 << 16;

/// What was read.
#[derive(Clone, Debug)]
pub struct Look {
    /// What the object, or the part of it, means.
    pub content: Content,
    /// The name of its type.
    pub type_name: String,
    /// Where it lies.
    pub address: u64,
    /// The objects that are shown, by where they begin.
    pub shown: Shown,
    /// Where the heap is damaged that was looked at.
    pub damages: Vec<String>,
    /// Pointers that were not followed because of the limits.
    pub cut: u64,
    /// What is not shown because of the limits, by which of them.
    pub cuts: Cuts,
}

/// The object that begins at `start`, which is called `name` in paths.
pub fn of_object<O: Objects + ?Sized>(
    objects: &O,
    start: u64,
    name: &str,
    limits: &Limits,
) -> Look {
    let mut reader = Reader::new(objects, limits);
    let (type_name, content) = match objects.at(start) {
        At::Object(object) => (
            type_name(objects, &object),
            reader.object(&object, name, 0, 0),
        ),
        At::Other(what) => (what.clone(), Content::Invalid(what)),
        At::Damaged(why) => {
            reader.damages.push(why.clone());
            ("damaged".to_owned(), Content::Invalid(why))
        }
    };
    reader.look(content, type_name, start)
}

/// What a key of a map is called in paths.
pub(super) fn key_of<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    key: &Place<'o>,
) -> String {
    key_content(memory, key).as_key()
}

fn key_content<'o, O: Objects + ?Sized>(memory: &mut Memory<'o, O>, key: &Place<'o>) -> Content {
    let limits = Limits {
        depth: 1,
        objects: 16,
        elements: 64,
    };
    if memory.keys >= KEYS_MAX {
        return Content::Cut;
    }
    let objects = memory.objects;
    let mut reader = Reader::with(std::mem::replace(memory, Memory::of(objects)), &limits);
    reader.memory.keys += 1;
    let content = reader.place(key, "", 0, 0);
    *memory = reader.memory;
    memory.keys -= 1;
    content
}

/// The same, and what may be written for it: a text without its quotes, and the field of a struct that has only one.
pub(super) fn key_names<'o, O: Objects + ?Sized>(
    memory: &mut Memory<'o, O>,
    key: &Place<'o>,
) -> (String, Option<String>) {
    let content = key_content(memory, key);
    let short = match &content {
        Content::Text { text, omitted: 0 } => Some(text.clone()),
        Content::Struct { fields, .. } => match &fields[..] {
            [(_, only)] => Some(only.as_key()),
            _ => None,
        },
        _ => None,
    };
    (content.as_key(), short)
}

/// On the way from an object to a tree of what it means.
pub(super) struct Reader<'o, 'l, O: Objects + ?Sized> {
    pub(super) memory: Memory<'o, O>,
    pub(super) limits: &'l Limits,
    pub(super) shown: Shown,
    damages: Vec<String>,
    pub(super) cut: u64,
    pub(super) cuts: Cuts,
    /// Values that may still be read.
    pub(super) left: usize,
}

impl<'o, 'l, O: Objects + ?Sized> Reader<'o, 'l, O> {
    pub(super) fn new(objects: &'o O, limits: &'l Limits) -> Self {
        Self::with(Memory::of(objects), limits)
    }

    fn with(memory: Memory<'o, O>, limits: &'l Limits) -> Self {
        Self {
            memory,
            limits,
            shown: Shown::new(),
            damages: Vec::new(),
            cut: 0,
            cuts: Cuts::default(),
            left: VALUES_MAX,
        }
    }

    pub(super) fn look(self, content: Content, type_name: String, address: u64) -> Look {
        Look {
            content,
            type_name,
            address,
            shown: self.shown,
            damages: self.damages,
            cut: self.cut,
            cuts: self.cuts,
        }
    }

    /// An object, which is shown from now on.
    pub(super) fn object(
        &mut self,
        object: &Object,
        path: &str,
        depth: usize,
        nesting: usize,
    ) -> Content {
        self.shown.insert(object.start, path.to_owned());
        let Some(descriptor) = self.memory.objects.descriptor(object.type_id) else {
            return self.untyped(object);
        };
        match Place::of_object(object, descriptor) {
            Ok(place) => self.place(&place, path, depth, nesting),
            Err(why) => Content::Invalid(why),
        }
    }

    pub(super) fn place(
        &mut self,
        place: &Place<'o>,
        path: &str,
        depth: usize,
        nesting: usize,
    ) -> Content {
        self.cuts.is_too_much |= self.left == 0;
        if self.left == 0 || nesting > NESTING_MAX {
            return Content::Cut;
        }
        self.left -= 1;
        let content = self.try_place(place, path, depth, nesting + 1);
        content.unwrap_or_else(Content::Invalid)
    }

    fn try_place(
        &mut self,
        place: &Place<'o>,
        path: &str,
        depth: usize,
        nesting: usize,
    ) -> Result<Content, String> {
        if let Some(elements) = self.memory.elements(place)? {
            return Ok(self.list(&elements, path, depth, nesting));
        }
        match place.shape() {
            Shape::Cell(value) => {
                let value = self.memory.inner(place, value)?;
                Ok(self.place(&value, path, depth, nesting))
            }
            Shape::Objects(objects) => self.objects(place, objects, path, depth, nesting),
            Shape::OptionalPointer(some) => {
                Ok(match self.place(&place.field(some), path, depth, nesting) {
                    Content::Null { .. } => Content::Nothing,
                    content => content,
                })
            }
            Shape::Counted { strong, value } => match (self.memory.word(place, strong)?, value) {
                (0, _) => Ok(Content::Gone),
                (_, Some(value)) => Ok(self.place(&place.field(value), path, depth, nesting)),
                (_, None) => Ok(Content::Struct {
                    name: "()".to_owned(),
                    fields: Vec::new(),
                }),
            },
            Shape::HashMap { .. } | Shape::TreeMap { .. } | Shape::BinaryMap { .. } => {
                self.map(place, path, depth, nesting)
            }
            Shape::Plain | Shape::Vector { .. } => self.plain(place, path, depth, nesting),
        }
    }

    /// What a program of C++ has put in the pool. Where that is one object, the way to it needs no number.
    fn objects(
        &mut self,
        place: &Place<'o>,
        objects: &'o Field<usize>,
        path: &str,
        depth: usize,
        nesting: usize,
    ) -> Result<Content, String> {
        let table = place.field(objects);
        if let [(at, only)] = self.memory.objects_of(&table)?[..] {
            let content = self.place(&only, path, depth, nesting);
            return Ok(Content::List(List {
                kind: ListKind::Objects,
                count: 1,
                vacant: 0,
                filled: 1,
                is_at_least: false,
                elements: vec![(at, content)],
                is_cut: false,
            }));
        }
        let mut content = self.place(&table, path, depth, nesting);
        if let Content::List(list) = &mut content {
            list.kind = ListKind::Objects;
            // Nobody has asked for the others.
            list.count -= std::mem::take(&mut list.vacant);
        }
        Ok(content)
    }

    fn plain(
        &mut self,
        place: &Place<'o>,
        path: &str,
        depth: usize,
        nesting: usize,
    ) -> Result<Content, String> {
        Ok(match place.ty {
            Type::Primitive(it) => primitive(
                *it,
                self.memory.unsigned(place.address, place.end, it.size())?,
            ),
            Type::Struct(Struct { name, fields, .. }) => {
                let whole = Content::Struct {
                    name: self.memory.objects.name_for_people(name),
                    fields: self.fields(place, fields, path, depth, nesting),
                };
                self.told(place, name, whole, path, depth)
            }
            Type::Variants(variants) => {
                let case = self.memory.case(place, variants)?;
                Content::Case {
                    name: self.memory.objects.name_for_people(&variants.name),
                    case: case.name.clone(),
                    fields: self.fields(place, &case.fields, path, depth, nesting),
                }
            }
            Type::Pointer { strength, target } => {
                let address = self.memory.word(place, 0)?;
                if address == 0 {
                    let target = target.and_then(|line| place.of.line(line));
                    let name = target.map(|ty| name_of(self.memory.objects, ty, place.of));
                    return Ok(Content::Null {
                        to: name.map(without_keeper),
                    });
                }
                self.pointer(address, *strength, path, depth, nesting)
            }
            Type::Opaque { size, .. } | Type::Reserved { size, .. } => {
                self.bytes(place.address, place.end, *size, false)
            }
            Type::Volatile { .. } => Content::Volatile,
            Type::Array { .. } => Content::Invalid("it has no elements".to_owned()),
        })
    }

    fn fields(
        &mut self,
        place: &Place<'o>,
        fields: &'o [Field<usize>],
        path: &str,
        depth: usize,
        nesting: usize,
    ) -> Vec<(String, Content)> {
        let shown = fields.iter().filter(|field| is_shown(place.ty, field));
        shown
            .map(|field| {
                let path = format!("{path}.{}", field.name);
                let value = self.place(&place.field(field), &path, depth, nesting);
                (field.name.clone(), value)
            })
            .collect()
    }

    fn list(
        &mut self,
        elements: &Elements<'o>,
        path: &str,
        depth: usize,
        nesting: usize,
    ) -> Content {
        if elements.is_text {
            return self.text(elements);
        }
        if let Some(byte) = letters(elements)
            && (elements.count > 0 || elements.kind != ListKind::Vector)
        {
            let (first, length) = (elements.at(0), elements.count);
            let is_c = byte == Primitive::I8 && elements.kind != ListKind::Vector;
            match self.bytes(first.address, first.end, length, is_c) {
                Content::Bytes { .. } if is_c => {}
                content => return content,
            }
        }
        if elements.kind == ListKind::Vector && elements.count > 0 && elements.stride > 0 {
            self.shown.insert(elements.at(0).address, path.to_owned());
        }
        // Elements without bytes are alike.
        let places = match elements.stride {
            0 => 0,
            _ => elements.count,
        };
        let mut list = List {
            kind: elements.kind.clone(),
            count: elements.count,
            vacant: 0,
            filled: 0,
            is_at_least: false,
            elements: Vec::new(),
            is_cut: false,
        };
        let may_be_vacant = matches!(
            elements.element(),
            Type::Pointer { .. } | Type::Struct(_) | Type::Variants(_)
        );
        for index in 0..places {
            let place = elements.at(index);
            let is_full = list.elements.len() >= self.limits.elements || self.left == 0;
            if is_full && !may_be_vacant {
                (list.is_cut, list.filled) = (true, elements.count);
                break;
            }
            if index >= PLACES_MAX.max(self.limits.elements as u64)
                || is_full && !self.cuts.may_count(1)
            {
                (list.is_cut, list.is_at_least) = (true, true);
                break;
            }
            if self.memory.is_vacant(&place, elements.stride, &list.kind) {
                list.vacant += 1;
                continue;
            }
            list.filled += 1;
            if is_full {
                list.is_cut = true;
                continue;
            }
            let path = format!("{path}[{index}]");
            let content = self.place(&place, &path, depth, nesting);
            list.elements.push((index, content));
        }
        if list.is_cut {
            self.cuts.cut(list.filled, list.is_at_least);
        }
        Content::List(list)
    }

    fn map(
        &mut self,
        place: &Place<'o>,
        path: &str,
        depth: usize,
        nesting: usize,
    ) -> Result<Content, String> {
        let mut found = Vec::new();
        let most = self.limits.elements.min(self.left);
        let count = self.memory.entries(place, &mut |_, key, value| {
            if found.len() >= most {
                return ControlFlow::Break(());
            }
            found.push((key, value));
            ControlFlow::Continue(())
        })?;
        let count = count.unwrap_or(0);
        if (found.len() as u64) < count && found.len() >= most {
            self.cuts.cut(count, false);
        }
        let entries = found.into_iter().map(|(key, value)| {
            if let At::Object(object) = self.memory.objects.at(key.address) {
                self.shown
                    .entry(object.start)
                    .or_insert_with(|| path.to_owned());
            }
            let name = key_of(&mut self.memory, &key);
            let key = self.place(&key, &format!("{path}[{OF_KEY}{name}]"), depth, nesting);
            let path = format!("{path}[{name}]");
            (key, self.place(&value, &path, depth, nesting))
        });
        Ok(Content::Map {
            entries: entries.collect(),
            count,
        })
    }

    pub(super) fn pointer(
        &mut self,
        address: u64,
        strength: Strength,
        path: &str,
        depth: usize,
        nesting: usize,
    ) -> Content {
        if address == 0 {
            return Content::Null { to: None };
        }
        let (mut address, mut strength) = (address, strength);
        let mut at = self.memory.objects.at(address);
        // Where NVL-C has put an object of its own between, the program means what lies behind it.
        if let At::Object(object) = &at
            && let Some(to) = self.memory.behind_proxy(object)
        {
            if to == 0 {
                return Content::Gone;
            }
            (address, strength) = (to, Strength::Weak);
            at = self.memory.objects.at(to);
        }
        let target = match at {
            At::Object(object) => self.target(&object, address, strength, path, depth, nesting),
            At::Other(what) => match self.memory.objects.way(address) {
                Some(way) => Target::There { way, what },
                None => Target::Other(what),
            },
            At::Damaged(why) => {
                self.damages.push(why.clone());
                Target::Other(why)
            }
        };
        Content::Pointer {
            address,
            strength,
            target,
        }
    }

    fn target(
        &mut self,
        object: &Object,
        address: u64,
        strength: Strength,
        path: &str,
        depth: usize,
        nesting: usize,
    ) -> Target {
        let descriptor = self.memory.objects.descriptor(object.type_id);
        let (start, offset) = (
            descriptor.map_or(0, shape::start_of),
            address - object.start,
        );
        let is_known = self.shown.contains_key(&object.start);
        let is_followed = strength == Strength::Strong && offset == start && !is_known;
        if is_followed && depth < self.limits.depth && self.shown.len() <= self.limits.objects {
            return Target::Here {
                content: Box::new(self.chain_or_object(object, path, depth + 1, nesting)),
            };
        }
        if is_followed {
            self.cut += 1;
            self.cuts.pointer(depth, self.limits);
        }
        Target::Elsewhere {
            start: object.start,
            type_name: type_name(self.memory.objects, object),
            part: match offset == start {
                true => String::new(),
                false => self.part_of(object, offset),
            },
        }
    }

    /// What in an object lies at an address, by name.
    fn part_of(&mut self, object: &Object, offset: u64) -> String {
        let part = part::part_beginning(&mut self.memory, object, offset, key_of);
        part.unwrap_or_else(|| format!(" + {offset}"))
    }
}

/// Whether elements are bytes, also where `durum.hpp` keeps each of them in a cell.
fn letters(elements: &Elements<'_>) -> Option<Primitive> {
    let element = elements.element();
    match shape::shape(element, elements.at(0).of) {
        // A cell may claim to be larger than its letter: then there are others between two letters.
        Shape::Cell(value)
            if elements.stride == 1
                && element.name().is_some_and(|name| name.starts_with(CELL)) =>
        {
            are_bytes(&value.ty)
        }
        _ => are_bytes(element),
    }
}

/// Whether a field of a type means anything now, to its program.
pub(super) fn is_shown(of: &Type<usize>, field: &Field<usize>) -> bool {
    // What the runtime of lock-based code notes with the program's root and its global variables.
    let kept: &[&str] = match of.name() {
        Some("durum.ido.heap") => &["version", "epoch", "size"],
        Some("durum.ido.variable") => &["size", "name_size"],
        _ => &[],
    };
    !matches!(field.ty, Type::Volatile { .. } | Type::Reserved { .. })
        && !kept.contains(&field.name.as_str())
}

fn primitive(primitive: Primitive, raw: u64) -> Content {
    match primitive {
        Primitive::U8 | Primitive::U16 | Primitive::U32 | Primitive::U64 => Content::Unsigned(raw),
        Primitive::I8 | Primitive::I16 | Primitive::I32 | Primitive::I64 => {
            let unused = 64 - 8 * primitive.size();
            Content::Signed((raw << unused) as i64 >> unused)
        }
        Primitive::F32 => Content::Single(f32::from_bits(raw as u32)),
        Primitive::F64 => Content::Float(f64::from_bits(raw)),
        Primitive::Bool if raw < 2 => Content::Bool(raw == 1),
        Primitive::Bool => Content::Invalid(format!("{raw} is no truth value")),
        Primitive::Char => match char::from_u32(raw as u32) {
            Some(char) => Content::Char(char),
            None => Content::Invalid(format!("{raw:#x} is no character")),
        },
    }
}
