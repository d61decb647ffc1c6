//! Allocation: a place belongs to exactly one object at every crash, and none is lost.
//!
//! The crashes: between the reservation (volatile) and the bits that record it, between bits of one transaction, while
//! a new slab or puddle is published or given back. Every image is walked: an object that no slot holds is a leak, a
//! slot whose object is not allocated is a double allocation to come.

use crate::harness::{Helper, How, Lane, PLAIN, Workload, in_turns};

pub const CLASSES: Workload = Workload {
    name: "objects of several classes",
    needs: |campaign| campaign.plan(|plan| plan.points_max = Some(120)),
    run: |world| {
        // New slabs, elements of slabs that exist, extents; with `set` alone and with `add`.
        for (slot, size) in [8, 24, 24, 64, 200, 256, 257, 1000].into_iter().enumerate() {
            let how = if slot % 2 == 0 { How::Set } else { How::Add };
            world
                .lane()
                .commits(|tx| tx.alloc(slot, size, 10 + slot as u64, how));
        }
        world.lane().commits(|tx| tx.alloc_zeroed(8, How::Set));
        for slot in 0..9 {
            world.lane().commits(|tx| tx.free(slot, How::Set));
        }
    },
    ..PLAIN
};

#[test]
fn objects_of_all_classes_come_and_go() {
    CLASSES.survives_on_lines();
}

pub const ONE: Workload = Workload {
    name: "one object",
    run: |world| {
        world.lane().commits(|tx| tx.alloc(0, 40, 1, How::Set));
        world.lane().commits(|tx| tx.free(0, How::Set));
    },
    ..PLAIN
};

#[test]
fn an_object_exists_with_the_slot_that_holds_it() {
    ONE.survives_on_lines();
}

/// One bit is all that changes: no log. The object is entered in a slot by the next transaction.
pub const ONE_WORD: Workload = Workload {
    name: "one object and nothing else",
    before: |world| world.lane().commits(|tx| tx.alloc(5, 40, 1, How::Set)),
    run: |world| {
        for (slot, size) in [(0, 40), (1, 400), (2, 136), (3, 5000)] {
            world
                .lane()
                .commits(|tx| tx.alloc_only(size, 10 + slot as u64));
            world.lane().commits(|tx| tx.enter_only(slot));
        }
        world.lane().aborts(|tx| tx.alloc_only(40, 20));
        for slot in [0, 1, 5] {
            world.lane().commits(|tx| tx.unlink(slot));
            world.lane().aborts(|tx| tx.free_only());
            world.lane().commits(|tx| tx.free_only());
        }
        // Two bits of one word, and of two words.
        world.lane().commits(|tx| {
            tx.alloc_only(40, 30)?;
            tx.alloc_only(40, 31)
        });
        world.lane().commits(|tx| {
            tx.alloc_only(40, 32)?;
            tx.free_only()
        });
        world.lane().commits(|tx| tx.free_only());
        world.lane().commits(|tx| tx.free_only());
    },
    ..PLAIN
};

#[test]
fn a_single_object_comes_and_goes_without_a_log() {
    ONE_WORD.survives_on_lines();
}

pub const EXTENTS: Workload = Workload {
    name: "extents of several sizes",
    needs: |campaign| campaign.plan(|plan| plan.points_max = Some(60)),
    run: |world| {
        world.lane().commits(|tx| {
            tx.alloc(0, 300, 1, How::Set)?;
            tx.alloc(1, 5000, 2, How::Set)?;
            tx.alloc_aligned(2, 700, 4096, 3, How::Set)?;
            tx.alloc(3, 70_000, 4, How::Set)
        });
        world.lane().commits(|tx| {
            tx.free(1, How::Add)?;
            tx.free(2, How::Add)
        });
        world.lane().commits(|tx| tx.alloc(1, 6000, 5, How::Set));
        world.lane().aborts(|tx| tx.alloc(4, 100_000, 6, How::Set));
    },
    ..PLAIN
};

#[test]
fn extents_of_several_sizes_never_overlap() {
    EXTENTS.survives_on_lines();
}

/// Several objects, one transaction: all or none of the bits.
pub const TOGETHER: Workload = Workload {
    name: "several objects in one transaction",
    run: |world| {
        world.lane().commits(|tx| {
            for slot in 0..6 {
                tx.alloc(slot, 40, 1 + slot as u64, How::Set)?;
            }
            tx.alloc(6, 400, 20, How::Set)
        });
        world.lane().commits(|tx| {
            for slot in 1..5 {
                tx.free(slot, How::Set)?;
            }
            tx.free(6, How::Set)?;
            tx.change(0, 16, 30)
        });
    },
    ..PLAIN
};

#[test]
fn objects_of_one_transaction_come_and_go_together() {
    TOGETHER.survives_on_lines();
}

fn four_objects(lane: &mut Lane) {
    lane.commits(|tx| {
        tx.alloc(0, 40, 1, How::Set)?;
        tx.alloc(1, 40, 2, How::Set)?;
        tx.alloc(2, 400, 3, How::Set)?;
        tx.alloc(3, 3000, 4, How::Set)
    });
}

pub const FREE_THEN_ALLOC: Workload = Workload {
    name: "free, then alloc, in one transaction",
    before: |world| four_objects(world.lane()),
    run: |world| {
        for how in [How::Set, How::Add] {
            world.lane().commits(|tx| {
                tx.free(0, how)?;
                tx.free(2, how)?;
                tx.alloc(4, 40, 11, how)?;
                tx.alloc(5, 400, 12, how)
            });
            world.lane().commits(|tx| {
                tx.free(4, how)?;
                tx.alloc(0, 40, 13, how)?;
                tx.free(5, how)?;
                tx.alloc(2, 400, 14, how)
            });
        }
        // The same slot gives one object up for another.
        world.lane().commits(|tx| {
            tx.free(1, How::Set)?;
            tx.alloc(1, 40, 15, How::Set)?;
            tx.free(3, How::Set)?;
            tx.alloc(3, 3000, 16, How::Set)
        });
    },
    ..PLAIN
};

#[test]
fn a_place_freed_in_a_transaction_is_not_used_before_it_is_durable() {
    FREE_THEN_ALLOC.survives_on_lines();
}

pub const ALLOC_THEN_FREE: Workload = Workload {
    name: "alloc, then free, in one transaction",
    before: |world| four_objects(world.lane()),
    run: |world| {
        world.lane().commits(|tx| {
            tx.alloc_and_free(40)?;
            tx.alloc_and_free(500)?;
            // Of a class that has no slab: nothing of the slab is published.
            tx.alloc_and_free(136)?;
            tx.change(0, 8, 5)
        });
        world.lane().commits(|tx| {
            tx.alloc_and_free(40)?;
            tx.alloc(4, 40, 6, How::Set)?;
            tx.alloc_and_free(40)
        });
        // Now the slab is published, with the element that stays.
        world.lane().commits(|tx| {
            tx.alloc_and_free(136)?;
            tx.alloc(5, 136, 7, How::Set)
        });
        world.lane().aborts(|tx| {
            tx.alloc_and_free(40)?;
            tx.alloc(6, 40, 8, How::Set)
        });
        world.lane().commits(|tx| tx.alloc(6, 40, 9, How::Set));
    },
    ..PLAIN
};

#[test]
fn an_object_allocated_and_freed_at_once_was_never_there() {
    ALLOC_THEN_FREE.survives_on_lines();
}

pub const ABORT_AFTER_FREE: Workload = Workload {
    name: "abort after free",
    before: |world| four_objects(world.lane()),
    run: |world| {
        world.lane().aborts(|tx| {
            tx.free(0, How::Set)?;
            tx.free(2, How::Add)?;
            tx.alloc(4, 40, 5, How::Set)
        });
        // Still there, and freed by the next one.
        world.lane().commits(|tx| {
            tx.refill(0, 21)?;
            tx.refill(2, 22)?;
            tx.free(3, How::Set)
        });
        world.lane().panics(|tx| {
            tx.free(0, How::Set)?;
            tx.alloc(3, 3000, 6, How::Add)
        });
        world.lane().commits(|tx| {
            tx.free(0, How::Add)?;
            tx.alloc(3, 3000, 7, How::Set)
        });
    },
    ..PLAIN
};

#[test]
fn an_aborted_free_never_happened() {
    ABORT_AFTER_FREE.survives_on_lines();
}

/// Ranges in an object that the same transaction frees, and in one that it then allocates.
pub const ADD_AND_FREE: Workload = Workload {
    name: "add in an object that is freed",
    before: |world| four_objects(world.lane()),
    run: |world| {
        world.lane().commits(|tx| {
            tx.refill(0, 31)?;
            tx.free(0, How::Add)?;
            tx.refill(3, 32)?;
            tx.free(3, How::Add)
        });
        world.lane().aborts(|tx| {
            tx.refill(1, 33)?;
            tx.free(1, How::Add)
        });
        world.lane().commits(|tx| {
            tx.alloc(0, 40, 34, How::Set)?;
            tx.alloc(3, 3000, 35, How::Set)
        });
    },
    ..PLAIN
};

#[test]
fn an_object_may_be_announced_and_freed_in_one_transaction() {
    ADD_AND_FREE.survives_on_lines();
}

pub const OTHER_THREAD: Workload = Workload {
    name: "frees by another thread",
    needs: |campaign| campaign.plan(|plan| plan.points_max = Some(150)),
    before: |world| four_objects(world.lane()),
    run: |world| {
        let helper = Helper::new();
        helper.run(world, |lane| {
            lane.commits(|tx| {
                tx.free(0, How::Set)?;
                tx.free(2, How::Set)
            });
            lane.commits(|tx| tx.alloc(4, 40, 11, How::Set));
        });
        world.lane().commits(|tx| {
            tx.alloc(0, 40, 12, How::Set)?;
            tx.alloc(2, 400, 13, How::Set)?;
            tx.free(4, How::Set)
        });
        helper.run(world, |lane| lane.aborts(|tx| tx.free(0, How::Set)));
        world.lane().commits(|tx| tx.free(0, How::Set));
    },
    ..PLAIN
};

#[test]
fn objects_are_freed_by_other_threads() {
    OTHER_THREAD.survives_on_lines();
}

/// A slab whose owner's thread has ended loses its last element; a later commit gives its extent back, and another kind
/// of object takes the place.
pub const EMPTY_SLAB: Workload = Workload {
    name: "an empty slab goes",
    needs: |campaign| campaign.plan(|plan| plan.points_max = Some(150)),
    run: |world| {
        let helper = Helper::new();
        helper.run(world, |lane| {
            lane.commits(|tx| {
                tx.alloc(0, 104, 1, How::Set)?;
                tx.alloc(1, 104, 2, How::Set)
            });
        });
        drop(helper);
        world.lane().commits(|tx| tx.free(0, How::Set));
        world.lane().commits(|tx| tx.free(1, How::Set));
        world.lane().aborts(|tx| tx.alloc(2, 40, 3, How::Set));
        world.lane().commits(|tx| tx.alloc(2, 40, 4, How::Set));
        world.lane().commits(|tx| {
            tx.alloc(3, 3000, 5, How::Set)?;
            tx.alloc(4, 104, 6, How::Set)
        });
    },
    ..PLAIN
};

#[test]
fn the_extent_of_an_empty_slab_is_given_back_and_used_again() {
    EMPTY_SLAB.survives_on_lines();
}

/// Extents of two threads lie side by side: their start bits share a word.
pub const SHARED_BITS: Workload = Workload {
    name: "bits of two threads in one word",
    needs: |mut campaign| {
        campaign.lanes = 2;
        campaign.owners.bytes = |_| 0;
        campaign.owners.slots = |slot| slot % 2;
        campaign.plan(|plan| plan.points_max = Some(80))
    },
    run: |world| {
        let order: Vec<usize> = [0, 1, 1, 0].repeat(20);
        in_turns(world, &order, |lane, number, turns| {
            for round in 0..3usize {
                let commits = round != 1;
                let step = {
                    let mut running = lane.begin();
                    for at in 0..2usize {
                        turns.step(number, || {
                            let slot = number + 2 * (at + if round == 0 { 0 } else { 2 });
                            let tag = (1 + number + 10 * at + 100 * round) as u64;
                            running.alloc(slot, 300, tag, How::Set).expect("room");
                            if round == 2 {
                                running.free(number + 2 * at, How::Set).expect("freed");
                            }
                        });
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
        });
    },
    ..PLAIN
};

#[test]
fn allocations_of_two_threads_share_bitmap_words() {
    SHARED_BITS.survives_on_lines();
}

/// Elements of one slab are freed by two threads: the bits share a word, and the slab is none of theirs.
pub const SHARED_SLAB: Workload = Workload {
    name: "frees of two threads in one slab",
    needs: |mut campaign| {
        campaign.lanes = 2;
        campaign.owners.bytes = |_| 0;
        campaign.owners.slots = |slot| slot % 2;
        campaign.plan(|plan| plan.points_max = Some(150))
    },
    before: |world| {
        world.lane().commits(|tx| {
            (0..12).try_for_each(|slot| tx.alloc(slot, 40, 1 + slot as u64, How::Set))
        });
    },
    run: |world| {
        let order: Vec<usize> = [0, 1, 1, 0].repeat(20);
        in_turns(world, &order, |lane, number, turns| {
            for round in 0..3usize {
                let step = {
                    let mut running = lane.begin();
                    for at in 0..2usize {
                        let slot = number + 2 * (2 * round + at);
                        turns.step(number, || running.free(slot, How::Set).expect("freed"));
                    }
                    turns.step(number, || {
                        if round == 1 {
                            running.abort()
                        } else {
                            running.commit()
                        }
                    })
                };
                lane.took(step);
            }
        });
    },
    ..PLAIN
};

#[test]
fn frees_of_two_threads_share_bitmap_words() {
    SHARED_SLAB.survives_on_lines();
}

/// A puddle of 2 MiB does not hold two of these.
const HALF: usize = 1_200_000;

fn large_images(mut campaign: crate::harness::Campaign) -> crate::harness::Campaign {
    campaign.used_one_in = 16;
    campaign.plan(|plan| {
        plan.points_max = Some(80);
        plan.single_units_max = 3;
        plan.random_images = 2;
    })
}

/// The pool grows inside of a transaction that then aborts, and in one that commits. Growing is durable at once and
/// keeps the puddle; the object is there after the commit only.
pub const GROWTH: Workload = Workload {
    name: "growth in a transaction",
    needs: large_images,
    run: |world| {
        world.lane().commits(|tx| tx.alloc(0, HALF, 1, How::Set));
        world.lane().aborts(|tx| {
            tx.change(0, 8, 2)?;
            tx.alloc(1, HALF, 3, How::Set)
        });
        world.lane().commits(|tx| {
            tx.change(0, 8, 4)?;
            tx.alloc(1, HALF, 5, How::Set)
        });
    },
    ..PLAIN
};

#[test]
fn a_pool_grows_inside_a_transaction() {
    GROWTH.survives_on_lines();
}

/// The last object of a puddle goes: the puddle is given back after the commit, while the logs name it no more.
pub const SHRINKING: Workload = Workload {
    name: "a puddle is given back",
    needs: |campaign| {
        let mut campaign = large_images(campaign);
        // What an open pool keeps for the next growth goes when it closes.
        campaign.record_close = true;
        campaign
    },
    before: |world| {
        world.lane().commits(|tx| {
            tx.alloc(0, HALF, 1, How::Set)?;
            tx.alloc(1, HALF, 2, How::Set)?;
            tx.alloc(2, HALF, 3, How::Set)
        });
    },
    run: |world| {
        world.lane().aborts(|tx| {
            tx.free(0, How::Set)?;
            tx.free(1, How::Set)
        });
        world.lane().commits(|tx| tx.free(0, How::Set));
        world.lane().commits(|tx| {
            tx.free(1, How::Set)?;
            tx.free(2, How::Add)
        });
        world.lane().commits(|tx| tx.alloc(3, HALF, 4, How::Set));
        let usage = world.pool.usage().expect("usage");
        assert!(usage.puddles <= 3, "puddles were given back: {usage:?}");
    },
    ..PLAIN
};

#[test]
fn an_unused_puddle_is_given_back() {
    SHRINKING.survives_on_lines();
}
