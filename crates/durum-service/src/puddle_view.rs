//! A puddle, for those who only read.

use std::path::Path;

use durum_format::extent::HeapBytes;
use durum_format::puddle::PuddleHeader;
use durum_persist::file::MediaFile;

use crate::error::{Error, Result};
use crate::reading;
use crate::recovery::HomeWrite;

/// A puddle as recovery would leave it. Reading it writes nothing.
#[derive(Debug)]
pub struct PuddleView {
    file: MediaFile,
    header: PuddleHeader,
    writes: Vec<HomeWrite>,
}

impl PuddleView {
    /// A puddle to which recovery would make these writes.
    pub(crate) fn new(
        file: MediaFile,
        header: &PuddleHeader,
        writes: Vec<HomeWrite>,
    ) -> PuddleView {
        PuddleView {
            file,
            header: *header,
            writes,
        }
    }

    /// A puddle of which no log says anything.
    pub(crate) fn as_written(file: MediaFile, header: &PuddleHeader) -> PuddleView {
        PuddleView::new(file, header, Vec::new())
    }

    /// The puddle's header.
    pub fn header(&self) -> &PuddleHeader {
        &self.header
    }

    /// The file, without what recovery would write.
    pub(crate) fn file(&self) -> &MediaFile {
        &self.file
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// `length` bytes from `offset` on.
    ///
    /// # Errors
    /// `Io`, also where there is no memory for them.
    pub fn bytes(&self, offset: u64, length: u64) -> Result<Vec<u8>> {
        let mut bytes = reading::room(self.path(), length)?;
        self.read(offset, &mut bytes)?;
        Ok(bytes)
    }
}

impl HeapBytes for PuddleView {
    type Error = Error;

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        reading::exact(&self.file, offset, buffer, "reading a puddle")?;
        let read = |at, part: &mut [u8]| reading::exact(&self.file, at, part, "reading a puddle");
        self.writes
            .iter()
            .try_for_each(|write| write.apply_to(offset, buffer, read))
    }

    fn is_slow(&self) -> bool {
        true
    }
}
