//! Which object an address lies in, and memory that becomes durable although no transaction was told of its stores.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod support;

use durum::{Engine, Error, PoolOptions, Store, StoreOptions};

const ENGINES: [Engine; 3] = [Engine::Shadow, Engine::Hybrid, Engine::Twin];

#[test]
fn an_address_leads_to_the_object_that_it_lies_in() {
    for engine in ENGINES {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
        let pool = store
            .create_pool("pool", PoolOptions::new().engine(engine))
            .unwrap();
        pool.root::<u64>().unwrap();
        let at = |address: *const u8| unsafe { pool.object_at(address).unwrap() };
        let sizes = [8usize, 40, 256, 257, 5000, 70_000, 3 << 20, 16, 300];
        let mut objects = Vec::new();
        for size in sizes {
            let object = pool
                .transaction(|tx| {
                    let object = tx.alloc_bytes(&pool, 0, size, 16)?;
                    let found = at(object).expect("also before the commit");
                    assert_eq!(found.start, object);
                    Ok::<_, Error>(object)
                })
                .unwrap();
            objects.push((object, size));
        }
        for (object, size) in &objects {
            for offset in [0, 1, size / 2, size - 1] {
                let found = at(object.wrapping_add(offset)).expect("an object");
                assert_eq!((found.start, found.type_id), (*object, 0));
                assert!(found.len >= *size && found.len < size + 64, "{found:?}");
            }
        }
        // Only one of each is there after this.
        for (object, size) in objects.iter().step_by(2) {
            pool.transaction(|tx| unsafe { tx.free(*object) }).unwrap();
            assert_eq!(at(*object), None, "{size}");
            assert_eq!(at(object.wrapping_add(size - 1)), None, "{size}");
        }
        for (object, _) in objects.iter().skip(1).step_by(2) {
            assert_eq!(at(*object).expect("still there").start, *object);
        }
        assert_eq!(at((&raw const pool).cast()), None);
        assert_eq!(at(std::ptr::null()), None);
    }
}

/// The transaction that makes the slab is rolled back: a later one that takes an object of it publishes it.
#[test]
fn objects_of_a_slab_that_an_abort_has_left_are_found_after_reopening() {
    for engine in ENGINES {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("store");
        let store = Store::create(&path, StoreOptions::new()).unwrap();
        let options = PoolOptions::new().engine(engine);
        let pool = store.create_pool("pool", options).unwrap();
        pool.root::<u64>().unwrap();
        let aborted = pool.transaction(|tx| {
            tx.alloc_bytes(&pool, 0, 48, 8)?;
            tx.abort::<()>()
        });
        assert!(matches!(aborted, Err(Error::Aborted)));
        let make = |value: u64| {
            pool.transaction(|tx| {
                let object = tx.alloc_bytes(&pool, 0, 48, 8)?.cast::<u64>();
                unsafe { object.write(value) };
                Ok::<_, Error>(object)
            })
        };
        let objects = [7, 8, 9].map(|value| (make(value).unwrap(), value));
        let gone = pool.transaction(|tx| {
            let object = tx.alloc_bytes(&pool, 0, 48, 8)?;
            unsafe { tx.free(object) }?;
            Ok::<_, Error>(object)
        });
        drop(pool);
        drop(store);
        let store = Store::open(&path, StoreOptions::new()).unwrap();
        let pool = store.open_pool("pool", PoolOptions::new()).unwrap();
        for (object, value) in objects {
            assert_eq!(unsafe { *object }, value, "{engine:?}");
            let free = || pool.transaction(|tx| unsafe { tx.free(object) });
            free().unwrap();
            assert!(matches!(free(), Err(Error::NotAllocated { .. })));
        }
        let found = unsafe { pool.object_at(gone.unwrap()) }.unwrap();
        assert_eq!(found, None, "{engine:?}: freed where it was allocated");
    }
}

/// The crash: the process ends without closing anything, after stores that no transaction was told of.
#[test]
fn contents_are_durable_with_the_transaction_that_names_them() {
    for engine in ["shadow", "hybrid", "twin"] {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        std::fs::write(dir.path().join("engine"), engine).unwrap();
        let mut child = support::start("worker_that_names_contents", dir.path());
        assert_eq!(child.wait().unwrap().code(), None, "it ends by a signal");
        let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
        let pool = store.open_pool("pool", PoolOptions::new()).unwrap();
        let words = pool.root::<[u64; 512]>().unwrap();
        let words = unsafe { &*words };
        assert_eq!(words[..300], [7; 300], "{engine}: named");
        assert_eq!(words[300..400], [0; 100], "{engine}: the abort's");
        assert_eq!(words[511], 1, "{engine}: announced in the same transaction");
    }
}

#[test]
#[ignore = "the other process of the test above"]
fn worker_that_names_contents() {
    let Some(dir) = support::directory() else {
        return;
    };
    let engine = std::fs::read_to_string(dir.join("engine")).unwrap();
    let options = PoolOptions::new().engine(Engine::from_name(&engine).unwrap());
    let store = Store::create(dir.join("store"), StoreOptions::new()).unwrap();
    let pool = store.create_pool("pool", options).unwrap();
    let words = pool.root::<[u64; 512]>().unwrap().cast::<u64>();
    unsafe {
        words.write(7);
        for index in 0..300 {
            words.add(index).write(7);
        }
        let before = durum::thread_counters();
        pool.transaction(|tx| {
            // The first one alone, then a range that is kept by line and one that is not.
            tx.add_contents(words.cast(), 8)?;
            tx.add_contents(words.cast(), 100)?;
            tx.add_contents(words.cast(), 2400)?;
            tx.add(words.add(511))?;
            words.add(511).write(1);
            Ok::<_, Error>(())
        })
        .unwrap();
        if engine == "shadow" {
            assert_eq!((durum::thread_counters() - before).fences, 1);
        }
        let aborted = pool.transaction(|tx| {
            tx.volatile_bytes(words.add(300).cast(), 800);
            tx.add_contents(words.add(300).cast(), 800)?;
            words.add(300).write_bytes(0xff, 100);
            tx.abort::<()>()
        });
        assert!(matches!(aborted, Err(Error::Aborted)));
        assert_eq!(words.add(350).read(), 0);
    }
    std::process::abort();
}
