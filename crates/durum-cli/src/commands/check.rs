//! `durum check`: structures, leaks, orphan files; and repair of what is safe.

use std::io::Write;

use durum_service::{CheckOptions, CheckReport, Leaks, Severity, check, repair};
use serde_json::{Value, json};

use super::recover;
use crate::args::Check;
use crate::failure::Failure;
use crate::output::{self, count, size};
use crate::progress;

pub(crate) fn run(options: &Check, out: &mut dyn Write) -> Result<(), Failure> {
    let repaired = match options.repair {
        true => repair(&options.store)?.actions,
        false => Vec::new(),
    };
    let how = CheckOptions {
        progress: Some(progress::stages()),
    };
    let report = check(&options.store, &how)?;
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
    let store = options.store.display();
    if !report.kept.is_empty() {
        let names: Vec<&str> = report.kept.iter().map(String::as_str).collect();
        return Err(Failure::Damaged(format!(
            "{store}: {} found; pools that are not recovered: {}: run `durum recover {store}`, which says what stands in the way; \
             before that nothing is repaired",
            count(damages, "damage"),
            names.join(", ")
        )));
    }
    Err(Failure::Damaged(format!(
        "{store}: {} found; {}",
        count(damages, "damage"),
        if options.repair {
            "what is left cannot be repaired: restore a copy of the store"
        } else {
            "keep a copy of the store, then try `durum check --repair`"
        }
    )))
}

fn of(report: &CheckReport, severity: Severity) -> u64 {
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

fn print(
    report: &CheckReport,
    repaired: &[String],
    was_asked_to_repair: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    for action in repaired {
        writeln!(out, "repaired: {action}")?;
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
        writeln!(
            out,
            "pool \"{}\": {} ({}) in {}; {leaks}",
            pool.name,
            count(pool.objects, "object"),
            size(pool.bytes),
            count(pool.puddles, "puddle")
        )?;
    }
    for finding in &report.findings {
        // An error that became a finding names its file already.
        let text = match finding.text.starts_with(&*finding.file.to_string_lossy()) {
            true => finding.text.clone(),
            false => finding.to_string(),
        };
        writeln!(out, "{}: {text}", name(finding.severity))?;
    }
    if report.is_sound() {
        writeln!(out, "sound")?;
    }
    Ok(())
}

fn to_json(report: &CheckReport, repaired: &[String]) -> Value {
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
        "repaired": repaired,
    })
}
