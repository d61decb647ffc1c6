//! What recovery has to do for a client: reads its log spaces and logs, and writes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use durum_format::Uuid;
use durum_format::home::Verdict;
use durum_format::log::{self, ParsedLog, Plan, PlanError, Write};
use durum_format::log_space::{self, LogSpace, LogSpaceEntry};
use durum_format::puddle;

use super::home::{Access, Home, Place};
use super::logs::{LogPuddles, Written, read_heap};
use super::obstacle::Obstacle;
use super::records;
use super::refused::{Part, Refusal, Touched, bytes_by_pool};
use super::twin;
use super::write::{HomeWrite, WriteKind};
use crate::error::{Error, Result};
use crate::files;
use crate::model::{QuarantineNote, RecoveryReport};
use crate::registry::contents::{Contents, Kept};

/// What happens to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
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
    /// The transactions of redo records, by the pools that they change.
    pub(super) redone: Touched,
    /// How many valid logs ask for nothing.
    idle: u64,
    /// How many cannot be decided now.
    unsettled: u64,
    /// The logs whose transaction is undone, and those whose transaction is completed, by the pools that they change.
    rolled_back: Touched,
    rolled_forward: Touched,
    /// Transactions of which nobody can say whether they committed before a file is back, by the pools that they may
    /// change.
    pub(super) undecided: Touched,
    /// What only home could tell, now and when other parts were recovered.
    pub(super) verdicts: Vec<Verdict>,
    /// Pools that must not be written now: their part stays in the logs.
    pub(crate) refused: BTreeMap<Uuid, Refusal>,
    /// What has to be known when the rest is recovered.
    pub(crate) kept: Kept,
    /// A part was recovered before, and nothing more is recovered now.
    is_as_before: bool,
    /// The writes of all valid logs, in the order in which they must be applied.
    pub(crate) writes: Vec<HomeWrite>,
    /// Some of them come from logs. Those to Twin pools do not.
    pub(crate) replays_logs: bool,
    /// Data puddles with bytes that no write brings again: they went home with a record.
    pub(crate) relied_on: BTreeSet<Uuid>,
    /// Writes that follow when all others are durable, and need not be.
    pub(crate) endings: Vec<HomeWrite>,
    /// What happens to each Twin pool of which one copy is not whole.
    pub(crate) twins: Vec<Outcome>,
    /// The logs that must not be replayed.
    pub(crate) invalid: Vec<InvalidLog>,
    /// Puddles of logs and log spaces that were read and found valid: the writes come from them. They may go when those
    /// are durable.
    pub(crate) sound: BTreeSet<Uuid>,
}

impl ClientPlan {
    /// Sets apart what is for pools that cannot be written now.
    fn settle(&mut self, contents: &Contents, client: Uuid, home: &mut Home<'_>) -> Result<()> {
        let mut touched = self.undecided.pools();
        let relied_on = self.relied_on.iter();
        let written = self.writes.iter().map(|write| &write.puddle);
        for puddle in relied_on.chain(written) {
            touched.extend(contents.puddles.get(puddle).map(|record| record.owner));
        }
        for pool in touched {
            home.ensure_whole(pool)?;
        }
        for (pool, error) in home.refused() {
            self.refused.insert(*pool, Refusal::of(error));
        }
        if let Some(cause) = Refusal::waiting_for(&self.refused) {
            for pool in self.undecided.pools() {
                self.refused.entry(pool).or_insert_with(|| cause.clone());
            }
        }
        self.kept = Kept {
            granted: home.ranges_of_then(),
            verdicts: std::mem::take(&mut self.verdicts),
        };
        let pools: Vec<Uuid> = self.refused.keys().copied().collect();
        self.set_apart(contents, &pools);
        debug_assert!(
            self.refused
                .keys()
                .all(|pool| contents.grants.contains(&(client, *pool))),
            "what is not granted is not asked for"
        );
        Ok(())
    }

    /// Leaves out what is for these pools, which are refused, and counts it.
    pub(crate) fn set_apart(&mut self, contents: &Contents, pools: &[Uuid]) {
        let parts = self.parts(contents, pools);
        for (pool, part) in parts {
            if let Some(refusal) = self.refused.get_mut(&pool) {
                refusal.part = part;
            }
        }
        let is_written = |puddle: &Uuid| {
            let record = contents.puddles.get(puddle);
            record.is_none_or(|record| !pools.contains(&record.owner))
        };
        self.writes.retain(|write| is_written(&write.puddle));
        self.endings.retain(|write| is_written(&write.puddle));
        self.relied_on.retain(is_written);
    }

    /// What there is for each of these pools.
    pub(crate) fn parts(&self, contents: &Contents, pools: &[Uuid]) -> BTreeMap<Uuid, Part> {
        let bytes = bytes_by_pool(contents, &self.writes);
        let part = |pool: &Uuid| Part {
            transactions: [&self.redone, &self.rolled_back, &self.rolled_forward]
                .map(|touched| touched.of(*pool))
                .iter()
                .sum(),
            bytes: bytes.get(pool).copied().unwrap_or_default(),
            undecided: self.undecided.of(*pool),
        };
        pools.iter().map(|pool| (*pool, part(pool))).collect()
    }

    /// Notes that a log must not be replayed. The first reason for a puddle stands.
    pub(super) fn quarantine(&mut self, puddle: Uuid, log_id: u64, reason: String) {
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
        if plan.is_as_before {
            return;
        }
        let of_twins = |outcome| {
            let matching = plan.twins.iter().filter(|found| **found == outcome);
            matching.count() as u64
        };
        let done = |touched: &Touched| touched.outside(&plan.refused);
        self.log_spaces += plan.log_spaces;
        self.logs += plan.idle + plan.invalid.len() as u64 + plan.rings;
        self.logs += plan.rolled_back.all() + plan.rolled_forward.all() + plan.unsettled;
        self.rolled_back += of_twins(Outcome::RollBack) + done(&plan.rolled_back);
        self.rolled_forward +=
            of_twins(Outcome::RollForward) + done(&plan.rolled_forward) + done(&plan.redone);
        self.entries += plan.writes.len() as u64;
        self.bytes += plan.writes.iter().map(HomeWrite::length).sum::<u64>();
        self.quarantined
            .extend(plan.invalid.iter().map(|log| QuarantineNote {
                log: PathBuf::from(files::relative_path(log.puddle, true)),
                reason: log.reason.clone(),
            }));
    }
}

/// Reads everything that the client left and decides, once and over all of its pools. Writes nothing.
///
/// A pool of which a file cannot be had is refused: nothing is planned for it, and its part stays in the logs. So is
/// one that is changed by a transaction of which only such a file can tell whether it committed.
///
/// `step` is called after each log with the number done and the number known.
///
/// # Errors
/// Of the system, or a log of another version: then nothing can be decided, and nothing may be written.
pub(crate) fn plan_client(
    store: &Path,
    contents: &Contents,
    client: Uuid,
    access: Access,
    step: &mut dyn FnMut(u64, u64),
) -> Result<ClientPlan> {
    let mut plan = ClientPlan::default();
    let listed = read_log_spaces(store, contents, client, access, &mut plan)?;
    // Puddles that were prepared are no logs until a log space names them. One that is damaged may have named any.
    let names_none = listed.logs.is_empty() && listed.unfinished.is_none();
    let logs = match names_none && plan.invalid.is_empty() {
        true => LogPuddles::none(store),
        false => LogPuddles::read(store, contents, client, access)?,
    };
    let is_again = contents.kept.contains_key(&client);
    let read = read_logs(&logs, contents, &listed.logs, is_again, &mut plan);
    let mut home = Home::new(store, contents, client, access);
    plan.verdicts.extend(home.known());
    records::plan_records(store, contents, client, &mut home, &mut plan)?;
    let total = listed.logs.len() as u64;
    for (done, log) in (1..).zip(&read.logs) {
        decide_log(&logs, log, &read.reached, &mut home, &mut plan)?;
        step(done, total);
    }
    plan.settle(contents, client, &mut home)?;
    plan.replays_logs = !plan.writes.is_empty();
    twin::plan_twins(store, contents, client, access, &mut home, &mut plan)?;
    plan.is_as_before = contents.kept.contains_key(&client)
        && contents
            .granted_pools(client)
            .all(|pool| plan.refused.contains_key(&pool));
    if let Some(space) = listed.unfinished {
        // An entry of the log space is not whole: either a crash tore it while it was written, and then its log was
        // never used, or it is damaged. A log in use that no entry names tells.
        for lost in logs.in_use_but_unlisted(&read.reached) {
            let reason = format!(
                "the log is in use, but the log space {space} has a damaged entry in its place"
            );
            plan.sound.remove(&space);
            plan.quarantine(lost, 0, reason);
        }
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
    access: Access,
    plan: &mut ClientPlan,
) -> Result<Listed> {
    let mut listed = Listed::default();
    for (&space, _) in contents.log_spaces.iter().filter(|(_, of)| **of == client) {
        plan.log_spaces += 1;
        match read_log_space(store, contents, space, access) {
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
            Err(Obstacle::Invalid(reason)) => plan.quarantine(space, 0, reason),
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
    contents: &Contents,
    listed: &[(Uuid, LogSpaceEntry)],
    is_again: bool,
    plan: &mut ClientPlan,
) -> ReadLogs<'a> {
    let mut logs = Vec::new();
    let mut reached = BTreeSet::new();
    for (space, entry) in listed {
        // Where a part was recovered before, the log space stays. It names the logs that were quarantined then, and
        // those that were replayed, or accepted as they are, and went.
        let went = is_again && !contents.puddles.contains_key(&entry.puddle);
        if went || contents.is_quarantined_file(entry.puddle) {
            continue;
        }
        if puddles.at(entry.address) != Some(entry.puddle) {
            let reason = format!(
                "the log space names the puddle {} at {:#x}, which is not a log puddle of this client there",
                entry.puddle, entry.address
            );
            plan.quarantine(*space, entry.log_id, reason);
            continue;
        }
        reached.insert(entry.puddle);
        match puddles.parse(entry.puddle, Some(entry.log_id)) {
            Ok(log) => {
                let chain = log.chain.iter().filter_map(|at| puddles.at(*at));
                let chain: Vec<Uuid> = chain.collect();
                reached.extend(&chain);
                logs.push(ReadLog {
                    head: entry.puddle,
                    chain,
                    log,
                });
            }
            Err(reason) => plan.quarantine(entry.puddle, entry.log_id, reason),
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
        .and_then(|()| decide(read, home, plan));
    match decided {
        Ok(Decision { outcome, writes }) => {
            plan.sound.insert(read.head);
            plan.sound.extend(&read.chain);
            let pools: BTreeSet<Uuid> = writes.iter().map(|(pool, _)| *pool).collect();
            match outcome {
                Some(_) if pools.is_empty() => plan.idle += 1,
                Some(Outcome::RollBack) => plan.rolled_back.add(pools),
                Some(Outcome::RollForward) => plan.rolled_forward.add(pools),
                None => {
                    plan.unsettled += 1;
                    plan.undecided.add(pools);
                    return Ok(());
                }
            }
            plan.writes
                .extend(writes.into_iter().map(|(_, write)| write));
        }
        Err(Obstacle::Invalid(reason)) => {
            plan.quarantine(read.head, read.log.header.log_id, reason);
        }
        Err(Obstacle::Fatal(error)) => return Err(error),
    }
    Ok(())
}

fn read_log_space(
    store: &Path,
    contents: &Contents,
    space: Uuid,
    access: Access,
) -> Result<LogSpace, Obstacle> {
    let Some(record) = contents.puddles.get(&space) else {
        return Err(Obstacle::Invalid(format!(
            "puddle {space} is not registered"
        )));
    };
    let Written(heap, used) = read_heap(store, space, record, access)?;
    // Behind what was written all entries are free.
    let used = heap.get(..used.max(log_space::ENTRY_SIZE)).unwrap_or(&heap);
    LogSpace::of(&files::header_of(space, record), used).map_err(|source| {
        Obstacle::of_log(Error::Format {
            file: files::puddle_path(store, space),
            base: puddle::heap_offset(record.size),
            source: Box::new(source),
            cure: "the log space cannot be read".into(),
        })
    })
}

struct Decision {
    /// `None` where nobody can say now whether the transaction committed; then the writes tell what it may concern.
    outcome: Option<Outcome>,
    /// With the pools that they change.
    writes: Vec<(Uuid, HomeWrite)>,
}

fn decide(
    read: &ReadLog<'_>,
    home: &mut Home<'_>,
    plan: &mut ClientPlan,
) -> Result<Decision, Obstacle> {
    let log = &read.log;
    let Some(sealed) = is_sealed(read, home, plan)? else {
        // It writes what a sealed log says, or what one says that is not: it concerns the pools of both.
        let mut writes = Vec::new();
        for sealed in [false, true] {
            writes.extend(writes_of(log, sealed, home)?.1);
        }
        return Ok(Decision {
            outcome: None,
            writes,
        });
    };
    let (outcome, writes) = writes_of(log, sealed, home)?;
    Ok(Decision {
        outcome: Some(outcome),
        writes,
    })
}

/// Whether the seal of a log holds; `None` where that cannot be said now.
fn is_sealed(
    read: &ReadLog<'_>,
    home: &mut Home<'_>,
    plan: &mut ClientPlan,
) -> Result<Option<bool>, Obstacle> {
    if read.log.seal.is_none() {
        return Ok(Some(false));
    }
    let stamp = read.log.range.generation;
    let mut known = home.known().iter();
    if let Some(known) = known.find(|known| (known.puddle, known.stamp) == (read.head, stamp)) {
        return Ok(Some(known.counts));
    }
    let mut fatal = None;
    let sealed = log::sealed(&read.log, |address, length, crc| {
        home.sum_up(address, length, crc)
            .map_err(|obstacle| match obstacle {
                Obstacle::Invalid(reason) => reason,
                Obstacle::Fatal(error) => {
                    let reason = error.to_string();
                    fatal = Some(error);
                    reason
                }
            })
    });
    if let Some(error) = fatal {
        return Err(Obstacle::Fatal(error));
    }
    let sealed = sealed.map_err(|error: PlanError<String>| Obstacle::Invalid(error.to_string()))?;
    if let Some(counts) = sealed {
        plan.verdicts.push(Verdict {
            puddle: read.head,
            stamp,
            counts,
        });
    }
    Ok(sealed)
}

fn writes_of(
    log: &ParsedLog<'_>,
    sealed: bool,
    home: &Home<'_>,
) -> Result<(Outcome, Vec<(Uuid, HomeWrite)>), Obstacle> {
    let granted = |address, length| !matches!(home.place(address, length), Place::Elsewhere);
    let plan = log::plan(log, sealed, granted)
        .map_err(|error: PlanError<String>| Obstacle::Invalid(error.to_string()))?;
    let outcome = match &plan {
        Plan::RollForward(_) => Outcome::RollForward,
        Plan::RollBack(_) | Plan::Nothing => Outcome::RollBack,
    };
    let mut writes = Vec::with_capacity(plan.writes().len());
    for write in plan.writes() {
        let (address, length) = write.range();
        let Place::Granted(puddle, header) = home.place(address, length) else {
            continue; // The plan has checked all of them: its part is done, or was given up.
        };
        let write = HomeWrite {
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
        };
        writes.push((header.owner, write));
    }
    Ok((outcome, writes))
}
