//! A pool gets new files: who has kept descriptors of the old ones reads and writes what is nobody's any more.
//!
//! Only names change, one by one, from a file to a copy of it that is durable. So a crash leaves each puddle with the
//! one or the other, which say the same, and copies that were not finished, which the next opener removes.

use std::path::Path;

use durum_format::Uuid;
use durum_persist::Site;
use durum_persist::file::{self, MediaFile};

use super::holders::Wish;
use super::puddles::Registered;
use super::{Embedded, Host, Open};
use crate::error::{Error, ErrorKind, Result};
use crate::files::{self, PUDDLE_DIRECTORY};
use crate::sparse;
use crate::unregistered;

const COPY: Site = Site("copy of a puddle");
const COPY_NAME: Site = Site("name of a puddle's copy");

impl Embedded {
    /// As [`Service::revoke_pool`](crate::Service::revoke_pool).
    pub(super) fn revoke(&self, name: &str) -> Result<()> {
        // Undisturbed: whoever is opening the pool has opened files of it already.
        let begun = self.host.undisturbed(|open| {
            let pool = self.host.pool_named(&open.contents, name)?;
            self.ensure_owns(open, pool, "taken from others")?;
            self.ensure_usable(open, pool, Wish::Renew)?;
            open.renewed.insert(pool);
            Ok((pool, open.contents.puddles_of(pool)))
        });
        let (pool, puddles) = self.told(begun)?;
        let _held = Renewing {
            host: &self.host,
            pool,
        };
        let (_away, ()) = self.host.leave(|_| Ok(()))?;
        let store = &self.host.path;
        for puddle in &puddles {
            renew(store, puddle).map_err(|error| files::of_pool(error, store, name))?;
        }
        sync_names(store)
    }
}

impl Host {
    /// Gives the pools and logs of a client new files, before it is recovered: for one that is taken for gone though
    /// its process lives. Whatever that goes on to write leads to nothing. Durable on return.
    ///
    /// # Errors
    /// `StorageFull`, `Io`: it cannot be recovered yet, because others would get what it writes to.
    pub fn part_from(&self, client: Uuid) -> Result<()> {
        // Nobody else opens what the client was granted.
        let (_away, contents) = self.leave(|open| Ok(open.contents.concerning(client)))?;
        for (uuid, record) in &contents.puddles {
            match renew(&self.path, &(*uuid, *record)) {
                // Recovery tells of it.
                Err(error) if error.kind() == ErrorKind::Data => {}
                renewed => renewed?,
            }
        }
        sync_names(&self.path)
    }
}

fn sync_names(store: &Path) -> Result<()> {
    // ORDER: the new names are durable before anybody is told that the old files lead to nothing; else a crash brings
    // them back.
    files::sync_dir(&store.join(PUDDLE_DIRECTORY), COPY_NAME)
}

/// Puts a copy in the place of a puddle's file.
fn renew(store: &Path, (uuid, record): &Registered) -> Result<()> {
    let old = files::open(store, *uuid, record, false)?;
    let path = unregistered::copy_path(store, *uuid);
    files::remove_if_there(&path, COPY, "removing a leftover")?;
    let size = files::header_of(*uuid, record).file_size();
    let failed = |error| files::grown("copying a puddle", &path, size, error);
    let made = MediaFile::create_new(&path)
        .map_err(failed)
        .and_then(|new| {
            // Whoever has a descriptor of the old file may change it meanwhile: what it could do to the pool before it
            // can do until then.
            sparse::copy(&old, &new, size, COPY)?;
            // ORDER: the copy is durable before it has the name; else a crash leaves the pool a torn one.
            new.sync(COPY).map_err(failed)
        })
        .and_then(|()| {
            file::rename(&path, &files::puddle_path(store, *uuid), COPY_NAME).map_err(failed)
        });
    made.inspect_err(|_| {
        // Gives the room back. Should this fail as well, the next opener removes it.
        let _ = file::remove(&path, COPY);
    })
}

/// Nobody opens the pool, until this is dropped.
struct Renewing<'e> {
    host: &'e Host,
    pool: Uuid,
}

impl Drop for Renewing<'_> {
    fn drop(&mut self) {
        if let Some(open) = &mut self.host.state().open {
            open.renewed.remove(&self.pool);
        }
    }
}

impl Open {
    /// Refuses a pool whose files are being copied.
    pub(super) fn ensure_not_renewed(&self, pool: Uuid) -> Result<()> {
        match self.renewed.contains(&pool) {
            true => Err(Error::PoolBusy {
                name: self.contents.name_of(pool),
            }),
            false => Ok(()),
        }
    }
}
