//! What lines of a puddle held when a snapshot was begun: whoever is about to change one keeps it first.
//!
//! ```text
//! who changes a line           who copies the puddle
//! 1  lock: keep it, once       1  read all lines, as they come
//! 2  unlock; fence             2  fence; lock
//! 3  store                     3  put kept lines over what was read
//! ```
//!
//! So who has read a change finds that its line is kept; and a line that nobody has kept was read as it was.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering, fence};

use durum_persist::line::LINE;

use crate::populate::{PAGE, make_pages};
use crate::primitive::locked;

/// The words of a line.
pub(crate) type Words = [u64; LINE / 8];

/// Lines of one piece of memory: what is kept never moves, which would hold up who keeps more.
const PIECE: usize = 448;
/// Pieces that wait for others at most, 32 KiB each.
const SPARES_MAX: usize = 1024;
/// Pieces that nobody needs yet. To make one, with its pages, takes some 20 us, for which a commit should not wait: who
/// makes the snapshot does that, and what was kept of a puddle that is copied serves again.
static SPARES: Mutex<Vec<Piece>> = Mutex::new(Vec::new());

type Piece = Vec<(usize, Words)>;
/// Lines that are put over others while nobody can keep any.
const AT_ONCE: usize = 64;

/// The lines of a puddle that have changed, or are about to, since a snapshot shows it.
#[derive(Debug, Default)]
pub(crate) struct KeptLines {
    is_on: AtomicBool,
    stays: AtomicBool,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    /// A bit for each line.
    is_known: Vec<u64>,
    pieces: Vec<Piece>,
    len: usize,
}

impl KeptLines {
    /// Whether lines are kept before they change.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Whether a snapshot shows the puddle, whose file has to stay.
    pub(crate) fn stays(&self) -> bool {
        self.stays.load(Ordering::Relaxed)
    }

    /// A snapshot shows the puddle from here on, and no other does.
    ///
    /// Nobody changes what it shows meanwhile, and who does later has learned of this before.
    pub(crate) fn begin(&self) {
        let _kept = locked(&self.kept);
        self.stays.store(true, Ordering::Relaxed);
        self.is_on.store(true, Ordering::Relaxed);
    }

    /// All of it was copied: nothing more need be kept.
    pub(crate) fn is_copied(&self) {
        let mut kept = locked(&self.kept);
        self.is_on.store(false, Ordering::Relaxed);
        let kept = std::mem::take(&mut *kept);
        let mut spares = locked(&SPARES);
        let room = SPARES_MAX.saturating_sub(spares.len());
        for mut piece in kept.pieces.into_iter().take(room) {
            piece.clear();
            spares.push(piece);
        }
    }

    /// No snapshot shows it any more.
    pub(crate) fn end(&self) {
        self.is_copied();
        self.stays.store(false, Ordering::Relaxed);
    }

    /// Keeps those of `lines`, of a puddle of so many, that are not kept yet: what `read` says they hold. Nobody else
    /// changes them meanwhile who has not kept them himself.
    #[cold]
    pub(crate) fn keep(
        &self,
        lines: std::ops::Range<usize>,
        count: usize,
        mut read: impl FnMut(usize) -> Words,
    ) {
        let mut kept = locked(&self.kept);
        if !self.is_on() {
            return;
        }
        if kept.is_known.is_empty() {
            kept.is_known = vec![0; count.div_ceil(64)];
        }
        for number in lines {
            let Some(word) = kept.is_known.get_mut(number / 64) else {
                break;
            };
            let bit = 1 << (number % 64);
            if *word & bit == 0 {
                *word |= bit;
                kept.push(number, read(number));
            }
        }
        drop(kept);
        // ORDER (of threads): the line is kept before it changes.
        fence(Ordering::Release);
    }

    /// Puts what was kept over what was read of the puddle.
    pub(crate) fn put_over(&self, bytes: &mut [u8]) {
        // ORDER (of threads): what has changed in `bytes` was kept before.
        fence(Ordering::Acquire);
        let len = locked(&self.kept).len;
        for from in (0..len).step_by(AT_ONCE) {
            // Not for long: a thread that commits may wait.
            let (piece, at) = (from / PIECE, from % PIECE);
            let lines = match locked(&self.kept).pieces.get(piece) {
                Some(lines) => lines[at..lines.len().min(at + AT_ONCE)].to_vec(),
                None => return,
            };
            for (number, words) in lines {
                let start = number * LINE;
                if let Some(line) = bytes.get_mut(start..start + LINE) {
                    for (place, word) in line.as_chunks_mut::<8>().0.iter_mut().zip(words) {
                        *place = word.to_ne_bytes();
                    }
                }
            }
        }
    }
}

impl Kept {
    fn push(&mut self, number: usize, words: Words) {
        if self.len.is_multiple_of(PIECE) {
            let spare = locked(&SPARES).pop();
            self.pieces.push(spare.unwrap_or_else(piece));
        }
        if let Some(piece) = self.pieces.last_mut() {
            piece.push((number, words));
        }
        self.len += 1;
    }
}

/// Sees to it that so many pieces are there before somebody needs them, as far as there is room for them.
pub(crate) fn make_spares(count: usize) {
    let there = locked(&SPARES).len();
    for _ in there..count.min(SPARES_MAX) {
        let piece = piece();
        locked(&SPARES).push(piece);
    }
}

/// No snapshot is made any more.
pub(crate) fn drop_spares() {
    let spares = std::mem::take(&mut *locked(&SPARES));
    drop(spares);
}

/// Memory for one more.
fn piece() -> Piece {
    let mut piece = Vec::with_capacity(PIECE);
    let room = piece.spare_capacity_mut().as_mut_ptr_range();
    let start = room.start.addr().next_multiple_of(PAGE);
    let end = room.end.addr() & !(PAGE - 1);
    make_pages(start, end.saturating_sub(start));
    piece
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_kept_once_as_it_was_first() {
        let lines = KeptLines::default();
        lines.keep(0..4, 4, |_| [1; 8]);
        lines.begin();
        for value in 2..4 {
            lines.keep(1..3, 4, |number| [value * 10 + number as u64; 8]);
        }
        let mut bytes = vec![0xff; 4 * LINE];
        lines.put_over(&mut bytes);
        let first_words: Vec<u64> = bytes
            .chunks(LINE)
            .map(|line| u64::from_ne_bytes(*line.first_chunk().unwrap()))
            .collect();
        assert_eq!(first_words, [u64::MAX, 21, 22, u64::MAX]);
        lines.end();
        lines.begin();
        let before = bytes.clone();
        lines.put_over(&mut bytes);
        assert_eq!(bytes, before, "nothing is left of the one before");
    }

    #[test]
    fn more_lines_than_a_piece_has_are_kept() {
        let lines = KeptLines::default();
        lines.begin();
        lines.keep(0..3000, 3000, |number| [number as u64; 8]);
        // What lies behind the puddle is not its line.
        lines.keep(2999..5000, 3000, |_| [0; 8]);
        let mut bytes = vec![0xff; 3000 * LINE];
        lines.put_over(&mut bytes);
        for (number, line) in bytes.chunks(LINE).enumerate() {
            assert_eq!(line[..8], (number as u64).to_ne_bytes());
        }
    }
}
