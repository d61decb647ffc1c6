//! What an export becomes in this store: names, addresses, and what the registry is to say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use durum_format::Uuid;
use durum_format::export::{ExportedPuddle, Manifest};
use durum_format::types::Meanings;

use super::holders::Wish;
use super::puddles::Registered;
use super::{Embedded, Open};
use crate::descriptors;
use crate::error::{Error, Result};
use crate::import::{ImportOptions, names_of, refused};
use crate::model::EngineKind;
use crate::names;
use crate::registry::contents::{
    AddressRange, Change, Import, Origin, PoolRecord, PuddleRecord, looked_at,
};
use crate::rewrite::Moves;

/// What is to come.
#[derive(Debug)]
pub(super) struct Plan {
    /// Where the export is, for errors.
    place: PathBuf,
    import: Uuid,
    untyped_hold_no_pointers: bool,
    /// That which was asked for first.
    pools: Vec<Arriving>,
    /// The pool that the puddles join instead.
    joins: Option<Joins>,
    /// In order of address: the name in the export, what the manifest says, and the name here.
    exported: Vec<(Uuid, ExportedPuddle, Uuid)>,
    /// Types and those that they reach.
    types: Vec<(u64, String)>,
    /// Where the search for addresses began.
    cursor: u64,
    moves: Moves,
    /// Once they have addresses, by their names in the export.
    puddles: BTreeMap<Uuid, Registered>,
}

/// A pool on its way.
#[derive(Debug)]
struct Arriving {
    /// Its name in the export.
    from: Uuid,
    uuid: Uuid,
    record: PoolRecord,
}

/// A pool that puddles join.
#[derive(Debug)]
struct Joins {
    name: String,
    engine: EngineKind,
    /// What ids mean in the pool that they come from.
    meanings: Meanings,
    /// Known once the puddles have addresses.
    pool: Option<Uuid>,
}

impl Plan {
    /// Draws names.
    ///
    /// # Errors
    /// `PoolName`, `TypeRefused`, `ImportRefused`.
    pub(super) fn new(
        client: &Embedded,
        place: &Path,
        manifest: &Manifest,
        options: &ImportOptions,
    ) -> Result<Plan> {
        let joins = match (&options.into, manifest.pools.len()) {
            (None, _) => None,
            (Some(name), 1) if options.name.is_none() => {
                manifest.pools.values().next().map(|pool| Joins {
                    name: name.clone(),
                    engine: pool.engine,
                    meanings: pool.meanings.clone(),
                    pool: None,
                })
            }
            (Some(_), _) => {
                let reason = "one pool alone joins another one, and has no name of its own then";
                return Err(refused(place, reason.to_owned()));
            }
        };
        let mut exported = Vec::new();
        for (from, puddle) in &manifest.puddles {
            exported.push((*from, *puddle, names::random_uuid()?));
        }
        let mut pools = Vec::new();
        for (from, name) in names_of(manifest, options) {
            names::check_pool_name(&name)?;
            let Some(pool) = manifest.pools.get(&from) else {
                continue;
            };
            let mut puddles = exported.iter();
            let root = puddles.find(|(from, _, _)| *from == pool.root_puddle);
            let record = PoolRecord {
                name,
                engine: pool.engine,
                root_puddle: root.map(|(_, _, uuid)| *uuid).unwrap_or_default(),
                rights: Some(client.own_rights()),
                damage: None,
                meanings: pool.meanings.clone(),
            };
            let uuid = names::random_uuid()?;
            pools.push(Arriving { from, uuid, record });
        }
        exported.sort_unstable_by_key(|(_, puddle, _)| puddle.address);
        let mut types = Vec::new();
        for (id, text) in &manifest.types {
            types.extend(descriptors::check_type(*id, text)?);
        }
        types.sort_unstable();
        types.dedup();
        Ok(Plan {
            place: place.to_owned(),
            import: names::random_uuid()?,
            untyped_hold_no_pointers: options.untyped_hold_no_pointers,
            pools,
            joins,
            exported,
            types,
            cursor: 0,
            moves: Moves::new(),
            puddles: BTreeMap::new(),
        })
    }

    /// Refuses what the store cannot have: asked before files are made, and behind that. The pool that puddles join.
    pub(super) fn ensure_admitted(&self, client: &Embedded, open: &Open) -> Result<Option<Uuid>> {
        let store = &client.host.path;
        let (mut rights, mut joined) = (client.own_rights(), None);
        if let Some(joins) = &self.joins {
            let pool = self.joined(joins, client, open)?;
            if joins.pool.is_some_and(|before| before != pool) {
                return Err(Error::no_pool(store, &joins.name));
            }
            rights = client.rights_of(open, pool);
            joined = Some(pool);
        }
        for arriving in &self.pools {
            // The new name of the one may be that of another one that comes with it.
            let name = &arriving.record.name;
            let alike = self.pools.iter().filter(|pool| pool.record.name == *name);
            if alike.count() > 1 || open.contents.pool_named(name).is_some() {
                return Err(Error::PoolExists {
                    store: store.clone(),
                    name: name.clone(),
                });
            }
        }
        for (id, text) in &self.types {
            if let Some(known) = open.contents.types.get(id).filter(|known| *known != text) {
                return Err(Error::TypeRefused {
                    id: *id,
                    reason: client.same_id(known, text),
                });
            }
        }
        let sizes = self.exported.iter().map(|(_, puddle, _)| puddle.size);
        let bytes = sizes.fold(0, u64::saturating_add);
        let count = self.exported.len() as u64;
        client.ensure_room_for(open, Some(&rights), count, bytes)?;
        Ok(joined)
    }

    /// The pool that puddles are to join.
    fn joined(&self, joins: &Joins, client: &Embedded, open: &Open) -> Result<Uuid> {
        let Joins { name, engine, .. } = joins;
        let pool = client.host.pool_named(&open.contents, name)?;
        client.ensure_may(open, pool, Wish::Write)?;
        client.ensure_usable(open, pool, Wish::Write)?;
        let known = open.contents.meanings_of(pool);
        let mut meanings = joins.meanings.iter();
        if meanings.any(|(old, new)| known.of(old) != known.of(new)) {
            let reason = format!(
                "its program has changed its types, and that of pool \"{name}\" has not; open the pool with the newer version before"
            );
            return Err(refused(&self.place, reason));
        }
        let own = open.contents.pools.get(&pool).map(|pool| pool.engine);
        match own.filter(|own| own != engine) {
            None => Ok(pool),
            Some(own) => {
                let reason = format!(
                    "pool \"{name}\" is of the engine {}, and this one of {}; only those of one engine can be joined",
                    own.name(),
                    engine.name()
                );
                Err(refused(&self.place, reason))
            }
        }
    }

    /// Takes addresses: those that the puddles had, or others, and then such that none of them had.
    ///
    /// # Errors
    /// As for [`Plan::ensure_admitted`]; `AddressesExhausted`. Nothing is taken then.
    pub(super) fn place(&mut self, client: &Embedded, open: &mut Open) -> Result<()> {
        let joined = self.ensure_admitted(client, open)?;
        if let Some(joins) = &mut self.joins {
            joins.pool = joined;
        }
        let elsewhere = open.in_use_of(client.id).elsewhere.clone();
        let mut space = open.space.clone();
        let kept = self.exported.iter().map(|(_, puddle, _)| {
            !elsewhere.meets(puddle.address, puddle.size)
                && space.insert(puddle.address, puddle.size).is_ok()
        });
        let kept: Vec<bool> = kept.collect();
        let before = self.exported.iter().map(|(_, puddle, _)| AddressRange {
            address: puddle.address,
            size: puddle.size,
        });
        let elsewhere = elsewhere.with(before);
        let (mut moves, mut puddles) = (Moves::new(), BTreeMap::new());
        for ((from, puddle, uuid), is_kept) in self.exported.iter().zip(kept) {
            let placed = match is_kept {
                true => Some(puddle.address),
                false => space.place(puddle.size, &elsewhere),
            };
            let address = placed.ok_or_else(|| Error::AddressesExhausted {
                store: client.host.path.clone(),
                size: puddle.size,
                space: client.host.identity.size,
            })?;
            let size = puddle.size;
            moves.insert(puddle.address, AddressRange { address, size });
            let pool = self.pools.iter().find(|pool| pool.from == puddle.owner);
            let record = PuddleRecord {
                owner: pool.map(|pool| pool.uuid).or(joined).unwrap_or_default(),
                address,
                size,
                kind: puddle.kind,
                is_root: puddle.is_root && joined.is_none(),
                is_stale: true,
                origin: Some(Origin {
                    import: self.import,
                    uuid: *from,
                    owner: puddle.owner,
                    address: puddle.address,
                    is_root: puddle.is_root,
                    sum: Some(puddle.sum),
                }),
            };
            puddles.insert(*from, (*uuid, record));
        }
        self.cursor = open.space.cursor();
        (self.moves, self.puddles) = (moves, puddles);
        open.space = space;
        let coming = self.puddles.values();
        open.coming
            .extend(coming.map(|(uuid, record)| (*uuid, *record)));
        Ok(())
    }

    /// Gives the addresses back.
    pub(super) fn take_back(&self, open: &mut Open) {
        for (uuid, record) in self.puddles.values() {
            open.coming.remove(uuid);
            open.space
                .take_back(record.address, record.size, self.cursor);
        }
    }

    /// The puddles, by their names in the export.
    pub(super) fn puddles(&self) -> &BTreeMap<Uuid, Registered> {
        &self.puddles
    }

    /// Puddles that are not where they were.
    pub(super) fn moved(&self) -> u64 {
        let moves = self.moves.iter();
        moves.filter(|(from, to)| **from != to.address).count() as u64
    }

    /// The names of the pools, or of that which puddles join.
    pub(super) fn names(&self) -> Vec<String> {
        let names = self.pools.iter().map(|pool| &pool.record.name);
        let joined = self.joins.iter().map(|joins| &joins.name);
        names.chain(joined).cloned().collect()
    }

    /// The puddle that was the root puddle of what has joined a pool.
    pub(super) fn former_root(&self) -> Option<&Registered> {
        self.joins.as_ref()?;
        let mut puddles = self.puddles.values();
        puddles.find(|(_, record)| record.origin.is_some_and(|origin| origin.is_root))
    }

    /// What the registry is to say before there are files: nothing but that these go at the next open, unless it says
    /// otherwise by then.
    pub(super) fn listing(&self) -> Vec<Change> {
        let puddles = self.puddles.values();
        puddles.map(|(uuid, _)| Change::Coming(*uuid)).collect()
    }

    /// What it is to say in the end. `is_verified` tells of which puddles contents were compared with their sums.
    pub(super) fn changes(&self, open: &Open, is_verified: impl Fn(Uuid) -> bool) -> Vec<Change> {
        let import = Import {
            moves: self.moves.clone(),
            untyped_hold_no_pointers: self.untyped_hold_no_pointers,
        };
        let mut changes = vec![Change::PutImport(self.import, import)];
        let types = self.types.iter();
        let new = types.filter(|(id, _)| !open.contents.types.contains_key(id));
        changes.extend(new.map(|(id, text)| Change::PutType(*id, text.clone())));
        let pools = self.pools.iter();
        changes.extend(pools.map(|pool| Change::PutPool(pool.uuid, pool.record.clone())));
        for (from, (uuid, record)) in &self.puddles {
            let record = match is_verified(*from) {
                true => looked_at(record),
                false => *record,
            };
            changes.push(Change::PutPuddle(*uuid, record));
        }
        changes.push(Change::Cursor(open.space.cursor()));
        changes
    }
}
