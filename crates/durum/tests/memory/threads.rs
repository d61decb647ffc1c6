//! Threads that load and store while pages are given back.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use durum::{Domain, Durability, Error, Site};
use durum_persist::record::{Recorder, RecorderOptions};

use crate::{DOMAINS, Fixture, PAGE, PIECE, PIECES, Random, Root, alone, lock, make_piece, piece};

/// Threads with and without transactions, while others give pages back without end. Each word has one writer, who knows
/// what it holds.
fn stress(fixture: &Fixture, time: Duration, buffered: bool) -> u64 {
    const THREADS: usize = 3;
    let pool = fixture.pool();
    for at in 0..3 {
        make_piece(&pool, at, |_| 0);
    }
    let root = fixture.root();
    // So that large pages are gone, and the small ones are at stake.
    fixture.give_back();
    let stop = AtomicBool::new(false);
    let wrong = AtomicU64::new(0);
    let end = Instant::now() + time;
    let begin = Barrier::new(THREADS + 2);
    let given_back = AtomicU64::new(0);
    let root = &*root;
    let (pieces, lock) = (
        [0, 1, 2].map(|at| piece(root, at).as_mut_ptr().expose_provenance()),
        lock(root),
    );
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (pool, stop, wrong, begin) = (&pool, &stop, &wrong, &begin);
            scope.spawn(move || {
                durum_persist::record::join_thread();
                begin.wait();
                let word = |page: usize| {
                    let base = pieces[page % 2] + page / 2 * PAGE;
                    std::ptr::with_exposed_provenance_mut::<u64>(base).wrapping_add(number * 8)
                };
                let mut random = Random(number as u64 + 5);
                let mut values = [0u64; 16];
                while !stop.load(Ordering::Relaxed) {
                    let page = random.below(16);
                    // Back to what it was, sooner or later: so home holds it again, and records in between do not.
                    let next = (values[page] + 1) % 2;
                    let durability = match buffered && random.below(2) == 0 {
                        true => Durability::Buffered,
                        false => Durability::Durable,
                    };
                    let done = pool.transaction_with(durability, |tx| unsafe {
                        let word = word(page);
                        if word.read_volatile() != values[page] {
                            wrong.fetch_add(1, Ordering::Relaxed);
                        }
                        tx.add(word)?;
                        word.write_volatile(next);
                        if random.below(8) == 0 {
                            return tx.abort();
                        }
                        Ok(())
                    });
                    match done {
                        Ok(()) => values[page] = next,
                        Err(Error::Aborted) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        // Nobody announces these: a counter in each of some pages, and a lock.
        let (stop, wrong, begin, given_back) = (&stop, &wrong, &begin, &given_back);
        scope.spawn(move || {
            begin.wait();
            let mut values = [0u64; 16];
            let mut random = Random(99);
            while !stop.load(Ordering::Relaxed) {
                let page = random.below(16);
                let word = std::ptr::with_exposed_provenance_mut::<u64>(pieces[2] + page * PAGE);
                unsafe {
                    if word.read_volatile() != values[page] {
                        wrong.fetch_add(1, Ordering::Relaxed);
                    }
                    values[page] = u64::from(random.below(4) == 0);
                    word.write_volatile(values[page]);
                }
                if lock.swap(1, Ordering::AcqRel) != 0 {
                    wrong.fetch_add(1, Ordering::Relaxed);
                }
                lock.store(0, Ordering::Release);
            }
        });
        let pool = &pool;
        scope.spawn(move || {
            durum_persist::record::join_thread();
            begin.wait();
            let noted = std::ptr::with_exposed_provenance::<u64>(pieces[2]);
            // A machine that is busy with other things may give no page back in time.
            let has_enough = || given_back.load(Ordering::Relaxed) > 100;
            let is_over = |now| now >= end && has_enough() || now >= end + 20 * time;
            while !is_over(Instant::now()) && wrong.load(Ordering::Relaxed) == 0 {
                if let Some(pages) = fixture.store().give_pages_back().unwrap() {
                    given_back.fetch_add(pages as u64, Ordering::Relaxed);
                }
                // So that their pages count: a word of each that the other thread leaves alone.
                for page in 0..16 {
                    unsafe { pool.persist(noted.add(page * PAGE / 8 + 64), 8).unwrap() };
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
    println!("{} pages given back", given_back.load(Ordering::Relaxed));
    let wrong = wrong.into_inner();
    assert!(wrong > 0 || given_back.into_inner() > 100);
    wrong
}

#[test]
fn values_never_go_back_under_threads() {
    let Some(_alone) = alone() else { return };
    for domain in DOMAINS {
        for buffered in [false, true] {
            let fixture = Fixture::new(domain, u64::MAX);
            let wrong = stress(&fixture, Duration::from_millis(400), buffered);
            assert_eq!(wrong, 0, "{domain:?}, buffered: {buffered}");
        }
    }
}

/// Threads that only load, without any transaction, from pages that are exchanged for others at that moment: from
/// memory in large pages, which is filled, given back and changed again. A counter never goes back, and what does not
/// change is always there.
#[test]
fn loads_notice_nothing() {
    let Some(_alone) = alone() else { return };
    const AT_ONCE: usize = 8;
    for domain in DOMAINS {
        let fixture = Fixture::new(domain, u64::MAX);
        let (pool, root) = (fixture.pool(), fixture.root());
        // How many pieces are there; where they are does not change.
        let made = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let loads = AtomicU64::new(0);
        let root_address = (&raw const *root).expose_provenance();
        thread::scope(|scope| {
            for number in 0..2 {
                let (made, stop, loads) = (&made, &stop, &loads);
                scope.spawn(move || {
                    let root = std::ptr::with_exposed_provenance::<Root>(root_address);
                    let mut random = Random(number + 3);
                    let mut counters = vec![0; PIECES];
                    let mut count = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let pieces = made.load(Ordering::Acquire) as usize;
                        if pieces == 0 {
                            continue;
                        }
                        // Mostly the last ones, which are large pages still.
                        let at = pieces - 1 - random.below(pieces.min(2 * AT_ONCE));
                        let page = random.below(PIECE / PAGE) * PAGE / 8;
                        unsafe {
                            let piece = (&raw const (*root).pieces[at]).read_volatile();
                            let constant = piece.add(page + 1).read_volatile();
                            assert_eq!(constant, (at * PIECE + page + 1) as u64);
                            let counter = piece.read_volatile();
                            assert!(counter >= counters[at], "{counter} after {}", counters[at]);
                            counters[at] = counter;
                        }
                        count += 1;
                    }
                    loads.fetch_add(count, Ordering::Relaxed);
                });
            }
            let end = Instant::now() + Duration::from_secs(1);
            let mut given_back = 0;
            while Instant::now() < end && made.load(Ordering::Relaxed) as usize + AT_ONCE < PIECES {
                let first = made.load(Ordering::Relaxed) as usize;
                for at in first..first + AT_ONCE {
                    let word = |index| match index {
                        0 => 0,
                        index => (at * PIECE + index) as u64,
                    };
                    make_piece(&pool, at, word);
                }
                made.store((first + AT_ONCE) as u64, Ordering::Release);
                for _ in 0..3 {
                    for at in first..first + AT_ONCE {
                        pool.transaction(|tx| unsafe {
                            let counter = root.pieces[at];
                            tx.add(counter)?;
                            *counter += 1;
                            Ok::<_, Error>(())
                        })
                        .unwrap();
                    }
                    given_back += fixture.give_back();
                }
            }
            stop.store(true, Ordering::Relaxed);
            assert!(given_back > 1000, "{given_back}");
        });
        println!("{domain:?}: {} loads", loads.into_inner());
    }
}

/// What a round gives back while another thread has a transaction open.
fn give_back_beside_a_transaction(fixture: &Fixture) -> Option<usize> {
    let pool = fixture.pool();
    let give_back = || {
        durum_persist::record::join_thread();
        fixture.store().give_pages_back().unwrap()
    };
    pool.transaction(|_| {
        thread::scope(|scope| Ok::<_, Error>(scope.spawn(give_back).join().unwrap()))
    })
    .unwrap()
}

fn without<R>(step: Site, fixture: &Fixture, work: impl FnOnce(&Fixture) -> R) -> R {
    let options = RecorderOptions {
        skip: Some(step),
        ..RecorderOptions::default()
    };
    let recorder = Recorder::start(&fixture.path, options);
    let result = work(fixture);
    drop(recorder.stop());
    result
}

/// Else two commits may come between the last record that is applied and the comparison. That is too short for threads
/// to meet in it, so that the gate has a canary of its own.
#[test]
fn no_page_goes_while_a_transaction_is_open() {
    let Some(_alone) = alone() else { return };
    let fixture = Fixture::new(Domain::Dram, u64::MAX);
    make_piece(&fixture.pool(), 0, |_| 1);
    assert_eq!(give_back_beside_a_transaction(&fixture), None);
    let given_back = without(GATE, &fixture, give_back_beside_a_transaction);
    assert!(given_back > Some(0), "{given_back:?}");
}

/// What a word holds that a transaction made 1 and a store behind it 0 again, when its page was given back in between
/// and another transaction has committed.
fn word_after_a_round(fixture: &Fixture) -> u64 {
    let pool = fixture.pool();
    let set = |word: *mut u64| pool.transaction(|tx| unsafe { tx.set(word, 1) }).unwrap();
    let piece = piece(fixture.root(), 0).as_mut_ptr();
    let (word, other) = (piece.wrapping_add(1000), piece.wrapping_add(10_000));
    set(word);
    unsafe { word.write_volatile(0) };
    assert!(fixture.give_back() > 0);
    set(other);
    unsafe { word.read_volatile() }
}

/// Else home is what the page holds, and changes as soon as the record gets there that waits.
#[test]
fn no_page_goes_for_what_a_record_will_change() {
    let Some(_alone) = alone() else { return };
    let fixture = || {
        let fixture = Fixture::new(Domain::Dram, u64::MAX);
        make_piece(&fixture.pool(), 0, |_| 0);
        fixture
    };
    assert_eq!(word_after_a_round(&fixture()), 0);
    assert_eq!(without(APPLY, &fixture(), word_after_a_round), 1);
}

const GATE: Site = Site("shadow.memory: close the gate");
const APPLY: Site = Site("shadow.memory: apply every record");
const HOLD: Site = Site("shadow.memory: hold stores up");

/// A canary: without this step `values_never_go_back_under_threads` would fail.
#[test]
#[ignore = "a campaign of some seconds; of minutes where the machine is busy, as threads have to meet"]
fn holding_stores_up_is_needed() {
    let Some(_alone) = alone() else { return };
    let wrong = (0..60).map(|_| {
        let fixture = Fixture::new(Domain::Dram, u64::MAX);
        without(HOLD, &fixture, |fixture| {
            stress(fixture, Duration::from_secs(1), false)
        })
    });
    let noticed = wrong.into_iter().position(|wrong| wrong > 0);
    println!("noticed after {noticed:?} rounds");
    assert!(noticed.is_some());
}
