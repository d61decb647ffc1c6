//! What a client has, and what it may ask for.

use durum_format::Uuid;
use durum_persist::file::MediaFile;

use super::super::Open;
use super::super::holders::Wish;
use super::super::puddles::{Registered, Removal, grant};
use super::{Embedded, FEW_FILES, not_open, refused};
use crate::error::{Error, Result};
use crate::files;
use crate::model::PuddleGrant;
use crate::names;
use crate::registry::contents::{PoolRecord, PuddleRecord};

impl Embedded {
    /// Opens and checks the file of a puddle of a pool.
    pub(in crate::host) fn open_file(
        &self,
        pool: &str,
        (uuid, record): &Registered,
        writable: bool,
    ) -> Result<MediaFile> {
        files::open(&self.host.path, *uuid, record, writable)
            .map_err(|error| files::of_pool(error, &self.host.path, pool))
    }

    /// Opens and checks the files of puddles of a pool.
    pub(super) fn open_files(
        &self,
        pool: &str,
        puddles: &[Registered],
        writable: bool,
    ) -> Result<Vec<PuddleGrant>> {
        // It takes longer than to open a few.
        if puddles.len() > FEW_FILES {
            names::ensure_descriptors(&self.host.path, puddles.len())?;
        }
        let open = |registered: &Registered| {
            let file = self.open_file(pool, registered, writable)?;
            Ok(grant(registered.0, &registered.1, file))
        };
        names::with_descriptors(&self.host.path, puddles.len(), || {
            puddles.iter().map(open).collect()
        })
    }

    /// The name of a pool, whether it may be written, and what the registry says of puddles that are asked for.
    pub(super) fn asked_for(
        &self,
        pool: Uuid,
        puddles: &[Uuid],
    ) -> Result<(String, bool, Vec<Registered>)> {
        let mut state = self.host.state();
        let open = state.open(&self.host.path)?;
        let writable = self.may_write(open, pool);
        let writable = writable.ok_or_else(|| not_open(pool))?;
        let wanted = puddles.iter().map(|uuid| {
            let record = open.contents.puddle(&self.host.path, *uuid)?;
            match record.owner == pool {
                true => Ok((*uuid, *record)),
                false => Err(refused(*uuid, "it belongs to another pool")),
            }
        });
        let wanted = wanted.collect::<Result<Vec<Registered>>>()?;
        Ok((open.contents.name_of(pool), writable, wanted))
    }

    pub(in crate::host) fn has_open(&self, open: &Open, pool: Uuid) -> bool {
        open.contents.grants.contains(&(self.id, pool))
    }

    /// The record of a puddle that this client may remove: its own, or one of a pool that it has open.
    pub(in crate::host) fn own_puddle(&self, open: &Open, uuid: Uuid) -> Result<PuddleRecord> {
        let record = open.contents.puddle(&self.host.path, uuid)?;
        if record.owner != self.id && !self.has_open(open, record.owner) {
            let reason = "it belongs neither to this client nor to a pool that it has open";
            return Err(refused(uuid, reason));
        }
        Ok(*record)
    }

    /// A pool that this client may open, and its root puddle.
    pub(in crate::host) fn openable(
        &self,
        open: &Open,
        name: &str,
        wish: Wish,
    ) -> Result<(Uuid, PoolRecord, Registered)> {
        let pool = self.host.pool_named(&open.contents, name)?;
        self.ensure_may(open, pool, wish)?;
        self.ensure_usable(open, pool, wish)?;
        let record = open.contents.pools[&pool].clone();
        let root = *open.contents.puddle(&self.host.path, record.root_puddle)?;
        let root = (record.root_puddle, root);
        Ok((pool, record, root))
    }

    /// Refuses a pool that is not whole, or that somebody uses.
    pub(in crate::host) fn ensure_usable(&self, open: &Open, pool: Uuid, wish: Wish) -> Result<()> {
        if wish != Wish::Look
            && let Some(note) = open.contents.quarantine_of(pool)
        {
            let name = open.contents.name_of(pool);
            return Err(Error::quarantined(&self.host.path, name, note));
        }
        open.refused
            .ensure_not(&self.host.path, &open.contents, pool)?;
        if wish != Wish::Look {
            let (store, contents) = (&self.host.path, &open.contents);
            open.interrupted.ensure_not(store, contents, pool)?;
        }
        open.ensure_free(self.id, pool, wish)
    }

    pub(super) fn ensure_open(&self, open: &Open, pool: Uuid) -> Result<()> {
        match self.has_open(open, pool) {
            true => Ok(()),
            false => Err(not_open(pool)),
        }
    }

    /// Ends this client: its logs go, its grants end, and with the last one the store is clean.
    pub(super) fn end(&self) -> Result<()> {
        self.host.remove_puddles(|open| {
            let mut removal = Removal::default();
            if open.contents.clients.contains(&self.id) {
                let (changes, puddles) = open.contents.ending_of(self.id);
                removal.changes = changes;
                let record = |uuid: &Uuid| open.contents.puddles.get(uuid).copied();
                let known = puddles
                    .iter()
                    .filter_map(|uuid| Some((*uuid, record(uuid)?)));
                removal.puddles = known.collect();
            }
            Ok(((), removal))
        })?;
        self.host.is_not_at_work(self.id);
        Ok(())
    }
}
