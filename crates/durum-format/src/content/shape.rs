//! What a type is beside its fields: the names that say more than the text (`docs/format/types.md`, Objects). A type
//! with such a name and other fields is a type like any other.

use crate::types::{Count, Descriptor, Field, Primitive, Strength, Struct, Type};

/// What a type is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Shape<'d> {
    /// What its fields say.
    Plain,
    /// Another value: in a cell, behind a lock, or with what a runtime keeps of it.
    Cell(&'d Field<usize>),
    /// A value with its counts.
    Counted {
        strong: u64,
        value: Option<&'d Field<usize>>,
    },
    /// A pointer or nothing.
    OptionalPointer(&'d Field<usize>),
    /// Elements, or the bytes of a text.
    Vector {
        buffer: u64,
        len: u64,
        line: Option<usize>,
        is_text: bool,
    },
    HashMap {
        table: u64,
        groups: u64,
        len: u64,
        line: usize,
    },
    TreeMap {
        root: u64,
        height: u64,
        len: u64,
        line: usize,
    },
    /// The objects that a program of C++ has asked for by their types: there is room for more.
    Objects(&'d Field<usize>),
    /// A map of C++.
    BinaryMap { root: u64, len: u64, line: usize },
}

/// The part of a map's object that holds entries: a group of a table, or a node without its children.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slots<'d> {
    /// Where the first one begins, from the start of the part.
    pub(super) offset: u64,
    pub(super) count: u64,
    pub(super) size: u64,
    pub(super) key: &'d Field<usize>,
    pub(super) value: &'d Field<usize>,
}

/// A field of 64 bits without sign: where it lies.
fn word(fields: &[Field<usize>], name: &str) -> Option<u64> {
    let field = fields.iter().find(|field| field.name == name)?;
    (field.ty == Type::Primitive(Primitive::U64)).then_some(field.offset)
}

/// A strong pointer: where it lies, and the line of what it leads to.
fn pointer(fields: &[Field<usize>], name: &str) -> Option<(u64, Option<usize>)> {
    let field = fields.iter().find(|field| field.name == name)?;
    match field.ty {
        Type::Pointer {
            strength: Strength::Strong,
            target,
        } => Some((field.offset, target)),
        _ => None,
    }
}

/// What a type is that stands in the text of a descriptor.
pub(super) fn shape<'d>(ty: &'d Type<usize>, of: &'d Descriptor) -> Shape<'d> {
    let Type::Struct(Struct { name, fields, .. }) = ty else {
        return Shape::Plain;
    };
    if let Some(name) = name.strip_prefix("N5durum") {
        return cpp(name, fields, of).unwrap_or(Shape::Plain);
    }
    let generic = name.split_once('<').map(|(generic, _)| generic);
    let found = match generic {
        None if name == "PString" => text(fields, of),
        None if name == "nvl heap" => heap_of_nvl(fields),
        None if name.starts_with("nvl ") => of_nvl(fields),
        None if name == "durum.objects" => objects(fields),
        Some("PVec") => vector(fields, of),
        Some("PHashMap") => hash_map(fields, of),
        Some("PBTreeMap") => tree_map(fields, of),
        Some("PCell" | "PRefCell" | "PMutex" | "LogFree") => cell(fields),
        Some("Option") => option(fields),
        _ if name.starts_with("counted ") => counted(fields),
        _ if name.starts_with("root ") => root(fields),
        _ => None,
    };
    found.unwrap_or(Shape::Plain)
}

fn text<'d>(fields: &'d [Field<usize>], of: &'d Descriptor) -> Option<Shape<'d>> {
    let [bytes] = fields else { return None };
    match shape(&bytes.ty, of) {
        Shape::Vector {
            buffer,
            len,
            line: Some(line),
            ..
        } if bytes.offset == 0 && element_of_row(of.line(line)?)? == BYTE => Some(Shape::Vector {
            buffer,
            len,
            line: Some(line),
            is_text: true,
        }),
        _ => None,
    }
}

const BYTE: &Type<usize> = &Type::Primitive(Primitive::U8);

fn element_of_row(ty: &Type<usize>) -> Option<&Type<usize>> {
    match ty {
        Type::Array {
            element,
            count: Count::Tail,
        } => Some(element),
        _ => None,
    }
}

fn vector<'d>(fields: &'d [Field<usize>], of: &'d Descriptor) -> Option<Shape<'d>> {
    let (buffer, line) = pointer(fields, "buffer")?;
    word(fields, "capacity")?;
    if let Some(line) = line {
        element_of_row(of.line(line)?)?;
    }
    (fields.len() == 3).then_some(Shape::Vector {
        buffer,
        len: word(fields, "len")?,
        line,
        is_text: false,
    })
}

fn hash_map<'d>(fields: &'d [Field<usize>], of: &'d Descriptor) -> Option<Shape<'d>> {
    let (table, line) = pointer(fields, "table")?;
    word(fields, "seed")?;
    let line = line?;
    group(of.line(line)?)?;
    (fields.len() == 4).then_some(Shape::HashMap {
        table,
        groups: word(fields, "groups")?,
        len: word(fields, "len")?,
        line,
    })
}

/// The bytes of a group of a table, and its slots; no slots where entries have no bytes.
pub(super) fn group(ty: &Type<usize>) -> Option<(u64, Option<Slots<'_>>)> {
    let Type::Struct(Struct { fields, size, .. }) = element_of_row(ty)? else {
        return None;
    };
    let tags = word(fields, "tags")?;
    // A word tells of seven slots.
    let slots = slots(fields);
    let fits = slots.is_none_or(|slots| slots.count <= 7);
    (tags == 0 && fits).then_some((*size, slots))
}

fn slots(fields: &[Field<usize>]) -> Option<Slots<'_>> {
    let row = fields.iter().find(|field| field.name == "slots")?;
    let Type::Array {
        element,
        count: Count::Fixed(count),
    } = &row.ty
    else {
        return None;
    };
    let Type::Struct(Struct { fields, size, .. }) = &**element else {
        return None;
    };
    let named = |name| fields.iter().find(|field| field.name == name);
    Some(Slots {
        offset: row.offset,
        count: *count,
        size: *size,
        key: named("key")?,
        value: named("value")?,
    })
}

fn tree_map<'d>(fields: &'d [Field<usize>], of: &'d Descriptor) -> Option<Shape<'d>> {
    let (root, line) = pointer(fields, "root")?;
    let line = line?;
    node(of.line(line)?)?;
    (fields.len() == 3).then_some(Shape::TreeMap {
        root,
        height: word(fields, "height")?,
        len: word(fields, "len")?,
        line,
    })
}

/// Where the children of a node begin, and its slots.
pub(super) fn node(ty: &Type<usize>) -> Option<(u64, Slots<'_>)> {
    let Type::Struct(Struct { fields, .. }) = ty else {
        return None;
    };
    let order = word(fields, "order")?;
    let slots = slots(fields).filter(|slots| slots.count <= 15)?;
    let children = fields.iter().find(|field| field.name == "children")?;
    let is_pointer = matches!(
        element_of_row(&children.ty)?,
        Type::Pointer {
            strength: Strength::Strong,
            ..
        }
    );
    (order == 0 && is_pointer).then_some((children.offset, slots))
}

fn cell(fields: &[Field<usize>]) -> Option<Shape<'_>> {
    let is_word = |field: &Field<usize>| matches!(field.ty, Type::Volatile { .. });
    match fields {
        [value] if value.name == "value" => Some(Shape::Cell(value)),
        [word, value] if is_word(word) && value.name == "value" => Some(Shape::Cell(value)),
        _ => None,
    }
}

/// Types of `durum.hpp`, by what their mangled names have behind the namespace.
fn cpp<'d>(name: &str, fields: &'d [Field<usize>], of: &'d Descriptor) -> Option<Shape<'d>> {
    if name.starts_with("6detail4cellI") {
        return cell(fields);
    }
    if name.starts_with("3mapI") {
        let (root, line) = pointer(fields, "root_")?;
        binary_node(of.line(line?)?)?;
        return (fields.len() == 2).then_some(Shape::BinaryMap {
            root,
            len: word(fields, "size_")?,
            line: line?,
        });
    }
    let is_text = name == "6stringE";
    let (buffer, line) = pointer(fields, "first_")?;
    let Shape::Cell(element) = shape(of.line(line?)?, of) else {
        return None;
    };
    word(fields, "capacity_")?;
    let is_fitting = match is_text {
        true => element.ty == Type::Primitive(Primitive::I8),
        false => name.starts_with("6vectorI"),
    };
    (is_fitting && fields.len() == 3).then_some(Shape::Vector {
        buffer,
        len: word(fields, "size_")?,
        line,
        is_text,
    })
}

/// A node of a map of C++.
#[derive(Clone, Copy, Debug)]
pub(super) struct BinaryNode<'d> {
    pub(super) entry: &'d Field<usize>,
    pub(super) key: &'d Field<usize>,
    pub(super) value: &'d Field<usize>,
    pub(super) left: u64,
    pub(super) right: u64,
}

/// The parts of a type that is the node of a map of C++.
pub(super) fn binary_node(ty: &Type<usize>) -> Option<BinaryNode<'_>> {
    let Type::Struct(Struct { fields, .. }) = ty else {
        return None;
    };
    let named = |fields: &'_ [Field<usize>], name| fields.iter().position(|it| it.name == name);
    let entry = fields.get(named(fields, "entry")?)?;
    let Type::Struct(Struct { fields: pair, .. }) = &entry.ty else {
        return None;
    };
    Some(BinaryNode {
        entry,
        key: pair.get(named(pair, "first")?)?,
        value: pair.get(named(pair, "second")?)?,
        left: pointer(fields, "left")?.0,
        right: pointer(fields, "right")?.0,
    })
}

/// An allocation of NVL-C: what its runtime keeps, and the elements.
fn of_nvl(fields: &[Field<usize>]) -> Option<Shape<'_>> {
    let names = [
        "count", "next", "previous", "weak", "strong", "state", "data",
    ];
    let fits = fields.iter().map(|field| &*field.name).eq(names);
    fits.then(|| fields.last()).flatten().map(Shape::Cell)
}

/// How far into an object pointers lead that mean the whole: past what the runtime of NVL-C keeps.
pub(super) fn start_of(descriptor: &Descriptor) -> u64 {
    match descriptor.root() {
        Type::Struct(Struct { name, fields, .. }) if name.starts_with("nvl ") => {
            match of_nvl(fields) {
                Some(Shape::Cell(data)) => data.offset,
                _ => 0,
            }
        }
        _ => 0,
    }
}

/// What the typed interface keeps beside the root of a program: objects whose counts have ended, and that it was made.
fn root(fields: &[Field<usize>]) -> Option<Shape<'_>> {
    word(fields, "is_made")?;
    pointer(fields, "limbo")?;
    let value = fields.iter().find(|field| field.name == "value");
    value.filter(|_| fields.len() == 3).map(Shape::Cell)
}

/// A heap of NVL-C is what its program has set as its root: the runtime keeps the rest for itself.
fn heap_of_nvl(fields: &[Field<usize>]) -> Option<Shape<'_>> {
    word(fields, "version")?;
    let root = fields.iter().find(|field| field.name == "root");
    root.filter(|_| fields.len() == 4).map(Shape::Cell)
}

/// The objects of a pool that a program of C++ has asked for by their types (`durum/pool.hpp`): which types these are
/// their pointers tell.
fn objects(fields: &[Field<usize>]) -> Option<Shape<'_>> {
    match fields {
        [types, objects] if types.name == "types" && objects.name == "objects" => {
            Some(Shape::Objects(objects))
        }
        _ => None,
    }
}

fn option(fields: &[Field<usize>]) -> Option<Shape<'_>> {
    match fields {
        [some] if some.name == "some" && matches!(some.ty, Type::Pointer { .. }) => {
            Some(Shape::OptionalPointer(some))
        }
        _ => None,
    }
}

fn counted(fields: &[Field<usize>]) -> Option<Shape<'_>> {
    let strong = word(fields, "strong")?;
    let is_counts = strong == 0 && word(fields, "weak") == Some(8);
    let value = fields.iter().find(|field| field.name == "value");
    let fits = fields.len() == 2 + usize::from(value.is_some());
    (is_counts && fits).then_some(Shape::Counted { strong, value })
}

/// The field by which objects of a struct make a chain, and where in the object the pointer lies: the one strong
/// pointer in it, also in a cell or option, that leads to the same type.
pub(super) fn link(descriptor: &Descriptor) -> Option<(&Field<usize>, u64)> {
    let Type::Struct(Struct { fields, .. }) = descriptor.root() else {
        return None;
    };
    let links = fields.iter().filter_map(|field| {
        let at = link_in(&field.ty, descriptor)?;
        Some((field, field.offset + at))
    });
    let mut links = links.take(2);
    let link = links.next()?;
    links.next().is_none().then_some(link)
}

fn link_in(ty: &Type<usize>, of: &Descriptor) -> Option<u64> {
    match (ty, shape(ty, of)) {
        (
            Type::Pointer {
                strength: Strength::Strong,
                target: Some(0),
            },
            _,
        ) => Some(0),
        (_, Shape::Cell(inner) | Shape::OptionalPointer(inner)) => {
            Some(inner.offset + link_in(&inner.ty, of)?)
        }
        _ => None,
    }
}
