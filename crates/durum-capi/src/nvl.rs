//! The functions of NVL-C that can fail: they leave code and message like all of this library. The others are those of
//! `durum_nvl::abi`, which are in this library, too, so that a program has one core whatever it uses. `nvl.h` declares
//! them; durum.h does not.

use std::cell::Cell;
use std::ffi::{CStr, c_char, c_uint};
use std::path::Path;
use std::ptr;

use client::{all_counters, background_counters};
use durum_nvl::{Handle, Heap, HeapOptions, OpenError, open_error};

use crate::code;
use crate::guard::{Failure, failure_of, run, string};
use crate::stats::Stats;

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Store(error) => error.into(),
            OpenError::Told(error, reason) => Self::new(code::of(&error), reason),
            other => Self::argument(other.to_string()),
        }
    }
}

/// Opens a heap. NULL on failure, with errno; `nvl_error` says why.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvl_open(path: *const c_char) -> *mut Handle {
    // SAFETY: a string, as nvl.h says.
    unsafe { open_by("nvl_open", path, Heap::open) }
}

/// Makes a heap with room for `size` bytes and opens it. NULL on failure, with errno; `nvl_error` says why.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __nvl_create(
    path: *const c_char,
    size: usize,
    mode: c_uint,
) -> *mut Handle {
    let create =
        |path: &Path, options: &HeapOptions| Heap::create(path, size as u64, mode, options);
    // SAFETY: a string, as nvl.h says.
    unsafe { open_by("nvl_create", path, create) }
}

/// # Safety
/// `path` is NULL or a string.
unsafe fn open_by(
    function: &str,
    path: *const c_char,
    open: impl FnOnce(&Path, &HeapOptions) -> Result<*mut Handle, OpenError>,
) -> *mut Handle {
    let errno = Cell::new(libc::EINVAL);
    let opened = run(|| {
        // SAFETY: as the caller promises.
        let text = unsafe { string(path, "the path")? };
        HeapOptions::from_environment()
            .and_then(|options| open(Path::new(text), &options))
            .map_err(|error| {
                errno.set(error.errno());
                error.into()
            })
    });
    match opened {
        Ok(heap) => {
            open_error::succeeded();
            heap
        }
        Err(code) => {
            let path = match path.is_null() {
                true => "NULL".into(),
                // SAFETY: as the caller promises.
                false => unsafe { CStr::from_ptr(path) }.to_string_lossy(),
            };
            open_error::failed(function, &path, &failure_of(code).message);
            // SAFETY: the thread's own.
            unsafe { *libc::__errno_location() = errno.get() };
            ptr::null_mut()
        }
    }
}

/// Why the latest nvl_open or nvl_create of this thread failed; "" if it did not. The string is valid until the next of
/// these calls in this thread.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
pub extern "C" fn nvl_error() -> *const c_char {
    open_error::reason()
}

/// Tells what the process has done so far: all its threads, the library's own among them. `struct nvl_counters` has the
/// members of `Stats`.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvl_counters(counters: *mut Stats) {
    // SAFETY: a place of the caller's, as nvl.h says.
    unsafe { counters.write(Stats::of(all_counters() + background_counters())) };
}
