//! Fences and syncs, counted.

use durum::{Announce, Domain, Error, PoolOptions, StoreOptions, all_counters, thread_counters};

use crate::fixture::*;

#[test]
fn fences_are_as_documented() {
    let fixture = Fixture::new();
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
    let fixture = Fixture::new();
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
    let fixture = Fixture::with(StoreOptions::new().domain(Domain::File), PoolOptions::new());
    let other = fixture
        .store
        .as_ref()
        .unwrap()
        .create_pool("other", PoolOptions::new())
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
