//! `durum rm`: removes a pool, or a whole store.

use std::fs;
use std::io::Write;
use std::path::Path;

use durum_service::{Embedded, OpenOptions, ReadOnlyStore, Service};

use crate::args::Rm;
use crate::confirm::confirm;
use crate::failure::Failure;
use crate::output::{count, size};
use crate::place::Place;

pub(crate) fn run(options: &Rm, out: &mut dyn Write) -> Result<(), Failure> {
    let place = Place::of(&options.store);
    match place.pool(options.pool.as_deref())? {
        Some(pool) => remove_pool(options, &place, pool, out),
        None => remove_store(options, place.directory("remove its store")?, out),
    }
}

fn remove_pool(
    options: &Rm,
    place: &Place,
    name: &str,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    // Opening also takes the lock: a pool that a program uses is not removed.
    let store = place.open(OpenOptions::default())?;
    let removed = ask_and_remove(options, &*store, name);
    let closed = store.close();
    removed?;
    closed?;
    writeln!(out, "removed pool \"{name}\"")?;
    Ok(())
}

fn ask_and_remove(options: &Rm, store: &dyn Service, name: &str) -> Result<(), Failure> {
    let pools = store.pools()?;
    // Where there is no such pool, the store says so.
    if let Some(pool) = pools.iter().find(|pool| pool.name == name) {
        let question = format!(
            "remove pool \"{name}\" ({} in {}) and everything in it?",
            size(pool.bytes),
            count(pool.puddles, "puddle")
        );
        confirm(options.yes, &question, "nothing was removed")?;
    }
    Ok(store.remove_pool(name)?)
}

fn remove_store(options: &Rm, path: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let identity = path.join(durum_format::store::FILE_NAME);
    // A store whose registry is damaged may go, too; a directory that is no store may not.
    let what = match ReadOnlyStore::open(path) {
        Ok(reader) => {
            let pools = reader.pools();
            let bytes = pools.iter().map(|pool| pool.bytes).sum();
            format!("{}, {}", count(pools.len() as u64, "pool"), size(bytes))
        }
        Err(error) if fs::symlink_metadata(&identity).is_err() => return Err(error.into()),
        Err(_) => "damaged".into(),
    };
    refuse_foreign(path)?;
    let question = format!(
        "remove the store {} ({what}) with everything in it?",
        path.display()
    );
    confirm(options.yes, &question, "nothing was removed")?;
    // Held to the end, so that no program opens the store while it goes.
    let _held = hold(path)?;
    // Without its identity nobody opens the rest, whatever happens from here on.
    fs::remove_file(&identity).map_err(|error| Failure::file("removing", &identity, error))?;
    fs::remove_dir_all(path).map_err(|error| Failure::file("removing", path, error))?;
    writeln!(out, "removed the store {}", path.display())?;
    Ok(())
}

/// Opens a store for its lock; refuses one that a program has open.
fn hold(path: &Path) -> Result<Option<Embedded>, Failure> {
    match Embedded::open(path, OpenOptions::default()) {
        Ok(store) => Ok(Some(store)),
        Err(error @ durum_service::Error::StoreBusy { .. }) => Err(error.into()),
        // Damaged or half made: nobody can have it open.
        Err(_) => Ok(None),
    }
}

/// Refuses a directory with files that are not the store's: they would go with it.
fn refuse_foreign(path: &Path) -> Result<(), Failure> {
    const OURS: [&str; 18] = [
        // Of the form before.
        "catalog",
        "catalog.new",
        "registry.redb",
        "registry.redb.damaged",
        "registry.redb.new",
        "clients",
        "durum.store",
        "durum.store.new",
        "lock",
        "puddles",
        "quarantine",
        "registry",
        "registry.copy",
        "registry.copy.new",
        "registry.damaged",
        "registry.new",
        "unfinished",
        "unregistered",
    ];
    let failed = |error| Failure::file("listing", path, error);
    for entry in fs::read_dir(path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if !OURS.iter().any(|ours| name == *ours) {
            return Err(Failure::Refused(format!(
                "{}: {} is no part of the store and would be removed with it; move it away first",
                path.display(),
                name.to_string_lossy()
            )));
        }
    }
    Ok(())
}
