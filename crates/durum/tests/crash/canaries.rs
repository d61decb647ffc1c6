//! Each write-back, fence and sync of the product is left out in turn: some crash has to be noticed.
//!
//! That shows two things: that these tests would notice a forgotten one, and that none is redundant. A site that is
//! never reached, one whose absence nobody notices, and one that is explained here and is noticed after all, fail the
//! test.

use std::collections::{BTreeMap, BTreeSet};

use durum::Engine;
use durum_persist::Site;
use durum_persist::record::{Event, EventKind, Trace};
use durum_persist::simulate::{Failure, Report};

use crate::harness::{Medium, Workload};
use crate::support::engine;
use crate::{
    allocator, chaining, in_flight, life_cycle, raw_log, recovery, redo, torn, undo, waiting, wrap,
};

/// Runs that together reach every site, short ones first.
const RUNS: &[&Workload] = &[
    &undo::ONE_RANGE,
    &undo::PERSIST,
    &redo::ONE_WORD,
    &allocator::ONE_WORD,
    &redo::SETS,
    &redo::MIXED_SMALL,
    &redo::MIXED_LARGE,
    &redo::MANY_RANGES,
    &redo::SET_ON_FRESH,
    &allocator::ONE,
    &undo::ABORTS,
    &undo::WORDS,
    &undo::SHAPES,
    &undo::STREAMED,
    &undo::SHARED_WORDS,
    &allocator::FREE_THEN_ALLOC,
    &allocator::OTHER_THREAD,
    &recovery::FOUR_LOGS,
    &allocator::GROWTH,
    &allocator::SHRINKING,
    &raw_log::PROTOCOLS,
    &chaining::UNDO,
    &chaining::UNDO_ABORT,
    &chaining::REDO,
    &chaining::FULL,
    &waiting::WAITING,
    &wrap::WRAP,
    &wrap::LARGER,
    &torn::TORN,
    &torn::ALONE,
    &in_flight::ONE_BY_ONE,
    &in_flight::LANDED_BY_OTHERS,
];

/// Runs that only one engine has anything to do in.
fn is_of_another_engine(run: &Workload) -> bool {
    match engine() {
        Engine::Hybrid => is_of_shadow(run),
        Engine::Twin => {
            let logs = [raw_log::PROTOCOLS.name, chaining::FULL.name];
            is_of_shadow(run) || logs.contains(&run.name) || !run.is_possible()
        }
        _ => run.name == raw_log::PROTOCOLS.name,
    }
}

fn is_of_shadow(run: &Workload) -> bool {
    is_long(run) || is_in_flight(run) || run.name == torn::ALONE.name
}

/// Only Shadow leaves anything in flight.
fn is_in_flight(run: &Workload) -> bool {
    [in_flight::ONE_BY_ONE.name, in_flight::LANDED_BY_OTHERS.name].contains(&run.name)
}

/// Runs of many megabytes have their own number of crash points.
fn is_long(run: &Workload) -> bool {
    let runs = [&waiting::WAITING, &wrap::WRAP, &wrap::LARGER, &torn::TORN];
    runs.iter().any(|long| long.name == run.name)
}

/// Whether the engine that the tests run on has this site.
fn is_of_this_engine(site: &str) -> bool {
    match engine() {
        Engine::Hybrid => !["shadow", "twin"].iter().any(|name| site.starts_with(name)),
        Engine::Twin => site.starts_with("twin"),
        _ => !["hybrid", "twin", "raw log", "log", "persist"]
            .iter()
            .any(|name| site.starts_with(name)),
    }
}

/// What the service syncs is the same on every engine, and left out with Hybrid. Twin has a log space like the others,
/// and nothing in it.
fn matters_here(site: &Site) -> bool {
    match engine() {
        Engine::Hybrid => true,
        Engine::Twin => is_of_this_engine(site.0),
        _ => durum::sites().contains(site),
    }
}

/// Where to look first, by the beginning of a site's name. Only a matter of time: the other runs follow.
const HINTS: &[(&str, &Workload)] = &[
    ("log.append", &undo::STREAMED),
    ("hybrid.abort: fence after restored", &redo::MIXED_LARGE),
    ("hybrid.abort: write back restored", &redo::MIXED_SMALL),
    ("hybrid.abort", &undo::ABORTS),
    ("hybrid.commit: write back redo", &redo::MIXED_LARGE),
    ("hybrid.file, abort", &chaining::FULL),
    ("hybrid.file: write large fresh", &allocator::GROWTH),
    ("hybrid.file: sync large fresh", &allocator::GROWTH),
    ("log.chain", &chaining::UNDO),
    ("raw log", &raw_log::PROTOCOLS),
    ("persist", &undo::PERSIST),
    ("shadow.checkpoint: write back home", &wrap::WRAP),
    ("shadow.checkpoint: write pages", &waiting::WAITING),
    ("shadow.checkpoint", &allocator::SHRINKING),
    (
        "shadow.commit: fence after a record that was left",
        &in_flight::ONE_BY_ONE,
    ),
    ("shadow.commit", &undo::SHAPES),
    ("shadow.land", &in_flight::LANDED_BY_OTHERS),
    ("shadow.log", &chaining::REDO),
    ("shadow.torn", &torn::ALONE),
    ("twin.commit: fence after main", &redo::MANY_RANGES),
    ("twin: fence after the state, copying", &redo::MANY_RANGES),
    ("twin.persist", &undo::PERSIST),
];

/// Sites whose absence no crash can show: a copy is read where the registry is damaged, which no crash does.
const UNOBSERVABLE: &[&str] = &["copy's name", "copy's snapshot", "registry's copy"];

/// The sites of write-backs, fences and syncs in a trace: what can be left out. A name may also stand for an operation
/// that is done in any case, such as a removal.
fn sites_of(trace: &Trace) -> BTreeSet<Site> {
    let ordering = trace.events().iter().filter(|event| {
        matches!(
            event.kind,
            EventKind::Streamed { .. }
                | EventKind::WriteBack { .. }
                | EventKind::Fence { .. }
                | EventKind::Synced { .. }
                | EventKind::DirSynced { .. }
        )
    });
    ordering.filter_map(Event::site).collect()
}

/// Whether a failure comes from the crash, and not from the way it was tried.
fn is_about_the_crash(failure: &Failure) -> bool {
    !failure.message.contains("in this process")
}

/// Leaves out a site from one run after the other until a crash is noticed.
fn notices(medium: Medium, site: Site, runs: &[&Workload]) -> bool {
    let noticed = |whose: &str, result: Result<Report, Failure>| match result {
        Ok(_) => false,
        Err(failure) => {
            assert!(is_about_the_crash(&failure), "{failure}");
            let line = failure.message.lines().next().unwrap_or_default();
            println!("{medium:?} without {:?}: {whose}: {line}", site.0);
            true
        }
    };
    let life = || noticed("life cycle", life_cycle::without(medium, Some(site)).1);
    let one = |run: &Workload| {
        let mut recording = run.record(medium, Some(site));
        if !is_long(run) {
            recording.plan.points_max = None;
        }
        recording.plan.nested_one_in = 0;
        recording.plan.keep_failed = false;
        noticed(run.name, recording.explore())
    };
    // What the service syncs is at stake when stores and pools come and go, and so is what the watermark slots are for.
    let is_of_the_client = durum::sites().contains(&site) && !site.0.contains("watermark");
    let hints = HINTS.iter().filter(|(name, _)| site.0.starts_with(name));
    let first = hints
        .map(|(_, run)| *run)
        .filter(|run| runs.iter().any(|other| other.name == run.name));
    !is_of_the_client && life()
        || first.chain(runs.iter().copied()).any(one)
        || is_of_the_client && life()
}

/// Leaves each site out in turn; those that were reached.
fn leave_each_out(medium: Medium) -> BTreeSet<Site> {
    // By site, the runs that reach it.
    let mut reached: BTreeMap<Site, Vec<&Workload>> = BTreeMap::new();
    for run in RUNS.iter().filter(|run| !is_of_another_engine(run)) {
        for site in sites_of(&run.record(medium, None).trace) {
            reached.entry(site).or_default().push(run);
        }
    }
    for site in sites_of(&life_cycle::without(medium, None).0) {
        reached.entry(site).or_default();
    }
    // For work on one site.
    let only = std::env::var("DURUM_CRASH_SITE").unwrap_or_default();
    let unnoticed: Vec<&str> = reached
        .iter()
        .filter(|(site, _)| site.0.contains(&only) && matters_here(site))
        .filter(|(site, runs)| !notices(medium, **site, runs))
        .map(|(site, _)| site.0)
        .collect();
    let explained: Vec<&str> = UNOBSERVABLE
        .iter()
        .copied()
        .filter(|site| matters_here(&Site(site)))
        .collect();
    assert_eq!(
        unnoticed, explained,
        "{medium:?}: sites whose absence nobody notices"
    );
    reached.into_keys().collect()
}

/// Sites of the client that were not reached.
fn missed(reached: &BTreeSet<Site>, wanted: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let sites = durum::sites().into_iter();
    sites
        .filter(|site| is_of_this_engine(site.0) && wanted(site.0) && !reached.contains(site))
        .map(|site| site.0)
        .collect()
}

#[test]
fn no_write_back_or_fence_is_redundant_on_mapped_memory() {
    let reached = leave_each_out(Medium::Lines);
    let missed = missed(&reached, |site| !site.contains("file"));
    assert_eq!(missed, [""; 0], "no run reaches these");
}

#[test]
fn no_sync_is_redundant_on_a_file_system() {
    let reached = leave_each_out(Medium::Sectors);
    // A write-back is a file write there; what makes it durable is the sync of the fence after it. Nothing that a Twin
    // transaction takes back was ever written; nothing is left in flight, and nothing may be torn.
    let missed = missed(&reached, |site| {
        site.contains("sync")
            || site.contains("fence")
                && !site.starts_with("hybrid")
                && !site.starts_with("twin.abort")
                && !site.contains("in flight")
                && !site.starts_with("shadow.torn")
    });
    assert_eq!(missed, [""; 0], "no run reaches these");
}
