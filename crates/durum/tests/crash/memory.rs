//! Private pages are given back between transactions: each crash leaves what it would have left without.
//!
//! The crashes: those of other tests, with every page that equals home given back after every commit; home is up to
//! date in memory then, and durable as late as ever.

use durum::Engine;
use durum_persist::Site;

use crate::buffered::is_noticed;
use crate::harness::{BYTES, Campaign, Helper, Medium, PLAIN, Workload, World, in_turns};
use crate::support::engine;
use crate::undo::two_lanes;
use crate::{buffered, fresh, sections, undo, waiting, wrap};

/// Of each run; the same runs without giving back have theirs.
const POINTS_MAX: usize = 20;

/// The same run on Shadow, giving pages back after each commit.
fn giving_back(run: &Workload, medium: Medium) {
    if engine() != Engine::Shadow {
        // All tests run once more on another engine; these have their own.
        return;
    }
    let mut campaign: Campaign = run.campaign(medium);
    campaign.engine = Engine::Shadow;
    campaign.private_max = 0;
    campaign.plan.points_max = Some(
        campaign
            .plan
            .points_max
            .unwrap_or(POINTS_MAX)
            .min(POINTS_MAX),
    );
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
];

/// Runs of many megabytes.
const LONG_RUNS: &[&Workload] = &[
    &waiting::WAITING,
    &wrap::WRAP,
    &fresh::SAME_PLACE,
    &fresh::CHANGED_SINCE,
    &fresh::SECTIONS,
];

#[test]
fn crashes_while_pages_are_given_back_on_mapped_memory() {
    for run in RUNS {
        giving_back(run, Medium::Lines);
    }
}

#[test]
fn crashes_while_pages_are_given_back_on_a_file_system() {
    for run in RUNS {
        giving_back(run, Medium::Sectors);
    }
}

/// One thread applies records without a commit of its own, and another one's commits tell that home has them. Had the
/// first one copied them home past the cache, no fence of the second one's would cover that.
fn applied_by_one_and_counted_by_another(world: &mut World, apply: fn(&mut World)) {
    let other = Helper::new();
    other.run(world, |lane| lane.commits(|tx| tx.change(BYTES, 50_000, 1)));
    apply(world);
    // Once round the log.
    for round in 0..12 {
        other.run(world, move |lane| {
            lane.commits(|tx| tx.change(BYTES + 100_000, 230_000, 2 + round))
        });
    }
}

fn once_round_the_log(mut campaign: Campaign) -> Campaign {
    campaign.engine = Engine::Shadow;
    campaign.log_max = 2 << 20;
    campaign.large_size = 1_000_000;
    campaign.plan(|plan| {
        plan.points_max = Some(20);
        plan.single_units_max = 2;
        plan.random_images = 1;
        plan.nested_one_in = 1000;
    })
}

#[test]
#[ignore = "a campaign of some seconds: runs of many megabytes"]
fn campaign_of_crashes_while_pages_are_given_back() {
    for run in LONG_RUNS {
        giving_back(run, Medium::Lines);
        giving_back(run, Medium::Sectors);
    }
}

const APPLIED_TO_GIVE_BACK: Workload = Workload {
    name: "applied to give pages back",
    needs: once_round_the_log,
    run: |world| {
        applied_by_one_and_counted_by_another(world, |world| {
            assert!(world.store.give_pages_back().unwrap().is_some());
        })
    },
    ..PLAIN
};

const APPLIED_FOR_A_SECTION: Workload = Workload {
    name: "applied for a section",
    needs: once_round_the_log,
    run: |world| {
        applied_by_one_and_counted_by_another(world, |world| {
            // A section that changes nothing makes no record, and so no fence.
            world.lane().section_aborts(|_| Ok(()));
        })
    },
    ..PLAIN
};

/// What a thread has stored and not committed lies in a line that another thread's transaction has changed, and that
/// goes home.
const BESIDE_ONE_UNDER_WAY: Workload = Workload {
    name: "applied beside a transaction",
    needs: |campaign| {
        let mut campaign = two_lanes(once_round_the_log(campaign));
        campaign.owners.bytes = |offset| match offset {
            0..BYTES => offset / 8 % 2,
            _ => 1,
        };
        campaign
    },
    run: |world| {
        in_turns(world, &[0, 1, 1, 0], |lane, number, turns| match number {
            0 => {
                let mut running = lane.begin();
                turns.step(number, || running.change(0, 8, 7).expect("announced"));
                let step = turns.step(number, || running.abort());
                lane.took(step);
            }
            _ => {
                turns.step(number, || lane.commits(|tx| tx.change(8, 8, 8)));
                turns.step(number, || {
                    // Once round the log.
                    for round in 0..12 {
                        lane.commits(|tx| tx.change(BYTES + 100_000, 230_000, 9 + round));
                    }
                });
            }
        });
    },
    ..PLAIN
};

#[test]
fn lines_go_home_from_records_and_not_from_where_the_program_stores() {
    BESIDE_ONE_UNDER_WAY.survives_on_lines();
    let step = Site("shadow.checkpoint: take what goes home from records only");
    assert!(is_noticed(Medium::Lines, step, &BESIDE_ONE_UNDER_WAY));
}

#[test]
fn what_was_applied_to_give_pages_back_is_home_before_it_counts_as_home() {
    APPLIED_TO_GIVE_BACK.survives_on_lines();
}

#[test]
fn what_was_applied_for_a_section_is_home_before_it_counts_as_home() {
    APPLIED_FOR_A_SECTION.survives_on_lines();
}
