//! The media at a point of a run: what is durable, and what is newer.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::Rules;
use super::names::{Names, Node, Place};
use super::unit::{Shape, Unit};
use crate::recording::{Content, Data, Event, EventKind, FileId, Trace};

pub(super) struct Media<'t> {
    trace: &'t Trace,
    rules: Rules,
    pub(super) shape: Shape,
    pub(super) files: Vec<FileState>,
    pub(super) names: Names,
    /// By thread: what it wrote back since its last fence, as file, unit and the last version that was there.
    written_back: HashMap<u32, Vec<(FileId, u64, u64)>>,
    /// Units that a thread has stored to past the cache since its last fence: what others write back is not these
    /// stores.
    streamed: HashMap<(FileId, u64), u32>,
    /// Number of the last version.
    version: u64,
    /// Sum of terms over all that is durable; see [`term`].
    pub(super) hash: u64,
}

#[derive(Default)]
pub(super) struct FileState {
    /// As the running program sees it.
    pub(super) current: Content,
    pub(super) len: Lengths,
    /// Units with newer versions, by offset divided by the unit's size.
    pub(super) dirty: BTreeMap<u64, Unit>,
    pub(super) mode: u32,
}

/// The versions of a file's length.
#[derive(Default)]
pub(super) struct Lengths {
    pub(super) durable: u64,
    pub(super) newer: Vec<u64>,
    /// That many of the newer ones were there when a sync failed.
    lost: usize,
}

impl Lengths {
    pub(super) fn current(&self) -> u64 {
        self.newer.last().copied().unwrap_or(self.durable)
    }

    pub(super) fn shown(&self, picked: usize) -> u64 {
        match picked {
            0 => self.durable,
            _ => self.newer[picked - 1],
        }
    }
}

impl<'t> Media<'t> {
    pub(super) fn new(trace: &'t Trace, rules: Rules) -> Result<Media<'t>, String> {
        let base = &trace.base;
        let files =
            base.contents
                .iter()
                .zip(&base.lens)
                .zip(&base.modes)
                .map(|((content, len), mode)| FileState {
                    current: content.clone(),
                    len: Lengths {
                        durable: *len,
                        ..Lengths::default()
                    },
                    mode: *mode,
                    ..FileState::default()
                });
        Ok(Media {
            trace,
            rules,
            shape: rules.shape(),
            files: files.collect(),
            names: Names::new(base)?,
            written_back: HashMap::new(),
            streamed: HashMap::new(),
            version: 0,
            hash: 0,
        })
    }

    /// Goes on by one event. True if the set of possible images has changed.
    pub(super) fn apply(&mut self, event: &Event) -> Result<bool, String> {
        match &event.kind {
            EventKind::Api(_) | EventKind::Note { .. } => return Ok(false),
            EventKind::Stored {
                file, offset, data, ..
            } => self.write(*file, *offset, *data, false),
            EventKind::Streamed {
                file, offset, data, ..
            } => {
                self.write(*file, *offset, *data, false);
                let lines = self.units(*offset, data.len as u64);
                let lines = lines.map(|line| ((*file, line), event.thread));
                self.streamed.extend(lines);
                self.write_back(event.thread, *file, *offset, data.len as u64);
            }
            EventKind::WriteBack {
                file,
                offset,
                lines,
                ..
            } => {
                self.write_back(event.thread, *file, *offset, lines * self.shape.unit as u64);
                return Ok(false);
            }
            EventKind::Fence { .. } => return Ok(self.fence(event.thread)),
            EventKind::Written { file, offset, data } => {
                self.write(*file, *offset, *data, true);
                self.grow(*file, offset + data.len as u64);
            }
            EventKind::Resized { file, len } => self.resize(*file, *len),
            EventKind::Allocated { file, len, .. } => self.grow(*file, *len),
            EventKind::Synced {
                file,
                succeeded: true,
                ..
            } => return Ok(self.sync(*file)),
            EventKind::Synced {
                file,
                succeeded: false,
                ..
            } => {
                let state = self.file(*file);
                state.dirty.values_mut().for_each(Unit::sync_failed);
                state.len.lost = state.len.newer.len();
                return Ok(false);
            }
            EventKind::Created { path, file } => {
                self.file(*file).mode = 0o644;
                self.names.create(path, *file)?;
            }
            EventKind::DirCreated { path, .. } => self.names.create_dir(path)?,
            EventKind::Renamed { from, to, .. } => self.names.rename(from, to)?,
            EventKind::Linked { from, to, .. } => self.names.link(from, to)?,
            EventKind::Removed { path, .. } => self.names.remove(path)?,
            EventKind::DirSynced { path, .. } => {
                let hash = &mut self.hash;
                return self.names.sync(path, |place, old, new| {
                    *hash = hash
                        .wrapping_sub(name_term(place, old))
                        .wrapping_add(name_term(place, new));
                });
            }
        }
        Ok(true)
    }

    fn file(&mut self, id: FileId) -> &mut FileState {
        if self.files.len() <= id.index() {
            self.files.resize_with(id.index() + 1, FileState::default);
        }
        &mut self.files[id.index()]
    }

    fn write(&mut self, id: FileId, offset: u64, data: Data, by_file_write: bool) {
        let trace = self.trace;
        trace.each_part(data, |position, bytes| {
            self.write_bytes(id, offset + position as u64, bytes, by_file_write)
        });
    }

    fn write_bytes(&mut self, id: FileId, offset: u64, bytes: &[u8], by_file_write: bool) {
        self.version += 1;
        let (shape, version) = (self.shape, self.version);
        let (unit_len, piece_len) = (shape.unit as u64, shape.piece as u64);
        let end = offset + bytes.len() as u64;
        let state = self.file(id);
        for index in offset / unit_len..end.div_ceil(unit_len) {
            state.dirty.entry(index).or_insert_with(|| {
                let mut durable = vec![0; shape.unit];
                state.current.copy_to(index * unit_len, &mut durable);
                Unit::new(shape, durable)
            });
        }
        state.current.write(offset, bytes);
        let mut piece_bytes = [0; 512];
        let piece_bytes = &mut piece_bytes[..shape.piece];
        for piece in offset / piece_len..end.div_ceil(piece_len) {
            state.current.copy_to(piece * piece_len, piece_bytes);
            let index = piece * piece_len / unit_len;
            if let Some(unit) = state.dirty.get_mut(&index) {
                let within = piece - index * (unit_len / piece_len);
                unit.push(version, within as usize, piece_bytes, by_file_write);
            }
        }
        // A store of what was there already leaves the unit as it was.
        for index in offset / unit_len..end.div_ceil(unit_len) {
            if state.dirty.get(&index).is_some_and(Unit::is_clean) {
                state.dirty.remove(&index);
            }
        }
    }

    fn grow(&mut self, id: FileId, len: u64) {
        let lengths = &mut self.file(id).len;
        if len > lengths.current() {
            lengths.newer.push(len);
        }
    }

    fn resize(&mut self, id: FileId, len: u64) {
        let old_len = self.file(id).len.current();
        // What is cut off reads as zeros if the file grows again: a write of zeros, without the bytes being kept.
        let mut page = len / 4096 * 4096;
        while len < old_len && page < old_len {
            let start = page.max(len);
            let part = (page + 4096).min(old_len) - start;
            if self.file(id).current.has_page((page / 4096) as usize) {
                self.write(id, start, Data::zeros(part as usize), true);
            }
            page += 4096;
        }
        let state = self.file(id);
        if len != old_len {
            state.len.newer.push(len);
        }
    }

    /// The units that a range touches.
    fn units(&self, offset: u64, len: u64) -> Range<u64> {
        let unit = self.shape.unit as u64;
        offset / unit..(offset + len).div_ceil(unit)
    }

    fn write_back(&mut self, thread: u32, id: FileId, offset: u64, len: u64) {
        if self.rules != Rules::Lines || len == 0 {
            return;
        }
        let (lines, version) = (self.units(offset, len), self.version);
        let dirty = self.file(id).dirty.range(lines);
        let mut dirty: Vec<_> = dirty.map(|(index, _)| (id, *index, version)).collect();
        dirty.retain(|(id, index, _)| {
            let by = self.streamed.get(&(*id, *index));
            by.is_none_or(|by| *by == thread)
        });
        self.written_back.entry(thread).or_default().extend(dirty);
    }

    fn fence(&mut self, thread: u32) -> bool {
        self.streamed.retain(|_, by| *by != thread);
        let mut any = false;
        for (id, index, version) in self.written_back.remove(&thread).unwrap_or_default() {
            let (shape, hash) = (self.shape, &mut self.hash);
            let dirty = &mut self.files[id.index()].dirty;
            let Some(unit) = dirty.get_mut(&index) else {
                continue;
            };
            any |= unit.complete(version, |piece, old, new| {
                replace_term(hash, shape, id, index, piece, old, new)
            });
            if unit.is_clean() {
                dirty.remove(&index);
            }
        }
        any
    }

    fn sync(&mut self, id: FileId) -> bool {
        self.file(id);
        let (rules, shape, hash) = (self.rules, self.shape, &mut self.hash);
        let state = &mut self.files[id.index()];
        let mut any = false;
        state.dirty.retain(|index, unit| {
            any |= unit.sync(rules, |piece, old, new| {
                replace_term(hash, shape, id, *index, piece, old, new)
            });
            !unit.is_clean()
        });
        let lengths = &mut state.len;
        if lengths.newer.len() > lengths.lost {
            let new = lengths.current();
            *hash = hash
                .wrapping_sub(len_term(id, lengths.durable))
                .wrapping_add(len_term(id, new));
            *lengths = Lengths {
                durable: new,
                ..Lengths::default()
            };
            any = true;
        }
        any
    }
}

fn replace_term(
    hash: &mut u64,
    shape: Shape,
    id: FileId,
    index: u64,
    piece: usize,
    old: &[u8],
    new: &[u8],
) {
    *hash = hash
        .wrapping_sub(piece_term(shape, id, index, piece, old))
        .wrapping_add(piece_term(shape, id, index, piece, new));
}

pub(super) fn piece_term(shape: Shape, id: FileId, index: u64, piece: usize, bytes: &[u8]) -> u64 {
    let offset = index * shape.unit as u64 + (piece * shape.piece) as u64;
    let start = mix(mix(1, u64::from(id.0)), offset);
    let words = bytes
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap_or_default()));
    term(words.fold(start, mix))
}

pub(super) fn len_term(id: FileId, len: u64) -> u64 {
    term(mix(mix(2, u64::from(id.0)), len))
}

pub(super) fn name_term((dir, name): &Place, node: Option<Node>) -> u64 {
    let node = match node {
        None => 0,
        Some(Node::File(id)) => 2 * u64::from(id.0) + 2,
        Some(Node::Dir(dir)) => 2 * dir as u64 + 1,
    };
    let start = mix(mix(3, *dir as u64), node);
    term(name.bytes().map(u64::from).fold(start, mix))
}

/// An image's hash is the sum of one term per fact (this word at this place holds that, ...), so that it can be kept up
/// to date as facts change. The last mixing makes sums of related facts unrelated.
fn term(hash: u64) -> u64 {
    mix(hash, 0x9e37_79b9_7f4a_7c15)
}

pub(super) fn mix(hash: u64, value: u64) -> u64 {
    // The finalizer of MurmurHash3 (public domain, Austin Appleby) over a combination of the two.
    let mut z = hash.rotate_left(23).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ value;
    z = (z ^ (z >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    z = (z ^ (z >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    z ^ (z >> 33)
}
