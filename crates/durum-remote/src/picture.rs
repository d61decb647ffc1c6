//! A pool that another program of the service has shown, in a file that the service has made.

use std::collections::HashMap;

use durum_format::Uuid;
use durum_persist::file::MediaFile;
use durum_service::{Error, Picture, Result, ShownAt};

/// What was shown.
pub(crate) struct ShownPool {
    file: MediaFile,
    offsets: HashMap<Uuid, u64>,
}

impl ShownPool {
    pub(crate) fn new(file: MediaFile, shown: &[ShownAt]) -> ShownPool {
        let offsets = shown.iter().map(|shown| (shown.puddle, shown.offset));
        ShownPool {
            file,
            offsets: offsets.collect(),
        }
    }
}

impl Picture for ShownPool {
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
