//! How objects are dropped of which only the type's id is at hand.

use std::any::Any;

use rustc_hash::FxHashMap;

use super::binding::Binding;
use crate::described::{Description, notes_since};

/// What is known of the type of a counted object when only its address is at hand.
#[derive(Debug)]
pub(super) struct DropGlue {
    /// Of the pool type that its pointers name: dropping the value drops these.
    pub(super) binding: fn() -> &'static Binding,
    pub(super) describe: fn() -> &'static Description,
    /// Drops the value in the object at an address. Only within a transaction on that pool type.
    pub(super) drop_value: unsafe fn(usize),
    /// Where the value lies in the object, and its length.
    pub(super) value: (usize, usize),
}

/// The glue that a thread knows for a pool type, by type id. A deferred drop says of its object no more than that id.
#[derive(Debug, Default)]
pub(super) struct KnownGlue {
    glue: FxHashMap<u64, &'static DropGlue>,
    /// So many of the process's notes are in it, or of other pool types.
    seen: usize,
}

impl KnownGlue {
    /// Of a type that the program has used by now, reachable from the root or not.
    pub(super) fn find(
        &mut self,
        binding: &'static Binding,
        type_id: u64,
    ) -> Option<&'static DropGlue> {
        let notes = notes_since(self.seen);
        self.seen += notes.len();
        for note in notes {
            if let Some(glue) = (note as &dyn Any).downcast_ref::<DropGlue>()
                && std::ptr::eq((glue.binding)(), binding)
            {
                self.glue.insert((glue.describe)().id(), glue);
            }
        }
        self.glue.get(&type_id).copied()
    }
}
