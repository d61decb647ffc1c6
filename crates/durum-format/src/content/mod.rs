//! What objects mean: values as their program wrote them, read through descriptors out of a pool that is only looked
//! at.
//!
//! Above [`types`](crate::types), which knows one object's bytes: here pointers are followed, and the collections,
//! cells and options of the typed interface are shown as what they are (`docs/format/types.md`, Objects). Nothing of
//! what the bytes say is believed: what cannot be is shown as [`Content::Invalid`], and [`Limits`] bound depth, breadth
//! and memory.
//!
//! `shape` recognises types, `names` calls them by their names, `memory` reads, `place` and `maps` go to parts of what
//! was recognised, `read` makes a tree of it with `text` and `chain`, `told` what durum's own libraries and runtimes
//! keep, `cuts` knows what was left off, `find` looks for a part by its [`Path`], `part` tells the path of one, `show`
//! and `json` print the tree.

mod chain;
mod cuts;
mod find;
mod json;
mod maps;
mod memory;
mod names;
mod part;
mod path;
mod place;
mod read;
mod shape;
mod show;
mod text;
mod told;

use std::collections::HashMap;

use crate::extent;
use crate::types::{Descriptor, Strength, Type};

pub use cuts::{Cuts, Limits};
pub use find::{at_path, part_at, part_of, start_of};
pub use names::type_name;
pub use path::{Path, PathError, Step};
pub use read::{Look, of_object};

/// The objects of a pool that is only read.
pub trait Objects {
    /// What lies at an address.
    fn at(&self, address: u64) -> At;

    /// Fills `buffer`, a block of 4 KiB, with the bytes at `address`, a multiple of that in a puddle.
    ///
    /// # Errors
    /// Why they cannot be read, in words.
    fn read(&self, address: u64, buffer: &mut [u8]) -> Result<(), String>;

    /// The descriptor of the type with this id, if it is known.
    fn descriptor(&self, type_id: u64) -> Option<&Descriptor>;

    /// The way to what lies at an address in another pool, if that is known.
    fn way(&self, address: u64) -> Option<Way> {
        let _ = address;
        None
    }

    /// What people call a type, by its name in the store.
    fn name_for_people(&self, name: &str) -> String {
        name.to_owned()
    }
}

/// What lies at an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// An object, or a part of it.
    Object(Object),
    /// Something else, in words.
    Other(String),
    /// Nobody can say: the heap is damaged there.
    Damaged(String),
}

/// The way to a value in another pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The pool's name.
    pub pool: String,
    /// The path from its root.
    pub path: String,
}

/// An object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Object {
    /// Where it begins.
    pub start: u64,
    /// Its bytes, rounding included.
    pub size: u64,
    /// The id of its type.
    pub type_id: u64,
    /// Whether it is an element of a slab, whose size is rounded up.
    pub is_element: bool,
}

/// How names of types of elements begin that `durum.hpp` keeps in rows.
pub(crate) const CELL: &str = "N5durum6detail4cellI";
/// Objects of so many bytes at most have the room of two.
const SMALL: u64 = 4;

impl Object {
    /// The bytes that it has by its type. An element of a slab is rounded up to 8 bytes, or to whole lines: without
    /// this, a small object would look like a row of several, and what follows a larger one like a part of it. A type
    /// with a tail knows itself where that ends, or has what there is, and so has a row of cells of `durum.hpp`, which
    /// are never alone: the letters of a short string are eight in what one would take.
    pub fn size_by(&self, descriptor: &Descriptor) -> u64 {
        let layout = descriptor.layout();
        if descriptor.name().is_some_and(|name| name.starts_with(CELL)) {
            return self.size;
        }
        let is_rounded =
            extent::element_size(layout.size) == Some(self.size) || self.size / 2 < layout.size;
        match self.is_element && is_rounded && !layout.has_tail {
            true => layout.size.min(self.size),
            false => self.size,
        }
    }

    /// The same, where nothing is to be lost: what is so small that several have its room may be as many, and nothing
    /// says how many there are. One with an enum in it is one: what follows it would have to be a case.
    pub fn row_by(&self, descriptor: &Descriptor) -> u64 {
        match descriptor.layout().size <= SMALL && !has_variants(descriptor.root()) {
            true => self.size,
            false => self.size_by(descriptor),
        }
    }
}

/// Whether the path to a part of a type may tell data: the key in a map, or the case of an enum.
pub fn has_data_in_paths(descriptor: &Descriptor) -> bool {
    may_tell_data(descriptor.root())
}

fn may_tell_data(ty: &Type<usize>) -> bool {
    let is_of_map = shape::group(ty).is_some() || shape::node(ty).is_some();
    is_of_map
        || shape::binary_node(ty).is_some()
        || match ty {
            Type::Variants(_) => true,
            Type::Struct(it) => it.fields.iter().any(|field| may_tell_data(&field.ty)),
            Type::Array { element, .. } => may_tell_data(element),
            _ => false,
        }
}

fn has_variants(ty: &Type<usize>) -> bool {
    match ty {
        Type::Variants(_) => true,
        Type::Struct(it) => it.fields.iter().any(|field| has_variants(&field.ty)),
        Type::Array { element, .. } => has_variants(element),
        _ => false,
    }
}

/// What an object, or a part of it, means.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// An unsigned number.
    Unsigned(u64),
    /// A signed number.
    Signed(i64),
    /// A number with a fraction, 64 bits.
    Float(f64),
    /// The same with 32 bits.
    Single(f32),
    /// A truth value.
    Bool(bool),
    /// A character.
    Char(char),
    /// Text; so many bytes of it were left off at the end.
    Text {
        /// What is shown.
        text: String,
        /// Bytes that are not.
        omitted: u64,
    },
    /// Bytes that are no text, or about which nothing is known.
    Bytes {
        /// What is shown.
        bytes: Vec<u8>,
        /// How many are not.
        omitted: u64,
    },
    /// What durum itself keeps in a way of its own, and what it means to people.
    Told {
        /// What people are shown.
        shown: Box<Content>,
        /// What there is.
        whole: Box<Content>,
    },
    /// A number of which only the bits are known.
    Word(u64),
    /// An object of which no type is known.
    Untyped {
        /// Its bytes.
        size: u64,
        /// The same as a text, as numbers of 8 bytes where they are a multiple of that, or as they are.
        content: Box<Content>,
    },
    /// A struct. A tuple has a name that begins with `(`.
    Struct {
        /// The type's name.
        name: String,
        /// Names and contents.
        fields: Vec<(String, Content)>,
    },
    /// A case of several.
    Case {
        /// The type's name.
        name: String,
        /// The name of the case.
        case: String,
        /// Names and contents.
        fields: Vec<(String, Content)>,
    },
    /// Elements in a row.
    List(List),
    /// Keys with values.
    Map {
        /// How many there are.
        count: u64,
        /// Those that are shown.
        entries: Vec<(Content, Content)>,
    },
    /// A pointer that leads to something.
    Pointer {
        /// Its value.
        address: u64,
        /// Whether it owns what it leads to.
        strength: Strength,
        /// What it leads to.
        target: Target,
    },
    /// A null pointer.
    Null {
        /// The name of the type to which it could lead, if one is declared.
        to: Option<String>,
    },
    /// An option without a value.
    Nothing,
    /// A value that is gone while weak pointers to it remain.
    Gone,
    /// Bytes that mean nothing once the program has ended.
    Volatile,
    /// What is not shown because of the limits.
    Cut,
    /// Bytes that do not fit their type: why.
    Invalid(String),
    /// What is not to be shown.
    Hidden,
}

/// Elements in a row.
#[derive(Clone, Debug, PartialEq)]
pub struct List {
    /// What holds them.
    pub kind: ListKind,
    /// How many places there are; of a chain, as far as it was counted.
    pub count: u64,
    /// How many of the places have nothing in them; they are not among the elements.
    pub vacant: u64,
    /// How many have something in them, as far as they were counted.
    pub filled: u64,
    /// Whether there may be more than were counted: of a chain elements, else places that are filled.
    pub is_at_least: bool,
    /// Those that are shown, with their numbers.
    pub elements: Vec<(u64, Content)>,
    /// Whether there is more behind those that are shown.
    pub is_cut: bool,
}

/// What holds elements.
#[derive(Clone, Debug, PartialEq)]
pub enum ListKind {
    /// An array in an object.
    Array,
    /// A vector of the typed interface.
    Vector,
    /// An allocation of several objects.
    Row,
    /// What a program of C++ has put in the pool: one of it is shown as what it is, without the table that leads to it.
    Objects,
    /// Objects of which each has one pointer to the next.
    Chain {
        /// The field with that pointer.
        by: String,
        /// What the last pointer leads to, if it is not null and no further element: an element again, or nothing.
        end: Option<Box<Content>>,
    },
}

/// What a pointer leads to.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// An object, which is shown here.
    Here {
        /// What it is.
        content: Box<Content>,
    },
    /// An object that is shown in another place, or not at all.
    Elsewhere {
        /// Where it begins.
        start: u64,
        /// The name of its type.
        type_name: String,
        /// What in it the pointer leads to, if not its start: `+ 24`, or the part by name.
        part: String,
    },
    /// A value in another pool.
    There {
        /// The way to it.
        way: Way,
        /// What it is, in words.
        what: String,
    },
    /// Something else, in words.
    Other(String),
}

/// Where objects are shown: their paths by the addresses at which they begin.
pub type Shown = HashMap<u64, String>;

/// A name as it can be printed: what controls a terminal, or turns the direction of what follows, is escaped. Marks
/// that belong to the letter before them stay, as most scripts have such.
pub fn printable(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    let mut is_first = true;
    for char in name.chars() {
        match char {
            '"' | '\'' | '\\' => out.push(char),
            char if is_first => out.extend(char.escape_debug()),
            // Behind a letter, as it is here.
            char => {
                let mut pair = [b'a', 0, 0, 0, 0];
                let bytes = pair.get_mut(1..).unwrap_or_default();
                let length = 1 + char.encode_utf8(bytes).len();
                let pair = str::from_utf8(pair.get(..length).unwrap_or_default());
                out.extend(pair.unwrap_or_default().escape_debug().skip(1));
            }
        }
        is_first = false;
    }
    out
}

impl Content {
    /// The same tree without the program's data: numbers, texts, bytes and cases are hidden; structure, counts and
    /// pointers stay.
    #[must_use]
    pub fn redact(self) -> Self {
        let fields = |fields: Vec<(String, Self)>| {
            let fields = fields.into_iter();
            fields.map(|(name, value)| (name, value.redact())).collect()
        };
        match self {
            Self::Struct { name, fields: all } => Self::Struct {
                name,
                fields: fields(all),
            },
            Self::Case {
                name, fields: all, ..
            } => Self::Case {
                name,
                case: "?".into(),
                fields: fields(all),
            },
            Self::List(mut list) => {
                let elements = list.elements.into_iter();
                list.elements = elements.map(|(at, it)| (at, it.redact())).collect();
                Self::List(list)
            }
            Self::Map { count, entries } => Self::Map {
                count,
                entries: entries
                    .into_iter()
                    .map(|(key, value)| (key.redact(), value.redact()))
                    .collect(),
            },
            Self::Told { shown, whole } => Self::Told {
                shown: Box::new(shown.redact()),
                whole: Box::new(whole.redact()),
            },
            Self::Untyped { size, content } => Self::Untyped {
                size,
                content: Box::new(content.redact()),
            },
            Self::Pointer {
                address,
                strength,
                target: Target::Here { content },
            } => Self::Pointer {
                address,
                strength,
                target: Target::Here {
                    content: Box::new(content.redact()),
                },
            },
            // The part by name may go through the case of an enum.
            Self::Pointer {
                address,
                strength,
                target:
                    Target::Elsewhere {
                        start,
                        type_name,
                        part,
                    },
            } if !part.is_empty() => Self::Pointer {
                address,
                strength,
                target: Target::Elsewhere {
                    start,
                    type_name,
                    part: "?".into(),
                },
            },
            Self::Pointer {
                address,
                strength,
                target: Target::There { what, .. },
            } => Self::Pointer {
                address,
                strength,
                target: Target::Other(what),
            },
            Self::Pointer { .. }
            | Self::Null { .. }
            | Self::Nothing
            | Self::Gone
            | Self::Volatile
            | Self::Cut
            | Self::Hidden => self,
            _ => Self::Hidden,
        }
    }
}
