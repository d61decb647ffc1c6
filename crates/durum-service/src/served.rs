//! What a service serves, for those who only read: the registry as it was, and files of pools that nobody writes
//! meanwhile. So whoever looks at a store works in its own process, and holds up only those who would write what it
//! looks at.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use durum_format::Uuid;
use durum_persist::file::MediaFile;

use crate::error::{Error, Result};
use crate::inspect::{ReadOnlyStore, Source};
use crate::model::{InterruptedClient, PoolGrant, StoreInfo};
use crate::picture::Picture;
use crate::presence::LostFile;
use crate::registry;
use crate::registry::contents::Contents;
use crate::service::Service;
use crate::strays::StrayFile;

impl ReadOnlyStore {
    /// Reads the store of a service, whose client ends with this.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use durum_service::{CreateOptions, Embedded, EngineKind, PoolSpec, ReadOnlyStore, Service};
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("store");
    /// let writer = Embedded::create(&path, &CreateOptions::default())?;
    /// let grant = writer.create_pool("words", &PoolSpec::new(EngineKind::Hybrid))?;
    /// let mut reader = ReadOnlyStore::of(Arc::new(writer.host().client()?))?;
    /// assert_eq!(reader.hold(Some("words"))?.len(), 1); // It is being written.
    /// writer.close_pool(grant.uuid)?;
    /// assert_eq!(reader.hold(Some("words"))?.len(), 0);
    /// assert_eq!(reader.puddle_bytes(reader.pools()[0].root_puddle)?.len(), 2 << 20);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of the service.
    pub fn of(service: Arc<dyn Service>) -> Result<ReadOnlyStore> {
        ReadOnlyStore::held(service, true)
    }

    /// As [`ReadOnlyStore::of`], for a client that goes on: this gives back the pools that it holds.
    ///
    /// # Errors
    /// Those of the service.
    pub fn beside(service: Arc<dyn Service>) -> Result<ReadOnlyStore> {
        ReadOnlyStore::held(service, false)
    }

    fn held(service: Arc<dyn Service>, ends_client: bool) -> Result<ReadOnlyStore> {
        let info = service.info();
        let refused = service.refused_pools()?;
        let interrupted = service.interrupted()?;
        let held = Held {
            service,
            ends_client,
            pools: Mutex::default(),
        };
        let contents = held.contents()?;
        let source = Box::new(held);
        Ok(ReadOnlyStore::of_source(
            info,
            contents,
            refused,
            interrupted,
            source,
        ))
    }
}

/// Pools that a client of a service has open for reading.
struct Held {
    service: Arc<dyn Service>,
    /// The client ends with this.
    ends_client: bool,
    pools: Mutex<BTreeMap<Uuid, PoolGrant>>,
}

impl Held {
    fn pools(&self) -> MutexGuard<'_, BTreeMap<Uuid, PoolGrant>> {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    fn decoded(&self, registry: &[u8]) -> Result<Contents> {
        registry::decode(self.service.info().directory(), registry)
    }

    fn unknown(&self, puddle: Uuid) -> Error {
        Error::PuddleUnknown {
            store: self.service.info().path,
            uuid: puddle.to_string(),
        }
    }
}

impl Source for Held {
    fn info(&self) -> StoreInfo {
        self.service.info()
    }

    fn contents(&self) -> Result<Contents> {
        self.decoded(&self.service.registry()?)
    }

    fn hold(&self, pool: &str) -> Result<()> {
        let mut pools = self.pools();
        if pools.values().any(|held| held.name == pool) {
            return Ok(());
        }
        let grant = match self.service.read_pool(pool) {
            Err(Error::PoolQuarantined { .. } | Error::PoolInterrupted { .. }) => {
                self.service.look_at_pool(pool)?
            }
            grant => grant?,
        };
        pools.insert(grant.uuid, grant);
        Ok(())
    }

    fn interrupted(&self) -> Result<Vec<InterruptedClient>> {
        self.service.interrupted()
    }

    fn show(&self, pool: &str, wait: Duration) -> Result<(Contents, Box<dyn Picture>)> {
        let (registry, picture) = self.service.show_pool(pool, wait)?;
        Ok((self.decoded(&registry)?, picture))
    }

    fn file(&self, pool: Uuid, puddle: Uuid) -> Result<MediaFile> {
        if let Some(held) = self.pools().get(&pool)
            && held.root.uuid == puddle
        {
            return Ok(held.root.file.clone());
        }
        let opened = self.service.open_puddles(pool, &[puddle])?;
        let opened = opened.into_iter().next().map(|opened| opened.file);
        opened.ok_or_else(|| self.unknown(puddle))
    }

    fn logs(&self) -> Result<Contents> {
        registry::decode(self.service.info().directory(), &self.service.logs()?)
    }

    fn log(&self, puddle: Uuid) -> Result<MediaFile> {
        let opened = self.service.open_logs(&[puddle])?.into_iter().next();
        opened.ok_or_else(|| self.unknown(puddle))
    }

    fn type_text(&self, id: u64) -> Result<Option<String>> {
        self.service.type_text(id)
    }

    fn lost_files(&self) -> Result<Vec<LostFile>> {
        self.service.lost_files()
    }

    fn stray_files(&self) -> Result<Vec<StrayFile>> {
        self.service.stray_files()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let pools: Vec<Uuid> = self.pools().keys().copied().collect();
        let closed = match self.ends_client {
            true => self.service.close(),
            false => pools
                .iter()
                .try_for_each(|pool| self.service.close_pool(*pool)),
        };
        if let Err(error) = closed {
            tracing::debug!(%error, "a reader of a store could not end in order");
        }
    }
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").finish_non_exhaustive()
    }
}
