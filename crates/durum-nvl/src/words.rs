//! Words of counts and lists, changed in a transaction in the way that costs its engine least.
//!
//! Shadow keeps old words at no cost, so they are announced and stored at once. On the other engines each announced
//! range may take a fence, and deferred stores take three together: so the words are gathered here, read back from
//! here, and deferred when the transaction is about to commit.

use durum::{Announce, Engine, Result, Tx};
use rustc_hash::FxHashMap;

use crate::heap::{Counts, Heap};
use crate::layout::{put, word};

/// The changes of one heap in one transaction, while its counts are locked.
pub(crate) struct Words<'t> {
    tx: &'t Tx,
    pub(crate) heap: &'t Heap,
    pub(crate) counts: &'t mut Counts,
    deferred: Option<FxHashMap<usize, u64>>,
}

impl<'t> Words<'t> {
    pub(crate) fn new(tx: &'t Tx, heap: &'t Heap, counts: &'t mut Counts) -> Self {
        let is_deferred = heap.engine() != Engine::Shadow;
        Self {
            tx,
            heap,
            counts,
            deferred: is_deferred.then(FxHashMap::default),
        }
    }

    /// The transaction.
    pub(crate) fn tx(&self) -> &'t Tx {
        self.tx
    }

    /// What the word will be.
    #[inline]
    pub(crate) fn read(&self, address: usize) -> u64 {
        match self.deferred.as_ref().and_then(|words| words.get(&address)) {
            Some(value) => *value,
            // SAFETY: words of open heaps that the caller has locked.
            None => unsafe { word(address) },
        }
    }

    /// Changes it.
    #[inline]
    pub(crate) fn write(&mut self, address: usize, value: u64) -> Result<()> {
        if let Some(words) = &mut self.deferred {
            words.insert(address, value);
            return Ok(());
        }
        // SAFETY: a word of an open heap that the caller has locked until the transaction has ended.
        unsafe {
            let target = std::ptr::with_exposed_provenance(address);
            self.tx.add_bytes(target, 8, Announce::Backup)?;
            put(address, value);
        }
        Ok(())
    }

    /// Nothing more changes in this transaction.
    pub(crate) fn finish(self) -> Result<()> {
        let mut words: Vec<_> = self.deferred.unwrap_or_default().into_iter().collect();
        words.sort_unstable();
        for (address, value) in words {
            // SAFETY: as in `write`.
            unsafe {
                self.tx
                    .set(std::ptr::with_exposed_provenance_mut(address), value)?
            };
        }
        Ok(())
    }

    /// Forgets the first words of an object that is freed: nobody reads them any more.
    pub(crate) fn forget(&mut self, start: usize, bytes: usize) {
        if let Some(words) = &mut self.deferred {
            for address in (start..start + bytes).step_by(8) {
                words.remove(&address);
            }
        }
    }
}
