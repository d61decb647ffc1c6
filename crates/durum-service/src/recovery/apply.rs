//! Brings home locations into the state that recovery's plans ask for.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use durum_format::Uuid;
use durum_persist::Site;
use durum_persist::file::MediaFile;

use super::obstacle::is_of_pool;
use super::plan::ClientPlan;
use super::workers;
use super::write::{HomeWrite, WriteKind};
use crate::error::{Error, Result};
use crate::files;
use crate::registry::contents::Contents;

const LOGS: Site = Site("logs that are replayed");
const HOME: Site = Site("recovered data");

/// Makes all writes of a plan, and makes them durable; the logs, and what it relies on, before. Applying them again
/// gives the same bytes.
///
/// Returns the pools whose files could not be written, and why: the others are whole.
///
/// # Errors
/// Of the system. Some of the writes may have been made: the logs are whole, and the next opener makes them again.
pub(crate) fn apply(
    store: &Path,
    contents: &Contents,
    plan: &ClientPlan,
) -> Result<BTreeMap<Uuid, Error>> {
    let pages = plan.writes.iter().map(HomeWrite::pages).sum();
    let threads = workers::count(pages);
    if plan.replays_logs {
        // Where the power stayed on and only the process ended, files hold what was never synced.
        let logs: Vec<Uuid> = plan.sound.iter().copied().collect();
        // ORDER: the logs are durable before they are replayed; else a power cut now leaves a part of a transaction,
        // and no log that tells of it.
        let sync = |log: &Uuid| sync(&open(store, contents, *log)?, LOGS);
        workers::map(&logs, threads, sync)
            .into_iter()
            .collect::<Result<()>>()?;
    }
    // Each home is opened once. Writes to one puddle stay in their order; those to different ones have none.
    let mut homes: BTreeMap<Uuid, Home<'_>> = BTreeMap::new();
    let all = plan.writes.iter().chain(&plan.endings);
    for puddle in plan.relied_on.iter().chain(all.map(|write| &write.puddle)) {
        if let Entry::Vacant(entry) = homes.entry(*puddle) {
            entry.insert(Home {
                puddle: *puddle,
                file: open(store, contents, *puddle)?,
                is_relied_on: plan.relied_on.contains(puddle),
                writes: Vec::new(),
            });
        }
    }
    for write in &plan.writes {
        if let Some(home) = homes.get_mut(&write.puddle) {
            home.writes.push(write);
        }
    }
    let mut by_work: Vec<&Home<'_>> = homes.values().collect();
    // The most work first: no thread has much left when the others are done.
    by_work.sort_by_key(|home| std::cmp::Reverse(home.writes.len()));
    // ORDER: what went home with a record is durable before the record is replayed; else a power cut now leaves a part
    // of that transaction, and a record that does not count. So is the copy of a Twin pool that the other one becomes.
    let mut failed = Failed::default();
    failed.each(contents, &by_work, threads, |home| {
        match home.is_relied_on {
            true => sync(&home.file, HOME),
            false => Ok(()),
        }
    })?;
    failed.each(contents, &by_work, threads, |home| {
        if home.writes.is_empty() {
            return Ok(());
        }
        home.writes
            .iter()
            .try_for_each(|write| make(&home.file, write))?;
        // ORDER: home locations are durable before the registry forgets the logs; else a crash after that commit
        // leaves a transaction half undone or half done, and no log to tell. And both copies of a Twin pool before it
        // is idle.
        sync(&home.file, HOME)
    })?;
    // Not synced: who finds the old state compares two copies that are the same.
    for write in &plan.endings {
        if let Some(home) = homes.get(&write.puddle)
            && !failed.concerns(contents, home.puddle)
        {
            make(&home.file, write)?;
        }
    }
    Ok(failed.0)
}

/// The pools whose files could not be written, and why.
#[derive(Default)]
struct Failed(BTreeMap<Uuid, Error>);

impl Failed {
    fn concerns(&self, contents: &Contents, puddle: Uuid) -> bool {
        let record = contents.puddles.get(&puddle);
        record.is_some_and(|record| self.0.contains_key(&record.owner))
    }

    /// Does the work for each puddle whose pool has not failed.
    fn each(
        &mut self,
        contents: &Contents,
        homes: &[&Home<'_>],
        threads: usize,
        work: impl Fn(&Home<'_>) -> Result<()> + Sync,
    ) -> Result<()> {
        let homes: Vec<&Home<'_>> = homes
            .iter()
            .filter(|home| !self.concerns(contents, home.puddle))
            .copied()
            .collect();
        let done = workers::map(&homes, threads, |home| work(home));
        for (home, result) in homes.iter().zip(done) {
            let Err(error) = result else { continue };
            match contents.puddles.get(&home.puddle) {
                Some(record) if is_of_pool(&error) => {
                    self.0.entry(record.owner).or_insert(error);
                }
                _ => return Err(error),
            }
        }
        Ok(())
    }
}

/// A data puddle, and what is to be done with it.
struct Home<'p> {
    puddle: Uuid,
    file: MediaFile,
    /// It has bytes that no write brings again.
    is_relied_on: bool,
    writes: Vec<&'p HomeWrite>,
}

fn make(file: &MediaFile, write: &HomeWrite) -> Result<()> {
    let failed = |operation| move |error| Error::io_at(operation, file, write.offset, error);
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
    files::open(store, puddle, contents.puddle(store, puddle)?, true)
}
