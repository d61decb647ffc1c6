//! A pool of which a file is missing, cut short, another's or unreadable waits alone: the others open with all that was
//! acknowledged, and it has all of its own when the file is back, whatever was done to the others meanwhile.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod alone;
mod kept;
#[path = "../support/mod.rs"]
mod support;
mod system;

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use durum::{Domain, Engine, Error, Pool, PoolOptions, Store, StoreOptions};
use durum_format::crc::Crc;
use durum_service::ReadOnlyStore;

const BLOB: usize = 5000;
/// Too large for the first puddle of a pool: it lies in another one.
const LARGE: usize = 3 << 20;
const ROUNDS: u64 = 60;

#[repr(C)]
struct Blob {
    bytes: [u8; BLOB],
}
durum::describe!(Blob as "waiting-blob" { bytes });

#[repr(C)]
struct Root {
    /// The number of transactions.
    count: u64,
    /// Made anew by each; all of its bytes are the count.
    blob: *mut Blob,
    /// How many of them were about both pools.
    shared: u64,
    large: *mut u8,
    /// Its first byte, and its last.
    large_byte: u64,
}
durum::describe!(Root as "waiting-root" { count, blob, shared, large, large_byte });

/// How the process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// After transactions on the first pool only, so that it is known of all others that they committed.
    Alone,
    /// After a transaction over both that made objects in both: only home can tell that it committed.
    Both,
    /// In the middle of one.
    Half,
}

#[derive(Clone, Copy, Debug)]
struct Case {
    engine: Engine,
    domain: Domain,
    end: End,
}

impl Case {
    fn text(self) -> String {
        format!("{} {:?} {:?}", self.engine.name(), self.domain, self.end)
    }

    fn all() -> impl Iterator<Item = Case> {
        let engines = [Engine::Shadow, Engine::Hybrid, Engine::Twin];
        engines.into_iter().flat_map(|engine| {
            [Domain::Dram, Domain::File]
                .into_iter()
                .flat_map(move |domain| {
                    [End::Alone, End::Both, End::Half].map(|end| Case {
                        engine,
                        domain,
                        end,
                    })
                })
        })
    }
}

fn options(domain: Domain) -> StoreOptions {
    StoreOptions::new().domain(domain)
}

/// Each engine's stores have addresses of their own. Other processes make them, which do not know what lies where in
/// the one that opens them, and the tests run side by side.
fn base(engine: Engine) -> u64 {
    match engine {
        Engine::Hybrid => 0x2400_0000_0000,
        Engine::Twin => 0x2800_0000_0000,
        _ => 0x2000_0000_0000,
    }
}

/// One more transaction on each of these pools, as one transaction where the engine can.
fn step(pools: &[&Pool], is_large: bool, before_the_end: impl FnOnce()) {
    let roots: Vec<*mut Root> = pools.iter().map(|pool| pool.root().unwrap()).collect();
    pools[0]
        .transaction(|tx| unsafe {
            for (pool, root) in pools.iter().zip(&roots) {
                let root = *root;
                let count = (*root).count + 1;
                tx.set(&raw mut (*root).count, count)?;
                let blob = tx.alloc_bytes(pool, 0, BLOB, 8)?;
                blob.write_bytes(count as u8, BLOB);
                if !(*root).blob.is_null() {
                    tx.free((*root).blob)?;
                }
                tx.set(&raw mut (*root).blob, blob.cast::<Blob>())?;
                if pools.len() > 1 {
                    tx.set(&raw mut (*root).shared, (*root).shared + 1)?;
                }
                if is_large {
                    let large = tx.alloc_bytes(pool, 0, LARGE, 8)?;
                    large.write_bytes(count as u8, LARGE);
                    tx.set(&raw mut (*root).large, large)?;
                    tx.set(&raw mut (*root).large_byte, count)?;
                }
            }
            before_the_end();
            Ok::<(), Error>(())
        })
        .unwrap();
}

#[test]
#[ignore = "the other process of the tests below"]
fn worker_that_leaves_two_pools() {
    let Some(dir) = support::directory() else {
        return;
    };
    let text = fs::read_to_string(dir.join("case")).unwrap();
    let case = Case::all().find(|case| case.text() == text).unwrap();
    let options = options(case.domain).base(base(case.engine));
    let store = Store::create(dir.join("store"), options).unwrap();
    let how = || PoolOptions::new().engine(case.engine);
    let a = store.create_pool("a", how()).unwrap();
    let b = store.create_pool("b", how()).unwrap();
    // A transaction of Twin is about one pool.
    let can_share = case.engine != Engine::Twin;
    for round in 0..ROUNDS {
        match round % 3 {
            0 if can_share => step(&[&a, &b], round == 0, || ()),
            0 | 1 => step(&[&b], round < 2, || ()),
            _ => step(&[&a], round < 3, || ()),
        }
    }
    drop((a, b));
    store.close().unwrap();
    // What is made now lies where nothing was since the store was opened, and Shadow writes it home with its commit.
    let store = open(&dir.join("store"), case.domain);
    let [a, b] = ["a", "b"].map(|name| store.open_pool(name, how()).unwrap());
    let end = |dir: &Path| {
        let counts = [&a, &b].map(|pool| unsafe { (*pool.root::<Root>().unwrap()).count });
        fs::write(
            dir.join("acknowledged"),
            format!("{} {}", counts[0], counts[1]),
        )
        .unwrap();
        std::process::abort();
    };
    match case.end {
        End::Alone => {
            if can_share {
                step(&[&a, &b], true, || ());
            }
            step(&[&a], false, || ());
            step(&[&a], false, || ());
        }
        End::Both if can_share => step(&[&a, &b], true, || ()),
        End::Both => step(&[&b], true, || ()),
        End::Half => {
            let counts = [&a, &b].map(|pool| unsafe { (*pool.root::<Root>().unwrap()).count });
            fs::write(
                dir.join("acknowledged"),
                format!("{} {}", counts[0], counts[1]),
            )
            .unwrap();
            let pools: &[&Pool] = if can_share { &[&a, &b] } else { &[&b] };
            step(pools, true, || std::process::abort());
        }
    }
    end(&dir);
}

/// A store as such a process leaves it.
struct Left {
    dir: tempfile::TempDir,
    acknowledged: [u64; 2],
}

impl Left {
    fn new(case: Case) -> Left {
        let parent = match case.domain {
            Domain::File => std::env::temp_dir(),
            _ => PathBuf::from("/dev/shm"),
        };
        let dir = tempfile::tempdir_in(parent).unwrap();
        fs::write(dir.path().join("case"), case.text()).unwrap();
        let status = support::start("worker_that_leaves_two_pools", dir.path())
            .wait()
            .unwrap();
        assert_eq!(status.code(), None, "{case:?}: it ends by a signal");
        let text = fs::read_to_string(dir.path().join("acknowledged")).unwrap();
        let (a, b) = text.split_once(' ').unwrap();
        let acknowledged = [a.parse().unwrap(), b.parse().unwrap()];
        Left { dir, acknowledged }
    }

    fn store(&self) -> PathBuf {
        self.dir.path().join("store")
    }

    fn files_of(&self, pool: &str) -> Vec<PathBuf> {
        let store = ReadOnlyStore::open(&self.store()).unwrap();
        let pools = store.pools();
        let pool = pools.iter().find(|found| found.name == pool).unwrap();
        let puddles = store.puddles().into_iter();
        puddles
            .filter(|puddle| puddle.owner == pool.uuid)
            .map(|puddle| self.store().join("puddles").join(puddle.uuid.to_string()))
            .collect()
    }
}

/// All files of a store, without `except`.
fn snapshot(store: &Path, except: &[&Path]) -> BTreeMap<PathBuf, (u64, u32)> {
    let mut files = BTreeMap::new();
    for directory in [
        store.to_owned(),
        store.join("puddles"),
        store.join("quarantine"),
    ] {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() && !except.contains(&path.as_path()) {
                files.insert(path.clone(), contents(&path));
            }
        }
    }
    files
}

/// The size of a file, and a sum of what it holds.
fn contents(path: &Path) -> (u64, u32) {
    let (mut file, mut sum) = (fs::File::open(path).unwrap(), Crc::new());
    let (mut buffer, mut size) = (vec![0; 64 << 10], 0);
    loop {
        match file.read(&mut buffer).unwrap() {
            0 => return (size, sum.value()),
            read => {
                sum.update(&buffer[..read]);
                size += read as u64;
            }
        }
    }
}

/// What a pool holds: how many transactions, and how many of them were about both.
fn look(pool: &Pool) -> (u64, u64) {
    let root = pool.root::<Root>().unwrap();
    let (count, shared, blob) = unsafe { ((*root).count, (*root).shared, (*root).blob) };
    let bytes = unsafe { &(*blob).bytes };
    assert!(
        bytes.iter().all(|byte| *byte == count as u8),
        "the object of transaction {count} is torn"
    );
    let (large, byte) = unsafe { ((*root).large, (*root).large_byte as u8) };
    for at in [0, LARGE / 2, LARGE - 1] {
        assert_eq!(
            unsafe { *large.add(at) },
            byte,
            "byte {at} of the large object"
        );
    }
    (count, shared)
}

fn open(store: &Path, domain: Domain) -> Store {
    Store::open(store, options(domain)).unwrap()
}

/// The pool, or the message why it waits. Where nothing is kept for it, its own file is told of when it is opened.
fn pool_or_refusal(store: &Store, name: &str) -> Result<Pool, String> {
    match store.open_pool(name, PoolOptions::new()) {
        Ok(pool) => Ok(pool),
        Err(Error::Store(error)) => {
            let is_refused = matches!(error, durum_service::Error::PoolRefused { .. });
            let refused = &store.recovery().unwrap().refused;
            assert_eq!(
                is_refused,
                refused.iter().any(|pool| pool.name == name),
                "{error}"
            );
            Err(error.to_string())
        }
        Err(error) => panic!("pool {name}: {error}"),
    }
}

/// Recovers without a file of b, works on a, puts the file back and recovers again.
fn waits_alone(
    case: Case,
    left: &Left,
    file: &Path,
    mut spoil: impl FnMut(),
    mut cure: impl FnMut(),
) {
    let what = || format!("{case:?}, {}", file.display());
    let name = file.file_name().unwrap().to_str().unwrap().to_owned();
    spoil();
    let mut worked = 0;
    for round in 0..2 {
        let store = open(&left.store(), case.domain);
        assert!(
            store.recovery().unwrap().quarantined.is_empty(),
            "{}",
            what()
        );
        let why = pool_or_refusal(&store, "b").expect_err("b waits");
        assert!(why.contains(&name), "{}: {why}", what());
        match pool_or_refusal(&store, "a") {
            Ok(a) => {
                assert_eq!(
                    look(&a).0,
                    left.acknowledged[0] + worked,
                    "{}, round {round}",
                    what()
                );
                for _ in 0..40 {
                    step(&[&a], false, || ());
                }
                worked += 40;
            }
            Err(why) => {
                assert!(why.contains("cannot be said"), "{}: {why}", what());
                assert_ne!(case.end, End::Alone, "{}: {why}", what());
                assert!(why.contains(&name), "{}: {why}", what());
            }
        }
        store.close().unwrap();
    }
    cure();
    let store = open(&left.store(), case.domain);
    assert!(store.recovery().unwrap().refused.is_empty(), "{}", what());
    let [a, b] = ["a", "b"].map(|name| look(&pool_or_refusal(&store, name).unwrap()));
    assert_eq!(a.0, left.acknowledged[0] + worked, "{}", what());
    assert_eq!(b.0, left.acknowledged[1], "{}", what());
    assert_eq!(
        a.1,
        b.1,
        "{}: a transaction over both is whole in each",
        what()
    );
    store.close().unwrap();
    let report = durum_service::check(&left.store(), &durum_service::CheckOptions::default());
    assert!(report.unwrap().is_sound(), "{}", what());
}

fn copy(from: &Path, to: &Path) {
    let status = std::process::Command::new("cp")
        .args(["-r", "--sparse=always"])
        .args([from, to])
        .status()
        .unwrap();
    assert!(status.success());
}

/// In cases that are chosen.
fn each_file(
    engine: Engine,
    is_chosen: impl Fn(Case) -> bool,
    each: impl Fn(Case, &Left, &Path, &Path),
) {
    let cases = Case::all().filter(|case| case.engine == engine && is_chosen(*case));
    for case in cases {
        let left = Left::new(case);
        let whole = left.dir.path().join("whole");
        copy(&left.store(), &whole);
        let other = left.files_of("a").remove(0);
        for file in left.files_of("b") {
            each(case, &left, &file, &other);
            // The next one begins with what the process left.
            fs::remove_dir_all(left.store()).unwrap();
            copy(&whole, &left.store());
        }
    }
}
