//! What types are called.

use super::shape::{self, Shape};
use super::{CELL, Object, Objects};
use crate::types::{Descriptor, Type};

/// Pointers in the name of a type, which may lead in a circle.
const POINTERS_NAMED_MAX: usize = 4;

/// What a type is called that stands in the text of a descriptor.
pub(super) fn name_of<O: Objects + ?Sized>(
    objects: &O,
    ty: &Type<usize>,
    of: &Descriptor,
) -> String {
    name_with(objects, ty, of, POINTERS_NAMED_MAX)
}

fn name_with<O: Objects + ?Sized>(
    objects: &O,
    ty: &Type<usize>,
    of: &Descriptor,
    pointers: usize,
) -> String {
    match ty {
        Type::Primitive(primitive) => primitive.name().to_owned(),
        Type::Pointer { target, .. } => {
            let target = target.and_then(|line| of.line(line));
            let name = match (target, pointers.checked_sub(1)) {
                (None, _) => "anything".to_owned(),
                (Some(_), None) => "…".to_owned(),
                (Some(target), Some(pointers)) => name_with(objects, target, of, pointers),
            };
            format!("pointer to {name}")
        }
        Type::Array { element, .. } => {
            format!("[{}]", name_with(objects, element, of, pointers))
        }
        Type::Opaque { size, .. } | Type::Volatile { size, .. } => format!("{size} bytes"),
        ty => objects.name_for_people(ty.name().unwrap_or("?")),
    }
}

/// The name of a value, without what a runtime calls the object that keeps it.
pub(super) fn without_keeper(name: String) -> String {
    let value = name.strip_prefix("counted ");
    let value = value.or_else(|| name.strip_prefix("nvl "));
    value.map_or_else(|| name.clone(), str::to_owned)
}

/// What the type of an object is called.
pub fn type_name<O: Objects + ?Sized>(objects: &O, object: &Object) -> String {
    match objects.descriptor(object.type_id) {
        // The value is shown, and not what is kept of it.
        Some(descriptor) => {
            let name = name_of(objects, descriptor.root(), descriptor);
            let kept = match shape::shape(descriptor.root(), descriptor) {
                // A row of them, which is never alone.
                Shape::Cell(value) if descriptor.name().is_some_and(|it| it.starts_with(CELL)) => {
                    let written = name.strip_prefix("durum::detail::cell<");
                    let written = written.and_then(|name| name.strip_suffix('>'));
                    let element = || name_of(objects, &value.ty, descriptor);
                    return format!(
                        "[{}]",
                        written.map_or_else(element, |name| name.trim().to_owned())
                    );
                }
                Shape::Counted { .. } => "counted ",
                Shape::Cell(_) => "root ",
                _ => "",
            };
            let value = name.strip_prefix(kept).unwrap_or(&name);
            match shape::start_of(descriptor) {
                0 => value,
                _ => value.strip_prefix("nvl ").unwrap_or(value),
            }
            .to_owned()
        }
        None if object.type_id == crate::extent::UNTYPED => "(untyped)".to_owned(),
        None => format!("(unknown type {:#x})", object.type_id),
    }
}
