//! Pages that large copies fill, and that wait with going home on mapped memory: replaced, changed in part, and left
//! behind by a crash.

use durum_persist::Site;

use crate::buffered::is_noticed_among;
use crate::harness::{BYTES, Campaign, Medium, PLAIN, Workload, World};
use crate::wrap::little_log;

fn short(campaign: Campaign) -> Campaign {
    little_log(campaign).plan(|plan| plan.points_max = Some(150))
}

/// What is home after this is not replayed any more.
fn go_round_the_log(world: &mut World) {
    for round in 0..10 {
        let from = BYTES + 300_000 + round as usize % 2 * 300_000;
        world
            .lane()
            .commits(|tx| tx.change(from, 230_000, 150 + round));
    }
}

/// Pages of the batch that fills and of the one that leaves: a later copy fills them again, or only some, or a part of
/// one at its end; a word of them changes.
pub const WAITING: Workload = Workload {
    name: "pages that wait are replaced and changed",
    needs: short,
    run: |world| {
        for round in 0..9u64 {
            let from = BYTES + 1_000 + round as usize % 3 * 20_000;
            // Waits in the queue, which the next one takes along.
            world.lane().buffers(|tx| tx.change(200, 40, 5 + round));
            world.lane().commits(|tx| {
                tx.change(from, 190_000, 10 + round)?;
                tx.change(round as usize * 10, 40, 50 + round)
            });
            // Inside, where nothing else was changed, and where a copy ends.
            world.lane().commits(|tx| {
                tx.change(from + 9_000 + 13 * round as usize, 8, 70 + round)?;
                tx.change(from + 30_003, 5, 80 + round)?;
                tx.change(from + 189_990, 20, 90 + round)
            });
            world.lane().commits(|tx| {
                tx.change(from + 50_000, 700, 100 + round)?;
                tx.change(from + 100_000, 9_000, 110 + round)
            });
            world.lane().section_aborts(|tx| {
                tx.store(from + 70_000, &[round as u8; 10]);
                Ok(())
            });
            world.lane().section_commits(|tx| {
                tx.store(from + 80_000, &[round as u8; 10]);
                Ok(())
            });
            world
                .lane()
                .aborts(|tx| tx.change(from + 60_000, 30_000, 120 + round));
        }
        go_round_the_log(world);
    },
    ..PLAIN
};

/// A word of one page changes while that waits, and parts of two.
const CHANGED: Workload = Workload {
    name: "a page that waits is changed",
    needs: short,
    run: |world| {
        world.lane().commits(|tx| tx.change(BYTES, 30_000, 1));
        world.lane().commits(|tx| tx.change(BYTES + 5_000, 8, 2));
        // From one page to the next, and fills neither.
        world
            .lane()
            .commits(|tx| tx.change(BYTES + 16_000, 4_000, 3));
        go_round_the_log(world);
    },
    ..PLAIN
};

#[test]
fn pages_that_wait_survive_on_mapped_memory() {
    WAITING.survives_on_lines();
}

#[test]
fn a_page_that_waits_goes_home_before_something_of_it_changes() {
    let step =
        Site("shadow.checkpoint: write a page home that waits before something of it changes");
    CHANGED.survives_on_lines();
    // Once the page is home, any of them.
    assert!(is_noticed_among(Some(40), Medium::Lines, step, &CHANGED));
}
