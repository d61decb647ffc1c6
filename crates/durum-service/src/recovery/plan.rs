//! What recovery has to do for a client: reads its log spaces and logs, and writes nothing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use durum_format::log::{self, ParsedLog, Plan, PlanError, Write};
use durum_format::log_space::{self, LogSpace, LogSpaceEntry};
use durum_format::puddle;
use durum_format::{Fault, Uuid};

use super::home::Home;
use super::logs::LogPuddles;
use super::records;
use super::twin;
use super::write::{HomeWrite, WriteKind};
use crate::error::{Error, ErrorKind, Result};
use crate::files;
use crate::model::{QuarantineNote, RecoveryReport};
use crate::registry::contents::Contents;

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
    /// How many puddles of redo records were read.
    pub(crate) rings: u64,
    /// How many transactions of redo records are completed.
    pub(crate) redone: u64,
    /// The verdict on each valid log.
    pub(crate) verdicts: Vec<Verdict>,
    /// The writes of all valid logs, in the order in which they must be applied.
    pub(crate) writes: Vec<HomeWrite>,
    /// Some of them come from logs. Those to Twin pools do not.
    pub(crate) replays_logs: bool,
    /// Data puddles with bytes that no write brings again: they went home with a record.
    pub(crate) relied_on: BTreeSet<Uuid>,
    /// Writes that follow when all others are durable, and need not be.
    pub(crate) endings: Vec<HomeWrite>,
    /// What happens to each Twin pool of which one copy is not whole.
    pub(crate) twins: Vec<Verdict>,
    /// The logs that must not be replayed.
    pub(crate) invalid: Vec<InvalidLog>,
    /// Log and log space puddles that a valid log or log space is made of: they may go when the writes are durable.
    pub(crate) sound: BTreeSet<Uuid>,
}

impl ClientPlan {
    /// Notes that a log must not be replayed. The first reason for a puddle stands.
    pub(super) fn refuse(&mut self, puddle: Uuid, log_id: u64, reason: String) {
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
            let all = plan.verdicts.iter().chain(&plan.twins);
            let matching = all.filter(|found| **found == verdict);
            matching.count() as u64
        };
        self.log_spaces += plan.log_spaces;
        self.logs += (plan.verdicts.len() + plan.invalid.len()) as u64 + plan.rings;
        self.rolled_back += verdicts(Verdict::RollBack);
        self.rolled_forward += verdicts(Verdict::RollForward) + plan.redone;
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
pub(super) enum Obstacle {
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
    let listed = read_log_spaces(store, contents, client, &mut plan)?;
    // Puddles that were prepared are no logs until a log space names them. One that is damaged may have named any.
    let names_none = listed.logs.is_empty() && listed.unfinished.is_none();
    let logs = match names_none && plan.invalid.is_empty() {
        true => LogPuddles::none(store),
        false => LogPuddles::read(store, contents, client)?,
    };
    let read = read_logs(&logs, &listed.logs, &mut plan);
    let mut home = Home::new(store, contents, client);
    records::plan_records(store, contents, client, &mut home, &mut plan)?;
    let total = listed.logs.len() as u64;
    for (done, log) in (1..).zip(&read.logs) {
        decide_log(&logs, log, &read.reached, &mut home, &mut plan)?;
        step(done, total);
    }
    plan.replays_logs = !plan.writes.is_empty();
    twin::plan_twins(store, contents, client, &mut plan)?;
    if let Some(space) = listed.unfinished {
        // An entry of the log space is not whole: either a crash tore it while it was written, and then its log was
        // never used, or it is damaged. A log in use that no entry names tells.
        for lost in logs.in_use_but_unlisted(&read.reached) {
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

/// What the log spaces of a client name.
#[derive(Default)]
struct Listed {
    /// Log space and entry.
    logs: Vec<(Uuid, LogSpaceEntry)>,
    /// A log space with an entry that is not whole.
    unfinished: Option<Uuid>,
}

fn read_log_spaces(
    store: &Path,
    contents: &Contents,
    client: Uuid,
    plan: &mut ClientPlan,
) -> Result<Listed> {
    let mut listed = Listed::default();
    for (&space, _) in contents.log_spaces.iter().filter(|(_, of)| **of == client) {
        plan.log_spaces += 1;
        match read_log_space(store, contents, space) {
            Ok(read) => {
                plan.sound.insert(space);
                let entries = read.entries().iter();
                listed
                    .logs
                    .extend(entries.map(|(_, entry)| (space, *entry)));
                if !read.unfinished().is_empty() {
                    listed.unfinished = Some(space);
                }
            }
            Err(Obstacle::Invalid(reason)) => plan.refuse(space, 0, reason),
            Err(Obstacle::Fatal(error)) => return Err(error),
        }
    }
    Ok(listed)
}

/// A log that could be read.
struct ReadLog<'a> {
    head: Uuid,
    chain: Vec<Uuid>,
    log: ParsedLog<'a>,
}

struct ReadLogs<'a> {
    logs: Vec<ReadLog<'a>>,
    /// The puddles that log spaces and chains lead to.
    reached: BTreeSet<Uuid>,
}

fn read_logs<'a>(
    puddles: &'a LogPuddles<'_>,
    listed: &[(Uuid, LogSpaceEntry)],
    plan: &mut ClientPlan,
) -> ReadLogs<'a> {
    let mut logs = Vec::new();
    let mut reached = BTreeSet::new();
    for (space, entry) in listed {
        if puddles.at(entry.address) != Some(entry.puddle) {
            let reason = format!(
                "the log space names the puddle {} at {:#x}, which is not a log puddle of this client there",
                entry.puddle, entry.address
            );
            plan.refuse(*space, entry.log_id, reason);
            continue;
        }
        reached.insert(entry.puddle);
        match puddles.parse(entry.puddle, Some(entry.log_id)) {
            Ok(log) => {
                let chain = log.chain().iter().filter_map(|at| puddles.at(*at));
                let chain: Vec<Uuid> = chain.collect();
                reached.extend(&chain);
                logs.push(ReadLog {
                    head: entry.puddle,
                    chain,
                    log,
                });
            }
            Err(reason) => plan.refuse(entry.puddle, entry.log_id, reason),
        }
    }
    ReadLogs { logs, reached }
}

fn decide_log(
    puddles: &LogPuddles<'_>,
    read: &ReadLog<'_>,
    reached: &BTreeSet<Uuid>,
    home: &mut Home<'_>,
    plan: &mut ClientPlan,
) -> Result<()> {
    let decided = puddles
        .check_unreached(&read.log, reached)
        .map_err(Obstacle::Invalid)
        .and_then(|()| decide(&read.log, home));
    match decided {
        Ok((verdict, writes)) => {
            plan.sound.insert(read.head);
            plan.sound.extend(&read.chain);
            plan.verdicts.push(verdict);
            plan.writes.extend(writes);
        }
        Err(Obstacle::Invalid(reason)) => {
            plan.refuse(read.head, read.log.header().log_id, reason);
        }
        Err(Obstacle::Fatal(error)) => return Err(error),
    }
    Ok(())
}

fn read_log_space(store: &Path, contents: &Contents, space: Uuid) -> Result<LogSpace, Obstacle> {
    let Some(record) = contents.puddles.get(&space) else {
        return Err(Obstacle::Invalid(format!(
            "puddle {space} is not registered"
        )));
    };
    let file = files::open(store, space, record, false)?;
    let offset = puddle::heap_offset(record.size);
    let (heap, used) = files::read_sparse(&file, offset, puddle::heap_size(record.size))?;
    // Behind what was written all entries are free.
    let used = heap.get(..used.max(log_space::ENTRY_SIZE)).unwrap_or(&heap);
    LogSpace::of(&files::header_of(space, record), used).map_err(|source| {
        Error::Format {
            file: files::puddle_path(store, space),
            base: puddle::heap_offset(record.size),
            source: Box::new(source),
            cure: "the log space cannot be read",
        }
        .into()
    })
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
                Write::SetBits { mask, .. } => WriteKind::Bits {
                    set: *mask,
                    clear: 0,
                },
                Write::ClearBits { mask, .. } => WriteKind::Bits {
                    set: 0,
                    clear: *mask,
                },
            },
        });
    }
    Ok((verdict, writes))
}
