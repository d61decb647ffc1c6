//! Room that a pool takes and gives back.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::support::pool_options;
use durum::{Domain, Error, Pool, StoreOptions};
use durum_persist::inject::{self, Operation};

use crate::fixture::*;

#[test]
fn space_of_an_aborted_allocation_goes_back() {
    let fixture = Fixture::with(StoreOptions::new(), pool_options().spare_max(0));
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

/// Slabs belong to the thread that allocates in them, until it ends or leaves the store.
#[test]
fn who_leaves_a_store_gives_back_its_slabs() {
    const SLAB: usize = 4096;
    let fixture = Fixture::new();
    let pool = fixture.pool();
    let allocate = || {
        let object = pool.transaction(|tx| tx.alloc::<u64>().map(|object| object.addr()));
        object.unwrap() / SLAB
    };
    let elsewhere = || std::thread::scope(|scope| scope.spawn(allocate).join().unwrap());
    let mine = allocate();
    assert_ne!(elsewhere(), mine, "another thread has slabs of its own");
    // Not in the middle of a transaction.
    let in_one = pool.transaction(|tx| {
        let object = tx.alloc::<u64>()?;
        fixture.store.as_ref().unwrap().leave();
        unsafe { object.write(7) };
        Ok::<_, Error>(object)
    });
    let object = in_one.unwrap();
    assert_eq!((object.addr() / SLAB, unsafe { object.read() }), (mine, 7));
    fixture.store.as_ref().unwrap().leave();
    fixture.store.as_ref().unwrap().leave();
    let slabs = [elsewhere(), elsewhere()];
    assert!(slabs.contains(&mine), "{slabs:x?} {mine:x}");
    // And it can come back.
    allocate();
}

/// A slab is offered to threads when a part of it is free. What is free in slabs below that is taken before a pool
/// grows.
#[test]
fn a_pool_does_not_grow_while_its_slabs_have_any_room() {
    const SLAB: usize = 16 << 10;
    let fixture = Fixture::with(StoreOptions::new(), pool_options());
    let pool = fixture.pool();
    fixture.root();
    let allocate = || {
        let object = pool.transaction(|tx| tx.alloc_bytes(pool, 0, 200, 8));
        object.unwrap()
    };
    let mut objects = Vec::new();
    while pool.usage().unwrap().free_bytes >= SLAB {
        objects.push(allocate());
    }
    let before = pool.usage().unwrap();
    // One or two of the 81 elements that each slab has.
    let freed = objects.iter().step_by(50);
    let count = freed.len();
    for object in freed {
        pool.transaction(|tx| unsafe { tx.free(*object) }).unwrap();
    }
    for _ in 0..count {
        allocate();
    }
    assert_eq!(pool.usage().unwrap(), before);
    // One slab may have had room before.
    for _ in 0..81 {
        allocate();
    }
    assert!(pool.usage().unwrap().puddles > before.puddles);
}

/// What was asked for stays while objects come and go, and goes when the pool is closed.
#[test]
fn reserved_room_is_there_until_the_pool_is_closed() {
    const ROOM: u64 = 20 << 20;
    let mut fixture = Fixture::with(StoreOptions::new(), pool_options().spare_max(0));
    let handle = fixture.pool().clone();
    let pool = &handle;
    fixture.root();
    pool.reserve(ROOM).unwrap();
    let reserved = pool.usage().unwrap();
    assert!(reserved.free_bytes as u64 >= ROOM, "{reserved:?}");
    pool.reserve(ROOM / 2).unwrap();
    assert_eq!(pool.usage().unwrap(), reserved, "there is as much already");
    for _ in 0..3 {
        let before = pool.usage().unwrap();
        let blocks: Vec<*mut u8> = (0..ROOM / 100_000 / 2)
            .map(|_| {
                let block = pool.transaction(|tx| tx.alloc_bytes(pool, 0, 100_000, 8));
                block.unwrap()
            })
            .collect();
        assert_eq!(pool.usage().unwrap().puddles, before.puddles);
        for block in blocks {
            pool.transaction(|tx| unsafe { tx.free(block) }).unwrap();
        }
        let after = pool.usage().unwrap();
        assert!(after.free_bytes as u64 >= ROOM, "{after:?}");
    }
    drop(handle);
    fixture.reopen(StoreOptions::new());
    assert_eq!(fixture.pool().usage().unwrap().puddles, 1);
}

#[test]
fn more_room_than_the_file_system_has_is_refused_at_once() {
    let fixture = Fixture::with(StoreOptions::new(), pool_options());
    let pool = fixture.pool();
    let root = fixture.root() as *mut Root;
    let before = pool.usage().unwrap();
    let refused = pool.reserve(u64::MAX).unwrap_err();
    assert!(refused.to_string().contains("no room"), "{refused}");
    assert_eq!(pool.usage().unwrap(), before);
    push(pool, root, 1);
}

/// Whatever fails half way: the pool is as large as before, and goes on.
#[test]
fn room_that_cannot_be_had_whole_is_given_back() {
    let fixture = Fixture::with(StoreOptions::new(), pool_options().growth_max(2 << 20));
    let pool = fixture.pool();
    let root = fixture.root() as *mut Root;
    push(pool, root, 0);
    let before = pool.usage().unwrap();
    for successes in 0..12 {
        let fault = inject::fail_after(Operation::Grow, successes, fixture.dir.path());
        let refused = pool.reserve(40 << 20).unwrap_err();
        drop(fault);
        assert!(refused.to_string().contains("no room"), "{refused}");
        assert_eq!(pool.usage().unwrap(), before, "after {successes}");
        push(pool, root, successes);
    }
    pool.reserve(40 << 20).unwrap();
    assert!(pool.usage().unwrap().free_bytes >= 40 << 20);
}

#[test]
fn threads_that_want_the_same_room_get_it_once() {
    const ROOM: usize = 30 << 20;
    let fixture = Fixture::with(StoreOptions::new(), pool_options());
    let pool = fixture.pool();
    fixture.root();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| pool.reserve(ROOM as u64).unwrap());
        }
    });
    let usage = pool.usage().unwrap();
    assert!(
        (ROOM..ROOM + (4 << 20)).contains(&usage.free_bytes),
        "{usage:?}"
    );
}

/// What is kept for the root is no room for others.
#[test]
fn the_place_of_a_root_does_not_count_as_room() {
    let options = pool_options().root_puddle_size(32 << 20);
    let fixture = Fixture::with(StoreOptions::new(), options);
    let pool = fixture.pool();
    pool.reserve(8 << 20).unwrap();
    let reserved = pool.usage().unwrap();
    assert!(reserved.bytes > 40 << 20, "{reserved:?}");
    pool.transaction(|tx| tx.alloc_bytes(pool, 0, 1 << 20, 8))
        .unwrap();
    assert_eq!(pool.usage().unwrap().bytes, reserved.bytes);
}

/// A removed file takes room as long as something holds it open or mapped.
#[test]
fn nothing_holds_on_to_puddles_that_were_given_back() {
    for domain in [Domain::Dram, Domain::File] {
        let options = StoreOptions::new().domain(domain);
        let fixture = Fixture::with(options, pool_options().spare_max(0));
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
fn a_pool_grows_and_gives_back() {
    let mut fixture = Fixture::with(StoreOptions::new(), pool_options().spare_max(4 << 20));
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

/// Allocates, checks and frees objects that all threads know: what is in each says which it is.
fn churn(pool: &Pool, objects: &Mutex<Vec<(usize, u64)>>, ids: &AtomicU64, rounds: usize) {
    for round in 0..rounds {
        let id = ids.fetch_add(1, Ordering::Relaxed);
        let place = pool
            .transaction(|tx| {
                let object: *mut u64 = tx.alloc_bytes(pool, 0, 16, 8)?.cast();
                // SAFETY: it was just allocated.
                unsafe { object.write(id) };
                Ok::<_, Error>(object.expose_provenance())
            })
            .unwrap();
        let other = {
            let mut objects = objects.lock().unwrap();
            objects.push((place, id));
            let at = id as usize * 7919 % objects.len();
            (round % 8 != 7).then(|| objects.swap_remove(at))
        };
        if let Some((place, id)) = other {
            let object = std::ptr::with_exposed_provenance_mut::<u64>(place);
            // SAFETY: nobody else knows it any more.
            unsafe {
                assert_eq!(object.read(), id, "nobody else was given this place");
                pool.transaction(|tx| tx.free(object)).unwrap();
            }
        }
    }
}

#[test]
fn threads_that_come_and_go_share_slabs() {
    let fixture = Fixture::new();
    let pool = fixture.pool();
    let (objects, ids) = (Mutex::new(Vec::new()), AtomicU64::new(1));
    std::thread::scope(|scope| {
        let steady = scope.spawn(|| churn(pool, &objects, &ids, 300_000));
        while !steady.is_finished() {
            scope
                .spawn(|| churn(pool, &objects, &ids, 40))
                .join()
                .unwrap();
            std::thread::sleep(Duration::from_micros(200));
        }
    });
    let left = objects.into_inner().unwrap();
    let places: std::collections::BTreeSet<usize> = left.iter().map(|(place, _)| *place).collect();
    assert_eq!(places.len(), left.len());
    for (place, id) in left {
        let object = std::ptr::with_exposed_provenance_mut::<u64>(place);
        // SAFETY: an object that nobody has freed.
        unsafe {
            assert_eq!(object.read(), id);
            pool.transaction(|tx| tx.free(object)).unwrap();
        }
    }
}
