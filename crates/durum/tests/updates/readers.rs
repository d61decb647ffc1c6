//! Readers beside updates.

use std::sync::atomic::{AtomicU64, Ordering};

use durum::Error;

use crate::{Shared, change, pool};

#[test]
fn readers_see_no_half_of_an_update() {
    let place = pool();
    let (pool, pair) = (&place.pool, Shared(place.pool.root::<[u64; 2]>().unwrap()));
    let word = move |at: usize| unsafe { pair.at().cast::<u64>().add(at) };
    let (done, reads) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while done.load(Ordering::Relaxed) < 2 {
                    let (first, second) = pool
                        .read(|| unsafe { (word(0).read_volatile(), word(1).read_volatile()) })
                        .unwrap();
                    reads.fetch_add(1, Ordering::Relaxed);
                    assert_eq!(first, second);
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                // On a busy machine readers may begin late.
                let is_over = |round| round >= 400 && reads.load(Ordering::Relaxed) > 0;
                for round in (0..).take_while(|round| !is_over(*round)) {
                    let result = pool.update(|tx| unsafe {
                        let next = *word(0) + 1;
                        change(tx, word(0), next)?;
                        std::thread::yield_now();
                        if round % 3 == 0 {
                            return Err(Error::Aborted);
                        }
                        change(tx, word(1), next)
                    });
                    assert_eq!(result.is_err(), round % 3 == 0);
                }
                done.fetch_add(1, Ordering::Relaxed);
            });
        }
    });
}

#[test]
fn a_reader_gets_in_between_updates_that_never_end() {
    let place = pool();
    let (pool, word) = (&place.pool, Shared(place.pool.root::<u64>().unwrap()));
    let stop = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while stop.load(Ordering::Relaxed) == 0 {
                    pool.update(|tx| unsafe { change(tx, word.at(), *word.at() + 1) })
                        .unwrap();
                }
            });
        }
        for _ in 0..200 {
            pool.read(|| unsafe { *word.at() }).unwrap();
        }
        stop.store(1, Ordering::Relaxed);
    });
}
