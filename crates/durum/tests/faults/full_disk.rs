//! A disk without room: what fails, and what still goes.

use std::path::Path;

use durum::{Announce, Domain, Engine, Error, Pool, PoolOptions, Store, StoreOptions};
use durum_persist::inject::{self, Operation};

use crate::support::pool_options;
use crate::{Root, increment, open};

/// Fills the pool with blocks until it cannot grow; the number of blocks.
fn fill(pool: &Pool, root: &mut Root) -> (usize, Error) {
    for at in 0..root.blocks.len() {
        let result = pool.transaction(|tx| unsafe {
            let block = tx.alloc_bytes(pool, 0, 100_000, 8)?;
            block.write_bytes(7, 100_000);
            tx.set(&raw mut root.blocks[at], block)
        });
        if let Err(error) = result {
            return (at, error);
        }
    }
    panic!("the disk was never full");
}

/// Frees objects in an order that has nothing to do with where they are, and counts them, in one transaction.
fn free_all(pool: &Pool, root: &mut Root, objects: &[usize]) -> Result<(), Error> {
    pool.transaction(|tx| {
        for at in 0..objects.len() {
            let object = objects[at * 7919 % objects.len()] as *mut u8;
            unsafe { tx.free(object)? };
        }
        unsafe { tx.add(&raw const root.count)? };
        root.count += 1;
        Ok(())
    })
}

/// Where there is no log at all a smaller transaction would not fit either: the error names the file and what it needs.
#[test]
fn a_disk_that_is_full_from_the_first_names_the_log() {
    for engine in [Engine::Shadow, Engine::Hybrid] {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let options = || PoolOptions::new().engine(engine);
        drop(open(dir.path(), StoreOptions::new(), options()));
        let mut refused = 0;
        for grown in 0..12 {
            let full = inject::fail_after(Operation::Grow, grown, dir.path());
            let opened = Store::open(dir.path().join("store"), StoreOptions::new())
                .and_then(|store| store.open_pool("pool", options()));
            let Ok(pool) = opened else {
                continue;
            };
            let root = unsafe { &mut *pool.root::<Root>().unwrap() };
            if let Err(error) = increment(&pool, root) {
                refused += 1;
                let is_told = matches!(
                    &error,
                    Error::Store(durum_service::Error::StorageFull { .. })
                );
                assert!(is_told, "{engine:?}, {grown}: {error}");
            }
            drop(full);
            increment(&pool, root).unwrap();
        }
        assert!(refused > 0, "{engine:?}");
    }
}

/// What 100,000 deletes need is kept for them; what is more fails as a whole, and says why. Afterwards there is as much
/// again.
#[test]
fn a_hundred_thousand_deletes_fit_on_a_full_disk() {
    const DELETES: usize = 100_000;
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        for domain in [Domain::Dram, Domain::File] {
            let dir = tempfile::tempdir_in("/dev/shm").unwrap();
            let options = StoreOptions::new().domain(domain);
            let (store, pool, _) = open(
                dir.path(),
                options.clone(),
                PoolOptions::new().engine(engine),
            );
            let objects: Vec<usize> = (0..4)
                .flat_map(|_| {
                    let some = pool.transaction(|tx| {
                        let alloc = |_| tx.alloc_bytes(&pool, 0, 40, 8).map(|object| object.addr());
                        (0..DELETES).map(alloc).collect::<Result<Vec<_>, _>>()
                    });
                    some.unwrap()
                })
                .collect();
            // Logs that the allocation has made go with this.
            drop((pool, store));
            let (store, pool, root) = open(
                dir.path(),
                options.clone(),
                PoolOptions::new().engine(engine),
            );
            let full = inject::fail_after(Operation::Grow, 0, dir.path());
            // On Twin nothing is logged.
            let all = free_all(&pool, root, &objects);
            let left = match engine {
                Engine::Twin => {
                    all.unwrap();
                    &[]
                }
                _ => {
                    let error = all.unwrap_err();
                    assert!(
                        matches!(error, Error::LogFull { .. }),
                        "{engine:?}, {domain:?}: {error}"
                    );
                    assert_eq!(error.kind(), durum::ErrorKind::System);
                    &objects[..]
                }
            };
            for some in left.chunks(DELETES) {
                free_all(&pool, root, some)
                    .unwrap_or_else(|error| panic!("{engine:?}, {domain:?}: {error}"));
            }
            drop(full);
            let count = root.count;
            drop((pool, store));
            let (_store, pool, root) = open(dir.path(), options, PoolOptions::new().engine(engine));
            assert_eq!(root.count, count);
            // Slabs that were left empty go back with the first commit that changes bits.
            let one = pool.transaction(|tx| tx.alloc_bytes(&pool, 0, 10_000, 8));
            one.unwrap();
            let usage = pool.usage().unwrap();
            let used = usage.bytes - usage.free_bytes;
            assert!(used < 1 << 20, "{engine:?}, {domain:?}: {used}");
        }
    }
}

fn full_disk(dir: &Path, limit: impl FnOnce() -> Option<inject::Fault>) {
    let (store, pool, root) = open(dir, StoreOptions::new(), pool_options());
    increment(&pool, root).unwrap();
    let fault = limit();
    let (filled, error) = fill(&pool, root);
    assert!(
        matches!(error, Error::Store(durum::StoreError::StorageFull { .. })),
        "{error}"
    );
    assert!(filled > 5);
    // The pool is usable: what needs no room works, deletes work, and what they free can be used.
    increment(&pool, root).unwrap();
    for at in 0..filled / 2 {
        pool.transaction(|tx| unsafe {
            tx.free(root.blocks[at])?;
            tx.set(&raw mut root.blocks[at], std::ptr::null_mut())
        })
        .unwrap();
    }
    let again = pool.transaction(|tx| unsafe {
        let block = tx.alloc_bytes(&pool, 0, 100_000, 8)?;
        tx.set(&raw mut root.blocks[0], block)
    });
    again.unwrap();
    // Another thread needs a log of its own, for which there may be no room: an error, and nothing breaks.
    let other = std::thread::scope(|scope| {
        let (pool, count) = (&pool, (&raw mut root.count).expose_provenance());
        scope
            .spawn(move || {
                pool.transaction(|tx| unsafe {
                    tx.set(std::ptr::with_exposed_provenance_mut::<u64>(count), 2)
                })
            })
            .join()
            .unwrap()
    });
    assert!(
        matches!(
            other,
            Ok(()) | Err(Error::Store(durum::StoreError::StorageFull { .. }))
        ),
        "{other:?}"
    );
    assert_eq!(root.count, 2);
    drop(fault);
    drop(pool);
    drop(store);
    let (_store, _pool, root) = open(dir, StoreOptions::new(), pool_options());
    assert_eq!(root.count, 2);
    let blocks = root.blocks.iter().filter(|block| !block.is_null()).count();
    assert_eq!(blocks, filled - filled / 2 + 1);
}

/// Runs `body` in a file system of 24 MiB; not without root.
fn on_a_small_file_system(body: impl FnOnce(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    let mount = |arguments: &[&str]| {
        std::process::Command::new(arguments[0])
            .args(&arguments[1..])
            .status()
            .unwrap()
            .success()
    };
    let path = dir.path().to_str().unwrap();
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", path]) {
        println!("skipped: mounting a small tmpfs needs root");
        return;
    }
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(Path::new(path))));
    assert!(mount(&["umount", "-l", path]));
    result.unwrap();
}

#[test]
fn a_full_file_system_leaves_the_pool_usable() {
    on_a_small_file_system(|path| full_disk(path, || None));
}

/// What large transactions took of the disk for their logs is there for objects when no other room is left.
#[test]
fn a_pool_that_finds_no_room_takes_that_of_the_logs() {
    on_a_small_file_system(|path| {
        let (_store, pool, root) = open(path, StoreOptions::new(), pool_options());
        let len = 1 << 20;
        let block = pool
            .transaction(|tx| unsafe {
                let block = tx.alloc_bytes(&pool, 0, len, 8)?;
                tx.set(&raw mut root.blocks[511], block)?;
                Ok::<_, Error>(block)
            })
            .unwrap();
        for round in 0..40 {
            pool.transaction(|tx| unsafe {
                tx.add_bytes(block, len, Announce::Backup)?;
                block.write_bytes(round, len);
                Ok::<_, Error>(())
            })
            .unwrap();
        }
        let (filled, _) = fill(&pool, root);
        let copies = pool.engine().puddle_kind().copies();
        // What is kept for deletes on a full disk stays: four puddles of logs on Hybrid.
        assert!(filled as u64 * copies > 80, "{filled}");
    });
}

#[test]
fn any_growth_can_fail_and_leaves_the_pool_usable() {
    for successes in 4..10 {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let store = dir.path().to_owned();
        full_disk(dir.path(), || {
            Some(inject::fail_after(Operation::Grow, successes, &store))
        });
    }
}
