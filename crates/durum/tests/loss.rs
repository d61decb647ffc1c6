//! What a crash takes of buffered transactions: the last ones, none that is older than the window.
//!
//! The crash: SIGKILL at any instruction. The process tells on a pipe what has committed and when; after its end the
//! store is recovered and compared. What it did not write to the store is gone with it, the flusher's queue above all,
//! so the loss is that of a power cut; that what it did write is durable, `tests/crash` shows.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use durum::{Domain, Durability, Engine, Error, Pool, PoolOptions, Store, StoreOptions};

const WINDOW: Duration = Duration::from_millis(20);
/// The window is kept by a thread that the system has to run; a machine that is busy with other tests may now and then
/// let it wait so much longer than the half of the window that is meant for that.
const TOLERANCE: Duration = Duration::from_millis(150);
/// Of so many kills that many may meet such a moment.
const KILLS: usize = 12;
const UNLUCKY_MAX: usize = 3;
/// After the worker has begun.
const SOON: Duration = Duration::from_millis(200);
const THREADS: u64 = 2;
const RING: usize = 4096;

#[repr(C)]
struct Root {
    /// The number of the last transaction.
    last: u64,
    /// Number n at place n modulo the size.
    ring: [u64; RING],
    /// By thread, an object that each of its transactions replaces; it holds the transaction's number.
    objects: [*mut u64; THREADS as usize],
}
durum::describe!(Root as "loss" { last, ring, objects });

fn open(dir: &Path, domain: Domain, window: Duration) -> (Store, Pool, *mut Root) {
    let options = StoreOptions::new().domain(domain).buffered_window(window);
    let store = Store::open_or_create(dir.join("store"), options).unwrap();
    let options = PoolOptions::new().engine(Engine::Shadow);
    let pool = store.open_or_create_pool("pool", options).unwrap();
    let root = pool.root::<Root>().unwrap();
    (store, pool, root)
}

/// Time since a moment that all processes agree on.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap()
}

/// How a worker goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// One after the other: queues fill up, and a durable one comes between at times.
    Fast,
    /// One in a millisecond, all buffered: nobody but the flusher writes them.
    Slow,
}

/// Transactions for ever. Each tells its number, when its commit had returned, and whether all up to it are durable.
fn run(domain: Domain, window: Duration, pace: Pace) {
    let Some(dir) = support::directory() else {
        return;
    };
    let (_store, pool, root) = open(&dir, domain, window);
    let root = Mutex::new(root.expose_provenance());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (pool, root) = (&pool, &root);
            scope.spawn(move || {
                for round in 1u64.. {
                    // Short runs of buffered ones, and long ones.
                    let is_durable =
                        round % 1000 == 7 || round % 31 == thread && round % 10_000 < 500;
                    let durability = match pace {
                        Pace::Fast if is_durable => Durability::Durable,
                        Pace::Fast => Durability::Buffered,
                        Pace::Slow => {
                            std::thread::sleep(Duration::from_millis(1));
                            Durability::Buffered
                        }
                    };
                    let held = root.lock().unwrap();
                    let root = std::ptr::with_exposed_provenance_mut::<Root>(*held);
                    let number = unsafe { (*root).last } + 1;
                    let done = pool.transaction_with(durability, |tx| unsafe {
                        tx.add(&raw const (*root).last)?;
                        (*root).last = number;
                        tx.set(&raw mut (*root).ring[number as usize % RING], number)?;
                        let object = tx.alloc::<u64>()?;
                        *object = number;
                        let place = &raw mut (*root).objects[thread as usize];
                        if !(*place).is_null() {
                            tx.free(*place)?;
                        }
                        tx.set(place, object)
                    });
                    done.unwrap_or_else(|error: Error| panic!("{error}"));
                    drop(held);
                    let durable = u8::from(durability == Durability::Durable);
                    let line = format!("@ {number} {} {durable}\n", now().as_nanos());
                    std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

#[test]
#[ignore = "the other process of the tests below"]
fn buffers_fast_in_memory() {
    run(Domain::Dram, WINDOW, Pace::Fast);
}

#[test]
#[ignore = "the other process of the tests below"]
fn buffers_slowly_in_memory() {
    run(Domain::Dram, WINDOW, Pace::Slow);
}

#[test]
#[ignore = "the other process of the tests below"]
fn buffers_fast_on_a_file_system() {
    run(Domain::File, WINDOW, Pace::Fast);
}

#[test]
#[ignore = "the other process of the tests below"]
fn buffers_slowly_on_a_file_system() {
    run(Domain::File, WINDOW, Pace::Slow);
}

#[test]
#[ignore = "the other process of the tests below"]
fn buffers_slowly_for_a_minute() {
    run(Domain::Dram, Duration::from_secs(60), Pace::Slow);
}

/// What a killed process had told.
#[derive(Default)]
struct Told {
    /// Number and time of each transaction.
    committed: Vec<(u64, Duration)>,
    /// The last one that was durable.
    durable: u64,
}

/// Runs the worker and kills it after `time`; what it had told, and when it was killed.
fn kill(worker: &str, dir: &Path, time: Duration) -> (Told, Duration) {
    let mut child = support::start_with(worker, dir, Stdio::piped());
    let output = BufReader::new(child.stdout.take().unwrap());
    let reader = std::thread::spawn(move || {
        let mut told = Told::default();
        // The last line may be half of one.
        for line in output.lines().map_while(Result::ok) {
            let mut words = line.strip_prefix("@ ").unwrap_or("").split(' ');
            let mut number = || words.next()?.parse::<u64>().ok();
            if let (Some(transaction), Some(nanos), Some(durable)) = (number(), number(), number())
            {
                told.committed
                    .push((transaction, Duration::from_nanos(nanos)));
                if durable == 1 {
                    told.durable = told.durable.max(transaction);
                }
            }
        }
        told
    });
    std::thread::sleep(time);
    let killed = now();
    child.kill().unwrap();
    let status = child.wait().unwrap();
    assert!(status.code().is_none(), "ends by the kill only: {status}");
    (reader.join().unwrap(), killed)
}

/// The number of the last transaction that is there, whole and with all before it.
fn verify(root: *const Root) -> u64 {
    let root = unsafe { &*root };
    for number in root.last.saturating_sub(RING as u64 - 1)..=root.last {
        assert_eq!(
            root.ring[number as usize % RING],
            number,
            "of {}",
            root.last
        );
    }
    let next = root.ring[(root.last + 1) as usize % RING];
    assert!(next == 0 || next < root.last, "{next} behind {}", root.last);
    let held = root.objects.iter().filter(|object| !object.is_null());
    let numbers: Vec<u64> = held.map(|object| unsafe { **object }).collect();
    assert_eq!(numbers.iter().max().copied().unwrap_or(0), root.last);
    root.last
}

/// Kills the worker so often, after `time` and a little. By kill, how long before it what is missing was committed; the
/// longest first.
fn losses(worker: &str, domain: Domain, kills: usize, time: Duration) -> Vec<Duration> {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    drop(open(dir.path(), domain, WINDOW));
    let (mut losses, mut lost, mut all) = (Vec::new(), 0, 0);
    for round in 0..kills {
        let time = time + Duration::from_millis(round as u64 * 37 % 110);
        let (told, killed) = kill(worker, dir.path(), time);
        let (store, pool, root) = open(dir.path(), domain, WINDOW);
        assert!(store.recovery().unwrap().quarantined.is_empty());
        let last = verify(root);
        assert!(last >= told.durable, "{last} of durable {}", told.durable);
        let missing = told.committed.iter().filter(|(number, _)| *number > last);
        let ages = missing.map(|(_, returned)| killed.saturating_sub(*returned));
        let ages: Vec<Duration> = ages.collect();
        losses.push(ages.iter().max().copied().unwrap_or_default());
        lost += ages.len();
        all += told.committed.len();
        drop((pool, store));
        let found = durum_service::check(&dir.path().join("store"), &Default::default()).unwrap();
        assert!(found.is_sound(), "{found:?}");
        let leaks = &found.pools[0].leaks;
        assert!(
            matches!(leaks, durum_service::Leaks::Judged { objects: 0, .. }),
            "{leaks:?}"
        );
    }
    losses.sort_by(|one, other| other.cmp(one));
    println!("{worker}: {kills} kills lost {lost} of {all} transactions, by age {losses:?}");
    assert!(all > 50 * kills, "the workers worked: {all}");
    losses
}

/// Nothing is lost that is older than the window, but where the system had not run the thread in time.
fn keeps_the_window(worker: &str, domain: Domain) {
    let losses = losses(worker, domain, KILLS, SOON);
    assert!(losses[0] <= WINDOW + TOLERANCE, "{losses:?}");
    assert!(losses[UNLUCKY_MAX] <= WINDOW, "{losses:?}");
}

#[test]
fn a_kill_takes_nothing_older_than_the_window_in_memory() {
    keeps_the_window("buffers_fast_in_memory", Domain::Dram);
    keeps_the_window("buffers_slowly_in_memory", Domain::Dram);
}

#[test]
fn a_kill_takes_nothing_older_than_the_window_on_a_file_system() {
    keeps_the_window("buffers_fast_on_a_file_system", Domain::File);
    keeps_the_window("buffers_slowly_on_a_file_system", Domain::File);
}

/// That the tests above would notice a flusher that does not come: this one comes too late for them.
#[test]
fn a_longer_window_loses_more() {
    let losses = losses("buffers_slowly_for_a_minute", Domain::Dram, 2, 4 * SOON);
    assert!(losses[0] > WINDOW + TOLERANCE, "{losses:?}");
}
