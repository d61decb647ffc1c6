//! Files in which pools are seen as they were at some moment.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use durum_format::Uuid;
use durum_persist::Site;
use durum_persist::file::{self, MediaFile};

use crate::copying;
use crate::directory::hidden_beside;
use crate::error::{Error, Result};
use crate::files::grown;
use crate::picture::{Picture, ShownAt};
use crate::reading;

/// Of no use to a crash test: nothing depends on it.
const NAMELESS: Site = Site("name of a file that is kept for a while");

/// A file that puddles are shown in, one behind the other.
#[derive(Debug)]
pub struct ShownFile {
    file: MediaFile,
    offsets: HashMap<Uuid, u64>,
    end: u64,
    buffer: Vec<u8>,
}

impl ShownFile {
    /// An empty one.
    pub fn new(file: MediaFile) -> ShownFile {
        ShownFile::received(file, &[])
    }

    /// One that somebody else has filled. Neither is believed: what is not there cannot be read.
    pub fn received(file: MediaFile, shown: &[ShownAt]) -> ShownFile {
        let offsets = shown.iter().map(|shown| (shown.puddle, shown.offset));
        ShownFile {
            file,
            offsets: offsets.collect(),
            end: 0,
            buffer: Vec::new(),
        }
    }

    /// Adds a puddle of so many bytes, which `read` fills in. What is zero takes no room.
    ///
    /// # Errors
    /// Those of `read`; `StorageFull`, `Io`.
    pub fn add(
        &mut self,
        puddle: Uuid,
        size: usize,
        read: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let more = size.saturating_sub(self.buffer.len());
        reading::lengthen(&mut self.buffer, self.file.path(), more as u64)?;
        let bytes = &mut self.buffer[..size];
        read(bytes)?;
        let end = self.end + size as u64;
        self.file
            .set_len(end)
            .and_then(|()| copying::write_at(&self.file, bytes, self.end))
            .map_err(|error| grown("showing a puddle", self.file.path(), end, error))?;
        self.offsets.insert(puddle, self.end);
        self.end = end;
        Ok(())
    }

    /// Where the puddles are.
    pub fn places(&self) -> Vec<ShownAt> {
        let places = self.offsets.iter();
        let place = |(puddle, offset): (&Uuid, &u64)| ShownAt {
            puddle: *puddle,
            offset: *offset,
        };
        places.map(place).collect()
    }
}

impl Picture for ShownFile {
    fn read(&self, puddle: Uuid, bytes: &mut [u8]) -> Result<()> {
        let offset = self.offsets.get(&puddle).copied().unwrap_or(u64::MAX);
        let read = self.file.read_exact_at(bytes, offset);
        read.map_err(|source| Error::Io {
            operation: "reading what was shown of a puddle",
            path: self.file.path().to_owned(),
            offset: Some(offset),
            source,
        })
    }

    fn has(&self, puddle: Uuid) -> bool {
        self.offsets.contains_key(&puddle)
    }

    fn is_done(&self, _puddle: Uuid) {}
}

/// A picture that is read once, and can be seen again: what the program stores without telling may be another value
/// the second time, and so long it would have to keep all that it changes.
pub(crate) struct Kept<'p> {
    from: &'p dyn Picture,
    file: Mutex<ShownFile>,
}

impl<'p> Kept<'p> {
    /// In a file that is gone with this, on the file system of `place`.
    pub(crate) fn new(from: &'p dyn Picture, place: &Path) -> Result<Kept<'p>> {
        let path = hidden_beside(place)?;
        let failed = |error| grown("making a file for a while", &path, 0, error);
        let file = MediaFile::create_new(&path).map_err(failed)?;
        file::remove(&path, NAMELESS).map_err(failed)?;
        Ok(Kept {
            from,
            file: Mutex::new(ShownFile::new(file)),
        })
    }
}

impl Picture for Kept<'_> {
    fn read(&self, puddle: Uuid, bytes: &mut [u8]) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if !file.has(puddle) {
            file.add(puddle, bytes.len(), |bytes| self.from.read(puddle, bytes))?;
            self.from.is_done(puddle);
        }
        file.read(puddle, bytes)
    }

    fn has(&self, puddle: Uuid) -> bool {
        self.from.has(puddle)
    }

    fn is_done(&self, _puddle: Uuid) {}
}
