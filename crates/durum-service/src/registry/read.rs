//! Reading the registry: the file, and its copy where that tells what the file does not.

use std::path::Path;

use durum_format::FormatError;
use durum_format::registry::{self, BEGINNING_BYTES, Parsed, Room};
use durum_format::store::StoreHeader;

use super::contents::Contents;
use super::file::{COPY, Place, REGISTRY};
use super::{CURE, refusal};
use crate::error::{Error, Result};
use crate::reading;
use crate::takeover;

/// Attempts to read a file that a writer changes meanwhile.
const ATTEMPTS_MAX: usize = 8;

/// A registry that was read.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) contents: Contents,
    /// The file; `None` for a store of the form before, which has none.
    pub(super) file: Option<FoundFile>,
    pub(super) copy: CopyState,
}

/// Where the file's parts are.
#[derive(Debug)]
pub(super) struct FoundFile {
    pub(super) parsed: Parsed,
    pub(super) bytes: Vec<u8>,
}

/// How the copy is.
#[derive(Debug)]
pub(super) enum CopyState {
    /// It says the same.
    Same(Box<Parsed>),
    /// It says less, as a crash may leave it, or the end of one of the two is torn.
    Behind,
    /// It cannot be read.
    Lost(Error),
}

impl Found {
    /// Whether this is a store of the form before.
    pub(crate) fn is_before(&self) -> bool {
        self.file.is_none()
    }

    /// Whether a copy is there that has everything.
    pub(crate) fn has_copy(&self) -> bool {
        matches!(self.copy, CopyState::Same(_))
    }

    /// Why the copy cannot be read, where that is damage.
    pub(crate) fn lost_copy(&self) -> Option<&Error> {
        match &self.copy {
            CopyState::Lost(error) => Some(error),
            CopyState::Same(_) | CopyState::Behind => None,
        }
    }
}

/// Reads and validates the registry of a store. Takes no lock and writes nothing.
pub(crate) fn read(store: &Path, identity: &StoreHeader) -> Result<Found> {
    let mut last: Option<(Error, Vec<u8>)> = None;
    for _ in 0..ATTEMPTS_MAX {
        match read_once(store, identity) {
            Ok(found) => return Ok(found),
            // A writer may have written two records while we read: then we missed the first and saw the second.
            Err((error, Some(bytes))) if last.as_ref().is_none_or(|(_, seen)| *seen != bytes) => {
                last = Some((error, bytes));
            }
            Err((error, _)) => return Err(error),
        }
    }
    Err(last.map_or_else(
        || damaged(store, 0, "it changes all the time".to_owned()),
        |(error, _)| error,
    ))
}

/// As [`read`]. With an error, the bytes that were read, if they may be others next time.
fn read_once(store: &Path, identity: &StoreHeader) -> Result<Found, (Error, Option<Vec<u8>>)> {
    // The copy first: it is never ahead of the registry, so one that is read later is not either.
    let copy = read_file(store, &COPY);
    let bytes = match read_file(store, &REGISTRY) {
        Ok(bytes) => bytes,
        Err(Error::FileMissing { .. })
            if matches!(copy, Err(Error::FileMissing { .. })) && takeover::is_before(store) =>
        {
            let contents = takeover::read(store, identity).map_err(|error| (error, None))?;
            return Ok(Found {
                contents,
                file: None,
                copy: CopyState::Behind,
            });
        }
        Err(error) => return Err((error, None)),
    };
    let parsed = match parse(store, identity, &bytes) {
        Ok(parsed) => parsed,
        Err(error) => return Err((error, Some(bytes))),
    };
    // An older durum may have opened the store after a takeover that a crash interrupted.
    if takeover::is_before(store)
        && let Ok(contents) = takeover::read(store, identity)
        && contents.sequence > parsed.state.sequence
    {
        return Ok(Found {
            contents,
            file: None,
            copy: CopyState::Behind,
        });
    }
    let copy = match copy {
        Ok(copy) if copy == bytes && !parsed.is_torn => CopyState::Same(Box::new(parsed.clone())),
        Ok(copy) => match compare(store, identity, &parsed, &copy) {
            Ok(state) => state,
            Err(error) => return Err((error, Some(bytes))),
        },
        Err(error) => CopyState::Lost(error),
    };
    let contents = Contents(parsed.state.clone());
    Ok(Found {
        contents,
        file: Some(FoundFile { parsed, bytes }),
        copy,
    })
}

/// How a copy is, whose bytes are not the registry's.
fn compare(
    store: &Path,
    identity: &StoreHeader,
    parsed: &Parsed,
    copy: &[u8],
) -> Result<CopyState> {
    let parsed_copy = registry::parse(copy);
    if let Ok(copy) = &parsed_copy
        && copy.state == parsed.state
        && !(copy.is_torn || parsed.is_torn)
    {
        return Ok(CopyState::Same(Box::new(copy.clone())));
    }
    // A crash may have taken any part of it that was written since it was last synced, and a record that it has was made.
    let Some(state) = registry::salvage(None, &[copy]) else {
        let source = parsed_copy.map_or_else(
            |source| source,
            |_| FormatError::Truncated {
                structure: "registry",
                needed: parsed.room.end,
                found: 0,
            },
        );
        return Ok(CopyState::Lost(refusal(store, &COPY, source)));
    };
    if state.store != *identity {
        return Err(mixed(store, &COPY, &state.store, identity));
    }
    if state.sequence > parsed.state.sequence {
        return Err(damaged(
            store,
            parsed.end,
            format!(
                "it ends with commit {}, but its copy has commit {}: its end was damaged, or it is an older one",
                parsed.state.sequence, state.sequence
            ),
        ));
    }
    Ok(CopyState::Behind)
}

/// The bytes of one of the files, no more of them than its first line speaks of, and one.
pub(super) fn read_file(store: &Path, place: &Place) -> Result<Vec<u8>> {
    let file = reading::open(store, place.name, place.role, false)?;
    reading::whole(&file, BEGINNING_BYTES, |head, _| {
        let room = Room::of(head).map_err(|source| refusal(store, place, source))?;
        Ok(room.end.saturating_add(1))
    })
}

/// Parses the registry and checks that it is the store's.
pub(super) fn parse(store: &Path, identity: &StoreHeader, bytes: &[u8]) -> Result<Parsed> {
    let parsed = registry::parse(bytes).map_err(|source| refusal(store, &REGISTRY, source))?;
    if parsed.state.store != *identity {
        return Err(mixed(store, &REGISTRY, &parsed.state.store, identity));
    }
    Ok(parsed)
}

fn damaged(store: &Path, offset: u64, problem: String) -> Error {
    Error::Damaged {
        file: store.join(REGISTRY.name),
        structure: "registry",
        offset,
        problem,
        cure: CURE,
    }
}

fn mixed(store: &Path, place: &Place, found: &StoreHeader, identity: &StoreHeader) -> Error {
    Error::Damaged {
        file: store.join(place.name),
        structure: "registry",
        offset: 0,
        problem: format!(
            "it belongs to the store {} at {:#x}, durum.store says {} at {:#x}",
            found.uuid, found.base, identity.uuid, identity.base
        ),
        cure: "files of several stores, or of several copies, were mixed; restore a copy of the whole store",
    }
}
