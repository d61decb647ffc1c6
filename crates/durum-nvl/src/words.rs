//! Words of heaps: read, stored, and, those of counts and lists, changed in a transaction in the way that costs its
//! engine least.
//!
//! Shadow keeps old words at no cost, so they are announced and stored at once. On the other engines each announced
//! range may take a fence, and deferred stores take three together: so the words are gathered here, read back from
//! here, and deferred when the transaction is about to commit.

use durum::{Announce, Engine, Result, Tx};
use rustc_hash::FxHashMap;

/// Reads a word of a heap.
///
/// # Safety
/// It lies in an open heap, and nobody stores there at this moment.
#[inline]
pub(crate) unsafe fn word(address: usize) -> u64 {
    // SAFETY: as the caller promises.
    unsafe { std::ptr::with_exposed_provenance::<u64>(address).read() }
}

/// Stores a word that no transaction has to know of.
///
/// # Safety
/// It lies in an open heap, in an object that only this thread knows.
#[inline]
pub(crate) unsafe fn put(address: usize, value: u64) {
    // SAFETY: as the caller promises.
    unsafe { std::ptr::with_exposed_provenance_mut::<u64>(address).write(value) }
}

/// The changes of one transaction.
pub(crate) struct Words<'t> {
    tx: &'t Tx,
    deferred: Option<FxHashMap<usize, u64>>,
}

impl<'t> Words<'t> {
    pub(crate) fn new(tx: &'t Tx, engine: Engine) -> Self {
        let is_deferred = engine != Engine::Shadow;
        Self {
            tx,
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
