//! Clients that were in sections when they ended: their logs are replayed and retired, their pools wait for whoever
//! completes the sections, or for a person who accepts them half done.

mod damaged;
mod pools;
mod words;

use std::path::Path;

use durum_format::UNIT;
use durum_format::section::{BANK_WORDS, Code, Head, RecordWriter, bank_of};
use durum_service::{Embedded, Error, PuddleGrant, PuddleKind, PuddleOwner, Service};

use crate::support::{Space, create, heap, put, root, spec, word};

pub const PLACE: u64 = 0x10000;
pub const OLD: u64 = 1;
pub const TORN: u64 = 2;
pub const DONE: u64 = 3;
const STACK: u32 = 256;

pub(crate) fn code() -> Code {
    Code::new(0xaaaa_bbbb_cccc, 7).unwrap()
}

fn head(client: durum_service::Uuid) -> Head {
    Head {
        client,
        salt: 0x5a17,
        slots: 4,
        stack_size: STACK,
    }
}

/// A puddle of sections of a client.
pub fn sections_of(store: &Embedded) -> PuddleGrant {
    let owner = PuddleOwner::Client;
    let grant = store
        .create_puddle(owner, PuddleKind::Sections, UNIT)
        .unwrap();
    put(&grant, heap(&grant), &head(store.id()).encode());
    grant
}

/// Writes a record of a slot: of a section, or of none.
pub fn record(
    grant: &PuddleGrant,
    client: durum_service::Uuid,
    slot: u32,
    sequence: u64,
    is_in: bool,
) {
    let (head, mut bank) = (head(client), [0; BANK_WORDS]);
    let salt = head.slot_salt(slot);
    let written = match is_in {
        true => RecordWriter::new(&mut bank, sequence, code())
            .live_ins(&[5])
            .finish(&salt),
        false => RecordWriter::idle(&mut bank, sequence).finish(&salt),
    };
    let bytes: Vec<u8> = bank.iter().flat_map(|word| word.to_le_bytes()).collect();
    let at = heap(grant) + head.bank_offset(slot, bank_of(sequence));
    put(grant, at, &bytes[..written.unwrap().bytes]);
}

/// What a client has left.
pub struct Left {
    pub client: durum_service::Uuid,
    pub sections: PuddleGrant,
    /// The word of pool `a` that its log is about.
    pub word: u64,
}

/// A store whose client has ended with pools `a` and `b` open, a transaction under way in `a`, and slot 2 in a section
/// if it says so. Pool `c` was closed.
pub fn left(path: &Path, is_in: bool) -> Left {
    let store = create(path);
    let [a, _, c] = ["a", "b", "c"].map(|name| store.create_pool(name, &spec()).unwrap());
    store.close_pool(c.uuid).unwrap();
    let mut log = Space::new(&store).log(&store, 0xf1);
    let target = root(&a).address + PLACE;
    put(root(&a), PLACE, &OLD.to_le_bytes());
    log.undo(target, &OLD.to_le_bytes());
    put(root(&a), PLACE, &TORN.to_le_bytes());
    let sections = sections_of(&store);
    record(&sections, store.id(), 0, 1, false);
    record(&sections, store.id(), 2, 1, true);
    if !is_in {
        record(&sections, store.id(), 2, 2, false);
    }
    Left {
        client: store.id(),
        sections,
        word: target,
    }
}

pub fn names(store: &Embedded) -> Vec<String> {
    let pools = store.pools().unwrap().into_iter().map(|pool| pool.name);
    let opened = pools.filter(|name| match store.open_pool(name) {
        Ok(grant) => store.close_pool(grant.uuid).is_ok(),
        Err(Error::PoolInterrupted { .. }) => false,
        Err(error) => panic!("{error}"),
    });
    opened.collect()
}

pub fn files(path: &Path) -> usize {
    std::fs::read_dir(path.join("puddles")).unwrap().count()
}

fn value(store: &Embedded, pool: &str) -> u64 {
    let grant = store.open_pool(pool).unwrap();
    let value = word(root(&grant), PLACE);
    store.close_pool(grant.uuid).unwrap();
    value
}

pub fn host_lists_nothing(client: &Embedded) -> bool {
    client.interrupted().unwrap().is_empty()
}
