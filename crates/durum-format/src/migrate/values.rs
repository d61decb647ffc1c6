//! What types say of their values.

use super::templates::{has_templates, id_without_arguments, without_arguments};
use crate::dump::Plan;
use crate::dump::line::read_value;
use crate::types::{
    Descriptor, Field, PointerAt, Primitive, Strength, Type, as_bytes, compile, has_bytes,
    id_with_bytes, write_line,
};

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
    let layout = descriptor.layout();
    if layout.has_tail {
        return Err("what has a tail has no default".to_owned());
    }
    let too_large = |_| "it is too large".to_owned();
    let size = usize::try_from(layout.size).map_err(|_| too_large(()))?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(size).map_err(|_| too_large(()))?;
    bytes.resize(size, 0);
    // As in a line of a dump.
    let line = format!("{json}}}");
    let mut pointer = |_, _| Err("there are no pointers".to_owned());
    read_value(line.as_bytes(), 0, &plan, &mut bytes, &mut pointer)
        .map_err(|refused| told(&refused))?;
    Ok(bytes)
}

/// Whether a strong pointer is among the steps of a type.
pub(super) fn is_strong(pointer: &PointerAt) -> bool {
    pointer.strength == Strength::Strong
}

/// Where in a type a number of this kind has its place: in a cell behind what is volatile. Nowhere else, as other bytes
/// may be no value of what is there.
pub(super) fn place_of(ty: &Type<usize>, number: Primitive) -> Option<u64> {
    match ty {
        Type::Primitive(is) if *is == number => Some(0),
        Type::Struct(it) => {
            let mut fields = it.fields.iter();
            let is_said = |field: &&Field<usize>| !matches!(field.ty, Type::Volatile { .. });
            let only = fields.find(is_said)?;
            match fields.find(is_said) {
                None => Some(only.offset + place_of(&only.ty, number)?),
                Some(_) => None,
            }
        }
        _ => None,
    }
}

/// Whether types are the same, also those that pointers lead to. Where the old ones have options of values that are
/// described as bytes, those of the other one are taken as such; arguments of templates of `durum.hpp` may be others.
pub(super) fn is_same(
    (of, ty): (&Descriptor, &Type<usize>),
    (other, is): (&Descriptor, &Type<usize>),
) -> bool {
    let id = |of: &Descriptor, line: usize| of.target(line).map(|target| target.id());
    let with_ids =
        |of: &Descriptor, ty: &Type<usize>| ty.map_targets(&mut |line: &usize| id(of, *line)).ok();
    if with_ids(of, ty) == with_ids(other, is) {
        return true;
    }
    let id =
        |of: &Descriptor, line: usize| of.target(line).and_then(|target| id_with_bytes(&target));
    let with_ids = |of: &Descriptor, ty: &Type<usize>| {
        let ty = as_bytes(ty);
        ty.map_targets(&mut |line: &usize| id(of, *line)).ok()
    };
    if has_bytes(of) && with_ids(of, ty) == with_ids(other, is) {
        return true;
    }
    let id = |of: &Descriptor, line: usize| {
        let target = of.target(line).ok();
        target
            .and_then(|target| id_without_arguments(&target))
            .ok_or(())
    };
    let with_ids = |of: &Descriptor, ty: &Type<usize>| {
        let ty = without_arguments(ty);
        ty.map_targets(&mut |line: &usize| id(of, *line)).ok()
    };
    has_templates(of) && with_ids(of, ty) == with_ids(other, is)
}
