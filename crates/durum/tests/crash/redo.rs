//! `set`, alone and mixed with `add`: deferred stores come all at once.
//!
//! The crashes: before the seal is whole (nothing happened), between seal and range word (everything happens again in
//! recovery), and where the seal vouches for announced ranges whose lines have not all arrived.

use durum::{Engine, Error};
use durum_persist::record::EventKind;

use crate::harness::{How, Medium, PLAIN, Running, Stop, Workload, in_turns, pattern};
use crate::support::engine;

pub const SETS: Workload = Workload {
    name: "sets",
    run: |world| {
        world.lane().commits(|tx| {
            tx.set(8, 8, 1)?;
            // Part of a word, over the end of a line, the same again with another value, and one over all of them.
            tx.set(61, 7, 2)?;
            tx.set(61, 7, 3)?;
            tx.set(200, 100, 4)?;
            tx.set(12, 50, 5)
        });
        world.lane().aborts(|tx| {
            tx.set(0, 64, 6)?;
            tx.set(300, 3, 7)
        });
        world.lane().commits(|tx| tx.set(13, 3, 8));
    },
    ..PLAIN
};

#[test]
fn sets_happen_all_at_once() {
    SETS.survives_on_lines();
}

/// One aligned word is all that changes: no log.
pub const ONE_WORD: Workload = Workload {
    name: "one word set",
    run: |world| {
        world.lane().commits(|tx| tx.set(64, 8, 1));
        world.lane().commits(|tx| {
            // Not the old bytes of this range are needed, but the new ones when the word has changed.
            tx.clobber(200, 100)?;
            tx.store(200, &pattern(2, 100));
            tx.set(64, 8, 3)
        });
        // Neither a word nor aligned; two words; and a word beside an announced range: these take a log.
        world.lane().commits(|tx| tx.set(65, 8, 4));
        world.lane().commits(|tx| {
            tx.set(64, 8, 5)?;
            tx.set(64, 8, 6)
        });
        world.lane().commits(|tx| {
            tx.change(400, 30, 7)?;
            tx.set(64, 8, 8)
        });
        world.lane().aborts(|tx| tx.set(64, 8, 9));
        world.lane().commits(|tx| tx.set(72, 8, 10));
    },
    ..PLAIN
};

#[test]
fn a_single_word_is_set_without_a_log() {
    ONE_WORD.survives_on_lines();
}

fn mixed(tx: &mut Running<'_>, base: usize, len: usize) -> Result<(), Stop> {
    tx.change(base, len, 1)?;
    tx.set(base + 1000, 24, 2)?;
    tx.change(base + 700, 8, 3)?;
    tx.set(base + 1020, 40, 4)
}

/// All announced ranges together are small: the seal covers their contents.
pub const MIXED_SMALL: Workload = Workload {
    name: "add and set, sealed with the contents",
    run: |world| {
        world.lane().commits(|tx| mixed(tx, 0, 64));
        world.lane().aborts(|tx| mixed(tx, 2000, 64));
    },
    ..PLAIN
};

/// The announced ranges are large: a fence before the seal.
pub const MIXED_LARGE: Workload = Workload {
    name: "add and set, with a fence before the seal",
    run: |world| {
        world.lane().commits(|tx| mixed(tx, 0, 500));
        world.lane().aborts(|tx| mixed(tx, 2000, 500));
    },
    ..PLAIN
};

fn fences(workload: &Workload) -> usize {
    let recording = workload.record(Medium::Lines, None);
    let events = recording.trace.events().iter();
    // Up to the end of the first transaction.
    let first = events.take_while(|event| !matches!(event.kind, EventKind::Note { .. }));
    first
        .filter(|event| matches!(event.kind, EventKind::Fence { .. }))
        .count()
}

/// Shadow takes one and Twin two, whatever the transaction does.
fn on_hybrid(fences: usize) -> usize {
    match engine() {
        Engine::Hybrid => fences,
        Engine::Twin => 2,
        _ => 1,
    }
}

#[test]
fn a_seal_that_covers_contents_is_as_good_as_a_fence() {
    assert_eq!(fences(&MIXED_SMALL), on_hybrid(2 + 3), "two ranges");
    MIXED_SMALL.survives_on_lines();
}

#[test]
fn large_announced_ranges_are_durable_before_the_seal() {
    assert_eq!(fences(&MIXED_LARGE), on_hybrid(2 + 4), "two ranges");
    MIXED_LARGE.survives_on_lines();
}

/// The seal may not vouch for ranges that change after it.
pub const SET_ON_ANNOUNCED: Workload = Workload {
    name: "set on announced ranges",
    run: |world| {
        world.lane().commits(|tx| {
            tx.change(0, 40, 1)?;
            tx.set(16, 16, 2)
        });
        world.lane().commits(|tx| {
            tx.change(100, 8, 3)?;
            tx.set(108, 8, 4)?;
            tx.set(104, 2, 5)
        });
        world.lane().aborts(|tx| {
            tx.change(0, 40, 6)?;
            tx.set(16, 16, 7)
        });
    },
    ..PLAIN
};

#[test]
fn a_set_may_change_what_was_announced() {
    SET_ON_ANNOUNCED.survives_on_lines();
}

/// Whatever is stored there after the `set`, the `set` would overwrite at commit: `add` refuses, also where nothing is
/// left to announce.
#[test]
fn a_range_that_waits_for_the_commit_cannot_be_announced() {
    let workload = Workload {
        name: "add after set",
        run: |world| {
            world.lane().commits(|tx| {
                tx.change(0, 600, 1)?;
                tx.change(1000, 16, 2)?;
                tx.set(8, 8, 3)?;
                tx.set(1000, 8, 4)?;
                tx.set(2000, 8, 5)?;
                for offset in [8, 0, 15, 1000, 1001, 2000] {
                    let refused = tx.add(offset, 1);
                    let pending = matches!(refused, Err(Stop::Durum(Error::PendingSet { .. })));
                    assert_eq!(pending, offset != 0, "{offset}: {refused:?}");
                }
                Ok(())
            });
        },
        ..PLAIN
    };
    workload.survives_on_lines();
}

pub const SET_ON_FRESH: Workload = Workload {
    name: "set on fresh objects",
    run: |world| {
        world.lane().commits(|tx| tx.alloc_and_set(0, 48, 11));
        world.lane().commits(|tx| {
            tx.alloc(1, 48, 12, How::Set)?;
            tx.alloc_and_set(2, 700, 13)
        });
        world.lane().aborts(|tx| tx.alloc_and_set(3, 48, 14));
    },
    ..PLAIN
};

#[test]
fn a_set_may_fill_a_fresh_object() {
    SET_ON_FRESH.survives_on_lines();
}

/// More ranges than a seal can name, of Hybrid's commit (16) and of Twin's (126).
pub const MANY_RANGES: Workload = Workload {
    name: "more ranges than a seal covers",
    needs: |campaign| campaign.plan(|plan| plan.single_units_max = 5),
    run: |world| {
        let change = |tx: &mut Running<'_>, ranges: usize| {
            for at in 0..ranges {
                tx.change(at * 30, 3, (ranges + at) as u64)?;
            }
            tx.set(4000, 8, 99 + ranges as u64)
        };
        for ranges in [16, 17, 130] {
            world.lane().commits(|tx| change(tx, ranges));
        }
        world.lane().aborts(|tx| change(tx, 131));
        for ranges in [132, 2] {
            world.lane().commits(|tx| change(tx, ranges));
        }
    },
    ..PLAIN
};

#[test]
fn a_seal_names_some_ranges_and_a_fence_serves_more() {
    MANY_RANGES.survives_on_lines();
}

#[test]
fn a_seal_names_some_ranges_and_a_sync_serves_more() {
    MANY_RANGES.survives_on_sectors();
}

pub const SHARED_LINES: Workload = Workload {
    name: "sets of two threads on the same words",
    needs: |mut campaign| {
        campaign.lanes = 2;
        campaign.owners.bytes = |offset| offset % 2;
        campaign
    },
    run: |world| {
        let order: Vec<usize> = [0, 1, 1, 0].repeat(12);
        in_turns(world, &order, |lane, number, turns| {
            for round in 0..2u64 {
                let step = {
                    let mut running = lane.begin();
                    for at in [0usize, 4, 64, 10] {
                        turns.step(number, || {
                            if at == 64 {
                                running
                                    .change(at + number, 1, round + 50)
                                    .expect("announced");
                            } else {
                                running
                                    .set(at + number, 1, round + 7 + at as u64)
                                    .expect("set");
                            }
                        });
                    }
                    turns.step(number, || running.commit())
                };
                lane.took(step);
            }
        });
    },
    ..PLAIN
};

#[test]
fn sets_of_two_threads_share_words_and_lines() {
    SHARED_LINES.survives_on_lines();
}
