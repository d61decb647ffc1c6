//! The files `registry` and `registry.copy`: what the store holds. `docs/format/registry.md` tells the bytes.
//!
//! A snapshot, then one record for each commit since, then zeros up to a length that follows from the snapshot's.
//! [`state`] has what is said, [`State::validate`] checks what must be true of it, `record` has the change records,
//! this file the outer form.

mod record;
mod rights;
pub mod state;
pub(crate) mod validate;

pub use record::{encode_changes, encode_changes_within};
pub use rights::Rights;
pub use state::{
    AddressRange, Change, Damage, Import, Kept, Origin, PoolRecord, PuddleRecord, QuarantinedLog,
    State,
};

use std::collections::BTreeMap;

use crate::Uuid;
use crate::crc::crc32c;
use crate::error::FormatError;
use crate::text::FirstLine;

use self::record::{Search, parse_record};

/// The name of the file in the store's directory.
pub const FILE_NAME: &str = "registry";
/// The name of its copy.
pub const COPY_NAME: &str = "registry.copy";
/// The newest version that this build writes and reads.
pub const VERSION: u32 = VERSION_OTHER_CASES;
/// The oldest version that it reads, in which pools had no owners and clients no users.
pub const VERSION_MIN: u32 = 1;
/// The oldest version that it writes: every file that says no more is of this one, and older builds read it.
pub const VERSION_RIGHTS: u32 = 2;
/// The version of files that tell of puddles which are being moved, or were imported and are as they came.
pub const VERSION_MOVES: u32 = 3;
/// The version of files with types that have former names or reserved bytes, or that mean others by now.
pub const VERSION_MEANINGS: u32 = 4;
/// The version of files with types that have a case for whatever else a tag says.
pub const VERSION_OTHER_CASES: u32 = 5;
/// A snapshot, its first line included, is never longer: more than a million puddles.
pub const SNAPSHOT_BYTES_MAX: u64 = 256 << 20;
/// So many bytes of the file tell by [`Room::of`] how long it is.
pub const BEGINNING_BYTES: u64 = 128;

const STRUCTURE: &str = "registry";
const FIRST_WORDS: &str = "durum registry ";
/// Changes are folded into a new snapshot when they outweigh the old one, but never before this many bytes.
const CHANGES_MIN: u64 = 32 << 10;
/// The file's length is a multiple of this.
const BLOCK: u64 = 4096;

/// Which parts the file has behind a snapshot. All of it is allocated when the file is made.
///
/// Every change has room between [`snapshot_end`](Room::snapshot_end) and [`additions_end`](Room::additions_end). From
/// there to the [`end`](Room::end) only removals go, so that they work on a full disk: what can be removed takes more
/// bytes in the snapshot and in the changes before than its removal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Where the changes begin.
    pub snapshot_end: u64,
    /// Where the changes that add something end.
    pub additions_end: u64,
    /// Where the file ends.
    pub end: u64,
}

impl Room {
    /// The parts of a file whose snapshot, the first line included, has so many bytes.
    pub fn behind(snapshot_bytes: u64) -> Room {
        let part = snapshot_bytes.max(CHANGES_MIN);
        let additions_end = snapshot_bytes.saturating_add(part);
        Room {
            snapshot_end: snapshot_bytes,
            additions_end,
            end: additions_end.saturating_add(part).next_multiple_of(BLOCK),
        }
    }

    /// The parts of a file that begins with these bytes: [`BEGINNING_BYTES`] of them, or the whole file.
    ///
    /// # Errors
    /// A foreign, newer or damaged first line.
    pub fn of(beginning: &[u8]) -> Result<Room, FormatError> {
        first_line(beginning).map(|(_, room)| room)
    }
}

fn first_line(bytes: &[u8]) -> Result<(FirstLine, Room), FormatError> {
    let line = FirstLine::parse(STRUCTURE, FIRST_WORDS, VERSION_MIN..=VERSION, bytes)?;
    let snapshot_bytes = line.length.saturating_add(line.body as u64);
    if snapshot_bytes > SNAPSHOT_BYTES_MAX {
        return Err(damaged(format!(
            "the first line speaks of {} bytes, and no snapshot has more than {SNAPSHOT_BYTES_MAX}",
            line.length
        )));
    }
    Ok((line, Room::behind(snapshot_bytes)))
}

fn damaged(problem: String) -> FormatError {
    FormatError::damaged_text(STRUCTURE, problem)
}

/// The refusal of a file that has fewer bytes than its first line speaks of.
fn truncated(needed: u64, found: u64) -> FormatError {
    FormatError::Truncated {
        structure: STRUCTURE,
        needed,
        found,
    }
}

/// A registry that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// The version of the file. It takes no records that need a newer one ([`Change::version_needed`]).
    pub version: u32,
    /// What it says.
    pub state: State,
    /// The parts of the file.
    pub room: Room,
    /// Where the next change goes.
    pub end: u64,
    /// Whether bytes of a change that was never made lie behind `end`: they are to be zeroed before the next one is
    /// written.
    pub is_torn: bool,
}

/// Reads and checks a whole file.
///
/// A last record that is not whole is no commit: a crash came while it was written. One that is not whole before
/// one that is was damaged later.
///
/// # Errors
/// A foreign, newer, damaged or truncated file, told apart by [`FormatError::fault`]; contents that contradict
/// themselves.
pub fn parse(bytes: &[u8]) -> Result<Parsed, FormatError> {
    parse_used(bytes, bytes.len() as u64)
}

/// As [`parse`], for a file of `found` bytes, of which those behind `bytes` are zero.
///
/// # Errors
/// As [`parse`].
pub fn parse_used(bytes: &[u8], found: u64) -> Result<Parsed, FormatError> {
    let (mut state, line, room) = parse_snapshot(bytes)?;
    if found < room.end {
        return Err(truncated(room.end, found));
    }
    if found > room.end {
        return Err(damaged(format!(
            "it has {found} bytes, and its first line speaks of {}",
            room.end
        )));
    }
    let mut end = as_index(room.snapshot_end);
    let mut needed = state.version_needed();
    let mut is_torn = false;
    while let Some(rest) = bytes.get(end..).filter(|rest| !is_zero(rest)) {
        let store = state.store.uuid;
        let expected = state.sequence.wrapping_add(1);
        match parse_record(store, rest) {
            Some(record) if record.sequence == expected => {
                let versions = record.changes.iter().map(Change::version_needed);
                needed = versions.fold(needed, u32::max);
                state.commit(&record.changes);
                end += record.bytes;
            }
            Some(record) => {
                let field = "the sequence of a change record";
                let (found, expected) = (record.sequence, expected.to_string());
                let end = end as u64;
                return Err(FormatError::field(STRUCTURE, field, end, found, expected));
            }
            None => {
                let mut search = Search::of(store, rest);
                let problem = match search.next() {
                    Some((offset, _)) => format!(
                        "the change record at offset {end} is damaged: a whole one follows it at offset {}",
                        end + offset
                    ),
                    None if search.is_over_budget => format!(
                        "behind offset {end} are beginnings of change records over each other, which no crash leaves"
                    ),
                    None => {
                        is_torn = true;
                        break;
                    }
                };
                return Err(damaged(problem));
            }
        }
    }
    if line.version < needed {
        return Err(damaged(format!(
            "it says what version {} does not have",
            line.version
        )));
    }
    state.validate()?;
    Ok(Parsed {
        version: line.version,
        state,
        room,
        end: end as u64,
        is_torn,
    })
}

/// Makes the best of files of which none can be read as a whole: the latest snapshot that is whole, and the changes
/// after it, each from any of the files. `None` where no snapshot is left.
///
/// What it gives can be older than what was there last: the caller has to look whether the store's other files agree.
pub fn salvage(store: Option<Uuid>, files: &[&[u8]]) -> Option<State> {
    let mut snapshots: Vec<State> = files
        .iter()
        .filter_map(|bytes| Some(parse_snapshot(bytes).ok()?.0))
        .filter(|state| store.is_none_or(|store| state.store.uuid == store))
        .collect();
    snapshots.sort_by_key(|state| state.sequence);
    let store = snapshots.last()?.store.uuid;
    let mut changes: BTreeMap<u64, Vec<Vec<Change>>> = BTreeMap::new();
    for bytes in files {
        for (_, record) in Search::of(store, bytes) {
            let known = changes.entry(record.sequence).or_default();
            // Two that differ are as bad as more.
            if known.len() < 2 && !known.contains(&record.changes) {
                known.push(record.changes);
            }
        }
    }
    snapshots
        .into_iter()
        .filter_map(|mut state| {
            // Two records of one sequence: files of two histories, and nobody knows which is the store's.
            while let Some(sequence) = state.sequence.checked_add(1)
                && let Some([next]) = changes.get(&sequence).map(Vec::as_slice)
            {
                state.commit(next);
            }
            state.validate().is_ok().then_some(state)
        })
        .max_by_key(|state| state.sequence)
}

/// Checks that a file that begins with these bytes has the snapshot that its first line speaks of: before that, nobody
/// should take memory for what the line says. Tells the parts of the file.
///
/// # Errors
/// A foreign, newer, damaged or truncated file.
pub fn check_snapshot(bytes: &[u8]) -> Result<Room, FormatError> {
    snapshot_body(bytes).map(|(_, _, room)| room)
}

fn snapshot_body(bytes: &[u8]) -> Result<(&[u8], FirstLine, Room), FormatError> {
    let (line, room) = first_line(bytes)?;
    let body = bytes.get(line.body..as_index(room.snapshot_end));
    let body = body.ok_or_else(|| truncated(room.end, bytes.len() as u64))?;
    line.check(body)?;
    Ok((body, line, room))
}

/// The snapshot of a file, and its parts.
fn parse_snapshot(bytes: &[u8]) -> Result<(State, FirstLine, Room), FormatError> {
    let (body, line, room) = snapshot_body(bytes)?;
    let behind = |problem: &str| damaged(format!("behind the first line: {problem}"));
    let state: State = serde_json::from_slice(body).map_err(|error| behind(&error.to_string()))?;
    if line.version != VERSION_MIN && line.version != snapshot_version(&state) {
        return Err(behind(&format!(
            "a snapshot that says this is of version {}",
            snapshot_version(&state)
        )));
    }
    // Repeated members, other orders, numbers written otherwise: one state has one text.
    match body_of(&state)? == body {
        true => Ok((state, line, room)),
        false => Err(behind("it is not written as this version writes it")),
    }
}

fn body_of(state: &State) -> Result<Vec<u8>, FormatError> {
    let body = serde_json::to_vec_pretty(state);
    let mut body = body.map_err(|error| damaged(error.to_string()))?;
    body.push(b'\n');
    Ok(body)
}

/// The version of a snapshot that says `state`: the oldest that can.
pub fn snapshot_version(state: &State) -> u32 {
    state.version_needed().max(VERSION_RIGHTS)
}

/// The snapshot that says `state`. A file is this, and zeros up to [`Room::end`].
///
/// # Errors
/// As [`State::validate`]; a state that is too large.
pub fn encode_snapshot(state: &State) -> Result<Vec<u8>, FormatError> {
    state.validate()?;
    let body = body_of(state)?;
    let version = snapshot_version(state);
    let mut bytes = FirstLine::encode(FIRST_WORDS, version, body.len(), crc32c(&body)).into_bytes();
    bytes.extend_from_slice(&body);
    if bytes.len() as u64 > SNAPSHOT_BYTES_MAX {
        return Err(damaged(format!(
            "{} bytes, and no snapshot has more than {SNAPSHOT_BYTES_MAX}",
            bytes.len()
        )));
    }
    Ok(bytes)
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|&byte| byte == 0)
}

fn as_index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
