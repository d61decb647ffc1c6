//! `durum recover`: what any opener does first, with a report.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use durum_runner::Limits;
use durum_service::{
    Embedded, InterruptedClient, OpenOptions, ReadOnlyStore, RecoveryReport, RefusedPool, Service,
    UsedElsewhere,
};
use serde_json::{Value, json};

use super::complete::{self, Completed};
use crate::args::Recover;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::{self, count, list, millis, size, time};
use crate::place::Place;
use crate::progress;

pub(crate) fn run(options: &Recover, out: &mut dyn Write) -> Result<(), Failure> {
    let place = Place::of(&options.store);
    let seen = look(&place)?;
    let damage = seen.as_ref().and_then(damaged_puddle);
    let is_clean = seen.as_ref().is_some_and(ReadOnlyStore::is_clean);
    let decisions = [
        &options.accept_quarantined,
        &options.give_up,
        &options.retry,
        &options.abandon_sections,
    ];
    let is_decided = decisions.iter().any(|decision| decision.is_some())
        || options.complete_with.is_some()
        || options.complete_sections;
    if is_clean
        && !is_decided
        && let Some(damage) = damage
    {
        // Nothing is to be recovered, so nothing is written.
        return Err(damage.into());
    }
    drop(seen);
    recover(options, &place, out)?;
    damage.map_or(Ok(()), |damage| Err(damage.into()))
}

/// The store as it is; `None` where only an opener, or its service, can tell what is the matter.
fn look(place: &Place) -> Result<Option<ReadOnlyStore>, Failure> {
    let Place::Directory(path) = place else {
        return Ok(None);
    };
    match ReadOnlyStore::open(path) {
        Ok(store) => Ok(Some(store)),
        Err(error @ durum_service::Error::StoreMissing { .. }) => Err(error.into()),
        Err(_) => Ok(None),
    }
}

/// The error of the first data puddle that cannot be used. Recovery does not look at those that no log names.
fn damaged_puddle(store: &ReadOnlyStore) -> Option<durum_service::Error> {
    let data = store
        .puddles()
        .into_iter()
        .filter(|puddle| puddle.kind.holds_objects());
    data.filter_map(|puddle| store.puddle(puddle.uuid).err())
        // Recovery itself tells of these. Who still writes may be gone by then: code whose opener was just killed.
        .find(|error| {
            use durum_service::Error::{PoolRefused, StoreBusy, StoreMoving};
            !matches!(
                error,
                PoolRefused { .. } | StoreMoving { .. } | StoreBusy { .. }
            )
        })
}

fn recover(options: &Recover, place: &Place, out: &mut dyn Write) -> Result<(), Failure> {
    let open = OpenOptions {
        progress: Some(progress::stages()),
        ..OpenOptions::default()
    };
    let (store, completed) = match options.complete_with.is_some() || options.complete_sections {
        false => (place.open(open)?, Completed::default()),
        true => open_and_complete(place, open, options)?,
    };
    // Of a service what it did at its start.
    let mut report = store.recovery()?;
    let done = carry_out(options, &*store, &mut report)
        .and_then(|lost| Ok((lost, finish_moving(options, &*store)?)));
    let (lost, rewritten) = match done {
        Ok(done) => done,
        Err(error) => {
            store.close()?;
            return Err(error);
        }
    };
    report.refused = store.refused_pools()?;
    report.interrupted = store.interrupted()?;
    let pools = store.pools()?;
    store.close()?;
    let quarantined: Vec<&str> = pools
        .iter()
        .filter(|pool| pool.quarantine.is_some())
        .map(|pool| pool.name.as_str())
        .collect();
    if options.json {
        let mut value = to_json(&report);
        value["accepted"] = json!(options.accept_quarantined);
        value["given_up"] = json!(options.give_up);
        value["abandoned"] = json!(options.abandon_sections);
        value["completed"] = json!(
            completed
                .clients
                .iter()
                .map(interrupted_to_json)
                .collect::<Vec<_>>()
        );
        value["lost"] = json!(lost.as_ref().map(part_to_json));
        value["pools_in_quarantine"] = json!(quarantined);
        value["rewritten"] = json!(rewritten);
        output::json(out, &value)?;
    } else {
        print(&report, out)?;
        for client in &completed.clients {
            writeln!(out, "{}", complete::told(client))?;
        }
        if rewritten > 0 {
            writeln!(
                out,
                "moved  pointers were rewritten in {}: everything is where the registry says",
                count(rewritten, "puddle")
            )?;
        }
        if let Some(pool) = &options.accept_quarantined {
            writeln!(out, "pool \"{pool}\" may be opened again, as it is")?;
        }
        if let Some(pool) = &options.abandon_sections {
            writeln!(
                out,
                "pool \"{pool}\" may be opened again, as it is: what sections have changed in it stays half done"
            )?;
        }
        if let Some(pool) = &lost {
            writeln!(
                out,
                "what was kept for pool \"{}\" is dropped, and lost in it for ever: {}",
                pool.name,
                part(pool)
            )?;
        }
    }
    match completed.failures.is_empty() {
        true => outcome(place.path(), &report, &quarantined),
        false => Err(Failure::Damaged(completed.failures.join("; "))),
    }
}

/// Opens a store, and has code complete what was interrupted in it.
fn open_and_complete(
    place: &Place,
    open: OpenOptions,
    options: &Recover,
) -> Result<(Arc<dyn Service>, Completed), Failure> {
    let store = Embedded::open(place.directory("have a person complete sections")?, open)?;
    let limits = Limits::set(&options.code_limits);
    match complete::all(&store, options.complete_with.as_deref(), &limits) {
        Ok(completed) => Ok((Arc::new(store), completed)),
        Err(error) => {
            store.close()?;
            Err(error)
        }
    }
}

/// Rewrites what a move of the store to other addresses has left. Tells how many puddles.
fn finish_moving(options: &Recover, store: &dyn Service) -> Result<u64, Failure> {
    if options.untyped_hold_no_pointers {
        store.avoid(&UsedElsewhere {
            untyped_hold_no_pointers: true,
            ..UsedElsewhere::default()
        })?;
    }
    use durum_service::Error::{NotPermitted, Told};
    match store.finish_moving() {
        // Of a service, what is others' is left to them; and one that is older has nothing to finish.
        Err(NotPermitted { .. } | Told { .. }) => Ok(0),
        rewritten => Ok(rewritten?),
    }
}

/// Does what a person has decided. Returns the pool that was given up, with what is lost in it.
fn carry_out(
    options: &Recover,
    store: &dyn Service,
    report: &mut RecoveryReport,
) -> Result<Option<RefusedPool>, Failure> {
    if let Some(pool) = &options.accept_quarantined {
        store.accept_quarantined(pool)?;
    }
    let mut lost = None;
    if let Some(pool) = &options.give_up {
        lost = ask_to_give_up(store, pool, options.yes)?;
        add(report, store.give_up(pool)?);
    }
    if let Some(pool) = &options.retry {
        add(report, store.retry_quarantined(pool)?);
    }
    if let Some(pool) = &options.abandon_sections {
        ask_to_abandon(store, pool, options.yes)?;
        store.abandon_sections(pool)?;
    }
    Ok(lost)
}

/// Adds what was recovered after a decision.
fn add(report: &mut RecoveryReport, more: RecoveryReport) {
    report.was_clean &= more.was_clean;
    report.log_spaces += more.log_spaces;
    report.logs += more.logs;
    report.rolled_back += more.rolled_back;
    report.rolled_forward += more.rolled_forward;
    report.entries += more.entries;
    report.bytes += more.bytes;
    report.log_time += more.log_time;
    report.registry_time += more.registry_time;
    report.quarantined.extend(more.quarantined);
    report.orphans_removed.extend(more.orphans_removed);
}

/// Says what will be lost. `None` where nothing is.
fn ask_to_give_up(
    store: &dyn Service,
    name: &str,
    is_sure: bool,
) -> Result<Option<RefusedPool>, Failure> {
    let mut refused = store.refused_pools()?.into_iter();
    // Otherwise the store says why it is not given up.
    let Some(pool) =
        refused.find(|pool| pool.name == name && pool.is_kept && pool.waits_for.is_empty())
    else {
        return Ok(None);
    };
    let question = format!(
        "Give up what is kept for pool \"{name}\": {}? They are lost in it for ever.",
        part(&pool)
    );
    confirm(is_sure, &question, "nothing was given up")?;
    Ok(Some(pool))
}

/// Says what stays half done.
fn ask_to_abandon(store: &dyn Service, name: &str, is_sure: bool) -> Result<(), Failure> {
    let clients = store.interrupted()?;
    let reasons: Vec<String> = clients
        .iter()
        .filter(|client| client.pools.iter().any(|pool| pool == name))
        .map(InterruptedClient::reason)
        .collect();
    // Otherwise the store says why there is nothing to accept.
    if reasons.is_empty() {
        return Ok(());
    }
    let question = format!(
        "Accept pool \"{name}\" as it is: {}? What was changed there stays half done for ever.",
        reasons.join("; ")
    );
    confirm(is_sure, &question, "nothing was accepted")
}

/// What is kept for a pool.
fn part(pool: &RefusedPool) -> String {
    let undecided = match pool.undecided {
        0 => String::new(),
        undecided => {
            format!(", and {undecided} of which nobody can say yet whether they committed")
        }
    };
    format!(
        "{}, {}{undecided}",
        count(pool.transactions, "transaction"),
        size(pool.bytes)
    )
}

fn part_to_json(pool: &RefusedPool) -> Value {
    json!({
        "transactions": pool.transactions,
        "undecided": pool.undecided,
        "bytes": pool.bytes,
    })
}

/// The failure that tells of pools that cannot be used.
pub(crate) fn outcome(
    store: &Path,
    report: &RecoveryReport,
    quarantined: &[&str],
) -> Result<(), Failure> {
    let refused = &report.refused;
    // Whoever only waits is helped by curing the others.
    let (in_the_way, waiting): (Vec<&RefusedPool>, Vec<&RefusedPool>) =
        refused.iter().partition(|pool| pool.waits_for.is_empty());
    if let Some(first) = in_the_way.first() {
        let waiting = match waiting.as_slice() {
            [] => String::new(),
            _ => format!(
                ". What is wrong with others makes {} wait, which loses nothing: {}",
                count(waiting.len() as u64, "pool"),
                list(waiting.iter().map(|pool| &pool.name))
            ),
        };
        return Err(Failure::Damaged(format!(
            "{} could not be recovered: {}; {}; {}{waiting}",
            count(in_the_way.len() as u64, "pool"),
            list(in_the_way.iter().map(|pool| &pool.name)),
            first.reason,
            first.cure(store)
        )));
    }
    match quarantined.first() {
        None => not_interrupted(store, &report.interrupted),
        Some(first) => Err(Failure::Damaged(format!(
            "{} in quarantine: {}; look at one with `durum inspect {store} {first}`, then restore a copy, cure the cause and try again \
             (`durum recover {store} --retry {first}`), or accept it as it is: `durum recover {store} --accept-quarantined {first}`",
            count(quarantined.len() as u64, "pool"),
            list(quarantined),
            store = store.display(),
        ))),
    }
}

/// The failure that tells of pools in which sections were interrupted.
fn not_interrupted(store: &Path, clients: &[InterruptedClient]) -> Result<(), Failure> {
    let pools: BTreeSet<&String> = clients.iter().flat_map(|client| &client.pools).collect();
    let (Some(first), Some(client)) = (pools.first(), clients.first()) else {
        return Ok(());
    };
    Err(Failure::Damaged(format!(
        "{} interrupted: {}; {}; run the program that left that, which completes it, have the code do so that it has deposited: \
         `durum recover {store} --complete-sections`, or accept a pool as it is, half done: `durum recover {store} --abandon-sections {first}`",
        count(pools.len() as u64, "pool"),
        list(&pools),
        client.reason(),
        store = store.display(),
    )))
}

fn print(report: &RecoveryReport, out: &mut dyn Write) -> Result<(), Failure> {
    if report.was_clean {
        writeln!(out, "clean: there was nothing to do")?;
    } else {
        let facts = [
            ("logs", output::grouped(report.logs)),
            ("rolled back", count(report.rolled_back, "transaction")),
            (
                "rolled forward",
                count(report.rolled_forward, "transaction"),
            ),
            (
                "written",
                format!(
                    "{} by {}",
                    size(report.bytes),
                    count(report.entries, "entry")
                ),
            ),
            (
                "time",
                format!(
                    "{} for logs, {} for the registry",
                    time(report.log_time),
                    time(report.registry_time)
                ),
            ),
        ];
        output::facts(out, &facts)?;
    }
    for note in &report.quarantined {
        writeln!(out, "quarantined  {}: {}", note.log.display(), note.reason)?;
    }
    for pool in &report.refused {
        let kept = match pool.is_kept {
            true => format!(
                "{} kept",
                count(pool.transactions + pool.undecided, "transaction")
            ),
            false => "waits for its own files".into(),
        };
        let waits_for = match pool.waits_for.as_slice() {
            [] => String::new(),
            others => format!(", waits for {}", list(others)),
        };
        writeln!(
            out,
            "refused  pool \"{}\" ({kept}{waits_for}): {}",
            pool.name, pool.reason
        )?;
    }
    for client in &report.interrupted {
        writeln!(
            out,
            "interrupted  {}: {}",
            list(client.pools.iter().map(|pool| format!("\"{pool}\""))),
            client.reason()
        )?;
    }
    for file in &report.orphans_removed {
        writeln!(out, "removed an orphan  {}", file.display())?;
    }
    Ok(())
}

pub(crate) fn to_json(report: &RecoveryReport) -> Value {
    let quarantined = report.quarantined.iter();
    let refused = report.refused.iter();
    json!({
        "was_clean": report.was_clean,
        "log_spaces": report.log_spaces,
        "logs": report.logs,
        "rolled_back": report.rolled_back,
        "rolled_forward": report.rolled_forward,
        "entries": report.entries,
        "bytes": report.bytes,
        "log_ms": millis(report.log_time),
        "registry_ms": millis(report.registry_time),
        "quarantined": quarantined.map(|note| json!({ "log": note.log, "reason": note.reason })).collect::<Vec<_>>(),
        "refused": refused.map(refused_to_json).collect::<Vec<_>>(),
        "sections": report.sections(),
        "interrupted": report.interrupted.iter().map(interrupted_to_json).collect::<Vec<_>>(),
        "orphans_removed": report.orphans_removed,
    })
}

pub(crate) fn interrupted_to_json(client: &InterruptedClient) -> Value {
    json!({
        "client": client.client.to_string(),
        "pools": client.pools,
        "sections": client.sections,
        "first": client.first.map(|code| code.to_string()),
        "places": client.places,
        "program": client.program,
        "damage": client.damage,
        "not_completed": client.not_completed,
    })
}

pub(crate) fn refused_to_json(pool: &RefusedPool) -> Value {
    json!({
        "pool": pool.name,
        "file": pool.file,
        "offset": pool.offset,
        "reason": pool.reason,
        "waits_for": pool.waits_for,
        "transactions": pool.transactions,
        "undecided": pool.undecided,
        "bytes": pool.bytes,
        "kept": pool.is_kept,
    })
}
