//! File operations on media. Each one is an event of the trace while a recorder is attached.
//!
//! What the operations make durable: nothing, except the syncs. [`MediaFile::sync`] covers the file's bytes
//! and its length, [`sync_dir`] the names in a directory. A new file needs both, its own sync and its directory's.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

use crate::beneath::{self, Directory};
use crate::inject::{self, Operation};
use crate::key::FileKey;
use crate::recording::hook::{self, Name};
use crate::{Site, count, delay, large};

/// An open file on media. Clones share the descriptor, which is close-on-exec.
#[derive(Clone, Debug)]
pub struct MediaFile {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    path: PathBuf,
    key: FileKey,
    len_at_opening: u64,
}

impl MediaFile {
    /// Creates an empty file and opens it for reading and writing. Its name is durable after [`sync_dir`] of its
    /// directory.
    ///
    /// # Errors
    /// `AlreadyExists` if there is anything of that name; otherwise as the system says.
    pub fn create_new(path: &Path) -> io::Result<MediaFile> {
        inject::check(Operation::Grow, path)?;
        hook::file(
            || {
                let file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .create_new(true)
                    .open(path)?;
                let stat = rustix::fs::fstat(&file)?;
                Ok(MediaFile::new(file, path, &stat))
            },
            |active, file| active.created(path, file.inner.key),
        )
    }

    /// Opens the existing file `name` beneath `directory` for reading, or for reading and writing. No part of the name
    /// may be a link, and nothing is waited for.
    ///
    /// # Errors
    /// `NotFound`, `PermissionDenied`; [`NotRegular`](crate::beneath::NotRegular) for anything but a regular file; or
    /// as the system says.
    pub fn open(directory: &Path, name: impl AsRef<Path>, writable: bool) -> io::Result<MediaFile> {
        let (file, stat) = beneath::open(directory, name.as_ref(), writable)?;
        Ok(MediaFile::new(file, &directory.join(name), &stat))
    }

    /// As [`open`](Self::open), for a file in a directory that was found before.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_in(directory: &Directory, name: &str, writable: bool) -> io::Result<MediaFile> {
        let path = directory.path().join(name);
        let (file, stat) = directory.open(name, &path, writable)?;
        Ok(MediaFile::new(file, &path, &stat))
    }

    /// A file that another process has opened, under the path by which messages name it.
    ///
    /// # Errors
    /// [`NotRegular`](crate::beneath::NotRegular) for anything but a regular file; or as the system says.
    pub fn received(descriptor: OwnedFd, path: &Path) -> io::Result<MediaFile> {
        let file = File::from(descriptor);
        let stat = beneath::ensure_regular(&file, path)?;
        Ok(MediaFile::new(file, path, &stat))
    }

    /// A new file without a name in a directory: it is gone when nobody has it open any more. Messages call it `path`.
    ///
    /// # Errors
    /// As the system says; a file system that has no such files.
    pub fn nameless(directory: &Path, path: &Path) -> io::Result<MediaFile> {
        use rustix::fs::{Mode, OFlags};
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR)?;
        MediaFile::received(file, path)
    }

    /// The same file for somebody who may only read it.
    ///
    /// # Errors
    /// As the system says.
    pub fn for_reading(&self) -> io::Result<MediaFile> {
        use rustix::fs::{Mode, OFlags};
        use std::os::fd::AsRawFd;
        let descriptor = format!("/proc/self/fd/{}", self.inner.file.as_raw_fd());
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(descriptor, flags, Mode::empty())?;
        MediaFile::received(file, &self.inner.path)
    }

    /// A file that stands in for the one at `path`, which cannot be had. It is empty: where it is mapped, each access
    /// is a media error.
    ///
    /// # Errors
    /// As the system says.
    pub fn unreadable(path: &Path) -> io::Result<MediaFile> {
        let file = File::from(rustix::fs::memfd_create(
            "unreadable",
            rustix::fs::MemfdFlags::CLOEXEC,
        )?);
        let stat = rustix::fs::fstat(&file)?;
        Ok(MediaFile::new(file, path, &stat))
    }

    fn new(file: File, path: &Path, stat: &rustix::fs::Stat) -> MediaFile {
        MediaFile {
            inner: Arc::new(Inner {
                file,
                path: path.to_owned(),
                key: FileKey::of_open(stat),
                len_at_opening: stat.st_size as u64,
            }),
        }
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before; a media error as the system says.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        inject::check(Operation::Read, &self.inner.path)?;
        self.inner.file.read_exact_at(buffer, offset)
    }

    /// Writes `bytes` at `offset`, lengthening the file if need be. Durable after [`sync`](Self::sync).
    ///
    /// # Errors
    /// `StorageFull` or as the system says; part of the bytes may have been written.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        inject::check(Operation::Write, &self.inner.path)?;
        let end = offset.saturating_add(bytes.len() as u64);
        inject::check_growth(&self.inner.path, end, || self.len())?;
        let write = || self.inner.file.write_all_at(bytes, offset);
        hook::file_or_error(write, |active, result| match result {
            Ok(()) => active.written(self.key(), bytes, offset),
            Err(_) => active.partly_written(self.key(), &self.inner.file, bytes.len(), offset),
        })?;
        count::add_file_write(bytes.len() as u64);
        Ok(())
    }

    /// Makes the file at least `len` bytes long and has the file system reserve the space, so that later writes and
    /// stores within it cannot run out of space. New bytes are zero. Durable after [`sync`](Self::sync).
    ///
    /// # Errors
    /// `StorageFull` if the space is not there; the length is then as before.
    pub fn allocate(&self, len: u64, site: Site) -> io::Result<()> {
        self.allocate_by(len, site, || self.reserve(len))
    }

    /// As [`allocate`](Self::allocate), for bytes that are about to be used, most of them. A file that is kept in
    /// memory gets large pages for them where the system has some: they are made in less time, and so are their page
    /// tables. All of them then count as written: to look for what was
    /// ([`lseek`](https://man7.org/linux/man-pages/man2/lseek.2.html) with `SEEK_DATA`) finds everything.
    ///
    /// # Errors
    /// As [`allocate`](Self::allocate).
    pub fn allocate_large(&self, len: u64, site: Site) -> io::Result<()> {
        self.allocate_by(len, site, || {
            let old_len = self.len()?;
            large::make(&self.inner.file, old_len..len);
            // Whoever maps the file stores to what it finds there: only now is it known that the space is.
            self.reserve(len).inspect_err(|_| {
                // The promise of the error; it gives pages back, too. Should this fail, a longer file of zeros is
                // harmless.
                let _ = self.inner.file.set_len(old_len);
            })
        })
    }

    fn allocate_by(
        &self,
        len: u64,
        site: Site,
        reserve: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        inject::check(Operation::Grow, &self.inner.path)?;
        let grow = || match inject::is_promised(&self.inner.path) {
            true if len <= self.len()? => Ok(()),
            true => self.inner.file.set_len(len),
            false => reserve(),
        };
        hook::file(grow, |active, ()| active.allocated(self.key(), len, site))
    }

    fn reserve(&self, len: u64) -> io::Result<()> {
        let flags = rustix::fs::FallocateFlags::empty();
        match rustix::fs::fallocate(&self.inner.file, flags, 0, len) {
            Err(rustix::io::Errno::OPNOTSUPP) => self.allocate_by_writing(len),
            result => result.map_err(io::Error::from),
        }
    }

    /// For file systems without fallocate: writes zeros past the end. Holes before the end stay holes; files
    /// that are allocated when they are created and grow by allocation have none.
    fn allocate_by_writing(&self, len: u64) -> io::Result<()> {
        let old_len = self.len()?;
        let zeros = [0u8; 64 * 1024];
        let mut offset = old_len;
        while offset < len {
            let part = zeros.len().min((len - offset) as usize);
            if let Err(error) = self.inner.file.write_all_at(&zeros[..part], offset) {
                // The promise of the error is the old length; should this fail too, a longer file of zeros is harmless.
                let _ = self.inner.file.set_len(old_len);
                return Err(error);
            }
            offset += part as u64;
        }
        Ok(())
    }

    /// Cuts or lengthens the file to `len` bytes, without reserving space. New bytes are zero. Durable after
    /// [`sync`](Self::sync).
    ///
    /// # Errors
    /// As the system says; the length is then as before.
    pub fn set_len(&self, len: u64) -> io::Result<()> {
        inject::check_growth(&self.inner.path, len, || self.len())?;
        hook::file(
            || self.inner.file.set_len(len),
            |active, ()| active.resized(self.key(), len),
        )
    }

    /// Makes the file's bytes and length durable (fdatasync). Not its name: see [`sync_dir`].
    ///
    /// # Errors
    /// As the system says. What was not durable before may then never become durable, even if a later sync
    /// succeeds: the file must be read again with the page cache dropped.
    pub fn sync(&self, site: Site) -> io::Result<()> {
        inject::wait_at(site);
        let sync = || {
            inject::check(Operation::Sync, &self.inner.path)?;
            rustix::fs::fdatasync(&self.inner.file).map_err(io::Error::from)
        };
        let result = hook::file_or_error(sync, |active, result| {
            active.synced(self.key(), result.is_ok(), site)
        });
        delay::sync();
        count::add_sync();
        result
    }

    /// The file's length in bytes.
    ///
    /// # Errors
    /// As the system says.
    #[allow(clippy::len_without_is_empty)] // Nobody asks whether a file on media is empty.
    pub fn len(&self) -> io::Result<u64> {
        Ok(rustix::fs::fstat(&self.inner.file)?.st_size as u64)
    }

    /// What it was when the file was opened, for whoever checks it then: no system call.
    pub fn len_at_opening(&self) -> u64 {
        self.inner.len_at_opening
    }

    /// The path it was opened by; a later rename does not change it.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The descriptor, for mapping, locking and the like. Writing through it goes past the recorder.
    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.file.as_fd()
    }

    pub(crate) fn key(&self) -> FileKey {
        self.inner.key
    }
}

impl AsFd for MediaFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.file.as_fd()
    }
}

/// Gives a file or directory another name, replacing a file that has it. After a crash before [`sync_dir`] the name
/// `to` stands for the old or for the new file, never for neither.
///
/// # Errors
/// As the system says; nothing has changed then.
pub fn rename(from: &Path, to: &Path, site: Site) -> io::Result<()> {
    hook::file(
        || fs::rename(from, to),
        |active, ()| active.named(Name::Renamed { from, to }, site),
    )
}

/// Removes a file or an empty directory. Durable after [`sync_dir`].
///
/// # Errors
/// As the system says; nothing has changed then.
pub fn remove(path: &Path, site: Site) -> io::Result<()> {
    let remove = || match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => fs::remove_dir(path),
        removed => removed,
    };
    hook::file(remove, |active, ()| {
        active.named(Name::Removed { path }, site)
    })
}

/// Creates an empty directory. Its name is durable after [`sync_dir`] of the directory that holds it.
///
/// # Errors
/// `AlreadyExists` if there is anything of that name; otherwise as the system says.
pub fn create_dir(path: &Path, site: Site) -> io::Result<()> {
    inject::check(Operation::Grow, path)?;
    hook::file(
        || fs::create_dir(path),
        |active, ()| active.named(Name::DirCreated { path }, site),
    )
}

/// Makes the names in a directory durable: creations, renames and removals.
///
/// # Errors
/// As the system says; the names are then as uncertain as before.
pub fn sync_dir(path: &Path, site: Site) -> io::Result<()> {
    let sync = || {
        inject::check(Operation::Sync, path)?;
        // A pipe in the place of the directory must not keep its opener waiting for a writer.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        rustix::fs::fsync(&directory).map_err(io::Error::from)
    };
    let result = hook::file(sync, |active, ()| active.dir_synced(path, site));
    delay::sync();
    count::add_sync();
    result
}
