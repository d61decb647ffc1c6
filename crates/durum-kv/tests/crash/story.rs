//! What is done to a database while it is recorded, and how each crash of it is judged.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use durum::Domain;
use durum_kv::{
    Db, Durability, Engine, Error, InFlight, Options, Snapshot, StoreOptions, WriteBatch,
    WriteOptions,
};
use durum_persist::record::{self, Recorder, RecorderOptions};
use durum_persist::simulate::{Failure, Plan, Report, Rules, explore_with_recovery};
use durum_service::{CheckOptions, Embedded, Leaks, Severity};

use crate::support::{self, Map, contents};

/// What is done between two acknowledgements.
#[derive(Clone)]
pub enum Step {
    Put(u32, usize),
    Delete(u32),
    /// So many puts from a key on, and as many deletes from another.
    Batch(u32, u32, u32),
    Transaction(u32),
    /// So many pairs in a call, from a key on, with values of a length.
    MultiPut(u32, u32, usize),
    /// Left in flight: a put, a delete, a batch of two.
    Begin(u32, usize),
    BeginDelete(u32),
    BeginBatch(u32),
    /// For the last one that has begun.
    Wait,
    Buffered(u32, usize),
    Sync,
    Snapshot,
    Release,
    Compact,
}
use Step::*;

pub fn key(number: u32) -> Vec<u8> {
    format!("key {number:05}").into_bytes()
}

/// Values that tell their step.
fn value(step: usize, len: usize) -> Vec<u8> {
    let mut value = format!("{step} ").into_bytes();
    value.resize(len, step as u8);
    value
}

impl Step {
    /// Whether it may be missing when the next one is acknowledged.
    fn flies(&self) -> bool {
        // A large one is durable at once.
        matches!(self, Begin(_, 0..900) | BeginDelete(_) | BeginBatch(_))
    }
}

pub struct Story {
    pub name: &'static str,
    /// Keys that are there before the recording begins.
    pub before: u32,
    /// Which of them are deleted again. Then the database is opened anew, so that nothing is recorded of these.
    pub thinned: Option<fn(u32) -> bool>,
    pub steps: Vec<Step>,
    pub points: usize,
    /// States inside of a step that have to be found, or the story does not show what it is about.
    pub inside: usize,
}

pub struct Setting {
    pub engine: Engine,
    pub domain: Domain,
    pub rules: Rules,
    pub base: u64,
}

pub const LINES: [Setting; 3] = [
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

pub const SECTORS: [Setting; 3] = [
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

/// Whether each crash is tried, and not a sample.
pub fn is_long() -> bool {
    std::env::var_os("DURUM_CRASH_ALL").is_some()
}

/// One store of each base at a time.
pub fn turn(base: u64) -> MutexGuard<'static, ()> {
    static TURNS: [Mutex<()>; 8] = [const { Mutex::new(()) }; 8];
    let turn = &TURNS[(base >> 42) as usize % 8];
    turn.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Setting {
    pub fn options(&self) -> Options {
        let store = StoreOptions::new()
            .domain(self.domain)
            .base(self.base)
            .checkpoint_thread(false)
            .buffered_window(std::time::Duration::from_secs(1000));
        support::options().engine(self.engine).store(store)
    }

    pub fn plan(&self, points: usize) -> Plan {
        let mut plan = Plan::new(self.rules, self.base);
        plan.points_max = (!is_long()).then_some(points);
        plan.random_images = 2;
        plan.single_units_max = 2;
        plan.nested_one_in = 60;
        plan.nested_points_max = Some(4);
        plan
    }

    pub fn recover(&self, image: &Path) -> Result<(), String> {
        let options = durum_service::OpenOptions {
            domain: Some(self.domain),
            ..Default::default()
        };
        let opened = Embedded::open(image, options);
        opened.map(drop).map_err(|error| error.to_string())
    }

    /// Opens what a crash left, and compares it. Then it has to be of use.
    pub fn judge(&self, image: &Path, allowed: &[Map]) -> Result<usize, String> {
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

    pub fn survives(&self, story: &Story) {
        let _turn = turn(self.base);
        match self.crash(story, None) {
            Ok((report, inside)) => {
                println!(
                    "{}, {:?}: {} points, {} images, {inside} states inside of a step",
                    story.name, self.engine, report.points, report.images
                );
                assert!(
                    inside >= story.inside,
                    "a crash that leaves some of the pairs"
                );
            }
            Err(failure) => panic!("{}: {failure}", story.name),
        }
    }

    /// What was tried, and how many of the states inside of a step were found.
    pub fn crash(
        &self,
        story: &Story,
        skip: Option<durum::Site>,
    ) -> Result<(Report, usize), Failure> {
        let (_dir, path) = support::place();
        let mut db = Db::open(&path, self.options()).unwrap();
        let mut map = Map::new();
        for number in 0..story.before {
            let (key, value) = (key(2 * number), value(0, 20));
            db.put(&key, &value).unwrap();
            map.insert(key, value);
        }
        if let Some(is_gone) = story.thinned {
            for number in (0..story.before).filter(|number| is_gone(*number)) {
                db.delete(&key(2 * number)).unwrap();
                map.remove(&key(2 * number));
            }
            drop(db);
            db = Db::open(&path, self.options()).unwrap();
        }
        let mut states = vec![map];
        let options = RecorderOptions {
            skip,
            ..Default::default()
        };
        let recorder = Recorder::start(&path, options);
        // Which states may be there at each acknowledgement: from the last durable one on, to the last one that was
        // made.
        let (mut durable, mut reached) = (vec![0], vec![0]);
        let mut snapshots = Vec::new();
        let mut in_flight = None;
        for (number, step) in story.steps.iter().enumerate() {
            let is_buffered = matches!(step, Buffered(..)) && self.engine == Engine::Shadow;
            let flies =
                step.flies() && self.engine == Engine::Shadow && self.domain != Domain::File;
            let before = reached[number];
            take(
                &db,
                number + 1,
                step,
                &mut states,
                &mut snapshots,
                &mut in_flight,
            );
            let last = states.len() - 1;
            durable.push(match step {
                Snapshot | Release | Compact => durable[number],
                _ if is_buffered => durable[number],
                // At most the last one is missing.
                _ if flies => before,
                _ => last,
            });
            reached.push(last);
            record::note("acknowledged", number as u64 + 1);
        }
        drop((db, snapshots));
        let trace = recorder.stop();
        let plan = self.plan(story.points);
        let found = Mutex::new(BTreeSet::new());
        let report = explore_with_recovery(
            &trace,
            &plan,
            |image| self.recover(image),
            |image, point| {
                let last = point.last_note("acknowledged").unwrap_or(0) as usize;
                let next = reached[reached.len().min(last + 2) - 1];
                let allowed = &states[durable[last]..=next];
                // A thread of its own: what it keeps of the store goes away with it.
                std::thread::scope(|scope| {
                    let judged = scope.spawn(|| self.judge(image, allowed));
                    let at = judged.join().unwrap_or_else(|_| Err("a panic".into()))?;
                    found.lock().unwrap().insert(durable[last] + at);
                    Ok(())
                })
            },
        )?;
        let found = found.into_inner().unwrap();
        let inside = found.iter().filter(|at| !reached.contains(at)).count();
        Ok((report, inside))
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

fn take<'d>(
    db: &'d Db,
    number: usize,
    step: &Step,
    states: &mut Vec<Map>,
    snapshots: &mut Vec<Snapshot>,
    in_flight: &mut Option<InFlight<'d>>,
) {
    let mut map = states[states.len() - 1].clone();
    let put = |map: &mut Map, at: u32, len: usize| {
        map.insert(key(at), value(number, len));
    };
    match *step {
        Put(at, len) => {
            db.put(&key(at), &value(number, len)).unwrap();
            put(&mut map, at, len);
        }
        Delete(at) => {
            db.delete(&key(at)).unwrap();
            map.remove(&key(at));
        }
        Batch(from, gone, count) => {
            let mut batch = WriteBatch::new();
            for more in 0..count {
                batch.put(&key(from + more), &value(number, 30));
                put(&mut map, from + more, 30);
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
        MultiPut(from, count, len) => {
            // Scattered: the first ones are not those with the smallest keys.
            let at = |more: u32| from + more * 7 % count;
            let pairs: Vec<_> = (0..count)
                .map(|more| (key(at(more)), value(number, len)))
                .collect();
            db.multi_put(&pairs).unwrap();
            for more in 0..count {
                put(&mut map, at(more), len);
                if more + 1 < count {
                    states.push(map.clone());
                }
            }
        }
        Begin(at, len) => {
            *in_flight = Some(db.put_begin(&key(at), &value(number, len)).unwrap());
            put(&mut map, at, len);
        }
        BeginDelete(at) => {
            *in_flight = Some(db.delete_begin(&key(at)).unwrap());
            map.remove(&key(at));
        }
        BeginBatch(at) => {
            let mut batch = WriteBatch::new();
            for at in [at, at + 1] {
                batch.put(&key(at), &value(number, 20));
                put(&mut map, at, 20);
            }
            *in_flight = Some(db.write_begin(&batch).unwrap());
        }
        Wait => in_flight.take().map_or(Ok(()), InFlight::wait).unwrap(),
        Buffered(at, len) => {
            let options = WriteOptions::new().durability(Durability::Buffered);
            db.put_with(&key(at), &value(number, len), &options)
                .unwrap();
            put(&mut map, at, len);
        }
        Sync => db.sync().unwrap(),
        Snapshot => snapshots.push(db.snapshot()),
        Release => snapshots.clear(),
        Compact => db.compact().unwrap(),
    }
    states.push(map);
}
