//! Orders of keys that C has written.

use std::cmp::Ordering;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;

use kv::Comparator;

use crate::guard::{destroys, give};

type Destructor = unsafe extern "C" fn(*mut c_void);
type Compare =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> c_int;
type Name = unsafe extern "C" fn(*mut c_void) -> *const c_char;

/// An order of keys.
pub struct leveldb_comparator_t {
    state: *mut c_void,
    destructor: Option<Destructor>,
    compare: Compare,
    name: Name,
}

impl fmt::Debug for leveldb_comparator_t {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("leveldb_comparator_t")
            .finish_non_exhaustive()
    }
}

impl Drop for leveldb_comparator_t {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the comparator's own state, once, as its maker wants it.
            unsafe { destructor(self.state) };
        }
    }
}

/// A comparator as the database uses it. The one in C outlives the database, as durum_kv.h asks for.
pub(crate) struct Foreign {
    state: *mut c_void,
    compare: Compare,
    name: String,
}

// SAFETY: durum_kv.h asks for a comparator that several threads may call.
unsafe impl Send for Foreign {}
// SAFETY: that it may be called by several threads at once is the same promise.
unsafe impl Sync for Foreign {}

impl Foreign {
    pub(crate) fn of(comparator: &leveldb_comparator_t) -> Self {
        // SAFETY: durum_kv.h asks for a function that gives a string.
        let name = unsafe { CStr::from_ptr((comparator.name)(comparator.state)) };
        Self {
            state: comparator.state,
            compare: comparator.compare,
            name: name.to_string_lossy().into_owned(),
        }
    }
}

impl Comparator for Foreign {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        // SAFETY: durum_kv.h asks for a function that reads both keys and returns.
        let order = unsafe {
            (self.compare)(
                self.state,
                a.as_ptr().cast(),
                a.len(),
                b.as_ptr().cast(),
                b.len(),
            )
        };
        order.cmp(&0)
    }

    fn name(&self) -> &str {
        &self.name
    }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn leveldb_comparator_create(
    state: *mut c_void,
    destructor: Option<Destructor>,
    compare: Compare,
    name: Name,
) -> *mut leveldb_comparator_t {
    give(leveldb_comparator_t {
        state,
        destructor,
        compare,
        name,
    })
}

destroys! {
    leveldb_comparator_destroy: leveldb_comparator_t,
}
