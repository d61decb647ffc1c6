//! Brings home locations into the state that recovery's plans ask for.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use durum_format::Uuid;
use durum_persist::Site;
use durum_persist::file::MediaFile;

use super::obstacle::is_of_pool;
use super::plan::ClientPlan;
use super::refused::Refusal;
use super::workers;
use super::write::{HomeWrite, WriteKind};
use crate::error::{Error, Result};
use crate::files::Puddles;
use crate::reading;
use crate::registry::contents::Contents;

/// Bytes that are copied at a time.
const CHUNK_BYTES: usize = 64 << 10;

const LOGS: Site = Site("logs that are replayed");
const HOME: Site = Site("recovered data");

/// Makes the logs and records durable from which a plan comes, if any. Where the power stayed on and only the process
/// ended, files hold what was never synced.
///
/// Returns what is wrong with a log, which somebody may cut short after it was read: then nothing of the plan may be
/// written.
///
/// # Errors
/// Of the system.
pub(crate) fn sync_logs(
    puddles: &Puddles,
    contents: &Contents,
    plan: &ClientPlan,
) -> Result<Option<Refusal>> {
    if !plan.replays_logs && plan.interrupted.is_none() {
        return Ok(None);
    }
    let logs: Vec<Uuid> = plan.sound.iter().copied().collect();
    // ORDER: the logs are durable before they are replayed; else a power cut now leaves a part of a transaction, and
    // no log that tells of it. And records before sections go on from them, and write over the ones before.
    let sync = |log: &Uuid| {
        let file = open(puddles, contents, *log)?;
        sync(&file, LOGS)
    };
    for synced in workers::map(&logs, threads(plan), sync) {
        match synced {
            Err(error) if is_of_pool(&error) => return Ok(Some(Refusal::of(&error))),
            synced => synced?,
        }
    }
    Ok(None)
}

fn threads(plan: &ClientPlan) -> usize {
    workers::count(plan.writes.iter().map(HomeWrite::pages).sum())
}

/// Makes all writes of a plan, and makes them durable; what it relies on, before. Applying them again gives the same
/// bytes.
///
/// Returns the pools whose files could not be written, and why: the others are whole.
///
/// # Errors
/// Of the system. Some of the writes may have been made: the logs are whole, and the next opener makes them again.
pub(crate) fn apply(
    puddles: &Puddles,
    contents: &Contents,
    plan: &ClientPlan,
) -> Result<BTreeMap<Uuid, Error>> {
    let threads = threads(plan);
    let mut failed = Failed::default();
    // Each puddle is opened once. Writes to one puddle stay in their order; those to different ones have none.
    let mut targets: BTreeMap<Uuid, TargetPuddle<'_>> = BTreeMap::new();
    for puddle in plan.puddles() {
        if let Entry::Vacant(entry) = targets.entry(puddle)
            && let Some(file) = failed.without(contents, puddle, open(puddles, contents, puddle))?
        {
            entry.insert(TargetPuddle {
                puddle,
                file,
                is_relied_on: plan.relied_on.contains(&puddle),
                writes: Vec::new(),
            });
        }
    }
    for write in &plan.writes {
        if let Some(target) = targets.get_mut(&write.puddle) {
            target.writes.push(write);
        }
    }
    let mut by_work: Vec<&TargetPuddle<'_>> = targets.values().collect();
    // The most work first: no thread has much left when the others are done.
    by_work.sort_by_key(|target| std::cmp::Reverse(target.writes.len()));
    // ORDER: what went home with a record is durable before the record is replayed; else a power cut now leaves a part
    // of that transaction, and a record that does not count. So is the copy of a Twin pool that the other one becomes.
    failed.each(contents, &by_work, threads, |target| {
        match target.is_relied_on {
            true => sync(&target.file, HOME),
            false => Ok(()),
        }
    })?;
    failed.each(contents, &by_work, threads, |target| {
        if target.writes.is_empty() {
            return Ok(());
        }
        target
            .writes
            .iter()
            .try_for_each(|write| make(&target.file, write))?;
        // ORDER: home locations are durable before the registry forgets the logs; else a crash after that commit
        // leaves a transaction half undone or half done, and no log to tell. And both copies of a Twin pool before it
        // is idle.
        sync(&target.file, HOME)
    })?;
    // Not synced: who finds the old state compares two copies that are the same.
    for write in &plan.endings {
        if let Some(target) = targets.get(&write.puddle)
            && !failed.concerns(contents, target.puddle)
        {
            failed.without(contents, target.puddle, make(&target.file, write))?;
        }
    }
    Ok(failed.0)
}

/// The pools whose files could not be written, and why.
#[derive(Default)]
struct Failed(BTreeMap<Uuid, Error>);

impl Failed {
    /// What came of an operation on a puddle whose pool has not failed; nothing where it fails the pool.
    fn without<T>(
        &mut self,
        contents: &Contents,
        puddle: Uuid,
        result: Result<T>,
    ) -> Result<Option<T>> {
        let error = match result {
            Ok(done) => return Ok(Some(done)),
            Err(error) => error,
        };
        match contents.puddles.get(&puddle) {
            Some(record) if is_of_pool(&error) => {
                self.0.entry(record.owner).or_insert(error);
                Ok(None)
            }
            _ => Err(error),
        }
    }

    fn concerns(&self, contents: &Contents, puddle: Uuid) -> bool {
        let record = contents.puddles.get(&puddle);
        record.is_some_and(|record| self.0.contains_key(&record.owner))
    }

    /// Does the work for each puddle whose pool has not failed.
    fn each(
        &mut self,
        contents: &Contents,
        targets: &[&TargetPuddle<'_>],
        threads: usize,
        work: impl Fn(&TargetPuddle<'_>) -> Result<()> + Sync,
    ) -> Result<()> {
        let targets: Vec<&TargetPuddle<'_>> = targets
            .iter()
            .filter(|target| !self.concerns(contents, target.puddle))
            .copied()
            .collect();
        let done = workers::map(&targets, threads, |target| work(target));
        for (target, result) in targets.iter().zip(done) {
            self.without(contents, target.puddle, result)?;
        }
        Ok(())
    }
}

/// A data puddle, and what is to be done with it.
struct TargetPuddle<'p> {
    puddle: Uuid,
    file: Arc<MediaFile>,
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
        WriteKind::Follow { from, length } => {
            let mut buffer = vec![0; CHUNK_BYTES.min(*length as usize)];
            let mut at = 0;
            while at < *length {
                let part = &mut buffer[..(length - at).min(CHUNK_BYTES as u64) as usize];
                reading::exact(file, from + at, part, "reading a puddle")?;
                file.write_all_at(part, write.offset + at)
                    .map_err(failed("recovering data"))?;
                at += part.len() as u64;
            }
            Ok(())
        }
        WriteKind::Bits { set, clear } => {
            let mut word = [0; 8];
            file.read_exact_at(&mut word, write.offset)
                .map_err(failed("reading a bitmap"))?;
            let changed = u64::from_le_bytes(word) & !clear | set;
            file.write_all_at(&changed.to_le_bytes(), write.offset)
                .map_err(failed("recovering a bitmap"))
        }
    }
}

fn sync(file: &MediaFile, site: Site) -> Result<()> {
    file.sync(site)
        .map_err(|error| Error::io("making recovered data durable", file.path(), error))
}

fn open(puddles: &Puddles, contents: &Contents, puddle: Uuid) -> Result<Arc<MediaFile>> {
    puddles.open_kept(puddle, contents.puddle(puddles.store(), puddle)?, true)
}
