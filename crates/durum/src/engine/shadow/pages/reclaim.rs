//! Giving private pages back: a page that holds what is at home need not be held twice.
//!
//! ```text
//! gate closed          no transaction is open: no range, no fresh object
//! every record applied home is what was committed, and no older record is left to change it
//! pages held           nobody stores there outside of transactions, either
//!   compare            equal: the page goes, and the next access reads the same bytes from the file
//! ```
//!
//! A page that differs stays, for somebody has stored there without a transaction: a lock, free memory that an aborted
//! transaction used, a slab that no commit has published, what is not yet `persist`ed. Equality alone is not enough. A
//! page may equal home by chance while a record waits that changes home twice; hence the records are applied before.
//!
//! On the `file` domain home is what the file holds, and a page counts as equal only when that was synced: what was
//! merely written the system may lose by an error, and show what was there before.
//!
//! A round ends soon, so that nobody waits long at the gate; the next one goes on where it has ended. The threads that
//! commit do one each.

use std::cell::Cell;
use std::ops::Range;
use std::ptr::with_exposed_provenance_mut as pointer;
use std::sync::TryLockError;
use std::time::{Duration, Instant};

use durum_persist::file::MediaFile;
use durum_persist::{Site, record as recorder};
use durum_service::Service;
use rustix::mm::{Advice, MremapFlags, ProtFlags};

use super::super::home::places::HomePages;
use super::super::shared::state::Shared;
use super::super::with_others::flush;
use super::budget::{Budget, PrivatePages, Progress, WORD_PAGES};
use super::puddle::OfPuddle;
use crate::alloc::Puddle;
use crate::announced::runs;
use crate::error::{Error, Result};
use crate::fault::guarded;
use crate::mapping::{LARGE_PAGE, PAGE, PRIVATE};
use crate::opened::StoreInner;
use crate::pages::{Held, was_remapped};
use crate::primitive::locked;

/// Steps that a test leaves out, to show that it would notice.
const GATE: Site = Site("shadow.memory: close the gate");
const APPLY: Site = Site("shadow.memory: apply every record");
const HOLD: Site = Site("shadow.memory: hold stores up");

/// A transaction that is open may wait for a lock that a thread at the gate holds.
const GATE_WAIT: Duration = Duration::from_millis(1);
/// On the `file` domain a transaction is open as long as its commit waits for the disk: for the sync under way, and for
/// its own. So many times what the last one took, within bounds.
const GATE_WAIT_SYNCS: u32 = 4;
const GATE_WAIT_MAX: Duration = Duration::from_millis(100);
/// After so long a round ends, however much is left; it does at least one piece.
const ROUND_MAX: Duration = Duration::from_micros(400);
/// Between rounds below the limit, so many times what the last one took.
const REST: u32 = 4;
/// Where the gate could not be closed, until the next try; doubled with each failure in a row.
const PAUSE: Duration = Duration::from_millis(4);
const PAUSE_DOUBLED_MAX: u32 = 8;
/// Where the system did not allow something.
const PAUSE_AFTER_ERROR: Duration = Duration::from_secs(1);
/// Pages of 2 MiB that may stay when the rest goes; with more, copying them is not worth it.
const DIFFER_MAX: usize = LARGE_PAGE / PAGE / 2;
const WORD_BYTES: usize = WORD_PAGES * PAGE;
const LARGE_WORDS: usize = LARGE_PAGE / WORD_BYTES;

/// How a round ended.
struct Round {
    given_back: usize,
    /// With the gate closed.
    took: Duration,
    /// Every page has been looked at since the cursor was at the beginning.
    is_lap_over: bool,
}

/// Gives some pages back, if the store keeps too many. The caller has no transaction open.
#[cold]
pub(crate) fn give_pages_back(shared: &Shared, store: &StoreInner) {
    let mut progress = match shared.budget.progress.try_lock() {
        Ok(progress) => progress,
        // Another thread does it; or has panicked in the middle, and what it has noted may be wrong.
        Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => return,
    };
    let progress = &mut *progress;
    let now = Instant::now();
    let budget = &*shared.budget;
    // A round may have taken long only because the machine was busy; then many pages can come while it rests.
    let rests_too_long = progress.is_rest && budget.pages() > budget.max();
    if !rests_too_long && progress.not_before.is_some_and(|time| now < time) {
        return;
    }
    progress.is_rest = false;
    if !progress.is_under_way {
        progress.is_under_way = true;
        progress.cursor = 0;
        progress.lap = 0;
        budget.set_due(budget.max() / 2);
    }
    let round = match progress.round(shared, store, budget.max() / 2) {
        Ok(Some(round)) => round,
        Ok(None) => {
            let doubled = progress.failures.min(PAUSE_DOUBLED_MAX);
            progress.failures += 1;
            let pause = (PAUSE * (1 << doubled)).max(gate_wait(shared) * REST);
            progress.not_before = Some(Instant::now() + pause);
            return;
        }
        Err(error) => {
            progress.warn(&error);
            progress.not_before = Some(Instant::now() + PAUSE_AFTER_ERROR);
            return;
        }
    };
    progress.failures = 0;
    progress.lap += round.given_back;
    let pages = budget.pages();
    let may_rest = pages <= budget.max() && budget.max() > 0;
    progress.is_rest = may_rest;
    progress.not_before = may_rest.then(|| Instant::now() + round.took * REST);
    if pages <= budget.max() / 2 {
        progress.is_under_way = false;
        budget.set_due(budget.max());
    } else if round.is_lap_over {
        if progress.lap < pages / 8 && budget.max() > 0 {
            // What is left cannot go now. Not before there is half as much again is it looked at once more.
            progress.is_under_way = false;
            budget.set_due(budget.max().max(pages + (pages / 2).max(budget.max() / 4)));
        }
        progress.lap = 0;
    }
}

/// Gives every page back that can be. `None`: a transaction is open.
pub(crate) fn give_all_pages_back(shared: &Shared, store: &StoreInner) -> Result<Option<usize>> {
    let mut progress = locked(&shared.budget.progress);
    let mut given_back = 0;
    progress.cursor = 0;
    loop {
        let Some(round) = progress.round(shared, store, 0)? else {
            return Ok(None);
        };
        given_back += round.given_back;
        if round.is_lap_over {
            return Ok(Some(given_back));
        }
    }
}

impl Progress {
    fn warn(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.has_warned, true) {
            tracing::warn!(%error, "private pages cannot be given back");
        }
    }

    /// One round, which ends when `goal` pages are left or time is up. `None`: a transaction stays open.
    fn round(&mut self, shared: &Shared, store: &StoreInner, goal: usize) -> Result<Option<Round>> {
        store.poison.check()?;
        let budget = &*shared.budget;
        // What takes time is done while the gate is open; what comes in between is little.
        flush(shared, store)?;
        if shared.group.is_some() {
            shared.write_all_home()?;
        }
        let closed = match recorder::leaves_out(GATE) {
            true => None,
            false => match store.gate.try_close(gate_wait(shared))? {
                None => return Ok(None),
                closed => closed,
            },
        };
        let began = Instant::now();
        // Also what the flusher has taken and drawn no stamp for: `apply_drawn` would not wait for that.
        flush(shared, store)?;
        if !recorder::leaves_out(APPLY) {
            shared.apply_drawn(store)?;
        }
        let Some(held) = Held::begin() else {
            let reason = "the program handles SIGSEGV since the store was opened";
            return Err(Error::system(
                "holding stores to pages up",
                std::io::Error::other(reason),
            ));
        };
        let (is_lap_over, given_back, failed) = shared.with_home(|home| {
            store.poison.check()?;
            if goal == 0 {
                home.note_all();
            }
            let mut look = Look {
                home,
                service: &*store.service,
                pending: home.pending_pages(),
                buffer: &mut self.buffer,
                held: &held,
                given_back: 0,
                failed: None,
            };
            let is_lap_over = look.go_on(budget, &mut self.cursor, |pages| {
                pages <= goal && goal > 0 || began.elapsed() >= ROUND_MAX
            });
            Ok::<_, Error>((is_lap_over, look.given_back, look.failed))
        })?;
        drop(held);
        drop(closed);
        budget.were_given_back(given_back);
        store.poison.check()?;
        if let Some(error) = failed {
            self.warn(&error);
        }
        Ok(Some(Round {
            given_back,
            took: began.elapsed(),
            is_lap_over,
        }))
    }
}

/// How long to wait for transactions that are open.
fn gate_wait(shared: &Shared) -> Duration {
    let syncs = (shared.group.as_ref()).map(|group| group.sync_time() * GATE_WAIT_SYNCS);
    syncs.map_or(GATE_WAIT, |time| time.clamp(GATE_WAIT, GATE_WAIT_MAX))
}

/// Looks for pages to give back. The gate is closed, records are applied, and stay so.
struct Look<'t> {
    service: &'t dyn Service,
    home: &'t HomePages<'t>,
    /// Pages with records whose home is not durable, in order (`file` domain).
    pending: Vec<usize>,
    buffer: &'t mut Vec<u8>,
    held: &'t Held,
    given_back: usize,
    /// Why some pages could not even be looked at. Others may go all the same.
    failed: Option<Error>,
}

impl Look<'_> {
    /// Goes on at the cursor, until there is nothing behind it (true) or `is_enough` says so of the pages that are
    /// left.
    fn go_on(
        &mut self,
        budget: &Budget,
        cursor: &mut usize,
        is_enough: impl Fn(usize) -> bool,
    ) -> bool {
        for puddle in budget.puddles() {
            let Some(OfPuddle { private, .. }) = OfPuddle::of(&puddle) else {
                continue;
            };
            let from = cursor.saturating_sub(puddle.address) / WORD_BYTES;
            for word in from..private.words() {
                if private.word(word) == 0 {
                    continue;
                }
                // A large page is looked at as a whole.
                let unit = word / LARGE_WORDS;
                let done = puddle.while_mapped(|| match private.is_large(unit) {
                    true => self.large_page(&puddle, private, unit),
                    false => self.pages(&puddle, private, word),
                });
                let Some(done) = done else { break };
                if let Err(error) = done {
                    self.failed.get_or_insert(error);
                }
                let next = match private.is_large(unit) {
                    true => (unit + 1) * LARGE_WORDS,
                    false => word + 1,
                };
                *cursor = puddle.address + next * WORD_BYTES;
                if is_enough(budget.pages()) {
                    return false;
                }
            }
        }
        *cursor = 0;
        true
    }

    fn is_pending(&self, page: usize) -> bool {
        self.pending.binary_search(&page).is_ok()
    }

    /// Gives back those of 64 pages copied from the file that count and equal home.
    fn pages(&mut self, puddle: &Puddle, private: &PrivatePages, word: usize) -> Result<()> {
        let counted = private.word(word);
        let start = puddle.address + word * WORD_BYTES;
        let first = counted.trailing_zeros() as usize;
        let end = WORD_PAGES - counted.leading_zeros() as usize;
        let range = start + first * PAGE..start + end * PAGE;
        let mut wanted = 0u64;
        for page in (first..end).filter(|page| counted >> page & 1 == 1) {
            wanted |= u64::from(!self.is_pending(start + page * PAGE)) << page;
        }
        if wanted == 0 {
            return Ok(());
        }
        self.buffer.resize(LARGE_PAGE, 0);
        let home = self.home.bytes(puddle, range.clone(), self.buffer)?;
        let look = || {
            let mut equal = 0u64;
            guarded(|| {
                for page in (first..end).filter(|page| wanted >> page & 1 == 1) {
                    let at = (page - first) * PAGE;
                    equal |= u64::from(is_equal(range.start + at, &home[at..at + PAGE])) << page;
                }
            });
            // A page of home that could not be read is zero now, and its pool poisoned.
            if puddle.has_failed() {
                return 0;
            }
            let mut gone = 0;
            for (from, count) in runs(equal) {
                let at = start + from * PAGE;
                // SAFETY: whole pages of a private mapping of the puddle's file that hold what the file does; nobody
                // can have stored there since they were compared.
                let given = unsafe {
                    rustix::mm::madvise(pointer(at), count * PAGE, Advice::LinuxDontNeed)
                };
                if given.is_ok() {
                    gone |= u64::MAX >> (WORD_PAGES - count) << from;
                }
            }
            gone
        };
        let gone = match recorder::leaves_out(HOLD) {
            true => Some(look()),
            false => self.held.hold(puddle, range.clone(), look),
        };
        private.forget(word, gone.unwrap_or(0));
        self.given_back += gone.unwrap_or(0).count_ones() as usize;
        puddle.check_failed()
    }

    /// Puts pages of the file in the place of 2 MiB of memory, with private of those that differ. The kernel exchanges
    /// them at once: who reads finds the one or the other.
    fn large_page(&mut self, puddle: &Puddle, private: &PrivatePages, unit: usize) -> Result<()> {
        let start = puddle.address + unit * LARGE_PAGE;
        let range = start..start + LARGE_PAGE;
        self.buffer.resize(LARGE_PAGE, 0);
        let home = self.home.bytes(puddle, range.clone(), self.buffer)?;
        let failed = |error| Error::system("mapping pages of a puddle again", error);
        // No descriptor is kept of a file that is only mapped.
        let file = match puddle.file() {
            Some(file) => file,
            None => self.service.reopen_puddle(puddle.uuid)?,
        };
        let fresh = Fresh::map(puddle, &file, unit * LARGE_PAGE).map_err(failed)?;
        let pending = &self.pending;
        let look = || {
            let mut differing = [0u64; LARGE_WORDS];
            let mut count = 0;
            guarded(|| {
                for page in 0..LARGE_PAGE / PAGE {
                    let (at, bytes) = (start + page * PAGE, page * PAGE..(page + 1) * PAGE);
                    if pending.binary_search(&at).is_err() && is_equal(at, &home[bytes]) {
                        continue;
                    }
                    count += 1;
                    // A page of home that could not be read would be read again through the fresh mapping, where nobody
                    // survives that.
                    if count > DIFFER_MAX || puddle.has_failed() {
                        return;
                    }
                    differing[page / WORD_PAGES] |= 1 << (page % WORD_PAGES);
                    // SAFETY: a page of the puddle, to its place in a fresh mapping that only this thread knows.
                    unsafe {
                        let target = pointer::<u8>(fresh.address + page * PAGE);
                        std::ptr::copy_nonoverlapping(pointer::<u8>(at), target, PAGE);
                    }
                }
            });
            if count > DIFFER_MAX || puddle.has_failed() {
                return None;
            }
            fresh.replace(start).then_some(differing)
        };
        let differing = match recorder::leaves_out(HOLD) {
            true => look(),
            false => self.held.hold(puddle, range, look).flatten(),
        };
        puddle.check_failed()?;
        if let Some(differing) = differing {
            private.is_small_now(unit);
            was_remapped(puddle);
            for (index, differing) in differing.into_iter().enumerate() {
                let word = unit * LARGE_WORDS + index;
                self.given_back += (private.word(word) & !differing).count_ones() as usize;
                private.forget(word, !differing);
            }
        }
        Ok(())
    }
}

/// Whether a page holds these bytes.
fn is_equal(page: usize, home: &[u8]) -> bool {
    // SAFETY: a page of a mapped puddle. No transaction is open and stores are held up, so that nobody changes it.
    let bytes = unsafe { std::slice::from_raw_parts(page as *const u8, PAGE) };
    bytes == home
}

/// Whether nothing is mapped at a page.
fn is_hole(page: usize) -> bool {
    let mut is_resident = 0u8;
    // SAFETY: reads nothing at the page, and stores one byte to a variable.
    let result = unsafe { libc::mincore(pointer(page), PAGE, &raw mut is_resident) };
    result != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ENOMEM)
}

/// 2 MiB of a puddle's file, mapped somewhere until they take their place.
struct Fresh {
    address: usize,
    is_in_place: Cell<bool>,
}

impl Fresh {
    fn map(puddle: &Puddle, file: &MediaFile, offset: usize) -> std::io::Result<Self> {
        // What has its name now has to be the same file.
        let stat = rustix::fs::fstat(file)?;
        if (stat.st_dev, stat.st_ino) != puddle.file_id {
            return Err(std::io::Error::other(format!(
                "{} is not the puddle's file any more",
                puddle.path.display()
            )));
        }
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, wherever there is room.
        let address = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                LARGE_PAGE,
                protection,
                PRIVATE,
                file,
                offset as u64,
            )
        }?;
        let fresh = Self {
            address: address.expose_provenance(),
            is_in_place: Cell::new(false),
        };
        // SAFETY: our own mapping.
        unsafe { rustix::mm::madvise(address, LARGE_PAGE, Advice::LinuxDontFork) }?;
        Ok(fresh)
    }

    /// Moves the mapping to where the program sees the puddle. Whether that happened.
    fn replace(&self, start: usize) -> bool {
        let target: Range<usize> = start..start + LARGE_PAGE;
        // SAFETY: what is mapped there is the same 2 MiB of the puddle, with the same contents; nobody can have stored
        // there since they were compared.
        let moved = unsafe {
            rustix::mm::mremap_fixed(
                pointer(self.address),
                LARGE_PAGE,
                target.len(),
                MremapFlags::MAYMOVE,
                pointer(target.start),
            )
        };
        self.is_in_place.set(moved.is_ok());
        // The system takes away what is there before it moves something to its place. Should it have stopped in
        // between, for want of memory, nothing else may ever be mapped there, and no store may miss the puddle.
        if moved.is_err() && is_hole(start) {
            // Not by the logger: a thread whose store waits may hold its locks.
            let told = b"durum: the system has taken pages of a puddle away and put nothing in their place\n";
            // SAFETY: bytes that live for ever; without a standard error it fails.
            unsafe { libc::write(libc::STDERR_FILENO, told.as_ptr().cast(), told.len()) };
            std::process::abort();
        }
        moved.is_ok()
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        if !self.is_in_place.get() {
            // SAFETY: our own mapping, which nobody else knows.
            let _ = unsafe { rustix::mm::munmap(pointer(self.address), LARGE_PAGE) };
        }
    }
}
