//! Several pools, many threads, large pools, and the checker for stores that nobody announced.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod support;

use std::time::{Duration, Instant};

use durum::{Error, Pool, PoolOptions, Store, StoreOptions};
use support::{engine, pool_options};

#[repr(C)]
struct Pair {
    left: u64,
    right: u64,
}
durum::describe!(Pair as "pair" { left, right });

fn store() -> (tempfile::TempDir, Store) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    (dir, store)
}

#[test]
fn one_transaction_spans_pools_of_one_store() {
    if engine() == durum::Engine::Twin {
        return; // One pool is what its transactions have.
    }
    let (dir, store) = store();
    let pools: Vec<Pool> = ["a", "b", "c"]
        .iter()
        .map(|name| store.create_pool(name, pool_options()).unwrap())
        .collect();
    let roots: Vec<*mut Pair> = pools
        .iter()
        .map(|pool| pool.root::<Pair>().unwrap())
        .collect();
    let change = |abort: bool| {
        pools[0].transaction(|tx| unsafe {
            for (root, pool) in roots.iter().zip(&pools) {
                tx.add(&raw const (**root).left)?;
                (**root).left += 1;
                tx.set(&raw mut (**root).right, (**root).left)?;
                let object = tx.alloc_in::<Pair>(pool)?;
                *object = Pair { left: 1, right: 2 };
            }
            if abort { tx.abort() } else { Ok(()) }
        })
    };
    change(false).unwrap();
    assert!(matches!(change(true), Err(Error::Aborted)));
    drop(pools);
    drop(store);
    let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
    for name in ["a", "b", "c"] {
        let pool = store.open_pool(name, pool_options()).unwrap();
        let root = unsafe { &*pool.root::<Pair>().unwrap() };
        assert_eq!((root.left, root.right), (1, 1));
    }
}

#[test]
fn two_stores_in_one_process_keep_apart() {
    let (_first_dir, first) = store();
    let (_second_dir, second) = store();
    let a = first.create_pool("a", pool_options()).unwrap();
    let b = second.create_pool("b", pool_options()).unwrap();
    let in_b = b.root::<Pair>().unwrap();
    a.transaction(|tx| {
        assert!(matches!(
            unsafe { tx.add(in_b) },
            Err(Error::NotInPool { .. })
        ));
        assert!(matches!(
            b.transaction(|_| Ok::<_, Error>(())),
            Err(Error::OtherStore { .. })
        ));
        Ok::<_, Error>(())
    })
    .unwrap();
    b.transaction(|tx| unsafe { tx.set(&raw mut (*in_b).left, 4) })
        .unwrap();
}

#[test]
fn pools_open_and_close_from_many_threads() {
    let (dir, store) = store();
    for name in 0..4 {
        store
            .create_pool(&format!("pool {name}"), pool_options())
            .unwrap();
    }
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let store = &store;
            scope.spawn(move || {
                for round in 0..40u64 {
                    let name = format!("pool {}", (thread + round) % 4);
                    let pool = store.open_pool(&name, pool_options()).unwrap();
                    let object = pool
                        .transaction(|tx| unsafe {
                            let object = tx.alloc::<Pair>()?;
                            *object = Pair {
                                left: thread,
                                right: round,
                            };
                            Ok::<_, Error>(object)
                        })
                        .unwrap();
                    pool.transaction(|tx| unsafe {
                        assert_eq!(((*object).left, (*object).right), (thread, round));
                        tx.free(object)
                    })
                    .unwrap();
                }
            });
        }
    });
    store.close().unwrap();
    let path = dir.path().join("store");
    let report = durum_service::check(&path, &Default::default()).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert!(
        report.pools.iter().all(|pool| pool.objects == 0),
        "{:?}",
        report.pools
    );
}

#[test]
fn objects_freed_by_other_threads_are_allocated_again() {
    let (_dir, store) = store();
    let pool = store.create_pool("pool", pool_options()).unwrap();
    let grown = |pool: &Pool| pool.usage().unwrap().bytes;
    let (sender, receiver) = std::sync::mpsc::sync_channel::<usize>(64);
    std::thread::scope(|scope| {
        let consumer = &pool;
        scope.spawn(move || {
            for address in receiver {
                let object = std::ptr::with_exposed_provenance_mut::<Pair>(address);
                consumer
                    .transaction(|tx| unsafe { tx.free(object) })
                    .unwrap();
            }
        });
        for _ in 0..200_000 {
            let object = pool.transaction(|tx| tx.alloc::<Pair>()).unwrap();
            sender.send(object.expose_provenance()).unwrap();
        }
        drop(sender);
    });
    assert!(
        grown(&pool) <= 6 << 20,
        "{} bytes for at most 66 live objects",
        grown(&pool)
    );
}

#[test]
fn the_checker_names_the_field_that_was_not_announced() {
    let (_dir, store) = store();
    let pool = store
        .create_pool("pool", pool_options().check_stores(true))
        .unwrap();
    let root = pool.root::<Pair>().unwrap();
    pool.transaction(|tx| unsafe {
        tx.add(&raw const (*root).left)?;
        (*root).left = 1;
        let object = tx.alloc::<Pair>()?;
        *object = Pair { left: 1, right: 2 };
        tx.set(&raw mut (*root).right, 7)
    })
    .unwrap();
    let result = pool.transaction(|tx| unsafe {
        tx.add(&raw const (*root).left)?;
        (*root).right = 8;
        Ok::<_, Error>(())
    });
    let told = result.as_ref().unwrap_err().to_string();
    assert!(told.contains(": 1 store was not announced"), "{told}");
    match result {
        Err(Error::Unannounced { first, count, .. }) => {
            assert_eq!(count, 1);
            assert!(
                first.contains("\"right\"") && first.contains("\"pair\""),
                "{first}"
            );
        }
        other => panic!("{other:?}"),
    }
}

/// A pool that is checked, and its root.
fn checked_pool(store: &Store, name: &str) -> (Pool, *mut Pair) {
    let options = pool_options().check_stores(true);
    let pool = store.create_pool(name, options).unwrap();
    let root = pool.root::<Pair>().unwrap();
    (pool, root)
}

fn is_told(result: Result<(), Error>, field: &str) {
    match result {
        Err(Error::Unannounced { first, count, .. }) => {
            assert_eq!(count, 1);
            assert!(first.contains(field), "{first}");
        }
        other => panic!("{other:?}"),
    }
}

/// Nothing announced at all is the commonest mistake.
#[test]
fn the_checker_looks_where_nothing_was_announced() {
    let (_dir, store) = store();
    let (pool, root) = checked_pool(&store, "pool");
    let forgets = |value: u64| {
        pool.transaction(|_| {
            unsafe { (*root).left = value };
            Ok::<_, Error>(())
        })
    };
    is_told(forgets(1), "\"left\"");
    // Told once; and so in an update, and where volatile memory is all that comes back.
    pool.transaction(|_| Ok::<_, Error>(())).unwrap();
    let address = root.expose_provenance();
    is_told(
        pool.update(|_| {
            let root = std::ptr::with_exposed_provenance_mut::<Pair>(address);
            unsafe { (*root).right = 2 };
            Ok::<_, Error>(())
        }),
        "\"right\"",
    );
    let mut volatile = 1;
    is_told(
        pool.transaction(|tx| unsafe {
            tx.volatile(&raw mut volatile);
            volatile = 2;
            (*root).left = 3;
            Ok(())
        }),
        "\"left\"",
    );
    assert_eq!(volatile, 1);
    // The checker is done with these; nothing is announced, and nothing stored.
    pool.transaction(|_| Ok::<_, Error>(())).unwrap();
    is_told(forgets(4), "\"left\"");
}

#[test]
fn the_checker_looks_at_the_pool_that_a_transaction_began_on() {
    if engine() == durum::Engine::Twin {
        return; // One pool is what its transactions have.
    }
    let (_dir, store) = store();
    let (pool, root) = checked_pool(&store, "pool");
    let (_other_pool, other) = checked_pool(&store, "other");
    let result = pool.transaction(|tx| unsafe {
        tx.add(other)?;
        (*other).left = 1;
        (*root).right = 1;
        Ok(())
    });
    is_told(result, "\"right\"");
    assert_eq!(unsafe { (*other).left }, 0);
}

#[test]
fn what_was_persisted_needs_no_announcement() {
    let (_dir, store) = store();
    let (pool, root) = checked_pool(&store, "pool");
    unsafe {
        (*root).left = 1;
        pool.persist(&raw const (*root).left, 8).unwrap();
    }
    pool.transaction(|_| Ok::<_, Error>(())).unwrap();
}

#[repr(C)]
struct Link {
    next: *mut Link,
    busy: Busy,
}
durum::describe!(Link as "link" { next, busy });

/// Means nothing after the program has ended.
#[repr(C)]
struct Busy(u64);

// SAFETY: eight bytes that the program alone reads.
unsafe impl durum::Described for Busy {
    fn name() -> Option<std::borrow::Cow<'static, str>> {
        None
    }

    fn layout(_: &mut durum::Walk) -> durum::types::Type<String> {
        durum::types::Type::Volatile { size: 8, align: 8 }
    }
}

#[test]
fn a_pointer_out_of_the_store_does_not_commit() {
    let (_dir, store) = store();
    let options = pool_options().check_stores(true);
    let pool = store.create_pool("pool", options).unwrap();
    let root = pool.root::<Link>().unwrap();
    let mut local = Link {
        next: std::ptr::null_mut(),
        busy: Busy(0),
    };
    let outside = &raw mut local;
    let is_told = |result: Result<(), Error>| match result {
        Err(Error::PointerOutside { target, place, .. }) => {
            assert_eq!(target, outside.addr());
            assert!(
                place.contains("\"next\"") && place.contains("\"link\""),
                "{place}"
            );
        }
        other => panic!("{other:?}"),
    };
    let next = unsafe { &raw mut (*root).next };
    is_told(pool.transaction(|tx| unsafe {
        tx.add(next)?;
        *next = outside;
        Ok(())
    }));
    assert!(unsafe { (*next).is_null() });
    is_told(pool.transaction(|tx| unsafe { tx.set(next, outside) }));
    assert!(unsafe { (*next).is_null() });
    is_told(pool.transaction(|tx| unsafe {
        let made = tx.alloc_zeroed::<Link>()?;
        (*made).next = outside;
        tx.set(next, made)
    }));
    // Into the store it may lead, and what is volatile may be anything at any time.
    pool.transaction(|tx| unsafe {
        let made = tx.alloc_zeroed::<Link>()?;
        (*made).next = root;
        (*root).busy.0 = 1;
        tx.set(next, made)
    })
    .unwrap();
    unsafe { (*root).busy.0 = 2 };
    pool.transaction(|_| Ok::<_, Error>(())).unwrap();
}

#[test]
fn opening_a_pool_of_1000_puddles_is_soon_over() {
    let (dir, store) = store();
    let pool = store
        .create_pool("large", pool_options().growth_max(2 << 20))
        .unwrap();
    for _ in 0..999 {
        pool.transaction(|tx| tx.alloc_bytes(&pool, 0, 1_900_000, 8))
            .unwrap();
    }
    assert_eq!(pool.usage().unwrap().puddles, 1000);
    drop(pool);
    drop(store);
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
        let pool = store.open_pool("large", pool_options()).unwrap();
        best = best.min(start.elapsed());
        drop(pool);
        drop(store);
    }
    println!("store and pool of 1,000 puddles opened in {best:?}");
    // The figure is 50 ms on a quiet machine. Tests run beside others: this notices if something is done that grows
    // faster.
    assert!(best < Duration::from_millis(500), "{best:?}");
}

#[repr(C)]
struct Large {
    words: [u64; 4096],
}
durum::describe!(Large as "large" { words });

/// The figure is about a transaction under way, of which other engines leave nothing on the media.
fn on_hybrid() -> PoolOptions {
    PoolOptions::new().engine(durum::Engine::Hybrid)
}

/// Options for a store that another process makes: at addresses where those that this one makes meanwhile never are.
fn apart(number: u64) -> StoreOptions {
    StoreOptions::new().base(0x2000_0000_0000 + (number << 42))
}

#[test]
#[ignore = "the other process of the test below"]
fn dies_in_a_transaction_on_a_large_pool() {
    let Some(dir) = support::directory() else {
        return;
    };
    let store = Store::create(dir.join("store"), apart(1)).unwrap();
    let pool = store.create_pool("large", on_hybrid()).unwrap();
    let root = pool.root::<Large>().unwrap();
    pool.transaction(|tx| tx.alloc_bytes(&pool, 0, 1 << 30, 8))
        .unwrap();
    let _ = pool.transaction(|tx| unsafe {
        for at in 0..64 {
            tx.add(&raw const (*root).words[at * 64])?;
            (*root).words[at * 64] = 1;
        }
        std::process::abort();
        #[allow(unreachable_code, reason = "gives the closure its type")]
        Ok::<_, Error>(())
    });
}

/// Pages that this thread touched for the first time so far.
fn page_faults() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure, in which all bits clear is a value.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    usage.ru_minflt + usage.ru_majflt
}

#[test]
fn recovery_of_one_transaction_in_a_1_gib_pool_is_soon_over() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let status = support::start("dies_in_a_transaction_on_a_large_pool", dir.path())
            .wait()
            .unwrap();
        assert!(!status.success());
        let before = page_faults();
        let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
        let faults = page_faults() - before;
        let report = store.recovery().unwrap();
        assert_eq!((report.rolled_back, report.entries), (1, 64));
        println!(
            "logs {:?}, registry {:?}, {faults} pages",
            report.log_time, report.registry_time
        );
        best = best.min(report.log_time);
        let pool = store.open_pool("large", on_hybrid()).unwrap();
        let root = unsafe { &*pool.root::<Large>().unwrap() };
        assert_eq!(root.words.iter().sum::<u64>(), 0);
        drop((pool, store));
        std::fs::remove_dir_all(dir.path().join("store")).unwrap();
        // The pool has 262,144 pages, of which the transaction changed 8.
        assert!(faults < 1000, "{faults} pages");
    }
    // Less than 1 ms on a quiet machine; beside other tests it may be interrupted.
    assert!(best < Duration::from_millis(50), "{best:?}");
}

fn on_shadow() -> PoolOptions {
    PoolOptions::new().engine(durum::Engine::Shadow)
}

#[test]
#[ignore = "the other process of the test below"]
fn dies_with_a_full_log() {
    let Some(dir) = support::directory() else {
        return;
    };
    let store = Store::create(dir.join("store"), apart(2)).unwrap();
    let pool = store.create_pool("large", on_shadow()).unwrap();
    let root = pool.root::<Pair>().unwrap();
    let len = 60 << 20;
    let object = pool
        .transaction(|tx| {
            let object = tx.alloc_bytes(&pool, 0, len, 8)?;
            unsafe { tx.set(&raw mut (*root).left, object.expose_provenance() as u64)? };
            Ok::<_, Error>(object)
        })
        .unwrap();
    // What was logged goes home with later commits; there are none.
    pool.transaction(|tx| unsafe {
        tx.add_bytes(object, len, durum::Announce::Clobber)?;
        object.write_bytes(0x5a, len);
        Ok::<_, Error>(())
    })
    .unwrap();
    std::process::abort();
}

#[test]
fn recovery_of_a_log_that_is_full_is_soon_over() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let (mut best, mut copied) = (Duration::MAX, Duration::MAX);
    for _ in 0..3 {
        let began = Instant::now();
        std::fs::write(dir.path().join("copy"), vec![0x5a; 60 << 20]).unwrap();
        copied = copied.min(began.elapsed());
        let status = support::start("dies_with_a_full_log", dir.path())
            .wait()
            .unwrap();
        assert!(!status.success());
        let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
        let report = store.recovery().unwrap();
        println!(
            "logs {:?}, registry {:?}, {} bytes written",
            report.log_time, report.registry_time, report.bytes
        );
        best = best.min(report.log_time);
        let pool = store.open_pool("large", on_shadow()).unwrap();
        let address = unsafe { (*pool.root::<Pair>().unwrap()).left };
        let object = std::ptr::with_exposed_provenance::<u8>(address as usize);
        let bytes = unsafe { std::slice::from_raw_parts(object, 60 << 20) };
        assert!(bytes.iter().all(|byte| *byte == 0x5a));
        drop((pool, store));
        std::fs::remove_dir_all(dir.path().join("store")).unwrap();
    }
    // The figure is 100 ms on a quiet machine. Tests run beside others, which a plain copy of as many bytes feels, too:
    // this notices if something is done that grows faster.
    assert!(
        best < Duration::from_secs(1).max(20 * copied),
        "{best:?}, and a copy {copied:?}"
    );
}

/// One word of each page, all in one transaction.
const SCATTERED: usize = 1 << 15;
/// So many that a recovery of all would take longer than that of a full log.
const TOO_SCATTERED: usize = 1 << 17;

#[test]
#[ignore = "the other process of the test below"]
fn dies_with_scattered_words() {
    if let Some(dir) = support::directory() {
        die_with_scattered_words(dir, 3, SCATTERED);
    }
}

#[test]
#[ignore = "the other process of the test below"]
fn dies_with_too_many_scattered_words() {
    if let Some(dir) = support::directory() {
        die_with_scattered_words(dir, 4, TOO_SCATTERED);
    }
}

fn die_with_scattered_words(dir: std::path::PathBuf, number: u64, pages: usize) {
    let store = Store::create(dir.join("store"), apart(number)).unwrap();
    let pool = store.create_pool("large", on_shadow()).unwrap();
    let root = pool.root::<Pair>().unwrap();
    let object = pool
        .transaction(|tx| {
            let object = tx.alloc_bytes(&pool, 0, pages * 4096, 8)?;
            unsafe { tx.set(&raw mut (*root).left, object.expose_provenance() as u64)? };
            Ok::<_, Error>(object)
        })
        .unwrap();
    pool.transaction(|tx| unsafe {
        for page in 0..pages {
            let word = object.add(page * 4096).cast::<u64>();
            tx.add(word)?;
            *word = 7;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
    std::process::abort();
}

/// The log has room for 30 times as many words: it is not its bytes that bound the time, but the pages that recovery
/// would write.
#[test]
fn what_recovery_would_take_long_for_is_home_when_its_commit_returns() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let name = "dies_with_too_many_scattered_words";
    assert!(!support::start(name, dir.path()).wait().unwrap().success());
    let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
    let report = store.recovery().unwrap();
    assert!(report.entries < SCATTERED as u64, "{}", report.entries);
    let pool = store.open_pool("large", on_shadow()).unwrap();
    let address = unsafe { (*pool.root::<Pair>().unwrap()).left };
    let object = std::ptr::with_exposed_provenance::<u8>(address as usize);
    for page in 0..TOO_SCATTERED {
        assert_eq!(unsafe { *object.add(page * 4096).cast::<u64>() }, 7);
    }
}

#[test]
#[ignore = "the other process of the test below"]
fn recovers_scattered_words() {
    let Some(dir) = support::directory() else {
        return;
    };
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let number = line.unwrap().split_whitespace().nth(1).unwrap();
        number.parse::<usize>().unwrap() << 10
    };
    let before = peak();
    let store = Store::open(dir.join("store"), StoreOptions::new()).unwrap();
    let report = store.recovery().unwrap();
    // And what the allocation changed.
    let words = 8 * SCATTERED as u64;
    assert!((words..words + 256).contains(&report.bytes), "{report:?}");
    let (log, taken) = (16 * SCATTERED, peak() - before);
    println!(
        "{log} bytes of log took {taken} bytes of memory, {:?}",
        report.log_time
    );
    assert!(taken < 40 * log, "{taken}");
}

#[test]
fn recovery_takes_memory_by_the_log_and_not_by_what_it_touches() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let run = |name| support::start_with(name, dir.path(), std::process::Stdio::inherit()).wait();
    assert!(!run("dies_with_scattered_words").unwrap().success());
    assert!(run("recovers_scattered_words").unwrap().success());
}
