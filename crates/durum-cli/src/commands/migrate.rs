//! `durum migrate`: a pool is made anew under other types, as a map says.

use std::fs;
use std::io::Write;
use std::sync::Arc;

use durum_format::migrate::map;
use durum_service::{
    Embedded, MigrateOptions, MigrateReport, Migration, OpenOptions, ReadOnlyStore, Service,
    plan_migration,
};
use serde_json::json;

use crate::args::Migrate;
use crate::failure::Failure;
use crate::output::{self, count, size};
use crate::place::Place;
use crate::progress;

pub(crate) fn run(options: &Migrate, out: &mut dyn Write) -> Result<(), Failure> {
    let file = &options.map;
    let text =
        fs::read_to_string(file).map_err(|error| Failure::file("reading the map", file, error))?;
    let rules =
        map::parse(&text).map_err(|why| Failure::Refused(format!("{}: {why}", file.display())))?;
    let mut migration = Migration {
        rules: Arc::new(rules),
        types: None,
        functions: None,
    };
    let how = MigrateOptions {
        untyped_hold_no_pointers: options.untyped_hold_no_pointers,
        with: options.with.clone(),
        progress: Some(progress::stages()),
    };
    let place = Place::of(&options.store);
    let pool = place.named_pool(options.pool.as_deref())?;
    let directory = place.directory("migrate a pool")?;
    let report = match options.dry_run {
        true => {
            let reader = ReadOnlyStore::open(directory)?;
            plan_migration(&reader, pool, &mut migration, &how)?
        }
        false => {
            let store = Embedded::open(directory, OpenOptions::default())?;
            let migrated = store.migrate_pool(pool, &mut migration, &how);
            let closed = store.close();
            let report = migrated?;
            closed?;
            report
        }
    };
    drop(how);
    told(&report, options, out)?;
    match report.refusals.len() {
        0 => Ok(()),
        refusals => Err(Failure::Refused(format!(
            "{}: pool \"{pool}\" would not be migrated: {} in the way",
            directory.display(),
            count(refusals as u64, "thing"),
        ))),
    }
}

fn told(report: &MigrateReport, options: &Migrate, out: &mut dyn Write) -> Result<(), Failure> {
    if options.json {
        let types = report.types.iter().map(|ty| {
            json!({
                "name": ty.name,
                "now": ty.now,
                "id": format!("{:#018x}", ty.id),
                "new_id": format!("{:#018x}", ty.new_id),
                "objects": ty.objects,
                "size": ty.size,
                "new_size": ty.new_size,
            })
        });
        let refusals = report.refusals.iter().map(|counted| {
            json!({
                "path": counted.refusal.path,
                "why": counted.refusal.why,
                "objects": counted.objects,
            })
        });
        let value = json!({
            "pool": report.pool,
            "with": report.with,
            "dry_run": options.dry_run,
            "objects": report.objects,
            "untyped_objects": report.untyped_objects,
            "types": types.collect::<Vec<_>>(),
            "old_bytes": report.old_bytes,
            "bytes": report.bytes,
            "puddles": report.puddles,
            "scratch_bytes": report.scratch_bytes,
            "refusals": refusals.collect::<Vec<_>>(),
            "more_refusals": report.more_refusals,
        });
        return Ok(output::json(out, &value)?);
    }
    for ty in &report.types {
        let objects = count(ty.objects, "object");
        let (name, now) = (&ty.name, &ty.now);
        match ty.id == ty.new_id {
            true => writeln!(out, "{name}: {objects}, as before")?,
            false if ty.size == ty.new_size => writeln!(out, "{name}: {objects}, now {now}")?,
            false => writeln!(
                out,
                "{name}: {objects} of {} bytes, now {now} of {}",
                ty.size, ty.new_size
            )?,
        }
    }
    if report.untyped_objects > 0 {
        let objects = count(report.untyped_objects, "object");
        writeln!(out, "of unknown type: {objects}, as before")?;
    }
    for counted in &report.refusals {
        writeln!(out, "in the way: {counted}")?;
    }
    if report.more_refusals > 0 {
        writeln!(out, "in the way: {} more", report.more_refusals)?;
    }
    let verb = match options.dry_run {
        true => "would be migrated",
        false => "migrated",
    };
    if report.refusals.is_empty() {
        let names = [&report.pool].into_iter().chain(&report.with);
        let names: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
        writeln!(
            out,
            "{}: {} {verb}, {} in {}, before {}",
            options.store.display(),
            names.join(", "),
            size(report.bytes),
            count(report.puddles, "puddle"),
            size(report.old_bytes),
        )?;
    }
    Ok(())
}
