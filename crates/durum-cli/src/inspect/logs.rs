//! The logs of programs that did not end in order, and those in quarantine.

use std::collections::BTreeMap;
use std::io::Write;

use durum_format::log::{self, EntryKind, LogArea, ParsedLog};
use durum_format::puddle;
use durum_service::{PuddleKind, PuddleView, ReadOnlyStore, Uuid};
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::output::{self, count, grouped, size};

/// A log.
pub(crate) struct Log {
    puddle: Uuid,
    client: Uuid,
    address: u64,
    /// Whether nothing was ever written to it: its thread has changed nothing, or has used sections only.
    is_unused: bool,
    /// What it says, or why it cannot be read.
    contents: Result<Contents, String>,
}

/// What the state of a log is called in which nothing was ever written.
const UNUSED: &str = "never used";

struct Contents {
    id: u64,
    generation: u64,
    range: (u8, u8),
    undo: u64,
    redo: u64,
    bits: u64,
    data_bytes: u64,
    is_sealed: bool,
    continuations: u64,
}

impl Contents {
    fn of(parsed: &ParsedLog<'_>) -> Self {
        let entries = || parsed.entries.iter();
        let of = |wanted: &[EntryKind], order: Option<log::Order>| {
            let wanted = entries().filter(|entry| wanted.contains(&entry.kind));
            wanted
                .filter(|entry| order.is_none_or(|order| entry.order == order))
                .count() as u64
        };
        Self {
            id: parsed.header.log_id,
            generation: parsed.range.generation,
            range: (parsed.range.lo, parsed.range.hi),
            undo: of(&[EntryKind::Copy], Some(log::Order::Reverse)),
            redo: of(&[EntryKind::Copy], Some(log::Order::Forward)),
            bits: of(&[EntryKind::SetBits, EntryKind::ClearBits], None),
            data_bytes: entries().map(|entry| entry.data.len() as u64).sum(),
            is_sealed: parsed.seal.is_some(),
            continuations: parsed.chain.len() as u64,
        }
    }

    /// What the entries mean.
    fn state(&self) -> &'static str {
        match (self.undo + self.redo + self.bits, self.is_sealed) {
            (0, _) => "at rest",
            (_, true) => "sealed: recovery completes it",
            (_, false) => "not sealed: recovery undoes it",
        }
    }
}

/// Reads all logs of the store.
pub(crate) fn read(store: &ReadOnlyStore) -> Result<Vec<Log>, Failure> {
    let puddles = store
        .puddles()
        .into_iter()
        .filter(|puddle| puddle.kind == PuddleKind::Log);
    let mut heaps = BTreeMap::new();
    for summary in puddles {
        let view = store.puddle(summary.uuid)?;
        let heap = heap_of(&view)?;
        heaps.insert(summary.address, (summary, view, heap));
    }
    let area = |address: u64| match heaps.get(&address) {
        Some((_, view, heap)) => {
            LogArea::of(view.header(), heap).map_err(|error| error.to_string())
        }
        None => Err(format!("no log puddle lies at {address:#x}")),
    };
    let mut logs = Vec::new();
    for (summary, _, heap) in heaps.values() {
        let contents = match area(summary.address) {
            // It is shown with the log that it continues.
            Ok(head) if head.header().is_continuation => continue,
            head => head.and_then(|head| {
                let parsed = log::parse(head, area).map_err(|error| error.to_string())?;
                Ok(Contents::of(&parsed))
            }),
        };
        logs.push(Log {
            puddle: summary.uuid,
            client: summary.owner,
            address: summary.address,
            is_unused: contents.is_err() && heap.iter().all(|byte| *byte == 0),
            contents,
        });
    }
    Ok(logs)
}

pub(crate) fn heap_of(view: &PuddleView) -> Result<Vec<u8>, Failure> {
    let size = view.header().size;
    Ok(view.bytes(puddle::heap_offset(size), puddle::heap_size(size))?)
}

pub(crate) fn print(logs: &[Log], out: &mut dyn Write) -> Result<(), Failure> {
    if logs.is_empty() {
        return Ok(());
    }
    let mut rows = output::heading("LOG|GENERATION|RANGE|UNDO|REDO|BITS|DATA|STATE");
    for log in logs {
        rows.push(match &log.contents {
            Ok(contents) => vec![
                format!("{:#018x}", contents.id),
                grouped(contents.generation),
                format!("({},{})", contents.range.0, contents.range.1),
                grouped(contents.undo),
                grouped(contents.redo),
                grouped(contents.bits),
                size(contents.data_bytes),
                match contents.continuations {
                    0 => contents.state().into(),
                    more => format!("{}, in {}", contents.state(), count(more + 1, "puddle")),
                },
            ],
            Err(why) => {
                let mut row = vec![format!("at {:#x}", log.address)];
                row.resize(7, String::new());
                row.push(match log.is_unused {
                    true => UNUSED.to_owned(),
                    false => format!("cannot be read: {why}"),
                });
                row
            }
        });
    }
    output::table(out, &rows, &[1, 3, 4, 5, 6])?;
    Ok(())
}

impl Log {
    pub(crate) fn to_json(&self) -> Json {
        let mut value = json!({
            "puddle": self.puddle.to_string(),
            "client": self.client.to_string(),
            "address": format!("{:#x}", self.address),
        });
        match &self.contents {
            Ok(contents) => {
                value["log"] = json!(format!("{:#x}", contents.id));
                value["generation"] = json!(contents.generation);
                value["range"] = json!([contents.range.0, contents.range.1]);
                value["undo"] = json!(contents.undo);
                value["redo"] = json!(contents.redo);
                value["bits"] = json!(contents.bits);
                value["data_bytes"] = json!(contents.data_bytes);
                value["sealed"] = json!(contents.is_sealed);
                value["continuations"] = json!(contents.continuations);
                value["state"] = json!(contents.state());
            }
            Err(why) => {
                value["unreadable"] = json!(why);
                if self.is_unused {
                    value["state"] = json!(UNUSED);
                }
            }
        }
        value
    }
}
