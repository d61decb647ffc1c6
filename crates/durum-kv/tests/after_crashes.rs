//! What users of LevelDB report after crashes, done to the files of a database: a log whose end is torn, a table that
//! is empty, a manifest that is missing, cut, doubled or old.
//!
//! The crash: a process is killed after writes that were acknowledged, so that its logs wait for recovery; then a file
//! is as a file system might leave it that has lost what it said it had. Either the database opens with everything, or
//! it is refused by the name of the file, and nothing of it is lost; then the cure that is told works.

#[path = "../../durum/tests/support/mod.rs"]
mod process;
mod support;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use durum_format::log::{LOG_AREA_OFFSET, RANGE_SLOTS_OFFSET};
use durum_kv::{Db, Engine, Error, ErrorKind, Options, repair};
use durum_service::{Embedded, OpenOptions, PuddleKind, ReadOnlyStore, Service};
use support::{ENGINES, Map, contents};

const KEYS: u32 = 300;

/// The writes of the process, in their order: each key twice.
fn writes() -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
    (0..KEYS).flat_map(|number| {
        let key = format!("key {:04}", number * 7 % KEYS).into_bytes();
        let value = vec![number as u8; 100 + number as usize];
        [(key.clone(), b"before".to_vec()), (key, value)]
    })
}

fn model() -> Map {
    writes().collect()
}

#[test]
#[ignore = "the other process of the tests below"]
fn writes_and_waits() {
    let Some(dir) = process::directory() else {
        return;
    };
    let db = Db::open(dir.join("db"), Options::new()).unwrap();
    for (key, value) in writes() {
        db.put(&key, &value).unwrap();
    }
    fs::write(dir.join("done"), "").unwrap();
    loop {
        std::thread::park();
    }
}

/// A database whose process was killed, and a place for copies of it.
struct Killed {
    engine: Engine,
    dir: tempfile::TempDir,
    whole: PathBuf,
    /// From before the process began.
    old: PathBuf,
    puddles: BTreeMap<String, PuddleKind>,
}

impl Killed {
    fn new(engine: Engine) -> Self {
        let (dir, whole) = support::place();
        drop(Db::open(&whole, support::options().engine(engine)).unwrap());
        let old = dir.path().join("old");
        copy(&whole, &old);
        let mut child = process::start("writes_and_waits", dir.path());
        while !dir.path().join("done").exists() {
            assert!(child.try_wait().unwrap().is_none(), "it waits to be killed");
            std::thread::sleep(Duration::from_millis(5));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let reader = ReadOnlyStore::open(&whole).unwrap();
        let named = |puddle: &durum_service::PuddleSummary| (puddle.uuid.to_string(), puddle.kind);
        let puddles = reader.puddles().iter().map(named).collect();
        Self {
            engine,
            dir,
            whole,
            old,
            puddles,
        }
    }

    /// A copy of the store, in which `change` is done to one file.
    fn damaged(&self, file: &Path, change: impl FnOnce(&Path)) -> PathBuf {
        let path = self.dir.path().join("damaged");
        copy(&self.whole, &path);
        change(&path.join(file));
        path
    }

    /// Files of puddles, which hold objects or do not. Logs that are kept in reserve were never used, and nobody misses
    /// them.
    fn files(&self, of_objects: bool) -> Vec<PathBuf> {
        let wanted = |name: &str, kind: PuddleKind| {
            kind.holds_objects() == of_objects
                && (kind != PuddleKind::Log || is_used(&self.whole.join("puddles").join(name)))
        };
        let found = self
            .puddles
            .iter()
            .filter(|(name, kind)| wanted(name, **kind));
        let files: Vec<_> = found
            .map(|(name, _)| Path::new("puddles").join(name))
            .collect();
        assert!(!files.is_empty(), "{:?}", self.engine);
        files
    }
}

/// Whether a log has a range word.
fn is_used(log: &Path) -> bool {
    let heap = durum_format::puddle::heap_offset(durum_format::UNIT) as usize;
    let slots = heap + RANGE_SLOTS_OFFSET as usize..heap + LOG_AREA_OFFSET as usize;
    fs::read(log).unwrap()[slots].iter().any(|byte| *byte != 0)
}

fn copy(from: &Path, to: &Path) {
    let _ = fs::remove_dir_all(to);
    let mut command = Command::new("cp");
    command.args(["-r", "--sparse=always"]).args([from, to]);
    assert!(command.status().unwrap().success());
}

fn cut(path: &Path, bytes: u64) {
    let file = File::options().write(true).open(path).unwrap();
    file.set_len(bytes).unwrap();
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

/// Every file of a store with its bytes, but for the lock.
fn files(store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for dir in [
        store.into(),
        store.join("puddles"),
        store.join("quarantine"),
    ] {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_file() && !path.ends_with("lock") {
                found.insert(
                    path.strip_prefix(store).unwrap().into(),
                    fs::read(&path).unwrap(),
                );
            }
        }
    }
    found
}

fn opens_whole(path: &Path, what: &str) {
    let db = Db::open(path, Options::new()).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(contents(&db) == model(), "{what}");
    assert_eq!(db.verify().unwrap(), u64::from(KEYS), "{what}");
}

/// Opening is refused in words that have `name` in them.
fn is_refused(path: &Path, name: &str, what: &str) -> Error {
    // Also where a database would be made if there were none: what is there is not written over.
    let created = Db::open(path, support::options());
    assert!(created.is_err(), "{what}: written over");
    let refusal = match Db::open(path, Options::new()) {
        Ok(_) => panic!("{what}: opens"),
        Err(refusal) => refusal,
    };
    let text = refusal.to_string();
    assert!(text.contains(name), "{what}: {name} is not named: {text}");
    refusal
}

/// A log that is cut or gone is neither replayed nor dropped. Its file and the pool stay as they were, and a person
/// decides.
#[test]
fn a_log_whose_end_is_cut_is_refused_and_kept() {
    for engine in ENGINES {
        let killed = Killed::new(engine);
        for file in killed.files(false) {
            let bytes = size(&killed.whole.join(&file));
            for keep in [bytes - 1, bytes - 4096, bytes / 2, 4096, 100, 0] {
                let what = format!("{engine:?}, {} cut to {keep}", file.display());
                let path = killed.damaged(&file, |log| cut(log, keep));
                let before = files(&path);
                let name = file.file_name().unwrap().to_str().unwrap();
                let refusal = is_refused(&path, name, &what);
                assert_eq!(refusal.kind(), ErrorKind::Data, "{what}: {refusal}");
                assert!(refusal.to_string().contains("restore a copy"), "{refusal}");
                // LevelDB's repair drops what it cannot read.
                assert!(repair(&path, Options::new()).is_err(), "{what}");
                let after = files(&path);
                // What Twin brings home is its other copy's, for which it needs no log.
                for object in killed.files(true) {
                    let is_left = after[&object] == before[&object];
                    assert!(is_left || engine == Engine::Twin, "{what}: the pool");
                }
                let kept = Path::new("quarantine").join(name);
                assert!(after[&kept] == before[&file], "{what}: the log");
                // The first cure.
                copy(&killed.whole, &path);
                opens_whole(&path, &what);
            }
        }
        // The second one: the pool as it is. What the log would have brought home may be missing, and is then told as
        // damage.
        let logs = killed.files(false);
        let path = killed.damaged(&logs[0], |log| fs::remove_file(log).unwrap());
        is_refused(&path, "quarantine", "a log that is gone");
        let store = Embedded::open(&path, OpenOptions::default()).unwrap();
        store.accept_quarantined(durum_kv::POOL).unwrap();
        store.close().unwrap();
        drop(store);
        match Db::open(&path, Options::new()).and_then(|db| db.verify()) {
            Ok(_) if engine == Engine::Twin => opens_whole(&path, "accepted"),
            Ok(count) => assert!(count <= u64::from(KEYS)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Data, "{error}"),
        }
    }
}

/// A file system that makes a file long before it writes what is in it leaves zeros at its end. Behind what was written
/// they mean nothing. In it they mean that nothing was written: then there is what was there after some write, in the
/// order of writes, or damage that is told.
#[test]
fn a_log_with_zeros_at_its_end_brings_all_up_to_them() {
    for engine in ENGINES {
        let killed = Killed::new(engine);
        for file in killed.files(false) {
            let log = fs::read(killed.whole.join(&file)).unwrap();
            let used = log.iter().rposition(|byte| *byte != 0).unwrap() + 1;
            let what = format!("{engine:?}, {}", file.display());
            let zeros_from = |from: usize| {
                killed.damaged(&file, |path| {
                    cut(path, from as u64);
                    cut(path, log.len() as u64);
                })
            };
            opens_whole(&zeros_from(used), &what);
            for lost in [1, 64, 700, 5000] {
                let path = zeros_from(used.saturating_sub(lost).max(4096));
                let read = Db::open(&path, Options::new()).and_then(|db| {
                    db.verify()?;
                    support::entries(&mut db.iter())
                });
                match read {
                    Ok(found) => {
                        let found: Map = found.into_iter().collect();
                        let mut state = Map::new();
                        let is_prefix = found.is_empty()
                            || writes().any(|(key, value)| {
                                state.insert(key, value);
                                state == found
                            });
                        assert!(is_prefix, "{what}, {lost} bytes lost");
                    }
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Data, "{what}: {error}"),
                }
            }
        }
    }
}

#[test]
fn a_puddle_that_is_empty_cut_or_gone_is_refused_by_name() {
    for engine in ENGINES {
        let killed = Killed::new(engine);
        for file in killed.files(true) {
            let bytes = size(&killed.whole.join(&file));
            for keep in [Some(bytes - 1), Some(bytes / 2), Some(0), None] {
                let what = format!("{engine:?}, {} cut to {keep:?}", file.display());
                let path = killed.damaged(&file, |puddle| match keep {
                    Some(keep) => cut(puddle, keep),
                    None => fs::remove_file(puddle).unwrap(),
                });
                let before = files(&path);
                let name = file.file_name().unwrap().to_str().unwrap();
                for attempt in ["first", "second"] {
                    let refusal = is_refused(&path, name, &format!("{what}, {attempt}"));
                    assert_eq!(refusal.kind(), ErrorKind::Data, "{what}: {refusal}");
                    assert!(refusal.to_string().contains("restore a copy"), "{refusal}");
                }
                assert!(repair(&path, Options::new()).is_err(), "{what}");
                // Nothing is made in its place, and every log is there still, if not where it was.
                let after = files(&path);
                assert!(after.get(&file) == before.get(&file), "{what}");
                copy(&killed.whole, &path);
                opens_whole(&path, &what);
            }
        }
    }
}

/// What becomes of a file that says which files there are.
const CHANGES: [&str; 5] = ["gone", "empty", "cut", "doubled", "old"];

fn change(killed: &Killed, file: &Path, how: &str) {
    let bytes = || fs::read(file).unwrap();
    let name = file.file_name().unwrap();
    match how {
        "gone" => fs::remove_file(file).unwrap(),
        "empty" => fs::write(file, "").unwrap(),
        "cut" => fs::write(file, &bytes()[..bytes().len() / 2]).unwrap(),
        "doubled" => fs::write(file, bytes().repeat(2)).unwrap(),
        _ => drop(fs::copy(killed.old.join(name), file).unwrap()),
    }
}

/// In place of LevelDB's manifest and CURRENT: the registry and its copy, of which each can be made from the other.
#[test]
fn a_registry_or_copy_that_is_gone_torn_doubled_or_old_is_repaired() {
    for engine in ENGINES {
        let killed = Killed::new(engine);
        for name in ["registry", "registry.copy"] {
            for how in CHANGES {
                let what = format!("{engine:?}, {name} is {how}");
                let path = killed.damaged(Path::new(name), |file| change(&killed, file, how));
                let before = files(&path);
                if name == "registry.copy" {
                    // The registry is whole, and the copy is made anew.
                    opens_whole(&path, &what);
                    continue;
                }
                let refusal = is_refused(&path, name, &what);
                assert_eq!(refusal.kind(), ErrorKind::Data, "{what}: {refusal}");
                assert!(files(&path) == before, "{what}: nothing is changed");
                assert_eq!(repair(&path, Options::new()).unwrap(), u64::from(KEYS));
                opens_whole(&path, &what);
            }
        }
    }
}

/// The file that makes a directory a store.
#[test]
fn a_database_without_its_identity_is_not_written_over_and_gets_it_back() {
    let killed = Killed::new(Engine::Shadow);
    let name = durum_format::store::FILE_NAME;
    for how in &CHANGES[..4] {
        let what = format!("{name} is {how}");
        let path = killed.damaged(Path::new(name), |file| change(&killed, file, how));
        let before = files(&path);
        is_refused(&path, "", &what);
        assert!(files(&path) == before, "{what}: nothing is changed");
        // The registry repeats it.
        assert_eq!(repair(&path, Options::new()).unwrap(), u64::from(KEYS));
        opens_whole(&path, &what);
    }
}

#[test]
#[ignore = "the other process of the test below"]
fn repairs_what_is_open() {
    let Some(dir) = process::directory() else {
        return;
    };
    let refused = repair(dir.join("db"), Options::new()).unwrap_err();
    assert!(refused.to_string().contains("in use"), "{refused}");
}

/// LevelDB's moves the files away that are in use; what is written then is lost, and the database does not open again.
#[test]
fn a_database_that_is_open_is_not_repaired() {
    for engine in ENGINES {
        let (dir, path) = support::place();
        let db = Db::open(&path, support::options().engine(engine)).unwrap();
        db.put(b"before", b"1").unwrap();
        let refused = repair(&path, Options::new()).unwrap_err();
        assert!(refused.to_string().contains("in use"), "{refused}");
        let status = process::start("repairs_what_is_open", dir.path()).wait();
        assert!(status.unwrap().success());
        db.put(b"after", b"2").unwrap();
        drop(db);
        assert_eq!(repair(&path, Options::new()).unwrap(), 2);
        let db = Db::open(&path, Options::new()).unwrap();
        assert_eq!(db.get(b"after").unwrap().as_deref(), Some(&b"2"[..]));
    }
}

/// The next version of a file, or a second copy of a puddle, that a crash or a person left beside it.
#[test]
fn a_second_copy_beside_a_file_changes_nothing() {
    for engine in ENGINES {
        let killed = Killed::new(engine);
        for name in ["registry", "durum.store"] {
            let beside = format!("{name}.new");
            let path = killed.damaged(Path::new(name), |file| {
                fs::copy(file, file.with_file_name(&beside)).unwrap();
            });
            opens_whole(&path, &beside);
        }
        let path = killed.damaged(&killed.files(true)[0], |puddle| {
            fs::copy(puddle, puddle.with_extension("orig")).unwrap();
        });
        opens_whole(&path, "a copy of a puddle");
    }
}
