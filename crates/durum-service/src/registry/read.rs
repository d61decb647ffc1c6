//! Reading the registry: the file, and its copy where that tells what the file does not.

use std::path::Path;

use durum_format::FormatError;
use durum_format::crc::crc32c;
use durum_format::registry::{self, BEGINNING_BYTES, Parsed, Room};
use durum_format::store::StoreHeader;
use durum_persist::file::MediaFile;

use super::contents::Contents;
use super::file::{COPY, Place, REGISTRY};
use super::takeover;
use super::{CURE, refusal};
use crate::error::{Error, Result};
use crate::reading;

/// Attempts to read a file that a writer changes meanwhile.
const ATTEMPTS_MAX: usize = 8;
/// So many bytes of a file are read at once.
const PART_BYTES: u64 = 64 << 10;

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
    pub(super) image: Image,
}

/// What one of the files holds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Image {
    /// All of it but the zeros at the end.
    pub(super) bytes: Vec<u8>,
    /// The file's length.
    length: u64,
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
    let mut last: Option<(Error, u32)> = None;
    for _ in 0..ATTEMPTS_MAX {
        match read_once(store, identity) {
            Ok(found) => return Ok(found),
            // A writer may have written two records while we read: then we missed the first and saw the second.
            Err((error, Some(checksum)))
                if last.as_ref().is_none_or(|(_, seen)| *seen != checksum) =>
            {
                last = Some((error, checksum));
            }
            Err((error, _)) => return Err(error),
        }
    }
    Err(last.map_or_else(
        || damaged(store, 0, "it changes all the time".to_owned()),
        |(error, _)| error,
    ))
}

/// As [`read`]. With an error, a checksum of the bytes that were read, if they may be others next time.
fn read_once(store: &Path, identity: &StoreHeader) -> Result<Found, (Error, Option<u32>)> {
    // The copy first: it is never ahead of the registry, so one that is read later is not either.
    let copy = read_file(store, &COPY);
    let image = match read_file(store, &REGISTRY) {
        Ok(image) => image,
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
    let changing = |error| (error, Some(crc32c(&image.bytes)));
    let parsed = parse(store, identity, &image).map_err(changing)?;
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
        Ok(copy) if copy == image && !parsed.is_torn => CopyState::Same(Box::new(parsed.clone())),
        Ok(copy) => compare(store, identity, &parsed, &copy).map_err(changing)?,
        Err(error) => CopyState::Lost(error),
    };
    let contents = Contents::of(parsed.state.clone());
    Ok(Found {
        contents,
        file: Some(FoundFile { parsed, image }),
        copy,
    })
}

/// How a copy is, whose bytes are not the registry's.
fn compare(
    store: &Path,
    identity: &StoreHeader,
    parsed: &Parsed,
    copy: &Image,
) -> Result<CopyState> {
    let parsed_copy = registry::parse_used(&copy.bytes, copy.length);
    if let Ok(copy) = &parsed_copy
        && copy.state == parsed.state
        && copy.version == parsed.version
        && !(copy.is_torn || parsed.is_torn)
    {
        return Ok(CopyState::Same(Box::new(copy.clone())));
    }
    // A crash may have taken any part of it that was written since it was last synced, and a record that it has was
    // made.
    let Some(state) = registry::salvage(None, &[&copy.bytes]) else {
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

/// What one of the files holds.
///
/// A first line may say anything: nobody takes memory for more of the snapshot than is there, nor for the part behind
/// it before the snapshot was checked.
pub(super) fn read_file(store: &Path, place: &Place) -> Result<Image> {
    let file = reading::open(store, place.name, place.role, false)?;
    let length = reading::length(&file)?;
    let refused = |source| refusal(store, place, source);
    let head = reading::bytes(&file, 0, length.min(BEGINNING_BYTES))?;
    let snapshot_end = Room::of(&head).map_err(refused)?.snapshot_end;
    let mut bytes = Vec::new();
    append(&file, snapshot_end.min(length), &mut bytes, |part, at| {
        // It is a text.
        match part.iter().position(|byte| *byte == 0) {
            Some(zero) => Err(refused(FormatError::Field {
                structure: "registry",
                field: "a byte of the snapshot",
                offset: at + zero as u64,
                found: 0,
                expected: "text".into(),
            })),
            None => Ok(()),
        }
    })?;
    let room = registry::check_snapshot(&bytes).map_err(refused)?;
    append(&file, room.end.min(length), &mut bytes, |_, _| Ok(()))?;
    Ok(Image { bytes, length })
}

/// Reads on behind `bytes`, up to the last byte before `end` that is not zero; each part is checked first.
fn append(
    file: &MediaFile,
    end: u64,
    bytes: &mut Vec<u8>,
    check: impl Fn(&[u8], u64) -> Result<()>,
) -> Result<()> {
    let mut at = bytes.len() as u64;
    while at < end {
        let part = reading::bytes(file, at, PART_BYTES.min(end - at))?;
        check(&part, at)?;
        let used = used(&part);
        if !used.is_empty() {
            let zeros = at.saturating_sub(bytes.len() as u64);
            reading::lengthen(bytes, file.path(), zeros)?;
            reading::append(bytes, file.path(), used)?;
        }
        at += part.len() as u64;
    }
    Ok(())
}

/// The bytes up to the last one that is not zero.
fn used(bytes: &[u8]) -> &[u8] {
    // Mostly few are used. Of those that are not, many are looked at together.
    let is_zero = |piece: &&[u8]| piece.iter().fold(0, |any, byte| any | byte) == 0;
    let zeros = bytes.rchunks(256).take_while(is_zero).map(<[u8]>::len);
    let rest = bytes.get(..bytes.len() - zeros.sum::<usize>());
    let rest = rest.unwrap_or_default();
    let last = rest.iter().rposition(|byte| *byte != 0);
    last.and_then(|last| rest.get(..=last)).unwrap_or_default()
}

/// Parses the registry and checks that it is the store's.
pub(super) fn parse(store: &Path, identity: &StoreHeader, image: &Image) -> Result<Parsed> {
    let parsed = registry::parse_used(&image.bytes, image.length)
        .map_err(|source| refusal(store, &REGISTRY, source))?;
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
        cure: CURE.into(),
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
        cure: "files of several stores, or of several copies, were mixed; restore a copy of the whole store"
            .into(),
    }
}
