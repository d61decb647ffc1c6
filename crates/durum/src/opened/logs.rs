//! How a store makes logs, names them in its log space, and gives them back.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use durum_format::UNIT;
use durum_format::log_space::{self, LogSpaceEntry};
use durum_format::puddle::{PuddleKind, heap_offset, heap_size};
use durum_persist::domain::{self, Domain};
use durum_persist::{Site, line};
use durum_service::{PuddleGrant, PuddleOwner};

use super::store::{StoreInner, random_bytes};
use crate::alloc::Puddle;
use crate::error::{Error, Result};
use crate::log::{LogWriter, MoreLog};
use crate::logs::{LogSpace, LogsState, SPARES};
use crate::mapping::Owner;
use crate::media::Barrier;
use crate::sites::sites;

sites! {
    SPACE_WRITE = "log space: write back the header";
    SPACE_FENCE = "log space: fence after the header";
    NAME_WRITE = "log space: write back the entry that names a log";
    NAME_FENCE = "log space: fence after the entry that names a log";
}
/// Of no use to a crash test: nothing depends on it.
const ZERO_SYNC: Site = Site("log: sync the zeros of a new log puddle (file domain)");

impl StoreInner {
    /// A fresh puddle of this client, mapped.
    pub(crate) fn log_puddle(&self, kind: PuddleKind) -> Result<Arc<Puddle>> {
        let _span = tracing::debug_span!("grow_log").entered();
        let grant = self
            .neighbours
            .place(|service| service.create_puddle(PuddleOwner::Client, kind, UNIT))?;
        let uuid = grant.uuid;
        let puddle = self.map_log(grant).inspect_err(|_| {
            // Nothing names it yet.
            let _ = self.service.remove_puddle(uuid);
        })?;
        self.note_client_puddle(&puddle);
        Ok(puddle)
    }

    /// Maps a puddle of another client's that this one goes on with.
    pub(crate) fn map_client_puddle(&self, grant: PuddleGrant) -> Result<Arc<Puddle>> {
        let puddle = self.map_log(grant)?;
        self.note_client_puddle(&puddle);
        Ok(puddle)
    }

    fn note_client_puddle(&self, puddle: &Arc<Puddle>) {
        let mut known = self.logs.puddles();
        known.retain(|puddle| puddle.strong_count() > 0);
        known.push(Arc::downgrade(puddle));
    }

    fn map_log(&self, grant: PuddleGrant) -> Result<Arc<Puddle>> {
        let failed = |source| Error::system("looking at a log puddle", source);
        if self.private && domain::of_file(&grant.file).map_err(failed)? != Domain::Dram {
            // Written once with zeros, a log is overwritten in place: a sync then costs no file system metadata. There
            // is none without a disk.
            let start = heap_offset(UNIT);
            let zeros = vec![0u8; heap_size(UNIT) as usize];
            let failed = |source| Error::system("zeroing a log puddle", source);
            grant.file.write_all_at(&zeros, start).map_err(failed)?;
            // ORDER: nothing depends on the zeros, which a fresh file reads as anyway; synced now, because a block that
            // is allocated at a commit would cost that commit a journal entry.
            grant.file.sync(ZERO_SYNC).map_err(failed)?;
        }
        let owner = Owner {
            store_key: self.key,
            pool_key: 0,
            pool: Weak::<()>::new(),
            poison: self.poison.clone(),
            survive: false,
            home: None,
            back: None,
            beside: None,
            kept: None,
            is_writable: true,
            is_claimed: false,
        };
        Puddle::map(grant, owner, self.info.domain, self.space, &self.info.path)
    }

    /// The error of a log page that failed, if any.
    pub(crate) fn check_logs(&self) -> Result<()> {
        self.logs
            .puddles()
            .iter()
            .filter_map(Weak::upgrade)
            .try_for_each(|puddle| puddle.check_failed())
    }

    /// A log for this thread: armed, and named in the log space.
    pub(crate) fn acquire_log(&self, barrier: &mut Barrier) -> Result<LogWriter> {
        let mut logs = self.logs.lock();
        if let Some(log) = logs.idle.pop() {
            return Ok(log);
        }
        if logs.space.is_none() {
            logs.space = Some(self.create_log_space(barrier)?);
        }
        let log_id = u64::from_le_bytes(random_bytes()?);
        let puddle = self.entry_puddle(&mut logs)?;
        let made =
            LogWriter::create(puddle.clone(), log_id, self.info.client, barrier).and_then(|log| {
                match &mut logs.space {
                    Some(space) => self.name_log(space, log, barrier),
                    None => Ok(log),
                }
            });
        drop(logs);
        made.inspect_err(|_| self.abandon(&puddle))
    }

    /// A fresh puddle for a log of entries; on a full disk a spare one.
    fn entry_puddle(&self, logs: &mut LogsState) -> Result<Arc<Puddle>> {
        match self.log_puddle(PuddleKind::Log) {
            Err(full @ Error::Store(durum_service::Error::StorageFull { .. })) => {
                let spare = logs.spares.pop().ok_or(full)?;
                self.logs.lacks_spares.store(true, Ordering::Relaxed);
                Ok(spare)
            }
            other => other,
        }
    }

    /// Sees to it that a first log is at hand: whether there was none. Without room the first transaction that needs
    /// one reports it.
    pub(crate) fn prepare_first_log(&self) -> bool {
        let is_first = self.logs.lock().space.is_none();
        if is_first && let Ok(log) = self.acquire_log(&mut Barrier::default()) {
            self.release_log(log);
        }
        is_first
    }

    /// Sees to it that there are spare puddles for logs of entries.
    pub(crate) fn prepare_spares(&self) {
        let mut logs = self.logs.lock();
        while logs.spares.len() < SPARES
            && let Ok(spare) = self.log_puddle(PuddleKind::Log)
        {
            logs.spares.push(spare);
        }
    }

    pub(crate) fn release_log(&self, log: LogWriter) {
        self.logs.lock().idle.push(log);
    }

    fn create_log_space(&self, barrier: &mut Barrier) -> Result<LogSpace> {
        let puddle = self.log_puddle(PuddleKind::LogSpace)?;
        self.register_log_space(&puddle, barrier)
            .inspect_err(|_| self.abandon(&puddle))?;
        Ok(LogSpace { puddle, next: 0 })
    }

    fn register_log_space(&self, puddle: &Puddle, barrier: &mut Barrier) -> Result<()> {
        let header = log_space::encode_header(self.info.client);
        let offset = heap_offset(puddle.size as u64) as usize;
        // SAFETY: the header's place in a fresh puddle that only this thread knows.
        unsafe { line::copy(puddle.at(offset).as_ptr(), header.as_ptr(), header.len()) };
        barrier.write_back(puddle, puddle.address + offset, header.len(), SPACE_WRITE)?;
        // ORDER: the header is durable before the service is told to read this log space in recovery.
        barrier.fence(self.private, SPACE_FENCE)?;
        Ok(self.service.register_log_space(puddle.uuid)?)
    }

    /// The disk is full, which `full` says, and so are the logs. Where there are none, no smaller transaction would do.
    pub(crate) fn log_full(&self, full: Error) -> Error {
        let logs = self.logs.puddles();
        let logs = logs.iter().filter_map(Weak::upgrade);
        match logs.map(|puddle| puddle.size as u64).sum() {
            0 => full,
            bytes => Error::LogFull {
                path: self.info.path.clone(),
                bytes,
            },
        }
    }

    /// Removes a log puddle that nothing names any more.
    pub(crate) fn remove_log_puddle(&self, puddle: &Puddle) {
        puddle.unmap();
        if let Err(error) = self.service.remove_puddle(puddle.uuid) {
            // It goes with the client, when the store is closed.
            tracing::warn!(puddle = %puddle.uuid, %error, "a log puddle could not be given back");
        }
    }

    /// Takes a log puddle back that nothing names, because what was to name it failed.
    fn abandon(&self, puddle: &Puddle) {
        // After a failed write or sync nobody knows what names it: the next opener looks.
        if self.poison.check().is_ok() {
            self.remove_log_puddle(puddle);
        }
    }

    fn name_log(
        &self,
        space: &mut LogSpace,
        log: LogWriter,
        barrier: &mut Barrier,
    ) -> Result<LogWriter> {
        let puddle = &space.puddle;
        if space.next >= log_space::capacity(heap_size(puddle.size as u64)) {
            return Err(Error::LogMisuse {
                reason: "the log space is full: more threads than entries",
            });
        }
        let entry = LogSpaceEntry {
            log_id: log.log_id(),
            puddle: log.head().uuid,
            address: log.head().address as u64,
        };
        let bytes = entry.encode();
        let offset =
            (heap_offset(puddle.size as u64) + log_space::entry_offset(space.next)) as usize;
        // SAFETY: a free entry of the log space, which is changed under the lock of `logs` only.
        unsafe { line::copy(puddle.at(offset).as_ptr(), bytes.as_ptr(), bytes.len()) };
        barrier.write_back(puddle, puddle.address + offset, bytes.len(), NAME_WRITE)?;
        // ORDER: recovery can find the log before its first entry protects anything.
        barrier.fence(self.private, NAME_FENCE)?;
        space.next += 1;
        Ok(log)
    }
}

impl MoreLog for StoreInner {
    fn continuation(&self, log_id: u64) -> Result<Arc<Puddle>> {
        let puddle = self.entry_puddle(&mut self.logs.lock());
        let puddle = puddle.map_err(|error| match error {
            full @ Error::Store(durum_service::Error::StorageFull { .. }) => self.log_full(full),
            other => other,
        })?;
        let (client, mut barrier) = (self.info.client, Barrier::default());
        LogWriter::create_continuation(&puddle, log_id, client, &mut barrier)
            .inspect_err(|_| self.abandon(&puddle))?;
        Ok(puddle)
    }

    fn give_back(&self, puddle: Arc<Puddle>) {
        if self.lacks_spares() {
            let mut logs = self.logs.lock();
            let missing = SPARES.saturating_sub(logs.spares.len());
            self.logs.lacks_spares.store(missing > 1, Ordering::Relaxed);
            if missing > 0 {
                logs.spares.push(puddle);
                return;
            }
        }
        self.remove_log_puddle(&puddle);
    }

    fn lacks_spares(&self) -> bool {
        self.logs.lacks_spares.load(Ordering::Relaxed)
    }
}
