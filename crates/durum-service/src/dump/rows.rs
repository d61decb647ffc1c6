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
/// Bytes that are mapped at once: little at first, as most pools have few extents.
const FIRST: u64 = 64 << 10;
/// So many times; together they are one of those that follow.
const FIRSTS: usize = 16;
const CHUNK: u64 = FIRST * FIRSTS as u64;

/// Rows, which are added one behind the other.
#[derive(Default)]
pub(crate) struct Rows<T> {
    chunks: Vec<MmapMut>,
    length: usize,
    file: Option<(MediaFile, PathBuf)>,
    _rows: PhantomData<T>,
}

impl<T: FromBytes + IntoBytes + Immutable + KnownLayout> Rows<T> {
    const IN_FIRST: usize = FIRST as usize / size_of::<T>();
    const IN_CHUNK: usize = CHUNK as usize / size_of::<T>();

    /// The chunk that a row lies in, and where.
    #[inline]
    fn place(index: usize) -> (usize, usize) {
        let (chunk, row) = match index.checked_sub(FIRSTS * Self::IN_FIRST) {
            None => (index / Self::IN_FIRST, index % Self::IN_FIRST),
            Some(behind) => (FIRSTS + behind / Self::IN_CHUNK, behind % Self::IN_CHUNK),
        };
        (chunk, row * size_of::<T>())
    }

    /// Where a chunk begins in the file, and its bytes.
    fn range(chunk: usize) -> (u64, u64) {
        match chunk.checked_sub(FIRSTS) {
            None => (chunk as u64 * FIRST, FIRST),
            Some(behind) => (CHUNK + behind as u64 * CHUNK, CHUNK),
        }
    }

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
        Self::range(self.chunks.len()).0
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn push(&mut self, row: &T) -> Result<()> {
        let (chunk, at) = Self::place(self.length);
        if chunk == self.chunks.len() {
            let next = self.next()?;
            self.chunks.push(next);
        }
        let place = self.chunks.get_mut(chunk);
        let place = place.and_then(|it| it.get_mut(at..));
        // There is room in each chunk for as many.
        if let Some(place) = place.and_then(|it| it.get_mut(..size_of::<T>())) {
            place.copy_from_slice(row.as_bytes());
        }
        self.length += 1;
        Ok(())
    }

    fn next(&self) -> Result<MmapMut> {
        let (begin, length) = Self::range(self.chunks.len());
        let Some((file, path)) = &self.file else {
            let map = MmapMut::map_anon(length as usize);
            let nowhere = Path::new("memory for what is known of extents");
            return map.map_err(|error| Error::io("mapping", nowhere, error));
        };
        // A hole would be an error of the medium when it is written.
        file.allocate(begin + length, ROWS)
            .map_err(|error| grown("making room for a table", path, length, error))?;
        // SAFETY: nobody else can open the file, and it gets no shorter.
        let map = unsafe {
            MmapOptions::new()
                .offset(begin)
                .len(length as usize)
                .map_mut(file.as_fd().as_raw_fd())
        };
        map.map_err(|error| Error::io("mapping a table", path, error))
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<&T> {
        if index >= self.length {
            return None;
        }
        let (chunk, begin) = Self::place(index);
        let bytes = self.chunks.get(chunk)?.get(begin..begin + size_of::<T>())?;
        T::ref_from_bytes(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stay_what_they_were_and_the_first_ones_take_little() {
        let directory = tempfile::tempdir().unwrap();
        for mut rows in [Rows::default(), Rows::in_file(directory.path()).unwrap()] {
            assert_eq!(rows.bytes(), 0);
            // 24 bytes are no part of a chunk.
            for number in 0..200_000_u64 {
                rows.push(&[number, !number, 7]).unwrap();
                if number == 0 {
                    assert_eq!(rows.bytes(), FIRST);
                }
            }
            assert_eq!(rows.bytes(), 5 * CHUNK);
            for number in 0..200_000_u64 {
                assert_eq!(rows.get(number as usize), Some(&[number, !number, 7]));
            }
            assert_eq!(rows.get(200_000), None);
        }
    }
}
