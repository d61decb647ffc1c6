//! The redo records of programs that did not end in order: what recovery will replay of them.

use std::collections::BTreeMap;
use std::io::Write;

use durum_format::crc::Crc;
use durum_format::extent::HeapBytes;
use durum_format::home::Answer;
use durum_format::puddle::PuddleHeader;
use durum_format::record::{Entries, Ring, replay};
use durum_service::{PuddleKind, ReadOnlyStore, Uuid};
use serde_json::{Value as Json, json};

use super::logs::heap_of;
use crate::failure::Failure;
use crate::output::{self, grouped, size};

/// Bytes read at a time where a range is summed up.
const CHUNK_BYTES: usize = 64 << 10;

/// The puddles of records of one client.
pub(crate) struct Records {
    client: Uuid,
    puddles: u64,
    /// What they say together, or why nothing of them may be replayed.
    contents: Result<Contents, String>,
}

struct Contents {
    watermark: u64,
    /// The last stamp that counts.
    last: u64,
    transactions: u64,
    records: u64,
    changes: u64,
    bytes: u64,
}

impl Contents {
    fn of(
        store: &ReadOnlyStore,
        client: Uuid,
        puddles: &[(PuddleHeader, Vec<u8>)],
    ) -> Result<Self, String> {
        let rings: Vec<Ring<'_>> = puddles
            .iter()
            .map(|(header, heap)| Ring::of(header, heap).ok_or("its memory is not aligned"))
            .collect::<Result<_, _>>()?;
        let contents = |address, len, crc: &mut Crc| sum_up(store, address, len, crc);
        let known = store.verdicts(client);
        let replay = replay(&rings, known, contents).map_err(|error| error.to_string())?;
        let mut contents = Self {
            watermark: replay.watermark,
            last: replay.watermark,
            transactions: replay.transactions,
            records: replay.records.len() as u64,
            changes: 0,
            bytes: 0,
        };
        for record in &replay.records {
            contents.last = contents.last.max(record.header.stamp);
            contents.bytes += record.body.len() as u64 * 8;
            for change in Entries::new(record.body) {
                change.map_err(|error| error.to_string())?;
                contents.changes += 1;
            }
        }
        Ok(contents)
    }
}

/// Appends the bytes at an address to a checksum. Recovery does not change those that are asked for.
fn sum_up(store: &ReadOnlyStore, address: u64, len: u64, crc: &mut Crc) -> Result<Answer, String> {
    let mut puddles = store.puddles().into_iter();
    let puddle = puddles
        .rfind(|puddle| puddle.kind.holds_objects() && puddle.address <= address)
        .filter(|puddle| puddle.size - (address - puddle.address) >= len)
        .ok_or("they do not lie in one data puddle")?;
    let view = match store.puddle(puddle.uuid) {
        Ok(view) => view,
        Err(
            durum_service::Error::PoolRefused { .. } | durum_service::Error::PoolNotOpen { .. },
        ) => return Ok(Answer::Waits),
        Err(error) => return Err(error.to_string()),
    };
    let mut offset = address - puddle.address;
    let end = offset + len;
    let mut buffer = vec![0; CHUNK_BYTES.min(len as usize)];
    while offset < end {
        let part = &mut buffer[..(end - offset).min(CHUNK_BYTES as u64) as usize];
        view.read(offset, part).map_err(|error| error.to_string())?;
        crc.update(part);
        offset += part.len() as u64;
    }
    Ok(Answer::Seen)
}

/// Reads all puddles of records of the store.
pub(crate) fn read(store: &ReadOnlyStore) -> Result<Vec<Records>, Failure> {
    let mut clients: BTreeMap<Uuid, Vec<(PuddleHeader, Vec<u8>)>> = BTreeMap::new();
    let puddles = store.puddles().into_iter();
    for summary in puddles.filter(|puddle| puddle.kind == PuddleKind::Records) {
        let view = store.puddle(summary.uuid)?;
        let heap = heap_of(&view)?;
        let known = clients.entry(summary.owner).or_default();
        known.push((*view.header(), heap));
    }
    Ok(clients
        .into_iter()
        .map(|(client, puddles)| Records {
            client,
            puddles: puddles.len() as u64,
            contents: Contents::of(store, client, &puddles),
        })
        .collect())
}

pub(crate) fn print(all: &[Records], out: &mut dyn Write) -> Result<(), Failure> {
    if all.is_empty() {
        return Ok(());
    }
    let mut rows = output::heading(
        "RECORDS OF|PUDDLES|HOME UP TO|LAST STAMP|TRANSACTIONS|RECORDS|CHANGES|DATA",
    );
    for records in all {
        let mut row = vec![records.client.to_string(), grouped(records.puddles)];
        match &records.contents {
            Ok(contents) => row.extend([
                grouped(contents.watermark),
                grouped(contents.last),
                grouped(contents.transactions),
                grouped(contents.records),
                grouped(contents.changes),
                size(contents.bytes),
            ]),
            Err(why) => row.push(format!("cannot be replayed: {why}")),
        }
        rows.push(row);
    }
    output::table(out, &rows, &[1, 2, 3, 4, 5, 6, 7])?;
    Ok(())
}

impl Records {
    pub(crate) fn to_json(&self) -> Json {
        let mut value = json!({ "client": self.client.to_string(), "puddles": self.puddles });
        match &self.contents {
            Ok(contents) => {
                value["home_up_to"] = json!(contents.watermark);
                value["last_stamp"] = json!(contents.last);
                value["transactions"] = json!(contents.transactions);
                value["records"] = json!(contents.records);
                value["changes"] = json!(contents.changes);
                value["data_bytes"] = json!(contents.bytes);
            }
            Err(why) => value["unreadable"] = json!(why),
        }
        value
    }
}
