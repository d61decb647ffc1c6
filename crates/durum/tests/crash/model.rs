//! Random and exhaustive sequences of operations against a plain model in memory.
//!
//! The crashes: all of them, in sequences that nobody thought of. What a sequence is made of follows from its seed, so
//! that a failure's seed brings the same sequence back.

use std::ops::{Range, RangeInclusive};

use crate::harness::{
    BYTES, Campaign, How, Lane, Medium, Random, Running, SLOTS, Stop, World, in_turns, pattern,
    seed,
};

/// Small ones twice, so that slabs fill up.
const SIZES: [usize; 15] = [
    8, 8, 16, 24, 24, 40, 40, 64, 72, 100, 256, 257, 600, 5000, 70_000,
];

/// What a random transaction must keep in mind, because durum refuses or defers it.
#[derive(Default)]
struct Pending {
    /// Ranges with a deferred store: no `add` there.
    sets: Vec<(usize, usize)>,
    /// Slots with a deferred store.
    slots: [bool; SLOTS],
    tag: u64,
}

impl Pending {
    fn how(&self, slot: usize, random: &mut Random) -> How {
        match self.slots[slot] || random.one_in(2) {
            true => How::Set,
            false => How::Add,
        }
    }

    fn overlaps(&self, offset: usize, len: usize) -> bool {
        self.sets
            .iter()
            .any(|(other, size)| offset < other + size && *other < offset + len)
    }
}

/// What a lane may change.
#[derive(Clone, Copy)]
struct Share {
    lane: usize,
    lanes: usize,
    /// Half of the transactions are.
    buffered: bool,
}

impl Share {
    /// Everything.
    const ALL: Share = Share {
        lane: 0,
        lanes: 1,
        buffered: false,
    };

    fn slot(self, random: &mut Random) -> usize {
        random.below(SLOTS / self.lanes) * self.lanes + self.lane
    }
}

fn range(random: &mut Random, share: Share) -> (usize, usize) {
    let len = match random.below(12) {
        0 => 1 + random.below(1500),
        1..=3 => 1 + random.below(100),
        _ => 1 + random.below(16),
    };
    // Mostly near the start, so that ranges meet.
    let room = if random.one_in(3) { BYTES } else { 1600 };
    let (room, len) = (room / share.lanes, len.min(BYTES / share.lanes));
    let from = BYTES / share.lanes * share.lane;
    (from + random.below(room.max(len + 1) - len), len)
}

/// One operation inside a transaction.
fn operation(
    tx: &mut Running<'_>,
    random: &mut Random,
    pending: &mut Pending,
    share: Share,
) -> Result<(), Stop> {
    pending.tag += 1;
    let tag = pending.tag;
    let slot = share.slot(random);
    match random.below(10) {
        0..=2 => {
            let (offset, len) = range(random, share);
            if pending.overlaps(offset, len) {
                let refused = tx.add(offset, len);
                assert!(
                    matches!(
                        refused,
                        Err(Stop::Durum(durum::Error::PendingSet { .. })) | Ok(())
                    ),
                    "{refused:?}"
                );
                return Ok(());
            }
            tx.change(offset, len, tag)
        }
        3 | 4 => {
            let (offset, len) = range(random, share);
            pending.sets.push((offset, len));
            tx.set(offset, len, tag)
        }
        5 => {
            let (offset, len) = range(random, share);
            // Not where old bytes are to come back, nor where a `set` waits.
            if pending.overlaps(offset, len) {
                return Ok(());
            }
            tx.clobber(offset, len)?;
            tx.store(offset, &pattern(tag, len));
            Ok(())
        }
        6 if random.one_in(2) => tx.alloc_and_free(random.pick(&SIZES)),
        _ => {
            let how = pending.how(slot, random);
            if tx.next.slots[slot].is_none() {
                let size = random.pick(&SIZES);
                pending.slots[slot] |= how == How::Set;
                tx.alloc(slot, size, tag, how)
            } else if random.one_in(3) && !pending.slots[slot] {
                tx.refill(slot, tag)
            } else {
                pending.slots[slot] |= how == How::Set;
                tx.free(slot, how)
            }
        }
    }
}

fn operations(
    tx: &mut Running<'_>,
    random: &mut Random,
    tag: u64,
    share: Share,
) -> Result<(), Stop> {
    let mut pending = Pending {
        tag,
        ..Pending::default()
    };
    for _ in 0..1 + random.below(6) {
        if random.one_in(8) {
            let pool = tx.pool;
            pool.transaction(|_| operation(tx, random, &mut pending, share))?;
        } else {
            operation(tx, random, &mut pending, share)?;
        }
    }
    Ok(())
}

/// Runs transactions with the numbers in `which`; what each does follows from seed and number.
fn transactions(lane: &mut Lane, seed: u64, which: Range<u64>, share: Share) {
    for number in which {
        let mut random = Random::new(seed ^ number.wrapping_mul(0x9e37_79b9));
        // A byte that an aborted clobber left must not be relied on by later ones: nothing reads it, so nothing to do.
        let tag = (number + 1) * 1000;
        match random.below(10) {
            0 | 1 => lane.aborts(|tx| operations(tx, &mut random, tag, share)),
            2 => lane.panics(|tx| operations(tx, &mut random, tag, share)),
            3 if share.buffered && random.one_in(3) => lane.syncs(),
            _ if share.buffered && random.one_in(2) => {
                lane.buffers(|tx| operations(tx, &mut random, tag, share))
            }
            _ => lane.commits(|tx| operations(tx, &mut random, tag, share)),
        }
    }
}

struct Scale {
    before: u64,
    recorded: u64,
    points: Option<usize>,
    nested_one_in: u32,
    share: Share,
    /// On Shadow, every private page is given back after each transaction.
    gives_back: bool,
}

fn random_run(medium: Medium, seed: u64, scale: &Scale) {
    let mut campaign = match medium {
        Medium::Lines => Campaign::lines("random transactions"),
        Medium::Sectors => Campaign::sectors("random transactions"),
    };
    campaign.used_one_in = 10;
    if scale.gives_back {
        campaign.engine = durum::Engine::Shadow;
        campaign.private_max = 0;
    }
    let campaign = campaign.plan(|plan| {
        plan.seed = seed;
        plan.points_max = scale.points;
        plan.single_units_max = 3;
        plan.random_images = 2;
        plan.nested_one_in = scale.nested_one_in;
        plan.nested_points_max = Some(6);
    });
    println!("seed of the transactions: {seed}");
    let ends = scale.before + scale.recorded;
    campaign
        .record_after(
            |world: &mut World| transactions(world.lane(), seed, 0..scale.before, scale.share),
            |world| transactions(world.lane(), seed, scale.before..ends, scale.share),
        )
        .survives();
}

/// Threads that run as the scheduler likes, each with bytes and slots of its own. Slabs, puddles, bitmap words and the
/// lines at the borders are everybody's.
fn concurrent_run(medium: Medium, seed: u64, recorded: u64, points: Option<usize>, buffered: bool) {
    const LANES: usize = 4;
    let mut campaign = match medium {
        Medium::Lines => Campaign::lines("random transactions of four threads"),
        Medium::Sectors => Campaign::sectors("random transactions of four threads"),
    };
    campaign.lanes = LANES;
    campaign.used_one_in = 10;
    campaign.owners.bytes = |offset| offset / (BYTES / LANES);
    campaign.owners.slots = |slot| slot % LANES;
    println!("seed of the transactions: {seed}; their order is the scheduler's");
    campaign
        .plan(|plan| {
            plan.seed = seed;
            plan.points_max = points;
            plan.single_units_max = 3;
            plan.random_images = 2;
            plan.nested_one_in = 100;
            plan.nested_points_max = Some(6);
        })
        .record(|world| {
            if seed % 2 == 1 {
                // Where they would be given up.
                world.store.order_by_owner();
            }
            in_turns(world, &[], |lane, number, _| {
                let share = Share {
                    lane: number,
                    lanes: LANES,
                    buffered,
                };
                // Tags differ from lane to lane.
                let first = 1_000_000 * (number as u64 + 1);
                transactions(lane, seed, first..first + recorded, share);
            });
        })
        .survives();
}

#[test]
fn random_transactions_of_four_threads_equal_their_models() {
    for round in 0..2 {
        concurrent_run(Medium::Lines, seed(0x4_0000) + round, 12, Some(80), false);
        concurrent_run(Medium::Sectors, seed(0x4_f000) + round, 12, Some(40), false);
    }
}

#[test]
fn buffered_transactions_of_four_threads_equal_their_models() {
    for round in 0..2 {
        concurrent_run(Medium::Lines, seed(0xb4_0000) + round, 16, Some(80), true);
        concurrent_run(Medium::Sectors, seed(0xb4_f000) + round, 16, Some(40), true);
    }
}

#[test]
fn random_buffered_transactions_equal_the_model() {
    let scale = Scale {
        recorded: 20,
        share: Share {
            buffered: true,
            ..Share::ALL
        },
        ..SHORT
    };
    for round in 0..2 {
        random_run(Medium::Lines, seed(0xb0ff_ba11) + round, &scale);
        random_run(Medium::Sectors, seed(0xb0ff_f11e) + round, &scale);
    }
}

#[test]
fn random_transactions_equal_the_model_while_pages_are_given_back() {
    if crate::support::engine() != durum::Engine::Shadow {
        // All tests run once more on another engine; this one has its own.
        return;
    }
    let share = Share {
        buffered: true,
        ..Share::ALL
    };
    for (round, share) in (0..).zip([Share::ALL, share]) {
        let scale = Scale {
            before: 500,
            recorded: 20,
            points: Some(25),
            share,
            gives_back: true,
            ..SHORT
        };
        random_run(Medium::Lines, seed(0x91_7eba_c300) + round, &scale);
        random_run(Medium::Sectors, seed(0x91_7eba_c3f0) + round, &scale);
    }
}

#[test]
#[ignore = "a campaign of some ten minutes: threads that run freely, from many seeds"]
fn campaign_of_four_threads() {
    for round in 0..30 {
        for medium in [Medium::Lines, Medium::Sectors] {
            concurrent_run(
                medium,
                seed(0x4_ca00_0000) + round,
                40,
                Some(250),
                round % 2 == 1,
            );
        }
    }
}

/// Some thousand operations go before the crash: slabs are partly filled, puddles came and went.
const SHORT: Scale = Scale {
    before: 1500,
    recorded: 12,
    points: Some(60),
    nested_one_in: 100,
    share: Share::ALL,
    gives_back: false,
};

#[test]
fn random_transactions_equal_the_model_on_mapped_memory() {
    for round in 0..3 {
        random_run(Medium::Lines, seed(0x0dd_ba11) + round, &SHORT);
    }
}

#[test]
fn random_transactions_equal_the_model_on_a_file_system() {
    for round in 0..3 {
        random_run(Medium::Sectors, seed(0xf11e_ba11) + round, &SHORT);
    }
}

#[test]
#[ignore = "a campaign of some ten minutes: random transactions from many seeds"]
fn campaign_of_random_transactions() {
    let scale = Scale {
        before: 4000,
        recorded: 25,
        points: Some(300),
        nested_one_in: 40,
        share: Share::ALL,
        gives_back: false,
    };
    for round in 0..30 {
        for medium in [Medium::Lines, Medium::Sectors] {
            random_run(medium, seed(0xca_4a16_0000) + round, &scale);
        }
    }
}

/// Without crashes in between: the model holds over a long time, and the allocator neither leaks nor grows without
/// bound.
#[test]
fn ten_thousand_random_transactions_leave_what_the_model_says() {
    let seed = seed(0x10_000);
    println!("seed of the transactions: {seed}");
    let campaign =
        Campaign::lines("ten thousand transactions").plan(|plan| plan.points_max = Some(1));
    let report = campaign
        .record_after(
            |world| {
                transactions(world.lane(), seed, 0..10_000, Share::ALL);
                let usage = world.pool.usage().expect("usage");
                // 24 slots of at most 70 KB each.
                assert!(usage.puddles <= 4, "{usage:?}");
            },
            |world| world.lane().commits(|tx| tx.change(0, 1, 1)),
        )
        .survives();
    assert!(report.images > 0);
}

/// The alphabet of the exhaustive sequences. Operations that need an object take the first slot of their kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Letter {
    Add,
    AddStreamed,
    Clobber,
    Set,
    AllocElement,
    AllocExtent,
    FreeElement,
    FreeExtent,
    AllocAndFree,
    Refill,
    Nested,
}

const ALPHABET: [Letter; 11] = [
    Letter::Add,
    Letter::AddStreamed,
    Letter::Clobber,
    Letter::Set,
    Letter::AllocElement,
    Letter::AllocExtent,
    Letter::FreeElement,
    Letter::FreeExtent,
    Letter::AllocAndFree,
    Letter::Refill,
    Letter::Nested,
];

const ELEMENT: usize = 40;
const EXTENT: usize = 300;
/// Bytes of the large object that some sequences have.
const CLOBBERED: usize = 4096;

fn apply(tx: &mut Running<'_>, letter: Letter, at: usize, tag: u64) -> Result<(), Stop> {
    let find = |tx: &Running<'_>, size: Option<usize>| {
        (0..SLOTS).find(|slot| tx.next.slots[*slot].map(|blob| blob.size) == size)
    };
    // `set` on a range makes a later `add` of it an error, which is an answer too, and changes nothing.
    let unless_pending = |result: Result<(), Stop>| match result {
        Err(Stop::Durum(durum::Error::PendingSet { .. })) => Ok(()),
        other => other,
    };
    match letter {
        Letter::Add => unless_pending(tx.change(20 + at, 30, tag)),
        Letter::AddStreamed => unless_pending(tx.change(8 + at, 700, tag)),
        Letter::Clobber => {
            // Where there is room, enough that an engine may keep nothing of it.
            let (from, len) = match tx.next.bytes.len() > BYTES {
                true => (BYTES, CLOBBERED),
                false => (1000, 100),
            };
            tx.clobber(from, len)?;
            tx.store(from, &pattern(tag, len));
            Ok(())
        }
        Letter::Set => tx.set(35 + at, 20, tag),
        Letter::AllocElement => match find(tx, None) {
            Some(slot) => tx.alloc(slot, ELEMENT, tag, How::Set),
            None => Ok(()),
        },
        Letter::AllocExtent => match find(tx, None) {
            Some(slot) => tx.alloc(slot, EXTENT, tag, How::Set),
            None => Ok(()),
        },
        Letter::FreeElement => match find(tx, Some(ELEMENT)) {
            Some(slot) => tx.free(slot, How::Set),
            None => Ok(()),
        },
        Letter::FreeExtent => match find(tx, Some(EXTENT)) {
            Some(slot) => tx.free(slot, How::Set),
            None => Ok(()),
        },
        Letter::AllocAndFree => tx.alloc_and_free(if at.is_multiple_of(2) {
            ELEMENT
        } else {
            EXTENT
        }),
        Letter::Refill => match find(tx, Some(ELEMENT)) {
            Some(slot) if !tx.slot_is_pending(slot) => tx.refill(slot, tag),
            _ => Ok(()),
        },
        Letter::Nested => {
            let pool = tx.pool;
            pool.transaction(|_| unless_pending(tx.change(2000 + at, 10, tag)))
        }
    }
}

/// All sequences of `length` letters.
fn sequences(length: usize) -> Vec<Vec<Letter>> {
    let mut all = vec![Vec::new()];
    for _ in 0..length {
        all = all
            .iter()
            .flat_map(|sequence| {
                ALPHABET.iter().map(move |letter| {
                    let mut longer: Vec<Letter> = sequence.clone();
                    longer.push(*letter);
                    longer
                })
            })
            .collect();
    }
    all
}

/// Runs each sequence as a transaction that commits, and as one that aborts, and crashes all of them.
fn exhaust(medium: Medium, lengths: RangeInclusive<usize>, points_max: Option<usize>) {
    let all: Vec<Vec<Letter>> = lengths.flat_map(sequences).collect();
    for (chunk, some) in all.chunks(44).enumerate() {
        let mut campaign = match medium {
            Medium::Lines => Campaign::lines("sequences"),
            Medium::Sectors => Campaign::sectors("sequences"),
        };
        campaign.used_one_in = 50;
        campaign.large_size = CLOBBERED * (chunk % 2);
        campaign
            .plan(|plan| {
                plan.points_max = points_max;
                plan.random_images = 1;
                plan.single_units_max = 1;
                plan.exhaustive_max = 6;
                plan.nested_one_in = 400;
                plan.nested_points_max = Some(4);
            })
            .record_after(
                |world| {
                    world.lane().commits(|tx| {
                        (0..8).try_for_each(|slot| {
                            let size = if slot % 2 == 0 { ELEMENT } else { EXTENT };
                            tx.alloc(slot, size, 1 + slot as u64, How::Set)
                        })
                    });
                },
                |world| {
                    let mut tag = 100 * (chunk as u64 + 1) * 1000;
                    for sequence in some {
                        for commits in [false, true] {
                            let body = |tx: &mut Running<'_>| {
                                sequence.iter().enumerate().try_for_each(|(at, letter)| {
                                    tag += 1;
                                    apply(tx, *letter, at, tag)
                                })
                            };
                            match commits {
                                true => world.lane().commits(body),
                                false => world.lane().aborts(body),
                            }
                        }
                    }
                    let uncertain = world.lane().state.uncertain();
                    assert!(
                        uncertain <= CLOBBERED,
                        "only the clobbered range is uncertain"
                    );
                },
            )
            .survives();
    }
}

#[test]
fn all_sequences_of_two_operations_survive_on_mapped_memory() {
    exhaust(Medium::Lines, 1..=2, Some(450));
}

#[test]
fn all_sequences_of_two_operations_survive_on_a_file_system() {
    exhaust(Medium::Sectors, 1..=2, Some(250));
}

#[test]
fn all_sequences_of_three_operations_survive_at_some_of_their_crash_points() {
    exhaust(Medium::Lines, 3..=3, Some(40));
}

#[test]
#[ignore = "a campaign of an hour: all sequences of up to three operations at every crash point"]
fn campaign_of_all_sequences() {
    for medium in [Medium::Lines, Medium::Sectors] {
        exhaust(medium, 1..=3, None);
    }
}
