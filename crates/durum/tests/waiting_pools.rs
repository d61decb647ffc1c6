//! A pool of which a file is missing, cut short, another's or unreadable waits alone: the others open with all that was
//! acknowledged, and it has all of its own when the file is back, whatever was done to the others meanwhile.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};

use durum::{Domain, Engine, Error, Pool, PoolOptions, Store, StoreOptions};
use durum_format::crc::Crc;
use durum_persist::inject;
use durum_service::{Embedded, ReadOnlyStore, Service};

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

/// What happens to a file.
#[derive(Clone, Copy, Debug)]
enum Damage {
    Missing,
    CutTo(fn(u64) -> u64),
    ZeroedHeader,
    SwappedWith,
}

const DAMAGES: [Damage; 7] = [
    Damage::Missing,
    Damage::CutTo(|_| 0),
    Damage::CutTo(|_| 4096),
    Damage::CutTo(|length| length / 2),
    Damage::CutTo(|length| length - 1),
    Damage::ZeroedHeader,
    Damage::SwappedWith,
];

fn damage(file: &Path, other: &Path, how: Damage) {
    match how {
        Damage::Missing => fs::remove_file(file).unwrap(),
        Damage::CutTo(length) => {
            let open = fs::OpenOptions::new().write(true).open(file).unwrap();
            open.set_len(length(open.metadata().unwrap().len()))
                .unwrap();
        }
        Damage::ZeroedHeader => {
            let open = fs::OpenOptions::new().write(true).open(file).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&open, &[0; 1024], 0).unwrap();
        }
        Damage::SwappedWith => {
            fs::copy(other, file).unwrap();
        }
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

fn each_damage(engine: Engine, is_chosen: impl Fn(Case, usize, Damage) -> bool) {
    each_file(
        engine,
        |_| true,
        |case, left, file, other| {
            let whole = left.dir.path().join("whole");
            let number = left.files_of("b").iter().position(|found| found == file);
            for how in DAMAGES {
                if !is_chosen(case, number.unwrap(), how) {
                    continue;
                }
                let kept = fs::read(file).unwrap();
                waits_alone(
                    case,
                    left,
                    file,
                    || damage(file, other, how),
                    || fs::write(file, &kept).unwrap(),
                );
                fs::remove_dir_all(left.store()).unwrap();
                copy(&whole, &left.store());
            }
        },
    );
}

/// Each damage, each end, each domain and each file, though not with each other.
fn some(case: Case, file: usize, how: Damage) -> bool {
    match (case.end, case.domain) {
        (End::Both, Domain::Dram) => file == 0,
        _ => matches!(how, Damage::Missing),
    }
}

#[test]
fn pools_wait_alone_on_shadow() {
    each_damage(Engine::Shadow, some);
}

#[test]
fn pools_wait_alone_on_hybrid() {
    each_damage(Engine::Hybrid, some);
}

#[test]
fn pools_wait_alone_on_twin() {
    each_damage(Engine::Twin, some);
}

#[test]
#[ignore = "some minutes: ci/campaigns.sh runs it"]
fn pools_wait_alone_whatever_happens_to_a_file() {
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        each_damage(engine, |_, _, _| true);
    }
}

/// As a disk that fails.
#[test]
fn a_file_that_cannot_be_read_makes_its_pool_wait() {
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        // What differs is how files are read, and what is under way.
        let is_chosen = |case: Case| match case.domain {
            Domain::File => case.end == End::Alone && engine == Engine::Shadow,
            _ => case.end == End::Alone || engine == Engine::Hybrid,
        };
        each_file(engine, is_chosen, |case, left, file, _| {
            let fault = std::cell::RefCell::new(None);
            waits_alone(
                case,
                left,
                file,
                || *fault.borrow_mut() = Some(inject::fail_after(inject::Operation::Read, 0, file)),
                || *fault.borrow_mut() = None,
            );
        });
    }
}

/// Descriptors that are used up are no pool's fault: the open fails, and nothing is written.
#[test]
fn what_the_system_lacks_is_no_pools_fault() {
    let case = Case {
        engine: Engine::Shadow,
        domain: Domain::Dram,
        end: End::Alone,
    };
    let left = Left::new(case);
    let before = snapshot(&left.store(), &[]);
    let status = support::start("worker_without_descriptors", left.dir.path())
        .wait()
        .unwrap();
    assert!(status.success());
    assert!(snapshot(&left.store(), &[]) == before);
    let store = open(&left.store(), case.domain);
    let a = pool_or_refusal(&store, "a").unwrap();
    assert_eq!(look(&a).0, left.acknowledged[0]);
}

#[test]
#[ignore = "the other process of the test above"]
fn worker_without_descriptors() {
    let Some(dir) = support::directory() else {
        return;
    };
    // One of them is that of the directory that is read here.
    let used = fs::read_dir("/proc/self/fd").unwrap().count() as u64 - 1;
    for more in [1, 2] {
        let limit = libc::rlimit {
            rlim_cur: used + more,
            rlim_max: used + 100,
        };
        // SAFETY: the pointer is to a local.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }, 0);
        let opened = Embedded::open(&dir.join("store"), durum_service::OpenOptions::default());
        match opened.map(drop) {
            Err(durum_service::Error::Io { source, .. }) => {
                assert_eq!(source.raw_os_error(), Some(libc::EMFILE), "{source}");
            }
            other => panic!("with {more} descriptors: {other:?}"),
        }
    }
}

/// Another user's file.
#[test]
fn a_file_that_may_not_be_opened_makes_its_pool_wait() {
    // SAFETY: asks only.
    if unsafe { libc::geteuid() } != 0 {
        return; // Only root can run a process as another user.
    }
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        for (mode, domain) in [
            (0o000, Domain::Dram),
            (0o444, Domain::Dram),
            (0o000, Domain::File),
        ] {
            let case = Case {
                engine,
                domain,
                end: End::Alone,
            };
            let left = Left::new(case);
            let store = left.store();
            let file = left.files_of("b").remove(0);
            let owned = std::process::Command::new("chown")
                .args(["-R", "65534:65534"])
                .arg(left.dir.path())
                .status();
            assert!(owned.unwrap().success());
            std::os::unix::fs::chown(&file, Some(0), Some(0)).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
            let before = fs::read(&file).unwrap();
            let status = support::command("worker_that_recovers", left.dir.path())
                .uid(65534)
                .gid(65534)
                .status()
                .unwrap();
            assert!(status.success(), "{case:?} {mode:o}");
            assert!(fs::read(&file).unwrap() == before);
            fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
            let opened = open(&store, case.domain);
            let [a, b] = ["a", "b"].map(|name| look(&pool_or_refusal(&opened, name).unwrap()));
            assert_eq!(a.0, left.acknowledged[0] + 1);
            assert_eq!(b.0, left.acknowledged[1]);
            opened.close().unwrap();
        }
    }
}

#[test]
#[ignore = "the other process of the test above"]
fn worker_that_recovers() {
    let Some(dir) = support::directory() else {
        return;
    };
    let store = Store::open(dir.join("store"), StoreOptions::new()).unwrap();
    let why = pool_or_refusal(&store, "b").expect_err("it cannot be written");
    let denied = io::Error::from_raw_os_error(libc::EACCES).to_string();
    assert!(why.contains(&denied), "{why}");
    let a = pool_or_refusal(&store, "a").unwrap();
    step(&[&a], false, || ());
    drop(a);
    store.close().unwrap();
}

/// Another user's log: recovery could replay it, and not make it durable before. The registry's copy is mended first.
#[test]
fn a_log_that_may_not_be_written_changes_nothing() {
    // SAFETY: asks only.
    if unsafe { libc::geteuid() } != 0 {
        return; // Only root can run a process as another user.
    }
    for engine in [Engine::Shadow, Engine::Hybrid] {
        let left = Left::new(Case {
            engine,
            domain: Domain::Dram,
            end: End::Both,
        });
        let store = left.store();
        let of_pools: Vec<PathBuf> = ["a", "b"].map(|pool| left.files_of(pool)).concat();
        let owned = std::process::Command::new("chown")
            .args(["-R", "65534:65534"])
            .arg(left.dir.path())
            .status();
        assert!(owned.unwrap().success());
        for entry in fs::read_dir(store.join("puddles")).unwrap() {
            let file = entry.unwrap().path();
            if !of_pools.contains(&file) {
                std::os::unix::fs::chown(&file, Some(0), Some(0)).unwrap();
                fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
            }
        }
        // It is made anew: the registry that recovery follows is durable twice before.
        let copy = store.join("registry.copy");
        fs::remove_file(&copy).unwrap();
        let before = snapshot(&store, &[&copy]);
        let status = support::command("worker_that_cannot_recover", left.dir.path())
            .uid(65534)
            .gid(65534)
            .status()
            .unwrap();
        assert!(status.success(), "{engine:?}");
        assert!(snapshot(&store, &[&copy]) == before, "{engine:?}");
    }
}

#[test]
#[ignore = "the other process of the test above"]
fn worker_that_cannot_recover() {
    let Some(dir) = support::directory() else {
        return;
    };
    let error = Store::open(dir.join("store"), StoreOptions::new()).unwrap_err();
    let denied = io::Error::from_raw_os_error(libc::EACCES).to_string();
    assert!(error.to_string().contains(&denied), "{error}");
}

/// What is given up is gone for good, and nothing else is.
#[test]
fn what_is_given_up_is_lost_in_that_pool_only() {
    for case in Case::all().filter(|case| case.engine != Engine::Twin) {
        let left = Left::new(case);
        let file = left.files_of("b").remove(0);
        let kept = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let store = Embedded::open(&left.store(), durum_service::OpenOptions::default()).unwrap();
        if case.end == End::Alone {
            assert!(store.give_up("a").is_err(), "it does not wait");
        }
        let refused = store.refused_pools().unwrap();
        match refused.iter().find(|pool| pool.name == "b") {
            Some(b) => {
                assert!(b.transactions + b.undecided > 0, "{case:?}: {b:?}");
                store.give_up("b").unwrap();
            }
            None => {
                let nothing = store.give_up("b").unwrap_err();
                assert!(nothing.to_string().contains("nothing is kept"), "{nothing}");
            }
        }
        assert!(store.refused_pools().unwrap().is_empty(), "{case:?}");
        store.close().unwrap();
        fs::write(&file, kept).unwrap();
        let store = open(&left.store(), case.domain);
        assert!(store.recovery().unwrap().was_clean, "{case:?}");
        let a = pool_or_refusal(&store, "a").unwrap();
        let lost = match (case.engine, case.end) {
            // Only the file that is gone could tell that it committed, and undoing it is sound.
            (Engine::Hybrid, End::Both) => 1,
            _ => 0,
        };
        let count = look(&a).0;
        assert!(
            count == left.acknowledged[0] || count + lost == left.acknowledged[0],
            "{case:?}: {count} of {}",
            left.acknowledged[0]
        );
    }
}

/// What was decided is noted once. Otherwise each open would note it again, in a store that nobody can do anything for.
#[test]
fn an_open_that_can_do_nothing_writes_nothing() {
    for engine in [Engine::Shadow, Engine::Hybrid] {
        let is_chosen = |case: Case| case.domain == Domain::Dram || engine == Engine::Shadow;
        each_file(engine, is_chosen, |case, left, file, _| {
            fs::remove_file(file).unwrap();
            open(&left.store(), case.domain).close().unwrap();
            let before = snapshot(&left.store(), &[]);
            for _ in 0..2 {
                open(&left.store(), case.domain).close().unwrap();
                assert!(snapshot(&left.store(), &[]) == before, "{case:?}");
            }
        });
    }
}

/// A copy of the file from before is not the file of then.
#[test]
fn an_older_copy_of_the_file_is_refused() {
    let case = Case {
        engine: Engine::Shadow,
        domain: Domain::Dram,
        end: End::Alone,
    };
    let left = Left::new(case);
    let files = left.files_of("b");
    let whole: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    for file in &files {
        fs::remove_file(file).unwrap();
    }
    open(&left.store(), case.domain).close().unwrap();
    // As they were before the transactions: what went home with them is not there.
    for (file, bytes) in files.iter().zip(&whole) {
        let mut old = bytes.clone();
        let heap = old.len() / 8;
        old[heap..].fill(0);
        fs::write(file, old).unwrap();
    }
    let before = snapshot(&left.store(), &[]);
    let store = open(&left.store(), case.domain);
    let why = pool_or_refusal(&store, "b").expect_err("it is not the file of then");
    assert!(why.contains("not the file that the pool had"), "{why}");
    drop(store);
    assert!(
        snapshot(&left.store(), &[]) == before,
        "nothing could be done, so nothing is written"
    );
    for (file, bytes) in files.iter().zip(&whole) {
        fs::write(file, bytes).unwrap();
    }
    let store = open(&left.store(), case.domain);
    let b = pool_or_refusal(&store, "b").unwrap();
    assert_eq!(look(&b).0, left.acknowledged[1]);
}

/// While a part is kept nothing follows pointers through the store, and the pool is not removed.
#[test]
fn nothing_that_follows_pointers_is_done_while_a_part_is_kept() {
    let case = Case {
        engine: Engine::Shadow,
        domain: Domain::Dram,
        end: End::Alone,
    };
    let left = Left::new(case);
    let file = left.files_of("b").remove(0);
    fs::remove_file(&file).unwrap();
    let store = open(&left.store(), case.domain);
    store.close().unwrap();
    let path = left.store();
    let kept = |error: durum_service::Error| {
        assert!(
            matches!(&error, durum_service::Error::PartsKept { pools, .. } if pools == &["b"]),
            "{error}"
        );
    };
    kept(durum_service::repair(&path).unwrap_err());
    let target = left.dir.path().join("clone");
    kept(
        durum_service::clone_store(&path, &target, &durum_service::CloneOptions::default())
            .unwrap_err(),
    );
    kept(
        durum_service::find_garbage(&path, &durum_service::GarbageOptions::default()).unwrap_err(),
    );
    let report = durum_service::check(&path, &durum_service::CheckOptions::default()).unwrap();
    assert!(!report.is_sound());
    let told = report.findings.iter().map(ToString::to_string);
    assert!(
        told.clone()
            .any(|text| text.contains("pool \"b\"") && text.contains("kept for it")),
        "{:?}",
        told.collect::<Vec<_>>()
    );
    let store = Embedded::open(&path, durum_service::OpenOptions::default()).unwrap();
    assert!(matches!(
        store.remove_pool("b").unwrap_err(),
        durum_service::Error::PoolRefused { .. }
    ));
    store.remove_pool("a").unwrap();
    store.give_up("b").unwrap();
    store.remove_pool("b").unwrap();
}
