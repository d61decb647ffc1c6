//! A disk that fails a write or a sync in the middle of a commit, and a crash, then or later.
//!
//! What was dirty at a failed sync may never reach the media, though a later sync succeeds. So nobody knows whether the
//! transaction happened: the store refuses to go on, does not touch its logs any more, and the next opener decides, for
//! the whole of it.

use durum::{Engine, Error};
use durum_persist::inject::{self, Operation};

use crate::harness::{Campaign, How, World};
use crate::support::engine;

/// What fails is counted from the begin of the second transaction. False if that was too far away to be met.
fn run(world: &mut World, operation: Operation, successes: u64) -> bool {
    let path = world.store.info().path.clone();
    let lane = world.lane();
    lane.commits(|tx| {
        tx.change(0, 700, 1)?;
        tx.alloc(0, 40, 2, How::Set)
    });
    let fault = inject::fail_after(operation, successes, &path);
    let ended = {
        let mut running = lane.begin();
        running.change(100, 900, 3).expect("announced");
        running.set(2000, 24, 4).expect("set");
        running.alloc(1, 40, 5, How::Set).expect("room");
        running.free(0, How::Set).expect("freed");
        running.commit_or_not()
    };
    drop(fault);
    match ended {
        Ok(step) => {
            lane.took(step);
            lane.commits(|tx| tx.change(0, 64, 6));
            false
        }
        Err((step, error)) => {
            assert!(
                matches!(error, Error::Poisoned { .. }),
                "the error says that the outcome is unknown: {error}"
            );
            // May have happened, may not have, and stays so.
            lane.steps.push(step);
            let refused = unsafe { lane.pool.begin() }.err();
            assert!(
                matches!(refused, Some(Error::Poisoned { .. })),
                "{refused:?}"
            );
            true
        }
    }
}

fn each_failure(operation: Operation) {
    for successes in 0.. {
        let mut failed = false;
        let mut campaign = Campaign::sectors("a failing disk").plan(|plan| {
            plan.points_max = Some(60);
            plan.single_units_max = 4;
            plan.nested_one_in = 60;
            plan.nested_points_max = Some(6);
        });
        campaign.record_close = true;
        campaign
            .record(|world| failed = run(world, operation, successes))
            .survives();
        if !failed {
            // On Hybrid the log, the home places and the retirement; on Twin main and back; on Shadow the record.
            let steps = match engine() {
                Engine::Hybrid => 3,
                Engine::Twin => 2,
                _ => 1,
            };
            assert!(successes >= steps, "each of {steps} steps can fail");
            return;
        }
        println!("{operation:?} failed after {successes} more");
    }
}

#[test]
fn a_failed_sync_leaves_the_transaction_whole_or_absent() {
    each_failure(Operation::Sync);
}

#[test]
fn a_failed_write_leaves_the_transaction_whole_or_absent() {
    each_failure(Operation::Write);
}
