//! What Miri, which interprets the program and knows no cache, runs instead of the instructions.

use std::sync::atomic::{Ordering, fence as order};

pub(super) use super::copy_words_and_write_back as stream_words;
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
