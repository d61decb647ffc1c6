//! Private pages are given back between transactions: each crash leaves what it would have left without.
//!
//! The crashes: those of other tests, with every page that equals home given back after every commit; home is up to date in memory then, and durable as
//! late as ever.

use durum::Engine;

use crate::harness::{Campaign, Workload};
use crate::{buffered, sections, undo, wrap};

/// The same run on Shadow, giving pages back after each commit.
fn giving_back(run: &Workload, medium: crate::harness::Medium) {
    let mut campaign: Campaign = run.campaign(medium);
    campaign.engine = Engine::Shadow;
    campaign.private_max = 0;
    campaign.plan.points_max = Some(campaign.plan.points_max.unwrap_or(60).min(60));
    campaign.record_after(run.before, run.run).survives();
}

const RUNS: &[&Workload] = &[
    &undo::SHAPES,
    &undo::ABORTS,
    &buffered::MIXED,
    &buffered::THREADS,
    &buffered::REUSE,
    &buffered::SHRINKING,
    &sections::MIXED,
    &sections::TWO_THREADS,
    &wrap::WRAP,
];

#[test]
fn crashes_while_pages_are_given_back_on_mapped_memory() {
    for run in RUNS {
        giving_back(run, crate::harness::Medium::Lines);
    }
}

#[test]
fn crashes_while_pages_are_given_back_on_a_file_system() {
    for run in RUNS {
        giving_back(run, crate::harness::Medium::Sectors);
    }
}
