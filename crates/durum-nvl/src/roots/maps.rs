//! Looking through the process' memory while no other thread runs. System calls and memory that is there already,
//! nothing else: whoever was stopped may hold any lock.

use std::ffi::CStr;
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{Mode, OFlags};

use super::memory::Reserved;
use crate::handles;

/// Words that are found at most, and at least where the process may not reserve as much.
const WORDS_MAX: [usize; 2] = [1 << 30, 1 << 24];
/// The text of /proc/self/maps.
const TEXT_MAX: usize = 64 << 20;
/// Larger mappings are tables of sanitizers and the like, with a bit or a byte for each address.
const MAPPING_MAX: usize = 1 << 40;
const PAGE: usize = 4096;
const PAGES_AT_ONCE: usize = 256;
/// Bits of a word in /proc/self/pagemap: the page is in memory, or on a swap device.
const THERE: u64 = 3 << 62;

/// What is looked for and where it is put.
pub(super) struct Scan {
    wanted: Range<usize>,
    words: Reserved<usize>,
    text: Reserved<u8>,
    pages: Reserved<u64>,
    /// A copy of some pages.
    copy: Reserved<usize>,
    /// Not to be looked through: heaps themselves, where counts tell, and our own memory.
    left_out: Vec<Range<usize>>,
}

/// What the kernel tells of the process.
struct Files {
    memory: OwnedFd,
    pagemap: Option<OwnedFd>,
}

impl Scan {
    /// Reserves what a scan needs.
    pub(super) fn new(wanted: Range<usize>) -> Option<Self> {
        let words = WORDS_MAX.iter().find_map(|count| Reserved::new(*count))?;
        let text = Reserved::new(TEXT_MAX)?;
        let mut pages = Reserved::new(PAGES_AT_ONCE)?;
        while pages.push(0) {}
        let mut copy = Reserved::new(PAGES_AT_ONCE * PAGE / 8)?;
        while copy.push(0) {}
        let mut left_out: Vec<_> = handles::open_addresses().collect();
        // A heap that is just being opened is not among those.
        left_out.extend([
            wanted.clone(),
            words.range(),
            text.range(),
            pages.range(),
            copy.range(),
        ]);
        Some(Self {
            wanted,
            words,
            text,
            pages,
            copy,
            left_out,
        })
    }

    /// Looks through everything. False if that could not be done.
    pub(super) fn everything(&mut self) -> bool {
        let file = |path| open(path, OFlags::empty());
        let (Some(maps), Some(memory)) = (file(c"/proc/self/maps"), file(c"/proc/self/mem")) else {
            return false;
        };
        let pagemap = file(c"/proc/self/pagemap");
        let files = Files { memory, pagemap };
        let Some(text) = self.text.fill(|rest| rustix::io::read(&maps, rest).ok()) else {
            return false;
        };
        // The text stays where it is while the fields beside it change.
        let (start, len) = (text.as_ptr(), text.len());
        // SAFETY: written above; nothing changes the text until the next scan.
        let text = unsafe { std::slice::from_raw_parts(start, len) };
        text.split(|byte| *byte == b'\n')
            .filter_map(worth_looking)
            .all(|range| self.outside(range, &files, 0))
    }

    /// Looks through what of the range is not left out, by `left_out` from number `from` on.
    fn outside(&mut self, range: Range<usize>, files: &Files, from: usize) -> bool {
        for index in from..self.left_out.len() {
            let out = self.left_out[index].clone();
            if out.start < range.end && range.start < out.end {
                let before = range.start..out.start.clamp(range.start, range.end);
                let behind = out.end.clamp(range.start, range.end)..range.end;
                return self.outside(before, files, index + 1)
                    && self.outside(behind, files, index + 1);
            }
        }
        range.is_empty() || self.mapping(range, files)
    }

    fn mapping(&mut self, range: Range<usize>, files: &Files) -> bool {
        if range.len() > MAPPING_MAX {
            return true;
        }
        let mut start = range.start;
        while start < range.end {
            let count = ((range.end - start) / PAGE).clamp(1, PAGES_AT_ONCE);
            self.note_pages(start, count, files);
            // Runs of pages that are there, each read at once.
            let mut index = 0;
            while index < count {
                let is_there = |page: &u64| page & THERE != 0;
                let pages = &self.pages.as_slice()[index..count];
                let run = pages.iter().take_while(|page| is_there(page)).count();
                let gap = pages[run..]
                    .iter()
                    .take_while(|page| !is_there(page))
                    .count();
                if run > 0 && !self.memory(start + index * PAGE, run * PAGE, &files.memory) {
                    return false;
                }
                index += run + gap;
            }
            start += count * PAGE;
        }
        true
    }

    /// Finds out which of `count` pages are there; all, where the system does not tell.
    fn note_pages(&mut self, start: usize, count: usize, files: &Files) {
        let pages = &mut self.pages.as_mut_slice()[..count];
        pages.fill(THERE);
        if let Some(pagemap) = &files.pagemap {
            let at = (start / PAGE * 8) as i64;
            // SAFETY: so many words of our own memory.
            unsafe {
                libc::pread(
                    pagemap.as_raw_fd(),
                    pages.as_mut_ptr().cast(),
                    count * 8,
                    at,
                )
            };
        }
    }

    /// Looks at each word. A copy that the kernel makes: durum's own threads go on, and may give memory back that is
    /// being looked at.
    fn memory(&mut self, start: usize, len: usize, memory: &OwnedFd) -> bool {
        let place = self.copy.as_mut_slice().as_mut_ptr();
        // SAFETY: our own memory, as large as the pages of one run.
        let read = unsafe { libc::pread(memory.as_raw_fd(), place.cast(), len, start as i64) };
        let Ok(read) = usize::try_from(read) else {
            // Not there any more, or never readable: halves, to find what of it is.
            let half = len / 2 / PAGE * PAGE;
            return half == 0
                || self.memory(start, half, memory)
                    && self.memory(start + half, len - half, memory);
        };
        for index in 0..read / 8 {
            let word = self.copy.as_slice()[index];
            if self.wanted.contains(&word)
                && self.words.last() != Some(word)
                && !self.words.push(word)
            {
                return false;
            }
        }
        read == len
            || read < PAGE
            || self.memory(start + read / PAGE * PAGE, len - read / PAGE * PAGE, memory)
    }

    /// What was found.
    pub(super) fn into_words(self) -> Reserved<usize> {
        self.words
    }
}

/// Opens what the kernel tells of this process, and asks no allocator.
pub(super) fn open(path: &CStr, flags: OFlags) -> Option<OwnedFd> {
    rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::CLOEXEC | flags,
        Mode::empty(),
    )
    .ok()
}

/// The addresses of a line of /proc/self/maps, if the program can have pointers there: private memory that it can write
/// or could once, and anonymous shared memory.
fn worth_looking(line: &[u8]) -> Option<Range<usize>> {
    let mut fields = line
        .split(|byte| *byte == b' ')
        .filter(|field| !field.is_empty());
    let (addresses, permissions) = (fields.next()?, fields.next()?);
    let (_offset, _device, inode) = (fields.next()?, fields.next()?, fields.next()?);
    let name = fields.next().unwrap_or_default();
    let is_anonymous = inode == b"0";
    let is_worth_it = match permissions {
        // Not the kernel's pages.
        _ if name.starts_with(b"[v") => false,
        [b'r', b'w', _, b'p', ..] => true,
        [b'r', _, _, b'p', ..] => is_anonymous,
        [b'r', _, _, b's', ..] => name.starts_with(b"/dev/zero"),
        _ => false,
    };
    let dash = addresses.iter().position(|byte| *byte == b'-')?;
    let (start, end) = (hex(&addresses[..dash])?, hex(&addresses[dash + 1..])?);
    is_worth_it.then_some(start..end)
}

pub(super) fn hex(digits: &[u8]) -> Option<usize> {
    usize::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        for (line, is_worth_it) in [
            ("rw-p 00000000 00:00 0 ", true),
            ("rw-p 00000000 00:00 0                  [heap]", true),
            ("rw-p 00001000 08:01 1234               /usr/lib/x.so", true),
            (
                "r--p 00001000 08:01 1234               /usr/lib/x.so",
                false,
            ),
            ("r--p 00000000 00:00 0 ", true),
            ("r--p 00000000 00:00 0                  [vvar]", false),
            (
                "rw-s 00000000 00:05 9                  /dev/dri/card0",
                false,
            ),
            (
                "rw-s 00000000 00:01 9                  /dev/zero (deleted)",
                true,
            ),
        ] {
            let expected = is_worth_it.then_some(0x7f00..0x7f10);
            let line = format!("7f00-7f10 {line}");
            assert_eq!(worth_looking(line.as_bytes()), expected, "{line}");
        }
        assert_eq!(worth_looking(b""), None);
    }
}
