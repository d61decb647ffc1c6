//! Random logs, torn as a crash tears them and damaged as no crash does.
//!
//! The fault model: a crash may leave any 8-byte word, written since the last fence, old or new. What was fenced stays.
//! Damage changes anything.

mod common;

use std::convert::Infallible;

use common::LogWriter;
use durum_format::log::{
    self, Damage, EntryFlags, LogArea, Order, ParseError, ParsedLog, RangeWord,
};
use proptest::prelude::*;

const CAPACITY: usize = 4096;

fn parse(writer: &LogWriter) -> Result<ParsedLog<'_>, Damage> {
    match log::parse(writer.area(), |_| -> Result<LogArea<'_>, Infallible> {
        panic!("no log here has a chain")
    }) {
        Ok(log) => Ok(log),
        Err(ParseError::Damage(damage)) => Err(damage),
        Err(ParseError::Chain { .. }) => unreachable!(),
    }
}

/// One transaction: undo entries with a fence each, then maybe a batch of redo entries with a seal, fenced together.
#[derive(Clone, Debug)]
struct Transaction {
    undo: Vec<(u64, Vec<u8>)>,
    redo: Vec<(u64, Vec<u8>)>,
    sealed: bool,
}

fn entry() -> impl Strategy<Value = (u64, Vec<u8>)> {
    let target = (0..1u64 << 20).prop_map(|word| 0x2000_4000_0000 + word * 8);
    (target, prop::collection::vec(any::<u8>(), 1..90))
}

fn transaction() -> impl Strategy<Value = Transaction> {
    let entries = || prop::collection::vec(entry(), 0..8);
    (entries(), entries(), any::<bool>()).prop_map(|(undo, redo, sealed)| Transaction {
        undo,
        redo,
        sealed,
    })
}

/// Everything written, in order, with the state of the memory at each fence.
struct Run {
    writer: LogWriter,
    /// Memory and number of whole entries after each fence of the last transaction.
    fences: Vec<(Vec<u8>, usize)>,
    /// Where each fenced undo entry of the last transaction lies: header and data, without padding.
    undo: Vec<(usize, usize)>,
}

fn run(earlier: &[Transaction], last: &Transaction) -> Run {
    let mut writer = LogWriter::new(CAPACITY);
    let mut fences = Vec::new();
    let mut undo = Vec::new();
    for (index, transaction) in earlier.iter().chain([last]).enumerate() {
        let is_last = index == earlier.len();
        if is_last {
            fences.push((writer.heap.clone(), 0));
        }
        for (count, (target, data)) in (1..).zip(&transaction.undo) {
            let (start, _) = writer.undo(*target, data);
            if is_last {
                undo.push((start, start + 24 + data.len()));
                fences.push((writer.heap.clone(), count));
            }
        }
        for (target, data) in &transaction.redo {
            writer.redo(*target, data);
        }
        if transaction.sealed {
            writer.seal(EntryFlags::NONE, &[]);
        }
        if is_last {
            let count =
                transaction.undo.len() + transaction.redo.len() + usize::from(transaction.sealed);
            fences.push((writer.heap.clone(), count));
        } else {
            writer.next(RangeWord::undo(writer.generation + 1));
        }
    }
    Run {
        writer,
        fences,
        undo,
    }
}

/// Some words of `new`, the others of `old`.
fn tear(old: &[u8], new: &[u8], mut pick: impl FnMut() -> bool) -> Vec<u8> {
    let mut torn = old.to_vec();
    for (place, word) in torn.chunks_mut(8).zip(new.chunks(8)) {
        if place != word && pick() {
            place.copy_from_slice(word);
        }
    }
    torn
}

fn xorshift(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Whatever a crash leaves of the writes since the last fence: reading stops cleanly, gives at least what was
    /// fenced and nothing that was not written in this generation, in order.
    #[test]
    fn a_torn_tail_is_no_damage_and_costs_no_fenced_entry(
        earlier in prop::collection::vec(transaction(), 0..4), last in transaction(), at: prop::sample::Index, seed in 1..u64::MAX,
    ) {
        let Run { mut writer, fences, .. } = run(&earlier, &last);
        let next = at.index(fences.len() - 1) + 1;
        let (old, fenced) = &fences[next - 1];
        let (new, whole) = &fences[next];
        let mut state = seed;
        let mut choices: Vec<Vec<u8>> = vec![old.clone(), new.clone()];
        for density in [2, 2, 2, 8, 8] {
            choices.push(tear(old, new, || xorshift(&mut state).is_multiple_of(density)));
            choices.push(tear(old, new, || !xorshift(&mut state).is_multiple_of(density)));
        }
        let expected: Vec<(u64, Vec<u8>)> = last.undo.iter().chain(&last.redo).cloned().collect();
        for heap in choices {
            let is_new = heap == *new;
            writer.heap = heap;
            let log = parse(&writer).unwrap();
            let found = log.entries.len();
            prop_assert!(found >= *fenced && found <= *whole, "{fenced} <= {found} <= {whole}");
            if is_new {
                prop_assert_eq!(found, *whole);
            }
            for (entry, (target, data)) in log.entries.iter().zip(&expected) {
                prop_assert_eq!((entry.target, entry.data), (*target, data.as_slice()));
            }
            prop_assert_eq!(log.seal.is_some(), found == expected.len() + 1);
        }
    }

    /// A fenced entry that is changed, and is not the last fenced one, is always noticed.
    #[test]
    fn damage_to_a_fenced_entry_is_noticed_while_a_later_fenced_one_is_whole(
        earlier in prop::collection::vec(transaction(), 0..3), last in transaction(),
        victim: prop::sample::Index, at: prop::sample::Index, mask in 1..=255u8,
    ) {
        let Run { mut writer, undo, .. } = run(&earlier, &last);
        prop_assume!(undo.len() >= 2);
        let (start, end) = undo[victim.index(undo.len() - 1)];
        let at = start + at.index(end - start);
        writer.entries()[at] ^= mask;
        let found = parse(&writer).unwrap_err();
        prop_assert!(matches!(found, Damage::LostEntry { stop, .. } if stop == start), "{found:?}");
    }

    /// A seal that was written after all before it was durable says so, and then even the last undo entry is guarded.
    #[test]
    fn damage_before_a_fenced_seal_is_noticed(last in transaction(), victim: prop::sample::Index, at: prop::sample::Index) {
        prop_assume!(!last.undo.is_empty());
        let Run { mut writer, undo, .. } = run(&[], &Transaction { sealed: false, ..last });
        writer.seal(EntryFlags::FENCED, &[]);
        let (start, end) = undo[victim.index(undo.len())];
        writer.entries()[start + at.index(end - start)] ^= 1;
        prop_assert!(parse(&writer).is_err());
    }

    /// After the word moved on, no entry of any earlier generation is read again, whatever was written over them.
    #[test]
    fn nothing_stale_is_ever_read(
        earlier in prop::collection::vec(transaction(), 1..20), last in transaction(), cut: prop::sample::Index,
    ) {
        let Run { mut writer, .. } = run(&earlier, &last);
        writer.next(RangeWord::undo(writer.generation + 1));
        prop_assert_eq!(parse(&writer).unwrap().entries.len(), 0);
        // A new transaction gets only part of the way over the old entries.
        for (target, data) in &last.undo[..cut.index(last.undo.len() + 1)] {
            writer.undo(*target, data);
        }
        prop_assert_eq!(parse(&writer).unwrap().entries.len(), cut.index(last.undo.len() + 1));
    }

    /// Any bytes at all behind the header: never a panic, and entries only if their checksums hold.
    #[test]
    fn noise_has_no_entries(noise in prop::collection::vec(any::<u8>(), CAPACITY)) {
        let mut writer = LogWriter::at_generation(CAPACITY, 40);
        writer.entries().copy_from_slice(&noise);
        prop_assert_eq!(parse(&writer).unwrap().entries.len(), 0);
    }
}

/// Entries of a log whose id differs in one bit, or of a generation that differs in its upper half only.
#[test]
fn entries_of_other_logs_and_of_generations_that_share_the_low_half_are_stale() {
    let mut other = LogWriter::at_generation(CAPACITY, (1 << 32) + 5);
    other.undo(0x2000_4000_0000, &[1; 8]);
    let mut writer = LogWriter::at_generation(CAPACITY, 5);
    let entries = other.entries().to_vec();
    writer.entries().copy_from_slice(&entries);
    assert_eq!(parse(&writer).unwrap().entries.len(), 0);

    let mut own = LogWriter::at_generation(CAPACITY, 5);
    let salt = log::Salt::new(common::LOG_ID ^ 1, 5);
    log::encode_copy(
        own.entries(),
        &salt,
        Order::Reverse,
        EntryFlags::FENCED,
        1,
        8,
        &[1; 8],
    )
    .unwrap();
    assert_eq!(parse(&own).unwrap().entries.len(), 0);
}

/// Entries of a generation are written after its word is durable.
#[test]
fn entries_of_a_generation_without_its_word_are_damage() {
    let mut writer = LogWriter::new(CAPACITY);
    writer.undo(0x2000_4000_0000, &[1; 8]);
    writer.heap[64..2048].fill(0);
    assert_eq!(parse(&writer).unwrap_err(), Damage::LostWord { current: 0 });
    assert_eq!(
        parse(&LogWriter {
            heap: common::empty_heap(CAPACITY, false),
            ..writer
        })
        .unwrap()
        .range,
        RangeWord::NEVER
    );
}

/// A client that fills its log with heads of huge entries must not keep recovery busy for long.
#[test]
fn fragments_made_on_purpose_are_given_up() {
    let capacity = 2 << 20;
    let mut writer = LogWriter::new(capacity);
    let (words, _) = writer.entries().as_chunks_mut::<24>();
    let count = words.len();
    for (index, head) in words.iter_mut().enumerate() {
        let size = ((count - index - 1) * 24) as u32;
        head[8..12].copy_from_slice(&size.to_le_bytes());
        head[12..16].copy_from_slice(&[1, 1, 1, 2]);
        head[16..20].copy_from_slice(&1u32.to_le_bytes());
    }
    let start = std::time::Instant::now();
    assert!(matches!(parse(&writer), Err(Damage::Fragments { .. })));
    assert!(
        start.elapsed() < std::time::Duration::from_secs(2),
        "{:?}",
        start.elapsed()
    );
}
