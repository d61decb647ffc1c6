//! A database, crashed at every store, write-back and fence: every write that was acknowledged is there, and the one
//! under way as a whole or not at all.
//!
//! The crashes: inside puts, deletes, batches and transactions, while leaves are split and merged, while older versions
//! are kept for a snapshot and swept, while rows are put and writes are in flight, while a database is made or opened.
//! Each image is recovered by the service alone, checked (no damage, no object that nothing leads to but what the next
//! opening sweeps), opened, and compared as a whole with the model; then it is written to.

mod story;
#[path = "../support/mod.rs"]
mod support;

use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;

use durum::gc::{GcOptions, collect};
use durum_format::extent;
use durum_kv::{Db, Error, WriteBatch};
use durum_persist::record::{self, Recorder, RecorderOptions};
use durum_persist::simulate::explore_with_recovery;
use durum_service::ReadOnlyStore;
use story::{LINES, SECTORS, Setting, Step::*, Story, is_long, key, turn};
use support::{Map, contents};

/// Leaves have 59 slots: some of these puts split one, and some deletes merge two.
fn leaves() -> Story {
    let mut steps = vec![Put(1, 10), Put(2, 40), Put(1, 3000), Delete(4), Put(4, 0)];
    steps.extend((0..6).map(|at| Put(2 * at + 1001, 20)));
    steps.extend((0..8).map(|at| Put(2 * at + 41, 150)));
    // Values as long as those that are there: their records are changed.
    steps.extend([Put(1, 5000), Put(1, 5000), Put(8, 20), Put(8, 20)]);
    steps.extend([Delete(1), Delete(7777)]);
    Story {
        name: "leaves",
        before: 59,
        thinned: None,
        steps,
        points: 14,
        inside: 0,
    }
}

fn batches() -> Story {
    Story {
        name: "batches",
        before: 60,
        thinned: None,
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
        inside: 0,
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
        thinned: None,
        steps,
        points: 14,
        inside: 0,
    }
}

/// A chunk of the index has 128 nodes: one begins behind the last key, one in the middle, whose first leaf goes, and
/// then the last one goes.
fn guides() -> Story {
    let last = 128 * 59;
    Story {
        name: "guides",
        before: last,
        // Leaves with as few records as they may have; but those that are to be split are full.
        thinned: Some(|number| number % 59 >= 8 && !matches!(number / 59, 10 | 127)),
        steps: vec![
            Put(2 * last, 20),
            Put(2 * 59 * 10 + 1, 20),
            // The second chunk begins with the 64th leaf, as one before was split. It has few now, and so has its
            // neighbour.
            Batch(2 * last + 10, 2 * 59 * 63, 1),
            Batch(2 * last + 10, 2 * last + 10, 1),
            Delete(2 * last),
        ],
        points: 10,
        inside: 0,
    }
}

fn buffered() -> Story {
    let mut steps = vec![
        Buffered(1, 20),
        Buffered(3, 30),
        Buffered(1, 25),
        Put(5, 10),
    ];
    steps.extend([Buffered(7, 2000), Buffered(5, 10), Sync, Buffered(9, 9)]);
    Story {
        name: "buffered",
        before: 20,
        thinned: None,
        steps,
        points: 10,
        inside: 0,
    }
}

/// Pairs that take several transactions each: 32 of them share one in memory; on a file system, a megabyte.
fn rows() -> Story {
    Story {
        name: "rows",
        before: 40,
        thinned: None,
        steps: vec![
            MultiPut(1, 80, 20),
            Snapshot,
            MultiPut(10, 100, 30),
            MultiPut(200, 1, 5),
        ],
        points: 30,
        inside: 2,
    }
}

fn large_rows() -> Story {
    Story {
        name: "large rows",
        before: 4,
        thinned: None,
        steps: vec![MultiPut(1, 3, 400_000), MultiPut(2, 5, 300_000)],
        points: 8,
        inside: 1,
    }
}

fn flights() -> Story {
    let mut steps = vec![Begin(1, 20), Begin(3, 30), Begin(1, 25), Wait, Begin(5, 10)];
    steps.extend([
        BeginDelete(1),
        Put(7, 10),
        Begin(7, 11),
        Sync,
        BeginBatch(8),
    ]);
    steps.extend([
        Begin(8, 3000),
        Begin(8, 9),
        Snapshot,
        Begin(8, 10),
        Begin(9, 8),
    ]);
    steps.extend([
        Buffered(11, 5),
        Begin(13, 5),
        Wait,
        MultiPut(1, 3, 9),
        Begin(2, 2),
        Begin(4, 20),
        Begin(4, 20),
        Wait,
    ]);
    Story {
        name: "flights",
        before: 20,
        thinned: None,
        steps,
        points: 60,
        inside: 0,
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

/// Where the index begins to read leaves is told by guides, which change with the leaves.
#[test]
fn guides_lead_to_leaves() {
    all(&LINES, guides);
    all(&SECTORS, guides);
}

#[test]
fn buffered_writes_are_lost_from_the_end() {
    all(&LINES, buffered);
    all(&SECTORS, buffered);
}

/// Of pairs that are put in one call a crash leaves the first ones.
#[test]
fn of_a_row_the_first_pairs_are_there() {
    all(&LINES, rows);
    all(&SECTORS, large_rows);
}

/// Of what a thread has in flight a crash takes at most the last one.
#[test]
fn of_writes_in_flight_at_most_the_last_is_missing() {
    all(&LINES, flights);
    all(&SECTORS, flights);
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

/// Has the first guide lead to another leaf than the one with its bound.
fn damage_a_guide(path: &Path) {
    let store = ReadOnlyStore::open(path).unwrap();
    let is_guide = |text: &str| text.starts_with("struct \"kv guide\"");
    let guide = store.types().find(|(_, text)| is_guide(text)).unwrap().0;
    let found = store.puddles().into_iter().find_map(|puddle| {
        let view = store.puddle(puddle.uuid).ok()?;
        let mut objects = extent::objects(&view, view.header()).filter_map(Result::ok);
        let object = objects.find(|object| object.type_id == guide)?;
        Some((puddle.uuid, object.offset))
    });
    let (puddle, offset) = found.unwrap();
    let file = path.join(format!("puddles/{puddle}"));
    let file = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(file);
    let file = file.unwrap();
    // Behind two pointers come starts of 48 bytes, each of which begins with its leaf.
    let (first, second) = (offset + 16, offset + 16 + 48);
    let mut leaf = [0; 8];
    file.read_exact_at(&mut leaf, second).unwrap();
    assert_ne!(leaf, [0; 8]);
    file.write_all_at(&leaf, first).unwrap();
}

/// Guides are made anew as a whole: what a crash left of a repair is refused as before, and can be repaired, or sound.
#[test]
fn guides_are_repaired_as_a_whole() {
    const COUNT: u32 = 3 * 128 * 59;
    let engines = if is_long() { LINES.len() } else { 1 };
    for setting in LINES[..engines].iter().chain(&SECTORS[..engines]) {
        let _turn = turn(setting.base);
        let (_dir, path) = support::place();
        let db = Db::open(&path, setting.options()).unwrap();
        let map: Map = (0..COUNT).map(|at| (key(at), vec![7])).collect();
        let pairs: Vec<_> = map.iter().collect();
        for pairs in pairs.chunks(2000) {
            let mut batch = WriteBatch::new();
            pairs.iter().for_each(|(key, value)| batch.put(key, value));
            db.write(&batch).unwrap();
        }
        drop(db);
        damage_a_guide(&path);
        let verified = |path: &Path| Db::open(path, setting.options())?.verify();
        assert!(matches!(verified(&path), Err(Error::Damaged { .. })));
        let recorder = Recorder::start(&path, RecorderOptions::default());
        let found = durum_kv::repair(&path, setting.options()).unwrap();
        assert_eq!(found, u64::from(COUNT));
        record::note("repaired", 1);
        let trace = recorder.stop();
        let seen = Mutex::new([0, 0]);
        let report = explore_with_recovery(
            &trace,
            &setting.plan(3),
            |image| setting.recover(image),
            |image, point| {
                std::thread::scope(|scope| {
                    let judged = scope.spawn(|| {
                        let is_repaired = match verified(image) {
                            Ok(_) => true,
                            Err(Error::Damaged { .. }) if point.last_note("repaired").is_none() => {
                                durum_kv::repair(image, setting.options()).unwrap();
                                false
                            }
                            Err(error) => return Err(error.to_string()),
                        };
                        seen.lock().unwrap()[usize::from(is_repaired)] += 1;
                        // The old guides are nobody's.
                        let collected = collect(image, &GcOptions::new());
                        let collected = collected.map_err(|error| error.to_string())?;
                        assert!(collected.pools.iter().any(|pool| pool.objects > 0));
                        setting.judge(image, std::slice::from_ref(&map)).map(drop)
                    });
                    judged.join().unwrap_or_else(|_| Err("a panic".into()))
                })
            },
        );
        if let Err(failure) = report {
            panic!("{:?}: {failure}", setting.engine);
        }
        let seen = seen.into_inner().unwrap();
        assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
    }
}

/// Beside the others. `make test` leaves them to ci/campaigns.sh.
mod canaries {
    use super::*;

    /// What that notices: a write is not there that somebody has waited for, or that another one came behind.
    #[test]
    fn a_forgotten_fence_of_a_write_in_flight_is_noticed() {
        let fence = durum::Site("shadow.commit: fence after a record that was left in flight");
        let _turn = turn(LINES[0].base);
        for steps in [
            vec![Begin(1, 10), Wait],
            vec![Begin(1, 10), Begin(3, 10), Begin(5, 10)],
        ] {
            let story = Story {
                name: "a canary",
                before: 5,
                thinned: None,
                steps,
                points: 60,
                inside: 0,
            };
            assert!(LINES[0].crash(&story, None).is_ok());
            assert!(LINES[0].crash(&story, Some(fence)).is_err());
        }
    }

    /// What these tests notice: without the fence of its commit, or the write-back of its record, an acknowledged write
    /// is not there.
    #[test]
    fn a_forgotten_fence_is_noticed() {
        let is_commit = |site: &durum::Site| site.0.starts_with("shadow.commit: ");
        let sites: Vec<_> = durum::sites().into_iter().filter(is_commit).collect();
        assert!(sites.len() >= 2, "{sites:?}");
        let _turn = turn(LINES[0].base);
        let story = || Story {
            name: "a canary",
            before: 5,
            thinned: None,
            steps: vec![Put(1, 10), Put(2, 10), Delete(4)],
            points: 60,
            inside: 0,
        };
        let noticed = |site: &durum::Site| LINES[0].crash(&story(), Some(*site)).is_err();
        assert!(sites.iter().filter(|site| noticed(site)).count() >= 2);
    }
}
