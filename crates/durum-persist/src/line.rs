//! Mapped persistent memory: stores, write-backs of lines, fences.
//!
//! A store to a mapped puddle is durable once the lines it touches were written back ([`write_back`])
//! and the *same thread* has fenced ([`fence`]) afterwards. Until then it may or may not survive a crash,
//! each aligned 8 bytes of it independently.
//!
//! The stores here differ from plain ones only in that a recorder sees them at once; see [`crate::record`].

use crate::processor::{self, atomic};
pub use crate::processor::{
    Instruction, LINE, dangerous_set_instruction, has, instruction, lines_touched, prefetch,
    prefetch_all, prefetch_to_write,
};
use crate::recording::hook;
use crate::{Site, count, state};

/// Stores 8 bytes at once: after a crash they are all old or all new. Other threads see it with release ordering.
///
/// # Safety
/// `target` is 8-byte aligned, valid for writes, and other threads access these bytes at the same time by
/// atomic operations only.
#[inline]
pub unsafe fn store_u64(target: *mut u64, value: u64) {
    if state::load() & state::RECORDING != 0 {
        // SAFETY: aligned, valid, and shared by atomic operations only: this function demands it.
        return unsafe { hook::store_u64(target, value) };
    }
    // SAFETY: aligned and valid by contract.
    unsafe { atomic(target) }.store(value, std::sync::atomic::Ordering::Release);
}

/// Whether somebody records what is stored: then it has to be stored by the functions here.
#[inline(always)]
pub fn is_recorded() -> bool {
    state::load() & state::RECORDING != 0
}

/// Stores the words that `mask` selects of the line at `line`, each at once as [`store_u64`] does; the first of `words`
/// go there, one for each bit of the mask, the lowest first.
///
/// # Safety
/// As for [`store_u64`], for each of these words.
#[inline]
pub unsafe fn store_words(line: *mut u64, mask: u8, words: &[u64]) {
    debug_assert!(mask.count_ones() as usize <= words.len());
    let is_recorded = is_recorded();
    let mut rest = mask;
    for word in words {
        if rest == 0 {
            break;
        }
        // SAFETY: inside the line, and valid by contract.
        unsafe {
            let target = line.add(rest.trailing_zeros() as usize);
            if is_recorded {
                hook::store_u64(target, *word);
            } else {
                atomic(target).store(*word, std::sync::atomic::Ordering::Release);
            }
        }
        rest &= rest - 1;
    }
}

/// Copies `len` bytes with ordinary stores.
///
/// # Safety
/// `source` is valid for reads and `target` for writes of `len` bytes; the two do not overlap; no other thread writes
/// to either or reads the target meanwhile.
#[inline]
pub unsafe fn copy(target: *mut u8, source: *const u8, len: usize) {
    if state::load() & state::RECORDING != 0 {
        // SAFETY: both ranges are valid and disjoint, and nobody writes to either: this function demands it.
        return unsafe { hook::copy(target, source, len) };
    }
    // SAFETY: valid and disjoint by contract.
    unsafe { target.copy_from_nonoverlapping(source, len) };
}

/// From more words than this on a copy in large pieces is faster, whatever was stored before.
const COPY_WORDS_MAX: usize = 20;

/// Copies `len` words, of few each by a store of its own: for words that were just stored one by one, of which the
/// processor has several at hand only when all of them have left for the cache.
///
/// # Safety
/// As for [`copy`], with words of 8 bytes; both are aligned.
#[inline(always)]
pub unsafe fn copy_words(target: *mut u64, source: *const u64, len: usize) {
    if state::load() & state::RECORDING != 0 {
        // SAFETY: both ranges are valid and disjoint, and nobody writes to either: this function demands it.
        return unsafe { hook::copy(target.cast(), source.cast(), len * 8) };
    }
    if len > COPY_WORDS_MAX {
        // SAFETY: both ranges are valid, aligned and disjoint: this function demands it.
        return unsafe { target.copy_from_nonoverlapping(source, len) };
    }
    for index in 0..len {
        // SAFETY: valid and disjoint by contract. Volatile, lest the compiler makes it a call that copies in larger
        // pieces.
        unsafe { target.add(index).write_volatile(source.add(index).read()) };
    }
}

/// Sets `len` bytes to zero with ordinary stores.
///
/// # Safety
/// `target` is valid for writes of `len` bytes and no other thread accesses them meanwhile.
#[inline]
pub unsafe fn zero(target: *mut u8, len: usize) {
    if state::load() & state::RECORDING != 0 {
        // SAFETY: valid for writes of `len` bytes, which nobody else accesses: this function demands it.
        return unsafe { hook::zero(target, len) };
    }
    // SAFETY: valid by contract.
    unsafe { target.write_bytes(0, len) };
}

/// Sets the bits of `mask` at once, whatever other threads do to the other bits; returns the word before.
///
/// # Safety
/// As for [`store_u64`].
#[inline]
pub unsafe fn fetch_or_u64(target: *mut u64, mask: u64) -> u64 {
    if state::load() & state::RECORDING != 0 {
        // SAFETY: aligned, valid, and shared by atomic operations only: this function demands it.
        return unsafe { hook::fetch_or_u64(target, mask) };
    }
    // SAFETY: aligned and valid by contract.
    unsafe { atomic(target) }.fetch_or(mask, std::sync::atomic::Ordering::AcqRel)
}

/// Keeps only the bits of `mask`, at once, whatever other threads do to the other bits; returns the word before.
///
/// # Safety
/// As for [`store_u64`].
#[inline]
pub unsafe fn fetch_and_u64(target: *mut u64, mask: u64) -> u64 {
    if state::load() & state::RECORDING != 0 {
        // SAFETY: aligned, valid, and shared by atomic operations only: this function demands it.
        return unsafe { hook::fetch_and_u64(target, mask) };
    }
    // SAFETY: aligned and valid by contract.
    unsafe { atomic(target) }.fetch_and(mask, std::sync::atomic::Ordering::AcqRel)
}

/// Copies `len` bytes past the cache: whole lines by non-temporal stores where the machine has them, the ragged
/// ends by ordinary stores and write-back. Durable after this thread's next [`fence`].
///
/// Worth it from about 256 bytes on where the range does not begin on a line: its ends are written back. For what does
/// there is [`stream_words`].
///
/// # Safety
/// As for [`copy`].
pub unsafe fn copy_streaming(target: *mut u8, source: *const u8, len: usize, site: Site) {
    if state::load() >= state::HOOKED {
        // SAFETY: both ranges are valid and disjoint, and nobody writes to either: this function demands it.
        return unsafe { hook::copy_streaming(target, source, len, site) };
    }
    // SAFETY: both ranges are valid and disjoint, and nobody writes to either: this function demands it.
    unsafe { processor::copy_streaming(target, source, len) };
}

/// Copies `len` words past the cache to the start of a line, and fills up its last line with zeros. Durable after this
/// thread's next [`fence`].
///
/// A fence that waits for nothing else takes less behind this than behind [`copy_words`] and [`write_back`]: what was
/// never in the cache need not leave it. Words that were just stored one by one are at hand one by one; many are copied
/// in larger pieces.
///
/// # Safety
/// As for [`copy_words`]; `target` is valid for writes of whole lines.
#[inline(always)]
pub unsafe fn stream_words(target: *mut u64, source: *const u64, len: usize, site: Site) {
    debug_assert!((target as usize).is_multiple_of(LINE));
    let state = state::load();
    if state >= state::HOOKED {
        // SAFETY: both ranges are valid and disjoint, and nobody writes to either: this function demands it.
        return unsafe { hook::stream_words(target, source, len, site) };
    }
    // SAFETY: both ranges are valid and disjoint, and nobody writes to either: this function demands it.
    unsafe { processor::stream_words(Instruction::from_code(state as u8), target, source, len) };
}

/// Writes back every line that the `len` bytes at `addr` touch. They are durable after this thread's next
/// [`fence`]. An empty range touches no line.
///
/// # Safety
/// The range is mapped.
#[inline(always)]
pub unsafe fn write_back(addr: *const u8, len: usize, site: Site) {
    if len == 0 {
        return;
    }
    let state = state::load();
    if state >= state::HOOKED {
        // SAFETY: the range is mapped, as this function demands, and not empty.
        return unsafe { hook::write_back(addr, len, site) };
    }
    // SAFETY: mapped by contract; not empty.
    unsafe { processor::write_back(Instruction::from_code(state as u8), addr, len) };
}

/// Writes back whole lines: those with these numbers (address divided by [`LINE`]), `offset` bytes further on.
///
/// # Safety
/// The lines are mapped.
#[inline]
pub unsafe fn write_back_lines(numbers: &[usize], offset: usize, site: Site) {
    let state = state::load();
    let lines = numbers
        .iter()
        .map(|number| (number * LINE).wrapping_add(offset) as *const u8);
    if state >= state::HOOKED {
        // SAFETY: the lines are mapped, as this function demands.
        return lines.for_each(|line| unsafe { hook::write_back(line, LINE, site) });
    }
    for line in lines {
        // SAFETY: mapped by contract.
        unsafe { processor::write_back_lines(Instruction::from_code(state as u8), line, 1) };
    }
    count::add_write_backs(numbers.len() as u64, (numbers.len() * LINE) as u64);
}

/// Waits until what this thread wrote back or streamed before is durable. Other threads' write-backs are not waited
/// for.
#[inline(always)]
pub fn fence(site: Site) {
    if state::load() >= state::HOOKED {
        return hook::fence(site);
    }
    processor::fence();
}
