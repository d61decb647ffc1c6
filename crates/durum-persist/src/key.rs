//! Which file it is.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// Which file it is, whatever its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct FileKey {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl FileKey {
    pub(crate) fn of(metadata: &fs::Metadata) -> FileKey {
        FileKey {
            device: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}
