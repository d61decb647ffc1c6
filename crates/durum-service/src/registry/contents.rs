//! What the registry says, in memory, and the changes that one commit makes to it.
//!
//! The service works on this copy: it is read once, when the store is opened, and each change goes to the
//! file first and to the copy after the commit. The bytes are told in `docs/format/registry.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use durum_format::Uuid;
use durum_format::puddle::PuddleKind;
use durum_format::registry::State;
pub(crate) use durum_format::registry::{
    AddressRange, Change, Damage, Import, Kept, Origin, PoolRecord, PuddleRecord, QuarantinedLog,
    Rights,
};
use durum_format::store::StoreHeader;
use durum_format::types::Meanings;

use crate::error::{Error, Result};
use crate::files;
use crate::model::{PoolSummary, PuddleSummary, QuarantineNote};

/// What a puddle's record says, for a list.
pub(crate) fn summary(uuid: Uuid, record: &PuddleRecord) -> PuddleSummary {
    PuddleSummary {
        uuid,
        owner: record.owner,
        address: record.address,
        size: record.size,
        kind: record.kind,
        is_root: record.is_root,
    }
}

/// What a user has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Bytes of the puddles of its pools.
    pub(crate) bytes: u64,
    /// Bytes of its clients' logs and log spaces.
    pub(crate) log_bytes: u64,
    /// Puddles of both.
    pub(crate) puddles: u64,
}

/// What is said of a puddle once it is rewritten.
pub(crate) fn rewritten(record: &PuddleRecord) -> PuddleRecord {
    PuddleRecord {
        is_stale: false,
        origin: None,
        ..*record
    }
}

/// What is said of an imported puddle once its contents were looked at.
pub(crate) fn looked_at(record: &PuddleRecord) -> PuddleRecord {
    let origin = record.origin.map(|origin| Origin {
        sum: None,
        ..origin
    });
    PuddleRecord { origin, ..*record }
}

/// Where a puddle is found among those of its owner.
fn place_of(uuid: Uuid, record: &PuddleRecord) -> (Uuid, u64, Uuid) {
    (record.owner, record.address, uuid)
}

/// The user of a pool or of a client; `None` where nobody is named.
fn user_of(state: &State, owner: Uuid) -> Option<u32> {
    match state.pools.get(&owner) {
        Some(pool) => pool.rights.map(|rights| rights.uid),
        None => state.users.get(&owner).copied(),
    }
}

/// Everything the registry says, and where to find it. It changes by commits only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Contents {
    state: State,
    /// Pools by name.
    names: BTreeMap<String, Uuid>,
    /// Puddles by owner and address, and what the registry says of them: who opens a pool of ten thousand waits for no
    /// search for each.
    owned: BTreeMap<(Uuid, u64, Uuid), PuddleRecord>,
    /// Users, and what is theirs: pools and clients. It may have some that were theirs.
    of_users: BTreeSet<(Option<u32>, Uuid)>,
}

impl Deref for Contents {
    type Target = State;

    fn deref(&self) -> &State {
        &self.state
    }
}

impl Contents {
    /// What the registry of a new store says.
    pub(crate) fn new(identity: StoreHeader) -> Contents {
        Contents::of(State::new(identity))
    }

    pub(crate) fn of(state: State) -> Contents {
        let names = state.pools.iter();
        let owned = state.puddles.iter();
        Contents {
            names: names
                .map(|(uuid, pool)| (pool.name.clone(), *uuid))
                .collect(),
            owned: owned
                .map(|(uuid, record)| (place_of(*uuid, record), *record))
                .collect(),
            of_users: state
                .pools
                .keys()
                .chain(state.users.keys())
                .map(|owner| (user_of(&state, *owner), *owner))
                .collect(),
            state,
        }
    }

    /// What concerns the recovery of a client: itself, its logs, and the pools that it may write with their puddles. It
    /// takes as long as these are many, whatever the store holds.
    pub(crate) fn concerning(&self, client: Uuid) -> Contents {
        let mut part = State::new(self.store.clone());
        part.clients.extend(self.clients.get(&client));
        let kept = self.kept.get_key_value(&client).into_iter();
        part.kept
            .extend(kept.map(|(client, kept)| (*client, kept.clone())));
        for pool in self.granted_pools(client) {
            part.grants.insert((client, pool));
            part.puddles.extend(self.puddles_of(pool));
            let record = self.pools.get(&pool);
            part.pools
                .extend(record.map(|record| (pool, record.clone())));
        }
        for (uuid, record) in self.puddles_of(client) {
            part.puddles.insert(uuid, record);
            let space = self.log_spaces.get_key_value(&uuid);
            part.log_spaces.extend(space);
        }
        let quarantine = self.quarantine.iter();
        let own = quarantine.filter(|(_, log)| log.client == client);
        part.quarantine
            .extend(own.map(|(puddle, log)| (*puddle, log.clone())));
        Contents::of(part)
    }

    /// What concerns those who only read: pools and their puddles, types, and quarantined logs; no client. Puddles are
    /// rewritten before anybody gets them, so that nobody needs to know of moves.
    pub(crate) fn for_readers(&self) -> Contents {
        let kept = |uuid: &Uuid, record: &PuddleRecord| {
            self.pools.contains_key(&record.owner) || self.is_quarantined_file(*uuid)
        };
        let puddles = self
            .puddles
            .iter()
            .filter(|(uuid, record)| kept(uuid, record));
        Contents::of(State {
            sequence: self.sequence,
            cursor: self.cursor,
            pools: self.pools.clone(),
            puddles: puddles
                .map(|(uuid, record)| (*uuid, rewritten(record)))
                .collect(),
            types: self.types.clone(),
            quarantine: self.quarantine.clone(),
            marks: self.marks.clone(),
            ..State::new(self.store.clone())
        })
    }

    /// The same, with what recovery keeps of clients that are gone: themselves, and their logs.
    pub(crate) fn for_readers_of_logs(&self, at_work: &BTreeSet<Uuid>) -> Contents {
        let mut all = self.for_readers().into_state();
        let gone = |client: &Uuid| !at_work.contains(client);
        for client in self.clients.iter().copied().filter(gone) {
            let part = self.concerning(client).into_state();
            all.clients.extend(part.clients);
            all.grants.extend(part.grants);
            let puddles = part.puddles.iter();
            all.puddles
                .extend(puddles.map(|(uuid, record)| (*uuid, rewritten(record))));
            all.log_spaces.extend(part.log_spaces);
        }
        let kept = self.kept.iter().filter(|(client, _)| gone(client));
        all.kept = kept.map(|(client, kept)| (*client, kept.clone())).collect();
        Contents::of(all)
    }

    /// The same, which says of each pool whose it is.
    pub(crate) fn with_rights(self, directory: &Rights) -> Contents {
        let mut state = self.into_state();
        for pool in state.pools.values_mut() {
            pool.rights.get_or_insert(*directory);
        }
        Contents::of(state)
    }

    /// The part of what readers may know that concerns some pools; of types those that their programs have changed. Of
    /// the others nobody knows whose they are.
    pub(crate) fn of_pools(self, is_one: impl Fn(Uuid) -> bool) -> Contents {
        let mut part = self.into_state();
        part.pools.retain(|uuid, _| is_one(*uuid));
        part.marks.retain(|(pool, _)| is_one(*pool));
        let State {
            marks, quarantine, ..
        } = &mut part;
        quarantine.retain(|_, log| marks.iter().any(|(_, client)| *client == log.client));
        let kept: BTreeSet<Uuid> = quarantine
            .iter()
            .flat_map(|(first, log)| log.continuations.iter().chain([first]))
            .copied()
            .collect();
        let pools = &part.pools;
        part.puddles
            .retain(|uuid, record| pools.contains_key(&record.owner) || kept.contains(uuid));
        let meanings = pools.values().flat_map(|pool| pool.meanings.iter());
        let ids: BTreeSet<u64> = meanings.flat_map(|(old, new)| [old, new]).collect();
        part.types.retain(|id, _| ids.contains(id));
        Contents::of(part)
    }

    /// Pools and their puddles, and types; of all pools, or of the one of this name.
    ///
    /// # Errors
    /// `PoolMissing`.
    pub(crate) fn only(&self, store: &Path, name: Option<&str>) -> Result<Contents> {
        let mut part = self.for_readers().into_state();
        if let Some(name) = name {
            let (pool, _) = self
                .pool_named(name)
                .ok_or_else(|| Error::no_pool(store, name))?;
            part.pools.retain(|uuid, _| *uuid == pool);
        }
        part.quarantine.clear();
        part.marks.clear();
        part.puddles
            .retain(|_, record| part.pools.contains_key(&record.owner));
        Ok(Contents::of(part))
    }

    pub(crate) fn into_state(self) -> State {
        self.state
    }

    /// Applies the changes of one commit.
    pub(crate) fn commit(&mut self, changes: &[Change]) {
        let mut ended = Vec::new();
        let mut changed = Vec::new();
        for change in changes {
            match change {
                Change::PutPool(uuid, record) => {
                    self.of_users.remove(&(user_of(&self.state, *uuid), *uuid));
                    self.of_users
                        .insert((record.rights.map(|rights| rights.uid), *uuid));
                    self.names.insert(record.name.clone(), *uuid);
                }
                Change::PutUser(client, uid) => {
                    self.of_users.insert((Some(*uid), *client));
                }
                Change::RemoveClient(uuid) => {
                    ended.extend(self.users.get(uuid).map(|uid| (Some(*uid), *uuid)));
                }
                Change::RemovePool(uuid) => {
                    self.of_users.remove(&(user_of(&self.state, *uuid), *uuid));
                    if let Some(record) = self.state.pools.get(uuid) {
                        self.names.remove(&record.name);
                    }
                }
                Change::PutPuddle(uuid, _) | Change::RemovePuddle(uuid) => {
                    changed.push(*uuid);
                    if let Some(record) = self.state.puddles.get(uuid) {
                        self.owned.remove(&place_of(*uuid, record));
                    }
                }
                _ => {}
            }
        }
        self.state.commit(changes);
        // One commit may say several things of a puddle: what it says last holds.
        for uuid in changed {
            if let Some(record) = self.state.puddles.get(&uuid) {
                self.owned.insert(place_of(uuid, record), *record);
            }
        }
        for of_user in ended {
            if !self.users.contains_key(&of_user.1) {
                self.of_users.remove(&of_user);
            }
        }
    }

    /// Counts as many commits as another one.
    pub(crate) fn count_as(&mut self, other: &Contents) {
        self.state.sequence = other.sequence;
    }

    /// The record of a puddle.
    ///
    /// # Errors
    /// `PuddleUnknown`.
    pub(crate) fn puddle(&self, store: &Path, uuid: Uuid) -> Result<&PuddleRecord> {
        let unknown = || Error::PuddleUnknown {
            store: store.to_owned(),
            uuid: uuid.to_string(),
        };
        self.puddles.get(&uuid).ok_or_else(unknown)
    }

    /// Refuses to read the objects of a store whose pointers are being rewritten.
    ///
    /// # Errors
    /// `StoreMoving`.
    pub(crate) fn ensure_rewritten(&self, store: &Path) -> Result<()> {
        if self.moves.is_empty() && self.imports.is_empty() {
            return Ok(());
        }
        let stale = self.puddles.values().filter(|record| record.is_stale);
        Err(Error::StoreMoving {
            store: store.to_owned(),
            puddles: stale.count() as u64,
        })
    }

    /// What the ids of a pool's objects mean.
    pub(crate) fn meanings_of(&self, pool: Uuid) -> &Meanings {
        static NONE: Meanings = Meanings::NONE;
        self.pools.get(&pool).map_or(&NONE, |pool| &pool.meanings)
    }

    /// The pool of that name.
    pub(crate) fn pool_named(&self, name: &str) -> Option<(Uuid, &PoolRecord)> {
        let uuid = self.names.get(name)?;
        Some((*uuid, self.pools.get(uuid)?))
    }

    /// The name of a pool; empty where there is none.
    pub(crate) fn name_of(&self, pool: Uuid) -> String {
        let record = self.pools.get(&pool);
        record.map(|pool| pool.name.clone()).unwrap_or_default()
    }

    /// Whether a pool was imported, and nobody has opened it yet.
    pub(crate) fn is_as_it_came(&self, pool: Uuid) -> bool {
        let root = self.pools.get(&pool).map(|pool| pool.root_puddle);
        let root = root.and_then(|root| self.puddles.get(&root));
        root.is_some_and(|root| root.origin.is_some())
    }

    /// The puddles of a pool or client, in order of address.
    pub(crate) fn puddles_of(&self, owner: Uuid) -> Vec<(Uuid, PuddleRecord)> {
        let owned = self.owned_by(owner);
        owned.map(|(uuid, record)| (uuid, *record)).collect()
    }

    fn owned_by(&self, owner: Uuid) -> impl Iterator<Item = (Uuid, &PuddleRecord)> {
        let first = (owner, 0, Uuid([0; 16]));
        let owned = self
            .owned
            .range(first..=(owner, u64::MAX, Uuid([0xff; 16])));
        owned.map(|((_, _, uuid), record)| (*uuid, record))
    }

    /// The pools a client may write.
    pub(crate) fn granted_pools(&self, client: Uuid) -> impl Iterator<Item = Uuid> + '_ {
        self.grants
            .range((client, Uuid([0; 16]))..=(client, Uuid([0xff; 16])))
            .map(|(_, pool)| *pool)
    }

    /// Whose a pool is. `directory` has those of pools of which nothing is said.
    pub(crate) fn rights_of(&self, pool: Uuid, directory: &Rights) -> Rights {
        let record = self.pools.get(&pool);
        record.and_then(|pool| pool.rights).unwrap_or(*directory)
    }

    /// What is a user's: puddles of its pools, and of its clients. It takes as long as these are many.
    pub(crate) fn usage_of(&self, uid: u32, directory: &Rights) -> Usage {
        let nobody = (directory.uid == uid).then_some(None);
        let mut usage = Usage::default();
        for user in std::iter::once(Some(uid)).chain(nobody) {
            let first = (user, Uuid([0; 16]));
            let theirs = self.of_users.range(first..=(user, Uuid([0xff; 16])));
            let still = theirs.filter(|(user, owner)| user_of(&self.state, *owner) == *user);
            for (_, owner) in still {
                for (_, record) in self.owned_by(*owner) {
                    usage.puddles += 1;
                    match record.kind.holds_objects() {
                        true => usage.bytes += record.size,
                        false => usage.log_bytes += record.size,
                    }
                }
            }
        }
        usage
    }

    /// All pools, in order of name.
    pub(crate) fn pool_summaries(&self, directory: &Rights) -> Vec<PoolSummary> {
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
                    rights: record.rights.unwrap_or(*directory),
                    quarantine: self.quarantine_of(*uuid),
                }
            })
            .collect();
        pools.sort_by(|left, right| left.name.cmp(&right.name));
        pools
    }

    /// The clients because of whose logs a pool must not be opened.
    pub(crate) fn marks_of(&self, pool: Uuid) -> impl Iterator<Item = Uuid> + '_ {
        self.marks
            .range((pool, Uuid([0; 16]))..=(pool, Uuid([0xff; 16])))
            .map(|(_, client)| *client)
    }

    /// Why a pool must not be opened.
    pub(crate) fn quarantine_of(&self, pool: Uuid) -> Option<QuarantineNote> {
        let record = self.pools.get(&pool)?;
        if let Some(damage) = &record.damage {
            return Some(QuarantineNote {
                log: PathBuf::from(files::relative_path(damage.puddle, false)),
                reason: damage.reason.clone(),
            });
        }
        let client = self.marks_of(pool).next()?;
        let mut logs = self.quarantine.iter();
        let (puddle, log) = logs.find(|(_, log)| log.client == client)?;
        Some(QuarantineNote {
            log: PathBuf::from(files::relative_path(*puddle, true)),
            reason: log.reason.clone(),
        })
    }

    /// The changes that make a pool openable again. Where the last mark of a client goes, the registry forgets its
    /// logs, whose puddles are returned; their files stay in `quarantine/`, as plain files.
    pub(crate) fn unmarking_of(&self, pool: Uuid) -> (Vec<Change>, Vec<(Uuid, PuddleRecord)>) {
        let mut changes = Vec::new();
        let mut freed = Vec::new();
        for client in self.marks_of(pool) {
            changes.push(Change::RemoveMark(pool, client));
            let mut marks = self.marks.iter();
            if marks.any(|(other, of)| *other != pool && *of == client) {
                continue; // It is not the last one.
            }
            if self.kept.contains_key(&client) && !self.clients.contains(&client) {
                changes.push(Change::RemoveKept(client));
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

    /// The change that makes a pool openable again that was imported and is damaged, if it is one.
    pub(crate) fn undamaged(&self, pool: Uuid) -> Option<Change> {
        let record = self.pools.get(&pool)?;
        record.damage.as_ref()?;
        let record = PoolRecord {
            damage: None,
            ..record.clone()
        };
        Some(Change::PutPool(pool, record))
    }

    /// The changes that accept such a pool as it is: nothing sums up its contents any more.
    pub(crate) fn accepting_of(&self, pool: Uuid) -> Vec<Change> {
        let Some(undamaged) = self.undamaged(pool) else {
            return Vec::new();
        };
        let puddles = self.puddles_of(pool).into_iter();
        let looked_at = puddles.filter_map(|(uuid, record)| {
            record.origin?;
            Some(Change::PutPuddle(uuid, looked_at(&record)))
        });
        looked_at.chain([undamaged]).collect()
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
            .filter(|uuid| !self.is_quarantined_file(*uuid))
            .collect();
        changes.extend(puddles.iter().map(|uuid| Change::RemovePuddle(*uuid)));
        let pools = self.granted_pools(client);
        changes.extend(pools.map(|pool| Change::RemoveGrant(client, pool)));
        if self.kept.contains_key(&client) {
            changes.push(Change::RemoveKept(client));
        }
        changes.push(Change::RemoveClient(client));
        (changes, puddles)
    }

    /// The pools of which a part is kept: nobody but recovery may write them, nor free what only they lead to.
    pub(crate) fn kept_pools(&self) -> BTreeSet<Uuid> {
        let kept = self.grants.iter();
        kept.filter(|(client, _)| self.kept.contains_key(client))
            .map(|(_, pool)| *pool)
            .collect()
    }

    /// The puddles that tell of a client's sections.
    pub(crate) fn section_puddles_of(
        &self,
        client: Uuid,
    ) -> impl Iterator<Item = (Uuid, PuddleRecord)> + '_ {
        let owned = self.owned_by(client);
        let sections = owned.filter(|(_, record)| record.kind == PuddleKind::Sections);
        sections.map(|(uuid, record)| (uuid, *record))
    }

    /// The puddle with the code that completes a client's sections.
    pub(crate) fn code_of(&self, client: Uuid) -> Option<(Uuid, PuddleRecord)> {
        let mut owned = self.owned_by(client);
        let code = owned.find(|(_, record)| record.kind == PuddleKind::Code);
        code.map(|(uuid, record)| (uuid, *record))
    }

    /// The pools in which a client may have been in a section: who completes it follows pointers that nobody else
    /// knows.
    pub(crate) fn pools_of_sections(&self) -> BTreeSet<Uuid> {
        let grants = self.grants.iter();
        let of_sections =
            grants.filter(|(client, _)| self.section_puddles_of(*client).next().is_some());
        of_sections.map(|(_, pool)| *pool).collect()
    }
}
