//! Deferred drops: references that a transaction dropped but could not count off.
//!
//! When the last reference to an object goes while another transaction has the object pinned, or is about to commit its
//! counts, the reference moves to a list of the pool, in the same transaction. The next transaction that commits counts
//! drops it from there, or the next opening of the pool. For that the program must have used the type of the object; if
//! it never does, `durum gc` drops the reference.

use std::borrow::Cow;
use std::mem::offset_of;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use durum_format::types::Type;

use super::layout::{WORD, structure};
use crate::described::{Described, Walk};

/// What the root object of a typed pool begins with.
#[repr(C)]
pub(super) struct RootHeader {
    /// 0 until the root has its first value.
    pub(super) is_made: u64,
    /// Address of the first deferred drop, or 0.
    pub(super) limbo: usize,
}

/// A deferred drop, as it lies in the pool.
#[repr(C)]
#[derive(Debug)]
pub(super) struct DeferredDrop {
    /// Address of the next one, or 0.
    pub(super) next: usize,
    pub(super) object: usize,
    /// Type of the object.
    pub(super) type_id: u64,
    /// 1 for a weak reference.
    pub(super) is_weak: u64,
}

// SAFETY: the compiler measures size and offsets; `next` is the only pointer that the store has to follow.
unsafe impl Described for DeferredDrop {
    fn name() -> Option<Cow<'static, str>> {
        Some(Cow::Borrowed("durum lost reference"))
    }

    fn layout(walk: &mut Walk) -> Type<String> {
        structure!("durum lost reference", {
            next: walk.pointer_to::<Self>(),
            object: Type::pointer_to_any(),
            type_id: WORD,
            is_weak: WORD,
        })
    }
}

/// What the threads share about the deferred drops of an open pool.
#[derive(Debug)]
pub(super) struct DeferredDrops {
    is_held: AtomicBool,
    len: AtomicUsize,
}

impl DeferredDrops {
    /// Those of a pool that is just being opened, whose root object begins at `root`.
    pub(super) fn of_root(root: usize) -> Self {
        let mut link = first_link(root);
        let mut len = 0;
        loop {
            // SAFETY: a link of the list, in a pool that nobody else uses yet.
            link = match unsafe { read_link(link) } {
                0 => break,
                at => next_link(at),
            };
            len += 1;
        }
        Self {
            is_held: AtomicBool::new(false),
            len: AtomicUsize::new(len),
        }
    }

    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Takes the list, until [`DeferredDrops::give_back`].
    pub(super) fn try_hold(&self) -> bool {
        !self.is_held.swap(true, Ordering::Acquire)
    }

    /// Gives the list back, which is longer by `change`.
    pub(super) fn give_back(&self, change: isize) {
        let len = self.len().wrapping_add_signed(change);
        self.len.store(len, Ordering::Relaxed);
        // ORDER (of threads): the list is seen by whoever holds it next.
        self.is_held.store(false, Ordering::Release);
    }
}

/// Address of the word that says where the list begins.
pub(super) fn first_link(root: usize) -> usize {
    root + offset_of!(RootHeader, limbo)
}

/// Address of the word that says where the list goes on.
pub(super) fn next_link(at: usize) -> usize {
    at + offset_of!(DeferredDrop, next)
}

/// What a link leads to, or 0.
///
/// # Safety
/// A link of the list, which this thread holds.
pub(super) unsafe fn read_link(link: usize) -> usize {
    // SAFETY: as the caller promises.
    unsafe { ptr::with_exposed_provenance::<usize>(link).read() }
}
