//! Processes with many threads are killed at random moments; what they committed is there, what they did not is not.
//!
//! The crash: SIGKILL at any instruction, with up to 16 transactions in flight. The page cache survives it, so this
//! tests rollback, roll-forward and the allocator under real concurrency, not missing flushes (`tests/crash` does).

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod support;

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use durum::{Engine, Error, Pool, PoolOptions, Store, StoreOptions};
use support::pool_options;

const ACCOUNTS: usize = 4096;
const STRIPES: usize = 64;
const THREADS_MAX: usize = 16;
const START: u64 = 1000;
/// Longer ones would only take longer to look through.
const QUEUE_MAX: u64 = 5_000;

#[repr(C)]
struct Item {
    sequence: u64,
    payload: [u64; 5],
    next: *mut Item,
}
durum::describe!(Item as "item" { sequence, payload, next });

#[repr(C)]
struct Bank {
    ready: u64,
    accounts: [u64; ACCOUNTS],
    queues: [*mut Item; THREADS_MAX],
    next_sequence: [u64; THREADS_MAX],
    transfers: [u64; THREADS_MAX],
    blob: [*mut u8; THREADS_MAX],
}
durum::describe!(Bank as "bank" { ready, accounts, queues, next_sequence, transfers, blob });

fn open(dir: &Path) -> (Store, Pool, *mut Bank) {
    open_with(dir, StoreOptions::new(), pool_options())
}

fn open_with(
    dir: &Path,
    options: StoreOptions,
    pool_options: PoolOptions,
) -> (Store, Pool, *mut Bank) {
    let store = Store::open_or_create(dir.join("store"), options).unwrap();
    let pool = store.open_or_create_pool("bank", pool_options).unwrap();
    let bank = pool.root::<Bank>().unwrap();
    pool.transaction(|tx| unsafe {
        if (*bank).ready == 0 {
            tx.add(&raw const (*bank).accounts)?;
            (*bank).accounts = [START; ACCOUNTS];
            tx.set(&raw mut (*bank).ready, 1)?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
    (store, pool, bank)
}

/// One thread's work for ever: transfers between any two accounts, and a queue of its own that grows and shrinks.
fn work(pool: &Pool, bank: *mut Bank, stripes: &[Mutex<()>], thread: usize, seed: u64) {
    let mut state = seed | 1;
    let mut random = move |below: usize| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) as usize % below
    };
    loop {
        let (from, to, amount) = (random(ACCOUNTS), random(ACCOUNTS), random(5) as u64);
        let (low, high) = (from.min(to) % STRIPES, from.max(to) % STRIPES);
        let (low, high) = (low.min(high), low.max(high));
        let _first = stripes[low].lock().unwrap();
        let _second = (low != high).then(|| stripes[high].lock().unwrap());
        let choice = random(8);
        let result = pool.transaction(|tx| unsafe {
            let account = |index: usize| &raw mut (*bank).accounts[index];
            if from != to && *account(from) >= amount {
                if choice % 2 == 0 {
                    tx.add(account(from))?;
                    tx.add(account(to))?;
                    *account(from) -= amount;
                    *account(to) += amount;
                } else {
                    tx.set(account(from), *account(from) - amount)?;
                    tx.set(account(to), *account(to) + amount)?;
                }
            }
            let head = &raw mut (*bank).queues[thread];
            let next = &raw mut (*bank).next_sequence[thread];
            if choice < 5 && *next < QUEUE_MAX || (*head).is_null() {
                let item = tx.alloc::<Item>()?;
                *item = Item {
                    sequence: *next,
                    payload: [*next; 5],
                    next: *head,
                };
                tx.add(head)?;
                *head = item;
                tx.set(next, *next + 1)?;
            } else {
                let item = *head;
                tx.set(head, (*item).next)?;
                tx.set(next, *next - 1)?;
                tx.free(item)?;
            }
            if choice == 7 {
                let blob = &raw mut (*bank).blob[thread];
                if !(*blob).is_null() {
                    tx.free(*blob)?;
                }
                let size = 300 + (*next as usize * 997) % 20_000;
                let fresh = tx.alloc_bytes(pool, 0, size, 8)?;
                fresh.write_bytes(thread as u8 + 1, size);
                tx.set(blob, fresh)?;
            }
            tx.add(&raw const (*bank).transfers[thread])?;
            (*bank).transfers[thread] += 1;
            if choice == 6 { tx.abort() } else { Ok(()) }
        });
        assert!(matches!(result, Ok(()) | Err(Error::Aborted)), "{result:?}");
    }
}

fn run(threads: usize, options: StoreOptions, pool_options: PoolOptions) {
    let Some(dir) = support::directory() else {
        return;
    };
    let (_store, pool, bank) = open_with(&dir, options, pool_options);
    let stripes: Vec<Mutex<()>> = (0..STRIPES).map(|_| Mutex::new(())).collect();
    let seed = u64::from(std::process::id());
    let bank = bank.expose_provenance();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (pool, stripes) = (&pool, &stripes);
            scope.spawn(move || {
                work(
                    pool,
                    std::ptr::with_exposed_provenance_mut(bank),
                    stripes,
                    thread,
                    seed * 31 + thread as u64,
                )
            });
        }
    });
}

#[test]
#[ignore = "the other process of the tests below"]
fn worker_with_8_threads() {
    run(8, StoreOptions::new(), pool_options());
}

#[test]
#[ignore = "the other process of the tests below"]
fn worker_with_16_threads() {
    run(16, StoreOptions::new(), pool_options());
}

#[test]
#[ignore = "the other process of the tests below"]
fn worker_that_gives_pages_back() {
    let pool_options = PoolOptions::new().engine(Engine::Shadow);
    run(4, StoreOptions::new().private_max(0), pool_options);
}

/// What has to hold between any two transactions; the number of transactions so far.
fn verify(bank: *const Bank) -> u64 {
    let bank = unsafe { &*bank };
    assert_eq!(
        bank.accounts.iter().sum::<u64>(),
        START * ACCOUNTS as u64,
        "money is neither made nor lost"
    );
    for thread in 0..THREADS_MAX {
        let mut item = bank.queues[thread].cast_const();
        for sequence in (0..bank.next_sequence[thread]).rev() {
            let this = unsafe { item.as_ref() }.expect("a queue is as long as its counter says");
            assert_eq!(this.sequence, sequence);
            assert_eq!(this.payload, [sequence; 5]);
            item = this.next;
        }
        assert!(
            item.is_null(),
            "a queue is not longer than its counter says"
        );
        if let Some(blob) = unsafe { bank.blob[thread].as_ref() } {
            assert_eq!(*blob, thread as u8 + 1);
        }
    }
    bank.transfers.iter().sum()
}

fn kill_again_and_again(worker: &str, kills: usize) {
    kill_on(pool_options(), worker, kills);
}

fn kill_on(pool_options: PoolOptions, worker: &str, kills: usize) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    drop(open_with(dir.path(), StoreOptions::new(), pool_options));
    let mut seen = 0;
    let (mut back, mut forward) = (0, 0);
    for kill in 0..kills {
        let mut child = support::start(worker, dir.path());
        std::thread::sleep(Duration::from_millis(150 + (kill as u64 * 37) % 170));
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert!(
            !status.success() && status.code().is_none(),
            "the worker ends by the kill only: {status}"
        );
        let (store, pool, bank) = open(dir.path());
        let report = store.recovery().unwrap();
        back += report.rolled_back;
        forward += report.rolled_forward;
        assert!(report.quarantined.is_empty());
        let transactions = verify(bank);
        assert!(transactions >= seen);
        seen = transactions;
        drop(pool);
        drop(store);
        let found = durum_service::check(&dir.path().join("store"), &Default::default()).unwrap();
        assert!(found.is_sound(), "{found:?}");
        let leaks = &found.pools[0].leaks;
        assert!(
            matches!(leaks, durum_service::Leaks::Judged { objects: 0, .. }),
            "{leaks:?}"
        );
    }
    println!("{kills} kills, {seen} transactions, {back} rolled back, {forward} rolled forward");
    assert!(seen > kills as u64 && back + forward > 0);
}

#[test]
fn a_process_with_8_threads_is_killed_again_and_again() {
    kill_again_and_again("worker_with_8_threads", 10);
}

#[test]
fn a_process_with_16_threads_is_killed_again_and_again() {
    kill_again_and_again("worker_with_16_threads", 10);
}

#[test]
fn a_process_that_gives_pages_back_is_killed_again_and_again() {
    let options = PoolOptions::new().engine(Engine::Shadow);
    kill_on(options, "worker_that_gives_pages_back", 10);
}

#[test]
#[ignore = "long: run by make test-long"]
fn campaign_of_300_kills() {
    if support::directory().is_none() {
        kill_again_and_again("worker_with_16_threads", 300);
    }
}
