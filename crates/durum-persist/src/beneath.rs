//! Opening what has a name beneath a directory: through no link, without waiting, and only a regular file.
//!
//! Whoever may write to the directory may put anything in the place of a file. A pipe keeps its opener waiting for a
//! writer, a link leads to somebody else's file, a device does things when it is opened.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::Site;
use crate::recording::hook::{self, Name};

/// Opening was refused: what has the name is of another kind. It is what the [`io::Error`] of
/// [`MediaFile::open`](crate::file::MediaFile::open) carries; see [`NotRegular::of`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRegular {
    /// The file, or the directory on the way to it.
    pub path: PathBuf,
    /// What it is, with an article.
    pub found: &'static str,
    /// What it should be, with an article.
    pub expected: &'static str,
}

impl NotRegular {
    /// The refusal that an error carries, if it is one.
    pub fn of(error: &io::Error) -> Option<&NotRegular> {
        error.get_ref()?.downcast_ref()
    }
}

impl fmt::Display for NotRegular {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} is {}, not {}",
            self.path.display(),
            self.found,
            self.expected
        )
    }
}

impl std::error::Error for NotRegular {}

impl From<NotRegular> for io::Error {
    fn from(refusal: NotRegular) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidInput, refusal)
    }
}

const DIRECTORY: &str = "a directory";
const REGULAR: &str = "a regular file";

/// A directory that was found once, so that each file in it is opened in one step.
#[derive(Debug)]
pub struct Directory {
    descriptor: OwnedFd,
    path: PathBuf,
}

impl Directory {
    /// Finds the directory `name` in `parent`, which itself may be reached through links.
    ///
    /// # Errors
    /// `NotFound`; [`NotRegular`] for anything else, a link to a directory included; or as the system says.
    pub fn find(parent: &Path, name: &str) -> io::Result<Directory> {
        let at = rustix::fs::open(parent, STEP, Mode::empty())?;
        let path = parent.join(name);
        let descriptor = step_into(&at, Path::new(name), &path)?;
        Ok(Directory { descriptor, path })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file in it. `path` is what messages call the file.
    pub(crate) fn open(&self, name: &str, path: &Path, writable: bool) -> io::Result<(File, Stat)> {
        open_in(&self.descriptor, own(name)?, path, writable)
    }

    /// Gives a file in it a further name in another directory, which nothing may have. The name is durable after
    /// [`sync_dir`](crate::file::sync_dir).
    ///
    /// # Errors
    /// `AlreadyExists` if there is anything of that name; `CrossesDevices` for a name on another file system; otherwise
    /// as the system says. Nothing has changed then.
    pub fn link(&self, name: &str, to: &Directory, new: &str, site: Site) -> io::Result<()> {
        let (from, into) = (&self.descriptor, &to.descriptor);
        hook::file(
            || {
                Ok(rustix::fs::linkat(
                    from,
                    own(name)?,
                    into,
                    own(new)?,
                    AtFlags::empty(),
                )?)
            },
            |active, ()| {
                let (from, to) = (&self.path.join(name), &to.path.join(new));
                active.named(Name::Linked { from, to }, site);
            },
        )
    }

    /// Removes a file in it. Durable after [`sync_dir`](crate::file::sync_dir).
    ///
    /// # Errors
    /// As the system says; nothing has changed then.
    pub fn remove(&self, name: &str, site: Site) -> io::Result<()> {
        hook::file(
            || {
                Ok(rustix::fs::unlinkat(
                    &self.descriptor,
                    own(name)?,
                    AtFlags::empty(),
                )?)
            },
            |active, ()| {
                let path = &self.path.join(name);
                active.named(Name::Removed { path }, site);
            },
        )
    }
}

/// Refuses a name that leads out of a directory, or further into it.
fn own(name: &str) -> io::Result<&Path> {
    let name = Path::new(name);
    match name.components().next() {
        Some(Component::Normal(part)) if part == name => Ok(name),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// The way to a file: found, not read.
const STEP: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Opens the regular file `name` beneath `directory`. The directory itself may be reached through links.
pub(crate) fn open(directory: &Path, name: &Path, writable: bool) -> io::Result<(File, Stat)> {
    let mut at = rustix::fs::open(directory, STEP, Mode::empty())?;
    let mut path = directory.to_owned();
    let mut parts = name.components().peekable();
    while let Some(part) = parts.next() {
        // A name that leads out of the directory.
        let Component::Normal(part) = part else {
            break;
        };
        path.push(part);
        let part = Path::new(part);
        if parts.peek().is_none() {
            return open_in(&at, part, &path, writable);
        }
        at = step_into(&at, part, &path)?;
    }
    Err(io::ErrorKind::InvalidInput.into())
}

fn step_into(at: &OwnedFd, part: &Path, path: &Path) -> io::Result<OwnedFd> {
    rustix::fs::openat(at, part, STEP | OFlags::NOFOLLOW, Mode::empty())
        .map_err(|errno| refusal(at, part, path, DIRECTORY, errno))
}

fn open_in(at: &OwnedFd, part: &Path, path: &Path, writable: bool) -> io::Result<(File, Stat)> {
    let access = match writable {
        true => OFlags::RDWR,
        false => OFlags::RDONLY,
    };
    let flags = access | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(at, part, flags, Mode::empty())
        .map_err(|errno| refusal(at, part, path, REGULAR, errno))?;
    let file = File::from(file);
    let stat = ensure_regular(&file, path)?;
    Ok((file, stat))
}

/// What the system says of a file; refuses anything but a regular one. By a call that no name is given to, which is
/// allowed where no name may be looked up.
pub(crate) fn ensure_regular(file: &File, path: &Path) -> io::Result<Stat> {
    let stat = rustix::fs::fstat(file)?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Ok(stat),
        found => Err(not(path, found, REGULAR).into()),
    }
}

/// Why `part` could not be opened: the system's word for a link or a socket tells nobody what is wrong.
fn refusal(
    at: &OwnedFd,
    part: &Path,
    path: &Path,
    expected: &'static str,
    errno: Errno,
) -> io::Error {
    if let Ok(stat) = rustix::fs::statat(at, part, AtFlags::SYMLINK_NOFOLLOW) {
        let found = FileType::from_raw_mode(stat.st_mode);
        let is_expected = match expected {
            DIRECTORY => found == FileType::Directory,
            _ => found == FileType::RegularFile,
        };
        if !is_expected {
            return not(path, found, expected).into();
        }
    }
    errno.into()
}

fn not(path: &Path, found: FileType, expected: &'static str) -> NotRegular {
    NotRegular {
        path: path.to_owned(),
        found: match found {
            FileType::RegularFile => REGULAR,
            FileType::Directory => DIRECTORY,
            FileType::Symlink => "a symbolic link",
            FileType::Fifo => "a pipe",
            FileType::Socket => "a socket",
            FileType::CharacterDevice | FileType::BlockDevice => "a device",
            _ => "something else",
        },
        expected,
    }
}
