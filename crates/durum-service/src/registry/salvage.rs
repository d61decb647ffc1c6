//! What can be told of a registry that is damaged or gone.

use std::io;
use std::path::Path;

use durum_format::registry::{self, BEGINNING_BYTES, Room};
use durum_format::store::StoreHeader;
use durum_persist::file::MediaFile;

use super::contents::Contents;
use super::file::{COPY, Place, REGISTRY};
use crate::reading;

/// What a bad part of a disk takes away at once.
const SECTOR: u64 = 512;
/// So many bytes of a file are read at once: whole sectors.
const PART_BYTES: u64 = 64 << 10;

/// What is left of the two files, as far as they can be read.
#[derive(Debug)]
pub(crate) struct Remains {
    registry: Texts,
    copy: Texts,
}

/// What a file holds beside zeros. Nothing that is whole in it has a zero byte, and how much lies between two texts is
/// only a damaged file's word.
#[derive(Debug, Default)]
struct Texts {
    /// The sectors that are not zero; one zero byte where others were between them.
    bytes: Vec<u8>,
    /// Where each run of sectors begins in the file, and in `bytes`.
    runs: Vec<(u64, usize)>,
    /// Of the part of the file that was read.
    length: u64,
}

impl Remains {
    /// Reads what is there. Writes nothing.
    pub(crate) fn read(store: &Path) -> Remains {
        let open = |place: &Place| reading::open(store, place.name, place.role, false).ok();
        let (registry, copy) = (open(&REGISTRY), open(&COPY));
        let room = |file: &Option<MediaFile>| {
            let beginning = texts(file.as_ref()?, BEGINNING_BYTES);
            Some(Room::of(&beginning.bytes).ok()?.end)
        };
        // Where a first line is gone, the other one tells how much there may be.
        let (registry_room, copy_room) = (room(&registry), room(&copy));
        let bytes = |file: Option<MediaFile>, room: Option<u64>| match (file, room) {
            (Some(file), Some(room)) => texts(&file, room),
            _ => Texts::default(),
        };
        Remains {
            registry: bytes(registry, registry_room.or(copy_room)),
            copy: bytes(copy, copy_room.or(registry_room)),
        }
    }

    /// The latest state that they tell, of the store if that is known.
    pub(crate) fn salvage(&self, identity: Option<&StoreHeader>) -> Option<Contents> {
        let store = identity.map(|identity| identity.uuid);
        registry::salvage(store, &[&self.registry.bytes, &self.copy.bytes])
            .filter(|state| identity.is_none_or(|identity| state.store == *identity))
            .map(Contents::of)
    }

    /// How many bytes are left of the registry.
    pub(crate) fn registry_bytes(&self) -> u64 {
        self.registry.bytes.len() as u64
    }

    /// Writes what is left of the registry into another file, each byte where it was.
    pub(crate) fn write_registry(&self, to: &MediaFile) -> io::Result<()> {
        let Texts {
            bytes,
            runs,
            length,
        } = &self.registry;
        to.set_len(*length)?;
        let ends = runs.iter().skip(1).map(|(_, start)| start - 1);
        for ((offset, start), end) in runs.iter().zip(ends.chain([bytes.len()])) {
            to.write_all_at(bytes.get(*start..end).unwrap_or_default(), *offset)?;
        }
        Ok(())
    }
}

/// What the first `length` bytes of a file hold, or as many as it has, but for what the disk does not give. Nothing
/// where there is no memory for it.
fn texts(file: &MediaFile, length: u64) -> Texts {
    let length = file.len().unwrap_or(0).min(length);
    let mut texts = Texts {
        length,
        ..Texts::default()
    };
    let mut part = vec![0; PART_BYTES.min(length) as usize];
    let mut at = 0;
    // Where the last run ends.
    let mut end = None;
    while at < length {
        part.truncate((length - at).min(PART_BYTES) as usize);
        let is_read = file.read_exact_at(&mut part, at).is_ok();
        for (number, sector) in (0..).zip(part.chunks_mut(SECTOR as usize)) {
            let offset = at + number * SECTOR;
            if !is_read && file.read_exact_at(sector, offset).is_err() {
                continue;
            }
            if sector.iter().all(|byte| *byte == 0) {
                continue;
            }
            let is_new = end != Some(offset);
            if texts.bytes.try_reserve(sector.len() + 1).is_err() {
                return Texts::default();
            }
            if is_new && !texts.bytes.is_empty() {
                texts.bytes.push(0);
            }
            if is_new {
                texts.runs.push((offset, texts.bytes.len()));
            }
            texts.bytes.extend_from_slice(sector);
            end = Some(offset + sector.len() as u64);
        }
        at += part.len() as u64;
    }
    texts
}
