//! Writes and syncs that fail.

use durum::{Announce, Domain, Engine, Error, Pool, PoolOptions, Store, StoreOptions};
use durum_persist::inject::{self, Operation};

use crate::support::pool_options;
use crate::{Root, increment, open, puddle_file, support};

#[test]
fn a_failed_sync_poisons_the_pool_until_it_is_opened_again() {
    let syncs_of_a_commit = match support::engine() {
        durum::Engine::Hybrid => 3,
        durum::Engine::Twin => 2,
        _ => 1,
    };
    for syncs in 0..syncs_of_a_commit {
        let dir = tempfile::tempdir().unwrap();
        let options = StoreOptions::new().domain(Domain::File);
        let (store, pool, root) = open(dir.path(), options.clone(), pool_options());
        increment(&pool, root).unwrap();
        increment(&pool, root).unwrap();
        let fault = inject::fail_after(Operation::Sync, syncs, dir.path());
        let error = increment(&pool, root).unwrap_err();
        assert!(error.to_string().contains("sync"), "{error}");
        drop(fault);
        let error = increment(&pool, root).unwrap_err();
        assert!(matches!(error, Error::Poisoned { .. }), "{error}");
        drop(pool);
        drop(store);
        let (_store, pool, root) = open(dir.path(), options, pool_options());
        assert!(
            root.count == 2 || root.count == 3,
            "{} of 2 or 3",
            root.count
        );
        increment(&pool, root).unwrap();
    }
}

/// Changes two places, pages apart, in one transaction.
fn change_both(pool: &Pool, root: &mut Root) -> Result<(), Error> {
    pool.transaction(|tx| {
        let last = &raw mut root.blocks[511];
        unsafe {
            tx.add(&raw const root.count)?;
            root.count += 1;
            tx.add(last)?;
            *last = std::ptr::without_provenance_mut(root.count as usize);
        }
        Ok(())
    })
}

#[test]
fn after_a_failed_write_or_sync_the_next_opener_finds_all_of_the_transaction_or_nothing() {
    for operation in [Operation::Write, Operation::Sync] {
        for successes in 0..5 {
            let dir = tempfile::tempdir().unwrap();
            let options = StoreOptions::new().domain(Domain::File);
            let (store, pool, root) = open(dir.path(), options.clone(), pool_options());
            change_both(&pool, root).unwrap();
            let fault = inject::fail_after(operation, successes, dir.path());
            let result = change_both(&pool, root);
            drop(fault);
            if let Err(error) = &result {
                assert!(matches!(error, Error::Poisoned { .. }), "{error}");
                let again = change_both(&pool, root).unwrap_err();
                assert!(matches!(again, Error::Poisoned { .. }), "{again}");
            }
            drop(pool);
            drop(store);
            let (store, _pool, root) = open(dir.path(), options, pool_options());
            assert_eq!(store.recovery().unwrap().was_clean, result.is_ok());
            assert_eq!(
                root.blocks[511].addr() as u64,
                root.count,
                "{operation:?} {successes}"
            );
            assert!(root.count == 2 || result.is_err() && root.count == 1);
        }
    }
}

#[repr(C)]
struct Wide {
    words: [u64; 600_000],
}
durum::describe!(Wide as "wide" { words });

/// The crash: home blocks were written and not synced, so they may be lost, and only the records have them. Nothing may
/// say that these are home.
#[test]
fn what_a_failed_sync_left_unknown_is_replayed() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let options = StoreOptions::new()
        .domain(Domain::File)
        .log_max(2 << 20)
        .checkpoint_thread(false);
    let pool_options = PoolOptions::new()
        .engine(Engine::Shadow)
        .root_puddle_size(8 << 20);
    let store = Store::create(dir.path().join("store"), options.clone()).unwrap();
    let pool = store.create_pool("pool", pool_options.clone()).unwrap();
    pool.root::<Wide>().unwrap();
    drop(pool);
    // New puddles are memory; from now on it is mapped from its file.
    let pool = store.open_pool("pool", pool_options).unwrap();
    let words = pool.root::<Wide>().unwrap().cast::<u64>();
    // It is larger than what is left of the log: committing it brings records home, or tries to.
    let open = unsafe { pool.begin() }.unwrap();
    unsafe { open.add_bytes(words.cast(), 4_640_000, Announce::Backup) }.unwrap();
    for at in 0..580_000 {
        unsafe { words.add(at).write(77) };
    }
    let path = puddle_file(dir.path(), words.addr());
    let fault = inject::fail_after(Operation::Sync, 0, &path);
    let place = unsafe { words.add(585_000) }.expose_provenance();
    let committed = std::thread::scope(|scope| {
        let commits = || {
            let place = std::ptr::with_exposed_provenance_mut::<u64>(place);
            let commit = |round: &u64| {
                let change = |tx: &durum::Tx| unsafe {
                    tx.add_bytes(place.cast(), 100_000, Announce::Backup)?;
                    for at in 0..12_500 {
                        place.add(at).write(*round);
                    }
                    Ok::<_, Error>(())
                };
                pool.transaction(change).is_ok()
            };
            (1..).take_while(commit).count() as u64
        };
        scope.spawn(commits).join().unwrap()
    });
    assert!(committed > 10, "{committed}");
    drop(fault);
    assert!(matches!(open.commit(), Err(Error::Poisoned { .. })));
    drop(pool);
    // It tells that not everything is home.
    assert!(matches!(store.close(), Err(Error::Poisoned { .. })));
    let store = Store::open(dir.path().join("store"), options).unwrap();
    assert!(store.recovery().unwrap().rolled_forward >= committed);
    let pool = store.open_pool("pool", PoolOptions::new()).unwrap();
    let words = pool.root::<Wide>().unwrap().cast::<u64>();
    assert!(unsafe { words.add(585_000).read() } >= committed);
}
