//! Options of values, as descriptions had them before these said where an option keeps that there is no value: a struct
//! with bytes, which are named after the id of the value's type. Pools with such descriptions are there.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::ptr;

use super::check::TypeError;
use super::descriptor::{Descriptor, type_id};
use super::text::write;
use super::tree::{Case, Field, Struct, Type, Variants};

/// What is to be said of such an option that differs.
pub(crate) const BYTES: &str =
    "what it holds was bytes to the store, and only the same value is known among them";

/// The name that the bytes of an option have.
fn name_of_bytes(value: u64) -> String {
    format!("bytes of {value:016x}")
}

/// Whether a struct is an option of a value that is described as bytes: the name of these.
pub(crate) fn value_in_bytes<T>(it: &Struct<T>) -> Option<&str> {
    match it.fields.as_slice() {
        [
            Field {
                name,
                offset: 0,
                ty: Type::Opaque { size, align },
                ..
            },
        ] if (size, align) == (&it.size, &it.align) && it.name.starts_with("Option<") => Some(name)
            .filter(|name| name.starts_with("bytes of "))
            .map(String::as_str),
        _ => None,
    }
}

/// What an option of a value holds, if that has bytes.
fn value_of<T>(it: &Variants<T>) -> Option<Option<&Field<T>>> {
    let is_option = it.name.starts_with("Option<") && it.cases.len() == 2;
    let named = |name: &str| it.cases.iter().find(|case| case.name == name);
    match (named("None"), named("Some")) {
        (Some(Case { fields: none, .. }), Some(Case { fields, .. }))
            if is_option && none.is_empty() && fields.len() < 2 =>
        {
            Some(fields.first())
        }
        _ => None,
    }
}

/// The same type with its options of values as bytes.
pub(crate) fn as_bytes(ty: &Type<usize>) -> Type<usize> {
    let fields = |fields: &[Field<usize>]| {
        let fields = fields.iter().map(|field| Field {
            ty: as_bytes(&field.ty),
            ..field.clone()
        });
        fields.collect::<Vec<_>>()
    };
    match ty {
        Type::Struct(it) => Type::Struct(Struct {
            fields: fields(&it.fields),
            ..it.clone()
        }),
        Type::Array { element, count } => Type::Array {
            element: Box::new(as_bytes(element)),
            count: count.clone(),
        },
        Type::Variants(it) => match value_of(it) {
            Some(Some(value)) => {
                let (size, align) = (it.size, it.align);
                let name = name_of_bytes(id_of_value(&value.ty));
                Type::Struct(Struct {
                    name: it.name.clone(),
                    was: it.was.clone(),
                    size,
                    align,
                    fields: vec![Field::new(name, 0, Type::Opaque { size, align })],
                })
            }
            _ => Type::Variants(Variants {
                cases: (it.cases.iter())
                    .map(|case| Case {
                        fields: fields(&case.fields),
                        ..case.clone()
                    })
                    .collect(),
                ..it.clone()
            }),
        },
        other => other.clone(),
    }
}

/// The id that a type had.
pub(crate) fn id_with_bytes(of: &Descriptor) -> Result<u64, TypeError> {
    let lines = |line: &usize, _: Option<&usize>| Ok(as_bytes(of.line(*line).unwrap_or(of.root())));
    Descriptor::close(0, lines).map(|descriptor| descriptor.id())
}

/// The id that a type without pointers had.
fn id_of_value(ty: &Type<usize>) -> u64 {
    let mut text = String::new();
    write(&as_bytes(ty), &mut text);
    text.push('\n');
    type_id(&text)
}

/// Whether the bytes of an option are those of this one, which is as large and has the same value. That both compilers
/// kept the option in the same way was always believed: the program that opened the pool read it as its own.
pub(crate) fn was_bytes(old: &Struct<usize>, new: &Variants<usize>) -> bool {
    WereBytes::default().of(old, new)
}

/// Which options were bytes. The value of each is written out once, however often it is asked: in texts that hostile
/// programs have registered, many ways lead to one that is large.
#[derive(Default)]
pub(crate) struct WereBytes<'d> {
    /// What the bytes of an option would be called, by where it is.
    names: HashMap<*const Variants<usize>, String>,
    _options: PhantomData<&'d Variants<usize>>,
}

impl<'d> WereBytes<'d> {
    /// As [`was_bytes`] says.
    pub(crate) fn of(&mut self, old: &Struct<usize>, new: &'d Variants<usize>) -> bool {
        let (Some(bytes), Some(value)) = (value_in_bytes(old), value_of(new)) else {
            return false;
        };
        if (old.size, old.align) != (new.size, new.align) {
            return false;
        }
        let Some(value) = value else {
            return true;
        };
        let name = self.names.entry(ptr::from_ref(new));
        *name.or_insert_with(|| name_of_bytes(id_of_value(&value.ty))) == bytes
    }
}

/// Whether a type has options of values in it that are described as bytes, or leads to such by its pointers.
pub(crate) fn has_bytes(descriptor: &Descriptor) -> bool {
    (0..descriptor.lines()).any(|line| descriptor.line(line).is_some_and(holds_bytes))
}

fn holds_bytes(ty: &Type<usize>) -> bool {
    let any = |fields: &[Field<usize>]| fields.iter().any(|field| holds_bytes(&field.ty));
    match ty {
        Type::Struct(it) => value_in_bytes(it).is_some() || any(&it.fields),
        Type::Variants(it) => it.cases.iter().any(|case| any(&case.fields)),
        Type::Array { element, .. } => holds_bytes(element),
        _ => false,
    }
}
