//! Words that a program keeps about persistent cells while it runs: borrow flags, locks, pins.
//!
//! Each cell has a word of its own in the pool, so that cells have distinct addresses for it. What is kept about it
//! lies elsewhere, at the same distance from every word: in memory that is zero when the pool is opened and goes with
//! it. So no lock survives a crash, nothing is ever logged or written back for one, reading through a cell does not
//! copy the page that it lies in (Shadow works in private pages), and a page may be given back while a cell in it is
//! borrowed. A cell that is not in the pool yet, on the stack, uses its word itself.

use std::path::Path;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crate::addresses::Beside;
use crate::error::Result;

/// A kind of words. What its bits say is told where the type is.
///
/// # Safety
/// Transparent over an `AtomicU64`, in which 0 says that there is nothing to know.
pub(super) unsafe trait VolatileWord {}

// SAFETY: itself.
unsafe impl VolatileWord for AtomicU64 {}

/// Where the words of an open pool are; all zero while none is open.
#[derive(Debug)]
pub(super) struct VolatileWords {
    base: AtomicUsize,
    size: AtomicUsize,
    /// What to add to the address of a word in the pool.
    distance: AtomicUsize,
}

impl VolatileWords {
    pub(super) const fn new() -> Self {
        Self {
            base: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
            distance: AtomicUsize::new(0),
        }
    }

    /// The words of a pool in the space of `size` bytes at `base`; the pool has to be opened with what
    /// [`WordsMapping::beside`] gives. Addresses are taken for its puddles, memory for pages that are used.
    ///
    /// # Errors
    /// `AddressSpace`.
    pub(super) fn reserve(
        &'static self,
        base: usize,
        size: usize,
        store: &Path,
    ) -> Result<WordsMapping> {
        let beside = Beside::new(base, size).map_err(|refused| refused.error(store))?;
        self.distance.store(beside.distance(), Ordering::Relaxed);
        self.base.store(base, Ordering::Relaxed);
        self.size.store(size, Ordering::Release);
        Ok(WordsMapping {
            beside: Arc::new(beside),
            words: self,
        })
    }

    /// Whether an address lies where the pool's objects do.
    #[inline(always)]
    pub(super) fn hold(&self, address: usize) -> bool {
        address.wrapping_sub(self.base.load(Ordering::Relaxed)) < self.size.load(Ordering::Relaxed)
    }

    /// What is kept about a cell whose own word is this; itself, if it is not in the pool.
    #[inline(always)]
    pub(super) fn of<'a, W: VolatileWord>(&self, word: &'a W) -> &'a W {
        let address = ptr::from_ref(word).addr();
        match self.hold(address) {
            // SAFETY: whoever has a reference into the pool keeps it open, and the words with it.
            true => unsafe { self.at(address) },
            false => word,
        }
    }

    /// What is kept about the word at an address in the pool.
    ///
    /// # Safety
    /// [`VolatileWords::hold`] said so, a word of this kind lies there, and the pool stays open as long as the
    /// reference is used.
    #[inline(always)]
    pub(super) unsafe fn at<'a, W: VolatileWord>(&self, address: usize) -> &'a W {
        let address = address.wrapping_add(self.distance.load(Ordering::Relaxed));
        // SAFETY: beside a puddle of the pool, as far from the word as all words are, and as well aligned.
        unsafe { &*ptr::with_exposed_provenance(address) }
    }
}

/// The memory of the words; unmapped when the pool has been closed.
#[derive(Debug)]
pub(super) struct WordsMapping {
    beside: Arc<Beside>,
    words: &'static VolatileWords,
}

impl WordsMapping {
    /// What the pool's puddles need beside them.
    pub(super) fn beside(&self) -> Arc<Beside> {
        self.beside.clone()
    }
}

impl Drop for WordsMapping {
    fn drop(&mut self) {
        self.words.size.store(0, Ordering::Release);
    }
}
