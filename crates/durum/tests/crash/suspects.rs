//! The blocks of a Twin pool in which its copies may differ: recovery looks nowhere else.
//!
//! The crashes: between the word that names a block and the stores there, where a block that is named takes the place
//! of one that a transaction has changed before, where all is named because a transaction touches more than there is
//! room for, and in a recovery. After each the copies are compared, too: what recovery leaves out comes back with the
//! next one. On the other engines these are transactions like others.

use durum::Engine;
use durum_persist::Site;

use crate::harness::{BYTES, Campaign, How, Medium, PLAIN, Running, Stop, Workload};
use crate::support::engine;

/// Bytes of a block, and one more: places so far apart lie in different blocks, and some in different lines.
const APART: usize = (64 << 10) + 40;
/// Blocks of the large object.
const BLOCKS: usize = 9;

fn large(mut campaign: Campaign) -> Campaign {
    campaign.large_size = APART * BLOCKS;
    campaign.used_one_in = 16;
    campaign.plan(|plan| {
        plan.points_max = Some(400);
        plan.single_units_max = 4;
        plan.random_images = 3;
        plan.nested_one_in = 40;
    })
}

/// A place in a block of the large object.
fn place(block: usize, offset: usize) -> usize {
    BYTES + block * APART + offset
}

fn change(tx: &mut Running<'_>, blocks: &[usize], tag: u64) -> Result<(), Stop> {
    for block in blocks {
        tx.change(place(*block, 500), 40, tag + *block as u64)?;
    }
    Ok(())
}

/// Each block for the first time, by every kind of change.
pub const FIRST: Workload = Workload {
    name: "blocks that are changed for the first time",
    needs: large,
    run: |world| {
        world.lane().commits(|tx| change(tx, &[0, 1], 1));
        // One that is named, one that is not; with a change of a whole block and over its end.
        world.lane().commits(|tx| {
            change(tx, &[1, 2], 20)?;
            tx.change(place(3, 30), 3000, 21)
        });
        world.lane().aborts(|tx| change(tx, &[4, 0], 30));
        world.lane().commits(|tx| {
            tx.set(place(5, 8), 16, 40)?;
            tx.alloc(0, 100, 41, How::Set)
        });
        // An object in blocks that are not named: a seal names it.
        world.lane().commits(|tx| tx.alloc(1, 70_000, 50, How::Add));
        world.lane().commits(|tx| tx.free(1, How::Set));
        world.lane().persists(place(6, 0), &[7; 50]);
        world.lane().commits(|tx| change(tx, &[0, 6, 7], 60));
    },
    ..PLAIN
};

/// More ranges than a seal can name, old and new ones.
pub const UNSEALED: Workload = Workload {
    name: "many ranges in blocks that are changed for the first time",
    needs: large,
    run: |world| {
        world.lane().commits(|tx| change(tx, &[0], 1));
        world.lane().commits(|tx| {
            for number in 0..130 {
                tx.change(place(number % 3, 16 * number), 8, number as u64)?;
            }
            tx.alloc(0, 70_000, 200, How::Set)
        });
        world.lane().commits(|tx| change(tx, &[4], 300));
    },
    ..PLAIN
};

/// A list of two groups and two blocks: most transactions find it full, and some have no room on it.
pub const FULL: Workload = Workload {
    name: "a list of suspects that is full",
    needs: |campaign| {
        let mut campaign = large(campaign);
        // A group has sixteen blocks.
        campaign.large_size = APART * 40;
        campaign.root_puddle_size = 4 << 20;
        campaign.suspects = Some((2, 2));
        campaign
    },
    run: |world| {
        for blocks in [
            &[0, 18][..],
            &[18, 36],
            &[0, 18, 36],
            &[0],
            &[36, 0],
            &[1, 2, 19],
            &[18],
        ] {
            world
                .lane()
                .commits(|tx| change(tx, blocks, blocks[0] as u64));
        }
        world.lane().aborts(|tx| change(tx, &[1, 19, 37], 90));
        world.lane().commits(|tx| change(tx, &[37], 95));
    },
    ..PLAIN
};

pub const ALL: [&Workload; 3] = [&FIRST, &UNSEALED, &FULL];

#[test]
fn blocks_that_are_changed_for_the_first_time_survive() {
    FIRST.survives_on_lines();
    FIRST.survives_on_sectors();
}

#[test]
fn many_ranges_in_new_blocks_survive() {
    UNSEALED.survives_on_lines();
    UNSEALED.survives_on_sectors();
}

#[test]
fn a_list_that_is_full_survives() {
    FULL.survives_on_lines();
    FULL.survives_on_sectors();
}

#[test]
fn without_the_word_or_its_fence_some_crash_is_noticed() {
    if engine() != Engine::Twin {
        return;
    }
    let sites = durum::sites().into_iter();
    let sites: Vec<Site> = sites.filter(|site| site.0.contains("suspects")).collect();
    assert_eq!(sites.len(), 2);
    for workload in ALL {
        for site in &sites {
            let mut recording = workload.record(Medium::Lines, Some(*site));
            recording.plan.nested_one_in = 0;
            recording.plan.keep_failed = false;
            assert!(
                recording.explore().is_err(),
                "{}, {:?}",
                workload.name,
                site.0
            );
        }
    }
}

#[test]
#[ignore = "a campaign of some minutes: every crash of transactions in blocks that no list names yet"]
fn campaign_of_suspects() {
    for workload in ALL {
        for medium in [Medium::Lines, Medium::Sectors] {
            let mut recording = workload.record(medium, None);
            recording.plan.points_max = None;
            recording.survives();
        }
    }
}
