//! Private pages are given back, and nobody notices: memory stays bounded, and no value ever goes back.
//!
//! What could go wrong: a page goes although home is older, or will be changed by a record that waits; a store without
//! a transaction is lost in between; a section does not find what was written to a page that was given back; a crash in
//! the middle.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod support;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use durum::{
    Domain, Durability, Engine, Error, PageTracking, Pool, PoolOptions, Site, Store, StoreOptions,
};
use durum_persist::record::{Recorder, RecorderOptions};

const PIECE: usize = 1 << 20;
const PIECES: usize = 512;
const PAGE: usize = 4096;

/// An area of pieces that lie in puddles of many sizes.
#[repr(C)]
struct Root {
    pieces: [*mut u64; PIECES],
    lock: u64,
    objects: [*mut [u64; 9]; 64],
    count: u64,
}
durum::describe!(Root as "memory root" { pieces, lock, objects, count });

fn parent(domain: Domain) -> &'static str {
    match domain {
        Domain::File => env!("CARGO_TARGET_TMPDIR"),
        _ => "/dev/shm",
    }
}

fn pool_options() -> PoolOptions {
    PoolOptions::new().engine(Engine::Shadow)
}

struct Fixture {
    pool: Option<Pool>,
    store: Option<Store>,
    path: PathBuf,
    options: StoreOptions,
    pool_options: PoolOptions,
    _dir: tempfile::TempDir,
}

impl Fixture {
    fn new(domain: Domain, private_max: u64) -> Self {
        Self::with(domain, private_max, pool_options())
    }

    fn with(domain: Domain, private_max: u64, pool_options: PoolOptions) -> Self {
        let dir = tempfile::tempdir_in(parent(domain)).unwrap();
        let path = dir.path().join("store");
        let options = StoreOptions::new()
            .domain(domain)
            .log_max(4 << 20)
            .private_max(private_max);
        let store = Store::create(&path, options.clone()).unwrap();
        let pool = store.create_pool("pool", pool_options.clone()).unwrap();
        Self {
            pool: Some(pool),
            store: Some(store),
            path,
            options,
            pool_options,
            _dir: dir,
        }
    }

    fn pool(&self) -> Pool {
        self.pool.clone().unwrap()
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn root(&self) -> &'static mut Root {
        root(&self.pool())
    }

    /// Until no transaction of another thread is in the way.
    fn give_back(&self) -> usize {
        loop {
            if let Some(pages) = self.store().give_pages_back().unwrap() {
                return pages;
            }
        }
    }

    fn reopen(&mut self) {
        self.pool = None;
        self.store.take().unwrap().close().unwrap();
        let found = durum_service::check(&self.path, &Default::default()).unwrap();
        assert!(found.is_sound(), "{found:?}");
        let store = Store::open(&self.path, self.options.clone()).unwrap();
        let pool = store.open_pool("pool", self.pool_options.clone()).unwrap();
        (self.store, self.pool) = (Some(store), Some(pool));
    }
}

fn root(pool: &Pool) -> &'static mut Root {
    unsafe { &mut *pool.root::<Root>().unwrap() }
}

/// Allocates a piece that holds `word(index)` at each place.
fn make_piece(pool: &Pool, at: usize, word: impl Fn(usize) -> u64) {
    let root = root(pool);
    pool.transaction(|tx| unsafe {
        let piece = tx.alloc_bytes(pool, 0, PIECE, 8)?.cast::<u64>();
        for index in 0..PIECE / 8 {
            piece.add(index).write(word(index));
        }
        tx.set(&raw mut root.pieces[at], piece)
    })
    .unwrap();
}

/// A word that no transaction touches.
fn lock(root: &Root) -> &'static AtomicU64 {
    unsafe { AtomicU64::from_ptr((&raw const root.lock).cast_mut()) }
}

fn piece(root: &Root, at: usize) -> &'static mut [u64] {
    unsafe { std::slice::from_raw_parts_mut(root.pieces[at], PIECE / 8) }
}

/// Bytes of anonymous memory of this process.
fn anonymous() -> usize {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").unwrap();
    let line = rollup.lines().find(|line| line.starts_with("Anonymous:"));
    let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
    kilobytes.parse::<usize>().unwrap() << 10
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % end
    }
}

/// One test at a time: they measure memory and attach recorders.
static ALONE: Mutex<()> = Mutex::new(());

/// `None` while all tests run once more on another engine: these have their own.
fn alone() -> Option<std::sync::MutexGuard<'static, ()>> {
    let alone = || {
        ALONE
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    };
    (support::engine() == Engine::Shadow).then(alone)
}

const DOMAINS: [Domain; 2] = [Domain::Dram, Domain::File];

/// What the system says of the mapping that holds an address: its flags, two letters each.
fn mapping_flags(address: usize) -> Vec<String> {
    let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let mut is_it = false;
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if let Some((start, end)) = first.split_once('-')
            && let Ok(start) = usize::from_str_radix(start, 16)
            && let Ok(end) = usize::from_str_radix(end, 16)
        {
            is_it = (start..end).contains(&address);
        } else if is_it && first == "VmFlags:" {
            return words.map(str::to_owned).collect();
        }
    }
    panic!("{address:#x} is not mapped");
}

/// Else a pool takes as much of what the machine has to give as it is large: 64 GiB could not be opened.
#[test]
fn private_mappings_reserve_no_memory() {
    for domain in [Domain::Dram, Domain::File] {
        let dir = tempfile::tempdir_in(parent(domain)).unwrap();
        let options = StoreOptions::new().domain(domain);
        let store = Store::create(dir.path().join("store"), options).unwrap();
        let pool = store.create_pool("pool", pool_options()).unwrap();
        let flags = mapping_flags(pool.root::<Root>().unwrap().addr());
        assert!(flags.iter().any(|flag| flag == "nr"), "{flags:?}");
        assert!(!flags.iter().any(|flag| flag == "sh"), "{flags:?}");
    }
}

#[test]
fn a_pool_many_times_the_limit_is_filled_and_changed() {
    let Some(_alone) = alone() else { return };
    for domain in DOMAINS {
        const LIMIT: usize = 16 << 20;
        /// Large pages that are being filled, the log and a batch, what the test itself has.
        const SLACK: usize = 40 << 20;
        let mut fixture = Fixture::new(domain, LIMIT as u64);
        let before = anonymous();
        let mut most = 0;
        for at in 0..192 {
            make_piece(&fixture.pool(), at, |index| (at * PIECE + index) as u64);
            most = most.max(anonymous().saturating_sub(before));
        }
        let filled = most;
        assert!(filled < LIMIT + SLACK, "{domain:?}: filling took {filled}");
        // Words all over, in pages that were given back or are just being.
        let mut model = BTreeMap::new();
        let mut random = Random(7);
        let pool = fixture.pool();
        let root = fixture.root();
        for tag in 0..match domain {
            Domain::File => 100,
            _ => 3000,
        } {
            pool.transaction(|tx| unsafe {
                for _ in 0..20 {
                    let (at, index) = (random.below(192), random.below(PIECE / 8));
                    let word = &raw mut piece(root, at)[index];
                    let expected = model.get(&(at, index)).copied();
                    assert_eq!(*word, expected.unwrap_or((at * PIECE + index) as u64));
                    tx.add(word)?;
                    *word = tag << 32 | index as u64;
                    model.insert((at, index), *word);
                }
                Ok::<_, Error>(())
            })
            .unwrap();
            if tag % 64 == 0 {
                most = most.max(anonymous().saturating_sub(before));
            }
        }
        let (pages, given_back) = fixture.store().private_pages();
        println!(
            "{domain:?}: at most {} KiB while filling, {} in all; {pages} pages counted, {given_back} given back",
            filled >> 10,
            most >> 10
        );
        assert!(most < LIMIT + SLACK, "{domain:?}: {most}");
        assert!(given_back > 192 * 256 / 2, "{given_back}");
        let verify = |root: &Root| {
            for at in 0..192 {
                for (index, word) in piece(root, at).iter().enumerate() {
                    let expected = model.get(&(at, index)).copied();
                    assert_eq!(*word, expected.unwrap_or((at * PIECE + index) as u64));
                }
            }
        };
        verify(root);
        drop(pool);
        fixture.reopen();
        verify(fixture.root());
    }
}

/// Every kind of change between two times that all pages are given back, against a model. Fresh puddles, and those of a
/// pool that was opened.
#[test]
fn nothing_changes_when_pages_are_given_back() {
    let Some(_alone) = alone() else { return };
    for (domain, tracking, private_max) in [
        (Domain::Dram, PageTracking::Userfaultfd, u64::MAX),
        (Domain::Dram, PageTracking::Mprotect, 0),
        (Domain::File, PageTracking::Userfaultfd, 0),
        (Domain::File, PageTracking::Mprotect, u64::MAX),
    ] {
        const AREA: usize = 6;
        let mut fixture =
            Fixture::with(domain, private_max, pool_options().page_tracking(tracking));
        for at in 0..AREA {
            make_piece(&fixture.pool(), at, |_| 0);
        }
        let mut model = vec![vec![0u64; PIECE / 8]; AREA];
        let mut objects = [None; 64];
        let mut random = Random(11);
        let (mut given_back, mut given_back_in_all) = (0, 0);
        for round in 0..match domain {
            Domain::File => 200,
            _ => 750,
        } {
            let pool = fixture.pool();
            let root = fixture.root();
            let tag = round as u64 + 1;
            let mut places: Vec<(usize, usize)> = (0..1 + random.below(12))
                .map(|_| (random.below(AREA), random.below(60) * 509))
                .collect();
            places.dedup();
            let durability = match random.below(3) {
                0 => Durability::Buffered,
                _ => Durability::Durable,
            };
            let change = |tx: &durum::Tx| unsafe {
                for (at, index) in &places {
                    let word = &raw mut piece(root, *at)[*index];
                    tx.add(word)?;
                    *word = tag;
                }
                Ok::<_, Error>(())
            };
            match random.below(12) {
                0..=3 => pool.transaction_with(durability, change).unwrap(),
                4 => {
                    let result = pool.transaction(|tx| {
                        change(tx)?;
                        let large = tx.alloc_bytes(&pool, 0, 9000, 8)?;
                        unsafe { large.write_bytes(0xee, 9000) };
                        tx.abort::<()>()
                    });
                    assert!(matches!(result, Err(Error::Aborted)));
                    places.clear();
                }
                5 | 6 => unsafe {
                    pool.section(|_| {
                        for (at, index) in &places {
                            piece(root, *at)[*index] = tag;
                        }
                        Ok::<_, Error>(())
                    })
                    .unwrap();
                },
                7 => {
                    let result = unsafe {
                        pool.section(|_| {
                            for (at, index) in &places {
                                piece(root, *at)[*index] = tag;
                            }
                            Err::<(), _>(Error::Aborted)
                        })
                    };
                    assert!(matches!(result, Err(Error::Aborted)));
                    places.clear();
                }
                8 => {
                    for (at, index) in &places {
                        let word = &raw mut piece(root, *at)[*index];
                        unsafe { *word = tag };
                        if random.below(2) == 0 {
                            // Not durable yet, and not lost either.
                            given_back += fixture.give_back();
                            assert_eq!(unsafe { *word }, tag);
                        }
                        unsafe { pool.persist(word, 8).unwrap() };
                    }
                }
                9 => pool
                    .transaction_with(durability, |tx| unsafe {
                        for (at, index) in &places {
                            tx.set(&raw mut piece(root, *at)[*index], tag)?;
                        }
                        Ok::<_, Error>(())
                    })
                    .unwrap(),
                _ => {
                    let slot = random.below(64);
                    let object = &raw mut root.objects[slot];
                    pool.transaction_with(durability, |tx| unsafe {
                        match objects[slot].take() {
                            Some(value) => {
                                assert_eq!(**object, [value; 9]);
                                tx.free(*object)?;
                                tx.set(object, std::ptr::null_mut())
                            }
                            None => {
                                objects[slot] = Some(tag);
                                let fresh = tx.alloc_bytes(&pool, 0, 72, 8)?.cast::<[u64; 9]>();
                                *fresh = [tag; 9];
                                tx.set(object, fresh)
                            }
                        }
                    })
                    .unwrap();
                    places.clear();
                }
            }
            // What nobody announces is nobody's but the program's, and stays.
            lock(root).store(tag, Ordering::Relaxed);
            for (at, index) in places {
                model[at][index] = tag;
            }
            if random.below(3) == 0 {
                given_back += fixture.give_back();
            }
            assert_eq!(lock(root).load(Ordering::Relaxed), tag);
            let verify = |root: &Root| {
                for (at, words) in model.iter().enumerate() {
                    assert!(piece(root, at) == words, "round {round}, piece {at}");
                }
                for (slot, value) in objects.iter().enumerate() {
                    if let Some(value) = value {
                        assert_eq!(unsafe { *root.objects[slot] }, [*value; 9]);
                    }
                }
            };
            verify(root);
            if round % 100 == 99 {
                drop(pool);
                given_back_in_all += fixture.store().private_pages().1;
                fixture.reopen();
                verify(fixture.root());
            }
        }
        println!(
            "{domain:?}, {tracking:?}: {given_back_in_all} pages given back, {given_back} of them by hand"
        );
        assert!(given_back_in_all > 1000);
    }
}

#[test]
fn pages_that_differ_stay_in_memory_that_came_in_large_pages() {
    let Some(_alone) = alone() else { return };
    let fixture = Fixture::new(Domain::Dram, u64::MAX);
    let (pool, root) = (fixture.pool(), fixture.root());
    for at in 0..8 {
        make_piece(&pool, at, |index| index as u64);
    }
    // Nobody has announced these.
    for at in 2..4 {
        for index in (0..PIECE / 8).step_by(16 * 512) {
            piece(root, at)[index] = 77;
        }
    }
    piece(root, 6).fill(5);
    let given_back = fixture.give_back();
    let left = fixture.store().private_pages().0;
    assert!(given_back > 1000 && left >= 32, "{given_back} {left}");
    for at in 0..8 {
        for (index, word) in piece(root, at).iter().enumerate() {
            let expected = match at {
                2 | 3 if index % (16 * 512) == 0 => 77,
                6 => 5,
                _ => index as u64,
            };
            assert_eq!(*word, expected, "piece {at}, word {index}");
        }
    }
}

/// Threads with and without transactions, while others give pages back without end. Each word has one writer, who knows
/// what it holds.
fn stress(fixture: &Fixture, time: Duration, buffered: bool) -> u64 {
    const THREADS: usize = 3;
    let pool = fixture.pool();
    for at in 0..3 {
        make_piece(&pool, at, |_| 0);
    }
    let root = fixture.root();
    // So that large pages are gone, and the small ones are at stake.
    fixture.give_back();
    let stop = AtomicBool::new(false);
    let wrong = AtomicU64::new(0);
    let end = Instant::now() + time;
    let begin = Barrier::new(THREADS + 2);
    let given_back = AtomicU64::new(0);
    let root = &*root;
    let (pieces, lock) = (
        [0, 1, 2].map(|at| piece(root, at).as_mut_ptr().expose_provenance()),
        lock(root),
    );
    thread::scope(|scope| {
        for number in 0..THREADS {
            let (pool, stop, wrong, begin) = (&pool, &stop, &wrong, &begin);
            scope.spawn(move || {
                durum_persist::record::join_thread();
                begin.wait();
                let word = |page: usize| {
                    let base = pieces[page % 2] + page / 2 * PAGE;
                    std::ptr::with_exposed_provenance_mut::<u64>(base).wrapping_add(number * 8)
                };
                let mut random = Random(number as u64 + 5);
                let mut values = [0u64; 16];
                while !stop.load(Ordering::Relaxed) {
                    let page = random.below(16);
                    // Back to what it was, sooner or later: so home holds it again, and records in between do not.
                    let next = (values[page] + 1) % 2;
                    let durability = match buffered && random.below(2) == 0 {
                        true => Durability::Buffered,
                        false => Durability::Durable,
                    };
                    let done = pool.transaction_with(durability, |tx| unsafe {
                        let word = word(page);
                        if word.read_volatile() != values[page] {
                            wrong.fetch_add(1, Ordering::Relaxed);
                        }
                        tx.add(word)?;
                        word.write_volatile(next);
                        if random.below(8) == 0 {
                            return tx.abort();
                        }
                        Ok(())
                    });
                    match done {
                        Ok(()) => values[page] = next,
                        Err(Error::Aborted) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
        // Nobody announces these: a counter in each of some pages, and a lock.
        let (stop, wrong, begin, given_back) = (&stop, &wrong, &begin, &given_back);
        scope.spawn(move || {
            begin.wait();
            let mut values = [0u64; 16];
            let mut random = Random(99);
            while !stop.load(Ordering::Relaxed) {
                let page = random.below(16);
                let word = std::ptr::with_exposed_provenance_mut::<u64>(pieces[2] + page * PAGE);
                unsafe {
                    if word.read_volatile() != values[page] {
                        wrong.fetch_add(1, Ordering::Relaxed);
                    }
                    values[page] = u64::from(random.below(4) == 0);
                    word.write_volatile(values[page]);
                }
                if lock.swap(1, Ordering::AcqRel) != 0 {
                    wrong.fetch_add(1, Ordering::Relaxed);
                }
                lock.store(0, Ordering::Release);
            }
        });
        let pool = &pool;
        scope.spawn(move || {
            durum_persist::record::join_thread();
            begin.wait();
            let noted = std::ptr::with_exposed_provenance::<u64>(pieces[2]);
            // A machine that is busy with other things may give no page back in time.
            let has_enough = || given_back.load(Ordering::Relaxed) > 100;
            let is_over = |now| now >= end && has_enough() || now >= end + 20 * time;
            while !is_over(Instant::now()) && wrong.load(Ordering::Relaxed) == 0 {
                if let Some(pages) = fixture.store().give_pages_back().unwrap() {
                    given_back.fetch_add(pages as u64, Ordering::Relaxed);
                }
                // So that their pages count: a word of each that the other thread leaves alone.
                for page in 0..16 {
                    unsafe { pool.persist(noted.add(page * PAGE / 8 + 64), 8).unwrap() };
                }
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
    println!("{} pages given back", given_back.load(Ordering::Relaxed));
    let wrong = wrong.into_inner();
    assert!(wrong > 0 || given_back.into_inner() > 100);
    wrong
}

#[test]
fn values_never_go_back_under_threads() {
    let Some(_alone) = alone() else { return };
    for domain in DOMAINS {
        for buffered in [false, true] {
            let fixture = Fixture::new(domain, u64::MAX);
            let wrong = stress(&fixture, Duration::from_millis(400), buffered);
            assert_eq!(wrong, 0, "{domain:?}, buffered: {buffered}");
        }
    }
}

/// Threads that only load, without any transaction, from pages that are exchanged for others at that moment: from
/// memory in large pages, which is filled, given back and changed again. A counter never goes back, and what does not
/// change is always there.
#[test]
fn loads_notice_nothing() {
    let Some(_alone) = alone() else { return };
    const AT_ONCE: usize = 8;
    for domain in DOMAINS {
        let fixture = Fixture::new(domain, u64::MAX);
        let (pool, root) = (fixture.pool(), fixture.root());
        // How many pieces are there; where they are does not change.
        let made = AtomicU64::new(0);
        let stop = AtomicBool::new(false);
        let loads = AtomicU64::new(0);
        let root_address = (&raw const *root).expose_provenance();
        thread::scope(|scope| {
            for number in 0..2 {
                let (made, stop, loads) = (&made, &stop, &loads);
                scope.spawn(move || {
                    let root = std::ptr::with_exposed_provenance::<Root>(root_address);
                    let mut random = Random(number + 3);
                    let mut counters = vec![0; PIECES];
                    let mut count = 0;
                    while !stop.load(Ordering::Relaxed) {
                        let pieces = made.load(Ordering::Acquire) as usize;
                        if pieces == 0 {
                            continue;
                        }
                        // Mostly the last ones, which are large pages still.
                        let at = pieces - 1 - random.below(pieces.min(2 * AT_ONCE));
                        let page = random.below(PIECE / PAGE) * PAGE / 8;
                        unsafe {
                            let piece = (&raw const (*root).pieces[at]).read_volatile();
                            let constant = piece.add(page + 1).read_volatile();
                            assert_eq!(constant, (at * PIECE + page + 1) as u64);
                            let counter = piece.read_volatile();
                            assert!(counter >= counters[at], "{counter} after {}", counters[at]);
                            counters[at] = counter;
                        }
                        count += 1;
                    }
                    loads.fetch_add(count, Ordering::Relaxed);
                });
            }
            let end = Instant::now() + Duration::from_secs(1);
            let mut given_back = 0;
            while Instant::now() < end && made.load(Ordering::Relaxed) as usize + AT_ONCE < PIECES {
                let first = made.load(Ordering::Relaxed) as usize;
                for at in first..first + AT_ONCE {
                    let word = |index| match index {
                        0 => 0,
                        index => (at * PIECE + index) as u64,
                    };
                    make_piece(&pool, at, word);
                }
                made.store((first + AT_ONCE) as u64, Ordering::Release);
                for _ in 0..3 {
                    for at in first..first + AT_ONCE {
                        pool.transaction(|tx| unsafe {
                            let counter = root.pieces[at];
                            tx.add(counter)?;
                            *counter += 1;
                            Ok::<_, Error>(())
                        })
                        .unwrap();
                    }
                    given_back += fixture.give_back();
                }
            }
            stop.store(true, Ordering::Relaxed);
            assert!(given_back > 1000, "{given_back}");
        });
        println!("{domain:?}: {} loads", loads.into_inner());
    }
}

/// Steps that keep values from going back.
const STEPS: [Site; 3] = [
    Site("shadow.memory: close the gate"),
    Site("shadow.memory: apply every record"),
    Site("shadow.memory: hold stores up"),
];

/// Canaries: without any one of them the test above would fail.
#[test]
#[ignore = "a campaign of some seconds; of minutes where the machine is busy, as threads have to meet"]
fn each_step_is_needed() {
    let Some(_alone) = alone() else { return };
    for step in STEPS {
        let wrong = (0..60).map(|_| {
            let fixture = Fixture::new(Domain::Dram, u64::MAX);
            let options = RecorderOptions {
                skip: Some(step),
                ..RecorderOptions::default()
            };
            let recorder = Recorder::start(&fixture.path, options);
            let wrong = stress(&fixture, Duration::from_secs(1), false);
            drop(recorder.stop());
            wrong
        });
        let noticed = wrong.into_iter().position(|wrong| wrong > 0);
        println!("without {:?}: noticed after {noticed:?} rounds", step.0);
        assert!(noticed.is_some(), "nobody misses {:?}", step.0);
    }
}

/// A control group of the kernel that limits memory, of either version; `None` where this process may not make one.
struct Group(PathBuf);

impl Group {
    fn new(bytes: usize) -> Option<Self> {
        let name = format!("durum-test-{}", std::process::id());
        for (parent, limit) in [
            ("/sys/fs/cgroup", "memory.max"),
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        ] {
            let path = Path::new(parent).join(&name);
            if !Path::new(parent).join("cgroup.procs").exists()
                || std::fs::create_dir(&path).is_err()
            {
                continue;
            }
            let group = Group(path);
            let set = |file: &str, value: &str| {
                let path = group.0.join(file);
                path.exists() && std::fs::write(path, value).is_ok()
            };
            if set(limit, &bytes.to_string()) {
                // What does not fit is not to go to a swap area.
                set("memory.swap.max", "0");
                set("memory.swappiness", "0");
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

const LIMIT: usize = 96 << 20;
const LARGE: usize = 160;

/// Fills a pool of 160 MiB in a process that may have 96, changes it all over, and reads it.
fn works_in_little_memory(private_max: u64) {
    let Some(dir) = support::directory() else {
        return;
    };
    let group = std::fs::read_to_string(dir.join("group")).unwrap();
    let own = std::process::id().to_string();
    std::fs::write(Path::new(&group).join("cgroup.procs"), own).unwrap();
    let options = StoreOptions::new()
        .domain(Domain::File)
        .log_max(4 << 20)
        .private_max(private_max);
    let store = Store::open_or_create(dir.join("store"), options).unwrap();
    let pool = store.open_or_create_pool("pool", pool_options()).unwrap();
    let root = root(&pool);
    let value = |at: usize, index: usize| (at << 32 | index) as u64;
    for at in 0..LARGE {
        make_piece(&pool, at, |index| value(at, index));
    }
    let mut random = Random(3);
    // Few: each may take a page from the disk, and some systems read megabytes around it.
    for _ in 0..10 {
        pool.transaction(|tx| unsafe {
            for _ in 0..50 {
                let (at, index) = (random.below(LARGE), random.below(PIECE / 8));
                let word = &raw mut piece(root, at)[index];
                tx.add(word)?;
                *word = !value(at, index);
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
    let mut changed = 0;
    for at in 0..LARGE {
        for (index, word) in piece(root, at).iter().enumerate() {
            changed += usize::from(*word == !value(at, index));
            assert!(*word == value(at, index) || *word == !value(at, index));
        }
    }
    assert!(changed > 490 && changed <= 500, "{changed}");
    println!("{:?}", store.private_pages());
}

#[test]
#[ignore = "the other process of the test below"]
fn works_in_little_memory_with_a_limit() {
    works_in_little_memory(24 << 20);
}

#[test]
#[ignore = "the other process of the test below"]
fn works_in_little_memory_without_a_limit() {
    works_in_little_memory(u64::MAX);
}

#[test]
fn a_pool_larger_than_memory_works() {
    let Some(_alone) = alone() else { return };
    let Some(group) = Group::new(LIMIT) else {
        // Not by `println`, which the test runner keeps to itself.
        let why = "no control group that limits memory can be made here (that takes root, and a writable /sys/fs/cgroup)";
        let _ = writeln!(
            std::io::stderr(),
            "a_pool_larger_than_memory_works: skipped, {why}"
        );
        return;
    };
    let dir = tempfile::tempdir_in(parent(Domain::File)).unwrap();
    std::fs::write(dir.path().join("group"), group.0.to_str().unwrap()).unwrap();
    let run = |name| support::start(name, dir.path()).wait().unwrap();
    let status = run("works_in_little_memory_with_a_limit");
    assert!(status.success(), "{status}");
    // What it left is whole.
    let options = StoreOptions::new().domain(Domain::File);
    let store = Store::open(dir.path().join("store"), options).unwrap();
    assert!(store.recovery().unwrap().was_clean);
    let pool = store.open_pool("pool", pool_options()).unwrap();
    let root = root(&pool);
    for at in 0..LARGE {
        for (index, word) in piece(root, at).iter().enumerate() {
            let value = (at << 32 | index) as u64;
            assert!(*word == value || *word == !value);
        }
    }
    drop((pool, store));
    // That the group limits memory at all: without giving pages back the process is killed.
    std::fs::remove_dir_all(dir.path().join("store")).unwrap();
    let status = run("works_in_little_memory_without_a_limit");
    assert!(!status.success() && status.code().is_none(), "{status}");
}

/// Costs: for docs/internals/engines.md, printed.
#[test]
#[ignore = "a measurement"]
fn measure() {
    if support::directory().is_some() {
        return;
    }
    let Some(_alone) = alone() else { return };
    for domain in DOMAINS {
        let mut fixture = Fixture::new(domain, u64::MAX);
        let pool = fixture.pool();
        for at in 0..64 {
            make_piece(&pool, at, |index| index as u64);
        }
        let began = Instant::now();
        let pages = fixture.give_back();
        let each = began.elapsed().as_nanos() / pages as u128;
        println!("{domain:?}: {pages} pages of large ones, {each} ns each");
        drop(pool);
        fixture.reopen();
        let (pool, root) = (fixture.pool(), fixture.root());
        let touch = |step: usize, tag: u64| {
            let began = Instant::now();
            let mut count = 0;
            for at in 0..64 {
                pool.transaction(|tx| unsafe {
                    for index in (0..PIECE / 8).step_by(512 * step) {
                        let word = &raw mut piece(root, at)[index];
                        tx.add(word)?;
                        *word = tag;
                        count += 1;
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
            }
            began.elapsed().as_nanos() / count
        };
        for step in [1, 16] {
            let first = touch(step, 1 + step as u64);
            let again = touch(step, 2 + step as u64);
            let began = Instant::now();
            let pages = fixture.give_back();
            let each = began.elapsed().as_nanos() / pages as u128;
            let after = touch(step, 3 + step as u64);
            fixture.give_back();
            println!(
                "{domain:?}: every {step}th page: change {first} ns, again {again}, {pages} pages given back, {each} ns each, change then {after}"
            );
        }
    }
    // The longest commits of a thread, under pressure and not.
    for (name, private_max) in [("never", u64::MAX), ("32 MiB", 32 << 20)] {
        let fixture = Fixture::new(Domain::Dram, private_max);
        let (pool, root) = (fixture.pool(), fixture.root());
        for at in 0..128 {
            make_piece(&pool, at, |index| index as u64);
        }
        let mut random = Random(5);
        let mut times: Vec<Duration> = (0..300_000u64)
            .map(|tag| {
                let word = &raw mut piece(root, random.below(128))[random.below(PIECE / 8)];
                let began = Instant::now();
                pool.transaction(|tx| unsafe {
                    tx.add(word)?;
                    *word = tag;
                    Ok::<_, Error>(())
                })
                .unwrap();
                began.elapsed()
            })
            .collect();
        let sum: Duration = times.iter().sum();
        times.sort_unstable();
        let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
        println!(
            "limit {name}: mean {:?}, p50 {:?}, p99 {:?}, p99.9 {:?}, max {:?}, {:?}",
            sum / times.len() as u32,
            at(0.5),
            at(0.99),
            at(0.999),
            at(1.0),
            fixture.store().private_pages()
        );
    }
}
