//! The functions of NVL-C that can fail: they leave code and message like all of this library. The others are those of `durum_nvl::abi`, which are in this library, too, so
//! that a program has one core whatever it uses. `nvl.h` declares them; durum.h does not.

use std::ffi::{c_char, c_uint};
use std::path::Path;

use client::{all_counters, background_counters};
use durum_nvl::{Heap, HeapOptions, OpenError};

use crate::guard::{Failure, Result, pointer, string};
use crate::stats::Stats;

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error.into(),
            other => Self::argument(other.to_string()),
        }
    }
}

/// Opens a heap. NULL on failure.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvl_open(path: *const c_char) -> *mut Heap {
    pointer(|| {
        // SAFETY: a string, as nvl.h says.
        let path = unsafe { string(path, "the path")? };
        let options = HeapOptions::from_environment()?;
        Ok(Heap::open(Path::new(path), &options)?)
    })
}

/// Makes a heap with room for `size` bytes and opens it. NULL on failure.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __nvl_create(path: *const c_char, size: usize, mode: c_uint) -> *mut Heap {
    pointer(|| -> Result<*mut Heap> {
        // SAFETY: a string, as nvl.h says.
        let path = unsafe { string(path, "the path")? };
        let options = HeapOptions::from_environment()?;
        Ok(Heap::create(Path::new(path), size as u64, mode, &options)?)
    })
}

/// Tells what the process has done so far: all its threads, the library's own among them. `struct nvl_counters` has the members of `Stats`.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvl_counters(counters: *mut Stats) {
    // SAFETY: a place of the caller's, as nvl.h says.
    unsafe { counters.write(Stats::of(all_counters() + background_counters())) };
}
