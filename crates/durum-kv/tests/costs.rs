//! Fences, syncs and bytes of each operation, counted.
//!
//! One test: counters are those of the thread, but home updates of other tests' stores would make numbers vary.

mod support;

use durum::{Domain, Stats, thread_counters};
use durum_kv::{Db, Durability, Engine, StoreOptions, WriteBatch, WriteOptions};

/// What `body` costs this thread.
fn cost(body: impl FnOnce()) -> Stats {
    let before = thread_counters();
    body();
    thread_counters() - before
}

fn key(number: u64) -> [u8; 16] {
    let digits = format!("{number:016}");
    digits.as_bytes().try_into().unwrap()
}

const VALUE: [u8; 100] = [7; 100];
/// Of the same length, and no word is the same.
const OTHER: [u8; 100] = [8; 100];

#[test]
fn operations_cost_what_is_documented() {
    let (_dir, path) = support::place();
    let db = Db::open(&path, support::options()).unwrap();
    const COUNT: u64 = 20_000;
    let show = |name: &str, count: u64, cost: &Stats| {
        let per = |number: u64| number as f64 / count as f64;
        println!(
            "{name:<22} {:>7.3} fences {:>7.2} lines {:>8.1} bytes logged {:>8.1} bytes written",
            per(cost.fences),
            per(cost.write_backs + cost.streamed_lines),
            per(cost.bytes_logged),
            per(cost.bytes_written),
        );
    };
    // One fence each. Now and then a pool grows, which takes some more, and syncs.
    let one_each = |name: &str, cost: Stats| {
        show(name, COUNT, &cost);
        assert!(
            cost.fences >= COUNT && cost.fences < COUNT + COUNT / 100,
            "{name}: {cost:?}"
        );
    };
    let fill = cost(|| (0..COUNT).for_each(|number| db.put(&key(number), &VALUE).unwrap()));
    one_each("fillseq", fill);
    // The record's 148 bytes, the slot's word and the bit of the allocator, and what frames them.
    assert!(fill.bytes_logged < COUNT * 300, "{fill:?}");
    // Scattered by a multiplication that reaches each key once.
    let scattered = |number: u64| key(number * 7919 % COUNT);
    let overwrite =
        cost(|| (0..COUNT).for_each(|number| db.put(&scattered(number), &OTHER).unwrap()));
    one_each("overwrite", overwrite);
    // The record itself changes, and nothing else.
    assert!(overwrite.bytes_logged < COUNT * 200, "{overwrite:?}");
    let longer = [&VALUE[..], &[7; 4]].concat();
    let moved = cost(|| (0..COUNT).for_each(|number| db.put(&scattered(number), &longer).unwrap()));
    one_each("overwrite, longer", moved);
    // Back to the length that the buffered writes have.
    (0..COUNT).for_each(|number| db.put(&key(number), &OTHER).unwrap());
    let reads = cost(|| {
        for number in 0..COUNT {
            assert!(db.get(&scattered(number)).unwrap().is_some());
        }
        assert_eq!(support::contents(&db).len(), COUNT as usize);
    });
    show("reads", COUNT, &reads);
    assert_eq!(
        (reads.fences, reads.write_backs, reads.bytes_written),
        (0, 0, 0)
    );
    let buffered = WriteOptions::new().durability(Durability::Buffered);
    let unsynced = cost(|| {
        for number in 0..COUNT {
            db.put_with(&scattered(number), &VALUE, &buffered).unwrap();
        }
    });
    show("overwrite, buffered", COUNT, &unsynced);
    assert!(unsynced.fences < COUNT / 10, "{unsynced:?}");
    db.sync().unwrap();
    let delete = cost(|| (0..COUNT).for_each(|number| db.delete(&scattered(number)).unwrap()));
    one_each("delete", delete);
    let missing = cost(|| db.delete(b"missing").unwrap());
    assert_eq!(missing.fences, 0);
    // A batch costs what one put does.
    let mut batch = WriteBatch::new();
    (0..1000).for_each(|number| batch.put(&key(number), &VALUE));
    let batch = cost(|| db.write(&batch).unwrap());
    show("batch of 1000", 1000, &batch);
    assert!(batch.fences <= 2, "{batch:?}");
}

/// Pairs of one call share fences, and syncs; writes in flight leave theirs to the next one.
#[test]
fn rows_and_writes_in_flight_cost_what_is_documented() {
    const COUNT: u64 = 3_200;
    let pairs: Vec<_> = (0..COUNT)
        .map(|number| (key(number * 7919 % COUNT), VALUE))
        .collect();
    let keys: Vec<_> = pairs.iter().map(|(key, _)| *key).collect();
    let (_dir, path) = support::place();
    let db = Db::open(&path, support::options()).unwrap();
    let others: Vec<_> = keys.iter().map(|key| (*key, OTHER)).collect();
    for (round, pairs) in [("new", &pairs), ("known", &others)] {
        let row = cost(|| db.multi_put(pairs).unwrap());
        println!("{round} keys, {COUNT} pairs: {row:?}");
        // 32 share one; a pool that grows takes some more.
        assert!(
            (COUNT / 32..COUNT / 32 + 12).contains(&row.fences),
            "{row:?}"
        );
    }
    let read = cost(|| assert!(db.multi_get(&keys).unwrap().iter().all(Option::is_some)));
    assert_eq!(
        (read.fences, read.write_backs, read.bytes_written),
        (0, 0, 0)
    );
    // The first one has nothing to wait for, each of the others waits for the one before.
    db.put(&key(0), &VALUE).unwrap();
    let mut last = None;
    let begun = cost(|| {
        for number in 0..100 {
            last = Some(db.put_begin(&key(number), &VALUE).unwrap());
        }
    });
    println!("100 in flight: {begun:?}");
    assert_eq!(begun.fences, 99, "{begun:?}");
    assert_eq!(cost(|| last.take().unwrap().wait().unwrap()).fences, 1);
    assert_eq!(
        cost(|| drop(db.put_begin(&key(0), &VALUE).unwrap())).fences,
        0
    );
    assert_eq!(cost(|| db.sync().unwrap()).fences, 1);
    assert_eq!(cost(|| drop(db.delete_begin(&key(1)).unwrap())).fences, 0);
    assert_eq!(cost(|| db.put(&key(2), &VALUE).unwrap()).fences, 2);
    let mut batch = WriteBatch::new();
    batch.put(&key(3), b"3");
    batch.put(&key(4), b"4");
    let mut begun = None;
    assert_eq!(
        cost(|| begun = Some(db.write_begin(&batch).unwrap())).fences,
        0
    );
    assert_eq!(cost(|| begun.take().unwrap().wait().unwrap()).fences, 1);
    // What changes nothing, because of what is in flight or not, is durable with that.
    drop(db.delete_begin(&key(3)).unwrap());
    assert_eq!(cost(|| db.delete(&key(3)).unwrap()).fences, 1);
    assert_eq!(cost(|| db.delete(&key(3)).unwrap()).fences, 0);
    drop(db.delete_begin(&key(4)).unwrap());
    let again = db.delete_begin(&key(4)).unwrap();
    assert_eq!(cost(|| again.wait().unwrap()).fences, 1);
    drop(db.put_begin(&key(4), b"4").unwrap());
    assert_eq!(
        cost(|| db.write(&WriteBatch::new()).unwrap()).fences,
        1,
        "an empty batch"
    );
    drop(db.delete_begin(&key(4)).unwrap());
    std::thread::scope(|scope| {
        let other = scope.spawn(|| cost(|| db.delete(&key(4)).unwrap()).fences);
        assert!(other.join().unwrap() > 0, "what another thread has deleted");
    });

    let (_dir, path) = support::place();
    let store = StoreOptions::new().domain(Domain::File);
    let db = Db::open(&path, support::options().store(store)).unwrap();
    db.multi_put(&pairs).unwrap();
    let row = cost(|| db.multi_put(&pairs).unwrap());
    assert!((1..4).contains(&row.syncs), "{row:?}");
    let mut begun = None;
    let syncs = cost(|| begun = Some(db.put_begin(&key(0), &VALUE).unwrap())).syncs;
    assert_eq!(syncs, 1, "it is durable at once");
    assert_eq!(cost(|| begun.take().unwrap().wait().unwrap()).syncs, 0);
}

/// What a large batch makes is written once, to its places: records, and leaves, each of which is too small to be worth
/// that alone.
#[test]
fn a_large_batch_is_hardly_logged() {
    const COUNT: u64 = 40_000;
    let (_dir, path) = support::place();
    let db = Db::open(&path, support::options()).unwrap();
    let mut batch = WriteBatch::new();
    (0..COUNT).for_each(|number| batch.put(&key(number), &VALUE));
    let cost = cost(|| db.write(&batch).unwrap());
    println!("{cost:?}");
    // A leaf has 512 bytes for 59 keys.
    assert!(cost.bytes_logged < COUNT * 4, "{cost:?}");
    assert_eq!(support::contents(&db).len(), COUNT as usize);
}

#[test]
fn a_put_on_a_file_system_takes_one_sync() {
    let (_dir, path) = support::place();
    let store = StoreOptions::new().domain(Domain::File);
    let db = Db::open(&path, support::options().store(store)).unwrap();
    (0..300).for_each(|number| db.put(&key(number), &VALUE).unwrap());
    let syncs = cost(|| (0..100).for_each(|number| db.put(&key(number * 3), &VALUE).unwrap()));
    // The checkpoint has a thread of its own.
    assert!((100..104).contains(&syncs.syncs), "{syncs:?}");
}

/// What the database keeps decides of writes that say nothing, in whichever program; those that say `Durable` are
/// durable.
#[test]
fn a_database_that_is_set_so_buffers_writes_that_say_nothing() {
    let (_dir, path) = support::place();
    let store = StoreOptions::new().domain(Domain::File);
    let open = || Db::open(&path, support::options().store(store.clone())).unwrap();
    let syncs = |db: &Db, options: &WriteOptions| {
        let put = |number| db.put_with(&key(number), &VALUE, options).unwrap();
        cost(|| (0..100).for_each(put)).syncs
    };
    let durable = WriteOptions::new().durability(Durability::Durable);
    let db = open();
    assert_eq!(db.durability(), Durability::Durable);
    assert!(syncs(&db, &WriteOptions::new()) >= 100);
    db.set_durability(Durability::Buffered).unwrap();
    assert!(syncs(&db, &WriteOptions::new()) < 20);
    drop(db);
    let db = open();
    assert_eq!(db.durability(), Durability::Buffered);
    let property = db.property("durum.durability").unwrap();
    assert_eq!(property.as_deref(), Some("buffered"));
    let stats = db.property("leveldb.stats").unwrap().unwrap();
    assert!(stats.contains("durability       buffered"), "{stats}");
    assert!(syncs(&db, &WriteOptions::new()) < 20);
    assert!(syncs(&db, &durable) >= 100);
    let mut transaction = db.transaction().unwrap();
    transaction.put(b"a", b"1");
    assert_eq!(cost(|| transaction.commit().unwrap()).syncs, 0);
    db.set_durability(Durability::Durable).unwrap();
    assert!(syncs(&db, &WriteOptions::new()) >= 100);
    drop(db);
    assert_eq!(open().durability(), Durability::Durable);
}

#[test]
fn hybrid_takes_more_fences() {
    let (_dir, path) = support::place();
    let db = Db::open(&path, support::options().engine(Engine::Hybrid)).unwrap();
    (0..300).for_each(|number| db.put(&key(number), &VALUE).unwrap());
    let fences = cost(|| (0..100).for_each(|number| db.put(&key(number * 3), &VALUE).unwrap()));
    assert!((300..=450).contains(&fences.fences), "{fences:?}");
}

/// Deletes make nothing: neither records that say so, nor work that is left for later.
#[test]
fn a_batch_of_deletes_costs_its_leaves() {
    for engine in support::ENGINES {
        let per_key = [2_000, 40_000].map(|count: u64| {
            let (_dir, path) = support::place();
            let db = Db::open(&path, support::options().engine(engine)).unwrap();
            for round in 0..2 {
                // The second time there are older versions, which nobody needs either.
                let mut batch = WriteBatch::new();
                (0..count).for_each(|number| batch.put(&key(number), &[round; 50]));
                db.write(&batch).unwrap();
            }
            let property = |name: &str| db.property(name).unwrap().unwrap();
            let pool_bytes = property("durum.pool-bytes");
            let mut batch = WriteBatch::new();
            (0..count).for_each(|number| batch.delete(&key(number * 7919 % count)));
            let cost = cost(|| db.write(&batch).unwrap());
            println!("{engine:?}, {count}: {cost:?}");
            assert_eq!(property("durum.keys"), "0");
            assert_eq!(property("durum.leaves"), "1", "all are merged");
            assert_eq!(property("durum.pool-bytes"), pool_bytes, "nothing grows");
            (cost.bytes_logged + cost.bytes_written) as f64 / count as f64
        });
        // Two versions of a key lie in two slabs, and its slot in a line of its leaf.
        println!("{engine:?}: {per_key:.1?} bytes");
        assert!(per_key[1] < per_key[0] * 1.5, "{engine:?}: {per_key:?}");
    }
}
