//! Updates of many threads in one transaction: their fences, and their order.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Scope;
use std::time::Duration;

use durum::{Error, Pool, Tx, thread_counters};

use crate::support::engine;
use crate::{Shared, change, combined, pool};

#[test]
fn every_update_of_many_threads_is_there() {
    let place = pool();
    let (pool, counter) = (&place.pool, Shared(place.pool.root::<u64>().unwrap()));
    const THREADS: u64 = 64;
    const ROUNDS: u64 = 200;
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(move || {
                let mut last = 0;
                for _ in 0..ROUNDS {
                    let now = pool
                        .update(|tx| unsafe {
                            change(tx, counter.at(), *counter.at() + 1)?;
                            Ok::<_, Error>(*counter.at())
                        })
                        .unwrap();
                    assert!(now > last, "a thread's updates come one after the other");
                    last = now;
                }
            });
        }
    });
    assert_eq!(
        pool.read(|| unsafe { *counter.at() }).unwrap(),
        THREADS * ROUNDS
    );
}

#[test]
fn combined_updates_share_the_fences_of_one() {
    for others in [1, 3, 7, 15] {
        let place = pool();
        let (pool, words) = (&place.pool, Shared(place.pool.root::<[u64; 32]>().unwrap()));
        let word = move |at: usize| unsafe { words.at().cast::<u64>().add(at) };
        let one = |tx: &Tx, at: usize| unsafe { change(tx, word(at), 1) };
        pool.update(|tx| one(tx, 31)).unwrap();
        let before = thread_counters();
        pool.update(|tx| one(tx, 30)).unwrap();
        let alone = (thread_counters() - before).fences;
        let before = thread_counters();
        let results = combined(
            pool,
            others,
            |tx| one(tx, 0),
            |number, tx| one(tx, number + 1),
        );
        assert!(results.into_iter().all(|result| result.unwrap().is_ok()));
        // This thread has led and run all of them.
        let together = (thread_counters() - before).fences;
        let number = others as u64 + 1;
        println!(
            "{}: {number} combined: {together} fences, {:.2} for each; alone {alone}",
            engine().name(),
            together as f64 / number as f64
        );
        if engine() == durum::Engine::Hybrid {
            // One for each range that it has to log before it changes.
            assert!(together < number + alone, "{together}");
        } else {
            assert_eq!(together, alone);
        }
        for at in 0..=others {
            assert_eq!(unsafe { *word(at) }, 1);
        }
    }
}

/// So much that a round has room for one such update only.
const ROUND_FULL: usize = 64 << 10;

/// An update that fills its round.
fn fill_round(tx: &Tx, words: Shared<[u64; ROUND_FULL / 8]>) -> Result<(), Error> {
    unsafe {
        tx.add(words.at())?;
        *words.at().cast::<u64>() += 1;
    }
    Ok(())
}

/// Threads that come one after the other, each with an update.
struct Coming<'p> {
    pool: &'p Pool,
    words: Shared<[u64; ROUND_FULL / 8]>,
    here: AtomicUsize,
    order: Mutex<Vec<usize>>,
}

impl Coming<'_> {
    const FIRST: usize = 15;
    const ALL: usize = 30;

    fn come<'s>(&'s self, scope: &'s Scope<'s, '_>, numbers: Range<usize>) {
        for number in numbers {
            scope.spawn(move || {
                self.here.fetch_add(1, Ordering::SeqCst);
                let updated = self.pool.update(|tx| {
                    self.order.lock().unwrap().push(number);
                    // Those who come later, while another one leads.
                    if number == Self::FIRST / 3 {
                        self.come(scope, Self::FIRST..Self::ALL);
                    }
                    fill_round(tx, self.words)
                });
                updated.unwrap();
            });
            while self.here.load(Ordering::SeqCst) <= number {
                std::thread::yield_now();
            }
            // Until it is announced.
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[test]
fn updates_run_in_the_order_of_their_coming_whoever_leads() {
    let place = pool();
    let coming = Coming {
        pool: &place.pool,
        words: Shared(place.pool.root().unwrap()),
        here: AtomicUsize::new(0),
        order: Mutex::new(Vec::new()),
    };
    std::thread::scope(|scope| {
        let coming = &coming;
        place
            .pool
            .update(|tx| {
                coming.come(scope, 0..Coming::FIRST);
                fill_round(tx, coming.words)
            })
            .unwrap();
    });
    let order = coming.order.into_inner().unwrap();
    assert_eq!(order, (0..Coming::ALL).collect::<Vec<_>>());
}

#[test]
fn who_leads_returns_though_others_never_stop() {
    let place = pool();
    let (pool, words) = (&place.pool, Shared(place.pool.root().unwrap()));
    // Two threads, each of which has announced its next update before the other one's has run. If leading had no end
    // they would stop first.
    const ROUNDS_MAX: usize = 150;
    let (is_announced, rounds) = (
        [(); 2].map(|()| AtomicBool::new(false)),
        AtomicUsize::new(0),
    );
    let has_returned = AtomicUsize::new(usize::MAX);
    let is_over = || {
        rounds.load(Ordering::SeqCst) >= ROUNDS_MAX
            || has_returned.load(Ordering::SeqCst) != usize::MAX
    };
    let wait_for = |number: usize| {
        let announced: &AtomicBool = &is_announced[number];
        while !announced.load(Ordering::SeqCst) && !is_over() {
            std::thread::yield_now();
        }
        // It is about to be.
        std::thread::sleep(Duration::from_millis(2));
    };
    std::thread::scope(|scope| {
        pool.update(|tx| {
            for number in 0..2 {
                let (is_announced, rounds) = (&is_announced, &rounds);
                let (is_over, wait_for) = (&is_over, &wait_for);
                scope.spawn(move || {
                    while !is_over() {
                        is_announced[number].store(true, Ordering::SeqCst);
                        let updated = pool.update(|tx| {
                            is_announced[number].store(false, Ordering::SeqCst);
                            wait_for(1 - number);
                            rounds.fetch_add(1, Ordering::SeqCst);
                            fill_round(tx, words)
                        });
                        updated.unwrap();
                    }
                });
            }
            wait_for(0);
            wait_for(1);
            fill_round(tx, words)
        })
        .unwrap();
        has_returned.store(rounds.load(Ordering::SeqCst), Ordering::SeqCst);
    });
    let rounds = has_returned.into_inner();
    assert!(rounds < ROUNDS_MAX / 2, "{rounds} rounds for others");
}
