//! Pools get new puddles in the place of those that they have, all of them whole or not at all.
//!
//! ```text
//! hold     nobody opens a pool
//! list     addresses | the registry lists the new files as such that go at the next open
//! (make    each new puddle, synced: whoever asks for this)
//! swap     the directory | one commit: the pools have the new puddles, and the old ones are removed | their files go
//! ```
//!
//! Nothing that is written before the swap is anybody's, and the old puddles are only read: a crash leaves the old
//! pools, or the new ones.

use std::collections::BTreeMap;

use durum_format::Uuid;
use durum_format::puddle::PuddleHeader;
use durum_format::registry::Rights;
use durum_format::types::Meanings;
use durum_persist::Site;

use super::commit::Commit;
use super::holders::Wish;
use super::puddles::{Registered, Removal, grant};
use super::{Embedded, Host};
use crate::error::{Error, Result};
use crate::files::{self, PUDDLE_DIRECTORY};
use crate::inspect::ReadOnlyStore;
use crate::model::EngineKind;
use crate::names;
use crate::registry::contents::{Change, PoolRecord};

const NAMES: Site = Site("names of migrated puddles");

impl Embedded {
    /// The store as it is, for whoever reads all pools while nobody opens one ([`Embedded::hold_all`]).
    ///
    /// # Errors
    /// Those of files of pools.
    pub(crate) fn read_held(&self) -> Result<ReadOnlyStore> {
        self.refresh_all()?;
        self.make_twins_whole()?;
        let host = &self.host;
        let contents = host.request(|open| Ok((open.contents.for_readers(), Commit::nothing())))?;
        ReadOnlyStore::over(host.path.clone(), host.identity.clone(), contents, true)
    }

    /// Has nobody open a pool of the store from here on, until the answer is dropped.
    ///
    /// # Errors
    /// `PoolMissing`; `PoolOpen`, `PoolBusy` where somebody has one of these pools open, or another one for writing;
    /// `PoolQuarantined`, `PoolRefused`, `PoolInterrupted` for these.
    pub(crate) fn hold_all(&self, names: &[&str]) -> Result<Holding<'_>> {
        let held = self.host.undisturbed(|open| {
            let mut renewed = Vec::new();
            for name in names {
                let pool = self.host.pool_named(&open.contents, name)?;
                self.ensure_owns(open, pool, "migrated")?;
                renewed.push(pool);
            }
            let pools: Vec<Uuid> = open.contents.pools.keys().copied().collect();
            for other in &pools {
                if renewed.contains(other) {
                    self.ensure_usable(open, *other, Wish::Renew)?;
                } else {
                    // One in quarantine is told with all else that stands in the way.
                    open.ensure_free(self.id, *other, Wish::Hold)?;
                }
            }
            open.renewed.extend(pools.iter().copied());
            Ok(pools)
        });
        let pools = self.told(held)?;
        let host = &self.host;
        Ok(Holding { host, pools })
    }

    fn make_twins_whole(&self) -> Result<()> {
        let (away, twins) = self.host.leave(|open| {
            let pools = open.contents.pools.iter();
            let twins = pools.filter(|(_, record)| record.engine == EngineKind::Twin);
            let root = |record: &PoolRecord| {
                let root = open.contents.puddles.get(&record.root_puddle);
                root.map(|root| (record.root_puddle, *root))
            };
            let twins = twins
                .filter_map(|(uuid, record)| Some((*uuid, record.name.clone(), root(record)?)));
            Ok(twins.collect::<Vec<_>>())
        })?;
        for (pool, name, registered) in twins {
            let file = self.open_file(&name, &registered, true)?;
            let root = grant(registered.0, &registered.1, file);
            self.make_whole(&away, pool, &root, &name)?;
        }
        Ok(())
    }

    /// Takes addresses for new puddles of pools, of these sizes. The registry lists their files as such that go at the
    /// next open.
    ///
    /// # Errors
    /// `AddressesExhausted`, `StorageFull`.
    pub(crate) fn list_coming(&self, pools: &[(Uuid, EngineKind, Vec<u64>)]) -> Result<Coming<'_>> {
        let mut wanted = Vec::new();
        for (pool, engine, sizes) in pools {
            for (at, size) in sizes.iter().enumerate() {
                wanted.push(PuddleHeader {
                    kind: engine.puddle_kind(),
                    uuid: names::random_uuid()?,
                    owner: *pool,
                    address: 0,
                    size: *size,
                    is_root: at == 0,
                });
            }
        }
        let host = &self.host;
        let (away, coming) = host.leave(|open| {
            // Pools of one user share its quota.
            let mut owners: BTreeMap<u32, (Rights, u64, u64)> = BTreeMap::new();
            for (pool, _, sizes) in pools {
                let rights = self.rights_of(open, *pool);
                let (_, puddles, bytes) = owners.entry(rights.uid).or_insert((rights, 0, 0));
                *puddles += sizes.len() as u64;
                *bytes += sizes.iter().sum::<u64>();
            }
            for (rights, puddles, bytes) in owners.values() {
                self.ensure_room_for(open, Some(rights), *puddles, *bytes)?;
            }
            let cursor = open.space.cursor();
            let elsewhere = open.in_use_of(self.id).elsewhere.clone();
            let mut space = open.space.clone();
            let mut puddles = Vec::new();
            for header in &mut wanted {
                let placed = space.place(header.size, &elsewhere);
                header.address = placed.ok_or_else(|| Error::AddressesExhausted {
                    store: host.path.clone(),
                    size: header.size,
                    space: host.identity.size,
                })?;
                puddles.push((header.uuid, files::record_of(header)));
            }
            open.space = space;
            open.coming.extend(puddles.iter().copied());
            Ok(Coming {
                host,
                puddles,
                cursor,
                made: Vec::new(),
                is_finished: false,
            })
        })?;
        // ORDER: the registry lists the new files before there are any; else a crash leaves used files that the
        // registry does not name, and nobody may remove these.
        away.request(|_| {
            let listing = coming.puddles.iter();
            let listing = listing.map(|(uuid, _)| Change::Coming(*uuid)).collect();
            Ok(((), Commit::addition(listing)))
        })?;
        Ok(coming)
    }

    /// The pools have the new puddles, whose files are durable, and no others; `types` are those of their objects.
    /// Durable on return.
    ///
    /// # Errors
    /// `TypeRefused`, `StorageFull`, `Io`.
    pub(crate) fn swap(&self, mut coming: Coming<'_>, types: &BTreeMap<u64, String>) -> Result<()> {
        // ORDER: the names are durable before the registry names the puddles; else a crash leaves registered puddles
        // without files.
        files::sync_dir(&self.host.path.join(PUDDLE_DIRECTORY), NAMES)?;
        let Some((first, _)) = coming.puddles.first().copied() else {
            return Ok(());
        };
        let puddles = coming.puddles.clone();
        let swapped = self.host.remove_puddles(|open| {
            let mut changes = Vec::new();
            for (id, text) in types {
                match open.contents.types.get(id) {
                    None => changes.push(Change::PutType(*id, text.clone())),
                    Some(known) if known == text => {}
                    Some(known) => {
                        return Err(Error::TypeRefused {
                            id: *id,
                            reason: self.same_id(known, text),
                        });
                    }
                }
            }
            let put = puddles.iter();
            changes.extend(put.map(|(uuid, record)| Change::PutPuddle(*uuid, *record)));
            let mut removed: Vec<Registered> = Vec::new();
            for (root_puddle, root) in puddles.iter().filter(|(_, puddle)| puddle.is_root) {
                let pool = root.owner;
                let Some(record) = open.contents.pools.get(&pool) else {
                    return Err(Error::no_pool(&self.host.path, &pool.to_string()));
                };
                removed.extend(open.contents.puddles_of(pool));
                // No object has an id any more that means another one.
                let record = PoolRecord {
                    root_puddle: *root_puddle,
                    meanings: Meanings::NONE,
                    ..record.clone()
                };
                changes.push(Change::PutPool(pool, record));
            }
            let gone = removed.iter();
            changes.extend(gone.map(|(uuid, _)| Change::RemovePuddle(*uuid)));
            changes.push(Change::Cursor(open.space.cursor()));
            let removal = Removal {
                changes,
                puddles: removed,
                freed: Vec::new(),
                adds: true,
            };
            Ok(((), removal))
        });
        // A file of an old puddle that cannot be removed is the next opener's affair: the pools are the new ones.
        let state = self.host.state();
        let is_made = match (state.poisoned.is_none(), state.open.as_ref()) {
            (true, Some(open)) => open.contents.puddles.contains_key(&first),
            _ => swapped.is_ok(),
        };
        drop(state);
        coming.is_finished = is_made;
        if is_made { Ok(()) } else { swapped }
    }
}

/// Nobody opens these pools, until this is dropped.
pub(crate) struct Holding<'e> {
    host: &'e Host,
    pools: Vec<Uuid>,
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        if let Some(open) = &mut self.host.state().open {
            self.pools
                .iter()
                .for_each(|pool| _ = open.renewed.remove(pool));
        }
    }
}

/// Puddles that are on their way. Dropped before they are the pools', nothing of them is left.
pub(crate) struct Coming<'e> {
    host: &'e Host,
    puddles: Vec<Registered>,
    /// Where the search for addresses began.
    cursor: u64,
    /// Those whose files are there.
    made: Vec<Uuid>,
    is_finished: bool,
}

impl Coming<'_> {
    /// What they are, pool by pool, the root puddle of each first.
    pub(crate) fn headers(&self) -> Vec<PuddleHeader> {
        let puddles = self.puddles.iter();
        let headers = puddles.map(|(uuid, record)| files::header_of(*uuid, record));
        headers.collect()
    }

    /// The file of one is there.
    pub(crate) fn is_made(&mut self, puddle: Uuid) {
        self.made.push(puddle);
    }
}

impl Drop for Coming<'_> {
    fn drop(&mut self) {
        if !self.is_finished && self.host.state().poisoned.is_some() {
            return;
        }
        let mut gone = Vec::new();
        if !self.is_finished {
            for uuid in &self.made {
                // The next opener removes what cannot be removed now.
                if files::remove(&self.host.path, *uuid).is_ok() {
                    gone.push(*uuid);
                }
            }
        }
        let Some(open) = &mut self.host.state().open else {
            return;
        };
        for (uuid, record) in &self.puddles {
            open.coming.remove(uuid);
            if !self.is_finished {
                open.space
                    .take_back(record.address, record.size, self.cursor);
            }
        }
        open.unlinked.extend(gone);
    }
}
