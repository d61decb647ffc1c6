//! A client of a store that this process hosts, and the host's answers to it.

mod own;

use std::path::Path;
use std::sync::Arc;

use durum_format::Uuid;
use durum_format::puddle::PuddleKind;
use durum_format::types::Meanings;
use durum_persist::file::MediaFile;

use super::commit::Commit;
use super::holders::Wish;
use super::puddles::{Removal, grant, place};
use super::settle::{giving_up_of, is_twin};
use super::{CreateOptions, Host, Open, OpenOptions};
use crate::check::{Garbage, GarbageOptions};
use crate::descriptors;
use crate::error::{Error, Result};
use crate::files;
use crate::import::{Export, ImportOptions, ImportReport};
use crate::model::{
    AddressRange, EngineKind, InterruptedClient, PoolGrant, PoolSpec, PoolSummary, PuddleGrant,
    PuddleOwner, RecoveryReport, RefusedPool, StoreInfo, TakenOver, UsedElsewhere,
};
use crate::names;
use crate::presence::LostFile;
use crate::registry::contents::{Change, PoolRecord};
use crate::rights::Caller;
use crate::service::{PUDDLES_AT_ONCE, Service};
use crate::strays::StrayFile;

/// So many files are opened before anybody asks whether the process may have so many.
const FEW_FILES: usize = 16;

/// A client of a store that this process hosts.
///
/// Dropping it without [`Service::close`] is like the end of a client's process: its logs stay, and are replayed by
/// [`Host::recover_client`], or by the next opener of the store.
#[derive(Debug)]
pub struct Embedded {
    pub(super) host: Arc<Host>,
    pub(super) id: Uuid,
    /// The user of a client in another process.
    pub(super) caller: Option<Caller>,
    /// The store is this client's alone: it closes with it.
    is_alone: bool,
}

impl Embedded {
    /// Opens a store for this process alone. After an unclean end its logs are replayed first.
    ///
    /// # Errors
    /// As for [`Host::open`].
    pub fn open(path: &Path, options: OpenOptions) -> Result<Embedded> {
        Self::alone(Host::open(path, options)?)
    }

    /// Makes a store, and opens it for this process alone.
    ///
    /// # Errors
    /// As for [`Host::create`].
    pub fn create(path: &Path, options: &CreateOptions) -> Result<Embedded> {
        Self::alone(Host::create(path, options)?)
    }

    fn alone(host: Arc<Host>) -> Result<Embedded> {
        let mut client = host.client()?;
        client.is_alone = true;
        Ok(client)
    }

    pub(super) fn of(host: Arc<Host>, id: Uuid, caller: Option<Caller>) -> Embedded {
        Embedded {
            host,
            id,
            caller,
            is_alone: false,
        }
    }

    /// Another handle of the same client, with which nothing ends.
    pub(super) fn another(&self) -> Embedded {
        Embedded {
            host: self.host.clone(),
            id: self.id,
            caller: self.caller.clone(),
            is_alone: false,
        }
    }

    /// The client's name in the store.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// The store, for what concerns no client more than another.
    pub fn host(&self) -> &Arc<Host> {
        &self.host
    }

    /// As [`Host::recovery_report`].
    pub fn recovery_report(&self) -> &RecoveryReport {
        self.host.recovery_report()
    }
}

impl Service for Embedded {
    fn info(&self) -> StoreInfo {
        StoreInfo {
            path: self.host.path.clone(),
            uuid: self.host.identity.uuid,
            client: self.id,
            base: self.host.identity.base,
            space_size: self.host.identity.size,
            next_address: match &self.host.state().open {
                Some(open) => open.space.next_free(),
                None => self.host.identity.start,
            },
            domain: self.host.domain,
            format_version: durum_format::store::VERSION,
            served: None,
        }
    }

    fn recovery(&self) -> Result<RecoveryReport> {
        self.told_report(self.recovery_report().clone())
    }

    fn pools(&self) -> Result<Vec<PoolSummary>> {
        self.host.request(|open| {
            let mut pools = open.contents.pool_summaries(&self.host.directory);
            pools.retain(|pool| self.may_see(open, pool.uuid));
            Ok((pools, Commit::nothing()))
        })
    }

    fn create_pool(&self, name: &str, spec: &PoolSpec) -> Result<PoolGrant> {
        self.create_pool_as(names::random_uuid()?, names::random_uuid()?, name, spec)
    }

    fn open_pool(&self, name: &str) -> Result<PoolGrant> {
        loop {
            let openable = |open: &mut Open| self.openable(open, name, Wish::Write);
            let (away, seen) = self.told(self.host.leave(openable))?;
            let (pool, record, registered) = &seen;
            if registered.1.is_stale {
                drop(away);
                self.refresh(&[registered.0])?;
                continue;
            }
            let open = || self.open_file(name, registered, true);
            let file = names::with_descriptors(&self.host.path, 1, open)?;
            let root = grant(registered.0, &registered.1, file);
            if record.engine == EngineKind::Twin {
                self.make_whole(&away, *pool, &root, name)?;
            }
            // The grant is durable before it is handed out: recovery writes only where a grant says so.
            let others = away.request(|open| {
                if self.openable(open, name, Wish::Write)? != seen {
                    return Ok((None, Commit::nothing()));
                }
                let mut changes = self.enter(open);
                changes.push(Change::PutGrant(self.id, *pool));
                let mut others = open.contents.puddles_of(*pool);
                others.retain(|(_, record)| !record.is_root);
                let others: Vec<_> = others.iter().map(place).collect();
                Ok((Some(others), Commit::addition(changes)))
            })?;
            if let Some(others) = others {
                // If it was open for that before.
                self.end_reading(*pool)?;
                return Ok(PoolGrant {
                    uuid: *pool,
                    name: record.name.clone(),
                    engine: record.engine,
                    root,
                    others,
                });
            }
        }
    }

    fn open_puddles(&self, pool: Uuid, puddles: &[Uuid]) -> Result<Vec<PuddleGrant>> {
        if puddles.len() > PUDDLES_AT_ONCE {
            return Err(refused(puddles[0], "too many are asked for at once"));
        }
        // Waits for nobody's commit, as `reopen_puddle`. Nobody else may remove a puddle of a pool that is open here.
        let (name, writable, mut wanted) = self.asked_for(pool, puddles)?;
        if wanted.iter().any(|(_, record)| record.is_stale) {
            self.refresh(puddles)?;
            (_, _, wanted) = self.asked_for(pool, puddles)?;
        }
        self.open_files(&name, &wanted, writable)
    }

    fn pool_at(&self, address: u64) -> Result<Option<String>> {
        self.name_at(address)
    }

    fn close_pool(&self, pool: Uuid) -> Result<()> {
        let has_read = self.end_reading(pool)?;
        self.host.request(|open| {
            if has_read && !self.has_open(open, pool) {
                return Ok(((), Commit::nothing()));
            }
            self.ensure_open(open, pool)?;
            let changes = vec![Change::RemoveGrant(self.id, pool)];
            Ok(((), Commit::removal(changes)))
        })
    }

    fn remove_pool(&self, name: &str) -> Result<()> {
        let removed = self.host.remove_puddles(|open| {
            let pool = self.host.pool_named(&open.contents, name)?;
            self.ensure_owns(open, pool, "removed")?;
            open.ensure_free(self.id, pool, Wish::Remove)?;
            // What is kept for a pool goes with `give_up` only; of a Twin pool nothing is kept that its own files do
            // not hold.
            let store = &self.host.path;
            if !is_twin(&open.contents, pool) {
                open.refused.ensure_not(store, &open.contents, pool)?;
            }
            open.interrupted.ensure_not(store, &open.contents, pool)?;
            let puddles = open.contents.puddles_of(pool);
            let mut changes = giving_up_of(open, pool);
            changes.extend(puddles.iter().map(|(uuid, _)| Change::RemovePuddle(*uuid)));
            changes.push(Change::RemovePool(pool));
            let (unmark, freed) = open.contents.unmarking_of(pool);
            changes.extend(unmark);
            let removal = Removal {
                changes,
                puddles,
                freed,
                adds: false,
            };
            Ok((open.refused.contains(pool), removal))
        });
        match self.told(removed)? {
            true => self.host.settle_again(),
            false => Ok(()),
        }
    }

    fn create_puddle(
        &self,
        owner: PuddleOwner,
        kind: PuddleKind,
        size: u64,
    ) -> Result<PuddleGrant> {
        self.create_puddle_as(names::random_uuid()?, owner, kind, size)
    }

    fn reopen_puddle(&self, uuid: Uuid) -> Result<MediaFile> {
        // Waits for nobody's commit: transactions may be waiting for the caller.
        let mut state = self.host.state();
        let record = self.own_puddle(state.open(&self.host.path)?, uuid)?;
        drop(state);
        files::reopen(&self.host.path, uuid, &record)
    }

    fn remove_puddle(&self, uuid: Uuid) -> Result<()> {
        self.host.remove_puddles(|open| {
            let record = self.own_puddle(open, uuid)?;
            if record.is_root {
                let reason = "it is the root puddle of its pool; remove the pool instead";
                return Err(refused(uuid, reason));
            }
            let mut changes = vec![Change::RemovePuddle(uuid)];
            if open.contents.log_spaces.contains_key(&uuid) {
                changes.insert(0, Change::RemoveLogSpace(uuid));
            }
            let removal = Removal {
                changes,
                puddles: vec![(uuid, record)],
                freed: Vec::new(),
                adds: false,
            };
            Ok(((), removal))
        })
    }

    fn register_log_space(&self, puddle: Uuid) -> Result<()> {
        self.host.request(|open| {
            let record = self.own_puddle(open, puddle)?;
            if record.kind != PuddleKind::LogSpace {
                return Err(refused(puddle, "it is not a log space puddle"));
            }
            let changes = match open.contents.log_space_of(self.id) {
                Some(space) if space == puddle => Vec::new(),
                Some(_) => {
                    return Err(refused(puddle, "this client has another log space already"));
                }
                None => vec![Change::PutLogSpace(puddle, self.id)],
            };
            Ok(((), Commit::addition(changes)))
        })
    }

    fn register_type(&self, id: u64, text: &str) -> Result<()> {
        let mut reached = None;
        self.host.request(|open| {
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
                                reason: self.same_id(known, text),
                            });
                        }
                        None => changes.push(Change::PutType(*id, text.clone())),
                    }
                }
            }
            Ok(((), Commit::addition(changes)))
        })
    }

    fn meanings(&self, pool: Uuid) -> Result<Meanings> {
        self.host.request(|open| {
            self.may_write(open, pool).ok_or_else(|| not_open(pool))?;
            Ok((open.contents.meanings_of(pool).clone(), Commit::nothing()))
        })
    }

    fn change_types(&self, pool: Uuid, old: u64, new: u64) -> Result<Meanings> {
        self.host.request(|open| {
            self.ensure_open(open, pool)?;
            let changed = descriptors::changed(&open.contents, pool, old, new)?;
            let record = open.contents.pools.get(&pool);
            let record = record.filter(|record| record.meanings != changed);
            let put = record.map(|record| {
                let meanings = changed.clone();
                let record = PoolRecord {
                    meanings,
                    ..record.clone()
                };
                Change::PutPool(pool, record)
            });
            Ok((changed, Commit::addition(put.into_iter().collect())))
        })
    }

    fn type_text(&self, id: u64) -> Result<Option<String>> {
        self.host
            .request(|open| Ok((open.contents.types.get(&id).cloned(), Commit::nothing())))
    }

    fn types(&self) -> Result<Vec<(u64, String)>> {
        self.ensure_privileged("the types of all pools", "listed")?;
        self.host.request(|open| {
            let types = open.contents.types.iter();
            let types = types.map(|(id, text)| (*id, text.clone())).collect();
            Ok((types, Commit::nothing()))
        })
    }

    fn refused_pools(&self) -> Result<Vec<RefusedPool>> {
        self.told_refused(self.host.refused_pools()?)
    }

    fn give_up(&self, name: &str) -> Result<RecoveryReport> {
        let may = |open: &Open, pool| self.ensure_owns(open, pool, "given up");
        let report = self.told(self.host.give_up(name, may))?;
        self.told_report(report)
    }

    fn abandon_sections(&self, name: &str) -> Result<Vec<String>> {
        self.abandon(name)
    }

    fn interrupted(&self) -> Result<Vec<InterruptedClient>> {
        self.list_interrupted()
    }

    fn take_over(&self, client: Uuid) -> Result<TakenOver> {
        self.take_over_now(client)
    }

    fn sections_done(&self, client: Uuid) -> Result<()> {
        self.end_sections(client)
    }

    fn accept_quarantined(&self, name: &str) -> Result<()> {
        let may = |open: &Open, pool| {
            self.ensure_owns(open, pool, "accepted")?;
            open.ensure_free(self.id, pool, Wish::Settle)
        };
        self.told(self.host.accept_quarantined(name, may))
    }

    fn retry_quarantined(&self, name: &str) -> Result<RecoveryReport> {
        let may = |open: &Open, pool| {
            self.ensure_owns(open, pool, "recovered")?;
            self.ensure_unseen(open, pool)
        };
        let report = self.told(self.host.retry_quarantined(name, may))?;
        self.told_report(report)
    }

    fn find_garbage(&self, options: &GarbageOptions) -> Result<Garbage> {
        self.ensure_privileged("the store", "searched for garbage")?;
        self.search(options)
    }

    fn read_pool(&self, name: &str) -> Result<PoolGrant> {
        self.read(name, Wish::Read)
    }

    fn look_at_pool(&self, name: &str) -> Result<PoolGrant> {
        self.read(name, Wish::Look)
    }

    fn registry(&self) -> Result<Vec<u8>> {
        self.readable_registry()
    }

    fn lost_files(&self) -> Result<Vec<LostFile>> {
        self.lost()
    }

    fn stray_files(&self) -> Result<Vec<StrayFile>> {
        self.strays()
    }

    fn logs(&self) -> Result<Vec<u8>> {
        self.registry_with_logs()
    }

    fn open_logs(&self, logs: &[Uuid]) -> Result<Vec<MediaFile>> {
        self.open_kept(logs)
    }

    fn set_mode(&self, name: &str, mode: u16) -> Result<()> {
        self.change_mode(name, mode)
    }

    fn set_owner(&self, name: &str, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        self.change_owner(name, uid, gid)
    }

    fn revoke_pool(&self, name: &str) -> Result<()> {
        self.revoke(name)
    }

    fn occupied(&self) -> Result<Vec<AddressRange>> {
        self.host
            .request(|open| Ok((open.occupied(), Commit::nothing())))
    }

    fn avoid(&self, used: &UsedElsewhere) -> Result<()> {
        self.note_in_use(used)
    }

    fn make_way(&self) -> Result<()> {
        self.make_way_now()
    }

    fn finish_moving(&self) -> Result<u64> {
        self.refresh_all()
    }

    fn import(&self, export: &Export, options: &ImportOptions) -> Result<ImportReport> {
        self.take_in(export, options)
    }

    fn close(&self) -> Result<()> {
        let ended = match self.host.has_at_work(self.id) {
            Ok(true) => self.end(),
            // It has been closed, or nothing more is written and the next opener recovers.
            Ok(false) | Err(Error::Closed { .. } | Error::Poisoned { .. }) => Ok(()),
            Err(error) => Err(error),
        };
        match self.is_alone {
            true => self.host.close().and(ended),
            false => ended,
        }
    }
}

pub(super) fn refused(puddle: Uuid, reason: &'static str) -> Error {
    Error::PuddleRefused {
        uuid: puddle.to_string(),
        reason,
    }
}

pub(super) fn not_open(pool: Uuid) -> Error {
    Error::PoolNotOpen {
        pool: pool.to_string(),
    }
}
