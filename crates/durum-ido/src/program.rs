//! Where the program itself lies, which is elsewhere in each run.

use std::ffi::{c_int, c_void};
use std::ops::Range;
use std::sync::OnceLock;

use crate::addresses;
use crate::code::Region;

/// No address has it.
const IN_PROGRAM: u64 = 1 << 63;
/// The distance from the program's beginning.
const DISTANCE_BITS: u32 = 33;
const DISTANCE: u64 = (1 << DISTANCE_BITS) - 1;
/// The type of a note that tells a build from others.
const BUILD_ID: u32 = 3;

/// The program's addresses.
#[derive(Debug, Default)]
struct Program {
    all: Range<u64>,
    /// What nobody writes.
    constants: Vec<Range<u64>>,
    /// Tells one build from another, where it stands in a word.
    build: u64,
    /// The same, as the linker has noted it.
    build_id: Option<&'static [u8]>,
}

fn program() -> &'static Program {
    static PROGRAM: OnceLock<Program> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let mut found = Program::default();
        // SAFETY: calls back with what is loaded, as `look` takes it.
        unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut found).cast()) };
        found
    })
}

/// The program is what is told first.
///
/// # Safety
/// Called by `dl_iterate_phdr` with a [`Program`].
unsafe extern "C" fn look(
    info: *mut libc::dl_phdr_info,
    _size: libc::size_t,
    found: *mut c_void,
) -> c_int {
    // SAFETY: as the caller promises.
    let (info, found) = unsafe { (&*info, &mut *found.cast::<Program>()) };
    // SAFETY: as many there are.
    let parts = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum.into()) };
    let range = |part: &libc::Elf64_Phdr| {
        let start = info.dlpi_addr + part.p_vaddr;
        start..start + part.p_memsz
    };
    // SAFETY: a part that is loaded and read only.
    let bytes = |range: &Range<u64>| unsafe {
        let start = std::ptr::with_exposed_provenance::<u8>(range.start as usize);
        std::slice::from_raw_parts(start, (range.end - range.start) as usize)
    };
    let loaded = || parts.iter().filter(|part| part.p_type == libc::PT_LOAD);
    found.all = loaded().map(|part| range(part).start).min().unwrap_or(0)
        ..loaded().map(|part| range(part).end).max().unwrap_or(0);
    let is_constant = |part: &&libc::Elf64_Phdr| {
        let is_written = part.p_flags & libc::PF_W != 0;
        part.p_type == libc::PT_LOAD && !is_written || part.p_type == libc::PT_GNU_RELRO
    };
    found.constants = parts.iter().filter(is_constant).map(range).collect();
    let notes = parts.iter().filter(|part| part.p_type == libc::PT_NOTE);
    let note = (notes.map(|part| bytes(&range(part)))).find(|note| build_id(note).is_some());
    found.build_id = note.and_then(build_id);
    let code = loaded().find(|part| part.p_flags & libc::PF_X != 0);
    let told = note.or_else(|| code.map(|part| bytes(&range(part))));
    let build = told
        .unwrap_or_default()
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        });
    found.build = build >> (DISTANCE_BITS + 1) << DISTANCE_BITS & !IN_PROGRAM;
    1
}

/// The build-id, if it is among the notes.
fn build_id(mut notes: &[u8]) -> Option<&[u8]> {
    while let Some((head, rest)) = notes.split_first_chunk::<12>() {
        let word = |at: usize| {
            let bytes = head.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
            bytes.map_or(0, u32::from_ne_bytes)
        };
        let name = word(0).next_multiple_of(4) as usize;
        let behind = rest.get(name..).unwrap_or_default();
        if word(8) == BUILD_ID {
            return behind.get(..word(4) as usize);
        }
        let size = word(4).next_multiple_of(4) as usize;
        notes = behind.get(size..).unwrap_or_default();
    }
    None
}

/// What the program's file is called.
pub(crate) fn name() -> String {
    let file = std::env::current_exe().unwrap_or_default();
    let name = file.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

/// What tells this build from others, in hex: its build-id, or a hash of its code where it has none.
pub(crate) fn build() -> String {
    let program = program();
    match program.build_id {
        Some(id) => id.iter().map(|byte| format!("{byte:02x}")).collect(),
        None => format!("{:x}", program.build >> DISTANCE_BITS),
    }
}

/// Whether an address is that of a constant of the program.
pub(crate) fn is_constant(address: usize) -> bool {
    let constants = &program().constants;
    constants
        .iter()
        .any(|range| range.contains(&(address as u64)))
}

/// The words of a region that are pointers.
fn pointers<'a>(region: &Region, words: &'a mut [u64]) -> impl Iterator<Item = &'a mut u64> {
    let addresses = region.addresses;
    let is_pointer = move |at: usize| {
        let bits = addresses.get(at / 64).copied().unwrap_or(0);
        bits >> (at % 64) & 1 != 0
    };
    let words = words.iter_mut().enumerate();
    words.filter_map(move |(at, word)| is_pointer(at).then_some(word))
}

/// Whether a live-in of a region is a pointer that a range of addresses holds.
pub(crate) fn has_pointer(
    region: &Region,
    words: &mut [u64],
    holds: impl Fn(usize) -> bool,
) -> bool {
    pointers(region, words).any(|word| holds(*word as usize))
}

/// Pointers into the program, among the live-ins of a region, are told by the name of what they lead to, or, where that
/// has none, by their distance from the program's beginning.
#[inline]
pub(crate) fn make_relative(region: &Region, words: &mut [u64]) {
    if region.addresses == [0; 2] {
        return;
    }
    let program = program();
    for word in pointers(region, words) {
        if program.all.contains(word) {
            let named = addresses::told(*word).filter(|(name, _)| at_name(*name) != program.build);
            let told = named.map(|(name, distance)| at_name(name) | distance);
            *word = IN_PROGRAM | told.unwrap_or(program.build | (*word - program.all.start));
        }
    }
}

/// Where a name stands in a word.
fn at_name(name: u64) -> u64 {
    name << DISTANCE_BITS
}

/// The counterpart, in this run. False, if another build has recorded them, and not by names that this one has: the
/// words are of no use then.
pub(crate) fn make_absolute(region: &Region, words: &mut [u64]) -> bool {
    let program = program();
    pointers(region, words).all(|word| {
        if *word & IN_PROGRAM == 0 {
            return true;
        }
        let (name, distance) = (*word & !IN_PROGRAM & !DISTANCE, *word & DISTANCE);
        let named = addresses::place_of(name >> DISTANCE_BITS, distance);
        let place = match name == program.build {
            // No name of ours, which another build could have recorded.
            true => Some(program.all.start + distance).filter(|_| named.is_none()),
            false => named,
        };
        *word = place.unwrap_or(*word);
        place.is_some()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_in_the_program_come_back_and_others_stay() {
        let region = Region {
            code: 1,
            line: 0,
            words: 4,
            flags: 0,
            addresses: [0b0111, 0],
        };
        let code = is_constant as fn(usize) -> bool as usize as u64;
        let local = 1u8;
        let words = [code, (&raw const local).addr() as u64, 0, code];
        let mut recorded = words;
        make_relative(&region, &mut recorded);
        assert_ne!(recorded[0], code);
        assert_eq!(recorded[1..], words[1..]);
        let mut of_another = recorded;
        of_another[0] ^= 1 << DISTANCE_BITS;
        assert!(make_absolute(&region, &mut recorded));
        assert_eq!(recorded, words);
        assert!(!make_absolute(&region, &mut of_another));
        assert!(is_constant(code as usize) && !is_constant((&raw const local).addr()));
    }
}
