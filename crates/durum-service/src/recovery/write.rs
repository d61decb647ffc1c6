//! Writes to home locations, as recovery plans them.

use durum_format::Uuid;

/// A write to a home location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HomeWrite {
    /// The data puddle.
    pub(crate) puddle: Uuid,
    /// Where in it, in bytes.
    pub(crate) offset: u64,
    pub(crate) kind: WriteKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Copy(Vec<u8>),
    /// Bits of a little-endian word become 1, others 0.
    Bits {
        set: u64,
        clear: u64,
    },
}

impl WriteKind {
    pub(super) fn bits(set: u64, clear: u64) -> WriteKind {
        WriteKind::Bits { set, clear }
    }
}

impl HomeWrite {
    /// How many bytes it writes.
    pub(crate) fn length(&self) -> u64 {
        match &self.kind {
            WriteKind::Copy(data) => data.len() as u64,
            WriteKind::Bits { .. } => 8,
        }
    }

    /// About how many pages it writes.
    pub(super) fn pages(&self) -> usize {
        self.length().div_ceil(4096) as usize
    }

    /// Applies it to bytes in memory that begin at `start` in the puddle.
    pub(crate) fn apply_to(&self, start: u64, bytes: &mut [u8]) {
        match &self.kind {
            WriteKind::Copy(data) => overlay(self.offset, data, start, bytes),
            WriteKind::Bits { set, clear } => self.edit(start, bytes, *set, *clear),
        }
    }

    /// A word is little-endian, so its bits can be edited byte by byte, also where only part of it is at hand.
    fn edit(&self, start: u64, bytes: &mut [u8], set: u64, clear: u64) {
        for (index, (set, clear)) in
            (0..).zip(set.to_le_bytes().into_iter().zip(clear.to_le_bytes()))
        {
            if let Some(byte) = (self.offset + index)
                .checked_sub(start)
                .and_then(|at| bytes.get_mut(usize::try_from(at).ok()?))
            {
                *byte = *byte & !clear | set;
            }
        }
    }
}

/// Copies the part of `data` (at `offset`) that falls into `bytes` (at `start`).
fn overlay(offset: u64, data: &[u8], start: u64, bytes: &mut [u8]) {
    let first = offset.max(start);
    let last = (offset + data.len() as u64).min(start + bytes.len() as u64);
    if first < last {
        let source = &data[(first - offset) as usize..(last - offset) as usize];
        bytes[(first - start) as usize..(last - start) as usize].copy_from_slice(source);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_overlaid_where_they_meet_the_bytes_at_hand() {
        let writes = [
            (10, WriteKind::Copy(vec![1, 2, 3, 4])),
            (16, WriteKind::bits(0x8100_0000_0000_00f0, 0)),
            (16, WriteKind::bits(0, 0x0100_0000_0000_0030)),
        ]
        .map(|(offset, kind)| HomeWrite {
            puddle: Uuid([1; 16]),
            offset,
            kind,
        });
        let mut whole = vec![0_u8; 32];
        writes
            .iter()
            .for_each(|write| write.apply_to(0, &mut whole));
        let mut expected = vec![0_u8; 32];
        expected[10..14].copy_from_slice(&[1, 2, 3, 4]);
        expected[16] = 0xc0;
        expected[23] = 0x80;
        assert_eq!(whole, expected);
        for start in 0..32 {
            for end in start..32 {
                let mut part = vec![0_u8; end - start];
                for write in &writes {
                    write.apply_to(start as u64, &mut part);
                }
                assert_eq!(part, expected[start..end], "{start}..{end}");
            }
        }
    }
}
