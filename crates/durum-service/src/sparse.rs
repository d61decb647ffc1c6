//! Reading files of which most was never written.

use durum_persist::file::MediaFile;
use memmap2::{Advice, MmapMut};
use rustix::fs::SeekFrom;

use crate::error::{Error, Result};
use crate::reading;

/// Bytes of a large page.
const LARGE_PAGE: u64 = 2 << 20;
/// So many free bytes say that a log space was used no further.
const ZEROS: u64 = 16 << 10;
/// Bytes that are read at once for which a large page pays: to clear one takes as long as a hundred faults.
const LARGE_WORTH: usize = 512 << 10;

/// Reads `length` bytes at `offset`, asking the file system where anything was written: a log is mostly room that was
/// reserved and never used, and most of the time of a recovery would go into copying its zeros.
pub(crate) fn written(file: &MediaFile, offset: u64, length: u64) -> Result<Sparse> {
    let failed = |offset| move |error| Error::io_at("reading a log", file, offset, error);
    let mut read = Sparse::with_room(file, offset, length)?;
    let end = offset.saturating_add(length);
    let mut at = offset;
    while at < end {
        let data = match rustix::fs::seek(file, SeekFrom::Data(at)) {
            Ok(data) => data,
            // Nothing was written from here on.
            Err(rustix::io::Errno::NXIO) => break,
            // A file system that cannot tell: all of it is data.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::OPNOTSUPP) => at,
            Err(errno) => return Err(failed(at)(errno.into())),
        };
        if data >= end {
            break;
        }
        let hole = rustix::fs::seek(file, SeekFrom::Hole(data))
            .unwrap_or(end)
            .min(end);
        read.fill(file, data, hole - data)?;
        at = hole;
    }
    Ok(read)
}

/// As [`written`], where it is known that nothing counts behind the first `used` bytes: to ask the file system takes
/// as long as ten other calls.
pub(crate) fn beginning(file: &MediaFile, offset: u64, length: u64, used: u64) -> Result<Sparse> {
    let mut read = Sparse::with_room(file, offset, length)?;
    read.fill(file, offset, used.min(length))?;
    Ok(read)
}

/// As [`written`], for what is written from its beginning on, without gaps: behind so many zeros there is nothing.
pub(crate) fn up_to_zeros(file: &MediaFile, offset: u64, length: u64) -> Result<Sparse> {
    let mut read = Sparse::with_room(file, offset, length)?;
    let mut at = 0;
    while at < length {
        let part = ZEROS.min(length - at);
        let before = read.used;
        read.fill(file, offset + at, part)?;
        let part = read.written().get(at as usize..).unwrap_or_default();
        if part.iter().all(|byte| *byte == 0) {
            read.used = before;
            break;
        }
        at += part.len() as u64;
    }
    Ok(read)
}

/// Whether all bytes of a file from `offset` on are zero. Reads only what was written.
pub(crate) fn is_zero_from(file: &MediaFile, offset: u64) -> Result<bool> {
    const CHUNK_BYTES: u64 = 256 << 10;
    let length = reading::length(file)?;
    let mut at = offset;
    while at < length {
        let chunk = CHUNK_BYTES.min(length - at);
        let read = written(file, at, chunk)?;
        if read.written().iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        at = match rustix::fs::seek(file, SeekFrom::Data(at + chunk)) {
            Ok(data) => data,
            Err(rustix::io::Errno::NXIO) => break,
            // A file system that cannot tell: the next chunk is read.
            Err(_) => at + chunk,
        };
    }
    Ok(true)
}

/// A part of a file, in memory.
#[derive(Debug)]
pub(crate) struct Sparse {
    room: MmapMut,
    /// Where the part begins in the file.
    offset: u64,
    length: usize,
    used: usize,
}

impl Sparse {
    /// Zeros for a part of a file.
    fn with_room(file: &MediaFile, offset: u64, length: u64) -> Result<Sparse> {
        // Mapped, so that only what is read or looked at takes a page: the allocator may fill such a buffer with zeros,
        // which takes longer than all the rest. As large as large pages are, so that it can have some.
        let room = length.next_multiple_of(LARGE_PAGE);
        let room = MmapMut::map_anon(usize::try_from(room).unwrap_or(usize::MAX))
            .map_err(|error| Error::io_at("reading a log", file, offset, error))?;
        Ok(Sparse {
            room,
            offset,
            length: length as usize,
            used: 0,
        })
    }

    /// Reads the `length` bytes at `at` of the file, behind all that was read before.
    fn fill(&mut self, file: &MediaFile, at: u64, length: u64) -> Result<()> {
        let begin = (at - self.offset) as usize;
        let part = begin..begin + length as usize;
        if part.len() >= LARGE_WORTH && self.used == 0 {
            // A system that has none goes on with small ones.
            let _ = self.room.advise(Advice::HugePage);
        }
        let end = part.end;
        if let Some(part) = self.room.get_mut(part) {
            reading::exact(file, at, part, "reading a log")?;
            self.used = end;
        }
        Ok(())
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.room.get(..self.length).unwrap_or_default()
    }

    /// The part behind which nothing was written: all is zero there.
    pub(crate) fn written(&self) -> &[u8] {
        self.room.get(..self.used).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Sparse {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}
