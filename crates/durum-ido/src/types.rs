//! What compiled code says of types: texts (docs/format/types.md), which the store is told once.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{PoisonError, RwLock};

use durum::{Description, Pool};
use durum_format::types::Descriptor;

use crate::fatal::OrFatal;

/// The type of what nobody has told the type of.
pub(crate) const UNKNOWN: u64 = 0;

/// The type of what is allocated (docs/reference/ido-ir.md).
#[derive(Debug)]
#[repr(C)]
pub struct AllocatedType {
    /// docs/format/types.md.
    pub text: *const c_char,
    /// Null, until it is known.
    pub known: AtomicPtr<Known>,
}

// SAFETY: a constant, but for what is known, which is atomic.
unsafe impl Sync for AllocatedType {}

/// What a text says.
#[derive(Debug)]
pub struct Known {
    description: Description,
    /// Bytes of the smallest object of this type.
    size: u64,
    has_pointers: bool,
}

/// What an object is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ObjectType {
    pub(crate) id: u64,
    /// Nothing may lie in it that was never stored there: it could look like a pointer.
    pub(crate) has_pointers: bool,
}

impl ObjectType {
    pub(crate) const UNKNOWN: Self = Self {
        id: UNKNOWN,
        has_pointers: false,
    };

    /// Of an object that is there.
    pub(crate) fn of_object(id: u64) -> Self {
        Self {
            id,
            has_pointers: id != UNKNOWN,
        }
    }

    /// Of an object of `size` bytes, which the store knows durably when this returns. Unknown without a type, and
    /// where the object is too small for it.
    ///
    /// # Safety
    /// Null, or a type that stays as long as the program runs.
    #[inline]
    pub(crate) unsafe fn of(pool: &Pool, ty: *const AllocatedType, size: usize) -> Self {
        // SAFETY: as the caller promises.
        let Some(ty) = (unsafe { ty.as_ref() }) else {
            return Self::UNKNOWN;
        };
        let mut found = ty.known.load(Ordering::Acquire).cast_const();
        if found.is_null() {
            // SAFETY: as the caller promises.
            found = unsafe { known(ty.text) }.map_or(ptr::null(), ptr::from_ref);
            ty.known.store(found.cast_mut(), Ordering::Release);
        }
        // SAFETY: null, or what is known for good.
        match unsafe { found.as_ref() } {
            Some(known) if known.size <= size as u64 => Self {
                id: register(pool, known),
                has_pointers: known.has_pointers,
            },
            _ => Self::UNKNOWN,
        }
    }
}

/// The id of a type, which the store knows durably when this returns. [`UNKNOWN`] without a text, and for one that
/// docs/format/types.md does not allow.
///
/// # Safety
/// Null, or a string that stays as long as the program runs.
pub(crate) unsafe fn id_of(pool: &Pool, text: *const c_char) -> u64 {
    // SAFETY: as the caller promises.
    match unsafe { known(text) } {
        Some(known) => register(pool, known),
        None => UNKNOWN,
    }
}

fn register(pool: &Pool, known: &Known) -> u64 {
    pool.ensure_described(&known.description)
        .or_fatal("telling the heap of a type")
}

/// What the text says, for good. `None` without one, and for one that docs/format/types.md does not allow.
///
/// # Safety
/// As for [`id_of`].
unsafe fn known(text: *const c_char) -> Option<&'static Known> {
    /// By the addresses of the texts, which do not change as long as the program runs.
    static KNOWN: RwLock<Option<HashMap<usize, Option<&'static Known>>>> = RwLock::new(None);

    if text.is_null() {
        return None;
    }
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.as_ref().and_then(|known| known.get(&text.addr())) {
        return *found;
    }
    drop(known);
    // SAFETY: as the caller promises.
    let told = unsafe { CStr::from_ptr(text) }.to_str().ok();
    let descriptor = told.and_then(|told| Descriptor::parse(told).ok());
    let read = descriptor.map(|descriptor| -> &'static Known {
        Box::leak(Box::new(Known {
            size: descriptor.layout().size,
            has_pointers: descriptor.has_pointers(),
            description: Description::from_descriptor(&descriptor),
        }))
    });
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    *known
        .get_or_insert_default()
        .entry(text.addr())
        .or_insert(read)
}
