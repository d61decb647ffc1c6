//! `durum check`: structures, leaks, orphan files; and repair of what is safe.

use std::io::Write;

use durum_service::{
    CheckOptions, CheckReport, Leaks, Readable, Severity, check, check_served, repair,
};
use serde_json::{Value, json};

use super::{recover, state};
use crate::args::Check;
use crate::color;
use crate::failure::Failure;
use crate::output::{self, count, list, size};
use crate::place::Place;
use crate::progress;
use crate::watch::live::Live;

pub(crate) fn run(options: &Check, out: &mut dyn Write) -> Result<(), Failure> {
    let mut place = Place::of(&options.store);
    let live = match options.live {
        true => Some(Live::of(&place, place.pool(None)?)?),
        false => None,
    };
    if let Some(live) = &live {
        place = Place::Directory(live.store());
    }
    let mut repaired = Vec::new();
    if options.repair {
        repaired = repair(place.directory("repair its store")?)?.actions;
    }
    let how = CheckOptions {
        progress: Some(progress::stages()),
        untyped_hold_pointers: options.untyped_hold_pointers,
        ..CheckOptions::default()
    };
    let report = look(&place, &how)?;
    drop(how);
    if options.json {
        output::json(out, &to_json(&report, &repaired))?;
    } else {
        print(&report, &repaired, options.repair, out)?;
    }
    if report.is_sound() {
        return Ok(());
    }
    let damages = of(&report, Severity::Damage);
    if live.is_some() {
        return Err(Failure::Damaged(format!(
            "{}: {} found in the program's pools; files are named as they were in a copy that is gone: end the program, and \
             run `durum check` without --live",
            options.store.display(),
            count(damages, "damage")
        )));
    }
    let store = place.path().display();
    if !report.kept.is_empty() {
        return Err(Failure::Damaged(format!(
            "{store}: {} found; pools that are not recovered: {}: run `durum recover {store}`, which says what stands in the way; \
             before that nothing is repaired",
            count(damages, "damage"),
            list(&report.kept)
        )));
    }
    let damaged: Vec<&str> = report.damaged.iter().map(String::as_str).collect();
    let cure = match (report.can_repair && !options.repair, damaged.as_slice()) {
        (true, []) => format!("keep a copy of the store, then try `durum check --repair {store}`"),
        (true, damaged) => format!(
            "keep a copy of the store, then try `durum check --repair {store}`, which does not help {}: {}",
            list(damaged),
            state::advice(place.path(), damaged)
        ),
        (false, []) => {
            "`--repair` does not help here: do what is said of each, or restore a copy of the store"
                .into()
        }
        (false, damaged) => state::advice(place.path(), damaged),
    };
    Err(Failure::Damaged(format!(
        "{store}: {} found; {cure}",
        count(damages, "damage")
    )))
}

/// Checks the store of a place, or the pool that it names at a service.
pub(crate) fn look(place: &Place, how: &CheckOptions) -> Result<CheckReport, Failure> {
    Ok(match place {
        Place::Directory(path) => check(path, how)?,
        Place::Service { pool, .. } => check_served(&mut place.read()?, pool.as_deref(), how)?,
    })
}

pub(crate) fn of(report: &CheckReport, severity: Severity) -> u64 {
    report
        .findings
        .iter()
        .filter(|finding| finding.severity == severity)
        .count() as u64
}

fn name(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Leak => "leak",
        Severity::Damage => "damage",
    }
}

fn readable(readable: Readable) -> &'static str {
    match readable {
        Readable::Whole => "whole",
        Readable::Partly => "partly",
        Readable::Not => "no",
    }
}

fn print(
    report: &CheckReport,
    repaired: &[String],
    was_asked_to_repair: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    for action in repaired {
        writeln!(out, "{}: {action}", color::out(color::GOOD, "repaired"))?;
    }
    if was_asked_to_repair && repaired.is_empty() {
        writeln!(out, "nothing to repair")?;
    }
    let pending = &report.pending;
    if !pending.was_clean {
        writeln!(
            out,
            "not closed in order: recovery will roll {} back and {} forward; seen as it will leave the store",
            count(pending.rolled_back, "transaction"),
            output::grouped(pending.rolled_forward)
        )?;
    }
    for pool in &report.pools {
        let leaks = match &pool.leaks {
            Leaks::Judged { objects: 0, .. } => "no leaks".into(),
            Leaks::Judged { objects, bytes } => {
                let cycles = match pool.in_cycles {
                    0 => String::new(),
                    in_cycles => format!(", {in_cycles} in cycles of counted pointers"),
                };
                format!(
                    "{} ({}) that nothing leads to{cycles}; `durum gc` frees them",
                    count(*objects, "object"),
                    size(*bytes)
                )
            }
            Leaks::Unjudged {
                reason,
                objects,
                bytes,
            } => format!(
                "{} ({}) that nothing known leads to, but leaks are not judged: {reason}",
                count(*objects, "object"),
                size(*bytes)
            ),
        };
        let name = &pool.name;
        let objects = format!("{} ({})", count(pool.objects, "object"), size(pool.bytes));
        match pool.readable {
            Readable::Whole => writeln!(
                out,
                "pool \"{name}\": {objects} in {}; {leaks}",
                count(pool.puddles, "puddle")
            )?,
            // What is not read may lead to what nothing seems to lead to.
            Readable::Partly => writeln!(
                out,
                "pool \"{name}\": not readable as a whole, see below; {objects} in what is"
            )?,
            Readable::Not => writeln!(out, "pool \"{name}\": not readable, see below")?,
        }
    }
    for finding in &report.findings {
        let style = match finding.severity {
            Severity::Note => color::ASIDE,
            Severity::Leak => color::WARNING,
            Severity::Damage => color::BAD,
        };
        writeln!(
            out,
            "{}: {finding}",
            color::out(style, name(finding.severity))
        )?;
    }
    if report.is_sound() {
        writeln!(out, "{}", color::out(color::GOOD, "sound"))?;
    }
    Ok(())
}

pub(crate) fn to_json(report: &CheckReport, repaired: &[String]) -> Value {
    let findings = report.findings.iter().map(|finding| {
        json!({
            "severity": name(finding.severity),
            "file": finding.file,
            "offset": finding.offset,
            "text": finding.text,
        })
    });
    let pools = report.pools.iter().map(|pool| {
        let leaks = match &pool.leaks {
            Leaks::Judged { objects, bytes } => {
                json!({ "objects": objects, "bytes": bytes, "in_cycles": pool.in_cycles })
            }
            Leaks::Unjudged {
                reason,
                objects,
                bytes,
            } => json!({ "unjudged": reason, "objects": objects, "bytes": bytes }),
        };
        json!({
            "name": pool.name,
            "puddles": pool.puddles,
            "readable": readable(pool.readable),
            "objects": pool.objects,
            "bytes": pool.bytes,
            "has_root": pool.has_root,
            "leaks": leaks,
        })
    });
    json!({
        "sound": report.is_sound(),
        "findings": findings.collect::<Vec<_>>(),
        "pools": pools.collect::<Vec<_>>(),
        "pending": recover::to_json(&report.pending),
        "kept": report.kept,
        "damaged_pools": report.damaged,
        "can_repair": report.can_repair,
        "repaired": repaired,
    })
}
