//! `durum recover`: what any opener does first, with a report.

use std::io::Write;

use durum_service::{Embedded, OpenOptions, ReadOnlyStore, RecoveryReport, Service};
use serde_json::{Value, json};

use crate::args::Recover;
use crate::failure::Failure;
use crate::output::{self, count, millis, size, time};
use crate::progress;

pub(crate) fn run(options: &Recover, out: &mut dyn Write) -> Result<(), Failure> {
    let seen = look(options)?;
    let damage = seen.as_ref().and_then(damaged_puddle);
    let is_clean = seen.as_ref().is_some_and(ReadOnlyStore::is_clean);
    if is_clean && let Some(damage) = damage {
        // Nothing is to be recovered, so nothing is written.
        return Err(damage.into());
    }
    drop(seen);
    recover(options, out)?;
    damage.map_or(Ok(()), |damage| Err(damage.into()))
}

/// The store as it is; `None` where only an opener can tell what is the matter.
fn look(options: &Recover) -> Result<Option<ReadOnlyStore>, Failure> {
    match ReadOnlyStore::open(&options.store) {
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
        .next()
}

fn recover(options: &Recover, out: &mut dyn Write) -> Result<(), Failure> {
    let open = OpenOptions {
        progress: Some(progress::stages()),
        ..OpenOptions::default()
    };
    let store = Embedded::open(&options.store, open)?;
    let report = store.recovery_report().clone();
    let accepted = match &options.accept_quarantined {
        Some(pool) => accept(&store, pool)?,
        None => false,
    };
    let pools = store.pools()?;
    store.close()?;
    let quarantined: Vec<&str> = pools
        .iter()
        .filter(|pool| pool.quarantine.is_some())
        .map(|pool| pool.name.as_str())
        .collect();
    if options.json {
        let mut value = to_json(&report);
        value["accepted"] = json!(options.accept_quarantined.as_ref().filter(|_| accepted));
        value["pools_in_quarantine"] = json!(quarantined);
        output::json(out, &value)?;
    } else {
        print(&report, out)?;
        if let Some(pool) = &options.accept_quarantined {
            if accepted {
                writeln!(out, "pool \"{pool}\" may be opened again, as it is")?;
            } else {
                writeln!(out, "pool \"{pool}\" was not in quarantine")?;
            }
        }
    }
    match quarantined.first() {
        None => Ok(()),
        Some(first) => Err(Failure::Damaged(format!(
            "{} in quarantine: {}; look at one with `durum inspect {store} {first}`, then restore a copy \
             or accept it as it is: `durum recover {store} --accept-quarantined {first}`",
            count(quarantined.len() as u64, "pool"),
            quarantined.join(", "),
            store = options.store.display(),
        ))),
    }
}

/// Lifts the quarantine of a pool; tells whether there was one.
fn accept(store: &Embedded, name: &str) -> Result<bool, Failure> {
    let was = store
        .pools()?
        .iter()
        .any(|pool| pool.name == name && pool.quarantine.is_some());
    store.accept_quarantined(name)?;
    Ok(was)
}

fn print(report: &RecoveryReport, out: &mut dyn Write) -> Result<(), Failure> {
    if report.was_clean {
        writeln!(out, "clean: there was nothing to do")?;
    } else {
        let facts = [
            (
                "logs",
                format!(
                    "{} in {}",
                    report.logs,
                    count(report.log_spaces, "log space")
                ),
            ),
            ("rolled back", count(report.rolled_back, "transaction")),
            (
                "rolled forward",
                count(report.rolled_forward, "transaction"),
            ),
            (
                "written",
                format!("{} by {}", size(report.bytes), entries(report.entries)),
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
    for file in &report.orphans_removed {
        writeln!(out, "removed an orphan  {}", file.display())?;
    }
    Ok(())
}

pub(crate) fn to_json(report: &RecoveryReport) -> Value {
    let quarantined = report.quarantined.iter();
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
        "orphans_removed": report.orphans_removed,
    })
}

fn entries(number: u64) -> String {
    match number {
        1 => "1 entry".into(),
        _ => format!("{} entries", output::grouped(number)),
    }
}
