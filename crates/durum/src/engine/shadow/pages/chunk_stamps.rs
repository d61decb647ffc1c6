//! When something last happened to parts of a puddle, in stamps: space was freed there, or a range was logged that may
//! reach beyond its object. Records up to that stamp may hold what was there.
//!
//! A large fresh object needs no place in the log if it is written home before the fence that makes its allocation
//! durable. That is safe where no record will be replayed over it: where the durable watermark has reached these
//! stamps.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes for which one stamp is kept.
const CHUNK: usize = 16 << 10;

/// Of one thing that happens, in one puddle.
#[derive(Debug)]
pub(crate) struct ChunkStamps {
    address: usize,
    size: usize,
    /// For each chunk a stamp that is not smaller than that of any record about the space to which it happened there.
    /// Made when it first happens.
    chunks: OnceLock<Box<[AtomicU64]>>,
}

impl ChunkStamps {
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

    /// The last stamp of a record that may hold bytes of space in this range to which it happened before.
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
        let noted = ChunkStamps::new(start, 2 << 20);
        assert_eq!(noted.latest(&(start..start + 1)), 0);
        noted.note(start + CHUNK + 5..start + CHUNK + 6, 9);
        noted.note(start + CHUNK..start + CHUNK + 1, 7);
        assert_eq!(noted.latest(&(start..start + CHUNK)), 0);
        assert_eq!(noted.latest(&(start..start + CHUNK + 1)), 9);
        assert_eq!(noted.latest(&(start + 2 * CHUNK - 1..start + 3 * CHUNK)), 9);
        assert_eq!(noted.latest(&(start + 2 * CHUNK..start + (2 << 20))), 0);
    }
}
