//! Fences and syncs, counted. Each engine has its own.

use std::time::Duration;

use durum::{
    Announce, Domain, Durability, Engine, Error, PoolOptions, StoreOptions, all_counters,
    thread_counters,
};

use crate::fixture::*;

fn on(engine: Engine) -> PoolOptions {
    PoolOptions::new().engine(engine)
}

#[test]
fn fences_are_as_documented() {
    let fixture = Fixture::with(StoreOptions::new(), on(Engine::Hybrid));
    let root = fixture.root();
    let pool = fixture.pool();
    push(pool, root, 1);
    let fences = |body: &mut dyn FnMut(&durum::Tx)| {
        let before = thread_counters();
        pool.transaction(|tx| {
            body(tx);
            Ok::<_, Error>(())
        })
        .unwrap();
        (thread_counters() - before).fences
    };
    let root = root as *mut Root;
    unsafe {
        assert_eq!(fences(&mut |_| ()), 0);
        for n in [1usize, 2, 7, 60] {
            let undo = fences(&mut |tx| {
                for i in 0..n {
                    tx.add(&raw const (*root).table[i * 8]).unwrap();
                    tx.add(&raw const (*root).table[i * 8]).unwrap();
                    (*root).table[i * 8] += 1;
                }
            });
            assert_eq!(undo, n as u64 + 2);
            let at_once = fences(&mut |tx| {
                let words = (0..n).map(|i| &raw mut (*root).table[i * 8]);
                tx.add_all(words.clone().map(|word| (word.cast_const().cast(), 8)))
                    .unwrap();
                words.for_each(|word| *word += 1);
            });
            assert_eq!(at_once, 3);
            // What is announced while the ranges are made is safe at once.
            let within = fences(&mut |tx| {
                let words = (0..n).map(|i| {
                    let before = thread_counters().fences;
                    tx.add(&raw const (*root).table[i * 8 + 1]).unwrap();
                    assert_eq!(thread_counters().fences, before + 1);
                    ((&raw const (*root).table[i * 8]).cast(), 8)
                });
                tx.add_all(words).unwrap();
            });
            assert_eq!(within, n as u64 + 3);
            let redo = fences(&mut |tx| {
                for i in 0..n {
                    tx.set(&raw mut (*root).table[i * 8], 3).unwrap();
                }
            });
            assert_eq!(redo, if n == 1 { 1 } else { 3 }, "one word needs no log");
        }
        assert_eq!(
            fences(&mut |tx| {
                tx.alloc::<Node>().unwrap();
            }),
            2
        );
        let mut node = std::ptr::null_mut();
        assert_eq!(
            fences(&mut |tx| {
                node = tx.alloc::<Node>().unwrap();
                tx.add(node).unwrap();
                (*node).value = 3;
            }),
            2
        );
        assert_eq!(fences(&mut |tx| tx.free(node).unwrap()), 1);
        assert_eq!(
            fences(&mut |tx| {
                tx.alloc::<[u64; 100]>().unwrap();
            }),
            2
        );
        let linked = |tx: &durum::Tx, size: usize| {
            let object = tx.alloc_bytes(pool, 0, size, 8).unwrap();
            tx.set(&raw mut (*root).table[5], object.expose_provenance() as u64)
                .unwrap();
        };
        assert_eq!(
            fences(&mut |tx| linked(tx, 40)),
            3,
            "the first of its size: a new slab"
        );
        assert_eq!(fences(&mut |tx| linked(tx, 40)), 3);
        assert_eq!(
            fences(&mut |tx| linked(tx, 4000)),
            4,
            "large fresh objects cost one more"
        );
        assert_eq!(
            fences(&mut |tx| {
                let node = tx.alloc::<Node>().unwrap();
                tx.set(
                    node,
                    Node {
                        value: 7,
                        next: node,
                    },
                )
                .unwrap();
                tx.set(&raw mut (*root).head, node).unwrap();
            }),
            3,
            "a set on a fresh object is a store to it"
        );
        assert_eq!((*(*root).head).value, 7);
        let mixed = fences(&mut |tx| {
            tx.add(&raw const (*root).table[0]).unwrap();
            (*root).table[0] = 1;
            tx.set(&raw mut (*root).count, 12).unwrap();
        });
        assert!(mixed <= 5, "{mixed}");
    }
    assert!(all_counters().fences >= thread_counters().fences);
}

/// What one transaction logs may be any number of entries in any number of puddles.
#[test]
fn large_ranges_cost_no_more_fences_than_small_ones() {
    const SIZE: usize = 9_000_000;
    let fixture = Fixture::with(StoreOptions::new(), on(Engine::Hybrid));
    let pool = fixture.pool();
    let block = pool
        .transaction(|tx| tx.alloc_bytes(pool, 0, SIZE, 8))
        .unwrap();
    let contents = vec![7u8; SIZE];
    let fences = |change: &dyn Fn(&durum::Tx) -> durum::Result<()>| {
        let before = thread_counters();
        pool.transaction(change).unwrap();
        (thread_counters() - before).fences
    };
    // In 6 MB all puddles of the log are at hand that it keeps; the first time they are made.
    for (size, made) in [(6_000_000, true), (6_000_000, false), (3_000_000, false)] {
        let undo = fences(&|tx| unsafe {
            tx.add_bytes(block, size, Announce::Backup)?;
            block.write_bytes(1, size);
            tx.add_bytes(block.add(8_000_000), 1000, Announce::Backup)?;
            block.add(8_000_000).write_bytes(2, 1000);
            Ok(())
        });
        let redo = fences(&|tx| unsafe { tx.set_bytes(block, contents.as_ptr(), size) });
        assert_eq!((undo > 4, redo), (made, 3), "{size} bytes: {undo}");
    }
    let found = unsafe { std::slice::from_raw_parts(block, SIZE) };
    assert!(found[..6_000_000].iter().all(|byte| *byte == 7));
    assert!(found[8_000_000..8_001_000].iter().all(|byte| *byte == 2));
}

/// A `set` on announced bytes is a store that comes at the commit, whatever else the transaction does to them.
#[test]
fn syncs_of_the_file_domain_do_not_grow_with_the_transaction() {
    let fixture = Fixture::with(StoreOptions::new().domain(Domain::File), on(Engine::Hybrid));
    let other = fixture
        .store
        .as_ref()
        .unwrap()
        .create_pool("other", on(Engine::Hybrid))
        .unwrap();
    let roots = [
        fixture.pool().root::<Root>().unwrap(),
        other.root::<Root>().unwrap(),
    ];
    push(fixture.pool(), roots[0], 1);
    for (files, ranges) in [(1u64, 1usize), (1, 3), (1, 60), (2, 2), (2, 30)] {
        let before = thread_counters();
        fixture
            .pool()
            .transaction(|tx| unsafe {
                for root in &roots[..files as usize] {
                    for at in 0..ranges {
                        tx.add(&raw const (**root).table[at * 8])?;
                        (**root).table[at * 8] += 1;
                    }
                    tx.set(&raw mut (**root).count, 3)?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        assert_eq!(
            (thread_counters() - before).syncs,
            files + 2,
            "{files} files, {ranges} ranges"
        );
    }
    let before = thread_counters();
    fixture
        .pool()
        .transaction(|tx| tx.alloc_bytes(fixture.pool(), 0, 500_000, 8).map(drop))
        .unwrap();
    assert_eq!(
        (thread_counters() - before).syncs,
        2,
        "a large object that nothing points to yet: its bytes, its bit"
    );
}

/// Whatever a transaction did: changes, deferred ones, objects made and freed, any number and size of them.
#[test]
fn a_transaction_on_shadow_costs_one_fence() {
    const SIZE: usize = 9_000_000;
    let fixture = Fixture::with(StoreOptions::new(), on(Engine::Shadow));
    let pool = fixture.pool();
    let root = &raw mut *fixture.root();
    let block = pool
        .transaction(|tx| tx.alloc_bytes(pool, 0, SIZE, 8))
        .unwrap();
    let fences = |change: &dyn Fn(&durum::Tx) -> durum::Result<()>| {
        let before = thread_counters();
        pool.transaction(change).unwrap();
        (thread_counters() - before).fences
    };
    assert_eq!(fences(&|_| Ok(())), 0);
    assert_eq!(
        fences(&|tx| unsafe { tx.add(&raw const (*root).count) }),
        0,
        "nothing has changed"
    );
    for round in 1..4u64 {
        for ranges in [1, 2, 8, 60] {
            let adds = fences(&|tx| unsafe {
                for at in 0..ranges {
                    tx.add(&raw const (*root).table[at * 8])?;
                    (*root).table[at * 8] += 1;
                }
                Ok(())
            });
            let sets = fences(&|tx| unsafe {
                (0..ranges).try_for_each(|at| tx.set(&raw mut (*root).table[at * 8], round))
            });
            assert_eq!((adds, sets), (1, 1), "{ranges} ranges");
        }
        let mixed = fences(&|tx| unsafe {
            let node = tx.alloc::<Node>()?;
            (*node).value = 7;
            let large = tx.alloc_bytes(pool, 0, 100_000, 8)?;
            large.write_bytes(3, 100_000);
            tx.free(large)?;
            tx.free(tx.alloc::<[u64; 100]>()?)?;
            tx.add(&raw const (*root).count)?;
            (*root).count += 1;
            tx.set(&raw mut (*root).head, node)
        });
        assert_eq!(mixed, 1);
        assert_eq!(fences(&|tx| unsafe { tx.free((*root).head) }), 1);
        let large = fences(&|tx| unsafe {
            tx.add_bytes(block, 6_000_000, Announce::Backup)?;
            block.write_bytes(round as u8, 6_000_000);
            tx.set_bytes(block.add(7_000_000), block, 1_000_000)
        });
        assert_eq!(large, 1, "of any size");
        let before = thread_counters();
        unsafe { pool.persist(block, 100) }.unwrap();
        assert_eq!((thread_counters() - before).fences, 1);
        let start = block as usize;
        let before = thread_counters();
        unsafe { pool.persist_all(&[start..start + 8, start + 4096..start + 4200]) }.unwrap();
        assert_eq!((thread_counters() - before).fences, 1, "of several ranges");
        let refused = unsafe { pool.persist_all(&[start..start + 8, 64..72]) };
        assert!(matches!(refused, Err(Error::NotInPool { address: 64, .. })));
    }
}

/// A line that is changed again and again goes home once in megabytes of records; others go home at the pace at which
/// they come, so that no commit has to wait for that with a fence of its own.
#[test]
fn hot_lines_on_shadow_are_written_once_and_cold_ones_in_time() {
    const LINE: usize = 8;
    const COMMITS: usize = 100_000;
    let fixture = Fixture::with(StoreOptions::new(), on(Engine::Shadow));
    let pool = fixture.pool();
    let words: *mut u64 = pool
        .transaction(|tx| tx.alloc_bytes(pool, 0, 3 * COMMITS * LINE * 8, 8))
        .unwrap()
        .cast();
    let costs = |first: usize, lines: usize| {
        let before = thread_counters();
        for number in 0..COMMITS {
            pool.transaction(|tx| unsafe {
                let word = words.add((first + number % lines) * LINE);
                tx.add(word)?;
                *word += 1;
                Ok::<_, Error>(())
            })
            .unwrap();
        }
        let costs = thread_counters() - before;
        // Records go past the cache.
        let lines = costs.write_backs + costs.streamed_lines;
        (costs.fences as usize, lines as usize)
    };
    // The log comes to its size, and the last of its batches is of this kind.
    costs(0, 500);
    let (fences, hot) = costs(0, 500);
    assert_eq!(fences, COMMITS);
    assert!((COMMITS..COMMITS + 2_000).contains(&hot), "{hot}");
    costs(COMMITS, COMMITS);
    let (fences, cold) = costs(2 * COMMITS, COMMITS);
    assert_eq!(fences, COMMITS);
    // Up to the lines of a batch, which may be written in this round or the next.
    assert!(
        (2 * COMMITS - 2_048..2 * COMMITS + 2_048).contains(&cold),
        "{cold}"
    );
}

#[test]
fn a_transaction_on_shadow_costs_one_sync_on_a_file_system() {
    let options = StoreOptions::new().domain(Domain::File);
    let fixture = Fixture::with(options, on(Engine::Shadow));
    let pool = fixture.pool();
    let other = fixture.store.as_ref().unwrap();
    let other = other.create_pool("other", on(Engine::Shadow)).unwrap();
    let roots = [&raw mut *fixture.root(), other.root::<Root>().unwrap()];
    for ranges in [1, 60] {
        let before = thread_counters();
        pool.transaction(|tx| unsafe {
            for root in roots {
                for at in 0..ranges {
                    tx.add(&raw const (*root).table[at * 8])?;
                    (*root).table[at * 8] += 1;
                }
                tx.set(&raw mut (*root).head, tx.alloc::<Node>()?)?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
        assert_eq!((thread_counters() - before).syncs, 1, "{ranges} ranges");
    }
    let before = thread_counters();
    pool.transaction(|tx| unsafe {
        tx.alloc_bytes(pool, 0, 100_000, 8)?.write_bytes(7, 100_000);
        Ok::<_, Error>(())
    })
    .unwrap();
    let spent = thread_counters() - before;
    assert_eq!(spent.syncs, 1, "a large object goes through the log");
    assert!(spent.bytes_logged > 100_000, "{}", spent.bytes_logged);
}

/// While buffered transactions wait, and in one, large objects go through the log.
#[test]
fn a_large_fresh_object_beside_buffered_transactions_costs_no_more_fences() {
    const SIZE: usize = 10_000;
    // So long that no flusher comes between.
    let options = StoreOptions::new().buffered_window(Duration::from_secs(3600));
    let fixture = Fixture::with(options, on(Engine::Shadow));
    let pool = fixture.pool();
    let costs = |durability| {
        let before = thread_counters();
        pool.transaction_with(durability, |tx| unsafe {
            tx.alloc_bytes(pool, 0, SIZE, 8)?.write_bytes(7, SIZE);
            Ok::<_, Error>(())
        })
        .unwrap();
        let spent = thread_counters() - before;
        (spent.fences, spent.bytes_logged as usize / SIZE)
    };
    assert_eq!(costs(Durability::Durable), (1, 0));
    assert_eq!(costs(Durability::Buffered), (0, 0));
    assert_eq!(costs(Durability::Durable), (1, 2), "both of them");
}

/// A fresh object goes home with the commit that makes it, unless the log may still have something about its place.
#[test]
fn a_large_fresh_object_on_shadow_is_not_logged() {
    const SIZE: usize = 1 << 20;
    let fixture = Fixture::with(StoreOptions::new(), on(Engine::Shadow));
    let pool = fixture.pool();
    // The last object, bytes logged, fences.
    let costs = |change: &dyn Fn(&durum::Tx) -> durum::Result<*mut u8>| {
        let before = thread_counters();
        let object = pool.transaction(change).unwrap();
        let spent = thread_counters() - before;
        (object, spent.bytes_logged, spent.fences)
    };
    let make = |tx: &durum::Tx, size: usize| unsafe {
        let object = tx.alloc_bytes(pool, 0, size, 8)?;
        object.write_bytes(size as u8 | 1, size);
        Ok(object)
    };
    let (_, logged, fences) = costs(&|tx| make(tx, SIZE));
    assert!(logged < 1024, "{logged} bytes");
    assert_eq!(fences, 1);
    // In a puddle that does not go when it is freed, so that its place is taken again before long.
    let size = SIZE / 8;
    let is_logged_then = (0..64).any(|_| {
        let (object, logged, fences) = costs(&|tx| make(tx, size));
        assert_eq!(fences, 1);
        costs(&|tx| unsafe { tx.free(object).map(|()| object) });
        logged > size as u64
    });
    assert!(is_logged_then);

    let fixture = Fixture::with(StoreOptions::new(), on(Engine::Shadow));
    let pool = fixture.pool();
    let before = thread_counters();
    for sizes in [&[1024, 1500, 4096, 4097, 70_000, 3 << 20][..], &[900]] {
        pool.transaction(|tx| unsafe {
            sizes.iter().try_for_each(|size| {
                tx.alloc_bytes(pool, 0, *size, 8)?.write_bytes(7, *size);
                Ok::<_, Error>(())
            })
        })
        .unwrap();
    }
    let spent = thread_counters() - before;
    assert_eq!(spent.fences, 2);
    let only_the_small_one = 900..2500;
    assert!(
        only_the_small_one.contains(&spent.bytes_logged),
        "{} bytes",
        spent.bytes_logged
    );
}
