//! Rows of numbers, as many as a pool has extents: in memory, or in a file without a name, which the system may write
//! out where there is little memory.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use durum_persist::Site;
use durum_persist::file::MediaFile;
use memmap2::{MmapMut, MmapOptions};
use rustix::fd::AsRawFd;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::error::{Error, Result};
use crate::files::grown;

const ROWS: Site = Site("rows about extents");
/// Bytes that are mapped at once.
const CHUNK: u64 = 1 << 20;

/// Rows, which are added one behind the other.
#[derive(Default)]
pub(crate) struct Rows<T> {
    chunks: Vec<MmapMut>,
    length: usize,
    file: Option<(MediaFile, PathBuf)>,
    _rows: PhantomData<T>,
}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> Rows<T> {
    const EACH: usize = CHUNK as usize / size_of::<T>();

    /// None yet, in a file in this directory.
    pub(crate) fn in_file(directory: &Path) -> Result<Self> {
        let path = directory.join("table of extents that are migrated");
        let file = MediaFile::nameless(directory, &path)
            .map_err(|error| Error::io("making a file without a name", directory, error))?;
        Ok(Rows {
            chunks: Vec::new(),
            length: 0,
            file: Some((file, path)),
            _rows: PhantomData,
        })
    }

    /// Bytes that are taken.
    pub(crate) fn bytes(&self) -> u64 {
        self.chunks.len() as u64 * CHUNK
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, row: &T) -> Result<()> {
        let (chunk, at) = (self.length / Self::EACH, self.length % Self::EACH);
        if chunk == self.chunks.len() {
            let next = self.next()?;
            self.chunks.push(next);
        }
        let place = self.chunks.get_mut(chunk);
        let place = place.and_then(|it| it.get_mut(at * size_of::<T>()..));
        // There is room in each chunk for as many.
        if let Some(place) = place.and_then(|it| it.get_mut(..size_of::<T>())) {
            place.copy_from_slice(row.as_bytes());
        }
        self.length += 1;
        Ok(())
    }

    fn next(&self) -> Result<MmapMut> {
        let Some((file, path)) = &self.file else {
            let map = MmapMut::map_anon(CHUNK as usize);
            let nowhere = Path::new("memory for what is known of extents");
            return map.map_err(|error| Error::io("mapping", nowhere, error));
        };
        let begin = self.chunks.len() as u64 * CHUNK;
        // A hole would be an error of the medium when it is written.
        file.allocate(begin + CHUNK, ROWS)
            .map_err(|error| grown("making room for a table", path, CHUNK, error))?;
        // SAFETY: nobody else can open the file, and it gets no shorter.
        let map = unsafe {
            MmapOptions::new()
                .offset(begin)
                .len(CHUNK as usize)
                .map_mut(file.as_fd().as_raw_fd())
        };
        map.map_err(|error| Error::io("mapping a table", path, error))
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        if index >= self.length {
            return None;
        }
        let chunk = self.chunks.get(index / Self::EACH)?;
        let begin = index % Self::EACH * size_of::<T>();
        T::ref_from_bytes(chunk.get(begin..begin + size_of::<T>())?).ok()
    }
}
