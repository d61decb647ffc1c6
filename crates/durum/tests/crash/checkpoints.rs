//! Checkpoints at any moment: the step that the checkpointer's thread makes on a file system is made beside other
//! threads' commits and in open transactions.

use std::thread;

use durum::Store;
use durum_persist::{Site, inject, record};

use crate::harness::{Campaign, Helper, How, PLAIN, Running, Workload, World};

const COMMIT_FENCE: Site = Site("shadow.commit: fence after the record");

fn on_shadow(mut campaign: Campaign) -> Campaign {
    campaign.engine = durum::Engine::Shadow;
    campaign.plan(|plan| plan.points_max = Some(120))
}

fn step(store: &Store) {
    store.step_checkpoint().expect("brought home");
}

/// A commit has written its record and not yet made it durable, while what came before it goes home; then nothing of it
/// may be there. On a file system only: on mapped memory a commit makes its step itself, and holds the checkpoint until
/// the fence that is for both.
pub const BESIDE_A_COMMIT: Workload = Workload {
    name: "a checkpoint while another thread commits",
    needs: on_shadow,
    before: |world| {
        world.lane().commits(|tx| tx.alloc(0, 5000, 1, How::Set));
    },
    run: |world| {
        for round in 0..3u64 {
            world.lane().commits(|tx| tx.change(0, 40, 10 + round));
            world.lane().buffers(|tx| tx.change(60, 40, 20 + round));
            let held = inject::hold(COMMIT_FENCE);
            let World { lanes, store, .. } = world;
            let lane = &mut lanes[0];
            thread::scope(|scope| {
                let committer = scope.spawn(move || {
                    record::join_thread();
                    inject::volunteer();
                    lane.commits(|tx| {
                        tx.change(20, 60, 30 + round)?;
                        tx.refill(0, 40 + round)
                    });
                });
                held.wait();
                step(store);
                drop(held);
                committer.join().expect("no panic");
            });
        }
        step(&world.store);
    },
};

#[test]
fn a_checkpoint_beside_a_commit_survives_on_a_file_system() {
    BESIDE_A_COMMIT.survives_on_sectors();
}

/// Between any two steps of a transaction, with records of another thread in flight.
pub const INSIDE: Workload = Workload {
    name: "checkpoints in a transaction",
    needs: on_shadow,
    run: |world| {
        let other = Helper::new();
        for round in 0..2u64 {
            other.run(world, move |lane| {
                lane.buffers(|tx| tx.change(300, 40, 1 + round));
                lane.commits(|tx| tx.change(200, 40, 2 + round));
            });
            let World { lanes, store, .. } = world;
            let work = |tx: &mut Running<'_>| {
                tx.change(190, 20, 3 + round)?;
                step(store);
                tx.alloc(round as usize, 3000, 4 + round, How::Set)?;
                step(store);
                tx.set(300, 8, 5 + round)
            };
            lanes[0].aborts(work);
            lanes[0].commits(work);
            step(store);
        }
    },
    ..PLAIN
};

#[test]
fn checkpoints_in_a_transaction_survive_on_mapped_memory() {
    INSIDE.survives_on_lines();
}

#[test]
fn checkpoints_in_a_transaction_survive_on_a_file_system() {
    INSIDE.survives_on_sectors();
}
