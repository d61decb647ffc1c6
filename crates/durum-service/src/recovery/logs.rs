//! The log puddles of a client, in memory.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use durum_format::log::{self, LogArea, ParseError, ParsedLog};
use durum_format::puddle::{self, PuddleHeader, PuddleKind};
use durum_format::{Fault, Uuid};
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
        let logs = LogPuddles {
            store,
            puddles,
            addresses,
        };
        logs.refuse_newer()?;
        Ok(logs)
    }

    /// A log of another version is no damage: the store is refused, and a durum that knows it replays it.
    fn refuse_newer(&self) -> Result<()> {
        for (uuid, log) in &self.puddles {
            let Ok(heap) = &log.heap else { continue };
            if let Err(source) = LogArea::of(&log.header, &heap.0)
                && source.fault() == Fault::OtherVersion
            {
                return Err(self.format_error(*uuid, source));
            }
        }
        Ok(())
    }

    fn format_error(&self, uuid: Uuid, source: durum_format::FormatError) -> Error {
        let log = self.puddles.get(&uuid);
        let base = log.map_or(0, |log| puddle::heap_offset(log.header.size));
        let cure = "open the store with a durum that knows this log first";
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
    pub(super) fn parse(&self, head: Uuid, log_id: Option<u64>) -> Result<ParsedLog<'_>, String> {
        let area = self.area(head)?;
        if let Some(expected) = log_id
            && area.header().log_id != expected
        {
            return Err(format!(
                "the log space says that the log's id is {expected:#x}, its header says {:#x}",
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

    /// A puddle of the log that its chain does not come to, and that holds entries, shows that the chain is damaged.
    pub(super) fn check_unreached(
        &self,
        log: &ParsedLog<'_>,
        reached: &BTreeSet<Uuid>,
    ) -> Result<(), String> {
        for uuid in self.uuids().filter(|uuid| !reached.contains(uuid)) {
            if let Ok(area) = self.area(uuid) {
                log.check_unreached(&area)
                    .map_err(|damage| format!("puddle {uuid}: {damage}"))?;
            }
        }
        Ok(())
    }

    /// Heads of logs with entries under way that no log space names.
    pub(super) fn in_use_but_unlisted(&self, reached: &BTreeSet<Uuid>) -> Vec<Uuid> {
        let is_head = |uuid| {
            self.area(uuid)
                .is_ok_and(|area| !area.header().is_continuation)
        };
        let is_in_use = |uuid| {
            self.parse(uuid, None)
                .map_or(true, |log| !log.entries.is_empty())
        };
        self.uuids()
            .filter(|uuid| !reached.contains(uuid) && is_head(*uuid) && is_in_use(*uuid))
            .collect()
    }
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
