//! The header of a record, with the checksum that makes one fence enough.

use zerocopy::IntoBytes;

use crate::Uuid;
use crate::crc::Crc;

/// Bytes of a record's header.
pub const RECORD_HEADER_SIZE: usize = 32;
/// Words of a record's header.
pub const HEADER_WORDS: usize = RECORD_HEADER_SIZE / 8;

const MORE: u32 = 1;
const FENCED: u32 = 2;
const PART_SHIFT: u32 = 2;
/// Parts that one transaction may have.
pub const PARTS_MAX: u32 = u32::MAX >> PART_SHIFT;

/// What a record says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHeader {
    /// Its place in the order of all records of the client; the first one is 1, and none is left out.
    pub stamp: u64,
    /// Every record up to this stamp was home, durably, before this record was written.
    pub watermark: u64,
    /// The stamp of the record before in the same log; 0 if there was none.
    pub previous: u64,
    /// Which of the client's logs it belongs to.
    pub log: u32,
    /// Which part of its transaction it is, from 0 on. Parts have consecutive stamps.
    pub part: u32,
    /// Whether another part follows.
    pub more: bool,
    /// Whether the record before in the same log was durable before this one was written.
    pub fenced: bool,
}

/// What the checksums of one puddle begin with: a record that lies elsewhere is not valid.
#[derive(Clone, Copy, Debug)]
pub struct RingSalt(Crc);

impl RingSalt {
    /// The salt of the puddle `uuid`.
    pub fn new(uuid: Uuid) -> Self {
        let mut crc = Crc::new();
        crc.update(&uuid.0);
        Self(crc)
    }

    /// The checksum of what lies at `offset` of the puddle.
    #[inline]
    pub fn checksum(&self, offset: u64, bytes: &[u8]) -> u32 {
        let mut crc = self.0;
        crc.update(&offset.to_le_bytes());
        crc.update(bytes);
        crc.value()
    }

    /// The checksum of a record at `offset`, given its words: the first half of the first one is its place.
    #[inline(always)]
    fn checksum_of_record(&self, offset: u64, record: &[u64]) -> u32 {
        let Some((first, words)) = record.split_first() else {
            return 0;
        };
        let mut crc = self.0;
        crc.update_record(offset, (u64::from_le(*first) >> 32) as u32, &[], words);
        crc.value()
    }
}

/// How far `to` lies before `from`, or the largest distance there is.
fn distance(from: u64, to: u64) -> u32 {
    u32::try_from(from.saturating_sub(to)).unwrap_or(u32::MAX)
}

impl RecordHeader {
    /// Writes the header into the first words of `record`, whose other words are its entries. It is to lie at `offset`
    /// of its puddle.
    #[inline(always)]
    pub fn seal(&self, record: &mut [u64], salt: &RingSalt, offset: u64) {
        let size = (record.len() - HEADER_WORDS) as u64 * 8;
        let (header, entries) = record.split_at_mut(HEADER_WORDS);
        // Put where it belongs word by word, and summed there. A copy of several words at once, of what was just stored
        // one by one, would wait for all stores before it, and so for the fence of the last commit.
        header[1..].copy_from_slice(&self.head());
        let mut crc = salt.0;
        crc.update_record(offset, size as u32, &header[1..], entries);
        header[0] = (size << 32 | u64::from(crc.value())).to_le();
    }

    /// The same for a record that is at hand piece by piece only, and whose entries take `size` bytes.
    pub fn begin_seal(&self, size: u32, salt: &RingSalt, offset: u64) -> Seal {
        let head = self.head();
        let mut crc = salt.0;
        crc.update_record(offset, size, &head, &[]);
        Seal { crc, size, head }
    }

    /// The words of the header behind the first one.
    #[inline(always)]
    fn head(&self) -> [u64; HEADER_WORDS - 1] {
        let previous = match self.previous {
            0 => 0,
            previous => distance(self.stamp, previous),
        };
        let part = self.part << PART_SHIFT
            | if self.more { MORE } else { 0 }
            | if self.fenced { FENCED } else { 0 };
        let pair = |low: u32, high: u32| (u64::from(low) | u64::from(high) << 32).to_le();
        [
            self.stamp.to_le(),
            pair(distance(self.stamp, self.watermark), previous),
            pair(self.log, part),
        ]
    }

    /// The record at the start of `words`, which lie at `offset` of their puddle: header and entries. `None` if there
    /// is no whole one.
    pub fn parse<'a>(words: &'a [u64], salt: &RingSalt, offset: u64) -> Option<(Self, &'a [u64])> {
        let head = words.first_chunk::<HEADER_WORDS>()?.map(u64::from_le);
        let (checksum, size) = (head[0] as u32, (head[0] >> 32) as usize);
        let stamp = head[1];
        if stamp == 0 || !size.is_multiple_of(8) {
            return None;
        }
        let record = words.get(..HEADER_WORDS + size / 8)?;
        if salt.checksum_of_record(offset, record) != checksum {
            return None;
        }
        let (low, high) = (head[3] as u32, (head[3] >> 32) as u32);
        let previous = head[2] >> 32;
        let header = Self {
            stamp,
            // A distance that did not fit is larger than any log: what lies so far back is home in any case.
            watermark: stamp.saturating_sub(head[2] & 0xffff_ffff),
            previous: match previous {
                0 => 0,
                distance => stamp.saturating_sub(distance),
            },
            log: low,
            part: high >> PART_SHIFT,
            more: high & MORE != 0,
            fenced: high & FENCED != 0,
        };
        Some((header, &record[HEADER_WORDS..]))
    }
}

/// A header in the making ([`RecordHeader::begin_seal`]).
#[derive(Clone, Copy, Debug)]
pub struct Seal {
    crc: Crc,
    size: u32,
    head: [u64; HEADER_WORDS - 1],
}

impl Seal {
    /// The next entries, or parts of them.
    pub fn update(&mut self, entries: &[u64]) {
        self.crc.update(entries.as_bytes());
    }

    /// The words of the header, when all entries were seen.
    pub fn finish(self) -> [u64; HEADER_WORDS] {
        let first = u64::from(self.size) << 32 | u64::from(self.crc.value());
        let [stamp, distances, log] = self.head;
        [first.to_le(), stamp, distances, log]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(header: &RecordHeader) -> Vec<u64> {
        let mut words = vec![0; HEADER_WORDS];
        words.extend([1, 2, 3]);
        header.seal(&mut words, &RingSalt::new(Uuid([3; 16])), 8192);
        words
    }

    const HEADER: RecordHeader = RecordHeader {
        stamp: 77,
        watermark: 60,
        previous: 75,
        log: 5,
        part: 2,
        more: true,
        fenced: false,
    };

    #[test]
    fn comes_back_and_every_bit_counts() {
        let salt = RingSalt::new(Uuid([3; 16]));
        let mut words = record(&HEADER);
        assert_eq!(
            RecordHeader::parse(&words, &salt, 8192),
            Some((HEADER, &[1, 2, 3][..]))
        );
        assert!(RecordHeader::parse(&words, &salt, 8256).is_none());
        assert!(RecordHeader::parse(&words, &RingSalt::new(Uuid([4; 16])), 8192).is_none());
        for bit in 0..words.len() * 64 {
            words[bit / 64] ^= 1 << (bit % 64);
            assert!(
                RecordHeader::parse(&words, &salt, 8192).is_none(),
                "bit {bit}"
            );
            words[bit / 64] ^= 1 << (bit % 64);
        }
        for len in 0..words.len() {
            assert!(RecordHeader::parse(&words[..len], &salt, 8192).is_none());
        }
    }

    #[test]
    fn piece_by_piece_it_is_the_same() {
        let salt = RingSalt::new(Uuid([3; 16]));
        for count in [0, 1, 40, 700] {
            let mut words = vec![0; HEADER_WORDS];
            words.extend((0..count).map(|word: u64| word.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
            HEADER.seal(&mut words, &salt, 4096);
            let (header, entries) = words.split_at(HEADER_WORDS);
            for piece in [1, 7, 64, 1000] {
                let mut seal = HEADER.begin_seal(count as u32 * 8, &salt, 4096);
                entries.chunks(piece).for_each(|piece| seal.update(piece));
                assert_eq!(seal.finish(), header);
            }
        }
    }

    #[test]
    fn distances_that_do_not_fit_point_to_what_is_home() {
        let salt = RingSalt::new(Uuid([3; 16]));
        let far = RecordHeader {
            stamp: 1 << 40,
            watermark: 9,
            previous: 7,
            ..HEADER
        };
        let words = record(&far);
        let (found, _) = RecordHeader::parse(&words, &salt, 8192).unwrap();
        let limit = (1 << 40) - u64::from(u32::MAX);
        assert_eq!((found.watermark, found.previous), (limit, limit));
        let first = RecordHeader {
            previous: 0,
            ..HEADER
        };
        let words = record(&first);
        assert_eq!(RecordHeader::parse(&words, &salt, 8192).unwrap().0, first);
    }
}
