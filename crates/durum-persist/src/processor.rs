//! What the processor does: how lines are written back, fenced, streamed and fetched, and with which instructions.
//! Nobody records it here; [`crate::line`] does.

use crate::{count, state};

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[path = "processor/aarch64.rs"]
mod arch;
#[cfg(miri)]
#[path = "processor/interpreted.rs"]
mod arch;
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[path = "processor/x86_64.rs"]
mod arch;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("durum knows how to write back cache lines on x86-64 and AArch64 only");

/// Bytes in a line, the unit of write-back.
pub const LINE: usize = 64;

/// How a line is written back.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Instruction {
    /// x86-64: writes back and keeps the line in the cache.
    Clwb,
    /// x86-64: writes back and drops the line; ordered by fences only.
    ClflushOpt,
    /// x86-64: writes back and drops the line; one after the other.
    Clflush,
    /// AArch64: cleans to the point of persistence.
    DcCvap,
    /// AArch64: cleans to the point of coherency, for processors without DC CVAP.
    DcCvac,
    /// Nothing: the platform's persistence domain includes the caches
    /// (see [`crate::domain::caches_are_persistent`]). Fences remain.
    None,
}

impl Instruction {
    const fn code(self) -> u8 {
        match self {
            Instruction::Clwb => 0,
            Instruction::ClflushOpt => 1,
            Instruction::Clflush => 2,
            Instruction::DcCvap => 3,
            Instruction::DcCvac => 4,
            Instruction::None => 5,
        }
    }

    pub(crate) const fn from_code(code: u8) -> Instruction {
        match code {
            0 => Instruction::Clwb,
            1 => Instruction::ClflushOpt,
            2 => Instruction::Clflush,
            3 => Instruction::DcCvap,
            4 => Instruction::DcCvac,
            _ => Instruction::None,
        }
    }
}

/// The instruction in use: the best that this machine has, found once, unless
/// [`dangerous_set_instruction`] chose another.
pub fn instruction() -> Instruction {
    let mut state = state::load();
    if state & state::UNDETECTED != 0 {
        state::set_instruction(arch::best().code());
        state = state::load();
    }
    Instruction::from_code(state as u8)
}

/// Whether this processor can execute the instruction.
pub fn has(instruction: Instruction) -> bool {
    arch::has(instruction)
}

/// Replaces the instruction for the whole process, for benchmarks and tests. With
/// [`Instruction::None`] on a machine whose caches are volatile, nothing is durable any more.
///
/// # Panics
/// If this processor lacks the instruction.
pub fn dangerous_set_instruction(instruction: Instruction) {
    assert!(
        arch::has(instruction),
        "this processor cannot execute {instruction:?}"
    );
    state::set_instruction(instruction.code());
}

/// Gets the line at `address` ready to be read soon. A hint only: nothing is read, and the address may be any.
#[inline]
pub fn prefetch(address: usize) {
    arch::prefetch(address);
}

/// The same for all lines of `value`.
#[inline]
pub fn prefetch_all<T: ?Sized>(value: &T) {
    let start = (&raw const *value).addr();
    let first = start - start % LINE;
    for line in 0..lines_touched(start, size_of_val(value)) {
        prefetch(first + line * LINE);
    }
}

/// Gets the line at `address` ready to be written soon. A hint only: nothing is read or written, and the address may be
/// any.
#[inline]
pub fn prefetch_to_write(address: usize) {
    arch::prefetch_to_write(address);
}

/// The number of lines that a range touches.
///
/// ```
/// use durum_persist::line::lines_touched;
/// assert_eq!(lines_touched(0x1000, 0), 0);
/// assert_eq!(lines_touched(0x103f, 1), 1);
/// assert_eq!(lines_touched(0x103f, 2), 2);
/// ```
#[inline]
pub const fn lines_touched(addr: usize, len: usize) -> usize {
    if len == 0 {
        return 0;
    }
    (addr + (len - 1)) / LINE - addr / LINE + 1
}

/// Writes back `count` lines from the one at `first` on.
///
/// # Safety
/// The lines are mapped.
#[inline(always)]
pub(crate) unsafe fn write_back_lines(instruction: Instruction, first: *const u8, count: usize) {
    // SAFETY: the lines are mapped, as this function demands.
    unsafe { arch::write_back_lines(instruction, first, count) };
}

/// The word as an atomic one.
///
/// # Safety
/// As for [`store_u64`](crate::line::store_u64).
#[inline(always)]
pub(crate) unsafe fn atomic<'a>(target: *mut u64) -> &'a std::sync::atomic::AtomicU64 {
    debug_assert!(
        target.is_aligned(),
        "{target:?} is not on an 8-byte boundary"
    );
    // SAFETY: aligned, valid, and accessed atomically by others, by contract; callers use the reference once.
    unsafe { std::sync::atomic::AtomicU64::from_ptr(target) }
}

/// Writes the lines of a range back.
///
/// # Safety
/// As for [`line::write_back`](crate::line::write_back), and `len > 0`.
#[inline(always)]
pub(crate) unsafe fn write_back(instruction: Instruction, addr: *const u8, len: usize) {
    let lines = lines_touched(addr as usize, len);
    let first = addr.wrapping_sub(addr as usize % LINE);
    // SAFETY: a line is never split over two mappings, so the lines of a mapped range are mapped.
    unsafe { arch::write_back_lines(instruction, first, lines) };
    count::add_write_backs(lines as u64, len as u64);
}

#[inline(always)]
pub(crate) fn fence() {
    arch::fence();
    count::add_fence();
}

/// The three parts of a range: ragged start, whole lines, ragged end. Lengths in bytes.
pub(crate) fn split_at_lines(addr: usize, len: usize) -> (usize, usize, usize) {
    let start = (addr.wrapping_neg() % LINE).min(len);
    let middle = (len - start) / LINE * LINE;
    (start, middle, len - start - middle)
}

/// Copies words past the cache to the start of a line, and fills up the last line with zeros.
///
/// # Safety
/// As for [`line::stream_words`](crate::line::stream_words).
#[inline(always)]
pub(crate) unsafe fn stream_words(
    instruction: Instruction,
    target: *mut u64,
    source: *const u64,
    len: usize,
) {
    // SAFETY: valid and disjoint by contract; the target is on a line boundary.
    unsafe { arch::stream_words(instruction, target, source, len) };
    count::add_streamed(len.div_ceil(LINE / 8) as u64, 8 * len as u64);
}

/// The same by ordinary stores and write-back.
///
/// # Safety
/// As for [`stream_words`].
#[inline]
unsafe fn copy_words_and_write_back(
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
        arch::write_back_lines(instruction, target.cast(), end / (LINE / 8));
    }
}

/// Copies past the cache.
///
/// # Safety
/// As for [`line::copy`](crate::line::copy).
pub(crate) unsafe fn copy_streaming(target: *mut u8, source: *const u8, len: usize) {
    let (start, middle, end) = split_at_lines(target as usize, len);
    // Detects the instruction if this is the process's first operation.
    let instruction = instruction();
    for (offset, part) in [(0, start), (start + middle, end)] {
        if part == 0 {
            continue;
        }
        // SAFETY: a part of the ranges of the contract.
        unsafe {
            target
                .add(offset)
                .copy_from_nonoverlapping(source.add(offset), part)
        };
        // SAFETY: the range was just written, hence mapped.
        unsafe { write_back(instruction, target.add(offset), part) };
    }
    if middle > 0 {
        // SAFETY: a part of the ranges of the contract; `start` is chosen so that the target is on a line.
        unsafe {
            arch::stream_lines(
                instruction,
                target.add(start),
                source.add(start),
                middle / LINE,
            )
        };
        count::add_streamed((middle / LINE) as u64, middle as u64);
    }
}
