//! `durum stat`: what a store is.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use durum::Domain;
use durum_format::{log, puddle, registry, store};
use durum_persist::domain;
use durum_persist::file::MediaFile;
use durum_remote::users;
use durum_service::{OpenOptions, PoolSummary, ReadOnlyStore};
use serde_json::{Value, json};

use super::state::States;
use crate::args::Stat;
use crate::color;
use crate::failure::Failure;
use crate::output::{self, count, domain_name, grouped, list, size, survives};
use crate::place::Place;
use crate::watch;

pub(crate) fn run(options: &Stat, out: &mut dyn Write) -> Result<(), Failure> {
    if options.domain {
        let found = match Place::of(&options.path) {
            Place::Directory(path) => detect(&path)?,
            // Where its files are, the service knows.
            place => place.open(OpenOptions::default())?.info().domain,
        };
        let name = domain_name(found);
        if options.json {
            output::json(out, &json!({ "domain": name }))?;
        } else {
            writeln!(out, "{name}")?;
        }
        return Ok(());
    }
    let place = Place::of(&options.path);
    let reader = place.read()?;
    if options.watch || options.prometheus {
        return watch::run(&reader, options, out);
    }
    let served = reader.served();
    let directory = reader.path();
    let found = domain_of(&reader)?;
    let writer = reader.writer()?;
    let pools = reader.pools();
    let puddles = reader.puddles();
    let bytes: u64 = puddles.iter().map(|puddle| puddle.size).sum();
    let disk = disk_of(&reader)?;
    let types = reader.types().count();
    let pending = reader.pending();
    let states = States::of(reader.name(), &reader, &pools)?;
    if options.json {
        let value = to_json(&reader, &pools, &states)?;
        output::json(out, &value)?;
        return states.outcome();
    }
    let damaged = states.damaged();
    let style = match (served.is_some() || writer.is_some(), reader.is_clean()) {
        (true, _) => anstyle::Style::new(),
        (false, true) if damaged.is_some() => color::BAD,
        (false, true) => color::GOOD,
        (false, false) => color::WARNING,
    };
    let state = match (writer, reader.is_clean()) {
        _ if served.is_some() => format!("served at {}", place.path().display()),
        (Some(pid), _) => format!("open for writing in process {pid}"),
        (None, true) if damaged.is_some() => "closed in order, and damaged since".into(),
        (None, true) => "clean".into(),
        (None, false) => format!(
            "dirty: a program died; the next opener rolls {} back and {} forward",
            count(pending.rolled_back, "transaction"),
            grouped(pending.rolled_forward)
        ),
    };
    let moved = match reader.domain_name() {
        made if made == domain_name(found) => String::new(),
        made => format!(" (made in {made})"),
    };
    let mut facts = vec![("store", directory.display().to_string())];
    match fs::metadata(directory) {
        Ok(found) => {
            let owner = format!("{}:{}", users::user(found.uid()), users::group(found.gid()));
            facts.push(("owner", owner));
        }
        // Who may use a service may not be able to go where its store is.
        Err(_) if served.is_some() => {}
        Err(error) => return Err(Failure::file("asking for the owner", directory, error)),
    }
    facts.extend([
        ("uuid", reader.uuid().to_string()),
        (
            "domain",
            format!("{}, {}{moved}", domain_name(found), survives(found)),
        ),
        ("state", color::out(style, state).to_string()),
        (
            "base",
            format!(
                "{:#x}, {} of addresses",
                reader.base(),
                size(reader.space_size())
            ),
        ),
        (
            "format",
            format!(
                "store {}, registry {}, puddle {}, log {}",
                store::VERSION,
                registry::VERSION,
                puddle::VERSION,
                log::header::VERSION
            ),
        ),
        (
            "contents",
            format!(
                "{}, {} ({}), {}",
                count(pools.len() as u64, "pool"),
                count(puddles.len() as u64, "puddle"),
                size(bytes),
                count(types as u64, "type")
            ),
        ),
    ]);
    facts.extend(disk.map(|disk| ("disk", size(disk))));
    if !pending.refused.is_empty() {
        let text = format!(
            "{}; `durum recover {}` tells what stands in the way",
            list(pending.refused.iter().map(|pool| &pool.name)),
            place.path().display()
        );
        facts.push(("refused", color::out(color::WARNING, text).to_string()));
    }
    let bad = |text: String| color::out(color::BAD, text).to_string();
    facts.extend(damaged.map(|damaged| ("damaged", bad(damaged))));
    if !states.quarantined().is_empty() {
        facts.push(("quarantined", bad(list(states.quarantined()))));
    }
    output::facts(out, &facts)?;
    states.outcome()
}

/// What is told of a store in JSON.
pub(crate) fn to_json(
    reader: &ReadOnlyStore,
    pools: &[PoolSummary],
    states: &States<'_>,
) -> Result<Value, Failure> {
    let served = reader.served();
    let found = domain_of(reader)?;
    let puddles = reader.puddles();
    let bytes: u64 = puddles.iter().map(|puddle| puddle.size).sum();
    let disk = disk_of(reader)?;
    Ok(json!({
        "store": reader.path(),
        "uuid": reader.uuid().to_string(),
        "domain": domain_name(found),
        "domain_when_made": reader.domain_name(),
        "base": format!("{:#x}", reader.base()),
        "space_bytes": reader.space_size(),
        "clean": reader.is_clean(),
        "writer": reader.writer()?,
        "served": served.is_some(),
        "pending": if reader.is_clean() { None } else { Some(super::recover::to_json(reader.pending())) },
        "format": { "store": store::VERSION, "registry": registry::VERSION, "puddle": puddle::VERSION, "log": log::header::VERSION },
        "pools": pools.len(),
        "puddles": puddles.len(),
        "puddle_bytes": bytes,
        "disk_bytes": disk,
        "types": reader.types().count(),
        "damaged_files": states.all_files_to_json(),
        "quarantined": states.quarantined(),
    }))
}

fn domain_of(reader: &ReadOnlyStore) -> Result<Domain, Failure> {
    match reader.served() {
        Some(info) => Ok(info.domain),
        None => detect(reader.path()),
    }
}

/// Nobody but the service may look at each file.
fn disk_of(reader: &ReadOnlyStore) -> Result<Option<u64>, Failure> {
    match reader.served() {
        Some(_) => Ok(None),
        None => disk_bytes(reader.path()).map(Some),
    }
}

/// The domain of a store by a file of it, so that nothing is written. Any other directory is tried with a file that has
/// no name.
fn detect(path: &Path) -> Result<Domain, Failure> {
    let found = match MediaFile::open(path, store::FILE_NAME, false) {
        Ok(file) => domain::of_file(&file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => domain::detect(path),
        Err(error) => Err(error),
    };
    found.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
            Failure::Refused(format!(
                "{}: no directory is here; name one that exists",
                path.display()
            ))
        }
        _ => Failure::file("finding the domain", path, error),
    })
}

/// What the files of a store take on the disk.
fn disk_bytes(directory: &Path) -> Result<u64, Failure> {
    let mut sum = 0;
    let failed = |error| Failure::file("listing", directory, error);
    for entry in fs::read_dir(directory).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => sum += disk_bytes(&entry.path())?,
            // In units of 512 bytes, whatever the file system's block is.
            Ok(metadata) => sum += metadata.blocks() * 512,
            // A writer may remove files meanwhile.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(sum)
}
