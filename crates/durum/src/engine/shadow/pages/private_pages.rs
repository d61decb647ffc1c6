//! For tests: which pages are private. Those of this crate and of `tests/memory` have it.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

const PAGE: usize = 4096;

/// How many pages of this range of addresses are.
pub(crate) fn private_pages(range: &Range<usize>) -> usize {
    let mut entries = vec![0; range.len() / PAGE * 8];
    let pages = File::open("/proc/self/pagemap").unwrap();
    pages
        .read_exact_at(&mut entries, (range.start / PAGE * 8) as u64)
        .unwrap();
    let words = (entries.as_chunks::<8>().0.iter()).map(|entry| u64::from_ne_bytes(*entry));
    // Present, and not shared with a file.
    words
        .filter(|page| page >> 63 == 1 && page >> 61 & 1 == 0)
        .count()
}
