//! The low-level log: a hybrid transaction built by hand on it survives a crash at every point.
//!
//! The transaction moves 10 from one account to another: the first by undo, the second by redo. Whatever recovery
//! finds, the sum is 100.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

use std::path::Path;

use durum::{Domain, Engine, Error, PoolOptions, RawEntry, Store, StoreOptions};
use durum_persist::inject::{self, Operation};
use durum_persist::record::{Recorder, RecorderOptions};
use durum_persist::simulate::{Plan, Rules, explore_with_recovery};

#[repr(C)]
struct Accounts {
    first: u64,
    _line: [u64; 8],
    second: u64,
}
durum::describe!(Accounts as "accounts" { first, _line, second });

/// The low-level log works in place.
fn hybrid() -> PoolOptions {
    PoolOptions::new().engine(Engine::Hybrid)
}

fn options() -> StoreOptions {
    StoreOptions::new().domain(Domain::Dax)
}

fn transfer(store: &Store, accounts: *mut Accounts) -> Result<(), Error> {
    let pool = store.open_pool("bank", hybrid())?;
    let mut log = store.raw_log()?;
    unsafe {
        let first = &raw mut (*accounts).first;
        let second = &raw mut (*accounts).second;
        log.append(first.cast(), first.cast(), 8, RawEntry::UNDO)?;
        log.flush()?;
        *first -= 10;
        let value = *second + 10;
        log.append(second.cast(), (&raw const value).cast(), 8, RawEntry::REDO)?;
        pool.persist(first, 8)?;
        log.flush()?;
        log.set_range(2, 4)?;
        log.apply()?;
        log.set_range(4, 4)?;
    }
    log.reset()
}

fn sum(dir: &Path) -> Result<u64, Error> {
    let store = Store::open(dir.join("store"), options())?;
    let pool = store.open_pool("bank", hybrid())?;
    let accounts = pool.root::<Accounts>()?;
    // SAFETY: the root is live while the pool is open.
    Ok(unsafe { (*accounts).first + (*accounts).second })
}

#[test]
fn a_hand_made_hybrid_transaction_is_atomic_at_every_crash_point() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let pool = store.create_pool("bank", hybrid()).unwrap();
    let accounts = pool.root::<Accounts>().unwrap();
    pool.transaction(|tx| unsafe { tx.set(&raw mut (*accounts).first, 100) })
        .unwrap();
    let recorder = Recorder::start(dir.path(), RecorderOptions::default());
    transfer(&store, accounts).unwrap();
    let trace = recorder.stop();
    drop(pool);
    drop(store);
    let report = explore_with_recovery(
        &trace,
        &Plan::new(Rules::Lines, 1),
        |image| sum(image).map(drop).map_err(|error| error.to_string()),
        |image, point| match sum(image) {
            Ok(100) => Ok(()),
            Ok(sum) => Err(format!("the sum is {sum} after a crash at {point:?}")),
            Err(error) => Err(error.to_string()),
        },
    )
    .unwrap();
    assert!(report.images > 20, "{report:?}");
}

#[test]
fn a_range_admits_only_its_sequence_numbers() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let pool = store.create_pool("bank", hybrid()).unwrap();
    let accounts = pool.root::<Accounts>().unwrap();
    let mut volatile = 0u64;
    let mut log = store.raw_log().unwrap();
    let five = 5u64;
    let source = (&raw const five).cast();
    unsafe {
        let own = |sequence, volatile| RawEntry {
            sequence,
            volatile,
            ..RawEntry::REDO
        };
        log.append(
            (&raw mut (*accounts).first).cast(),
            source,
            8,
            own(7, false),
        )
        .unwrap();
        log.append(
            (&raw mut (*accounts).second).cast(),
            source,
            8,
            own(9, false),
        )
        .unwrap();
        log.append((&raw mut volatile).cast(), source, 8, own(7, true))
            .unwrap();
        log.flush().unwrap();
        log.set_range(6, 8).unwrap();
        log.apply().unwrap();
        assert_eq!(((*accounts).first, (*accounts).second, volatile), (5, 0, 5));
        let outside = log.append((&raw mut volatile).cast(), source, 8, own(7, false));
        assert!(matches!(outside, Err(Error::NotInPool { .. })));
        assert!(matches!(
            log.append(source.cast_mut(), source, 8, own(0, true)),
            Err(Error::LogMisuse { .. })
        ));
    }
    assert!(matches!(log.set_range(4, 2), Err(Error::LogMisuse { .. })));
}

/// Recovery replays entries only into pools that the process had open.
#[test]
fn a_log_keeps_the_pools_open_that_its_entries_lie_in() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let pool = store.create_pool("bank", hybrid()).unwrap();
    let word = pool.root_bytes(0, 64, 8).unwrap();
    let mut log = store.raw_log().unwrap();
    unsafe { log.append(word, word, 8, RawEntry::UNDO).unwrap() };
    log.flush().unwrap();
    drop(pool);
    assert!(store.remove_pool("bank").is_err(), "it is open");
    log.reset().unwrap();
    store.remove_pool("bank").unwrap();
}

#[test]
fn an_append_that_finds_no_room_appends_nothing() {
    const SIZE: usize = 17 << 20;
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, options()).unwrap();
    let pool = store.create_pool("large", hybrid()).unwrap();
    let block = pool
        .transaction(|tx| tx.alloc_bytes(&pool, 0, SIZE, 8))
        .unwrap();
    let new = vec![1u8; SIZE];
    let mut log = store.raw_log().unwrap();
    unsafe {
        block.write_bytes(0, SIZE);
        let full = inject::fail_after(Operation::Grow, 1, &path);
        let refusal = log
            .append(block, new.as_ptr(), SIZE, RawEntry::REDO)
            .unwrap_err();
        assert!(
            refusal.to_string().contains("the disk is full"),
            "{refusal}"
        );
        drop(full);
        log.flush().unwrap();
        log.set_range(2, 4).unwrap();
        log.apply().unwrap();
        let seen = std::slice::from_raw_parts(block, SIZE);
        assert!(seen.iter().all(|byte| *byte == 0));
        log.reset().unwrap();
        // With room it is there as a whole.
        log.append(block, new.as_ptr(), SIZE, RawEntry::REDO)
            .unwrap();
        log.set_range(2, 4).unwrap();
        log.apply().unwrap();
        assert!(seen.iter().all(|byte| *byte == 1));
    }
    log.reset().unwrap();
}

#[test]
fn pools_of_other_engines_are_refused() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let pool = store
        .create_pool("shadow", PoolOptions::new().engine(Engine::Shadow))
        .unwrap();
    let accounts = pool.root::<Accounts>().unwrap();
    let mut log = store.raw_log().unwrap();
    let target = unsafe { &raw mut (*accounts).first }.cast();
    let error = unsafe { log.append(target, target, 8, RawEntry::UNDO) }.unwrap_err();
    assert!(
        matches!(error, Error::LogMisuse { .. }) && error.to_string().contains("Hybrid"),
        "{error}"
    );
}
