//! Write-back and fences of AArch64.

use std::arch::asm;

/// Its non-temporal pairs are a hint ([`stream_lines`]).
pub(super) use super::copy_words_and_write_back as stream_words;
use super::{Instruction, LINE};

/// The Linux kernel's bit for DC CVAP in AT_HWCAP (arch/arm64/include/uapi/asm/hwcap.h).
const HWCAP_DCPOP: u64 = 1 << 16;

pub(super) fn best() -> Instruction {
    if has(Instruction::DcCvap) {
        Instruction::DcCvap
    } else {
        Instruction::DcCvac
    }
}

pub(super) fn has(instruction: Instruction) -> bool {
    match instruction {
        Instruction::DcCvap => hwcap() & HWCAP_DCPOP != 0,
        Instruction::DcCvac | Instruction::None => true,
        Instruction::Clwb | Instruction::ClflushOpt | Instruction::Clflush => false,
    }
}

fn hwcap() -> u64 {
    // SAFETY: getauxval only reads the auxiliary vector of the process.
    unsafe { libc::getauxval(libc::AT_HWCAP) }
}

/// The smallest data cache line of this machine, if smaller than ours. One DC instruction cleans that much.
#[inline(always)]
fn step() -> usize {
    let ctr: u64;
    // SAFETY: Linux lets programs read CTR_EL0 (or emulates it); no memory, stack or flags are touched.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) ctr, options(nomem, nostack, preserves_flags)) }
    // Bits 19:16, DminLine: log2 of the number of 4-byte words in the smallest data cache line.
    (4usize << ((ctr >> 16) & 0xf)).min(LINE)
}

/// # Safety
/// The `lines` lines from `first` on are mapped, and the processor has the instruction.
#[inline(always)]
pub(super) unsafe fn write_back_lines(instruction: Instruction, first: *const u8, lines: usize) {
    // DC by address is ordered after earlier stores of this thread to the same line; no barrier is due before it.
    // No `nomem`: the compiler must finish earlier stores to memory before these instructions.
    macro_rules! each_line {
        ($instruction:literal) => {{
            let step = step();
            for offset in (0..lines * LINE).step_by(step) {
                let line = first.wrapping_add(offset);
                // SAFETY: the line is mapped by contract; cleaning changes no data and no flags.
                unsafe { asm!($instruction, in(reg) line, options(nostack, preserves_flags)) }
            }
        }};
    }
    match instruction {
        // By its encoding, since assemblers know the name only with an architecture extension switched on.
        Instruction::DcCvap => each_line!("sys #3, c7, c12, #1, {}"),
        Instruction::DcCvac => each_line!("dc cvac, {}"),
        _ => {}
    }
}

#[inline(always)]
pub(super) fn prefetch(address: usize) {
    // SAFETY: a hint, which never faults.
    unsafe {
        asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly))
    };
}

#[inline(always)]
pub(super) fn prefetch_to_write(address: usize) {
    // SAFETY: a hint, which never faults.
    unsafe {
        asm!("prfm pstl1keep, [{}]", in(reg) address, options(nostack, preserves_flags, readonly))
    };
}

/// DSB SY: earlier cleans and stores of this thread have completed, at the point they were for, before
/// anything later begins. The inner-shareable form would complete cleans for other cores' view only.
#[inline(always)]
pub(super) fn fence() {
    // SAFETY: changes no data, no flags and no stack. No `nomem`, so that the compiler moves no store across.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) }
}

/// AArch64's non-temporal pairs are a hint that still goes through the cache, so a streamed line is copied and cleaned.
///
/// # Safety
/// `target` is on a line boundary; `source` is valid for reads and `target` for writes of `lines` lines; no overlap.
pub(super) unsafe fn stream_lines(
    instruction: Instruction,
    target: *mut u8,
    source: *const u8,
    lines: usize,
) {
    // SAFETY: valid and disjoint by contract.
    unsafe { target.copy_from_nonoverlapping(source, lines * LINE) };
    // SAFETY: the lines were just written, hence mapped; the instruction is the machine's.
    unsafe { write_back_lines(instruction, target, lines) };
}
