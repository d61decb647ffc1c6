//! Brings home locations into the state that recovery's plans ask for.

use std::collections::BTreeMap;
use std::path::Path;

use durum_format::Uuid;
use durum_persist::Site;
use durum_persist::file::MediaFile;

use super::plan::ClientPlan;
use super::workers;
use super::write::{HomeWrite, WriteKind};
use crate::error::{Error, Result};
use crate::files;
use crate::registry::contents::Contents;

const LOGS: Site = Site("logs that are replayed");
const HOME: Site = Site("recovered data");

/// Makes all writes of a plan, and makes them durable; the logs, and what it relies on, before. Applying them again gives the same bytes.
///
/// # Errors
/// Of the system. Some of the writes may have been made: the logs are whole, and the next opener makes them again.
pub(crate) fn apply(store: &Path, contents: &Contents, plan: &ClientPlan) -> Result<()> {
    let pages = plan.writes.iter().map(HomeWrite::pages).sum();
    let threads = workers::count(pages);
    let made_durable = |puddle, site| sync(&open(store, contents, puddle)?, site);
    // Where the power stayed on and only the process ended, files hold what was never synced.
    let mut before: Vec<(Uuid, Site)> = Vec::new();
    if !plan.writes.is_empty() {
        // ORDER: the logs are durable before they are replayed; else a power cut now leaves a part of a transaction, and no log that tells of it.
        before.extend(plan.sound.iter().map(|puddle| (*puddle, LOGS)));
    }
    // ORDER: what went home with a record is durable before the record is replayed; else a power cut now leaves a part of that transaction, and
    // a record that does not count.
    before.extend(plan.relied_on.iter().map(|puddle| (*puddle, HOME)));
    workers::map(&before, threads, |(puddle, site)| {
        made_durable(*puddle, *site)
    })
    .into_iter()
    .collect::<Result<()>>()?;
    // Writes to one puddle stay in their order; those to different ones have none.
    let mut by_puddle: BTreeMap<Uuid, Vec<&HomeWrite>> = BTreeMap::new();
    for write in &plan.writes {
        by_puddle.entry(write.puddle).or_default().push(write);
    }
    let mut by_puddle: Vec<(Uuid, Vec<&HomeWrite>)> = by_puddle.into_iter().collect();
    // The most work first: no thread has much left when the others are done.
    by_puddle.sort_by_key(|(_, writes)| std::cmp::Reverse(writes.len()));
    workers::map(&by_puddle, threads, |(puddle, writes)| {
        let file = open(store, contents, *puddle)?;
        writes.iter().try_for_each(|write| make(&file, write))?;
        // ORDER: home locations are durable before the registry forgets the logs; else a crash after that commit
        // leaves a transaction half undone or half done, and no log to tell. And both copies of a Twin pool before it is idle.
        sync(&file, HOME)
    })
    .into_iter()
    .collect::<Result<()>>()?;
    // Not synced: who finds the old state compares two copies that are the same.
    plan.endings
        .iter()
        .try_for_each(|write| make(&open(store, contents, write.puddle)?, write))
}

fn make(file: &MediaFile, write: &HomeWrite) -> Result<()> {
    let failed = |operation| {
        move |source| Error::Io {
            operation,
            path: file.path().to_owned(),
            offset: Some(write.offset),
            source,
        }
    };
    match &write.kind {
        WriteKind::Copy(data) => file
            .write_all_at(data, write.offset)
            .map_err(failed("recovering data")),
        WriteKind::Bits { .. } => {
            let mut word = [0; 8];
            file.read_exact_at(&mut word, write.offset)
                .map_err(failed("reading a bitmap"))?;
            write.apply_to(write.offset, &mut word);
            file.write_all_at(&word, write.offset)
                .map_err(failed("recovering a bitmap"))
        }
    }
}

fn sync(file: &MediaFile, site: Site) -> Result<()> {
    file.sync(site)
        .map_err(|error| Error::io("making recovered data durable", file.path(), error))
}

fn open(store: &Path, contents: &Contents, puddle: Uuid) -> Result<MediaFile> {
    let Some(record) = contents.puddles.get(&puddle) else {
        return Err(Error::PuddleUnknown {
            store: store.to_owned(),
            uuid: puddle.to_string(),
        });
    };
    files::open(store, puddle, record, true)
}
