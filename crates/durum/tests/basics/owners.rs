//! Owners of lines order the records of threads that change disjoint data, and the counter those of threads that meet.

use std::cell::Cell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use durum::{Engine, Error, Pool, PoolOptions, StoreOptions};

use crate::fixture::*;

/// Adds one to a word.
fn count(pool: &Pool, word: usize) {
    let word = std::ptr::with_exposed_provenance_mut::<u64>(word);
    let counted = pool.transaction(|tx| {
        // SAFETY: a word of the root that this thread has for itself.
        unsafe {
            tx.add(word)?;
            *word += 1;
        }
        Ok::<_, Error>(())
    });
    counted.unwrap();
}

/// Two threads count, each for so long as it is told; how often they did.
fn count_beside(
    pool: &Pool,
    words: [usize; 2],
    lock: &Mutex<()>,
    until: impl Fn(usize) -> bool,
) -> [u64; 2] {
    let (counts, is_over) = (
        [AtomicUsize::new(0), AtomicUsize::new(0)],
        AtomicBool::new(false),
    );
    let is_one = words[0] == words[1];
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (counts, is_over) = (&counts, &is_over);
            scope.spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    let _lock = is_one.then(|| lock.lock().unwrap());
                    count(pool, words[thread]);
                    counts[thread].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        while !until(
            counts
                .iter()
                .map(|count| count.load(Ordering::Relaxed))
                .sum(),
        ) {
            std::thread::yield_now();
        }
        is_over.store(true, Ordering::Relaxed);
    });
    counts.map(|count| count.into_inner() as u64)
}

fn words(fixture: &Fixture) -> [usize; 2] {
    let table = (&raw mut fixture.root().table).cast::<u64>();
    // More than a line apart.
    [0, 300].map(|index| table.wrapping_add(index).expose_provenance())
}

const COMMITS_MAX: usize = 20_000_000;

/// Without being told: where nobody meets owners order, and where all meet they do not.
#[test]
fn the_order_follows_what_threads_do() {
    let options = PoolOptions::new().engine(Engine::Shadow);
    let mut fixture = Fixture::with(StoreOptions::new(), options);
    let (store, pool) = (fixture.store.as_ref().unwrap(), fixture.pool());
    let [first, second] = words(&fixture);
    let lock = Mutex::new(());
    let apart = count_beside(pool, [first, second], &lock, |commits| {
        store.is_ordered_by_owner() || commits > COMMITS_MAX
    });
    // Both threads have gone, or are just going: who is alone counts.
    let began = Instant::now();
    while store.is_ordered_by_owner() {
        assert!(began.elapsed() < Duration::from_secs(60), "nobody is there");
        std::thread::yield_now();
    }
    // They begin as the others have ended, and are found out.
    let was_ordered = Cell::new(false);
    let together = count_beside(pool, [first, first], &lock, |commits| {
        let is_ordered = store.is_ordered_by_owner();
        was_ordered.set(was_ordered.get() || is_ordered);
        was_ordered.get() && !is_ordered || commits > COMMITS_MAX
    });
    assert!(apart.iter().sum::<u64>() + together.iter().sum::<u64>() < COMMITS_MAX as u64);
    fixture.reopen(StoreOptions::new());
    let table = &fixture.root().table;
    assert_eq!(table[0], apart[0] + together[0] + together[1]);
    assert_eq!(table[300], apart[1]);
}
