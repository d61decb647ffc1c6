//! When space of a puddle was freed, in stamps: whether records may still hold what was there.
//!
//! A large fresh object needs no place in the log if it is written home before the fence that makes its allocation
//! durable. That is safe where no record will be replayed over it: where the space was freed at a stamp that the
//! durable watermark has reached. Of ranges that were logged as a whole the same is kept
//! ([`OfPuddle::logged_at`](super::puddle::OfPuddle::logged_at)).

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes for which one stamp is kept.
const CHUNK: usize = 16 << 10;

/// The stamps of one puddle.
#[derive(Debug)]
pub(crate) struct FreedAt {
    address: usize,
    size: usize,
    /// For each chunk a stamp that is not smaller than that of any record about space which was freed there. Made when
    /// something is freed.
    chunks: OnceLock<Box<[AtomicU64]>>,
}

impl FreedAt {
    pub(crate) fn new(address: usize, size: usize) -> Self {
        Self {
            address,
            size,
            chunks: OnceLock::new(),
        }
    }

    fn indices(&self, range: &Range<usize>) -> Range<usize> {
        (range.start - self.address) / CHUNK..(range.end - self.address).div_ceil(CHUNK)
    }

    /// No record about this space has a larger stamp, or will have before it is allocated. To be called before anybody
    /// can do that.
    pub(crate) fn note(&self, range: Range<usize>, stamp: u64) {
        let chunks = self.chunks.get_or_init(|| {
            (0..self.size.div_ceil(CHUNK))
                .map(|_| AtomicU64::new(0))
                .collect()
        });
        for chunk in &chunks[self.indices(&range)] {
            chunk.fetch_max(stamp, Ordering::Release);
        }
    }

    /// The last stamp of a record that may hold bytes of space in this range which was freed before.
    pub(crate) fn latest(&self, range: &Range<usize>) -> u64 {
        let Some(chunks) = self.chunks.get() else {
            return 0;
        };
        let stamps = chunks[self.indices(range)].iter();
        stamps
            .map(|stamp| stamp.load(Ordering::Acquire))
            .max()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_share_a_chunk_share_its_stamp() {
        let start = 0x4000_0000;
        let freed = FreedAt::new(start, 2 << 20);
        assert_eq!(freed.latest(&(start..start + 1)), 0);
        freed.note(start + CHUNK + 5..start + CHUNK + 6, 9);
        freed.note(start + CHUNK..start + CHUNK + 1, 7);
        assert_eq!(freed.latest(&(start..start + CHUNK)), 0);
        assert_eq!(freed.latest(&(start..start + CHUNK + 1)), 9);
        assert_eq!(freed.latest(&(start + 2 * CHUNK - 1..start + 3 * CHUNK)), 9);
        assert_eq!(freed.latest(&(start + 2 * CHUNK..start + (2 << 20))), 0);
    }
}
