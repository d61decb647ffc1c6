//! Decides what recovery does for a client: reads its log spaces, logs and records, and writes nothing.

use std::collections::BTreeSet;

use durum_format::Uuid;
use durum_format::home::Verdict;
use durum_format::log::{self, ParsedLog, Plan, PlanError, Write};
use durum_format::log_space::{self, LogSpace, LogSpaceEntry};
use durum_format::puddle;

use super::home::{Access, Home, Place};
use super::logs::{LogPuddles, Unreached, check_unreached, read_space};
use super::obstacle::{Obstacle, Why};
use super::plan::{ClientPlan, Outcome};
use super::records;
use super::sections;
use super::twin;
use super::write::{HomeWrite, WriteKind};
use crate::error::{Error, Result};
use crate::files::{self, Puddles};
use crate::registry::contents::Contents;

/// Reads everything that the client left and decides, once and over all of its pools. Writes nothing.
///
/// A pool of which a file cannot be had is refused: nothing is planned for it, and its part stays in the logs. So is
/// one that is changed by a transaction of which only such a file can tell whether it committed.
///
/// `step` is called after each log with the number done and the number known.
///
/// # Errors
/// Of the system: then nothing can be decided, and nothing may be written.
pub(crate) fn plan_client(
    puddles: &Puddles,
    contents: &Contents,
    client: Uuid,
    access: Access,
    step: &mut dyn FnMut(u64, u64),
) -> Result<ClientPlan> {
    let mut plan = ClientPlan::default();
    let listed = read_log_spaces(puddles, contents, client, access, &mut plan)?;
    // Puddles that were prepared are no logs until a log space names them. One that is damaged may have named any.
    let are_all_named = listed.unfinished.is_none() && plan.invalid.is_empty();
    let logs = match listed.logs.is_empty() && are_all_named {
        true => LogPuddles::none(puddles),
        false => {
            let named = listed.logs.iter().map(|(_, entry)| entry.puddle).collect();
            LogPuddles::read(puddles, contents, client, access, &named, are_all_named)?
        }
    };
    let is_again = contents.kept.contains_key(&client);
    let read = read_logs(&logs, contents, &listed.logs, is_again, &mut plan);
    let unreached = logs.unreached(&read.reached);
    let mut home = Home::new(puddles, contents, client, access);
    plan.verdicts.extend(home.known());
    records::plan_records(puddles, contents, client, &mut home, &mut plan)?;
    let total = listed.logs.len() as u64;
    for (done, log) in (1..).zip(&read.logs) {
        decide_log(log, &logs, &unreached, &mut home, &mut plan)?;
        step(done, total);
    }
    let of_sections = sections::recorded(puddles, contents, client, &home)?;
    plan.writes.extend(of_sections.writes);
    plan.sound.extend(of_sections.puddles);
    plan.interrupted = of_sections.interrupted;
    plan.settle(contents, client, &mut home)?;
    plan.replays_logs = !plan.writes.is_empty();
    twin::plan_twins(puddles, contents, client, access, &mut home, &mut plan)?;
    plan.is_as_before = contents.kept.contains_key(&client)
        && contents
            .granted_pools(client)
            .all(|pool| plan.refused.contains_key(&pool));
    if let Some(space) = listed.unfinished {
        // An entry of the log space is not whole: either a crash tore it while it was written, and then its log was
        // never used, or it is damaged. A log in use that no entry names tells.
        for lost in logs.in_use_but_unlisted(&unreached) {
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
    puddles: &Puddles,
    contents: &Contents,
    client: Uuid,
    access: Access,
    plan: &mut ClientPlan,
) -> Result<Listed> {
    let mut listed = Listed::default();
    let own = contents
        .puddles_of(client)
        .into_iter()
        .map(|(uuid, _)| uuid);
    for space in own.filter(|uuid| contents.log_spaces.contains_key(uuid)) {
        plan.log_spaces += 1;
        match read_log_space(puddles, contents, space, access) {
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
    let (mut heads, mut ids) = (BTreeSet::new(), BTreeSet::new());
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
        // Each log is parsed once: a line of the log space must not make another copy of it, nor a second log share the
        // puddles of the first.
        if !heads.insert(entry.puddle) || !ids.insert(entry.log_id) {
            let reason = format!(
                "the log space names log {:#x} in puddle {}, but has named one of them before",
                entry.log_id, entry.puddle
            );
            plan.quarantine(*space, entry.log_id, reason);
            continue;
        }
        reached.insert(entry.puddle);
        match puddles.parse(entry.puddle, entry.log_id) {
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
    read: &ReadLog<'_>,
    logs: &LogPuddles<'_>,
    unreached: &Unreached<'_>,
    home: &mut Home<'_>,
    plan: &mut ClientPlan,
) -> Result<()> {
    let decided = check_unreached(&read.log, unreached)
        .map_err(Obstacle::Invalid)
        .and_then(|()| decide(read, logs, home, plan));
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
    puddles: &Puddles,
    contents: &Contents,
    space: Uuid,
    access: Access,
) -> Result<LogSpace, Obstacle> {
    let Some(record) = contents.puddles.get(&space) else {
        return Err(Obstacle::Invalid(format!(
            "puddle {space} is not registered"
        )));
    };
    let heap = read_space(puddles, space, record, access)?;
    // Behind what was written all entries are free.
    let used = heap.written().len().max(log_space::ENTRY_SIZE);
    let used = heap.bytes().get(..used).unwrap_or(heap.bytes());
    LogSpace::of(&files::header_of(space, record), used).map_err(|source| {
        let (file, base) = (
            files::puddle_path(puddles.store(), space),
            puddle::heap_offset(record.size),
        );
        let cure = "the log space cannot be read";
        Obstacle::of_log(Error::format(&file, base, source, cure))
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
    logs: &LogPuddles<'_>,
    home: &mut Home<'_>,
    plan: &mut ClientPlan,
) -> Result<Decision, Obstacle> {
    let log = &read.log;
    let Some(sealed) = is_sealed(read, home, plan)? else {
        // It writes what a sealed log says, or what one says that is not: it concerns the pools of both.
        let (_, mut writes) = writes_of(log, logs, false, home)?;
        writes.extend(writes_of(log, logs, true, home)?.1);
        return Ok(Decision {
            outcome: None,
            writes,
        });
    };
    let (outcome, writes) = writes_of(log, logs, sealed, home)?;
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
    let sealed = log::sealed(&read.log, |address, length, crc| {
        home.sum_up(address, length, crc).map_err(Why)
    })
    .map_err(|error| match error {
        PlanError::Contents {
            source: Why(Obstacle::Fatal(error)),
            ..
        } => Obstacle::Fatal(error),
        error => Obstacle::Invalid(error.to_string()),
    })?;
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
    logs: &LogPuddles<'_>,
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
                Write::Copy { data, .. } => WriteKind::Copy(logs.shared(data)),
                Write::SetBits { mask, .. } => WriteKind::bits(*mask, 0),
                Write::ClearBits { mask, .. } => WriteKind::bits(0, *mask),
            },
        };
        writes.push((header.owner, write));
    }
    Ok((outcome, writes))
}
