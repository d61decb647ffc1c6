//! What a program may count on in one process: transactions, roots, allocation, nesting, errors.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

use durum::{
    Announce, Domain, Error, Pool, PoolOptions, Store, StoreOptions, all_counters, thread_counters,
};

#[repr(C)]
#[derive(Clone, Copy)]
struct Node {
    value: u64,
    next: *mut Node,
}
durum::describe!(Node as "node" { value, next });

#[repr(C)]
struct Root {
    head: *mut Node,
    count: u64,
    table: [u64; 600],
}
durum::describe!(Root as "root" { head, count, table });

struct Fixture {
    pool: Option<Pool>,
    store: Option<Store>,
    dir: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Self {
        Self::with(StoreOptions::new(), PoolOptions::new())
    }

    fn with(options: StoreOptions, pool_options: PoolOptions) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let store = Store::create(dir.path().join("store"), options).unwrap();
        let pool = store.create_pool("pool", pool_options).unwrap();
        Self {
            pool: Some(pool),
            store: Some(store),
            dir,
        }
    }

    fn pool(&self) -> &Pool {
        self.pool.as_ref().unwrap()
    }

    fn root(&self) -> &'static mut Root {
        unsafe { &mut *self.pool().root::<Root>().unwrap() }
    }

    fn reopen(&mut self, options: StoreOptions) {
        self.pool = None;
        self.store = None;
        let store = Store::open(self.dir.path().join("store"), options).unwrap();
        assert!(store.recovery().unwrap().was_clean);
        self.pool = Some(store.open_pool("pool", PoolOptions::new()).unwrap());
        self.store = Some(store);
    }
}

fn push(pool: &Pool, root: *mut Root, value: u64) {
    pool.transaction(|tx| unsafe {
        let node = tx.alloc::<Node>()?;
        (*node).value = value;
        (*node).next = (*root).head;
        tx.set(&raw mut (*root).head, node)?;
        tx.set(&raw mut (*root).count, (*root).count + 1)?;
        Ok::<_, Error>(())
    })
    .unwrap();
}

fn values(root: *const Root) -> Vec<u64> {
    let mut values = Vec::new();
    let mut node = unsafe { (*root).head };
    while !node.is_null() {
        unsafe {
            values.push((*node).value);
            node = (*node).next;
        }
    }
    values
}

#[test]
fn a_list_survives_reopening() {
    for domain in [None, Some(Domain::Dax), Some(Domain::File)] {
        let mut options = StoreOptions::new();
        options.domain = domain;
        let mut fixture = Fixture::with(options.clone(), PoolOptions::new());
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
fn the_root_is_there_in_the_transaction_that_makes_it() {
    let mut fixture = Fixture::new();
    let pool = fixture.pool().clone();
    let (made, wait) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            made.wait();
            // Another thread neither sees it nor makes another.
            assert!(matches!(
                pool.root::<Root>(),
                Err(Error::RootPending { .. })
            ));
            assert!(matches!(pool.root_type(), Ok(None)));
            wait.wait();
        });
        pool.transaction(|tx| {
            let root = pool.root::<Root>()?;
            assert_eq!(pool.root::<Root>()?, root);
            assert!(matches!(pool.root::<Node>(), Err(Error::RootType { .. })));
            made.wait();
            wait.wait();
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
fn space_of_an_aborted_allocation_goes_back() {
    let fixture = Fixture::with(StoreOptions::new(), PoolOptions::new().spare_max(0));
    let pool = fixture.pool();
    fixture.root();
    let before = pool.usage().unwrap();
    let aborted: Result<(), Error> = pool.transaction(|tx| {
        tx.alloc_bytes(pool, 0, 20_000_000, 8)?;
        tx.abort()
    });
    assert!(matches!(aborted, Err(Error::Aborted)));
    assert_eq!(pool.usage().unwrap(), before);
    pool.transaction(|tx| {
        let block = tx.alloc_bytes(pool, 0, 20_000_000, 8)?;
        unsafe { tx.free(block) }
    })
    .unwrap();
    assert_eq!(pool.usage().unwrap(), before);
}

/// A removed file takes room as long as something holds it open or mapped.
#[test]
fn nothing_holds_on_to_puddles_that_were_given_back() {
    for domain in [Domain::Dram, Domain::File] {
        let options = StoreOptions::new().domain(domain);
        let fixture = Fixture::with(options, PoolOptions::new().spare_max(0));
        let pool = fixture.pool();
        fixture.root();
        for _ in 0..5 {
            let block = pool
                .transaction(|tx| tx.alloc_bytes(pool, 0, 20_000_000, 8))
                .unwrap();
            pool.transaction(|tx| unsafe { tx.free(block) }).unwrap();
        }
        let ours = fixture.dir.path().to_str().unwrap();
        let gone = |text: &str| text.contains(ours) && text.contains("(deleted)");
        let files = std::fs::read_dir("/proc/self/fd").unwrap();
        let held = files
            .filter_map(|file| std::fs::read_link(file.ok()?.path()).ok())
            .filter(|path| gone(&path.to_string_lossy()))
            .count();
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let mapped = maps.lines().filter(|line| gone(line)).count();
        assert_eq!((held, mapped), (0, 0), "{domain:?}");
    }
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
        &["unfinished", "lock", "registry.redb"][..],
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
            matches!(tx.free(root), Err(Error::NotAllocated { .. })),
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

#[test]
fn a_pool_grows_and_gives_back() {
    let mut fixture = Fixture::with(StoreOptions::new(), PoolOptions::new().spare_max(4 << 20));
    let handle = fixture.pool().clone();
    let pool = &handle;
    let root = fixture.root() as *mut Root;
    let mut blocks = Vec::new();
    for _ in 0..40 {
        blocks.push(
            pool.transaction(|tx| tx.alloc_bytes(pool, 0, 300_000, 8))
                .unwrap(),
        );
    }
    blocks.push(
        pool.transaction(|tx| tx.alloc_bytes(pool, 0, 9_000_000, 4096))
            .unwrap(),
    );
    assert_eq!(blocks.last().unwrap().addr() % 4096, 0);
    for value in 0..100_000 {
        push(pool, root, value);
    }
    let grown = pool.usage().unwrap();
    assert!(grown.puddles > 3);
    for block in blocks {
        pool.transaction(|tx| unsafe { tx.free(block) }).unwrap();
    }
    loop {
        let more = pool
            .transaction(|tx| unsafe {
                let node = (*root).head;
                if node.is_null() {
                    return Ok::<_, Error>(false);
                }
                tx.set(&raw mut (*root).head, (*node).next)?;
                tx.free(node)?;
                Ok(true)
            })
            .unwrap();
        if !more {
            break;
        }
    }
    let shrunk = pool.usage().unwrap();
    assert!(shrunk.bytes <= 6 << 20, "{shrunk:?}");
    drop(handle);
    fixture.reopen(StoreOptions::new());
    let closed = fixture.pool().usage().unwrap();
    assert_eq!(
        (closed.puddles, closed.bytes),
        (1, 2 << 20),
        "only the root's puddle is left on disk"
    );
}
