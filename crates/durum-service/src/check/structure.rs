//! Puddle by puddle: headers, extents, slabs. Gives all objects of the store.

use std::collections::BTreeSet;
use std::path::PathBuf;

use durum_format::Uuid;
use durum_format::extent::{self, HeapError};

use super::{CheckOptions, CheckReport, Severity};
use crate::error::{Error, ErrorKind, Result};
use crate::files;
use crate::inspect::ReadOnlyStore;
use crate::model::Stage;
use crate::puddle_view::PuddleView;

/// A puddle that could be read.
pub(super) struct CheckedPuddle {
    pub(super) pool: Uuid,
    pub(super) file: PathBuf,
    pub(super) view: PuddleView,
}

/// An object that lives.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveObject {
    pub(super) address: u64,
    pub(super) size: u64,
    /// What its id means in its pool.
    pub(super) type_id: u64,
    /// Index into the puddles.
    pub(super) puddle: usize,
    pub(super) is_root: bool,
}

impl LiveObject {
    pub(super) fn end(&self) -> u64 {
        self.address + self.size.max(1)
    }
}

/// All that lives in the store.
pub(super) struct Objects {
    pub(super) puddles: Vec<CheckedPuddle>,
    /// In order of address.
    pub(super) objects: Vec<LiveObject>,
    /// The pools of puddles that could not be read as a whole: then objects are missing here.
    pub(super) partial: BTreeSet<Uuid>,
}

impl Objects {
    pub(super) fn is_partial(&self) -> bool {
        !self.partial.is_empty()
    }

    /// The index of the object that contains an address.
    pub(super) fn at(&self, address: u64) -> Option<usize> {
        let objects = &self.objects;
        let after = objects.partition_point(|object| object.address <= address);
        let index = after.checked_sub(1)?;
        (address < self.objects.get(index)?.end()).then_some(index)
    }

    pub(super) fn pool_of(&self, object: &LiveObject) -> Option<Uuid> {
        self.puddles.get(object.puddle).map(|puddle| puddle.pool)
    }
}

pub(super) fn check(
    reader: &ReadOnlyStore,
    options: &CheckOptions,
    report: &mut CheckReport,
) -> Result<Objects> {
    let mut all = Objects {
        puddles: Vec::new(),
        objects: Vec::new(),
        partial: BTreeSet::new(),
    };
    let registered = reader.puddles();
    let total = registered.len();
    for (done, puddle) in (1..).zip(registered) {
        let file = files::puddle_path(reader.path(), puddle.uuid);
        let is_log = !puddle.kind.holds_objects();
        match reader.puddle_unguarded(puddle.uuid) {
            // A service shows logs to few, and may have given it up meanwhile.
            Err(error) if reader.is_served() && is_log && is_not_shown(&error) => {}
            // One finding tells of the whole pool; or it is not to be looked at.
            Err(Error::PoolRefused { .. } | Error::PoolNotOpen { .. }) => {
                all.partial.insert(puddle.owner);
            }
            Ok(view) if puddle.kind.holds_objects() => {
                check_heap(reader, view, puddle.owner, &mut all, report)?;
            }
            // Logs were read with the plans for recovery.
            Ok(_) => {}
            Err(error) => {
                report.absorb(&file, error)?;
                all.partial.insert(puddle.owner);
            }
        }
        options.tell(reader, Stage::Check, done, total)?;
    }
    Ok(all)
}

fn is_not_shown(error: &Error) -> bool {
    match error {
        Error::NotPermitted { .. } | Error::PuddleUnknown { .. } => true,
        // It is older than this.
        Error::Told { kind, .. } => *kind == ErrorKind::User,
        _ => false,
    }
}

fn check_heap(
    reader: &ReadOnlyStore,
    view: PuddleView,
    pool: Uuid,
    all: &mut Objects,
    report: &mut CheckReport,
) -> Result<()> {
    let header = *view.header();
    let file = view.path().to_owned();
    let puddle = all.puddles.len();
    let meanings = reader.meanings_of(pool);
    for extent in extent::extents(&view, &header) {
        let extent = match extent {
            Ok(extent) => extent,
            // A media error is the system's; the check cannot go on and say what it promises.
            Err(HeapError::Read(error)) if error.kind() != ErrorKind::Data => return Err(error),
            Err(error) => {
                all.partial.insert(pool);
                let text = format!("{error}; restore a copy of the store");
                report.add(Severity::Damage, &file, offset_of(&error), text);
                continue;
            }
        };
        for object in extent.objects() {
            all.objects.push(LiveObject {
                address: header.address + object.offset,
                size: object.size,
                type_id: meanings.of(object.type_id),
                puddle,
                is_root: header.is_root && extent.granule() == 0,
            });
        }
    }
    all.puddles.push(CheckedPuddle { pool, file, view });
    Ok(())
}

fn offset_of(error: &HeapError<Error>) -> Option<u64> {
    match error {
        HeapError::Extent { offset, .. }
        | HeapError::Overlap { offset, .. }
        | HeapError::PastEnd { offset, .. }
        | HeapError::SlabAlignment { offset }
        | HeapError::SlabAtRoot { offset }
        | HeapError::SlabBits { offset, .. }
        | HeapError::BitmapTail { offset } => Some(*offset),
        _ => None,
    }
}
