//! Twin pools: the copy that is not whole becomes what the other one is (Romulus, SPAA'18, Algorithm 1).
//!
//! Which one that is say the state and the seals in the pool's root puddle (docs/format/twin.md). Both copies are read
//! as far as the whole one has objects, and only what differs is written.

use std::ops::Range;
use std::sync::Arc;

use durum_format::extent::{self, HeapBytes, HeapError};
use durum_format::puddle::{BITMAP_OFFSET, PuddleHeader, bitmap_words, heap_offset};
use durum_format::twin::{self, Copy, Seal, Stage, State, Whole};
use durum_format::{LINE, Uuid};
use durum_persist::file::MediaFile;

use super::home::{Access, Home};
use super::plan::{ClientPlan, Outcome};
use super::refused::Refusal;
use super::write::{HomeWrite, WriteKind};
use crate::error::{Error, Result};
use crate::files::{self, Puddles};
use crate::model::{EngineKind, PuddleGrant};
use crate::reading::{self, HeapInFile};
use crate::registry::contents::{Contents, PuddleRecord};

/// Bytes compared at a time.
const CHUNK: usize = 64 << 10;
/// Writes for as many bytes: they take less than a hundredth of their memory.
const RUNS_MAX: usize = 8;

/// Adds what has to be done for the Twin pools that a client had open.
///
/// One whose files are not what they must be is refused: what it needs for its recovery lies in them.
///
/// # Errors
/// Of the system.
pub(super) fn plan_twins(
    files: &Puddles,
    contents: &Contents,
    client: Uuid,
    access: Access,
    home: &mut Home<'_>,
    plan: &mut ClientPlan,
) -> Result<()> {
    for pool in contents.granted_pools(client) {
        let Some(record) = contents.pools.get(&pool) else {
            continue;
        };
        if record.engine != EngineKind::Twin {
            continue;
        }
        let mut own = ClientPlan::default();
        let puddles = contents.puddles_of(pool);
        match plan_pool(files, &puddles, record.root_puddle, access, &mut own) {
            Ok(()) => {
                plan.writes.append(&mut own.writes);
                plan.endings.append(&mut own.endings);
                plan.relied_on.append(&mut own.relied_on);
                plan.twins.append(&mut own.twins);
            }
            Err(error) => {
                let refusal = Refusal::of(&error);
                home.refuse(pool, error)?;
                plan.refused.insert(pool, refusal);
            }
        }
    }
    Ok(())
}

/// What has to be done for a Twin pool that nobody has open, by its puddles. Nothing, unless a file of it was put back
/// after all others were recovered.
///
/// # Errors
/// What is wrong with its files; of the system.
pub(crate) fn plan_twin(
    files: &Puddles,
    puddles: &[(Uuid, PuddleRecord)],
    root: &PuddleGrant,
) -> Result<ClientPlan> {
    let mut plan = ClientPlan::default();
    // Of a pool whose copies are the same no other file is opened.
    if read_state(&root.file)?.stage != Stage::Idle {
        plan_pool(files, puddles, root.uuid, Access::Write, &mut plan)?;
    }
    Ok(plan)
}

fn plan_pool(
    files: &Puddles,
    registered: &[(Uuid, PuddleRecord)],
    root: Uuid,
    access: Access,
    plan: &mut ClientPlan,
) -> Result<()> {
    let mut puddles = Vec::new();
    for (uuid, record) in registered {
        puddles.push(OpenPuddle {
            header: files::header_of(*uuid, record),
            file: files.open_kept(*uuid, record, access == Access::Write)?,
        });
    }
    let pool = OpenPool { puddles };
    let Some(root) = pool
        .puddles
        .iter()
        .find(|puddle| puddle.header.uuid == root)
    else {
        return Ok(()); // The registry was validated.
    };
    let state = read_state(&root.file)?;
    let Some(whole) = pool.whole_copy(root, state)? else {
        return Ok(());
    };
    let (verdict, other) = match whole {
        Copy::Back => (Outcome::RollBack, Copy::Main),
        Copy::Main => (Outcome::RollForward, Copy::Back),
    };
    for puddle in &pool.puddles {
        let (header, whole, other) = (puddle.header, puddle.view(whole), puddle.view(other));
        let used_end = match extent::used_end(&whole, &header) {
            Err(HeapError::Read(error)) => return Err(error),
            // Where its heap is damaged, all of it counts as used.
            found => found.unwrap_or(header.size),
        };
        let bitmap = BITMAP_OFFSET..BITMAP_OFFSET + bitmap_words(header.size) * 8;
        let heap = heap_offset(header.size)..used_end;
        for range in [bitmap, heap] {
            plan_range(header.uuid, &whole, &other, range, &mut plan.writes)?;
        }
    }
    // Only once the copies are durable may they be called the same.
    let idle = State {
        stage: Stage::Idle,
        ..state
    };
    plan.endings.push(HomeWrite {
        puddle: root.header.uuid,
        offset: twin::STATE_OFFSET,
        kind: WriteKind::Copy(idle.to_word().to_le_bytes().to_vec().into()),
    });
    // What tells which copy is whole, and that copy itself, may be in the page cache only.
    let relied_on = pool.puddles.iter().map(|puddle| puddle.header.uuid);
    plan.relied_on.extend(relied_on);
    plan.twins.push(verdict);
    Ok(())
}

struct OpenPuddle {
    header: PuddleHeader,
    file: Arc<MediaFile>,
}

impl OpenPuddle {
    fn view(&self, copy: Copy) -> HeapInFile<'_> {
        HeapInFile {
            file: &self.file,
            start: start(copy, &self.header),
        }
    }
}

struct OpenPool {
    puddles: Vec<OpenPuddle>,
}

impl OpenPool {
    /// The copy that the other one has to follow; `None` where they are the same.
    fn whole_copy(&self, root: &OpenPuddle, state: State) -> Result<Option<Copy>> {
        let holds = |copy, generation| match read_seal(root, generation)? {
            Some(seal) => self.holds(copy, &seal),
            None => Ok(false),
        };
        match twin::whole_copy(state, holds)? {
            Whole::Both => Ok(None),
            Whole::One(copy) => Ok(Some(copy)),
            Whole::Neither => Err(Error::Damaged {
                file: root.file.path().to_owned(),
                structure: "seal of a Twin pool",
                offset: twin::seal_offset(root.header.size, state.generation.wrapping_sub(1)),
                problem: format!(
                    "it fits neither copy, and transaction {} may have changed one",
                    state.generation
                ),
                cure: files::BRING_BACK.into(),
            }),
        }
    }

    /// Whether a copy holds what a transaction left.
    fn holds(&self, copy: Copy, seal: &Seal) -> Result<bool> {
        let mut is_inside = true;
        let mut bytes = Vec::new();
        let matches = seal.matches(|crc| {
            for range in &seal.ranges {
                let (address, length) = (range.address(), range.length());
                let puddle = self
                    .puddles
                    .iter()
                    .find(|puddle| puddle.header.admits(address, length as u64));
                let Some(puddle) = puddle else {
                    is_inside = false;
                    continue;
                };
                bytes.resize(length, 0);
                puddle
                    .view(copy)
                    .read(address - puddle.header.address, &mut bytes)?;
                crc.update(&bytes);
            }
            Ok::<_, Error>(())
        })?;
        Ok(is_inside && matches)
    }
}

fn read_seal(root: &OpenPuddle, generation: u64) -> Result<Option<Seal>> {
    let mut place = [0; twin::SEAL_SIZE];
    let offset = twin::seal_offset(root.header.size, generation);
    reading::exact(&root.file, offset, &mut place, "reading a puddle")?;
    Ok(Seal::parse(&place, generation))
}

fn read_state(root: &MediaFile) -> Result<State> {
    let mut word = [0; 8];
    reading::exact(root, twin::STATE_OFFSET, &mut word, "reading a puddle")?;
    let word = u64::from_le_bytes(word);
    State::from_word(word).ok_or_else(|| Error::Damaged {
        file: root.path().to_owned(),
        structure: "state of a Twin pool",
        offset: twin::STATE_OFFSET,
        problem: format!("{word:#x} has no stage"),
        cure: files::BRING_BACK.into(),
    })
}

/// Where in a puddle's file a copy begins.
fn start(copy: Copy, header: &PuddleHeader) -> u64 {
    match copy {
        Copy::Main => 0,
        Copy::Back => header.size,
    }
}

/// Adds the writes that make a range of the other copy what it is in the whole one.
fn plan_range(
    puddle: Uuid,
    whole: &HeapInFile<'_>,
    other: &HeapInFile<'_>,
    range: Range<u64>,
    writes: &mut Vec<HomeWrite>,
) -> Result<()> {
    let size = CHUNK.min((range.end - range.start) as usize);
    let (mut wanted, mut found) = (vec![0; size], vec![0; size]);
    let mut offset = range.start;
    while offset < range.end {
        let length = (range.end - offset).min(CHUNK as u64) as usize;
        let (wanted, found) = (&mut wanted[..length], &mut found[..length]);
        whole.read(offset, wanted)?;
        other.read(offset, found)?;
        if wanted != found {
            for run in differing(wanted, found) {
                let at = offset + run.start as u64;
                writes.push(HomeWrite {
                    puddle,
                    offset: other.start + at,
                    kind: WriteKind::Follow {
                        from: whole.start + at,
                        length: run.len() as u64,
                    },
                });
            }
        }
        offset += length as u64;
    }
    Ok(())
}

/// The runs of lines in which two ranges differ. Where there are many, the last one has the rest: the plan of a pool's
/// recovery is to be small, however its client has scattered what it changed.
fn differing(wanted: &[u8], found: &[u8]) -> Vec<Range<usize>> {
    let line = LINE as usize;
    let lines = wanted.chunks(line).zip(found.chunks(line)).enumerate();
    let mut runs: Vec<Range<usize>> = Vec::new();
    for (index, _) in lines.filter(|(_, (wanted, found))| wanted != found) {
        let start = index * line;
        let end = (start + line).min(wanted.len());
        let is_full = runs.len() == RUNS_MAX;
        match runs.last_mut() {
            Some(run) if run.end == start || is_full => run.end = end,
            _ => runs.push(start..end),
        }
    }
    runs
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
        assert_eq!(differing(&wanted, &found), [0..128, 256..300]);
        // Every second line: the last run has the rest.
        let found: Vec<u8> = (0..CHUNK).map(|at| (at / 128 % 2) as u8).collect();
        let runs = differing(&[1; CHUNK], &found);
        assert_eq!(runs.len(), RUNS_MAX);
        assert_eq!(runs[RUNS_MAX - 1], (RUNS_MAX - 1) * 256..CHUNK - 128);
    }
}
