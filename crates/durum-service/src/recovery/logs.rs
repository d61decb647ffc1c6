//! The log puddles of a client, in memory.
//!
//! Memory and time are bounded by the bytes that these puddles hold, whatever they say: each is read once, belongs to
//! one log (their ids are all different), and is looked through once. A log's entries take about ten times the memory
//! that they have in the log.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use durum_format::Uuid;
use durum_format::log::{self, LogArea, ParseError, ParsedLog};
use durum_format::puddle::{self, PuddleHeader, PuddleKind};
use memmap2::MmapMut;

use super::home::Access;
use super::obstacle::Obstacle;
use crate::error::{Error, Result};
use crate::files;
use crate::registry::contents::{Contents, PuddleRecord};

/// All log puddles of a client, in memory.
pub(super) struct LogPuddles<'a> {
    store: &'a Path,
    puddles: BTreeMap<Uuid, LogPuddle>,
    addresses: BTreeMap<u64, Uuid>,
}

/// The bytes of a heap, and behind which of them none was written.
pub(super) struct Written(pub(super) MmapMut, pub(super) usize);

struct LogPuddle {
    header: PuddleHeader,
    /// The bytes, or why they cannot be had.
    heap: Result<Written, String>,
}

impl<'a> LogPuddles<'a> {
    /// Where no log needs to be read.
    pub(super) fn none(store: &'a Path) -> LogPuddles<'a> {
        LogPuddles {
            store,
            puddles: BTreeMap::new(),
            addresses: BTreeMap::new(),
        }
    }

    pub(super) fn read(
        store: &'a Path,
        contents: &Contents,
        client: Uuid,
        access: Access,
    ) -> Result<LogPuddles<'a>> {
        let mut puddles = BTreeMap::new();
        let mut addresses = BTreeMap::new();
        for (uuid, record) in contents.puddles_of(client) {
            if record.kind != PuddleKind::Log || contents.is_quarantined_file(uuid) {
                continue;
            }
            let heap = match read_heap(store, uuid, &record, access) {
                Ok(heap) => Ok(heap),
                Err(Obstacle::Invalid(reason)) => Err(reason),
                Err(Obstacle::Fatal(error)) => return Err(error),
            };
            addresses.insert(record.address, uuid);
            let header = files::header_of(uuid, &record);
            puddles.insert(uuid, LogPuddle { header, heap });
        }
        Ok(LogPuddles {
            store,
            puddles,
            addresses,
        })
    }

    fn format_error(&self, uuid: Uuid, source: durum_format::FormatError) -> Error {
        let log = self.puddles.get(&uuid);
        let base = log.map_or(0, |log| puddle::heap_offset(log.header.size));
        let cure = "keep it for those who can read it";
        Error::format(&files::puddle_path(self.store, uuid), base, source, cure)
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
        let Written(heap, used) = log.heap.as_ref().map_err(Clone::clone)?;
        LogArea::of(&log.header, heap)
            .map(|area| area.used(*used))
            .map_err(|error| self.format_error(uuid, error).to_string())
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

/// Reads a log's puddle. Logs are synced before they are replayed, which takes the right to write.
pub(super) fn read_heap(
    store: &Path,
    uuid: Uuid,
    record: &PuddleRecord,
    access: Access,
) -> Result<Written, Obstacle> {
    let offset = puddle::heap_offset(record.size);
    let (heap, used) = files::open(store, uuid, record, access == Access::Write)
        .and_then(|file| files::read_sparse(&file, offset, puddle::heap_size(record.size)))
        .map_err(Obstacle::of_log)?;
    Ok(Written(heap, used))
}
