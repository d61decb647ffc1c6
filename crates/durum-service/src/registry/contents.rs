//! What the registry says, in memory, and the changes that one commit makes to it.
//!
//! The service works on this copy: it is read once, when the store is opened, and each change goes to the
//! database first and to the copy after the commit. The bytes are told in `docs/store.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use durum_format::Uuid;
use durum_format::puddle::PuddleKind;

use crate::error::{Error, Result};
use crate::files;
use crate::model::{EngineKind, PoolSummary, PuddleSummary, QuarantineNote};

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PoolRecord {
    pub(crate) name: String,
    pub(crate) engine: EngineKind,
    pub(crate) root_puddle: Uuid,
}

/// A puddle: what its header says too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PuddleRecord {
    pub(crate) owner: Uuid,
    pub(crate) address: u64,
    pub(crate) size: u64,
    pub(crate) kind: PuddleKind,
    pub(crate) is_root: bool,
}

impl PuddleRecord {
    pub(crate) fn summary(&self, uuid: Uuid) -> PuddleSummary {
        PuddleSummary {
            uuid,
            owner: self.owner,
            address: self.address,
            size: self.size,
            kind: self.kind,
            is_root: self.is_root,
        }
    }
}

/// A log that failed validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QuarantinedLog {
    /// The log's id, 0 where it could not be read.
    pub(crate) log_id: u64,
    /// Puddles that are kept with it.
    pub(crate) continuations: Vec<Uuid>,
    /// The client that wrote it.
    pub(crate) client: Uuid,
    /// What is wrong with it.
    pub(crate) reason: String,
}

/// Everything the registry says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// The store, as `durum.store` names it too.
    pub(crate) store: Uuid,
    /// How many commits were made: tells an older catalog from a newer one.
    pub(crate) sequence: u64,
    /// Where the search for the next puddle's address begins.
    pub(crate) cursor: u64,
    pub(crate) pools: BTreeMap<Uuid, PoolRecord>,
    pub(crate) puddles: BTreeMap<Uuid, PuddleRecord>,
    /// Clients that did not end in order (and the current one).
    pub(crate) clients: BTreeSet<Uuid>,
    /// Client and pool: the client may read and write the pool.
    pub(crate) grants: BTreeSet<(Uuid, Uuid)>,
    /// Puddle and client: the puddle is a log space of the client.
    pub(crate) log_spaces: BTreeMap<Uuid, Uuid>,
    /// Type id and canonical text.
    pub(crate) types: BTreeMap<u64, String>,
    /// Logs that failed validation, by their first puddle. Their files lie in `quarantine/`, or are on their way there.
    pub(crate) quarantine: BTreeMap<Uuid, QuarantinedLog>,
    /// Pool and client: the pool must not be opened, because of quarantined logs of the client.
    pub(crate) marks: BTreeSet<(Uuid, Uuid)>,
}

/// One step of a registry commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Cursor(u64),
    PutPool(Uuid, PoolRecord),
    RemovePool(Uuid),
    PutPuddle(Uuid, PuddleRecord),
    RemovePuddle(Uuid),
    PutClient(Uuid),
    RemoveClient(Uuid),
    PutGrant(Uuid, Uuid),
    RemoveGrant(Uuid, Uuid),
    PutLogSpace(Uuid, Uuid),
    RemoveLogSpace(Uuid),
    PutType(u64, String),
    RemoveType(u64),
    PutQuarantine(Uuid, QuarantinedLog),
    RemoveQuarantine(Uuid),
    /// Pool and client.
    PutMark(Uuid, Uuid),
    RemoveMark(Uuid, Uuid),
}

impl Contents {
    /// Applies one step to the copy.
    pub(crate) fn apply(&mut self, change: &Change) {
        match change {
            Change::Cursor(cursor) => self.cursor = *cursor,
            Change::PutPool(uuid, record) => {
                self.pools.insert(*uuid, record.clone());
            }
            Change::RemovePool(uuid) => {
                self.pools.remove(uuid);
            }
            Change::PutPuddle(uuid, record) => {
                self.puddles.insert(*uuid, *record);
            }
            Change::RemovePuddle(uuid) => {
                self.puddles.remove(uuid);
            }
            Change::PutClient(uuid) => {
                self.clients.insert(*uuid);
            }
            Change::RemoveClient(uuid) => {
                self.clients.remove(uuid);
            }
            Change::PutGrant(client, pool) => {
                self.grants.insert((*client, *pool));
            }
            Change::RemoveGrant(client, pool) => {
                self.grants.remove(&(*client, *pool));
            }
            Change::PutLogSpace(puddle, client) => {
                self.log_spaces.insert(*puddle, *client);
            }
            Change::RemoveLogSpace(puddle) => {
                self.log_spaces.remove(puddle);
            }
            Change::PutType(id, text) => {
                self.types.insert(*id, text.clone());
            }
            Change::RemoveType(id) => {
                self.types.remove(id);
            }
            Change::PutQuarantine(puddle, log) => {
                self.quarantine.insert(*puddle, log.clone());
            }
            Change::RemoveQuarantine(puddle) => {
                self.quarantine.remove(puddle);
            }
            Change::PutMark(pool, client) => {
                self.marks.insert((*pool, *client));
            }
            Change::RemoveMark(pool, client) => {
                self.marks.remove(&(*pool, *client));
            }
        }
    }

    /// The pool of that name.
    pub(crate) fn pool_named(&self, name: &str) -> Option<(Uuid, &PoolRecord)> {
        self.pools
            .iter()
            .find(|(_, record)| record.name == name)
            .map(|(uuid, record)| (*uuid, record))
    }

    /// The puddles of a pool or client, in order of address.
    pub(crate) fn puddles_of(&self, owner: Uuid) -> Vec<(Uuid, PuddleRecord)> {
        let mut puddles: Vec<_> = self
            .puddles
            .iter()
            .filter(|(_, record)| record.owner == owner)
            .map(|(uuid, record)| (*uuid, *record))
            .collect();
        puddles.sort_unstable_by_key(|(_, record)| record.address);
        puddles
    }

    /// The pools a client may write.
    pub(crate) fn granted_pools(&self, client: Uuid) -> impl Iterator<Item = Uuid> + '_ {
        self.grants
            .range((client, Uuid([0; 16]))..=(client, Uuid([0xff; 16])))
            .map(|(_, pool)| *pool)
    }

    /// All pools, in order of name.
    pub(crate) fn pool_summaries(&self) -> Vec<PoolSummary> {
        let mut totals: BTreeMap<Uuid, (u64, u64)> = BTreeMap::new();
        for record in self.puddles.values() {
            let (puddles, bytes) = totals.entry(record.owner).or_default();
            *puddles += 1;
            *bytes += record.size;
        }
        let mut pools: Vec<PoolSummary> = self
            .pools
            .iter()
            .map(|(uuid, record)| {
                let (puddles, bytes) = totals.get(uuid).copied().unwrap_or_default();
                PoolSummary {
                    uuid: *uuid,
                    name: record.name.clone(),
                    engine: record.engine,
                    root_puddle: record.root_puddle,
                    puddles,
                    bytes,
                    quarantine: self.quarantine_of(*uuid),
                }
            })
            .collect();
        pools.sort_by(|left, right| left.name.cmp(&right.name));
        pools
    }

    /// The log space of a client.
    pub(crate) fn log_space_of(&self, client: Uuid) -> Option<Uuid> {
        let mut spaces = self.log_spaces.iter();
        spaces
            .find(|(_, of)| **of == client)
            .map(|(space, _)| *space)
    }

    /// The clients because of whose logs a pool must not be opened.
    pub(crate) fn marks_of(&self, pool: Uuid) -> impl Iterator<Item = Uuid> + '_ {
        self.marks
            .range((pool, Uuid([0; 16]))..=(pool, Uuid([0xff; 16])))
            .map(|(_, client)| *client)
    }

    /// Why a pool must not be opened.
    pub(crate) fn quarantine_of(&self, pool: Uuid) -> Option<QuarantineNote> {
        let client = self.marks_of(pool).next()?;
        let (puddle, log) = self
            .quarantine
            .iter()
            .find(|(_, log)| log.client == client)?;
        Some(QuarantineNote {
            log: PathBuf::from(files::relative_path(*puddle, true)),
            reason: log.reason.clone(),
        })
    }

    /// Whether a puddle's file lies in `quarantine/`, or is on its way there.
    pub(crate) fn is_quarantined_file(&self, puddle: Uuid) -> bool {
        self.quarantine.contains_key(&puddle)
            || self
                .quarantine
                .values()
                .any(|log| log.continuations.contains(&puddle))
    }

    /// The changes that make a pool openable again. Where the last mark of a client goes, the registry forgets its logs,
    /// whose puddles are returned; their files stay in `quarantine/`, as plain files.
    pub(crate) fn unmarking_of(&self, pool: Uuid) -> (Vec<Change>, Vec<(Uuid, PuddleRecord)>) {
        let mut changes = Vec::new();
        let mut freed = Vec::new();
        for client in self.marks_of(pool) {
            changes.push(Change::RemoveMark(pool, client));
            let is_last = self
                .marks
                .iter()
                .all(|(other, of)| *other == pool || *of != client);
            if !is_last {
                continue;
            }
            let logs = self.quarantine.iter();
            for (puddle, log) in logs.filter(|(_, log)| log.client == client) {
                changes.push(Change::RemoveQuarantine(*puddle));
                for uuid in log.continuations.iter().chain([puddle]) {
                    changes.push(Change::RemovePuddle(*uuid));
                    freed.extend(self.puddles.get(uuid).map(|record| (*uuid, *record)));
                }
            }
        }
        (changes, freed)
    }

    /// The changes that end a client (its log spaces, logs, grants and itself go), and the puddles that go with it.
    pub(crate) fn ending_of(&self, client: Uuid) -> (Vec<Change>, Vec<Uuid>) {
        let mut changes = Vec::new();
        let spaces = self.log_spaces.iter().filter(|(_, of)| **of == client);
        changes.extend(spaces.map(|(puddle, _)| Change::RemoveLogSpace(*puddle)));
        let puddles: Vec<Uuid> = self
            .puddles_of(client)
            .iter()
            .map(|(uuid, _)| *uuid)
            .collect();
        changes.extend(puddles.iter().map(|uuid| Change::RemovePuddle(*uuid)));
        let pools = self.granted_pools(client);
        changes.extend(pools.map(|pool| Change::RemoveGrant(client, pool)));
        changes.push(Change::RemoveClient(client));
        (changes, puddles)
    }

    /// Whether every client has ended in order: no log is left to replay.
    pub(crate) fn is_clean(&self) -> bool {
        self.clients.is_empty()
    }

    /// Checks that the parts fit together. `file` is named in the error.
    pub(crate) fn validate(&self, file: &Path, base: u64, size: u64) -> Result<()> {
        let refuse = |problem: String| {
            Err(Error::Damaged {
                file: PathBuf::from(file),
                structure: "registry",
                offset: 0,
                problem,
                cure: "restore a copy of the store",
            })
        };
        let mut space = crate::space::Space::new(base, size, base);
        for (uuid, record) in &self.puddles {
            let owned = match record.kind {
                PuddleKind::Data | PuddleKind::Twin => self
                    .pools
                    .get(&record.owner)
                    .is_some_and(|pool| pool.engine.puddle_kind() == record.kind),
                PuddleKind::Log | PuddleKind::LogSpace | PuddleKind::Records => {
                    self.clients.contains(&record.owner) || self.is_quarantined_file(*uuid)
                }
            };
            if !owned {
                return refuse(format!(
                    "puddle {uuid} belongs to {}, which is not registered",
                    record.owner
                ));
            }
            if record.size == 0
                || !record.size.is_multiple_of(durum_format::UNIT)
                || !record.address.is_multiple_of(durum_format::UNIT)
                || space.insert(record.address, record.size).is_err()
            {
                return refuse(format!(
                    "puddle {uuid} at {:#x} with {} bytes overlaps another or leaves the space of {size} bytes at {base:#x}",
                    record.address, record.size
                ));
            }
        }
        let mut names = BTreeSet::new();
        for (uuid, pool) in &self.pools {
            if !names.insert(pool.name.as_str()) {
                return refuse(format!("two pools are named {:?}", pool.name));
            }
            let root = self.puddles.get(&pool.root_puddle);
            if !root.is_some_and(|root| root.is_root && root.owner == *uuid) {
                return refuse(format!(
                    "pool {:?} names the root puddle {}, which is not a root puddle of it",
                    pool.name, pool.root_puddle
                ));
            }
        }
        for (client, pool) in &self.grants {
            if !self.clients.contains(client) || !self.pools.contains_key(pool) {
                return refuse(format!(
                    "a grant of pool {pool} to client {client} names one that is not registered"
                ));
            }
        }
        for (puddle, client) in &self.log_spaces {
            let known = self.puddles.get(puddle);
            let is_one =
                |known: &PuddleRecord| known.kind == PuddleKind::LogSpace && known.owner == *client;
            if !known.is_some_and(is_one) || self.log_space_of(*client) != Some(*puddle) {
                return refuse(format!(
                    "puddle {puddle} is registered as a log space of client {client}, but is not one"
                ));
            }
        }
        for (pool, client) in &self.marks {
            let is_known = self.quarantine.values().any(|log| log.client == *client);
            if !self.pools.contains_key(pool) || !is_known {
                return refuse(format!(
                    "pool {pool} is marked because of logs of client {client}, but one of them is not registered"
                ));
            }
        }
        Ok(())
    }
}
