//! What a crash may tear, on the Shadow engine: how many fences it costs, that it is not logged, and what is left of it
//! after an abort. The crashes themselves are those of tests/crash/torn.rs.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

use durum::{Announce, Engine, Error, PoolOptions, Store, StoreOptions, Tx};

const LEN: usize = 1 << 20;

/// Fences, and bytes that are logged, while `work` runs.
fn costs(work: impl FnOnce()) -> (u64, u64) {
    let before = durum::thread_counters();
    work();
    let after = durum::thread_counters();
    (
        after.fences - before.fences,
        after.bytes_logged - before.bytes_logged,
    )
}

#[test]
fn what_may_be_torn_goes_home_with_one_fence_and_comes_from_there_after_an_abort() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    let options = PoolOptions::new().engine(Engine::Shadow);
    let pool = store.create_pool("pool", options).unwrap();
    let root = pool.root::<*mut u8>().unwrap();
    pool.transaction(|tx| unsafe {
        let object = tx.alloc_bytes(&pool, 0, LEN, 8)?;
        object.write_bytes(1, LEN);
        tx.set(root, object)
    })
    .unwrap();
    let object = unsafe { *root };
    let is_full_of = |byte| {
        unsafe { std::slice::from_raw_parts(object, LEN) }
            .iter()
            .all(|it| *it == byte)
    };
    let clobber = |tx: &Tx, byte| unsafe {
        tx.add_bytes(object, LEN, Announce::Clobber)?;
        object.write_bytes(byte, LEN);
        Ok::<_, Error>(())
    };
    let persist = |byte| unsafe {
        object.write_bytes(byte, LEN);
        pool.persist(object, LEN).unwrap();
    };

    // The first one brings home what was logged.
    persist(2);
    assert_eq!(costs(|| persist(3)), (1, 0));
    assert_eq!(
        costs(|| pool.transaction(|tx| clobber(tx, 4)).unwrap()),
        (1, 0)
    );

    let change = |tx: &Tx| unsafe {
        tx.add_bytes(object.add(5000), 3, Announce::Backup)?;
        object.add(5000).write_bytes(5, 3);
        Ok::<_, Error>(())
    };
    pool.transaction(change).unwrap();
    let aborted = pool.transaction(|tx| {
        clobber(tx, 6)?;
        tx.abort::<()>()
    });
    aborted.unwrap_err();
    let changed = unsafe { std::slice::from_raw_parts_mut(object.add(5000), 3) };
    assert_eq!(changed, [5; 3], "the record is not home yet");
    changed.fill(4);
    assert!(is_full_of(4));

    // A part that was announced before comes back as it was, also a word, which is kept in another way.
    for len in [3, 8] {
        unsafe { object.add(5000).write_bytes(7, len) };
        let aborted = pool.transaction(|tx| {
            unsafe {
                tx.add_bytes(object.add(5000), len, Announce::Backup)?;
                object.add(5000).write_bytes(5, len);
            }
            clobber(tx, 6)?;
            tx.abort::<()>()
        });
        aborted.unwrap_err();
        assert_eq!(
            unsafe { std::slice::from_raw_parts(object.add(5000), len) },
            vec![7; len]
        );
    }
}
