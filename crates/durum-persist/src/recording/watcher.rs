//! Whom operations on media are told while a recorder is attached. Behind traits, as a program that attaches none has
//! nothing that records.

use std::fs::File;
use std::io;
use std::path::Path;

use super::Trace;
use super::region::Region;
use crate::Site;
use crate::key::FileKey;

/// A change of names, with the paths as the program gave them.
pub(crate) enum Name<'a> {
    DirCreated { path: &'a Path },
    Renamed { from: &'a Path, to: &'a Path },
    Linked { from: &'a Path, to: &'a Path },
    Removed { path: &'a Path },
}

/// What the calling thread does goes into a trace.
pub(crate) trait Watcher: WatchesMemory + WatchesFiles + Send {
    /// Ends the recording and looks for changes that the trace does not explain.
    fn finish(self: Box<Self>) -> io::Result<Trace>;

    /// Makes the calling thread take part; gives its number.
    fn join(&mut self) -> u32;

    /// Whether a step of the program is to be forgotten.
    fn leaves_out(&mut self, step: Site) -> bool;

    fn mark_api(&mut self, name: &'static str);

    fn mark_note(&mut self, name: &'static str, value: u64);
}

/// Stores, write-backs and fences.
pub(crate) trait WatchesMemory {
    fn mapped(&mut self, region: Region);

    fn unmapped(&mut self, addr: usize, len: usize);

    /// Records the program's own stores to the lines that the range touches, in watched regions.
    fn look_for_stores(&mut self, addr: usize, len: usize);

    fn stored(&mut self, addr: usize, bytes: &[u8]);

    fn zeroed(&mut self, addr: usize, len: usize);

    /// Whole lines past the cache, and the ragged ends stored and written back. Without its site all of it is stored,
    /// and nothing written back.
    fn streamed(&mut self, addr: usize, bytes: &[u8], site: Site);

    fn written_back(&mut self, addr: usize, len: usize, site: Site);

    fn fenced(&mut self, site: Site);
}

/// Operations on files, which have been done.
pub(crate) trait WatchesFiles {
    fn created(&mut self, path: &Path, key: FileKey);

    fn written(&mut self, file: FileKey, bytes: &[u8], offset: u64);

    /// After a failed write: records what is in the file now.
    fn partly_written(&mut self, key: FileKey, file: &File, len: usize, offset: u64);

    fn resized(&mut self, file: FileKey, len: u64);

    fn allocated(&mut self, file: FileKey, len: u64, site: Site);

    fn synced(&mut self, file: FileKey, succeeded: bool, site: Site);

    fn dir_synced(&mut self, path: &Path, site: Site);

    fn named(&mut self, name: Name<'_>, site: Site);
}
