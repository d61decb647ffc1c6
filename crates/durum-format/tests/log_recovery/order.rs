//! In which order entries are replayed, and which of them.

use std::cell::RefCell;
use std::convert::Infallible;

use durum_format::log::{self, EntryFlags, Order, PlanError, RangeWord};

use crate::common::LogWriter;
use crate::{FRESH, Home, REDO_A, UNDO_A, UNDO_B, no_chain, plan_of, put};

/// Two undo entries for overlapping ranges: the older one has the older bytes and must be applied last.
#[test]
fn undo_goes_backwards_and_before_everything_that_goes_forwards() {
    let mut writer = LogWriter::new(2048);
    writer.copy(Order::Forward, EntryFlags::FENCED, 1, 1, b"first forward");
    writer.copy(Order::Reverse, EntryFlags::FENCED, 1, 2, b"older");
    writer.copy(Order::Reverse, EntryFlags::FENCED, 1, 3, b"newer");
    writer.copy(Order::Forward, EntryFlags::FENCED, 1, 4, b"second forward");
    let order: Vec<u64> = plan_of(&writer, &Home::new())
        .into_iter()
        .map(|(_, target, _)| target)
        .collect();
    assert_eq!(order, [3, 2, 1, 4]);
}

#[test]
fn a_sealed_log_replays_copies_and_bits_in_the_order_written() {
    let mut writer = LogWriter::new(2048);
    writer.undo(UNDO_A, b"void");
    writer.redo(REDO_A, b"one");
    writer.bits(true, FRESH, 0xf0);
    writer.redo(REDO_A, b"two");
    writer.bits(false, FRESH, 0x0f);
    writer.seal(EntryFlags::NONE, &[]);
    assert_eq!(
        plan_of(&writer, &Home::new()),
        [
            ('c', REDO_A, b"one".to_vec()),
            ('s', FRESH, 0xf0u64.to_le_bytes().to_vec()),
            ('c', REDO_A, b"two".to_vec()),
            ('x', FRESH, 0x0fu64.to_le_bytes().to_vec()),
        ]
    );
}

#[test]
fn volatile_entries_are_replayed_by_an_abort_and_not_by_recovery() {
    let mut writer = LogWriter::new(2048);
    writer.undo(UNDO_A, b"kept");
    writer.copy(
        Order::Reverse,
        EntryFlags::VOLATILE,
        1,
        0x7fff_0000,
        b"stack",
    );
    assert_eq!(
        plan_of(&writer, &Home::new()),
        [('c', UNDO_A, b"kept".to_vec())]
    );
    let log = log::parse(writer.area(), no_chain).unwrap();
    let aborted: Vec<u64> = log.select(log.range).map(|entry| entry.target).collect();
    assert_eq!(aborted, [0x7fff_0000, UNDO_A]);
}

#[test]
fn programs_with_sequence_numbers_of_their_own_get_what_their_range_admits() {
    let mut writer = LogWriter::new(2048);
    for sequence in 1..8 {
        writer.copy(
            Order::Forward,
            EntryFlags::FENCED,
            sequence,
            u64::from(sequence),
            &[sequence],
        );
    }
    for (lo, hi) in (0..9).flat_map(|lo| (lo..9).map(move |hi| (lo, hi))) {
        writer.set_word(RangeWord {
            generation: 1,
            lo,
            hi,
        });
        let found: Vec<u64> = plan_of(&writer, &Home::new())
            .into_iter()
            .map(|(_, target, _)| target)
            .collect();
        let expected: Vec<u64> = (1..8)
            .filter(|sequence| lo < *sequence && *sequence < hi)
            .map(u64::from)
            .collect();
        assert_eq!(found, expected, "({lo},{hi})");
    }
}

#[test]
fn a_log_that_writes_where_its_client_may_not_is_refused_as_a_whole() {
    let mut writer = LogWriter::new(2048);
    writer.undo(UNDO_A, &[1; 8]);
    let (outside, _) = writer.undo(UNDO_B, &[2; 16]);
    writer.redo(REDO_A, &[3; 8]);
    let log = log::parse(writer.area(), no_chain).unwrap();
    let asked = RefCell::new(Vec::new());
    let refused = log::plan::<Infallible>(&log, false, |target, len| {
        asked.borrow_mut().push((target, len));
        target != UNDO_B
    });
    let expected = PlanError::NotGranted {
        area: 0,
        offset: outside,
        target: UNDO_B,
        len: 16,
    };
    assert_eq!(refused.unwrap_err(), expected);
    // Entries that are not replayed need no grant: a puddle may have been given back since.
    assert_eq!(asked.into_inner(), [(UNDO_B, 16)]);
    let granted = log::plan::<Infallible>(&log, false, |target, _| target != REDO_A);
    assert_eq!(granted.unwrap().writes().len(), 2);
}

#[test]
fn planning_twice_and_replaying_in_part_first_gives_the_same() {
    let mut writer = LogWriter::new(2048);
    writer.undo(UNDO_A, &[1; 8]);
    writer.undo(UNDO_A + 4, &[2; 8]);
    writer.undo(UNDO_A, &[3; 4]);
    let writes = plan_of(&writer, &Home::new());
    let apply = |home: &mut Home, writes: &[(char, u64, Vec<u8>)]| {
        for (_, target, data) in writes {
            put(home, *target, data);
        }
    };
    let mut whole = Home::new();
    apply(&mut whole, &writes);
    for crash in 0..writes.len() {
        let mut home = Home::new();
        apply(&mut home, &writes[..crash]);
        apply(&mut home, &writes);
        assert_eq!(home, whole);
    }
}
