//! A database, crashed at every store, write-back and fence: every write that was acknowledged is there, and the one
//! under way as a whole or not at all.
//!
//! The crashes: inside puts, deletes, batches and transactions, while leaves are split and merged, while older versions
//! are kept for a snapshot and swept, while a database is made or opened. Each image is recovered by the service alone,
//! checked (no damage, no object that nothing leads to but what the next opening sweeps), opened, and compared as a
//! whole with the model; then it is written to.

mod support;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use durum::Domain;
use durum_kv::{
    Db, Durability, Engine, Error, Options, Snapshot, StoreOptions, WriteBatch, WriteOptions,
};
use durum_persist::record::{self, Recorder, RecorderOptions};
use durum_persist::simulate::{Failure, Plan, Report, Rules, explore_with_recovery};
use durum_service::{CheckOptions, Embedded, Leaks, Severity};
use support::{Map, contents};

/// What is done between two acknowledgements.
#[derive(Clone)]
enum Step {
    Put(u32, usize),
    Delete(u32),
    /// So many puts from a key on, and as many deletes from another.
    Batch(u32, u32, u32),
    Transaction(u32),
    Buffered(u32, usize),
    Sync,
    Snapshot,
    Release,
    Compact,
}
use Step::*;

fn key(number: u32) -> Vec<u8> {
    format!("key {number:05}").into_bytes()
}

/// Values that tell their step.
fn value(step: usize, len: usize) -> Vec<u8> {
    let mut value = format!("{step} ").into_bytes();
    value.resize(len, step as u8);
    value
}

struct Story {
    name: &'static str,
    /// Keys that are there before the recording begins.
    before: u32,
    steps: Vec<Step>,
    points: usize,
}

struct Setting {
    engine: Engine,
    domain: Domain,
    rules: Rules,
    base: u64,
}

const LINES: [Setting; 3] = [
    Setting {
        engine: Engine::Shadow,
        domain: Domain::Dax,
        rules: Rules::Lines,
        base: 0x3000_0000_0000,
    },
    Setting {
        engine: Engine::Hybrid,
        domain: Domain::Dax,
        rules: Rules::Lines,
        base: 0x3400_0000_0000,
    },
    Setting {
        engine: Engine::Twin,
        domain: Domain::Dax,
        rules: Rules::Lines,
        base: 0x4000_0000_0000,
    },
];

const SECTORS: [Setting; 3] = [
    Setting {
        engine: Engine::Shadow,
        domain: Domain::File,
        rules: Rules::Sectors,
        base: 0x3800_0000_0000,
    },
    Setting {
        engine: Engine::Hybrid,
        domain: Domain::File,
        rules: Rules::Sectors,
        base: 0x3c00_0000_0000,
    },
    Setting {
        engine: Engine::Twin,
        domain: Domain::File,
        rules: Rules::Sectors,
        base: 0x4400_0000_0000,
    },
];

/// One store of each base at a time.
fn turn(base: u64) -> MutexGuard<'static, ()> {
    static TURNS: [Mutex<()>; 8] = [const { Mutex::new(()) }; 8];
    let turn = &TURNS[(base >> 42) as usize % 8];
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Setting {
    fn options(&self) -> Options {
        let store = StoreOptions::new()
            .domain(self.domain)
            .base(self.base)
            .checkpoint_thread(false)
            .buffered_window(std::time::Duration::from_secs(1000));
        support::options().engine(self.engine).store(store)
    }

    fn plan(&self, points: usize) -> Plan {
        let mut plan = Plan::new(self.rules, self.base);
        let is_long = std::env::var_os("DURUM_CRASH_ALL").is_some();
        plan.points_max = (!is_long).then_some(points);
        plan.random_images = 2;
        plan.single_units_max = 2;
        plan.nested_one_in = 60;
        plan.nested_points_max = Some(4);
        plan
    }

    fn recover(&self, image: &Path) -> Result<(), String> {
        let options = durum_service::OpenOptions {
            domain: Some(self.domain),
            ..Default::default()
        };
        let opened = Embedded::open(image, options);
        opened.map(drop).map_err(|error| error.to_string())
    }

    /// Opens what a crash left, and compares it. Then it has to be of use.
    fn judge(&self, image: &Path, allowed: &[Map]) -> Result<usize, String> {
        no_damage(image)?;
        let text = |error: Error| error.to_string();
        let found = {
            let db = Db::open(image, self.options()).map_err(text)?;
            let found = contents(&db);
            db.verify().map_err(text)?;
            db.put(b"after", b"the crash").map_err(text)?;
            db.delete(&key(3)).map_err(text)?;
            found
        };
        let Some(at) = allowed.iter().position(|map| *map == found) else {
            let sizes: Vec<_> = allowed.iter().map(Map::len).collect();
            return Err(format!("{} keys, none of {sizes:?} states", found.len()));
        };
        // Opening has swept what no snapshot needs any more.
        match no_damage(image)? {
            Some(Leaks::Judged { objects: 0, .. }) => {}
            leaks => return Err(format!("{leaks:?}")),
        }
        let db = Db::open(image, self.options()).map_err(text)?;
        let mut expected = found;
        expected.insert(b"after".to_vec(), b"the crash".to_vec());
        expected.remove(&key(3));
        match contents(&db) == expected {
            true => Ok(at),
            false => Err("a write after the crash went wrong".into()),
        }
    }

    fn survives(&self, story: &Story) {
        let _turn = turn(self.base);
        match self.crash(story, None) {
            Ok(report) => println!(
                "{}, {:?}: {} points, {} images",
                story.name, self.engine, report.points, report.images
            ),
            Err(failure) => panic!("{}: {failure}", story.name),
        }
    }

    fn crash(&self, story: &Story, skip: Option<durum::Site>) -> Result<Report, Failure> {
        let (_dir, path) = support::place();
        let db = Db::open(&path, self.options()).unwrap();
        let mut map = Map::new();
        for number in 0..story.before {
            let (key, value) = (key(2 * number), value(0, 20));
            db.put(&key, &value).unwrap();
            map.insert(key, value);
        }
        let options = RecorderOptions {
            skip,
            ..Default::default()
        };
        let recorder = Recorder::start(&path, options);
        let mut states = vec![map.clone()];
        // Which states may be there at each acknowledgement: from the last durable one on.
        let mut durable = vec![0];
        let mut snapshots = Vec::new();
        for (number, step) in story.steps.iter().enumerate() {
            let is_buffered = matches!(step, Buffered(..)) && self.engine == Engine::Shadow;
            take(&db, number + 1, step, &mut map, &mut snapshots);
            states.push(map.clone());
            durable.push(match is_buffered {
                true => durable[number],
                false => number + 1,
            });
            record::note("acknowledged", number as u64 + 1);
        }
        drop((db, snapshots));
        let trace = recorder.stop();
        let plan = self.plan(story.points);
        explore_with_recovery(
            &trace,
            &plan,
            |image| self.recover(image),
            |image, point| {
                let last = point.last_note("acknowledged").unwrap_or(0) as usize;
                let allowed = &states[durable[last]..states.len().min(last + 2)];
                // A thread of its own: what it keeps of the store goes away with it.
                std::thread::scope(|scope| {
                    let judged = scope.spawn(|| self.judge(image, allowed));
                    judged.join().unwrap_or_else(|_| Err("a panic".into()))?;
                    Ok(())
                })
            },
        )
    }
}

/// Checks the store. What leaks in its pool, if it has one.
fn no_damage(image: &Path) -> Result<Option<Leaks>, String> {
    let report = durum_service::check(image, &CheckOptions::default());
    let mut report = report.map_err(|error| error.to_string())?;
    let worst = report
        .findings
        .iter()
        .find(|finding| finding.severity > Severity::Leak);
    match worst {
        Some(finding) => Err(finding.to_string()),
        None => Ok(report.pools.pop().map(|pool| pool.leaks)),
    }
}

fn take(db: &Db, number: usize, step: &Step, map: &mut Map, snapshots: &mut Vec<Snapshot>) {
    let put = |map: &mut Map, at: u32, len: usize| {
        map.insert(key(at), value(number, len));
    };
    match *step {
        Put(at, len) => {
            db.put(&key(at), &value(number, len)).unwrap();
            put(map, at, len);
        }
        Delete(at) => {
            db.delete(&key(at)).unwrap();
            map.remove(&key(at));
        }
        Batch(from, gone, count) => {
            let mut batch = WriteBatch::new();
            for more in 0..count {
                batch.put(&key(from + more), &value(number, 30));
                put(map, from + more, 30);
                batch.delete(&key(gone + more));
                map.remove(&key(gone + more));
            }
            db.write(&batch).unwrap();
        }
        Transaction(at) => {
            let mut transaction = db.transaction().unwrap();
            let found = transaction.get(&key(at)).unwrap();
            let other = value(number, found.map_or(7, |found| found.len() + 1));
            transaction.put(&key(at), &other);
            transaction.delete(&key(at + 2));
            transaction.commit().unwrap();
            map.insert(key(at), other);
            map.remove(&key(at + 2));
        }
        Buffered(at, len) => {
            let options = WriteOptions::new().durability(Durability::Buffered);
            db.put_with(&key(at), &value(number, len), &options)
                .unwrap();
            put(map, at, len);
        }
        Sync => db.sync().unwrap(),
        Snapshot => snapshots.push(db.snapshot()),
        Release => snapshots.clear(),
        Compact => db.compact().unwrap(),
    }
}

/// Leaves have 59 slots: some of these puts split one, and some deletes merge two.
fn leaves() -> Story {
    let mut steps = vec![Put(1, 10), Put(2, 40), Put(1, 3000), Delete(4), Put(4, 0)];
    steps.extend((0..6).map(|at| Put(2 * at + 1001, 20)));
    steps.extend((0..8).map(|at| Put(2 * at + 41, 150)));
    steps.extend([Put(1, 5000), Delete(1), Delete(7777)]);
    Story {
        name: "leaves",
        before: 59,
        steps,
        points: 14,
    }
}

fn batches() -> Story {
    Story {
        name: "batches",
        before: 60,
        steps: vec![
            Batch(1, 40, 5),
            Transaction(10),
            Batch(200, 0, 50),
            Transaction(300),
            Batch(200, 230, 20),
            // Leaves that get empty are merged.
            Batch(500, 0, 60),
            Batch(501, 60, 60),
        ],
        points: 14,
    }
}

fn snapshots() -> Story {
    let mut steps = vec![Snapshot, Put(2, 50), Put(2, 60), Delete(4), Snapshot];
    steps.extend([
        Put(2, 70),
        Put(4, 10),
        Delete(6),
        Delete(6),
        Batch(10, 30, 3),
    ]);
    steps.extend([Release, Put(8, 5), Delete(9), Compact, Put(8, 6)]);
    Story {
        name: "snapshots",
        before: 30,
        steps,
        points: 14,
    }
}

fn buffered() -> Story {
    let mut steps = vec![
        Buffered(1, 20),
        Buffered(3, 30),
        Buffered(1, 25),
        Put(5, 10),
    ];
    steps.extend([Buffered(7, 2000), Buffered(5, 11), Sync, Buffered(9, 9)]);
    Story {
        name: "buffered",
        before: 20,
        steps,
        points: 10,
    }
}

fn all(settings: &[Setting], story: fn() -> Story) {
    settings
        .iter()
        .for_each(|setting| setting.survives(&story()));
}

#[test]
fn puts_and_deletes_are_whole() {
    all(&LINES, leaves);
}

#[test]
fn puts_and_deletes_are_whole_on_a_file_system() {
    all(&SECTORS, leaves);
}

#[test]
fn batches_and_transactions_are_whole() {
    all(&LINES, batches);
}

#[test]
fn batches_and_transactions_are_whole_on_a_file_system() {
    all(&SECTORS, batches);
}

#[test]
fn older_versions_are_kept_and_swept() {
    all(&LINES, snapshots);
}

#[test]
fn older_versions_are_kept_and_swept_on_a_file_system() {
    all(&SECTORS, snapshots);
}

#[test]
fn buffered_writes_are_lost_from_the_end() {
    all(&LINES, buffered);
    all(&SECTORS, buffered);
}

/// What LevelDB's users have met as a missing or doubled manifest pointer, an empty table, a torn log: here a database
/// is there, or it is not.
#[test]
fn a_database_is_made_as_a_whole() {
    for setting in LINES.iter().chain(&SECTORS) {
        let _turn = turn(setting.base);
        let (_dir, path) = support::place();
        drop(durum::Store::create(&path, setting.options().store).unwrap());
        let recorder = Recorder::start(&path, RecorderOptions::default());
        let db = Db::open(&path, setting.options()).unwrap();
        record::note("made", 1);
        drop(db);
        let trace = recorder.stop();
        let seen = Mutex::new([0, 0]);
        let report = explore_with_recovery(
            &trace,
            &setting.plan(5),
            |image| setting.recover(image),
            |image, point| {
                let is_made = point.last_note("made").is_some();
                std::thread::scope(|scope| {
                    let judged = scope.spawn(|| {
                        let there = setting.options().create_if_missing(false);
                        match Db::open(image, there) {
                            Ok(db) => {
                                seen.lock().unwrap()[1] += 1;
                                assert!(contents(&db).is_empty());
                            }
                            Err(Error::Missing { .. }) if !is_made => seen.lock().unwrap()[0] += 1,
                            Err(error) => return Err(error.to_string()),
                        }
                        setting.judge(image, &[Map::new()]).map(drop)
                    });
                    judged.join().unwrap_or_else(|_| Err("a panic".into()))
                })
            },
        );
        if let Err(failure) = report {
            panic!("{failure}");
        }
        let seen = seen.into_inner().unwrap();
        assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
    }
}

/// What these tests notice: without the fence of its commit, or the write-back of its record, an acknowledged write is
/// not there.
#[test]
fn a_forgotten_fence_is_noticed() {
    let is_commit = |site: &durum::Site| site.0.starts_with("shadow.commit: ");
    let sites: Vec<_> = durum::sites().into_iter().filter(is_commit).collect();
    assert!(sites.len() >= 2, "{sites:?}");
    let _turn = turn(LINES[0].base);
    let story = || Story {
        name: "a canary",
        before: 5,
        steps: vec![Put(1, 10), Put(2, 10), Delete(4)],
        points: 60,
    };
    let noticed = |site: &durum::Site| LINES[0].crash(&story(), Some(*site)).is_err();
    assert!(sites.iter().filter(|site| noticed(site)).count() >= 2);
}
