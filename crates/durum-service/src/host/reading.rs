//! Pools that are open for reading only: by any number of clients, while nobody writes them. The registry knows nothing
//! of it, because recovery never writes for a reader.

use std::path::Path;

use durum_format::Uuid;
use durum_persist::file::MediaFile;

use super::commit::Commit;
use super::holders::Wish;
use super::puddles::{Registered, grant, place};
use super::{Embedded, Host, Open};
use crate::check::{Garbage, GarbageOptions, find_in};
use crate::error::{Error, Result};
use crate::inspect::ReadOnlyStore;
use crate::liveness;
use crate::model::{EngineKind, PoolGrant};
use crate::names;
use crate::picture::InUse;
use crate::presence::{self, LostFile};
use crate::recovery::ensure_nothing_kept;
use crate::registry;
use crate::registry::contents::Contents;

impl Embedded {
    /// As [`Service::read_pool`](crate::Service::read_pool), or
    /// [`Service::look_at_pool`](crate::Service::look_at_pool).
    pub(super) fn read(&self, name: &str, wish: Wish) -> Result<PoolGrant> {
        let openable = |open: &Open| {
            let found = self.openable(open, name, wish)?;
            let is_quarantined = open.contents.quarantine_of(found.0).is_some();
            Ok((found, is_quarantined))
        };
        loop {
            let (away, seen) = self.told(self.host.leave(|open| openable(open)))?;
            let ((pool, record, registered), is_quarantined) = &seen;
            if registered.1.is_stale {
                drop(away);
                self.refresh(&[registered.0])?;
                continue;
            }
            let open = || self.open_file(name, registered, false);
            let file = names::with_descriptors(&self.host.path, 1, open)?;
            let root = grant(registered.0, &registered.1, file);
            // One in quarantine is seen as it is.
            if record.engine == EngineKind::Twin && !is_quarantined {
                self.make_whole(&away, *pool, &root, name)?;
            }
            let mut state = self.host.state();
            let open = state.open(&self.host.path)?;
            if openable(open)? != seen {
                continue;
            }
            let others = others(open, *pool);
            open.readers.insert((self.id, *pool));
            drop(state);
            // Before it is handed out: a service that comes after this one has to know.
            if let Err(error) = liveness::note_reading(&self.host.path, self.id, &[*pool]) {
                away.note(|open| _ = open.readers.remove(&(self.id, *pool)));
                return Err(error);
            }
            // What was seen may not be durable yet.
            away.request(|_| Ok(((), Commit::nothing())))?;
            return Ok(PoolGrant {
                uuid: *pool,
                name: record.name.clone(),
                engine: record.engine,
                root,
                others: others.iter().map(place).collect(),
            });
        }
    }

    /// A file of the store's, without a name, for what a client shows of a pool
    /// ([`Service::showing_file`](crate::Service::showing_file)).
    ///
    /// # Errors
    /// `Io`.
    pub fn showing_file(&self, pool: Uuid) -> Result<MediaFile> {
        let path = self.host.path.join(format!("{pool}, as it is shown"));
        MediaFile::nameless(&self.host.path, &path)
            .map_err(|source| Error::io("making a file without a name", &self.host.path, source))
    }

    /// Who writes a pool that this client may read; `None` where nobody does.
    ///
    /// # Errors
    /// `PoolMissing`, `NotPermitted`; those of every request.
    pub fn in_use(&self, name: &str) -> Result<Option<InUse>> {
        let mut state = self.host.state();
        let open = state.open(&self.host.path)?;
        let found = open.contents.pool_named(name);
        let seen = found.filter(|(pool, _)| self.may_see(open, *pool));
        let (pool, _) = seen.ok_or_else(|| Error::no_pool(&self.host.path, name))?;
        self.ensure_may(open, pool, Wish::Read)?;
        let writes = |client: &Uuid| open.contents.grants.contains(&(*client, pool));
        let writer = open.holders(pool).find(writes);
        Ok(writer.map(|writer| InUse { pool, writer }))
    }

    /// A pool that this client reads already, for a request whose answer was lost.
    ///
    /// # Errors
    /// As [`Service::read_pool`](crate::Service::read_pool) for its files.
    pub fn read_again(&self, name: &str) -> Result<Option<PoolGrant>> {
        let mut state = self.host.state();
        let open = state.open(&self.host.path)?;
        let pool = self.host.pool_named(&open.contents, name)?;
        let Some(record) = open.contents.pools.get(&pool).cloned() else {
            return Ok(None);
        };
        if !open.readers.contains(&(self.id, pool)) {
            return Ok(None);
        }
        let registered = *open.contents.puddle(&self.host.path, record.root_puddle)?;
        let others = others(open, pool);
        drop(state);
        let file = self.open_file(name, &(record.root_puddle, registered), false)?;
        Ok(Some(PoolGrant {
            uuid: pool,
            root: grant(record.root_puddle, &registered, file),
            name: record.name,
            engine: record.engine,
            others: others.iter().map(place).collect(),
        }))
    }

    /// The client reads a pool no more. False where it did not.
    pub(super) fn end_reading(&self, pool: Uuid) -> Result<bool> {
        let mut state = self.host.state();
        let open = state.open(&self.host.path)?;
        if !open.readers.contains(&(self.id, pool)) {
            return Ok(false);
        }
        drop(state);
        // Should this fail, the pool stays this client's until it ends.
        liveness::note_read(&self.host.path, self.id, pool)?;
        if let Some(open) = &mut self.host.state().open {
            open.readers.remove(&(self.id, pool));
        }
        Ok(true)
    }

    /// As [`Service::find_garbage`](crate::Service::find_garbage).
    pub(super) fn search(&self, options: &GarbageOptions) -> Result<Garbage> {
        self.refresh_all()?;
        let path = &self.host.path;
        let mut held = Vec::new();
        let mut state = self.host.state();
        let open = state.open(path)?;
        for pool in open.contents.pools.keys() {
            open.ensure_free(self.id, *pool, Wish::Hold)?;
            if !open.readers.contains(&(self.id, *pool)) {
                held.push(*pool);
            }
        }
        ensure_nothing_kept(path, &open.contents, Wish::Hold.operation())?;
        open.readers
            .extend(held.iter().map(|pool| (self.id, *pool)));
        let contents = open.contents.for_readers();
        drop(state);
        let found = liveness::note_reading(path, self.id, &held).and_then(|()| {
            // What was seen may not be durable yet.
            self.host.request(|_| Ok(((), Commit::nothing())))?;
            // Recovery was done, and nobody writes.
            let identity = self.host.identity.clone();
            let reader = ReadOnlyStore::over(path.clone(), identity, contents, true)?;
            find_in(&reader, options)
        });
        if found.is_err() {
            for pool in held {
                self.end_reading(pool)?;
            }
        }
        found
    }

    /// Whether this client may write the files of a pool that it has open; `None` where it has not.
    pub(super) fn may_write(&self, open: &Open, pool: Uuid) -> Option<bool> {
        let reads = open.readers.contains(&(self.id, pool));
        match self.has_open(open, pool) {
            true => Some(true),
            false => reads.then_some(false),
        }
    }
}

/// The puddles of a pool but its root.
fn others(open: &Open, pool: Uuid) -> Vec<Registered> {
    let mut others = open.contents.puddles_of(pool);
    others.retain(|(_, record)| !record.is_root);
    others
}

impl Embedded {
    /// As [`Service::registry`](crate::Service::registry).
    pub(super) fn readable_registry(&self) -> Result<Vec<u8>> {
        registry::encode(&self.host.path, &self.for_readers()?)
    }

    /// As [`Service::lost_files`](crate::Service::lost_files).
    pub(super) fn lost(&self) -> Result<Vec<LostFile>> {
        let mut lost = presence::lost_files(&self.host.path, &self.for_readers()?)?;
        let still = self.for_readers()?;
        // What was removed meanwhile is not lost.
        let is_still = |file: &Path| {
            let name = file.file_name().and_then(|name| name.to_str());
            let uuid = name.and_then(|name| name.parse::<Uuid>().ok());
            uuid.is_some_and(|uuid| still.puddles.contains_key(&uuid))
        };
        lost.retain(|lost| is_still(&lost.file));
        Ok(lost)
    }

    fn for_readers(&self) -> Result<Contents> {
        let readable = |open: &Open| Ok((self.readable(open), Commit::nothing()));
        self.host.request(readable)
    }
}

impl Host {
    /// What clients read that live since an earlier service.
    pub(super) fn take_over_readers(
        path: &Path,
        contents: &Contents,
        living: impl Iterator<Item = Uuid>,
    ) -> Result<Vec<(Uuid, Uuid)>> {
        let mut readers = Vec::new();
        for client in living {
            let pools = liveness::reads(path, client)?.into_iter();
            let known = pools.filter(|pool| contents.pools.contains_key(pool));
            readers.extend(known.map(|pool| (client, pool)));
        }
        Ok(readers)
    }
}
