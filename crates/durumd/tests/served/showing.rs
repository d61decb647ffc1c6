//! Pools that a program writes are exported by another one: it is asked to show them, and what it shows is not
//! believed.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use durum::{
    Engine, ExportOptions, ExportReport, ImportOptions, Pool, PoolOptions, Store, StoreOptions,
};
use durum_format::Uuid;
use durum_remote::Remote;
use durum_service::{
    Asked, EngineKind, Error, PoolSpec, ReadOnlyStore, SHOWN_MAX, Service, ShownAt, export_served,
};

use crate::strangers::Raw;
use crate::support::{Served, until};

/// Two words that each transaction makes equal, with objects of other puddles between them.
#[repr(C)]
struct Root {
    first: u64,
    objects: [*mut [u64; WORDS]; OBJECTS],
    last: u64,
}
durum::describe!(Root as "shown root" { first, objects, last });

const OBJECTS: usize = 8;
const WORDS: usize = 100_000;

/// Sets everything to this value, a word of each object, and exchanges one: puddles come and go.
fn set(pool: &Pool, value: u64) {
    let root = pool.root::<Root>().unwrap();
    // SAFETY: one thread uses the pool.
    pool.transaction(|tx| unsafe {
        tx.set(&raw mut (*root).first, value)?;
        for place in 0..OBJECTS {
            let is_exchanged = value as usize % OBJECTS == place;
            let place = &raw mut (*root).objects[place];
            if is_exchanged && !(*place).is_null() {
                tx.free(*place)?;
            }
            if is_exchanged || (*place).is_null() {
                let object = tx.alloc_zeroed::<[u64; WORDS]>()?;
                tx.add(place)?;
                place.write(object);
            }
            tx.set((*place).cast::<u64>().add(WORDS / 2), value)?;
        }
        // It grows by puddles that nobody has asked for.
        if value.is_multiple_of(50) {
            tx.alloc_zeroed::<[u64; WORDS]>()?;
        }
        tx.set(&raw mut (*root).last, value)
    })
    .unwrap();
}

/// What everything in a pool is set to.
fn value(pool: &Pool) -> u64 {
    // SAFETY: nobody changes it.
    unsafe {
        let root = &*pool.root::<Root>().unwrap();
        for object in root.objects {
            assert_eq!((*object)[WORDS / 2], root.first);
        }
        assert_eq!(root.first, root.last);
        root.first
    }
}

/// Another client of the service exports a pool.
fn export(served: &Served, pool: &str, place: &Path, wait: u64) -> Result<ExportReport, Error> {
    let remote = Arc::new(Remote::open(&served.socket(), Default::default())?);
    let options = ExportOptions {
        wait: Some(Duration::from_millis(wait)),
        ..ExportOptions::default()
    };
    export_served(&mut ReadOnlyStore::of(remote)?, pool, place, &options)
}

fn refused(served: &Served, place: &Path, wait: u64) -> String {
    let error = export(served, "pool", place, wait).unwrap_err();
    assert!(!place.exists());
    error.to_string()
}

struct Over<'o>(&'o AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_pool_in_use_is_exported_as_it_is_at_one_moment() {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let served = Served::start();
    let store = Store::open(served.address(), StoreOptions::new()).unwrap();
    let backup = Store::create(directory.path().join("backup"), StoreOptions::new()).unwrap();
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        let options = PoolOptions::new()
            .engine(engine)
            .growth_max(2 << 20)
            .spare_max(0);
        let pool = store.create_pool("pool", options).unwrap();
        set(&pool, 1);
        let place = directory.path().join("export");
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut last = 1;
                while !is_over.load(Ordering::Relaxed) {
                    last += 1;
                    set(&pool, last);
                    // Else it grows by more in each round, and most of the time goes into copying that.
                    std::thread::sleep(Duration::from_micros(500));
                }
                last
            });
            // Should this panic, the writer ends, too.
            let over = Over(&is_over);
            let mut shown = 0;
            for _ in 0..5 {
                let report = export(&served, "pool", &place, 10_000).unwrap();
                assert_eq!(report.pointers_to_nowhere, 0);
                backup.import(&place, &ImportOptions::default()).unwrap();
                let copy = backup.open_pool("pool", PoolOptions::new()).unwrap();
                let now = value(&copy);
                assert!(now >= shown, "{now} after {shown}");
                shown = now;
                drop(copy);
                backup.remove_pool("pool").unwrap();
            }
            drop(over);
            assert!(writer.join().unwrap() >= shown);
        });
        // The program's own snapshot, and one after it has closed the pool.
        drop(pool);
        export(&served, "pool", &place, 0).unwrap();
        std::fs::remove_dir_all(&place).unwrap();
        store.remove_pool("pool").unwrap();
    }
}

/// A client that writes a pool and does not know how to show it, or does not want to.
struct Holder {
    remote: Arc<Remote>,
    pool: Uuid,
    root: Uuid,
    asked: mpsc::Receiver<Asked>,
}

impl Holder {
    fn new(served: &Served) -> Holder {
        let remote = Arc::new(Remote::open(&served.socket(), Default::default()).unwrap());
        let grant = remote
            .create_pool("pool", &PoolSpec::new(EngineKind::Hybrid))
            .unwrap();
        let (tell, asked) = mpsc::channel();
        let tell = std::sync::Mutex::new(tell);
        remote.when_asked_to_show(Arc::new(move |asked| {
            let _ = tell.lock().unwrap().send(asked);
        }));
        Holder {
            remote,
            pool: grant.uuid,
            root: grant.root.uuid,
            asked,
        }
    }

    /// Answers one who asks; what that one is told.
    fn answers(&self, served: &Served, place: &Path, answer: impl FnOnce(Asked)) -> String {
        std::thread::scope(|scope| {
            let asks = scope.spawn(|| refused(served, place, 10_000));
            answer(self.asked.recv().unwrap());
            asks.join().unwrap()
        })
    }
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let place = directory.path().join("export");
    (directory, place)
}

#[test]
fn nobody_waits_for_ever() {
    let (_directory, place) = place();
    let served = Served::start();
    let holder = Holder::new(&served);
    let began = Instant::now();
    let told = refused(&served, &place, 300);
    assert!(told.contains("within 300ms"), "{told}");
    assert!(began.elapsed() < Duration::from_secs(5));
    let late = holder.asked.recv().unwrap();
    assert_eq!(late.pool, holder.pool);
    // Nobody waits any more.
    holder.remote.showing_file(late).unwrap_err();
    holder.remote.end_showing(late, Ok(&[])).unwrap_err();
    // Who has ended meanwhile shows nothing.
    let told = std::thread::scope(|scope| {
        let asks = scope.spawn(|| refused(&served, &place, 60_000));
        holder.asked.recv().unwrap();
        drop(holder);
        asks.join().unwrap()
    });
    assert!(told.contains("has ended"), "{told}");
    until("the pool is free", || {
        export(&served, "pool", &place, 0).is_ok()
    });
}

#[test]
fn what_is_shown_is_not_believed() {
    let (_directory, place) = place();
    let served = Served::start();
    let holder = Holder::new(&served);
    let root = |offset| ShownAt {
        puddle: holder.root,
        offset,
    };
    let told = holder.answers(&served, &place, |asked| {
        let ends = holder.remote.end_showing(asked, Err("my\nreason"));
        ends.unwrap();
    });
    assert!(told.contains("myreason"), "{told}");
    // Nothing at all; and files that are empty, too short, no heap, or not where they are said to be.
    let told = holder.answers(&served, &place, |asked| {
        holder.remote.end_showing(asked, Ok(&[])).unwrap();
    });
    assert!(told.contains("puddle"), "{told}");
    let length = 2 << 20;
    for (bytes, offset) in [
        (vec![], 0),
        (vec![1; 100], 0),
        (vec![0xff; length], 0),
        (vec![0; length], 1),
        (vec![0; length], u64::MAX),
    ] {
        holder.answers(&served, &place, |asked| {
            let file = holder.remote.showing_file(asked).unwrap();
            file.write_all_at(&bytes, 0).unwrap();
            let shown = [root(offset)];
            holder.remote.end_showing(asked, Ok(&shown)).unwrap();
        });
    }
    let many = vec![root(0); SHOWN_MAX + 1];
    let told = holder.answers(&served, &place, |asked| {
        holder.remote.end_showing(asked, Ok(&many)).unwrap();
    });
    assert!(told.contains("at most"), "{told}");
    let told = holder.answers(&served, &place, |asked| {
        // Another client speaks for this one.
        let other = Remote::open(&served.socket(), Default::default()).unwrap();
        other.showing_file(asked).unwrap_err();
        other.end_showing(asked, Ok(&[])).unwrap_err();
        // Two at once.
        let told = refused(&served, &place, 100);
        assert!(told.contains("being shown"), "{told}");
        holder.remote.end_showing(asked, Err("enough")).unwrap();
        holder.remote.end_showing(asked, Ok(&[])).unwrap_err();
    });
    assert!(told.contains("enough"), "{told}");
    // What is no puddle of the pool's is not looked at: here the pool has one, and it is whole.
    let open = holder.remote.reopen_puddle(holder.root).unwrap();
    let mut bytes = vec![0; length];
    open.read_exact_at(&mut bytes, 0).unwrap();
    std::thread::scope(|scope| {
        let asks = scope.spawn(|| export(&served, "pool", &place, 10_000));
        let asked = holder.asked.recv().unwrap();
        let file = holder.remote.showing_file(asked).unwrap();
        file.write_all_at(&bytes, 4096).unwrap();
        let puddle = holder.pool;
        let foreign = ShownAt { puddle, offset: 0 };
        let shown = [foreign, root(4096)];
        holder.remote.end_showing(asked, Ok(&shown)).unwrap();
        assert_eq!(asks.join().unwrap().unwrap().puddles, 1);
    });
    std::fs::remove_dir_all(&place).unwrap();
    // An older client, which knows nothing of this.
    drop(holder);
    until("the pool is free", || {
        export(&served, "pool", &place, 0).is_ok()
    });
    std::fs::remove_dir_all(&place).unwrap();
    let (raw, _lock) = Raw::enter(&served.socket());
    let name = "pool".to_owned();
    let opened = raw.ask(&durum_protocol::Request::OpenPool { name });
    assert!(matches!(opened, durum_protocol::Answer::Pool { .. }));
    let told = refused(&served, &place, 1000);
    assert!(told.contains("used by another program"), "{told}");
}

/// Who asks often makes the program do no more than one thing at a time.
#[test]
fn who_asks_and_goes_costs_little() {
    let (_directory, place) = place();
    let served = Served::start();
    let store = Store::open(served.address(), StoreOptions::new()).unwrap();
    let pool = store.create_pool("pool", PoolOptions::new()).unwrap();
    set(&pool, 1);
    let threads = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")));
        names
            .filter(|name| {
                name.as_deref()
                    .is_ok_and(|name| name.trim() == "durum-snapshot")
            })
            .count()
    };
    // Other showings wait for this snapshot.
    let asks = Arc::new(AtomicBool::new(false));
    let asked = asks.clone();
    let (socket, most) = (
        served.socket(),
        Arc::new(std::sync::atomic::AtomicUsize::new(0)),
    );
    let (place_, seen) = (place.clone(), most.clone());
    let progress = move |_: _| {
        if !asked.swap(true, Ordering::Relaxed) {
            for _ in 0..30 {
                let remote = Remote::open(&socket, Default::default()).unwrap();
                assert!(remote.show_pool("pool", Duration::ZERO).is_err());
                seen.fetch_max(threads(), Ordering::Relaxed);
            }
        }
    };
    let options = durum::SnapshotOptions::new().progress(Arc::new(progress));
    pool.snapshot(&place_, &options).unwrap();
    assert!(asks.load(Ordering::Relaxed));
    assert_eq!(most.load(Ordering::Relaxed), 1);
    // And it shows it still.
    std::fs::remove_dir_all(&place).unwrap();
    export(&served, "pool", &place, 10_000).unwrap();
}

/// A program that waits for another one's pool goes on with its own.
#[test]
fn who_waits_for_a_pool_can_do_other_things_meanwhile() {
    let (_directory, place) = place();
    let served = Served::start();
    let _holder = Holder::new(&served);
    let store = Store::open(served.address(), StoreOptions::new()).unwrap();
    let options = ExportOptions {
        wait: Some(Duration::from_secs(2)),
        ..ExportOptions::default()
    };
    std::thread::scope(|scope| {
        let asks = scope.spawn(|| store.export_pool("pool", &place, &options));
        std::thread::sleep(Duration::from_millis(300));
        let began = Instant::now();
        store.create_pool("other", PoolOptions::new()).unwrap();
        assert!(
            began.elapsed() < Duration::from_secs(1),
            "{:?}",
            began.elapsed()
        );
        asks.join().unwrap().unwrap_err();
    });
}
