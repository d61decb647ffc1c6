//! Write-back, streaming stores and fences of x86-64.

use std::arch::asm;
use std::arch::x86_64::{
    __cpuid, __cpuid_count, __m128i, _mm_loadu_si128, _mm_stream_si128, _mm512_loadu_si512,
    _mm512_stream_si512,
};

use super::{Instruction, LINE};
use crate::wide;

pub(super) fn best() -> Instruction {
    [Instruction::Clwb, Instruction::ClflushOpt]
        .into_iter()
        .find(|instruction| has(*instruction))
        .unwrap_or(Instruction::Clflush)
}

pub(super) fn has(instruction: Instruction) -> bool {
    match instruction {
        // Intel SDM, CPUID: leaf 7, sub-leaf 0, EBX bit 24 is CLWB, bit 23 is CLFLUSHOPT. CLFLUSH comes with SSE2.
        Instruction::Clwb => leaf_7_ebx() & 1 << 24 != 0,
        Instruction::ClflushOpt => leaf_7_ebx() & 1 << 23 != 0,
        Instruction::Clflush | Instruction::None => true,
        Instruction::DcCvap | Instruction::DcCvac => false,
    }
}

#[allow(unused_unsafe)] // CPUID became a safe function after the oldest compiler we support.
fn leaf_7_ebx() -> u32 {
    // SAFETY: every x86-64 processor has CPUID; leaf 0 tells the highest leaf.
    if unsafe { __cpuid(0) }.eax < 7 {
        return 0;
    }
    // SAFETY: the leaf exists, see above.
    unsafe { __cpuid_count(7, 0) }.ebx
}

/// Runs one instruction on each line. No `nomem`: the compiler must finish earlier stores to memory before.
macro_rules! each_line {
    ($instruction:literal, $first:expr, $lines:expr) => {
        for index in 0..$lines {
            let line = $first.wrapping_add(index * LINE);
            // SAFETY: the line is mapped by the caller's contract; the instruction changes no data and no flags.
            unsafe { asm!($instruction, in(reg) line, options(nostack, preserves_flags)) }
        }
    };
}

/// # Safety
/// The `lines` lines from `first` on are mapped, and the processor has the instruction.
#[inline(always)]
pub(super) unsafe fn write_back_lines(instruction: Instruction, first: *const u8, lines: usize) {
    match instruction {
        Instruction::Clwb => each_line!("clwb [{}]", first, lines),
        // SAFETY: the lines are mapped, and the processor has the instruction: this function demands both.
        _ => unsafe { write_back_lines_otherwise(instruction, first, lines) },
    }
}

/// Kept out of line, lest each caller grows by loops that recent processors do not need.
///
/// # Safety
/// As for [`write_back_lines`].
#[inline(never)]
unsafe fn write_back_lines_otherwise(instruction: Instruction, first: *const u8, lines: usize) {
    match instruction {
        Instruction::ClflushOpt => each_line!("clflushopt [{}]", first, lines),
        Instruction::Clflush => each_line!("clflush [{}]", first, lines),
        _ => {}
    }
}

#[inline(always)]
pub(super) fn prefetch(address: usize) {
    // SAFETY: a hint, which never faults.
    unsafe {
        asm!("prefetcht0 [{}]", in(reg) address, options(nostack, preserves_flags, readonly))
    };
}

#[inline(always)]
pub(super) fn prefetch_to_write(address: usize) {
    // SAFETY: a hint, which never faults; processors without it take it for a NOP.
    unsafe { asm!("prefetchw [{}]", in(reg) address, options(nostack, preserves_flags, readonly)) };
}

/// SFENCE: earlier write-backs, streaming stores and stores of this thread are done before later stores.
#[inline(always)]
pub(super) fn fence() {
    // SAFETY: changes no data, no flags and no stack. No `nomem`, so that the compiler moves no store across.
    unsafe { asm!("sfence", options(nostack, preserves_flags)) }
}

/// From so many words on those of a line are loaded at once, and stored at once.
const WORDS_AT_ONCE_MIN: usize = 128;

/// # Safety
/// `target` is on a line boundary, and valid for writes of as many whole lines as `len` words touch; `source` is valid
/// for reads of `len` words; no overlap.
#[inline(always)]
pub(super) unsafe fn stream_words(
    instruction: Instruction,
    target: *mut u64,
    source: *const u64,
    len: usize,
) {
    // SAFETY: inside the ranges of the contract.
    unsafe {
        if instruction == Instruction::None {
            // What is in the cache is durable.
            return super::copy_words_and_write_back(instruction, target, source, len);
        }
        let lines = len / (LINE / 8);
        let (mut target, mut source, rest) = (target, source, len % (LINE / 8));
        let end = source.add(len - rest);
        if len >= WORDS_AT_ONCE_MIN {
            stream_lines(instruction, target.cast(), source.cast(), lines);
            (target, source) = (target.add(len - rest), end);
        }
        while source < end {
            stream_line(target, source, LINE / 8);
            (target, source) = (target.add(LINE / 8), source.add(LINE / 8));
        }
        if rest > 0 {
            stream_line(target, source, rest);
        }
    }
}

/// Streams a line word by word: the first `len` words, at least one, from `source`, zeros behind them.
///
/// # Safety
/// As for [`stream_words`].
#[inline(always)]
unsafe fn stream_line(target: *mut u64, source: *const u64, len: usize) {
    /// The words at these places, each by an instruction of its own, without any of a loop.
    macro_rules! line {
        ($($word:literal)*; $($zero:literal)*) => {{
            $(asm!(
                concat!("movnti qword ptr [{} + 8 * ", $word, "], {}"),
                in(reg) target,
                in(reg) source.add($word).read(),
                options(nostack, preserves_flags)
            );)*
            $(asm!(
                concat!("movnti qword ptr [{} + 8 * ", $zero, "], {}"),
                in(reg) target,
                in(reg) 0_u64,
                options(nostack, preserves_flags)
            );)*
        }};
    }
    // SAFETY: a line of the range of the contract; as many words as are read.
    unsafe {
        match len {
            1 => line!(0; 1 2 3 4 5 6 7),
            2 => line!(0 1; 2 3 4 5 6 7),
            3 => line!(0 1 2; 3 4 5 6 7),
            4 => line!(0 1 2 3; 4 5 6 7),
            5 => line!(0 1 2 3 4; 5 6 7),
            6 => line!(0 1 2 3 4 5; 6 7),
            7 => line!(0 1 2 3 4 5 6; 7),
            _ => line!(0 1 2 3 4 5 6 7;),
        }
    }
}

/// # Safety
/// `target` is on a line boundary; `source` is valid for reads and `target` for writes of `lines` lines; no overlap.
pub(super) unsafe fn stream_lines(
    _: Instruction,
    target: *mut u8,
    source: *const u8,
    lines: usize,
) {
    if wide::is_there() {
        // SAFETY: this function demands the same of its ranges; the processor has what the other one needs.
        return unsafe { stream_lines_wide(target, source, lines) };
    }
    for index in 0..lines {
        // SAFETY: inside the ranges of the contract.
        let (target, source) = unsafe { (target.add(index * LINE), source.add(index * LINE)) };
        let (target, source) = (target.cast::<__m128i>(), source.cast::<__m128i>());
        // All four of a line in a row, so that the write-combining buffer leaves as one full line.
        // SAFETY: reads the 64 bytes of the source line; unaligned loads.
        let line = unsafe {
            [
                _mm_loadu_si128(source),
                _mm_loadu_si128(source.add(1)),
                _mm_loadu_si128(source.add(2)),
                _mm_loadu_si128(source.add(3)),
            ]
        };
        for (position, part) in line.into_iter().enumerate() {
            // SAFETY: inside the target line, and 16-byte aligned since the line is 64-byte aligned.
            unsafe { _mm_stream_si128(target.add(position), part) };
        }
    }
    // The caller's fence makes the stores durable and visible. Rust's memory model does not know streaming
    // stores: other threads may read the range only after that fence, which `copy`'s contract demands.
}

/// The same, each line by one store.
///
/// # Safety
/// As for [`stream_lines`]; [`wide::is_there`].
#[target_feature(enable = "avx512f")]
unsafe fn stream_lines_wide(target: *mut u8, source: *const u8, lines: usize) {
    for index in 0..lines {
        // SAFETY: a line inside the ranges of the contract; the target's is aligned.
        unsafe {
            let line = _mm512_loadu_si512(source.add(index * LINE).cast());
            _mm512_stream_si512(target.add(index * LINE).cast(), line);
        }
    }
}
