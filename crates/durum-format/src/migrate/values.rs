//! What types say of their values.

use crate::dump::Plan;
use crate::dump::line::read_value;
use crate::types::{Descriptor, Field, PointerAt, Primitive, Strength, Type, compile, write_line};

/// Whether a number gets more bits, and whether it is signed.
pub(super) fn widened(was: Primitive, is: Primitive) -> Option<bool> {
    let signed = |of: Primitive| match of {
        Primitive::U8 | Primitive::U16 | Primitive::U32 | Primitive::U64 => Some(false),
        Primitive::I8 | Primitive::I16 | Primitive::I32 | Primitive::I64 => Some(true),
        _ => None,
    };
    let (old, new) = (signed(was)?, signed(is)?);
    // A signed number has no place among those that have no sign.
    (was.size() < is.size() && (!old || new)).then_some(old)
}

pub(super) fn is_zero_at_first(field: &Field<usize>) -> bool {
    let is_nothing = matches!(field.ty, Type::Volatile { .. } | Type::Reserved { .. });
    is_nothing || field.is_in_reserved
}

pub(super) fn holds_pointers(ty: &Type<usize>) -> bool {
    compile::<PointerAt>(ty).is_ok_and(|found| !found.is_empty())
}

/// Whether any bytes are a value of a type, as far as its description tells.
pub(super) fn all_are_values(ty: &Type<usize>) -> bool {
    match ty {
        Type::Primitive(it) => !matches!(it, Primitive::Bool | Primitive::Char),
        Type::Struct(it) => it.fields.iter().all(|field| all_are_values(&field.ty)),
        Type::Array { element, .. } => all_are_values(element),
        Type::Variants(_) => false,
        _ => true,
    }
}

/// The bytes of a value of a type without pointers.
pub(super) fn default_of(ty: &Type<usize>, json: &str) -> Result<Vec<u8>, String> {
    if holds_pointers(ty) {
        return match json.trim() {
            "null" if matches!(ty, Type::Pointer { .. }) => Ok(vec![0; 8]),
            _ => Err("what has pointers has no default but null".to_owned()),
        };
    }
    let mut text = String::new();
    write_line(ty, &mut text);
    text.push('\n');
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let descriptor = Descriptor::parse(&text).map_err(|error| told(&error))?;
    let plan = Plan::of(&descriptor).map_err(|error| told(&error))?;
    let size = usize::try_from(descriptor.layout().size).unwrap_or(0);
    let mut bytes = vec![0; size];
    // As in a line of a dump.
    let line = format!("{json}}}");
    let mut pointer = |_| Err("there are no pointers".to_owned());
    read_value(line.as_bytes(), 0, &plan, &mut bytes, &mut pointer)
        .map_err(|refused| told(&refused))?;
    Ok(bytes)
}

/// Whether a strong pointer is among the steps of a type.
pub(super) fn is_strong(pointer: &PointerAt) -> bool {
    pointer.strength == Strength::Strong
}

/// Where in a type, without a tail, a value of so many bytes has its place: in a cell behind what is volatile.
pub(super) fn place_of(ty: &Type<usize>, size: u64) -> Option<u64> {
    let layout = ty.layout().ok()?;
    if layout.size == size && !layout.has_tail {
        return Some(0);
    }
    let Type::Struct(it) = ty else {
        return None;
    };
    let mut fields = it.fields.iter();
    let is_said = |field: &&Field<usize>| !matches!(field.ty, Type::Volatile { .. });
    let only = fields.find(is_said)?;
    match fields.find(is_said) {
        None => Some(only.offset + place_of(&only.ty, size)?),
        Some(_) => None,
    }
}
