//! Mapped persistent memory: stores, write-backs of lines, fences.
//!
//! A store to a mapped puddle is durable once the lines it touches were written back ([`write_back`])
//! and the *same thread* has fenced ([`fence`]) afterwards. Until then it may or may not survive a crash,
//! each aligned 8 bytes of it independently.
//!
//! The stores here differ from plain ones only in that a recorder sees them at once; see [`crate::record`].

use crate::{Site, count, record, state};

#[cfg(all(target_arch = "aarch64", not(miri)))]
#[path = "line/aarch64.rs"]
mod arch;
#[cfg(miri)]
#[path = "line/interpreted.rs"]
mod arch;
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[path = "line/x86_64.rs"]
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

    const fn from_code(code: u8) -> Instruction {
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

/// Stores 8 bytes at once: after a crash they are all old or all new. Other threads see it with release ordering.
///
/// # Safety
/// `target` is 8-byte aligned, valid for writes, and other threads access these bytes at the same time by
/// atomic operations only.
#[inline]
pub unsafe fn store_u64(target: *mut u64, value: u64) {
    if state::load() & state::RECORDING != 0 {
        // SAFETY: the same contract.
        return unsafe { record::hook::store_u64(target, value) };
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
                record::hook::store_u64(target, *word);
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
        // SAFETY: the same contract.
        return unsafe { record::hook::copy(target, source, len) };
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
        // SAFETY: the same contract.
        return unsafe { record::hook::copy(target.cast(), source.cast(), len * 8) };
    }
    if len > COPY_WORDS_MAX {
        // SAFETY: the same contract.
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
        // SAFETY: the same contract.
        return unsafe { record::hook::zero(target, len) };
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
        // SAFETY: the same contract.
        return unsafe { record::hook::fetch_or_u64(target, mask) };
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
        // SAFETY: the same contract.
        return unsafe { record::hook::fetch_and_u64(target, mask) };
    }
    // SAFETY: aligned and valid by contract.
    unsafe { atomic(target) }.fetch_and(mask, std::sync::atomic::Ordering::AcqRel)
}

/// Copies `len` bytes past the cache: whole lines by non-temporal stores where the machine has them, the ragged
/// ends by ordinary stores and write-back. Durable after this thread's next [`fence`].
///
/// Worth it from about 256 bytes on; below, [`copy`] and [`write_back`] are as fast.
///
/// # Safety
/// As for [`copy`].
pub unsafe fn copy_streaming(target: *mut u8, source: *const u8, len: usize, site: Site) {
    if state::load() >= state::HOOKED {
        // SAFETY: the same contract.
        return unsafe { record::hook::copy_streaming(target, source, len, site) };
    }
    // SAFETY: the same contract.
    unsafe { copy_streaming_unhooked(target, source, len) };
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
        // SAFETY: the same contract.
        return unsafe { record::hook::write_back(addr, len, site) };
    }
    // SAFETY: mapped by contract; not empty.
    unsafe { write_back_unhooked(Instruction::from_code(state as u8), addr, len) };
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
        // SAFETY: the same contract.
        return lines.for_each(|line| unsafe { record::hook::write_back(line, LINE, site) });
    }
    for line in lines {
        // SAFETY: mapped by contract.
        unsafe { arch::write_back_lines(Instruction::from_code(state as u8), line, 1) };
    }
    count::add_write_backs(numbers.len() as u64, (numbers.len() * LINE) as u64);
}

/// Waits until what this thread wrote back or streamed before is durable. Other threads' write-backs are not waited
/// for.
#[inline(always)]
pub fn fence(site: Site) {
    if state::load() >= state::HOOKED {
        return record::hook::fence(site);
    }
    fence_unhooked();
}

/// Gets the line at `address` ready to be read soon. A hint only: nothing is read, and the address may be any.
#[inline]
pub fn prefetch(address: usize) {
    arch::prefetch(address);
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

/// # Safety
/// As for [`store_u64`].
#[inline(always)]
pub(crate) unsafe fn atomic<'a>(target: *mut u64) -> &'a std::sync::atomic::AtomicU64 {
    debug_assert!(
        target.is_aligned(),
        "{target:?} is not on an 8-byte boundary"
    );
    // SAFETY: aligned, valid, and accessed atomically by others, by contract; callers use the reference once.
    unsafe { std::sync::atomic::AtomicU64::from_ptr(target) }
}

/// # Safety
/// As for [`write_back`], and `len > 0`.
#[inline(always)]
pub(crate) unsafe fn write_back_unhooked(instruction: Instruction, addr: *const u8, len: usize) {
    let lines = lines_touched(addr as usize, len);
    let first = addr.wrapping_sub(addr as usize % LINE);
    // SAFETY: a line is never split over two mappings, so the lines of a mapped range are mapped.
    unsafe { arch::write_back_lines(instruction, first, lines) };
    count::add_write_backs(lines as u64, len as u64);
}

#[inline(always)]
pub(crate) fn fence_unhooked() {
    arch::fence();
    count::add_fence();
}

/// The three parts of a range: ragged start, whole lines, ragged end. Lengths in bytes.
pub(crate) fn split_at_lines(addr: usize, len: usize) -> (usize, usize, usize) {
    let start = (addr.wrapping_neg() % LINE).min(len);
    let middle = (len - start) / LINE * LINE;
    (start, middle, len - start - middle)
}

/// # Safety
/// As for [`copy`].
pub(crate) unsafe fn copy_streaming_unhooked(target: *mut u8, source: *const u8, len: usize) {
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
        unsafe { write_back_unhooked(instruction, target.add(offset), part) };
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
