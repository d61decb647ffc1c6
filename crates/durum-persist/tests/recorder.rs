//! What the recorder sees: operations of several threads in one order, the program's own stores, sites,
//! and what went past it.

mod common;

use std::collections::BTreeSet;
use std::fs;

use common::*;
use durum_persist::file::{self, MediaFile};
use durum_persist::record::{self, EventKind, RecorderOptions};
use durum_persist::simulate::{Plan, Rules, explore};
use durum_persist::{Site, line};

#[test]
fn sites_are_counted_and_a_skipped_one_is_left_out_of_the_trace() {
    let protocol = |map: &Mapped| {
        map.persist(0, 1, DATA);
        map.persist(8, 1, FLAG);
        map.file.sync(FLAG).unwrap();
    };
    let whole = record_mapped(protocol);
    let options = RecorderOptions {
        skip: Some(FLAG),
        ..RecorderOptions::default()
    };
    let without = record_with(options, |dir| {
        protocol(&Mapped::open(&dir.join("data"), true))
    });
    for trace in [&whole, &without] {
        assert_eq!((trace.sites()[&DATA], trace.sites()[&FLAG]), (2, 3));
    }
    let of_flag = |trace: &record::Trace| {
        trace
            .events()
            .iter()
            .filter(|event| event.site() == Some(FLAG))
            .count()
    };
    assert_eq!((of_flag(&whole), of_flag(&without)), (3, 0));
    assert_eq!(states_at_end(&whole, Rules::Lines, words([0, 8])).len(), 1);
    assert_eq!(
        states_at_end(&without, Rules::Lines, words([0, 8])).len(),
        2
    );
}

#[test]
fn a_skipped_streamed_store_is_stored_and_not_written_back() {
    let protocol = |map: &Mapped| {
        map.stream(56, &[1; 8 + 64 + 8]);
        line::fence(FLAG);
    };
    let one = u64::from_ne_bytes([1; 8]);
    let whole = record_mapped(protocol);
    let options = RecorderOptions {
        skip: Some(DATA),
        ..RecorderOptions::default()
    };
    let without = record_with(options, |dir| {
        protocol(&Mapped::open(&dir.join("data"), true))
    });
    for trace in [&whole, &without] {
        assert_eq!((trace.sites()[&DATA], trace.sites()[&FLAG]), (1, 1));
    }
    let states = |trace| states_at_end(trace, Rules::Lines, words([7, 8, 16]));
    assert_eq!(states(&whole), BTreeSet::from([[one; 3]]));
    let lost = states(&without);
    assert!(
        lost.contains(&[0; 3]) && lost.contains(&[one; 3]),
        "{lost:?}"
    );
}

#[test]
fn own_stores_are_found_at_api_calls() {
    let trace = record_mapped(|map| {
        map.own_store(3, 7);
        map.own_store(4, 8);
        map.own_store(900, 9);
        record::api("call");
    });
    let kinds: Vec<_> = trace.events().iter().map(|event| &event.kind).collect();
    let found = |kind: &EventKind, at: u64, len: usize| matches!(kind, EventKind::Stored { offset, data, found: true, .. } if *offset == at && data.len() == len);
    assert!(
        found(kinds[0], 24, 16) && found(kinds[1], 7200, 8),
        "{kinds:?}"
    );
    assert!(
        matches!(kinds[2], EventKind::Api("call")) && kinds.len() == 3,
        "{kinds:?}"
    );
}

#[test]
fn own_stores_are_found_before_the_write_back_of_their_line() {
    let protocol = |map: &Mapped| {
        map.own_store(0, 1);
        map.own_store(8, 1); // another line: not durable
        map.write_back(0, DATA);
        line::fence(DATA);
    };
    let states = states_at_end(&record_mapped(protocol), Rules::Lines, words([0, 8]));
    assert_eq!(states, [[1, 0], [1, 1]].into());
}

#[test]
fn an_own_store_that_the_library_overwrites_is_seen() {
    let protocol = |map: &Mapped| {
        map.own_store(0, 1);
        map.store(0, 2);
    };
    assert_eq!(values(protocol), [0, 1, 2]);
}

#[test]
fn own_stores_are_found_before_a_mapping_ends() {
    let trace = record_in(|dir| {
        Mapped::open(&dir.join("data"), true).own_store(0, 1);
    });
    assert_eq!(trace.bypassed(), [""; 0]);
    assert_eq!(
        states_at_end(&trace, Rules::Lines, words([0])),
        [[0], [1]].into()
    );
}

#[test]
fn a_mapping_made_before_the_recorder_is_recorded() {
    let dir = fresh_dir();
    let map = Mapped::open(&dir.path().join("data"), true);
    map.own_store(1, 5);
    let recorder = record::Recorder::start(dir.path(), RecorderOptions::default());
    map.own_store(0, 1);
    record::api("call");
    let trace = recorder.stop();
    // What was there at the start is durable.
    assert_eq!(
        states_at_end(&trace, Rules::Lines, words([0, 1])),
        [[0, 5], [1, 5]].into()
    );
}

#[test]
fn part_of_a_mapping_can_end() {
    let trace = record_in(|dir| {
        let map = Mapped::open(&dir.join("data"), true);
        record::unmapped(map.byte(0), 4096);
        map.persist(0, 1, DATA); // no longer recorded
        map.persist(512, 2, DATA);
        map.own_store(0, 0);
    });
    assert_eq!(
        states_at_end(&trace, Rules::Lines, words([0, 512])),
        [[0, 2]].into()
    );
}

#[test]
fn writes_that_went_past_the_seam_make_the_trace_useless() {
    type Write = fn(&std::path::Path);
    let past: [(&str, Write); 5] = [
        ("data differs at offset 100", |dir| {
            let mut bytes = fs::read(dir.join("data")).unwrap();
            bytes[100] = 1;
            fs::write(dir.join("data"), bytes).unwrap();
        }),
        ("data is 5 bytes long", |dir| {
            fs::write(dir.join("data"), [0; 5]).unwrap()
        }),
        ("data has disappeared", |dir| {
            fs::remove_file(dir.join("data")).unwrap()
        }),
        ("new is not what", |dir| {
            fs::write(dir.join("new"), "").unwrap()
        }),
        ("data differs at offset 0", |dir| {
            Mapped::open(&dir.join("data"), false).own_store(0, 1)
        }),
    ];
    for (expected, write) in past {
        let trace = record_in(|dir| {
            record::api("call");
            write(dir);
        });
        assert!(
            trace.bypassed().iter().any(|text| text.contains(expected)),
            "{expected}: {:?}",
            trace.bypassed()
        );
        let failure = explore(&trace, &Plan::new(Rules::Lines, 1), |_, _| Ok(()))
            .expect_err("must be refused");
        assert!(failure.message.contains("past durum-persist"), "{failure}");
    }
}

#[test]
fn ignored_files_are_in_neither_trace_nor_image() {
    let options = RecorderOptions {
        ignore: vec!["lock".into()],
        ..RecorderOptions::default()
    };
    let trace = record_with(options, |dir| {
        fs::write(dir.join("lock"), "1").unwrap();
        Mapped::open(&dir.join("data"), true).persist(0, 1, DATA);
    });
    assert_eq!(trace.bypassed(), [""; 0]);
    assert_eq!(
        states_at_end(&trace, Rules::Lines, |dir| dir.join("lock").exists()),
        [false].into()
    );
}

#[test]
fn events_of_all_threads_are_in_one_order() {
    const THREADS: usize = 4;
    const STORES: u64 = 200;
    let trace = record_mapped(|map| {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    record::join_thread();
                    for value in 1..=STORES {
                        map.persist(thread * 8, value, DATA);
                        // All threads set bits of one word.
                        // SAFETY: a word of the mapping, used atomically only.
                        unsafe {
                            line::fetch_or_u64(
                                map.word(512),
                                1 << (thread * 16 + value as usize % 16),
                            )
                        };
                        record::note("done", thread as u64);
                    }
                });
            }
        });
    });
    assert_eq!(trace.bypassed(), [""; 0]);
    assert_eq!(trace.notes().len(), THREADS * STORES as usize);
    let threads: std::collections::BTreeSet<_> =
        trace.events().iter().map(|event| event.thread).collect();
    assert_eq!(threads.len(), THREADS);
    let states = states_at_end(&trace, Rules::Lines, words([0, 8, 16, 24]));
    assert_eq!(states, [[STORES; 4]].into());
    // At each point, what a thread has finished is there.
    let plan = Plan {
        points_max: Some(200),
        random_images: 1,
        single_units_max: 2,
        ..Plan::new(Rules::Lines, 3)
    };
    explore(&trace, &plan, |dir, point| {
        let found = words([0, 8, 16, 24])(dir);
        for (thread, found) in found.into_iter().enumerate() {
            let done = point
                .notes()
                .iter()
                .filter(|note| note.value == thread as u64)
                .count() as u64;
            if !(done..=done + 1).contains(&found) {
                return Err(format!("thread {thread} finished {done}, found {found}"));
            }
        }
        Ok(())
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn threads_and_files_that_take_no_part_leave_no_events() {
    let elsewhere = fresh_dir();
    let trace = record_mapped(|map| {
        map.store(0, 1);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                Mapped::open(&elsewhere.path().join("data"), true).persist(0, 1, FLAG);
                MediaFile::create_new(&elsewhere.path().join("x"))
                    .unwrap()
                    .sync(FLAG)
                    .unwrap();
                file::sync_dir(elsewhere.path(), FLAG).unwrap();
                record::api("elsewhere");
                record::note("elsewhere", 1);
            });
        });
    });
    assert_eq!(trace.events().len(), 1, "{:?}", trace.events());
    assert!(trace.notes().is_empty() && !trace.sites().contains_key(&FLAG));
}

#[test]
fn marks_are_known_at_crash_points() {
    let trace = record_mapped(|map| {
        for value in 1..=3 {
            record::api("put");
            map.persist(0, value, DATA);
            record::note("done", value);
            record::api("poll");
        }
    });
    let mut seen = Vec::new();
    let plan = Plan {
        from_api: 2,
        ..Plan::new(Rules::Lines, 1)
    };
    explore(&trace, &plan, |_, point| {
        assert!(point.api_calls >= 2, "earlier points are left out");
        assert_eq!(
            point.api_calls,
            point.api_calls_of("put") + point.api_calls_of("poll")
        );
        seen.push((
            point.api_calls_of("put"),
            point.last_note("done"),
            point.notes().len(),
        ));
        Ok(())
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
    seen.dedup();
    let expected = [
        (1, Some(1), 1),
        (2, Some(1), 1),
        (2, Some(2), 2),
        (3, Some(2), 2),
        (3, Some(3), 3),
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_dropped_recorder_detaches() {
    let dir = fresh_dir();
    drop(record::Recorder::start(
        dir.path(),
        RecorderOptions::default(),
    ));
    let recorder = record::Recorder::start(dir.path(), RecorderOptions::default());
    file::sync_dir(dir.path(), Site("only event")).unwrap();
    assert_eq!(recorder.stop().events().len(), 1);
}
