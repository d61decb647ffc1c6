//! What the runtime itself has in the pool of a heap.

use std::borrow::Cow;
use std::mem::offset_of;
use std::sync::OnceLock;

use durum::{Described, Description, Walk};
use durum_format::types::{Count, Descriptor, Field, Type};

use crate::fatal::OrFatal;

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

/// As a text (docs/format/types.md): what types of compiled code are made of is here, and nothing else is needed.
const HEAP_ROOT: &str = concat!(
    r#"struct "durum.ido.heap"(40,8){0:"version":u64;8:"epoch":u64;16:"root":*1;24:"size":u64;32:"globals":*2;}"#,
    "\nu8\n",
    r#"struct "durum.ido.variable"(32,8){0:"next":*2;8:"place":*1;16:"size":u64;24:"name_size":u64;32:"name":[u8;tail];}"#,
    "\n"
);
const VARIABLE: &str = concat!(
    r#"struct "durum.ido.variable"(32,8){0:"next":*0;8:"place":*1;16:"size":u64;24:"name_size":u64;32:"name":[u8;tail];}"#,
    "\nu8\n"
);

/// What a text of this file describes.
fn described(text: &str) -> Description {
    let descriptor =
        Descriptor::parse(text).or_fatal("describing what the runtime has in the heap");
    Description::from_descriptor(&descriptor)
}

// SAFETY: that is its layout, and what its pointers lead to.
unsafe impl Described for HeapRoot {
    fn name() -> Option<Cow<'static, str>> {
        Some("durum.ido.heap".into())
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        let fields = vec![
            walk.field("version", offset_of!(Self, version), |root: &Self| {
                &root.version
            }),
            walk.field("epoch", offset_of!(Self, epoch), |root: &Self| &root.epoch),
            walk.field("root", offset_of!(Self, root), |root: &Self| &root.root),
            walk.field("size", offset_of!(Self, size), |root: &Self| &root.size),
            walk.field("globals", offset_of!(Self, globals), |root: &Self| {
                &root.globals
            }),
        ];
        let (size, align) = (size_of::<Self>() as u64, align_of::<Self>() as u64);
        Type::structure("durum.ido.heap", size, align, fields)
    }

    fn description() -> &'static Description {
        static DESCRIPTION: OnceLock<Description> = OnceLock::new();
        DESCRIPTION.get_or_init(|| described(HEAP_ROOT))
    }
}

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
        DESCRIPTION.get_or_init(|| described(VARIABLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_say_what_the_structs_are() {
        fn is_described<T: Described>() {
            let told = |description: &Description| format!("{description:?}");
            assert_eq!(told(T::description()), told(&Description::of::<T>()));
        }
        is_described::<HeapRoot>();
        is_described::<Variable>();
    }
}
