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
const RAISE: Site = Site("shadow.owners: draw above the log that has changed the line before");
const RAISE_ABOVE_ALL: Site = Site("shadow.owners: draw above all logs where a line is shared");
const FLOOR: Site = Site("shadow.owners: draw above what counts as home");
const BEGIN: Site = Site("shadow.owners: draw above what the counter gave");
const GO_ON: Site = Site("shadow.owners: the counter goes on from the last stamp of all logs");

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

/// Owners of lines order the records of two threads, of which one is ahead of the other: both change lines of their
/// own, each others', and shared ones; words, whole objects, bitmap words.
pub const BY_OWNER: Workload = Workload {
    name: "records that owners of lines order",
    needs: on_shadow,
    run: |world| {
        world.store.order_by_owner();
        let other = Helper::new();
        for round in 0..2u64 {
            let (tag, slot) = (20 * (round + 1), round as usize);
            // It comes, and has a log.
            other.run(world, move |lane| lane.commits(|tx| tx.change(512, 8, tag)));
            for ahead in 0..3 {
                world.lane().commits(|tx| tx.change(0, 16, tag + ahead));
            }
            other.run(world, move |lane| {
                // On a line of the one that is ahead, and then on one of its own.
                lane.commits(|tx| tx.change(8, 16, tag + 3));
                lane.commits(|tx| tx.change(512, 16, tag + 4));
                lane.commits(|tx| tx.alloc(slot, 40, tag + 4, How::Add));
            });
            for ahead in 0..3 {
                world
                    .lane()
                    .commits(|tx| tx.change(256, 16, tag + 5 + ahead));
            }
            // The line is shared now.
            world.lane().commits(|tx| tx.change(0, 16, tag + 8));
            other.run(world, move |lane| {
                lane.commits(|tx| tx.change(8, 8, tag + 9));
            });
            for ahead in 0..3 {
                world
                    .lane()
                    .commits(|tx| tx.change(256, 16, tag + 10 + ahead));
            }
            bring_home(world);
            other.run(world, move |lane| {
                // Nothing of its is missing at home.
                lane.commits(|tx| tx.change(512, 16, tag + 13));
                lane.aborts(|tx| tx.change(0, 40, tag + 14));
                lane.buffers(|tx| tx.change(4, 16, tag + 14));
            });
            world.lane().commits(|tx| {
                tx.change(0, 16, tag + 15)?;
                tx.free(slot, How::Set)
            });
            other.run(world, move |lane| {
                lane.commits(|tx| tx.alloc_filled(slot + 4, 70_000, tag + 16))
            });
            world.lane().commits(|tx| tx.change(512, 16, tag + 17));
        }
    },
    ..PLAIN
};

/// From the counter to owners of lines and back, with records about the same bytes.
pub const TO_OWNERS_AND_BACK: Workload = Workload {
    name: "owners of lines order some records, and the counter those before and behind",
    needs: on_shadow,
    run: |world| {
        world.store.order_by_owner();
        // So many stamps of the counter that the first ones of owners would come before some.
        for alone in 0..40 {
            world.lane().commits(|tx| tx.change(0, 16, alone));
        }
        let other = Helper::new();
        other.run(world, move |lane| lane.commits(|tx| tx.change(512, 8, 1)));
        world.lane().commits(|tx| tx.change(0, 16, 50));
        world.lane().commits(|tx| tx.change(512, 16, 51));
        other.run(world, move |lane| {
            lane.commits(|tx| tx.alloc_filled(0, 100_000, 52));
            // One of these comes to the end of a segment, and is written in parts, which the counter orders.
            for again in 0..3 {
                lane.commits(|tx| tx.refill(0, 53 + again));
            }
            lane.commits(|tx| tx.change(512, 16, 57));
        });
        world.lane().commits(|tx| tx.change(0, 16, 58));
    },
    ..PLAIN
};

#[test]
fn records_survive_that_owners_order_and_then_the_counter() {
    TO_OWNERS_AND_BACK.survives_on_lines();
}

#[test]
fn records_that_owners_order_survive_on_mapped_memory() {
    BY_OWNER.survives_on_lines();
}

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
        for (step, run) in [
            (SETTLE, &COMING_AND_GOING),
            (APPLY, &IN_TURNS),
            (RAISE, &BY_OWNER),
            (RAISE_ABOVE_ALL, &BY_OWNER),
            (FLOOR, &BY_OWNER),
            (BEGIN, &TO_OWNERS_AND_BACK),
            (GO_ON, &TO_OWNERS_AND_BACK),
        ] {
            assert!(
                is_noticed(Medium::Lines, step, run),
                "nobody notices that {:?} is left out of {:?}",
                step.0,
                run.name
            );
        }
    }
}
