//! Twin: changes in place, while a second copy stays whole (Romulus, SPAA'18, §4), at half of Romulus' fences.
//!
//! ```text
//! main, seal | back, state: the next one is changing |     2 fences
//! main | state: copying | back | ... state: changing |     4, where the seal cannot name all that has changed
//! ```
//!
//! `|` is a fence. The program works in the main copies. As long as the state says that main is being changed, a crash
//! is undone from the back copies. The *seal* names the ranges that a transaction announced, with a checksum of what
//! they hold: if main holds that, the transaction was durable, so seal and main need one fence together. Then the lines
//! that differ are copied to back, and the state says that the next transaction may change main: in one fence as well,
//! because the seal tells whether back is whole, too. If it is not, no transaction has begun to change main, which is
//! whole then. So a transaction finds the state as it needs it, and the program has nothing to wait for before its
//! first store. docs/format/twin.md tells the whole of it; recovery is `durum-service`, `recovery/twin.rs`.
//!
//! There is no log on the media, and what an allocation changes is announced like anything else, so it costs no fence
//! of its own. One transaction of a pool runs at a time: the whole pool has one state.
//!
//! On `file`, stores stay private to the process until the commit writes them. Two syncs, if all that has changed is in
//! the root puddle.

mod copies;
mod left_right;
#[cfg(test)]
mod left_right_tests;
mod staged;
mod suspects;
mod turn;
mod view;

use std::ops::Range;
use std::sync::Arc;

use durum_persist::{Site, line};

use super::in_place::write_file;
use super::{check_failed, put_back};
use crate::alloc::{Puddle, PuddleHeap, puddle_at};
use crate::announced::{Announced, LARGE};
use crate::before_images::before_change;
use crate::error::{Error, Result, Step};
use crate::fault::{guarded, media_failed};
use crate::media::Barrier;
use crate::opened::{self, Engine, Facts, OfPool, PoolInner, SecondMapping, StoreInner, TxState};
use crate::options::{PoolOptions, TwinMode};
use crate::sites::sites;

use copies::Copies;
pub(super) use copies::SITES as COPIES_SITES;
use staged::Staged;
use turn::Turn;
pub use view::{LrRef, View};

sites! {
    MAIN_WRITE = "twin.commit: write back main";
    SEAL_WRITE = "twin.commit: write back the seal";
    SEAL_FENCE = "twin.commit: fence after main and seal";
    MAIN_FENCE = "twin.commit: fence after main";
    BACK_WRITE = "twin.commit: write back the back copy";
    BACK_FENCE = "twin.commit: fence after the back copy";
    ABORT_WRITE = "twin.abort: write back what is restored";
    ABORT_FENCE = "twin.abort: fence after what is restored";
    PERSIST_WRITE = "twin.persist: write back main";
    PERSIST_BACK_WRITE = "twin.persist: write back the back copy";
    PERSIST_FENCE = "twin.persist: fence after both copies";
}

/// A step that a test leaves out.
const KEEP: Site = Site("snapshot: keep what is about to change in the back copy");

/// What the engine keeps of a thread.
#[derive(Debug, Default)]
struct OfThread {
    /// The right to change the pool that the transaction began on.
    turn: Option<Turn>,
    /// What the transaction has changed, on its way to the other copy.
    staged: Staged,
}

impl opened::OfThread for OfThread {
    fn end(&mut self, _pool: Option<&PoolInner>) {
        self.turn = None;
    }
}

/// The engine without state: what it keeps of a pool is in the pool's [`Copies`].
#[derive(Debug)]
pub(super) struct Twin;

impl Engine for Twin {
    fn facts(&self) -> Facts {
        Facts {
            takes_turns: true,
            keeps_lines: true,
            ..Facts::default()
        }
    }

    fn enter(&self, tx: &mut TxState, pool: &Arc<PoolInner>) -> Result<()> {
        let own = tx.kept.turn_to(OfThread::default);
        if let Some(turn) = &own.turn {
            return match turn.pool().key == pool.key {
                true => Ok(()),
                false => Err(turn.pool().mixed_with(pool)),
            };
        }
        own.turn = Some(Turn::take(pool));
        tx.wants_end = true;
        Ok(())
    }

    fn before_store(&self, tx: &mut TxState, address: usize, len: usize) -> Step<Range<usize>> {
        let pool = tx.pools.first().ok_or(Error::NoTransaction)?;
        let copies = Copies::of(pool);
        copies.send_readers_to_back(pool)?;
        // On `file` the media change when the transaction commits.
        if pool.store.private {
            return Ok(0..usize::MAX);
        }
        let listed = copies.suspect(pool, address, len, &mut tx.barrier)?;
        copies.begin(pool, &mut tx.barrier)?;
        copies.fence_suspects(pool, &mut tx.barrier)?;
        Ok(listed)
    }

    fn commit(&self, tx: &mut TxState) -> Step {
        let is_deferred = !(tx.bits.is_empty() && tx.bitmaps.is_empty() && tx.sets.is_empty());
        if tx.announced.is_empty() && !is_deferred {
            return Ok(());
        }
        check_media(tx)?;
        let first = *tx.pools.first().ok_or(Error::NoTransaction)?;
        let pool = &*first;
        let copies = Copies::of(pool);
        copies.send_readers_to_back(pool)?;
        let private = pool.store.private;
        if private {
            suspect_kept(copies, pool, tx)?;
        }
        if is_deferred {
            suspect_deferred(copies, pool, tx)?;
        }
        copies.begin(pool, &mut tx.barrier)?;
        copies.fence_suspects(pool, &mut tx.barrier)?;
        if is_deferred {
            make_deferred(tx);
        }
        let OfThread { staged, .. } = tx.kept.current().ok_or(Error::NoTransaction)?;
        let (announced, barrier) = (&tx.announced, &mut tx.barrier);
        // Both read main, which is in the cache until it is written back.
        let is_sealed = copies.seal(pool, announced, barrier)?;
        if !is_sealed {
            // Nothing else says where new objects are.
            copies.suspect_all(pool, announced, barrier)?;
        }
        let distance = pool.store.info.space_size as usize;
        if !private {
            staged.take(announced, distance);
        }
        write_back_main(announced, barrier, private, MAIN_WRITE)?;
        // ORDER: with a seal: both are durable before the back copy changes, which a crash would go back to until then;
        // that the transaction is durable shows when both are. Without: main, and the list of all that changed, are
        // durable before the state says so.
        barrier.fence(private, if is_sealed { SEAL_FENCE } else { MAIN_FENCE })?;
        copies.suspects_are_durable();
        if media_failed() {
            pool.check_media()?;
        }
        if !is_sealed {
            copies.say_copying(pool, barrier)?;
        }
        // From here on the transaction is durable.
        copies.send_readers_to_main();
        let mut copier = Copier {
            distance,
            barrier,
            private,
        };
        // The seal is about all that was announced, also where nothing is in use any more.
        let mut copied = copier.copy_announced(announced, staged);
        if copies.mode() == TwinMode::Basic {
            copied = copied.and_then(|()| copier.copy_used(pool));
        }
        if copied.is_err() {
            // What the caller is told of the outcome is that nobody knows it. The next opener finds main whole.
            pool.store.set_poison("a copy could not be completed");
        }
        copied?;
        copies.go_on(pool, barrier, is_sealed)?;
        // ORDER: the back copy is durable before main changes again, or before the caller changes without a transaction
        // what the seal is about.
        barrier.fence(private, BACK_FENCE)?;
        if media_failed() {
            pool.check_media()?;
        }
        Ok(())
    }

    fn abort(&self, tx: &mut TxState) {
        guarded(|| {
            put_back(&tx.backups, |_| {});
            tx.announced.lines().for_each(|line| line.restore());
        });
        let Some(pool) = tx.pools.first() else {
            return;
        };
        let (announced, barrier) = (&tx.announced, &mut tx.barrier);
        let private = pool.store.private;
        let is_changing = Copies::of(pool).is_changing();
        let has_leaked = is_changing && !private && !announced.is_empty();
        if !has_leaked || pool.check_usable().is_err() {
            // After a failure all stays as it is: the next opener brings main back from the other copy.
            return;
        }
        // ORDER: main is as it was, durably, before another transaction's seal says that main is whole. Nobody need
        // know of it before.
        let restored = write_back_main(announced, barrier, private, ABORT_WRITE)
            .and_then(|()| barrier.fence(private, ABORT_FENCE));
        if restored.is_err() {
            pool.store
                .set_poison("a transaction could not be rolled back");
        }
    }

    fn persist(
        &self,
        tx: &mut TxState,
        pool: &PoolInner,
        ranges: &[(&Puddle, Range<usize>)],
    ) -> Result<()> {
        // Two who copy the same line to back would put something old there.
        let own = tx.kept.find::<OfThread>();
        let turn = own.and_then(|own| own.turn.as_ref());
        let _turn = match turn.is_some_and(|turn| turn.pool().key == pool.key) {
            true => None,
            false => {
                pool.check_turn_may_come()?;
                Some(Turn::take(pool))
            }
        };
        // What the transaction that runs has announced becomes durable with it, or not at all.
        let mut gaps = Vec::new();
        for (puddle, range) in ranges {
            tx.announced
                .for_each_gap(range.start, range.len(), |gap| gaps.push((*puddle, gap)));
        }
        let barrier = &mut tx.barrier;
        let copies = Copies::of(pool);
        for (_, gap) in &gaps {
            copies.suspect(pool, gap.start, gap.len(), barrier)?;
        }
        // Where the copies count as the same, nobody compares them.
        copies.begin(pool, barrier)?;
        // A seal may be about these bytes.
        copies.settle(pool, barrier)?;
        copies.fence_suspects(pool, barrier)?;
        // The state is settled now: until a transaction has committed, recovery takes these bytes from back, whatever
        // main has. So one fence does for both.
        for (puddle, gap) in &gaps {
            // ORDER: durable with the fence below.
            guarded(|| barrier.write_back(puddle, gap.start, gap.len(), PERSIST_WRITE))?;
        }
        check_failed(ranges)?;
        let distance = pool.store.info.space_size as usize;
        let mut is_private = false;
        for (puddle, gap) in &gaps {
            let (address, len) = (gap.start, gap.len());
            is_private |= puddle.private;
            keep_back(address, len, puddle.private);
            // SAFETY: both copies are mapped, and the caller of `persist` promised that nobody changes the range.
            guarded(|| unsafe {
                line::copy((address + distance) as *mut u8, address as *const u8, len);
            });
            let private = puddle.private;
            // ORDER: durable with the fence below.
            write_back_copy(barrier, address, len, distance, private, PERSIST_BACK_WRITE)?;
        }
        // ORDER: durable on return; that is what the caller asked for.
        barrier.fence(is_private, PERSIST_FENCE)?;
        check_failed(ranges)
    }

    fn second_mapping(&self) -> SecondMapping {
        SecondMapping::Back
    }

    fn keep_pool(&self, _store: &Arc<StoreInner>, options: &PoolOptions) -> Box<dyn OfPool> {
        Box::new(Copies::new(options))
    }

    fn prepare_log(&self, store: &StoreInner) {
        store.prepare_first_log();
    }

    fn drain(&self, pool: &PoolInner) -> Result<()> {
        pool.poison.check()?;
        Copies::of(pool).forget_seal(pool)
    }

    fn show(&self, pool: &PoolInner, show: &mut dyn FnMut()) -> Result<()> {
        // Who persists something is in no transaction.
        let _turn = Turn::take(pool);
        show();
        Ok(())
    }

    fn close(&self, pool: &PoolInner) {
        Copies::of(pool).close(pool);
    }
}

/// The error of a page that failed, if any.
fn check_media(tx: &TxState) -> Step {
    if media_failed() {
        tx.pools.iter().try_for_each(|pool| pool.check_media())?;
    }
    Ok(())
}

/// All that was announced and had been there is about to change. What was allocated nobody has kept.
fn suspect_kept(copies: &Copies, pool: &PoolInner, tx: &mut TxState) -> Result<()> {
    let lines = tx.announced.lines().filter(|line| line.saved != 0);
    let small = lines.map(|line| (line.address, line::LINE));
    for (address, len) in small.chain(tx.backups.ranges()) {
        copies.suspect(pool, address, len, &mut tx.barrier)?;
    }
    Ok(())
}

/// All that waits for the commit is about to change. Not bitmaps: they are in slabs that nobody knows yet.
fn suspect_deferred(copies: &Copies, pool: &PoolInner, tx: &mut TxState) -> Result<()> {
    let bits = tx.bits.iter().map(|change| (change.word, 8));
    let sets = tx.sets.iter().map(|set| (set.target, set.len));
    // Mostly they lie side by side.
    let mut listed = 0..0;
    for (address, len) in bits.chain(sets) {
        if !listed.contains(&address) || len > listed.end - address {
            listed = copies.suspect(pool, address, len, &mut tx.barrier)?;
        }
    }
    Ok(())
}

/// Makes the stores that were to happen at the commit, announced like all others: what fails later is taken back with
/// them.
fn make_deferred(tx: &mut TxState) {
    let mut announce = |address: usize, len: usize| {
        match len < LARGE {
            // SAFETY: a range in a mapped puddle that nobody else changes: this thread has the pool's turn, and the
            // caller of `set` promised it.
            true => unsafe { tx.announced.insert_saving(address, len) },
            false => {
                // SAFETY: a range in a mapped puddle that nobody else changes.
                unsafe { tx.backups.save(address, len) };
                tx.announced.insert(address, len);
            }
        }
    };
    guarded(|| {
        for bitmap in &tx.bitmaps {
            announce(bitmap.address, bitmap.len * 8);
            // SAFETY: the bitmap of a slab that only this thread knows, in a puddle that its transaction keeps.
            unsafe {
                let words = bitmap.words.as_ptr().cast();
                line::copy(bitmap.address as *mut u8, words, bitmap.len * 8);
            }
        }
        for change in &tx.bits {
            announce(change.word, 8);
            let word = change.word as *mut u64;
            // SAFETY: a bitmap word in a puddle of this transaction; only the thread whose turn it is changes such
            // words.
            unsafe {
                let old = word.read();
                let new = match change.set {
                    true => old | change.mask,
                    false => old & !change.mask,
                };
                line::store_u64(word, new);
            }
        }
        for set in &tx.sets {
            announce(set.target, set.len);
            let source = set.bytes(&tx.set_bytes);
            // SAFETY: `set` checked the range; the caller of `set` promised that only this thread changes it.
            unsafe { line::copy(set.target as *mut u8, source.as_ptr(), set.len) };
        }
    });
}

/// Writes back every line of main with an announced byte. Also where a line holds what it held before: what it held
/// meanwhile may have reached the media.
fn write_back_main(
    announced: &Announced,
    barrier: &mut Barrier,
    private: bool,
    site: Site,
) -> Result<()> {
    let mut result = Ok(());
    guarded(|| {
        announced.for_each(true, |address, len| {
            let start = address / line::LINE * line::LINE;
            let len = (address + len).next_multiple_of(line::LINE) - start;
            match private {
                // SAFETY: whole lines around announced ranges, inside mapped puddles.
                // ORDER: durable with the caller's fence; the caller says why.
                false => unsafe { line::write_back(start as *const u8, len, site) },
                true if result.is_ok() => result = write_file(barrier, start, len, site),
                true => {}
            }
        });
    });
    result
}

/// Copies main to back where they differ, and writes that back.
struct Copier<'a> {
    /// From main to back.
    distance: usize,
    barrier: &'a mut Barrier,
    private: bool,
}

impl Copier<'_> {
    /// The lines that hold announced bytes. On mapped media those of small ranges were put aside.
    fn copy_announced(&mut self, announced: &Announced, staged: &mut Staged) -> Result<()> {
        if !self.private {
            staged.bring_to(self.distance);
            let mut large = announced.large().iter();
            return large.try_for_each(|range| self.copy(range.start, range.len()));
        }
        announced.try_for_each(true, |address, len| self.copy(address, len))
    }

    /// All that is in use.
    fn copy_used(&mut self, pool: &PoolInner) -> Result<()> {
        let puddles = pool.heap.puddles().clone();
        for puddle in puddles {
            for range in PuddleHeap::used(&puddle)? {
                self.copy(range.start, range.len())?;
            }
        }
        Ok(())
    }

    /// The lines that hold these bytes, in runs of those that differ: each run takes one call of the system on files.
    fn copy(&mut self, address: usize, len: usize) -> Result<()> {
        let distance = self.distance;
        let differs = |start: usize| staged::differs(start, start + distance);
        guarded(|| {
            let (mut start, end) = (address / line::LINE * line::LINE, address + len);
            while start < end {
                if !differs(start) {
                    start += line::LINE;
                    continue;
                }
                let from = start;
                start += line::LINE;
                while start < end && differs(start) {
                    start += line::LINE;
                }
                self.copy_lines(from, start - from)?;
            }
            Ok(())
        })
    }

    /// These lines.
    fn copy_lines(&mut self, start: usize, len: usize) -> Result<()> {
        let back = start + self.distance;
        keep_back(start, len, self.private);
        // SAFETY: both copies of lines of a mapped puddle; nobody but the thread whose turn it is changes back.
        unsafe { line::copy_words(back as *mut u64, start as *const u64, len / 8) };
        let (distance, private) = (self.distance, self.private);
        // ORDER: durable with the caller's fence, before main changes again.
        write_back_copy(self.barrier, start, len, distance, private, BACK_WRITE)
    }
}

/// The back copy of a range of main is about to change. That of a file is kept when it is written.
fn keep_back(address: usize, len: usize, private: bool) {
    if !private && let Some(puddle) = puddle_at(address) {
        // SAFETY: puddles live while their store is open.
        before_change(unsafe { puddle.as_ref() }, address, len, KEEP);
    }
}

/// Writes back the back copy of a range of main.
fn write_back_copy(
    barrier: &mut Barrier,
    address: usize,
    len: usize,
    distance: usize,
    private: bool,
    site: Site,
) -> Result<()> {
    let back = (address + distance) as *const u8;
    if !private {
        // SAFETY: the back copy of a range inside a mapped puddle.
        // ORDER: durable with the caller's fence; the caller says why.
        unsafe { line::write_back(back, len, site) };
        return Ok(());
    }
    let Some(puddle) = puddle_at(address) else {
        return Ok(());
    };
    // SAFETY: puddles live while their store is open; the copy is mapped behind it.
    let (puddle, bytes) = unsafe { (puddle.as_ref(), std::slice::from_raw_parts(back, len)) };
    let offset = puddle.size + (address - puddle.address);
    barrier.write_bytes(puddle, offset as u64, bytes)
}
