//! A file mapped whole, with the simplest allocator there is: the memory of the flush1, redo1, quadra, trinity and
//! volatile sides.
//!
//! The allocator's state is volatile. So what flush1 and redo1 measure is the data alone, the least that any allocator
//! can reach.

use std::fs::{self, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr;

use durum_persist::line::LINE;

use crate::error::{Error, Result};

/// Bytes of an arena.
pub const ARENA_SIZE: usize = 256 << 20;
/// Objects up to this size come from free lists by size.
const CLASS_SIZE_MAX: usize = 4096;
const WORD: usize = 8;
/// Sizes of which there are free lists.
pub const CLASSES: usize = CLASS_SIZE_MAX / WORD + 1;

/// A mapped file, removed on drop.
#[derive(Debug)]
pub struct Arena {
    // INVARIANT: a shared mapping of `size` bytes, until drop.
    base: *mut u8,
    size: usize,
    used: usize,
    /// Freed places by size in words; the last one freed is the first one taken.
    free: Vec<Vec<*mut u8>>,
    path: PathBuf,
}

impl Arena {
    /// Creates and maps the file; every page is there before the first use, so that no side pays for page faults here.
    pub fn create(path: &Path) -> Result<Arena> {
        Arena::with_size(path, ARENA_SIZE)
    }

    /// The same with another size.
    pub fn with_size(path: &Path, size: usize) -> Result<Arena> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)
            .map_err(Error::file(path))?;
        file.set_len(size as u64).map_err(Error::file(path))?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                ptr::null_mut(),
                size,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_POPULATE,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(Error::file(path)(std::io::Error::last_os_error()));
        }
        Ok(Arena {
            base: base.cast(),
            size,
            used: 0,
            free: vec![Vec::new(); CLASSES],
            path: path.to_owned(),
        })
    }

    /// Where it begins.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// Memory that stays, on a line boundary. Zeroed, since it was never used.
    pub fn take(&mut self, size: usize) -> Result<*mut u8> {
        self.used = self.used.next_multiple_of(LINE);
        self.bump(size)
    }

    /// Memory for an object of a multiple of 8 bytes, at most 4096. One of a line or more begins on a line boundary, so
    /// that it touches as few lines as it can.
    #[inline]
    pub fn alloc(&mut self, size: usize) -> Result<*mut u8> {
        debug_assert!(size.is_multiple_of(WORD) && size <= CLASS_SIZE_MAX);
        match self.free[size / WORD].pop() {
            Some(place) => Ok(place),
            None if size >= LINE => self.take(size),
            None => self.bump(size),
        }
    }

    /// Gives an object of that size back.
    #[inline]
    pub fn free(&mut self, object: *mut u8, size: usize) {
        self.free[size / WORD].push(object);
    }

    /// Where the next object of that size will be, or would be if there were room.
    #[inline]
    pub fn next(&self, size: usize) -> usize {
        match self.free[size / WORD].last() {
            Some(place) => place.addr(),
            None => self.base.addr() + self.used,
        }
    }

    /// Memory for an array of a multiple of 8 bytes, of any size.
    pub fn alloc_any(&mut self, size: usize) -> Result<*mut u8> {
        match size <= CLASS_SIZE_MAX {
            true => self.alloc(size),
            false => self.take(size),
        }
    }

    /// Gives an array back. A large one is not used again: structures that double have few.
    pub fn free_any(&mut self, array: *mut u8, size: usize) {
        if size <= CLASS_SIZE_MAX {
            self.free(array, size);
        }
    }

    fn bump(&mut self, size: usize) -> Result<*mut u8> {
        if size > self.size - self.used {
            return Err(Error::ArenaFull { size: self.size });
        }
        // SAFETY: inside the mapping.
        let place = unsafe { self.base.add(self.used) };
        self.used += size.next_multiple_of(WORD);
        Ok(place)
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // SAFETY: the invariant of `base`; whoever holds pointers into the arena holds the arena.
        unsafe { libc::munmap(self.base.cast(), self.size) };
        // A file that stays behind is found by the directory's owner, who removes the directory.
        let _ = fs::remove_file(&self.path);
    }
}
