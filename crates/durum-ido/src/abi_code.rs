//! What code that only completes sections has in the place of other functions (compiler/driver/code.ld,
//! docs/reference/ido-ir.md).

use std::ffi::{c_char, c_int, c_ulong};
use std::io::Write;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use crate::fatal;
use crate::open;

/// The connection of code that completes sections.
const SERVICE: RawFd = 3;

/// Of `main`: completes sections, and does nothing else. Descriptor 3 is its connection to the service. What went wrong
/// goes to the standard error, and gives 1.
#[unsafe(no_mangle)]
pub extern "C" fn __durum_ido_complete() -> c_int {
    // SAFETY: it was started with that, and nobody else here knows of it.
    let connection = unsafe { OwnedFd::from_raw_fd(SERVICE) };
    match open::complete(connection) {
        Ok(()) => 0,
        Err(error) => {
            // Where nobody hears it, the code tells.
            let _ = writeln!(std::io::stderr(), "{error}");
            1
        }
    }
}

/// Of functions which open a heap: its heap is open.
#[unsafe(no_mangle)]
pub extern "C" fn __durum_ido_is_open() -> c_int {
    0
}

/// Of functions that it could do nothing with: they fail.
#[unsafe(no_mangle)]
pub extern "C" fn __durum_ido_is_missing() -> c_int {
    1
}

/// Of the function of the C library that translates its messages, for which it reads files.
#[unsafe(no_mangle)]
pub extern "C" fn __durum_ido_untranslated(
    _domain: *const c_char,
    one: *const c_char,
    many: *const c_char,
    has_plural: c_int,
    count: c_ulong,
    _category: c_int,
) -> *const c_char {
    match has_plural != 0 && count != 1 {
        true => many,
        false => one,
    }
}

/// Of the standard library's way to panic, which would tell where, by what its debugger's tables say. It is called as
/// Rust calls functions.
#[unsafe(no_mangle)]
fn __durum_ido_panics(info: &core::panic::PanicInfo<'_>) -> ! {
    fatal::end_at(format_args!("{info}"))
}

/// Of its way to end for want of memory.
#[unsafe(no_mangle)]
fn __durum_ido_lacks_memory(_size: usize, _align: usize) -> ! {
    let _ = std::io::stderr().write_all(b"ido: there is no memory left\n");
    std::process::abort()
}
