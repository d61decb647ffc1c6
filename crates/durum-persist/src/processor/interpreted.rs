//! What Miri, which interprets the program and knows no cache, runs instead of the instructions.

use std::sync::atomic::{Ordering, fence as order};

use super::{Instruction, LINE};

pub(super) fn best() -> Instruction {
    Instruction::None
}

pub(super) fn has(instruction: Instruction) -> bool {
    instruction == Instruction::None
}

/// # Safety
/// The `lines` lines from `first` on are mapped.
pub(super) unsafe fn write_back_lines(_: Instruction, _first: *const u8, _lines: usize) {}

pub(super) fn prefetch(_address: usize) {}

pub(super) fn prefetch_to_write(_address: usize) {}

pub(super) fn fence() {
    order(Ordering::SeqCst);
}

/// # Safety
/// `source` is valid for reads and `target` for writes of `lines` lines; no overlap.
pub(super) unsafe fn stream_lines(
    _: Instruction,
    target: *mut u8,
    source: *const u8,
    lines: usize,
) {
    // SAFETY: valid and disjoint by contract.
    unsafe { target.copy_from_nonoverlapping(source, lines * LINE) };
}

/// # Safety
/// As on x86-64.
#[inline]
pub(super) unsafe fn stream_words(
    instruction: Instruction,
    target: *mut u64,
    source: *const u64,
    len: usize,
) {
    let end = len.next_multiple_of(LINE / 8);
    // SAFETY: inside the ranges of the contract; the lines were just written, hence mapped.
    unsafe {
        target.copy_from_nonoverlapping(source, len);
        target.add(len).write_bytes(0, end - len);
        write_back_lines(instruction, target.cast(), end / (LINE / 8));
    }
}
