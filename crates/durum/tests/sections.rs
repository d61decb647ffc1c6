//! Sections: what plain stores change is durable all at once, or not at all.
//!
//! A page that is not found is noticed here: private pages go away when a pool closes, and what was not logged with
//! them.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod support;

use std::io::Read;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use durum::{
    Announce, Domain, Engine, Error, PageTracking, Pool, PoolOptions, Store, StoreOptions,
    thread_counters,
};
use durum_service::{self as service, CheckOptions, Severity};

const TRACKERS: [PageTracking; 2] = [PageTracking::Userfaultfd, PageTracking::Mprotect];
const DOMAINS: [Domain; 2] = [Domain::Dram, Domain::File];

fn options(tracking: PageTracking) -> PoolOptions {
    PoolOptions::new()
        .engine(Engine::Shadow)
        .page_tracking(tracking)
        .root_puddle_size(4 << 20)
}

/// A store with a pool, on memory or on an ordinary file system.
struct Fixture {
    pool: Option<Pool>,
    store: Option<Store>,
    dir: tempfile::TempDir,
    tracking: PageTracking,
    domain: Domain,
}

impl Fixture {
    fn new(tracking: PageTracking, domain: Domain) -> Self {
        let parent = match domain {
            Domain::File => env!("CARGO_TARGET_TMPDIR"),
            _ => "/dev/shm",
        };
        let dir = tempfile::tempdir_in(parent).unwrap();
        let store_options = StoreOptions::new().domain(domain);
        let store = Store::create(dir.path().join("store"), store_options).unwrap();
        let pool = store.create_pool("pool", options(tracking)).unwrap();
        Self {
            pool: Some(pool),
            store: Some(store),
            dir,
            tracking,
            domain,
        }
    }

    fn pool(&self) -> &Pool {
        self.pool.as_ref().unwrap()
    }

    fn close(&mut self) {
        self.pool = None;
        self.store.take().unwrap().close().unwrap();
        let path = self.dir.path().join("store");
        let report = service::check(&path, &CheckOptions::default()).unwrap();
        let worst = report
            .findings
            .iter()
            .find(|finding| finding.severity > Severity::Leak);
        assert!(worst.is_none(), "{}", worst.unwrap());
    }

    fn reopen(&mut self) {
        self.close();
        let store_options = StoreOptions::new().domain(self.domain);
        let store = Store::open(self.dir.path().join("store"), store_options).unwrap();
        self.pool = Some(store.open_pool("pool", options(self.tracking)).unwrap());
        self.store = Some(store);
    }
}

fn everywhere(test: impl Fn(Fixture)) {
    for tracking in TRACKERS {
        for domain in DOMAINS {
            println!("{tracking:?} on {domain:?}");
            test(Fixture::new(tracking, domain));
        }
    }
}

const WORDS: usize = 300_000;

#[repr(C)]
struct Root {
    words: [u64; WORDS],
    area: *mut u8,
    area_size: u64,
    nodes: [*mut [u64; 5]; 64],
}
durum::describe!(Root as "section root" { words, area, area_size, nodes });

fn root(pool: &Pool) -> &'static mut Root {
    unsafe { &mut *pool.root::<Root>().unwrap() }
}

#[test]
fn plain_stores_are_durable_when_the_section_returns() {
    everywhere(|mut fixture| {
        let words = &mut root(fixture.pool()).words;
        let places = [0, 1, 511, 512, 513, 70_000, 150_001, WORDS - 1];
        for round in 1..4u64 {
            let result = unsafe {
                fixture.pool().section(|_| {
                    for place in places {
                        words[place] = round * place as u64 + 1;
                    }
                    Ok::<_, Error>(round)
                })
            };
            assert_eq!(result.unwrap(), round);
        }
        fixture.reopen();
        let words = &root(fixture.pool()).words;
        for place in places {
            assert_eq!(words[place], 3 * place as u64 + 1, "word {place}");
        }
        assert_eq!(
            words.iter().filter(|word| **word != 0).count(),
            places.len()
        );
    });
}

#[test]
fn an_error_and_a_panic_put_back_what_was_there() {
    everywhere(|mut fixture| {
        let pool = fixture.pool().clone();
        let words = &raw mut root(&pool).words;
        let words = unsafe { &mut *words };
        pool.transaction(|tx| {
            unsafe { tx.add(words)? };
            for (index, word) in words.iter_mut().enumerate() {
                *word = index as u64;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
        let spoil = |words: &mut [u64; WORDS]| {
            for index in (0..WORDS).step_by(977) {
                words[index] ^= 0xffff;
            }
        };
        let failed = unsafe {
            pool.section(|tx| {
                spoil(words);
                // Announced in the middle: what `add` keeps is not what was there before.
                tx.add(&raw const words[977])?;
                words[977] = 5;
                tx.set(&raw mut words[3], 7)?;
                tx.alloc::<[u64; 5]>()?;
                tx.abort::<()>()
            })
        };
        assert!(matches!(failed, Err(Error::Aborted)), "{failed:?}");
        let is_as_before = |words: &[u64; WORDS]| {
            words
                .iter()
                .enumerate()
                .all(|(index, word)| index as u64 == *word)
        };
        assert!(is_as_before(words));
        let panicked = catch_unwind(AssertUnwindSafe(|| unsafe {
            pool.section::<(), Error>(|_| {
                spoil(words);
                panic!("on purpose");
            })
        }));
        assert!(panicked.is_err());
        assert!(is_as_before(words));
        // The gate is open again.
        std::thread::scope(|scope| {
            scope.spawn(|| pool.transaction(|_| Ok::<_, Error>(())).unwrap());
        });
        drop(pool);
        fixture.reopen();
        assert!(is_as_before(&root(fixture.pool()).words));
    });
}

#[test]
fn allocation_and_announcements_work_inside() {
    everywhere(|mut fixture| {
        let pool = fixture.pool().clone();
        let root_object = root(&pool);
        // A slab that no commit has made durable: its header is in memory only, and the next commit needs it.
        let never: Result<(), Error> = pool.transaction(|tx| {
            tx.alloc::<[u64; 5]>()?;
            tx.abort()
        });
        assert!(never.is_err());
        for fails in [true, false, true] {
            let result = unsafe {
                pool.section(|tx| {
                    for (index, node) in root_object.nodes.iter_mut().enumerate() {
                        if !node.is_null() {
                            tx.free(*node)?;
                        }
                        *node = tx.alloc::<[u64; 5]>()?;
                        **node = [index as u64; 5];
                    }
                    let large = tx.alloc_bytes(&pool, 0, 3 << 20, 8)?;
                    large.write_bytes(9, 3 << 20);
                    if !root_object.area.is_null() {
                        tx.free(root_object.area)?;
                    }
                    root_object.area = large;
                    tx.set(&raw mut root_object.area_size, 3 << 20)?;
                    if fails { tx.abort() } else { Ok(()) }
                })
            };
            assert_eq!(result.is_err(), fails);
        }
        drop(pool);
        fixture.reopen();
        let root_object = root(fixture.pool());
        for (index, node) in root_object.nodes.iter().enumerate() {
            assert_eq!(unsafe { **node }, [index as u64; 5]);
        }
        assert_eq!(root_object.area_size, 3 << 20);
        let area = unsafe { std::slice::from_raw_parts(root_object.area, 3 << 20) };
        assert!(area.iter().all(|byte| *byte == 9));
    });
}

#[test]
fn a_section_costs_one_fence_or_one_sync() {
    for tracking in TRACKERS {
        let fixture = Fixture::new(tracking, Domain::Dram);
        let words = &mut root(fixture.pool()).words;
        for pages in [1, 7, 100, 500] {
            let before = thread_counters();
            unsafe {
                fixture.pool().section(|_| {
                    words
                        .iter_mut()
                        .step_by(512)
                        .take(pages)
                        .for_each(|word| *word += 1);
                    Ok::<_, Error>(())
                })
            }
            .unwrap();
            let cost = thread_counters() - before;
            assert_eq!(cost.fences, 1, "{pages} pages");
            assert_eq!(cost.commits, 1);
            assert!(
                cost.bytes_logged < 200 + 16 * pages as u64,
                "words are logged, not pages: {cost:?}"
            );
        }
        let fixture = Fixture::new(tracking, Domain::File);
        let words = &mut root(fixture.pool()).words;
        for pages in [1, 7, 100, 500] {
            let before = thread_counters();
            unsafe {
                fixture.pool().section(|_| {
                    words
                        .iter_mut()
                        .step_by(512)
                        .take(pages)
                        .for_each(|word| *word += 1);
                    Ok::<_, Error>(())
                })
            }
            .unwrap();
            assert_eq!((thread_counters() - before).syncs, 1, "{pages} pages");
        }
        let before = thread_counters();
        unsafe { fixture.pool().section(|_| Ok::<_, Error>(())) }.unwrap();
        assert_eq!((thread_counters() - before).syncs, 0, "nothing has changed");
    }
}

#[test]
fn sections_are_refused_where_they_cannot_be() {
    let fixture = Fixture::new(PageTracking::Auto, Domain::Dram);
    let (store, pool) = (fixture.store.as_ref().unwrap(), fixture.pool());
    let other = store
        .create_pool("other", options(PageTracking::Auto))
        .unwrap();
    let hybrid = PoolOptions::new().engine(Engine::Hybrid);
    let hybrid = store.create_pool("hybrid", hybrid).unwrap();
    let section = |pool: &Pool| unsafe { pool.section(|_| Ok::<_, Error>(())) };
    assert!(matches!(section(&hybrid), Err(Error::SectionEngine { .. })));
    pool.transaction(|_| {
        assert!(matches!(section(pool), Err(Error::SectionInside { .. })));
        Ok::<_, Error>(())
    })
    .unwrap();
    let words = &mut root(pool).words;
    unsafe {
        pool.section(|_| {
            assert!(matches!(section(&other), Err(Error::SectionInside { .. })));
            words[1] = 1;
            // Becomes part of it.
            pool.section(|_| {
                words[2] = 2;
                Ok::<_, Error>(())
            })?;
            pool.transaction(|tx| {
                tx.add(&raw const words[3])?;
                words[3] = 3;
                Ok::<_, Error>(())
            })
        })
    }
    .unwrap();
    let aborted = unsafe {
        pool.section(|_| {
            words[1] = 4;
            let inner: Result<(), Error> = pool.section(|tx| tx.abort());
            assert!(inner.is_err());
            Ok::<_, Error>(())
        })
    };
    assert!(matches!(aborted, Err(Error::Aborted)));
    assert_eq!(words[..5], [0, 1, 2, 3, 0]);
    assert!(section(pool).is_ok() && section(&other).is_ok());
}

#[test]
fn other_transactions_are_kept_out() {
    let fixture = Fixture::new(PageTracking::Auto, Domain::Dram);
    let pool = fixture.pool();
    let words = root(pool).words.as_mut_ptr().expose_provenance();
    let (inside, end) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for thread in 1..3usize {
            let (inside, end) = (&inside, &end);
            scope.spawn(move || {
                let own = unsafe {
                    std::ptr::with_exposed_provenance_mut::<u64>(words).add(thread * 1000)
                };
                while !end.load(Ordering::Relaxed) {
                    pool.transaction(|tx| unsafe {
                        assert!(!inside.load(Ordering::Relaxed));
                        tx.add(own)?;
                        *own += 1;
                        assert!(!inside.load(Ordering::Relaxed));
                        Ok::<_, Error>(())
                    })
                    .unwrap();
                    unsafe { pool.persist(own, 8) }.unwrap();
                }
            });
        }
        let first = std::ptr::with_exposed_provenance_mut::<u64>(words);
        for round in 0..300u64 {
            let result = unsafe {
                pool.section(|_| {
                    inside.store(true, Ordering::Relaxed);
                    *first = round;
                    let seen = (*first.add(1000), *first.add(2000));
                    std::thread::yield_now();
                    assert_eq!(seen, (*first.add(1000), *first.add(2000)));
                    inside.store(false, Ordering::Relaxed);
                    Ok::<_, Error>(())
                })
            };
            result.unwrap();
        }
        end.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_section_and_another_thread_may_ask_for_a_new_root_at_once() {
    for _ in 0..50 {
        let fixture = Fixture::new(PageTracking::Auto, Domain::Dram);
        let pool = fixture.pool();
        let roots = std::thread::scope(|scope| {
            let other = scope.spawn(|| {
                loop {
                    match pool.root::<Root>() {
                        // The section is making it.
                        Err(Error::RootPending { .. }) => std::thread::yield_now(),
                        root => break root.unwrap().addr(),
                    }
                }
            });
            let own = unsafe { pool.section(|_| Ok::<_, Error>(pool.root::<Root>()?.addr())) };
            (own.unwrap(), other.join().unwrap())
        });
        assert_eq!(roots.0, roots.1);
    }
}

#[test]
fn the_kernel_may_write_to_the_pool_where_it_notes_the_pages_itself() {
    let mut fixture = Fixture::new(PageTracking::Userfaultfd, Domain::Dram);
    let words = &mut root(fixture.pool()).words;
    unsafe {
        fixture.pool().section(|_| {
            let bytes = std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), 100_000);
            std::io::repeat(0x5a)
                .take(10)
                .read_exact(&mut bytes[..10])
                .unwrap();
            let mut zero = std::fs::File::open("/proc/self/exe").unwrap();
            zero.read_exact(&mut bytes[50_000..]).unwrap();
            Ok::<_, Error>(())
        })
    }
    .unwrap();
    let now = words[..12_500].to_vec();
    assert!(now.iter().any(|word| *word != 0));
    fixture.reopen();
    assert_eq!(root(fixture.pool()).words[..12_500], now);
}

/// A canary: what is not found is lost, so that the tests of this file notice it. Through /proc/self/mem the kernel
/// writes to protected pages without a signal.
#[test]
fn a_page_that_is_not_found_is_noticed() {
    let mut fixture = Fixture::new(PageTracking::Mprotect, Domain::Dram);
    let words = &mut root(fixture.pool()).words;
    let was_written = unsafe {
        fixture.pool().section(|_| {
            words[0] = 1;
            words[5000] = 1;
            let behind = std::fs::OpenOptions::new()
                .write(true)
                .open("/proc/self/mem");
            let address = (&raw const words[2000]).addr() as u64;
            let written =
                behind.and_then(|memory| memory.write_all_at(&7u64.to_ne_bytes(), address));
            Ok::<_, Error>(written.is_ok())
        })
    };
    if !was_written.unwrap() {
        println!("skipped: this system has no /proc/self/mem, or does not let it force");
        return;
    }
    assert_eq!((words[0], words[2000], words[5000]), (1, 7, 1));
    fixture.reopen();
    let words = &root(fixture.pool()).words;
    assert_eq!((words[0], words[2000], words[5000]), (1, 0, 1));
}

/// Random numbers that a seed repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }
}

/// Bytes of a large object and of the root, changed in every way there is, beside a model of them.
#[test]
fn random_stores_agree_with_a_model() {
    everywhere(|mut fixture| {
        const SIZE: usize = 9 << 20;
        let seed = 0x7365_6374;
        println!("seed {seed}");
        let mut random = Random(seed);
        let pool = fixture.pool().clone();
        let root_object = root(&pool);
        pool.transaction(|tx| unsafe {
            let area = tx.alloc_bytes(&pool, 0, SIZE, 8)?;
            area.write_bytes(0, SIZE);
            tx.set(&raw mut root_object.area, area)
        })
        .unwrap();
        let mut model = vec![0u8; SIZE];
        let mut area = root_object.area;
        let mut pool = pool;
        for round in 0..120 {
            let before = model.clone();
            let stores: Vec<(usize, usize, u8)> = (0..random.below(60))
                .map(|_| {
                    let len = match random.below(20) {
                        0 => random.below(40_000),
                        _ => 1 + random.below(16),
                    };
                    (random.below(SIZE - len), len, random.below(256) as u8)
                })
                .collect();
            let fails = random.below(4) == 0;
            let kind = random.below(4);
            let outcome = |tx: &durum::Tx| if fails { tx.abort() } else { Ok(()) };
            let mut store = |(at, len, byte): (usize, usize, u8)| {
                unsafe { area.add(at).write_bytes(byte, len) };
                model[at..at + len].fill(byte);
            };
            let result: Result<(), Error> = match kind {
                // Announced, in a transaction.
                0 => pool.transaction(|tx| {
                    for place in &stores {
                        unsafe { tx.add_bytes(area.add(place.0), place.1, Announce::Backup)? };
                        store(*place);
                    }
                    outcome(tx)
                }),
                // Announced in part, in a section.
                1 => unsafe {
                    pool.section(|tx| {
                        for (index, place) in stores.iter().enumerate() {
                            store(*place);
                            if index % 3 == 0 {
                                tx.add_bytes(area.add(place.0), place.1, Announce::Backup)?;
                                // Or announced too late, and left alone then.
                                if index % 2 == 0 {
                                    store((place.0, place.1, place.2 ^ 1));
                                }
                            }
                        }
                        outcome(tx)
                    })
                },
                _ => unsafe {
                    pool.section(|tx| {
                        stores.iter().for_each(|place| store(*place));
                        outcome(tx)
                    })
                },
            };
            assert_eq!(result.is_err(), fails, "{result:?}");
            if fails {
                model = before;
            }
            let now = unsafe { std::slice::from_raw_parts(area, SIZE) };
            assert!(now == model, "round {round}, kind {kind}, fails {fails}");
            if round % 10 == 9 {
                drop(pool);
                fixture.reopen();
                pool = fixture.pool().clone();
                area = root(&pool).area;
                let now = unsafe { std::slice::from_raw_parts(area, SIZE) };
                assert!(now == model, "after reopening, round {round}");
            }
        }
    });
}

#[test]
#[ignore = "the other process of a test below"]
fn steps_on_a_bad_address_in_a_section() {
    let Some(_) = support::directory() else {
        return;
    };
    let fixture = Fixture::new(PageTracking::Mprotect, Domain::Dram);
    let words = &mut root(fixture.pool()).words;
    let _ = unsafe {
        fixture.pool().section(|_| {
            words[0] = 1;
            // Not in the pool: whoever handled this before does so now.
            std::ptr::with_exposed_provenance_mut::<u64>(64).write_volatile(1);
            Ok::<_, Error>(())
        })
    };
}

#[test]
fn a_fault_outside_of_the_pool_ends_the_process() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut child = support::start("steps_on_a_bad_address_in_a_section", dir.path());
    const SIGSEGV: i32 = 11;
    assert_eq!(child.wait().unwrap().signal(), Some(SIGSEGV));
}

fn move_money_for_ever(tracking: PageTracking, dir: &Path) {
    let store = Store::open_or_create(dir.join("store"), StoreOptions::new()).unwrap();
    let pool = store
        .open_or_create_pool("pool", options(tracking))
        .unwrap();
    let root_object = root(&pool);
    let mut random = Random(u64::from(std::process::id()));
    loop {
        let fails = random.below(5) == 0;
        let result = unsafe {
            pool.section(|tx| {
                for _ in 0..random.below(50) {
                    let (from, to) = (random.below(WORDS), random.below(WORDS));
                    root_object.words[from] = root_object.words[from].wrapping_sub(1);
                    root_object.words[to] = root_object.words[to].wrapping_add(1);
                }
                let place = random.below(64);
                let node = tx.alloc::<[u64; 5]>()?;
                *node = [place as u64; 5];
                let old = std::mem::replace(&mut root_object.nodes[place], node);
                if !old.is_null() {
                    tx.free(old)?;
                }
                root_object.area_size += 1;
                if fails { tx.abort() } else { Ok(()) }
            })
        };
        assert_eq!(result.is_err(), fails);
        let (from, to) = (random.below(WORDS), random.below(WORDS));
        pool.transaction(|tx| unsafe {
            tx.add(&raw const root_object.words[from])?;
            tx.add(&raw const root_object.words[to])?;
            root_object.words[from] = root_object.words[from].wrapping_sub(1);
            root_object.words[to] = root_object.words[to].wrapping_add(1);
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

#[test]
#[ignore = "the other process of a test below"]
fn worker_with_userfaultfd() {
    if let Some(dir) = support::directory() {
        move_money_for_ever(PageTracking::Userfaultfd, &dir);
    }
}

#[test]
#[ignore = "the other process of a test below"]
fn worker_with_mprotect() {
    if let Some(dir) = support::directory() {
        move_money_for_ever(PageTracking::Mprotect, &dir);
    }
}

#[test]
fn a_process_killed_in_a_section_leaves_all_of_it_or_nothing() {
    for worker in ["worker_with_userfaultfd", "worker_with_mprotect"] {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        // Made here: on a busy machine the first kill may come before the worker has done anything.
        let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
        let pool = store
            .create_pool("pool", options(PageTracking::Auto))
            .unwrap();
        root(&pool);
        drop(pool);
        store.close().unwrap();
        let mut seen = 0;
        for kill in 0..6 {
            let mut child = support::start(worker, dir.path());
            std::thread::sleep(Duration::from_millis(150 + kill * 37));
            child.kill().unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(9));
            let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
            assert!(store.recovery().unwrap().quarantined.is_empty());
            let pool = store
                .open_pool("pool", options(PageTracking::Auto))
                .unwrap();
            let root_object = root(&pool);
            let sum = root_object
                .words
                .iter()
                .fold(0u64, |sum, word| sum.wrapping_add(*word));
            assert_eq!(sum, 0, "what was taken in one place was given in another");
            for (place, node) in root_object.nodes.iter().enumerate() {
                if !node.is_null() {
                    assert_eq!(unsafe { **node }, [place as u64; 5]);
                }
            }
            assert!(root_object.area_size >= seen);
            seen = root_object.area_size;
            drop(pool);
            store.close().unwrap();
            let report =
                service::check(&dir.path().join("store"), &CheckOptions::default()).unwrap();
            assert!(
                report
                    .findings
                    .iter()
                    .all(|finding| finding.severity <= Severity::Leak)
            );
        }
        println!("{worker}: {seen} sections");
        assert!(seen > 0);
    }
}

#[test]
fn a_word_that_was_persisted_and_changed_back_is_what_it_was() {
    everywhere(|mut fixture| {
        let pool = fixture.pool();
        let word = &raw mut root(pool).words[5];
        let body = |_: &durum::Tx| unsafe {
            word.write(1);
            pool.persist(word, 8)?;
            word.write(0);
            Ok::<_, Error>(())
        };
        unsafe { pool.section(body) }.unwrap();
        assert_eq!(unsafe { word.read() }, 0);
        fixture.reopen();
        assert_eq!(root(fixture.pool()).words[5], 0);
    });
}
