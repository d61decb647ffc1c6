//! The `file` domain: the same runs, where a sector of 512 bytes is old or new, at any time, until its file is synced.
//!
//! The crashes: power cuts at any moment of a commit, after which the page cache has written any sectors it liked.
//! Puddles are mapped privately, so nothing of a transaction is there before its commit writes it.

use std::collections::BTreeSet;

use durum_persist::record::EventKind;

use crate::harness::{Medium, Workload};
use crate::{allocator, chaining, redo, undo};

/// Every run that the tests of mapped memory have, too.
pub const ALL: &[&Workload] = &[
    &undo::ONE_RANGE,
    &undo::SHAPES,
    &undo::ABORTS,
    &undo::NESTED,
    &undo::CLOBBER,
    &undo::PERSIST,
    &undo::STREAMED,
    &undo::SHARED_WORDS,
    &redo::SETS,
    &redo::MIXED_SMALL,
    &redo::MIXED_LARGE,
    &redo::SET_ON_ANNOUNCED,
    &redo::SET_ON_FRESH,
    &redo::SHARED_LINES,
    &redo::ONE_WORD,
    &allocator::ONE,
    &allocator::ONE_WORD,
    &allocator::TOGETHER,
    &allocator::FREE_THEN_ALLOC,
    &allocator::ALLOC_THEN_FREE,
    &allocator::ABORT_AFTER_FREE,
    &allocator::ADD_AND_FREE,
    &allocator::OTHER_THREAD,
    &allocator::SHARED_BITS,
    &allocator::SHARED_SLAB,
    &allocator::EXTENTS,
    &allocator::EMPTY_SLAB,
    &allocator::GROWTH,
    &allocator::SHRINKING,
];

fn survive(workloads: &[&Workload], points_max: usize) {
    for workload in workloads.iter().filter(|workload| workload.is_possible()) {
        let mut recording = workload.record(Medium::Sectors, None);
        let fewer = recording
            .plan
            .points_max
            .unwrap_or(usize::MAX)
            .min(points_max);
        recording.plan.points_max = Some(fewer);
        recording.plan.single_units_max = recording.plan.single_units_max.min(4);
        recording.plan.random_images = recording.plan.random_images.min(2);
        recording.survives();
    }
}

#[test]
fn ranges_are_old_or_new_as_a_whole() {
    survive(&ALL[..8], 60);
}

#[test]
fn sets_happen_all_at_once() {
    survive(&ALL[8..15], 60);
}

#[test]
fn objects_come_and_go_with_their_transactions() {
    survive(&ALL[15..25], 50);
}

#[test]
fn pools_grow_and_shrink() {
    survive(&ALL[25..], 40);
}

#[test]
fn logs_go_on_in_another_puddle() {
    survive(
        &[&chaining::UNDO, &chaining::UNDO_ABORT, &chaining::SEAL],
        40,
    );
}

/// When a commit returns, no file holds a write that was not synced: what the log retires with, too.
#[test]
fn all_that_a_commit_wrote_is_synced_when_it_returns() {
    for workload in ALL.iter().filter(|workload| workload.is_possible()) {
        let mut campaign = workload.campaign(Medium::Sectors);
        // With several threads another one's commit may be under way.
        if campaign.lanes > 1 {
            continue;
        }
        campaign.skip = None;
        let recording = campaign.record_after(workload.before, workload.run);
        let mut dirty = BTreeSet::new();
        let mut commits = 0;
        for event in recording.trace.events() {
            match &event.kind {
                EventKind::Written { file, .. } => {
                    // The copy of the registry follows it without a sync of its own.
                    let path = recording.trace.path_of(*file).unwrap();
                    if !path.ends_with("registry.copy") && !path.ends_with("registry.copy.new") {
                        dirty.insert(*file);
                    }
                }
                EventKind::Synced {
                    file,
                    succeeded: true,
                    ..
                } => {
                    dirty.remove(file);
                }
                EventKind::Stored { .. } | EventKind::Streamed { .. } => {
                    panic!("{}: a store to a shared mapping", workload.name)
                }
                EventKind::Note { .. } => {
                    commits += 1;
                    assert!(
                        dirty.is_empty(),
                        "{}: {dirty:?} are not synced",
                        workload.name
                    );
                }
                _ => {}
            }
        }
        assert!(commits > 0, "{}", workload.name);
    }
}

#[test]
#[ignore = "a campaign of some minutes: every crash point of every run on a file system"]
fn campaign_of_power_cuts() {
    for workload in ALL.iter().filter(|workload| workload.is_possible()) {
        let mut recording = workload.record(Medium::Sectors, None);
        recording.plan.points_max = None;
        recording.plan.random_images = 8;
        recording.plan.nested_one_in = 20;
        recording.survives();
    }
}
