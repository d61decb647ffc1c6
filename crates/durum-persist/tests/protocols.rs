//! Whole protocols: the right one passes at every crash point, each wrong variant fails. If the simulator
//! were dead (no images, or always the newest state), the wrong variants would pass.

mod common;

use std::path::Path;

use common::*;
use durum_persist::line;
use durum_persist::record::{self, Trace};
use durum_persist::simulate::{
    CrashPoint, Failure, Plan, Report, Rules, explore, explore_with_recovery,
};

/// Words of the protocols: `A` and `B` hold the same value in every consistent state, on lines of their own.
const A: usize = 0;
const B: usize = 8;
/// The undo record: the value of both before, and whether it counts.
const SAVED: usize = 16;
const VALID: usize = 24;

#[derive(Clone, Copy, Default)]
struct Mistakes {
    record_not_written_back: bool,
    record_not_fenced: bool,
    data_not_durable: bool,
    fenced_by_other_thread: bool,
    recovery_forgets_data: bool,
}

/// Sets both words to `value`, with an undo record.
fn update(map: &Mapped, value: u64, mistakes: Mistakes) {
    map.store(SAVED, map.load(A));
    if !mistakes.record_not_written_back {
        map.write_back(SAVED, DATA);
    }
    if mistakes.fenced_by_other_thread {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                record::join_thread();
                line::fence(DATA);
            });
        });
    } else if !mistakes.record_not_fenced {
        line::fence(DATA);
    }
    map.persist(VALID, 1, FLAG);
    map.store(A, value);
    map.store(B, value);
    if !mistakes.data_not_durable {
        map.write_back(A, DATA);
        map.write_back(B, DATA);
        line::fence(DATA);
    }
    map.persist(VALID, 0, FLAG);
    record::note("acknowledged", value);
}

fn recover(map: &Mapped, mistakes: Mistakes) {
    if map.load(VALID) == 0 {
        return;
    }
    for index in [A, B] {
        map.store(index, map.load(SAVED));
        if !mistakes.recovery_forgets_data {
            map.write_back(index, DATA);
        }
    }
    line::fence(DATA);
    map.persist(VALID, 0, FLAG);
}

fn consistent(dir: &Path, point: &CrashPoint<'_>) -> Result<(), String> {
    let [a, b] = words([A, B])(dir);
    let acknowledged = point.last_note("acknowledged").unwrap_or(0);
    if a != b || !(acknowledged..=acknowledged + 1).contains(&a) {
        return Err(format!(
            "A is {a}, B is {b}, acknowledged is {acknowledged}"
        ));
    }
    Ok(())
}

fn trace_of(mistakes: Mistakes) -> Trace {
    record_mapped(|map| {
        for value in 1..=5 {
            update(map, value, mistakes);
        }
    })
}

fn plan() -> Plan {
    Plan {
        nested_one_in: 1,
        ..Plan::new(Rules::Lines, 42)
    }
}

fn try_with(mistakes: Mistakes) -> Result<Report, Failure> {
    let recover = |dir: &Path| {
        recover(&Mapped::open(&dir.join("data"), true), mistakes);
        Ok(())
    };
    explore_with_recovery(&trace_of(mistakes), &plan(), recover, consistent)
}

#[test]
fn the_undo_protocol_survives_every_crash_and_every_crash_of_its_recovery() {
    let report = try_with(Mistakes::default()).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(report.points >= 45, "{report:?}");
    assert!(report.images >= 30, "{report:?}");
    assert!(
        report.recoveries >= 40 && report.nested_images >= 60,
        "{report:?}"
    );
}

#[test]
fn every_mistake_is_found() {
    let found = |mistakes: Mistakes| try_with(mistakes).expect_err("a mistake went unnoticed");
    let outer = [
        found(Mistakes {
            record_not_written_back: true,
            ..Mistakes::default()
        }),
        found(Mistakes {
            record_not_fenced: true,
            ..Mistakes::default()
        }),
        found(Mistakes {
            data_not_durable: true,
            ..Mistakes::default()
        }),
        found(Mistakes {
            fenced_by_other_thread: true,
            ..Mistakes::default()
        }),
    ];
    for failure in outer {
        assert!(failure.message.contains("A is "), "{failure}");
    }
    let nested = found(Mistakes {
        recovery_forgets_data: true,
        ..Mistakes::default()
    });
    assert!(
        nested.replay.contains('/'),
        "only a crash of the recovery shows it: {nested}"
    );
    assert_eq!(nested.events.len(), nested.replay.split('/').count());
}

#[test]
fn a_failure_replays_alone() {
    for mistakes in [
        Mistakes {
            data_not_durable: true,
            ..Mistakes::default()
        },
        Mistakes {
            recovery_forgets_data: true,
            ..Mistakes::default()
        },
    ] {
        let failure = try_with(mistakes).expect_err("a mistake went unnoticed");
        let mut checked = 0;
        let only = Plan {
            only: Some(failure.replay.clone()),
            ..plan()
        };
        let recover = |dir: &Path| {
            recover(&Mapped::open(&dir.join("data"), true), mistakes);
            Ok(())
        };
        let again = explore_with_recovery(&trace_of(mistakes), &only, recover, |dir, point| {
            checked += 1;
            consistent(dir, point)
        })
        .expect_err("the failure did not come back");
        assert_eq!(
            (&again.message, &again.events),
            (&failure.message, &failure.events)
        );
        assert_eq!(checked, failure.events.len(), "one image per depth");
    }
}

#[test]
fn an_image_that_does_not_exist_is_not_a_success() {
    let plan = Plan {
        only: Some("100000:all".into()),
        ..plan()
    };
    let failure = explore(&trace_of(Mistakes::default()), &plan, |_, _| Ok(()))
        .expect_err("nothing was replayed");
    assert!(failure.message.contains("no such image"), "{failure}");
}

#[test]
fn a_trace_without_events_is_not_a_success() {
    let trace = record_in(|_| ());
    let failure = explore(&trace, &plan(), |_, _| Ok(())).expect_err("nothing was explored");
    assert!(failure.message.contains("empty"), "{failure}");
}

#[test]
fn the_same_seed_gives_the_same_images_and_another_seed_others() {
    let trace = record_mapped(|map| {
        for index in 0..64 {
            map.store(index, index as u64 + 1);
        }
    });
    let images = |seed| {
        let mut images = Vec::new();
        let plan = Plan {
            points_max: Some(5),
            exhaustive_max: 0,
            ..Plan::new(Rules::Lines, seed)
        };
        explore(&trace, &plan, |dir, _| {
            images.push(std::fs::read(dir.join("data")).unwrap());
            Ok(())
        })
        .unwrap_or_else(|failure| panic!("{failure}"));
        images
    };
    assert_eq!(images(1), images(1));
    assert_ne!(images(1), images(2));
}

#[test]
fn a_check_that_panics_is_a_failure_with_a_seed() {
    let failure = explore(&trace_of(Mistakes::default()), &plan(), |_, _| {
        panic!("as asserted")
    })
    .expect_err("the panic was lost");
    assert!(
        failure.message.contains("check panicked: as asserted"),
        "{failure}"
    );
    let text = failure.to_string();
    assert!(
        text.contains("seed 42") && text.contains("crash after"),
        "{text}"
    );
}

#[test]
fn the_image_of_a_failure_is_kept_on_request() {
    let trace = record_mapped(|map| map.persist(A, 7, DATA));
    let plan = Plan {
        keep_failed: true,
        ..plan()
    };
    let failure = explore(&trace, &plan, |dir, _| {
        // The image is kept as it was before the check changed it.
        let [a] = words([A])(dir);
        std::fs::remove_file(dir.join("data")).unwrap();
        if a == 7 { Err("seven".into()) } else { Ok(()) }
    })
    .expect_err("the check failed");
    let image = failure.image.expect("the image was to be kept");
    assert_eq!(words([A])(&image), [7]);
    std::fs::remove_dir_all(image).unwrap();
}

#[test]
fn whatever_a_check_does_to_an_image_the_next_one_is_right() {
    let trace = record_in(|dir| {
        let map = Mapped::open(&dir.join("data"), true);
        durum_persist::file::create_dir(&dir.join("sub"), SETUP).unwrap();
        let other = durum_persist::file::MediaFile::create_new(&dir.join("sub/other")).unwrap();
        other.write_all_at(&[9; 100], 0).unwrap();
        other.sync(SETUP).unwrap();
        sync_dir(&dir.join("sub"));
        sync_dir(dir);
        for value in 1..40 {
            map.persist(A, value, DATA);
        }
    });
    let plan = Plan {
        random_images: 0,
        ..plan()
    };
    let mut round = 0;
    let settled = trace.events().len() - 39 * 3;
    explore(&trace, &plan, |dir, point| {
        if point.index < settled {
            return Ok(());
        }
        let bytes = std::fs::read(dir.join("data")).map_err(|error| error.to_string())?;
        assert_eq!(bytes.len(), LEN);
        assert!(
            bytes[8..].iter().all(|byte| *byte == 0),
            "what the last check wrote is gone"
        );
        assert_eq!(std::fs::read(dir.join("sub/other")).unwrap(), [9; 100]);
        let mut names: Vec<_> = std::fs::read_dir(dir)
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        names.sort();
        assert_eq!(names, ["data", "sub"]);
        round += 1;
        match round % 8 {
            0 => std::fs::write(dir.join("data"), [0xaa; 3 * LEN]).unwrap(),
            1 => std::fs::remove_file(dir.join("data")).unwrap(),
            2 => std::fs::rename(dir.join("data"), dir.join("sub/data")).unwrap(),
            3 => std::fs::remove_dir_all(dir.join("sub")).unwrap(),
            4 => std::fs::write(dir.join("new"), "x").unwrap(),
            5 => std::fs::OpenOptions::new()
                .write(true)
                .open(dir.join("data"))
                .unwrap()
                .set_len(5)
                .unwrap(),
            6 => {
                std::fs::remove_file(dir.join("data")).unwrap();
                std::fs::create_dir_all(dir.join("data/deep")).unwrap();
            }
            _ => Mapped::open(&dir.join("data"), false).own_store(1000, 1),
        }
        Ok(())
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
    assert!(round > 30, "{round}");
}
