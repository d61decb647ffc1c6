//! Shadow: the program works in private pages, a commit is one record and one fence.
//!
//! ```text
//! entries of all that changed, one record | done                      1 fence
//! ... later, behind the program's back:     records -> home | watermark
//! ```
//!
//! Puddles are mapped copy-on-write, so nothing that the program stores can reach the media by itself, and nothing has
//! to be undone after a crash. `add` keeps what the range holds, for an abort. The commit writes the words that differ,
//! with a stamp and a checksum, to the thread's log: after the fence the transaction is durable, and if any part of the
//! record is missing it was never there. Home places follow later and in the order of stamps ([`home`]), each
//! line once for all the records that changed it meanwhile. Recovery replays the records that are not home
//! (docs/format/record.md).

mod biased_lock;
#[cfg(test)]
mod biased_lock_tests;
mod changes;
mod commit;
mod compare;
mod for_tests;
mod fresh;
mod home;
mod large;
mod log;
mod pages;
mod rare_writes;
mod section;
mod shared;
mod thread;
mod torn;
mod wide;
mod with_others;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use durum_persist::{Site, record as recorder};

use super::{check_failed, put_back};
use crate::alloc::Puddle;
use crate::announced::SomeObjects;
use crate::error::{Error, Result, Step};
use crate::fault::guarded;
use crate::gate::Closed;
use crate::mapping::Kept;
use crate::opened::{
    Announce, Engine, Facts, OfPool, OfStore, PoolInner, SecondMapping, SharedBias, StoreInner,
    Tell, TxState,
};
use crate::options::PoolOptions;
use crate::populate::PAGE;

use home::{checkpoint, deferred_pages, files, mapped};
use log::entries::push_range;
use log::segments;
use log::writer::Log;
use pages::puddle::{OfPuddle, note, note_range};
use pages::reclaim::give_pages_back;
use section::{OfPool as Sections, Section};
use shared::queue::DRAIN;
use shared::state::{self, Shared};
use thread::OfThread;
use with_others::{flush, flush_if_due, write_with_others};

/// The sites of this engine.
pub(crate) const SITES: &[Site] = &[
    segments::RECORD_WRITE,
    segments::REACH_WRITE,
    commit::COMMIT_FENCE,
    rare_writes::FLIGHT_FENCE,
    checkpoint::LAND_WRITE,
    checkpoint::LAND_FENCE,
    mapped::HOME_WRITE,
    deferred_pages::PAGE_WRITE,
    files::DRAIN_FENCE,
    fresh::HOME_WRITE,
    torn::HOME_WRITE,
    torn::HOME_FENCE,
    torn::COMMIT_FENCE,
    state::WATERMARK_WRITE,
    state::WATERMARK_FENCE,
];

/// The engine without state: what a thread has is in its transaction, what all share in the store's [`Shared`].
#[derive(Debug)]
pub(super) struct Shadow;

impl Engine for Shadow {
    fn facts(&self) -> Facts {
        Facts {
            commits_with_others: true,
            keeps_lines: true,
            compares_announced: true,
            keeps_objects: true,
            commit_words: Some(commit::commit_words),
            ..Facts::default()
        }
    }

    fn enter(&self, tx: &mut TxState, pool: &Arc<PoolInner>) -> Result<()> {
        tx.kept.turn_to(|| OfThread::new(Shared::of(&pool.store)));
        Ok(())
    }

    fn announce(
        &self,
        tx: &mut TxState,
        puddle: &Puddle,
        address: usize,
        len: usize,
        announce: Announce,
    ) -> Step {
        let may_be_torn = announce == Announce::Clobber
            && len >= torn::BYTES_MIN
            && torn::may_tear(tx, address, len);
        match may_be_torn {
            true => tx.announced.insert_torn(address, len),
            false => tx.announce_saving(address, len),
        }
        puddle.check_failed()?;
        Ok(())
    }

    #[inline(always)]
    fn commit(&self, tx: &mut TxState) -> Step {
        changes::write_transaction(tx)
    }

    fn land(&self, tx: &mut TxState, in_flight: u64) -> Result<()> {
        match tx.kept.find::<OfThread>() {
            Some(thread) => rare_writes::wait(thread, &mut tx.barrier, in_flight),
            // The thread has left the store since, and with it its log, of which nothing is left in flight.
            None => Ok(()),
        }
    }

    fn abort(&self, tx: &mut TxState) {
        // Fresh objects among them, which nothing puts back.
        tx.announced.large().iter().cloned().for_each(note_range);
        for (address, _) in tx.announced.object_lines(SomeObjects::default()) {
            note(address);
        }
        guarded(|| {
            put_back(&tx.backups, note_range);
            for word in tx.announced.words().iter().rev() {
                note(word.address());
                word.restore();
            }
            for line in tx.announced.lines() {
                note(line.address);
                line.restore();
            }
        });
        let Some(OfThread {
            shared, section, ..
        }) = tx.kept.current()
        else {
            return;
        };
        let pool = &tx.pools[0];
        torn::restore(tx.announced.torn(), shared, &pool.store, &mut tx.barrier);
        if let Some(section) = section {
            section.restore(shared, pool, flush(shared, &pool.store));
        }
    }

    fn persist(
        &self,
        tx: &mut TxState,
        pool: &PoolInner,
        ranges: &[(&Puddle, Range<usize>)],
    ) -> Result<()> {
        let store = &pool.store;
        let make = || OfThread::new(Shared::of(store));
        let OfThread { shared, log, .. } = tx.kept.find_or_make(make);
        let Log { writer, lane } = log;
        // What the transaction that runs has announced becomes durable with it, or not at all.
        tx.announced.settle();
        let bytes: usize = ranges.iter().map(|(_, range)| range.len()).sum();
        if bytes >= torn::BYTES_MIN {
            let mut gaps = Vec::new();
            for (_, range) in ranges {
                tx.announced
                    .for_each_gap(range.start, range.len(), |gap| gaps.push(gap));
            }
            if torn::may_go_home(gaps.iter().map(Range::len).sum(), shared)? {
                // What memory holds of a page that could not be read does not go home.
                check_failed(ranges)?;
                // No snapshot begins meanwhile.
                let _held = lane.checkpoint.lock_as_member();
                torn::write(gaps.iter(), shared);
                // ORDER: durable on return; that is what the caller asked for.
                tx.barrier.fence(false, torn::HOME_FENCE)?;
                return check_failed(ranges);
            }
        }
        for (_, range) in ranges {
            let push = |gap| push_range(&mut writer.record, gap);
            (tx.announced).for_each_gap(range.start, range.len(), push);
        }
        if let Err(error) = check_failed(ranges) {
            writer.clear();
            return Err(error);
        }
        if writer.is_empty() {
            return Ok(());
        }
        write_with_others(writer, lane, shared, store, &mut tx.barrier)?;
        fresh::note_logged(ranges.iter().map(|(_, range)| range.clone()), shared);
        check_failed(ranges)
    }

    fn keep_puddle(
        &self,
        store: &Arc<StoreInner>,
        address: usize,
        size: usize,
    ) -> Option<Box<dyn Kept>> {
        let shared = Shared::of(store);
        let budget = shared.budget.clone();
        // On files no large fresh object goes home with its commit.
        let stamps = shared.group.is_none().then_some(shared as _);
        Some(Box::new(OfPuddle::new(stamps, budget, address, size)))
    }

    fn puddle_is_mapped(&self, store: &StoreInner, puddle: &Arc<Puddle>) {
        Shared::of(store).budget.enter(puddle);
    }

    fn write_now(
        &self,
        tx: &mut TxState,
        pages: Range<usize>,
        parts: &mut dyn Iterator<Item = &[u8]>,
        puddle: &Puddle,
    ) -> bool {
        let Some(OfThread {
            shared, written, ..
        }) = tx.kept.current()
        else {
            return false;
        };
        let Some(direct) = fresh::write_now(pages, parts, puddle, shared) else {
            return false;
        };
        let at = written.partition_point(|other| other.starts_before(&direct));
        written.insert(at, direct);
        tx.wants_end = true;
        true
    }

    fn begin_section(&self, tx: &mut TxState, pool: &PoolInner, closed: Closed) -> Result<()> {
        let own: &mut OfThread = tx.kept.current().ok_or(Error::NoTransaction)?;
        flush(&own.shared, &pool.store)?;
        own.section = Some(Section::begin(&own.shared, pool, closed)?);
        tx.section = Some(pool.key);
        tx.wants_end = true;
        Ok(())
    }

    fn check_sections(&self, _pool: &PoolInner) -> Result<()> {
        Ok(())
    }

    fn second_mapping(&self) -> SecondMapping {
        SecondMapping::Home
    }

    fn keep_pool(&self, _store: &Arc<StoreInner>, options: &PoolOptions) -> Box<dyn OfPool> {
        Box::new(Sections::new(options.page_tracking))
    }

    fn bias(&self, store: &StoreInner) -> Option<SharedBias> {
        Some(SharedBias::new(Shared::of(store), Shared::bias))
    }

    fn prepare_log(&self, store: &StoreInner) {
        Shared::of(store).prepare(store);
    }

    fn flush_buffered(&self, pool: &PoolInner) -> Result<()> {
        flush(&Shared::of(&pool.store), &pool.store)
    }

    fn flush_if_due(&self, pool: &PoolInner, now: Instant) -> Result<Option<Duration>> {
        flush_if_due(&pool.store, now, false)
    }

    fn drain(&self, pool: &PoolInner) -> Result<()> {
        pool.poison.check()?;
        let shared = Shared::of(&pool.store);
        if !recorder::leaves_out(DRAIN) {
            flush(&shared, &pool.store)?;
        }
        shared.drain(&pool.store)
    }

    fn show(&self, pool: &PoolInner, show: &mut dyn FnMut()) -> Result<()> {
        self.drain(pool)?;
        // Who persists something is in no transaction; its record comes home before this, or after.
        let shared = Shared::of(&pool.store);
        shared.lanes.set_shown(true, show);
        Ok(())
    }

    fn is_shown_no_more(&self, pool: &PoolInner) {
        // Snapshots of a store are made one after the other.
        Shared::of(&pool.store).lanes.set_shown(false, || ());
    }

    fn before_close(&self, pool: &PoolInner) {
        Shared::of(&pool.store).stop_threads();
    }
}

impl OfStore for Shared {
    fn upkeep(&self, store: &Arc<StoreInner>) {
        if self.budget.was_asked() && self.budget.has_work() {
            self.make_pages_ahead(store);
        }
        if self.budget.is_due() {
            give_pages_back(self, store);
        }
    }

    fn give_log_back(&self, store: &StoreInner) -> Result<()> {
        self.bring_home()?;
        self.trim(store);
        Ok(())
    }

    fn stop(&self) {
        self.lanes.stop();
    }

    fn pages_given_back(&self) -> u64 {
        self.budget.given_back()
    }

    fn tell(&self, tell: Tell<'_>) {
        let (drawn, home) = (self.stamps.drawn(), self.stamps.home());
        let private = (self.budget.pages() * PAGE) as u64;
        tell("shadow_records", "Records of transactions", true, drawn);
        let are_home = "Of these, records that checkpoints have brought home";
        tell("shadow_records_home", are_home, true, home.min(drawn));
        tell(
            "shadow_private_bytes",
            "Bytes of private pages",
            false,
            private,
        );
        let given_back = "Private pages that were given back";
        tell(
            "shadow_pages_given_back",
            given_back,
            true,
            self.budget.given_back(),
        );
    }
}
