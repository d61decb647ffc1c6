//! The service's answers to its client.

use durum_format::puddle::{PuddleHeader, PuddleKind};
use durum_format::{UNIT, Uuid};

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
            next_address: self
                .with_open(|open| Ok(open.space.cursor()))
                .unwrap_or(self.identity.start),
            domain: self.domain,
            format_version: durum_format::store::VERSION,
        }
    }

    fn pools(&self) -> Result<Vec<PoolSummary>> {
        self.with_open(|open| Ok(open.contents.pool_summaries()))
    }

    fn create_pool(&self, name: &str, spec: &PoolSpec) -> Result<PoolGrant> {
        names::check_pool_name(name)?;
        self.with_open(|open| {
            if open.contents.pool_named(name).is_some() {
                return Err(Error::PoolExists {
                    store: self.path.clone(),
                    name: name.to_owned(),
                });
            }
            let pool = names::random_uuid()?;
            let record = |puddle: &PuddleHeader| PoolRecord {
                name: name.to_owned(),
                engine: spec.engine,
                root_puddle: puddle.uuid,
            };
            let kind = spec.engine.puddle_kind();
            let root =
                self.add_puddle(open, pool, kind, spec.root_puddle_size, true, |puddle| {
                    vec![
                        Change::PutPool(pool, record(puddle)),
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
        })
    }

    fn open_pool(&self, name: &str) -> Result<PoolGrant> {
        self.with_open(|open| {
            let found = open.contents.pool_named(name);
            let (pool, record) = found.ok_or_else(|| Error::no_pool(&self.path, name))?;
            if let Some(note) = open.contents.quarantine_of(pool) {
                return Err(Error::quarantined(&self.path, name.to_owned(), note));
            }
            open.refused.ensure_not(&self.path, &open.contents, pool)?;
            if self.has_open(open, pool) {
                return Err(Error::PoolOpen {
                    name: name.to_owned(),
                    operation: "opened again",
                });
            }
            let record = record.clone();
            let registered = open.contents.puddles_of(pool);
            names::ensure_descriptors(&self.path, registered.len())?;
            let mut puddles = Vec::with_capacity(registered.len());
            for (uuid, puddle) in &registered {
                let file = files::open(&self.path, *uuid, puddle, true)
                    .map_err(|error| files::of_pool(error, &self.path, name))?;
                puddles.push(grant(*uuid, puddle, file));
            }
            // The grant is durable before it is handed out: recovery writes only where a grant says so.
            let mut changes = self.enter(open);
            changes.push(Change::PutGrant(self.client, pool));
            self.commit_addition(open, &changes)?;
            Ok(PoolGrant {
                uuid: pool,
                name: record.name,
                engine: record.engine,
                root_puddle: record.root_puddle,
                puddles,
            })
        })
    }

    fn close_pool(&self, pool: Uuid) -> Result<()> {
        self.with_open(|open| {
            if !self.has_open(open, pool) {
                return Err(not_open(pool));
            }
            self.commit_removal(open, &[Change::RemoveGrant(self.client, pool)], &[])
        })
    }

    fn remove_pool(&self, name: &str) -> Result<()> {
        self.with_open(|open| {
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
            let was_refused = open.refused.contains(pool);
            let puddles = open.contents.puddles_of(pool);
            let mut changes = self.giving_up_of(&open.contents, pool);
            changes.extend(puddles.iter().map(|(uuid, _)| Change::RemovePuddle(*uuid)));
            changes.push(Change::RemovePool(pool));
            let (unmark, freed) = open.contents.unmarking_of(pool);
            changes.extend(unmark);
            let uuids: Vec<Uuid> = puddles.iter().map(|(uuid, _)| *uuid).collect();
            let removed = self.commit_removal(open, &changes, &uuids);
            // Also after an error: where the commit was made, the addresses are free.
            open.free_addresses(&puddles);
            open.free_addresses(&freed);
            if removed.is_ok() && was_refused {
                self.settle(open)?;
            }
            removed
        })
    }

    fn create_puddle(
        &self,
        owner: PuddleOwner,
        kind: PuddleKind,
        size: u64,
    ) -> Result<PuddleGrant> {
        self.with_open(|open| {
            let refused = |reason| {
                Err(Error::PuddleRefused {
                    uuid: "to be made".to_owned(),
                    reason,
                })
            };
            let owner = match owner {
                PuddleOwner::Pool(pool) => {
                    let record = open.contents.pools.get(&pool);
                    let Some(record) = record.filter(|_| self.has_open(open, pool)) else {
                        return Err(not_open(pool));
                    };
                    if record.engine.puddle_kind() != kind {
                        return refused(
                            "a pool owns puddles of its engine's kind; logs belong to the client",
                        );
                    }
                    pool
                }
                PuddleOwner::Client if kind.holds_objects() => {
                    return refused("a client owns logs and log spaces; data belongs to a pool");
                }
                PuddleOwner::Client => self.client,
            };
            self.add_puddle(open, owner, kind, size, false, |_| Vec::new())
        })
    }

    fn remove_puddle(&self, uuid: Uuid) -> Result<()> {
        self.with_open(|open| {
            let record = self.own_puddle(open, uuid)?;
            if record.is_root {
                let reason = "it is the root puddle of its pool; remove the pool instead";
                return Err(refused(uuid, reason));
            }
            let mut changes = vec![Change::RemovePuddle(uuid)];
            if open.contents.log_spaces.contains_key(&uuid) {
                changes.insert(0, Change::RemoveLogSpace(uuid));
            }
            let removed = self.commit_removal(open, &changes, &[uuid]);
            open.free_addresses(&[(uuid, record)]);
            removed
        })
    }

    fn register_log_space(&self, puddle: Uuid) -> Result<()> {
        self.with_open(|open| {
            let record = self.own_puddle(open, puddle)?;
            if record.kind != PuddleKind::LogSpace {
                return Err(refused(puddle, "it is not a log space puddle"));
            }
            match open.contents.log_space_of(self.client) {
                Some(space) if space == puddle => Ok(()),
                Some(_) => Err(refused(puddle, "this client has another log space already")),
                None => self.commit_addition(open, &[Change::PutLogSpace(puddle, self.client)]),
            }
        })
    }

    fn register_type(&self, id: u64, text: &str) -> Result<()> {
        self.with_open(|open| {
            if open.contents.types.get(&id).is_some_and(|known| known == text) {
                return Ok(());
            }
            let reached = descriptors::check_type(id, text)?;
            let mut changes = Vec::new();
            for (id, text) in reached {
                match open.contents.types.get(&id) {
                    Some(known) if *known == text => {}
                    Some(known) => {
                        return Err(Error::TypeRefused {
                            id,
                            reason: format!("the id belongs to {known:?}, and to {text:?} as well; rename one of the types"),
                        });
                    }
                    None => changes.push(Change::PutType(id, text)),
                }
            }
            self.commit_addition(open, &changes)
        })
    }

    fn type_text(&self, id: u64) -> Result<Option<String>> {
        self.with_open(|open| Ok(open.contents.types.get(&id).cloned()))
    }

    fn types(&self) -> Result<Vec<(u64, String)>> {
        self.with_open(|open| {
            let types = open.contents.types.iter();
            Ok(types.map(|(id, text)| (*id, text.clone())).collect())
        })
    }

    fn close(&self) -> Result<()> {
        let mut inner = self.inner();
        let is_poisoned = inner.poisoned.is_some();
        let Some(open) = &mut inner.open else {
            return Ok(());
        };
        if !open.lock.is_ours() {
            return Err(Error::Forked {
                store: self.path.clone(),
            });
        }
        let mut ended = Ok(());
        // Otherwise nothing more is written; the next opener recovers.
        if !is_poisoned {
            ended = self.end_client(open);
            open.registry.close(&open.contents);
        }
        // Gives the lock up.
        inner.open = None;
        ended
    }
}

impl Embedded {
    fn has_open(&self, open: &Open, pool: Uuid) -> bool {
        open.contents.grants.contains(&(self.client, pool))
    }

    /// The record of a puddle that this client may remove: its own, or one of a pool that it has open.
    fn own_puddle(&self, open: &Open, uuid: Uuid) -> Result<PuddleRecord> {
        let record = open.contents.puddle(&self.path, uuid)?;
        if record.owner != self.client && !self.has_open(open, record.owner) {
            let reason = "it belongs neither to this client nor to a pool that it has open";
            return Err(refused(uuid, reason));
        }
        Ok(*record)
    }

    /// The change that records this client, if it is not yet recorded.
    fn enter(&self, open: &Open) -> Vec<Change> {
        match open.contents.clients.contains(&self.client) {
            true => Vec::new(),
            false => vec![Change::PutClient(self.client)],
        }
    }

    /// Makes a puddle: address, file, registration. `more` adds changes of the same commit.
    fn add_puddle(
        &self,
        open: &mut Open,
        owner: Uuid,
        kind: PuddleKind,
        size: u64,
        is_root: bool,
        more: impl FnOnce(&PuddleHeader) -> Vec<Change>,
    ) -> Result<PuddleGrant> {
        if size == 0 || !size.is_multiple_of(UNIT) || size > self.identity.size {
            return Err(Error::PuddleSize {
                size,
                unit: UNIT,
                max: self.identity.size,
            });
        }
        names::ensure_descriptors(&self.path, 1)?;
        let uuid = names::random_uuid()?;
        let cursor = open.space.cursor();
        let Some(address) = open.space.place(size) else {
            return Err(Error::AddressesExhausted {
                store: self.path.clone(),
                size,
                space: self.identity.size,
            });
        };
        let header = PuddleHeader {
            kind,
            uuid,
            owner,
            address,
            size,
            is_root,
        };
        let record = files::record_of(&header);
        let made = files::create(&self.path, &header).and_then(|file| {
            // ORDER: the directory was synced for the new name; so the names that were unlinked before are gone
            // durably, too.
            open.gone.append(&mut open.unlinked);
            let mut changes = self.enter(open);
            changes.extend(more(&header));
            changes.push(Change::PutPuddle(uuid, record));
            changes.push(Change::Cursor(open.space.cursor()));
            match self.commit_addition(open, &changes) {
                Ok(()) => Ok(file),
                Err(error) => {
                    // Where the outcome is unknown, the registry may name the file.
                    if !open.registry.is_poisoned() {
                        files::remove(&self.path, uuid)?;
                    }
                    Err(error)
                }
            }
        });
        match made {
            Ok(file) => Ok(grant(uuid, &record, file)),
            Err(error) => {
                open.space.take_back(address, cursor);
                Err(error)
            }
        }
    }

    /// Ends this client: its logs go, its grants end, the store is clean.
    fn end_client(&self, open: &mut Open) -> Result<()> {
        if !open.contents.clients.contains(&self.client) {
            return Ok(());
        }
        let (changes, puddles) = open.contents.ending_of(self.client);
        self.commit_removal(open, &changes, &puddles)
    }
}

fn grant(uuid: Uuid, record: &PuddleRecord, file: durum_persist::file::MediaFile) -> PuddleGrant {
    PuddleGrant {
        uuid,
        address: record.address,
        size: record.size,
        kind: record.kind,
        is_root: record.is_root,
        file,
    }
}

fn refused(puddle: Uuid, reason: &'static str) -> Error {
    Error::PuddleRefused {
        uuid: puddle.to_string(),
        reason,
    }
}

fn not_open(pool: Uuid) -> Error {
    Error::PoolNotOpen {
        pool: pool.to_string(),
    }
}
