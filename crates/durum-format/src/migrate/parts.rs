//! What has to be done with each object of a type.

use std::sync::Arc;

use super::{MadeBy, Refusal, Rules};
use crate::types::{self, Descriptor, PointerAt, Repeats, Step, Type};

/// What has to be done with the objects of a type.
#[derive(Clone, Debug)]
pub struct Conversion {
    pub(super) old: Descriptor,
    pub(super) new: Descriptor,
    pub(super) parts: Vec<Part>,
    pub(super) tail: Option<Tail>,
    pub(super) rules: Arc<Rules>,
    /// What stands in the way of any object of the type.
    pub refusals: Vec<Refusal>,
    /// Lines of both that pointers lead to.
    pub(super) targets: Vec<Target>,
    /// Where in new objects maps are that are built anew.
    pub(super) maps: Vec<Step<MapAt>>,
    /// The types that it leads to are parts of a map, which has keys.
    pub(super) is_map: bool,
}

/// What a pointer leads to, before and now.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) old: usize,
    pub(super) new: usize,
    pub(super) path: String,
}

/// Where elements begin whose number the object's size says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tail {
    pub(super) from: u64,
    pub(super) stride: u64,
    pub(super) to: u64,
    pub(super) to_stride: u64,
}

/// A step. Places count from the beginning of the object, or of the element.
#[derive(Clone, Debug)]
pub(super) enum Part {
    Copy {
        from: u64,
        to: u64,
        size: u64,
    },
    /// A number that gets more bits.
    Number {
        from: (u64, u64),
        to: (u64, u64),
        is_signed: bool,
    },
    Float {
        from: u64,
        to: u64,
    },
    Bytes {
        to: u64,
        bytes: Vec<u8>,
    },
    Array {
        from: u64,
        stride: u64,
        to: u64,
        to_stride: u64,
        count: Repeats,
        /// Which elements there are, where not all are.
        taken: Option<Taken>,
        parts: Vec<Part>,
    },
    Variants {
        from: u64,
        size: u64,
        tag: (u64, u64),
        new_tag: (u64, u64),
        cases: Vec<(Option<u64>, Became)>,
        /// Nobody finds the pointers of a case that there is not.
        has_pointers: bool,
    },
    Made {
        by: MadeBy,
        from: u64,
        size: u64,
        to: u64,
        to_size: u64,
        pointers: Vec<Step<PointerAt>>,
        new_pointers: Vec<Step<PointerAt>>,
        /// What it is made of, where not all bytes are a value of that.
        checked: Option<Box<Type<usize>>>,
        path: String,
    },
    /// A field that goes, and what pointers it has.
    Gone {
        from: u64,
        pointers: Vec<Step<PointerAt>>,
        path: String,
    },
}

/// What says which places of a map's entries are taken: in others may be anything.
#[derive(Clone, Copy, Debug)]
pub(super) enum Taken {
    /// A word at the beginning with a byte for each.
    Tags,
    /// A word at the beginning with how many are, and 4 bits for each with its number.
    Order,
}

impl Taken {
    /// A bit for each place that is taken.
    pub(super) fn places(self, word: u64) -> u64 {
        let tagged = |at: &u64| word >> (8 * at) & 0x80 != 0;
        match self {
            Taken::Tags => (0..7).filter(tagged).map(|at| 1 << at).sum(),
            Taken::Order => {
                let places = (0..word & 15).map(|at| word >> (4 + 4 * at) & 15);
                places.fold(0, |taken, place| taken | 1 << place)
            }
        }
    }
}

/// What a case has become.
#[derive(Clone, Debug)]
pub(super) enum Became {
    Case(Option<u64>, Vec<Part>),
    /// There is none, which is told where an object has it.
    Nothing(String),
}

/// A map that is built anew.
#[derive(Clone, Copy, Debug)]
pub(super) struct MapAt {
    pub(super) offset: u64,
    pub(super) size: u64,
    /// The function of the program's that builds it.
    pub(super) function: usize,
}

impl types::Part for MapAt {
    /// Rules say which types are maps, and types alone do not.
    fn of(_: &Type<usize>, _: u64) -> Option<Self> {
        None
    }

    fn moved(self, by: u64) -> Self {
        let offset = self.offset + by;
        Self { offset, ..self }
    }

    fn place(&self) -> (u64, u64) {
        (self.offset, self.size)
    }
}

/// Neighbours that stay neighbours are copied at once.
pub(super) fn joined(parts: Vec<Part>) -> Vec<Part> {
    let mut all: Vec<Part> = Vec::new();
    for part in parts {
        if let (
            Some(Part::Copy { from, to, size }),
            Part::Copy {
                from: next,
                to: next_to,
                size: more,
            },
        ) = (all.last_mut(), &part)
            && *from + *size == *next
            && *to + *size == *next_to
        {
            *size += more;
            continue;
        }
        all.push(part);
    }
    all
}
