//! What an executable was compiled for: its architecture, and the names in its section `durum_features`, which
//! `durumcc -fido` made.
//!
//! It is a stranger's file. Whoever runs it believes nothing of it, this neither: it is compared so that a person hears
//! what is missing, instead of that the code has ended by a signal.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, KnownLayout, Unaligned};

use crate::error::FormatError;

/// The name of the section.
const SECTION: &[u8] = b"durum_features";
/// The most bytes of a name.
const NAME_MAX: usize = 32;
/// The most names. Clang has about a hundred for an architecture.
const NAMES_MAX: usize = 256;

const STRUCTURE: &str = "features of code";

/// The header of a file of ELF, of 64 bits and little-endian.
#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct File {
    magic: [u8; 4],
    class: u8,
    order: u8,
    ident_rest: [u8; 12],
    machine: U16,
    rest: [u8; 20],
    sections_at: U64,
    more: [u8; 10],
    section_size: U16,
    sections: U16,
    names: U16,
}

/// The header of a section.
#[derive(FromBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Section {
    name: U32,
    kind: U32,
    flags: U64,
    address: U64,
    offset: U64,
    size: U64,
    rest: [u8; 24],
}

const _: () = assert!(size_of::<File>() == 64 && size_of::<Section>() == 64);

/// The architectures that there is code for: what ELF and Rust call them.
const ARCHITECTURES: [(u16, &str); 2] = [(62, "x86_64"), (183, "aarch64")];

/// The architecture that this executable is for, by Rust's name. `None` for what is no executable of ELF, or is for one
/// that there is no code for: whoever starts that finds out.
pub fn architecture(code: &[u8]) -> Option<&'static str> {
    let machine = file(code)?.machine.get();
    let mut known = ARCHITECTURES.into_iter();
    known.find_map(|(number, name)| (number == machine).then_some(name))
}

/// What the processor has to have beside the base of its architecture, for this executable to run, by the names that
/// Clang has for it. Nothing for what is no executable of ELF, or has no such section: whoever starts that finds out.
///
/// # Errors
/// `Text` for names that no compiler has.
pub fn features(code: &[u8]) -> Result<Vec<&str>, FormatError> {
    let Some(names) = section(code) else {
        return Ok(Vec::new());
    };
    let mut features = Vec::new();
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b".-_".contains(byte);
        let known = Some(name).filter(|name| name.len() <= NAME_MAX && name.iter().all(is_letter));
        let known = known.and_then(|name| std::str::from_utf8(name).ok());
        let (Some(name), true) = (known, features.len() < NAMES_MAX) else {
            let problem = format!(
                "number {} is no name of up to {NAME_MAX} letters, or there are more than {NAMES_MAX}",
                features.len() + 1
            );
            return Err(FormatError::damaged_text(STRUCTURE, problem));
        };
        if !features.contains(&name) {
            features.push(name);
        }
    }
    features.sort_unstable();
    Ok(features)
}

/// The header, of an executable that is one of ours.
fn file(code: &[u8]) -> Option<&File> {
    let (file, _) = File::ref_from_prefix(code).ok()?;
    let is_ours = file.magic == *b"\x7fELF" && file.class == 2 && file.order == 1;
    is_ours.then_some(file)
}

/// What the section has, if it is there.
fn section(code: &[u8]) -> Option<&[u8]> {
    let file = file(code)?;
    if usize::from(file.section_size.get()) != size_of::<Section>() {
        return None;
    }
    let at = usize::try_from(file.sections_at.get()).ok()?;
    let count = usize::from(file.sections.get());
    let (sections, _) = <[Section]>::ref_from_prefix_with_elems(code.get(at..)?, count).ok()?;
    let names = bytes_of(code, sections.get(usize::from(file.names.get()))?)?;
    let is_named = |section: &&Section| {
        let name = names.get(section.name.get() as usize..).unwrap_or_default();
        name.strip_prefix(SECTION)
            .is_some_and(|rest| rest.first() == Some(&0))
    };
    bytes_of(code, sections.iter().find(is_named)?)
}

fn bytes_of<'c>(code: &'c [u8], section: &Section) -> Option<&'c [u8]> {
    let at = usize::try_from(section.offset.get()).ok()?;
    let size = usize::try_from(section.size.get()).ok()?;
    code.get(at..at.checked_add(size)?)
}
