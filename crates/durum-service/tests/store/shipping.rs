//! Pools that are exported and imported: what arrives is what left, at whatever addresses, or is told by name.

mod archives;
mod arrivals;
mod damaged;
mod files;
mod power;

use std::path::{Path, PathBuf};

use durum_service::{
    Embedded, Error, Export, ExportOptions, ImportOptions, ImportReport, PuddleGrant, Service,
    export,
};

use crate::moving::POOLS;
use crate::support::open_all;

/// Exports a pool beside its store.
fn export_beside(store: &Path, pool: &str, with_referenced: bool) -> PathBuf {
    let place = store.with_file_name("export");
    let options = ExportOptions {
        with_referenced,
        ..ExportOptions::default()
    };
    export(store, pool, &place, &options).unwrap();
    place
}

fn import(store: &Embedded, place: &Path, options: &ImportOptions) -> Result<ImportReport, Error> {
    store.import(&Export::open(place)?, options)
}

fn named(name: &str) -> ImportOptions {
    ImportOptions {
        name: Some(name.to_owned()),
        ..ImportOptions::default()
    }
}

fn copied() -> ImportOptions {
    ImportOptions {
        copies: true,
        ..ImportOptions::default()
    }
}

/// The puddles of the pools that [`lists`] makes.
fn puddles_of(store: &Embedded) -> Vec<PuddleGrant> {
    let opened = POOLS.map(|(name, _)| open_all(store, store.open_pool(name).unwrap()));
    opened.into_iter().flatten().collect()
}
