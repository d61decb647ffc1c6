//! Pages are given back, and what lies in them stays.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use durum::{Domain, Durability, Error, PageTracking, Store, StoreOptions};

use crate::{
    DOMAINS, Fixture, PIECE, Random, Root, alone, lock, make_piece, parent, piece, pool_options,
};

/// Bytes of anonymous memory of this process.
fn anonymous() -> usize {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Anonymous:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<usize>().unwrap() << 10
}

/// What the system says of the mapping that holds an address: its flags, two letters each.
fn mapping_flags(address: usize) -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut is_it = false;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some((start, end)) = first.split_once('-')
            && let Ok(start) = usize::from_str_radix(start, 16)
            && let Ok(end) = usize::from_str_radix(end, 16)
        {
            is_it = (start..end).contains(&address);
        } else if is_it && first == "VmFlags:" {
            return words.map(str::to_owned).collect();
        }
    }
    panic!("{address:#x} is not mapped");
}

/// Else a pool takes as much of what the machine has to give as it is large: 64 GiB could not be opened.
#[test]
fn private_mappings_reserve_no_memory() {
    for domain in [Domain::Dram, Domain::File] {
        let dir = tempfile::tempdir_in(parent(domain)).unwrap();
        let options = StoreOptions::new().domain(domain);
        let store = Store::create(dir.path().join("store"), options).unwrap();
        let pool = store.create_pool("pool", pool_options()).unwrap();
        let flags = mapping_flags(pool.root::<Root>().unwrap().addr());
        assert!(flags.iter().any(|flag| flag == "nr"), "{flags:?}");
        assert!(!flags.iter().any(|flag| flag == "sh"), "{flags:?}");
    }
}

#[test]
fn a_pool_many_times_the_limit_is_filled_and_changed() {
    let Some(_alone) = alone() else { return };
    for domain in DOMAINS {
        const LIMIT: usize = 16 << 20;
        /// Large pages that are being filled, the log and a batch, what the test itself has.
        const SLACK: usize = 40 << 20;
        let mut fixture = Fixture::new(domain, LIMIT as u64);
        let before = anonymous();
        let mut most = 0;
        for at in 0..192 {
            make_piece(&fixture.pool(), at, |index| (at * PIECE + index) as u64);
            most = most.max(anonymous().saturating_sub(before));
        }
        let filled = most;
        assert!(filled < LIMIT + SLACK, "{domain:?}: filling took {filled}");
        // Words all over, in pages that were given back or are just being.
        let mut model = BTreeMap::new();
        let mut random = Random(7);
        let pool = fixture.pool();
        let root = fixture.root();
        for tag in 0..match domain {
            Domain::File => 100,
            _ => 3000,
        } {
            pool.transaction(|tx| unsafe {
                for _ in 0..20 {
                    let (at, index) = (random.below(192), random.below(PIECE / 8));
                    let word = &raw mut piece(root, at)[index];
                    let expected = model.get(&(at, index)).copied();
                    assert_eq!(*word, expected.unwrap_or((at * PIECE + index) as u64));
                    tx.add(word)?;
                    *word = tag << 32 | index as u64;
                    model.insert((at, index), *word);
                }
                Ok::<_, Error>(())
            })
            .unwrap();
            if tag % 64 == 0 {
                most = most.max(anonymous().saturating_sub(before));
            }
        }
        let (pages, given_back) = fixture.store().private_pages();
        println!(
            "{domain:?}: at most {} KiB while filling, {} in all; {pages} pages counted, {given_back} given back",
            filled >> 10,
            most >> 10
        );
        assert!(most < LIMIT + SLACK, "{domain:?}: {most}");
        assert!(given_back > 192 * 256 / 2, "{given_back}");
        let verify = |root: &Root| {
            for at in 0..192 {
                for (index, word) in piece(root, at).iter().enumerate() {
                    let expected = model.get(&(at, index)).copied();
                    assert_eq!(*word, expected.unwrap_or((at * PIECE + index) as u64));
                }
            }
        };
        verify(root);
        drop(pool);
        fixture.reopen();
        verify(fixture.root());
    }
}

/// Every kind of change between two times that all pages are given back, against a model. Fresh puddles, and those of a
/// pool that was opened.
#[test]
fn nothing_changes_when_pages_are_given_back() {
    let Some(_alone) = alone() else { return };
    for (domain, tracking, private_max) in [
        (Domain::Dram, PageTracking::Userfaultfd, u64::MAX),
        (Domain::Dram, PageTracking::Mprotect, 0),
        (Domain::File, PageTracking::Userfaultfd, 0),
        (Domain::File, PageTracking::Mprotect, u64::MAX),
    ] {
        const AREA: usize = 6;
        let mut fixture =
            Fixture::with(domain, private_max, pool_options().page_tracking(tracking));
        for at in 0..AREA {
            make_piece(&fixture.pool(), at, |_| 0);
        }
        let mut model = vec![vec![0u64; PIECE / 8]; AREA];
        let mut objects = [None; 64];
        let mut random = Random(11);
        let (mut given_back, mut given_back_in_all) = (0, 0);
        for round in 0..match domain {
            Domain::File => 200,
            _ => 750,
        } {
            let pool = fixture.pool();
            let root = fixture.root();
            let tag = round as u64 + 1;
            let mut places: Vec<(usize, usize)> = (0..1 + random.below(12))
                .map(|_| (random.below(AREA), random.below(60) * 509))
                .collect();
            places.dedup();
            let durability = match random.below(3) {
                0 => Durability::Buffered,
                _ => Durability::Durable,
            };
            let change = |tx: &durum::Tx| unsafe {
                for (at, index) in &places {
                    let word = &raw mut piece(root, *at)[*index];
                    tx.add(word)?;
                    *word = tag;
                }
                Ok::<_, Error>(())
            };
            match random.below(12) {
                0..=3 => pool.transaction_with(durability, change).unwrap(),
                4 => {
                    let result = pool.transaction(|tx| {
                        change(tx)?;
                        let large = tx.alloc_bytes(&pool, 0, 9000, 8)?;
                        unsafe { large.write_bytes(0xee, 9000) };
                        tx.abort::<()>()
                    });
                    assert!(matches!(result, Err(Error::Aborted)));
                    places.clear();
                }
                5 | 6 => unsafe {
                    pool.section(|_| {
                        for (at, index) in &places {
                            piece(root, *at)[*index] = tag;
                        }
                        Ok::<_, Error>(())
                    })
                    .unwrap();
                },
                7 => {
                    let result = unsafe {
                        pool.section(|_| {
                            for (at, index) in &places {
                                piece(root, *at)[*index] = tag;
                            }
                            Err::<(), _>(Error::Aborted)
                        })
                    };
                    assert!(matches!(result, Err(Error::Aborted)));
                    places.clear();
                }
                8 => {
                    for (at, index) in &places {
                        let word = &raw mut piece(root, *at)[*index];
                        unsafe { *word = tag };
                        if random.below(2) == 0 {
                            // Not durable yet, and not lost either.
                            given_back += fixture.give_back();
                            assert_eq!(unsafe { *word }, tag);
                        }
                        unsafe { pool.persist(word, 8).unwrap() };
                    }
                }
                9 => pool
                    .transaction_with(durability, |tx| unsafe {
                        for (at, index) in &places {
                            tx.set(&raw mut piece(root, *at)[*index], tag)?;
                        }
                        Ok::<_, Error>(())
                    })
                    .unwrap(),
                _ => {
                    let slot = random.below(64);
                    let object = &raw mut root.objects[slot];
                    pool.transaction_with(durability, |tx| unsafe {
                        match objects[slot].take() {
                            Some(value) => {
                                assert_eq!(**object, [value; 9]);
                                tx.free(*object)?;
                                tx.set(object, std::ptr::null_mut())
                            }
                            None => {
                                objects[slot] = Some(tag);
                                let fresh = tx.alloc_bytes(&pool, 0, 72, 8)?.cast::<[u64; 9]>();
                                *fresh = [tag; 9];
                                tx.set(object, fresh)
                            }
                        }
                    })
                    .unwrap();
                    places.clear();
                }
            }
            // What nobody announces is nobody's but the program's, and stays.
            lock(root).store(tag, Ordering::Relaxed);
            for (at, index) in places {
                model[at][index] = tag;
            }
            if random.below(3) == 0 {
                given_back += fixture.give_back();
            }
            assert_eq!(lock(root).load(Ordering::Relaxed), tag);
            let verify = |root: &Root| {
                for (at, words) in model.iter().enumerate() {
                    assert!(piece(root, at) == words, "round {round}, piece {at}");
                }
                for (slot, value) in objects.iter().enumerate() {
                    if let Some(value) = value {
                        assert_eq!(unsafe { *root.objects[slot] }, [*value; 9]);
                    }
                }
            };
            verify(root);
            if round % 100 == 99 {
                drop(pool);
                given_back_in_all += fixture.store().private_pages().1;
                fixture.reopen();
                verify(fixture.root());
            }
        }
        println!(
            "{domain:?}, {tracking:?}: {given_back_in_all} pages given back, {given_back} of them by hand"
        );
        assert!(given_back_in_all > 1000);
    }
}

#[test]
fn pages_that_differ_stay_in_memory_that_came_in_large_pages() {
    let Some(_alone) = alone() else { return };
    let fixture = Fixture::new(Domain::Dram, u64::MAX);
    let (pool, root) = (fixture.pool(), fixture.root());
    for at in 0..8 {
        make_piece(&pool, at, |index| index as u64);
    }
    // Nobody has announced these.
    for at in 2..4 {
        for index in (0..PIECE / 8).step_by(16 * 512) {
            piece(root, at)[index] = 77;
        }
    }
    piece(root, 6).fill(5);
    let given_back = fixture.give_back();
    let left = fixture.store().private_pages().0;
    assert!(given_back > 1000 && left >= 32, "{given_back} {left}");
    for at in 0..8 {
        for (index, word) in piece(root, at).iter().enumerate() {
            let expected = match at {
                2 | 3 if index % (16 * 512) == 0 => 77,
                6 => 5,
                _ => index as u64,
            };
            assert_eq!(*word, expected, "piece {at}, word {index}");
        }
    }
}
