//! How puddles come and go: files without the lock, the registry in between.

use durum_format::puddle::{PuddleHeader, PuddleKind};
use durum_format::{UNIT, Uuid};
use durum_persist::file::MediaFile;

use super::commit::Commit;
use super::{Host, Open};
use crate::error::{Error, Result};
use crate::files;
use crate::model::{PuddleGrant, PuddlePlace};
use crate::names;
use crate::registry::contents::{Change, PuddleRecord};

/// Why a name is refused.
pub(super) const NAME_TAKEN: &str = "something in the store has this name already";

/// A puddle that the registry lists.
pub(super) type Registered = (Uuid, PuddleRecord);

/// A puddle that is to be made.
pub(super) struct NewPuddle {
    /// Its name, which nothing may have yet.
    pub(super) uuid: Uuid,
    /// Who wants it.
    pub(super) client: Uuid,
    pub(super) owner: Uuid,
    pub(super) kind: PuddleKind,
    pub(super) size: u64,
    pub(super) is_root: bool,
}

/// Puddles that are to be removed.
#[derive(Default)]
pub(super) struct Removal {
    /// What the registry is to say.
    pub(super) changes: Vec<Change>,
    /// Puddles whose files go.
    pub(super) puddles: Vec<Registered>,
    /// Puddles of which the addresses are free besides.
    pub(super) freed: Vec<Registered>,
    /// Others take their place: room is needed for what the registry is to say.
    pub(super) adds: bool,
}

impl Host {
    /// Makes a puddle: address, file, registration. `may_be` says, before and behind the making of the file, whether
    /// there may be one; `more` adds changes of the same commit.
    pub(super) fn make_puddle(
        &self,
        new: &NewPuddle,
        may_be: impl Fn(&Open) -> Result<()>,
        more: impl Fn(&Open, Uuid) -> Vec<Change>,
    ) -> Result<PuddleGrant> {
        let &NewPuddle {
            uuid,
            client,
            owner,
            kind,
            size,
            is_root,
        } = new;
        let (away, (address, cursor, unlinked)) = self.leave(|open| {
            may_be(open)?;
            // A quarantined log that somebody has accepted is listed nowhere, and its file stays.
            if open.has_name(uuid) || files::quarantine_path(&self.path, uuid).exists() {
                return Err(Error::PuddleRefused {
                    uuid: uuid.to_string(),
                    reason: NAME_TAKEN,
                });
            }
            if size == 0 || !size.is_multiple_of(UNIT) || size > self.identity.size {
                return Err(Error::PuddleSize {
                    size,
                    unit: UNIT,
                    max: self.identity.size,
                });
            }
            let cursor = open.space.cursor();
            let elsewhere = open.in_use_of(client).elsewhere.clone();
            let Some(address) = open.space.place(size, &elsewhere) else {
                return Err(Error::AddressesExhausted {
                    store: self.path.clone(),
                    size,
                    space: self.identity.size,
                });
            };
            Ok((address, cursor, open.unlinked.clone()))
        })?;
        let header = PuddleHeader {
            kind,
            uuid,
            owner,
            address,
            size,
            is_root,
        };
        let record = files::record_of(&header);
        let create = || files::create(&self.path, &header);
        let mut made = names::with_descriptors(&self.path, 1, create);
        if matches!(made, Err(Error::StorageFull { .. })) && self.has_cleared_up() {
            made = names::with_descriptors(&self.path, 1, create);
        }
        let made = made.and_then(|file| {
            // ORDER: the directory was synced for the new name; so the names that were unlinked before are gone
            // durably, too.
            away.note(|open| open.are_gone(&unlinked));
            let registered = away.request(|open| {
                may_be(open)?;
                let mut changes = more(open, uuid);
                changes.push(Change::PutPuddle(uuid, record));
                changes.push(Change::Cursor(open.space.cursor()));
                Ok(((), Commit::addition(changes)))
            });
            match registered {
                Ok(()) => Ok(file),
                Err(error) => {
                    // Where the outcome is unknown, the registry may name the file.
                    if self.state().poisoned.is_none() {
                        files::remove(&self.path, uuid)?;
                    }
                    Err(error)
                }
            }
        });
        match made {
            Ok(file) => Ok(grant(uuid, &record, file)),
            Err(error) => {
                away.note(|open| open.space.take_back(address, size, cursor));
                Err(error)
            }
        }
    }

    /// Removes puddles, whose files go as soon as that is durable.
    pub(super) fn remove_puddles<T>(
        &self,
        look: impl Fn(&Open) -> Result<(T, Removal)>,
    ) -> Result<T> {
        let (away, ()) = self.leave(|_| Ok(()))?;
        let (answer, puddles, freed) = away.request(|open| {
            let (answer, removal) = look(open)?;
            let Removal {
                changes,
                puddles,
                freed,
                adds,
            } = removal;
            let commit = match adds {
                true => Commit::addition(changes),
                false => Commit::removal(changes),
            };
            Ok(((answer, puddles, freed), commit))
        })?;
        // ORDER: the registry, then files. A file that goes before its registration leaves, after a crash, a puddle
        // without a file.
        let removed = puddles.iter().try_for_each(|(uuid, _)| {
            files::remove(&self.path, *uuid)?;
            away.note(|open| open.unlinked.push(*uuid));
            Ok(())
        });
        // Also after an error: the registry does not list them.
        away.note(|open| {
            open.free_addresses(&puddles);
            open.free_addresses(&freed);
        });
        removed.map(|()| answer)
    }
}

impl Open {
    /// The files of removed puddles are gone durably.
    fn are_gone(&mut self, unlinked: &[Uuid]) {
        let (gone, still) = std::mem::take(&mut self.unlinked)
            .into_iter()
            .partition(|uuid| unlinked.contains(uuid));
        self.unlinked = still;
        self.gone.extend::<Vec<Uuid>>(gone);
    }
}

/// What a client gets to know of a puddle, with its file.
pub(super) fn grant(uuid: Uuid, record: &PuddleRecord, file: MediaFile) -> PuddleGrant {
    PuddleGrant {
        uuid,
        address: record.address,
        size: record.size,
        kind: record.kind,
        is_root: record.is_root,
        file,
    }
}

/// What a client gets to know of a puddle, without its file.
pub(super) fn place((uuid, record): &Registered) -> PuddlePlace {
    PuddlePlace {
        uuid: *uuid,
        address: record.address,
        size: record.size,
        kind: record.kind,
    }
}
