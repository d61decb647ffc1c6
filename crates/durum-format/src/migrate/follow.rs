//! Where in the new object a part of the old one is, to which a pointer leads.

use super::partners::{became, cases};
use super::parts::Conversion;
use crate::types::{Count, Descriptor, Field, Type, read_unsigned, says, was_bytes};

/// A part that is in no new object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// The way to it, from its type.
    pub path: String,
    /// Why.
    pub why: &'static str,
}

impl Conversion {
    /// Where in the new object the part at `offset` of an old one is. A pointer to `wanted`, a type of a new object's
    /// pointers, leads to the part of that type, if there is one there, as what begins at one place may be several
    /// parts. `bytes` gives those of the old object, where a case has to be known.
    ///
    /// # Errors
    /// [`Gone`].
    pub fn follow(
        &self,
        offset: u64,
        wanted: Option<(&Descriptor, usize)>,
        bytes: &mut dyn FnMut() -> Vec<u8>,
    ) -> Result<u64, Gone> {
        let layout = self.old.layout();
        let mut begin = 0;
        let mut to = 0;
        if !layout.has_tail && layout.size > 0 && offset >= layout.size {
            let index = offset / layout.size;
            (begin, to) = (index * layout.size, index * self.new.layout().size);
        }
        let wanted = wanted.and_then(|(of, line)| of.line(line));
        let mut follow = Follow {
            conversion: self,
            wanted,
            bytes,
            path: self.old.called(),
        };
        let found = follow.part((self.old.root(), begin), self.new.root(), offset - begin);
        match found {
            Ok(Some(found)) => Ok(to + found),
            // Nothing of that type begins there: whatever does.
            Ok(None) => {
                follow.wanted = None;
                let found = follow.part((self.old.root(), begin), self.new.root(), offset - begin);
                found.map(|found| to + found.unwrap_or(0))
            }
            Err(gone) => Err(gone),
        }
    }
}

struct Follow<'f> {
    conversion: &'f Conversion,
    wanted: Option<&'f Type<usize>>,
    bytes: &'f mut dyn FnMut() -> Vec<u8>,
    path: String,
}

impl Follow<'_> {
    /// Whether a new type is the one that is looked for.
    fn is_wanted(&self, new: &Type<usize>) -> bool {
        let Some(wanted) = self.wanted else {
            return true;
        };
        match (wanted.name(), new.name()) {
            (Some(wanted), Some(name)) => wanted == name,
            (None, None) => {
                let size = |ty: &Type<usize>| ty.layout().map(|layout| layout.size);
                std::mem::discriminant(wanted) == std::mem::discriminant(new)
                    && size(wanted) == size(new)
            }
            _ => false,
        }
    }

    fn gone<T>(&self, why: &'static str) -> Result<T, Gone> {
        Err(Gone {
            path: self.path.clone(),
            why,
        })
    }

    /// Where in a new part the place is that lies `offset` bytes into the old one, which begins at `at` in its object.
    /// `None` where nothing of the type that is looked for begins there.
    fn part(
        &mut self,
        (old, at): (&Type<usize>, u64),
        new: &Type<usize>,
        offset: u64,
    ) -> Result<Option<u64>, Gone> {
        if offset == 0 && self.is_wanted(new) {
            return Ok(Some(0));
        }
        match (old, new) {
            (Type::Struct(was), Type::Struct(is)) => {
                let rule = self.conversion.rules.types.get(&was.name);
                self.fields((&was.fields, at), &is.fields, rule, offset)
            }
            (Type::Variants(was), Type::Variants(is)) => {
                let bytes = (self.bytes)();
                let tag = read_unsigned(&bytes, at + was.tag_offset, was.tag_width);
                let mut all = was.cases.iter().zip(cases(was, is));
                let case = all
                    .find(|(case, _)| tag.as_ref().is_ok_and(|tag| says(case.discriminant, *tag)));
                let Some((case, other)) = case else {
                    return self.gone("its tag is no case");
                };
                self.path.push_str(&format!("({})", case.name));
                let Some(other) = other else {
                    return self.gone("a pointer leads into it, and it is gone");
                };
                self.fields((&case.fields, at), &other.fields, None, offset)
            }
            (Type::Struct(was), Type::Variants(is)) if was_bytes(was, is) => Ok(Some(offset)),
            (
                Type::Array { element, .. },
                Type::Array {
                    element: is,
                    count: has,
                },
            ) => {
                let stride = element.layout().map_or(1, |layout| layout.size).max(1);
                let to_stride = is.layout().map_or(1, |layout| layout.size);
                let index = offset / stride;
                if matches!(has, Count::Fixed(count) if index >= *count) {
                    return self.gone("a pointer leads behind its end");
                }
                let inside = offset % stride;
                let found = self.part((element, at + index * stride), is, inside)?;
                Ok(found.map(|found| index * to_stride + found))
            }
            _ if offset == 0 => Ok(None),
            // A part of a number, or of bytes: as far into it as it was.
            (
                Type::Primitive(_) | Type::Opaque { .. },
                Type::Primitive(_) | Type::Opaque { .. },
            ) if new.layout().is_ok_and(|layout| offset < layout.size) => Ok(Some(offset)),
            _ => self.gone("a pointer leads into it, and it is something else now"),
        }
    }

    fn fields(
        &mut self,
        (old, at): (&[Field<usize>], u64),
        new: &[Field<usize>],
        rule: Option<&super::Rule>,
        offset: u64,
    ) -> Result<Option<u64>, Gone> {
        let place = old.iter().rposition(|field| field.offset <= offset);
        let Some((place, field)) = place.and_then(|place| Some((place, old.get(place)?))) else {
            return self.gone("a pointer leads to no field of it");
        };
        let size = field.ty.layout().map_or(0, |layout| layout.size);
        let is_open = field.ty.layout().map_or(true, |layout| layout.has_tail);
        if !is_open && offset - field.offset >= size {
            return self.gone("a pointer leads between its fields");
        }
        self.path.push_str(&format!(".{}", field.name));
        let Some(other) = became(place, old, rule, new) else {
            return self.gone("a pointer leads to it, and it is gone");
        };
        let inside = offset - field.offset;
        let found = self.part((&field.ty, at + field.offset), &other.ty, inside)?;
        Ok(found.map(|found| other.offset + found))
    }
}
