//! `durum dump` and `durum load`: a pool as lines of JSON.

use std::fs;
use std::io::{BufReader, IsTerminal, Write};
use std::path::{Path, PathBuf};

use durum_service::{
    DumpOptions, Export, ImportOptions, LoadOptions, LoadReport, OpenOptions, Service,
};
use durum_service::{EngineKind, random_uuid};
use serde_json::json;

use crate::args::{Dump, Load};
use crate::failure::Failure;
use crate::output::{self, count, size};
use crate::place::Place;
use crate::progress;

/// Bytes of the input that are read at once.
const READ_AT_ONCE: usize = 1 << 20;

pub(crate) fn dump(options: &Dump, out: &mut dyn Write) -> Result<(), Failure> {
    let place = Place::of(&options.store);
    let pool = place.named_pool(options.pool.as_deref())?;
    let mut store = place.read()?;
    let with = options.with.iter().map(String::as_str);
    let pools: Vec<&str> = [pool].into_iter().chain(with).collect();
    let how = DumpOptions {
        untyped_hold_pointers: options.untyped_hold_pointers,
        progress: Some(progress::stages()),
    };
    let report = durum_service::dump::<Failure>(&mut store, &pools, out, &how)?;
    drop(how);
    let mut told = std::io::stderr().lock();
    let notes = [
        (
            if options.untyped_hold_pointers {
                0
            } else {
                report.untyped_objects
            },
            "object",
            "of no type: nobody knows whether bytes of them are pointers (`--untyped-hold-pointers` follows them)",
        ),
        (
            report.pointers_elsewhere,
            "pointer",
            "to no object of the dump (`--with` dumps pools together)",
        ),
    ];
    for (number, thing, what) in notes.into_iter().filter(|(number, ..)| *number > 0) {
        // Whoever does not read this does not want it.
        let _ = writeln!(told, "note: {} {what}", count(number, thing));
    }
    Ok(())
}

pub(crate) fn load(options: &Load, out: &mut dyn Write) -> Result<(), Failure> {
    let engine = options.engine.as_deref().map(|name| {
        EngineKind::from_name(name).ok_or_else(|| {
            Failure::Refused(format!(
                "there is no engine \"{name}\"; there are hybrid, twin and shadow"
            ))
        })
    });
    let input = std::io::stdin();
    if input.is_terminal() {
        let refusal = "the lines come from the standard input: `durum load STORE < FILE`";
        return Err(Failure::Refused(refusal.into()));
    }
    let target = Place::of(&options.store);
    let how = LoadOptions {
        name: target.pool(options.pool.as_deref())?.map(str::to_owned),
        engine: engine.transpose()?,
        untyped_hold_no_pointers: options.untyped_hold_no_pointers,
        progress: Some(progress::stages()),
    };
    let service = target.open(OpenOptions::default())?;
    let mut input = BufReader::with_capacity(READ_AT_ONCE, input.lock());
    let loaded = loaded(&target, &*service, &mut input, &how);
    let closed = service.close();
    let report = loaded?;
    closed?;
    drop(how);
    told(&report, options, out)
}

fn loaded(
    target: &Place,
    service: &dyn Service,
    input: &mut BufReader<std::io::StdinLock<'_>>,
    how: &LoadOptions,
) -> Result<LoadReport, Failure> {
    let made = Made(beside(target)?);
    let report = durum_service::load(input, &made.0, &service.info(), how)?;
    let import = ImportOptions {
        name: Some(report.pool.clone()),
        // Where its addresses are taken meanwhile, words that are pointers would lead to nothing.
        untyped_hold_no_pointers: how.untyped_hold_no_pointers && report.untyped_pointers == 0,
        progress: how.progress.clone(),
        ..ImportOptions::default()
    };
    service.import(&Export::open(&made.0)?, &import)?;
    if let Place::Directory(_) = target {
        // So that it need not be opened first to be looked at. A service does that when somebody opens it.
        service.finish_moving()?;
    }
    Ok(report)
}

/// Where the files of a pool are made: where a store can take them over, under a hidden name.
fn beside(target: &Place) -> Result<PathBuf, Failure> {
    let uuid = random_uuid()?;
    let (directory, name) = match target {
        Place::Directory(path) => {
            let path = fs::canonicalize(path)
                .map_err(|error| Failure::file("finding the absolute path", path, error))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let parent = path.parent().unwrap_or(Path::new("/"));
            (parent.to_owned(), name.into_owned())
        }
        Place::Service { .. } => (std::env::temp_dir(), "durum".to_owned()),
    };
    Ok(directory.join(format!(".{name}.load-{uuid}")))
}

/// Files that are gone when they are the store's, or not wanted any more.
struct Made(PathBuf);

impl Drop for Made {
    fn drop(&mut self) {
        // The store may have taken them over; should this fail, what stays is nobody's.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn told(report: &LoadReport, options: &Load, out: &mut dyn Write) -> Result<(), Failure> {
    if options.json {
        let value = json!({
            "pool": report.pool,
            "with": report.with,
            "objects": report.objects,
            "puddles": report.puddles,
            "bytes": report.bytes,
            "untyped_objects": report.untyped_objects,
        });
        return Ok(output::json(out, &value)?);
    }
    let names = [&report.pool].into_iter().chain(&report.with);
    let names: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
    writeln!(
        out,
        "{}: {}, {} in {}, {}",
        options.store.display(),
        names.join(", "),
        size(report.bytes),
        count(report.puddles, "puddle"),
        count(report.objects, "object"),
    )?;
    Ok(())
}
