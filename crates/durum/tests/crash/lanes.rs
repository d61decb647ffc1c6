//! Logs of several threads about the same places, each with a checkpoint of its own.
//!
//! The crashes: while one thread commits alone and leaves records pending, and while others come, change the same
//! bytes, and go; after what they changed was brought home, in whatever order. Home that counts as such must hold what
//! the last of them made.

use durum::Engine;
use durum_persist::Site;

use crate::buffered::is_noticed;
use crate::harness::{Campaign, Helper, How, Medium, PLAIN, Workload, World};

const SETTLE: Site = Site("shadow.lanes: apply what the only thread has left pending");
const APPLY: Site = Site("shadow.commit: apply the record before others can build on it");

fn on_shadow(mut campaign: Campaign) -> Campaign {
    campaign.engine = Engine::Shadow;
    campaign.plan(|plan| plan.points_max = Some(300))
}

/// Home counts from here on, and the next records say so.
fn bring_home(world: &World) {
    world.store.step_checkpoint().expect("brought home");
}

/// A thread commits alone. Another one comes, changes what the first one has left pending, and goes; the first one goes
/// on.
pub const COMING_AND_GOING: Workload = Workload {
    name: "a thread comes while another one commits",
    needs: on_shadow,
    run: |world| {
        for round in 0..3u64 {
            let tag = 10 * (round + 1);
            // Alone, and too little to be applied with the next one.
            world.lane().commits(|tx| tx.change(0, 16, tag));
            let other = Helper::new();
            other.run(world, move |lane| {
                lane.commits(|tx| tx.change(8, 16, tag + 1));
                lane.commits(|tx| tx.change(0, 4, tag + 2));
            });
            drop(other);
            world.lane().commits(|tx| tx.change(300, 200, tag + 3));
            bring_home(world);
            world.lane().commits(|tx| tx.change(600, 8, tag + 4));
        }
    },
    ..PLAIN
};

/// Two threads, and a third now and then, change the same bytes, lines and bitmap words in turns.
pub const IN_TURNS: Workload = Workload {
    name: "threads in turns about the same places",
    needs: on_shadow,
    run: |world| {
        let other = Helper::new();
        for round in 0..3u64 {
            let tag = 10 * (round + 1);
            let slot = round as usize;
            world.lane().commits(|tx| {
                tx.change(0, 16, tag)?;
                tx.alloc(slot, 40, tag, How::Set)
            });
            other.run(world, move |lane| {
                lane.commits(|tx| {
                    tx.change(8, 16, tag + 1)?;
                    tx.alloc(slot + 3, 40, tag, How::Add)
                });
                lane.aborts(|tx| tx.change(0, 40, tag + 2));
            });
            let third = Helper::new();
            third.run(world, move |lane| {
                lane.commits(|tx| tx.free(slot, How::Set));
                lane.buffers(|tx| tx.change(4, 16, tag + 3));
            });
            world.lane().commits(|tx| tx.change(0, 16, tag + 4));
            third.run(world, move |lane| {
                // In several parts, and by whole pages.
                lane.commits(|tx| tx.alloc_filled(slot, 70_000, tag + 5))
            });
            drop(third);
            other.run(world, move |lane| {
                lane.commits(|tx| {
                    tx.refill(slot, tag + 6)?;
                    tx.change(12, 8, tag + 6)
                })
            });
            if round % 2 == 0 {
                bring_home(world);
            }
            world.lane().commits(|tx| tx.change(600, 8, tag + 7));
        }
    },
    ..PLAIN
};

#[test]
fn threads_that_come_and_go_survive_on_mapped_memory() {
    COMING_AND_GOING.survives_on_lines();
}

#[test]
fn threads_in_turns_survive_on_mapped_memory() {
    IN_TURNS.survives_on_lines();
}

#[test]
fn threads_in_turns_survive_on_a_file_system() {
    IN_TURNS.survives_on_sectors();
}

/// Beside the others. `make test` leaves them to ci/campaigns.sh.
mod canaries {
    use super::*;

    #[test]
    fn no_step_that_keeps_the_order_is_redundant() {
        for (step, run) in [(SETTLE, &COMING_AND_GOING), (APPLY, &IN_TURNS)] {
            assert!(
                is_noticed(Medium::Lines, step, run),
                "nobody notices that {:?} is left out of {:?}",
                step.0,
                run.name
            );
        }
    }
}
