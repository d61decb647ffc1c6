//! Large fresh objects of the Shadow engine, which go home with the commit instead of into the log.
//!
//! The crashes: while an object is on its way home and its allocation is not durable; while the log still has records about what was in the same
//! place before; when the record is durable and home is not any more what the record says.

use crate::harness::{BYTES, Helper, How, PLAIN, Workload, in_turns};
use crate::wrap::little_log;

/// The same place again and again: with records that may still be replayed, and without.
pub const SAME_PLACE: Workload = Workload {
    name: "large objects in the same place",
    needs: |campaign| little_log(campaign).plan(|plan| plan.points_max = Some(150)),
    run: |world| {
        for round in 0..3 {
            for size in [3000, 6000] {
                // The first goes home, or into the log where that has the one before; the next is in the log, the third must not be overwritten
                // by it.
                for value in 0..3 {
                    let value = 10 + 10 * round + value + size as u64 / 1000;
                    world
                        .lane()
                        .commits(|tx| tx.alloc(0, size, value, How::Set));
                    world
                        .lane()
                        .aborts(|tx| tx.alloc(1, size, value + 100, How::Set));
                    world.lane().commits(|tx| tx.refill(0, value + 1000));
                    world.lane().commits(|tx| tx.free(0, How::Set));
                }
            }
            // The log goes round.
            for value in 0..12 {
                let value = 100 + 20 * round + value;
                world.lane().commits(|tx| tx.change(BYTES, 230_000, value));
            }
        }
        world.lane().commits(|tx| {
            tx.alloc(0, 3000, 200, How::Add)?;
            tx.alloc(1, 70_000, 201, How::Add)?;
            tx.alloc(2, 1500, 202, How::Set)
        });
    },
    ..PLAIN
};

#[test]
fn large_objects_in_the_same_place_are_whole() {
    SAME_PLACE.survives_on_lines();
}

/// A record is the last of its log, and what went home with it is changed there by another thread's records, or by itself.
pub const CHANGED_SINCE: Workload = Workload {
    name: "large objects that change after they went home",
    needs: |campaign| little_log(campaign).plan(|plan| plan.points_max = Some(200)),
    run: |world| {
        let helper = Helper::new();
        // Records by another thread, until those before are home.
        let others_come_home = |world: &mut _, tag| {
            helper.run(world, move |lane| {
                for value in 0..4 {
                    lane.commits(|tx| tx.change(BYTES, 150_000, tag + value));
                }
            });
        };
        for round in 0..2 {
            let tag = 100 * round;
            world.lane().commits(|tx| {
                tx.alloc(0, 3000, tag, How::Set)?;
                tx.alloc(1, 9000, tag + 1, How::Set)
            });
            helper.run(world, move |lane| {
                lane.commits(|tx| tx.refill(1, tag + 2));
            });
            others_come_home(world, tag + 10);
            world.lane().commits(|tx| {
                tx.alloc_and_set_part(2, 5000, tag + 3)?;
                tx.alloc_and_set(3, 2000, tag + 4)
            });
            others_come_home(world, tag + 20);
            world.lane().commits(|tx| tx.refill(0, tag + 5));
            world
                .lane()
                .commits(|tx| (0..4).try_for_each(|slot| tx.free(slot, How::Set)));
            others_come_home(world, tag + 30);
        }
    },
    ..PLAIN
};

#[test]
fn what_changes_large_objects_later_does_not_make_them_disappear() {
    CHANGED_SINCE.survives_on_lines();
}

/// Two threads at once, each with objects of its own: a record is torn while one with a larger stamp is durable.
pub const TWO_THREADS: Workload = Workload {
    name: "large objects of two threads",
    needs: |campaign| {
        let mut campaign = little_log(campaign).plan(|plan| plan.points_max = Some(150));
        campaign.lanes = 2;
        campaign.owners.bytes = |_| 0;
        campaign.owners.slots = |slot| slot % 2;
        campaign
    },
    run: |world| {
        in_turns(world, &[], |lane, number, _| {
            for round in 0..6 {
                let tag = 10 * round + number as u64;
                lane.commits(|tx| {
                    tx.alloc(number, 1500, tag, How::Set)?;
                    tx.alloc(number + 2, 20_000, tag + 2, How::Add)
                });
                lane.commits(|tx| tx.refill(number + 2, tag + 4));
                lane.commits(|tx| {
                    tx.free(number, How::Set)?;
                    tx.free(number + 2, How::Set)
                });
            }
        });
    },
    ..PLAIN
};

#[test]
fn large_objects_of_two_threads_are_whole() {
    TWO_THREADS.survives_on_lines();
}
