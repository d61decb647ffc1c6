//! The two copies of a Twin pool that was recovered: they have to be the same, or a later recovery brings back what one
//! of them still has.

use std::fs;
use std::ops::Range;
use std::path::Path;

use durum_format::puddle::{BITMAP_OFFSET, PuddleKind, bitmap_words, heap_offset};
use durum_format::{GRANULE, LINE};

/// Memory that holds something.
pub struct Live {
    pub range: Range<usize>,
    /// Where the model has its first byte.
    pub first: Option<usize>,
}

/// What differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// A byte of the model.
    Byte(usize),
    Other,
}

/// Compares the copies of all objects, of what says where they are, and of the beginnings of extents.
pub fn agree(
    image: &Path,
    live: &[Live],
    may_differ: impl Fn(Place) -> bool,
) -> Result<(), String> {
    let puddles = fs::read_dir(image.join("puddles")).map_err(|error| error.to_string())?;
    for entry in puddles {
        let path = entry.map_err(|error| error.to_string())?.path();
        let bytes = fs::read(&path).map_err(|error| error.to_string())?;
        let kind = u32::from_le_bytes(bytes[12..16].try_into().expect("four bytes"));
        if kind != PuddleKind::Twin as u32 {
            continue;
        }
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("a word"));
        let (address, size) = (word(48) as usize, word(56));
        let (main, back) = bytes.split_at(size as usize);
        let differ = |offset: usize, what: &str| {
            Err(format!(
                "the copies of {what} at {:#x} differ",
                address + offset
            ))
        };
        for index in 0..bitmap_words(size) as usize {
            let at = BITMAP_OFFSET as usize + 8 * index;
            if main[at..at + 8] != back[at..at + 8] {
                return differ(at, "the bitmap");
            }
            let extents = (0..64).filter(|bit| word(at) >> bit & 1 == 1);
            for granule in extents.map(|bit| 64 * index + bit) {
                let start = heap_offset(size) as usize + granule * GRANULE as usize;
                let end = start + LINE as usize;
                if main[start..end] != back[start..end] {
                    return differ(start, "an extent's beginning");
                }
            }
        }
        for Live { range, first } in live {
            if !(address..address + size as usize).contains(&range.start) {
                continue;
            }
            let part = range.start - address..range.end - address;
            let copies = main[part.clone()].iter().zip(&back[part.clone()]);
            for (at, _) in copies.enumerate().filter(|(_, (main, back))| main != back) {
                let place = first.map_or(Place::Other, |first| Place::Byte(first + at));
                if !may_differ(place) {
                    return differ(part.start + at, &format!("an object ({place:?})"));
                }
            }
        }
    }
    Ok(())
}
