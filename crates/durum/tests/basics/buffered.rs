//! Buffered transactions: what they cost, when they are durable, and how they fail.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use durum::{Domain, Durability, Engine, Error, Pool, PoolOptions, Stats, StoreOptions, Tx};
use durum::{Store, thread_counters};
use durum_persist::inject::{self, Operation};

use crate::fixture::{Fixture, Node, Root, values};

/// So long that no flusher comes between.
const HOUR: Duration = Duration::from_secs(3600);

fn on(engine: Engine) -> PoolOptions {
    PoolOptions::new().engine(engine)
}

fn fixture(options: StoreOptions) -> Fixture {
    Fixture::with(options, on(Engine::Shadow))
}

fn buffered(pool: &Pool, body: impl FnOnce(&Tx) -> Result<(), Error>) -> Result<(), Error> {
    pool.transaction_with(Durability::Buffered, body)
}

/// Changes one word.
fn put(pool: &Pool, durability: Durability, place: *mut u64, value: u64) {
    let put = pool.transaction_with(durability, |tx| unsafe {
        tx.add(place)?;
        place.write(value);
        Ok::<_, Error>(())
    });
    put.unwrap();
}

fn spent(work: impl FnOnce()) -> Stats {
    let before = thread_counters();
    work();
    thread_counters() - before
}

fn lines(stats: Stats) -> u64 {
    stats.write_backs + stats.streamed_lines
}

#[test]
fn a_buffered_commit_costs_no_fence_and_the_next_durable_one_costs_one_for_all() {
    let fixture = fixture(StoreOptions::new().buffered_window(HOUR));
    let (pool, root) = (fixture.pool(), &raw mut *fixture.root());
    let cell = |at: usize| unsafe { &raw mut (*root).table[at] };
    for many in [1, 2, 50, 500] {
        let waits = spent(|| {
            for at in 0..many {
                put(pool, Durability::Buffered, cell(at), many as u64);
                buffered(pool, |tx| unsafe {
                    let node = tx.alloc::<Node>()?;
                    (*node).value = at as u64;
                    (*node).next = (*root).head;
                    tx.set(&raw mut (*root).head, node)
                })
                .unwrap();
            }
        });
        assert_eq!((waits.fences, lines(waits)), (0, 0), "{many} buffered");
        assert_eq!(waits.commits, 2 * many as u64);
        let durable = spent(|| put(pool, Durability::Durable, cell(599), many as u64));
        assert_eq!(durable.fences, 1, "{many} buffered and one durable");
        let again = spent(|| pool.sync().unwrap());
        assert_eq!((again.fences, lines(again)), (0, 0), "nothing waits");
        put(pool, Durability::Buffered, cell(0), 1 + many as u64);
        assert_eq!(spent(|| pool.sync().unwrap()).fences, 1);
        // Nothing has changed, but what it has seen may wait.
        put(pool, Durability::Buffered, cell(0), 2 + many as u64);
        let unchanged = || put(pool, Durability::Durable, cell(0), 2 + many as u64);
        assert_eq!(spent(unchanged).fences, 1);
        assert_eq!(spent(unchanged).fences, 0);
        put(pool, Durability::Buffered, cell(0), 3 + many as u64);
        let persisted = spent(|| unsafe { pool.persist(cell(9), 8) }.unwrap());
        assert_eq!(persisted.fences, 1);
    }
    assert_eq!(values(root).len(), 553);
}

#[test]
fn a_buffered_commit_on_a_file_system_costs_no_sync() {
    let options = StoreOptions::new()
        .domain(Domain::File)
        .buffered_window(HOUR);
    let fixture = fixture(options);
    let (pool, root) = (fixture.pool(), &raw mut *fixture.root());
    let cell = |at: usize| unsafe { &raw mut (*root).table[at] };
    for many in [1, 100] {
        let waits = spent(|| {
            (0..many).for_each(|at| put(pool, Durability::Buffered, cell(at), many as u64))
        });
        assert_eq!((waits.syncs, waits.file_writes), (0, 0));
        let durable = spent(|| put(pool, Durability::Durable, cell(599), many as u64));
        assert_eq!(durable.syncs, 1);
        assert_eq!(spent(|| pool.sync().unwrap()).syncs, 0);
        put(pool, Durability::Buffered, cell(0), 1 + many as u64);
        assert_eq!(spent(|| pool.sync().unwrap()).syncs, 1);
        put(pool, Durability::Buffered, cell(0), 2 + many as u64);
        let unchanged = || put(pool, Durability::Durable, cell(0), 2 + many as u64);
        assert_eq!(spent(unchanged).syncs, 1);
    }
}

#[test]
fn what_many_transactions_change_is_written_once() {
    let fixture = fixture(StoreOptions::new().buffered_window(HOUR));
    let (pool, root) = (fixture.pool(), &raw mut *fixture.root());
    for value in 0..100_000 {
        put(
            pool,
            Durability::Buffered,
            unsafe { &raw mut (*root).count },
            value,
        );
    }
    let written = spent(|| pool.sync().unwrap());
    assert!(written.bytes_logged <= 64, "{written:?}");
}

#[test]
fn the_thread_that_fills_the_queue_writes_it() {
    let fixture = fixture(StoreOptions::new().buffered_window(HOUR));
    let pool = fixture.pool();
    let block = pool
        .transaction(|tx| tx.alloc_bytes(pool, 0, 4 << 20, 8))
        .unwrap();
    let fill = |at: usize, len: usize| {
        buffered(pool, |tx| unsafe {
            tx.add_bytes(block.add(at), len, durum::Announce::Backup)?;
            block.add(at).write_bytes(at as u8 | 1, len);
            Ok(())
        })
        .unwrap();
    };
    let all = spent(|| (0..100).for_each(|at| fill(at * 10_000, 10_000)));
    assert!((7..=10).contains(&all.fences), "{all:?}");
    assert_eq!(spent(|| fill(0, 3 << 20)).fences, 1, "more than ever waits");
}

#[test]
fn a_level_that_is_durable_makes_the_whole_transaction_so() {
    let fixture = fixture(StoreOptions::new().buffered_window(HOUR));
    let (pool, root) = (fixture.pool(), &raw mut *fixture.root());
    let cell = |at: usize| unsafe { &raw mut (*root).table[at] };
    let inside = |outer, inner| {
        spent(|| {
            let both = pool.transaction_with(outer, |tx| unsafe {
                put(pool, inner, cell(1), *cell(1) + 1);
                put(pool, Durability::Buffered, cell(2), *cell(2) + 1);
                tx.set(cell(3), 5)
            });
            both.unwrap();
        })
        .fences
    };
    assert_eq!(inside(Durability::Buffered, Durability::Buffered), 0);
    assert_eq!(inside(Durability::Buffered, Durability::Durable), 1);
    assert_eq!(inside(Durability::Durable, Durability::Buffered), 1);
    assert_eq!(inside(Durability::Buffered, Durability::Buffered), 0);
    assert_eq!(unsafe { (*cell(1), *cell(2)) }, (4, 4));
}

#[test]
fn an_aborted_buffered_transaction_leaves_what_waits() {
    let mut fixture = fixture(StoreOptions::new().buffered_window(HOUR));
    let (pool, root) = (fixture.pool(), &raw mut *fixture.root());
    let count = unsafe { &raw mut (*root).count };
    put(pool, Durability::Buffered, count, 7);
    let aborted: Result<(), Error> = buffered(pool, |tx| unsafe {
        tx.add(count)?;
        count.write(8);
        tx.abort()
    });
    assert!(matches!(aborted, Err(Error::Aborted)));
    assert_eq!(unsafe { *count }, 7);
    fixture.reopen(StoreOptions::new());
    assert_eq!(fixture.root().count, 7);
}

/// A place that a buffered transaction freed is free.
#[test]
fn freed_places_are_used_again_before_they_are_durable() {
    let mut fixture = fixture(StoreOptions::new().buffered_window(HOUR));
    let (pool, root) = (fixture.pool(), &raw mut *fixture.root());
    let before = thread_counters();
    for value in 0..5000u64 {
        buffered(pool, |tx| unsafe {
            let node = tx.alloc_bytes(pool, 0, 5000, 8)?.cast::<Node>();
            (*node).value = value;
            (*node).next = std::ptr::null_mut();
            if !(*root).head.is_null() {
                tx.free((*root).head)?;
            }
            tx.set(&raw mut (*root).head, node)
        })
        .unwrap();
    }
    // Each logs its object.
    assert!((thread_counters() - before).fences <= 5000 / 20);
    assert!(pool.usage().unwrap().bytes <= 4 << 20);
    fixture.reopen(StoreOptions::new());
    assert_eq!(values(fixture.root()), [4999]);
}

#[test]
fn closing_a_pool_or_a_store_keeps_what_waits() {
    for domain in [Domain::Dram, Domain::File] {
        let options = StoreOptions::new().domain(domain).buffered_window(HOUR);
        let mut fixture = fixture(options.clone());
        let store = fixture.store.clone().unwrap();
        let other = store.create_pool("other", on(Engine::Shadow)).unwrap();
        let root = other.root::<Root>().unwrap();
        for round in 1..4 {
            let count = &raw mut fixture.root().count;
            put(fixture.pool(), Durability::Buffered, count, round);
            let number = unsafe { &raw mut (*root).count };
            put(&other, Durability::Buffered, number, round);
            // The other one is used on.
            fixture.pool = None;
            let number = unsafe { &raw mut (*root).table[0] };
            put(&other, Durability::Buffered, number, round);
            fixture.pool = Some(store.open_pool("pool", PoolOptions::new()).unwrap());
            assert_eq!(fixture.root().count, round);
        }
        drop((store, other));
        fixture.reopen(options);
        let store = fixture.store.as_ref().unwrap();
        let other = store.open_pool("other", PoolOptions::new()).unwrap();
        let root = other.root::<Root>().unwrap();
        assert_eq!(unsafe { ((*root).count, (*root).table[0]) }, (3, 3));
        assert_eq!(fixture.root().count, 3);
    }
}

#[test]
fn other_engines_and_no_window_make_it_durable_at_once() {
    for (engine, window) in [(Engine::Hybrid, HOUR), (Engine::Shadow, Duration::ZERO)] {
        let options = StoreOptions::new().buffered_window(window);
        let fixture = Fixture::with(options, on(engine));
        let count = &raw mut fixture.root().count;
        let put = spent(|| put(fixture.pool(), Durability::Buffered, count, 5));
        assert!(put.fences > 0);
        assert_eq!(spent(|| fixture.pool().sync().unwrap()).fences, 0);
    }
}

/// Waits until so many flushers run in this process: a thread names itself, and goes from the list a moment after its
/// end.
fn wait_for_flushers(wanted: usize) {
    let end = Instant::now() + Duration::from_secs(10);
    while flushers() != wanted {
        assert!(Instant::now() < end, "{} instead of {wanted}", flushers());
        std::thread::yield_now();
    }
}

fn flushers() -> usize {
    masks_of_flushers().len()
}

/// The signals that each of them has blocked.
fn masks_of_flushers() -> Vec<u64> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let statuses =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
    let flushers = statuses.filter(|status| status.starts_with("Name:\tdurum-flusher\n"));
    flushers.map(|status| blocked_in(&status)).collect()
}

fn blocked_in(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:"));
    u64::from_str_radix(mask.unwrap().trim(), 16).unwrap()
}

/// In a process of its own, so that no other test's flusher is counted.
#[test]
#[ignore = "the other process of the test below"]
fn a_flusher_lives_as_long_as_it_is_needed() {
    if crate::support::directory().is_none() {
        return;
    }
    let window = Duration::from_millis(20);
    let fixture = fixture(StoreOptions::new().buffered_window(window));
    let count = &raw mut fixture.root().count;
    put(fixture.pool(), Durability::Durable, count, 1);
    assert_eq!(flushers(), 0, "nobody asked for one");
    let blocked_before = blocked_in(&std::fs::read_to_string("/proc/thread-self/status").unwrap());
    for round in 2..6 {
        let before = durum_persist::count::background_counters().fences;
        let began = Instant::now();
        put(fixture.pool(), Durability::Buffered, count, round);
        wait_for_flushers(1);
        // What is sent to the process is for its own threads; what a thread itself raises has to be handled where it
        // happens.
        let bit = |signal: i32| 1 << (signal - 1);
        for mask in masks_of_flushers() {
            assert_ne!(mask & bit(libc::SIGTERM), 0, "{mask:x}");
            assert_ne!(mask & bit(libc::SIGUSR1), 0, "{mask:x}");
            assert_eq!(
                mask & (bit(libc::SIGSEGV) | bit(libc::SIGBUS)),
                0,
                "{mask:x}"
            );
        }
        let own = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        assert_eq!(blocked_in(&own), blocked_before);
        while durum_persist::count::background_counters().fences == before {
            assert!(
                began.elapsed() < Duration::from_secs(10),
                "nobody writes it"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        println!("written after {:?}", began.elapsed());
        assert_eq!(spent(|| fixture.pool().sync().unwrap()).fences, 0);
        // Every second time it has gone to sleep meanwhile.
        std::thread::sleep(window * (round as u32 % 2) * 10);
    }
    let Fixture { pool, store, dir } = fixture;
    drop(pool);
    // With the last pool.
    wait_for_flushers(0);
    let path = store.as_ref().unwrap().info().path.clone();
    store.unwrap().close().unwrap();
    let store = Store::open(&path, StoreOptions::new()).unwrap();
    let pool = store.open_pool("pool", PoolOptions::new()).unwrap();
    assert_eq!(unsafe { (*pool.root::<Root>().unwrap()).count }, 5);
    drop(dir);
}

#[test]
fn the_flusher_comes_in_time_and_goes_with_the_pool() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let name = "buffered::a_flusher_lives_as_long_as_it_is_needed";
    assert!(
        crate::support::start(name, dir.path())
            .wait()
            .unwrap()
            .success()
    );
}

/// Threads that open and close stores while flushers run.
#[test]
fn stores_close_while_their_flushers_work() {
    for round in 0..40u64 {
        let window = Duration::from_micros(200 + round * 20);
        let domain = [Domain::Dram, Domain::File][round as usize % 2];
        let options = StoreOptions::new().domain(domain).buffered_window(window);
        let mut fixture = fixture(options);
        let root = fixture.root();
        for value in 0..200 {
            put(
                fixture.pool(),
                Durability::Buffered,
                &raw mut root.count,
                round + value,
            );
        }
        fixture.reopen(StoreOptions::new());
        assert_eq!(fixture.root().count, round + 199);
    }
}

#[test]
fn threads_that_buffer_and_commit_and_sync_lose_nothing() {
    for domain in [Domain::Dram, Domain::File] {
        let options = StoreOptions::new()
            .domain(domain)
            .buffered_window(Duration::from_millis(1));
        let mut fixture = fixture(options);
        let root = fixture.root();
        let (table, pool) = (Mutex::new((&raw mut root.table).addr()), fixture.pool());
        let rounds = if domain == Domain::File { 300 } else { 3000 };
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let table = &table;
                scope.spawn(move || {
                    for round in 0..rounds {
                        let table = table.lock().unwrap();
                        let cell = |at: usize| {
                            std::ptr::with_exposed_provenance_mut::<u64>(*table + 8 * at)
                        };
                        let durability = match (round + thread) % 5 {
                            0 => Durability::Durable,
                            _ => Durability::Buffered,
                        };
                        put(pool, durability, cell(0), unsafe { *cell(0) } + 1);
                        drop(table);
                        if round % 50 == thread {
                            pool.sync().unwrap();
                        }
                    }
                });
            }
        });
        fixture.reopen(StoreOptions::new());
        assert_eq!(fixture.root().table[0], 4 * rounds as u64);
    }
}

#[test]
fn a_failed_sync_poisons_the_store_and_everybody_is_told() {
    let options = StoreOptions::new()
        .domain(Domain::File)
        .buffered_window(HOUR);
    let fixture = fixture(options);
    let (pool, root) = (fixture.pool(), &raw mut *fixture.root());
    let cell = |at: usize| unsafe { &raw mut (*root).table[at] };
    let is_poisoned = |result: Result<(), Error>| {
        assert!(matches!(result, Err(Error::Poisoned { .. })), "{result:?}")
    };
    let running = |durability| unsafe {
        let running = pool.begin_with(durability).unwrap();
        running.add(cell(1)).unwrap();
        running
    };
    let path = fixture.store.as_ref().unwrap().info().path.clone();
    put(pool, Durability::Buffered, cell(0), 1);
    std::thread::scope(|scope| {
        // One that began before must not build on what is lost.
        let began = running(Durability::Buffered);
        let fault = inject::fail_after(Operation::Sync, 0, &path);
        scope.spawn(|| is_poisoned(pool.sync())).join().unwrap();
        drop(fault);
        unsafe { cell(1).write(2) };
        is_poisoned(began.commit());
        assert_eq!(unsafe { *cell(1) }, 0, "it was rolled back");
    });
    is_poisoned(pool.sync());
    is_poisoned(buffered(pool, |_| Ok(())));
}

#[test]
fn without_room_nothing_that_waits_is_lost() {
    for (domain, logged) in [(Domain::Dram, 64), (Domain::File, 48)] {
        let options = StoreOptions::new().domain(domain).buffered_window(HOUR);
        let mut fixture = fixture(options.clone());
        let pool = fixture.pool();
        let block = pool
            .transaction(|tx| tx.alloc_bytes(pool, 0, 9 << 20, 8))
            .unwrap();
        // A log as small as they are made.
        fixture.reopen(options);
        let (pool, root) = (fixture.pool(), &raw mut *fixture.root());
        let path = fixture.store.as_ref().unwrap().info().path.clone();
        put(
            pool,
            Durability::Buffered,
            unsafe { &raw mut (*root).count },
            3,
        );
        let fault = inject::fail_after(Operation::Grow, 0, &path);
        // Larger than all the log there is: what waits comes back out of its record, or is a record of its own in the
        // group.
        let refused = pool.transaction(|tx| unsafe {
            tx.add_bytes(block, 9 << 20, durum::Announce::Clobber)?;
            block.write_bytes(1, 9 << 20);
            Ok::<_, Error>(())
        });
        assert!(matches!(refused, Err(Error::LogFull { .. })), "{refused:?}");
        put(
            pool,
            Durability::Buffered,
            unsafe { &raw mut (*root).table[3] },
            4,
        );
        // What there is has to do, once it is home.
        assert_eq!(spent(|| pool.sync().unwrap()).bytes_logged, logged);
        drop(fault);
        fixture.reopen(StoreOptions::new());
        assert_eq!((fixture.root().count, fixture.root().table[3]), (3, 4));
    }
}
