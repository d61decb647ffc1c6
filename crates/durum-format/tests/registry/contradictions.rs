//! Registries that no durum can have written are refused.

use durum_format::puddle::PuddleKind;
use durum_format::registry::{Room, State, encode_snapshot, parse};
use durum_format::{DEFAULT_BASE, Fault, FormatError, UNIT, Uuid};

use crate::common::uuid;
use crate::{CLIENT, NODE, POOL, state};

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
