//! Objects without a type whose words are pointers, where the caller says so: `check`, `gc`, `dump` and `load` follow
//! those that are addresses of objects.

mod support;

use std::path::Path;

use durum::{PoolOptions, Store, StoreOptions};
use support::*;

const FOLLOW: &str = "--untyped-hold-pointers";
const SIZE: usize = 300;

/// A store with what `make_store` makes.
fn opened(path: &Path) -> Store {
    make_store(path);
    Store::open(path, StoreOptions::new()).unwrap()
}

/// Adds to what `make_store` makes: objects that only words of untyped ones lead to, and one that nothing leads to,
/// which leads to what was freed.
fn make_untyped(path: &Path) {
    let store = opened(path);
    let pool = store.open_pool("things", PoolOptions::new()).unwrap();
    let root = pool.root::<Root>().unwrap();
    // SAFETY: one thread uses the pool; what is stored to is fresh, or was added.
    let freed = pool.transaction(|tx| unsafe {
        let bytes = (*root).bytes;
        let node = tx.alloc::<Node>()?;
        node.write(Node {
            value: 7,
            next: std::ptr::null_mut(),
        });
        // Not in front of one that a word leads to: that could be the end of this one.
        let freed = tx.alloc::<Node>()?;
        let leaked = tx.alloc::<Node>()?;
        leaked.write(Node {
            value: 9,
            next: freed,
        });
        let small = tx.alloc_bytes(&pool, 0, 48, 8)?;
        small.write_bytes(0, 48);
        small.cast::<u64>().write(bytes as u64);
        // With a mark in bits that no pointer needs.
        small.cast::<u64>().add(1).write(small as u64 | 1);
        let nowhere = bytes as u64 + (1 << 20);
        let words = [
            node as u64,
            node as u64 + 8,
            bytes as u64 + SIZE as u64,
            small as u64,
            12345,
            nowhere,
        ];
        for (at, word) in words.into_iter().enumerate() {
            tx.set(bytes.cast::<u64>().add(at), word)?;
        }
        Ok::<_, durum::Error>(freed)
    });
    let freed = freed.unwrap();
    // SAFETY: only what nobody reads leads there.
    let gone = pool.transaction(|tx| unsafe { tx.free(freed) });
    gone.unwrap();
}

/// What the words of the object without a type lead to, and that the others are what they were.
fn examine(path: &Path, pool: &str) {
    let store = Store::open(path, StoreOptions::new()).unwrap();
    let pool = store.open_pool(pool, PoolOptions::new()).unwrap();
    let root = pool.root::<Root>().unwrap();
    // SAFETY: the pool is open, and nobody writes it.
    unsafe {
        let bytes = (*root).bytes;
        let word = |at: usize| bytes.cast::<u64>().add(at).read_unaligned();
        let node = word(0) as *const Node;
        assert_eq!((*node).value, 7);
        assert_eq!(word(1), node as u64 + 8);
        assert_eq!(word(2), bytes as u64 + SIZE as u64);
        let small = word(3) as *const u64;
        assert_eq!(*small, bytes as u64);
        assert_eq!(*small.add(1), small as u64 | 1);
        assert_eq!(word(4), 12345);
        let rest = std::slice::from_raw_parts(bytes.add(48), SIZE - 48);
        assert!(rest.iter().all(|byte| *byte == 0xab));
    }
    drop(pool);
    store.close().unwrap();
}

#[test]
fn words_of_what_has_no_type_are_pointers_where_the_caller_says_so() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_untyped(&store);
    let before = contents(&store);

    // Nobody knows what leads to what, so what leads nowhere is damage.
    let unjudged = fails(&["check", text(&store)], 3, "1 damage");
    assert!(unjudged.out.contains(FOLLOW), "{}", unjudged.out);
    let checked = succeeds(&["check", text(&store), FOLLOW, "--json"]).json();
    assert_eq!(checked["pools"][0]["leaks"]["objects"], 1, "{checked:#}");
    let note = checked["findings"].to_string();
    assert!(
        note.contains("a leaked object of type node leads to"),
        "{note}"
    );
    fails(&["gc", text(&store), "--dry-run"], 3, "1 found");
    let would = succeeds(&["gc", text(&store), FOLLOW, "--dry-run"]);
    assert!(would.out.contains("would free 1 object"), "{}", would.out);
    assert_eq!(contents(&store), before, "nothing was written");

    succeeds(&["gc", text(&store), FOLLOW]);
    examine(&store, "things");
    let left = succeeds(&["gc", text(&store), FOLLOW, "--dry-run"]);
    assert!(left.out.contains("nothing to free"), "{}", left.out);
    let checked = succeeds(&["check", text(&store), FOLLOW, "--json"]).json();
    assert_eq!(checked["pools"][0]["leaks"]["objects"], 0, "{checked:#}");
}

/// A word that leads to an object may be the end of the one in front of it. That one is kept then; but it may as well
/// be a leak, which may lead nowhere.
#[test]
fn what_lies_in_front_of_an_object_in_use_may_be_a_leak() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = opened(&path);
    let pool = store.open_pool("things", PoolOptions::new()).unwrap();
    let root = pool.root::<Root>().unwrap();
    let node = |next| Node { value: 7, next };
    // SAFETY: one thread uses the pool; what is stored to is fresh, or was added.
    let freed = pool.transaction(|tx| unsafe {
        let [freed, leaked, used] = [tx.alloc::<Node>()?, tx.alloc()?, tx.alloc()?];
        assert_eq!(leaked.add(1), used);
        leaked.write(node(freed));
        used.write(node(std::ptr::null_mut()));
        tx.set((*root).bytes.cast::<u64>(), used as u64)?;
        Ok::<_, durum::Error>(freed)
    });
    // SAFETY: only what nobody reads leads there.
    let gone = pool.transaction(|tx| unsafe { tx.free(freed.unwrap()) });
    gone.unwrap();
    drop(pool);
    store.close().unwrap();
    let checked = succeeds(&["check", text(&path), FOLLOW, "--json"]).json();
    assert_eq!(checked["pools"][0]["leaks"]["objects"], 0, "{checked:#}");
    let note = checked["findings"].to_string();
    assert!(
        note.contains("a leaked object of type node leads to"),
        "{note}"
    );
    let collected = succeeds(&["gc", text(&path), FOLLOW]);
    assert!(
        collected.out.contains("nothing to free"),
        "{}",
        collected.out
    );
}

#[test]
fn a_dump_names_them_and_they_lead_to_the_same_on_each_engine() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_untyped(&store);
    succeeds(&["gc", text(&store), FOLLOW]);
    let dump = |store: &Path, pool: &str| succeeds(&["dump", text(store), pool, FOLLOW]);
    let run = dump(&store, "things");
    let note = "note: 1 pointer to no object of the dump (`--with` dumps pools together)\n";
    assert_eq!(run.err, note);
    let lines = run.out;
    let behind_head = |lines: &str| lines.split_once('\n').unwrap().1.to_owned();
    for engine in ["hybrid", "twin", "shadow"] {
        let copy = directory.path().join(engine);
        succeeds(&["init", text(&copy)]);
        let how = [text(&copy), "copy", "--engine", engine];
        let run = load(&how, lines.as_bytes());
        assert_eq!(run.code, 0, "{}{}", run.out, run.err);
        assert_eq!(behind_head(&dump(&copy, "copy").out), behind_head(&lines));
        let checked = succeeds(&["check", text(&copy), FOLLOW, "--json"]).json();
        assert_eq!(checked["pools"][0]["leaks"]["objects"], 0, "{checked:#}");
        examine(&copy, "copy");
    }
}

#[test]
fn lines_of_pointers_that_there_cannot_be_are_refused() {
    let directory = scratch();
    let store = directory.path().join("store");
    succeeds(&["init", text(&store)]);
    let head = r#"{"durum-dump":1,"pool":"words","engine":"shadow","space":["0x200000000000","0x10000000000"],"objects":1,"root":true}"#;
    let before = contents(&store);
    for (pointers, problem) in [
        ("[[9,1]]", "no pointer at 9"),
        ("[[0,1],[4,1]]", "no pointer at 4"),
        ("[[8,1],[8,1]]", "no pointer at 8"),
        ("[[8,1],[0,1]]", "no pointer at 0"),
        ("[[16,1]]", "no pointer at 16"),
        ("[[18446744073709551608,1]]", "no pointer at"),
        ("[[8,2]]", "no object 2"),
        ("[[8,[1,17]]]", "17 bytes into object 1, which has 16"),
        (r#"[[8,{"address":"0x5000"}]]"#, "among the bytes"),
        ("[8]", "byte"),
        ("null", "byte"),
    ] {
        let object = format!(
            r#"{{"object":1,"type":0,"bytes":16,"value":{{"bytes":"","pointers":{pointers}}}}}"#
        );
        let lines = format!("{head}\n{object}\n{{\"end\":1}}\n");
        let run = load(&[text(&store)], lines.as_bytes());
        assert_eq!(run.code, 2, "{pointers}: {}", run.err);
        assert!(run.err.contains(problem), "{pointers}: {}", run.err);
        assert_eq!(contents(&store), before);
    }
    let object =
        r#"{"object":1,"type":0,"bytes":16,"value":{"bytes":"ab","pointers":[[8,[1,16]]]}}"#;
    let lines = format!("{head}\n{object}\n{{\"end\":1}}\n");
    let run = load(&[text(&store)], lines.as_bytes());
    assert_eq!(run.code, 0, "{}", run.err);
}

/// A pool beside "things" which shares nothing but the store.
fn second(store: &Store) -> durum::Pool {
    store.create_pool("others", PoolOptions::new()).unwrap()
}

/// So many nodes that nothing leads to, each of which leads to one that is gone.
fn dangling(pool: &durum::Pool, count: usize) -> Vec<*mut Node> {
    let made = pool.transaction(|tx| {
        let freed = tx.alloc::<Node>()?;
        let all = (0..count).map(|_| {
            let node = tx.alloc::<Node>()?;
            // SAFETY: fresh.
            unsafe {
                node.write(Node {
                    value: 9,
                    next: freed,
                });
            }
            Ok(node)
        });
        Ok::<_, durum::Error>((freed, all.collect::<Result<Vec<_>, durum::Error>>()?))
    });
    let (freed, all) = made.unwrap();
    // SAFETY: only what nobody reads leads there.
    pool.transaction(|tx| unsafe { tx.free(freed) }).unwrap();
    all
}

#[test]
fn what_an_object_without_a_type_of_another_pool_may_lead_to_is_no_leak() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = opened(&path);
    let things = store.open_pool("things", PoolOptions::new()).unwrap();
    let others = second(&store);
    others.root::<Node>().unwrap();
    let bytes = {
        let root = things.root::<Root>().unwrap();
        // SAFETY: nobody writes.
        unsafe { (*root).bytes.cast::<u64>() }
    };
    let address = dangling(&others, 1)[0] as u64;
    // SAFETY: one thread uses the pool.
    things
        .transaction(|tx| unsafe { tx.set(bytes, address) })
        .unwrap();
    drop((things, others));
    store.close().unwrap();
    let checked = fails(&["check", text(&path)], 3, "1 damage");
    assert!(!checked.out.contains("leaked object"), "{}", checked.out);
    fails(&["check", text(&path), FOLLOW], 3, "1 damage");
}

#[test]
fn damage_is_told_of_where_leaks_lead_nowhere_by_the_hundred() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = opened(&path);
    let pool = second(&store);
    let root = pool.root::<Node>().unwrap();
    let last = *dangling(&pool, 200).iter().max().unwrap();
    // SAFETY: one thread uses the pool.
    pool.transaction(|tx| unsafe { tx.set(&raw mut (*root).next, last) })
        .unwrap();
    drop(pool);
    store.close().unwrap();
    let checked = fails(&["check", text(&path), FOLLOW], 3, "damage");
    assert!(
        checked.out.contains("of an object of type node leads to"),
        "{}",
        checked.out
    );
}

#[test]
fn a_dump_says_so_where_words_lead_to_a_pool_that_is_not_dumped() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = opened(&path);
    let things = store.open_pool("things", PoolOptions::new()).unwrap();
    let others = second(&store);
    let other = others.root::<Node>().unwrap();
    let root = things.root::<Root>().unwrap();
    // SAFETY: one thread uses the pool.
    things
        .transaction(|tx| unsafe { tx.set((*root).bytes.cast::<u64>(), other as u64) })
        .unwrap();
    drop((things, others));
    store.close().unwrap();
    let run = succeeds(&["dump", text(&path), "things", FOLLOW]);
    assert!(run.err.contains("1 pointer to no object"), "{}", run.err);
    let run = succeeds(&["dump", text(&path), "things", "--with", "others", FOLLOW]);
    assert_eq!(run.err, "");
}

#[test]
fn pointers_of_packed_structs_are_words_too() {
    let directory = scratch();
    let path = directory.path().join("store");
    let store = opened(&path);
    let pool = store.open_pool("things", PoolOptions::new()).unwrap();
    let root = pool.root::<Root>().unwrap();
    // SAFETY: one thread uses the pool; what is stored to is fresh, or was added.
    pool.transaction(|tx| unsafe {
        let node = tx.alloc::<Node>()?;
        node.write(Node {
            value: 7,
            next: std::ptr::null_mut(),
        });
        let place = (*root).bytes.add(13);
        tx.set_bytes(place, (node as u64).to_le_bytes().as_ptr(), 8)?;
        Ok::<_, durum::Error>(())
    })
    .unwrap();
    drop(pool);
    store.close().unwrap();
    let would = succeeds(&["gc", text(&path), FOLLOW, "--dry-run"]);
    assert!(would.out.contains("nothing to free"), "{}", would.out);
    let lines = succeeds(&["dump", text(&path), "things", FOLLOW]).out;
    let copy = directory.path().join("copy");
    succeeds(&["init", text(&copy)]);
    let run = load(&[text(&copy), "things"], lines.as_bytes());
    assert_eq!(run.code, 0, "{}", run.err);
    let store = Store::open(&copy, StoreOptions::new()).unwrap();
    let pool = store.open_pool("things", PoolOptions::new()).unwrap();
    let root = pool.root::<Root>().unwrap();
    // SAFETY: nobody writes.
    let word = unsafe { (*root).bytes.add(13).cast::<u64>().read_unaligned() };
    // SAFETY: the pool is open.
    assert_eq!(unsafe { (*(word as *const Node)).value }, 7);
}

/// What was loaded before lies where the next one would be placed.
#[test]
fn a_dump_is_loaded_again_beside_what_it_has_become() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_untyped(&store);
    succeeds(&["gc", text(&store), FOLLOW]);
    let lines = succeeds(&["dump", text(&store), "things", FOLLOW]).out;
    let copy = directory.path().join("copy");
    succeeds(&["init", text(&copy)]);
    for pool in ["first", "second", "third"] {
        // That nothing else is a pointer does not mean that these are none.
        let how = [text(&copy), pool, "--untyped-hold-no-pointers"];
        let run = load(&how, lines.as_bytes());
        assert_eq!(run.code, 0, "{}", run.err);
    }
    for pool in ["first", "second", "third"] {
        examine(&copy, pool);
    }
}

/// Words in several puddles of several pools, of which each leads to an object of another.
#[test]
fn words_lead_to_the_same_in_many_puddles_of_pools_that_are_dumped_together() {
    const EACH: usize = 3000;
    let directory = scratch();
    let path = directory.path().join("store");
    let store = Store::create(&path, StoreOptions::new()).unwrap();
    let pools = ["first", "second"].map(|name| {
        let pool = store.create_pool(name, PoolOptions::new()).unwrap();
        // SAFETY: fresh.
        let all = pool.transaction(|tx| unsafe {
            let all = (0..EACH).map(|_| tx.alloc_bytes(&pool, 0, 1000, 8));
            let all = all.collect::<Result<Vec<_>, _>>()?;
            all.iter().for_each(|it| it.write_bytes(0, 1000));
            Ok::<_, durum::Error>(all)
        });
        let all: Vec<*mut u64> = all.unwrap().into_iter().map(|it| it.cast()).collect();
        let root = pool.root::<Node>().unwrap();
        // SAFETY: one thread uses the pool.
        pool.transaction(|tx| unsafe { tx.set(&raw mut (*root).next, all[0].cast()) })
            .unwrap();
        (pool, all)
    });
    for (at, (pool, all)) in pools.iter().enumerate() {
        let others = &pools[1 - at].1;
        // SAFETY: one thread uses the pools.
        pool.transaction(|tx| unsafe {
            for (index, it) in all.iter().enumerate() {
                tx.set(it.add(3), all[(index + 1) % EACH] as u64)?;
                tx.set(it.add(124), others[EACH - 1 - index] as u64 + 1000)?;
                tx.set(it.add(60), (at * EACH + index) as u64)?;
            }
            Ok::<_, durum::Error>(())
        })
        .unwrap();
    }
    drop(pools);
    store.close().unwrap();
    let dump = |store: &Path| succeeds(&["dump", text(store), "first", "--with", "second", FOLLOW]);
    let lines = dump(&path).out;
    for engine in ["hybrid", "twin", "shadow"] {
        let copy = directory.path().join(engine);
        succeeds(&["init", text(&copy)]);
        // So that it lies elsewhere.
        make_store_in(&copy);
        let run = load(
            &[text(&copy), "first", "--engine", engine],
            lines.as_bytes(),
        );
        assert_eq!(run.code, 0, "{}{}", run.out, run.err);
        let behind = |lines: &str| lines.split_once('\n').unwrap().1.to_owned();
        assert!(behind(&dump(&copy).out) == behind(&lines));
        let store = Store::open(&copy, StoreOptions::new()).unwrap();
        let firsts = ["first", "second"].map(|name| {
            let pool = store.open_pool(name, PoolOptions::new()).unwrap();
            let root = pool.root::<Node>().unwrap();
            // SAFETY: nobody writes.
            (unsafe { (*root).next }.cast::<u64>(), pool)
        });
        // SAFETY: the pools are open, and nobody writes them.
        unsafe {
            for (at, (first, _)) in firsts.iter().enumerate() {
                let mut it = *first;
                for index in 0..EACH {
                    assert_eq!(it.add(60).read(), (at * EACH + index) as u64);
                    let other = (it.add(124).read() - 1000) as *const u64;
                    let number = (1 - at) * EACH + EACH - 1 - index;
                    assert_eq!(other.add(60).read(), number as u64);
                    it = it.add(3).read() as *mut u64;
                }
                assert_eq!(it, *first);
            }
        }
    }
}

fn make_store_in(path: &Path) {
    let store = Store::open(path, StoreOptions::new()).unwrap();
    let pool = store.create_pool("things", PoolOptions::new()).unwrap();
    fill(&pool);
}
