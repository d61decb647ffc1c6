//! Seeds of files of text: the catalog, the store file, a manifest, the registry.

use durum_format::catalog::{
    Catalog, ClientRecord, Grant, GrantMode, PoolRecord, PuddleRecord, TypeRecord,
};
use durum_format::export::{ExportedPool, ExportedPuddle, Manifest};
use durum_format::puddle::PuddleKind;
use durum_format::registry::{self, Change, QuarantinedLog, State};
use durum_format::store::StoreHeader;
use durum_format::types::{Meanings, type_id};
use durum_format::{DEFAULT_BASE, EngineKind, SPACE_SIZE, UNIT};

use crate::common::uuid;
use crate::seeds::TYPES;

pub fn catalog() -> Catalog {
    let puddle = |first: u8, owner: u8, kind, unit: u64| PuddleRecord {
        uuid: uuid(first),
        owner: uuid(owner),
        kind,
        address: DEFAULT_BASE + unit * UNIT,
        size: UNIT,
        file: format!("puddles/{first}"),
    };
    Catalog {
        pools: vec![PoolRecord {
            name: "pool".into(),
            uuid: uuid(2),
            engine: "hybrid".into(),
            root: uuid(3),
            puddles: vec![uuid(3)],
        }],
        puddles: vec![
            puddle(3, 2, PuddleKind::Data, 0),
            puddle(4, 5, PuddleKind::LogSpace, 1),
            puddle(6, 5, PuddleKind::Log, 2),
        ],
        types: vec![TypeRecord {
            id: type_id(TYPES[1]),
            text: TYPES[1].into(),
        }],
        clients: vec![ClientRecord {
            uuid: uuid(5),
            log_space: Some(uuid(4)),
            grants: vec![Grant {
                puddle: uuid(3),
                mode: GrantMode::Write,
            }],
        }],
        ..Catalog::empty(uuid(1), DEFAULT_BASE, SPACE_SIZE, "dram")
    }
}

pub fn store_header() -> StoreHeader {
    StoreHeader {
        uuid: uuid(1),
        base: DEFAULT_BASE,
        size: SPACE_SIZE,
        start: DEFAULT_BASE + (3 << 30),
        domain: "file".into(),
    }
}

/// A pool of one puddle.
pub fn manifest() -> Manifest {
    let pool = ExportedPool {
        name: "pool".into(),
        engine: EngineKind::Hybrid,
        root_puddle: uuid(3),
        meanings: Meanings::default(),
    };
    let puddle = ExportedPuddle {
        owner: uuid(2),
        address: DEFAULT_BASE,
        size: UNIT,
        kind: PuddleKind::Data,
        is_root: true,
        sum: 0x1234,
    };
    Manifest {
        store: store_header(),
        pool: uuid(2),
        pools: [(uuid(2), pool)].into(),
        puddles: [(uuid(3), puddle)].into(),
        types: [(type_id(TYPES[1]), TYPES[1].to_owned())].into(),
        untyped_objects: 4,
    }
}

/// A pool and a client with a log, a type, and a log in quarantine.
pub fn registry() -> State {
    let mut state = State::new(store_header());
    let puddle = |first: u8, owner: u8, kind, unit: u64| {
        let record = registry::PuddleRecord {
            owner: uuid(owner),
            address: DEFAULT_BASE + unit * UNIT,
            size: UNIT,
            kind,
            is_root: first == 3,
            is_stale: false,
            origin: None,
        };
        Change::PutPuddle(uuid(first), record)
    };
    state.commit(&[
        puddle(3, 2, PuddleKind::Data, 0),
        Change::PutPool(
            uuid(2),
            registry::PoolRecord {
                name: "pool".into(),
                engine: EngineKind::Hybrid,
                root_puddle: uuid(3),
                rights: Some(registry::Rights {
                    uid: 1000,
                    gid: 100,
                    mode: 0o640,
                }),
                damage: None,
                meanings: Meanings::default(),
            },
        ),
        Change::PutClient(uuid(5)),
        Change::PutUser(uuid(5), 1000),
        Change::PutGrant(uuid(5), uuid(2)),
        puddle(4, 5, PuddleKind::LogSpace, 1),
        Change::PutLogSpace(uuid(4), uuid(5)),
        puddle(6, 5, PuddleKind::Log, 2),
        Change::PutQuarantine(
            uuid(6),
            QuarantinedLog {
                log_id: 7,
                continuations: vec![],
                client: uuid(8),
                reason: "entries are damaged".into(),
            },
        ),
        Change::PutMark(uuid(2), uuid(8)),
        Change::PutType(type_id(TYPES[1]), TYPES[1].into()),
    ]);
    state
}

/// Takes all of it away again.
pub fn registry_changes() -> Vec<Change> {
    vec![
        Change::RemoveMark(uuid(2), uuid(8)),
        Change::RemoveQuarantine(uuid(6)),
        Change::RemoveLogSpace(uuid(4)),
        Change::RemovePuddle(uuid(4)),
        Change::RemovePuddle(uuid(6)),
        Change::FileGone(uuid(6)),
        Change::RemoveGrant(uuid(5), uuid(2)),
        Change::RemoveClient(uuid(5)),
        Change::RemovePuddle(uuid(3)),
        Change::RemovePool(uuid(2)),
        Change::RemoveType(type_id(TYPES[1])),
        Change::Cursor(DEFAULT_BASE + UNIT),
    ]
}
