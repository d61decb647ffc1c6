//! Where a type's pointers and its volatile parts lie: found once for a type, walked for each object.

use super::check::TypeError;
use super::tree::{Case, Count, Field, Strength, Struct, Type, Variants, says};

/// An object whose bytes do not fit its type.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Fewer bytes than the type has.
    #[error("object of {found} bytes, but its type needs {needed} up to offset {offset}")]
    Short {
        /// Where the missing part begins.
        offset: u64,
        /// Bytes needed.
        needed: u64,
        /// Bytes there are.
        found: u64,
    },
    /// A tag that says nothing.
    #[error("the tag at offset {offset} of the object is {found}, which is no case of its type")]
    Case {
        /// Where the tag lies.
        offset: u64,
        /// The tag.
        found: u64,
    },
    /// A length field that says more than the object has room for.
    #[error("the length at offset {offset} of the object is {found}, but only {room} elements fit")]
    Length {
        /// Where the length field lies.
        offset: u64,
        /// The length.
        found: u64,
        /// What fits.
        room: u64,
    },
}

/// A pointer in an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PointerAt {
    /// Where in the object it lies.
    pub offset: u64,
    /// Whether it owns its target.
    pub strength: Strength,
    /// The line of the descriptor's text with the type it points to; `None` for anything.
    pub target: Option<usize>,
}

/// A part of an object whose bytes mean nothing once the program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolatileAt {
    /// Where in the object it lies.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
}

/// A part of an object whose bytes are zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedAt {
    /// Where in the object it lies.
    pub offset: u64,
    /// Its bytes.
    pub size: u64,
}

/// What is looked for in types.
pub(crate) trait Part: Copy {
    /// The part that a type is, if it is one, at `offset`.
    fn of(ty: &Type<usize>, offset: u64) -> Option<Self>;
    /// The same part, so much further on.
    fn moved(self, by: u64) -> Self;
    /// Offset and size.
    fn place(&self) -> (u64, u64);
}

impl Part for PointerAt {
    fn of(ty: &Type<usize>, offset: u64) -> Option<Self> {
        match ty {
            Type::Pointer { strength, target } => Some(Self {
                offset,
                strength: *strength,
                target: *target,
            }),
            _ => None,
        }
    }

    fn moved(self, by: u64) -> Self {
        let offset = self.offset + by;
        Self { offset, ..self }
    }

    fn place(&self) -> (u64, u64) {
        (self.offset, 8)
    }
}

impl Part for VolatileAt {
    fn of(ty: &Type<usize>, offset: u64) -> Option<Self> {
        match *ty {
            Type::Volatile { size, .. } => Some(Self { offset, size }),
            _ => None,
        }
    }

    fn moved(self, by: u64) -> Self {
        let offset = self.offset + by;
        Self { offset, ..self }
    }

    fn place(&self) -> (u64, u64) {
        (self.offset, self.size)
    }
}

impl Part for ReservedAt {
    fn of(ty: &Type<usize>, offset: u64) -> Option<Self> {
        match *ty {
            Type::Reserved { size, .. } => Some(Self { offset, size }),
            _ => None,
        }
    }

    fn moved(self, by: u64) -> Self {
        let offset = self.offset + by;
        Self { offset, ..self }
    }

    fn place(&self) -> (u64, u64) {
        (self.offset, self.size)
    }
}

/// What has to be done to find all such parts of a type: only what holds any. Offsets count from a base that moves with
/// the elements of arrays.
#[derive(Clone, Debug)]
pub(crate) enum Step<P> {
    Part(P),
    Repeat {
        offset: u64,
        stride: u64,
        count: Repeats,
        steps: Vec<Step<P>>,
    },
    Switch {
        tag_offset: u64,
        tag_width: u64,
        cases: Vec<(Option<u64>, Vec<Step<P>>)>,
    },
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Repeats {
    Fixed(u64),
    Tail,
    Length { offset: u64, width: u64 },
}

pub(crate) fn compile<P: Part>(ty: &Type<usize>) -> Result<Vec<Step<P>>, TypeError> {
    compile_by(ty, &P::of)
}

/// As [`compile`], for the parts that `of` finds.
pub(crate) fn compile_by<P: Part>(
    ty: &Type<usize>,
    of: &dyn Fn(&Type<usize>, u64) -> Option<P>,
) -> Result<Vec<Step<P>>, TypeError> {
    let mut steps = Vec::new();
    compile_into((ty, 0), (&[], 0), of, &mut steps)?;
    Ok(steps)
}

/// `base` is where `ty` begins; `siblings` are the fields of the struct that begins at `struct_base`.
fn compile_into<P: Part>(
    (ty, base): (&Type<usize>, u64),
    (siblings, struct_base): (&[Field<usize>], u64),
    of: &dyn Fn(&Type<usize>, u64) -> Option<P>,
    steps: &mut Vec<Step<P>>,
) -> Result<(), TypeError> {
    steps.extend(of(ty, base).map(Step::Part));
    match ty {
        Type::Primitive(_)
        | Type::Opaque { .. }
        | Type::Volatile { .. }
        | Type::Reserved { .. }
        | Type::Pointer { .. } => {}
        Type::Struct(Struct { fields, .. }) => {
            for field in fields {
                let place = (&field.ty, base + field.offset);
                compile_into(place, (fields, base), of, steps)?;
            }
        }
        Type::Array { element, count } => {
            let mut inner = Vec::new();
            compile_into((element, 0), (&[], 0), of, &mut inner)?;
            if !inner.is_empty() {
                let count = repeats(count, siblings, struct_base)?;
                steps.push(Step::Repeat {
                    offset: base,
                    stride: element.layout()?.size,
                    count,
                    steps: inner,
                });
            }
        }
        Type::Variants(Variants {
            tag_offset,
            tag_width,
            cases,
            ..
        }) => {
            let mut inner = Vec::new();
            for case in cases {
                let mut steps = Vec::new();
                for field in &case.fields {
                    let place = (&field.ty, base + field.offset);
                    compile_into(place, (&[], base), of, &mut steps)?;
                }
                inner.push((case.discriminant, steps));
            }
            if inner.iter().any(|(_, steps)| !steps.is_empty()) {
                steps.push(Step::Switch {
                    tag_offset: base + tag_offset,
                    tag_width: *tag_width,
                    cases: inner,
                });
            }
        }
    }
    Ok(())
}

/// How often an array repeats; its length field is found among `siblings`.
pub(super) fn repeats(
    count: &Count,
    siblings: &[Field<usize>],
    struct_base: u64,
) -> Result<Repeats, TypeError> {
    Ok(match count {
        Count::Fixed(count) => Repeats::Fixed(*count),
        Count::Tail => Repeats::Tail,
        Count::Field(name) => match siblings.iter().find(|field| field.name == *name) {
            Some(Field {
                offset,
                ty: Type::Primitive(primitive),
                ..
            }) => Repeats::Length {
                offset: struct_base + offset,
                width: primitive.size(),
            },
            _ => {
                return Err(TypeError::Undeclared {
                    name: name.clone(),
                    referrer: "array".into(),
                });
            }
        },
    })
}

/// The number of elements of `stride` bytes from `start` in an object.
pub(crate) fn count_elements(
    repeats: Repeats,
    base: u64,
    start: u64,
    stride: u64,
    bytes: &[u8],
) -> Result<u64, ValueError> {
    let room = (bytes.len() as u64).saturating_sub(start) / stride.max(1);
    match repeats {
        Repeats::Tail => Ok(room),
        Repeats::Fixed(count) if count <= room => Ok(count),
        Repeats::Fixed(count) => Err(ValueError::Short {
            offset: start,
            needed: start.saturating_add(stride.saturating_mul(count)),
            found: bytes.len() as u64,
        }),
        Repeats::Length { offset, width } => {
            let found = read_unsigned(bytes, base + offset, width)?;
            if found > room {
                return Err(ValueError::Length {
                    offset: base + offset,
                    found,
                    room,
                });
            }
            Ok(found)
        }
    }
}

/// `width` bytes at `offset`, little-endian, zero-extended.
pub(crate) fn read_unsigned(bytes: &[u8], offset: u64, width: u64) -> Result<u64, ValueError> {
    let place = slice(bytes, offset, width)?;
    let mut word = [0; 8];
    for (byte, found) in word.iter_mut().zip(place) {
        *byte = *found;
    }
    Ok(u64::from_le_bytes(word))
}

/// The case that the tag says of variants that begin at `base`.
pub(super) fn case_at<'a>(
    variants: &'a Variants<usize>,
    bytes: &[u8],
    base: u64,
) -> Result<&'a Case<usize>, ValueError> {
    let offset = base + variants.tag_offset;
    let found = read_unsigned(bytes, offset, variants.tag_width)?;
    let case = variants.case_of(found);
    case.ok_or(ValueError::Case { offset, found })
}

pub(super) fn slice(bytes: &[u8], offset: u64, len: u64) -> Result<&[u8], ValueError> {
    let end = offset.saturating_add(len);
    let range = usize::try_from(offset).ok().zip(usize::try_from(end).ok());
    range
        .and_then(|(from, to)| bytes.get(from..to))
        .ok_or(ValueError::Short {
            offset,
            needed: end,
            found: bytes.len() as u64,
        })
}

/// Whether nothing is stored in a place of an array: a collection that has no element there keeps it zero, whether or
/// not zero is a value of the elements' type.
fn is_vacant(bytes: &[u8], offset: u64, stride: u64) -> bool {
    slice(bytes, offset, stride).is_ok_and(|place| place.iter().all(|byte| *byte == 0))
}

pub(crate) fn walk<P: Part>(
    steps: &[Step<P>],
    base: u64,
    bytes: &[u8],
    visit: &mut impl FnMut(P),
) -> Result<(), ValueError> {
    for step in steps {
        match step {
            Step::Part(part) => {
                let part = part.moved(base);
                let (offset, size) = part.place();
                slice(bytes, offset, size)?;
                visit(part);
            }
            Step::Repeat {
                offset,
                stride,
                count,
                steps,
            } => {
                let start = base + offset;
                for index in 0..count_elements(*count, base, start, *stride, bytes)? {
                    let at = start + index * stride;
                    match walk(steps, at, bytes, visit) {
                        Err(ValueError::Case { .. }) if is_vacant(bytes, at, *stride) => {}
                        result => result?,
                    }
                }
            }
            Step::Switch {
                tag_offset,
                tag_width,
                cases,
            } => {
                let tag = read_unsigned(bytes, base + tag_offset, *tag_width)?;
                let mut cases = cases.iter();
                let Some((_, steps)) = cases.find(|(number, _)| says(*number, tag)) else {
                    return Err(ValueError::Case {
                        offset: base + tag_offset,
                        found: tag,
                    });
                };
                walk(steps, base, bytes, visit)?;
            }
        }
    }
    Ok(())
}
