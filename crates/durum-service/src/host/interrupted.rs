//! Clients that are gone and have left sections: who completes them, and what a person decides about their pools.
//!
//! ```text
//! recovered    logs are retired | the client stays, with grants and puddles of sections | its pools are refused
//! taken over   another client has grants of these pools, too | it writes the same records on, and makes them idle
//! done         one commit: client, grants, puddles of sections are gone
//! ```
//!
//! Who takes over and is killed leaves a client that is gone, and may have logs, which are replayed. Then the first
//! line holds again of the client whose sections these are.

use durum_format::Uuid;

use super::client::refused;
use super::commit::Commit;
use super::holders::Wish;
use super::puddles::{Registered, Removal, grant, place};
use super::{Embedded, Host, Open, recover};
use crate::deposited;
use crate::error::{Error, Result};
use crate::files::{self, Puddles};
use crate::model::{EngineKind, InterruptedClient, PoolGrant, PuddleGrant, TakenOver};
use crate::names;
use crate::recovery::{Interrupted, interruption};
use crate::registry::contents::{Change, PoolRecord};

/// What is taken over: pools with their root puddles, and puddles of sections.
type Takeable = (Vec<(Uuid, PoolRecord, Registered)>, Vec<Registered>);

impl Host {
    fn abandon_sections(
        &self,
        name: &str,
        may: impl Fn(&Open, Uuid) -> Result<()>,
    ) -> Result<Vec<String>> {
        self.undisturbed(|open| {
            let pool = self.pool_named(&open.contents, name)?;
            may(open, pool)?;
            let changes = |open: &Open| -> Result<Vec<Change>> {
                // What is kept for it besides goes with `give_up` only.
                open.refused.ensure_not(&self.path, &open.contents, pool)?;
                let clients = open.interrupted.clients_in(&open.contents, pool);
                Ok(clients
                    .map(|client| Change::RemoveGrant(client, pool))
                    .collect())
            };
            if changes(open)?.is_empty() {
                return Err(Error::NothingKept {
                    store: self.path.clone(),
                    pool: name.to_owned(),
                    reason: "no section was interrupted in it",
                });
            }
            // ORDER: what records say of words is written before nobody may write it any more; else memory that is in
            // use is free. Who has taken the sections over, and is gone, has recorded more than was found before.
            self.settle(open)?;
            let others = open.interrupted.others(&open.contents, name);
            let changes = changes(open)?;
            open.commit(Commit::removal(changes))?;
            // A client that has no other pools ends.
            self.settle(open)?;
            Ok(others)
        })
    }
}

impl Host {
    /// The clients that are gone and have left sections which nobody completes now, and no code was tried on.
    ///
    /// # Errors
    /// `Closed`, `Forked`, `Poisoned`.
    pub fn to_complete(&self) -> Result<Vec<Uuid>> {
        let mut state = self.state();
        let open = state.open(&self.path)?;
        let untried = open.interrupted.untried();
        let left = untried.filter(|client| !open.taken_over.contains_key(client));
        Ok(left.collect())
    }

    /// Notes why code did not complete what a client has left: whoever asks for its pools is told, until somebody has.
    /// Nothing is noted where somebody else completes it now: if that one fails, code may be tried.
    ///
    /// # Errors
    /// `Closed`, `Forked`, `Poisoned`.
    pub fn note_not_completed(&self, client: Uuid, why: &str) -> Result<()> {
        let mut state = self.state();
        let open = state.open(&self.path)?;
        if !open.taken_over.contains_key(&client) {
            open.interrupted.put_attempt(client, why.to_owned());
        }
        Ok(())
    }

    /// The code that a client has deposited which is gone, to complete its sections; `None` where it has deposited
    /// none. It is whole, and this processor has what it was compiled for; whoever could write it is nobody to believe.
    ///
    /// # Errors
    /// `Closed`, `Forked`, `Poisoned`; `FileMissing`, `Format`, `Damaged`; `ProcessorLacks`; `Io`.
    pub fn code_of(&self, client: Uuid) -> Result<Option<Vec<u8>>> {
        let mut state = self.state();
        let contents = state.open(&self.path)?.contents.concerning(client);
        drop(state);
        deposited::code_to_run(&self.path, &contents, client)
    }
}

impl Open {
    /// Notes what was found of all clients that are gone. Those whose sections are being completed were not looked at.
    pub(super) fn note_interrupted(&mut self, mut found: Interrupted) {
        for client in self.taken_over.keys() {
            found.put(*client, self.interrupted.of(*client).cloned());
        }
        found.keep_attempts(&self.interrupted);
        self.interrupted = found;
    }
}

impl Embedded {
    /// As [`Service::abandon_sections`](crate::Service::abandon_sections).
    pub(super) fn abandon(&self, name: &str) -> Result<Vec<String>> {
        let may = |open: &Open, pool| {
            self.ensure_owns(open, pool, "accepted")?;
            open.ensure_free(self.id, pool, Wish::Settle)
        };
        self.told(self.host.abandon_sections(name, may))
    }

    /// As [`Service::interrupted`](crate::Service::interrupted).
    pub(super) fn list_interrupted(&self) -> Result<Vec<InterruptedClient>> {
        let listed = self.host.request(|open| {
            let listed = open.interrupted.to_clients(&open.contents);
            Ok((listed, Commit::nothing()))
        })?;
        self.told_interrupted(listed)
    }

    /// As [`Service::take_over`](crate::Service::take_over).
    pub(super) fn take_over_now(&self, client: Uuid) -> Result<TakenOver> {
        // Whoever recovers it again waits, and finds that it was taken over.
        let _alone = self.host.recover_alone(client)?;
        loop {
            let takeable = |open: &mut Open| {
                let seen = self.takeable(open, client)?;
                Ok((seen, open.contents.concerning(client)))
            };
            let (away, (seen, contents)) = self.host.leave(takeable)?;
            let (pools, sections) = &seen;
            let stale: Vec<Uuid> = pools
                .iter()
                .filter(|(_, _, (_, record))| record.is_stale)
                .map(|(_, _, (uuid, _))| *uuid)
                .collect();
            if !stale.is_empty() {
                drop(away);
                self.refresh(&stale)?;
                continue;
            }
            // Who has taken them over before has recorded more: what that says of words is to hold now.
            let replayed =
                recover::replay(&self.host.path, &contents, [client], &|_, _, _| {})?.recovered();
            for (pool, _, _) in pools {
                let refused = &replayed.refused;
                refused.ensure_not(&self.host.path, &contents, *pool)?;
            }
            let mut roots = Vec::new();
            for (pool, record, registered) in pools {
                let open = || self.open_file(&record.name, registered, true);
                let file = names::with_descriptors(&self.host.path, 1, open)?;
                let root = grant(registered.0, &registered.1, file);
                if record.engine == EngineKind::Twin {
                    self.make_whole(&away, *pool, &root, &record.name)?;
                }
                roots.push(root);
            }
            let puddles = self.open_sections(sections)?;
            // ORDER: the grants are durable before they are handed out; else recovery would not write what the logs of
            // this client say of these pools.
            let others = away.request(|open| {
                if self.takeable(open, client)? != seen {
                    return Ok((None, Commit::nothing()));
                }
                let mut changes = self.enter(open);
                let granted = pools.iter();
                changes.extend(granted.map(|(pool, _, _)| Change::PutGrant(self.id, *pool)));
                let others = pools.iter().map(|(pool, _, _)| {
                    let mut others = open.contents.puddles_of(*pool);
                    others.retain(|(_, record)| !record.is_root);
                    others.iter().map(place).collect::<Vec<_>>()
                });
                Ok((Some(others.collect::<Vec<_>>()), Commit::addition(changes)))
            })?;
            let Some(others) = others else {
                continue;
            };
            away.note(|open| _ = open.taken_over.insert(client, self.id));
            for (pool, _, _) in pools {
                // If it was open for that before.
                self.end_reading(*pool)?;
            }
            let granted = pools.iter().zip(roots).zip(others);
            let granted = granted.map(|(((uuid, record, _), root), others)| PoolGrant {
                uuid: *uuid,
                name: record.name.clone(),
                engine: record.engine,
                root,
                others,
            });
            return Ok(TakenOver {
                pools: granted.collect(),
                puddles,
            });
        }
    }

    /// How many files [`Service::take_over`](crate::Service::take_over) opens.
    ///
    /// # Errors
    /// `Closed`, `Forked`, `Poisoned`.
    pub fn files_left_by(&self, client: Uuid) -> Result<usize> {
        let mut state = self.host.state();
        let contents = &state.open(&self.host.path)?.contents;
        let pools = contents.granted_pools(client).count();
        Ok(pools + contents.section_puddles_of(client).count())
    }

    /// What this client has taken over already, for a request whose answer was lost.
    ///
    /// # Errors
    /// As [`Service::take_over`](crate::Service::take_over) for its files.
    pub fn taken_again(&self, client: Uuid) -> Result<Option<TakenOver>> {
        let mut state = self.host.state();
        let open = state.open(&self.host.path)?;
        if open.taken_over.get(&client) != Some(&self.id) {
            return Ok(None);
        }
        let contents = open.contents.concerning(client);
        drop(state);
        let mut pools = Vec::new();
        for pool in contents.granted_pools(client) {
            pools.extend(self.pool_again(|uuid, _| uuid == pool)?);
        }
        pools.sort_by(|left, right| left.name.cmp(&right.name));
        let puddles: Vec<Registered> = contents.section_puddles_of(client).collect();
        let puddles = self.open_sections(&puddles)?;
        Ok(Some(TakenOver { pools, puddles }))
    }

    /// What a client that is gone has left for this one to complete.
    fn takeable(&self, open: &Open, client: Uuid) -> Result<Takeable> {
        if open.interrupted.of(client).is_none() {
            return Err(refused(client, "no client of this name has left sections"));
        }
        self.ensure_may_complete(open, client)?;
        let mut pools = Vec::new();
        for pool in open.contents.granted_pools(client) {
            let (store, contents) = (&self.host.path, &open.contents);
            let name = contents.name_of(pool);
            if let Some(note) = contents.quarantine_of(pool) {
                return Err(Error::quarantined(store, name, note));
            }
            open.refused.ensure_not(store, contents, pool)?;
            open.ensure_free(self.id, pool, Wish::Write)?;
            let record = contents.pools.get(&pool).cloned();
            let record = record.ok_or_else(|| Error::no_pool(store, &name))?;
            let root = *contents.puddle(store, record.root_puddle)?;
            let root = (record.root_puddle, root);
            pools.push((pool, record, root));
        }
        pools.sort_by(|(_, left, _), (_, right, _)| left.name.cmp(&right.name));
        let puddles = open.contents.section_puddles_of(client).collect();
        Ok((pools, puddles))
    }

    fn open_sections(&self, puddles: &[Registered]) -> Result<Vec<PuddleGrant>> {
        names::with_descriptors(&self.host.path, puddles.len(), || {
            let opened = puddles.iter().map(|(uuid, record)| {
                let file = files::open(&self.host.path, *uuid, record, true)?;
                Ok(grant(*uuid, record, file))
            });
            opened.collect()
        })
    }

    /// As [`Service::sections_done`](crate::Service::sections_done).
    pub(super) fn end_sections(&self, client: Uuid) -> Result<()> {
        let ensure_its = |open: &Open| match open.taken_over.get(&client) == Some(&self.id) {
            true => Ok(()),
            false => Err(refused(
                client,
                "this client has not taken its sections over",
            )),
        };
        let (away, contents) = self.host.leave(|open| {
            ensure_its(open)?;
            Ok(open.contents.concerning(client))
        })?;
        // Nobody but the caller writes them.
        let left = interruption(&Puddles::of(&self.host.path)?, &contents, client)?;
        if left.is_some() {
            let mut found = Interrupted::default();
            found.put(client, left);
            for pool in contents.granted_pools(client) {
                found.ensure_not(&self.host.path, &contents, pool)?;
            }
        }
        // ORDER: the caller has made durable what the sections changed, and that they have ended, before this says that
        // nobody need know of them; else a crash leaves a pool half done, and nobody who could go on.
        self.host.remove_puddles(|open| {
            ensure_its(open)?;
            let (changes, puddles) = open.contents.ending_of(client);
            let record = |uuid: Uuid| Some((uuid, *open.contents.puddles.get(&uuid)?));
            let removal = Removal {
                changes,
                puddles: puddles.into_iter().filter_map(record).collect(),
                freed: Vec::new(),
                adds: false,
            };
            Ok(((), removal))
        })?;
        away.note(|open| {
            open.taken_over.remove(&client);
            open.interrupted.put(client, None);
        });
        Ok(())
    }
}
