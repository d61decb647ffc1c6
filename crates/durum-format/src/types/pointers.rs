//! Where the pointers in an object are, and which field an offset is.

use super::check::TypeError;
use super::descriptor::Descriptor;
use super::tree::{Count, Field, Strength, Struct, Type, Variants};

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

/// Which part of an object an offset is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath<'a> {
    /// Names and indices, as in `"root.items[3].value"`; empty for an object that is one plain value.
    pub text: String,
    /// The innermost type at the offset.
    pub ty: &'a Type<usize>,
    /// Where in the object that part begins.
    pub offset: u64,
}

/// What has to be done to find all pointers of a type: only the parts that hold any. Offsets count from a base that
/// moves with the elements of arrays.
#[derive(Clone, Debug)]
pub(super) enum Step {
    Pointer {
        offset: u64,
        strength: Strength,
        target: Option<usize>,
    },
    Repeat {
        offset: u64,
        stride: u64,
        count: Repeats,
        steps: Vec<Step>,
    },
    Switch {
        tag_offset: u64,
        tag_width: u64,
        cases: Vec<(u64, Vec<Step>)>,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Repeats {
    Fixed(u64),
    Tail,
    Length { offset: u64, width: u64 },
}

pub(super) fn compile(ty: &Type<usize>) -> Result<Vec<Step>, TypeError> {
    let mut steps = Vec::new();
    compile_into(ty, 0, &[], 0, &mut steps)?;
    Ok(steps)
}

/// `base` is where `ty` begins; `siblings` are the fields of the struct that begins at `struct_base`.
fn compile_into(
    ty: &Type<usize>,
    base: u64,
    siblings: &[Field<usize>],
    struct_base: u64,
    steps: &mut Vec<Step>,
) -> Result<(), TypeError> {
    match ty {
        Type::Primitive(_) | Type::Opaque { .. } | Type::Volatile { .. } => {}
        Type::Pointer { strength, target } => {
            steps.push(Step::Pointer {
                offset: base,
                strength: *strength,
                target: *target,
            });
        }
        Type::Struct(Struct { fields, .. }) => {
            for field in fields {
                compile_into(&field.ty, base + field.offset, fields, base, steps)?;
            }
        }
        Type::Array { element, count } => {
            let mut inner = Vec::new();
            compile_into(element, 0, &[], 0, &mut inner)?;
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
                    compile_into(&field.ty, base + field.offset, &[], base, &mut steps)?;
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
pub(super) fn count_elements(
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
pub(super) fn read_unsigned(bytes: &[u8], offset: u64, width: u64) -> Result<u64, ValueError> {
    let place = slice(bytes, offset, width)?;
    let mut word = [0; 8];
    for (byte, found) in word.iter_mut().zip(place) {
        *byte = *found;
    }
    Ok(u64::from_le_bytes(word))
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

impl Descriptor {
    /// The pointers in an object of this type, in the order of their offsets (of their fields, where cases differ). An
    /// object that is longer than its type, which then has no tail, is a row of such objects.
    ///
    /// # Errors
    /// [`ValueError`] where the bytes do not fit the type; no pointer is given then.
    pub fn pointers(
        &self,
        bytes: &[u8],
    ) -> Result<impl Iterator<Item = PointerAt> + use<>, ValueError> {
        let mut found = Vec::new();
        self.visit_pointers(bytes, |pointer| found.push(pointer))?;
        Ok(found.into_iter())
    }

    /// As [`Descriptor::pointers`], without a list.
    ///
    /// # Errors
    /// [`ValueError`]; pointers before the place that does not fit were already given.
    pub fn visit_pointers(
        &self,
        bytes: &[u8],
        mut visit: impl FnMut(PointerAt),
    ) -> Result<(), ValueError> {
        let row = self.row(bytes)?;
        if self.has_pointers() {
            for index in 0..row {
                walk(&self.steps, index * self.layout().size, bytes, &mut visit)?;
            }
        }
        Ok(())
    }

    /// How many objects of this type lie in `bytes`: more than one where an object was allocated as a row.
    ///
    /// # Errors
    /// [`ValueError::Short`] where not even one does.
    pub fn row(&self, bytes: &[u8]) -> Result<u64, ValueError> {
        let layout = self.layout();
        let found = bytes.len() as u64;
        if found < layout.size {
            return Err(ValueError::Short {
                offset: 0,
                needed: layout.size,
                found,
            });
        }
        Ok(if layout.has_tail || layout.size == 0 {
            1
        } else {
            found / layout.size
        })
    }

    /// Which part of an object the byte at `offset` belongs to. Padding belongs to what surrounds it.
    ///
    /// # Errors
    /// [`ValueError`] where the bytes do not fit the type, or `offset` is beyond them.
    pub fn path(&self, bytes: &[u8], offset: u64) -> Result<FieldPath<'_>, ValueError> {
        let row = self.row(bytes)?;
        slice(bytes, offset, 1)?;
        let size = self.layout().size;
        let mut path = FieldPath {
            text: String::new(),
            ty: self.root(),
            offset: 0,
        };
        if row > 1 {
            let index = (offset / size).min(row - 1);
            path.text = format!("[{index}]");
            path.offset = index * size;
        }
        descend(&mut path, bytes, offset)?;
        Ok(path)
    }
}

fn walk(
    steps: &[Step],
    base: u64,
    bytes: &[u8],
    visit: &mut impl FnMut(PointerAt),
) -> Result<(), ValueError> {
    for step in steps {
        match step {
            Step::Pointer {
                offset,
                strength,
                target,
            } => {
                let offset = base + offset;
                slice(bytes, offset, 8)?;
                visit(PointerAt {
                    offset,
                    strength: *strength,
                    target: *target,
                });
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
                let Some((_, steps)) = cases.iter().find(|(discriminant, _)| *discriminant == tag)
                else {
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

/// Goes from `path` inwards as far as something lies at `offset`.
fn descend<'a>(path: &mut FieldPath<'a>, bytes: &[u8], offset: u64) -> Result<(), ValueError> {
    let mut siblings: (&'a [Field<usize>], u64) = (&[], 0);
    loop {
        let base = path.offset;
        match path.ty {
            Type::Struct(Struct { fields, .. }) => {
                if !enter_field(path, fields, base, offset) {
                    return Ok(());
                }
                siblings = (fields, base);
            }
            Type::Variants(Variants {
                tag_offset,
                tag_width,
                cases,
                ..
            }) => {
                let tag = read_unsigned(bytes, base + tag_offset, *tag_width)?;
                let Some(case) = cases.iter().find(|case| case.discriminant == tag) else {
                    return Err(ValueError::Case {
                        offset: base + tag_offset,
                        found: tag,
                    });
                };
                if !path.text.is_empty() {
                    path.text.push('.');
                }
                path.text.push_str(&case.name);
                if !enter_field(path, &case.fields, base, offset) {
                    return Ok(());
                }
            }
            Type::Array { element, count } => {
                let stride = element.layout().map_or(1, |layout| layout.size);
                // The tree was checked when the descriptor was made, so the length field is there.
                let Ok(repeats) = repeats(count, siblings.0, siblings.1) else {
                    return Ok(());
                };
                let count = count_elements(repeats, 0, base, stride, bytes)?;
                let index = offset.saturating_sub(base) / stride.max(1);
                if index >= count {
                    return Ok(());
                }
                path.text.push_str(&format!("[{index}]"));
                path.offset = base + index * stride;
                path.ty = element;
            }
            Type::Primitive(_)
            | Type::Pointer { .. }
            | Type::Opaque { .. }
            | Type::Volatile { .. } => return Ok(()),
        }
    }
}

/// Moves `path` into the field that covers `offset`, if one does.
fn enter_field<'a>(
    path: &mut FieldPath<'a>,
    fields: &'a [Field<usize>],
    base: u64,
    offset: u64,
) -> bool {
    let covers = |field: &&Field<usize>| {
        let start = base + field.offset;
        // An open array has no layout of its own, apart from the struct that has its length.
        let end = field
            .ty
            .layout()
            .map_or(start, |layout| start + layout.size);
        start <= offset && (offset < end || ends_in_open_array(&field.ty))
    };
    let Some(field) = fields.iter().rev().find(covers) else {
        return false;
    };
    if !path.text.is_empty() {
        path.text.push('.');
    }
    path.text.push_str(&field.name);
    path.offset = base + field.offset;
    path.ty = &field.ty;
    true
}

/// Whether elements may follow the type's own bytes.
fn ends_in_open_array(ty: &Type<usize>) -> bool {
    match ty {
        Type::Struct(Struct { fields, .. }) => fields
            .last()
            .is_some_and(|field| ends_in_open_array(&field.ty)),
        ty => ty.is_open_array(),
    }
}
