//! What compiled code says of types: texts (docs/format/types.md), which the store is told once.

use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::sync::RwLock;

use durum::Description;
use durum_format::types::Descriptor;

use crate::fatal::OrFatal;
use crate::heap::Heap;

/// The type of what nobody has told the type of.
pub(crate) const UNKNOWN: u64 = 0;

/// By the addresses of their texts, which do not change as long as the program runs.
static KNOWN: RwLock<Option<HashMap<usize, Option<Description>>>> = RwLock::new(None);

/// The id of a type, which the store knows durably when this returns. [`UNKNOWN`] without a text, and for one that
/// docs/format/types.md does not allow.
///
/// # Safety
/// Null, or a string that stays as long as the program runs.
pub(crate) unsafe fn id_of(heap: &Heap, text: *const c_char) -> u64 {
    if text.is_null() {
        return UNKNOWN;
    }
    let register = |description: &Option<Description>| match description {
        Some(description) => heap
            .pool
            .ensure_described(description)
            .or_fatal("telling the heap of a type"),
        None => UNKNOWN,
    };
    let known = KNOWN
        .read()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(description) = known.as_ref().and_then(|known| known.get(&text.addr())) {
        return register(description);
    }
    drop(known);
    // SAFETY: as the caller promises.
    let told = unsafe { CStr::from_ptr(text) }.to_str().ok();
    let descriptor = told.and_then(|told| Descriptor::parse(told).ok());
    let description = descriptor.map(|descriptor| Description::from_descriptor(&descriptor));
    let mut known = KNOWN
        .write()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    let known = known.get_or_insert_default();
    register(known.entry(text.addr()).or_insert(description))
}
