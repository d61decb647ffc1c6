//! What makes a tree a possible type: names, sizes, offsets, alignments.

use std::collections::HashSet;

use super::tree::{Case, Count, Field, Struct, Type, Variants};
use crate::consts::UNIT;

/// Types nest no deeper than this: deeper texts would overflow the stack of who reads them.
pub const DEPTH_MAX: usize = 32;
/// Bytes of a name.
pub const NAME_MAX: usize = 255;
/// The most former names that one thing has: who compares types tries each.
pub const FORMERS_MAX: usize = 16;
/// Sizes of types stay below this.
pub const TYPE_SIZE_END: u64 = 1 << 48;

/// Why a type is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TypeError {
    /// A name that cannot be written down.
    #[error(
        "type descriptor: the name {name:?} must have 1 to 255 bytes, none of them a control character, '\"' or '\\'"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// Sizes, offsets or alignments that contradict each other.
    #[error("type descriptor: {path}: {problem}")]
    Layout {
        /// Where in the type.
        path: String,
        /// What contradicts what.
        problem: String,
    },
    /// A pointer to a type that nobody declared.
    #[error("type descriptor: nobody declared the type {name:?}, to which {referrer:?} points")]
    Undeclared {
        /// The missing type.
        name: String,
        /// Who points to it.
        referrer: String,
    },
    /// Two declarations of the same name.
    #[error(
        "type descriptor: {name:?} is declared twice, with different contents: rename one of the types"
    )]
    Conflict {
        /// The name.
        name: String,
    },
    /// A text that does not follow the grammar.
    #[error("type descriptor: line {line}, byte {column}: expected {expected}")]
    Syntax {
        /// Line, from 1.
        line: usize,
        /// Byte in the line, from 1.
        column: usize,
        /// What could have stood there.
        expected: &'static str,
    },
    /// A text that says the same as another one, which is the canonical one.
    #[error("type descriptor: the text is not canonical; it should read {expected:?}")]
    NotCanonical {
        /// The canonical text.
        expected: String,
    },
    /// A type that nests too deep, or a text that is too long.
    #[error("type descriptor: {what} exceeds {limit}")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// The limit.
        limit: usize,
    },
}

/// Size and alignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bytes, a multiple of `align`; elements of a tail are not counted.
    pub size: u64,
    /// Alignment, a power of two.
    pub align: u64,
    /// Whether elements may follow up to the object's end.
    pub has_tail: bool,
}

impl Layout {
    fn plain(size: u64, align: u64) -> Self {
        Self {
            size,
            align,
            has_tail: false,
        }
    }

    fn tail(align: u64) -> Self {
        Self {
            size: 0,
            align,
            has_tail: true,
        }
    }
}

impl<T> Type<T> {
    /// Checks the type and gives its size and alignment.
    ///
    /// # Errors
    /// What contradicts what.
    pub fn layout(&self) -> Result<Layout, TypeError> {
        self.checked_layout(&mut Vec::new(), 1, None)
    }

    /// `siblings`: the fields before this one in the same struct; only there may an array name its length.
    fn checked_layout<'a>(
        &'a self,
        path: &mut Vec<&'a str>,
        depth: usize,
        siblings: Option<&[Field<T>]>,
    ) -> Result<Layout, TypeError> {
        if depth > DEPTH_MAX {
            return Err(TypeError::TooLarge {
                what: "the depth of nested types",
                limit: DEPTH_MAX,
            });
        }
        match self {
            Self::Primitive(primitive) => Ok(Layout::plain(primitive.size(), primitive.size())),
            Self::Pointer { .. } => Ok(Layout::plain(8, 8)),
            Self::Opaque { size, align }
            | Self::Volatile { size, align }
            | Self::Reserved { size, align } => {
                check_size(path, *size, *align)?;
                Ok(Layout::plain(*size, *align))
            }
            Self::Array { element, count } => {
                path.push("element");
                let layout = element.checked_layout(path, depth + 1, None)?;
                path.pop();
                if layout.size == 0 || layout.has_tail {
                    return problem(path, "elements of an array need a size of their own");
                }
                match count {
                    Count::Fixed(count) => match layout.size.checked_mul(*count) {
                        Some(size) if size < TYPE_SIZE_END => Ok(Layout { size, ..layout }),
                        _ => problem(path, "the array is larger than any object"),
                    },
                    Count::Tail => Ok(Layout::tail(layout.align)),
                    Count::Field(length) => {
                        let mut siblings = siblings.unwrap_or_default().iter();
                        let found = siblings.find(|field| field.name == *length);
                        let counts =
                            |ty: &Self| matches!(ty, Self::Primitive(p) if p.is_unsigned());
                        if !found.is_some_and(|field| counts(&field.ty)) {
                            let what = format!(
                                "{length:?}, its length, is no earlier unsigned field of the same struct"
                            );
                            return problem(path, what);
                        }
                        Ok(Layout::tail(layout.align))
                    }
                }
            }
            Self::Struct(it) => {
                check_names(&it.name, &it.was)?;
                path.push(&it.name);
                let (size, align) = (it.size, it.align);
                check_size(path, size, align)?;
                let whole = Whole {
                    size,
                    align,
                    tag: None,
                    is_over_tag: false,
                };
                let has_tail = whole.check_fields(path, depth, &it.fields)?;
                path.pop();
                Ok(Layout {
                    has_tail,
                    ..Layout::plain(size, align)
                })
            }
            Self::Variants(variants) => {
                check_names(&variants.name, &variants.was)?;
                path.push(&variants.name);
                variants.check(path, depth)?;
                path.pop();
                Ok(Layout::plain(variants.size, variants.align))
            }
        }
    }

    /// Sorts fields by offset and cases by discriminant, and drops fields without bytes, which say nothing: the same
    /// type then has the same text whichever way it was declared.
    pub(super) fn normalize(&mut self) {
        match self {
            Self::Array { element, .. } => element.normalize(),
            Self::Struct(Struct {
                name, was, fields, ..
            }) => {
                normalize_names(name, was);
                normalize_fields(fields);
            }
            Self::Variants(Variants {
                name, was, cases, ..
            }) => {
                normalize_names(name, was);
                for case in cases.iter_mut() {
                    normalize_names(&case.name, &mut case.was);
                    normalize_fields(&mut case.fields);
                }
                cases.sort_by_key(|case| order(case.discriminant));
            }
            Self::Primitive(_)
            | Self::Pointer { .. }
            | Self::Opaque { .. }
            | Self::Volatile { .. }
            | Self::Reserved { .. } => {}
        }
    }
}

impl<T> Variants<T> {
    fn check<'a>(&'a self, path: &mut Vec<&'a str>, depth: usize) -> Result<(), TypeError> {
        check_size(path, self.size, self.align)?;
        let (tag, width) = (self.tag_offset, self.tag_width);
        if !matches!(width, 1 | 2 | 4 | 8) || !tag.is_multiple_of(width) {
            return problem(path, "the tag must have 1, 2, 4 or 8 bytes and be aligned");
        }
        let tag_end = tag.checked_add(width).filter(|&end| end <= self.size);
        let Some(tag_end) = tag_end else {
            return problem(path, "the tag does not lie in the type");
        };
        for (index, case) in self.cases.iter().enumerate() {
            check_names(&case.name, &case.was)?;
            let number = case.discriminant;
            if let Some(number) = number.filter(|number| width < 8 && number >> (8 * width) != 0) {
                let what = format!("discriminant {number} does not fit the tag");
                return problem(path, what);
            }
            let earlier = &self.cases[..index];
            let is_same = |other: &Case<T>| {
                other.discriminant == case.discriminant || other.name == case.name
            };
            if earlier.iter().any(is_same) {
                let what = format!("case {:?} stands there twice", case.name);
                return problem(path, what);
            }
            let is_larger = |other: &Case<T>| order(other.discriminant) > order(number);
            if earlier.last().is_some_and(is_larger) {
                let what = format!(
                    "case {:?} stands behind one with a larger discriminant",
                    case.name
                );
                return problem(path, what);
            }
            path.push(&case.name);
            let whole = Whole {
                size: self.size,
                align: self.align,
                tag: Some((tag, tag_end)),
                is_over_tag: number.is_none(),
            };
            whole.check_fields(path, depth, &case.fields)?;
            path.pop();
        }
        Ok(())
    }
}

/// Cases stand in the order of their numbers; the one for whatever else the tag says is the last.
fn order(discriminant: Option<u64>) -> (bool, Option<u64>) {
    (discriminant.is_none(), discriminant)
}

/// What the fields of a struct or of a case have to fit into.
struct Whole {
    size: u64,
    align: u64,
    /// Begin and end of the tag of variants.
    tag: Option<(u64, u64)>,
    /// Fields may lie over the tag: what it says is what they hold.
    is_over_tag: bool,
}

impl Whole {
    /// Checks fields in the order of their offsets; gives whether the last one is a tail.
    fn check_fields<'a, T>(
        &self,
        path: &mut Vec<&'a str>,
        depth: usize,
        fields: &'a [Field<T>],
    ) -> Result<bool, TypeError> {
        let mut end = 0;
        let mut has_tail = false;
        let mut names = HashSet::new();
        for (index, field) in fields.iter().enumerate() {
            check_names(&field.name, &field.was)?;
            path.push(&field.name);
            let offset = field.offset;
            if !names.insert(&field.name) {
                return problem(path, "a field of this name stands there twice");
            }
            if has_tail {
                return problem(path, "nothing may follow a tail");
            }
            let siblings = self.tag.is_none().then_some(&fields[..index]);
            let layout = field.ty.checked_layout(path, depth + 1, siblings)?;
            if layout.size == 0 && !layout.has_tail {
                return problem(path, "a field without bytes says nothing");
            }
            if layout.align > self.align || !offset.is_multiple_of(layout.align) {
                let what = format!(
                    "offset {offset} is not aligned to {}, or the whole is not",
                    layout.align
                );
                return problem(path, what);
            }
            if offset < end {
                let what = format!("offset {offset} lies before the end of the field before it");
                return problem(path, what);
            }
            end = offset.saturating_add(layout.size);
            if end > self.size {
                let what = format!(
                    "it ends at {end}, behind the {} bytes of the whole",
                    self.size
                );
                return problem(path, what);
            }
            has_tail = layout.has_tail;
            if let Some((tag, tag_end)) = self.tag {
                if has_tail {
                    return problem(path, "a case has no tail");
                }
                if offset < tag_end && tag < end && !self.is_over_tag {
                    return problem(path, "it lies over the tag");
                }
            }
            path.pop();
        }
        Ok(has_tail)
    }
}

fn normalize_fields<T>(fields: &mut Vec<Field<T>>) {
    for field in fields.iter_mut() {
        normalize_names(&field.name, &mut field.was);
        field.ty.normalize();
    }
    let is_empty = |layout: Layout| layout.size == 0 && !layout.has_tail;
    fields.retain(|field| !field.ty.layout().is_ok_and(is_empty));
    fields.sort_by_key(|field| field.offset);
}

fn normalize_names(name: &str, was: &mut Vec<String>) {
    was.retain(|former| former != name);
    was.sort();
    was.dedup();
}

/// Former names stand in order, each once, and none is the name.
fn check_names(name: &str, was: &[String]) -> Result<(), TypeError> {
    check_name(name)?;
    was.iter().try_for_each(|former| check_name(former))?;
    if was.len() > FORMERS_MAX {
        return Err(TypeError::TooLarge {
            what: "the number of former names of one thing",
            limit: FORMERS_MAX,
        });
    }
    let in_order = was.is_sorted_by(|one, next| one < next);
    match in_order && !was.iter().any(|former| former == name) {
        true => Ok(()),
        false => problem(&[name], "former names stand in order, each once"),
    }
}

pub(super) fn check_name(name: &str) -> Result<(), TypeError> {
    let fine = |char: char| !char.is_control() && char != '"' && char != '\\';
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(fine) {
        return Err(TypeError::Name {
            name: name.chars().take(NAME_MAX + 1).collect(),
        });
    }
    Ok(())
}

fn check_size(path: &[&str], size: u64, align: u64) -> Result<(), TypeError> {
    if !align.is_power_of_two() || align > UNIT {
        let what = format!("alignment {align} is not a power of two up to 2 MiB");
        return problem(path, what);
    }
    if !size.is_multiple_of(align) || size >= TYPE_SIZE_END {
        let what = format!("size {size} is not a multiple of its alignment {align} below 2^48");
        return problem(path, what);
    }
    Ok(())
}

fn problem<T>(path: &[&str], problem: impl Into<String>) -> Result<T, TypeError> {
    let path = match path {
        [] => "type".into(),
        path => path.join("."),
    };
    Err(TypeError::Layout {
        path,
        problem: problem.into(),
    })
}
