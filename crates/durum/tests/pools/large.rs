//! Large pools and full logs are opened and recovered soon, in little memory.

use std::time::{Duration, Instant};

use durum::{Error, PoolOptions, Store, StoreOptions};

use crate::support::pool_options;
use crate::{Pair, store, support};

#[test]
fn opening_a_pool_of_1000_puddles_is_soon_over() {
    let (dir, store) = store();
    let pool = store
        .create_pool("large", pool_options().growth_max(2 << 20))
        .unwrap();
    for _ in 0..999 {
        pool.transaction(|tx| tx.alloc_bytes(&pool, 0, 1_900_000, 8))
            .unwrap();
    }
    assert_eq!(pool.usage().unwrap().puddles, 1000);
    drop(pool);
    drop(store);
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let start = Instant::now();
        let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
        let pool = store.open_pool("large", pool_options()).unwrap();
        best = best.min(start.elapsed());
        drop(pool);
        drop(store);
    }
    println!("store and pool of 1,000 puddles opened in {best:?}");
    // The figure is 50 ms on a quiet machine. Tests run beside others: this notices if something is done that grows
    // faster.
    assert!(best < Duration::from_millis(500), "{best:?}");
}

#[repr(C)]
struct Large {
    words: [u64; 4096],
}
durum::describe!(Large as "large" { words });

/// The figure is about a transaction under way, of which other engines leave nothing on the media.
fn on_hybrid() -> PoolOptions {
    PoolOptions::new().engine(durum::Engine::Hybrid)
}

/// Options for a store that another process makes: at addresses where those that this one makes meanwhile never are.
fn apart(number: u64) -> StoreOptions {
    StoreOptions::new().base(0x2000_0000_0000 + (number << 42))
}

#[test]
#[ignore = "the other process of the test below"]
fn dies_in_a_transaction_on_a_large_pool() {
    let Some(dir) = support::directory() else {
        return;
    };
    let store = Store::create(dir.join("store"), apart(1)).unwrap();
    let pool = store.create_pool("large", on_hybrid()).unwrap();
    let root = pool.root::<Large>().unwrap();
    pool.transaction(|tx| tx.alloc_bytes(&pool, 0, 1 << 30, 8))
        .unwrap();
    let _ = pool.transaction(|tx| unsafe {
        for at in 0..64 {
            tx.add(&raw const (*root).words[at * 64])?;
            (*root).words[at * 64] = 1;
        }
        std::process::abort();
        #[allow(unreachable_code, reason = "gives the closure its type")]
        Ok::<_, Error>(())
    });
}

/// Pages that this thread touched for the first time so far.
fn page_faults() -> i64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the call fills the structure, in which all bits clear is a value.
    let usage = unsafe {
        assert_eq!(libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()), 0);
        usage.assume_init()
    };
    usage.ru_minflt + usage.ru_majflt
}

#[test]
fn recovery_of_one_transaction_in_a_1_gib_pool_is_soon_over() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut best = Duration::MAX;
    for _ in 0..3 {
        let status = support::start("large::dies_in_a_transaction_on_a_large_pool", dir.path())
            .wait()
            .unwrap();
        assert!(!status.success());
        let before = page_faults();
        let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
        let faults = page_faults() - before;
        let report = store.recovery().unwrap();
        assert_eq!((report.rolled_back, report.entries), (1, 64));
        println!(
            "logs {:?}, registry {:?}, {faults} pages",
            report.log_time, report.registry_time
        );
        best = best.min(report.log_time);
        let pool = store.open_pool("large", on_hybrid()).unwrap();
        let root = unsafe { &*pool.root::<Large>().unwrap() };
        assert_eq!(root.words.iter().sum::<u64>(), 0);
        drop((pool, store));
        std::fs::remove_dir_all(dir.path().join("store")).unwrap();
        // The pool has 262,144 pages, of which the transaction changed 8.
        assert!(faults < 1000, "{faults} pages");
    }
    // Less than 1 ms on a quiet machine; beside other tests it may be interrupted.
    assert!(best < Duration::from_millis(50), "{best:?}");
}

fn on_shadow() -> PoolOptions {
    PoolOptions::new().engine(durum::Engine::Shadow)
}

#[test]
#[ignore = "the other process of the test below"]
fn dies_with_a_full_log() {
    let Some(dir) = support::directory() else {
        return;
    };
    let store = Store::create(dir.join("store"), apart(2)).unwrap();
    let pool = store.create_pool("large", on_shadow()).unwrap();
    let root = pool.root::<Pair>().unwrap();
    let len = 60 << 20;
    let object = pool
        .transaction(|tx| {
            let object = tx.alloc_bytes(&pool, 0, len, 8)?;
            unsafe { tx.set(&raw mut (*root).left, object.expose_provenance() as u64)? };
            Ok::<_, Error>(object)
        })
        .unwrap();
    // What was logged goes home with later commits; there are none.
    pool.transaction(|tx| unsafe {
        tx.add_bytes(object, len, durum::Announce::Clobber)?;
        object.write_bytes(0x5a, len);
        Ok::<_, Error>(())
    })
    .unwrap();
    std::process::abort();
}

#[test]
fn recovery_of_a_log_that_is_full_is_soon_over() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let (mut best, mut copied) = (Duration::MAX, Duration::MAX);
    for _ in 0..3 {
        let began = Instant::now();
        std::fs::write(dir.path().join("copy"), vec![0x5a; 60 << 20]).unwrap();
        copied = copied.min(began.elapsed());
        let status = support::start("large::dies_with_a_full_log", dir.path())
            .wait()
            .unwrap();
        assert!(!status.success());
        let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
        let report = store.recovery().unwrap();
        println!(
            "logs {:?}, registry {:?}, {} bytes written",
            report.log_time, report.registry_time, report.bytes
        );
        best = best.min(report.log_time);
        let pool = store.open_pool("large", on_shadow()).unwrap();
        let address = unsafe { (*pool.root::<Pair>().unwrap()).left };
        let object = std::ptr::with_exposed_provenance::<u8>(address as usize);
        let bytes = unsafe { std::slice::from_raw_parts(object, 60 << 20) };
        assert!(bytes.iter().all(|byte| *byte == 0x5a));
        drop((pool, store));
        std::fs::remove_dir_all(dir.path().join("store")).unwrap();
    }
    // The figure is 100 ms on a quiet machine. Tests run beside others, which a plain copy of as many bytes feels, too:
    // this notices if something is done that grows faster.
    assert!(
        best < Duration::from_secs(1).max(20 * copied),
        "{best:?}, and a copy {copied:?}"
    );
}

/// One word of each page, all in one transaction.
const SCATTERED: usize = 1 << 15;
/// So many that a recovery of all would take longer than that of a full log.
const TOO_SCATTERED: usize = 1 << 17;

#[test]
#[ignore = "the other process of the test below"]
fn dies_with_scattered_words() {
    if let Some(dir) = support::directory() {
        die_with_scattered_words(dir, 3, SCATTERED);
    }
}

#[test]
#[ignore = "the other process of the test below"]
fn dies_with_too_many_scattered_words() {
    if let Some(dir) = support::directory() {
        die_with_scattered_words(dir, 4, TOO_SCATTERED);
    }
}

fn die_with_scattered_words(dir: std::path::PathBuf, number: u64, pages: usize) {
    let store = Store::create(dir.join("store"), apart(number)).unwrap();
    let pool = store.create_pool("large", on_shadow()).unwrap();
    let root = pool.root::<Pair>().unwrap();
    let object = pool
        .transaction(|tx| {
            let object = tx.alloc_bytes(&pool, 0, pages * 4096, 8)?;
            unsafe { tx.set(&raw mut (*root).left, object.expose_provenance() as u64)? };
            Ok::<_, Error>(object)
        })
        .unwrap();
    pool.transaction(|tx| unsafe {
        for page in 0..pages {
            let word = object.add(page * 4096).cast::<u64>();
            tx.add(word)?;
            *word = 7;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
    std::process::abort();
}

/// The log has room for 30 times as many words: it is not its bytes that bound the time, but the pages that recovery
/// would write.
#[test]
fn what_recovery_would_take_long_for_is_home_when_its_commit_returns() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let name = "large::dies_with_too_many_scattered_words";
    assert!(!support::start(name, dir.path()).wait().unwrap().success());
    let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
    let report = store.recovery().unwrap();
    assert!(report.entries < SCATTERED as u64, "{}", report.entries);
    let pool = store.open_pool("large", on_shadow()).unwrap();
    let address = unsafe { (*pool.root::<Pair>().unwrap()).left };
    let object = std::ptr::with_exposed_provenance::<u8>(address as usize);
    for page in 0..TOO_SCATTERED {
        assert_eq!(unsafe { *object.add(page * 4096).cast::<u64>() }, 7);
    }
}

#[test]
#[ignore = "the other process of the test below"]
fn recovers_scattered_words() {
    let Some(dir) = support::directory() else {
        return;
    };
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM:"));
        let number = line.unwrap().split_whitespace().nth(1).unwrap();
        number.parse::<usize>().unwrap() << 10
    };
    let before = peak();
    let store = Store::open(dir.join("store"), StoreOptions::new()).unwrap();
    let report = store.recovery().unwrap();
    // And what the allocation changed.
    let words = 8 * SCATTERED as u64;
    assert!((words..words + 256).contains(&report.bytes), "{report:?}");
    let (log, taken) = (16 * SCATTERED, peak() - before);
    println!(
        "{log} bytes of log took {taken} bytes of memory, {:?}",
        report.log_time
    );
    assert!(taken < 40 * log, "{taken}");
}

#[test]
fn recovery_takes_memory_by_the_log_and_not_by_what_it_touches() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let run = |name| support::start_with(name, dir.path(), std::process::Stdio::inherit()).wait();
    assert!(!run("large::dies_with_scattered_words").unwrap().success());
    assert!(run("large::recovers_scattered_words").unwrap().success());
}
