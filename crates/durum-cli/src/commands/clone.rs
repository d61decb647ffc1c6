//! `durum clone`: a copy of a store at other addresses.

use std::io::Write;

use durum_service::{CloneOptions, clone_served, clone_store};
use serde_json::json;

use crate::args::Clone;
use crate::failure::Failure;
use crate::output::{self, count, size};
use crate::place::Place;
use crate::progress;

pub(crate) fn run(options: &Clone, out: &mut dyn Write) -> Result<(), Failure> {
    let clone = CloneOptions {
        base: options.base,
        progress: Some(progress::stages()),
        ..CloneOptions::default()
    };
    let target = Place::of(&options.target);
    let target = target.directory("take a copy in")?;
    let source = Place::of(&options.source);
    let report = match &source {
        Place::Directory(path) => clone_store(path, target, &clone)?,
        Place::Service { pool, .. } => {
            clone_served(&mut source.read()?, pool.as_deref(), target, &clone)?
        }
    };
    drop(clone);
    let unknown: u64 = report.unknown_types.values().sum();
    if options.json {
        let value = json!({
            "target": options.target,
            "puddles": report.puddles,
            "objects": report.objects,
            "pointers": report.pointers,
            "pointers_to_nowhere": report.pointers_to_nowhere,
            "untyped_objects": report.untyped_objects,
            "untyped_bytes": report.untyped_bytes,
            "objects_of_unknown_type": unknown,
        });
        return Ok(output::json(out, &value)?);
    }
    writeln!(
        out,
        "{}: {}, {}, {} translated",
        options.target.display(),
        count(report.puddles, "puddle"),
        count(report.objects, "object"),
        count(report.pointers, "pointer"),
    )?;
    if report.pointers_to_nowhere > 0 {
        writeln!(
            out,
            "note: {} into the store's addresses, but to no puddle, copied as they were",
            count(report.pointers_to_nowhere, "pointer")
        )?;
    }
    if report.untyped_objects > 0 {
        writeln!(
            out,
            "note: {} without a type ({}) copied as they were: pointers in them lead into the source",
            count(report.untyped_objects, "object"),
            size(report.untyped_bytes)
        )?;
    }
    if unknown > 0 {
        writeln!(
            out,
            "note: {} of types that the store does not know copied as they were",
            count(unknown, "object")
        )?;
    }
    Ok(())
}
