//! Which file it is.

use std::fs;
use std::os::unix::fs::MetadataExt;

use rustix::fs::Stat;

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

    pub(crate) fn of_open(stat: &Stat) -> FileKey {
        FileKey {
            device: stat.st_dev,
            inode: stat.st_ino,
        }
    }
}
