//! What is done with a log as a table, with the reason of each row: every log is tried.

use durum_format::log::{self, EntryFlags, Order, Plan, RangeWord, Write};

use crate::common::LogWriter;
use crate::{FRESH, Home, REDO_A, REDO_B, UNDO_A, UNDO_B, common, no_chain, plan, put};

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
