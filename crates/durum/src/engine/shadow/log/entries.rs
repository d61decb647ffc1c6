//! Ranges of memory as entries of a record.

use std::ops::Range;

use durum_format::record::{HEADER_WORDS, Operation, push_copy, push_word};

use crate::fault::guarded;

/// Larger ranges are put into a record in pieces of this many bytes, so that it can be cut between them. They end with
/// pages, which go home as a whole then.
const COPY_PIECE: usize = 16 << 10;
/// Memory has room for so many words of a record at least.
const RECORD_WORDS_MIN: usize = 64;

/// An empty record. It has room for a small one, so that its first lines, to which one thread writes all the time, are
/// not those of a neighbour in memory, which may be another thread's.
pub(crate) fn new_record() -> Vec<u64> {
    let mut record = Vec::with_capacity(RECORD_WORDS_MIN);
    record.resize(HEADER_WORDS, 0);
    record
}

/// Puts what a range of memory holds into the record.
pub(crate) fn push_range(record: &mut Vec<u64>, range: Range<usize>) {
    // SAFETY: announced ranges lie in mapped puddles, and only this thread changes them.
    let bytes = unsafe { bytes_of(&range) };
    guarded(|| push_bytes(record, range.start, bytes));
}

/// # Safety
/// The range is mapped, and nobody changes it while the bytes are in use.
unsafe fn bytes_of<'a>(range: &Range<usize>) -> &'a [u8] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, range.len()) }
}

/// Puts bytes for `target` into the record.
#[inline]
pub(crate) fn push_bytes(record: &mut Vec<u64>, target: usize, bytes: &[u8]) {
    if let Some(word) = bytes.first_chunk::<8>()
        && bytes.len() == 8
        && target.is_multiple_of(8)
    {
        return push_word(
            record,
            Operation::Store,
            target as u64,
            u64::from_ne_bytes(*word),
        );
    }
    for piece in pieces(target..target + bytes.len()) {
        let at = piece.start - target;
        push_copy(record, piece.start as u64, &bytes[at..at + piece.len()]);
    }
}

/// The entries of the record at this address.
///
/// # Safety
/// A whole record of this process, whose segment is not written again meanwhile.
pub(crate) unsafe fn entries_at<'r>(address: usize) -> &'r [u64] {
    // SAFETY: as the caller promises.
    unsafe {
        let head = address as *const u64;
        let words = (u64::from_le(head.read()) >> 32) as usize / 8;
        std::slice::from_raw_parts(head.add(HEADER_WORDS), words)
    }
}

/// A range in pieces that end with pages.
pub(super) fn pieces(range: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let mut from = range.start;
    std::iter::from_fn(move || {
        let piece = from..range.end.min((from + 1).next_multiple_of(COPY_PIECE));
        from = piece.end;
        (!piece.is_empty()).then_some(piece)
    })
}
