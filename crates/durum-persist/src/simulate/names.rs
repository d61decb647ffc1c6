//! Names in directories, and which of their changes are durable.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::recording::{Base, BaseNode, FileId};

/// What a name stands for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Node {
    File(FileId),
    Dir(usize),
}

/// A name in a directory.
pub(super) type Place = (usize, String);

/// All directories, by number; 0 is the root.
#[derive(Default)]
pub(super) struct Names {
    dirs: Vec<BTreeMap<String, Entry>>,
    /// Renames that are not durable, by number: where from and where to.
    renames: BTreeMap<u64, (Place, Place)>,
    next: u64,
}

#[derive(Default)]
struct Entry {
    durable: Option<Node>,
    newer: Vec<Binding>,
}

struct Binding {
    /// The change that made it; the two sides of a rename have the same number.
    change: u64,
    node: Option<Node>,
}

/// How to make a choice possible that shows only one side of a rename.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Repair {
    /// Show neither side.
    Lower,
    /// Show both.
    Raise,
}

impl Names {
    pub(super) fn new(base: &Base) -> Result<Names, String> {
        let mut names = Names {
            dirs: vec![BTreeMap::new()],
            ..Names::default()
        };
        for (path, node) in &base.entries {
            let node = match node {
                BaseNode::Dir => names.new_dir(),
                BaseNode::File(id) => Node::File(*id),
            };
            let (dir, name) = names.place(path)?;
            names.dirs[dir].insert(
                name,
                Entry {
                    durable: Some(node),
                    newer: Vec::new(),
                },
            );
        }
        Ok(names)
    }

    fn new_dir(&mut self) -> Node {
        self.dirs.push(BTreeMap::new());
        Node::Dir(self.dirs.len() - 1)
    }

    pub(super) fn create(&mut self, path: &Path, file: FileId) -> Result<(), String> {
        self.change(path, Some(Node::File(file)))
    }

    pub(super) fn create_dir(&mut self, path: &Path) -> Result<(), String> {
        let dir = self.new_dir();
        self.change(path, Some(dir))
    }

    pub(super) fn remove(&mut self, path: &Path) -> Result<(), String> {
        self.change(path, None)
    }

    fn change(&mut self, path: &Path, node: Option<Node>) -> Result<(), String> {
        let place = self.place(path)?;
        let change = self.next_change();
        self.bind(&place, change, node);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> Result<(), String> {
        let (from, to) = (self.place(from)?, self.place(to)?);
        let node = self
            .present(&from)
            .ok_or_else(|| format!("nothing to rename at {from:?}"))?;
        if from != to {
            let change = self.next_change();
            self.bind(&from, change, None);
            self.bind(&to, change, Some(node));
            self.renames.insert(change, (from, to));
        }
        Ok(())
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path) -> Result<(), String> {
        let node = self.present(&self.place(from)?);
        let node = node.ok_or_else(|| format!("nothing to link at {}", from.display()))?;
        self.change(to, Some(node))
    }

    fn next_change(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn bind(&mut self, (dir, name): &Place, change: u64, node: Option<Node>) {
        self.dirs[*dir]
            .entry(name.clone())
            .or_default()
            .newer
            .push(Binding { change, node });
    }

    /// Makes the names in a directory durable; `replaced` gets the place, its old and its new node. A rename over two
    /// directories is durable on both sides when either one is synced: file systems journal it as one change.
    pub(super) fn sync(
        &mut self,
        path: &Path,
        mut replaced: impl FnMut(&Place, Option<Node>, Option<Node>),
    ) -> Result<bool, String> {
        let dir = self.directory(path)?;
        let mut pending: Vec<(Place, u64)> = self.dirs[dir]
            .keys()
            .map(|name| ((dir, name.clone()), u64::MAX))
            .collect();
        let mut any = false;
        while let Some((place, last)) = pending.pop() {
            let Some(entry) = self.dirs[place.0].get_mut(&place.1) else {
                continue;
            };
            let count = entry
                .newer
                .iter()
                .take_while(|binding| binding.change <= last)
                .count();
            for binding in entry.newer.drain(..count) {
                any = true;
                replaced(&place, entry.durable, binding.node);
                entry.durable = binding.node;
                if let Some((from, to)) = self.renames.remove(&binding.change) {
                    pending.push((if from == place { to } else { from }, binding.change));
                }
            }
        }
        for entries in &mut self.dirs {
            entries.retain(|_, entry| entry.durable.is_some() || !entry.newer.is_empty());
        }
        Ok(any)
    }

    /// The places with changes that are not durable, and how many each has.
    pub(super) fn pending(&self) -> Vec<(Place, usize)> {
        let mut pending = Vec::new();
        for (dir, entries) in self.dirs.iter().enumerate() {
            let changed = entries.iter().filter(|(_, entry)| !entry.newer.is_empty());
            pending.extend(changed.map(|(name, entry)| ((dir, name.clone()), entry.newer.len())));
        }
        pending
    }

    /// Changes a choice (how many changes of each place in [`pending`](Self::pending) are seen) until each rename
    /// is seen on both sides or on none.
    pub(super) fn repair(&self, picks: &mut BTreeMap<Place, usize>, repair: Repair) {
        loop {
            let mut stable = true;
            for (change, (from, to)) in &self.renames {
                let sides = [
                    (from, self.position(from, *change)),
                    (to, self.position(to, *change)),
                ];
                let seen = sides
                    .map(|(place, position)| picks.get(place).copied().unwrap_or(0) > position);
                if seen[0] == seen[1] {
                    continue;
                }
                stable = false;
                for ((place, position), seen) in sides.into_iter().zip(seen) {
                    match repair {
                        Repair::Lower if seen => picks.insert(place.clone(), position),
                        Repair::Raise if !seen => picks.insert(place.clone(), position + 1),
                        _ => continue,
                    };
                }
            }
            if stable {
                return;
            }
        }
    }

    fn position(&self, (dir, name): &Place, change: u64) -> usize {
        let newer = self.dirs[*dir]
            .get(name)
            .map_or(&[][..], |entry| &entry.newer);
        newer
            .iter()
            .position(|binding| binding.change == change)
            .unwrap_or(newer.len())
    }

    /// What a place shows with `picked` of its changes, and what it shows with none.
    pub(super) fn shown(&self, (dir, name): &Place, picked: usize) -> (Option<Node>, Option<Node>) {
        match self.dirs[*dir].get(name) {
            Some(entry) => (show(entry, picked), entry.durable),
            None => (None, None),
        }
    }

    /// The directory tree as it looks with a choice; parents first.
    pub(super) fn tree(&self, picks: &BTreeMap<Place, usize>) -> Vec<(PathBuf, Node)> {
        let mut tree = Vec::new();
        let mut open = vec![(PathBuf::new(), 0)];
        while let Some((path, dir)) = open.pop() {
            for (name, entry) in &self.dirs[dir] {
                let picked = picks.get(&(dir, name.clone())).copied().unwrap_or(0);
                if let Some(node) = show(entry, picked) {
                    let path = path.join(name);
                    if let Node::Dir(dir) = node {
                        open.push((path.clone(), dir));
                    }
                    tree.push((path, node));
                }
            }
        }
        tree
    }

    fn present(&self, (dir, name): &Place) -> Option<Node> {
        self.dirs[*dir]
            .get(name)
            .and_then(|entry| show(entry, entry.newer.len()))
    }

    /// The place of a path, as the running program sees the directory.
    fn place(&self, path: &Path) -> Result<Place, String> {
        let name = path
            .file_name()
            .ok_or_else(|| format!("{} names no file", path.display()))?;
        let dir = self.directory(path.parent().unwrap_or(Path::new("")))?;
        Ok((dir, name.to_string_lossy().into_owned()))
    }

    fn directory(&self, path: &Path) -> Result<usize, String> {
        let mut dir = 0;
        for name in path {
            dir = match self.present(&(dir, name.to_string_lossy().into_owned())) {
                Some(Node::Dir(dir)) => dir,
                _ => return Err(format!("the trace knows no directory {}", path.display())),
            };
        }
        Ok(dir)
    }
}

fn show(entry: &Entry, picked: usize) -> Option<Node> {
    match picked.checked_sub(1) {
        None => entry.durable,
        Some(index) => entry.newer.get(index).and_then(|binding| binding.node),
    }
}
