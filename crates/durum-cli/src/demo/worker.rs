//! The process that is killed: threads that count words in transactions, until they are told to finish or die.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use super::map::{Locks, Placed, WordMap};
use super::pool::{DemoPool, PieceRef};
use super::text::{self, words};
use crate::args::Demo;
use crate::failure::Failure;

/// Words in a transaction: long enough that most kills come in the middle of one.
const WORDS_PER_TRANSACTION: usize = 8;
/// Time between two reports.
const REPORT_PERIOD: Duration = Duration::from_millis(20);

/// What all threads of the worker know.
struct Work<'a> {
    pool: &'a DemoPool,
    pieces: Vec<PieceRef>,
    /// The words of each piece, once somebody has looked for them.
    words: Vec<OnceLock<Vec<Placed>>>,
    /// One thread at a time counts a piece.
    piece_locks: Vec<Mutex<()>>,
    locks: Locks,
    /// The next ticket: ticket t is for piece t modulo the number of pieces.
    ticket: AtomicU64,
    /// The pass of ticket 0.
    first_pass: u64,
    /// The pass after the last one.
    end_pass: u64,
    /// Words that were durably counted by earlier runs.
    before: u64,
    must_stop: AtomicBool,
}

// SAFETY: the only part that is not `Sync` by itself is the pool with its raw root pointer; threads use what is
// `Sync` of it, and the map, whose lanes they lock.
unsafe impl Sync for Work<'_> {}

/// Counts until killed, or with `finish` until the pass that was begun is complete; a new one, if none is begun: each
/// run of the demo counts the text at least once. Prints a line `durable N ...` all the time.
pub(crate) fn run(options: &Demo, store: &Path, out: &mut dyn Write) -> Result<(), Failure> {
    let (store, mut pool) = DemoPool::open(store, options.engine)?;
    prepare_text(options, &mut pool)?;
    let pieces = pool.pieces();
    let with_words = || pieces.iter().filter(|piece| piece.words() > 0);
    let counted = |piece: &PieceRef| piece.counted() / piece.words();
    let begun = |piece: &PieceRef| piece.counted().div_ceil(piece.words());
    let first_pass = with_words().map(counted).min().unwrap_or(0);
    let work = Work {
        first_pass,
        end_pass: match options.finish {
            true => with_words().map(begun).fold(first_pass + 1, u64::max),
            false => u64::MAX,
        },
        before: pieces.iter().map(PieceRef::counted).sum(),
        piece_locks: pieces.iter().map(|_| Mutex::new(())).collect(),
        words: pieces.iter().map(|_| OnceLock::new()).collect(),
        pieces,
        pool: &pool,
        locks: Locks::default(),
        ticket: AtomicU64::new(0),
        must_stop: AtomicBool::new(false),
    };
    let result = thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..options.threads as usize)
            .map(|thread| scope.spawn(move || count_pieces(work, thread)))
            .collect();
        let mut reported = Ok(());
        while !threads.iter().all(thread::ScopedJoinHandle::is_finished) {
            reported = reported.and_then(|()| report(work, out));
            if reported.is_err() {
                // Whoever started this process is gone.
                work.must_stop.store(true, Ordering::Relaxed);
            }
            thread::park_timeout(REPORT_PERIOD);
        }
        for thread in threads {
            match thread.join() {
                Ok(counted) => counted?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        reported
    });
    result?;
    report(&work, out)?;
    drop(work);
    drop(pool);
    drop(store);
    Ok(())
}

/// Stores the text, if a new store or one whose first worker was killed does not have all of it.
fn prepare_text(options: &Demo, pool: &mut DemoPool) -> Result<(), Failure> {
    let mut given = None;
    if options.text_from_input && pool.checksum().is_none() {
        let mut bytes = Vec::new();
        std::io::stdin()
            .lock()
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::system("reading the text", error))?;
        given = Some(bytes);
    } else if !options.text_from_input && !options.files.is_empty() {
        given = Some(text::named(&options.files)?.bytes);
    }
    match (pool.checksum(), given) {
        (Some(stored), Some(given)) if stored != text::checksum(&given) => Err(text::other()),
        (Some(_), _) => Ok(()),
        (None, Some(given)) => pool.store_text(&given),
        (None, None) => pool.store_text(&text::default()?.bytes),
    }
}

/// A line for the parent, the power-cut test and people: what is durable, and what it cost.
fn report(work: &Work<'_>, out: &mut dyn Write) -> Result<(), Failure> {
    // Read first: what is counted meanwhile is durable as well.
    let done = work.locks.done();
    let durable = work.before + done.words;
    let cost = durum::all_counters();
    let lines = cost.write_backs + cost.streamed_lines;
    let left = match work.end_pass {
        u64::MAX => 0,
        end => work
            .pieces
            .iter()
            .map(|piece| piece.words() * end)
            .sum::<u64>()
            .saturating_sub(durable),
    };
    writeln!(
        out,
        "durable {durable} transactions {} fences {} write_backs {} syncs {} left {left}",
        done.transactions, cost.fences, lines, cost.syncs,
    )?;
    Ok(out.flush()?)
}

/// Takes tickets until all passes are done. A thread that fails stops the others.
fn count_pieces(work: &Work<'_>, thread: usize) -> Result<(), Failure> {
    let result = (|| {
        let count = work.pieces.len() as u64;
        while !work.must_stop.load(Ordering::Relaxed) && count > 0 {
            let ticket = work.ticket.fetch_add(1, Ordering::Relaxed);
            let pass = work.first_pass + ticket / count;
            if pass >= work.end_pass {
                break;
            }
            count_piece(work, thread, (ticket % count) as usize, pass + 1)?;
        }
        Ok(())
    })();
    if result.is_err() {
        work.must_stop.store(true, Ordering::Relaxed);
    }
    result
}

/// Counts a piece up to the end of a pass, from where it durably stands.
fn count_piece(work: &Work<'_>, thread: usize, at: usize, passes: u64) -> Result<(), Failure> {
    let piece = &work.pieces[at];
    let _one_thread = work.piece_locks[at]
        .lock()
        .unwrap_or_else(PoisonError::into_inner);
    let end = piece.words() * passes;
    let mut counted = piece.counted();
    if counted >= end {
        return Ok(());
    }
    let all = work.words[at].get_or_init(|| words(piece.text()).map(Placed::from).collect());
    let lane = Locks::lane(thread);
    // More than one pass, where another thread has the ticket before this one and came later to the lock.
    while counted < end {
        let done = (counted % piece.words()) as usize;
        for batch in all[done..].chunks(WORDS_PER_TRANSACTION) {
            if work.must_stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            counted += batch.len() as u64;
            count_batch(work, piece, lane, batch, counted)?;
        }
    }
    Ok(())
}

/// Counts some words and notes how far the piece is now: both or neither, whatever happens.
fn count_batch(
    work: &Work<'_>,
    piece: &PieceRef,
    lane: usize,
    batch: &[Placed],
    counted: u64,
) -> Result<(), Failure> {
    let map = work.pool.map();
    // Held until the transaction has returned: before that, its changes may yet be rolled back.
    let mut done = work.locks.lock(lane);
    work.pool.inner.transaction(|tx| {
        for placed in batch {
            // SAFETY: the map is in this pool, and the lane is locked.
            unsafe { WordMap::increment(map, tx, lane, placed)? };
        }
        // SAFETY: this thread has the lock of the piece.
        unsafe { piece.set_counted(tx, counted) }
    })?;
    done.words += batch.len() as u64;
    done.transactions += 1;
    Ok(())
}
