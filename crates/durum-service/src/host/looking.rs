//! What is not in order is shown to those who may see it: pools in quarantine, logs of clients that are gone, files
//! that belong to nothing.

use std::collections::BTreeSet;

use durum_format::Uuid;
use durum_persist::file::MediaFile;

use super::client::refused;
use super::commit::Commit;
use super::holders::Wish;
use super::{Embedded, Open};
use crate::error::{Error, Result};
use crate::files;
use crate::names;
use crate::registry;
use crate::service::PUDDLES_AT_ONCE;
use crate::strays::{self, StrayFile};

impl Embedded {
    /// Refuses to try the recovery of a pool again while somebody reads what it may write.
    pub(super) fn ensure_unseen(&self, open: &Open, pool: Uuid) -> Result<()> {
        open.ensure_free(self.id, pool, Wish::Settle)?;
        // The logs of a client are replayed together.
        let clients: BTreeSet<Uuid> = open.contents.marks_of(pool).collect();
        let marks = open.contents.marks.iter();
        let mut others = marks.filter(|(_, client)| clients.contains(client));
        others.try_for_each(|(other, _)| {
            let is_free = open.ensure_free(self.id, *other, Wish::Settle);
            match is_free {
                // Of one that it may not read it hears nothing.
                Err(Error::PoolBusy { .. }) if !self.may_see(open, *other) => {
                    let record = open.contents.pools.get(&pool);
                    let name = record.map(|record| record.name.clone());
                    Err(Error::PoolBusy {
                        name: name.unwrap_or_default(),
                    })
                }
                is_free => is_free,
            }
        })
    }

    /// As [`Service::stray_files`](crate::Service::stray_files).
    pub(super) fn strays(&self) -> Result<Vec<StrayFile>> {
        self.ensure_privileged("the store's directory", "listed")?;
        // Undisturbed: a file that is being made is not in the registry yet.
        self.host
            .undisturbed(|open| strays::find(&self.host.path, &open.contents))
    }

    /// As [`Service::logs`](crate::Service::logs).
    pub(super) fn registry_with_logs(&self) -> Result<Vec<u8>> {
        self.ensure_privileged("the logs of all users", "shown")?;
        let contents = self.host.request(|open| {
            let contents = open.contents.for_readers_of_logs(&open.at_work);
            Ok((
                contents.with_rights(&self.host.directory),
                Commit::nothing(),
            ))
        })?;
        registry::encode(&self.host.path, &contents)
    }

    /// As [`Service::open_logs`](crate::Service::open_logs).
    pub(super) fn open_kept(&self, logs: &[Uuid]) -> Result<Vec<MediaFile>> {
        self.ensure_privileged("the logs of all users", "shown")?;
        if logs.len() > PUDDLES_AT_ONCE {
            return Err(refused(logs[0], "too many are asked for at once"));
        }
        let store = &self.host.path;
        let wanted = self.host.request(|open| {
            let wanted = logs.iter().map(|uuid| {
                let record = *open.contents.puddle(store, *uuid)?;
                if record.kind.holds_objects() {
                    return Err(refused(*uuid, "it is no log"));
                }
                if open.at_work.contains(&record.owner) {
                    return Err(refused(*uuid, "its client lives, and writes it"));
                }
                Ok((*uuid, record, open.contents.is_quarantined_file(*uuid)))
            });
            Ok((wanted.collect::<Result<Vec<_>>>()?, Commit::nothing()))
        })?;
        names::with_descriptors(store, wanted.len(), || {
            let opened = wanted.iter().map(|(uuid, record, is_quarantined)| {
                let path = files::current_path(store, *uuid, *is_quarantined);
                files::open_at(store, &path, *uuid, record, false)
            });
            opened.collect()
        })
    }
}
