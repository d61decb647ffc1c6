//! Pointers from one pool to another one of the store, which is not open (Puddles, EuroSys'24, §3.5 and §4.4).

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::{Barrier, Mutex};
use std::time::{Duration, Instant};

use durum::{Domain, Engine, Error, Follow, Pool, PoolOptions, PuddleMapping, Store, StoreOptions};

use crate::fixture::{IN_MEMORY, Random, WAYS, copy, domains, everywhere, pool_options};
use crate::support::{command, directory};

/// One fills a puddle.
#[repr(C)]
pub struct Block {
    pub index: u64,
    pub words: [u64; 150_000],
}
durum::describe!(Block as "pointers block" { index, words });

pub const BLOCKS: usize = 6;

#[repr(C)]
pub struct Links {
    pub to: [*mut Block; BLOCKS],
}
durum::describe!(Links as "pointers links" { to });

pub fn options(domain: Domain, way: PuddleMapping) -> StoreOptions {
    let options = StoreOptions::new().domain(domain).mapping(way);
    options.follow(Follow::Writing)
}

/// Makes pools: each but "database" has blocks, whose places are in its root and in a root of "database"'s.
pub fn make(path: &Path, engine: Engine, domain: Domain, pools: &[&str]) {
    let store = Store::create(path, options(domain, PuddleMapping::Eager)).unwrap();
    let database = store.create_pool("database", pool_options(engine)).unwrap();
    #[repr(C)]
    struct Directory {
        pools: [*mut Links; 8],
    }
    durum::describe!(Directory as "pointers directory" { pools });
    let directory = database.root::<Directory>().unwrap();
    for (number, name) in pools.iter().enumerate() {
        let pool = store.create_pool(name, pool_options(engine)).unwrap();
        let links = pool.root::<Links>().unwrap();
        for index in 0..BLOCKS {
            pool.transaction(|tx| unsafe {
                let block = tx.alloc_in::<Block>(&pool)?;
                tx.add_bytes(block.cast(), 4096, durum::Announce::Clobber)?;
                block.cast::<[u64; 512]>().write([0; 512]);
                (*block).index = (100 * number + index) as u64;
                tx.add(links)?;
                (*links).to[index] = block;
                Ok::<_, Error>(())
            })
            .unwrap();
        }
        database
            .transaction(|tx| unsafe {
                tx.add(directory)?;
                (*directory).pools[number] = links;
                Ok::<_, Error>(())
            })
            .unwrap();
    }
    drop(database);
    store.close().unwrap();
}

/// Opens the database alone. The links of the others, which are not open.
pub fn open(path: &Path, options: StoreOptions) -> Result<(Store, Pool, Vec<*mut Links>), Error> {
    let store = Store::open(path, options)?;
    let database = store.open_pool("database", PoolOptions::new())?;
    let id = database.root_type()?.unwrap();
    let directory = database.root_bytes(id, 64, 8)?.cast::<*mut Links>();
    let links = (0..8).map(|number| unsafe { *directory.add(number) });
    let links = links.filter(|links| !links.is_null()).collect();
    Ok((store, database, links))
}

/// A word of a block that a test may use.
fn word(links: *mut Links, index: usize, word: usize) -> *mut u64 {
    unsafe { (&raw mut (*(*links).to[index]).words[word]) }
}

#[test]
fn they_open_the_pool_in_every_way_and_it_is_the_one_that_open_pool_gives() {
    everywhere(|dir, engine, domain| {
        let path = dir.join("store");
        make(&path, engine, domain, &["events"]);
        for (round, way) in (1..).zip(WAYS) {
            let (store, database, links) = open(&path, options(domain, way)).unwrap();
            for index in (0..BLOCKS).rev() {
                assert_eq!(unsafe { (*(*links[0]).to[index]).index }, index as u64);
            }
            let events = store.open_pool("events", PoolOptions::new()).unwrap();
            assert_eq!(Pool::key_at(links[0].addr()), Some(events.key()));
            let reads = store.open_pool("events", PoolOptions::new().read_only(true));
            assert!(matches!(
                reads,
                Err(Error::Store(durum::StoreError::PoolOpen { .. }))
            ));
            events
                .transaction(|tx| unsafe {
                    tx.add(word(links[0], 3, 9))?;
                    *word(links[0], 3, 9) += 1;
                    Ok::<_, Error>(())
                })
                .unwrap();
            drop((database, events));
            // The links are open yet, by the store's own hand.
            assert_eq!(unsafe { *word(links[0], 3, 9) }, round);
            store.close().unwrap();
        }
        let report = durum_service::check(&path, &Default::default()).unwrap();
        assert_eq!(report.findings, []);
    });
}

/// Each call that is given an address, and the transaction that was begun on another pool.
#[test]
fn calls_open_the_pool_and_a_transaction_takes_both() {
    for engine in [Engine::Shadow, Engine::Hybrid] {
        for domain in domains() {
            let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
            let path = dir.path().join("store");
            make(&path, engine, domain, &["one", "two", "three", "four"]);
            let places = {
                let (store, _database, links) = open(&path, options(domain, WAYS[0])).unwrap();
                let places = links.iter().map(|links| word(*links, 2, 7));
                let places: Vec<*mut u64> = places.collect();
                let places = <[*mut u64; 4]>::try_from(places).unwrap();
                drop(store);
                places
            };
            for (round, way) in (1..).zip(WAYS) {
                let (store, database, links) = open(&path, options(domain, way)).unwrap();
                let open_now = || {
                    let pools = (0..4).filter(|pool| Pool::key_at(links[*pool].addr()).is_some());
                    pools.collect::<Vec<_>>()
                };
                assert!(!database.holds(places[0].cast(), 8));
                assert!(
                    database.touch(places[0], 8).is_err(),
                    "it is not this pool's"
                );
                assert_eq!(open_now(), [0; 0], "a question opens nothing");
                database
                    .transaction(|tx| unsafe {
                        tx.add(places[0])?;
                        *places[0] += 1;
                        tx.set(places[1], round)?;
                        Ok::<_, Error>(())
                    })
                    .unwrap();
                assert_eq!(open_now(), [0, 1]);
                assert_eq!(Pool::holding(places[2].addr()).unwrap().name(), "three");
                let failed: Result<(), Error> = database.transaction(|tx| unsafe {
                    tx.add(places[3])?;
                    *places[3] = 99;
                    *places[0] = 98;
                    Err(Error::NoTransaction)
                });
                assert!(failed.is_err());
                assert_eq!(open_now(), [0, 1, 2, 3]);
                assert_eq!(unsafe { *places[3] }, 0);
                drop(database);
                store.close().unwrap();
            }
            let never = options(domain, PuddleMapping::Eager).follow(Follow::Never);
            let (_store, database, _) = open(&path, never).unwrap();
            let refused = database.transaction(|tx| unsafe { tx.add(places[0]) });
            assert!(
                matches!(refused, Err(Error::NotInPool { .. })),
                "{refused:?}"
            );
        }
    }
}

#[test]
fn what_was_opened_so_is_let_go_and_opened_again() {
    everywhere(|dir, engine, domain| {
        let path = dir.join("store");
        make(&path, engine, domain, &["events", "others"]);
        let (store, _database, links) = open(&path, options(domain, WAYS[0])).unwrap();
        for round in 1..4 {
            let add = |tx: &durum::Tx| unsafe {
                tx.add(word(links[0], 1, 1))?;
                *word(links[0], 1, 1) += 1;
                Ok::<_, Error>(())
            };
            let events = Pool::holding(links[0].addr()).unwrap();
            events.transaction(add).unwrap();
            drop(events);
            assert!(store.remove_pool("events").is_err());
            store.let_go();
            assert_eq!(Pool::key_at(links[0].addr()), None);
            assert_eq!(unsafe { *word(links[0], 1, 1) }, round);
        }
        store.let_go();
        store.remove_pool("events").unwrap();
        assert_eq!(unsafe { (*(*links[1]).to[0]).index }, 100);
    });
}

/// In the middle of transactions, updates and sections, at pools that others open and close by their names.
#[test]
fn sixteen_threads_at_pools_that_come_and_go() {
    const THREADS: usize = 16;
    const STEPS: usize = 60;
    let names = ["a", "b", "c", "d", "e", "f"];
    for domain in domains() {
        let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
        let path = dir.path().join("store");
        make(&path, Engine::Shadow, domain, &names);
        let mut counts = vec![[0; 6]; THREADS];
        for way in WAYS {
            let (store, database, links) = open(&path, options(domain, way)).unwrap();
            let links: Vec<usize> = links.iter().map(|links| links.addr()).collect();
            let links = |pool: usize| std::ptr::with_exposed_provenance_mut::<Links>(links[pool]);
            let start = Barrier::new(THREADS);
            std::thread::scope(|scope| {
                for (thread, counts) in counts.iter_mut().enumerate() {
                    let (store, database, start) = (&store, &database, &start);
                    scope.spawn(move || {
                        let mut random = Random(thread as u64 + 77);
                        start.wait();
                        for step in 0..STEPS {
                            let pool = random.below(names.len());
                            let place = || word(links(pool), random.0 as usize % BLOCKS, thread);
                            match (thread % 4, step % 8) {
                                (0, 3) => store.let_go(),
                                (0, _) => {
                                    let opened = store.open_pool(names[pool], PoolOptions::new());
                                    assert_eq!(opened.unwrap().name(), names[pool]);
                                }
                                (1, 7) => unsafe {
                                    let read = || Ok::<_, Error>(place().read_volatile());
                                    database.section(|_| read()).unwrap();
                                },
                                (1, _) => {
                                    let read = || unsafe { place().read_volatile() };
                                    let index = unsafe { (*(*links(pool)).to[0]).index };
                                    assert_eq!(index, 100 * pool as u64);
                                    let _ = database.read(read).unwrap();
                                }
                                _ => {
                                    counts[pool] += 1;
                                    let place = std::ptr::with_exposed_provenance_mut::<u64>(
                                        word(links(pool), 0, thread).expose_provenance(),
                                    );
                                    (database)
                                        .transaction(|tx| unsafe {
                                            tx.add(place)?;
                                            *place += 1;
                                            Ok::<_, Error>(())
                                        })
                                        .unwrap();
                                }
                            }
                        }
                    });
                }
            });
            drop(database);
            store.close().unwrap();
        }
        let (_store, _database, links) = open(&path, options(domain, WAYS[1])).unwrap();
        for (thread, counts) in counts.iter().enumerate() {
            for (pool, count) in counts.iter().enumerate() {
                let found = unsafe { *word(links[pool], 0, thread) };
                assert_eq!(found, *count, "thread {thread}, pool {pool}");
            }
        }
    }
}

/// Both pools of a copy have moved when it is opened, and the pointer between them with them.
#[test]
fn they_lead_to_where_the_pool_has_moved() {
    everywhere(|dir, engine, domain| {
        let (one, other) = (dir.join("one"), dir.join("other"));
        make(&one, engine, domain, &["events"]);
        copy(&one, &other);
        for way in WAYS {
            let (first, database, links) = open(&one, options(domain, way)).unwrap();
            let (second, moved, moved_links) = open(&other, options(domain, way)).unwrap();
            assert_ne!(links[0], moved_links[0]);
            for index in 0..BLOCKS {
                assert_eq!(
                    unsafe { (*(*moved_links[0]).to[index]).index },
                    index as u64
                );
            }
            assert_eq!(Pool::key_at(links[0].addr()), None, "it is the copy's");
            assert_eq!(unsafe { (*(*links[0]).to[1]).index }, 1);
            drop((database, moved));
            first.close().unwrap();
            second.close().unwrap();
            std::fs::remove_dir_all(&other).unwrap();
            copy(&one, &other);
        }
    });
}

/// Two stores that could not make way for each other have something there: which one is meant nobody knows.
#[test]
fn an_address_that_two_stores_have_is_refused() {
    let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
    let (one, other) = (dir.path().join("one"), dir.path().join("other"));
    make(&one, Engine::Hybrid, Domain::Dram, &["events"]);
    let options = options(Domain::Dram, PuddleMapping::OnDemand);
    let store = Store::open(&one, options.clone()).unwrap();
    let untyped = store.open_pool("events", PoolOptions::new()).unwrap();
    (untyped.transaction(|tx| tx.alloc_bytes(&untyped, 0, 64, 8))).unwrap();
    drop(untyped);
    store.close().unwrap();
    copy(&one, &other);
    let (_first, database, links) = open(&one, options.clone()).unwrap();
    let _second = Store::open(&other, options).unwrap();
    let refused = database.transaction(|tx| unsafe { tx.add(links[0]) });
    let conflict = matches!(
        &refused,
        Err(Error::Store(durum::StoreError::AddressConflict { .. }))
    );
    assert!(conflict, "{refused:?}");
}

/// What a process says in its log, and how it ends.
fn fate(name: &str, dir: &Path) -> (std::process::ExitStatus, String) {
    let status = command(name, dir).status().unwrap();
    let log = std::fs::read_to_string(dir.join("log")).unwrap_or_default();
    (status, log)
}

fn log_to_file(dir: &Path) {
    let file = std::fs::File::create(dir.join("log")).unwrap();
    let log = tracing_subscriber::fmt().with_writer(Mutex::new(file));
    log.with_ansi(false).init();
}

#[test]
fn a_pool_that_cannot_be_had_is_sigsegv_and_the_log_says_why() {
    for way in ["userfaultfd", "signal", "eager"] {
        let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
        let path = dir.path().join("store");
        make(&path, Engine::Shadow, Domain::Dram, &["events"]);
        let root = durum_service::ReadOnlyStore::open(&path).unwrap();
        let events = root.pools().into_iter().find(|pool| pool.name == "events");
        std::fs::remove_file(path.join(format!("puddles/{}", events.unwrap().root_puddle)))
            .unwrap();
        std::fs::write(dir.path().join("way"), way).unwrap();
        let (status, log) = fate("pointers::process_that_follows", dir.path());
        assert_eq!(status.signal(), Some(libc::SIGSEGV), "{way} {status} {log}");
        let tells = ["ERROR", "pool=\"events\"", "is missing", "address=0x2"];
        assert!(tells.iter().all(|told| log.contains(told)), "{log}");

        // A handler of the program's gets the signal, and the log says the same.
        std::fs::write(dir.path().join("handles"), "").unwrap();
        let (status, log) = fate("pointers::process_that_follows", dir.path());
        assert_eq!(status.code(), Some(42), "{way} {status} {log}");
        assert!(tells.iter().all(|told| log.contains(told)), "{log}");
    }
}

#[test]
#[ignore = "another test starts it in a process of its own"]
fn process_that_follows() {
    extern "C" fn handler(_: libc::c_int) {
        unsafe { libc::_exit(42) };
    }
    let Some(dir) = directory() else { return };
    log_to_file(&dir);
    if dir.join("handles").exists() {
        unsafe { libc::signal(libc::SIGSEGV, handler as *const () as usize) };
    }
    // SAFETY: this process has one thread that matters.
    unsafe {
        std::env::set_var(
            "DURUM_MAPPING",
            std::fs::read_to_string(dir.join("way")).unwrap(),
        );
        libc::prctl(libc::PR_SET_DUMPABLE, 0);
    }
    let follow = StoreOptions::new().follow(Follow::Writing);
    let (_store, _database, links) = open(&dir.join("store"), follow).unwrap();
    unsafe { links[0].read_volatile() };
}

/// By the default of each way, and with a store to a pool that is only read.
#[test]
fn what_is_not_followed_or_not_written_is_sigsegv() {
    for (case, does) in [
        ("eager", "load"),
        ("reading", "store"),
        ("signal", "outside"),
    ] {
        let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
        make(
            &dir.path().join("store"),
            Engine::Hybrid,
            Domain::Dram,
            &["events"],
        );
        std::fs::write(dir.path().join("case"), format!("{case} {does}")).unwrap();
        let (status, log) = fate("pointers::process_that_may_not", dir.path());
        assert_eq!(
            status.signal(),
            Some(libc::SIGSEGV),
            "{case} {status} {log}"
        );
        let opens = log.contains("an access led to a pool that was not open: it is now");
        assert_eq!(opens, case == "reading", "{log}");
        assert!(!log.contains("ERROR"), "{log}");
    }
}

#[test]
#[ignore = "another test starts it in a process of its own"]
fn process_that_may_not() {
    let Some(dir) = directory() else { return };
    log_to_file(&dir);
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
    let case = std::fs::read_to_string(dir.join("case")).unwrap();
    let options = match case.split_once(' ').unwrap().0 {
        "eager" => StoreOptions::new().mapping(PuddleMapping::Eager),
        "signal" => StoreOptions::new().mapping(PuddleMapping::Signal),
        _ => StoreOptions::new().follow(Follow::Reading),
    };
    let (_store, _database, links) = open(&dir.join("store"), options).unwrap();
    match case.split_once(' ').unwrap().1 {
        "store" => {
            let first = unsafe { (*links[0]).to[0] };
            assert_eq!(unsafe { (*first).index }, 0);
            // The log is told by another thread.
            std::thread::sleep(Duration::from_millis(200));
            unsafe { (&raw mut (*first).index).write_volatile(1) };
        }
        "outside" => {
            let outside = links[0].wrapping_byte_add(1 << 39);
            unsafe { outside.read_volatile() };
        }
        _ => {
            unsafe { links[0].read_volatile() };
        }
    }
}

/// A thread holds what the log needs while it is stopped, and another one has something to log in a call that the first
/// one waits for: a store that cannot make way for another one says so.
#[test]
fn whoever_holds_the_log_while_it_is_stopped_gets_what_it_waits_for() {
    let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
    let (one, other) = (dir.path().join("store"), dir.path().join("other"));
    make(&one, Engine::Hybrid, Domain::Dram, &[]);
    let store = Store::open(&one, StoreOptions::new()).unwrap();
    let pool = store.open_pool("database", PoolOptions::new()).unwrap();
    (pool.transaction(|tx| tx.alloc_bytes(&pool, 0, 64, 8))).unwrap();
    drop(pool);
    store.close().unwrap();
    copy(&one, &other);
    // No copy has this one, and so nothing is in its way.
    let store = Store::open(&one, StoreOptions::new()).unwrap();
    let pool = store
        .create_pool("events", pool_options(Engine::Hybrid))
        .unwrap();
    let root = pool.root::<u64>().unwrap().expose_provenance();
    drop(pool);
    store.close().unwrap();
    std::fs::write(dir.path().join("root"), root.to_string()).unwrap();
    let mut child = command("pointers::process_that_holds_the_log", dir.path());
    let mut child = child.spawn().unwrap();
    let began = Instant::now();
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break status,
            None if began.elapsed() > Duration::from_secs(60) => {
                child.kill().unwrap();
                panic!("it waits for itself");
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    assert!(status.success(), "{status}");
}

#[test]
#[ignore = "another test starts it in a process of its own"]
fn process_that_holds_the_log() {
    static LOG: Mutex<()> = Mutex::new(());
    struct Log(usize);
    impl std::io::Write for &Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _held = LOG.lock().unwrap();
            LINES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(bytes.len().max(self.0))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    static LINES: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
    static WRITER: Log = Log(0);
    let Some(dir) = directory() else { return };
    let log =
        tracing_subscriber::fmt().with_max_level(tracing_subscriber::filter::LevelFilter::DEBUG);
    log.with_writer(|| &WRITER).init();
    let root = std::fs::read_to_string(dir.join("root")).unwrap();
    let root: usize = root.parse().unwrap();
    let options = options(Domain::Dram, PuddleMapping::OnDemand);
    let (store, _database, _) = open(&dir.join("store"), options.clone()).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..200 {
                let held = LOG.lock().unwrap();
                let root = std::ptr::with_exposed_provenance::<u64>(root);
                assert_eq!(unsafe { root.read_volatile() }, 0);
                drop(held);
                store.let_go();
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        while !stop.load(std::sync::atomic::Ordering::Relaxed) {
            drop(Store::open(dir.join("other"), options.clone()).unwrap());
        }
    });
    let lines = LINES.load(std::sync::atomic::Ordering::Relaxed);
    // As many as come while the other one works, which is up to the system.
    assert!(lines > 10, "only {lines}");
}
