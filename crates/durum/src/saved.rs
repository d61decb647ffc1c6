//! Old contents of memory, kept until a transaction has ended.

use crate::spare::Spare;

/// Ranges and what they held.
#[derive(Debug, Default)]
pub(crate) struct Saved {
    /// Address, length, and where the bytes start in `bytes`.
    ranges: Vec<(usize, usize, usize)>,
    bytes: Vec<u8>,
    spare: Spare,
}

/// Up to where ranges were saved at some time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SavedMark {
    ranges: usize,
    bytes: usize,
}

impl Saved {
    /// What is saved from here on can be restored alone.
    pub(crate) fn mark(&self) -> SavedMark {
        SavedMark {
            ranges: self.ranges.len(),
            bytes: self.bytes.len(),
        }
    }

    /// Visits the ranges that were saved since the mark, as [`Saved::restore`] does, and forgets them.
    pub(crate) fn restore_to(&mut self, mark: SavedMark, mut put_back: impl FnMut(usize, &[u8])) {
        for &(address, len, from) in self.ranges[mark.ranges..].iter().rev() {
            put_back(address, &self.bytes[from..from + len]);
        }
        self.ranges.truncate(mark.ranges);
        self.bytes.truncate(mark.bytes);
    }

    /// Keeps what `[address, address + len)` holds now.
    ///
    /// # Safety
    /// The range is readable, and nobody changes it meanwhile.
    pub(crate) unsafe fn save(&mut self, address: usize, len: usize) {
        self.ranges.push((address, len, self.bytes.len()));
        // SAFETY: as the caller promises.
        let now = unsafe { std::slice::from_raw_parts(address as *const u8, len) };
        self.bytes.extend_from_slice(now);
    }

    /// Visits the ranges, last saved first: address and the bytes to put back.
    pub(crate) fn restore(&self, mut put_back: impl FnMut(usize, &[u8])) {
        for &(address, len, from) in self.ranges.iter().rev() {
            put_back(address, &self.bytes[from..from + len]);
        }
    }

    /// The ranges: address and length.
    pub(crate) fn ranges(&self) -> impl Iterator<Item = (usize, usize)> {
        self.ranges.iter().map(|&(address, len, _)| (address, len))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        if !self.spare.keeps(self.bytes.len(), self.bytes.capacity()) {
            self.ranges = Vec::new();
            self.bytes = Vec::new();
        }
        self.ranges.clear();
        self.bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_large_transaction_leaves_little_memory_behind() {
        let mut saved = Saved::default();
        for len in [100, 3 << 20] {
            let bytes = vec![7u8; len];
            // SAFETY: a vector of this test.
            unsafe { saved.save(bytes.as_ptr().addr(), len) };
            saved.clear();
            assert!(saved.is_empty() && Spare::is_small(saved.bytes.capacity()));
        }
    }
}
