//! Texts that a program knows as constants, and which come over the wire.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// So many there may be: the service has far fewer, and a false one costs a bounded amount of memory.
const MOST: usize = 1024;
const LONGEST: usize = 1024;

static KNOWN: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// The constant of this text.
pub(crate) fn constant(text: &str) -> &'static str {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(text) {
        return found;
    }
    if known.len() >= MOST || text.len() > LONGEST {
        return "the service says more than can be shown";
    }
    let kept: &'static str = String::leak(text.to_owned());
    known.insert(kept);
    kept
}
