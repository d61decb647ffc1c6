//! The state of an attached recorder.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::region::Region;
use super::trace::relative;
use super::{
    BaseNode, Content, Data, Event, EventKind, FileId, Note, PAGE, RecorderOptions, Trace,
};
use crate::Site;
use crate::file::{FileKey, MediaFile};
use crate::line::LINE;

/// A change of names, with the paths as the program gave them.
pub(crate) enum Name<'a> {
    DirCreated { path: &'a Path },
    Renamed { from: &'a Path, to: &'a Path },
    Removed { path: &'a Path },
}

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
    regions: BTreeMap<usize, (Region, FileId)>,
    /// An operation was left out, so that trace and directory may differ.
    skipped: bool,
    trace: Trace,
}

thread_local! {
    /// The recording that this thread takes part in, and its number there.
    static JOINED: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
}

impl Active {
    pub(super) fn new(
        root: &Path,
        options: RecorderOptions,
        regions: &[Region],
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
            regions: BTreeMap::new(),
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
                active
                    .trace
                    .base
                    .modes
                    .push(metadata.permissions().mode() & 0o777);
                BaseNode::File(id)
            };
            active.names.insert(path.clone(), node);
            active.trace.base.entries.push((path, node));
        }
        active.trace.base.contents = active.current.clone();
        active.trace.base.lens = active.lens.clone();
        for region in regions {
            active.mapped(region);
        }
        Ok(active)
    }

    /// Ends the recording and looks for changes that the trace does not explain.
    pub(super) fn finish(mut self) -> io::Result<Trace> {
        self.look_for_stores_everywhere();
        if self.skipped {
            return Ok(self.trace);
        }
        let mut seen = BTreeMap::new();
        for (path, metadata) in walk(&self.roots[1], &self.options.ignore)? {
            let node = if metadata.is_dir() {
                Some(BaseNode::Dir)
            } else {
                self.files
                    .get(&FileKey::of(&metadata))
                    .copied()
                    .map(BaseNode::File)
            };
            let expected = self.names.get(&path).copied();
            if node.is_none() || expected != node {
                self.trace.bypassed.push(format!(
                    "{} is not what the trace knows by that name",
                    path.display()
                ));
            } else if let Some(BaseNode::File(id)) = node {
                self.compare_file(&path, &metadata, id)?;
            }
            seen.insert(path, ());
        }
        for path in self.names.keys().filter(|path| !seen.contains_key(*path)) {
            self.trace
                .bypassed
                .push(format!("{} has disappeared", path.display()));
        }
        Ok(self.trace)
    }

    fn compare_file(&mut self, path: &Path, metadata: &fs::Metadata, id: FileId) -> io::Result<()> {
        let expected_len = self.lens[id.index()];
        if metadata.len() != expected_len {
            let message = format!(
                "{} is {} bytes long, not {expected_len}",
                path.display(),
                metadata.len()
            );
            self.trace.bypassed.push(message);
            return Ok(());
        }
        let content = Content::read(&File::open(self.roots[1].join(path))?, metadata.len())?;
        let current = &self.current[id.index()];
        let pages = content.page_count().max(current.page_count());
        if let Some(page) = (0..pages).find(|page| content.page(*page) != current.page(*page)) {
            let differs = |(found, expected): (&u8, &u8)| found != expected;
            let within = content
                .page(page)
                .iter()
                .zip(current.page(page))
                .position(differs)
                .unwrap_or(0);
            let offset = page * PAGE + within;
            self.trace
                .bypassed
                .push(format!("{} differs at offset {offset}", path.display()));
        }
        Ok(())
    }

    // Threads and marks.

    /// Makes the calling thread take part; gives its number.
    pub(super) fn join(&mut self) -> u32 {
        let (generation, number) = JOINED.get();
        if generation == self.generation {
            return number;
        }
        let number = self.threads;
        self.threads += 1;
        JOINED.set((self.generation, number));
        number
    }

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

    pub(super) fn mark_api(&mut self, name: &'static str) {
        if self.takes_part() {
            self.look_for_stores_everywhere();
            self.push(EventKind::Api(name));
        }
    }

    pub(super) fn mark_note(&mut self, name: &'static str, value: u64) {
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

    // Mapped memory.

    pub(super) fn mapped(&mut self, region: &Region) {
        self.forget_regions(region.addr, region.end());
        if let Some(id) = self.files.get(&region.file.key()) {
            self.regions.insert(region.addr, (region.clone(), *id));
        }
    }

    pub(super) fn unmapped(&mut self, addr: usize, len: usize) {
        self.look_for_stores(addr, len);
        self.forget_regions(addr, addr + len);
    }

    fn forget_regions(&mut self, addr: usize, end: usize) {
        for (region, id) in self.regions_in(addr, end) {
            self.regions.remove(&region.addr);
            for rest in region.without(addr, end) {
                self.regions.insert(rest.addr, (rest, id));
            }
        }
    }

    fn regions_in(&self, addr: usize, end: usize) -> Vec<(Region, FileId)> {
        let before = self.regions.range(..addr).next_back();
        let candidates = before
            .into_iter()
            .chain(self.regions.range(addr..end.max(addr)));
        candidates
            .filter(|(_, (region, _))| region.overlap(addr, end).is_some())
            .map(|(_, found)| found.clone())
            .collect()
    }

    /// Calls `emit` with file, offset and the covered part of `addr..addr + len` for each region that it meets.
    fn in_regions(
        &mut self,
        addr: usize,
        len: usize,
        mut emit: impl FnMut(&mut Active, FileId, u64, std::ops::Range<usize>),
    ) {
        if len == 0 {
            return;
        }
        for (region, id) in self.regions_in(addr, addr + len) {
            if let Some((start, end)) = region.overlap(addr, addr + len) {
                emit(self, id, region.offset_of(start), start - addr..end - addr);
            }
        }
    }

    /// Records the program's own stores to the lines that the range touches, in watched regions.
    pub(super) fn look_for_stores(&mut self, addr: usize, len: usize) {
        if len == 0 {
            return;
        }
        let (start, end) = (addr / LINE * LINE, (addr + len).next_multiple_of(LINE));
        for (region, id) in self.regions_in(start, end) {
            if region.watch
                && let Some((start, end)) = region.overlap(start, end)
            {
                self.compare(&region, id, start, end);
            }
        }
    }

    fn look_for_stores_everywhere(&mut self) {
        let watched: Vec<_> = self
            .regions
            .values()
            .filter(|(region, _)| region.watch)
            .cloned()
            .collect();
        for (region, id) in watched {
            region.touched_pages(|start, end| self.compare(&region, id, start, end));
        }
    }

    /// Records each run of words that differ from what the trace says.
    fn compare(&mut self, region: &Region, id: FileId, start: usize, end: usize) {
        let mut runs: Vec<(u64, Vec<u8>)> = Vec::new();
        let current = &self.current[id.index()];
        let mut addr = start;
        while addr < end {
            let offset = region.offset_of(addr);
            let within = offset as usize % PAGE;
            let part = (PAGE - within).min(end - addr);
            let known = &current.page((offset / PAGE as u64) as usize)[within..within + part];
            for (index, known) in known.chunks_exact(8).enumerate() {
                // SAFETY: watched regions are mapped and readable, and may be read atomically, by the contract of
                // `mapped`; the address is a multiple of 8 since regions begin on pages and lines.
                let word = unsafe { line_word(addr + index * 8) }.to_ne_bytes();
                if word == known {
                    continue;
                }
                let offset = offset + index as u64 * 8;
                match runs.last_mut() {
                    Some((start, run)) if *start + run.len() as u64 == offset => run.extend(word),
                    _ => runs.push((offset, word.to_vec())),
                }
            }
            addr += part;
        }
        for (offset, run) in runs {
            let data = self.keep(&run);
            self.current[id.index()].write(offset, &run);
            let file = id;
            self.push(EventKind::Stored {
                file,
                offset,
                data,
                found: true,
            });
        }
    }

    pub(super) fn stored(&mut self, addr: usize, bytes: &[u8]) {
        self.in_regions(addr, bytes.len(), |active, file, offset, part| {
            let data = active.keep(&bytes[part.clone()]);
            active.current[file.index()].write(offset, &bytes[part]);
            active.push(EventKind::Stored {
                file,
                offset,
                data,
                found: false,
            });
        });
    }

    pub(super) fn zeroed(&mut self, addr: usize, len: usize) {
        self.in_regions(addr, len, |active, file, offset, part| {
            active.current[file.index()].zero(offset, part.len());
            let data = Data {
                at: None,
                len: part.len(),
            };
            active.push(EventKind::Stored {
                file,
                offset,
                data,
                found: false,
            });
        });
    }

    pub(super) fn streamed(&mut self, addr: usize, bytes: &[u8]) {
        self.in_regions(addr, bytes.len(), |active, file, offset, part| {
            let data = active.keep(&bytes[part.clone()]);
            active.current[file.index()].write(offset, &bytes[part]);
            active.push(EventKind::Streamed { file, offset, data });
        });
    }

    pub(super) fn written_back(&mut self, addr: usize, len: usize, site: Site) {
        self.in_regions(addr, len, |active, file, offset, part| {
            active.join();
            if active.admits(site) {
                let first = offset / LINE as u64 * LINE as u64;
                let lines =
                    (offset + part.len() as u64).div_ceil(LINE as u64) - first / LINE as u64;
                active.push(EventKind::WriteBack {
                    file,
                    offset: first,
                    lines,
                    site,
                });
            }
        });
    }

    pub(super) fn fenced(&mut self, site: Site) {
        if self.takes_part() && self.admits(site) {
            self.push(EventKind::Fence { site });
        }
    }

    // Files.

    pub(crate) fn created(&mut self, path: &Path, key: FileKey) {
        let Some(path) = self.relative(path) else {
            return;
        };
        let file = self.add_file(key, Content::default(), 0);
        self.names.insert(path.clone(), BaseNode::File(file));
        self.push(EventKind::Created { path, file });
    }

    pub(crate) fn written(&mut self, file: &MediaFile, bytes: &[u8], offset: u64) {
        if let Some(file) = self.known(file)
            && !bytes.is_empty()
        {
            let data = self.keep(bytes);
            self.current[file.index()].write(offset, bytes);
            let len = &mut self.lens[file.index()];
            *len = (*len).max(offset + bytes.len() as u64);
            self.push(EventKind::Written { file, offset, data });
        }
    }

    /// After a failed write: records what is in the file now.
    pub(crate) fn partly_written(&mut self, file: &MediaFile, len: usize, offset: u64) {
        let end = file.len().unwrap_or(0).min(offset + len as u64);
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        if file.read_exact_at(&mut bytes, offset).is_ok() {
            self.written(file, &bytes, offset);
        }
    }

    pub(crate) fn resized(&mut self, file: &MediaFile, len: u64) {
        if let Some(file) = self.known(file) {
            if len < self.lens[file.index()] {
                self.current[file.index()].cut(len);
            }
            self.lens[file.index()] = len;
            self.push(EventKind::Resized { file, len });
        }
    }

    pub(crate) fn allocated(&mut self, file: &MediaFile, len: u64, site: Site) {
        if let Some(file) = self.known(file) {
            *self.trace.sites.entry(site).or_default() += 1;
            let old_len = &mut self.lens[file.index()];
            *old_len = (*old_len).max(len);
            self.push(EventKind::Allocated { file, len, site });
        }
    }

    pub(crate) fn synced(&mut self, file: &MediaFile, succeeded: bool, site: Site) {
        if let Some(id) = self.known(file) {
            let regions: Vec<_> = self
                .regions
                .values()
                .filter(|(region, of)| *of == id && region.watch)
                .cloned()
                .collect();
            for (region, id) in regions {
                region.touched_pages(|start, end| self.compare(&region, id, start, end));
            }
            self.join();
            if self.admits(site) {
                self.push(EventKind::Synced {
                    file: id,
                    succeeded,
                    site,
                });
            }
        }
    }

    pub(crate) fn dir_synced(&mut self, path: &Path, site: Site) {
        if let Some(path) = self.relative(path) {
            self.join();
            if self.admits(site) {
                self.push(EventKind::DirSynced { path, site });
            }
        }
    }

    pub(crate) fn named(&mut self, name: Name<'_>, site: Site) {
        match name {
            Name::DirCreated { path } => {
                let Some(path) = self.relative(path) else {
                    return;
                };
                self.names.insert(path.clone(), BaseNode::Dir);
                self.push(EventKind::DirCreated { path, site });
            }
            Name::Removed { path } => {
                let Some(path) = self.relative(path) else {
                    return;
                };
                self.names.remove(&path);
                self.push(EventKind::Removed { path, site });
            }
            Name::Renamed { from, to } => {
                let (from, to) = match (self.relative(from), self.relative(to)) {
                    (Some(from), Some(to)) => (from, to),
                    (None, None) => return,
                    (Some(_), None) | (None, Some(_)) => {
                        let message = format!(
                            "a rename crosses the recorded directory: {} to {}",
                            from.display(),
                            to.display()
                        );
                        self.trace.bypassed.push(message);
                        return;
                    }
                };
                let moved: Vec<_> = self
                    .names
                    .keys()
                    .filter(|path| path.starts_with(&from))
                    .cloned()
                    .collect();
                for path in moved {
                    if let (Some(node), Ok(below)) =
                        (self.names.remove(&path), path.strip_prefix(&from))
                    {
                        let path = if below.as_os_str().is_empty() {
                            to.clone()
                        } else {
                            to.join(below)
                        };
                        self.names.insert(path, node);
                    }
                }
                self.push(EventKind::Renamed { from, to, site });
            }
        }
        *self.trace.sites.entry(site).or_default() += 1;
    }

    fn add_file(&mut self, key: FileKey, content: Content, len: u64) -> FileId {
        let id = FileId(self.current.len() as u32);
        self.current.push(content);
        self.lens.push(len);
        // An inode number may be used again after a file is gone: the new file replaces it here.
        self.files.insert(key, id);
        id
    }

    fn known(&self, file: &MediaFile) -> Option<FileId> {
        self.files.get(&file.key()).copied()
    }

    fn keep(&mut self, bytes: &[u8]) -> Data {
        let at = self.trace.bytes.len();
        self.trace.bytes.extend_from_slice(bytes);
        Data {
            at: Some(at),
            len: bytes.len(),
        }
    }

    fn relative(&self, path: &Path) -> Option<PathBuf> {
        let absolute = std::path::absolute(path).ok()?;
        let found = relative(&absolute, &self.roots).or_else(|| {
            // Reached by another way, for example a symbolic link.
            let resolved = fs::canonicalize(absolute.parent()?)
                .ok()?
                .join(absolute.file_name()?);
            relative(&resolved, &self.roots)
        })?;
        (!self
            .options
            .ignore
            .iter()
            .any(|ignored| found.starts_with(ignored)))
        .then_some(found)
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

/// # Safety
/// `addr` is a mapped, readable word on an 8-byte boundary, and everybody else writes to it by word-sized stores.
unsafe fn line_word(addr: usize) -> u64 {
    let word = std::ptr::with_exposed_provenance_mut::<u64>(addr);
    // SAFETY: by contract.
    unsafe { std::sync::atomic::AtomicU64::from_ptr(word) }.load(Relaxed)
}
