//! Recovery, crashed again and again, with many logs at once.
//!
//! The crashes: in recovery, between the restored bytes, the commit that retires the logs and the files that go; and in
//! the recovery from that crash, and in the one after.

use std::collections::BTreeSet;
use std::path::Path;

use durum::Domain;
use durum_persist::Site;
use durum_persist::record::{Event, EventKind, Recorder, RecorderOptions, Trace};
use durum_persist::simulate::{Failure, Plan, Report, Rules, explore_with_recovery};
use durum_service::ReadOnlyStore;

use crate::harness::{
    Campaign, How, Judge, Medium, PLAIN, Step, Workload, in_turns, recover, seed,
};

fn four_lanes(mut campaign: Campaign) -> Campaign {
    campaign.lanes = 4;
    campaign.owners.bytes = |offset| offset / 8 % 4;
    campaign.owners.slots = |slot| slot % 4;
    campaign.plan(|plan| {
        plan.points_max = Some(50);
        plan.single_units_max = 3;
        plan.random_images = 3;
        plan.nested_one_in = 15;
        plan.nested_depth = 3;
        plan.nested_points_max = Some(10);
    })
}

/// What a lane does between begin and end; lanes differ in kind.
fn some(running: &mut crate::harness::Running<'_>, number: usize, round: usize) {
    let tag = (1 + number + 10 * round) as u64;
    let at = number * 8;
    running.change(at, 8, tag).expect("announced");
    match number {
        0 => running.change(at + 256, 8, tag + 100).expect("announced"),
        1 => running.set(at + 256, 8, tag + 200).expect("set"),
        2 => running
            .alloc(2 + 4 * round, 40, tag + 300, How::Set)
            .expect("room"),
        _ => running
            .alloc(3 + 4 * round, 300, tag + 400, How::Add)
            .expect("room"),
    }
}

pub const FOUR_LOGS: Workload = Workload {
    name: "four logs at once",
    needs: four_lanes,
    run: |world| {
        // All begin, all change something; then they end one after the other, so that at each crash several are under
        // way.
        let order: Vec<usize> = [0, 1, 2, 3, 1, 0, 3, 2].repeat(8);
        in_turns(world, &order, |lane, number, turns| {
            for round in 0..3 {
                let step = {
                    let mut running = lane.begin();
                    turns.step(number, || some(&mut running, number, round));
                    turns.step(number, || {
                        if (number + round) % 4 == 3 {
                            running.abort()
                        } else {
                            running.commit()
                        }
                    })
                };
                lane.took(step);
            }
        });
    },
    ..PLAIN
};

#[test]
fn many_logs_are_recovered_at_once_and_recovery_is_crashed() {
    FOUR_LOGS.survives_on_lines();
}

#[test]
fn many_logs_on_a_file_system_are_recovered_at_once() {
    FOUR_LOGS.survives_on_sectors();
}

pub const FORWARD: Workload = Workload {
    name: "recovery of one of each",
    needs: |campaign| {
        campaign.plan(|plan| {
            plan.points_max = Some(12);
            plan.nested_one_in = 2;
            plan.nested_depth = 2;
            plan.nested_points_max = Some(16);
            plan.random_images = 1;
            plan.single_units_max = 2;
        })
    },
    run: |world| {
        world.lane().commits(|tx| {
            tx.change(0, 30, 1)?;
            tx.set(400, 30, 2)?;
            tx.alloc(0, 40, 3, How::Set)?;
            tx.alloc(1, 500, 4, How::Set)
        });
    },
    ..PLAIN
};

#[test]
fn the_recovery_of_every_second_image_is_crashed() {
    FORWARD.survives_on_lines();
}

/// A store as a crash leaves it in the middle of a transaction that has announced and changed several ranges. All that
/// was stored has arrived.
struct Dirty {
    recording: crate::harness::Recording,
    dir: tempfile::TempDir,
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a directory");
    for entry in std::fs::read_dir(from).expect("a directory to copy") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).expect("a copy");
        }
    }
}

fn dirty() -> Dirty {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a scratch directory");
    let target = dir.path().join("store");
    let recording = Campaign::lines("recovery alone").record_after(
        |world| world.lane().commits(|tx| tx.change(0, 900, 1)),
        |world| {
            let from = world.store.info().path.clone();
            let lane = world.lane();
            // On engines that bring changes home later, this one is not there yet.
            lane.commits(|tx| tx.change(1500, 300, 8));
            let undone = {
                let mut running = lane.begin();
                running.change(0, 30, 2).expect("announced");
                running.change(500, 100, 3).expect("announced");
                running.alloc(0, 40, 4, How::Add).expect("room");
                copy(&from, &target);
                running.undone.clone()
            };
            // What the copy may be: rolled back, and nothing else.
            lane.steps = vec![Step::durable(undone.clone(), undone)];
        },
    );
    Dirty { recording, dir }
}

/// Records the recovery of a dirty store, with a sync left out.
fn recovery_of(dirty: &Dirty, skip: Option<Site>) -> Trace {
    let copied = tempfile::tempdir_in("/dev/shm").expect("a scratch directory");
    let store = copied.path().join("store");
    copy(&dirty.dir.path().join("store"), &store);
    let recorder = Recorder::start(
        &store,
        RecorderOptions {
            skip,
            ..RecorderOptions::default()
        },
    );
    recover(&store, Domain::Dax).expect("the store recovers");
    recorder.stop()
}

fn crash_recovery(trace: &Trace, judge: &mut Judge, rules: Rules) -> Result<Report, Failure> {
    let mut plan = Plan::new(rules, seed(77));
    plan.nested_one_in = 40;
    plan.nested_points_max = Some(10);
    explore_with_recovery(
        trace,
        &plan,
        |image| {
            // Whoever only reads must be able to, before recovery.
            let reader =
                ReadOnlyStore::open(image).map_err(|error| format!("read only: {error}"))?;
            match reader.pending().quarantined.first() {
                Some(note) => return Err(format!("read only: {}", note.reason)),
                None => drop(reader),
            }
            recover(image, Domain::Dax)
        },
        |image, point| judge.judge(image, point),
    )
}

#[test]
fn every_step_of_recovery_may_be_its_last() {
    let mut dirty = dirty();
    let trace = recovery_of(&dirty, None);
    for rules in [Rules::Lines, Rules::Sectors] {
        let report = crash_recovery(&trace, &mut dirty.recording.judge, rules)
            .unwrap_or_else(|failure| panic!("{rules:?}: {failure}"));
        println!("recovery alone, {rules:?}: {report:?}");
    }
}

/// Syncs of recovery whose absence no crash shows, and why.
const UNOBSERVABLE: &[(&str, &str)] = &[(
    "logs that are replayed",
    "the images are those of power cuts, so all of their logs are durable; those of a process that was killed need not be (durum-service, \
     logs_are_durable_before_they_are_replayed)",
)];

#[test]
fn no_sync_of_recovery_is_redundant() {
    let mut dirty = dirty();
    let sites: BTreeSet<Site> = recovery_of(&dirty, None)
        .events()
        .iter()
        .filter(|event| {
            matches!(
                event.kind,
                EventKind::Synced { .. } | EventKind::DirSynced { .. }
            )
        })
        .filter_map(Event::site)
        .collect();
    assert!(sites.contains(&Site("recovered data")), "{sites:?}");
    let mut unnoticed = Vec::new();
    for &site in &sites {
        let trace = recovery_of(&dirty, Some(site));
        match crash_recovery(&trace, &mut dirty.recording.judge, Rules::Sectors) {
            Err(failure) => println!("without {:?}: {}", site.0, failure.message),
            Ok(_) => unnoticed.push(site.0),
        }
    }
    // Recovery of a Twin pool replays no log, and syncs none.
    let explained = UNOBSERVABLE.iter().map(|(site, _)| *site);
    let explained: Vec<&str> = explained
        .filter(|site| sites.contains(&Site(site)))
        .collect();
    assert_eq!(unnoticed, explained, "sites whose absence nobody notices");
}

#[test]
#[ignore = "a campaign of some minutes: deep crashes of recovery at every point"]
fn campaign_of_crashed_recoveries() {
    for medium in [Medium::Lines, Medium::Sectors] {
        for workload in [FOUR_LOGS, FORWARD] {
            let mut recording = workload.record(medium, None);
            recording.plan.points_max = None;
            recording.plan.nested_one_in = 4;
            recording.plan.nested_depth = 4;
            recording.plan.nested_points_max = Some(40);
            recording.survives();
        }
    }
}
