//! Reading files of which most was never written.

use std::io::{self, Read};
use std::iter;
use std::path::Path;
use std::sync::mpsc;

use durum_format::crc::Crc;
use durum_format::puddle::IMMUTABLE_SIZE;
use durum_persist::Site;
use durum_persist::file::MediaFile;
use memmap2::{Advice, MmapMut};
use rustix::fs::SeekFrom;
use zerocopy::IntoBytes;

use crate::ahead::each_ahead;
use crate::error::{Error, Result};
use crate::files;
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

/// The first `used` bytes of `length`, where it is known that nothing counts behind them: to ask the file system takes
/// as long as ten other calls.
pub(crate) fn beginning(file: &MediaFile, offset: u64, length: u64, used: u64) -> Result<Sparse> {
    let used = used.min(length);
    let mut read = match used as usize >= LARGE_WORTH {
        true => Sparse::with_room(file, offset, length)?,
        false => Sparse::short(file, offset, used)?,
    };
    read.fill(file, offset, used)?;
    Ok(read)
}

/// The beginning of what is written without gaps: behind so many zeros there is nothing.
pub(crate) fn up_to_zeros(file: &MediaFile, offset: u64, length: u64) -> Result<Sparse> {
    // A page for what is there mostly.
    let mut used = (ZEROS + 4096).min(length);
    loop {
        let read = beginning(file, offset, length, used)?;
        let last = read.written().len().saturating_sub(ZEROS as usize);
        let last = read.written().get(last..).unwrap_or_default();
        if used == length || last.iter().all(|byte| *byte == 0) {
            return Ok(read);
        }
        used = (2 * used).min(length);
    }
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

/// Bytes that are copied at once.
const COPIED_BYTES: u64 = 256 << 10;
/// What is read where nothing was written: few enough that they stay in the processor's cache.
static NOTHING: [u8; 16 << 10] = [0; 16 << 10];

/// Copies what was written of a file to an empty one, and makes room for all of its `size` bytes there. Not synced.
/// Gives the [sum](durum_format::export::sum) of what was copied.
///
/// The two share no blocks, where a file system could do that: the first store to a shared one needs a new one, and who
/// stores to mapped memory could not be told that there is none left.
pub(crate) fn copy(from: &MediaFile, to: &MediaFile, size: u64, site: Site) -> Result<u32> {
    let sum = copy_written(from, to, size)?;
    // Behind the copy: room that was made before would be cleared only to be written.
    to.allocate(size, site)
        .map_err(|error| files::grown("copying a puddle", to.path(), size, error))?;
    Ok(sum)
}

/// As [`copy`], and the rest is somebody else's: holes stay holes.
pub(crate) fn copy_written(from: &MediaFile, to: &MediaFile, size: u64) -> Result<u32> {
    let failed = |error| files::grown("copying a puddle", to.path(), size, error);
    let mut parts = Parts::of(from, size);
    // Each buffer is used again.
    let (give_back, given_back) = mpsc::channel();
    let of_file = &mut parts;
    let read = iter::from_fn(move || {
        let buffer = given_back.try_recv().unwrap_or_default();
        of_file.next(buffer).transpose()
    });
    each_ahead(read, |part| {
        let (at, bytes) = part?;
        to.write_all_at(&bytes, at).map_err(failed)?;
        // Where all is read nobody wants it.
        _ = give_back.send(bytes);
        Ok(())
    })?;
    Ok(parts.crc.value())
}

/// The [sum](durum_format::export::sum) of the first `size` bytes of a file, of which what was written is read.
pub(crate) fn sum_written(from: &MediaFile, size: u64) -> Result<u32> {
    let mut parts = Parts::of(from, size);
    let mut buffer = Vec::new();
    while let Some((_, read)) = parts.next(buffer)? {
        buffer = read;
    }
    Ok(parts.crc.value())
}

/// The parts of a file that were written, in their order, and what all of it sums up to.
struct Parts<'f> {
    from: &'f MediaFile,
    size: u64,
    at: u64,
    /// Where what is written here ends.
    end: u64,
    crc: Crc,
}

impl Parts<'_> {
    fn of(from: &MediaFile, size: u64) -> Parts<'_> {
        Parts {
            from,
            size,
            at: 0,
            end: 0,
            crc: Crc::new(),
        }
    }

    /// The next one and its place, in this buffer.
    fn next(&mut self, mut buffer: Vec<u8>) -> Result<Option<(u64, Vec<u8>)>> {
        if self.at >= self.end {
            self.skip_hole();
        }
        if self.at >= self.size {
            return Ok(None);
        }
        let length = COPIED_BYTES.min(self.end - self.at) as usize;
        let more = length.saturating_sub(buffer.len());
        reading::lengthen(&mut buffer, self.from.path(), more as u64)?;
        buffer.truncate(length);
        reading::exact(self.from, self.at, &mut buffer, "reading a puddle")?;
        self.crc.update(summed(&buffer, self.at));
        let place = self.at;
        self.at += length as u64;
        Ok(Some((place, buffer)))
    }

    /// Goes to where something was written next, or to the end.
    fn skip_hole(&mut self) {
        // A file system that cannot tell: all of it is data.
        let data = match rustix::fs::seek(self.from, SeekFrom::Data(self.at)) {
            Err(rustix::io::Errno::NXIO) => self.size,
            found => found.unwrap_or(self.at).min(self.size),
        };
        let gap = data - self.at;
        for gap in (0..gap).step_by(NOTHING.len()).map(|done| gap - done) {
            let part = (NOTHING.len() as u64).min(gap) as usize;
            self.crc.update(summed(&NOTHING[..part], data - gap));
        }
        self.at = data;
        let hole = rustix::fs::seek(self.from, SeekFrom::Hole(data));
        self.end = hole.unwrap_or(self.size).min(self.size).max(data);
    }
}

/// As [`copy_written`], of bytes that come; `place` is where they come from, for errors.
pub(crate) fn fill(from: &mut dyn Read, place: &Path, to: &MediaFile, size: u64) -> Result<u32> {
    let failed = |error| files::grown("copying a puddle", to.path(), size, error);
    let mut buffer = reading::room(place, COPIED_BYTES.min(size))?;
    let zeros = buffer.clone();
    let mut crc = Crc::new();
    let mut at = 0;
    while at < size {
        let length = COPIED_BYTES.min(size - at) as usize;
        let part = &mut buffer[..length];
        from.read_exact(part)
            .map_err(|error| Error::io("reading an archive", place, error))?;
        if *part != zeros[..length] {
            to.write_all_at(part, at).map_err(failed)?;
        }
        crc.update(summed(part, at));
        at += length as u64;
    }
    Ok(crc.value())
}

/// What counts of some bytes of a puddle's file for its sum.
fn summed(bytes: &[u8], at: u64) -> &[u8] {
    let head = IMMUTABLE_SIZE.saturating_sub(at).min(bytes.len() as u64);
    &bytes[head as usize..]
}

/// A part of a file, in memory.
#[derive(Debug)]
pub(crate) struct Sparse {
    room: Room,
    /// Where the part begins in the file.
    offset: u64,
    length: usize,
    used: usize,
}

/// Memory at a multiple of 8.
#[derive(Debug)]
enum Room {
    /// Only what is read or looked at takes a page: the allocator may fill such a buffer with zeros, which takes longer
    /// than all the rest.
    Mapped(MmapMut),
    /// A short one has what the one before it had: new pages take longer than what is read into them.
    Short(Vec<u64>),
}

impl Room {
    fn bytes(&self) -> &[u8] {
        match self {
            Room::Mapped(room) => room,
            Room::Short(words) => words.as_bytes(),
        }
    }

    fn bytes_mut(&mut self) -> &mut [u8] {
        match self {
            Room::Mapped(room) => room,
            Room::Short(words) => words.as_mut_bytes(),
        }
    }
}

impl Sparse {
    /// Zeros for a part of a file.
    fn with_room(file: &MediaFile, offset: u64, length: u64) -> Result<Sparse> {
        // As large as large pages are, so that it can have some.
        let room = length.next_multiple_of(LARGE_PAGE);
        let room = MmapMut::map_anon(usize::try_from(room).unwrap_or(usize::MAX))
            .map_err(|error| Error::io_at("reading a log", file, offset, error))?;
        Ok(Sparse {
            room: Room::Mapped(room),
            offset,
            length: length as usize,
            used: 0,
        })
    }

    /// Zeros for so few bytes that they need no pages of their own.
    fn short(file: &MediaFile, offset: u64, length: u64) -> Result<Sparse> {
        let length = length as usize;
        let mut words = Vec::new();
        if words.try_reserve_exact(length.div_ceil(8)).is_err() {
            let error = io::ErrorKind::OutOfMemory.into();
            return Err(Error::io_at("reading a log", file, offset, error));
        }
        words.resize(length.div_ceil(8), 0);
        Ok(Sparse {
            room: Room::Short(words),
            offset,
            length,
            used: 0,
        })
    }

    /// Reads the `length` bytes at `at` of the file, behind all that was read before.
    fn fill(&mut self, file: &MediaFile, at: u64, length: u64) -> Result<()> {
        let begin = (at - self.offset) as usize;
        let part = begin..begin + length as usize;
        if let Room::Mapped(room) = &self.room
            && part.len() >= LARGE_WORTH
            && self.used == 0
        {
            // A system that has none goes on with small ones.
            let _ = room.advise(Advice::HugePage);
        }
        let end = part.end;
        if let Some(part) = self.room.bytes_mut().get_mut(part) {
            reading::exact(file, at, part, "reading a log")?;
            self.used = end;
        }
        Ok(())
    }

    /// All of it.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.room.bytes().get(..self.length).unwrap_or_default()
    }

    /// The part behind which nothing was written: all is zero there.
    pub(crate) fn written(&self) -> &[u8] {
        self.room.bytes().get(..self.used).unwrap_or_default()
    }
}

impl AsRef<[u8]> for Sparse {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}
