//! Lines on their way to the back copy.
//!
//! A line that was written back is no longer in the cache on many processors, so comparing main with back after main's
//! write-back waits for memory twice a line. Here the lines that a transaction has changed are put aside before; that
//! they have changed, the old contents tell that were kept for a rollback. Later they go to back past the cache, whole,
//! so that nothing need be read there.

use durum_persist::{Site, line};

use super::BACK_WRITE;
use crate::alloc::puddle_at;
use crate::announced::{Announced, AnnouncedLine, runs};
use crate::before_images::before_change;
use crate::fault::guarded;

/// A step that a test leaves out.
const KEEP: Site = Site("snapshot: keep a line that is about to come to the back copy");
/// Room for so many lines is kept for the next transaction.
const LINES_KEPT: usize = 1024;

/// A line of main.
#[derive(Debug)]
#[repr(C, align(64))]
struct Line {
    contents: [u64; 8],
    address: usize,
}

/// The lines that a transaction has changed. Empty between transactions.
#[derive(Debug, Default)]
pub(super) struct Staged(Vec<Line>);

impl Staged {
    /// Puts the changed lines aside. Not those that a large range touches: nothing says here what they were.
    pub(super) fn take(&mut self, announced: &Announced, distance: usize) {
        self.0.clear();
        self.0.shrink_to(LINES_KEPT);
        guarded(|| {
            for line in announced.lines() {
                if announced.touches_large(line.address) {
                    continue;
                }
                // The seal is about a line that was announced and not changed, too; back lacks what was stored there
                // before without an announcement.
                if has_changed(&line) || differs(line.address, line.address + distance) {
                    self.0.push(Line {
                        // SAFETY: a line of a mapped puddle; only this thread, whose turn it is, changes it.
                        contents: unsafe { (line.address as *const [u64; 8]).read() },
                        address: line.address,
                    });
                }
            }
        });
    }

    /// Brings them to the back copy, so far behind main. Durable with the caller's fence, before main changes again.
    pub(super) fn bring_to(&mut self, distance: usize) {
        guarded(|| {
            for line in &self.0 {
                if let Some(puddle) = puddle_at(line.address) {
                    // SAFETY: puddles live while their store is open.
                    before_change(unsafe { puddle.as_ref() }, line.address, line::LINE, KEEP);
                }
                let back = (line.address + distance) as *mut u8;
                // SAFETY: the back copy of a line of a mapped puddle; nobody but the thread whose turn it is changes
                // it. ORDER: durable with the caller's fence.
                unsafe {
                    line::copy_streaming(
                        back,
                        line.contents.as_ptr().cast(),
                        line::LINE,
                        BACK_WRITE,
                    )
                };
            }
        });
        self.0.clear();
    }
}

/// Whether two lines hold something else.
pub(super) fn differs(main: usize, back: usize) -> bool {
    let (main, back) = (main as *const [u64; 8], back as *const [u64; 8]);
    // SAFETY: both copies of a line of a mapped puddle; nobody changes the announced one meanwhile but this thread, nor
    // the other.
    unsafe { main.read() != back.read() }
}

/// Whether the line may hold something else than before the transaction. Of what was allocated in it nobody kept what
/// was there.
fn has_changed(line: &AnnouncedLine<'_>) -> bool {
    if line.saved != line.mask {
        return true;
    }
    runs(line.saved).any(|(first, ones)| {
        let old = line.old.as_ptr().cast::<u8>().wrapping_add(first);
        let new = (line.address + first) as *const u8;
        // SAFETY: bytes of a line of a mapped puddle, and what was kept of them.
        unsafe {
            match ones == 8 && first.is_multiple_of(8) {
                true => old.cast::<u64>().read() != new.cast::<u64>().read(),
                false => {
                    std::slice::from_raw_parts(old, ones) != std::slice::from_raw_parts(new, ones)
                }
            }
        }
    })
}
