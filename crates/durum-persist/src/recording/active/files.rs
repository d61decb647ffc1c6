//! Recording of file operations.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::Active;
use crate::Site;
use crate::key::FileKey;
use crate::recording::trace::relative;
use crate::recording::watcher::{Name, Watcher, WatchesFiles};
use crate::recording::{BaseNode, Content, EventKind, FileId};

impl WatchesFiles for Active {
    fn created(&mut self, path: &Path, key: FileKey) {
        let Some(path) = self.relative(path) else {
            // An inode number of a file of ours that is gone may come back elsewhere.
            self.files.remove(&key);
            return;
        };
        let file = self.add_file(key, Content::default(), 0);
        self.names.insert(path.clone(), BaseNode::File(file));
        self.push(EventKind::Created { path, file });
    }

    fn written(&mut self, file: FileKey, bytes: &[u8], offset: u64) {
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

    fn partly_written(&mut self, key: FileKey, file: &File, len: usize, offset: u64) {
        let found = file.metadata().map_or(0, |metadata| metadata.len());
        let end = found.min(offset + len as u64);
        let mut bytes = vec![0; end.saturating_sub(offset) as usize];
        if file.read_exact_at(&mut bytes, offset).is_ok() {
            self.written(key, &bytes, offset);
        }
    }

    fn resized(&mut self, file: FileKey, len: u64) {
        if let Some(file) = self.known(file) {
            if len < self.lens[file.index()] {
                self.current[file.index()].cut(len);
            }
            self.lens[file.index()] = len;
            self.push(EventKind::Resized { file, len });
        }
    }

    fn allocated(&mut self, file: FileKey, len: u64, site: Site) {
        if let Some(file) = self.known(file) {
            *self.trace.sites.entry(site).or_default() += 1;
            let old_len = &mut self.lens[file.index()];
            *old_len = (*old_len).max(len);
            self.push(EventKind::Allocated { file, len, site });
        }
    }

    fn synced(&mut self, file: FileKey, succeeded: bool, site: Site) {
        if let Some(id) = self.known(file) {
            self.look_for_stores_to(file);
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

    fn dir_synced(&mut self, path: &Path, site: Site) {
        if let Some(path) = self.relative(path) {
            self.join();
            if self.admits(site) {
                self.push(EventKind::DirSynced { path, site });
            }
        }
    }

    fn named(&mut self, name: Name<'_>, site: Site) {
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
                let Some((from, to)) = self.both("rename", from, to) else {
                    return;
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
            Name::Linked { from, to } => {
                let Some((from, to)) = self.both("link", from, to) else {
                    return;
                };
                if let Some(node) = self.names.get(&from).copied() {
                    self.names.insert(to.clone(), node);
                }
                self.push(EventKind::Linked { from, to, site });
            }
        }
        *self.trace.sites.entry(site).or_default() += 1;
    }
}

impl Active {
    /// Both paths of a change, where they are recorded.
    fn both(&mut self, what: &str, from: &Path, to: &Path) -> Option<(PathBuf, PathBuf)> {
        match (self.relative(from), self.relative(to)) {
            (Some(from), Some(to)) => Some((from, to)),
            (None, None) => None,
            (Some(_), None) | (None, Some(_)) => {
                let message = format!(
                    "a {what} crosses the recorded directory: {} to {}",
                    from.display(),
                    to.display()
                );
                self.trace.bypassed.push(message);
                None
            }
        }
    }

    fn known(&self, file: FileKey) -> Option<FileId> {
        self.files.get(&file).copied()
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
