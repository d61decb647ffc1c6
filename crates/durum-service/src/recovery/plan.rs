//! What recovery has to do for a client: reads its log spaces and logs, and writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use durum_format::crc::Crc;
use durum_format::log::{self, LogArea, ParseError, ParsedLog, Plan, PlanError, Write};
use durum_format::log_space::LogSpace;
use durum_format::puddle::{self, PuddleHeader, PuddleKind};
use durum_format::{Fault, Uuid};
use durum_persist::file::MediaFile;

use crate::error::{Error, ErrorKind, Result};
use crate::files;
use crate::model::{QuarantineNote, RecoveryReport};
use crate::registry::contents::{Contents, PuddleRecord};

/// Bytes read at a time where a range of a puddle is summed up.
const CHUNK_BYTES: usize = 64 << 10;

/// A write to a home location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HomeWrite {
    /// The data puddle.
    pub(crate) puddle: Uuid,
    /// Where in it, in bytes.
    pub(crate) offset: u64,
    pub(crate) kind: WriteKind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Copy(Vec<u8>),
    SetBits(u64),
    ClearBits(u64),
}

impl HomeWrite {
    /// How many bytes it writes.
    pub(crate) fn length(&self) -> u64 {
        match &self.kind {
            WriteKind::Copy(data) => data.len() as u64,
            WriteKind::SetBits(_) | WriteKind::ClearBits(_) => 8,
        }
    }

    /// Applies it to bytes in memory that begin at `start` in the puddle.
    pub(crate) fn apply_to(&self, start: u64, bytes: &mut [u8]) {
        match &self.kind {
            WriteKind::Copy(data) => overlay(self.offset, data, start, bytes),
            WriteKind::SetBits(mask) => self.edit(start, bytes, |byte, mask| byte | mask, *mask),
            WriteKind::ClearBits(mask) => self.edit(start, bytes, |byte, mask| byte & !mask, *mask),
        }
    }

    /// A word is little-endian, so its bits can be edited byte by byte, also where only part of it is at hand.
    fn edit(&self, start: u64, bytes: &mut [u8], change: impl Fn(u8, u8) -> u8, mask: u64) {
        for (index, mask) in (0..).zip(mask.to_le_bytes()) {
            if let Some(byte) = (self.offset + index)
                .checked_sub(start)
                .and_then(|at| bytes.get_mut(usize::try_from(at).ok()?))
            {
                *byte = change(*byte, mask);
            }
        }
    }
}

/// Copies the part of `data` (at `offset`) that falls into `bytes` (at `start`).
fn overlay(offset: u64, data: &[u8], start: u64, bytes: &mut [u8]) {
    let first = offset.max(start);
    let last = (offset + data.len() as u64).min(start + bytes.len() as u64);
    if first < last {
        let source = &data[(first - offset) as usize..(last - offset) as usize];
        bytes[(first - start) as usize..(last - start) as usize].copy_from_slice(source);
    }
}

/// What a log asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing: no transaction was under way.
    Nothing,
    /// The transaction did not commit and is undone.
    RollBack,
    /// The transaction committed and is completed.
    RollForward,
}

/// A log that must not be replayed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InvalidLog {
    /// The puddle whose file shows it: the log's first puddle, or the log space.
    pub(crate) puddle: Uuid,
    /// The log's id, 0 where it could not be read.
    pub(crate) log_id: u64,
    /// Why.
    pub(crate) reason: String,
}

/// What recovery has to do for one client.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientPlan {
    /// How many log spaces were read.
    pub(crate) log_spaces: u64,
    /// The verdict on each valid log.
    pub(crate) verdicts: Vec<Verdict>,
    /// The writes of all valid logs, in the order in which they must be applied.
    pub(crate) writes: Vec<HomeWrite>,
    /// The logs that must not be replayed.
    pub(crate) invalid: Vec<InvalidLog>,
    /// Log and log space puddles that a valid log or log space is made of: they may go when the writes are durable.
    pub(crate) sound: BTreeSet<Uuid>,
}

impl ClientPlan {
    /// Notes that a log must not be replayed. The first reason for a puddle stands.
    fn refuse(&mut self, puddle: Uuid, log_id: u64, reason: String) {
        self.sound.remove(&puddle);
        if self.invalid.iter().all(|log| log.puddle != puddle) {
            self.invalid.push(InvalidLog {
                puddle,
                log_id,
                reason,
            });
        }
    }
}

impl RecoveryReport {
    /// Adds what the plan for a client does.
    pub(crate) fn count(&mut self, plan: &ClientPlan) {
        let verdicts = |verdict| {
            let matching = plan.verdicts.iter().filter(|found| **found == verdict);
            matching.count() as u64
        };
        self.log_spaces += plan.log_spaces;
        self.logs += (plan.verdicts.len() + plan.invalid.len()) as u64;
        self.rolled_back += verdicts(Verdict::RollBack);
        self.rolled_forward += verdicts(Verdict::RollForward);
        self.entries += plan.writes.len() as u64;
        self.bytes += plan.writes.iter().map(HomeWrite::length).sum::<u64>();
        self.quarantined
            .extend(plan.invalid.iter().map(|log| QuarantineNote {
                log: PathBuf::from(files::relative_path(log.puddle, true)),
                reason: log.reason.clone(),
            }));
    }
}

/// Why something could not be read.
enum Obstacle {
    /// The bytes are not what they must be: the log is invalid.
    Invalid(String),
    /// The system or a newer format stands in the way: nothing can be said, and nothing may be done.
    Fatal(Error),
}

impl From<Error> for Obstacle {
    fn from(error: Error) -> Obstacle {
        match error.kind() {
            ErrorKind::Data => Obstacle::Invalid(error.to_string()),
            _ => match &error {
                // A foreign file in the place of a log is damage; one of another version is not.
                Error::Format { source, .. } if source.fault() == Fault::Foreign => {
                    Obstacle::Invalid(error.to_string())
                }
                _ => Obstacle::Fatal(error),
            },
        }
    }
}

/// Reads everything that the client left and decides. Writes nothing.
///
/// `step` is called after each log with the number done and the number known.
///
/// # Errors
/// Of the system, or a structure of another version: then nothing can be decided, and nothing may be written.
pub(crate) fn plan_client(
    store: &Path,
    contents: &Contents,
    client: Uuid,
    step: &mut dyn FnMut(u64, u64),
) -> Result<ClientPlan> {
    let mut plan = ClientPlan::default();
    let mut home = Home::new(store, contents, client);
    let logs = LogPuddles::read(store, contents, client)?;
    let mut listed = Vec::new();
    let mut unfinished = None;
    for (&space, _) in contents.log_spaces.iter().filter(|(_, of)| **of == client) {
        plan.log_spaces += 1;
        match read_log_space(store, contents, space) {
            Ok(read) => {
                plan.sound.insert(space);
                listed.extend(read.entries().iter().map(|(_, entry)| (space, *entry)));
                if !read.unfinished().is_empty() {
                    unfinished = Some(space);
                }
            }
            Err(Obstacle::Invalid(reason)) => plan.refuse(space, 0, reason),
            Err(Obstacle::Fatal(error)) => return Err(error),
        }
    }
    let total = listed.len() as u64;
    let mut reached = BTreeSet::new();
    let mut parsed = Vec::new();
    for (space, entry) in &listed {
        if logs.at(entry.address) != Some(entry.puddle) {
            let reason = format!(
                "the log space names the puddle {} at {:#x}, which is not a log puddle of this client there",
                entry.puddle, entry.address
            );
            plan.refuse(*space, entry.log_id, reason);
            continue;
        }
        reached.insert(entry.puddle);
        match logs.parse(entry.puddle, Some(entry.log_id)) {
            Ok(log) => {
                let chain: Vec<Uuid> = log.chain().iter().filter_map(|at| logs.at(*at)).collect();
                reached.extend(&chain);
                parsed.push((entry.puddle, chain, log));
            }
            Err(reason) => plan.refuse(entry.puddle, entry.log_id, reason),
        }
    }
    for (done, (head, chain, log)) in (1..).zip(&parsed) {
        let decided = logs
            .check_unreached(log, &reached)
            .map_err(Obstacle::Invalid)
            .and_then(|()| decide(log, &mut home));
        match decided {
            Ok((verdict, writes)) => {
                plan.sound.insert(*head);
                plan.sound.extend(chain);
                plan.verdicts.push(verdict);
                plan.writes.extend(writes);
            }
            Err(Obstacle::Invalid(reason)) => plan.refuse(*head, log.header().log_id, reason),
            Err(Obstacle::Fatal(error)) => return Err(error),
        }
        step(done, total);
    }
    if let Some(space) = unfinished {
        // An entry of the log space is not whole: either a crash tore it while it was written, and then its log was
        // never used, or it is damaged. A log in use that no entry names tells.
        for lost in logs.in_use_but_unlisted(&reached) {
            let reason = format!(
                "the log is in use, but the log space {space} has a damaged entry in its place"
            );
            plan.sound.remove(&space);
            plan.refuse(lost, 0, reason);
        }
    }
    // Puddles that were prepared and never used hold nothing: no registered log space, and no log, names them.
    if plan.invalid.is_empty() {
        let prepared = contents.puddles_of(client);
        plan.sound.extend(prepared.iter().map(|(uuid, _)| *uuid));
    }
    Ok(plan)
}

fn read_log_space(store: &Path, contents: &Contents, space: Uuid) -> Result<LogSpace, Obstacle> {
    let Some(record) = contents.puddles.get(&space) else {
        return Err(Obstacle::Invalid(format!(
            "puddle {space} is not registered"
        )));
    };
    let heap = read_heap(store, space, record)?;
    LogSpace::of(&files::header_of(space, record), &heap).map_err(|source| {
        Error::Format {
            file: files::puddle_path(store, space),
            base: puddle::heap_offset(record.size),
            source: Box::new(source),
            cure: "the log space cannot be read",
        }
        .into()
    })
}

fn read_heap(store: &Path, uuid: Uuid, record: &PuddleRecord) -> Result<Vec<u8>, Obstacle> {
    let file = files::open(store, uuid, record, false)?;
    let offset = puddle::heap_offset(record.size);
    let mut heap = vec![0; puddle::heap_size(record.size) as usize];
    file.read_exact_at(&mut heap, offset)
        .map_err(|source| Error::Io {
            operation: "reading a log",
            path: file.path().to_owned(),
            offset: Some(offset),
            source,
        })?;
    Ok(heap)
}

/// All log puddles of a client, in memory.
struct LogPuddles<'a> {
    store: &'a Path,
    puddles: BTreeMap<Uuid, LogPuddle>,
    addresses: BTreeMap<u64, Uuid>,
}

struct LogPuddle {
    header: PuddleHeader,
    /// The bytes, or why they cannot be had.
    heap: Result<Vec<u8>, String>,
}

impl<'a> LogPuddles<'a> {
    fn read(store: &'a Path, contents: &Contents, client: Uuid) -> Result<LogPuddles<'a>> {
        let mut puddles = BTreeMap::new();
        let mut addresses = BTreeMap::new();
        for (uuid, record) in contents.puddles_of(client) {
            if record.kind != PuddleKind::Log {
                continue;
            }
            let heap = match read_heap(store, uuid, &record) {
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
            if let Err(source) = LogArea::of(&log.header, heap)
                && source.fault() == Fault::OtherVersion
            {
                return Err(self.format_error(*uuid, source));
            }
        }
        Ok(())
    }

    fn format_error(&self, uuid: Uuid, source: durum_format::FormatError) -> Error {
        Error::Format {
            file: files::puddle_path(self.store, uuid),
            base: self
                .puddles
                .get(&uuid)
                .map_or(0, |log| puddle::heap_offset(log.header.size)),
            source: Box::new(source),
            cure: "open the store with a durum that knows this log first",
        }
    }

    fn at(&self, address: u64) -> Option<Uuid> {
        self.addresses.get(&address).copied()
    }

    fn uuids(&self) -> impl Iterator<Item = Uuid> + '_ {
        self.puddles.keys().copied()
    }

    fn area(&self, uuid: Uuid) -> Result<LogArea<'_>, String> {
        let Some(log) = self.puddles.get(&uuid) else {
            return Err(format!("puddle {uuid} is not a log puddle of this client"));
        };
        let heap = log.heap.as_ref().map_err(Clone::clone)?;
        LogArea::of(&log.header, heap).map_err(|error| self.format_error(uuid, error).to_string())
    }

    /// The log that begins in a puddle; the log space knows its id.
    fn parse(&self, head: Uuid, log_id: Option<u64>) -> Result<ParsedLog<'_>, String> {
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
    fn check_unreached(&self, log: &ParsedLog<'_>, reached: &BTreeSet<Uuid>) -> Result<(), String> {
        for uuid in self.uuids().filter(|uuid| !reached.contains(uuid)) {
            if let Ok(area) = self.area(uuid) {
                log.check_unreached(&area)
                    .map_err(|damage| format!("puddle {uuid}: {damage}"))?;
            }
        }
        Ok(())
    }

    /// Heads of logs with entries under way that no log space names.
    fn in_use_but_unlisted(&self, reached: &BTreeSet<Uuid>) -> Vec<Uuid> {
        self.uuids()
            .filter(|uuid| !reached.contains(uuid))
            .filter(|uuid| {
                self.area(*uuid)
                    .is_ok_and(|area| !area.header().is_continuation)
                    && self
                        .parse(*uuid, None)
                        .map_or(true, |log| !log.entries().is_empty())
            })
            .collect()
    }
}

fn decide(log: &ParsedLog<'_>, home: &mut Home<'_>) -> Result<(Verdict, Vec<HomeWrite>), Obstacle> {
    let mut fatal = None;
    let granted = home.granted.clone();
    let plan = log::plan(
        log,
        |address, length| granted.find(address, length).is_some(),
        |address, length, crc| {
            home.sum_up(address, length, crc)
                .map_err(|obstacle| match obstacle {
                    Obstacle::Invalid(reason) => reason,
                    Obstacle::Fatal(error) => {
                        let reason = error.to_string();
                        fatal = Some(error);
                        reason
                    }
                })
        },
    );
    if let Some(error) = fatal {
        return Err(Obstacle::Fatal(error));
    }
    let plan = plan.map_err(|error: PlanError<String>| Obstacle::Invalid(error.to_string()))?;
    let verdict = match &plan {
        Plan::Nothing => Verdict::Nothing,
        Plan::RollBack(_) => Verdict::RollBack,
        Plan::RollForward(_) => Verdict::RollForward,
    };
    let mut writes = Vec::with_capacity(plan.writes().len());
    for write in plan.writes() {
        let (address, length) = write.range();
        let Some((puddle, header)) = granted.find(address, length) else {
            continue; // The plan has checked all of them.
        };
        // The file is opened now, so that nothing is written at all where a home puddle is missing or damaged.
        home.file(puddle)?;
        writes.push(HomeWrite {
            puddle,
            offset: address - header.address,
            kind: match write {
                Write::Copy { data, .. } => WriteKind::Copy(data.to_vec()),
                Write::SetBits { mask, .. } => WriteKind::SetBits(*mask),
                Write::ClearBits { mask, .. } => WriteKind::ClearBits(*mask),
            },
        });
    }
    Ok((verdict, writes))
}

/// The data puddles that a client may write.
#[derive(Clone)]
struct Granted(std::rc::Rc<BTreeMap<u64, PuddleHeader>>);

impl Granted {
    /// The puddle in which the whole range lies, outside of the immutable part of its header.
    fn find(&self, address: u64, length: u64) -> Option<(Uuid, &PuddleHeader)> {
        let (_, header) = self.0.range(..=address).next_back()?;
        header
            .admits(address, length)
            .then_some((header.uuid, header))
    }
}

/// The home locations of a client's data.
struct Home<'a> {
    store: &'a Path,
    contents: &'a Contents,
    granted: Granted,
    files: BTreeMap<Uuid, MediaFile>,
}

impl<'a> Home<'a> {
    fn new(store: &'a Path, contents: &'a Contents, client: Uuid) -> Home<'a> {
        let pools: BTreeSet<Uuid> = contents.granted_pools(client).collect();
        let granted = contents
            .puddles
            .iter()
            .filter(|(_, record)| record.kind == PuddleKind::Data && pools.contains(&record.owner))
            .map(|(uuid, record)| (record.address, files::header_of(*uuid, record)))
            .collect();
        Home {
            store,
            contents,
            granted: Granted(std::rc::Rc::new(granted)),
            files: BTreeMap::new(),
        }
    }

    fn file(&mut self, uuid: Uuid) -> Result<&MediaFile, Obstacle> {
        if !self.files.contains_key(&uuid) {
            let record = self
                .contents
                .puddles
                .get(&uuid)
                .ok_or_else(|| Obstacle::Invalid(format!("puddle {uuid} is not registered")))?;
            let file = files::open(self.store, uuid, record, false)?;
            self.files.insert(uuid, file);
        }
        self.files
            .get(&uuid)
            .ok_or_else(|| Obstacle::Invalid(format!("puddle {uuid} cannot be opened")))
    }

    /// Appends the bytes at a range of addresses to a checksum.
    fn sum_up(&mut self, address: u64, length: u64, crc: &mut Crc) -> Result<(), Obstacle> {
        let granted = self.granted.clone();
        let Some((uuid, header)) = granted.find(address, length) else {
            return Err(Obstacle::Invalid(
                "they do not lie in one data puddle that the client may write".to_owned(),
            ));
        };
        let file = self.file(uuid)?;
        let mut offset = address - header.address;
        let end = offset + length;
        let mut buffer = vec![0; CHUNK_BYTES.min(length as usize)];
        while offset < end {
            let part = &mut buffer[..(end - offset).min(CHUNK_BYTES as u64) as usize];
            file.read_exact_at(part, offset)
                .map_err(|source| Error::Io {
                    operation: "reading a puddle",
                    path: file.path().to_owned(),
                    offset: Some(offset),
                    source,
                })?;
            crc.update(part);
            offset += part.len() as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_overlaid_where_they_meet_the_bytes_at_hand() {
        let puddle = Uuid([1; 16]);
        let copy = HomeWrite {
            puddle,
            offset: 10,
            kind: WriteKind::Copy(vec![1, 2, 3, 4]),
        };
        let set = HomeWrite {
            puddle,
            offset: 16,
            kind: WriteKind::SetBits(0x8100_0000_0000_00f0),
        };
        let clear = HomeWrite {
            puddle,
            offset: 16,
            kind: WriteKind::ClearBits(0x0100_0000_0000_0030),
        };
        let mut whole = vec![0_u8; 32];
        for write in [&copy, &set, &clear] {
            write.apply_to(0, &mut whole);
        }
        let mut expected = vec![0_u8; 32];
        expected[10..14].copy_from_slice(&[1, 2, 3, 4]);
        expected[16] = 0xc0;
        expected[23] = 0x80;
        assert_eq!(whole, expected);
        for start in 0..32 {
            for end in start..32 {
                let mut part = vec![0_u8; end - start];
                for write in [&copy, &set, &clear] {
                    write.apply_to(start as u64, &mut part);
                }
                assert_eq!(part, expected[start..end], "{start}..{end}");
            }
        }
    }
}
