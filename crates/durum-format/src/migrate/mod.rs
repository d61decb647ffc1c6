//! What becomes of objects whose types change: `docs/how-to/change-types.md`, "With rewriting".
//!
//! [`Rules`] is what a program says. [`Pairs`] finds for each old type the new one, along the ways from the root or by
//! the rules alone (`retype`), and a [`Conversion`] for each: `compile` finds it once, `convert` runs it for each
//! object, `follow` tells where in the new object a part of the old one is. [`map`] reads rules from a file.
//!
//! Nothing here knows addresses: a pointer in a new object is the old one, until somebody who knows where objects are
//! has it lead there.

mod compile;
mod convert;
mod follow;
mod heaps;
pub mod map;
mod pairs;
mod partners;
mod parts;
mod rebuilt;
mod retype;
mod templates;
mod values;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use crate::types::{Descriptor, Primitive};

pub use convert::{Program, Wrong};
pub use follow::Gone;
pub use pairs::Pairs;
pub use parts::Conversion;

/// What becomes of the types that change, by their old names. Types of which nothing is said stay what they are, but
/// for what is in them.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// By their old names.
    pub types: BTreeMap<String, Rule>,
    /// Maps of `durum.hpp` that are built anew, by their new names: whatever map is to be one of them. Old names have
    /// the compiler's words for types that the program has no more.
    pub maps: BTreeMap<String, MapNow>,
}

/// A map of `durum.hpp` as it is now.
#[derive(Clone, Debug)]
pub struct MapNow {
    /// The function of the program that builds it.
    pub function: usize,
    /// Its type.
    pub ty: Descriptor,
    /// Names of the types of its nodes, and of the entries in these.
    pub parts: [String; 2],
}

impl Rules {
    /// What becomes of types, by their old names.
    pub const fn of_types(types: BTreeMap<String, Rule>) -> Self {
        let maps = BTreeMap::new();
        Self { types, maps }
    }

    /// Whether a type is a map that is built anew by what it is now, or a part of one.
    fn builds(&self, now: &str) -> bool {
        let is_part = |map: &MapNow| map.parts.iter().any(|part| part == now);
        self.maps.contains_key(now) || self.maps.values().any(is_part)
    }
}

/// What becomes of a type.
#[derive(Clone, Debug, Default)]
pub struct Rule {
    /// The name that it has now; the same when absent.
    pub now: Option<String>,
    /// Where fields come from, by their new names. Others come from the old field of their name, or of a former one.
    pub fields: BTreeMap<String, Source>,
    /// Old fields that go though they hold pointers.
    pub forget: BTreeSet<String>,
    /// It is a map whose keys may change, or a part of one: the program builds it anew.
    pub rebuilt: Option<Rebuilt>,
    /// A function of the program makes it.
    pub made_by: Option<MadeBy>,
    /// What that function takes and what it makes, where it is of no use for others of the same names; or what a map
    /// that is built anew was and is.
    pub made_of: Option<Box<(Descriptor, Descriptor)>>,
    /// The fields that it has now, where nobody else says so.
    pub layout: Option<NewLayout>,
}

/// What of a map that the program builds anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rebuilt {
    /// The map, by this function of the program's.
    Map(usize),
    /// A type of the objects that hold its entries, or of places in these.
    Part,
}

/// A function of the program.
#[derive(Clone, Copy, Debug)]
pub struct MadeBy {
    /// Which of its functions.
    pub function: usize,
    /// Bytes that are all zero are a value. Where they are none, nothing is stored in a place of an array that is zero.
    pub zero_is_value: bool,
}

/// Where a field comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// The old field of this name.
    Field(String),
    /// It is this number, or in its cell there is, whose bytes these are, in each object.
    Bytes(Primitive, Vec<u8>),
    /// It has this value in each object: JSON, as in a dump.
    Value(String),
}

/// The fields of a type in their order, from which places follow as in C.
#[derive(Clone, Debug, Default)]
pub struct NewLayout {
    /// Names, and types where these are others: `None` is that of the field where it comes from.
    pub fields: Vec<(String, Option<String>)>,
    /// Bytes, where it has more than its fields need.
    pub size: Option<u64>,
    /// Its alignment, where it is more than that of its fields.
    pub align: Option<u64>,
}

/// Something that stands in the way of a migration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refusal {
    /// Where: a type, and the way from it.
    pub path: String,
    /// What is in the way.
    pub why: String,
}

impl Refusal {
    /// One.
    pub fn new(path: impl Into<String>, why: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            why: why.into(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.why)
    }
}
