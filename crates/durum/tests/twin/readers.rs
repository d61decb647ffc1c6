//! Readers of a copy beside a writer: each sees a transaction whole, and what they may not do.

use std::panic::AssertUnwindSafe;
use std::thread;

use durum::{Domain, Engine, Error, LrRef, Pool, PoolOptions, Store, StoreOptions, TwinMode, Tx};

use crate::{Root, listed, push, push_in, store, twin};

#[test]
fn readers_finish_while_a_writer_is_stopped_in_the_middle() {
    for domain in [Domain::Dram, Domain::File] {
        let (_dir, store, pool, root) = store(StoreOptions::new().domain(domain));
        drop(pool);
        let pool = store
            .open_pool("pool", twin().twin_mode(TwinMode::LeftRight))
            .unwrap();
        let root_address = root.expose_provenance();
        let seen = |pool: &Pool| {
            let root = std::ptr::with_exposed_provenance::<Root>(root_address);
            // SAFETY: the root is live.
            pool.read_copy(|view| unsafe { view.get(root).unwrap().words[..3].to_vec() })
                .unwrap()
        };
        let change = |value: u64, middle: &mut dyn FnMut()| {
            pool.transaction(|tx| unsafe {
                let root = std::ptr::with_exposed_provenance_mut::<Root>(root_address);
                for word in 0..3 {
                    tx.add(&raw const (*root).words[word])?;
                    (*root).words[word] = value;
                    middle();
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        };
        change(1, &mut || ());
        assert_eq!(seen(&pool), [1; 3], "durable, so it is seen");
        let mut times = 0;
        change(2, &mut || {
            // The writer stands still until these readers have come and gone.
            thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| assert_eq!(seen(&pool), [1; 3]));
                }
            });
            times += 1;
        });
        assert_eq!((times, seen(&pool)), (3, vec![2; 3]));
        // What is rolled back was never seen.
        let result = pool.transaction(|tx| unsafe {
            tx.add(&raw const (*root).words[0])?;
            (*root).words[0] = 77;
            tx.abort::<()>()
        });
        assert!(result.is_err());
        assert_eq!(seen(&pool), [2; 3]);
    }
}

#[test]
fn readers_see_each_transaction_whole_and_time_does_not_go_back() {
    let (_dir, store, pool, root) = store(StoreOptions::new());
    drop(pool);
    let pool = store
        .open_pool("pool", twin().twin_mode(TwinMode::LeftRight))
        .unwrap();
    let (pool, root) = (&pool, root.expose_provenance());
    const LAST: u64 = 3000;
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(move || {
                let root = std::ptr::with_exposed_provenance::<Root>(root);
                let mut last = 0;
                for round in 0.. {
                    let panics = round % 7 == 3;
                    let read = std::panic::catch_unwind(AssertUnwindSafe(|| {
                        pool.read_copy(|view| unsafe {
                            let seen = view.get(root).unwrap();
                            let first = seen.words[0];
                            assert!(seen.words.iter().step_by(100).all(|word| *word == first));
                            let node = view.get(seen.list.cast_const());
                            assert_eq!(node.map_or(0, |node| node.value), first);
                            if panics {
                                // A reader that panics holds nobody up.
                                std::panic::resume_unwind(Box::new("as told"));
                            }
                            first
                        })
                    }));
                    match read {
                        Ok(seen) => {
                            let seen = seen.unwrap();
                            assert!(seen >= last);
                            last = seen;
                        }
                        Err(panic) if panics && panic.is::<&str>() => {}
                        Err(panic) => std::panic::resume_unwind(panic),
                    }
                    if last == LAST {
                        break;
                    }
                }
            });
        }
        let root = std::ptr::with_exposed_provenance_mut::<Root>(root);
        for value in 1..=LAST {
            pool.transaction(|tx| unsafe {
                for word in (0..1024).step_by(100) {
                    tx.add(&raw const (*root).words[word])?;
                    (*root).words[word] = value;
                }
                let old = (*root).list;
                push_in(tx, root, value)?;
                if !old.is_null() {
                    tx.free(old)?;
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        }
    });
}

#[test]
fn a_copy_is_read_where_there_are_two_and_not_changed_by_who_reads() {
    let (_dir, store, pool, root) = store(StoreOptions::new());
    let shadow = store
        .create_pool("shadow", PoolOptions::new().engine(Engine::Shadow))
        .unwrap();
    for pool in [&pool, &shadow] {
        let error = pool.read_copy(|_| ()).unwrap_err();
        assert!(matches!(error, Error::NoCopies { .. }), "{error}");
    }
    drop(pool);
    let pool = store
        .open_pool("pool", twin().twin_mode(TwinMode::LeftRight))
        .unwrap();
    // Also what changes nothing: it would wait for its turn, which somebody may have who waits for this reader.
    let inside = pool
        .read_copy(|_| {
            // SAFETY: nobody changes the root meanwhile.
            let persisted = unsafe { pool.persist(root, size_of::<Root>()) };
            [
                push(&pool, root, 1),
                pool.transaction(|_| Ok::<_, Error>(())),
                persisted,
            ]
        })
        .unwrap();
    for refused in inside {
        assert!(
            matches!(refused, Err(Error::ReadsCopy { .. })),
            "{refused:?}"
        );
    }
    assert_eq!(listed(root), [0_u64; 0]);
    push(&pool, root, 2).unwrap();
    assert_eq!(listed(root), [2]);
    // Pointers of the copy are no pointers into the pool.
    let copy = pool
        .read_copy(|view| unsafe { std::ptr::from_ref(view.get(root).unwrap()) })
        .unwrap();
    assert_eq!(copy.addr(), root.addr(), "main, as of the last commit");
    pool.transaction(|tx| unsafe {
        tx.add(root)?;
        // Main is about to change, so that readers are sent to the other one.
        let address = root.expose_provenance();
        let copy = thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let root = std::ptr::with_exposed_provenance::<Root>(address);
                pool.read_copy(|view| std::ptr::from_ref(view.get(root).unwrap()).addr())
                    .unwrap()
            });
            reader.join().unwrap()
        });
        assert_ne!(copy, address);
        let result = tx.add(std::ptr::with_exposed_provenance::<Root>(copy));
        assert!(matches!(result, Err(Error::NotInPool { .. })), "{result:?}");
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn a_read_in_a_read_shows_the_same_and_one_in_a_transaction_its_changes() {
    let (_dir, store, pool, root) = store(StoreOptions::new());
    drop(pool);
    let pool = store
        .open_pool("pool", twin().twin_mode(TwinMode::LeftRight))
        .unwrap();
    let change = |value: u64, middle: &dyn Fn()| {
        pool.transaction(|tx| unsafe {
            tx.add(&raw const (*root).words[0])?;
            (*root).words[0] = value;
            middle();
            Ok::<_, Error>(())
        })
        .unwrap();
    };
    // SAFETY: the root is live.
    let seen = |view: &durum::View<'_>| unsafe { view.get(root).unwrap().words[0] };
    change(1, &|| ());
    change(2, &|| {
        let (first, nested) = pool
            .read_copy(|view| (seen(view), pool.read_copy(seen).unwrap()))
            .unwrap();
        assert_eq!((first, nested), (2, 2), "what this thread has stored");
        // It is part of the transaction, which may go on.
        let inside = pool.read_copy(|_| pool.transaction(|_| Ok::<_, Error>(())));
        inside.unwrap().unwrap();
    });
    let [changes, come, go] = [(); 3].map(|()| std::sync::Barrier::new(2));
    let (pool, address) = (&pool, root.expose_provenance());
    thread::scope(|scope| {
        let (changes, come, go) = (&changes, &come, &go);
        let reader = scope.spawn(move || {
            let root = std::ptr::with_exposed_provenance::<Root>(address);
            // SAFETY: the root is live.
            let seen = |view: &durum::View<'_>| unsafe { view.get(root).unwrap().words[0] };
            changes.wait();
            pool.read_copy(|view| {
                come.wait();
                go.wait();
                // Whoever comes now is sent to main, where there is something newer by the time of the look below.
                (seen(view), pool.read_copy(seen).unwrap(), view.distance())
            })
            .unwrap()
        });
        pool.transaction(|tx| unsafe {
            tx.add(&raw const (*root).words[0])?;
            (*root).words[0] = 3;
            // From now on readers are sent to back.
            changes.wait();
            come.wait();
            Ok::<_, Error>(scope.spawn(move || {
                let root = std::ptr::with_exposed_provenance::<Root>(address);
                let seen = |view: &durum::View<'_>| view.get(root).unwrap().words[0];
                while pool.read_copy(seen).unwrap() != 3 {}
                go.wait();
            }))
        })
        .unwrap();
        let (first, nested, distance) = reader.join().unwrap();
        assert_eq!((first, nested), (2, 2));
        assert_ne!(distance, 0);
    });
}

/// A chain whose links readers follow in the copy that they see.
#[repr(C)]
struct Link {
    value: u64,
    next: LrRef<Link>,
}
durum::describe!(Link as "link" { value, next });

#[repr(C)]
struct Chain {
    first: LrRef<Link>,
    last: LrRef<Link>,
    /// In the object, as are its own pointers.
    inner: Link,
}
durum::describe!(Chain as "chain" { first, last, inner });

/// The values along the chain, as of one commit.
fn values(pool: &Pool, chain: *const Chain) -> durum::Result<Vec<u64>> {
    pool.read_copy(|view| {
        let mut values = Vec::new();
        // SAFETY: the root is live, and so is what a link leads to as long as the view shows it.
        unsafe {
            let mut next = view.get(chain).map_or(LrRef::null(), |chain| chain.first);
            while let Some(link) = next.get(view) {
                values.push(link.value);
                next = link.next;
            }
        }
        values
    })
}

#[test]
fn the_page_about_threads_shows_this_code() {
    let (page, tests) = (
        include_str!("../../../../docs/how-to/concurrency.md"),
        include_str!("readers.rs"),
    );
    let blocks: Vec<&str> = (page.split("```rust\n").skip(1))
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert_eq!(blocks.len(), 2);
    for block in blocks {
        assert!(
            tests.contains(block),
            "no test has this code any more:\n{block}"
        );
    }
}

#[test]
fn references_are_followed_in_the_copy_that_is_seen() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    let options = twin().twin_mode(TwinMode::LeftRight);
    let pool = store.create_pool("pool", options).unwrap();
    let chain: *mut Chain = pool.root().unwrap();
    let address = chain.expose_provenance();
    // The values along the chain, what the inner one leads to, and how far from the objects it was read.
    let seen = |pool: &Pool| {
        let chain = std::ptr::with_exposed_provenance::<Chain>(address);
        pool.read_copy(|view| unsafe {
            let seen = view.get(chain).unwrap();
            assert_eq!(LrRef::<Link>::null().get(view).map(|link| link.value), None);
            let mut values = Vec::new();
            let mut next = seen.first;
            while let Some(link) = next.get(view) {
                assert_eq!(
                    std::ptr::from_ref(link).addr(),
                    next.object().addr() + view.distance()
                );
                values.push(link.value);
                // The reference is the object's own in whatever copy it stands: it can be compared, and kept.
                if link.next == LrRef::null() {
                    assert_eq!(next, seen.last);
                }
                next = link.next;
            }
            let inner = seen.inner.next.get(view);
            let inner = inner.and_then(|link| link.next.get(view));
            (values, inner.map(|link| link.value), view.distance())
        })
        .unwrap()
    };
    let append = |tx: &Tx, value: u64| unsafe {
        let link = LrRef::new(tx.alloc::<Link>()?);
        link.object().write(Link {
            value,
            next: LrRef::null(),
        });
        tx.add(chain)?;
        match (*chain).last == LrRef::null() {
            true => (*chain).first = link,
            false => {
                let last = (*chain).last.object();
                tx.add(&raw const (*last).next)?;
                (*last).next = link;
            }
        }
        (*chain).last = link;
        Ok::<_, Error>(link)
    };
    assert_eq!(seen(&pool), (vec![], None, 0));
    let first = pool.transaction(|tx| append(tx, 1)).unwrap();
    for round in 2..6 {
        pool.transaction(|tx| unsafe {
            append(tx, round)?;
            tx.add(&raw const (*chain).inner)?;
            (*chain).inner.next = first;
            tx.add(&raw const (*first.object()).value)?;
            (*first.object()).value = 10 * round;
            // This thread sees what it has changed; others what is committed, in the other copy.
            let mut changed: Vec<u64> = (1..=round).collect();
            let mut committed: Vec<u64> = (1..round).collect();
            changed[0] = 10 * round;
            if round > 2 {
                committed[0] = 10 * (round - 1);
            }
            assert_eq!(seen(&pool), (changed, Some(2), 0));
            let pool = &pool;
            let elsewhere = thread::scope(|scope| {
                let reader = scope.spawn(move || {
                    // One inside of another one shows the same.
                    let nested = pool.read_copy(|_| seen(pool)).unwrap();
                    assert_eq!(nested, seen(pool));
                    nested
                });
                reader.join().unwrap()
            });
            assert_eq!(elsewhere.0, committed);
            assert_eq!(elsewhere.1, (round > 2).then_some(2));
            assert_ne!(elsewhere.2, 0);
            Ok::<_, Error>(())
        })
        .unwrap();
        let now = values(&pool, chain).unwrap();
        assert_eq!((now.len() as u64, now[0]), (round, 10 * round));
    }
    // What a view gives is a reference as any other, for who changes the object later.
    let last = pool
        .read_copy(|view| unsafe { view.get(chain).unwrap().last })
        .unwrap();
    assert_eq!(unsafe { (*last.object()).value }, 5);
    assert!(format!("{last:?}").starts_with("0x"));
}

#[test]
fn an_update_inside_a_read_of_a_copy_is_an_error() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    let options = twin().twin_mode(TwinMode::LeftRight);
    let pool = store.create_pool("pool", options).unwrap();
    let found = pool.read_copy(|_| (pool.update(|_| Ok::<(), Error>(())), pool.read(|| ())));
    let (update, read) = found.unwrap();
    assert!(matches!(update, Err(Error::ReadsCopy { .. })));
    assert!(matches!(read, Err(Error::ReadsCopy { .. })));
    pool.update(|_| Ok::<(), Error>(())).unwrap();
}
