//! A store for those who only read: the registry, and puddles as recovery would leave them.
//!
//! Takes no lock and writes nothing. After an unclean end, the writes that recovery would make are planned
//! and applied to what is read, in private memory: the files stay byte for byte as they are.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use durum_format::Uuid;
use durum_format::extent::UNTYPED;
use durum_format::home::Verdict;
use durum_format::registry::Rights;
use durum_format::store::StoreHeader;
use durum_format::types::{Meanings, Registry};
use durum_persist::file::MediaFile;

use crate::directory::absolute;
use crate::error::{Error, ErrorKind, Result};
use crate::files::{self, Puddles};
use crate::identity;
use crate::liveness;
use crate::lock::Holder;
use crate::model::{
    InterruptedClient, PoolSummary, PuddleSummary, RecoveryReport, RefusedPool, StoreInfo,
};
use crate::picture::Picture;
use crate::presence::{self, LostFile};
use crate::puddle_view::PuddleView;
use crate::recovery::{
    Access, HomeWrite, Interrupted, Part, RefusedPools, ensure_not_interrupted,
    ensure_nothing_kept, in_pool, plan_client,
};
use crate::registry;
use crate::registry::contents::{self, Contents, PuddleRecord};
use crate::rights;
use crate::strays::StrayFile;

/// Where the files of a store come from that this process may not open itself.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// What the service says of the store.
    fn info(&self) -> StoreInfo;

    /// What its registry says now, without clients.
    fn contents(&self) -> Result<Contents>;

    /// Sees to it that nobody writes a pool from here on, which may be in quarantine, or half done.
    fn hold(&self, pool: &str) -> Result<()>;

    /// The clients that have left sections, as [`Service::interrupted`](crate::Service::interrupted).
    fn interrupted(&self) -> Result<Vec<InterruptedClient>>;

    /// Has the program that writes a pool show it, as [`Service::show_pool`](crate::Service::show_pool).
    fn show(&self, pool: &str, wait: Duration) -> Result<(Contents, Box<dyn Picture>)>;

    /// The file of a puddle, open for reading. Its pool is held.
    fn file(&self, pool: Uuid, puddle: Uuid) -> Result<MediaFile>;

    /// As [`Source::contents`], with clients that are gone and their logs.
    fn logs(&self) -> Result<Contents>;

    /// The file of such a log, open for reading.
    fn log(&self, puddle: Uuid) -> Result<MediaFile>;

    /// The text of a type, as [`Service::type_text`](crate::Service::type_text).
    fn type_text(&self, id: u64) -> Result<Option<String>>;

    /// The files of pools that cannot be used.
    fn lost_files(&self) -> Result<Vec<LostFile>>;

    /// The files that are no part of the store.
    fn stray_files(&self) -> Result<Vec<StrayFile>>;
}

/// A store that is only read.
///
/// ```
/// use durum_service::{CreateOptions, Embedded, EngineKind, PoolSpec, ReadOnlyStore, Service};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("store");
/// let store = Embedded::create(&path, &CreateOptions::default())?;
/// store.create_pool("words", &PoolSpec::new(EngineKind::Hybrid))?;
/// drop(store); // Like a crash: it was not closed.
///
/// let reader = ReadOnlyStore::open(&path)?;
/// assert!(!reader.is_clean());
/// let pool = &reader.pools()[0];
/// assert_eq!(reader.puddle_bytes(pool.root_puddle)?.len(), 2 << 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ReadOnlyStore {
    path: PathBuf,
    /// Of a store that is served: how its service was found.
    name: Option<PathBuf>,
    identity: StoreHeader,
    /// Whose pools are of which the registry says nothing.
    directory: Rights,
    contents: Contents,
    pending: RecoveryReport,
    /// Pools that recovery could not write.
    refused: RefusedPools,
    /// What is kept for pools that nothing stands in the way of any more, by client and pool.
    ready: BTreeMap<(Uuid, Uuid), Part>,
    writes: BTreeMap<Uuid, Vec<HomeWrite>>,
    /// Of a store that a service serves.
    source: Option<Box<dyn Source>>,
}

impl ReadOnlyStore {
    /// Reads the registry, and the logs of clients that did not end in order.
    ///
    /// Beside a live writer only the registry can be used: what lies in its puddles is its own affair.
    ///
    /// # Errors
    /// `StoreMissing`; `Format`, `Damaged`, `FileMissing` for a foreign, newer, damaged or truncated store; `Io`.
    pub fn open(path: &Path) -> Result<ReadOnlyStore> {
        let path = absolute(path)?;
        let identity = identity::read(&path)?;
        let contents = registry::read(&path, &identity)?.contents;
        let is_live = liveness::current_writer(&path)? != Holder::Nobody;
        ReadOnlyStore::over(path, identity, contents, is_live)
    }

    /// A reader of a store whose contents are known.
    pub(crate) fn over(
        path: PathBuf,
        identity: StoreHeader,
        contents: Contents,
        is_live: bool,
    ) -> Result<ReadOnlyStore> {
        let mut pending = RecoveryReport {
            was_clean: contents.is_clean(),
            ..RecoveryReport::default()
        };
        let mut refused = RefusedPools::default();
        let mut interrupted = Interrupted::default();
        let mut ready = BTreeMap::new();
        let mut writes: BTreeMap<Uuid, Vec<HomeWrite>> = BTreeMap::new();
        if !is_live && !contents.clients.is_empty() {
            let puddles = Puddles::of(&path)?;
            for &client in &contents.clients {
                let plan = plan_client(&puddles, &contents, client, Access::Read, &mut |_, _| {})?;
                pending.count(&plan);
                refused.add(&plan.refused);
                interrupted.put(client, plan.interrupted.clone());
                if plan.interrupted.is_none() && contents.kept.contains_key(&client) {
                    let kept = contents.granted_pools(client);
                    let kept = kept.filter(|pool| !plan.refused.contains_key(pool));
                    let pools: Vec<Uuid> = kept.collect();
                    let parts = plan.parts(&contents, &pools).into_iter();
                    ready.extend(parts.map(|(pool, part)| ((client, pool), part)));
                }
                for write in plan.writes {
                    writes.entry(write.puddle).or_default().push(write);
                }
            }
        }
        pending.refused = refused.to_pools(&contents);
        pending.interrupted = interrupted.to_clients(&contents);
        Ok(ReadOnlyStore {
            directory: rights::of_directory(&path)?,
            path,
            name: None,
            identity,
            contents,
            pending,
            refused,
            ready,
            writes,
            source: None,
        })
    }

    /// A reader of a store that a service serves, whose pools are recovered but for those of `refused`, and those in
    /// which sections were `interrupted`.
    pub(crate) fn of_source(
        info: StoreInfo,
        contents: Contents,
        refused: Vec<RefusedPool>,
        interrupted: Vec<InterruptedClient>,
        source: Box<dyn Source>,
    ) -> ReadOnlyStore {
        ReadOnlyStore {
            path: info.directory().to_owned(),
            name: Some(info.path),
            identity: contents.store.clone(),
            // A service says of each pool whose it is.
            directory: rights::of_this_process(),
            contents,
            pending: RecoveryReport {
                was_clean: true,
                refused,
                interrupted,
                ..RecoveryReport::default()
            },
            refused: RefusedPools::default(),
            ready: BTreeMap::new(),
            writes: BTreeMap::new(),
            source: Some(source),
        }
    }

    /// What a service says of the store, if one serves it: then a puddle can be read once its pool is held.
    pub fn served(&self) -> Option<StoreInfo> {
        self.source.as_ref().map(|source| source.info())
    }

    /// The files that are no part of a store that a service serves; `None` where this user is not told them.
    pub(crate) fn strays_of_service(&self) -> Result<Option<Vec<StrayFile>>> {
        let found = self.source.as_ref().map(|source| source.stray_files());
        match found {
            None | Some(Err(Error::NotPermitted { .. })) => Ok(None),
            Some(found) => found.map(Some),
        }
    }

    pub(crate) fn is_served(&self) -> bool {
        self.source.is_some()
    }

    /// As [`ReadOnlyStore::look`], for whoever goes on with what it reads: a pool in quarantine cannot be held, nor one
    /// in which sections were interrupted.
    ///
    /// # Errors
    /// `PoolMissing`; those of the service.
    pub fn hold(&mut self, pool: Option<&str>) -> Result<BTreeMap<String, Error>> {
        let mut refused = self.look(pool)?;
        if self.is_served() {
            let pools = self.contents.pools.iter();
            let wanted = pools.filter(|(_, record)| pool.is_none_or(|pool| pool == record.name));
            for (uuid, record) in wanted {
                if let Some(note) = self.contents.quarantine_of(*uuid) {
                    let error = Error::PoolQuarantined {
                        store: self.name().to_owned(),
                        pool: record.name.clone(),
                        log: self.path.join(note.log),
                        reason: note.reason,
                    };
                    refused.insert(record.name.clone(), error);
                }
                let interrupted = &self.pending.interrupted;
                if let Err(error) = ensure_not_interrupted(self.name(), interrupted, &record.name) {
                    refused.insert(record.name.clone(), error);
                }
            }
        }
        Ok(refused)
    }

    /// Sees to it that nobody writes the pools, or the one of this name, as long as this reader is there. Tells which
    /// of them cannot be held: somebody writes them, or they cannot be recovered. One in quarantine is seen as the
    /// crash left it, and so is one in which sections were interrupted. Of a store that no service serves nothing need
    /// be held.
    ///
    /// # Errors
    /// `PoolMissing`; those of the service.
    pub fn look(&mut self, pool: Option<&str>) -> Result<BTreeMap<String, Error>> {
        let mut refused = BTreeMap::new();
        let Some(source) = &self.source else {
            return Ok(refused);
        };
        let mut tried = BTreeSet::new();
        loop {
            let known = self.contents.pools.values().map(|pool| &pool.name);
            let wanted = known.filter(|name| pool.is_none_or(|pool| pool == *name));
            let new: Vec<String> = wanted
                .filter(|name| !tried.contains(*name))
                .cloned()
                .collect();
            if let (true, true, Some(name)) = (new.is_empty(), tried.is_empty(), pool) {
                return Err(Error::no_pool(self.name(), name));
            }
            if new.is_empty() {
                return Ok(refused);
            }
            for name in new {
                match source.hold(&name) {
                    Err(error) if matches!(error.kind(), ErrorKind::User | ErrorKind::Data) => {
                        refused.insert(name.clone(), error);
                    }
                    held => held?,
                }
                tried.insert(name);
            }
            // They may have grown until they were held, and there may be others.
            self.contents = source.contents()?;
            self.pending.interrupted = source.interrupted()?;
        }
    }

    /// Has the program that writes a pool show it as it is at one moment; what the registry says has all that is shown.
    ///
    /// # Errors
    /// `PoolBusy` of a store that no service serves; as [`Service::show_pool`](crate::Service::show_pool).
    pub(crate) fn show(&mut self, pool: &str, wait: Duration) -> Result<Box<dyn Picture>> {
        let Some(source) = &self.source else {
            return Err(Error::PoolBusy {
                name: pool.to_owned(),
            });
        };
        let (contents, picture) = source.show(pool, wait)?;
        self.contents = contents;
        Ok(picture)
    }

    /// From here on logs are seen, too, of a store that a service serves: those that are in quarantine or kept. In a
    /// directory they are seen anyway.
    ///
    /// # Errors
    /// `NotPermitted` for all but root and the service's user; those of the service.
    pub fn look_at_logs(&mut self) -> Result<()> {
        if let Some(source) = &self.source {
            self.contents = source.logs()?;
        }
        Ok(())
    }

    /// The contents of its registry; of a store that is served, without clients.
    pub(crate) fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The store directory, absolute; of a store that is served, as the service sees it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The store, as messages name it: its directory, or the name by which its service was found.
    pub fn name(&self) -> &Path {
        self.name.as_deref().unwrap_or(&self.path)
    }

    /// The store.
    pub fn uuid(&self) -> Uuid {
        self.identity.uuid
    }

    /// The first address of the puddle space.
    pub fn base(&self) -> u64 {
        self.identity.base
    }

    /// The size of the puddle space in bytes.
    pub fn space_size(&self) -> u64 {
        self.identity.size
    }

    /// The persistence domain that the store was made in, in a word.
    pub fn domain_name(&self) -> &str {
        &self.identity.domain
    }

    /// What is kept for pools that nothing stands in the way of any more, with the pools' names.
    pub(crate) fn ready(&self) -> impl Iterator<Item = (&str, &Part)> {
        let ready = self.ready.iter();
        ready.filter_map(|((_, pool), part)| {
            let record = self.contents.pools.get(pool)?;
            Some((record.name.as_str(), part))
        })
    }

    /// Whether every client has ended in order.
    pub fn is_clean(&self) -> bool {
        self.contents.is_clean()
    }

    /// The process that has the store open for writing at this moment; 0 where the system does not tell which it is
    /// (a process of another container).
    ///
    /// # Errors
    /// `Io`.
    pub fn writer(&self) -> Result<Option<u32>> {
        if self.is_served() {
            return Ok(None);
        }
        Ok(match liveness::current_writer(&self.path)? {
            Holder::Nobody => None,
            Holder::Process(pid) => Some(pid.unwrap_or(0)),
        })
    }

    /// The pools, in order of name.
    pub fn pools(&self) -> Vec<PoolSummary> {
        self.contents.pool_summaries(&self.directory)
    }

    /// All puddles, in order of address.
    pub fn puddles(&self) -> Vec<PuddleSummary> {
        let puddles = self.contents.puddles.iter();
        let mut puddles: Vec<_> = puddles
            .map(|(uuid, record)| contents::summary(*uuid, record))
            .collect();
        puddles.sort_unstable_by_key(|puddle| puddle.address);
        puddles
    }

    /// What the ids of a pool's objects mean, where its program has changed its types.
    pub fn meanings_of(&self, pool: Uuid) -> &Meanings {
        self.contents.meanings_of(pool)
    }

    /// The canonical text of a type; `None` if none with this id is registered. Who may not know the types of all pools
    /// is told of one whose id it has read.
    ///
    /// # Errors
    /// Those of the service.
    pub fn type_text(&self, id: u64) -> Result<Option<String>> {
        match (self.contents.types.get(&id), &self.source) {
            (None, Some(source)) => source.type_text(id),
            (known, _) => Ok(known.cloned()),
        }
    }

    /// Asks for those of these types that `types` does not have: a service tells the list of all to few. One whose text
    /// cannot be read is like one that is not registered.
    ///
    /// # Errors
    /// Those of the service.
    pub fn learn_types(&self, ids: BTreeSet<u64>, types: &mut Registry) -> Result<()> {
        for id in ids {
            if id != UNTYPED
                && types.by_id(id).is_none()
                && let Some(text) = self.type_text(id)?
            {
                let _ = types.register_text(&text);
            }
        }
        Ok(())
    }

    /// The types known here: id and canonical text, in order of id.
    pub fn types(&self) -> impl Iterator<Item = (u64, &str)> {
        let types = self.contents.types.iter();
        types.map(|(id, text)| (*id, text.as_str()))
    }

    /// What recovery would do. Nothing where a writer is alive, or the store is clean.
    pub fn pending(&self) -> &RecoveryReport {
        &self.pending
    }

    /// The files of pools that are missing, cut short or unreadable, in order of pool: looks at each file, and not into
    /// it. Nothing beside a live writer, which makes and removes files.
    ///
    /// # Errors
    /// `Io`.
    pub fn lost_files(&self) -> Result<Vec<LostFile>> {
        if let Some(source) = &self.source {
            return source.lost_files();
        }
        let is_live = || Ok(liveness::current_writer(&self.path)? != Holder::Nobody);
        if is_live()? {
            return Ok(Vec::new());
        }
        let lost = presence::lost_files(&self.path, &self.contents)?;
        // One that came meanwhile may have removed the pool.
        match !lost.is_empty() && is_live()? {
            true => Ok(Vec::new()),
            false => Ok(lost),
        }
    }

    /// What was decided about transactions of a client when recovery brought home a part of them: home cannot be asked
    /// again.
    pub fn verdicts(&self, client: Uuid) -> &[Verdict] {
        let kept = self.contents.kept.get(&client);
        kept.map_or(&[], |kept| kept.verdicts.as_slice())
    }

    /// The clients that have left sections in a pool: it is seen as they left it, half done.
    pub fn interrupted_in(&self, pool: &str) -> impl Iterator<Item = &InterruptedClient> {
        in_pool(&self.pending.interrupted, pool)
    }

    pub(crate) fn ensure_nothing_kept(&self, operation: &'static str) -> Result<()> {
        ensure_nothing_kept(self.name(), &self.contents, operation)
    }

    /// A puddle as recovery would leave it; what sections do that were interrupted is half done in it. Of a store that
    /// a service serves its pool is [held](ReadOnlyStore::hold).
    ///
    /// # Errors
    /// `PuddleUnknown`; `StoreBusy` beside a live writer; `PoolRefused` where recovery could not write its pool;
    /// `Format`, `Damaged`, `FileMissing`, `Io` for its file.
    pub fn puddle(&self, uuid: Uuid) -> Result<PuddleView> {
        if self.is_served() {
            return self.puddle_unguarded(uuid);
        }
        if let Holder::Process(pid) = liveness::current_writer(&self.path)? {
            return Err(Error::StoreBusy {
                path: self.path.clone(),
                pid,
            });
        }
        self.puddle_unguarded(uuid)
    }

    /// As [`ReadOnlyStore::puddle`], for one who holds the lock.
    pub(crate) fn puddle_unguarded(&self, uuid: Uuid) -> Result<PuddleView> {
        let record = self.contents.puddle(self.name(), uuid)?;
        self.refused
            .ensure_not(self.name(), &self.contents, record.owner)?;
        // A service has rewritten what it gives.
        if record.is_stale && self.source.is_none() {
            self.contents.ensure_rewritten(self.name())?;
        }
        let file = self.file(uuid, record).map_err(|error| {
            match self.contents.pools.get(&record.owner) {
                Some(pool) => files::of_pool(error, self.name(), &pool.name),
                None => error,
            }
        })?;
        let writes = self.writes.get(&uuid).cloned().unwrap_or_default();
        Ok(PuddleView::new(
            file,
            &files::header_of(uuid, record),
            writes,
        ))
    }

    /// The file of a puddle, open for reading.
    pub(crate) fn file(&self, uuid: Uuid, record: &PuddleRecord) -> Result<MediaFile> {
        if let Some(source) = &self.source {
            let file = match record.kind.holds_objects() {
                true => source.file(record.owner, uuid)?,
                false => source.log(uuid)?,
            };
            files::ensure_is(&file, uuid, record)?;
            return Ok(file);
        }
        let is_quarantined = self.contents.is_quarantined_file(uuid);
        let path = files::current_path(&self.path, uuid, is_quarantined);
        files::open_at(&self.path, &path, uuid, record, false)
    }

    /// All bytes of a puddle as recovery would leave it.
    ///
    /// # Errors
    /// As [`ReadOnlyStore::puddle`].
    pub fn puddle_bytes(&self, uuid: Uuid) -> Result<Vec<u8>> {
        let view = self.puddle(uuid)?;
        view.bytes(0, view.header().size)
    }
}
