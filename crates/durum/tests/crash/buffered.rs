//! Buffered transactions: a crash may take the last ones away, and nothing that came before a durable one.
//!
//! The crashes: while transactions wait that others have built on; while a durable commit, or another thread, writes
//! them; between two who write; before a puddle goes that they name. Steps of all threads are in one order, that of
//! their commits. After each crash the pool has to be what it was after some step, not before the last one that made
//! everything durable.

use std::thread;
use std::time::{Duration, Instant};

use durum::Engine;
use durum_persist::simulate::Failure;
use durum_persist::{Site, inject, record};

use crate::harness::{BYTES, Campaign, Helper, How, Medium, PLAIN, Workload, World};

const TAKE: Site = Site("shadow.buffered: a durable commit takes the queue");
const WAIT: Site = Site("shadow.buffered: wait for the queue that another thread writes");
const DRAIN: Site = Site("shadow.buffered: write the queue before puddles go");
const FENCE: Site = Site("shadow.commit: fence after the record");

fn on_shadow(mut campaign: Campaign) -> Campaign {
    campaign.engine = Engine::Shadow;
    campaign
}

/// Every kind of change, each followed by one that builds on it.
pub const MIXED: Workload = Workload {
    name: "buffered and durable transactions",
    run: |world| {
        let lane = world.lane();
        lane.buffers(|tx| tx.change(0, 40, 1));
        lane.buffers(|tx| tx.set(20, 40, 2));
        lane.buffers(|tx| tx.alloc(0, 40, 3, How::Set));
        lane.commits(|tx| tx.change(300, 8, 4));
        lane.buffers(|tx| tx.change(10, 13, 5));
        lane.aborts(|tx| tx.change(10, 60, 6));
        lane.panics(|tx| tx.free(0, How::Set));
        lane.buffers(|tx| tx.refill(0, 7));
        // The same again and again, which waits once.
        for tag in 8..11 {
            lane.buffers(|tx| {
                tx.change(10, 13, tag)?;
                tx.change(64, 8, tag)
            });
        }
        lane.syncs();
        lane.syncs();
        // What a durable transaction leaves as it is is durable, too.
        lane.buffers(|tx| tx.change(500, 8, 11));
        lane.commits(|tx| tx.change(500, 8, 11));
        // A level that is durable makes the whole of it so.
        lane.buffers(|tx| tx.change(500, 8, 12));
        lane.commits(|tx| {
            let pool = tx.pool;
            pool.transaction_with(durum::Durability::Buffered, |_| tx.change(508, 8, 13))
        });
        lane.buffers(|tx| tx.change(516, 8, 14));
        lane.persists(600, &[7; 30]);
        lane.buffers(|tx| tx.change(0, 1, 15));
    },
    ..PLAIN
};

#[test]
fn buffered_transactions_go_in_order_on_mapped_memory() {
    MIXED.survives_on_lines();
}

#[test]
fn buffered_transactions_go_in_order_on_a_file_system() {
    MIXED.survives_on_sectors();
}

/// Three logs and that of the queue.
pub const THREADS: Workload = Workload {
    name: "buffered transactions of three threads",
    needs: |campaign| campaign.plan(|plan| plan.points_max = Some(300)),
    run: |world| {
        let others = [Helper::new(), Helper::new()];
        for round in 0..3u64 {
            let tag = 10 * (round + 1);
            world.lane().buffers(|tx| tx.change(0, 30, tag));
            others[0].run(world, move |lane| {
                lane.buffers(|tx| tx.change(20, 30, tag + 1))
            });
            others[1].run(world, move |lane| {
                lane.commits(|tx| tx.change(40, 30, tag + 2))
            });
            world.lane().buffers(|tx| tx.change(0, 64, tag + 3));
            others[1].run(world, move |lane| {
                lane.buffers(|tx| tx.alloc(round as usize, 40, tag + 4, How::Set))
            });
            others[0].run(world, |lane| lane.syncs());
            world.lane().commits(|tx| tx.change(10, 8, tag + 5));
            others[0].run(world, move |lane| {
                lane.buffers(|tx| tx.change(30, 30, tag + 6))
            });
        }
    },
    ..PLAIN
};

#[test]
fn buffered_transactions_of_several_threads_go_in_order_on_mapped_memory() {
    THREADS.survives_on_lines();
}

#[test]
fn buffered_transactions_of_several_threads_go_in_order_on_a_file_system() {
    THREADS.survives_on_sectors();
}

/// A place that a buffered transaction freed is taken at once, by buffered and durable ones, in this thread and in
/// others.
pub const REUSE: Workload = Workload {
    name: "places that buffered transactions freed",
    needs: |campaign| campaign.plan(|plan| plan.points_max = Some(300)),
    before: |world| {
        for (slot, size) in [40, 40, 5000, 5000].into_iter().enumerate() {
            world
                .lane()
                .commits(|tx| tx.alloc(slot, size, 1 + slot as u64, How::Set));
        }
    },
    run: |world| {
        let other = Helper::new();
        for round in 0..2u64 {
            let tag = 10 * (round + 1);
            for (slot, size) in [(0, 40), (2, 5000)] {
                world.lane().buffers(|tx| tx.free(slot, How::Set));
                other.run(world, move |lane| {
                    lane.buffers(|tx| tx.alloc(slot, size, tag + slot as u64, How::Set))
                });
                world.lane().buffers(|tx| tx.free(slot + 1, How::Add));
                world
                    .lane()
                    .commits(|tx| tx.alloc(slot + 1, size, tag + 5 + slot as u64, How::Add));
            }
        }
    },
};

#[test]
fn freed_places_are_used_again_on_mapped_memory() {
    REUSE.survives_on_lines();
}

#[test]
fn freed_places_are_used_again_on_a_file_system() {
    REUSE.survives_on_sectors();
}

/// More than the queue holds, in little log: a commit writes it, in parts, and the log goes round.
pub const MUCH: Workload = Workload {
    name: "more than waits",
    needs: |mut campaign| {
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
    },
    run: |world| {
        let other = Helper::new();
        for round in 0..40u64 {
            let at = BYTES + round as usize * 17 % 11 * 70_000;
            let change = move |lane: &mut crate::harness::Lane| {
                lane.buffers(|tx| {
                    tx.change(at, 55_000, 10 + round)?;
                    tx.change(round as usize % 7 * 8, 40, 10 + round)
                })
            };
            match round % 3 {
                0 => other.run(world, change),
                _ => change(world.lane()),
            }
            if round % 13 == 12 {
                world.lane().commits(|tx| tx.change(0, 300, 1000 + round));
            }
        }
    },
    ..PLAIN
};

#[test]
fn more_than_the_queue_holds_goes_in_order_on_mapped_memory() {
    MUCH.survives_on_lines();
}

#[test]
fn more_than_the_queue_holds_goes_in_order_on_a_file_system() {
    MUCH.survives_on_sectors();
}

/// Objects of 1 MiB, so that puddles come and go.
const HALF: usize = 1_100_000;

/// The last object of a puddle goes by a buffered transaction, and then the puddle; what waits when the store closes is
/// kept.
pub const SHRINKING: Workload = Workload {
    name: "a puddle is given back after buffered transactions",
    needs: |mut campaign| {
        campaign.record_close = true;
        campaign.used_one_in = 20;
        campaign.plan(|plan| {
            plan.points_max = Some(80);
            plan.single_units_max = 2;
            plan.random_images = 1;
            plan.nested_one_in = 100;
            plan.nested_points_max = Some(6);
        })
    },
    before: |world| {
        for slot in 0..3 {
            world
                .lane()
                .commits(|tx| tx.alloc(slot, HALF, 1 + slot as u64, How::Set));
        }
    },
    run: |world| {
        for slot in 0..3 {
            world.lane().buffers(|tx| tx.free(slot, How::Set));
        }
        world.lane().buffers(|tx| tx.change(0, 8, 10));
    },
};

#[test]
fn a_puddle_goes_after_buffered_transactions_on_mapped_memory() {
    SHRINKING.survives_on_lines();
}

#[test]
fn a_puddle_goes_after_buffered_transactions_on_a_file_system() {
    SHRINKING.survives_on_sectors();
}

/// While the queue is being written, others commit what builds on it. The writer is held up before its fence, until the
/// others had time to commit before it.
fn while_it_is_written(world: &mut World, other: fn(&mut crate::harness::Lane)) {
    world.lane().buffers(|tx| tx.change(0, 40, 1));
    let held = inject::hold(FENCE);
    let pool = world.pool.clone();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            record::join_thread();
            inject::volunteer();
            pool.sync().expect("written")
        });
        held.wait();
        // Who buffers need not wait.
        world.lane().buffers(|tx| tx.change(40, 40, 2));
        let lane = world.lane();
        let committer = scope.spawn(move || {
            record::join_thread();
            other(lane)
        });
        let end = Instant::now() + Duration::from_millis(100);
        while !committer.is_finished() && Instant::now() < end {
            thread::yield_now();
        }
        drop(held);
        writer.join().expect("no panic");
        committer.join().expect("no panic");
    });
}

/// The flusher writes, another thread commits.
pub const BEING_WRITTEN: Workload = Workload {
    name: "a durable commit while the queue is written",
    needs: on_shadow,
    run: |world| {
        while_it_is_written(world, |lane| lane.commits(|tx| tx.change(60, 40, 3)));
        world.lane().buffers(|tx| tx.change(0, 100, 4));
    },
    ..PLAIN
};

/// The flusher writes, and so does another one.
pub const WRITTEN_TWICE: Workload = Workload {
    name: "two write the queue",
    needs: on_shadow,
    run: |world| while_it_is_written(world, |lane| lane.syncs()),
    ..PLAIN
};

#[test]
fn who_builds_on_what_is_being_written_waits_on_mapped_memory() {
    BEING_WRITTEN.survives_on_lines();
    WRITTEN_TWICE.survives_on_lines();
}

#[test]
fn who_builds_on_what_is_being_written_waits_on_a_file_system() {
    BEING_WRITTEN.survives_on_sectors();
    WRITTEN_TWICE.survives_on_sectors();
}

/// The flusher's work without its thread: nothing before half of the window, everything then.
#[test]
fn the_flusher_writes_what_has_waited_for_half_of_the_window() {
    for medium in [Medium::Lines, Medium::Sectors] {
        let run = Workload {
            name: "steps of the flusher",
            needs: on_shadow,
            run: |world| {
                let hour = Duration::from_secs(3600);
                for round in 0..3 {
                    let now = Instant::now();
                    let due = |at| world.pool.flush_if_due(at).expect("written");
                    assert_eq!(due(now + hour), None, "nothing waits");
                    world.lane().buffers(|tx| tx.change(0, 40, 1 + round));
                    world.lane().buffers(|tx| tx.change(30, 40, 1 + round));
                    let due = |at| world.pool.flush_if_due(at).expect("written");
                    let next = due(now + hour / 4).expect("something waits");
                    assert!(next > hour / 5 && next <= hour / 2, "{next:?}");
                    let lane = world.lane();
                    let written = lane.pool.flush_if_due(now + hour).expect("written");
                    assert_eq!(written, Some(hour / 2));
                    // What is durable now is acknowledged so: a sync finds nothing to do.
                    let before = durum::thread_counters();
                    lane.syncs();
                    let spent = durum::thread_counters() - before;
                    assert_eq!((spent.fences, spent.syncs), (0, 0));
                }
            },
            ..PLAIN
        };
        run.record(medium, None).survives();
    }
}

/// Whether a crash is noticed when a step is left out.
pub fn is_noticed(medium: Medium, step: Site, run: &Workload) -> bool {
    is_noticed_among(None, medium, step, run)
}

/// The same for a step of which so many crashes are enough.
pub fn is_noticed_among(points: Option<usize>, medium: Medium, step: Site, run: &Workload) -> bool {
    let mut campaign = on_shadow(run.campaign(medium));
    campaign.skip = Some(step);
    let mut recording = campaign.record_after(run.before, run.run);
    // Looked for until it is found.
    recording.plan.points_max = points;
    recording.plan.nested_one_in = 0;
    recording.plan.keep_failed = false;
    match recording.explore() {
        Ok(_) => false,
        Err(Failure { message, .. }) => {
            let line = message.lines().next().unwrap_or_default();
            println!("{medium:?} without {:?}: {}: {line}", step.0, run.name);
            true
        }
    }
}

/// Beside the others. `make test` leaves them to ci/campaigns.sh.
mod canaries {
    use super::*;

    /// On a file system the group's order does the waiting: only its leader writes. Where two write the queue's own
    /// log, that log's lock does.
    #[test]
    fn no_step_that_keeps_the_order_is_redundant() {
        for (medium, step, runs) in [
            (Medium::Lines, TAKE, &[MIXED, THREADS, REUSE][..]),
            (Medium::Lines, WAIT, &[BEING_WRITTEN]),
            (Medium::Lines, DRAIN, &[SHRINKING]),
            (Medium::Sectors, TAKE, &[MIXED, THREADS, REUSE]),
            (Medium::Sectors, DRAIN, &[SHRINKING]),
        ] {
            for run in runs {
                assert!(
                    is_noticed(medium, step, run),
                    "{medium:?}: nobody notices that {:?} is left out of {:?}",
                    step.0,
                    run.name
                );
            }
        }
    }
}
