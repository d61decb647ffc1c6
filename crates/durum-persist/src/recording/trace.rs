//! What was recorded.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::Content;
use crate::Site;

/// A recorded run: what the directory held at the start, and all that happened to it.
#[derive(Clone, Default)]
pub struct Trace {
    pub(crate) base: Base,
    pub(crate) events: Vec<Event>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) notes: Vec<Note>,
    pub(crate) sites: BTreeMap<Site, u64>,
    pub(crate) bypassed: Vec<String>,
}

impl Trace {
    /// All events, in the order in which they happened. Each one is a crash point.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// The sites that were seen, with the number of operations of each; those left out by
    /// [`skip`](super::RecorderOptions::skip), too.
    pub fn sites(&self) -> &BTreeMap<Site, u64> {
        &self.sites
    }

    /// The marks made by [`note`](crate::record::note).
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// The path that a file had when it was first seen, below the recorded directory.
    pub fn path_of(&self, file: FileId) -> Option<&Path> {
        let base = self
            .base
            .entries
            .iter()
            .filter_map(|(path, node)| match node {
                BaseNode::File(found) => Some((path, *found)),
                BaseNode::Dir => None,
            });
        let created = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::Created { path, file } => Some((path, *file)),
            _ => None,
        });
        let (path, _) = base.chain(created).find(|(_, found)| *found == file)?;
        Some(path)
    }

    /// Changes of the directory that the trace does not explain: writes that went past this crate. The
    /// simulator refuses such a trace, since its images would be wrong.
    pub fn bypassed(&self) -> &[String] {
        &self.bypassed
    }

    /// Calls `consume` with the written bytes and their offset within the data, in parts.
    pub(crate) fn each_part(&self, data: Data, mut consume: impl FnMut(usize, &[u8])) {
        const ZEROS: [u8; 4096] = [0; 4096];
        match data.at {
            Some(at) => consume(0, &self.bytes[at..at + data.len]),
            None => {
                for done in (0..data.len).step_by(ZEROS.len()) {
                    consume(done, &ZEROS[..ZEROS.len().min(data.len - done)]);
                }
            }
        }
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("events", &self.events.len())
            .field("notes", &self.notes.len())
            .field("sites", &self.sites)
            .field("bypassed", &self.bypassed)
            .finish_non_exhaustive()
    }
}

/// One operation of one thread.
#[derive(Clone, Debug)]
pub struct Event {
    /// Number of the thread in this recording, in the order in which threads joined.
    pub thread: u32,
    /// What it did.
    pub kind: EventKind,
}

impl Event {
    /// What the operation was there for, if it is of a kind that names a site.
    pub fn site(&self) -> Option<Site> {
        match self.kind {
            EventKind::Streamed { site, .. }
            | EventKind::WriteBack { site, .. }
            | EventKind::Fence { site }
            | EventKind::Allocated { site, .. }
            | EventKind::Synced { site, .. }
            | EventKind::DirCreated { site, .. }
            | EventKind::Renamed { site, .. }
            | EventKind::Linked { site, .. }
            | EventKind::Removed { site, .. }
            | EventKind::DirSynced { site, .. } => Some(site),
            _ => None,
        }
    }
}

/// What an event did. Paths are relative to the recorded root; offsets and lengths are in bytes.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum EventKind {
    /// A mark of [`api`](crate::record::api).
    Api(&'static str),
    /// A mark of [`note`](crate::record::note).
    Note {
        /// The fact's name.
        name: &'static str,
        /// The fact's value.
        value: u64,
    },
    /// A store to mapped memory.
    Stored {
        /// The mapped file.
        file: FileId,
        /// Offset in the file.
        offset: u64,
        /// What was stored.
        data: Data,
        /// Whether it was a store of the program's own, found by comparison: its true moment is between the
        /// comparison before and this event.
        found: bool,
    },
    /// A store past the cache: as if stored and written back.
    Streamed {
        /// The mapped file.
        file: FileId,
        /// Offset in the file.
        offset: u64,
        /// What was stored.
        data: Data,
        /// Where in the program.
        site: Site,
    },
    /// A write-back of whole lines.
    WriteBack {
        /// The mapped file.
        file: FileId,
        /// Offset of the first line.
        offset: u64,
        /// Number of lines.
        lines: u64,
        /// What for.
        site: Site,
    },
    /// A fence.
    Fence {
        /// What for.
        site: Site,
    },
    /// A file write.
    Written {
        /// The file.
        file: FileId,
        /// Offset in the file.
        offset: u64,
        /// What was written.
        data: Data,
    },
    /// A change of a file's length.
    Resized {
        /// The file.
        file: FileId,
        /// The new length.
        len: u64,
    },
    /// A reservation of space, which may have lengthened the file.
    Allocated {
        /// The file.
        file: FileId,
        /// The length asked for.
        len: u64,
        /// What for.
        site: Site,
    },
    /// A sync of a file.
    Synced {
        /// The file.
        file: FileId,
        /// Whether it succeeded.
        succeeded: bool,
        /// What for.
        site: Site,
    },
    /// A file was created.
    Created {
        /// Its path.
        path: PathBuf,
        /// The new file.
        file: FileId,
    },
    /// A directory was created.
    DirCreated {
        /// Its path.
        path: PathBuf,
        /// What for.
        site: Site,
    },
    /// A file or directory was renamed.
    Renamed {
        /// The old path.
        from: PathBuf,
        /// The new path.
        to: PathBuf,
        /// What for.
        site: Site,
    },
    /// A file got a further name.
    Linked {
        /// A path that it had.
        from: PathBuf,
        /// The further one.
        to: PathBuf,
        /// What for.
        site: Site,
    },
    /// A file or directory was removed.
    Removed {
        /// Its path.
        path: PathBuf,
        /// What for.
        site: Site,
    },
    /// A sync of a directory.
    DirSynced {
        /// Its path.
        path: PathBuf,
        /// What for.
        site: Site,
    },
}

/// A file of a trace, whatever its names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileId(pub(crate) u32);

impl FileId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The bytes of an event, kept in the trace.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Data {
    /// Position in the trace's bytes; `None` stands for zeros.
    pub(crate) at: Option<usize>,
    pub(crate) len: usize,
}

impl Data {
    pub(crate) fn zeros(len: usize) -> Data {
        Data { at: None, len }
    }

    /// Number of bytes.
    #[allow(clippy::len_without_is_empty)] // No event has empty data.
    pub fn len(self) -> usize {
        self.len
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(_) => write!(f, "{} bytes", self.len),
            None => write!(f, "{} zero bytes", self.len),
        }
    }
}

/// A mark of [`note`](crate::record::note).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Note {
    /// Index of its event.
    pub event: usize,
    /// Number of the thread.
    pub thread: u32,
    /// The fact's name.
    pub name: &'static str,
    /// The fact's value.
    pub value: u64,
}

/// A directory tree at one moment.
#[derive(Clone, Default)]
pub(crate) struct Base {
    /// Parents come before what they hold.
    pub(crate) entries: Vec<(PathBuf, BaseNode)>,
    /// By `FileId`.
    pub(crate) contents: Vec<Content>,
    /// By `FileId`: length in bytes.
    pub(crate) lens: Vec<u64>,
    /// By `FileId`: permission bits.
    pub(crate) modes: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BaseNode {
    Dir,
    File(FileId),
}

/// The path below the root, or `None` for one that is elsewhere.
pub(crate) fn relative(path: &Path, roots: &[PathBuf]) -> Option<PathBuf> {
    roots
        .iter()
        .find_map(|root| path.strip_prefix(root).ok())
        .map(Path::to_owned)
}
