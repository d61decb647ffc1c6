//! Twin pools: the copy that is not whole becomes what the other one is (Romulus, SPAA'18, Algorithm 1).
//!
//! Which one that is says the state in the pool's root puddle. Both copies are read as far as the whole one has objects, and only
//! what differs is written.

use std::path::Path;

use durum_format::extent::{self, HeapBytes, HeapError};
use durum_format::puddle::{
    BITMAP_OFFSET, PuddleHeader, TWIN_STATE_OFFSET, TwinState, bitmap_words, heap_offset,
};
use durum_format::{LINE, Uuid};
use durum_persist::file::MediaFile;

use super::plan::{ClientPlan, Verdict};
use super::write::{HomeWrite, WriteKind};
use crate::error::{Error, Result};
use crate::files;
use crate::model::EngineKind;
use crate::registry::contents::Contents;

/// Bytes compared at a time.
const CHUNK: usize = 64 << 10;

/// Adds what has to be done for the Twin pools that a client had open.
///
/// # Errors
/// Of the system; `Damaged` where a state is none.
pub(super) fn plan_twins(
    store: &Path,
    contents: &Contents,
    client: Uuid,
    plan: &mut ClientPlan,
) -> Result<()> {
    for pool in contents.granted_pools(client) {
        let Some(record) = contents.pools.get(&pool) else {
            continue;
        };
        if record.engine == EngineKind::Twin {
            plan_pool(store, contents, pool, record.root_puddle, plan)?;
        }
    }
    Ok(())
}

fn plan_pool(
    store: &Path,
    contents: &Contents,
    pool: Uuid,
    root: Uuid,
    plan: &mut ClientPlan,
) -> Result<()> {
    let puddles = contents.puddles_of(pool);
    let Some((_, root_record)) = puddles.iter().find(|(uuid, _)| *uuid == root) else {
        return Ok(()); // The registry was validated.
    };
    let root_file = files::open(store, root, root_record, false)?;
    let (verdict, from, to) = match read_state(&root_file)? {
        TwinState::Idle => return Ok(()),
        TwinState::Changing => (Verdict::RollBack, Copy::Back, Copy::Main),
        TwinState::Copying => (Verdict::RollForward, Copy::Main, Copy::Back),
    };
    for (uuid, record) in &puddles {
        let header = files::header_of(*uuid, record);
        let file = files::open(store, *uuid, record, false)?;
        let whole = CopyView {
            file: &file,
            start: from.start(&header),
        };
        let other = CopyView {
            file: &file,
            start: to.start(&header),
        };
        let used_end = match extent::used_end(&whole, &header) {
            Err(HeapError::Read(error)) => return Err(error),
            // Where its heap is damaged, all of it counts as used.
            found => found.unwrap_or(header.size),
        };
        let bitmap = BITMAP_OFFSET..BITMAP_OFFSET + bitmap_words(header.size) * 8;
        let heap = heap_offset(header.size)..used_end;
        for range in [bitmap, heap] {
            plan_range(*uuid, &whole, &other, range, &mut plan.writes)?;
        }
    }
    // Only once the copies are durable may they be called the same.
    plan.endings.push(HomeWrite {
        puddle: root,
        offset: TWIN_STATE_OFFSET,
        kind: WriteKind::Copy((TwinState::Idle as u64).to_le_bytes().to_vec()),
    });
    plan.relied_on.insert(root);
    plan.twins.push(verdict);
    Ok(())
}

fn read_state(root: &MediaFile) -> Result<TwinState> {
    let mut word = [0; 8];
    read_at(root, TWIN_STATE_OFFSET, &mut word)?;
    let number = u64::from_le_bytes(word);
    TwinState::from_media(number).ok_or_else(|| Error::Damaged {
        file: root.path().to_owned(),
        structure: "state of a Twin pool",
        offset: TWIN_STATE_OFFSET,
        problem: format!("{number:#x} is none of 0 (idle), 1 (changing) and 2 (copying)"),
        cure: "restore a copy of the store",
    })
}

#[derive(Clone, Copy)]
enum Copy {
    Main,
    Back,
}

impl Copy {
    /// Where in the puddle's file it begins.
    fn start(self, header: &PuddleHeader) -> u64 {
        match self {
            Copy::Main => 0,
            Copy::Back => header.size,
        }
    }
}

/// One of the two copies in a puddle's file.
struct CopyView<'a> {
    file: &'a MediaFile,
    start: u64,
}

impl HeapBytes for CopyView<'_> {
    type Error = Error;

    fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        read_at(self.file, self.start + offset, buffer)
    }
}

fn read_at(file: &MediaFile, offset: u64, buffer: &mut [u8]) -> Result<()> {
    file.read_exact_at(buffer, offset)
        .map_err(|source| Error::Io {
            operation: "reading a puddle",
            path: file.path().to_owned(),
            offset: Some(offset),
            source,
        })
}

/// Adds the writes that make a range of the other copy what it is in the whole one.
fn plan_range(
    puddle: Uuid,
    whole: &CopyView<'_>,
    other: &CopyView<'_>,
    range: std::ops::Range<u64>,
    writes: &mut Vec<HomeWrite>,
) -> Result<()> {
    let (mut wanted, mut found) = (vec![0; CHUNK], vec![0; CHUNK]);
    let mut offset = range.start;
    while offset < range.end {
        let length = (range.end - offset).min(CHUNK as u64) as usize;
        let (wanted, found) = (&mut wanted[..length], &mut found[..length]);
        whole.read(offset, wanted)?;
        other.read(offset, found)?;
        if wanted != found {
            for (run, bytes) in differing(wanted, found) {
                writes.push(HomeWrite {
                    puddle,
                    offset: other.start + offset + run as u64,
                    kind: WriteKind::Copy(bytes.to_vec()),
                });
            }
        }
        offset += length as u64;
    }
    Ok(())
}

/// The runs of lines in which two ranges differ: where they begin, and what the first one has there.
fn differing<'a>(wanted: &'a [u8], found: &[u8]) -> Vec<(usize, &'a [u8])> {
    let line = LINE as usize;
    let lines = wanted.chunks(line).zip(found.chunks(line)).enumerate();
    let mut runs: Vec<std::ops::Range<usize>> = Vec::new();
    for (index, _) in lines.filter(|(_, (wanted, found))| wanted != found) {
        let start = index * line;
        let end = (start + line).min(wanted.len());
        match runs.last_mut() {
            Some(run) if run.end == start => run.end = end,
            _ => runs.push(start..end),
        }
    }
    runs.into_iter()
        .map(|run| (run.start, &wanted[run]))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_lines_that_differ_are_found_whole() {
        let wanted = vec![1u8; 300];
        let mut found = wanted.clone();
        assert!(differing(&wanted, &found).is_empty());
        found[0] = 0;
        found[64] = 0;
        found[299] = 0;
        let runs: Vec<_> = differing(&wanted, &found)
            .into_iter()
            .map(|(at, bytes)| (at, bytes.len()))
            .collect();
        assert_eq!(runs, [(0, 128), (256, 44)]);
    }
}
