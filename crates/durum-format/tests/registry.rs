//! `registry`: images, what a crash may leave, what is damage, and what can be made of damaged files.

mod common;

use std::time::{Duration, Instant};

use common::{flips, uuid};
use durum_format::puddle::PuddleKind;
use durum_format::registry::{
    self, AddressRange, BEGINNING_BYTES, Change, Damage, Import, Origin, PoolRecord, PuddleRecord,
    QuarantinedLog, Rights, Room, State, encode_changes, encode_changes_within, encode_snapshot,
    parse, salvage, snapshot_version,
};
use durum_format::store::StoreHeader;
use durum_format::types::{Meanings, type_id};
use durum_format::{DEFAULT_BASE, EngineKind, Fault, FormatError, SPACE_SIZE, UNIT, Uuid};
use proptest::prelude::*;

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

/// Written by hand from docs/format/registry.md.
const EMPTY: &str = "durum registry 2 384 0x20b57561
{
  \"store\": {
    \"uuid\": \"10111213-1415-1617-1819-1a1b1c1d1e1f\",
    \"base\": \"0x200000000000\",
    \"size\": \"0x10000000000\",
    \"start\": \"0x200000200000\",
    \"domain\": \"file\"
  },
  \"sequence\": 0,
  \"cursor\": \"0x200000200000\",
  \"pools\": {},
  \"puddles\": {},
  \"removing\": [],
  \"clients\": [],
  \"grants\": [],
  \"log_spaces\": {},
  \"types\": {},
  \"quarantine\": {},
  \"marks\": []
}
change 1 30 0x80ea81b1
[{\"cursor\":\"0x200000400000\"}]
";

#[test]
fn the_registry_is_read_and_written() {
    let change = Change::Cursor(DEFAULT_BASE + 2 * UNIT);
    let (bytes, ends) = file(&[vec![change]], 0);
    let text = String::from_utf8(bytes[..ends[1]].to_vec()).unwrap();
    assert_eq!(text, EMPTY);
    let parsed = parse(&bytes).unwrap();
    assert_eq!(parsed.state.cursor, DEFAULT_BASE + 2 * UNIT);
    assert_eq!((parsed.state.sequence, parsed.end), (1, ends[1] as u64));
    assert!(!parsed.is_torn);
}

/// A file that an older durum wrote: pools have no owners in it, and clients no users.
#[test]
fn version_1_is_read_and_may_not_say_more() {
    let older = |bytes: &[u8]| {
        let mut older = bytes.to_vec();
        older["durum registry ".len()] = b'1';
        older
    };
    let without = |state: &mut State| {
        state.users.clear();
        for pool in state.pools.values_mut() {
            pool.rights = None;
        }
    };
    let mut plain = state();
    without(&mut plain);
    let mut bytes = encode_snapshot(&plain).unwrap();
    bytes.resize(Room::of(&bytes).unwrap().end as usize, 0);
    let parsed = parse(&older(&bytes)).unwrap();
    assert_eq!((parsed.version, &parsed.state), (1, &plain));
    assert_eq!(parse(&bytes).unwrap().version, registry::VERSION_RIGHTS);
    // Neither in the snapshot nor behind it.
    let steps = steps();
    for folded in [0, steps.len()] {
        let (bytes, _) = file(&steps, folded);
        let error = parse(&older(&bytes)).unwrap_err();
        assert!(error.to_string().contains("version 1"), "{error}");
    }
}

/// What older builds cannot follow is of a version that they refuse.
#[test]
fn types_that_may_change_and_what_became_of_them_are_of_version_4() {
    let case = |cases: &str| format!("variants \"V\"(1,1,tag 0,1){{0:\"A\"{{}}{cases}}}\n");
    let texts = [case(""), case("1:\"B\"{}")];
    let ids = [0, 1].map(|index| type_id(&texts[index]));
    let all = steps();
    let mut state = after(&all, all.len());
    assert_eq!(snapshot_version(&state), registry::VERSION_RIGHTS);
    let record = PoolRecord {
        meanings: Meanings::new([(ids[0], ids[1])].into()).unwrap(),
        ..state.pools[&uuid(POOL)].clone()
    };
    let put_types = [0, 1].map(|index| Change::PutType(ids[index], texts[index].clone()));
    let changed = Change::PutPool(uuid(POOL), record);
    assert_eq!(put_types[0].version_needed(), registry::VERSION_MIN);
    assert_eq!(changed.version_needed(), registry::VERSION_MEANINGS);
    state.commit(std::slice::from_ref(&changed));
    let error = state.validate().unwrap_err();
    assert!(error.to_string().contains("not registered"), "{error}");
    state.commit(&put_types);
    let bytes = encode_snapshot(&state).unwrap();
    let said = format!(
        "\"meanings\": {{\n        \"{:#x}\": \"{:#x}\"\n      }}",
        ids[0], ids[1]
    );
    let text = String::from_utf8(bytes).unwrap();
    assert!(
        text.starts_with("durum registry 4 ") && text.contains(&said),
        "{text}"
    );
    let (bytes, _) = file(
        &[&all[..], &[put_types.to_vec(), vec![changed]]].concat(),
        all.len(),
    );
    let error = parse(&bytes).unwrap_err();
    assert!(error.to_string().contains("version 2"), "{error}");

    // Former names and reserved bytes, and not what names only look like.
    for (text, version) in [
        (
            "struct \"was\"(8,8){0:\"reserved(8,8)\":u64;}\n",
            registry::VERSION_MIN,
        ),
        (
            "struct \"a\" was \"b\"(8,8){}\n",
            registry::VERSION_MEANINGS,
        ),
        ("reserved(8,8)\n", registry::VERSION_MEANINGS),
        (
            "variants \"E\"(1,1,tag 0,1){2:\"A\"{}else:\"B\"{0:\"0\":bool;}}\n",
            registry::VERSION_OTHER_CASES,
        ),
        (
            "struct \"a\"(8,8){0:\"n\":u64 in reserved;}\n",
            registry::VERSION_MEANINGS,
        ),
    ] {
        let put = Change::PutType(type_id(text), text.to_owned());
        assert_eq!(put.version_needed(), version, "{text}");
        let mut state = after(&all, all.len());
        state.commit(&[put]);
        let least = version.max(registry::VERSION_RIGHTS);
        assert_eq!(snapshot_version(&state), least, "{text}");
    }
}

/// A pool of two puddles whose root puddle goes to unit 8.
fn moving() -> (Vec<Vec<Change>>, Vec<Change>) {
    let pool = uuid(POOL);
    let stale = |unit: u64, is_root: bool| PuddleRecord {
        is_root,
        is_stale: true,
        origin: None,
        ..puddle(pool, PuddleKind::Data, unit)
    };
    let begin = vec![
        Change::PutPuddle(uuid(0x40), stale(8, true)),
        Change::PutPuddle(uuid(0x41), stale(1, false)),
        Change::PutMove(DEFAULT_BASE, place(8)),
    ];
    (steps()[..3].to_vec(), begin)
}

fn place(unit: u64) -> AddressRange {
    AddressRange {
        address: DEFAULT_BASE + unit * UNIT,
        size: UNIT,
    }
}

/// What it says of the puddle with the root, or the other one, once that is rewritten.
fn rewritten(state: &State, which: u8) -> Vec<Change> {
    let record = PuddleRecord {
        is_stale: false,
        origin: None,
        ..state.puddles[&uuid(which)]
    };
    vec![Change::PutPuddle(uuid(which), record)]
}

#[test]
fn moves_are_told_until_the_last_puddle_is_rewritten() {
    let (mut all, begin) = moving();
    all.push(begin);
    let state = after(&all, all.len());
    state.validate().unwrap();
    all.push(rewritten(&state, 0x41));
    assert_eq!(after(&all, all.len()).moves.len(), 1);
    all.push(rewritten(&state, 0x40));
    let ended = after(&all, all.len());
    let is_stale = ended.puddles.values().any(|puddle| puddle.is_stale);
    assert!(ended.moves.is_empty() && !is_stale);
    // A file whose snapshot speaks of moves has the changes that end them, and none that an older build would misread
    // stands behind a snapshot of the older version.
    for folded in 0..=all.len() {
        let (bytes, _) = file(&all, folded);
        let begins_moving = 3;
        match parse(&bytes) {
            Ok(parsed) => {
                assert!(folded > begins_moving, "{folded}");
                assert_eq!(parsed.state, ended);
                let is_moving = folded < all.len();
                assert_eq!(parsed.version, 2 + u32::from(is_moving));
            }
            Err(error) => {
                assert!(folded <= begins_moving, "{folded}: {error}");
                assert!(error.to_string().contains("version 2"), "{error}");
            }
        }
    }
    // One removed is not stale any more.
    let mut state = after(&all, 4);
    state.commit(&rewritten(&state, 0x40));
    state.commit(&[Change::RemovePuddle(uuid(0x41))]);
    assert!(state.moves.is_empty());
}

#[test]
fn a_registry_whose_moves_contradict_it_is_refused() {
    let (mut all, begin) = moving();
    all.push(begin);
    let moving = after(&all, all.len());
    let spoil = |what: &dyn Fn(&mut State)| {
        let mut state = moving.clone();
        what(&mut state);
        assert!(state.validate().is_err());
    };
    let other = DEFAULT_BASE + 5 * UNIT;
    // Somebody lies where a puddle was; two were at one place.
    spoil(&|state| _ = state.moves.insert(DEFAULT_BASE + UNIT, place(9)));
    spoil(&|state| state.puddles.get_mut(&uuid(0x40)).unwrap().address = DEFAULT_BASE);
    spoil(&|state| {
        let two = AddressRange {
            size: 2 * UNIT,
            ..place(9)
        };
        state
            .moves
            .extend([(other, two), (other + UNIT, place(12))]);
    });
    // Outside of the store, or between units.
    spoil(&|state| _ = state.moves.insert(other + 1, place(9)));
    spoil(&|state| {
        _ = state.moves.insert(
            other,
            AddressRange {
                size: 0,
                ..place(9)
            },
        )
    });
    spoil(&|state| {
        _ = state.moves.insert(
            other,
            AddressRange {
                address: UNIT,
                size: UNIT,
            },
        )
    });
    spoil(&|state| _ = state.moves.insert(DEFAULT_BASE - UNIT, place(9)));
    // Without the one or the other.
    spoil(&|state| state.moves.clear());
    spoil(&|state| {
        for record in state.puddles.values_mut() {
            record.is_stale = false;
        }
    });
    // A log.
    let log = PuddleRecord {
        is_stale: true,
        origin: None,
        ..puddle(uuid(CLIENT), PuddleKind::Log, 6)
    };
    spoil(&|state| {
        state.clients.insert(uuid(CLIENT));
        state.puddles.insert(uuid(0x51), log);
    });
}

/// The pool of [`moving`], imported: its root puddle is elsewhere, the other one where it was.
fn imported() -> State {
    let (mut all, _) = moving();
    let mut state = after(&all, all.len());
    let arrived = |which: u8, from: u64, sum: Option<u32>| {
        let record = state.puddles[&uuid(which)];
        let origin = Origin {
            import: uuid(0x70),
            uuid: uuid(which + 0x10),
            owner: uuid(0x71),
            address: DEFAULT_BASE + from * UNIT,
            is_root: which == 0x40,
            sum,
        };
        PuddleRecord {
            is_stale: true,
            origin: Some(origin),
            ..record
        }
    };
    let import = Import {
        moves: [
            (DEFAULT_BASE + 8 * UNIT, place(0)),
            (DEFAULT_BASE + UNIT, place(1)),
        ]
        .into(),
        untyped_hold_no_pointers: true,
    };
    let begin = vec![
        Change::PutImport(uuid(0x70), import),
        Change::PutPuddle(uuid(0x40), arrived(0x40, 8, None)),
        Change::PutPuddle(uuid(0x41), arrived(0x41, 1, Some(7))),
    ];
    all.push(begin);
    state = after(&all, all.len());
    state.validate().unwrap();
    state
}

#[test]
fn imports_are_told_until_their_last_puddle_is_rewritten() {
    let mut state = imported();
    let bytes = encode_snapshot(&state).unwrap();
    assert!(bytes.starts_with(b"durum registry 3 "));
    state.commit(&rewritten(&state, 0x40));
    assert_eq!(state.imports.len(), 1);
    state.validate().unwrap();
    let mut removed = state.clone();
    removed.commit(&[Change::RemovePuddle(uuid(0x41))]);
    state.commit(&rewritten(&state, 0x41));
    for state in [state, removed] {
        assert!(state.imports.is_empty());
        state.validate().unwrap();
        assert!(
            encode_snapshot(&state)
                .unwrap()
                .starts_with(b"durum registry 2 ")
        );
    }
}

#[test]
fn a_registry_whose_imports_contradict_it_is_refused() {
    let spoil = |what: &dyn Fn(&mut State)| {
        let mut state = imported();
        what(&mut state);
        assert!(state.validate().is_err());
    };
    let first = |state: &mut State, change: &dyn Fn(&mut PuddleRecord)| {
        change(state.puddles.get_mut(&uuid(0x40)).unwrap());
    };
    let moves =
        |state: &mut State, change: &dyn Fn(&mut std::collections::BTreeMap<u64, AddressRange>)| {
            change(&mut state.imports.get_mut(&uuid(0x70)).unwrap().moves);
        };
    let origin = |record: &mut PuddleRecord, change: &dyn Fn(&mut Origin)| {
        change(record.origin.as_mut().unwrap());
    };
    // The one does not say what the other does.
    spoil(&|state| state.imports.clear());
    spoil(&|state| first(state, &|record| record.is_stale = false));
    spoil(&|state| {
        first(state, &|record| {
            origin(record, &|origin| origin.import = uuid(9))
        })
    });
    spoil(&|state| {
        first(state, &|record| {
            origin(record, &|origin| origin.address += UNIT)
        })
    });
    spoil(&|state| {
        first(state, &|record| {
            origin(record, &|origin| origin.uuid = Uuid([0; 16]))
        })
    });
    spoil(&|state| {
        moves(state, &|moves| {
            _ = moves.insert(DEFAULT_BASE + 8 * UNIT, place(3))
        })
    });
    spoil(&|state| {
        _ = state
            .imports
            .insert(uuid(0x72), state.imports[&uuid(0x70)].clone())
    });
    // Between units, or nowhere; two at one place.
    spoil(&|state| moves(state, &|moves| _ = moves.insert(DEFAULT_BASE + 1, place(3))));
    spoil(&|state| moves(state, &|moves| _ = moves.insert(0, place(3))));
    spoil(&|state| moves(state, &|moves| _ = moves.insert(1 << 47, place(3))));
    spoil(&|state| {
        let size = 3 * UNIT;
        moves(state, &|moves| {
            _ = moves.insert(DEFAULT_BASE, AddressRange { size, ..place(3) })
        });
    });
    // Damage of a pool in what is none of it.
    let damage = |puddle| {
        let reason = "another sum".to_owned();
        move |state: &mut State| {
            state.pools.get_mut(&uuid(POOL)).unwrap().damage = Some(Damage {
                puddle,
                reason: reason.clone(),
            });
        }
    };
    spoil(&damage(uuid(0x60)));
    let mut damaged = imported();
    damage(uuid(0x41))(&mut damaged);
    damaged.validate().unwrap();
    damaged.imports.clear();
    for record in damaged.puddles.values_mut() {
        (record.is_stale, record.origin) = (false, None);
    }
    let bytes = encode_snapshot(&damaged).unwrap();
    assert!(
        bytes.starts_with(b"durum registry 3 "),
        "an older build would open it"
    );
}

/// Its logs may lie in quarantine for long: whose they are is known until they go.
#[test]
fn the_user_of_a_client_is_forgotten_with_the_last_thing_that_it_has() {
    let (client, log) = (uuid(CLIENT), uuid(0x53));
    let quarantined = QuarantinedLog {
        log_id: 8,
        continuations: vec![],
        client,
        reason: "damaged".into(),
    };
    let mut state = State::new(store());
    state.commit(&[Change::PutClient(client), Change::PutUser(client, 1000)]);
    state.commit(&[
        Change::RemoveClient(client),
        Change::PutPuddle(log, puddle(client, PuddleKind::Log, 5)),
        Change::PutQuarantine(log, quarantined),
    ]);
    assert_eq!(state.users.get(&client), Some(&1000));
    state.validate().unwrap();
    state.commit(&[
        Change::RemoveQuarantine(log),
        Change::RemovePuddle(log),
        Change::FileGone(log),
    ]);
    assert!(state.users.is_empty());
    state.commit(&[Change::PutClient(client), Change::PutUser(client, 1000)]);
    state.commit(&[Change::RemoveClient(client)]);
    assert!(state.users.is_empty());
}

#[test]
fn what_is_written_is_read_wherever_the_snapshot_ends() {
    let steps = steps();
    for folded in 0..=steps.len() {
        let (bytes, ends) = file(&steps, folded);
        let parsed = parse(&bytes).unwrap();
        assert_eq!(parsed.state, state(), "{folded}");
        assert_eq!(parsed.end, *ends.last().unwrap() as u64);
        assert!(!parsed.is_torn);
        assert_eq!(salvage(None, &[&bytes]), Some(state()));
    }
}

#[test]
fn no_changed_byte_gives_another_state() {
    let steps = steps();
    let (bytes, ends) = file(&steps, 3);
    let last = ends[ends.len() - 2];
    for (at, changed) in flips(&bytes[..ends[ends.len() - 1]]) {
        let mut whole = bytes.clone();
        whole[..changed.len()].copy_from_slice(&changed);
        match parse(&whole) {
            // Of the last record nobody knows whether it was ever whole: there the copy tells.
            Ok(parsed) => {
                assert!(at >= last, "byte {at}");
                assert!(parsed.is_torn && parsed.end == last as u64, "byte {at}");
                assert_eq!(parsed.state, after(&steps, steps.len() - 1));
            }
            Err(error) => {
                assert!(at < last, "byte {at}: {error}");
                if at >= ends[0] {
                    let start = ends.iter().rev().find(|end| **end <= at).unwrap();
                    let text = error.to_string();
                    assert!(text.contains(&format!("offset {start} ")), "{at}: {text}");
                }
            }
        }
    }
}

#[test]
fn every_other_length_is_refused() {
    let (bytes, ends) = file(&steps(), 3);
    let lengths = (0..ends[ends.len() - 1]).chain([bytes.len() / 2, bytes.len() - 1]);
    for length in lengths {
        let error = parse(&bytes[..length]).unwrap_err();
        assert_eq!(error.fault(), Fault::Damaged, "{length}: {error}");
    }
    for more in [1, 4096, 1 << 20] {
        let mut longer = bytes.clone();
        longer.resize(bytes.len() + more, 0);
        assert!(parse(&longer).is_err(), "{more} more");
    }
}

#[test]
fn a_record_that_a_crash_tore_is_no_commit() {
    let steps = steps();
    let (bytes, ends) = file(&steps, 3);
    let (start, end) = (ends[ends.len() - 2], ends[ends.len() - 1]);
    let before = after(&steps, steps.len() - 1);
    // Any set of its sectors, here of 64 bytes, may be the old ones.
    let sectors: Vec<usize> = (start / 64..=(end - 1) / 64).collect();
    for set in 0..1_u32 << sectors.len().min(12) {
        let mut torn = bytes.clone();
        for (index, sector) in sectors.iter().enumerate() {
            if set & 1 << index == 0 {
                let from = (sector * 64).max(start);
                torn[from..(sector * 64 + 64).min(end)].fill(0);
            }
        }
        let parsed = parse(&torn).unwrap();
        if torn == bytes {
            assert_eq!(parsed.state, state());
        } else {
            assert_eq!(parsed.state, before, "{set:b}");
            assert_eq!(parsed.end, start as u64);
            let is_clear = torn[start..].iter().all(|byte| *byte == 0);
            assert_eq!(parsed.is_torn, !is_clear, "{set:b}");
        }
    }
}

#[test]
fn a_record_that_is_not_the_next_one_is_damage() {
    let (bytes, ends) = file(&steps(), 3);
    for sequence in [0, 3, 5, u64::MAX] {
        let mut other = bytes.clone();
        let record = encode_changes(uuid(0x10), sequence, &[Change::Cursor(DEFAULT_BASE)]);
        let at = ends[0];
        other[at..ends[ends.len() - 1]].fill(0);
        other[at..at + record.len()].copy_from_slice(&record);
        let error = parse(&other).unwrap_err();
        assert_eq!(error.offset(), Some(at as u64), "{error}");
    }
    // Nor is one of another store a record.
    let mut other = bytes;
    let record = encode_changes(uuid(0x11), 4, &[Change::Cursor(DEFAULT_BASE)]);
    other[ends[0]..ends[ends.len() - 1]].fill(0);
    other[ends[0]..ends[0] + record.len()].copy_from_slice(&record);
    assert!(parse(&other).unwrap().is_torn);
}

#[test]
fn a_newer_registry_is_refused_by_its_version_and_a_foreign_one_as_such() {
    for parsed in [
        parse(b"durum registry 6 whatever follows\n").map(|_| ()),
        Room::of(b"durum registry 6 whatever follows\n").map(|_| ()),
    ] {
        let newer = parsed.unwrap_err();
        assert_eq!(newer.fault(), Fault::OtherVersion, "{newer}");
    }
    assert_eq!(parse(b"{}").unwrap_err().fault(), Fault::Foreign);
    assert_eq!(parse(b"durum reg").unwrap_err().fault(), Fault::Damaged);
    let long = format!("durum registry 1 {} 0x00000000\n", 1_u64 << 40);
    let error = Room::of(long.as_bytes()).unwrap_err();
    assert!(
        error.to_string().contains("no snapshot has more"),
        "{error}"
    );
}

#[test]
fn one_lost_sector_or_file_costs_nothing() {
    let steps = steps();
    let (bytes, ends) = file(&steps, 3);
    // The copy may have been folded at another time.
    for (copy, _) in [file(&steps, 3), file(&steps, 0), file(&steps, 5)] {
        for start in (0..ends[ends.len() - 1]).step_by(64) {
            let mut damaged = bytes.clone();
            damaged[start..start + 64].fill(0);
            for files in [[&damaged, &copy], [&copy, &damaged]] {
                let files = files.map(Vec::as_slice);
                assert_eq!(salvage(None, &files), Some(state()), "at {start}");
            }
        }
        assert_eq!(salvage(Some(uuid(0x10)), &[&[], &copy]), Some(state()));
    }
    assert_eq!(salvage(Some(uuid(0x11)), &[&bytes]), None);
    assert_eq!(salvage(None, &[b"durum registry", b""]), None);
}

/// Whoever writes beginnings of records over each other makes a reader sum up each of them: time in the square of the
/// file's length, which was hours. A reader gives up after a few lengths.
#[test]
fn beginnings_of_records_over_each_other_are_damage_and_not_looked_at_for_ever() {
    let steps = steps();
    let (whole, ends) = file(&steps, 3);
    let beginnings =
        |length: usize, count: usize| format!("change 1 {length} 0x00000000\n").repeat(count);
    let mut hostile = whole.clone();
    let text = beginnings(20_000, 1000);
    hostile[ends[0]..ends[0] + text.len()].copy_from_slice(text.as_bytes());
    let error = parse(&hostile).unwrap_err();
    assert_eq!(error.fault(), Fault::Damaged);
    assert!(error.to_string().contains("over each other"), "{error}");
    // One such beginning may be what a crash left.
    hostile[ends[0]..].fill(0);
    let text = beginnings(20_000, 1);
    hostile[ends[0]..ends[0] + text.len()].copy_from_slice(text.as_bytes());
    assert!(parse(&hostile).unwrap().is_torn);

    let text = beginnings(4_000_000, 300_000);
    let began = Instant::now();
    for files in [[text.as_bytes(), &whole], [&whole, text.as_bytes()]] {
        assert_eq!(salvage(None, &files), Some(state()));
    }
    assert!(began.elapsed() < Duration::from_secs(60));
}

#[test]
fn two_histories_are_not_mixed() {
    let steps = steps();
    let (first, _) = file(&steps, 3);
    let mut other = steps.clone();
    other[4] = vec![Change::Cursor(DEFAULT_BASE)];
    let (mut second, _) = file(&other, 3);
    second[0] = b'x';
    // Both have a fifth commit, and they are not the same.
    let salvaged = salvage(None, &[&first, &second]).unwrap();
    assert_eq!(salvaged, after(&steps, 4));
}

#[test]
fn registries_that_contradict_themselves_are_refused() {
    type Edit<'a> = &'a dyn Fn(&mut State);
    let (pool, client) = (uuid(POOL), uuid(CLIENT));
    let edits: [(Edit<'_>, &str); 28] = [
        (&|s| s.store.base = 4096, "multiples of 2 MiB"),
        (&|s| s.store.domain = "DAX".into(), "persistence domain"),
        (&|s| s.store.uuid = Uuid::NIL, "all zero"),
        (&|s| s.cursor = DEFAULT_BASE - UNIT, "the next address"),
        (
            &|s| s.puddles.get_mut(&uuid(0x41)).unwrap().address -= UNIT,
            "overlap",
        ),
        (
            &|s| s.puddles.get_mut(&uuid(0x40)).unwrap().size += UNIT,
            "overlap",
        ),
        (
            &|s| s.puddles.get_mut(&uuid(0x40)).unwrap().size = 0,
            "inside the store's range",
        ),
        (
            &|s| s.puddles.get_mut(&uuid(0x41)).unwrap().size = u64::MAX - UNIT + 1,
            "inside",
        ),
        (
            &|s| s.puddles.get_mut(&uuid(0x41)).unwrap().address = DEFAULT_BASE - UNIT,
            "inside",
        ),
        (
            &|s| s.puddles.get_mut(&uuid(0x41)).unwrap().address += 4096,
            "inside",
        ),
        (
            &|s| s.puddles.get_mut(&uuid(0x41)).unwrap().kind = PuddleKind::Twin,
            "not registered",
        ),
        (
            &|s| s.puddles.get_mut(&uuid(0x41)).unwrap().is_root = true,
            "of no pool",
        ),
        (
            &|s| s.puddles.get_mut(&uuid(0x51)).unwrap().owner = pool,
            "not registered",
        ),
        (
            &|s| {
                s.removing.insert(uuid(0x41));
            },
            "being removed",
        ),
        (
            &|s| {
                s.coming.insert(uuid(0x41));
            },
            "being removed, or made",
        ),
        (
            &|s| s.pools.get_mut(&pool).unwrap().name = "a/b".into(),
            "pool name",
        ),
        (
            &|s| {
                s.pools
                    .get_mut(&pool)
                    .unwrap()
                    .rights
                    .as_mut()
                    .unwrap()
                    .mode = 0o700
            },
            "a mode with other bits",
        ),
        (
            &|s| {
                s.users.insert(uuid(1), 1000);
            },
            "has a user",
        ),
        (
            &|s| s.pools.get_mut(&pool).unwrap().root_puddle = uuid(0x41),
            "not a root puddle",
        ),
        (
            &|s| {
                s.pools.remove(&pool);
            },
            "not registered",
        ),
        (
            &|s| {
                s.clients.remove(&client);
            },
            "not registered",
        ),
        (
            &|s| {
                s.grants.insert((uuid(1), pool));
            },
            "a grant",
        ),
        (
            &|s| {
                s.grants.insert((client, uuid(1)));
            },
            "a grant",
        ),
        (
            &|s| {
                s.log_spaces.insert(uuid(0x51), client);
            },
            "log space",
        ),
        (
            &|s| {
                s.quarantine.clear();
            },
            "not registered",
        ),
        (
            &|s| {
                s.quarantine
                    .get_mut(&uuid(0x52))
                    .unwrap()
                    .continuations
                    .push(uuid(0x40))
            },
            "holds no log",
        ),
        (
            &|s| {
                s.marks.insert((pool, client));
            },
            "marked",
        ),
        (
            &|s| {
                s.types.insert(1, NODE.into());
            },
            "has the id",
        ),
    ];
    for (index, (edit, problem)) in edits.iter().enumerate() {
        let mut changed = state();
        edit(&mut changed);
        match encode_snapshot(&changed) {
            Err(FormatError::Text {
                problem: found,
                fault: Fault::Damaged,
                ..
            }) => {
                assert!(found.contains(problem), "case {index}: {found}");
            }
            other => panic!("case {index}: {other:?}"),
        }
    }
}

#[test]
fn a_registry_that_says_more_than_its_version_or_says_it_otherwise_is_refused() {
    let good = String::from_utf8(encode_snapshot(&state()).unwrap()).unwrap();
    let (_, body) = good.split_once('\n').unwrap();
    let made = |body: &str| {
        let checksum = durum_format::crc::crc32c(body.as_bytes());
        let mut bytes =
            format!("durum registry 2 {} {checksum:#010x}\n{body}", body.len()).into_bytes();
        let room = Room::of(&bytes).unwrap();
        bytes.resize(room.end as usize, 0);
        parse(&bytes)
    };
    made(body).unwrap();
    for (from, to) in [
        ("\"cursor\"", "\"later\": 1,\n  \"cursor\""),
        ("\"sequence\": 6", "\"sequence\": 5,\n  \"sequence\": 6"),
        ("\"sequence\": 6", "\"sequence\":  6"),
        ("\"hybrid\"", "\"cubist\""),
        ("\"0640\"", "\"640\""),
        ("\"0640\"", "\"0740\""),
        ("\"uid\": 1000", "\"uid\": -1"),
        ("\"is_root\": true", "\"is_root\": true, \"x\": 0"),
    ] {
        assert!(body.contains(from), "{from}");
        made(&body.replacen(from, to, 1)).unwrap_err();
    }
    made(&"[".repeat(100_000)).unwrap_err();
}

/// Everything that there is goes in one commit, even where additions have filled their room: the disk may be full.
#[test]
fn the_reserve_holds_the_removal_of_everything() {
    for (pools, puddles) in [
        (0_u64, 0_u64),
        (1, 1),
        (30, 3),
        (3, 300),
        (300, 1),
        (2, 2000),
    ] {
        let mut state = State::new(store());
        let mut next = 0_u128;
        let mut fresh = || {
            next += 1;
            Uuid(next.to_be_bytes())
        };
        let (mut put, mut remove) = (Vec::new(), Vec::new());
        let client = fresh();
        put.push(Change::PutClient(client));
        for number in 0..pools {
            let pool = fresh();
            for index in 0..puddles {
                let uuid = fresh();
                let unit = number * puddles + index;
                if index == 0 {
                    let name = format!("{number}");
                    let engine = EngineKind::Twin;
                    put.push(Change::PutPool(
                        pool,
                        PoolRecord {
                            name,
                            engine,
                            root_puddle: uuid,
                            rights: Some(RIGHTS),
                            damage: None,
                            meanings: Meanings::default(),
                        },
                    ));
                    put.push(Change::PutGrant(client, pool));
                    remove.push(Change::RemoveGrant(client, pool));
                    remove.push(Change::RemovePool(pool));
                }
                let is_root = index == 0;
                let record = PuddleRecord {
                    is_root,
                    ..puddle(pool, PuddleKind::Twin, unit)
                };
                put.push(Change::PutPuddle(uuid, record));
                remove.push(Change::RemovePuddle(uuid));
                remove.push(Change::FileGone(uuid));
            }
        }
        remove.push(Change::RemoveClient(client));
        state.commit(&put);
        let snapshot = encode_snapshot(&state).unwrap();
        let room = Room::of(&snapshot).unwrap();
        let record = encode_changes(store().uuid, 2, &remove).len() as u64;
        assert!(
            record <= room.end - room.additions_end,
            "{pools} x {puddles}: {record}, {room:?}"
        );
        state.commit(&remove);
        assert_eq!(
            state,
            State {
                sequence: 2,
                ..State::new(store())
            }
        );
    }
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

#[test]
fn what_is_coming_is_there_when_it_is_put_and_gone_at_the_next_opening_else() {
    let mut state = State::new(store());
    let (client, coming) = (uuid(0x21), [uuid(0x41), uuid(0x42)]);
    state.commit(&[Change::PutClient(client)]);
    let version = snapshot_version(&state);
    state.commit(&coming.map(Change::Coming));
    assert!(snapshot_version(&state) > version);
    assert_eq!(state.going().collect::<Vec<_>>(), coming);
    assert!(coming.iter().all(|uuid| state.is_going(*uuid)));

    let [put, gone] = coming;
    state.commit(&[
        Change::PutPuddle(put, puddle(client, PuddleKind::Log, 0)),
        Change::FileGone(gone),
    ]);
    state.validate().unwrap();
    assert_eq!(state.going().count(), 0);
    assert!(state.puddles.contains_key(&put));
    assert_eq!(snapshot_version(&state), version);
}

proptest! {
    /// A record is made where it has room, and not where one byte is missing.
    #[test]
    fn a_record_is_made_where_it_has_room(changes in prop::collection::vec(change(), 0..9)) {
        let record = encode_changes(store().uuid, 7, &changes);
        let within = |max| encode_changes_within(store().uuid, 7, &changes, max);
        prop_assert_eq!(within(record.len()), Some(record.clone()));
        for less in [record.len() - 1, record.len() / 2, 0] {
            prop_assert_eq!(within(less), None);
        }
    }

    /// Against a model: the state that the changes give, folded anywhere, cut anywhere, damaged anywhere.
    #[test]
    fn any_history_reads_back(
        steps in prop::collection::vec(prop::collection::vec(change(), 0..4), 1..12),
        folded in 0_usize..12,
        is_importing: bool,
        lost in 0_usize..1 << 20,
        length in 1_usize..600,
    ) {
        let mut steps = steps;
        let mut folded = folded % (steps.len() + 1);
        // Only a file whose snapshot speaks of imports gets records that do.
        if is_importing {
            steps.insert(0, vec![Change::Coming(uuid(0x77))]);
            folded += 1;
        } else {
            for step in &mut steps {
                step.retain(|change| !matches!(change, Change::Coming(_)));
            }
        }
        let (bytes, ends) = file(&steps, folded);
        let model = after(&steps, steps.len());
        prop_assert_eq!(&parse(&bytes).unwrap().state, &model);
        let used = ends[ends.len() - 1];
        let start = lost % used;
        let mut damaged = bytes.clone();
        damaged[start..(start + length).min(used)].fill(0);
        if damaged != bytes {
            match parse(&damaged) {
                // All from here on is gone: as if it had never been.
                Ok(parsed) => {
                    prop_assert!(ends.len() > 1 && start + length > ends[ends.len() - 2]);
                    let kept = parsed.state.sequence as usize;
                    prop_assert!(kept < steps.len());
                    prop_assert_eq!(parsed.state, after(&steps, kept));
                }
                Err(error) => prop_assert_eq!(error.fault() == Fault::OtherVersion, false),
            }
            prop_assert_eq!(salvage(None, &[&damaged, &bytes]), Some(model));
        }
        prop_assert!(registry::parse(&bytes[..used.min(start)]).is_err());
    }
}
