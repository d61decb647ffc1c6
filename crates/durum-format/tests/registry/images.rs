//! What is written is read as the same, whatever its version and wherever the snapshot ends.

use durum_format::puddle::PuddleKind;
use durum_format::registry::{
    self, Change, PoolRecord, PuddleRecord, QuarantinedLog, Room, State, encode_changes,
    encode_snapshot, parse, salvage, snapshot_version,
};
use durum_format::types::{Meanings, type_id};
use durum_format::{DEFAULT_BASE, EngineKind, UNIT, Uuid};

use crate::common::uuid;
use crate::{CLIENT, POOL, RIGHTS, after, file, puddle, state, steps, store};

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
