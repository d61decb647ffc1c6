//! Twin pools: the copy that is not whole becomes what the other one is (Romulus, SPAA'18, Algorithm 1).
//!
//! Which one that is say the state and the seals in the pool's root puddle (docs/format/twin.md). Both copies are read
//! where the list of suspects says that they may differ, and where the last transaction's seal does; without a list, as
//! far as the whole one has objects. Only what differs is written.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use durum_format::extent::{self, HeapBytes, HeapError};
use durum_format::puddle::{BITMAP_OFFSET, PuddleHeader, bitmap_words, heap_offset};
use durum_format::twin::{self, Copy, Seal, Stage, State, Suspects, Whole};
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
    let is_root = |(uuid, _): &&(Uuid, PuddleRecord)| *uuid == root;
    let Some(root) = registered.iter().find(is_root) else {
        return Ok(()); // The registry was validated.
    };
    let root = Rc::new(OpenPuddle::open(files, root, access)?);
    let pool = OpenPool {
        files,
        registered,
        access,
        root: root.clone(),
        opened: RefCell::new(vec![root]),
    };
    let root = &pool.root;
    let state = read_state(&root.file)?;
    let Some(whole) = pool.whole_copy(state)? else {
        return Ok(());
    };
    let (verdict, other) = match whole {
        Copy::Back => (Outcome::RollBack, Copy::Main),
        Copy::Main => (Outcome::RollForward, Copy::Back),
    };
    let copies = (whole, other);
    let touched = match pool.suspects(state, whole)? {
        Suspects::Everywhere => pool.plan_all(copies, &mut plan.writes)?,
        Suspects::In(ranges) => pool.plan_ranges(copies, &ranges, &mut plan.writes)?,
    };
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
    plan.relied_on.insert(root.header.uuid);
    plan.relied_on.extend(touched);
    plan.twins.push(verdict);
    Ok(())
}

struct OpenPuddle {
    header: PuddleHeader,
    file: Arc<MediaFile>,
}

impl OpenPuddle {
    fn open(files: &Puddles, registered: &(Uuid, PuddleRecord), access: Access) -> Result<Self> {
        let (uuid, record) = registered;
        Ok(OpenPuddle {
            header: files::header_of(*uuid, record),
            file: files.open_kept(*uuid, record, access == Access::Write)?,
        })
    }

    fn view(&self, copy: Copy) -> HeapInFile<'_> {
        HeapInFile {
            file: &self.file,
            start: start(copy, &self.header),
        }
    }
}

/// A pool whose root puddle is open. Others are opened as they are needed: of most nothing was being changed.
struct OpenPool<'a> {
    files: &'a Puddles,
    registered: &'a [(Uuid, PuddleRecord)],
    access: Access,
    root: Rc<OpenPuddle>,
    /// All that were needed so far.
    opened: RefCell<Vec<Rc<OpenPuddle>>>,
}

impl OpenPool<'_> {
    fn open(&self, registered: &(Uuid, PuddleRecord)) -> Result<Rc<OpenPuddle>> {
        let mut opened = self.opened.borrow_mut();
        let mut known = opened.iter();
        if let Some(puddle) = known.find(|puddle| puddle.header.uuid == registered.0) {
            return Ok(puddle.clone());
        }
        let puddle = Rc::new(OpenPuddle::open(self.files, registered, self.access)?);
        opened.push(puddle.clone());
        Ok(puddle)
    }

    /// The puddle that a range lies in, where it may be written.
    fn puddle_of(&self, address: u64, length: u64) -> Result<Option<Rc<OpenPuddle>>> {
        let admits = |(uuid, record): &&(Uuid, PuddleRecord)| {
            files::header_of(*uuid, record).admits(address, length)
        };
        let found = self.registered.iter().find(admits);
        found.map(|registered| self.open(registered)).transpose()
    }

    /// The copy that the other one has to follow; `None` where they are the same.
    fn whole_copy(&self, state: State) -> Result<Option<Copy>> {
        let root = &self.root;
        let holds = |copy, generation| Ok(self.held_seal(copy, generation)?.is_some());
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

    /// The seal of a transaction, if a copy holds what that left.
    fn held_seal(&self, copy: Copy, generation: u64) -> Result<Option<Seal>> {
        let Some(seal) = read_seal(&self.root, generation)? else {
            return Ok(None);
        };
        let mut is_inside = true;
        let mut bytes = Vec::new();
        let matches = seal.matches(|crc| {
            for range in &seal.ranges {
                let (address, length) = (range.address(), range.length());
                let Some(puddle) = self.puddle_of(address, length as u64)? else {
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
        Ok((is_inside && matches).then_some(seal))
    }

    /// Where the other copy may differ from the whole one.
    fn suspects(&self, state: State, whole: Copy) -> Result<Suspects> {
        if !state.is_listed {
            return Ok(Suspects::Everywhere);
        }
        let root = &self.root;
        let mut list = [0; twin::SUSPECTS_SIZE];
        let offset = twin::suspects_offset(root.header.size);
        reading::exact(&root.file, offset, &mut list, "reading a puddle")?;
        let Some(mut suspects) = twin::parse_suspects(&list) else {
            let file = root.file.path().display();
            tracing::warn!(%file, "the list of what may differ is damaged: all of the pool is compared");
            return Ok(Suspects::Everywhere);
        };
        if let (Suspects::In(ranges), Stage::Changing, Copy::Main) =
            (&mut suspects, state.stage, whole)
        {
            // The last transaction that main holds has a seal, which names what back may lack: also objects that it
            // made, which were on no list.
            let numbers = [state.generation, state.generation.wrapping_sub(1)];
            for number in numbers {
                if let Some(seal) = self.held_seal(whole, number)? {
                    ranges.extend(
                        seal.ranges
                            .iter()
                            .map(|range| range.address()..range.address() + range.length() as u64),
                    );
                    break;
                }
            }
        }
        Ok(suspects)
    }

    /// All that is in use becomes what it is in the whole copy. The puddles.
    fn plan_all(
        &self,
        (whole, other): (Copy, Copy),
        writes: &mut Vec<HomeWrite>,
    ) -> Result<BTreeSet<Uuid>> {
        let mut touched = BTreeSet::new();
        for registered in self.registered {
            let puddle = self.open(registered)?;
            let (header, whole, other) = (puddle.header, puddle.view(whole), puddle.view(other));
            let used_end = match extent::used_end(&whole, &header) {
                Err(HeapError::Read(error)) => return Err(error),
                // Where its heap is damaged, all of it counts as used.
                found => found.unwrap_or(header.size),
            };
            for range in [bitmap(&header), heap_offset(header.size)..used_end] {
                plan_range(header.uuid, &whole, &other, range, writes)?;
            }
            touched.insert(header.uuid);
        }
        Ok(touched)
    }

    /// These ranges of addresses become what they are in the whole copy; the puddles that they lie in. Where none lies,
    /// one has been given back.
    fn plan_ranges(
        &self,
        (whole, other): (Copy, Copy),
        ranges: &[Range<u64>],
        writes: &mut Vec<HomeWrite>,
    ) -> Result<BTreeSet<Uuid>> {
        let mut touched = BTreeSet::new();
        for registered in self.registered {
            let header = files::header_of(registered.0, &registered.1);
            let in_puddle = |range: &Range<u64>| {
                let start = range.start.max(header.address);
                let end = range.end.min(header.end());
                (start < end).then(|| start - header.address..end - header.address)
            };
            let own: Vec<Range<u64>> = joined(ranges.iter().filter_map(in_puddle).collect());
            if own.is_empty() {
                continue;
            }
            let puddle = self.open(registered)?;
            let (whole, other) = (puddle.view(whole), puddle.view(other));
            // Of the header only the bitmap stands there twice.
            for part in [bitmap(&header), heap_offset(header.size)..header.size] {
                for range in &own {
                    let range = range.start.max(part.start)..range.end.min(part.end);
                    if !range.is_empty() {
                        plan_range(header.uuid, &whole, &other, range, writes)?;
                    }
                }
            }
            touched.insert(header.uuid);
        }
        Ok(touched)
    }
}

/// The extent bitmap in its puddle.
fn bitmap(header: &PuddleHeader) -> Range<u64> {
    BITMAP_OFFSET..BITMAP_OFFSET + bitmap_words(header.size) * 8
}

/// The same ranges in whole lines and in order, each byte once.
fn joined(mut ranges: Vec<Range<u64>>) -> Vec<Range<u64>> {
    for range in &mut ranges {
        *range = range.start / LINE * LINE..range.end.next_multiple_of(LINE);
    }
    ranges.sort_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    joined
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
