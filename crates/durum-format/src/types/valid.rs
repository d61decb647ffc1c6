//! Whether bytes are a value of a type, as far as its description tells.

use super::descriptor::Descriptor;
use super::steps::read_unsigned;
use super::tree::{Count, Primitive, Type};

impl Descriptor {
    /// Whether any bytes are a value of the type.
    pub fn takes_any_bytes(&self) -> bool {
        all_are_values(self.root())
    }

    /// Whether bytes are a value of the type, which has no tail: numbers that are truth or a character, and tags, are
    /// what they may be. Pointers are not looked at.
    pub fn is_value(&self, bytes: &[u8]) -> bool {
        is_value(self.root(), bytes, 0)
    }

    /// The same of one field of a struct, of which these are the bytes: `None` where it has no such field.
    pub fn is_value_of(&self, field: &str, bytes: &[u8]) -> Option<bool> {
        let Type::Struct(it) = self.root() else {
            return None;
        };
        let field = it.fields.iter().find(|it| it.name == field)?;
        Some(is_value(&field.ty, bytes, 0))
    }
}

/// Whether bytes are a value of a type without a tail, as far as its description tells.
pub(crate) fn is_value(ty: &Type<usize>, bytes: &[u8], base: u64) -> bool {
    let word = |at, width| read_unsigned(bytes, at, width).ok();
    match ty {
        Type::Primitive(Primitive::Bool) => word(base, 1).is_some_and(|bits| bits <= 1),
        Type::Primitive(Primitive::Char) => word(base, 4)
            .and_then(|bits| u32::try_from(bits).ok())
            .is_some_and(|bits| char::from_u32(bits).is_some()),
        Type::Struct(it) => {
            let mut fields = it.fields.iter();
            fields.all(|field| is_value(&field.ty, bytes, base + field.offset))
        }
        Type::Array {
            element,
            count: Count::Fixed(count),
        } => {
            let stride = element.layout().map_or(1, |layout| layout.size);
            (0..*count).all(|index| is_value(element, bytes, base + index * stride))
        }
        Type::Variants(it) => {
            let tag = word(base + it.tag_offset, it.tag_width);
            let case = tag.and_then(|tag| it.case_of(tag));
            case.is_some_and(|case| {
                let mut fields = case.fields.iter();
                fields.all(|field| is_value(&field.ty, bytes, base + field.offset))
            })
        }
        _ => true,
    }
}

/// Whether any bytes are a value of a type, as far as its description tells.
pub(crate) fn all_are_values(ty: &Type<usize>) -> bool {
    match ty {
        Type::Primitive(it) => !matches!(it, Primitive::Bool | Primitive::Char),
        Type::Struct(it) => it.fields.iter().all(|field| all_are_values(&field.ty)),
        Type::Array { element, .. } => all_are_values(element),
        Type::Variants(_) => false,
        _ => true,
    }
}
