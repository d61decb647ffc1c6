//! Transactions that have committed and whose fence somebody else waits for.
//!
//! After a crash at most the last one of a thread is missing, and nothing is there that was built on it.

use durum::Engine;
use durum_persist::Site;

use crate::buffered::is_noticed;
use crate::harness::{Campaign, Helper, How, Medium, PLAIN, Workload};

const LAND: Site = Site("shadow.land: make durable what is in flight before it is applied");
const LAND_WRITE: Site =
    Site("shadow.land: write back again what another thread has left in flight");
const LAND_FENCE: Site = Site("shadow.land: fence after what another thread has left in flight");
const FLIGHT_FENCE: Site = Site("shadow.commit: fence after a record that was left in flight");

fn on_shadow(mut campaign: Campaign) -> Campaign {
    campaign.engine = Engine::Shadow;
    campaign.plan(|plan| plan.points_max = Some(300))
}

/// One after the other, with all that a thread does in between.
pub const ONE_BY_ONE: Workload = Workload {
    name: "a thread has one transaction in flight after the other",
    needs: on_shadow,
    run: |world| {
        let lane = world.lane();
        for round in 0..3u64 {
            let (tag, slot) = (10 * (round + 1), round as usize);
            lane.flies(|tx| tx.change(0, 16, tag));
            let second = lane.flies(|tx| tx.change(8, 16, tag + 1));
            lane.waits(second);
            // Waited for already, and waited for by the next one.
            lane.pool
                .land(second.saturating_sub(1))
                .expect("nothing to wait for");
            lane.flies(|tx| tx.alloc(slot, 40, tag, How::Add));
            lane.commits(|tx| tx.change(300, 8, tag + 2));
            lane.flies(|tx| tx.change(0, 24, tag + 3));
            lane.aborts(|tx| tx.change(0, 24, tag + 4));
            // Too large, and so durable; then in place of what was just freed.
            let large = lane.flies(|tx| tx.change(200, 1500, tag + 5));
            assert_eq!(large, 0, "it is durable");
            lane.has_landed();
            lane.flies(|tx| tx.free(slot, How::Add));
            // It would go home past the cache, with a small record.
            let large = lane.flies(|tx| tx.alloc(slot + 3, 3000, tag + 5, How::Set));
            assert_eq!(large, 0, "it is durable");
            lane.has_landed();
            lane.flies(|tx| tx.alloc(slot, 40, tag + 6, How::Set));
            lane.persists(700, b"stored without any transaction");
            lane.flies(|tx| tx.change(0, 8, tag + 7));
            lane.buffers(|tx| tx.change(16, 8, tag + 8));
            lane.syncs();
        }
    },
    ..PLAIN
};

/// Somebody else needs it durable: who brings it home, a thread that comes and builds on it, `sync`.
pub const LANDED_BY_OTHERS: Workload = Workload {
    name: "others land what a thread has in flight",
    needs: on_shadow,
    run: |world| {
        for round in 0..3u64 {
            let tag = 10 * (round + 1);
            // Small ones whose home lines are written back with later ones.
            for at in 0..6 {
                world
                    .lane()
                    .flies(|tx| tx.change(64 * at, 64, tag + at as u64));
            }
            world.store.step_checkpoint().expect("brought home");
            world.lane().has_landed();
            // What goes home past the cache, at once or when it is applied, makes a commit a whole one.
            let slot = round as usize;
            world
                .lane()
                .flies(|tx| tx.alloc(slot, 3000, tag + 6, How::Set));
            world.lane().has_landed();
            world.lane().commits(|tx| tx.change(200, 600, tag + 5));
            let beside = world.lane().flies(|tx| tx.change(400, 300, tag + 5));
            assert_eq!(beside, 0, "what came before is applied, past the cache");
            world.lane().has_landed();
            world.lane().flies(|tx| tx.change(0, 16, tag + 6));
            let other = Helper::new();
            other.run(world, move |lane| {
                lane.commits(|tx| tx.change(8, 16, tag + 7));
            });
            world.lane().has_landed();
            // Beside another thread it is durable at once.
            world.lane().flies(|tx| tx.change(0, 16, tag + 8));
            world.lane().has_landed();
            drop(other);
            world.lane().flies(|tx| tx.change(32, 16, tag + 9));
            world.lane().syncs();
        }
    },
    ..PLAIN
};

#[test]
fn a_thread_with_one_in_flight_survives_on_mapped_memory() {
    ONE_BY_ONE.survives_on_lines();
}

#[test]
fn a_thread_with_one_in_flight_survives_on_a_file_system() {
    ONE_BY_ONE.survives_on_sectors();
}

#[test]
fn what_others_land_survives_on_mapped_memory() {
    LANDED_BY_OTHERS.survives_on_lines();
}

/// Beside the others. `make test` leaves them to ci/campaigns.sh.
mod canaries {
    use super::*;

    #[test]
    fn no_step_of_landing_is_redundant() {
        let steps = [
            (FLIGHT_FENCE, &ONE_BY_ONE),
            (LAND, &LANDED_BY_OTHERS),
            (LAND_WRITE, &LANDED_BY_OTHERS),
            (LAND_FENCE, &LANDED_BY_OTHERS),
        ];
        for (step, run) in steps {
            assert!(
                is_noticed(Medium::Lines, step, run),
                "nobody notices that {:?} is left out of {:?}",
                step.0,
                run.name
            );
        }
    }
}
