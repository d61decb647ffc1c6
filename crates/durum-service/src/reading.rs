//! Opening and reading the files of a store: whatever lies in the place of one, nobody waits for it, and nobody takes
//! more memory for it than a checked header says.

use std::io;
use std::path::Path;

use durum_format::extent::HeapBytes;
use durum_persist::beneath::{Directory, NotRegular};
use durum_persist::file::MediaFile;

use crate::error::{Error, Result};

/// What a file of the store is, for whoever is told that it is not there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Role {
    /// In words, with an article.
    pub(crate) structure: &'static str,
    /// What to do without it.
    pub(crate) cure: &'static str,
}

/// Opens a file of the store by its name in the store's directory.
///
/// # Errors
/// `FileMissing`, `NotAFile`, `Io`.
pub(crate) fn open(
    store: &Path,
    name: impl AsRef<Path>,
    role: Role,
    writable: bool,
) -> Result<MediaFile> {
    let name = name.as_ref();
    MediaFile::open(store, name, writable).map_err(|error| failed(&store.join(name), role, error))
}

/// As [`open`], for a file in a directory that was found before.
///
/// # Errors
/// As for [`open`].
pub(crate) fn open_in(
    directory: &Directory,
    name: &str,
    role: Role,
    writable: bool,
) -> Result<MediaFile> {
    MediaFile::open_in(directory, name, writable)
        .map_err(|error| failed(&directory.path().join(name), role, error))
}

/// Finds the directory of that name in the store's directory.
///
/// # Errors
/// `FileMissing`, `NotAFile`, `Io`.
pub(crate) fn find_directory(store: &Path, name: &str, role: Role) -> Result<Directory> {
    Directory::find(store, name).map_err(|error| failed(&store.join(name), role, error))
}

fn failed(path: &Path, role: Role, error: io::Error) -> Error {
    let Role { structure, cure } = role;
    if let Some(refusal) = NotRegular::of(&error) {
        return Error::NotAFile {
            file: refusal.path.clone(),
            found: refusal.found,
            expected: refusal.expected,
            structure,
            cure: cure.into(),
        };
    }
    match error.kind() {
        io::ErrorKind::NotFound => Error::FileMissing {
            file: path.to_owned(),
            structure,
            cure: cure.into(),
        },
        io::ErrorKind::PermissionDenied => {
            let cure = "let this user read it, and write it to open the store (`chmod`, `chown`), or be its owner";
            let told = io::Error::new(error.kind(), format!("{error}; {cure}"));
            Error::io("opening it", path, told)
        }
        _ => Error::io("opening it", path, error),
    }
}

/// Reads a small file whose beginning tells how long it is.
///
/// `length_of` gets the first `head_max` bytes at most and the file's length; it tells how many bytes to read, and is
/// where a length that the file does not have is refused.
pub(crate) fn whole(
    file: &MediaFile,
    head_max: u64,
    length_of: impl FnOnce(&[u8], u64) -> Result<u64>,
) -> Result<Vec<u8>> {
    let length = length(file)?;
    let head = bytes(file, 0, length.min(head_max))?;
    let wanted = length_of(&head, length)?.min(length);
    match wanted <= head.len() as u64 {
        true => Ok(head),
        false => bytes(file, 0, wanted),
    }
}

/// How long a file is.
pub(crate) fn length(file: &MediaFile) -> Result<u64> {
    file.len()
        .map_err(|error| Error::io("finding its length", file.path(), error))
}

/// Reads `length` bytes from `offset` on.
pub(crate) fn bytes(file: &MediaFile, offset: u64, length: u64) -> Result<Vec<u8>> {
    let mut bytes = room(file.path(), length)?;
    exact(file, offset, &mut bytes, "reading it")?;
    Ok(bytes)
}

/// Fills `buffer` with what is at `offset`. An error says that this happened while `operation`.
pub(crate) fn exact(
    file: &MediaFile,
    offset: u64,
    buffer: &mut [u8],
    operation: &'static str,
) -> Result<()> {
    file.read_exact_at(buffer, offset)
        .map_err(|error| Error::io_at(operation, file, offset, error))
}

/// Zeros to read a part of a file into; an error where there is no memory for them.
pub(crate) fn room(path: &Path, length: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    lengthen(&mut bytes, path, length)?;
    Ok(bytes)
}

/// Adds so many zeros to what was read of a file; an error where there is no memory for them.
pub(crate) fn lengthen(bytes: &mut Vec<u8>, path: &Path, more: u64) -> Result<()> {
    let more = usize::try_from(more).unwrap_or(usize::MAX);
    reserve(bytes, path, more)?;
    bytes.resize(bytes.len().saturating_add(more), 0);
    Ok(())
}

/// Adds a part to what was read of a file; an error where there is no memory for it.
pub(crate) fn append(bytes: &mut Vec<u8>, path: &Path, part: &[u8]) -> Result<()> {
    reserve(bytes, path, part.len())?;
    bytes.extend_from_slice(part);
    Ok(())
}

fn reserve(bytes: &mut Vec<u8>, path: &Path, more: usize) -> Result<()> {
    if bytes.try_reserve(more).is_ok() {
        return Ok(());
    }
    let error = io::Error::new(
        io::ErrorKind::OutOfMemory,
        format!("there is no memory for {more} bytes of it; raise the limit, or free some"),
    );
    Err(Error::io("reading it", path, error))
}

/// A heap in a file, read as it is asked for.
pub(crate) struct HeapInFile<'a> {
    pub(crate) file: &'a MediaFile,
    /// Where in the file its puddle, or the copy of it, begins.
    pub(crate) start: u64,
}

impl HeapBytes for HeapInFile<'_> {
    type Error = Error;

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        exact(self.file, self.start + offset, buffer, "reading a puddle")
    }
}
