//! What lies in a heap of NVL-C beside the program's data (docs/reference/nvl-runtime.md has the tables): a header
//! before each allocation, one proxy for each address that weak pointers lead to, and the pool's root object.

use crate::types::{Count, Descriptor, Field, Struct, Type};

/// The header of an allocation. The data begin behind it, or further behind where their alignment asks for that.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Header {
    /// Elements. Never changes.
    pub count: u64,
    /// The next allocation of the zero list, or 0. Links lead to the field `next` of a header.
    pub next: u64,
    /// The one before, or 0 for the first.
    pub previous: u64,
    /// The first proxy that leads here, or 0.
    pub weak: u64,
    /// How many strong pointers in the heap lead here, the root among them.
    pub strong: u64,
    /// `FRESH`, `LISTED`.
    pub state: u64,
}

/// How far behind an allocation's start a link to it leads. Not to the start, which may be where the allocation before
/// it ends: a collection would take every link that it finds in a log for a pointer behind that one.
pub const LINK: usize = std::mem::offset_of!(Header, next);

/// Bytes of a header.
pub const HEADER: usize = size_of::<Header>();

/// Nothing durable has ever led to it: what the program has stored there need not be durable yet.
pub const FRESH: u64 = 1;
/// It is on the zero list.
pub const LISTED: u64 = 2;

/// A count that pointers which come and go never bring to zero.
pub const PINNED: u64 = 1 << 62;

/// What weak pointers to one address hold the address of. It outlives its target.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Proxy {
    /// The address, or 0 since the allocation was freed.
    pub target: u64,
    /// How many weak pointers lead here.
    pub count: u64,
    /// The next proxy of the same allocation, or 0.
    pub next: u64,
}

/// The root object of the pool.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HeapRoot {
    /// 1.
    pub version: u64,
    /// What `nvl_set_root` was given, or 0. A strong pointer.
    pub root: u64,
    /// The checksum of its type.
    pub checksum: u64,
    /// The first allocation of the zero list, or 0.
    pub zero: u64,
}

/// The version of these layouts.
pub const VERSION: u64 = 1;

/// The text of the root object's type.
pub const HEAP_TYPE: &str = "struct \"nvl heap\"(32,8){0:\"version\":u64;8:\"root\":*any;16:\"checksum\":u64;24:\"zero\":*any;}\n";
/// The name of the root object's type.
pub const HEAP: &str = "nvl heap";
/// The name of a proxy's type.
pub const PROXY: &str = "nvl weak";
/// How names of types of allocations begin; the element's follows.
pub const PREFIX: &str = "nvl ";

const _: () = assert!(
    HEADER == 48
        && HEADER.is_multiple_of(16)
        && size_of::<Proxy>() == 24
        && size_of::<HeapRoot>() == 32
);

/// What an object of a heap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The root object.
    Heap,
    /// An allocation.
    Allocation(Elements),
    /// What weak pointers hold the address of.
    Proxy,
}

/// Where the elements of an allocation are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elements {
    /// Where the first one begins.
    pub data: u64,
    /// Bytes of each.
    pub size: u64,
}

impl Kind {
    /// What objects of a type are; `None` where they are none of a heap.
    pub fn of(descriptor: &Descriptor) -> Option<Kind> {
        let Type::Struct(Struct { name, fields, .. }) = descriptor.root() else {
            return None;
        };
        let begins = |names: &[&str]| {
            let mut places = (0..).step_by(8).zip(names);
            fields.len() >= names.len()
                && fields.iter().all(|field| {
                    places
                        .next()
                        .is_none_or(|(at, name)| field.name == *name && field.offset == at)
                })
        };
        match name.as_str() {
            HEAP if begins(&["version", "root", "checksum", "zero"]) => Some(Kind::Heap),
            PROXY if begins(&["target", "count", "next"]) => Some(Kind::Proxy),
            _ if name.starts_with(PREFIX)
                && begins(&["count", "next", "previous", "weak", "strong", "state"]) =>
            {
                elements(fields.last()?).map(Kind::Allocation)
            }
            _ => None,
        }
    }
}

fn elements(data: &Field<usize>) -> Option<Elements> {
    let Type::Array {
        element,
        count: Count::Field(count),
    } = &data.ty
    else {
        return None;
    };
    let size = element.layout().ok()?.size;
    (data.name == "data" && count == "count" && size > 0).then_some(Elements {
        data: data.offset,
        size,
    })
}

/// The type of an allocation's elements.
pub fn element(descriptor: &Descriptor) -> Option<&Type<usize>> {
    let (Some(Kind::Allocation(_)), Type::Struct(whole)) =
        (Kind::of(descriptor), descriptor.root())
    else {
        return None;
    };
    match &whole.fields.last()?.ty {
        Type::Array { element, .. } => Some(element),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: &str = "struct \"nvl node\"(48,16){0:\"count\":u64;8:\"next\":*any;16:\"previous\":~any;24:\"weak\":*1;32:\"strong\":u64;40:\"state\":u64;48:\"data\":[struct \"node\"(16,8){0:\"value\":i64;8:\"next\":*any;};field \"count\"];}\n";
    const WEAK: &str =
        "struct \"nvl weak\"(24,8){0:\"target\":~any;8:\"count\":u64;16:\"next\":*0;}\n";

    #[test]
    fn objects_of_heaps_are_known_by_their_types() {
        let of = |text: &str| Kind::of(&Descriptor::parse(text).unwrap());
        let weak = WEAK.replace("*0", "*1");
        let elements = Elements { data: 48, size: 16 };
        assert_eq!(
            of(&[NODE, &weak].concat()),
            Some(Kind::Allocation(elements))
        );
        assert_eq!(of(WEAK), Some(Kind::Proxy));
        assert_eq!(of(HEAP_TYPE), Some(Kind::Heap));
        // What a program of another language calls so is its own affair.
        for text in [
            "struct \"nvl heap\"(8,8){0:\"n\":u64;}\n",
            "struct \"nvl weak\"(8,8){0:\"target\":u64;}\n",
            "struct \"nvl node\"(8,8){0:\"count\":u64;}\n",
            "struct \"node\"(8,8){0:\"count\":u64;}\n",
            "[u64;4]\n",
        ] {
            assert_eq!(of(text), None, "{text}");
        }
        let whole = Descriptor::parse(&[NODE, &weak].concat()).unwrap();
        assert_eq!(element(&whole).and_then(Type::name), Some("node"));
    }
}
