//! Pools that move or were imported, until their last puddle is rewritten.

use durum_format::puddle::PuddleKind;
use durum_format::registry::{
    AddressRange, Change, Damage, Import, Origin, PuddleRecord, State, encode_snapshot, parse,
};
use durum_format::{DEFAULT_BASE, UNIT, Uuid};

use crate::common::uuid;
use crate::{CLIENT, POOL, after, file, puddle, steps};

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
