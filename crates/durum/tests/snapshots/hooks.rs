//! Each place where an engine is about to change what a snapshot shows: what changes before the first puddle is
//! exported is not in it, and without the step that keeps it this is noticed.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::Duration;

use durum::{
    Announce, Domain, Engine, Error, ImportOptions, Pool, PoolOptions, RawEntry, Site,
    SnapshotOptions, Store, StoreOptions, Tx,
};
use durum_persist::record::{Recorder, RecorderOptions};

use crate::alone;

/// Three to a puddle.
const LARGE: usize = 12;
const LARGE_BYTES: usize = 600_000;
const SMALL: usize = 64;
const SMALL_BYTES: usize = 200;

#[repr(C)]
struct Root {
    large: [*mut u8; LARGE],
    small: [*mut u8; SMALL],
    /// For transactions of which nobody wants to know anything.
    scratch: [u64; 500],
}
durum::describe!(Root as "hooks root" { large, small, scratch });

#[derive(Clone)]
struct Fixture {
    store: Store,
    pool: Pool,
    root: usize,
    is_shadow: bool,
}

impl Fixture {
    fn new(path: &Path, engine: Engine, domain: Domain) -> Self {
        let options = StoreOptions::new().domain(domain);
        let store = Store::create(path, options).unwrap();
        let options = PoolOptions::new().engine(engine).growth_max(2 << 20);
        let pool = store.create_pool("pool", options).unwrap();
        let root = pool.root::<Root>().unwrap();
        let make = |place: *mut *mut u8, len, value| {
            pool.transaction(|tx| unsafe {
                let object = tx.alloc_bytes(&pool, 0, len, 8)?;
                object.write_bytes(value, len);
                tx.set(place, object)
            })
            .unwrap();
        };
        unsafe {
            for at in 0..SMALL {
                make(&raw mut (*root).small[at], SMALL_BYTES, 100 + at as u8);
            }
            for at in 0..LARGE {
                make(&raw mut (*root).large[at], LARGE_BYTES, at as u8);
            }
        }
        drop((pool, store));
        // Private pages of what was there before can be those of the file.
        // Batches are soon home where logs are so short.
        let options = StoreOptions::new().domain(domain).log_max(1 << 20);
        let store = Store::open(path, options).unwrap();
        let pool = store.open_pool("pool", PoolOptions::new()).unwrap();
        let root = pool.root::<Root>().unwrap().addr();
        Self {
            store,
            pool,
            root,
            is_shadow: engine == Engine::Shadow,
        }
    }

    fn root(&self) -> *mut Root {
        std::ptr::with_exposed_provenance_mut(self.root)
    }

    fn run(&self, body: impl FnOnce(&Tx) -> Result<(), Error>) {
        self.pool.transaction(body).unwrap();
    }

    /// What was committed comes home, where that is later.
    fn bring_home(&self) {
        if !self.is_shadow {
            return;
        }
        let root = self.root();
        for turn in 0..1000 {
            self.run(|tx| unsafe {
                let words = &raw mut (*root).scratch;
                tx.add(words)?;
                (*words).fill(turn);
                Ok(())
            });
        }
    }

    fn large(&self, at: usize) -> *mut u8 {
        unsafe { (*self.root()).large[at] }
    }

    /// Gives every other object up, so that no slab is empty, and makes others of the same size in their places.
    fn replace(
        &self,
        count: usize,
        place: impl Fn(usize) -> *mut *mut u8,
        len: usize,
        filled: bool,
    ) {
        for at in (0..count).step_by(2) {
            let place = place(at);
            let before = unsafe { place.read() };
            self.run(|tx| unsafe {
                tx.free(before)?;
                tx.set(place, std::ptr::null_mut())
            });
        }
        self.bring_home();
        for at in (0..count).step_by(2) {
            let place = place(at);
            self.run(|tx| unsafe {
                let bytes = vec![0xee; len];
                let object = match filled {
                    true => tx.alloc_filled(&self.pool, 0, &[&bytes], 8)?,
                    false => {
                        let object = tx.alloc_bytes(&self.pool, 0, len, 8)?;
                        object.copy_from_nonoverlapping(bytes.as_ptr(), len);
                        object
                    }
                };
                tx.set(place, object)
            });
        }
        self.bring_home();
    }
}

/// What is done when a snapshot has begun.
type Change = fn(&Fixture);

fn change_words(fixture: &Fixture) {
    for at in 0..LARGE {
        let word = unsafe { fixture.large(at).add(300_000) }.cast::<u64>();
        fixture.run(|tx| unsafe {
            tx.add(word)?;
            word.write(u64::MAX);
            Ok(())
        });
    }
    fixture.bring_home();
}

fn set_words(fixture: &Fixture) {
    for at in 0..LARGE {
        let word = unsafe { fixture.large(at).add(300_000) }.cast::<u64>();
        fixture.run(|tx| unsafe { tx.set(word, u64::MAX) });
    }
    fixture.bring_home();
}

fn change(fixture: &Fixture, offset: usize, len: usize) {
    for at in 0..LARGE {
        let range = unsafe { fixture.large(at).add(offset) };
        fixture.run(|tx| unsafe {
            tx.add_bytes(range, len, Announce::Backup)?;
            range.write_bytes(0xee, len);
            Ok(())
        });
    }
    fixture.bring_home();
}

fn change_less_than_a_page(fixture: &Fixture) {
    change(fixture, 300_000, 1500);
}

fn change_pages(fixture: &Fixture) {
    change(fixture, 100_000, 20_000);
    // A page that waits goes home before something of it changes.
    change(fixture, 104_000, 8);
    change(fixture, 110_000, 8);
}

fn persist(fixture: &Fixture) {
    for at in 0..LARGE {
        let word = unsafe { fixture.large(at).add(300_000) }.cast::<u64>();
        unsafe {
            word.write(u64::MAX);
            fixture.pool.persist(word, 8).unwrap();
        }
    }
    fixture.bring_home();
}

fn persist_large(fixture: &Fixture) {
    for at in 0..LARGE {
        let object = fixture.large(at);
        unsafe {
            object.write_bytes(0xee, LARGE_BYTES);
            fixture.pool.persist(object, LARGE_BYTES).unwrap();
        }
    }
}

fn replace_large(fixture: &Fixture) {
    let root = fixture.root();
    let place = |at| unsafe { &raw mut (*root).large[at] };
    fixture.replace(LARGE, place, LARGE_BYTES, false);
}

fn replace_filled(fixture: &Fixture) {
    let root = fixture.root();
    let place = |at| unsafe { &raw mut (*root).large[at] };
    fixture.replace(LARGE, place, LARGE_BYTES, true);
}

fn replace_small(fixture: &Fixture) {
    let root = fixture.root();
    let place = |at| unsafe { &raw mut (*root).small[at] };
    fixture.replace(SMALL, place, SMALL_BYTES, false);
}

/// By a log of the program's own: half of the words before it stores there, the others when the log is applied.
fn change_by_a_log(fixture: &Fixture) {
    let mut log = fixture.store.raw_log().unwrap();
    for at in 0..LARGE {
        let word = unsafe { fixture.large(at).add(300_000) };
        let new = u64::MAX.to_ne_bytes();
        let (source, entry) = match at % 2 {
            0 => (word.cast_const(), RawEntry::UNDO),
            _ => (new.as_ptr(), RawEntry::REDO),
        };
        unsafe {
            log.append(word, source, 8, entry).unwrap();
            log.flush().unwrap();
            if at % 2 == 0 {
                word.cast::<u64>().write(u64::MAX);
                fixture.pool.persist(word, 8).unwrap();
            }
        }
    }
    unsafe {
        log.set_range(2, 4).unwrap();
        log.apply().unwrap();
    }
    log.reset().unwrap();
}

/// Whether an export that was made while `change` happened holds what was there before.
fn holds_what_was(engine: Engine, domain: Domain, change: Change, skip: Option<Site>) -> bool {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    let fixture = Fixture::new(&path, engine, domain);
    let recorder = skip.map(|_| {
        let options = RecorderOptions {
            skip,
            ..RecorderOptions::default()
        };
        Recorder::start(&path, options)
    });
    let (told, changed) = (AtomicUsize::new(0), fixture.clone());
    let progress = move |_| {
        if told.fetch_add(1, Ordering::Relaxed) == 0 {
            change(&changed);
        }
    };
    let options = SnapshotOptions::new().progress(Arc::new(progress));
    let export = dir.path().join("export");
    let made = fixture.pool.snapshot(&export, &options);
    drop(recorder.map(Recorder::stop));
    drop(options);
    // Without a step it may not even look like a pool any more.
    if skip.is_none() {
        made.unwrap();
    } else if made.is_err() {
        return false;
    }
    holds(dir.path(), &export).unwrap_or_else(|error| {
        assert!(skip.is_some(), "{error}");
        false
    })
}

/// Whether an export holds what a new fixture does.
fn holds(dir: &Path, export: &Path) -> Result<bool, Error> {
    let options = StoreOptions::new().untyped_hold_no_pointers(true);
    let store = Store::create(dir.join("other"), options)?;
    let options = ImportOptions {
        untyped_hold_no_pointers: true,
        ..ImportOptions::default()
    };
    store.import(export, &options)?;
    let pool = store.open_pool("pool", PoolOptions::new())?;
    let root = unsafe { &*pool.root::<Root>()? };
    let is_full_of = |object: *mut u8, len, value| {
        !object.is_null()
            && unsafe { std::slice::from_raw_parts(object, len) }
                .iter()
                .all(|byte| *byte == value)
    };
    let mut large = root.large.iter().enumerate();
    let mut small = root.small.iter().enumerate();
    Ok(
        large.all(|(at, object)| is_full_of(*object, LARGE_BYTES, at as u8))
            && small.all(|(at, object)| is_full_of(*object, SMALL_BYTES, 100 + at as u8)),
    )
}

const CASES: [(&str, Engine, Domain, Change); 17] = [
    (
        "snapshot: keep what a log of the program's own is about",
        Engine::Hybrid,
        Domain::Dram,
        change_by_a_log,
    ),
    (
        "snapshot: keep what is about to change in a file",
        Engine::Shadow,
        Domain::File,
        change_words,
    ),
    (
        "snapshot: keep what is about to change in a file",
        Engine::Hybrid,
        Domain::File,
        change_words,
    ),
    (
        "snapshot: keep what is about to change in a file",
        Engine::Twin,
        Domain::File,
        change_words,
    ),
    (
        "snapshot: keep a line that a record is about to change at home",
        Engine::Shadow,
        Domain::Dram,
        change_words,
    ),
    (
        "snapshot: keep a line that a record is about to change at home",
        Engine::Shadow,
        Domain::Dram,
        persist,
    ),
    (
        "snapshot: keep what a copy is about to change at home",
        Engine::Shadow,
        Domain::Dram,
        change_less_than_a_page,
    ),
    (
        "snapshot: keep a page that waits to go home",
        Engine::Shadow,
        Domain::Dram,
        change_pages,
    ),
    (
        "snapshot: keep a range that may be torn",
        Engine::Shadow,
        Domain::Dram,
        persist_large,
    ),
    (
        "snapshot: keep the place of a large fresh object",
        Engine::Shadow,
        Domain::Dram,
        replace_large,
    ),
    (
        "snapshot: keep the place of one that goes home at once",
        Engine::Shadow,
        Domain::Dram,
        replace_filled,
    ),
    (
        "snapshot: keep what a program is about to change",
        Engine::Hybrid,
        Domain::Dram,
        change_words,
    ),
    (
        "snapshot: keep what a commit is about to change in place",
        Engine::Hybrid,
        Domain::Dram,
        set_words,
    ),
    (
        "snapshot: keep the place of an object that is made in place",
        Engine::Hybrid,
        Domain::Dram,
        replace_large,
    ),
    (
        "snapshot: keep the place of a small object that is made in place",
        Engine::Hybrid,
        Domain::Dram,
        replace_small,
    ),
    (
        "snapshot: keep a line that is about to come to the back copy",
        Engine::Twin,
        Domain::Dram,
        change_words,
    ),
    (
        "snapshot: keep what is about to change in the back copy",
        Engine::Twin,
        Domain::Dram,
        change_pages,
    ),
];

#[test]
fn what_changes_meanwhile_is_not_in_it() {
    let _alone = alone();
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        for domain in [Domain::Dram, Domain::File] {
            for change in [
                change_words,
                set_words,
                change_less_than_a_page,
                change_pages,
                replace_large,
                replace_filled,
                replace_small,
            ] {
                assert!(
                    holds_what_was(engine, domain, change, None),
                    "{} {domain:?}",
                    engine.name()
                );
            }
        }
    }
}

#[test]
fn each_step_that_is_left_out_is_noticed() {
    let _alone = alone();
    for (site, engine, domain, change) in CASES {
        assert!(
            !holds_what_was(engine, domain, change, Some(Site(site))),
            "nobody misses {site:?} on {} {domain:?}",
            engine.name()
        );
    }
}

#[test]
fn what_a_log_of_the_programs_own_changes_is_not_in_it() {
    let _alone = alone();
    for domain in [Domain::Dram, Domain::File] {
        assert!(
            holds_what_was(Engine::Hybrid, domain, change_by_a_log, None),
            "{domain:?}"
        );
    }
}

/// With the gate open what a transaction has done so far would be in it.
#[test]
fn the_gate_that_stays_open_is_noticed() {
    let _alone = alone();
    let with_open_transaction = |skip: Option<Site>| {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("store");
        let fixture = Fixture::new(&path, Engine::Hybrid, Domain::Dram);
        let options = RecorderOptions {
            skip,
            ..RecorderOptions::default()
        };
        let recorder = Recorder::start(&path, options);
        let export = dir.path().join("export");
        let (begun, may_end) = (Barrier::new(2), Barrier::new(2));
        let made = Mutex::new(None);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let large = fixture.clone().large(3);
                fixture.run(|tx| unsafe {
                    tx.add_bytes(large, 8, Announce::Backup)?;
                    large.write_bytes(0xee, 8);
                    begun.wait();
                    may_end.wait();
                    Ok(())
                });
            });
            begun.wait();
            let options = SnapshotOptions::new().wait(Duration::from_millis(10));
            *made.lock().unwrap() = Some(fixture.pool.snapshot(&export, &options));
            may_end.wait();
        });
        drop(recorder.stop());
        let made = made.into_inner().unwrap().unwrap();
        made.is_err() || holds(dir.path(), &export).unwrap()
    };
    assert!(with_open_transaction(None));
    assert!(!with_open_transaction(Some(Site(
        "snapshot: close the gate"
    ))));
}
