//! Where the pointers and the volatile parts of an object are, and which field an offset is.

use super::descriptor::Descriptor;
use super::steps::{
    Part, PointerAt, ReservedAt, Step, ValueError, VolatileAt, case_at, count_elements, repeats,
    slice, walk,
};
use super::tree::{Field, Struct, Type};

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
        visit: impl FnMut(PointerAt),
    ) -> Result<(), ValueError> {
        self.walk_row(&self.pointers, bytes, visit)
    }

    /// The parts of an object of this type that mean nothing once the program has ended, as
    /// [`Descriptor::visit_pointers`] gives the pointers.
    ///
    /// # Errors
    /// [`ValueError`]; parts before the place that does not fit were already given.
    pub fn visit_volatile(
        &self,
        bytes: &[u8],
        visit: impl FnMut(VolatileAt),
    ) -> Result<(), ValueError> {
        self.walk_row(&self.volatile, bytes, visit)
    }

    /// The reserved bytes in an object of this type, as [`Descriptor::visit_pointers`] gives the pointers.
    ///
    /// # Errors
    /// [`ValueError`]; parts before the place that does not fit were already given.
    pub fn visit_reserved(
        &self,
        bytes: &[u8],
        visit: impl FnMut(ReservedAt),
    ) -> Result<(), ValueError> {
        self.walk_row(&self.reserved, bytes, visit)
    }

    fn walk_row<P: Part>(
        &self,
        steps: &[Step<P>],
        bytes: &[u8],
        mut visit: impl FnMut(P),
    ) -> Result<(), ValueError> {
        let row = self.row(bytes)?;
        if !steps.is_empty() {
            for index in 0..row {
                walk(steps, index * self.layout().size, bytes, &mut visit)?;
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
        Ok(match layout.has_tail || layout.size == 0 {
            true => 1,
            false => found / layout.size,
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
            Type::Variants(variants) => {
                let case = case_at(variants, bytes, base)?;
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
            | Type::Volatile { .. }
            | Type::Reserved { .. } => return Ok(()),
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
        let end = start + field.ty.layout().map_or(0, |layout| layout.size);
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
    let is_open = |field: &Field<usize>| ends_in_open_array(&field.ty);
    match ty {
        Type::Struct(Struct { fields, .. }) => fields.last().is_some_and(is_open),
        ty => ty.is_open_array(),
    }
}
