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

/// The bytes of the two files, as far as they can be read.
#[derive(Debug)]
pub(crate) struct Remains {
    registry: Vec<u8>,
    copy: Vec<u8>,
}

impl Remains {
    /// Reads what is there. Writes nothing.
    pub(crate) fn read(store: &Path) -> Remains {
        let open = |place: &Place| reading::open(store, place.name, place.role, false).ok();
        let (registry, copy) = (open(&REGISTRY), open(&COPY));
        let room = |file: &Option<MediaFile>| {
            let head = around_bad_sectors(file.as_ref()?, BEGINNING_BYTES);
            Some(Room::of(&head).ok()?.end)
        };
        // Where a first line is gone, the other one tells how much there may be.
        let (registry_room, copy_room) = (room(&registry), room(&copy));
        let bytes = |file: Option<MediaFile>, room: Option<u64>| match (file, room) {
            (Some(file), Some(room)) => around_bad_sectors(&file, room),
            _ => Vec::new(),
        };
        Remains {
            registry: bytes(registry, registry_room.or(copy_room)),
            copy: bytes(copy, copy_room.or(registry_room)),
        }
    }

    /// The latest state that they tell, of the store if that is known.
    pub(crate) fn salvage(&self, identity: Option<&StoreHeader>) -> Option<Contents> {
        let store = identity.map(|identity| identity.uuid);
        registry::salvage(store, &[&self.registry, &self.copy])
            .filter(|state| identity.is_none_or(|identity| state.store == *identity))
            .map(Contents)
    }

    /// The bytes in the place of the registry.
    pub(crate) fn registry(&self) -> &[u8] {
        &self.registry
    }
}

/// The first `length` bytes of a file, or as many as it has; zeros where the disk does not give them.
fn around_bad_sectors(file: &MediaFile, length: u64) -> Vec<u8> {
    let length = file.len().unwrap_or(0).min(length);
    let Ok(mut bytes) = reading::room(file.path(), length) else {
        return Vec::new();
    };
    if file.read_exact_at(&mut bytes, 0).is_ok() {
        return bytes;
    }
    for (number, sector) in (0..).zip(bytes.chunks_mut(SECTOR as usize)) {
        let read: io::Result<()> = file.read_exact_at(sector, number * SECTOR);
        if read.is_err() {
            sector.fill(0);
        }
    }
    bytes
}
