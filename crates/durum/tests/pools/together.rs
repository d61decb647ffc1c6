//! Pools, stores and threads beside each other.

use durum::{Error, Pool, Store, StoreOptions};

use crate::support::{engine, pool_options};
use crate::{Pair, store};

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
