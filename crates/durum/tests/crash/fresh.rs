//! Large fresh objects of the Shadow engine, which go home with the commit instead of into the log.
//!
//! The crashes: while an object is on its way home and its allocation is not durable; while the log still has records
//! about what was in the same place before; when the record is durable and home is not any more what the record says.

use durum::{Engine, PoolOptions};
use durum_persist::Site;

use crate::buffered::is_noticed;
use crate::harness::{BYTES, Helper, How, Medium, PLAIN, Workload, World, in_turns};
use crate::wrap::little_log;

const WRITE_BACK: Site = Site("shadow.fresh: write back large fresh objects at home");
const FREED: Site = Site("shadow.fresh: wait for records about what was there before");
const REACHED: Site = Site("shadow.fresh: wait for records that reach beyond their objects");
const WORN: Site =
    Site("slab: small objects go home with their commit where nobody had one before");
const ANY_PLACE: Site = Site("shadow.fresh: wait for records that may be about any place");

/// Records by another thread, until those before are home and will never be replayed.
fn others_come_home(world: &mut World, helper: &Helper, tag: u64) {
    helper.run(world, move |lane| {
        for value in 0..4 {
            lane.commits(|tx| tx.change(BYTES, 150_000, tag + value));
        }
    });
}

/// The same place again and again: with records that may still be replayed, and without.
pub const SAME_PLACE: Workload = Workload {
    name: "large objects in the same place",
    needs: |campaign| little_log(campaign).plan(|plan| plan.points_max = Some(150)),
    run: |world| {
        for round in 0..3 {
            for size in [3000, 6000] {
                // The first goes home, or into the log where that has the one before; the next is in the log, the third
                // must not be overwritten by it.
                for value in 0..3 {
                    let value = 10 + 10 * round + value + size as u64 / 1000;
                    world
                        .lane()
                        .commits(|tx| tx.alloc(0, size, value, How::Set));
                    world
                        .lane()
                        .aborts(|tx| tx.alloc(1, size, value + 100, How::Set));
                    // A range that is logged as a whole is waited for whether it is freed or not.
                    world.lane().commits(|tx| match size {
                        3000 => tx.refill_in_pieces(0, value + 1000),
                        _ => tx.refill(0, value + 1000),
                    });
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

/// A record is the last of its log, and what went home with it is changed there by another thread's records, or by
/// itself.
pub const CHANGED_SINCE: Workload = Workload {
    name: "large objects that change after they went home",
    needs: |campaign| little_log(campaign).plan(|plan| plan.points_max = Some(200)),
    run: |world| {
        let helper = Helper::new();
        for round in 0..2 {
            let tag = 100 * round;
            world.lane().commits(|tx| {
                tx.alloc(0, 3000, tag, How::Set)?;
                tx.alloc(1, 9000, tag + 1, How::Set)
            });
            helper.run(world, move |lane| {
                lane.commits(|tx| tx.refill(1, tag + 2));
            });
            others_come_home(world, &helper, tag + 10);
            world.lane().commits(|tx| {
                tx.alloc_and_set_part(2, 5000, tag + 3)?;
                tx.alloc_and_set(3, 2000, tag + 4)
            });
            others_come_home(world, &helper, tag + 20);
            world.lane().commits(|tx| tx.refill(0, tag + 5));
            world
                .lane()
                .commits(|tx| (0..4).try_for_each(|slot| tx.free(slot, How::Set)));
            others_come_home(world, &helper, tag + 30);
        }
    },
    ..PLAIN
};

#[test]
fn what_changes_large_objects_later_does_not_make_them_disappear() {
    CHANGED_SINCE.survives_on_lines();
}

/// Objects whose contents are known when they are allocated, in a puddle that is made for such: their pages are home
/// before the commit, and never private. Then small ones that fill slabs of their own transaction.
pub const FILLED: Workload = Workload {
    name: "objects that are filled when they are allocated",
    needs: |campaign| little_log(campaign).plan(|plan| plan.points_max = Some(150)),
    run: |world| {
        let helper = Helper::new();
        // The first puddle is full then.
        world
            .lane()
            .commits(|tx| tx.alloc(3, 1_900_000, 1, How::Set));
        for round in 0..2 {
            let tag = 10 + 100 * round;
            world.lane().commits(|tx| tx.alloc_filled(0, 40_000, tag));
            world
                .lane()
                .aborts(|tx| tx.alloc_filled(1, 50_000, tag + 1));
            world.lane().commits(|tx| {
                tx.alloc_filled(1, 70_000, tag + 2)?;
                tx.alloc_filled(2, 35_000, tag + 3)
            });
            helper.run(world, move |lane| {
                lane.commits(|tx| tx.refill(1, tag + 4));
            });
            world.lane().commits(|tx| tx.free(0, How::Set));
            // In its place, about which there are records; then again, when there are none.
            world
                .lane()
                .commits(|tx| tx.alloc_filled(0, 40_000, tag + 5));
            world.lane().commits(|tx| tx.free(0, How::Set));
            others_come_home(world, &helper, tag + 10);
            world
                .lane()
                .commits(|tx| tx.alloc_filled(0, 40_000, tag + 6));
            others_come_home(world, &helper, tag + 20);
            world
                .lane()
                .commits(|tx| (0..3).try_for_each(|slot| tx.free(slot, How::Set)));
            let sizes = [200, 256, 72];
            for size in sizes {
                world
                    .lane()
                    .commits(|tx| (0..40).try_for_each(|at| tx.alloc_only(size, tag + 30 + at)));
            }
            helper.run(world, move |lane| {
                lane.commits(|tx| tx.change(0, 100, tag + 80));
            });
            world
                .lane()
                .commits(|tx| (0..40 * sizes.len()).try_for_each(|_| tx.free_only()));
        }
    },
    ..PLAIN
};

#[test]
fn objects_that_are_filled_at_once_are_whole() {
    FILLED.survives_on_lines();
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

/// Small objects with lines of their own. They go home with their commit, too, where nobody has had one before; into
/// the log where there may be records about one that was freed.
pub const SMALL: Workload = Workload {
    name: "small objects with lines of their own",
    needs: |campaign| little_log(campaign).plan(|plan| plan.points_max = Some(200)),
    run: |world| {
        let helper = Helper::new();
        for (round, size) in [64, 192, 128].into_iter().enumerate() {
            let tag = 100 * round as u64;
            world.lane().commits(|tx| {
                tx.alloc(0, size, tag + 1, How::Add)?;
                tx.alloc(1, size, tag + 2, How::Add)?;
                tx.change(0, 100, tag)
            });
            world
                .lane()
                .commits(|tx| tx.alloc(2, size, tag + 3, How::Add));
            helper.run(world, move |lane| {
                lane.commits(|tx| tx.refill(1, tag + 4));
            });
            world.lane().commits(|tx| tx.refill(0, tag + 5));
            world
                .lane()
                .aborts(|tx| tx.alloc(3, size, tag + 6, How::Add));
            // In the place of one about which there are records; then again, when there are none.
            for value in [7, 8] {
                world.lane().commits(|tx| tx.free(0, How::Add));
                world
                    .lane()
                    .commits(|tx| tx.alloc(0, size, tag + value, How::Add));
                others_come_home(world, &helper, tag + 10 * value);
            }
            world.lane().commits(|tx| {
                tx.alloc(3, size, tag + 9, How::Add)?;
                tx.refill(3, tag + 10)
            });
            world
                .lane()
                .commits(|tx| (0..4).try_for_each(|slot| tx.free(slot, How::Add)));
        }
    },
    ..PLAIN
};

#[test]
fn small_objects_with_lines_of_their_own_are_whole() {
    SMALL.survives_on_lines();
}

/// A program announces more than its object, and the next one takes the place behind it.
pub const BEYOND: Workload = Workload {
    name: "objects behind others that were announced with their place",
    needs: |campaign| little_log(campaign).plan(|plan| plan.points_max = Some(150)),
    run: |world| {
        let helper = Helper::new();
        for (round, size) in [64, 3000].into_iter().enumerate() {
            let tag = 100 * round as u64;
            world
                .lane()
                .commits(|tx| tx.alloc(0, size, tag + 1, How::Add));
            others_come_home(world, &helper, tag + 10);
            world.lane().commits(|tx| {
                tx.reach_beyond(0, 8 * size)?;
                tx.refill(0, tag + 2)
            });
            world
                .lane()
                .commits(|tx| tx.alloc(1, size, tag + 3, How::Add));
            others_come_home(world, &helper, tag + 20);
            world
                .lane()
                .commits(|tx| (0..2).try_for_each(|slot| tx.free(slot, How::Add)));
            others_come_home(world, &helper, tag + 30);
        }
    },
    ..PLAIN
};

#[test]
fn objects_behind_others_that_were_announced_with_their_place_are_whole() {
    BEYOND.survives_on_lines();
}

const OTHER_POOL: &str = "other";

/// The last record, too, is home: a pool closes.
fn all_comes_home(world: &mut World) {
    let options = PoolOptions::new().engine(Engine::Shadow);
    drop(world.store.open_pool(OTHER_POOL, options).expect("opens"));
}

fn with_another_pool(world: &mut World) {
    let options = PoolOptions::new().engine(Engine::Shadow);
    let other = world.store.create_pool(OTHER_POOL, options);
    drop(other.expect("is made"));
}

/// What buffered transactions changed and freed; the place is taken while that waits, or when it has been written.
fn take_the_place(world: &mut World, is_written: bool) {
    let helper = Helper::new();
    for round in 0..2 {
        let tag = 100 * round;
        world
            .lane()
            .commits(|tx| tx.alloc(0, 5000, tag + 1, How::Set));
        // From here on only what waits is about the object.
        all_comes_home(world);
        world.lane().buffers(|tx| tx.refill(0, tag + 2));
        world.lane().buffers(|tx| tx.free(0, How::Set));
        if is_written {
            world.lane().syncs();
        }
        world
            .lane()
            .commits(|tx| tx.alloc(0, 5000, tag + 3, How::Set));
        // This one waits, so that it cannot be home.
        world
            .lane()
            .buffers(|tx| tx.alloc(1, 9000, tag + 4, How::Add));
        others_come_home(world, &helper, tag + 20);
        world.lane().commits(|tx| {
            tx.free(0, How::Set)?;
            tx.free(1, How::Set)
        });
    }
}

/// What a buffered transaction changed and freed gets its stamp after others may take the place.
pub const BUFFERED: Workload = Workload {
    name: "large objects where buffered transactions freed others",
    needs: |campaign| little_log(campaign).plan(|plan| plan.points_max = Some(150)),
    before: with_another_pool,
    run: |world| take_the_place(world, false),
};

pub const WRITTEN: Workload = Workload {
    name: "large objects where others were freed, and that written",
    run: |world| take_the_place(world, true),
    ..BUFFERED
};

#[test]
fn large_objects_in_the_place_of_buffered_ones_are_whole() {
    BUFFERED.survives_on_lines();
    WRITTEN.survives_on_lines();
}

/// A section logs what aborted transactions left in free memory beside what it changes; then the memory is taken.
pub const SECTIONS: Workload = Workload {
    name: "large objects where sections logged free memory",
    needs: |campaign| little_log(campaign).plan(|plan| plan.points_max = Some(200)),
    before: with_another_pool,
    run: |world| {
        let helper = Helper::new();
        // In one page or two, and nothing is free between them.
        let size = 1000;
        world
            .lane()
            .commits(|tx| (0..4).try_for_each(|slot| tx.alloc(slot, size, 1, How::Set)));
        for round in 0..2 {
            let tag = 100 * round;
            world.lane().commits(|tx| tx.free(1, How::Set));
            world
                .lane()
                .aborts(|tx| tx.alloc(1, size, tag + 2, How::Set));
            all_comes_home(world);
            world.lane().section_commits(|tx| {
                tx.refill(0, tag + 3)?;
                tx.refill(2, tag + 3)
            });
            world
                .lane()
                .commits(|tx| tx.alloc(1, size, tag + 4, How::Set));
            others_come_home(world, &helper, tag + 20);
            // Its own objects go home, too.
            world.lane().section_commits(|tx| {
                tx.refill(0, tag + 5)?;
                tx.alloc(4, 6000, tag + 30, How::Set)
            });
            world.lane().section_aborts(|tx| {
                tx.refill(1, tag + 6)?;
                tx.alloc(5, 6000, tag + 7, How::Set)
            });
            world.lane().commits(|tx| tx.free(4, How::Set));
        }
    },
};

#[test]
fn large_objects_where_sections_logged_free_memory_are_whole() {
    SECTIONS.survives_on_lines();
}

/// `persist` of a part of an object leaves no record that would come home over it: the part is durable with its
/// transaction.
pub const PERSISTED: Workload = Workload {
    name: "large objects that were persisted before their commit",
    needs: |campaign| little_log(campaign).plan(|plan| plan.points_max = Some(150)),
    run: |world| {
        let helper = Helper::new();
        for round in 0..2 {
            let tag = 100 * round;
            world
                .lane()
                .commits(|tx| tx.alloc_after_persist(0, 5000, tag + 1));
            others_come_home(world, &helper, tag + 10);
            world.lane().commits(|tx| tx.free(0, How::Set));
            others_come_home(world, &helper, tag + 20);
        }
    },
    ..PLAIN
};

#[test]
fn large_objects_that_were_persisted_before_their_commit_are_whole() {
    PERSISTED.survives_on_lines();
}

/// Each takes a minute: `ci/campaigns.sh` runs them.
mod canaries {
    use super::*;

    #[test]
    fn no_step_that_lets_objects_go_home_is_redundant() {
        for (step, runs) in [
            (WRITE_BACK, &[CHANGED_SINCE, TWO_THREADS, FILLED, SMALL][..]),
            (WORN, &[SMALL]),
            (FREED, &[SAME_PLACE]),
            (REACHED, &[BEYOND]),
            (ANY_PLACE, &[BUFFERED, WRITTEN, SECTIONS]),
        ] {
            for run in runs {
                assert!(
                    is_noticed(Medium::Lines, step, run),
                    "nobody notices that {:?} is left out of {:?}",
                    step.0,
                    run.name
                );
            }
        }
    }
}
