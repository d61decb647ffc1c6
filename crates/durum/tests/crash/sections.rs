//! Sections: plain stores that nobody announced are there together, or none of them is.
//!
//! The crashes: in the body (nothing of it is anywhere but in memory), in the one record with the words that differ
//! from home, and in the home updates that a section makes before it begins and leaves behind, of its own record and of
//! those of transactions before.

use durum::PageTracking;

use crate::harness::pattern;
use crate::harness::{BYTES, Campaign, How, Lane, PLAIN, Stop, Workload, in_turns};

fn on_shadow(mut campaign: Campaign) -> Campaign {
    campaign.engine = durum::Engine::Shadow;
    campaign.large_size = 200_000;
    campaign.plan(|plan| plan.points_max = Some(80))
}

fn by_mprotect(campaign: Campaign) -> Campaign {
    let mut campaign = on_shadow(campaign);
    campaign.page_tracking = PageTracking::Mprotect;
    campaign
}

/// Stores that are not announced, near each other and far apart.
fn scatter(lane: &mut Lane, tag: u64) {
    lane.section_commits(|tx| {
        tx.store(1000 + tag as usize % 7, &pattern(tag, 13));
        tx.store(
            BYTES + 4096 * (tag as usize % 40) - 5,
            &pattern(tag + 1, 10),
        );
        tx.store(BYTES + 190_000, &pattern(tag + 2, 3000));
        Ok(())
    });
}

fn mix(lane: &mut Lane) -> Result<(), Stop> {
    lane.commits(|tx| {
        tx.change(10, 40, 1)?;
        tx.alloc(0, 40, 2, How::Add)
    });
    scatter(lane, 3);
    // Inside: objects, announcements, deferred stores, beside plain ones of the same lines.
    lane.section_commits(|tx| {
        tx.store(20, &pattern(10, 9));
        tx.alloc(1, 3000, 11, How::Set)?;
        tx.alloc(2, 40, 12, How::Add)?;
        tx.free(0, How::Set)?;
        tx.change(25, 10, 13)?;
        tx.set(64, 8, 14)?;
        tx.store(72, &pattern(15, 8));
        Ok(())
    });
    lane.commits(|tx| tx.change(0, 100, 16));
    lane.section_aborts(|tx| {
        tx.store(0, &pattern(20, 300));
        tx.alloc(3, 24, 21, How::Add)?;
        tx.store(BYTES + 1, &pattern(22, 9000));
        Ok(())
    });
    lane.persists(500, &pattern(30, 24));
    scatter(lane, 31);
    lane.commits(|tx| {
        // Of a slab that the aborted section made.
        tx.alloc(4, 24, 40, How::Add)?;
        tx.free(1, How::Add)?;
        tx.change(BYTES, 9000, 41)
    });
    scatter(lane, 50);
    lane.section_commits(|_| Ok(()));
    lane.commits(|tx| tx.set(8, 8, 51));
    Ok(())
}

pub const MIXED: Workload = Workload {
    name: "sections and transactions",
    needs: on_shadow,
    run: |world| mix(world.lane()).expect("the run goes on"),
    ..PLAIN
};

pub const MIXED_BY_MPROTECT: Workload = Workload {
    name: "sections and transactions, by mprotect",
    needs: by_mprotect,
    ..MIXED
};

#[test]
fn sections_survive_on_mapped_memory() {
    MIXED.survives_on_lines();
}

#[test]
fn sections_survive_on_a_file_system() {
    MIXED.survives_on_sectors();
    MIXED_BY_MPROTECT.survives_on_sectors();
}

/// More than a segment of the log holds: parts.
pub const LARGE: Workload = Workload {
    name: "a section larger than a segment",
    needs: |campaign| {
        let mut campaign = on_shadow(campaign);
        campaign.large_size = 1_000_000;
        campaign.log_max = 2 << 20;
        campaign.used_one_in = 16;
        campaign.plan(|plan| {
            plan.points_max = Some(40);
            plan.single_units_max = 2;
            plan.random_images = 2;
        })
    },
    run: |world| {
        for round in 0..3 {
            world.lane().section_commits(|tx| {
                tx.store(
                    BYTES + 100_000 * round as usize,
                    &pattern(round + 1, 700_000),
                );
                Ok(())
            });
            world
                .lane()
                .commits(|tx| tx.change(BYTES + 300_000, 40, 10 + round));
        }
    },
    ..PLAIN
};

#[test]
fn a_section_that_is_written_in_parts_survives() {
    LARGE.survives_on_lines();
    LARGE.survives_on_sectors();
}

/// Each thread's section finds what it changed itself, and leaves what the other one committed.
pub const TWO_THREADS: Workload = Workload {
    name: "sections and transactions of two threads",
    needs: |campaign| {
        let mut campaign = on_shadow(campaign);
        campaign.lanes = 2;
        // Every other 32 bytes, so that lines and pages are shared.
        campaign.owners.bytes = |offset| offset / 32 % 2;
        campaign.owners.slots = |slot| slot % 2;
        campaign
    },
    run: |world| {
        let order: Vec<usize> = [0, 1, 1, 0, 1, 0].repeat(5);
        in_turns(world, &order, |lane, number, turns| {
            for round in 0..10 {
                let tag = 100 * number as u64 + round + 1;
                let place = |at: usize| 64 * at + 32 * number;
                turns.step(number, || match (round as usize + number) % 3 {
                    0 => lane.commits(|tx| {
                        tx.change(place(round as usize), 20, tag)?;
                        tx.change(BYTES + place(7 * round as usize), 32, tag)
                    }),
                    1 => lane.section_commits(|tx| {
                        for at in 0..20 {
                            tx.store(place(at), &pattern(tag, 11));
                        }
                        tx.store(BYTES + place(1000), &pattern(tag, 32));
                        tx.alloc(2 * round as usize + number, 40, tag, How::Add)
                    }),
                    _ => lane.section_aborts(|tx| {
                        tx.store(place(3), &pattern(tag, 32));
                        tx.store(BYTES + place(1000), &pattern(tag, 32));
                        Ok(())
                    }),
                });
            }
        });
    },
    ..PLAIN
};

#[test]
fn sections_of_two_threads_survive() {
    TWO_THREADS.survives_on_lines();
    TWO_THREADS.survives_on_sectors();
}

/// Canaries: without its fence a section is not durable when it returns, and without the sync neither.
#[test]
fn a_section_without_its_fence_is_noticed() {
    use crate::harness::Medium;
    let fence = durum::Site("shadow.commit: fence after the record");
    for medium in [Medium::Lines, Medium::Sectors] {
        let only_sections = Workload {
            name: "sections only",
            run: |world| (1..6).for_each(|tag| scatter(world.lane(), tag)),
            ..MIXED
        };
        let mut recording = only_sections.record(medium, Some(fence));
        recording.plan.keep_failed = false;
        assert!(recording.explore().is_err(), "{medium:?}");
    }
}
