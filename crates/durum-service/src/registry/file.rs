//! One of the two files: how it is made, and how a record is appended.

use std::io;
use std::path::Path;

use durum_format::registry::{Parsed, Room};
use durum_persist::Site;
use durum_persist::file::{self, MediaFile};

use crate::reading::{self, Role};

/// The files and sites of one of the two.
#[derive(Debug)]
pub(super) struct Place {
    /// The name in the store's directory.
    pub(super) name: &'static str,
    /// The name until it is whole.
    pub(super) temporary_name: &'static str,
    pub(super) role: Role,
    /// The room of a new file, and a snapshot in it.
    snapshot: Site,
    /// The name of a new file.
    snapshot_name: Site,
    /// A record.
    pub(super) commit: Site,
}

pub(super) const REGISTRY: Place = Place {
    name: durum_format::registry::FILE_NAME,
    temporary_name: "registry.new",
    role: Role {
        structure: "the registry",
        cure: super::CURE,
    },
    snapshot: Site("registry snapshot"),
    snapshot_name: Site("registry's name"),
    commit: Site("registry commit"),
};

pub(super) const COPY: Place = Place {
    name: durum_format::registry::COPY_NAME,
    temporary_name: "registry.copy.new",
    role: Role {
        structure: "the registry's copy",
        cure: super::CURE,
    },
    snapshot: Site("copy's snapshot"),
    snapshot_name: Site("copy's name"),
    commit: Site("registry's copy"),
};

/// A file that is open for writing.
#[derive(Debug)]
pub(super) struct Writer {
    place: &'static Place,
    pub(super) file: MediaFile,
    pub(super) room: Room,
    /// Where the next record goes. Behind it all is zero.
    end: u64,
}

impl Writer {
    /// Makes a file that begins with a snapshot, in the place of one that is there. Durable on return, but for its
    /// name; after an error nothing has changed, and the error comes with the bytes that were wanted.
    pub(super) fn make(
        store: &Path,
        place: &'static Place,
        snapshot: &[u8],
    ) -> Result<Writer, (io::Error, u64)> {
        let room = Room::behind(snapshot.len() as u64);
        let temporary = store.join(place.temporary_name);
        let path = store.join(place.name);
        let write = || {
            match file::remove(&temporary, place.snapshot) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let file = MediaFile::create_new(&temporary)?;
            file.allocate(room.end, place.snapshot)?;
            file.write_all_at(snapshot, 0)?;
            // ORDER: room and snapshot are durable before the name leads to them; else a crash leaves a torn file in
            // the place of a whole one.
            file.sync(place.snapshot)?;
            file::rename(&temporary, &path, place.snapshot_name)?;
            Ok(file)
        };
        let file = write().map_err(|error| {
            // Gives the room back. Should this fail as well, the next opener removes it.
            let _ = file::remove(&temporary, place.snapshot);
            (error, room.end)
        })?;
        Ok(Writer {
            place,
            file,
            room,
            end: room.snapshot_end,
        })
    }

    /// Makes the names in the store's directory durable, that of this file among them.
    pub(super) fn sync_name(&self, store: &Path) -> io::Result<()> {
        // ORDER: the file was durable before it got its name (`make`); what needs the name says so where it calls this.
        file::sync_dir(store, self.place.snapshot_name)
    }

    /// Opens a file that was read.
    pub(super) fn open(
        store: &Path,
        place: &'static Place,
        parsed: &Parsed,
    ) -> crate::error::Result<Writer> {
        Ok(Writer {
            place,
            file: reading::open(store, place.name, place.role, true)?,
            room: parsed.room,
            end: parsed.end,
        })
    }

    /// Bytes that there is room for before `limit`.
    pub(super) fn room_before(&self, limit: u64) -> usize {
        usize::try_from(limit.saturating_sub(self.end)).unwrap_or(usize::MAX)
    }

    /// Writes a record behind the last one. Not synced.
    pub(super) fn append(&mut self, record: &[u8]) -> io::Result<()> {
        self.file.write_all_at(record, self.end)?;
        self.end += record.len() as u64;
        Ok(())
    }

    /// Writes the records again that were read from `bytes`, and zeros over what a crash left behind them: bytes of a
    /// commit that was never made. Durable on return.
    pub(super) fn make_durable(&self, bytes: &[u8]) -> io::Result<()> {
        let as_index = |offset| usize::try_from(offset).unwrap_or(usize::MAX);
        let (start, end) = (as_index(self.room.snapshot_end), as_index(self.end));
        let last = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        let mut records = bytes
            .get(start..=last.max(start))
            .unwrap_or_default()
            .to_vec();
        if let Some(torn) = records.get_mut(end.saturating_sub(start)..) {
            torn.fill(0);
        }
        // Written, because a sync does nothing for pages whose write failed in an earlier one.
        self.file.write_all_at(&records, self.room.snapshot_end)?;
        // ORDER: what was read is durable before anybody acts on it, and nothing is left of a torn record before a new
        // one is written over its beginning; else a crash takes a commit back, or leaves a torn record before a whole
        // one.
        self.sync()
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.file.sync(self.place.commit)
    }
}
