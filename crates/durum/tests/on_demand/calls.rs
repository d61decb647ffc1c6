//! Calls that are given an address in a puddle that waits, and calls that look at all of a pool.

use durum::{Announce, Domain, Engine, Error, PuddleMapping};

use crate::fixture::{
    BLOCKS, ENGINES, IN_MEMORY, Opened, PUDDLE, WAYS, copy, domains, everywhere, make, open,
    pool_options, try_open,
};

#[test]
fn each_call_maps_what_it_is_about() {
    everywhere(|dir, engine, domain| {
        make(dir, engine, domain, BLOCKS);
        for (round, way) in (1..).zip(WAYS) {
            let opened = open(dir, domain, way);
            let (pool, word) = (&opened.pool, |block| opened.word(block, 50));
            // From the end, so that nothing is read ahead.
            pool.transaction(|tx| unsafe {
                tx.add(word(30))?;
                *word(30) += 1;
                tx.add_bytes(word(27).cast(), 8, Announce::Clobber)?;
                *word(27) = round;
                tx.set(word(24), round)
            })
            .unwrap();
            assert!(pool.holds(word(21).cast(), 8));
            unsafe {
                let object = pool.object_at(word(18).cast()).unwrap().unwrap();
                assert_eq!(object.start, opened.blocks[18].cast());
                assert_eq!(
                    durum::Pool::holding(word(15).addr()).unwrap().name(),
                    "pool"
                );
                assert_eq!(durum::Pool::key_at(word(12).addr()), Some(pool.key()));
                pool.persist(word(10), 8).unwrap();
                let ranges = [8, 6].map(|block| word(block).addr()..word(block).addr() + 8);
                pool.persist_all(&ranges).unwrap();
            }
            pool.touch(word(3), 8).unwrap();
            if way != PuddleMapping::Eager {
                let mapped = BLOCKS - pool.puddles_waiting();
                assert!((9..20).contains(&mapped), "{mapped}");
            }
            assert!(!pool.holds(std::ptr::from_ref(&round).cast(), 8));
            opened.close();
            let opened = open(dir, domain, PuddleMapping::Eager);
            for block in [30, 27, 24] {
                assert_eq!(opened.load(block, 50), round, "{block}");
            }
            opened.close();
        }
    });
}

/// Several blocks in each puddle, so that one which is freed leaves a puddle in use.
#[test]
fn an_object_is_freed_and_its_place_found_again_before_the_pool_grows() {
    const BYTES: usize = 400_000;
    everywhere(|dir, engine, domain| {
        make(dir, engine, domain, 1);
        let opened = try_open(dir, domain, PuddleMapping::Eager, pool_options(engine)).unwrap();
        let allocate = |opened: &Opened| {
            (opened.pool)
                .transaction(|tx| tx.alloc_bytes(&opened.pool, 0, BYTES, 8))
                .unwrap()
        };
        let mut blocks: Vec<_> = (0..60).map(|_| allocate(&opened)).collect();
        let puddles = opened.pool.usage().unwrap().puddles;
        assert!((15..40).contains(&puddles), "{puddles}");
        opened.close();
        for way in WAYS {
            let opened = try_open(dir, domain, way, pool_options(engine)).unwrap();
            let waiting = opened.pool.puddles_waiting();
            assert_eq!(waiting > 0, way != PuddleMapping::Eager);
            let free = |block| opened.pool.transaction(|tx| unsafe { tx.free(block) });
            free(blocks[30]).unwrap();

            if way != PuddleMapping::Eager {
                assert_eq!(opened.pool.puddles_waiting(), waiting - 1);
            }
            opened.close();

            let opened = try_open(dir, domain, way, pool_options(engine)).unwrap();
            let puddle = |block: *mut u8| block.addr() / PUDDLE;
            let made = allocate(&opened);
            assert_eq!(puddle(made), puddle(blocks[30]), "where there is room");
            blocks[30] = made;
            // In the last one there may be some, and then there is none.
            let mut more = Vec::new();
            while more.is_empty() || opened.pool.usage().unwrap().puddles == puddles {
                more.push(allocate(&opened));
            }
            assert_eq!(opened.pool.puddles_waiting(), 0);
            // As it was for the next way.
            for block in more {
                (opened.pool)
                    .transaction(|tx| unsafe { tx.free(block) })
                    .unwrap();
            }
            opened.close();
        }
    });
}

#[test]
fn small_objects_go_where_there_is_room_already() {
    for engine in ENGINES {
        let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
        make(dir.path(), engine, Domain::Dram, BLOCKS);
        let opened = open(dir.path(), Domain::Dram, PuddleMapping::OnDemand);
        let waiting = opened.pool.puddles_waiting();
        opened
            .pool
            .transaction(|tx| tx.alloc_bytes(&opened.pool, 0, 64, 8))
            .unwrap();
        assert_eq!(opened.pool.puddles_waiting(), waiting);
        opened.close();
    }
}

#[test]
fn usage_tells_of_all_and_reserve_finds_room_in_those_that_wait() {
    for engine in ENGINES {
        let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
        make(dir.path(), engine, Domain::Dram, BLOCKS);
        let opened = open(dir.path(), Domain::Dram, PuddleMapping::OnDemand);
        opened.pool.reserve(10 * 700_000).unwrap();
        let waiting = opened.pool.puddles_waiting();
        assert!(waiting > 0, "as many as it takes");
        let usage = opened.pool.usage().unwrap();
        assert_eq!((usage.puddles, usage.bytes), (BLOCKS, BLOCKS * PUDDLE));
        assert_eq!(opened.pool.puddles_waiting(), 0);
        opened.close();
    }
}

#[test]
fn a_section_finds_changes_wherever_they_are() {
    for domain in domains() {
        let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
        make(dir.path(), Engine::Shadow, domain, BLOCKS);
        for (round, way) in (1..).zip(WAYS) {
            let opened = open(dir.path(), domain, way);
            let changed = || unsafe {
                opened.pool.section(|_| {
                    for block in (0..BLOCKS).step_by(7) {
                        opened.word(block, 60).write(round);
                    }
                    Ok::<_, Error>(())
                })
            };
            changed().unwrap();
            opened.close();
            let opened = open(dir.path(), domain, PuddleMapping::Eager);
            for block in (0..BLOCKS).step_by(7) {
                assert_eq!(opened.load(block, 60), round);
            }
            opened.close();
        }
    }
}

#[test]
fn a_checked_pool_is_mapped_when_it_is_opened() {
    let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
    make(dir.path(), Engine::Shadow, Domain::Dram, BLOCKS);
    let options = pool_options(Engine::Shadow).check_stores(true);
    let way = PuddleMapping::OnDemand;
    let opened = try_open(dir.path(), Domain::Dram, way, options).unwrap();
    assert_eq!(opened.pool.puddles_waiting(), 0);
    opened.close();
}

#[test]
fn a_pool_closes_with_most_of_its_puddles_untouched() {
    everywhere(|dir, engine, domain| {
        make(dir, engine, domain, BLOCKS);
        for way in WAYS.into_iter().chain(WAYS) {
            let opened = open(dir, domain, way);
            opened.increment(17, 2).unwrap();
            if way != PuddleMapping::Eager {
                assert!(opened.pool.puddles_waiting() >= BLOCKS - 2);
            }
            opened.close();
        }
        let opened = open(dir, domain, PuddleMapping::Eager);
        assert_eq!(opened.load(17, 2), 6);
        assert_eq!(opened.pool.usage().unwrap().puddles, BLOCKS);
        opened.close();
    });
}

/// Nothing is mapped where a puddle waits: a pool of another store that has its root there makes way.
#[test]
fn a_root_where_a_puddle_of_another_store_waits_makes_way() {
    let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    std::fs::create_dir(&one).unwrap();
    let options = || durum::StoreOptions::new().domain(Domain::Dram);
    let empty = durum::Store::create(one.join("store"), options()).unwrap();
    empty.close().unwrap();
    copy(&one, &other);
    let open = |at: &std::path::Path, way| {
        durum::Store::open(at.join("store"), options().mapping(way)).unwrap()
    };
    // The second root lies where the first store has the second puddle of its pool.
    let store = open(&other, PuddleMapping::Eager);
    for name in ["first", "second"] {
        store
            .create_pool(name, pool_options(Engine::Hybrid))
            .unwrap();
    }
    store.close().unwrap();
    let kept = dir.path().join("kept");
    copy(&other.join("store"), &kept);
    let store = open(&one, PuddleMapping::Eager);
    let pool = store
        .create_pool("pool", pool_options(Engine::Hybrid))
        .unwrap();
    pool.reserve(3 << 20).unwrap();
    pool.transaction(|tx| tx.alloc_bytes(&pool, 0, 1 << 20, 8))
        .unwrap();
    pool.transaction(|tx| tx.alloc_bytes(&pool, 0, 1 << 20, 8))
        .unwrap();
    drop(pool);
    store.close().unwrap();
    let places = |at: &std::path::Path| {
        let reader = durum_service::ReadOnlyStore::open(&at.join("store")).unwrap();
        let mut data = reader.puddles();
        data.retain(|puddle| puddle.kind.holds_objects());
        data.into_iter()
            .map(|puddle| puddle.address..puddle.address + puddle.size)
            .collect::<Vec<_>>()
    };
    for way in WAYS {
        // It has moved the time before: each way meets what it was.
        std::fs::remove_dir_all(other.join("store")).unwrap();
        copy(&kept, &other.join("store"));
        let store = open(&one, way);
        let pool = store.open_pool("pool", Default::default()).unwrap();
        assert_eq!(pool.puddles_waiting() > 0, way != PuddleMapping::Eager);
        let second = open(&other, PuddleMapping::Eager);
        let moved = second.open_pool("second", Default::default()).unwrap();
        let root = moved.root::<u64>().unwrap().addr() as u64;
        let mut taken = places(&one).into_iter();
        assert!(taken.all(|place| !place.contains(&root)), "{way:?}");
        drop((pool, moved));
        second.close().unwrap();
        store.close().unwrap();
    }
}
