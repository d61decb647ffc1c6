//! What a registry says, and the changes that a commit makes to it.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::rights::Rights;
use super::{VERSION_MEANINGS, VERSION_MIN, VERSION_MOVES, VERSION_OTHER_CASES, VERSION_RIGHTS};
use crate::home::Verdict;
use crate::puddle::PuddleKind;
use crate::store::StoreHeader;
use crate::text::hex;
use crate::types::{Meanings, text_has_history, text_has_other_case};
use crate::{EngineKind, Uuid};

/// A pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PoolRecord {
    /// Its name: 1 to 255 bytes without control characters and `/`.
    pub name: String,
    /// The engine that runs its transactions.
    pub engine: EngineKind,
    /// The puddle with its root object.
    pub root_puddle: Uuid,
    /// Whose it is. Where nothing is said, it is the store directory's owner's and group's, and private.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rights: Option<Rights>,
    /// What is wrong with it, so that nobody opens it: a puddle of it is not what was exported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
    /// What the ids of types mean that its program has changed since. Objects keep the ids that they got.
    #[serde(default, skip_serializing_if = "Meanings::is_empty")]
    pub meanings: Meanings,
}

/// Why a pool that was imported must not be opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Damage {
    /// The puddle with which something is wrong.
    pub puddle: Uuid,
    /// What that is.
    pub reason: String,
}

/// A puddle: what its header says too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PuddleRecord {
    /// The pool or client that it belongs to.
    pub owner: Uuid,
    /// Where it is mapped.
    #[serde(with = "hex")]
    pub address: u64,
    /// Its bytes.
    #[serde(with = "hex")]
    pub size: u64,
    /// What it holds.
    pub kind: PuddleKind,
    /// Whether it is the root puddle of its pool.
    pub is_root: bool,
    /// Its header may name an address at which it was before, and pointers in it may lead to where other puddles were
    /// ([`State::moves`]).
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_stale: bool,
    /// What it was before it was imported, until that is over. Such a one is stale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// What a puddle was in the store that it was exported from. Its header says so until it is rewritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Origin {
    /// The import that it came by: where its pointers lead now ([`State::imports`]).
    pub import: Uuid,
    /// Its name.
    pub uuid: Uuid,
    /// Its pool.
    pub owner: Uuid,
    /// Where it was mapped.
    #[serde(with = "hex")]
    pub address: u64,
    /// Whether it was the root puddle of its pool. It is none of the pool that it has joined since.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_root: bool,
    /// What its contents have to [sum up](crate::export::sum) to. Absent once they were looked at: from then on
    /// they may be partly rewritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sum: Option<u32>,
}

/// Pools that were imported together, until all their puddles are rewritten.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Import {
    /// Where puddles were, in the store that they were exported from or since, and where they are now.
    #[serde(with = "by_hex")]
    pub moves: BTreeMap<u64, AddressRange>,
    /// Who imported them says that objects of unknown type hold no pointers.
    #[serde(default, skip_serializing_if = "is_false")]
    pub untyped_hold_no_pointers: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_false(flag: &bool) -> bool {
    !flag
}

/// A log that failed validation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuarantinedLog {
    /// The log's id, 0 where it could not be read.
    #[serde(with = "hex")]
    pub log_id: u64,
    /// Puddles that are kept with it.
    pub continuations: Vec<Uuid>,
    /// The client that wrote it.
    pub client: Uuid,
    /// What is wrong with it.
    pub reason: String,
}

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressRange {
    /// Where it begins.
    #[serde(with = "hex")]
    pub address: u64,
    /// Its bytes.
    #[serde(with = "hex")]
    pub size: u64,
}

/// What recovery has to know of a client of which it recovered a part: its logs are read again when the rest is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kept {
    /// Where the client could write when it ended, in order of address. What it may write now are the pools whose part
    /// is kept.
    pub granted: Vec<AddressRange>,
    /// What home said then.
    pub verdicts: Vec<Verdict>,
}

/// Everything a registry says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// What `durum.store` says, too.
    pub store: StoreHeader,
    /// How many commits were made: tells an older registry from a newer one.
    pub sequence: u64,
    /// Where the search for the next puddle's address begins.
    #[serde(with = "hex")]
    pub cursor: u64,
    /// The pools.
    pub pools: BTreeMap<Uuid, PoolRecord>,
    /// The puddles, of all kinds.
    pub puddles: BTreeMap<Uuid, PuddleRecord>,
    /// Puddles that were removed and whose files may still be there.
    pub removing: BTreeSet<Uuid>,
    /// Puddles of imports under way: their files may be there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub coming: BTreeSet<Uuid>,
    /// Clients that did not end in order (and the current one).
    pub clients: BTreeSet<Uuid>,
    /// Clients and their users. One stays for as long as logs of the client are in quarantine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub users: BTreeMap<Uuid, u32>,
    /// Client and pool: the client may read and write the pool. Of a client that did not end in order: its part on the
    /// pool is not recovered yet, or sections of it are to go on there.
    pub grants: BTreeSet<(Uuid, Uuid)>,
    /// Clients of which a part was recovered, and the rest is kept in their logs or in quarantine.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<Uuid, Kept>,
    /// Puddle and client: the puddle is a log space of the client.
    pub log_spaces: BTreeMap<Uuid, Uuid>,
    /// Type id and canonical text.
    #[serde(with = "by_hex")]
    pub types: BTreeMap<u64, String>,
    /// Logs that failed validation, by their first puddle. Their files lie in `quarantine/`, or are on their way there.
    pub quarantine: BTreeMap<Uuid, QuarantinedLog>,
    /// Pool and client: the pool must not be opened, because of quarantined logs of the client.
    pub marks: BTreeSet<(Uuid, Uuid)>,
    /// Where puddles were, and where they are now: what pointers in stale puddles may still say. Empty when no puddle
    /// is stale.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", with = "by_hex")]
    pub moves: BTreeMap<u64, AddressRange>,
    /// Imports of which puddles are as they came.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub imports: BTreeMap<Uuid, Import>,
}

/// One step of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// Where the search for the next address begins.
    Cursor(#[serde(with = "hex")] u64),
    /// A pool is there, or something else is said of it.
    PutPool(Uuid, PoolRecord),
    /// A pool is gone.
    RemovePool(Uuid),
    /// A puddle is there.
    PutPuddle(Uuid, PuddleRecord),
    /// A puddle is gone; its file is being removed.
    RemovePuddle(Uuid),
    /// The file of a removed puddle, or of one that was coming, is gone, durably.
    FileGone(Uuid),
    /// The file of a puddle may be there soon. Until the puddle itself is, the next opener removes it.
    Coming(Uuid),
    /// A client is there.
    PutClient(Uuid),
    /// A client has ended.
    RemoveClient(Uuid),
    /// Client and uid: whose the client is.
    PutUser(Uuid, u32),
    /// Client and pool: a grant.
    PutGrant(Uuid, Uuid),
    /// Client and pool.
    RemoveGrant(Uuid, Uuid),
    /// A part of a client was recovered.
    PutKept(Uuid, Kept),
    /// Nothing more is kept for a client.
    RemoveKept(Uuid),
    /// Puddle and client: a log space.
    PutLogSpace(Uuid, Uuid),
    /// A puddle is a log space no more.
    RemoveLogSpace(Uuid),
    /// A type is known: id and text.
    PutType(#[serde(with = "hex")] u64, String),
    /// A type is known no more.
    RemoveType(#[serde(with = "hex")] u64),
    /// A log is in quarantine, by its first puddle.
    PutQuarantine(Uuid, QuarantinedLog),
    /// A log is forgotten; its files stay in `quarantine/`.
    RemoveQuarantine(Uuid),
    /// Pool and client: the pool must not be opened.
    PutMark(Uuid, Uuid),
    /// Pool and client.
    RemoveMark(Uuid, Uuid),
    /// What was at an address is somewhere else now.
    PutMove(#[serde(with = "hex")] u64, AddressRange),
    /// Pools were imported, or something else is said of that.
    PutImport(Uuid, Import),
}

impl State {
    /// What the registry of a new store says.
    pub fn new(store: StoreHeader) -> State {
        State {
            cursor: store.start,
            store,
            sequence: 0,
            pools: BTreeMap::new(),
            puddles: BTreeMap::new(),
            removing: BTreeSet::new(),
            coming: BTreeSet::new(),
            clients: BTreeSet::new(),
            users: BTreeMap::new(),
            grants: BTreeSet::new(),
            kept: BTreeMap::new(),
            log_spaces: BTreeMap::new(),
            types: BTreeMap::new(),
            quarantine: BTreeMap::new(),
            marks: BTreeSet::new(),
            moves: BTreeMap::new(),
            imports: BTreeMap::new(),
        }
    }

    /// Applies the changes of one commit.
    pub fn commit(&mut self, changes: &[Change]) {
        let mut gone = BTreeSet::new();
        let mut imports = BTreeSet::new();
        for change in changes {
            match change {
                Change::PutPuddle(puddle, _) | Change::RemovePuddle(puddle) => {
                    let before = self.puddles.get(puddle).and_then(|puddle| puddle.origin);
                    imports.extend(before.map(|origin| origin.import));
                }
                Change::RemoveClient(client) => _ = gone.insert(*client),
                Change::RemoveQuarantine(puddle) => {
                    gone.extend(self.quarantine.get(puddle).map(|log| log.client));
                }
                _ => {}
            }
            self.apply(change);
        }
        for client in gone {
            if !self.has_or_keeps(client) {
                self.users.remove(&client);
            }
        }
        if !self.moves.is_empty() && !self.has_moved() {
            self.moves.clear();
        }
        for import in imports {
            if !self.has_imported(import) {
                self.imports.remove(&import);
            }
        }
        self.sequence = self.sequence.wrapping_add(1);
    }

    fn apply(&mut self, change: &Change) {
        // Nobody needs to know what was there before.
        match change {
            Change::Cursor(cursor) => self.cursor = *cursor,
            Change::PutPool(uuid, record) => _ = self.pools.insert(*uuid, record.clone()),
            Change::RemovePool(uuid) => _ = self.pools.remove(uuid),
            Change::PutPuddle(uuid, record) => {
                self.coming.remove(uuid);
                self.puddles.insert(*uuid, *record);
            }
            Change::RemovePuddle(uuid) => {
                if self.puddles.remove(uuid).is_some() {
                    self.removing.insert(*uuid);
                }
            }
            Change::FileGone(uuid) => {
                self.removing.remove(uuid);
                self.coming.remove(uuid);
            }
            Change::Coming(uuid) => _ = self.coming.insert(*uuid),
            Change::PutClient(uuid) => _ = self.clients.insert(*uuid),
            Change::RemoveClient(uuid) => _ = self.clients.remove(uuid),
            Change::PutUser(client, uid) => _ = self.users.insert(*client, *uid),
            Change::PutGrant(client, pool) => _ = self.grants.insert((*client, *pool)),
            Change::RemoveGrant(client, pool) => _ = self.grants.remove(&(*client, *pool)),
            Change::PutKept(client, kept) => _ = self.kept.insert(*client, kept.clone()),
            Change::RemoveKept(client) => _ = self.kept.remove(client),
            Change::PutLogSpace(puddle, client) => _ = self.log_spaces.insert(*puddle, *client),
            Change::RemoveLogSpace(puddle) => _ = self.log_spaces.remove(puddle),
            Change::PutType(id, text) => _ = self.types.insert(*id, text.clone()),
            Change::RemoveType(id) => _ = self.types.remove(id),
            Change::PutQuarantine(puddle, log) => _ = self.quarantine.insert(*puddle, log.clone()),
            Change::RemoveQuarantine(puddle) => _ = self.quarantine.remove(puddle),
            Change::PutMark(pool, client) => _ = self.marks.insert((*pool, *client)),
            Change::RemoveMark(pool, client) => _ = self.marks.remove(&(*pool, *client)),
            Change::PutMove(from, to) => _ = self.moves.insert(*from, *to),
            Change::PutImport(uuid, import) => _ = self.imports.insert(*uuid, import.clone()),
        }
    }

    /// Whether the next opener removes the file of this name.
    pub fn is_going(&self, file: Uuid) -> bool {
        self.removing.contains(&file) || self.coming.contains(&file)
    }

    /// The files that the next opener removes.
    pub fn going(&self) -> impl Iterator<Item = Uuid> {
        self.removing.union(&self.coming).copied()
    }

    /// Whether a client is there, or logs of it are in quarantine.
    pub(super) fn has_or_keeps(&self, client: Uuid) -> bool {
        let mut logs = self.quarantine.values();
        self.clients.contains(&client) || logs.any(|log| log.client == client)
    }

    /// The oldest version whose files can say this.
    pub(super) fn version_needed(&self) -> u32 {
        if self.types.values().any(|text| text_has_other_case(text)) {
            return VERSION_OTHER_CASES;
        }
        let mut pools = self.pools.values();
        let has_rights = !self.users.is_empty() || pools.any(|pool| pool.rights.is_some());
        let mut pools = self.pools.values();
        let has_meanings = pools.any(|pool| !pool.meanings.is_empty());
        if has_meanings || self.types.values().any(|text| text_has_history(text)) {
            return VERSION_MEANINGS;
        }
        let mut pools = self.pools.values();
        let is_importing = !self.imports.is_empty() || !self.coming.is_empty();
        let is_moving = !self.moves.is_empty() || is_importing;
        match (
            is_moving || pools.any(|pool| pool.damage.is_some()),
            has_rights,
        ) {
            (true, _) => VERSION_MOVES,
            (false, true) => VERSION_RIGHTS,
            (false, false) => VERSION_MIN,
        }
    }

    /// Whether pointers in any puddle may lead to where another one of the store was.
    pub(super) fn has_moved(&self) -> bool {
        let mut puddles = self.puddles.values();
        puddles.any(|puddle| puddle.is_stale && puddle.origin.is_none())
    }

    /// Whether any puddle of an import is as it came.
    fn has_imported(&self, import: Uuid) -> bool {
        let mut origins = self.puddles.values().filter_map(|puddle| puddle.origin);
        origins.any(|origin| origin.import == import)
    }

    /// Whether every client has ended in order: no log is left to replay.
    pub fn is_clean(&self) -> bool {
        self.clients.is_empty()
    }

    /// The log space of a client.
    pub fn log_space_of(&self, client: Uuid) -> Option<Uuid> {
        let mut spaces = self.log_spaces.iter();
        let (space, _) = spaces.find(|(_, of)| **of == client)?;
        Some(*space)
    }

    /// Whether a puddle's file lies in `quarantine/`, or is on its way there.
    pub fn is_quarantined_file(&self, puddle: Uuid) -> bool {
        let mut logs = self.quarantine.values();
        self.quarantine.contains_key(&puddle) || logs.any(|log| log.continuations.contains(&puddle))
    }
}

impl Change {
    /// The oldest version in whose files it can stand.
    pub fn version_needed(&self) -> u32 {
        match self {
            Change::PutPool(_, pool) if !pool.meanings.is_empty() => VERSION_MEANINGS,
            Change::PutType(_, text) if text_has_other_case(text) => VERSION_OTHER_CASES,
            Change::PutType(_, text) if text_has_history(text) => VERSION_MEANINGS,
            Change::PutMove(..) | Change::PutImport(..) | Change::Coming(..) => VERSION_MOVES,
            Change::PutPool(_, pool) if pool.damage.is_some() => VERSION_MOVES,
            Change::PutPuddle(_, puddle) if puddle.is_stale => VERSION_MOVES,
            Change::PutUser(..) => VERSION_RIGHTS,
            Change::PutPool(_, pool) if pool.rights.is_some() => VERSION_RIGHTS,
            _ => VERSION_MIN,
        }
    }
}

/// What is found by numbers, which are keys in hex.
pub(crate) mod by_hex {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use crate::text::Hex;

    pub(crate) fn serialize<V: Serialize, S: Serializer>(
        values: &BTreeMap<u64, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_map(values.iter().map(|(number, value)| (Hex(*number), value)))
    }

    pub(crate) fn deserialize<'de, V: Deserialize<'de>, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<u64, V>, D::Error> {
        let values = <BTreeMap<Hex, V>>::deserialize(deserializer)?;
        let values = values.into_iter().map(|(key, value)| (key.0, value));
        Ok(values.collect())
    }
}
