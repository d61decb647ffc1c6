//! Files that the service has opened.

use std::os::fd::OwnedFd;
use std::path::PathBuf;

use durum_persist::file::MediaFile;
use durum_service::{Error, Result};

pub(crate) fn received(descriptor: OwnedFd, path: PathBuf) -> Result<MediaFile> {
    MediaFile::received(descriptor, &path).map_err(|source| Error::Io {
        operation: "taking the file of a puddle",
        path,
        offset: None,
        source,
    })
}
