//! `registry`: images, what a crash may leave, what is damage, and what can be made of damaged files.

#[path = "../common/mod.rs"]
mod common;
mod contradictions;
mod damage;
mod images;
mod moves;
mod random;

use durum_format::puddle::PuddleKind;
use durum_format::registry::{
    BEGINNING_BYTES, Change, PoolRecord, PuddleRecord, QuarantinedLog, Rights, Room, State,
    encode_changes, encode_snapshot,
};
use durum_format::store::StoreHeader;
use durum_format::types::{Meanings, type_id};
use durum_format::{DEFAULT_BASE, EngineKind, SPACE_SIZE, UNIT, Uuid};
use proptest::prelude::*;

use common::uuid;

const NODE: &str = "struct \"Node\"(16,8){0:\"value\":i64;8:\"next\":*0;}\n";

fn store() -> StoreHeader {
    StoreHeader {
        uuid: uuid(0x10),
        base: DEFAULT_BASE,
        size: SPACE_SIZE,
        start: DEFAULT_BASE + UNIT,
        domain: "file".into(),
    }
}

fn puddle(owner: Uuid, kind: PuddleKind, unit: u64) -> PuddleRecord {
    PuddleRecord {
        owner,
        address: DEFAULT_BASE + unit * UNIT,
        size: UNIT,
        kind,
        is_root: false,
        is_stale: false,
        origin: None,
    }
}

const RIGHTS: Rights = Rights {
    uid: 1000,
    gid: 100,
    mode: 0o640,
};

const POOL: u8 = 0x20;
const CLIENT: u8 = 0x30;
const ENDED: u8 = 0x99;

/// A pool of two puddles, a client with a log space and a log, a log in quarantine, a type: one commit each.
fn steps() -> Vec<Vec<Change>> {
    let (pool, client) = (uuid(POOL), uuid(CLIENT));
    let root = PuddleRecord {
        is_root: true,
        ..puddle(pool, PuddleKind::Data, 0)
    };
    vec![
        vec![Change::PutType(type_id(NODE), NODE.into())],
        vec![
            Change::PutPool(
                pool,
                PoolRecord {
                    name: "words".into(),
                    engine: EngineKind::Hybrid,
                    root_puddle: uuid(0x40),
                    rights: Some(RIGHTS),
                    damage: None,
                    meanings: Meanings::default(),
                },
            ),
            Change::PutPuddle(uuid(0x40), root),
            Change::Cursor(DEFAULT_BASE + UNIT),
        ],
        vec![Change::PutPuddle(
            uuid(0x41),
            puddle(pool, PuddleKind::Data, 1),
        )],
        vec![
            Change::PutClient(client),
            Change::PutUser(client, 1000),
            Change::PutGrant(client, pool),
        ],
        vec![
            Change::PutPuddle(uuid(0x50), puddle(client, PuddleKind::LogSpace, 2)),
            Change::PutLogSpace(uuid(0x50), client),
            Change::PutPuddle(uuid(0x51), puddle(client, PuddleKind::Log, 3)),
        ],
        vec![
            Change::PutPuddle(uuid(0x52), puddle(uuid(ENDED), PuddleKind::Log, 4)),
            Change::PutQuarantine(
                uuid(0x52),
                QuarantinedLog {
                    log_id: 7,
                    continuations: vec![],
                    client: uuid(ENDED),
                    reason: "entries were damaged".into(),
                },
            ),
            Change::PutMark(pool, uuid(ENDED)),
        ],
    ]
}

fn state() -> State {
    let mut state = State::new(store());
    for step in steps() {
        state.commit(&step);
    }
    state
}

/// The file that a writer makes who writes `folded` commits as a snapshot and the rest as changes, and where each of
/// these ends.
fn file(steps: &[Vec<Change>], folded: usize) -> (Vec<u8>, Vec<usize>) {
    let mut state = State::new(store());
    for step in &steps[..folded] {
        state.commit(step);
    }
    let mut bytes = encode_snapshot(&state).unwrap();
    let room = Room::of(&bytes[..bytes.len().min(BEGINNING_BYTES as usize)]).unwrap();
    assert_eq!(room.snapshot_end, bytes.len() as u64);
    let mut ends = vec![bytes.len()];
    for step in &steps[folded..] {
        state.sequence += 1;
        bytes.extend(encode_changes(state.store.uuid, state.sequence, step));
        ends.push(bytes.len());
    }
    bytes.resize(room.end as usize, 0);
    (bytes, ends)
}

fn after(steps: &[Vec<Change>], commits: usize) -> State {
    let mut state = State::new(store());
    for step in &steps[..commits] {
        state.commit(step);
    }
    state
}

fn change() -> impl Strategy<Value = Change> {
    let name = || (0_u8..6).prop_map(uuid);
    prop_oneof![
        (0_u64..9).prop_map(|unit| Change::Cursor(DEFAULT_BASE + unit * UNIT)),
        name().prop_map(Change::PutClient),
        name().prop_map(Change::RemoveClient),
        "[a-z]{1,9}".prop_map(|name| {
            let text = format!("struct \"{name}\"(8,8){{0:\"value\":i64;}}\n");
            Change::PutType(type_id(&text), text)
        }),
        name().prop_map(Change::FileGone),
        name().prop_map(Change::Coming),
    ]
}
