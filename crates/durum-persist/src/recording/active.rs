//! The state of an attached recorder.

mod files;
mod memory;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::region::Regions;
use super::watcher::{Watcher, WatchesMemory};
use super::{
    BaseNode, Content, Data, Event, EventKind, FileId, Note, PAGE, RecorderOptions, Trace,
};
use crate::Site;
use crate::key::FileKey;

pub(crate) struct Active {
    /// The root as it was given and as the system resolves it.
    roots: [PathBuf; 2],
    options: RecorderOptions,
    /// Tells this recording from others in the threads' memories of having joined.
    generation: u64,
    threads: u32,
    files: HashMap<FileKey, FileId>,
    /// What the trace says that the files hold and how long they are, by `FileId`.
    current: Vec<Content>,
    lens: Vec<u64>,
    /// What the trace says that the directory holds.
    names: BTreeMap<PathBuf, BaseNode>,
    regions: Regions,
    /// An operation was left out, so that trace and directory may differ.
    skipped: bool,
    trace: Trace,
}

thread_local! {
    /// The recording that this thread takes part in, and its number there.
    static JOINED: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
}

impl Watcher for Active {
    fn finish(mut self: Box<Self>) -> io::Result<Trace> {
        self.look_for_stores_everywhere();
        if self.skipped {
            return Ok(self.trace);
        }
        let mut seen = BTreeSet::new();
        for (path, metadata) in walk(&self.roots[1], &self.options.ignore)? {
            let node = match metadata.is_dir() {
                true => Some(BaseNode::Dir),
                false => {
                    let file = self.files.get(&FileKey::of(&metadata));
                    file.copied().map(BaseNode::File)
                }
            };
            let expected = self.names.get(&path).copied();
            if node.is_none() || expected != node {
                self.bypassed(&path, "is not what the trace knows by that name");
            } else if let Some(BaseNode::File(id)) = node {
                self.compare_file(&path, &metadata, id)?;
            }
            seen.insert(path);
        }
        let lost: Vec<PathBuf> = self
            .names
            .keys()
            .filter(|path| !seen.contains(*path))
            .cloned()
            .collect();
        for path in lost {
            self.bypassed(&path, "has disappeared");
        }
        Ok(self.trace)
    }

    fn join(&mut self) -> u32 {
        let (generation, number) = JOINED.get();
        if generation == self.generation {
            return number;
        }
        let number = self.threads;
        self.threads += 1;
        JOINED.set((self.generation, number));
        number
    }

    fn leaves_out(&mut self, step: Site) -> bool {
        !self.admits(step)
    }

    fn mark_api(&mut self, name: &'static str) {
        if self.takes_part() {
            self.look_for_stores_everywhere();
            self.push(EventKind::Api(name));
        }
    }

    fn mark_note(&mut self, name: &'static str, value: u64) {
        if self.takes_part() {
            let thread = self.join();
            self.trace.notes.push(Note {
                event: self.trace.events.len(),
                thread,
                name,
                value,
            });
            self.push(EventKind::Note { name, value });
        }
    }
}

impl Active {
    pub(super) fn new(
        root: &Path,
        options: RecorderOptions,
        regions: &Regions,
    ) -> io::Result<Active> {
        static GENERATION: AtomicU64 = AtomicU64::new(1);
        let mut active = Active {
            roots: [std::path::absolute(root)?, fs::canonicalize(root)?],
            options,
            generation: GENERATION.fetch_add(1, Relaxed),
            threads: 0,
            files: HashMap::new(),
            current: Vec::new(),
            lens: Vec::new(),
            names: BTreeMap::new(),
            regions: Regions::new(),
            skipped: false,
            trace: Trace::default(),
        };
        active.join();
        for (path, metadata) in walk(&active.roots[1], &active.options.ignore)? {
            let node = if metadata.is_dir() {
                BaseNode::Dir
            } else {
                let file = File::open(active.roots[1].join(&path))?;
                let content = Content::read(&file, metadata.len())?;
                let id = active.add_file(FileKey::of(&metadata), content, metadata.len());
                let mode = metadata.permissions().mode() & 0o777;
                active.trace.base.modes.push(mode);
                BaseNode::File(id)
            };
            active.names.insert(path.clone(), node);
            active.trace.base.entries.push((path, node));
        }
        active.trace.base.contents = active.current.clone();
        active.trace.base.lens = active.lens.clone();
        for region in regions.iter() {
            active.mapped(*region);
        }
        Ok(active)
    }

    /// Notes a change that the trace does not explain.
    fn bypassed(&mut self, path: &Path, what: &str) {
        let message = format!("{} {what}", path.display());
        self.trace.bypassed.push(message);
    }

    fn compare_file(&mut self, path: &Path, metadata: &fs::Metadata, id: FileId) -> io::Result<()> {
        let expected_len = self.lens[id.index()];
        if metadata.len() != expected_len {
            let what = format!("is {} bytes long, not {expected_len}", metadata.len());
            self.bypassed(path, &what);
            return Ok(());
        }
        let content = Content::read(&File::open(self.roots[1].join(path))?, metadata.len())?;
        let current = &self.current[id.index()];
        let pages = content.page_count().max(current.page_count());
        if let Some(page) = (0..pages).find(|page| content.page(*page) != current.page(*page)) {
            let mut bytes = content.page(page).iter().zip(current.page(page));
            let within = bytes.position(|(found, expected)| found != expected);
            let offset = page * PAGE + within.unwrap_or(0);
            self.bypassed(path, &format!("differs at offset {offset}"));
        }
        Ok(())
    }

    // Threads and marks.

    fn takes_part(&self) -> bool {
        JOINED.get().0 == self.generation
    }

    fn push(&mut self, kind: EventKind) {
        let thread = self.join();
        self.trace.events.push(Event { thread, kind });
    }

    /// Counts an operation of this site; false if the trace shall not have it.
    fn admits(&mut self, site: Site) -> bool {
        *self.trace.sites.entry(site).or_default() += 1;
        let skip = self.options.skip == Some(site);
        self.skipped |= skip;
        !skip
    }

    fn add_file(&mut self, key: FileKey, content: Content, len: u64) -> FileId {
        let id = FileId(self.current.len() as u32);
        self.current.push(content);
        self.lens.push(len);
        // An inode number may be used again after a file is gone: the new file replaces it here.
        self.files.insert(key, id);
        id
    }

    fn keep(&mut self, bytes: &[u8]) -> Data {
        let at = self.trace.bytes.len();
        self.trace.bytes.extend_from_slice(bytes);
        Data {
            at: Some(at),
            len: bytes.len(),
        }
    }
}

/// Files and directories below `root` with their paths relative to it; parents first. Anything else (sockets, links) is
/// passed over.
fn walk(root: &Path, ignore: &[PathBuf]) -> io::Result<Vec<(PathBuf, fs::Metadata)>> {
    let mut found = Vec::new();
    let mut pending = vec![PathBuf::new()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(root.join(&dir))? {
            let entry = entry?;
            let path = dir.join(entry.file_name());
            let metadata = entry.metadata()?;
            if ignore.iter().any(|ignored| path.starts_with(ignored))
                || !(metadata.is_dir() || metadata.is_file())
            {
                continue;
            }
            if metadata.is_dir() {
                pending.push(path.clone());
            }
            found.push((path, metadata));
        }
    }
    // A parent sorts before what it holds, and the order does not depend on the file system.
    found.sort_by(|(first, _), (second, _)| first.cmp(second));
    Ok(found)
}
