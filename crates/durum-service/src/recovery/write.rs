//! Writes to home locations, as recovery plans them.

use bytes::Bytes;
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
    /// Bytes, which may be those of a log that was read: they are there once.
    Copy(Bytes),
    /// So many bytes become what lies at another place of the same file, which nothing is written to. They are read
    /// when they are written: a copy of a Twin pool is as large as its client likes.
    Follow { from: u64, length: u64 },
    /// Bits of a little-endian word become 1, others 0.
    Bits { set: u64, clear: u64 },
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
            WriteKind::Follow { length, .. } => *length,
            WriteKind::Bits { .. } => 8,
        }
    }

    /// About how many pages it writes.
    pub(super) fn pages(&self) -> usize {
        self.length().div_ceil(4096) as usize
    }

    /// Applies it to bytes in memory that begin at `start` in the puddle. `read` fills a part of them with what lies
    /// at a place of the puddle's file.
    ///
    /// # Errors
    /// Of `read`.
    pub(crate) fn apply_to<E>(
        &self,
        start: u64,
        bytes: &mut [u8],
        read: impl FnOnce(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        match &self.kind {
            WriteKind::Copy(data) => {
                if let Some((part, at)) = self.overlaid(start, bytes) {
                    part.copy_from_slice(&data[at..at + part.len()]);
                }
            }
            WriteKind::Follow { from, .. } => {
                if let Some((part, at)) = self.overlaid(start, bytes) {
                    read(from + at as u64, part)?;
                }
            }
            WriteKind::Bits { set, clear } => self.edit(start, bytes, *set, *clear),
        }
        Ok(())
    }

    /// The part of `bytes` (at `start`) that it is about, and where in the write that begins.
    fn overlaid<'b>(&self, start: u64, bytes: &'b mut [u8]) -> Option<(&'b mut [u8], usize)> {
        let first = self.offset.max(start);
        let last = (self.offset + self.length()).min(start + bytes.len() as u64);
        let part = (first < last).then(|| (first - start) as usize..(last - start) as usize)?;
        Some((&mut bytes[part], (first - self.offset) as usize))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_overlaid_where_they_meet_the_bytes_at_hand() {
        let writes = [
            (10, WriteKind::Copy(vec![1, 2, 3, 4].into())),
            (16, WriteKind::bits(0x8100_0000_0000_00f0, 0)),
            (16, WriteKind::bits(0, 0x0100_0000_0000_0030)),
            (
                26,
                WriteKind::Follow {
                    from: 105,
                    length: 5,
                },
            ),
        ]
        .map(|(offset, kind)| HomeWrite {
            puddle: Uuid([1; 16]),
            offset,
            kind,
        });
        let apply = |start: u64, bytes: &mut [u8]| {
            for write in &writes {
                let read = |at: u64, part: &mut [u8]| {
                    part.iter_mut()
                        .zip(at..)
                        .for_each(|(byte, at)| *byte = at as u8);
                    Ok::<_, std::convert::Infallible>(())
                };
                let Ok(()) = write.apply_to(start, bytes, read);
            }
        };
        let mut whole = vec![0_u8; 32];
        apply(0, &mut whole);
        let mut expected = vec![0_u8; 32];
        expected[10..14].copy_from_slice(&[1, 2, 3, 4]);
        expected[16] = 0xc0;
        expected[23] = 0x80;
        expected[26..31].copy_from_slice(&[105, 106, 107, 108, 109]);
        assert_eq!(whole, expected);
        for start in 0..32 {
            for end in start..32 {
                let mut part = vec![0_u8; end - start];
                apply(start as u64, &mut part);
                assert_eq!(part, expected[start..end], "{start}..{end}");
            }
        }
    }
}
