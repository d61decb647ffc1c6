//! The service's answers to its client.

use durum_format::Uuid;
use durum_format::puddle::PuddleKind;

use super::commit::{Commit, Durable};
use super::puddles::{NewPuddle, Registered, Removal, grant};
use super::settle::is_twin;
use super::{Embedded, Open};
use crate::descriptors;
use crate::error::{Error, Result};
use crate::files;
use crate::model::{PoolGrant, PoolSpec, PoolSummary, PuddleGrant, PuddleOwner, StoreInfo};
use crate::names;
use crate::registry::contents::{Change, PoolRecord, PuddleRecord};
use crate::service::Service;

impl Service for Embedded {
    fn info(&self) -> StoreInfo {
        StoreInfo {
            path: self.path.clone(),
            uuid: self.identity.uuid,
            client: self.client,
            base: self.identity.base,
            space_size: self.identity.size,
            next_address: match &self.state().open {
                Some(open) => open.space.cursor(),
                None => self.identity.start,
            },
            domain: self.domain,
            format_version: durum_format::store::VERSION,
        }
    }

    fn pools(&self) -> Result<Vec<PoolSummary>> {
        self.request(|open| Ok((open.contents.pool_summaries(), Commit::nothing())))
    }

    fn create_pool(&self, name: &str, spec: &PoolSpec) -> Result<PoolGrant> {
        names::check_pool_name(name)?;
        let pool = names::random_uuid()?;
        let kind = spec.engine.puddle_kind();
        let is_new = |open: &Open| match open.contents.pool_named(name) {
            None => Ok(()),
            Some(_) => Err(Error::PoolExists {
                store: self.path.clone(),
                name: name.to_owned(),
            }),
        };
        let new = NewPuddle {
            owner: pool,
            kind,
            size: spec.root_puddle_size,
            is_root: true,
        };
        let root = self.make_puddle(&new, is_new, |uuid| {
            let record = PoolRecord {
                name: name.to_owned(),
                engine: spec.engine,
                root_puddle: uuid,
            };
            vec![
                Change::PutPool(pool, record),
                Change::PutGrant(self.client, pool),
            ]
        })?;
        Ok(PoolGrant {
            uuid: pool,
            name: name.to_owned(),
            engine: spec.engine,
            root_puddle: root.uuid,
            puddles: vec![root],
        })
    }

    fn open_pool(&self, name: &str) -> Result<PoolGrant> {
        loop {
            let (away, seen) = self.leave(|open| self.openable(open, name))?;
            let (pool, record, registered) = &seen;
            names::ensure_descriptors(&self.path, registered.len())?;
            let mut puddles = Vec::with_capacity(registered.len());
            for (uuid, puddle) in registered {
                let file = files::open(&self.path, *uuid, puddle, true)
                    .map_err(|error| files::of_pool(error, &self.path, name))?;
                puddles.push(grant(*uuid, puddle, file));
            }
            // The grant is durable before it is handed out: recovery writes only where a grant says so.
            let is_as_seen = away.request(|open| {
                let is_as_seen = self.openable(open, name)? == seen;
                let mut changes = Vec::new();
                if is_as_seen {
                    changes = self.enter(open);
                    changes.push(Change::PutGrant(self.client, *pool));
                }
                Ok((is_as_seen, Commit::addition(changes)))
            })?;
            if is_as_seen {
                return Ok(PoolGrant {
                    uuid: *pool,
                    name: record.name.clone(),
                    engine: record.engine,
                    root_puddle: record.root_puddle,
                    puddles,
                });
            }
        }
    }

    fn close_pool(&self, pool: Uuid) -> Result<()> {
        self.request(|open| {
            self.ensure_open(open, pool)?;
            let changes = vec![Change::RemoveGrant(self.client, pool)];
            Ok(((), Commit::removal(changes)))
        })
    }

    fn remove_pool(&self, name: &str) -> Result<()> {
        let was_refused = self.remove_puddles(|open| {
            let pool = self.pool_named(&open.contents, name)?;
            if self.has_open(open, pool) {
                return Err(Error::PoolOpen {
                    name: name.to_owned(),
                    operation: "removed",
                });
            }
            // What is kept for a pool goes with `give_up` only; of a Twin pool nothing is kept that its own files do
            // not hold.
            if !is_twin(&open.contents, pool) {
                open.refused.ensure_not(&self.path, &open.contents, pool)?;
            }
            let puddles = open.contents.puddles_of(pool);
            let mut changes = self.giving_up_of(&open.contents, pool);
            changes.extend(puddles.iter().map(|(uuid, _)| Change::RemovePuddle(*uuid)));
            changes.push(Change::RemovePool(pool));
            let (unmark, freed) = open.contents.unmarking_of(pool);
            changes.extend(unmark);
            let removal = Removal {
                changes,
                puddles,
                freed,
            };
            Ok((open.refused.contains(pool), removal))
        })?;
        match was_refused {
            true => self.undisturbed(|open| self.settle(open).map(drop)),
            false => Ok(()),
        }
    }

    fn create_puddle(
        &self,
        owner: PuddleOwner,
        kind: PuddleKind,
        size: u64,
    ) -> Result<PuddleGrant> {
        let refused = |reason| {
            Err(Error::PuddleRefused {
                uuid: "to be made".to_owned(),
                reason,
            })
        };
        let may_own = |open: &Open| match owner {
            PuddleOwner::Pool(pool) => match open.contents.pools.get(&pool) {
                Some(record) if self.has_open(open, pool) => {
                    match record.engine.puddle_kind() == kind {
                        true => Ok(()),
                        false => refused(
                            "a pool owns puddles of its engine's kind; logs belong to the client",
                        ),
                    }
                }
                _ => Err(not_open(pool)),
            },
            PuddleOwner::Client if kind.holds_objects() => {
                refused("a client owns logs and log spaces; data belongs to a pool")
            }
            PuddleOwner::Client => Ok(()),
        };
        let new = NewPuddle {
            owner: match owner {
                PuddleOwner::Pool(pool) => pool,
                PuddleOwner::Client => self.client,
            },
            kind,
            size,
            is_root: false,
        };
        self.make_puddle(&new, may_own, |_| Vec::new())
    }

    fn remove_puddle(&self, uuid: Uuid) -> Result<()> {
        self.remove_puddles(|open| {
            let record = self.own_puddle(open, uuid)?;
            if record.is_root {
                return Err(Error::PuddleRefused {
                    uuid: uuid.to_string(),
                    reason: "it is the root puddle of its pool; remove the pool instead",
                });
            }
            let mut changes = vec![Change::RemovePuddle(uuid)];
            if open.contents.log_spaces.contains_key(&uuid) {
                changes.insert(0, Change::RemoveLogSpace(uuid));
            }
            let removal = Removal {
                changes,
                puddles: vec![(uuid, record)],
                freed: Vec::new(),
            };
            Ok(((), removal))
        })
    }

    fn register_log_space(&self, puddle: Uuid) -> Result<()> {
        let refused = |reason| {
            Err(Error::PuddleRefused {
                uuid: puddle.to_string(),
                reason,
            })
        };
        self.request(|open| {
            let record = self.own_puddle(open, puddle)?;
            if record.kind != PuddleKind::LogSpace {
                return refused("it is not a log space puddle");
            }
            let changes = match open.contents.log_space_of(self.client) {
                Some(space) if space == puddle => Vec::new(),
                Some(_) => return refused("this client has another log space already"),
                None => vec![Change::PutLogSpace(puddle, self.client)],
            };
            Ok(((), Commit::addition(changes)))
        })
    }

    fn register_type(&self, id: u64, text: &str) -> Result<()> {
        let mut reached = None;
        self.request(|open| {
            let known = &open.contents.types;
            let mut changes = Vec::new();
            if known.get(&id).is_none_or(|known| known != text) {
                if reached.is_none() {
                    reached = Some(descriptors::check_type(id, text)?);
                }
                for (id, text) in reached.iter().flatten() {
                    match known.get(id) {
                        Some(known) if known == text => {}
                        Some(known) => {
                            return Err(Error::TypeRefused {
                                id: *id,
                                reason: format!("the id belongs to {known:?}, and to {text:?} as well; rename one of the types"),
                            });
                        }
                        None => changes.push(Change::PutType(*id, text.clone())),
                    }
                }
            }
            Ok(((), Commit::addition(changes)))
        })
    }

    fn type_text(&self, id: u64) -> Result<Option<String>> {
        self.request(|open| Ok((open.contents.types.get(&id).cloned(), Commit::nothing())))
    }

    fn types(&self) -> Result<Vec<(u64, String)>> {
        self.request(|open| {
            let types = open.contents.types.iter();
            let types = types.map(|(id, text)| (*id, text.clone())).collect();
            Ok((types, Commit::nothing()))
        })
    }

    fn close(&self) -> Result<()> {
        let mut state = self.state();
        match &mut state.open {
            None => return Ok(()),
            Some(open) if !open.lock.is_ours() => {
                return Err(Error::Forked {
                    store: self.path.clone(),
                });
            }
            Some(open) => open.is_closing = true,
        }
        while !state.is_quiet() {
            state = self.wait(state);
        }
        let mut ended = Ok(());
        // Where it is poisoned, nothing more is written; the next opener recovers.
        if state.poisoned.is_none()
            && let Some(open) = &mut state.open
        {
            ended = self.end_client(open);
            if let Some(Durable { registry, contents }) = &mut open.durable {
                registry.close(contents);
            }
        }
        // Gives the lock up.
        state.open = None;
        self.changed.notify_all();
        ended
    }
}

impl Embedded {
    fn has_open(&self, open: &Open, pool: Uuid) -> bool {
        open.contents.grants.contains(&(self.client, pool))
    }

    /// The record of a puddle that this client may remove: its own, or one of a pool that it has open.
    fn own_puddle(&self, open: &Open, uuid: Uuid) -> Result<PuddleRecord> {
        let Some(record) = open.contents.puddles.get(&uuid) else {
            return Err(Error::PuddleUnknown {
                store: self.path.clone(),
                uuid: uuid.to_string(),
            });
        };
        if record.owner != self.client && !self.has_open(open, record.owner) {
            return Err(Error::PuddleRefused {
                uuid: uuid.to_string(),
                reason: "it belongs neither to this client nor to a pool that it has open",
            });
        }
        Ok(*record)
    }

    /// The change that records this client, if it is not yet recorded.
    pub(super) fn enter(&self, open: &Open) -> Vec<Change> {
        match open.contents.clients.contains(&self.client) {
            true => Vec::new(),
            false => vec![Change::PutClient(self.client)],
        }
    }

    /// A pool that this client may open, and its puddles.
    fn openable(&self, open: &Open, name: &str) -> Result<(Uuid, PoolRecord, Vec<Registered>)> {
        let pool = self.pool_named(&open.contents, name)?;
        if let Some(note) = open.contents.quarantine_of(pool) {
            return Err(Error::PoolQuarantined {
                store: self.path.clone(),
                pool: name.to_owned(),
                log: self.path.join(&note.log),
                reason: note.reason,
            });
        }
        open.refused.ensure_not(&self.path, &open.contents, pool)?;
        if self.has_open(open, pool) {
            return Err(Error::PoolOpen {
                name: name.to_owned(),
                operation: "opened again",
            });
        }
        let record = open.contents.pools[&pool].clone();
        Ok((pool, record, open.contents.puddles_of(pool)))
    }

    fn ensure_open(&self, open: &Open, pool: Uuid) -> Result<()> {
        match self.has_open(open, pool) {
            true => Ok(()),
            false => Err(not_open(pool)),
        }
    }

    /// Ends this client: its logs go, its grants end, the store is clean.
    fn end_client(&self, open: &mut Open) -> Result<()> {
        if !open.contents.clients.contains(&self.client) {
            return Ok(());
        }
        let (changes, puddles) = open.contents.ending_of(self.client);
        open.commit(Commit::removal(changes))?;
        for uuid in puddles {
            files::remove(&self.path, uuid)?;
        }
        Ok(())
    }
}

fn not_open(pool: Uuid) -> Error {
    Error::PoolNotOpen {
        pool: pool.to_string(),
    }
}
