//! The low-level log: entries with the caller's own sequence numbers, order and ranges (Puddles §4.1).
//!
//! For those who build their own kind of transaction and want recovery by the service for it. Transactions of a pool
//! use the same logs and the same format (`docs/format/log.md`).

use std::sync::Arc;

use durum_format::log::{ENTRY_HEADER_SIZE, EntryFlags, EntryHeader, Order};
use durum_persist::{Site, line};

use crate::alloc::{puddle_at, puddle_followed_at};
use crate::before_images::before_store;
use crate::error::{Error, Result};
use crate::fault::check_forked;
use crate::log::LogWriter;
use crate::media::Barrier;
use crate::opened::{PoolInner, Store, StoreInner};
use crate::sites::sites;

/// A step that a test leaves out.
const KEEP: Site = Site("snapshot: keep what a log of the program's own is about");

sites! {
    FLUSH_WRITE = "raw log: write back entries";
    FLUSH_FENCE = "raw log: fence after entries";
    RANGE_WRITE = "raw log: write back the range word";
    RANGE_FENCE = "raw log: fence after the range word";
    APPLY_WRITE = "raw log: write back applied entries";
    APPLY_FENCE = "raw log: fence after applied entries";
    RESET_WRITE = "raw log: write back the next generation's range word";
    RESET_FENCE = "raw log: fence after the next generation's range word";
}

/// In which order entries are replayed, and whether recovery sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawEntry {
    /// Compared with the log's range: an entry counts if `lo < sequence < hi`.
    pub sequence: u8,
    /// `Reverse` entries are applied first, last written first (undo); then `Forward` ones in order (redo).
    pub order: Order,
    /// The target is volatile memory: [`RawLog::apply`] writes it, recovery ignores it.
    pub volatile: bool,
}

impl RawEntry {
    /// An undo entry: sequence 1, reverse. Counts in range (0,2), in which a log begins.
    pub const UNDO: Self = Self {
        sequence: 1,
        order: Order::Reverse,
        volatile: false,
    };
    /// A redo entry: sequence 3, forward. Counts in range (2,4).
    pub const REDO: Self = Self {
        sequence: 3,
        order: Order::Forward,
        volatile: false,
    };
}

/// A log of the caller's own. It begins empty, with range (0,2).
///
/// One thread at a time uses it. It keeps the pools open that its entries lie in, until it is reset. If the process
/// dies, the service replays the entries that the durable range admits, before any pool is handed out again. Dropping
/// it resets it.
#[derive(Debug)]
pub struct RawLog {
    store: Arc<StoreInner>,
    log: Option<LogWriter>,
    barrier: Barrier,
    range: (u8, u8),
    /// Addresses of the entries of this generation.
    entries: Vec<usize>,
    /// The pools that entries lie in: recovery can replay them only while these are open.
    pools: Vec<Arc<PoolInner>>,
}

impl Store {
    /// Takes a log for the caller's own use; it is found by recovery from now on.
    ///
    /// # Errors
    /// Store errors when a puddle has to be made.
    pub fn raw_log(&self) -> Result<RawLog> {
        let mut barrier = Barrier::default();
        let log = self.inner.acquire_log(&mut barrier)?;
        Ok(RawLog {
            store: self.inner.clone(),
            log: Some(log),
            barrier,
            range: (0, 2),
            entries: Vec::new(),
            pools: Vec::new(),
        })
    }
}

impl RawLog {
    /// Appends an entry that holds `len` bytes at `source`, to be copied to `target` when it is applied. Pass the
    /// target itself as the source to log its present contents (undo).
    ///
    /// Durable after the next [`RawLog::flush`].
    ///
    /// # Safety
    /// `source` has `len` readable bytes that nobody changes meanwhile.
    ///
    /// # Errors
    /// `NotInPool` for a persistent target outside the open pools of this store: recovery would refuse it.
    /// `LogMisuse` for sequence 0, and for targets in pools of another engine than Hybrid. Store errors when the log
    /// has to grow. Nothing is appended then.
    pub unsafe fn append(
        &mut self,
        target: *mut u8,
        source: *const u8,
        len: usize,
        entry: RawEntry,
    ) -> Result<()> {
        let address = target.expose_provenance();
        self.check()?;
        if len == 0 {
            return Ok(());
        }
        if entry.sequence == 0 {
            return Err(Error::LogMisuse {
                reason: "sequence number 0 is the log's own",
            });
        }
        if !entry.volatile {
            let refused = || Error::NotInPool { address, len };
            let puddle = puddle_followed_at(address)?.ok_or_else(refused)?;
            // SAFETY: puddles live while their store is open; of another store's only plain fields are read.
            let puddle = unsafe { puddle.as_ref() };
            if puddle.store_key != self.store.key
                || puddle.pool_key == 0
                || !puddle.holds(address, len)
            {
                return Err(refused());
            }
            if !self.pools.iter().any(|pool| pool.key == puddle.pool_key) {
                let pool = PoolInner::of(puddle).ok_or_else(refused)?;
                pool.check_usable()?;
                if !pool.facts.works_in_place {
                    return Err(Error::LogMisuse {
                        reason: "it works on pools of the Hybrid engine only: elsewhere, what the program changes in place is not what recovery changes",
                    });
                }
                self.pools.push(pool);
            }
            // The program stores there next, or `apply` does.
            before_store(puddle, address, len, KEEP);
        }
        let flags = match entry.volatile {
            true => EntryFlags::VOLATILE,
            false => EntryFlags::NONE,
        };
        let log = self.log.as_mut().ok_or(Error::NoTransaction)?;
        // SAFETY: readable and unchanged, as the caller promises.
        let data = unsafe { std::slice::from_raw_parts(source, len) };
        let kind = (entry.order, flags, entry.sequence);
        let (more, barrier) = (&*self.store, &mut self.barrier);
        let visit = |at| self.entries.push(at);
        log.append_copy(kind, address as u64, data, more, barrier, visit)
    }

    /// Refuses to go on after a fork, or after a write or a sync failed.
    fn check(&self) -> Result<()> {
        check_forked()?;
        self.store.poison.check()
    }

    /// Makes the entries appended so far durable: one fence.
    ///
    /// # Errors
    /// On the `file` domain a failed write or sync, which poisons the store.
    pub fn flush(&mut self) -> Result<()> {
        self.check()?;
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        // ORDER: the entries are durable on return, before the caller stores what they protect or admits them.
        log.make_durable(&mut self.barrier, FLUSH_WRITE, FLUSH_FENCE)
    }

    /// Changes which entries count, by one atomic 8-byte store; durable on return: one fence.
    ///
    /// # Errors
    /// As for [`RawLog::flush`]; `LogMisuse` if `lo > hi`.
    pub fn set_range(&mut self, lo: u8, hi: u8) -> Result<()> {
        self.check()?;
        if lo > hi {
            return Err(Error::LogMisuse {
                reason: "a range begins at or below its end",
            });
        }
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        log.write_range(lo, hi, &mut self.barrier, RANGE_WRITE)?;
        // ORDER: from here on the caller relies on exactly these entries counting.
        self.barrier.fence(log.private(), RANGE_FENCE)?;
        self.range = (lo, hi);
        Ok(())
    }

    /// Applies the entries that count now, in their order, and makes their targets durable: one fence.
    ///
    /// # Safety
    /// The targets are valid, volatile ones included, and no other thread uses them.
    ///
    /// # Errors
    /// As for [`RawLog::flush`].
    pub unsafe fn apply(&mut self) -> Result<()> {
        self.check()?;
        let Some(log) = &self.log else {
            return Ok(());
        };
        let (lo, hi) = self.range;
        let header = |at: usize| {
            // SAFETY: the entry was written at this address by `append`, in a log puddle that is still mapped.
            EntryHeader::from_bytes(unsafe { &*(at as *const [u8; ENTRY_HEADER_SIZE]) })
        };
        let admitted = |at: &&usize| {
            let sequence = header(**at).sequence;
            lo < sequence && sequence < hi
        };
        let is = |order: Order| move |at: &&usize| header(**at).order == order as u8;
        let counting = || self.entries.iter().filter(admitted);
        let reverse = counting().rev().filter(is(Order::Reverse));
        for &at in reverse.chain(counting().filter(is(Order::Forward))) {
            let entry = header(at);
            let (target, len) = (entry.target as usize, entry.size as usize);
            let data = (at + ENTRY_HEADER_SIZE) as *const u8;
            if entry.flags & EntryFlags::VOLATILE.bits() != 0 {
                // SAFETY: valid and unshared, as the caller promises.
                unsafe { std::ptr::copy_nonoverlapping(data, target as *mut u8, len) };
                continue;
            }
            // SAFETY: the target was checked by `append`; the data follows the entry's header.
            unsafe { line::copy(target as *mut u8, data, len) };
            if let Some(puddle) = puddle_at(target) {
                // SAFETY: puddles live while their store is open.
                let puddle = unsafe { puddle.as_ref() };
                (self.barrier).write_back(puddle, target, len, APPLY_WRITE)?;
            }
        }
        // ORDER: the targets are durable on return, before the caller takes the entries out of effect.
        self.barrier.fence(log.private(), APPLY_FENCE)
    }

    /// Empties the log: no entry counts any more, and its range is (0,2) again. Durable on return: one fence.
    ///
    /// # Errors
    /// As for [`RawLog::flush`].
    pub fn reset(&mut self) -> Result<()> {
        self.check()?;
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        log.retire(&mut self.barrier, RESET_WRITE)?;
        // ORDER: the old entries are out of effect before the caller, or another thread, changes their targets again.
        self.barrier.fence(log.private(), RESET_FENCE)?;
        self.entries.clear();
        self.pools.clear();
        self.range = (0, 2);
        Ok(())
    }
}

impl Drop for RawLog {
    fn drop(&mut self) {
        let clean = self.entries.is_empty() && self.range == (0, 2);
        if (clean || self.reset().is_ok())
            && let Some(mut log) = self.log.take()
        {
            log.trim(&*self.store);
            self.store.release_log(log);
        }
    }
}
