//! Large ranges that a crash may tear, which go home and not through the log on mapped memory: what `persist` makes
//! durable, and what transactions clobber.
//!
//! The crashes: while such a range is on its way; while the log has records about it, from before or since; behind an
//! abort, which has left in memory what the media never had.

use durum_persist::Site;

use crate::buffered::is_noticed;
use crate::harness::{BYTES, Campaign, Medium, PLAIN, Running, Stop, Workload, pattern};
use crate::wrap::little_log;

const SETTLE: Site = Site("shadow.torn: bring home what records may be about such a range");
const RESTORE: Site = Site("shadow.torn: take from home what an aborted transaction clobbered");

const COMMIT_FENCE: Site =
    Site("shadow.torn: fence between such ranges of a transaction and its record");
const QUEUE: Site = Site("shadow.torn: keep and log such a range where transactions are buffered");
const WORDS: Site = Site("shadow.torn: look for words that were announced in such a range");

/// Enough to bring records home for.
const LARGE: usize = 300_000;
/// Enough to go home where there are no records.
const SMALL: usize = 5_000;

fn clobber(tx: &mut Running<'_>, from: usize, tag: u64) -> Result<(), Stop> {
    tx.clobber(from, LARGE)?;
    tx.store(from, &pattern(tag, LARGE));
    Ok(())
}

/// Each way by itself: outside of a transaction, without a record, and with one.
pub const ALONE: Workload = Workload {
    name: "ranges that may be torn, and nothing else",
    needs: |campaign| little_log(campaign).plan(|plan| plan.points_max = Some(400)),
    run: |world| {
        world.lane().persists(BYTES + 3, &pattern(1, LARGE));
        world
            .lane()
            .commits(|tx| clobber(tx, BYTES + LARGE + 100, 2));
        world.lane().commits(|tx| {
            clobber(tx, BYTES + 2 * LARGE + 200, 3)?;
            tx.change(0, 40, 4)
        });
    },
    ..PLAIN
};

/// A record of a few bytes is whole by chance before its fence: what it does not hold is there before it.
pub const BESIDE: Workload = Workload {
    name: "ranges that may be torn beside a small record",
    needs: |campaign| {
        little_log(campaign).plan(|plan| {
            plan.points_max = None;
            // Behind the first range, which brings home what was logged.
            plan.from_api = 2;
        })
    },
    run: |world| {
        world.lane().persists(BYTES + 3, &pattern(1, LARGE));
        world.lane().commits(|tx| {
            let from = BYTES + 1_000;
            tx.clobber(from, SMALL)?;
            tx.store(from, &pattern(2, SMALL));
            tx.change(0, 40, 3)
        });
    },
    ..PLAIN
};

/// What an abort leaves in memory is what home will hold, also where a buffered transaction has changed it before.
pub const BUFFERED: Workload = Workload {
    name: "ranges that may be torn where a transaction is buffered",
    needs: short,
    run: |world| {
        let (from, first) = (BYTES + 1_000, pattern(1, LARGE));
        world.lane().persists(BYTES, &first);
        world.lane().buffers(|tx| tx.change(from, 40, 2));
        world.lane().aborts(|tx| {
            tx.clobber(from - 500, SMALL)?;
            tx.store(from - 500, &pattern(3, SMALL));
            Ok(())
        });
        world.lane().syncs();
        // As before the buffered one: nothing has changed if memory holds that.
        world.lane().commits(|tx| {
            tx.add(from, 40)?;
            tx.store(from, &first[1_000..1_040]);
            tx.change(0, 8, 4)
        });
    },
    ..PLAIN
};

fn short(campaign: Campaign) -> Campaign {
    little_log(campaign).plan(|plan| plan.points_max = Some(120))
}

/// Records about a part of the range come before it and behind it; its ends lie in the middle of lines.
pub const TORN: Workload = Workload {
    name: "ranges that may be torn, and records about them",
    needs: short,
    run: |world| {
        for round in 0..3u64 {
            let (tag, from) = (100 * round, BYTES + 1_003 + 70 * round as usize);
            world
                .lane()
                .commits(|tx| tx.change(from + 2_000, 9_000, tag + 1));
            world.lane().persists(from, &pattern(tag + 2, LARGE));
            // Nothing is logged now.
            world.lane().persists(from + 50, &pattern(tag + 3, SMALL));
            world.lane().commits(|tx| {
                tx.change(from + 1_000, 8, tag + 4)?;
                tx.change(from + 30_000, 700, tag + 5)
            });
            // Through the log, because of those.
            world.lane().persists(from + 900, &pattern(tag + 6, SMALL));
            world.lane().buffers(|tx| tx.change(from + 64, 40, tag + 7));
            world.lane().persists(from, &pattern(tag + 8, LARGE));
            world
                .lane()
                .commits(|tx| tx.change(from + 5_000, 12_000, tag + 9));
            let clobber = |tx: &mut Running<'_>, tag| clobber(tx, from + 21, tag);
            world.lane().commits(|tx| {
                clobber(tx, tag + 10)?;
                tx.change(round as usize * 10, 40, tag + 11)
            });
            world.lane().commits(|tx| clobber(tx, tag + 12));
            world.lane().aborts(|tx| clobber(tx, tag + 13));
            // What the aborted one has stored there: nothing has changed if memory still holds it.
            let again = pattern(tag + 13, LARGE);
            world.lane().commits(|tx| {
                tx.add(from + 10_021, 60)?;
                tx.store(from + 10_021, &again[10_000..10_060]);
                tx.change(round as usize * 10, 8, tag + 14)
            });
            // A word comes back that was announced before, whatever becomes of the bytes around it.
            world.lane().commits(|tx| {
                let word = BYTES + 40_000;
                tx.change(word, 8, tag + 17)?;
                let before = tx.undone.bytes[word..word + 8].to_vec();
                clobber(tx, tag + 18)?;
                tx.undone.write(word, &before);
                tx.change(round as usize * 10, 40, tag + 19)
            });
            world.lane().buffers(|tx| clobber(tx, tag + 15));
            world.lane().commits(|tx| tx.change(90, 8, tag + 16));
        }
    },
    ..PLAIN
};

#[test]
fn ranges_that_may_be_torn_are_whole_when_it_is_acknowledged() {
    ALONE.survives_on_lines();
    BESIDE.survives_on_lines();
    BUFFERED.survives_on_lines();
    TORN.survives_on_lines();
    // Through the log there.
    TORN.survives_on_sectors();
}

/// Beside the others. `make test` leaves them to ci/campaigns.sh.
mod canaries {
    use super::*;

    #[test]
    fn no_step_that_lets_ranges_go_home_is_redundant() {
        for (step, run) in [
            (SETTLE, &TORN),
            (RESTORE, &TORN),
            (WORDS, &TORN),
            (QUEUE, &BUFFERED),
            (COMMIT_FENCE, &BESIDE),
        ] {
            assert!(
                is_noticed(Medium::Lines, step, run),
                "nobody notices that {:?} is left out",
                step.0
            );
        }
    }
}
