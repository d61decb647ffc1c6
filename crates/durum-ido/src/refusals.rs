//! What sections may not do, where only the run can tell that a place is in one.

use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::sync::OnceLock;

use crate::fatal;
use crate::program;
use crate::thread::Thread;

/// A place of the program, and what is wrong there (docs/reference/ido-ir.md).
#[derive(Debug)]
#[repr(C)]
pub struct Place {
    /// What is wrong, a cure, and the refusal's name.
    pub refusal: *const c_char,
    /// Who is called; null for most.
    pub subject: *const c_char,
    /// The function that the place is in.
    pub function: *const c_char,
    /// Its file; null if it is not known.
    pub file: *const c_char,
    /// The line in it.
    pub line: u64,
}

/// In front of the code of a function that was compiled for sections.
const COMPILED: u64 = 0x6f64_692e_6d75_7264;
/// Room for an object on both sides of the middle.
const NOWHERE: usize = 256 << 20;

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |text: *const c_char| {
            // SAFETY: null, or a string of the program's.
            (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy())
        };
        if let Some(file) = text(self.file) {
            write!(f, "{file}:{}: ", self.line)?;
        }
        write!(f, "in {}: ", text(self.function).unwrap_or_default())?;
        if let Some(subject) = text(self.subject) {
            write!(f, "{subject}: ")?;
        }
        f.write_str(&text(self.refusal).unwrap_or_default())
    }
}

/// Ends the program if it is in a section.
pub(crate) fn refused(thread: &Thread, place: &Place) {
    if thread.depth > 0 {
        fatal::end_at(format_args!("{place}"));
    }
}

/// The same where a function was not compiled for sections.
///
/// # Safety
/// Code, with 8 bytes in front of it that may be read.
pub(crate) unsafe fn check_pointer(thread: &Thread, function: *const c_void, place: &Place) {
    // SAFETY: as the caller promises.
    let is_compiled = || unsafe { function.cast::<u64>().sub(1).read_unaligned() } == COMPILED;
    if thread.depth > 0 && !is_compiled() {
        refused(thread, place);
    }
}

/// The same where memory is read that does not last, behind the first record of a section.
pub(crate) fn read_elsewhere(thread: &Thread, object: *const c_void, place: &Place) {
    if thread.depth > 0 && thread.is_published && !program::is_constant(object.addr()) {
        refused(thread, place);
    }
}

/// Where to write instead of an object in memory that does not last.
pub(crate) fn written_elsewhere(thread: &Thread, object: *mut c_void) -> *mut c_void {
    static MEMORY: OnceLock<usize> = OnceLock::new();
    if thread.is_resuming == 0 || thread.depth == 0 {
        return object;
    }
    // Pages that nobody writes are none. Nobody reads it, so threads share it.
    let base = MEMORY.get_or_init(|| {
        Vec::leak(vec![0u8; NOWHERE])
            .as_mut_ptr()
            .expose_provenance()
    });
    std::ptr::with_exposed_provenance_mut(base + NOWHERE / 2)
}
