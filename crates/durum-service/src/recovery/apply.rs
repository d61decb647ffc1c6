//! Brings home locations into the state that recovery's plans ask for.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use durum_format::Uuid;
use durum_persist::Site;
use durum_persist::file::MediaFile;

use super::plan::ClientPlan;
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
    // Where the power stayed on and only the process ended, files hold what was never synced.
    if !plan.writes.is_empty() {
        for puddle in &plan.sound {
            // ORDER: the logs are durable before they are replayed; else a power cut now leaves a part of a transaction, and no log that tells of it.
            sync(&open(store, contents, *puddle)?, LOGS)?;
        }
    }
    let mut files: BTreeMap<Uuid, MediaFile> = BTreeMap::new();
    for puddle in &plan.relied_on {
        let file = open(store, contents, *puddle)?;
        // ORDER: what went home with a record is durable before the record is replayed; else a power cut now leaves a part of that transaction, and
        // a record that does not count.
        sync(&file, HOME)?;
        files.insert(*puddle, file);
    }
    make(store, contents, &plan.writes, &mut files)?;
    for file in files.values() {
        // ORDER: home locations are durable before the registry forgets the logs; else a crash after that commit
        // leaves a transaction half undone or half done, and no log to tell. And both copies of a Twin pool before it is idle.
        sync(file, HOME)?;
    }
    // Not synced: who finds the old state compares two copies that are the same.
    make(store, contents, &plan.endings, &mut files)
}

/// Makes writes; those to files that are not in `files` put them there.
fn make(
    store: &Path,
    contents: &Contents,
    writes: &[HomeWrite],
    files: &mut BTreeMap<Uuid, MediaFile>,
) -> Result<()> {
    for write in writes {
        let file = &*match files.entry(write.puddle) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(open(store, contents, write.puddle)?),
        };
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
                .map_err(failed("recovering data"))?,
            WriteKind::SetBits(_) | WriteKind::ClearBits(_) => {
                let mut word = [0; 8];
                file.read_exact_at(&mut word, write.offset)
                    .map_err(failed("reading a bitmap"))?;
                write.apply_to(write.offset, &mut word);
                file.write_all_at(&word, write.offset)
                    .map_err(failed("recovering a bitmap"))?;
            }
        }
    }
    Ok(())
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
