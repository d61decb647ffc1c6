//! What a person decides about logs that recovery could not replay: give a part up, accept a pool as it is, try again.

use std::collections::BTreeSet;
use std::io;

use durum_format::Uuid;
use durum_format::puddle::PuddleKind;
use durum_persist::Site;
use durum_persist::file;

use super::commit::{Commit, Durable};
use super::{Host, Open, open, recover};
use crate::error::{Error, Result};
use crate::files::{self, PUDDLE_DIRECTORY};
use crate::model::{EngineKind, RecoveryReport, RefusedPool};
use crate::registry::contents::{Change, Contents, PuddleRecord};

const RETRY: Site = Site("quarantined log that is tried again");

impl Host {
    /// As [`Service::refused_pools`](crate::Service::refused_pools).
    pub(super) fn refused_pools(&self) -> Result<Vec<RefusedPool>> {
        self.request(|open| Ok((open.refused.to_pools(&open.contents), Commit::nothing())))
    }

    /// As [`Service::give_up`](crate::Service::give_up).
    pub(super) fn give_up(
        &self,
        name: &str,
        may: impl Fn(&Open, Uuid) -> Result<()>,
    ) -> Result<RecoveryReport> {
        self.undisturbed(|open| {
            let pool = self.pool_named(&open.contents, name)?;
            may(open, pool)?;
            let nothing = |reason| self.nothing_kept(name, reason);
            let Some(refused) = open.refused.pool(&open.contents, pool) else {
                return Err(nothing("it is not refused"));
            };
            if !refused.waits_for.is_empty() {
                return Err(Error::PoolWaits {
                    store: self.path.clone(),
                    pool: refused.name,
                    others: refused.waits_for,
                });
            }
            if is_twin(&open.contents, pool) {
                return Err(nothing(
                    "what a Twin pool is recovered from lies in its own files; bring them back, or remove the pool: `durum rm`",
                ));
            }
            let changes = giving_up_of(open, pool);
            open.commit(Commit::removal(changes))?;
            self.settle(open)
        })
    }

    /// As [`Service::accept_quarantined`](crate::Service::accept_quarantined).
    pub(super) fn accept_quarantined(
        &self,
        name: &str,
        may: impl Fn(&Open, Uuid) -> Result<()>,
    ) -> Result<()> {
        self.undisturbed(|open| {
            let pool = self.pool_named(&open.contents, name)?;
            may(open, pool)?;
            let (mut changes, freed) = open.contents.unmarking_of(pool);
            changes.extend(open.contents.accepting_of(pool));
            if changes.is_empty() {
                return Err(self.not_quarantined(open, pool, name));
            }
            let accepted = open.commit(Commit::removal(changes));
            open.free_addresses(&freed);
            accepted
        })
    }

    /// As [`Service::retry_quarantined`](crate::Service::retry_quarantined).
    pub(super) fn retry_quarantined(
        &self,
        name: &str,
        may: impl Fn(&Open, Uuid) -> Result<()>,
    ) -> Result<RecoveryReport> {
        self.undisturbed(|open| {
            let pool = self.pool_named(&open.contents, name)?;
            may(open, pool)?;
            let clients: Vec<Uuid> = open.contents.marks_of(pool).collect();
            if let Some(undamaged) = open.contents.undamaged(pool) {
                // Its puddles are looked at again when it is opened.
                open.commit(Commit::removal(vec![undamaged]))?;
                return Ok(RecoveryReport::default());
            }
            if clients.is_empty() {
                return Err(self.not_quarantined(open, pool, name));
            }
            let mut changes = Vec::new();
            let mut puddles = BTreeSet::new();
            for client in clients {
                take_back(&open.contents, client, &mut changes, &mut puddles);
            }
            // The files first: after a crash in between the registry still says that they are in quarantine, and the
            // next opener moves them there again.
            for uuid in &puddles {
                let from = files::quarantine_path(&self.path, *uuid);
                match file::rename(&from, &files::puddle_path(&self.path, *uuid), RETRY) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(Error::io("moving a log out of quarantine", &from, error));
                    }
                    _ => {}
                }
            }
            let directory = self.path.join(PUDDLE_DIRECTORY);
            // ORDER: the names are durable before the registry counts on them; else a crash leaves a registered log
            // without a file.
            files::sync_dir(&directory, RETRY)?;
            open.commit(Commit::removal(changes))?;
            self.settle(open)
        })
    }

    fn nothing_kept(&self, pool: &str, reason: &'static str) -> Error {
        Error::NothingKept {
            store: self.path.clone(),
            pool: pool.to_owned(),
            reason,
        }
    }

    fn not_quarantined(&self, open: &Open, pool: Uuid, name: &str) -> Error {
        match open.refused.pool(&open.contents, pool) {
            Some(refused) => Error::PoolNotQuarantined {
                store: self.path.clone(),
                cure: refused.cure(&self.path),
                pool: refused.name,
                reason: refused.reason,
            },
            None => self.nothing_kept(name, "it is not quarantined"),
        }
    }

    /// As [`Host::settle`], when nobody does anything.
    pub(super) fn settle_again(&self) -> Result<()> {
        self.undisturbed(|open| self.settle(open).map(drop))
    }

    /// Recovers what can be recovered now.
    pub(super) fn settle(&self, open: &mut Open) -> Result<RecoveryReport> {
        let clients = open.contents.clients.iter();
        // Of a client whose sections are being completed nothing is left but these, and they are written.
        let gone = clients.filter(|client| {
            !open.at_work.contains(client) && !open.taken_over.contains_key(client)
        });
        let replayed = recover::replay(&self.path, &open.contents, gone.copied(), &|_, _, _| {})?;
        let Some(Durable { registry, contents }) = &mut open.durable else {
            return Err(self.closed());
        };
        let ended = replayed.end(&self.path, registry, contents);
        open.contents = contents.clone();
        let mut recovered = ended?;
        for address in &recovered.freed {
            open.space.remove(*address);
        }
        open.refused = recovered.refused;
        open.note_interrupted(recovered.interrupted);
        let is_coming = |uuid| open.coming.contains_key(&uuid);
        let report = &mut recovered.report;
        open::clear_up(&self.path, &open.contents, is_coming, report)?;
        let going = open.contents.going();
        open.unlinked = going.filter(|uuid| !is_coming(*uuid)).collect();
        Ok(recovered.report)
    }

    pub(super) fn pool_named(&self, contents: &Contents, name: &str) -> Result<Uuid> {
        let pool = contents.pool_named(name).map(|(pool, _)| pool);
        pool.ok_or_else(|| Error::no_pool(&self.path, name))
    }
}

/// The changes that drop what is kept for a pool.
pub(super) fn giving_up_of(open: &Open, pool: Uuid) -> Vec<Change> {
    let grants = open.contents.grants.iter();
    grants
        .filter(|(client, of)| *of == pool && !open.at_work.contains(client))
        .map(|(client, _)| Change::RemoveGrant(*client, pool))
        .collect()
}

pub(super) fn is_twin(contents: &Contents, pool: Uuid) -> bool {
    let record = contents.pools.get(&pool);
    record.is_some_and(|pool| pool.engine == EngineKind::Twin)
}

/// The changes that take a client's logs out of quarantine, and their puddles: it may write the pools that are still
/// marked for it.
fn take_back(
    contents: &Contents,
    client: Uuid,
    changes: &mut Vec<Change>,
    puddles: &mut BTreeSet<Uuid>,
) {
    let logs = contents.quarantine.iter();
    for (puddle, log) in logs.filter(|(_, log)| log.client == client) {
        changes.push(Change::RemoveQuarantine(*puddle));
        puddles.extend(log.continuations.iter().chain([puddle]));
    }
    changes.push(Change::PutClient(client));
    for (pool, _) in contents.marks.iter().filter(|(_, of)| *of == client) {
        changes.push(Change::RemoveMark(*pool, client));
        changes.push(Change::PutGrant(client, *pool));
    }
    for uuid in puddles.iter() {
        let is_its =
            |record: &PuddleRecord| record.kind == PuddleKind::LogSpace && record.owner == client;
        if contents.puddles.get(uuid).is_some_and(is_its) {
            changes.push(Change::PutLogSpace(*uuid, client));
        }
    }
}
