//! `durum.store` and `catalog`: images, what is refused, and what contradicts itself.

mod common;

use common::{flips, uuid};
use durum_format::catalog::{
    Catalog, ClientRecord, Grant, GrantMode, PoolRecord, PuddleRecord, QuarantineRecord, TypeRecord,
};
use durum_format::puddle::PuddleKind;
use durum_format::store::StoreHeader;
use durum_format::types::type_id;
use durum_format::{DEFAULT_BASE, Fault, FormatError, SPACE_SIZE, UNIT, Uuid};

/// Written by hand from docs/format/store.md.
const STORE: &str = "durum store
version = 1
uuid = 10111213-1415-1617-1819-1a1b1c1d1e1f
base = 0x200000000000
size = 0x10000000000
start = 0x200040000000
domain = dram
checksum = 0x52ff3b01
";

fn store() -> StoreHeader {
    StoreHeader {
        uuid: uuid(0x10),
        base: DEFAULT_BASE,
        size: SPACE_SIZE,
        start: 0x2000_4000_0000,
        domain: "dram".into(),
    }
}

#[test]
fn the_store_file_of_version_1_is_read_and_written() {
    assert_eq!(store().encode().unwrap(), STORE);
    assert_eq!(StoreHeader::parse(STORE.as_bytes()).unwrap(), store());
}

#[test]
fn every_changed_or_missing_byte_of_the_store_file_is_refused() {
    for (at, changed) in flips(STORE.as_bytes()) {
        assert!(StoreHeader::parse(&changed).is_err(), "byte {at}");
    }
    for len in 0..STORE.len() {
        let error = StoreHeader::parse(&STORE.as_bytes()[..len]).unwrap_err();
        assert_ne!(error.fault(), Fault::OtherVersion, "{len}: {error}");
        if len <= 12 {
            assert_eq!(
                error.fault(),
                Fault::Damaged,
                "a file that a crash left empty is no foreign one"
            );
        }
    }
    let more = format!("{STORE}x");
    assert!(StoreHeader::parse(more.as_bytes()).is_err());
}

#[test]
fn a_newer_store_is_refused_by_its_version_and_a_foreign_one_as_such() {
    for newer in [
        STORE.replace("version = 1", "version = 2"),
        "durum store\nversion = 7 {binary}".into(),
    ] {
        let error = StoreHeader::parse(newer.as_bytes()).unwrap_err();
        assert_eq!(error.fault(), Fault::OtherVersion);
        assert!(
            error
                .to_string()
                .contains("this build reads version 1 only"),
            "{error}"
        );
    }
    assert_eq!(
        StoreHeader::parse(b"PK\x03\x04").unwrap_err().fault(),
        Fault::Foreign
    );
    assert_eq!(
        StoreHeader::parse(b"durum stork\n").unwrap_err().fault(),
        Fault::Foreign
    );
}

#[test]
fn impossible_stores_are_not_written() {
    for store in [
        StoreHeader {
            uuid: Uuid::NIL,
            ..store()
        },
        StoreHeader {
            base: DEFAULT_BASE + 4096,
            ..store()
        },
        StoreHeader { base: 0, ..store() },
        StoreHeader { size: 0, ..store() },
        StoreHeader {
            size: 1 << 47,
            ..store()
        },
        StoreHeader {
            size: u64::MAX - UNIT + 1,
            ..store()
        },
        StoreHeader {
            start: DEFAULT_BASE - UNIT,
            ..store()
        },
        StoreHeader {
            start: DEFAULT_BASE + SPACE_SIZE,
            ..store()
        },
        StoreHeader {
            start: DEFAULT_BASE + 1,
            ..store()
        },
        StoreHeader {
            domain: "".into(),
            ..store()
        },
        StoreHeader {
            domain: "dram\nx = y".into(),
            ..store()
        },
    ] {
        assert!(store.encode().is_err(), "{store:?}");
    }
}

const NODE: &str = "struct \"Node\"(16,8){0:\"value\":i64;8:\"next\":*0;}\n";

fn puddle(first: u8, owner: Uuid, kind: PuddleKind, unit: u64, units: u64) -> PuddleRecord {
    PuddleRecord {
        uuid: uuid(first),
        owner,
        kind,
        address: DEFAULT_BASE + unit * UNIT,
        size: units * UNIT,
        file: format!("puddles/{}", uuid(first)),
    }
}

fn catalog() -> Catalog {
    let (pool, client) = (uuid(0x20), uuid(0x30));
    Catalog {
        commit: 12,
        clean: false,
        pools: vec![PoolRecord {
            name: "words".into(),
            uuid: pool,
            engine: "hybrid".into(),
            root: uuid(0x40),
            puddles: vec![uuid(0x40), uuid(0x41)],
        }],
        puddles: vec![
            puddle(0x41, pool, PuddleKind::Data, 10, 2),
            puddle(0x40, pool, PuddleKind::Data, 0, 1),
            puddle(0x50, client, PuddleKind::LogSpace, 1, 1),
            puddle(0x51, client, PuddleKind::Log, 2, 1),
            puddle(0x52, uuid(0x99), PuddleKind::Log, 3, 1),
        ],
        types: vec![TypeRecord {
            id: type_id(NODE),
            text: NODE.into(),
        }],
        clients: vec![ClientRecord {
            uuid: client,
            log_space: Some(uuid(0x50)),
            grants: vec![
                Grant {
                    puddle: uuid(0x40),
                    mode: GrantMode::Write,
                },
                Grant {
                    puddle: uuid(0x41),
                    mode: GrantMode::Read,
                },
            ],
        }],
        quarantine: vec![QuarantineRecord {
            log_id: 7,
            puddle: uuid(0x52),
            continuations: vec![],
            client: uuid(0x99),
            reason: "entries were damaged".into(),
        }],
        ..Catalog::empty(uuid(0x10), DEFAULT_BASE, SPACE_SIZE, "dram")
    }
}

/// Written by hand from docs/format/catalog.md.
const EMPTY_CATALOG: &str = "durum catalog 1 245 0xf6963232
{
  \"store\": \"10111213-1415-1617-1819-1a1b1c1d1e1f\",
  \"commit\": 0,
  \"base\": \"0x200000000000\",
  \"size\": \"0x10000000000\",
  \"domain\": \"dram\",
  \"clean\": true,
  \"pools\": [],
  \"puddles\": [],
  \"types\": [],
  \"clients\": [],
  \"quarantine\": []
}
";

#[test]
fn the_catalog_of_version_1_is_read_and_written() {
    let empty = Catalog::empty(uuid(0x10), DEFAULT_BASE, SPACE_SIZE, "dram");
    assert_eq!(
        String::from_utf8(empty.encode().unwrap()).unwrap(),
        EMPTY_CATALOG
    );
    assert_eq!(Catalog::parse(EMPTY_CATALOG.as_bytes()).unwrap(), empty);
    let encoded = catalog().encode().unwrap();
    assert_eq!(Catalog::parse(&encoded).unwrap(), catalog());
}

#[test]
fn every_changed_or_missing_byte_of_the_catalog_is_refused() {
    let encoded = catalog().encode().unwrap();
    for (at, changed) in flips(&encoded) {
        assert!(Catalog::parse(&changed).is_err(), "byte {at}");
    }
    for len in 0..encoded.len() {
        let error = Catalog::parse(&encoded[..len]).unwrap_err();
        assert_eq!(error.fault(), Fault::Damaged, "{len}: {error}");
    }
    let more = [encoded.as_slice(), b"\n"].concat();
    assert!(Catalog::parse(&more).is_err());
}

#[test]
fn a_newer_catalog_is_refused_by_its_version_and_a_foreign_one_as_such() {
    let newer = Catalog::parse(b"durum catalog 2 whatever follows\n").unwrap_err();
    assert!(
        matches!(
            newer,
            FormatError::Version {
                structure: "catalog",
                found: 2,
                supported: 1,
                ..
            }
        ),
        "{newer}"
    );
    assert_eq!(Catalog::parse(b"{}").unwrap_err().fault(), Fault::Foreign);
    for line in [
        "1 5",
        "1 5 0x1",
        "01 5 0x00000000",
        "1 05 0x00000000",
        "1 5 0x00000000 ",
        "x 5 0x00000000",
    ] {
        let file = format!("durum catalog {line}\n12345");
        assert!(
            matches!(
                Catalog::parse(file.as_bytes()),
                Err(FormatError::Text {
                    fault: Fault::Damaged,
                    ..
                })
            ),
            "{line}"
        );
    }
}

#[test]
fn catalogs_that_contradict_themselves_are_refused() {
    let refused = |change: &dyn Fn(&mut Catalog)| {
        let mut changed = catalog();
        change(&mut changed);
        match changed.encode() {
            Err(FormatError::Text {
                problem,
                fault: Fault::Damaged,
                ..
            }) => problem,
            other => panic!("{other:?}"),
        }
    };
    type Change<'a> = &'a dyn Fn(&mut Catalog);
    let cases: [(Change<'_>, &str); 29] = [
        (&|c| c.base = 4096, "multiples of 2 MiB"),
        (&|c| c.domain = "DAX".into(), "persistence domain"),
        (&|c| c.store = Uuid::NIL, "all zero"),
        (&|c| c.puddles[1].address = c.puddles[0].address, "overlap"),
        (
            &|c| c.puddles[1].address = c.puddles[0].address + UNIT,
            "overlap",
        ),
        (
            &|c| c.puddles[0].address = DEFAULT_BASE - UNIT,
            "inside the store's range",
        ),
        (
            &|c| c.puddles[0].address = DEFAULT_BASE + SPACE_SIZE - UNIT,
            "inside the store's range",
        ),
        (
            &|c| c.puddles[0].address += 4096,
            "inside the store's range",
        ),
        (&|c| c.puddles[0].size = 0, "inside the store's range"),
        (
            &|c| c.puddles[0].size = u64::MAX - UNIT + 1,
            "inside the store's range",
        ),
        (&|c| c.puddles[0].uuid = c.puddles[1].uuid, "twice"),
        (
            &|c| c.puddles[0].file = c.puddles[1].file.clone(),
            "used twice",
        ),
        (
            &|c| c.puddles[0].file = "../../etc/passwd".into(),
            "inside the store",
        ),
        (
            &|c| c.puddles[0].file = "/etc/passwd".into(),
            "inside the store",
        ),
        (&|c| c.puddles[0].file = "".into(), "inside the store"),
        (&|c| c.pools[0].name = "a/b".into(), "pool name"),
        (&|c| c.pools[0].engine = "".into(), "engine"),
        (&|c| c.pools.push(c.pools[0].clone()), "twice"),
        (&|c| c.pools[0].root = uuid(0x51), "none of its puddles"),
        (&|c| c.pools[0].puddles.push(uuid(0x41)), "twice"),
        (
            &|c| c.pools[0].puddles.push(uuid(0x51)),
            "does not hold data",
        ),
        (&|c| c.pools.clear(), "does not know"),
        (
            &|c| c.clients[0].log_space = Some(uuid(0x51)),
            "not its log space",
        ),
        (
            &|c| c.clients[0].grants[0].puddle = uuid(0x51),
            "holds no data",
        ),
        (
            &|c| c.clients[0].grants[0].puddle = uuid(0x41),
            "named twice",
        ),
        (&|c| c.clients.clear(), "does not know"),
        (&|c| c.quarantine[0].puddle = uuid(0x40), "holds no log"),
        (&|c| c.quarantine.clear(), "does not know"),
        (&|c| c.types[0].id += 1, "has the id"),
    ];
    for (index, (change, problem)) in cases.into_iter().enumerate() {
        let found = refused(change);
        assert!(found.contains(problem), "case {index}: {found}");
    }
    assert!(refused(&|c| c.types.push(c.types[0].clone())).contains("twice"));
    assert!(refused(&|c| c.types[0].text = "u8".into()).contains("type descriptor"));
    assert!(refused(&|c| c.clients.push(c.clients[0].clone())).contains("client"));
}

#[test]
fn a_catalog_that_says_more_than_its_version_is_refused() {
    let file = |body: &str| {
        let checksum = durum_format::crc::crc32c(body.as_bytes());
        format!("durum catalog 1 {} {checksum:#010x}\n{body}", body.len()).into_bytes()
    };
    let good = String::from_utf8(catalog().encode().unwrap()).unwrap();
    let (_, body) = good.split_once('\n').unwrap();
    assert!(Catalog::parse(&file(body)).is_ok());
    let more = body.replacen("\"commit\"", "\"later\": 1,\n  \"commit\"", 1);
    assert!(
        Catalog::parse(&file(&more))
            .unwrap_err()
            .to_string()
            .contains("later")
    );
    let twice = body.replacen("\"commit\": 12", "\"commit\": 12, \"commit\": 13", 1);
    assert!(Catalog::parse(&file(&twice)).is_err());
    assert!(Catalog::parse(&file("[]")).is_err());
    assert!(Catalog::parse(&file(&"[".repeat(100_000))).is_err());
}
