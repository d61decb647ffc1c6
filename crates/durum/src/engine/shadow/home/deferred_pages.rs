//! Pages that large copies fill, which wait with going home.
//!
//! A range that many commits rewrite as a whole, such as a grid in each time step, goes home once for all of them: a
//! page waits until its batch is written, and a later copy of it takes its place. Until then its bytes are in the log,
//! whose space is not used again before the batch is home. Should the later copy belong to the next batch, then the
//! batch counts as home without the page: the record of that copy is durable, and after a crash it is replayed.

use durum_persist::{Site, line, record as recorder};
use rustc_hash::FxHashMap;

use super::super::pages::puddle::note;
use crate::alloc::puddle_at;
use crate::before_images::before_change;
use crate::fault::Guard;
use crate::mapping::PAGE;

pub(crate) const PAGE_WRITE: Site = Site("shadow.checkpoint: write pages home that waited");
/// A step that a crash test leaves out.
const BEFORE_CHANGE: Site =
    Site("shadow.checkpoint: write a page home that waits before something of it changes");

/// Another one, of snapshots.
const KEEP_PAGE: Site = Site("snapshot: keep a page that waits to go home");

/// A page that is to hold these bytes.
#[derive(Clone, Copy, Debug)]
struct Contents {
    /// Where they begin in the log.
    source: usize,
    batch: u32,
}

/// The pages of two batches, by number (address divided by [`PAGE`]): who looks for pointers in this process's memory
/// is not to find any here.
#[derive(Debug, Default)]
pub(crate) struct DeferredPages {
    pages: FxHashMap<usize, Contents>,
    batch: u32,
    /// The pages of the batch that fills, in the order in which they came first.
    filling: Vec<usize>,
    /// Bytes of log that have to be kept for them, and for those that they have replaced.
    logged: usize,
    /// The pages of the batch before; those before `next` are written, or were replaced.
    leaving: Vec<usize>,
    next: usize,
}

impl DeferredPages {
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Whether no page of the batch that fills has come.
    pub(crate) fn is_batch_empty(&self) -> bool {
        self.filling.is_empty()
    }

    /// Bytes that were copied in the batch that fills.
    #[inline(always)]
    pub(crate) fn logged(&self) -> usize {
        self.logged
    }

    /// Whether every page of the batch that leaves is written, and how many it had.
    #[inline(always)]
    pub(crate) fn is_written(&self) -> bool {
        self.next == self.leaving.len()
    }

    #[inline(always)]
    pub(crate) fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// A record copies what begins at `source`, in the log, to the page with this number.
    pub(crate) fn insert(&mut self, page: usize, source: usize) {
        let contents = Contents {
            source,
            batch: self.batch,
        };
        let before = self.pages.insert(page, contents);
        if before.is_none_or(|before| before.batch != self.batch) {
            self.filling.push(page);
        }
        self.logged += PAGE;
    }

    /// The batch that fills leaves from now on; the one before has left.
    pub(crate) fn next_batch(&mut self) {
        debug_assert!(self.is_written(), "no page is forgotten");
        self.leaving.clear();
        self.next = 0;
        std::mem::swap(&mut self.filling, &mut self.leaving);
        self.batch = self.batch.wrapping_add(1);
        self.logged = 0;
    }

    /// Writes so many pages more of the batch that leaves to their homes, `offset` bytes further on. They are durable
    /// with this thread's next fence. How many were there to be written.
    pub(crate) fn write(&mut self, pages: usize, offset: usize) -> usize {
        let end = self.next.saturating_add(pages).min(self.leaving.len());
        let mut written = 0;
        for at in self.next..end {
            let page = self.leaving[at];
            if (self.pages.get(&page)).is_some_and(|contents| contents.batch != self.batch) {
                written += self.write_page(page, offset);
            }
        }
        self.next = end;
        written
    }

    /// Writes this page, of which something is about to change, if it waits. How many that are.
    #[inline]
    pub(crate) fn before_change(&mut self, page: usize, offset: usize) -> usize {
        match recorder::leaves_out(BEFORE_CHANGE) {
            true => 0,
            false => self.write_page(page, offset),
        }
    }

    /// Writes this page, if it waits. How many that are.
    #[inline]
    fn write_page(&mut self, page: usize, offset: usize) -> usize {
        let Some(contents) = self.pages.remove(&page) else {
            return 0;
        };
        let _guard = Guard::new();
        note(page * PAGE);
        if let Some(puddle) = puddle_at(page * PAGE) {
            // SAFETY: puddles live while their store is open.
            before_change(unsafe { puddle.as_ref() }, page * PAGE, PAGE, KEEP_PAGE);
        }
        let home = std::ptr::with_exposed_provenance_mut(page * PAGE + offset);
        let source = std::ptr::with_exposed_provenance(contents.source);
        // ORDER: durable with the next fence of this thread, before the record counts as home.
        // SAFETY: a page that a transaction filled, in the home mapping of its puddle, which stays until all its
        // records are home; so does the record, which does not overlap data. Only the holder of the checkpoint's lock
        // writes there.
        unsafe { line::copy_streaming(home, source, PAGE, PAGE_WRITE) };
        1
    }

    /// Writes all pages of both batches.
    pub(crate) fn write_all(&mut self, offset: usize) -> usize {
        let leaving = self.write(usize::MAX, offset);
        let filling = std::mem::take(&mut self.filling).into_iter();
        leaving
            + filling
                .map(|page| self.write_page(page, offset))
                .sum::<usize>()
    }
}
