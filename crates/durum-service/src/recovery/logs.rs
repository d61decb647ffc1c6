//! The log puddles of a client, in memory.
//!
//! Memory and time are bounded by the bytes that these puddles hold, whatever they say: each is read once, belongs to
//! one log (their ids are all different), and is looked through once. A log's entries take about ten times the memory
//! that they have in the log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use durum_format::log::{self, LOG_AREA_OFFSET, LogArea, ParseError, ParsedLog};
use durum_format::puddle::{self, PuddleHeader, PuddleKind};
use durum_format::record::{RING_HEAD_SIZE, Ring};
use durum_format::{FormatError, Uuid};
use durum_persist::file::MediaFile;

use super::home::Access;
use super::obstacle::Obstacle;
use crate::error::{Error, Result};
use crate::files::{self, Puddles};
use crate::reading;
use crate::registry::contents::{Contents, PuddleRecord};
use crate::sparse::{self, Sparse};

/// All log puddles of a client, in memory.
pub(super) struct LogPuddles<'a> {
    files: &'a Puddles,
    puddles: BTreeMap<Uuid, LogPuddle>,
    addresses: BTreeMap<u64, Uuid>,
    /// The heaps by where they are in memory.
    heaps: BTreeMap<*const u8, Bytes>,
}

struct LogPuddle {
    header: PuddleHeader,
    /// The bytes, and how many of them were written; or why they cannot be had.
    heap: Result<(Bytes, usize), String>,
}

impl<'a> LogPuddles<'a> {
    /// Where no log needs to be read.
    pub(super) fn none(files: &'a Puddles) -> LogPuddles<'a> {
        LogPuddles {
            files,
            puddles: BTreeMap::new(),
            addresses: BTreeMap::new(),
            heaps: BTreeMap::new(),
        }
    }

    /// Reads what the log spaces of a client name, and all others where it takes more than that to tell whether one of
    /// them is damaged. `are_all_named`: no log can be one that a log space named once.
    pub(super) fn read(
        files: &'a Puddles,
        contents: &Contents,
        client: Uuid,
        access: Access,
        named: &BTreeSet<Uuid>,
        are_all_named: bool,
    ) -> Result<LogPuddles<'a>> {
        let mut registered = contents.puddles_of(client);
        registered.retain(|(uuid, record)| {
            record.kind == PuddleKind::Log && !contents.is_quarantined_file(*uuid)
        });
        let mut logs = LogPuddles::none(files);
        let addresses = registered
            .iter()
            .map(|(uuid, record)| (record.address, *uuid));
        logs.addresses.extend(addresses);
        let (heads, others): (Vec<_>, Vec<_>) = registered
            .into_iter()
            .partition(|(uuid, _)| named.contains(uuid));
        for (uuid, record) in &heads {
            logs.add(*uuid, record, access)?;
        }
        // What is in no log space is in the chain of one, or was prepared and never used.
        let is_alone = |uuid| logs.area(uuid).is_ok_and(|area| !area.may_be_chained());
        if !(are_all_named && logs.uuids().all(is_alone)) {
            for (uuid, record) in &others {
                logs.add(*uuid, record, access)?;
            }
        }
        Ok(logs)
    }

    fn add(&mut self, uuid: Uuid, record: &PuddleRecord, access: Access) -> Result<()> {
        let heap = match read_log(self.files, uuid, record, access) {
            Ok(heap) => {
                let used = heap.written().len();
                let heap = Bytes::from_owner(heap);
                self.heaps.insert(heap.as_ptr(), heap.clone());
                Ok((heap, used))
            }
            Err(Obstacle::Invalid(reason)) => Err(reason),
            Err(Obstacle::Fatal(error)) => return Err(error),
        };
        let header = files::header_of(uuid, record);
        self.puddles.insert(uuid, LogPuddle { header, heap });
        Ok(())
    }

    /// The same bytes of a log, for whoever keeps them for longer.
    pub(super) fn shared(&self, bytes: &[u8]) -> Bytes {
        let heap = self.heaps.range(..=bytes.as_ptr()).next_back();
        let heap = heap.filter(|(_, heap)| bytes.as_ptr_range().end <= heap.as_ptr_range().end);
        match heap {
            Some((_, heap)) => heap.slice_ref(bytes),
            None => Bytes::copy_from_slice(bytes),
        }
    }

    pub(super) fn at(&self, address: u64) -> Option<Uuid> {
        self.addresses.get(&address).copied()
    }

    fn uuids(&self) -> impl Iterator<Item = Uuid> + '_ {
        self.puddles.keys().copied()
    }

    fn area(&self, uuid: Uuid) -> Result<LogArea<'_>, String> {
        let Some(log) = self.puddles.get(&uuid) else {
            return Err(format!("puddle {uuid} is not a log puddle of this client"));
        };
        let (heap, used) = log.heap.as_ref().map_err(Clone::clone)?;
        LogArea::of(&log.header, heap)
            .map(|area| area.used(*used))
            .map_err(|error| format_error(self.files, uuid, log.header.size, error).to_string())
    }

    /// The log that begins in a puddle; the log space knows its id.
    pub(super) fn parse(&self, head: Uuid, log_id: u64) -> Result<ParsedLog<'_>, String> {
        let area = self.area(head)?;
        if area.header().log_id != log_id {
            return Err(format!(
                "the log space says that the log's id is {log_id:#x}, its header says {:#x}",
                area.header().log_id
            ));
        }
        let next = |address| match self.at(address) {
            Some(uuid) => self.area(uuid),
            None => Err("no log puddle of this client is there".to_owned()),
        };
        log::parse(area, next).map_err(|error| match error {
            ParseError::Damage(damage) => damage.to_string(),
            ParseError::Chain { address, source } => {
                format!("the log goes on in the puddle at {address:#x}: {source}")
            }
        })
    }

    /// The parts of logs that nothing leads to, by the ids of the logs. Found once, because each log has to look at its
    /// own, and there may be as many of these as of those.
    pub(super) fn unreached(&self, reached: &BTreeSet<Uuid>) -> Unreached<'_> {
        let mut unreached = Unreached::new();
        for uuid in self.uuids().filter(|uuid| !reached.contains(uuid)) {
            if let Ok(area) = self.area(uuid) {
                let of_log = unreached.entry(area.header().log_id).or_default();
                of_log.push((uuid, area));
            }
        }
        unreached
    }

    /// Heads of logs with entries under way that no log space names.
    pub(super) fn in_use_but_unlisted(&self, unreached: &Unreached<'_>) -> Vec<Uuid> {
        // A log that goes on in another puddle is in use: nobody looks there, where many may lead.
        let is_in_use = |area: &LogArea<'_>| {
            log::parse(*area, |_| Err(())).map_or(true, |log| !log.entries.is_empty())
        };
        let areas = unreached.values().flatten();
        let heads = areas.filter(|(_, area)| !area.header().is_continuation);
        heads
            .filter(|(_, area)| is_in_use(area))
            .map(|(uuid, _)| *uuid)
            .collect()
    }
}

/// Parts of logs that no log space and no chain leads to, by the ids of the logs.
pub(super) type Unreached<'p> = BTreeMap<u64, Vec<(Uuid, LogArea<'p>)>>;

/// A puddle of the log that its chain does not come to, and that holds entries, shows that the chain is damaged.
pub(super) fn check_unreached(
    log: &ParsedLog<'_>,
    unreached: &Unreached<'_>,
) -> Result<(), String> {
    let parts = unreached.get(&log.header.log_id);
    for (uuid, area) in parts.into_iter().flatten() {
        log.check_unreached(area)
            .map_err(|damage| format!("puddle {uuid}: {damage}"))?;
    }
    Ok(())
}

fn format_error(files: &Puddles, uuid: Uuid, size: u64, source: FormatError) -> Error {
    let base = puddle::heap_offset(size);
    let cure = "keep it for those who can read it";
    Error::format(&files::puddle_path(files.store(), uuid), base, source, cure)
}

/// Reads a log, as far as it was used. Of a puddle that was prepared, and never became one, no more than its head.
fn read_log(
    files: &Puddles,
    uuid: Uuid,
    record: &PuddleRecord,
    access: Access,
) -> Result<Sparse, Obstacle> {
    let file = open(files, uuid, record, access)?;
    read_used::<{ LOG_AREA_OFFSET as usize }>(&file, files, uuid, record, LogArea::length_in)
}

/// Reads a heap as far as its head says; `length_in` reads that of a heap of so many bytes.
fn read_used<const HEAD: usize>(
    file: &MediaFile,
    files: &Puddles,
    uuid: Uuid,
    record: &PuddleRecord,
    length_in: impl FnOnce(&[u8], u64) -> Result<Option<u64>, FormatError>,
) -> Result<Sparse, Obstacle> {
    let (offset, size) = heap_in(record);
    let mut head = [0; HEAD];
    reading::exact(file, offset, &mut head, "reading a log").map_err(Obstacle::of_log)?;
    let used = length_in(&head, size).map_err(|source| {
        let said = format_error(files, uuid, record.size, source).to_string();
        Obstacle::Invalid(said)
    })?;
    match used {
        Some(used) => sparse::beginning(file, offset, size, used),
        None => sparse::written(file, offset, size),
    }
    .map_err(Obstacle::of_log)
}

/// Reads a puddle of records, as far as it was used.
pub(super) fn read_records(
    files: &Puddles,
    uuid: Uuid,
    record: &PuddleRecord,
    access: Access,
) -> Result<Sparse, Obstacle> {
    let file = open(files, uuid, record, access)?;
    read_used::<{ RING_HEAD_SIZE as usize }>(&file, files, uuid, record, |head, _| {
        Ring::length_in(head, record.size)
    })
}

/// Reads a log space, as far as it was used.
pub(super) fn read_space(
    files: &Puddles,
    uuid: Uuid,
    record: &PuddleRecord,
    access: Access,
) -> Result<Sparse, Obstacle> {
    let file = open(files, uuid, record, access)?;
    let (offset, size) = heap_in(record);
    sparse::up_to_zeros(&file, offset, size).map_err(Obstacle::of_log)
}

fn heap_in(record: &PuddleRecord) -> (u64, u64) {
    (
        puddle::heap_offset(record.size),
        puddle::heap_size(record.size),
    )
}

/// Logs are synced before they are replayed, which takes the right to write.
fn open(
    files: &Puddles,
    uuid: Uuid,
    record: &PuddleRecord,
    access: Access,
) -> Result<Arc<MediaFile>, Obstacle> {
    files
        .open_kept(uuid, record, access == Access::Write)
        .map_err(Obstacle::of_log)
}
