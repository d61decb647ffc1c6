//! What recovery does: the decision table tried exhaustively, the order of replay, seals, grants, chains.

mod common;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;

use common::{LogWriter, uuid};
use durum_format::crc::Crc;
use durum_format::home::Answer;
use durum_format::log::{
    self, Damage, EntryFlags, LogArea, Order, ParseError, ParsedLog, Plan, PlanError, RangeWord,
    Write,
};

fn no_chain<'a>(_: u64) -> Result<LogArea<'a>, Infallible> {
    panic!("the log has no chain")
}

/// Home memory, byte by byte.
type Home = BTreeMap<u64, u8>;

fn append(home: &Home, target: u64, len: u64, crc: &mut Crc) -> Result<Answer, Infallible> {
    for address in target..target + len {
        crc.update(&[home.get(&address).copied().unwrap_or(0)]);
    }
    Ok(Answer::Seen)
}

/// What is done with a log whose home is there.
fn plan<'a>(log: &ParsedLog<'a>, home: &Home) -> Plan<'a> {
    let sealed = log::sealed(log, |at, len, crc| append(home, at, len, crc)).unwrap();
    log::plan::<Infallible>(log, sealed.unwrap(), |_, _| true).unwrap()
}

fn put(home: &mut Home, target: u64, data: &[u8]) {
    home.extend((target..).zip(data.iter().copied()));
}

const UNDO_A: u64 = 0x2000_4000_1000;
const UNDO_B: u64 = 0x2000_4000_2000;
const REDO_A: u64 = 0x2000_4000_3000;
const REDO_B: u64 = 0x2000_4000_4000;
const FRESH: u64 = 0x2000_4000_5000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Word {
    Never,
    Undo,
    Redo,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Seal {
    /// There is none: the transaction was not that far, or has no use for one.
    Absent,
    /// A tear in it.
    Torn,
    /// It is whole, and the fresh range holds what it says.
    Matches,
    /// It is whole, and the fresh range does not.
    Differs,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Nothing,
    RollBack,
    RollForward,
}

/// One row: which logs it is about (an empty list: any), what recovery does with undo and redo entries, and why.
struct Row {
    words: &'static [Word],
    seals: &'static [Seal],
    /// Whether there are undo entries; `None` for either.
    undo: Option<bool>,
    redo: Option<bool>,
    outcome: Outcome,
    why: &'static str,
}

const ROWS: [Row; 9] = [
    Row {
        words: &[Word::Never],
        seals: &[],
        undo: None,
        redo: None,
        outcome: Outcome::Nothing,
        why: "Before the first word no entry is valid: what looks like one is of generation 0, which no log has.",
    },
    Row {
        words: &[Word::Undo, Word::Redo, Word::None],
        seals: &[Seal::Matches],
        undo: None,
        redo: Some(true),
        outcome: Outcome::RollForward,
        why: "The seal vouches for all entries, and the fresh ranges are durable: commit may have returned. Home may \
              hold some of the redo data and not the rest. The word does not matter: it moves on only after home is \
              durable, and then there is no entry of its generation.",
    },
    Row {
        words: &[Word::Undo, Word::Redo, Word::None],
        seals: &[Seal::Matches],
        undo: None,
        redo: Some(false),
        outcome: Outcome::Nothing,
        why: "As above, but nothing was deferred: all the data was durable before the seal was, and the undo entries are \
              void.",
    },
    Row {
        words: &[Word::Undo],
        seals: &[Seal::Absent, Seal::Torn, Seal::Differs],
        undo: Some(true),
        redo: None,
        outcome: Outcome::RollBack,
        why: "No valid seal: commit cannot have returned. The places that undo entries name may hold new data. Redo data \
              is in the log only.",
    },
    Row {
        words: &[Word::Undo],
        seals: &[Seal::Absent, Seal::Torn, Seal::Differs],
        undo: Some(false),
        redo: None,
        outcome: Outcome::Nothing,
        why: "No valid seal, and nothing changed at home: redo data is in the log only, and fresh ranges are not \
              allocated on the media.",
    },
    Row {
        words: &[Word::Redo],
        seals: &[Seal::Absent, Seal::Torn, Seal::Differs],
        undo: None,
        redo: Some(true),
        outcome: Outcome::RollForward,
        why: "A program that uses ranges of its own moved the word to (2,4), after its entries were durable: the word is \
              its commit.",
    },
    Row {
        words: &[Word::Redo],
        seals: &[Seal::Absent, Seal::Torn, Seal::Differs],
        undo: None,
        redo: Some(false),
        outcome: Outcome::Nothing,
        why: "The same, and it deferred nothing.",
    },
    Row {
        words: &[Word::None],
        seals: &[Seal::Absent, Seal::Torn, Seal::Differs],
        undo: None,
        redo: Some(true),
        outcome: Outcome::Nothing,
        why: "The word says that all is done.",
    },
    Row {
        words: &[Word::None],
        seals: &[Seal::Absent, Seal::Torn, Seal::Differs],
        undo: None,
        redo: Some(false),
        outcome: Outcome::Nothing,
        why: "The word says that all is done.",
    },
];

#[test]
fn exactly_one_row_decides_each_log_and_recovery_does_what_it_says() {
    let mut used = [false; ROWS.len()];
    for word in [Word::Never, Word::Undo, Word::Redo, Word::None] {
        for seal in [Seal::Absent, Seal::Torn, Seal::Matches, Seal::Differs] {
            for undo in 0..3 {
                for redo in 0..3 {
                    let rows: Vec<usize> = (0..ROWS.len())
                        .filter(|&row| {
                            let row = &ROWS[row];
                            (row.words.is_empty() || row.words.contains(&word))
                                && (row.seals.is_empty() || row.seals.contains(&seal))
                                && row.undo.is_none_or(|has| has == (undo > 0))
                                && row.redo.is_none_or(|has| has == (redo > 0))
                        })
                        .collect();
                    let [row] = rows[..] else {
                        panic!("{word:?} {seal:?} {undo} {redo}: rows {rows:?}")
                    };
                    used[row] = true;
                    let (outcome, why) = (ROWS[row].outcome, ROWS[row].why);
                    assert_eq!(
                        recover(word, seal, undo, redo),
                        outcome,
                        "{word:?} {seal:?} {undo} {redo}: {why}"
                    );
                }
            }
        }
    }
    assert_eq!(used, [true; ROWS.len()], "each row decides something");
}

/// Writes such a log, asks for its plan, and checks that the plan's writes are the right ones.
fn recover(word: Word, seal: Seal, undo: usize, redo: usize) -> Outcome {
    // In generation 0 nothing may be found, whatever the bytes are.
    let generation = if word == Word::Never { 0 } else { 21 };
    let mut writer = LogWriter::at_generation(2048, 21);
    if word == Word::Never {
        writer = LogWriter {
            heap: common::empty_heap(2048, false),
            generation: 0,
            at: 0,
            count: 0,
        };
    }
    let mut home = Home::new();
    let undo_entries = [(UNDO_A, [1; 8]), (UNDO_B, [2; 8])];
    let redo_entries = [(REDO_A, [3; 8]), (REDO_B, [4; 8])];
    for (target, data) in &undo_entries[..undo] {
        let flags = if word == Word::Never {
            EntryFlags::NONE
        } else {
            EntryFlags::FENCED
        };
        writer.copy(Order::Reverse, flags, 1, *target, data);
    }
    for (target, data) in &redo_entries[..redo] {
        writer.redo(*target, data);
    }
    if seal != Seal::Absent {
        let (_, end) = writer.seal(EntryFlags::NONE, &[(FRESH, &[9; 16])]);
        if seal == Seal::Torn {
            writer.entries()[end - 16..end - 8].fill(0);
        }
        if seal == Seal::Matches {
            put(&mut home, FRESH, &[9; 16]);
        }
    }
    writer.set_word(match word {
        Word::Never => RangeWord::NEVER,
        Word::Undo => RangeWord::undo(generation),
        Word::Redo => RangeWord::redo(generation),
        Word::None => RangeWord::none(generation),
    });
    let log = log::parse(writer.area(), no_chain).unwrap();
    let plan = plan(&log, &home);
    let copies = |entries: &[(u64, [u8; 8])]| -> Vec<(u64, Vec<u8>)> {
        entries
            .iter()
            .map(|(target, data)| (*target, data.to_vec()))
            .collect()
    };
    let writes: Vec<(u64, Vec<u8>)> = plan
        .writes()
        .iter()
        .map(|write| match write {
            Write::Copy { target, data } => (*target, data.to_vec()),
            other => panic!("{other:?}"),
        })
        .collect();
    match plan {
        Plan::Nothing => {
            assert!(writes.is_empty());
            Outcome::Nothing
        }
        Plan::RollBack(_) => {
            assert_eq!(
                writes,
                copies(&undo_entries[..undo])
                    .into_iter()
                    .rev()
                    .collect::<Vec<_>>()
            );
            Outcome::RollBack
        }
        Plan::RollForward(_) => {
            assert_eq!(writes, copies(&redo_entries[..redo]));
            Outcome::RollForward
        }
    }
}

fn plan_of(writer: &LogWriter, home: &Home) -> Vec<(char, u64, Vec<u8>)> {
    let log = log::parse(writer.area(), no_chain).unwrap();
    let plan = plan(&log, home);
    plan.writes()
        .iter()
        .map(|write| match *write {
            Write::Copy { target, data } => ('c', target, data.to_vec()),
            Write::SetBits { target, mask } => ('s', target, mask.to_le_bytes().to_vec()),
            Write::ClearBits { target, mask } => ('x', target, mask.to_le_bytes().to_vec()),
        })
        .collect()
}

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

/// A seal is as good as the memory it vouches for: any byte of it changed, and the transaction has not committed.
#[test]
fn a_seal_over_memory_that_differs_in_any_byte_does_not_commit() {
    let mut writer = LogWriter::new(2048);
    writer.redo(REDO_A, b"deferred");
    let (first, second) = ([5u8; 24], [6u8; 9]);
    writer.seal(EntryFlags::NONE, &[(FRESH, &first), (FRESH + 512, &second)]);
    let mut home = Home::new();
    put(&mut home, FRESH, &first);
    put(&mut home, FRESH + 512, &second);
    assert_eq!(plan_of(&writer, &home).len(), 1);
    for address in home.keys().copied().collect::<Vec<_>>() {
        let mut changed = home.clone();
        *changed.get_mut(&address).unwrap() ^= 0x10;
        assert!(plan_of(&writer, &changed).is_empty(), "{address:#x}");
    }
}

/// The contents' checksum carries log id and generation: memory that still matches an older seal proves nothing.
#[test]
fn a_seal_vouches_in_its_own_generation_only() {
    let sealed = |generation| {
        let mut writer = LogWriter::at_generation(2048, generation);
        writer.seal(EntryFlags::NONE, &[(FRESH, &[5; 8])]);
        let log = log::parse(writer.area(), no_chain).unwrap();
        log.seal.unwrap().contents
    };
    assert_ne!(sealed(21), sealed(22));
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
fn a_seal_over_memory_that_cannot_be_read_is_an_error_and_no_decision() {
    let mut writer = LogWriter::new(2048);
    writer.seal(EntryFlags::NONE, &[(FRESH, &[5; 8])]);
    let log = log::parse(writer.area(), no_chain).unwrap();
    let refused = log::sealed(&log, |_, _, _| Err("no such puddle"));
    assert_eq!(
        refused.unwrap_err(),
        PlanError::Contents {
            target: FRESH,
            len: 8,
            source: "no such puddle"
        }
    );
}

#[test]
fn a_seal_over_memory_that_comes_later_waits_and_one_over_what_was_given_up_does_not_hold() {
    let mut home = Home::new();
    put(&mut home, FRESH, &[5; 8]);
    put(&mut home, FRESH + 64, &[6; 8]);
    let mut writer = LogWriter::new(2048);
    writer.seal(EntryFlags::NONE, &[(FRESH, &[5; 8]), (FRESH + 64, &[6; 8])]);
    let log = log::parse(writer.area(), no_chain).unwrap();
    for at in [FRESH, FRESH + 64] {
        for (answer, expected) in [
            (Answer::Seen, Some(true)),
            (Answer::Waits, None),
            (Answer::GivenUp, Some(false)),
        ] {
            let found = log::sealed(&log, |target, len, crc| match target == at {
                true if answer != Answer::Seen => Ok(answer),
                _ => append(&home, target, len, crc),
            });
            assert_eq!(found.unwrap(), expected, "{answer:?} at {at:#x}");
        }
    }
    // Of two, what is given up decides: what waits would not change it.
    let mixed = log::sealed(&log, |target, _, _| -> Result<_, Infallible> {
        Ok(match target == FRESH {
            true => Answer::Waits,
            false => Answer::GivenUp,
        })
    });
    assert_eq!(mixed.unwrap(), Some(false));
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

/// A log over three puddles is one log: order, count and seal go across.
#[test]
fn a_chained_log_is_read_as_one() {
    let mut head = LogWriter::new(256);
    head.undo(UNDO_A, &[1; 8]);
    head.chain(0x4000_0000);
    let mut middle = head.continuation(256);
    middle.undo(UNDO_B, &[2; 8]);
    middle.chain(0x6000_0000);
    let mut last = middle.continuation(256);
    last.redo(REDO_A, &[3; 8]);
    last.seal(EntryFlags::NONE, &[]);
    let chain = |address| -> Result<LogArea<'_>, &str> {
        match address {
            0x4000_0000 => Ok(middle.area()),
            0x6000_0000 => Ok(last.area()),
            _ => Err("no such puddle"),
        }
    };
    let log = log::parse(head.area(), chain).unwrap();
    assert_eq!(log.chain, [0x4000_0000, 0x6000_0000]);
    let places: Vec<_> = log
        .entries
        .iter()
        .map(|entry| (entry.area, entry.offset))
        .collect();
    assert_eq!(places, [(0, 0), (0, 64), (1, 0), (1, 64), (2, 0), (2, 32)]);
    let found = plan(&log, &Home::new());
    assert_eq!(
        found,
        Plan::RollForward(vec![Write::Copy {
            target: REDO_A,
            data: &[3; 8]
        }])
    );

    // Before the seal was durable the same log rolls back, across puddles.
    let mut unsealed = last.clone();
    let end = unsealed.at;
    unsealed.entries()[32..end].fill(0);
    let log = log::parse(head.area(), |address| -> Result<_, Infallible> {
        Ok(if address == 0x4000_0000 {
            middle.area()
        } else {
            unsealed.area()
        })
    })
    .unwrap();
    let found = plan(&log, &Home::new());
    let targets: Vec<u64> = found.writes().iter().map(|write| write.range().0).collect();
    assert_eq!(targets, [UNDO_B, UNDO_A]);
}

#[test]
fn chains_that_loop_lead_nowhere_or_to_other_logs_are_refused() {
    let mut head = LogWriter::new(256);
    head.chain(0x4000_0000);
    let mut looping = head.continuation(256);
    looping.chain(0x4000_0000);
    let asked = RefCell::new(0);
    let refused = log::parse(head.area(), |_| {
        *asked.borrow_mut() += 1;
        Ok::<_, Infallible>(looping.area())
    })
    .unwrap_err();
    assert_eq!(asked.into_inner(), 1, "a puddle is read once");
    assert_eq!(
        refused,
        ParseError::Damage(Damage::ChainLoop {
            address: 0x4000_0000
        })
    );

    let refused =
        log::parse(head.area(), |_| -> Result<LogArea<'_>, _> { Err("gone") }).unwrap_err();
    assert_eq!(
        refused,
        ParseError::Chain {
            address: 0x4000_0000,
            source: "gone"
        }
    );

    let refused = log::parse(head.area(), |_| Ok::<_, Infallible>(head.area())).unwrap_err();
    assert!(matches!(
        refused,
        ParseError::Damage(Damage::ForeignChain { .. })
    ));

    let other = durum_format::log::LogHeader {
        log_id: 5,
        capacity: 256,
        owner: uuid(0x20),
        is_continuation: true,
    };
    let mut foreign = head.continuation(256);
    foreign.heap[..64].copy_from_slice(&other.encode());
    let refused = log::parse(head.area(), |_| Ok::<_, Infallible>(foreign.area())).unwrap_err();
    assert!(matches!(
        refused,
        ParseError::Damage(Damage::ForeignChain { found: 5, .. })
    ));
}

/// The chain entry itself was durable and is damaged: nothing behind it in its puddle says so, the unreached puddle
/// does.
#[test]
fn a_damaged_chain_entry_is_found_by_the_puddle_that_it_led_to() {
    let mut head = LogWriter::new(256);
    head.undo(UNDO_A, &[1; 8]);
    let (chain, _) = head.chain(0x4000_0000);
    let mut next = head.continuation(256);
    let before = log::parse(head.area(), |_| Ok::<_, Infallible>(next.area())).unwrap();
    assert_eq!(before.end, (1, 0));
    next.undo(UNDO_B, &[2; 8]);
    head.entries()[chain] ^= 1;
    let log = log::parse(head.area(), no_chain).unwrap();
    assert_eq!(log.entries.len(), 1);
    assert_eq!(
        log.check_unreached(&next.area()),
        Err(Damage::LostEntry {
            area: 1,
            stop: 0,
            found: 0
        })
    );
    // A spare puddle with entries of older generations is no sign of damage.
    let mut older = LogWriter {
        generation: 0,
        ..next.clone()
    };
    older.at = 0;
    older.heap[2048..].fill(0);
    older.undo(UNDO_B, &[2; 8]);
    assert_eq!(log.check_unreached(&older.area()), Ok(()));
}
