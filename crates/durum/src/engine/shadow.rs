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
//! record is missing it was never there. Home places follow later and in the order of stamps ([`checkpoint`]), each
//! line once for all the records that changed it meanwhile. Recovery replays the records that are not home
//! (docs/format/record.md).

mod background;
mod blocks;
mod budget;
mod changes;
mod checkpoint;
mod checkpointer;
mod direct;
mod flusher;
mod freed;
mod group;
mod home;
mod journal;
mod latch;
#[cfg(test)]
mod latch_tests;
mod latest;
mod lines;
mod probes;
mod puddle;
mod queue;
mod relief;
mod section;
mod segments;
mod thread;
mod waiting;
mod weight;
mod writer;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

use durum_format::record::{Operation, push_copy, push_fresh_sum, push_word};
use durum_persist::{Site, line};
use zerocopy::IntoBytes;

use super::check_failed;
use crate::alloc::{BitChange, Ground, Puddle};
use crate::announced::Announced;
use crate::deferred::Set;
use crate::error::{Error, Result, Step};
use crate::fault::{Guard, guarded, media_failed};
use crate::gate::Closed;
use crate::mapping::Kept;
use crate::media::Barrier;
use crate::opened::{
    Announce, Durability, Engine, Facts, OfPool, PoolInner, SecondMapping, SharedBias, StoreInner,
    TxState,
};
use crate::options::PoolOptions;

use direct::Direct;
use journal::Journal;
use puddle::OfPuddle;
use section::{OfPool as Sections, Section};
use thread::OfThread;
use writer::Writer;
use writer::pieces;

/// The sites of this engine.
pub(crate) const SITES: &[Site] = &[
    writer::RECORD_WRITE,
    writer::COMMIT_FENCE,
    home::HOME_WRITE,
    waiting::PAGE_WRITE,
    home::DRAIN_FENCE,
    direct::HOME_WRITE,
    journal::WATERMARK_WRITE,
    journal::WATERMARK_FENCE,
];

/// Larger ranges are put into a record in pieces of this many bytes, so that it can be cut between them. They end with
/// pages, which go home as a whole then.
const COPY_PIECE: usize = 16 << 10;

/// The engine without state: what a thread has is in its transaction, what all share in the store's [`Journal`].
#[derive(Debug)]
pub(super) struct Shadow;

impl Engine for Shadow {
    fn facts(&self) -> Facts {
        Facts {
            commits_with_others: true,
            keeps_lines: true,
            compares_announced: true,
            keeps_objects: true,
            ..Facts::default()
        }
    }

    fn enter(&self, tx: &mut TxState, pool: &Arc<PoolInner>) -> Result<()> {
        tx.kept.turn_to(|| OfThread::new(pool.store.journal()));
        Ok(())
    }

    #[inline]
    fn announce(
        &self,
        tx: &mut TxState,
        puddle: &Puddle,
        address: usize,
        len: usize,
        _announce: Announce,
    ) -> Step {
        super::keep_old(tx, puddle, address, len)
    }

    #[inline(always)]
    fn commit(&self, tx: &mut TxState) -> Step {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if durum_persist::wide::is_there() {
            // SAFETY: the processor has what the function needs.
            return unsafe { commit_wide(tx) };
        }
        commit_by(tx, changes::push_lines)
    }

    fn abort(&self, tx: &mut TxState) {
        // Fresh objects among them, which nothing puts back.
        tx.announced
            .large()
            .iter()
            .cloned()
            .for_each(home::note_range);
        for (address, _) in tx.announced.object_lines() {
            home::note(address);
        }
        // What was saved last goes back first.
        guarded(|| {
            tx.backups.restore(|target, saved| {
                home::note_range(target..target + saved.len());
                // SAFETY: the range was saved by `announce`; it is still mapped, and nobody else changes it.
                unsafe { line::copy(target as *mut u8, saved.as_ptr(), saved.len()) };
            });
            for line in tx.announced.lines() {
                home::note(line.address);
                line.restore();
            }
        });
        if let Some(OfThread {
            journal,
            section: Some(section),
            ..
        }) = tx.kept.current()
        {
            section.restore(journal, &tx.pools[0]);
        }
    }

    fn persist(
        &self,
        tx: &mut TxState,
        pool: &PoolInner,
        ranges: &[(&Puddle, Range<usize>)],
    ) -> Result<()> {
        let store = &pool.store;
        let make = || OfThread::new(store.journal());
        let OfThread {
            journal, writer, ..
        } = tx.kept.find_or_make(make);
        // What the transaction that runs has announced becomes durable with it, or not at all.
        for (_, range) in ranges {
            tx.announced.for_each_gap(range.start, range.len(), |gap| {
                push_range(&mut writer.record, gap);
            });
        }
        if let Err(error) = check_failed(ranges) {
            writer.clear();
            return Err(error);
        }
        if writer.is_empty() {
            return Ok(());
        }
        make_durable_with_others(writer, journal, store, &mut tx.barrier)?;
        check_failed(ranges)
    }

    fn keep_puddle(
        &self,
        store: &Arc<StoreInner>,
        address: usize,
        size: usize,
    ) -> Option<Box<dyn Kept>> {
        Some(Box::new(OfPuddle::new(store.journal(), address, size)))
    }

    fn puddle_is_mapped(&self, store: &StoreInner, puddle: &Arc<Puddle>) {
        store.journal().budget.enter(puddle);
    }

    fn write_now(
        &self,
        tx: &mut TxState,
        pages: Range<usize>,
        parts: &mut dyn Iterator<Item = &[u8]>,
        puddle: &Puddle,
    ) -> bool {
        let Some(OfThread {
            journal, written, ..
        }) = tx.kept.current()
        else {
            return false;
        };
        let Some(direct) = direct::write_now(pages, parts, puddle, journal) else {
            return false;
        };
        let at = written.partition_point(|other| other.starts_before(&direct));
        written.insert(at, direct);
        tx.wants_end = true;
        true
    }

    fn begin_section(&self, tx: &mut TxState, pool: &PoolInner, closed: Closed) -> Result<()> {
        let own: &mut OfThread = tx.kept.current().ok_or(Error::NoTransaction)?;
        own.section = Some(Section::begin(&own.journal, pool, closed)?);
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
        Some(SharedBias::new(store.journal(), Journal::bias))
    }

    fn prepare_log(&self, store: &StoreInner) {
        store.journal().prepare(store);
    }

    fn flush_buffered(&self, pool: &PoolInner) -> Result<()> {
        pool.store.journal().flush(&pool.store)
    }

    fn flush_if_due(&self, pool: &PoolInner, now: Instant) -> Result<Option<Duration>> {
        pool.store.journal().flush_if_due(&pool.store, now)
    }

    fn drain(&self, pool: &PoolInner) -> Result<()> {
        pool.poison.check()?;
        pool.store.journal().drain(&pool.store)
    }

    fn before_close(&self, pool: &PoolInner) {
        pool.store.journal().stop_threads();
    }
}

/// A commit on a processor that handles lines as a whole. One function as far as it goes: what a call puts aside are
/// stores, and of these only some hundred fit behind the last commit's fence.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "avx512f,avx512bw,popcnt")]
fn commit_wide(tx: &mut TxState) -> Step {
    commit_by(tx, |record, announced| {
        changes::wide::push_lines(record, announced)
    })
}

#[inline(always)]
fn commit_by(tx: &mut TxState, push_lines: impl FnOnce(&mut Vec<u64>, &Announced)) -> Step {
    let _guard = Guard::new();
    let Some(OfThread {
        journal,
        writer,
        section,
        written,
    }) = tx.kept.current()
    else {
        return Err(Error::NoTransaction.into());
    };
    let store = &tx.pools[0].store;
    if let Some(section) = section
        && let Err(error) = section.push_changes(journal, store, &tx.announced, &mut writer.record)
    {
        writer.clear();
        return Err(error.into());
    }
    journal.prefetch_next();
    push_lines(&mut writer.record, &tx.announced);
    if !tx.announced.large().is_empty() {
        let may_be_direct = tx.durability == Durability::Durable;
        let announced = &tx.announced;
        push_large(writer, announced, written, &tx.sets, may_be_direct, journal);
    }
    for change in &tx.bits {
        let operation = match change.set {
            true => Operation::SetBits,
            false => Operation::ClearBits,
        };
        push_word(
            &mut writer.record,
            operation,
            change.word as u64,
            change.mask,
        );
    }
    let is_deferred = !(tx.bitmaps.is_empty() && tx.sets.is_empty());
    if is_deferred {
        push_deferred(tx);
    }
    if media_failed() {
        check_media(tx)?;
    }
    make_durable(tx)?;
    if media_failed() {
        check_media(tx)?;
    }
    if !tx.bits.is_empty() {
        make_bits_visible(&tx.bits, &tx.pools[0]);
    }
    if is_deferred {
        make_visible(tx);
    }
    Ok(())
}

/// Puts large ranges into the record, or leaves them to it; fresh ones of a durable transaction go home, as far as they
/// may.
#[inline(never)]
fn push_large(
    writer: &mut Writer,
    announced: &Announced,
    written: &[Direct],
    sets: &[Set],
    may_be_direct: bool,
    journal: &Journal,
) {
    let deferred = sets.iter().map(|set| set.target..set.target + set.len);
    let (fresh, direct) = (announced.fresh(), &mut writer.direct);
    direct::choose(fresh, written, may_be_direct, deferred, journal, direct);
    // A transaction that waits for others, or that they wait for, is put together first.
    let may_stay = may_be_direct && journal.group.is_none();
    let mut chosen = std::mem::take(&mut writer.direct);
    let mut direct = chosen.iter().peekable();
    for range in announced.large().iter() {
        let mut from = range.start;
        // Both are in order of address, and each of these lies in one of those.
        while let Some(Direct { range: direct, sum }) =
            direct.next_if(|direct| direct.range.start < range.end)
        {
            writer.push_range(from..direct.start, may_stay);
            let record = &mut writer.record;
            match *sum {
                Some(sum) => push_fresh_sum(record, direct.start as u64, direct.len(), sum),
                None => direct::write(direct, record, journal),
            }
            from = direct.end;
        }
        writer.push_range(from..range.end, may_stay);
    }
    drop(direct);
    chosen.clear();
    writer.direct = chosen;
}

/// Puts into the record what a transaction changes when it commits, and not before; bits of words are there already.
#[inline(never)]
fn push_deferred(tx: &mut TxState) {
    let Some(OfThread {
        writer: Writer { record, .. },
        ..
    }) = tx.kept.current()
    else {
        return;
    };
    for bitmap in &tx.bitmaps {
        let words = bitmap.words[..bitmap.len].as_bytes();
        push_copy(record, bitmap.address as u64, words);
    }
    for set in &tx.sets {
        let bytes = &tx.set_bytes[set.from..set.from + set.len];
        push_bytes(record, set.target, bytes);
    }
}

/// The error of a page that failed in any of the transaction's pools. There is no record in the making then.
#[cold]
fn check_media(tx: &mut TxState) -> Step {
    let result = tx.pools.iter().try_for_each(|pool| pool.check_media());
    if let (Err(_), Some(OfThread { writer, .. })) = (&result, tx.kept.current()) {
        writer.clear();
    }
    Ok(result?)
}

/// Makes the record of a transaction durable; or leaves it to the queue, if it is to be buffered.
#[inline(always)]
fn make_durable(tx: &mut TxState) -> Step {
    let Some(OfThread {
        journal, writer, ..
    }) = tx.kept.current()
    else {
        return Ok(());
    };
    let store = &tx.pools[0].store;
    let is_buffered = tx.durability == Durability::Buffered;
    if is_buffered || writer.is_empty() || journal.group.is_some() || journal.queue.is_in_use() {
        writer.gather();
        return match is_buffered {
            true => enqueue(writer, journal, store, &mut tx.barrier),
            false => make_durable_with_others(writer, journal, store, &mut tx.barrier),
        };
    }
    let result = writer.commit(journal, store, &mut tx.barrier);
    writer.clear();
    result
}

/// Makes the record that the writer holds durable, and what waits in the queue before it.
#[inline(never)]
fn make_durable_with_others(
    writer: &mut Writer,
    journal: &Journal,
    store: &Arc<StoreInner>,
    barrier: &mut Barrier,
) -> Step {
    let _guard = Guard::new();
    let result = match &journal.group {
        // What it leaves as it was may wait in the queue.
        _ if writer.is_empty() && !journal.queue.is_in_use() => Ok(()),
        None if journal.queue.is_in_use() => journal.queue.commit(writer, journal, store, barrier),
        None => writer.commit(journal, store, barrier),
        Some(group) => {
            let bytes = writer.record.len() * 8;
            let result = group.commit(&mut writer.record, journal, store);
            if result.is_ok() {
                // The transaction is durable whatever comes of this. An error has poisoned the store, and is told to
                // the next who uses it.
                let _ = journal.logged(bytes, store);
            }
            result.map_err(Box::new)
        }
    };
    writer.clear();
    result
}

/// Leaves the record that the writer holds to the queue; or makes it durable, if that takes no more.
#[inline(never)]
fn enqueue(
    writer: &mut Writer,
    journal: &Journal,
    store: &Arc<StoreInner>,
    barrier: &mut Barrier,
) -> Step {
    if writer.is_empty() {
        return Ok(());
    }
    match journal.queue.push(&writer.record, store) {
        Ok(false) => make_durable_with_others(writer, journal, store, barrier),
        pushed => {
            writer.clear();
            pushed?;
            Ok(())
        }
    }
}

/// Puts what a range of memory holds into the record.
fn push_range(record: &mut Vec<u64>, range: Range<usize>) {
    // SAFETY: announced ranges lie in mapped puddles, and only this thread changes them.
    let bytes = unsafe { bytes_of(&range) };
    guarded(|| push_bytes(record, range.start, bytes));
}

/// # Safety
/// The range is mapped, and nobody changes it while the bytes are in use.
unsafe fn bytes_of<'a>(range: &Range<usize>) -> &'a [u8] {
    // SAFETY: as the caller promises.
    unsafe { std::slice::from_raw_parts(range.start as *const u8, range.len()) }
}

/// Puts bytes for `target` into the record.
#[inline]
fn push_bytes(record: &mut Vec<u64>, target: usize, bytes: &[u8]) {
    if let Some(word) = bytes.first_chunk::<8>()
        && bytes.len() == 8
        && target.is_multiple_of(8)
    {
        return push_word(
            record,
            Operation::Store,
            target as u64,
            u64::from_ne_bytes(*word),
        );
    }
    for piece in pieces(target..target + bytes.len()) {
        let at = piece.start - target;
        push_copy(record, piece.start as u64, &bytes[at..at + piece.len()]);
    }
}

/// The transaction is durable: its bits change in memory.
#[inline(always)]
fn make_bits_visible(bits: &[BitChange], pool: &PoolInner) {
    let alone = pool.try_alone();
    for change in bits {
        let word = change.word as *mut u64;
        // SAFETY: a bitmap word in a puddle of this transaction; all threads change such words by atomic operations,
        // unless there is only one.
        unsafe {
            match (change.set, alone.is_some()) {
                (true, true) => line::store_u64(word, word.read() | change.mask),
                (false, true) => line::store_u64(word, word.read() & !change.mask),
                (true, false) => drop(line::fetch_or_u64(word, change.mask)),
                (false, false) => drop(line::fetch_and_u64(word, !change.mask)),
            }
        }
    }
    drop(alone);
}

/// The transaction is durable: what else it deferred happens in memory.
#[inline(never)]
fn make_visible(tx: &mut TxState) {
    for bitmap in &tx.bitmaps {
        // SAFETY: the bitmap of a slab that only this thread knows, in a puddle that its transaction keeps.
        unsafe {
            line::copy(
                bitmap.address as *mut u8,
                bitmap.words.as_ptr().cast(),
                bitmap.len * 8,
            );
        }
    }
    for set in &tx.sets {
        let source = &tx.set_bytes[set.from..set.from + set.len];
        // SAFETY: `set` checked the range; the caller of `set` promised that only this thread changes it.
        guarded(|| unsafe { line::copy(set.target as *mut u8, source.as_ptr(), set.len) });
    }
}
