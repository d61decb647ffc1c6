//! The registry's bytes: redb reads and writes them through the library's one seam for media.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use durum_persist::Site;
use durum_persist::file::MediaFile;
use redb::StorageBackend;

/// Room reserved for the registry.
const ROOM: Site = Site("registry room");
/// A registry commit, or its header.
const COMMIT: Site = Site("registry commit");

/// Says whether the file system ran out of room since it was made: redb's own error does not tell it
/// once it has refused further work.
#[derive(Clone, Debug, Default)]
pub(super) struct FullWatch(Arc<Mutex<Option<u64>>>);

impl FullWatch {
    /// The bytes that there was no room for, if that happened.
    pub(super) fn bytes(&self) -> Option<u64> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note(&self, bytes: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(bytes);
    }
}

/// A registry file.
#[derive(Debug)]
pub(super) struct FileBackend {
    file: MediaFile,
    full: FullWatch,
}

impl FileBackend {
    pub(super) fn new(file: MediaFile) -> (FileBackend, FullWatch) {
        let full = FullWatch::default();
        (
            FileBackend {
                file,
                full: full.clone(),
            },
            full,
        )
    }

    fn watch<T>(&self, bytes: u64, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && is_full(error)
        {
            self.full.note(bytes);
        }
        result
    }
}

impl StorageBackend for FileBackend {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(out, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        if len <= self.file.len()? {
            return self.file.set_len(len);
        }
        // Room is reserved at growth, so that a full disk shows here and never in the middle of a commit.
        self.watch(len, self.file.allocate(len, ROOM))
    }

    fn sync_data(&self) -> io::Result<()> {
        // ORDER: redb orders its own pages: all pages of a commit before the header that points to them. A crash
        // in between finds the header of the commit before.
        self.file.sync(COMMIT)
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.watch(data.len() as u64, self.file.write_all_at(data, offset))
    }
}

/// Whether an error says that there is no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
    )
}

/// A private copy of a registry file in memory: what is done to it stays there.
#[derive(Debug)]
pub(super) struct PrivateBackend(Mutex<Vec<u8>>);

impl PrivateBackend {
    pub(super) fn new(bytes: Vec<u8>) -> PrivateBackend {
        PrivateBackend(Mutex::new(bytes))
    }

    fn bytes(&self) -> std::sync::MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// `offset..offset + len` as indices of `bytes`, or an error.
fn range(bytes: &[u8], offset: u64, len: usize) -> io::Result<std::ops::Range<usize>> {
    usize::try_from(offset)
        .ok()
        .and_then(|start| Some(start..start.checked_add(len)?))
        .filter(|range| range.end <= bytes.len())
        .ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

impl StorageBackend for PrivateBackend {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes();
        let range = range(&bytes, offset, out.len())?;
        out.copy_from_slice(&bytes[range]);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let len = usize::try_from(len).map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut bytes = self.bytes();
        let grown = len.saturating_sub(bytes.len());
        bytes
            .try_reserve(grown)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        bytes.resize(len, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let mut bytes = self.bytes();
        let range = range(&bytes, offset, data.len())?;
        bytes[range].copy_from_slice(data);
        Ok(())
    }
}
