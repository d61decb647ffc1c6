//! What is fuzzed: one function for each parser, used by `fuzz_targets` (coverage guided, nightly) and by
//! `crates/durum-format/tests/corpus` (committed corpora and mutations of them, stable). A function fails by panicking.
//!
//! Inputs are tried as they are and, where a checksum would stop them at the door, once more with the checksum put
//! right.

mod code;
mod content;
mod dump;
mod files;
mod logs;
mod puddles;
mod records;
mod sections;
mod successors;
mod twin;
mod types;

use durum_format::FormatError;
use durum_format::crc::crc32c;

pub use code::code;
pub use content::content;
pub use dump::dump;
pub use files::{catalog, export, registry, store};
pub use logs::{log_bytes, log_entries, log_space};
pub use puddles::{heap, puddle_header};
pub use records::records;
pub use sections::sections;
pub use successors::successors_of as successors;
pub use twin::twin;
pub use types::types;

/// A function to fuzz.
pub type Target = fn(&[u8]);

/// All of them, by the names of their corpora.
pub const TARGETS: [(&str, Target); 17] = [
    ("puddle_header", puddle_header),
    ("heap", heap),
    ("log_bytes", log_bytes),
    ("log_entries", log_entries),
    ("log_space", log_space),
    ("records", records),
    ("sections", sections),
    ("code", code),
    ("types", types),
    ("content", content),
    ("successors", successors),
    ("dump", dump),
    ("catalog", catalog),
    ("registry", registry),
    ("export", export),
    ("store", store),
    ("twin", twin),
];

/// `bytes` with the CRC-32C of those before `at` at `at`, if there are so many.
fn with_checksum(bytes: &[u8], at: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if bytes.len() >= at + 4 {
        let checksum = crc32c(&bytes[..at]).to_le_bytes();
        bytes[at..at + 4].copy_from_slice(&checksum);
    }
    bytes
}

/// What is accepted is what would have been written, and errors can be shown.
fn same_or_error<T>(parsed: Result<T, FormatError>, accepted: impl FnOnce(T)) {
    match parsed {
        Ok(parsed) => accepted(parsed),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
