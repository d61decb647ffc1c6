//! Sections: a transaction whose changes are found, not announced.
//!
//! ```text
//! begin   gate closed, every record applied     home = what is committed
//!         pages of the pool protected           private pages = home, where nobody owes us an `add`
//! body    plain stores                          the kernel notes the pages
//! commit  these pages compared with home, word by word -> the record, beside what was announced
//! abort   these pages compared with home, word by word -> put back
//! ```
//!
//! Nobody else can commit or apply records meanwhile, so that home stays as it is until the section's own record is
//! applied.
//!
//! Private pages may differ from home where nobody has changed anything in this section: in free memory (what an
//! aborted transaction left), and in words that a program keeps there without announcing them, such as locks. Where
//! they share a page with a change they go to the log; nobody misses or minds them there. Putting free memory back does
//! no harm either, with one exception ([`Section::restore`]).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use durum_format::record::{Operation, push_words};
use durum_persist::line::LINE;

use super::compare::whole_words;
use super::home::files::Page;
use super::pages::puddle::note_in;
use super::shared::state::Shared;
use crate::alloc::{Puddle, PuddleHeap};
use crate::announced::Announced;
use crate::error::{Error, Result};
use crate::fault::{forked, guarded};
use crate::gate::Closed;
use crate::mapping::PAGE;
use crate::opened;
use crate::opened::{PoolInner, StoreInner};
use crate::pages::{self, Method, PageTracking};

/// What the engine keeps about a pool.
#[derive(Debug)]
pub(super) struct OfPool {
    tracking: PageTracking,
    /// The store's next stamp when the last section ended; 0: there was none.
    next_stamp: AtomicU64,
}

impl opened::OfPool for OfPool {}

impl OfPool {
    pub(super) fn new(tracking: PageTracking) -> Self {
        Self {
            tracking,
            next_stamp: AtomicU64::new(0),
        }
    }

    fn of(pool: &PoolInner) -> Result<&Self> {
        pool.kept().ok_or(Error::NoTransaction)
    }
}

/// A section that is open.
#[derive(Debug)]
pub(super) struct Section {
    puddles: Vec<(Arc<Puddle>, Method)>,
    /// What has changed, once that was asked.
    found: Option<Vec<Vec<Range<usize>>>>,
    /// Opens when the section is dropped.
    _gate: Closed,
}

impl Section {
    /// Begins: from here on, changes of the pool are noticed. The queue is empty.
    pub(super) fn begin(shared: &Shared, pool: &PoolInner, gate: Closed) -> Result<Self> {
        let kept = OfPool::of(pool)?;
        // Before pages are protected: what is applied changes pages that nobody has written to.
        shared.apply_drawn(&pool.store)?;
        // A change of one that is mapped later would not be noticed.
        pool.frontier.map_all()?;
        let puddles = pool.heap.puddles();
        let mut section = Self {
            puddles: Vec::with_capacity(puddles.len()),
            found: None,
            _gate: gate,
        };
        // A record changes a page or a few, and comparing one that has not changed in this section costs as much as to
        // protect 2 MiB anew.
        let next = kept.next_stamp.load(Ordering::Relaxed);
        let commits = shared.stamps.drawn() + 1 - next;
        let units: usize = puddles.iter().map(|puddle| puddle.size >> 21).sum();
        let is_quiet = next > 0 && commits < units as u64;
        for puddle in puddles.iter() {
            // In an unused one there is nothing that a program may change, except what the section allocates itself,
            // which is announced.
            if puddle.heap.get().is_none_or(|heap| !heap.is_unused()) {
                let method = pages::start(puddle, kept.tracking, is_quiet)?;
                section.puddles.push((puddle.clone(), method));
            }
        }
        Ok(section)
    }

    /// Stops looking, and remembers what was found.
    fn find(&mut self) {
        if self.found.is_none() {
            let changed = |(puddle, method): &(Arc<Puddle>, Method)| {
                let mut found = Vec::new();
                pages::stop(puddle, *method, &mut found);
                found
            };
            self.found = Some(self.puddles.iter().map(changed).collect());
        }
    }

    /// Visits each line in which a word differs from home: its puddle, its address, which words differ, and what they
    /// are at both places.
    fn compare(
        &mut self,
        shared: &Shared,
        mut visit: impl FnMut(&Puddle, usize, u8, &[u64; 8], &[u64; 8]),
    ) -> Result<()> {
        self.find();
        let mut buffer: Page = [0; PAGE / 8];
        let found = self.found.iter().flatten();
        let puddles = self.puddles.iter().zip(found);
        let mut pages = puddles.flat_map(|((puddle, _), ranges)| {
            let pages = ranges.iter().flat_map(|range| range.clone().step_by(PAGE));
            pages.map(move |page| (puddle, page))
        });
        shared.with_home(|home| {
            pages.try_for_each(|(puddle, page)| {
                let home = home.page(puddle, page, &mut buffer)?;
                guarded(|| {
                    for (at, home) in (page..).step_by(LINE).zip(home.as_chunks::<8>().0) {
                        // SAFETY: a line of a mapped puddle. The section's caller promised that no other thread changes
                        // it.
                        let now = unsafe { (at as *const [u64; 8]).read() };
                        if now != *home {
                            let differs = |index: &usize| now[*index] != home[*index];
                            let mask = (0..8)
                                .filter(differs)
                                .fold(0, |mask, index| mask | 1 << index);
                            visit(puddle, at, mask, &now, home);
                        }
                    }
                });
                Ok(())
            })
        })
    }

    /// Puts the words that the section has changed into the record; not those that are there anyway because they are
    /// announced.
    ///
    /// Before anything else is put there: deferred changes of the same words come later.
    pub(super) fn push_changes(
        &mut self,
        shared: &Shared,
        store: &StoreInner,
        announced: &Announced,
        record: &mut Vec<u64>,
    ) -> Result<()> {
        // What the body made durable by itself (`Pool::persist`) comes home before this record: a word that was changed
        // back since differs from that.
        shared.apply_drawn(store)?;
        self.compare(shared, |_, line, mask, now, _| {
            let mask = mask & !whole_words(announced.not_saved(line / LINE));
            if mask != 0 {
                push_words(record, Operation::Store, line as u64, mask, now);
            }
        })
    }

    /// Puts back what the section has changed. Announced memory was put back before, to what it was when it was
    /// announced, which may be in the middle of the section.
    /// `flushed`: whether the queue is empty.
    pub(super) fn restore(&mut self, shared: &Shared, pool: &PoolInner, flushed: Result<()>) {
        // What the body made durable by itself (`Pool::persist`) stays.
        let applied = flushed.and_then(|()| shared.apply_drawn(&pool.store));
        let restored = self.compare(shared, |puddle, line, mask, _, home| {
            // A slab without a committed element is known to its thread only. Its header was written once and stays in
            // memory until a commit needs it, also through aborts.
            let heap = puddle.heap.get();
            if heap.is_some_and(|heap: &PuddleHeap| heap.is_unpublished_header(puddle, line)) {
                return;
            }
            note_in(puddle, line);
            for index in (0..8).filter(|index| mask >> index & 1 == 1) {
                // SAFETY: a word of a mapped puddle, which no other thread changes, as the section's caller promised.
                unsafe { ((line + 8 * index) as *mut u64).write(home[index]) };
            }
        });
        if let Err(error) = applied.and(restored) {
            // The store is poisoned: the next opener finds what is committed.
            tracing::error!(pool = %pool.name, %error, "a section could not be rolled back in memory");
        }
    }

    /// The section is over, and durable or put back.
    pub(super) fn end(&mut self, shared: &Shared, pool: &PoolInner) {
        self.find();
        // ORDER (of threads): before the gate opens.
        shared.may_be_about_any_place();
        let next = shared.stamps.drawn() + 1;
        if let Ok(kept) = OfPool::of(pool) {
            kept.next_stamp.store(next, Ordering::Relaxed);
        }
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        // Also where the section never came to its end: pages must not stay protected.
        if !forked() {
            self.find();
        }
    }
}
