//! `add`: old bytes are safe before new ones are stored, whatever the ranges look like.
//!
//! The crashes: before, between and after the two, in a commit (data is durable before the entries lose their effect),
//! in a rollback (the same with the old bytes), and beside another thread's transaction on the same word or line, whose
//! bytes a rollback must not touch.

use crate::harness::{Lane, PLAIN, Running, Stop, Turns, Workload, in_turns, pattern};

pub const ONE_RANGE: Workload = Workload {
    name: "one range",
    run: |world| world.lane().commits(|tx| tx.change(100, 40, 1)),
    ..PLAIN
};

#[test]
fn one_range_is_old_or_new_as_a_whole() {
    ONE_RANGE.survives_on_lines();
}

pub const SHAPES: Workload = Workload {
    name: "ranges that overlap, grow and repeat",
    run: |world| {
        world.lane().commits(|tx| {
            // Part of a word; grows to both sides; the same again; over the end of a line; one that holds all of them.
            tx.change(131, 2, 1)?;
            tx.change(130, 9, 2)?;
            tx.change(130, 9, 3)?;
            tx.change(120, 12, 4)?;
            tx.change(64, 200, 5)?;
            // Beside the ones before, without a gap.
            tx.change(264, 8, 6)?;
            tx.change(56, 8, 7)
        });
        world.lane().commits(|tx| {
            // Announced, and stored to in part only.
            tx.add(60, 90)?;
            tx.store(61, &[1]);
            tx.store(149, &[2]);
            tx.add(0, 4)
        });
    },
    ..PLAIN
};

#[test]
fn ranges_overlap_grow_and_repeat() {
    SHAPES.survives_on_lines();
}

pub const WORDS: Workload = Workload {
    name: "words, one transaction after the other",
    before: |world| world.lane().commits(|tx| tx.change(0, 8, 9)),
    run: |world| {
        for round in 0..6 {
            // Neighbours, of which the second one comes first; one far away; one that stays as it is.
            let words = move |tx: &mut Running<'_>| {
                tx.change(200 - 8 * round, 8, 1)?;
                tx.change(8 * round, 8, 2 + round as u64)?;
                tx.change(192 - 8 * round, 8, 3)?;
                tx.change(1024 + 64 * round, 8, 4)?;
                tx.add(512, 8)
            };
            match round {
                3 => world.lane().aborts(words),
                _ => world.lane().commits(words),
            }
        }
        world.lane().commits(|tx| {
            tx.change(16, 8, 5)?;
            tx.persist(640, 8);
            Ok(())
        });
    },
    ..PLAIN
};

#[test]
fn words_of_one_transaction_after_the_other_are_old_or_new_together() {
    WORDS.survives_on_lines();
}

pub const AT_ONCE: Workload = Workload {
    name: "ranges that are announced at once",
    needs: |mut campaign| {
        // Between the two fences that matter lies little.
        campaign.plan.points_max = None;
        campaign
    },
    before: |world| world.lane().commits(|tx| tx.change(0, 1200, 9)),
    run: |world| {
        let several = |tx: &mut Running<'_>| {
            // A word, one that is announced again, one twice, a long one; then one that is announced by now.
            tx.add(20, 4)?;
            tx.add_all(&[(8, 8), (16, 16), (8, 8), (300, 700)])?;
            tx.store(8, &[1; 8]);
            tx.store(990, &[2; 10]);
            tx.change(16, 16, 3)?;
            tx.add_all(&[])
        };
        world.lane().commits(several);
        world.lane().aborts(several);
    },
    ..PLAIN
};

#[test]
fn ranges_that_are_announced_at_once_are_old_or_new_as_a_whole() {
    AT_ONCE.survives_on_lines();
}

pub const ABORTS: Workload = Workload {
    name: "rollbacks by error and panic",
    before: |world| world.lane().commits(|tx| tx.change(0, 400, 9)),
    run: |world| {
        let several = |tx: &mut crate::harness::Running<'_>| {
            tx.change(3, 7, 1)?;
            tx.change(5, 90, 2)?;
            tx.change(200, 100, 3)
        };
        world.lane().aborts(several);
        world.lane().commits(|tx| tx.change(90, 20, 4));
        world.lane().panics(several);
        world.lane().commits(|tx| tx.change(1, 10, 5));
    },
    ..PLAIN
};

#[test]
fn a_rollback_may_be_crashed_and_leaves_nothing_that_replays() {
    ABORTS.survives_on_lines();
}

pub const NESTED: Workload = Workload {
    name: "nested transactions",
    run: |world| {
        let pool = world.pool.clone();
        world.lane().commits(|tx| {
            tx.change(0, 16, 1)?;
            pool.transaction(|_| {
                tx.change(64, 16, 2)?;
                pool.transaction(|_| tx.change(8, 16, 3))
            })?;
            tx.change(128, 16, 4)
        });
        world.lane().aborts(|tx| {
            tx.change(0, 16, 5)?;
            let inner = pool.transaction(|inner| {
                tx.change(64, 16, 6)?;
                inner.abort::<()>().map_err(Stop::from)
            });
            assert!(inner.is_err());
            tx.change(128, 16, 7)
        });
    },
    ..PLAIN
};

#[test]
fn nested_transactions_are_durable_with_the_outermost() {
    NESTED.survives_on_lines();
}

pub const CLOBBER: Workload = Workload {
    name: "clobbered ranges",
    run: |world| {
        world.lane().commits(|tx| {
            tx.clobber(0, 100)?;
            tx.store(0, &pattern(1, 100));
            tx.change(200, 8, 2)
        });
        world.lane().aborts(|tx| {
            tx.clobber(64, 100)?;
            tx.store(64, &pattern(3, 100));
            tx.change(208, 8, 4)
        });
        world.lane().commits(|tx| {
            tx.clobber(0, 300)?;
            tx.store(0, &pattern(5, 300));
            Ok(())
        });
        // A clobbered range needs no old bytes, not even for a part that is announced again.
        world.lane().commits(|tx| {
            tx.clobber(0, 64)?;
            tx.add(32, 8)?;
            tx.store(0, &pattern(6, 64));
            Ok(())
        });
    },
    ..PLAIN
};

#[test]
fn a_clobbered_range_is_durable_after_commit_and_anything_before() {
    CLOBBER.survives_on_lines();
}

pub const PERSIST: Workload = Workload {
    name: "persist",
    run: |world| {
        world.lane().persists(10, &pattern(1, 150));
        world.lane().commits(|tx| tx.change(0, 64, 2));
        world.lane().persists(60, &pattern(3, 8));
        // What a transaction has announced stays with it.
        let announces = |tx: &mut Running<'_>| {
            tx.change(203, 40, 4)?;
            tx.change(1000, 600, 5)?;
            tx.persist(190, 900);
            tx.persist(1100, 300);
            tx.change(250, 8, 6)
        };
        world.lane().commits(announces);
        world.lane().aborts(announces);
    },
    ..PLAIN
};

#[test]
fn persist_makes_plain_stores_durable() {
    PERSIST.survives_on_lines();
}

pub const STREAMED: Workload = Workload {
    name: "streamed entries",
    needs: |campaign| {
        campaign.plan(|plan| {
            plan.points_max = Some(60);
            plan.single_units_max = 4;
        })
    },
    run: |world| {
        for (at, (offset, len)) in [(0, 512), (3, 513), (8, 1000), (100, 3000), (1, 4095)]
            .into_iter()
            .enumerate()
        {
            let tag = 10 + at as u64;
            world.lane().commits(|tx| tx.change(offset, len, tag));
        }
        world.lane().aborts(|tx| {
            tx.change(7, 1501, 20)?;
            tx.change(40, 600, 21)
        });
    },
    ..PLAIN
};

#[test]
fn entries_that_are_streamed_to_the_log_are_whole_before_the_store() {
    STREAMED.survives_on_lines();
}

/// Entries hold at most 1 MiB, and two of that size do not fit into a log puddle.
pub const SPLIT: Workload = Workload {
    name: "a range in several entries",
    needs: |mut campaign| {
        campaign.large_size = 2_500_000;
        campaign.used_one_in = 16;
        campaign.plan(|plan| {
            plan.points_max = Some(24);
            plan.single_units_max = 2;
            plan.random_images = 2;
            plan.nested_one_in = 0;
        })
    },
    run: |world| {
        world.lane().commits(|tx| {
            let at = crate::harness::BYTES;
            tx.change(at + 5, 2_400_003, 1)?;
            tx.change(17, 3, 2)
        });
        world.lane().aborts(|tx| {
            let at = crate::harness::BYTES;
            tx.change(at + 1_000_000, 1_200_000, 3)
        });
    },
    ..PLAIN
};

#[test]
fn a_range_of_several_entries_is_one() {
    SPLIT.survives_on_lines();
}

/// The current range word moves through 16 slots.
pub const MANY: Workload = Workload {
    name: "more transactions than range slots",
    needs: |campaign| {
        campaign.plan(|plan| {
            plan.points_max = Some(150);
            plan.random_images = 2;
            plan.single_units_max = 3;
        })
    },
    run: |world| {
        for turn in 0..40usize {
            let change = |tx: &mut crate::harness::Running<'_>| {
                tx.change(turn % 7 * 30, 40, turn as u64 + 1)?;
                tx.change(turn % 5 * 64, 8, turn as u64 + 100)
            };
            match turn % 3 {
                0 => world.lane().aborts(change),
                _ => world.lane().commits(change),
            }
        }
    },
    ..PLAIN
};

#[test]
fn a_log_is_used_again_and_again() {
    MANY.survives_on_lines();
}

pub fn two_lanes(mut campaign: crate::harness::Campaign) -> crate::harness::Campaign {
    campaign.lanes = 2;
    // Neighbouring bytes belong to different threads: every word and line is shared.
    campaign.owners.bytes = |offset| offset % 2;
    campaign.owners.slots = |slot| slot % 2;
    campaign
}

/// A lane's bytes are every second one.
fn share(lane: &mut Lane, number: usize, turns: &Turns, ends: [bool; 2]) {
    for (round, commits) in ends.into_iter().enumerate() {
        let tag = (number * 10 + round + 1) as u8;
        let step = {
            let mut running = lane.begin();
            for at in [0usize, 2, 4, 64, 70, 6] {
                let offset = at + number;
                turns.step(number, || running.add(offset, 1).expect("announced"));
                turns.step(number, || running.store(offset, &[tag + at as u8]));
            }
            turns.step(number, || {
                if commits {
                    running.commit()
                } else {
                    running.abort()
                }
            })
        };
        lane.took(step);
    }
}

pub const SHARED_WORDS: Workload = Workload {
    name: "two threads on the same words",
    needs: two_lanes,
    run: |world| {
        let order: Vec<usize> = [0, 1, 1, 0, 0, 1].repeat(12);
        in_turns(world, &order, |lane, number, turns| {
            share(lane, number, turns, [number == 0, number == 1])
        });
    },
    ..PLAIN
};

#[test]
fn transactions_of_two_threads_share_words_and_lines() {
    SHARED_WORDS.survives_on_lines();
}
