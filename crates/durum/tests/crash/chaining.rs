//! Logs that go on in another puddle, because a transaction needs more than one holds (2 MiB).
//!
//! The crashes: while the further puddle is made, between its header, the entries before the chain entry, the chain
//! entry and the entries behind it; and in the next transaction, whose puddle is the same, full of entries of a
//! generation before.

use durum_persist::inject::{self, Operation};
use durum_persist::record::EventKind;

use durum::Engine;

use crate::harness::{BYTES, Campaign, How, Medium, PLAIN, Running, Stop, Workload, pattern};
use crate::support::engine;

fn large_images(mut campaign: Campaign) -> Campaign {
    campaign.large_size = 2_200_000;
    campaign.used_one_in = 16;
    campaign.plan(|plan| {
        // On another engine than Hybrid these are large transactions like others.
        plan.points_max = Some(if engine() == Engine::Hybrid { 80 } else { 40 });
        plan.single_units_max = 2;
        plan.random_images = 2;
        plan.nested_one_in = 100;
        plan.nested_points_max = Some(6);
    })
}

/// Announces enough for `puddles` log puddles, in pieces.
fn fill(tx: &mut Running<'_>, puddles: usize, tag: u64) -> Result<(), Stop> {
    for at in 0..2 * puddles {
        tx.change(BYTES + at * 900_000 + 3, 800_000, tag + at as u64)?;
    }
    Ok(())
}

/// Announces so much that a few hundred bytes are left in the log's first puddle: what follows, small and crashed
/// everywhere, meets its end.
fn nearly_full(tx: &mut Running<'_>) -> Result<(), Stop> {
    tx.change(BYTES, 1_000_000, 1)?;
    tx.change(BYTES + 1_000_000, 1_000_000, 2)?;
    // 2 MiB less the headers of puddle and log; each entry has a header of its own.
    let room = (2 << 20) - 4096 - 2048 - 2 * (1_000_000 + 64) - 400;
    tx.change(BYTES + 2_000_000, room, 3)
}

/// The crash points after the three large ranges of [`nearly_full`] have been stored to.
fn at_the_end(campaign: Campaign) -> Campaign {
    large_images(campaign).plan(|plan| {
        plan.from_api = 4;
        if engine() == Engine::Hybrid {
            plan.points_max = Some(240);
        }
    })
}

fn several(tx: &mut Running<'_>, tag: u64) -> Result<(), Stop> {
    nearly_full(tx)?;
    (0..8).try_for_each(|at| tx.change(at * 100, 40, tag + at as u64))
}

pub const UNDO: Workload = Workload {
    name: "undo entries over two puddles",
    needs: at_the_end,
    run: |world| {
        world.lane().commits(|tx| several(tx, 10));
        world.lane().commits(|tx| tx.change(0, 64, 30));
    },
    ..PLAIN
};

pub const UNDO_ABORT: Workload = Workload {
    name: "a rollback over two puddles",
    needs: at_the_end,
    run: |world| {
        world.lane().aborts(|tx| several(tx, 20));
        // Right after the rollback, on the same bytes, and without a word to the log.
        world.lane().commits(|tx| {
            tx.clobber(0, 64)?;
            tx.store(0, &pattern(29, 64));
            Ok(())
        });
    },
    ..PLAIN
};

#[test]
fn undo_entries_go_on_in_another_puddle() {
    UNDO.survives_on_lines();
}

#[test]
fn a_rollback_reads_undo_entries_of_two_puddles() {
    UNDO_ABORT.survives_on_lines();
}

pub const REDO: Workload = Workload {
    name: "redo entries over two puddles",
    needs: large_images,
    run: |world| {
        world.lane().commits(|tx| {
            tx.set(BYTES + 11, 1_400_000, 1)?;
            tx.set(BYTES + 1_500_000, 700_000, 2)?;
            tx.alloc(0, 40, 3, How::Set)
        });
        world.lane().commits(|tx| tx.set(0, 64, 4));
    },
    ..PLAIN
};

#[test]
fn redo_entries_go_on_in_another_puddle() {
    REDO.survives_on_lines();
}

/// The seal itself is the entry that does not fit, and counts the chain entry before it.
pub const SEAL: Workload = Workload {
    name: "a seal in the second puddle",
    needs: at_the_end,
    run: |world| {
        world.lane().commits(|tx| {
            nearly_full(tx)?;
            (0..6).try_for_each(|at| tx.set(at * 50, 24, 40 + at as u64))
        });
    },
    ..PLAIN
};

/// Announces ranges to nearly the end of the first puddle, and sets `N` more: the seal lies before, on or behind the
/// end.
const fn sealed_after<const N: usize>() -> Workload {
    Workload {
        name: "a seal at the end of a puddle",
        needs: at_the_end,
        run: |world| {
            world.lane().commits(|tx| {
                nearly_full(tx)?;
                (0..N).try_for_each(|at| tx.set(at * 50, 24, 40 + at as u64))
            });
        },
        ..PLAIN
    }
}

/// The chain entry comes between the fence of the entries and the seal.
pub const SEAL_ALONE: Workload = sealed_after::<5>();

#[test]
fn a_seal_counts_over_puddles() {
    SEAL.survives_on_lines();
}

#[test]
fn a_seal_may_be_all_that_goes_on_in_another_puddle() {
    SEAL_ALONE.survives_on_lines();
}

/// Stale entries of the first long transaction stand in the continuation puddle when the second one comes to it.
pub const AGAIN: Workload = Workload {
    name: "continuation puddles used again",
    needs: |campaign| {
        let mut campaign = large_images(campaign);
        campaign.large_size = 4_000_000;
        campaign.plan(|plan| plan.points_max = Some(30))
    },
    before: |world| world.lane().commits(|tx| fill(tx, 2, 1)),
    run: |world| {
        world.lane().aborts(|tx| fill(tx, 2, 50));
        world.lane().commits(|tx| fill(tx, 2, 100));
        world.lane().commits(|tx| tx.change(0, 100, 7));
    },
    ..PLAIN
};

#[test]
fn continuation_puddles_are_used_again() {
    let recording = AGAIN.record(Medium::Lines, None);
    let made = recording
        .trace
        .events()
        .iter()
        .filter(|event| matches!(event.kind, EventKind::Created { .. }));
    // What Shadow wrote before is home, and known to be, only some commits later.
    let allowed = match engine() {
        Engine::Hybrid => 0,
        _ => usize::MAX,
    };
    let made = made.count();
    assert!(
        made <= allowed,
        "{made} files are made for the second long transaction"
    );
    recording.survives();
}

/// The disk is full when the log has to go on: the commit fails after announced ranges were written, and rolls them
/// back.
pub const FULL: Workload = Workload {
    name: "a commit that fails for want of room",
    // Of thousands of units two matter, the range word and the first entry behind it: only random images find them.
    needs: |campaign| large_images(campaign).plan(|plan| plan.random_images = 16),
    run: |world| {
        let path = world.store.info().path.clone();
        for (commits, tag) in [(true, 10), (false, 20), (true, 30)] {
            let full = (!commits).then(|| inject::fail_after(Operation::Grow, 0, &path));
            let lane = world.lane();
            let step = {
                let mut running = lane.begin();
                running.change(0, 300, tag).expect("announced");
                // Three go on in a second puddle, which the log keeps; sixteen need more than it has kept.
                let sets = if commits { 3 } else { 16 };
                for at in 0..sets {
                    running
                        .set(BYTES + at * 90_000, 800_000, tag + 1 + at as u64)
                        .expect("set");
                }
                match commits {
                    true => running.commit(),
                    false => running.fails(),
                }
            };
            lane.took(step);
            drop(full);
            lane.commits(|tx| {
                tx.clobber(10, 30)?;
                tx.store(10, &pattern(tag + 9, 30));
                Ok(())
            });
        }
    },
    ..PLAIN
};

#[test]
fn a_commit_that_finds_no_room_leaves_nothing() {
    FULL.survives_on_lines();
}

#[test]
fn a_commit_that_finds_no_room_on_a_file_system_leaves_nothing() {
    FULL.survives_on_sectors();
}

/// More log than is kept: the last puddles are given back after the commit.
pub const LONG: Workload = Workload {
    name: "a log of many puddles is given back in part",
    needs: |campaign| {
        let mut campaign = large_images(campaign);
        campaign.large_size = 11_000_000;
        campaign.plan(|plan| {
            plan.points_max = Some(16);
            plan.nested_one_in = 0;
        })
    },
    run: |world| {
        world.lane().commits(|tx| fill(tx, 6, 1));
        world.lane().commits(|tx| tx.change(0, 10, 40));
    },
    ..PLAIN
};

#[test]
fn a_very_long_log_is_shortened_after_its_transaction() {
    LONG.survives_on_lines();
}

#[test]
#[ignore = "a campaign of half an hour: every crash point of transactions over several log puddles"]
fn campaign_of_long_logs() {
    campaign([UNDO, UNDO_ABORT, REDO, AGAIN, FULL]);
}

#[test]
#[ignore = "a campaign of some minutes: every crash point where a seal lies near the end of a log puddle"]
fn campaign_of_seals() {
    campaign([
        sealed_after::<2>(),
        sealed_after::<3>(),
        sealed_after::<4>(),
        SEAL_ALONE,
        sealed_after::<7>(),
        sealed_after::<8>(),
        SEAL,
        LONG,
    ]);
}

fn campaign<const N: usize>(workloads: [Workload; N]) {
    for workload in workloads {
        for medium in [Medium::Lines, Medium::Sectors] {
            let mut recording = workload.record(medium, None);
            recording.plan.points_max = None;
            recording.plan.nested_one_in = 20;
            recording.survives();
        }
    }
}
