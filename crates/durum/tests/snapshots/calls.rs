//! What a caller of a snapshot is told, and what it may ask for.

use std::time::{Duration, Instant};

use durum::{
    Compression, Engine, Error, ExportOptions, ImportOptions, PoolOptions, SnapshotOptions, Store,
    StoreError, StoreOptions,
};

use crate::workers::Root;
use crate::{beside_others, is_same_as};

fn store(dir: &tempfile::TempDir, name: &str) -> Store {
    Store::create(dir.path().join(name), StoreOptions::new()).unwrap()
}

#[test]
fn pools_are_shown_together_with_the_pointers_between_them() {
    let _beside = beside_others();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store_ = store(&dir, "store");
    let [first, second] =
        ["first", "second"].map(|name| store_.create_pool(name, PoolOptions::new()).unwrap());
    let [from, to] = [&first, &second].map(|pool| pool.root::<*mut u8>().unwrap());
    first
        .transaction(|tx| unsafe { tx.set(from, to.cast()) })
        .unwrap();
    let place = dir.path().join("export");
    let alone = first.snapshot(&place, &SnapshotOptions::new()).unwrap_err();
    assert!(
        matches!(alone, Error::Store(StoreError::PointersLeave { .. })),
        "{alone}"
    );
    assert!(!place.exists());
    let both = SnapshotOptions::new().with(&second).with(&first);
    let report = first.snapshot(&place, &both).unwrap();
    assert_eq!(report.pools, ["first", "second"]);
    let again = first.snapshot(&place, &both).unwrap_err();
    assert!(
        matches!(again, Error::Store(StoreError::ExportExists { .. })),
        "{again}"
    );
    let other = store(&dir, "other");
    other.import(&place, &ImportOptions::default()).unwrap();
    let [first, second] =
        ["first", "second"].map(|name| other.open_pool(name, PoolOptions::new()).unwrap());
    let [from, to] = [&first, &second].map(|pool| pool.root::<*mut u8>().unwrap());
    assert_eq!(unsafe { from.read() }, to.cast());
}

#[test]
fn an_archive_of_a_snapshot_is_one_of_an_export() {
    let _beside = beside_others();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store_ = store(&dir, "store");
    let pool = store_.create_pool("pool", PoolOptions::new()).unwrap();
    let root = pool.root::<Root>().unwrap();
    pool.transaction(|tx| unsafe { tx.set(&raw mut (*root).counts[1], 7) })
        .unwrap();
    let compressed = SnapshotOptions::new().archive(Compression::Gzip);
    pool.snapshot(dir.path().join("shown"), &compressed)
        .unwrap();
    let other = store(&dir, "other");
    other
        .import(dir.path().join("shown"), &ImportOptions::default())
        .unwrap();
    is_same_as(&pool, &other.open_pool("pool", PoolOptions::new()).unwrap());
    drop(pool);
    let options = ExportOptions {
        archive: Some(Compression::Gzip),
        ..ExportOptions::default()
    };
    store_
        .export_pool("pool", dir.path().join("exported"), &options)
        .unwrap();
    let [shown, exported] =
        ["shown", "exported"].map(|name| std::fs::read(dir.path().join(name)).unwrap());
    assert_eq!(shown, exported);
}

#[test]
fn who_would_wait_for_itself_is_refused() {
    let _beside = beside_others();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let (store_, other) = (store(&dir, "store"), store(&dir, "other"));
    let pool = store_.create_pool("pool", PoolOptions::new()).unwrap();
    let foreign = other.create_pool("pool", PoolOptions::new()).unwrap();
    let place = dir.path().join("export");
    let refused = |result: Result<_, Error>| match result {
        Err(Error::SnapshotRefused { reason, .. }) => reason,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("a snapshot was made"),
    };
    let inside = pool.transaction(|_| {
        let options = SnapshotOptions::new();
        Ok::<_, Error>(refused(pool.snapshot(&place, &options)))
    });
    assert!(inside.unwrap().contains("this thread"));
    let with_foreign = SnapshotOptions::new().with(&foreign);
    assert!(refused(pool.snapshot(&place, &with_foreign)).contains("another store"));
    assert!(!place.exists());
    // A transaction of another thread's: nobody waits for ever, and that one goes on.
    let (begun, may_end) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let wait = |_: &durum::Tx| {
                begun.wait();
                may_end.wait();
                Ok::<_, Error>(())
            };
            pool.transaction(wait).unwrap();
        });
        begun.wait();
        let soon = SnapshotOptions::new().wait(Duration::from_millis(20));
        let began = Instant::now();
        let error = pool.snapshot(&place, &soon).unwrap_err();
        assert!(matches!(error, Error::SnapshotWaits { .. }), "{error}");
        assert!(began.elapsed() < Duration::from_secs(5));
        may_end.wait();
    });
    pool.snapshot(&place, &SnapshotOptions::new()).unwrap();
}

/// What sections change they do not announce.
#[test]
fn a_pool_that_sections_change_is_not_shown() {
    let _beside = beside_others();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store_ = store(&dir, "store");
    let pool = store_.create_pool("pool", PoolOptions::new().engine(Engine::Hybrid));
    let pool = pool.unwrap();
    pool.snapshot(dir.path().join("before"), &SnapshotOptions::new())
        .unwrap();
    pool.admit_sections();
    let refused = pool.snapshot(dir.path().join("export"), &SnapshotOptions::new());
    assert!(
        matches!(refused, Err(Error::SnapshotRefused { reason, .. }) if reason.contains("half done"))
    );
    drop(pool);
    store_
        .export_pool("pool", dir.path().join("export"), &ExportOptions::default())
        .unwrap();
}

#[test]
fn a_pool_for_reading_only_is_exported_and_not_shown() {
    let _beside = beside_others();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store_ = store(&dir, "store");
    drop(
        store_
            .create_pool("pool", PoolOptions::new().engine(Engine::Hybrid))
            .unwrap(),
    );
    let pool = store_
        .open_pool("pool", PoolOptions::new().read_only(true))
        .unwrap();
    let error = pool.snapshot(dir.path().join("export"), &SnapshotOptions::new());
    assert!(matches!(error, Err(Error::ReadOnly { .. })));
}

/// What is open for long, again and again, by two threads that do not wait for each other.
#[test]
fn a_moment_is_found_between_long_transactions() {
    let _beside = beside_others();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = store(&dir, "store");
    let pool = store.create_pool("pool", PoolOptions::new()).unwrap();
    let root = pool.root::<Root>().unwrap().expose_provenance();
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (pool, is_over) = (&pool, &is_over);
            scope.spawn(move || {
                let root = std::ptr::with_exposed_provenance_mut::<Root>(root);
                while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                    pool.transaction(|tx| unsafe {
                        tx.set(&raw mut (*root).counts[thread], 1)?;
                        std::thread::sleep(Duration::from_millis(40));
                        Ok::<_, Error>(())
                    })
                    .unwrap();
                }
            });
        }
        let made = pool.snapshot(dir.path().join("shown"), &SnapshotOptions::new());
        is_over.store(true, std::sync::atomic::Ordering::Relaxed);
        made.unwrap();
    });
}

/// An archive has the sums of all puddles before the puddles, and is right where a program stores without telling.
#[test]
fn an_archive_is_made_of_what_was_read_once() {
    let _beside = beside_others();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store_ = store(&dir, "store");
    let options = PoolOptions::new().engine(Engine::Hybrid);
    let pool = store_.create_pool("pool", options).unwrap();
    let word = pool.root::<u64>().unwrap();
    let (changed, address) = (pool.clone(), word.expose_provenance());
    let archive = SnapshotOptions::new()
        .archive(Compression::None)
        .progress(std::sync::Arc::new(move |_| unsafe {
            let word = std::ptr::with_exposed_provenance_mut::<u64>(address);
            word.write_volatile(word.read_volatile() + 1);
            changed.persist(word.cast::<u8>(), 8).unwrap();
        }));
    pool.snapshot(dir.path().join("shown"), &archive).unwrap();
    assert!(unsafe { word.read() } > 1, "it was told of progress");
    let other = store(&dir, "other");
    other
        .import(dir.path().join("shown"), &ImportOptions::default())
        .unwrap();
    let copy = other.open_pool("pool", PoolOptions::new()).unwrap();
    assert!(unsafe { copy.root::<u64>().unwrap().read() } > 0);
}

#[test]
fn nothing_is_left_behind_where_progress_panics() {
    let _beside = beside_others();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = store(&dir, "store");
    let pool = store.create_pool("pool", PoolOptions::new()).unwrap();
    let root = pool.root::<Root>().unwrap();
    let panics = SnapshotOptions::new().progress(std::sync::Arc::new(|_| panic!("it was told")));
    for options in [panics.clone(), panics.archive(Compression::Gzip)] {
        let place = dir.path().join("shown");
        let made = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            pool.snapshot(&place, &options)
        }));
        assert!(made.is_err());
        let left = std::fs::read_dir(dir.path()).unwrap();
        assert_eq!(left.count(), 1, "the store alone");
    }
    pool.transaction(|tx| unsafe { tx.set(&raw mut (*root).counts[0], 7) })
        .unwrap();
    pool.snapshot(dir.path().join("shown"), &SnapshotOptions::new())
        .unwrap();
}
