//! Making ranges of puddles durable, in the way of their domain.
//!
//! On mapped domains a write-back is an instruction for each line and a fence waits for them. On `file` a write-back
//! is one `pwrite` of exactly the range, and a fence syncs each file that was written since the last one. Engines
//! are written once, against this.

use std::sync::{Arc, Mutex, PoisonError};

use durum_persist::Site;
use durum_persist::file::MediaFile;
use durum_persist::line;

use crate::before_images;
use crate::error::{Error, Result};
use crate::mapping::Mapping;
use crate::poison::Poison;

/// A step that a test leaves out.
const KEEP: Site = Site("snapshot: keep what is about to change in a file");

/// The write-backs of one thread that no fence has completed yet.
#[derive(Debug, Default)]
pub(crate) struct Barrier {
    /// Files written since the last fence, on `file` only.
    written: Vec<(MediaFile, Arc<Poison>, Arc<Mutex<()>>)>,
}

impl Barrier {
    /// Starts making `[address, address + len)` durable. It is after the next `fence` of this barrier.
    #[inline(always)]
    pub(crate) fn write_back(
        &mut self,
        puddle: &Mapping,
        address: usize,
        len: usize,
        site: Site,
    ) -> Result<()> {
        debug_assert!(puddle.contains(address, len));
        if puddle.private {
            return self.write_file(puddle, address, len);
        }
        // SAFETY: the range lies inside a mapped puddle.
        unsafe { line::write_back(address as *const u8, len, site) };
        Ok(())
    }

    #[cold]
    fn write_file(&mut self, puddle: &Mapping, address: usize, len: usize) -> Result<()> {
        // SAFETY: the range lies inside a mapped puddle; writers of the same bytes are excluded by the transaction's
        // isolation, for shared words by `word_writer`.
        let bytes = unsafe { std::slice::from_raw_parts(address as *const u8, len) };
        self.write_bytes(puddle, (address - puddle.address) as u64, bytes)
    }

    /// Writes bytes to a puddle's file (`file` domain). They are durable after the next `fence` of this barrier.
    pub(crate) fn write_bytes(
        &mut self,
        puddle: &Mapping,
        offset: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let Some(file) = puddle.file() else {
            let address = puddle.address + offset as usize;
            let len = bytes.len();
            return Err(Error::NotInPool { address, len });
        };
        before_images::before_write(puddle, offset, bytes.len(), KEEP);
        file.write_all_at(bytes, offset).map_err(|source| {
            tracing::error!(file = %puddle.path.display(), %source, "a write failed");
            puddle.poison.set(
                &puddle.path,
                offset,
                "a write failed, so what is on the media is unknown",
            );
            puddle
                .poison
                .check()
                .err()
                .unwrap_or_else(|| Error::system("writing a puddle file", source))
        })?;
        if !self
            .written
            .iter()
            .any(|(other, _, _)| other.path() == puddle.path)
        {
            self.written
                .push((file, puddle.poison.clone(), puddle.syncing.clone()));
        }
        Ok(())
    }

    /// Writes back an 8-byte word that several threads change by atomic operations.
    #[inline]
    pub(crate) fn write_back_word(
        &mut self,
        puddle: &Mapping,
        address: usize,
        site: Site,
    ) -> Result<()> {
        if puddle.private {
            let _newest_last = puddle
                .word_writer
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            return self.write_file(puddle, address, 8);
        }
        self.write_back(puddle, address, 8, site)
    }

    /// Completes all write-backs made through this barrier.
    ///
    /// # Errors
    /// A sync failed: the pool of that file (the store, for a log) is poisoned, because nobody can tell what reached
    /// the media.
    #[inline(always)]
    pub(crate) fn fence(&mut self, private: bool, site: Site) -> Result<()> {
        if private {
            return self.sync(site);
        }
        line::fence(site);
        Ok(())
    }

    #[cold]
    fn sync(&mut self, site: Site) -> Result<()> {
        for (file, poison, syncing) in std::mem::take(&mut self.written) {
            // The kernel tells a lost write to one of those who sync. Under the lock, whoever syncs next finds the
            // poison.
            let _one_at_a_time = syncing.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(source) = file.sync(site) {
                tracing::error!(file = %file.path().display(), %source, "a sync failed");
                poison.set(
                    file.path(),
                    0,
                    "a sync failed, so what is on the media is unknown",
                );
            }
            poison.check()?;
        }
        Ok(())
    }
}
