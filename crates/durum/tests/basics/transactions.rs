//! Transactions, roots, nesting, errors.

use crate::support::pool_options;
use durum::{Announce, Domain, Error, Store, StoreOptions};
use durum_format::UNIT;
use durum_format::puddle::BITMAP_OFFSET;

use crate::fixture::*;

#[test]
fn a_list_survives_reopening() {
    for domain in [None, Some(Domain::Dax), Some(Domain::File)] {
        let mut options = StoreOptions::new();
        options.domain = domain;
        let mut fixture = Fixture::with(options.clone(), pool_options());
        for value in 0..1000 {
            push(fixture.pool(), fixture.root(), value);
        }
        fixture.reopen(options.clone());
        let expected: Vec<u64> = (0..1000).rev().collect();
        assert_eq!(values(fixture.root()), expected);
        assert_eq!(fixture.root().count, 1000);
        push(fixture.pool(), fixture.root(), 7);
        fixture.reopen(options);
        assert_eq!(fixture.root().count, 1001);
    }
}

#[test]
fn an_error_and_a_panic_roll_back_exactly_the_announced_bytes() {
    let fixture = Fixture::new();
    let root = fixture.root();
    let pool = fixture.pool();
    let change = |root: &mut Root| {
        root.count = 9;
        root.table[3] = 4;
    };
    let result: Result<(), Error> = pool.transaction(|tx| {
        unsafe {
            tx.add(&raw const root.count)?;
            tx.add_bytes(
                (&raw const root.table).cast(),
                size_of_val(&root.table),
                Announce::Backup,
            )?;
        }
        change(root);
        tx.abort()
    });
    assert!(matches!(result, Err(Error::Aborted)));
    assert_eq!((root.count, root.table[3]), (0, 0));
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        pool.transaction(|tx| -> Result<(), Error> {
            unsafe {
                tx.add(&raw const root.count)?;
            }
            root.count = 5;
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(root.count, 0);
}

/// A scope of threads is left before their thread-local destructors have run, in which they give back what they hold.
#[test]
fn a_store_can_be_opened_again_while_threads_that_used_it_are_just_ending() {
    let mut fixture = Fixture::new();
    for round in 0..100 {
        let pool = fixture.pool();
        std::thread::scope(|scope| {
            for _ in 0..8 {
                // It has slabs of many sizes to give back.
                scope.spawn(move || {
                    pool.transaction(|tx| {
                        let sizes = (8..400).step_by(8);
                        let objects = sizes.map(|size| tx.alloc_bytes(pool, 0, size, 8));
                        let objects: Result<Vec<_>, _> = objects.collect();
                        objects?
                            .into_iter()
                            .try_for_each(|object| unsafe { tx.free(object) })
                    })
                    .unwrap();
                });
            }
        });
        fixture.pool = None;
        fixture.store = None;
        let store = Store::open(fixture.dir.path().join("store"), StoreOptions::new());
        let store = store.unwrap_or_else(|error| panic!("round {round}: {error}"));
        fixture.pool = Some(store.open_pool("pool", pool_options()).unwrap());
        fixture.store = Some(store);
    }
}

/// Words alone, in all orders and again and again; with longer ranges over them, with deferred stores and objects.
#[test]
fn words_that_are_announced_again_and_again_come_back_or_stay() {
    let mut fixture = Fixture::new();
    let mut state = 5u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let mut model = vec![0u64; 600];
    for round in 0..400u64 {
        let (pool, root) = (fixture.pool(), &raw mut *fixture.root());
        let table = unsafe { &raw mut (*root).table }.cast::<u64>();
        let mut next = model.clone();
        // Few places, or the two whose places in the memory of the last words are the same, or all of them.
        let places: Vec<usize> = match round % 3 {
            0 => vec![3, 4, 131],
            1 => (0..12).collect(),
            _ => (0..600).collect(),
        };
        let commits = round % 4 != 0;
        let result = pool.transaction(|tx| unsafe {
            for step in 0..random(40) {
                let at = places[random(places.len() as u64) as usize];
                match random(24) {
                    0 if at < 590 => {
                        tx.add_bytes(table.add(at).cast(), 70, Announce::Backup)?;
                        table.add(at + 8).write(next[at + 8]);
                    }
                    1 => {
                        tx.add_bytes(table.add(at).cast::<u8>().add(3), 2, Announce::Backup)?;
                    }
                    2 => tx.free(tx.alloc::<Node>()?)?,
                    _ => {
                        tx.add(table.add(at))?;
                        next[at] = round << 32 | step;
                        table.add(at).write(next[at]);
                    }
                }
            }
            match commits {
                true => Ok(()),
                false => tx.abort(),
            }
        });
        assert_eq!(result.is_ok(), commits);
        if commits {
            model = next;
        }
        assert!(fixture.root().table[..] == model[..], "round {round}");
        if round % 40 == 39 {
            fixture.reopen(StoreOptions::new());
            assert!(
                fixture.root().table[..] == model[..],
                "reopened in round {round}"
            );
        }
    }
}

#[test]
fn a_word_that_was_announced_is_committed_also_where_something_was_persisted_after_it() {
    let mut fixture = Fixture::new();
    for value in 1..4 {
        let (pool, root) = (fixture.pool(), fixture.root());
        // The first transaction is the one that finds out where the others may announce words without a call.
        for value in [0, value] {
            pool.transaction(|tx| unsafe {
                tx.add(&raw const root.count)?;
                root.count = value;
                root.table[7] = value;
                pool.persist(&raw const root.table[7], 8)
            })
            .unwrap();
        }
        fixture.reopen(StoreOptions::new());
        let root = fixture.root();
        assert_eq!((root.count, root.table[7]), (value, value));
    }
}

#[test]
fn a_counter_in_a_loop_does_not_fill_the_log() {
    let fixture = Fixture::new();
    let root = fixture.root();
    let before = durum::thread_counters().bytes_logged;
    fixture
        .pool()
        .transaction(|tx| {
            for number in 0..10_000 {
                unsafe { tx.add(&raw const root.count)? };
                root.count += 1;
                unsafe { tx.add(&raw const root.table[number % 50])? };
                root.table[number % 50] += 1;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    let logged = durum::thread_counters().bytes_logged - before;
    assert!(logged < 2048, "{logged}");
}

#[test]
fn sets_on_announced_ranges_keep_their_order() {
    let fixture = Fixture::new();
    let (pool, root) = (fixture.pool(), fixture.root() as *mut Root);
    let word = |index: usize| unsafe { &raw mut (*root).table[index] };
    let run = |commits: bool| {
        let _ = pool.transaction(|tx| unsafe {
            tx.add_bytes(word(0).cast(), 16, Announce::Backup)?;
            tx.add_bytes(word(8).cast(), 8, Announce::Clobber)?;
            (*word(0), *word(1)) = (1, 2);
            tx.set(word(0), 3)?;
            // Half of this one is announced.
            tx.set(word(1).cast::<[u64; 2]>(), [4, 5])?;
            tx.set(word(1), 6)?;
            tx.set(word(8), 7)?;
            assert_eq!(
                (*word(0), *word(1), *word(2)),
                (1, 2, 0),
                "not before the commit"
            );
            if commits { Ok(()) } else { tx.abort() }
        });
    };
    run(false);
    unsafe { assert_eq!((*word(0), *word(1), *word(2)), (0, 0, 0)) };
    run(true);
    unsafe { assert_eq!((*word(0), *word(1), *word(2), *word(8)), (3, 6, 5, 7)) };
}

#[test]
fn a_root_whose_type_has_changed_is_refused_with_what_has_changed() {
    mod before {
        #[repr(C)]
        pub struct Task {
            pub priority: u32,
            pub tries: u32,
        }
        durum::describe!(Task as "Task" { priority, tries });
        #[repr(C)]
        pub struct Queue {
            pub first: *mut Task,
            pub count: u64,
        }
        durum::describe!(Queue as "Queue" { first, count });
    }
    mod since {
        #[repr(C)]
        pub struct Task {
            pub priority: u32,
            pub tries: u32,
            pub deadline: u64,
        }
        durum::describe!(Task as "Task" { priority, tries, deadline });
        #[repr(C)]
        pub struct Queue {
            pub first: *mut Task,
            pub count: i64,
        }
        durum::describe!(Queue as "Queue" { first, count });
    }
    let fixture = Fixture::new();
    let pool = fixture.pool().clone();
    pool.root::<before::Queue>().unwrap();
    let error = pool.root::<since::Queue>().unwrap_err();
    let told = error.to_string();
    let Error::RootType { changes, .. } = error else {
        panic!("{told}");
    };
    let expected = ["Queue.count: u64, now i64", "*Queue.first: + deadline: u64"];
    assert_eq!(changes, expected);
    assert!(told.contains(&expected.join("; ")), "{told}");
    // The one before is there as it was.
    pool.root::<before::Queue>().unwrap();
}

#[test]
fn the_root_is_there_in_the_transaction_that_makes_it() {
    let mut fixture = Fixture::new();
    let pool = fixture.pool().clone();
    let turn = std::sync::Barrier::new(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Another thread neither sees it nor makes another: not before the commit, and not between the store of its
            // bit and the fence.
            for _ in ["reserved", "bit stored"] {
                turn.wait();
                assert!(matches!(
                    pool.root::<Root>(),
                    Err(Error::RootPending { .. })
                ));
                assert!(matches!(pool.root_type(), Ok(None)));
                turn.wait();
            }
        });
        pool.transaction(|tx| {
            let root = pool.root::<Root>()?;
            assert_eq!(pool.root::<Root>()?, root);
            assert!(matches!(pool.root::<Node>(), Err(Error::RootType { .. })));
            turn.wait();
            turn.wait();
            let puddle = root as usize / UNIT as usize * UNIT as usize;
            let bits = (puddle + BITMAP_OFFSET as usize) as *mut u64;
            // What the commit does before its fence.
            unsafe { *bits |= 1 };
            turn.wait();
            turn.wait();
            unsafe { *bits &= !1 };
            unsafe { tx.set(&raw mut (*root).count, 5) }
        })
        .unwrap();
    });
    assert!(pool.root_type().unwrap().is_some());
    drop(pool);
    fixture.reopen(StoreOptions::new());
    assert_eq!(fixture.root().count, 5);
}

#[test]
fn ranges_that_no_object_has_are_refused() {
    let fixture = Fixture::new();
    let root = fixture.root() as *mut Root;
    let (pool, base) = (fixture.pool(), root.addr() & !((2 << 20) - 1));
    let refused = |result: Result<(), Error>| matches!(result, Err(Error::NotInPool { .. }));
    let oversized =
        |result: Result<*mut u8, Error>| matches!(result, Err(Error::ObjectSize { .. }));
    pool.transaction(|tx| unsafe {
        tx.add(&raw const (*root).head)?;
        let line = (&raw const (*root).table).cast::<u8>();
        for len in [usize::MAX, usize::MAX - 99, 3 << 20] {
            assert!(refused(tx.add_bytes(line, len, Announce::Backup)), "{len}");
            assert!(refused(tx.add_bytes(line, len, Announce::Clobber)), "{len}");
        }
        // The puddle's own header.
        let header = root.with_addr(base).cast::<u8>();
        for at in [0, 512, 1024, 4088] {
            let word = header.add(at);
            assert!(refused(tx.add_bytes(word, 8, Announce::Backup)), "{at}");
            assert!(refused(tx.set(word.cast(), 7u64)), "{at}");
            assert!(refused(pool.persist(word, 8)), "{at}");
        }
        for (size, align) in [
            (usize::MAX, 8),
            (8, 3),
            (300, 3),
            (8, 0),
            (8, 1 << 17),
            (1 << 40, 8),
        ] {
            assert!(
                oversized(tx.alloc_bytes(pool, 0, size, align)),
                "{size} {align}"
            );
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn open_or_create_goes_on_where_making_a_store_was_interrupted() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    for left in [
        &[][..],
        &["unfinished"][..],
        &["unfinished", "lock", "registry"][..],
    ] {
        std::fs::create_dir(&path).unwrap();
        for name in left {
            std::fs::write(path.join(name), "").unwrap();
        }
        Store::open_or_create(&path, StoreOptions::new())
            .unwrap()
            .close()
            .unwrap();
        std::fs::remove_dir_all(&path).unwrap();
    }
    // What is not ours stays, and no advice is given that would not work.
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("letter"), "dear").unwrap();
    let refusal = Store::open_or_create(&path, StoreOptions::new()).unwrap_err();
    assert!(!refusal.to_string().contains("durum init"), "{refusal}");
    assert_eq!(
        format!("{refusal}"),
        format!("{refusal:?}"),
        "a main that returns it"
    );
    assert_eq!(std::fs::read(path.join("letter")).unwrap(), b"dear");
}

#[test]
fn nested_transactions_are_one() {
    let fixture = Fixture::new();
    let root = fixture.root() as *mut Root;
    let pool = fixture.pool();
    let result: Result<(), Error> = pool.transaction(|tx| unsafe {
        tx.add(&raw const (*root).count)?;
        (*root).count = 1;
        pool.transaction(|tx| {
            tx.add(&raw const (*root).table[0])?;
            (*root).table[0] = 1;
            Ok::<_, Error>(())
        })?;
        let inner: Result<(), Error> = pool.transaction(|tx| tx.abort());
        assert!(inner.is_err());
        Ok(())
    });
    assert!(
        matches!(result, Err(Error::Aborted)),
        "an inner abort dooms the whole"
    );
    unsafe { assert_eq!(((*root).count, (*root).table[0]), (0, 0)) };
}

#[test]
fn misuse_is_an_error() {
    let fixture = Fixture::new();
    let root = fixture.root() as *mut Root;
    let pool = fixture.pool();
    let mut volatile = 3u64;
    let result: Result<(), Error> = pool.transaction(|tx| unsafe {
        assert!(matches!(
            tx.add(&raw const volatile),
            Err(Error::NotInPool { .. })
        ));
        tx.set(&raw mut (*root).count, 3)?;
        assert!(matches!(
            tx.add(&raw const (*root).count),
            Err(Error::PendingSet { .. })
        ));
        assert_eq!((*root).count, 0, "a set is visible after the commit only");
        let node = tx.alloc::<Node>()?;
        tx.free(node)?;
        assert!(matches!(tx.free(node), Err(Error::NotAllocated { .. })));
        assert!(matches!(
            tx.free(node.cast::<u8>().add(8)),
            Err(Error::NotAllocated { .. })
        ));
        assert!(
            matches!(tx.free(root), Err(Error::RootFreed { .. })),
            "the root lives as long as its pool"
        );
        tx.volatile(&raw mut volatile);
        Ok(())
    });
    result.unwrap();
    unsafe { assert_eq!((*root).count, 3) };
    let result: Result<(), Error> = pool.transaction(|tx| unsafe {
        tx.volatile(&raw mut volatile);
        volatile = 5;
        tx.abort()
    });
    assert!(result.is_err());
    assert_eq!(volatile, 3, "volatile entries are applied on abort");
    assert!(matches!(pool.root::<Node>(), Err(Error::RootType { .. })));
}
