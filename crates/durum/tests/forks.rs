//! Servers that fork: a child that was forked when all stores of its parent were closed opens stores as any process
//! does, whatever the parent has done with its own before.

mod support;

use std::path::Path;

use durum::typed::*;
use durum::{Domain, Engine, Pool, PoolOptions, Store, StoreOptions, TwinMode, Tx};

type Way = (Engine, TwinMode, Domain);

/// Each engine, in memory and as on a disk, where a thread of the store's writes home what was logged.
const WAYS: [Way; 6] = [
    (Engine::Shadow, TwinMode::Log, Domain::Dram),
    (Engine::Shadow, TwinMode::Log, Domain::File),
    (Engine::Hybrid, TwinMode::Log, Domain::Dram),
    (Engine::Hybrid, TwinMode::Log, Domain::File),
    (Engine::Twin, TwinMode::Log, Domain::Dram),
    (Engine::Twin, TwinMode::LeftRight, Domain::Dram),
];

fn open(dir: &Path, name: &str, (engine, mode, domain): Way) -> (Store, Pool) {
    let options = StoreOptions::new().domain(domain);
    let store = Store::open_or_create(dir.join(name), options).unwrap();
    let options = PoolOptions::new().engine(engine).twin_mode(mode);
    let pool = store.open_or_create_pool("pool", options).unwrap();
    (store, pool)
}

/// Changes the pool in every way that asks the kernel for something: by announced stores, by a section where there are
/// any, alone with it, and in several threads. Gives back what is there in the end.
fn work(pool: &Pool) -> u64 {
    let root = pool.root_bytes(0, 4096, 8).unwrap().cast::<u64>();
    let add_one = |place: *mut u64| {
        // SAFETY: each caller has the place alone; it is announced, or in a section.
        unsafe { place.write(place.read() + 1) }
    };
    pool.transaction(|tx| {
        // SAFETY: a word of the root.
        unsafe { tx.add(root)? };
        add_one(root);
        // Grows, so that puddles are mapped.
        tx.alloc_bytes(pool, 0, 3 << 20, 1)?;
        Ok::<_, durum::Error>(())
    })
    .unwrap();
    if pool.engine() == Engine::Shadow {
        let section = |_: &Tx| {
            add_one(root);
            Ok::<_, durum::Error>(())
        };
        // SAFETY: no other thread uses the pool.
        unsafe { pool.section(section) }.unwrap();
    }
    let address = root.expose_provenance();
    std::thread::scope(|scope| {
        let adds = || {
            scope.spawn(|| {
                pool.update(|tx| {
                    let root: *mut u64 = std::ptr::with_exposed_provenance_mut(address);
                    // SAFETY: a word of the root, with which an update is alone.
                    unsafe { tx.add(root)? };
                    add_one(root);
                    Ok::<_, durum::Error>(())
                })
                .unwrap();
            })
        };
        // Joined: a scope ends while its threads still do, and a fork then may find a lock of the standard library
        // taken for ever.
        for thread in [adds(), adds()] {
            thread.join().unwrap();
        }
    });
    // SAFETY: nobody changes it now.
    pool.read(|| unsafe { root.read() }).unwrap()
}

/// What one round of `work` adds.
fn round(pool: &Pool) -> u64 {
    match pool.engine() {
        Engine::Shadow => 4,
        _ => 3,
    }
}

/// Runs `child` in a fork of this process; whether it went well.
fn in_child(child: impl FnOnce()) -> bool {
    // SAFETY: no other thread of this process does anything; the child runs what is given and ends.
    match unsafe { libc::fork() } {
        0 => {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(child));
            // SAFETY: ends the process, without what the test harness would do at its end.
            unsafe { libc::_exit(i32::from(result.is_err())) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child just forked.
            unsafe { libc::waitpid(child, &mut status, 0) };
            status == 0
        }
    }
}

#[test]
#[ignore = "the other process of the test below"]
fn forks_when_all_stores_are_closed() {
    let Some(dir) = support::directory() else {
        return;
    };
    for how in WAYS {
        let name = format!("{how:?}");
        let (store, pool) = open(&dir, &name, how);
        let mut expected = work(&pool);
        let (other_store, other_pool) = open(&dir, "other", how);
        drop((other_store, other_pool));
        let round = round(&pool);
        drop(pool);
        store.close().unwrap();
        for generation in 0..3 {
            let went_well = in_child(|| {
                let (store, pool) = open(&dir, &name, how);
                assert_eq!(work(&pool), expected + round);
                drop(pool);
                store.close().unwrap();
                // A child of the child, and a store that nobody has had open before.
                assert!(in_child(|| {
                    let (store, pool) = open(&dir, &format!("{name}{generation}"), how);
                    assert_eq!(work(&pool), round);
                    drop(pool);
                    store.close().unwrap();
                }));
            });
            assert!(went_well, "{how:?}");
            expected += round;
        }
        let (store, pool) = open(&dir, &name, how);
        assert_eq!(work(&pool), expected + round);
        // While one is open, children are refused, and so are theirs.
        assert!(in_child(|| {
            let refused = Store::open(dir.join("other"), StoreOptions::new());
            assert!(matches!(refused, Err(durum::Error::Forked)));
            assert!(pool.transaction(|_| Ok::<_, durum::Error>(())).is_err());
        }));
        drop(pool);
        store.close().unwrap();
        std::fs::remove_dir_all(dir.join("other")).unwrap();
    }
    std::process::exit(0);
}

#[test]
fn a_child_forked_when_all_stores_are_closed_opens_stores() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let status = support::start("forks_when_all_stores_are_closed", dir.path())
        .wait()
        .unwrap();
    assert!(status.success(), "{status}");
}

pool!(P);

#[derive(PSafe, Root)]
#[repr(C)]
struct Counter {
    value: PCell<u64, P>,
    name: PRefCell<PString<P>, P>,
    lock: PMutex<u64, P>,
}

/// Adds one in each cell; what the first one has then.
fn count(dir: &Path) -> u64 {
    let counter = P::open::<Counter>(dir.join("typed"), Flags::CREATE).unwrap();
    P::transaction(|j| {
        counter.value.set(counter.value.get() + 1, j);
        *counter.lock.lock(j) += 1;
        *counter.name.borrow_mut(j) = PString::new("forked", j);
    })
    .unwrap();
    let value = counter.value.get();
    counter.close().unwrap();
    value
}

#[test]
#[ignore = "the other process of the test below"]
fn forks_when_a_typed_pool_is_closed() {
    let Some(dir) = support::directory() else {
        return;
    };
    for value in (1..9).step_by(2) {
        assert_eq!(count(&dir), value);
        assert!(in_child(|| assert_eq!(count(&dir), value + 1)));
    }
    std::process::exit(0);
}

#[test]
fn a_child_opens_the_typed_pool_that_its_parent_has_closed() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let status = support::start("forks_when_a_typed_pool_is_closed", dir.path())
        .wait()
        .unwrap();
    assert!(status.success(), "{status}");
}
