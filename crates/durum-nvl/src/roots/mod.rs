//! Roots: which addresses of a heap the program's memory names, by words in registers, stacks and everything else that
//! threads can write.
//!
//! Conservative: whatever looks like a pointer is one. Addresses into data and right behind them count; headers do not,
//! which nobody but the runtime and its logs name. What is not found: pointers that are not stored as such (in files,
//! shifted, xored), and those in memory that other processes share. A word that is left over on a stack keeps its
//! allocation until it is overwritten.

mod maps;
mod memory;
mod stop;

use std::ops::Range;
use std::sync::Mutex;

use crate::primitive::locked;
use memory::Reserved;

/// Addresses that were found, in order.
pub(crate) struct RootSet {
    words: Reserved<usize>,
}

impl RootSet {
    /// Whether an address in `[first, last]` is named.
    pub(crate) fn any_in(&self, first: usize, last: usize) -> bool {
        let words = self.words.as_slice();
        let at = words.partition_point(|word| *word < first);
        words.get(at).is_some_and(|word| *word <= last)
    }
}

/// Makes threads stoppable. Once for the process, at the first heap.
pub(crate) fn prepare() {
    stop::install();
}

/// Stops all other threads, and finds what the process' memory names in this range. `None` where a thread does not
/// stop, or memory cannot be read.
pub(crate) fn find(wanted: Range<usize>) -> Option<RootSet> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = locked(&ONE_AT_A_TIME);
    stop::install();
    // All memory that is needed is there before the first thread stops: one of them may hold a lock of the allocator.
    let mut scan = maps::Scan::new(wanted)?;
    let stopped = stop::all()?;
    let is_complete = with_registers(&mut scan, maps::Scan::everything);
    drop(stopped);
    let mut words = is_complete.then(|| scan.into_words())?;
    words.as_mut_slice().sort_unstable();
    Some(RootSet { words })
}

/// Calls `f` while this thread's own registers lie on its stack, those that a call would keep in place.
#[inline(never)]
fn with_registers(scan: &mut maps::Scan, f: fn(&mut maps::Scan) -> bool) -> bool {
    let mut registers = [0usize; 12];
    let place = registers.as_mut_ptr();
    #[cfg(target_arch = "x86_64")]
    // SAFETY: six words of the array.
    unsafe {
        std::arch::asm!(
            "mov [{0}], rbx", "mov [{0} + 8], rbp", "mov [{0} + 16], r12",
            "mov [{0} + 24], r13", "mov [{0} + 32], r14", "mov [{0} + 40], r15",
            in(reg) place, options(nostack, preserves_flags),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: twelve words of the array.
    unsafe {
        std::arch::asm!(
            "stp x19, x20, [{0}]", "stp x21, x22, [{0}, #16]", "stp x23, x24, [{0}, #32]",
            "stp x25, x26, [{0}, #48]", "stp x27, x28, [{0}, #64]", "str x29, [{0}, #80]",
            in(reg) place, options(nostack, preserves_flags),
        );
    }
    let done = f(scan);
    std::hint::black_box(&registers);
    done
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("the registers that a call keeps have to be stored here");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_in_memory_are_found_and_others_are_not() {
        // A range where nothing is mapped, so that only this test names it.
        let base = 0x6660_0000_0000usize;
        let held = std::hint::black_box(Box::new([base + 0x1000, base + 0x3000]));
        let found = find(base..base + 0x10000).expect("all threads stop");
        assert!(found.any_in(base + 0x1000, base + 0x1000));
        assert!(found.any_in(base + 0x2ff0, base + 0x3010));
        assert!(!found.any_in(base + 0x5000, base + 0x5fff));
        drop(held);
    }

    #[test]
    fn stopping_again_and_again_beside_threads_that_come_and_go() {
        let base = 0x6650_0000_0000usize;
        let is_over = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        std::thread::spawn(|| std::hint::black_box(vec![1u8; 1000]))
                            .join()
                            .unwrap();
                    }
                });
            }
            // Asserted behind the end of the others, who would run for ever.
            let stopped = (0..30).filter(|_| find(base..base + 8).is_some()).count();
            is_over.store(true, std::sync::atomic::Ordering::Relaxed);
            assert_eq!(stopped, 30);
        });
    }
}
