//! What the runtime itself has in the pool of a heap.

use std::borrow::Cow;
use std::mem::offset_of;
use std::sync::OnceLock;

use durum::{Described, Description, Walk};
use durum_format::types::{Count, Field, Type};

/// The root object of the pool.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct HeapRoot {
    pub(crate) version: u64,
    /// One more with each opening: what else locks have in their words is from before (docs/internals/locks.md).
    pub(crate) epoch: u64,
    /// The program's root, or null.
    pub(crate) root: *mut u8,
    /// How many bytes it has.
    pub(crate) size: u64,
    /// The first of the variables that last, or null.
    pub(crate) globals: *mut Variable,
}

durum::describe!(HeapRoot as "durum.ido.heap" { version, epoch, root, size, globals });

/// How a variable is found: followed by its name.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Variable {
    pub(crate) next: *mut Variable,
    pub(crate) place: *mut u8,
    pub(crate) size: u64,
    pub(crate) name_size: u64,
}

// SAFETY: that is its layout, and what its pointers lead to. The name takes the rest of the object.
unsafe impl Described for Variable {
    fn name() -> Option<Cow<'static, str>> {
        Some("durum.ido.variable".into())
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        let name = u8::layout(walk).array(Count::Tail);
        let fields = vec![
            walk.field("next", offset_of!(Self, next), |one: &Self| &one.next),
            walk.field("place", offset_of!(Self, place), |one: &Self| &one.place),
            walk.field("size", offset_of!(Self, size), |one: &Self| &one.size),
            walk.field("name_size", offset_of!(Self, name_size), |one: &Self| {
                &one.name_size
            }),
            Field::new("name", size_of::<Self>() as u64, name),
        ];
        let (size, align) = (size_of::<Self>() as u64, align_of::<Self>() as u64);
        Type::structure("durum.ido.variable", size, align, fields)
    }

    fn description() -> &'static Description {
        static DESCRIPTION: OnceLock<Description> = OnceLock::new();
        DESCRIPTION.get_or_init(Description::of::<Self>)
    }
}
