//! `durum gc`: frees cycles of counted pointers, and whatever else no root leads to.

use std::io::Write;

use durum::gc::{GcOptions, GcReport, collect};
use serde_json::{Value, json};

use super::recover;
use crate::args::Gc;
use crate::failure::Failure;
use crate::output::{self, count, size};
use crate::place::Place;
use crate::progress;

pub(crate) fn run(options: &Gc, out: &mut dyn Write) -> Result<(), Failure> {
    let mut how = GcOptions::new()
        .untyped_hold_pointers(options.untyped_hold_pointers)
        .dry_run(options.dry_run)
        .progress(progress::stages());
    let place = Place::of(&options.store);
    if let Some(pool) = place.pool(options.pool.as_deref())? {
        how = how.pool(pool);
    }
    let report = collect(place.path(), &how)?;
    // The progress bar goes before the output comes.
    drop(how);
    match options.json {
        true => output::json(out, &to_json(&report, options.dry_run))?,
        false => print(&report, options.dry_run, out)?,
    }
    Ok(())
}

fn print(report: &GcReport, dry_run: bool, out: &mut dyn Write) -> Result<(), Failure> {
    let recovery = &report.recovery;
    if !recovery.was_clean {
        let verb = if dry_run { "will roll" } else { "rolled" };
        writeln!(
            out,
            "not closed in order: recovery {verb} {} back and {} forward",
            count(recovery.rolled_back, "transaction"),
            output::grouped(recovery.rolled_forward)
        )?;
    }
    for pool in &report.pools {
        let freed = match (pool.objects, dry_run) {
            (0, _) => "nothing to free".into(),
            (objects, true) => format!("would free {}", amount(objects, pool.bytes)),
            (objects, false) => format!("freed {}", amount(objects, pool.bytes)),
        };
        let husks = match pool.husks {
            0 => String::new(),
            husks => format!(
                "; {} {} without a value until weak pointers to {} are gone",
                count(husks, "object"),
                if dry_run { "would stay" } else { "left" },
                if husks == 1 { "it" } else { "them" }
            ),
        };
        writeln!(out, "pool \"{}\": {freed}{husks}", pool.name)?;
    }
    Ok(())
}

fn amount(objects: u64, bytes: u64) -> String {
    format!("{} ({})", count(objects, "object"), size(bytes))
}

fn to_json(report: &GcReport, dry_run: bool) -> Value {
    let pools = report.pools.iter().map(|pool| {
        json!({
            "name": pool.name,
            "objects": pool.objects,
            "bytes": pool.bytes,
            "husks": pool.husks,
        })
    });
    json!({
        "dry_run": dry_run,
        "objects": report.objects(),
        "bytes": report.bytes(),
        "husks": report.husks(),
        "transactions": report.transactions,
        "pools": pools.collect::<Vec<_>>(),
        "recovery": recover::to_json(&report.recovery),
    })
}
