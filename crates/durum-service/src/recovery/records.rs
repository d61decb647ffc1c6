//! The redo records of a client: which of them count, and what they leave at the home locations.
//!
//! Records change the same places again and again. They are merged in memory first, so that each is written home once,
//! whatever the logs hold.
//!
//! Memory and time are bounded by the bytes in the client's puddles of records: each record is there once, in an order
//! that its stamp gives, and takes up to twenty times the memory that it has there. What home is asked about does not
//! overlap, so no byte of it is read twice.

use std::collections::BTreeSet;

use durum_format::Uuid;
use durum_format::crc::Crc;
use durum_format::home::{Answer, Verdict};
use durum_format::puddle::{PuddleHeader, PuddleKind};
use durum_format::record::{self, Change, Entries, Page, Pages, Part, Record, ReplayError, Ring};

use super::home::{Home, Place};
use super::logs::read_records;
use super::obstacle::{Obstacle, Why};
use super::plan::ClientPlan;
use super::refused::Touched;
use super::workers;
use super::write::{HomeWrite, WriteKind};
use crate::error::Result;
use crate::files::{self, Puddles};
use crate::registry::contents::{Contents, PuddleRecord};
use crate::sparse::Sparse;

/// Adds the writes that a page needs.
fn write_page(puddle: &PuddleHeader, address: u64, page: &Page, writes: &mut Vec<HomeWrite>) {
    page.parts(|part| {
        let (at, kind) = match part {
            Part::Bytes { at, bytes } => (at, WriteKind::Copy(bytes.to_vec().into())),
            Part::Bits { at, set, clear } => (at, WriteKind::Bits { set, clear }),
        };
        writes.push(HomeWrite {
            puddle: puddle.uuid,
            offset: address - puddle.address + at as u64,
            kind,
        });
    });
}

/// Reads the puddles of records of a client and adds to the plan what they ask for. Where one of them is damaged none
/// is replayed: they have one order together.
///
/// # Errors
/// As for [`plan_client`](super::plan_client).
pub(super) fn plan_records(
    files: &Puddles,
    contents: &Contents,
    client: Uuid,
    home: &mut Home<'_>,
    plan: &mut ClientPlan,
) -> Result<()> {
    let mut registered = contents.puddles_of(client);
    registered.retain(|(uuid, record)| {
        record.kind == PuddleKind::Records && !contents.is_quarantined_file(*uuid)
    });
    let pages = registered.iter().map(|(_, record)| record.size / 4096);
    let threads = workers::count(pages.sum::<u64>() as usize);
    let access = home.access();
    let read = |(uuid, record): &(Uuid, PuddleRecord)| read_records(files, *uuid, record, access);
    let heaps = workers::map(&registered, threads, read);
    let mut puddles: Vec<(PuddleHeader, Sparse)> = Vec::new();
    let mut damaged = None;
    for ((uuid, record), heap) in registered.iter().zip(heaps) {
        match heap {
            Ok(heap) => puddles.push((files::header_of(*uuid, record), heap)),
            Err(Obstacle::Invalid(reason)) => damaged = Some((*uuid, reason)),
            Err(Obstacle::Fatal(error)) => return Err(error),
        }
    }
    plan.rings += puddles.len() as u64;
    if let Some((uuid, reason)) = damaged {
        plan.quarantine(uuid, 0, reason);
        return Ok(());
    }
    let rings: Vec<Ring<'_>> = puddles
        .iter()
        .filter_map(|(header, heap)| {
            Some(Ring::of(header, heap.bytes())?.used(heap.written().len() as u64))
        })
        .collect();
    match merge(&rings, home) {
        Ok(merged) => {
            plan.sound
                .extend(puddles.iter().map(|(header, _)| header.uuid));
            plan.redone = merged.transactions;
            plan.undecided = merged.undecided;
            plan.verdicts.extend(merged.verdicts);
            plan.writes.extend(merged.writes);
            plan.relied_on.extend(merged.relied_on);
            Ok(())
        }
        Err((uuid, Obstacle::Invalid(reason))) => {
            plan.quarantine(uuid, 0, reason);
            Ok(())
        }
        Err((_, Obstacle::Fatal(error))) => Err(error),
    }
}

/// What the records leave.
struct Merged {
    /// The transactions that they redo.
    transactions: Touched,
    /// Those of which nobody can say now whether they committed.
    undecided: Touched,
    verdicts: Vec<Verdict>,
    writes: Vec<HomeWrite>,
    /// Puddles that hold what went home with a record.
    relied_on: BTreeSet<Uuid>,
}

/// Merges the records that count. An obstacle comes with the puddle of records that shows it.
fn merge(rings: &[Ring<'_>], home: &mut Home<'_>) -> Result<Merged, (Uuid, Obstacle)> {
    let known = home.known();
    let contents = |address, length, crc: &mut Crc| home.sum_up(address, length, crc).map_err(Why);
    let found = record::replay(rings, known, contents).map_err(|error| {
        let (ring, said) = (error.ring(), error.to_string());
        match error {
            ReplayError::Contents {
                reason: Why(Obstacle::Fatal(error)),
                ..
            } => (ring, Obstacle::Fatal(error)),
            _ => (ring, Obstacle::Invalid(said)),
        }
    })?;
    let mut relied_on = BTreeSet::new();
    let mut pages = Pages::default();
    let transactions = touched(&found.records, home, |change, puddle| {
        if matches!(change, Change::Fresh { .. }) {
            relied_on.insert(puddle);
        }
        pages.apply(change);
    })?;
    let undecided = touched(&found.undecided, home, |_, _| {})?;
    if home.is_again() {
        ensure_home_of_then(&found.records, home)?;
    }
    let mut writes = Vec::new();
    pages.merged(|address, page| {
        // The start of a puddle's first page, and no more of it, is nobody's to write; puddles are made of pages.
        let end = address + Page::BYTES as u64 - 1;
        if let Place::Granted(_, header) = home.place(end, 1) {
            write_page(&header, address, page, &mut writes);
        }
        Ok::<_, (Uuid, Obstacle)>(()) // Each change was found above.
    })?;
    Ok(Merged {
        transactions,
        undecided,
        verdicts: found.verdicts,
        writes,
        relied_on,
    })
}

/// Which pools the transactions of these records change. Takes each change with its puddle, unless its part is done or
/// was given up.
fn touched<'a>(
    records: &[Record<'a>],
    home: &Home<'_>,
    mut take: impl FnMut(Change<'a>, Uuid),
) -> Result<Touched, (Uuid, Obstacle)> {
    let mut touched = Touched::default();
    let mut pools = BTreeSet::new();
    for record in records {
        let invalid = |reason: String| {
            let at = format!(
                "record {}, {:#x}: {reason}",
                record.header.stamp, record.offset
            );
            (record.ring.uuid, Obstacle::Invalid(at))
        };
        for change in Entries::new(record.body) {
            let change = change.map_err(|error| invalid(error.to_string()))?;
            let (address, length) = change.range();
            match home.place(address, length) {
                Place::Granted(puddle, header) => {
                    pools.insert(header.owner);
                    take(change, puddle);
                }
                Place::Settled => {}
                Place::Elsewhere => {
                    return Err(invalid(format!(
                        "it is about {length} bytes at {address:#x}, which is not inside one data puddle that its client may write"
                    )));
                }
            }
        }
        if !record.header.more {
            touched.add(std::mem::take(&mut pools));
        }
    }
    Ok(touched)
}

/// Files that come back are those that were missing: what went home with a record, and was not changed since, is there.
fn ensure_home_of_then(
    records: &[Record<'_>],
    home: &mut Home<'_>,
) -> Result<(), (Uuid, Obstacle)> {
    for range in record::fresh_at_home(records) {
        let mut crc = Crc::new();
        let answer = home
            .sum_up(range.target, range.len, &mut crc)
            .map_err(|obstacle| (range.ring, obstacle))?;
        if answer == Answer::Seen && crc.value() != range.checksum {
            home.refuse_other(range.target, range.len)
                .map_err(|error| (range.ring, Obstacle::Fatal(error)))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use durum_format::UNIT;
    use durum_format::record::{Change, Operation};

    /// Merged changes do to any old page what the changes do one after the other.
    #[test]
    fn merging_changes_changes_nothing() {
        let mut state = 5u64;
        let mut random = move || {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            state >> 20
        };
        let header = PuddleHeader {
            kind: PuddleKind::Data,
            uuid: Uuid([1; 16]),
            owner: Uuid([2; 16]),
            address: UNIT,
            size: UNIT,
            is_root: false,
        };
        const AREA: usize = 3 * Page::BYTES;
        for _ in 0..500 {
            let old: Vec<u8> = (0..AREA).map(|_| random() as u8).collect();
            let inputs: Vec<([u64; 8], Vec<u8>)> = (0..1 + random() % 12)
                .map(|_| {
                    let words = std::array::from_fn(|_| random() << 30 ^ random());
                    (words, (0..AREA).map(|_| random() as u8).collect())
                })
                .collect();
            let (mut pages, mut expected) = (Pages::default(), old.clone());
            for (words, bytes) in &inputs {
                // Mostly around the end of a page.
                let around = Page::BYTES - 128;
                if random() % 3 == 0 {
                    let (at, length) = match random() % 4 {
                        0 => (random() as usize % Page::BYTES, 2 * Page::BYTES),
                        _ => (around + random() as usize % 240, 1 + random() as usize % 8),
                    };
                    let data = &bytes[..length];
                    expected[at..at + length].copy_from_slice(data);
                    let target = UNIT + 8192 + at as u64;
                    pages.apply(Change::Copy { target, data });
                    continue;
                }
                let operation = [Operation::Store, Operation::SetBits, Operation::ClearBits]
                    [(random() % 3) as usize];
                let mask = (random() as u8).max(1);
                let line = around / 64 + random() as usize % 4;
                let count = mask.count_ones() as usize;
                for (index, word) in (0..8).filter(|bit| mask >> bit & 1 == 1).zip(words) {
                    let at = line * 64 + 8 * index;
                    let old = u64::from_le_bytes(expected[at..at + 8].try_into().unwrap());
                    let new = match operation {
                        Operation::Store => *word,
                        Operation::SetBits => old | word,
                        Operation::ClearBits => old & !word,
                    };
                    expected[at..at + 8].copy_from_slice(&new.to_le_bytes());
                }
                pages.apply(Change::Words {
                    operation,
                    line: UNIT + 8192 + 64 * line as u64,
                    mask,
                    words: &words[..count],
                });
            }
            let mut writes = Vec::new();
            let merged = pages.merged(|address, page| {
                write_page(&header, address, page, &mut writes);
                Ok::<_, std::convert::Infallible>(())
            });
            assert!(merged.is_ok());
            let mut found = old;
            for write in &writes {
                let nothing = |_, _: &mut [u8]| Ok::<_, std::convert::Infallible>(());
                assert!(write.apply_to(8192, &mut found, nothing).is_ok());
            }
            assert_eq!(found, expected);
        }
    }
}
