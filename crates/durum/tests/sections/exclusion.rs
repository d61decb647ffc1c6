//! Where sections cannot be, and whom they keep out.

use std::sync::atomic::{AtomicBool, Ordering};

use durum::{Domain, Engine, Error, PageTracking, Pool, PoolOptions};

use crate::{Fixture, Root, options, root};

#[test]
fn sections_are_refused_where_they_cannot_be() {
    let fixture = Fixture::new(PageTracking::Auto, Domain::Dram);
    let (store, pool) = (fixture.store.as_ref().unwrap(), fixture.pool());
    let other = store
        .create_pool("other", options(PageTracking::Auto))
        .unwrap();
    let hybrid = PoolOptions::new().engine(Engine::Hybrid);
    let hybrid = store.create_pool("hybrid", hybrid).unwrap();
    let section = |pool: &Pool| unsafe { pool.section(|_| Ok::<_, Error>(())) };
    assert!(matches!(section(&hybrid), Err(Error::SectionEngine { .. })));
    pool.transaction(|_| {
        assert!(matches!(section(pool), Err(Error::SectionInside { .. })));
        Ok::<_, Error>(())
    })
    .unwrap();
    let words = &mut root(pool).words;
    unsafe {
        pool.section(|_| {
            assert!(matches!(section(&other), Err(Error::SectionInside { .. })));
            words[1] = 1;
            // Becomes part of it.
            pool.section(|_| {
                words[2] = 2;
                Ok::<_, Error>(())
            })?;
            pool.transaction(|tx| {
                tx.add(&raw const words[3])?;
                words[3] = 3;
                Ok::<_, Error>(())
            })
        })
    }
    .unwrap();
    let aborted = unsafe {
        pool.section(|_| {
            words[1] = 4;
            let inner: Result<(), Error> = pool.section(|tx| tx.abort());
            assert!(inner.is_err());
            Ok::<_, Error>(())
        })
    };
    assert!(matches!(aborted, Err(Error::Aborted)));
    assert_eq!(words[..5], [0, 1, 2, 3, 0]);
    assert!(section(pool).is_ok() && section(&other).is_ok());
}

#[test]
fn other_transactions_are_kept_out() {
    let fixture = Fixture::new(PageTracking::Auto, Domain::Dram);
    let pool = fixture.pool();
    let words = root(pool).words.as_mut_ptr().expose_provenance();
    let (inside, end) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for thread in 1..3usize {
            let (inside, end) = (&inside, &end);
            scope.spawn(move || {
                let own = unsafe {
                    std::ptr::with_exposed_provenance_mut::<u64>(words).add(thread * 1000)
                };
                while !end.load(Ordering::Relaxed) {
                    pool.transaction(|tx| unsafe {
                        assert!(!inside.load(Ordering::Relaxed));
                        tx.add(own)?;
                        *own += 1;
                        assert!(!inside.load(Ordering::Relaxed));
                        Ok::<_, Error>(())
                    })
                    .unwrap();
                    unsafe { pool.persist(own, 8) }.unwrap();
                }
            });
        }
        let first = std::ptr::with_exposed_provenance_mut::<u64>(words);
        for round in 0..300u64 {
            let result = unsafe {
                pool.section(|_| {
                    inside.store(true, Ordering::Relaxed);
                    *first = round;
                    let seen = (*first.add(1000), *first.add(2000));
                    std::thread::yield_now();
                    assert_eq!(seen, (*first.add(1000), *first.add(2000)));
                    inside.store(false, Ordering::Relaxed);
                    Ok::<_, Error>(())
                })
            };
            result.unwrap();
        }
        end.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_section_and_another_thread_may_ask_for_a_new_root_at_once() {
    for _ in 0..50 {
        let fixture = Fixture::new(PageTracking::Auto, Domain::Dram);
        let pool = fixture.pool();
        let roots = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                loop {
                    match pool.root::<Root>() {
                        // The section is making it.
                        Err(Error::RootPending { .. }) => std::thread::yield_now(),
                        root => break root.unwrap().addr(),
                    }
                }
            });
            let own = unsafe { pool.section(|_| Ok::<_, Error>(pool.root::<Root>()?.addr())) };
            (own.unwrap(), other.join().unwrap())
        });
        assert_eq!(roots.0, roots.1);
    }
}
