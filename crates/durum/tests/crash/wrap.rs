//! Log space of the Shadow engine that is used again.
//!
//! The crashes: between home updates and the watermark that makes them known, and while segments are written whose old
//! records other logs still have older ones for.

use std::thread;

use crate::harness::{BYTES, Campaign, PLAIN, Workload, World};

/// As little log as there can be: eight segments of 256 KiB.
pub fn little_log(mut campaign: Campaign) -> Campaign {
    campaign.engine = durum::Engine::Shadow;
    campaign.log_max = 2 << 20;
    campaign.large_size = 1_000_000;
    campaign.used_one_in = 16;
    campaign.plan(|plan| {
        plan.points_max = Some(60);
        plan.single_units_max = 2;
        plan.random_images = 2;
        plan.nested_one_in = 100;
        plan.nested_points_max = Some(6);
    })
}

/// A thread that ends leaves old records in a segment of its own.
fn leave_old_records(world: &mut World) {
    let lane = world.lane();
    thread::scope(|scope| {
        scope.spawn(|| {
            lane.commits(|tx| tx.change(BYTES, 5_000, 1));
            lane.commits(|tx| tx.change(0, 100, 2));
        });
    });
}

/// Three times the log, each byte again and again.
pub const WRAP: Workload = Workload {
    name: "the log goes round",
    needs: little_log,
    before: leave_old_records,
    run: |world| {
        for round in 0..26 {
            world.lane().commits(|tx| {
                tx.change(BYTES + round % 3 * 100_000, 230_000, 10 + round as u64)?;
                tx.change(round * 10, 40, 50 + round as u64)
            });
        }
    },
};

#[test]
fn a_log_that_goes_round_survives_on_mapped_memory() {
    WRAP.survives_on_lines();
}

#[test]
fn a_log_that_goes_round_survives_on_a_file_system() {
    WRAP.survives_on_sectors();
}

/// A transaction that is larger than all log there may be: it gets more, and gives it back.
pub const LARGER: Workload = Workload {
    name: "a transaction larger than the log",
    needs: |campaign| {
        let mut campaign = little_log(campaign);
        campaign.large_size = 3_000_000;
        campaign.plan(|plan| plan.points_max = Some(20))
    },
    run: |world| {
        for round in 0..2 {
            world
                .lane()
                .commits(|tx| tx.change(BYTES, 2_900_000, 10 + round));
            world.lane().commits(|tx| tx.change(5, 40, 20 + round));
        }
    },
    ..PLAIN
};

#[test]
fn a_transaction_may_be_larger_than_the_log() {
    LARGER.survives_on_lines();
}
