//! A type as both directions go over it: found once, gone over for each object.

use crate::types::{Count, Descriptor, Field, Primitive, Struct, Type, TypeError, says};

/// How the objects of a type are written and read.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(super) root: Part,
    /// Bytes of one, without those of a tail.
    pub(super) size: u64,
    pub(super) has_tail: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Part {
    Number(Primitive),
    Pointer,
    /// So many bytes of text, or of others.
    Bytes(Repeats),
    /// Bytes of no type, among which words are pointers: those that say so.
    Words,
    /// What means nothing later, or nothing yet: not said, and zero.
    Unsaid,
    Struct(Members),
    Variants {
        tag_offset: usize,
        tag_width: usize,
        size: usize,
        /// Whether any case holds pointers, which nobody finds where the tag is none.
        has_pointers: bool,
        cases: Vec<(Option<u64>, String, Members)>,
    },
    Array {
        element: Box<Part>,
        stride: usize,
        count: Repeats,
        /// Every byte of an element says something: an element whose bytes are zero is as good as its value.
        is_dense: bool,
    },
}

/// Fields, without those of which nothing is said.
#[derive(Clone, Debug)]
pub(super) struct Members(pub(super) Vec<Member>);

#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Its name as JSON has it, between quotes.
    pub(super) name: String,
    pub(super) offset: usize,
    pub(super) part: Part,
}

/// How many elements there are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Repeats {
    Fixed(usize),
    Tail,
    /// As many as the number says that lies so far behind the start of the struct.
    Length {
        offset: usize,
        width: usize,
    },
}

/// A name as JSON has it: names of types hold no quotes, backslashes or control characters of ASCII.
fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

impl Plan {
    /// How objects of a type are written and read.
    ///
    /// # Errors
    /// None for a descriptor that was checked.
    pub fn of(descriptor: &Descriptor) -> Result<Self, TypeError> {
        let layout = descriptor.layout();
        Ok(Self {
            root: part(descriptor.root(), &[])?,
            size: layout.size,
            has_tail: layout.has_tail,
        })
    }

    /// How objects of no type are written and read: as bytes.
    pub fn untyped() -> Self {
        Self {
            root: Part::Bytes(Repeats::Tail),
            size: 0,
            has_tail: true,
        }
    }

    /// How objects of no type are written and read whose words are pointers where they are addresses of objects.
    pub fn untyped_with_pointers() -> Self {
        Self {
            root: Part::Words,
            ..Self::untyped()
        }
    }

    /// How many such objects lie in so many bytes: more than one where an object was allocated as a row.
    pub(super) fn row(&self, bytes: usize) -> Option<usize> {
        let size = usize::try_from(self.size).ok()?;
        match self.has_tail || size == 0 {
            _ if bytes < size => None,
            true => Some(1),
            false => Some(bytes / size),
        }
    }
}

/// A word that is put in the place of another.
type Replace<'r> = dyn FnMut(u64) -> u64 + 'r;

impl Plan {
    /// Has `replace` replace each pointer that is not null, in the bytes of an object that were read of a value. Where
    /// those of objects without a type are, nobody knows later: it was told when the value was read.
    pub fn replace_pointers(&self, bytes: &mut [u8], replace: &mut Replace<'_>) {
        let stride = length(self.size);
        for index in 0..self.row(bytes.len()).unwrap_or(0) {
            replace_in(&self.root, index * stride, 0, bytes, replace);
        }
    }

    /// Whether the type says where its objects hold pointers.
    pub fn has_pointers(&self) -> bool {
        holds_pointers(&self.root)
    }
}

fn holds_pointers(part: &Part) -> bool {
    let any = |members: &Members| members.0.iter().any(|member| holds_pointers(&member.part));
    match part {
        Part::Pointer => true,
        Part::Struct(members) => any(members),
        Part::Variants { has_pointers, .. } => *has_pointers,
        Part::Array { element, .. } => holds_pointers(element),
        Part::Number(_) | Part::Bytes(_) | Part::Words | Part::Unsaid => false,
    }
}

/// A number of so many bytes.
pub(super) fn word_at(bytes: &[u8], at: usize, width: usize) -> Option<u64> {
    let found = bytes.get(at..at.checked_add(width)?)?;
    let mut word = [0; 8];
    word.get_mut(..width)?.copy_from_slice(found);
    Some(u64::from_le_bytes(word))
}

fn replace_in(part: &Part, at: usize, base: usize, bytes: &mut [u8], replace: &mut Replace<'_>) {
    let of_members = |members: &Members, bytes: &mut [u8], replace: &mut Replace<'_>| {
        for member in &members.0 {
            replace_in(&member.part, at + member.offset, at, bytes, replace);
        }
    };
    match part {
        Part::Number(_) | Part::Bytes(_) | Part::Words | Part::Unsaid => {}
        Part::Pointer => {
            if let Some(word) = word_at(bytes, at, 8).filter(|word| *word != 0)
                && let Some(place) = bytes.get_mut(at..at + 8)
            {
                place.copy_from_slice(&replace(word).to_le_bytes());
            }
        }
        Part::Struct(members) => of_members(members, bytes, replace),
        Part::Variants {
            tag_offset,
            tag_width,
            has_pointers: true,
            cases,
            ..
        } => {
            let tag = word_at(bytes, at + tag_offset, *tag_width);
            // Nothing is stored where there is no such case.
            if let Some((.., members)) =
                tag.and_then(|tag| cases.iter().find(|(number, ..)| says(*number, tag)))
            {
                of_members(members, bytes, replace);
            }
        }
        Part::Variants { .. } => {}
        Part::Array {
            element,
            stride,
            count,
            ..
        } if holds_pointers(element) => {
            let room = bytes.len().saturating_sub(at) / (*stride).max(1);
            let count = match *count {
                Repeats::Fixed(count) => count,
                Repeats::Tail => room,
                Repeats::Length { offset, width } => {
                    let count = word_at(bytes, base + offset, width).unwrap_or(0);
                    usize::try_from(count).unwrap_or(usize::MAX)
                }
            };
            for index in 0..count.min(room) {
                replace_in(element, at + index * stride, at, bytes, replace);
            }
        }
        Part::Array { .. } => {}
    }
}

fn length(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

fn part(ty: &Type<usize>, siblings: &[Field<usize>]) -> Result<Part, TypeError> {
    Ok(match ty {
        Type::Primitive(primitive) => Part::Number(*primitive),
        Type::Pointer { .. } => Part::Pointer,
        Type::Opaque { size, .. } => Part::Bytes(Repeats::Fixed(length(*size))),
        Type::Volatile { .. } | Type::Reserved { .. } => Part::Unsaid,
        Type::Struct(Struct { fields, .. }) => Part::Struct(members(fields, fields)?),
        Type::Variants(it) => Part::Variants {
            tag_offset: length(it.tag_offset),
            tag_width: length(it.tag_width),
            size: length(it.size),
            has_pointers: ty.has_pointers(),
            cases: it
                .cases
                .iter()
                .map(|case| {
                    let members = members(&case.fields, &[])?;
                    Ok((case.discriminant, quoted(&case.name), members))
                })
                .collect::<Result<_, TypeError>>()?,
        },
        Type::Array { element, count } => {
            let count = match count {
                Count::Fixed(count) => Repeats::Fixed(length(*count)),
                Count::Tail => Repeats::Tail,
                Count::Field(name) => length_field(name, siblings)?,
            };
            match **element {
                Type::Primitive(Primitive::U8 | Primitive::I8) => Part::Bytes(count),
                _ => Part::Array {
                    stride: length(element.layout()?.size),
                    is_dense: is_dense(element)?,
                    element: Box::new(part(element, &[])?),
                    count,
                },
            }
        }
    })
}

fn length_field(name: &str, siblings: &[Field<usize>]) -> Result<Repeats, TypeError> {
    match siblings.iter().find(|field| field.name == name) {
        Some(Field {
            offset,
            ty: Type::Primitive(primitive),
            ..
        }) => Ok(Repeats::Length {
            offset: length(*offset),
            width: length(primitive.size()),
        }),
        _ => Err(TypeError::Undeclared {
            name: name.to_owned(),
            referrer: "array".to_owned(),
        }),
    }
}

fn members(fields: &[Field<usize>], siblings: &[Field<usize>]) -> Result<Members, TypeError> {
    let said = fields
        .iter()
        .filter(|field| !matches!(field.ty, Type::Volatile { .. } | Type::Reserved { .. }));
    let members = said.map(|field| {
        Ok(Member {
            name: quoted(&field.name),
            offset: length(field.offset),
            part: part(&field.ty, siblings)?,
        })
    });
    members.collect::<Result<_, TypeError>>().map(Members)
}

/// Whether each byte of a type belongs to a value, and no two sets of bytes to the same.
fn is_dense(ty: &Type<usize>) -> Result<bool, TypeError> {
    Ok(match ty {
        Type::Primitive(_) | Type::Pointer { .. } | Type::Opaque { .. } => true,
        Type::Volatile { .. } | Type::Reserved { .. } | Type::Variants(_) => false,
        Type::Array { element, .. } => is_dense(element)?,
        Type::Struct(Struct { size, fields, .. }) => {
            let mut covered = 0;
            for field in fields {
                if !is_dense(&field.ty)? {
                    return Ok(false);
                }
                covered += field.ty.layout()?.size;
            }
            covered == *size
        }
    })
}
