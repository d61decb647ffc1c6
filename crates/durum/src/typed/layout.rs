//! Descriptions of structs, measured by the compiler.

use durum_format::types::{Primitive, Type};

/// The description of the struct `Self` under a name: its fields, each by the name that the media know, with its type.
/// `x in y` is the field `x` of the field `y`.
macro_rules! structure {
    ($name:expr, { $($field:tt $(in $outer:ident)?: $ty:expr),* $(,)? }) => {
        ::durum_format::types::Type::structure(
            $name,
            size_of::<Self>() as u64,
            align_of::<Self>() as u64,
            vec![$(::durum_format::types::Field::new(
                stringify!($field),
                ::std::mem::offset_of!(Self, $($outer.)? $field) as u64,
                $ty,
            )),*],
        )
    };
}

pub(super) use structure;

/// A 64-bit number.
pub(super) const WORD: Type<String> = Type::Primitive(Primitive::U64);
