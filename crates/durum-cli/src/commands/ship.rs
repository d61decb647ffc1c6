//! `durum export` and `durum import`: pools on their way to another store.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use durum_service::{
    Compression, ExportOptions, ExportReport, ImportOptions, ImportReport, OpenOptions,
    export_served,
};
use serde_json::json;

use crate::args::{Export, Import};
use crate::failure::Failure;
use crate::output::{self, count, list, size};
use crate::place::Place;
use crate::progress;

pub(crate) fn export(options: &Export, out: &mut dyn Write) -> Result<(), Failure> {
    let (store, pool, place) = match options.paths.as_slice() {
        [store, pool, place] => (store, pool.to_str(), place),
        [store, place] => (store, None, place),
        _ => {
            return Err(Failure::Refused(
                "name a store, a pool and a directory".into(),
            ));
        }
    };
    let source = Place::of(store);
    let pool = source.named_pool(pool)?;
    let how = ExportOptions {
        with_referenced: options.with_referenced,
        archive: match (options.archive, options.compress) {
            (false, _) => None,
            (true, false) => Some(Compression::None),
            (true, true) => Some(Compression::Gzip),
        },
        wait: Some(Duration::from_secs(options.wait)),
        progress: Some(progress::stages()),
    };
    let report = match &source {
        Place::Directory(path) => durum_service::export(path, pool, place, &how)?,
        Place::Service { .. } => export_served(&mut source.read()?, pool, place, &how)?,
    };
    drop(how);
    told_export(&report, place, options.json, out)
}

fn told_export(
    report: &ExportReport,
    place: &Path,
    json: bool,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    let unknown: u64 = report.unknown_types.values().sum();
    if json {
        let value = json!({
            "place": place,
            "pools": report.pools,
            "puddles": report.puddles,
            "bytes": report.bytes,
            "objects": report.objects,
            "pointers_to_nowhere": report.pointers_to_nowhere,
            "untyped_objects": report.untyped_objects,
            "untyped_bytes": report.untyped_bytes,
            "objects_of_unknown_type": unknown,
        });
        return Ok(output::json(out, &value)?);
    }
    let pools = report.pools.iter().map(|pool| format!("\"{pool}\""));
    writeln!(
        out,
        "{}: {}, {} in {}, {}",
        place.display(),
        list(pools),
        size(report.bytes),
        count(report.puddles, "puddle"),
        count(report.objects, "object"),
    )?;
    if report.pointers_to_nowhere > 0 {
        writeln!(
            out,
            "note: {} into the store's addresses, but to no puddle",
            count(report.pointers_to_nowhere, "pointer")
        )?;
    }
    let untyped = report.untyped_objects + unknown;
    if untyped > 0 {
        writeln!(
            out,
            "note: {} of unknown type: where the addresses are taken, the import has to be told that they hold no pointers",
            count(untyped, "object")
        )?;
    }
    Ok(())
}

pub(crate) fn import(options: &Import, out: &mut dyn Write) -> Result<(), Failure> {
    let target = Place::of(&options.store);
    let how = ImportOptions {
        name: target.pool(options.name.as_deref())?.map(str::to_owned),
        into: options.into.clone(),
        copies: options.copy,
        verifies: options.verify,
        untyped_hold_no_pointers: options.untyped_hold_no_pointers,
        progress: Some(progress::stages()),
    };
    let export = durum_service::Export::open(&options.place)?;
    let service = target.open(OpenOptions::default())?;
    let imported = service.import(&export, &how);
    let closed = service.close();
    let report = imported?;
    closed?;
    drop(how);
    told_import(&report, options, out)
}

fn told_import(
    report: &ImportReport,
    options: &Import,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if options.json {
        let value = json!({
            "pools": report.pools,
            "puddles": report.puddles,
            "bytes": report.bytes,
            "moved": report.moved,
            "root": report.root.map(|root| format!("{root:#x}")),
            "copied": report.copied,
        });
        return Ok(output::json(out, &value)?);
    }
    let pools = report.pools.iter().map(|pool| format!("\"{pool}\""));
    writeln!(
        out,
        "{}: {}, {} in {}, {} at other addresses",
        options.store.display(),
        list(pools),
        size(report.bytes),
        count(report.puddles, "puddle"),
        report.moved,
    )?;
    if let Some(root) = report.root {
        writeln!(
            out,
            "its root object is at {root:#x}: garbage, until something leads there"
        )?;
    }
    match &report.copied {
        Some(reason) => writeln!(out, "{} was copied: {reason}", options.place.display())?,
        None => writeln!(out, "{} is the store's now", options.place.display())?,
    }
    Ok(())
}
