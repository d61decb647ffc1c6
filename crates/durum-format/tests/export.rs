//! The manifest of an export: images, what is refused, and what contradicts itself.

mod common;

use common::{flips, uuid};
use durum_format::export::{BYTES_MAX, ExportedPool, ExportedPuddle, Manifest, length, parse, sum};
use durum_format::puddle::PuddleKind;
use durum_format::store::StoreHeader;
use durum_format::types::{Meanings, type_id};
use durum_format::{DEFAULT_BASE, EngineKind, Fault, SPACE_SIZE, UNIT};

const TYPE: &str = "u64\n";

/// Written by hand from docs/format/export.md.
const MANIFEST: &str = r#"durum export 1 980 0x9a5a437d
{
  "store": {
    "uuid": "10111213-1415-1617-1819-1a1b1c1d1e1f",
    "base": "0x200000000000",
    "size": "0x10000000000",
    "start": "0x200040000000",
    "domain": "dram"
  },
  "pool": "20212223-2425-2627-2829-2a2b2c2d2e2f",
  "pools": {
    "20212223-2425-2627-2829-2a2b2c2d2e2f": {
      "name": "words",
      "engine": "twin",
      "root_puddle": "30313233-3435-3637-3839-3a3b3c3d3e3f"
    }
  },
  "puddles": {
    "30313233-3435-3637-3839-3a3b3c3d3e3f": {
      "owner": "20212223-2425-2627-2829-2a2b2c2d2e2f",
      "address": "0x200000000000",
      "size": "0x200000",
      "kind": "twin",
      "is_root": true,
      "sum": "0x12345678"
    },
    "31323334-3536-3738-393a-3b3c3d3e3f40": {
      "owner": "20212223-2425-2627-2829-2a2b2c2d2e2f",
      "address": "0x200000600000",
      "size": "0x400000",
      "kind": "twin",
      "is_root": false,
      "sum": "0x9"
    }
  },
  "types": {
    "0xcd9c3c4388edb4b2": "u64\n"
  },
  "untyped_objects": 2
}
"#;

fn manifest() -> Manifest {
    let puddle = ExportedPuddle {
        owner: uuid(0x20),
        address: DEFAULT_BASE,
        size: UNIT,
        kind: PuddleKind::Twin,
        is_root: true,
        sum: 0x1234_5678,
    };
    let other = ExportedPuddle {
        address: DEFAULT_BASE + 3 * UNIT,
        size: 2 * UNIT,
        is_root: false,
        sum: 9,
        ..puddle
    };
    Manifest {
        store: StoreHeader {
            uuid: uuid(0x10),
            base: DEFAULT_BASE,
            size: SPACE_SIZE,
            start: 0x2000_4000_0000,
            domain: "dram".into(),
        },
        pool: uuid(0x20),
        pools: [(
            uuid(0x20),
            ExportedPool {
                name: "words".into(),
                engine: EngineKind::Twin,
                root_puddle: uuid(0x30),
                meanings: Meanings::default(),
            },
        )]
        .into(),
        puddles: [(uuid(0x30), puddle), (uuid(0x31), other)].into(),
        types: [(type_id(TYPE), TYPE.to_owned())].into(),
        untyped_objects: 2,
    }
}

#[test]
fn the_manifest_of_version_1_is_read_and_written() {
    let bytes = manifest().encode().unwrap();
    assert_eq!(String::from_utf8(bytes.clone()).unwrap(), MANIFEST);
    assert_eq!(parse(&bytes).unwrap(), manifest());
    assert_eq!(length(&bytes[..64]).unwrap(), bytes.len() as u64);
}

#[test]
fn every_changed_or_missing_byte_is_refused() {
    for (at, changed) in flips(MANIFEST.as_bytes()) {
        assert!(parse(&changed).is_err(), "byte {at}");
    }
    for cut in 0..MANIFEST.len() {
        assert!(parse(&MANIFEST.as_bytes()[..cut]).is_err(), "{cut}");
    }
    assert!(parse(format!("{MANIFEST}x").as_bytes()).is_err());
    let newer = MANIFEST.replacen("export 1", "export 4", 1);
    assert_eq!(
        parse(newer.as_bytes()).unwrap_err().fault(),
        Fault::OtherVersion
    );
    assert_eq!(
        parse(b"durum registry 1").unwrap_err().fault(),
        Fault::Foreign
    );
    let huge = format!("durum export 1 {} 0x00000000\n", BYTES_MAX + 1);
    assert!(
        length(huge.as_bytes()).is_err(),
        "nobody takes memory for that"
    );
}

#[test]
fn what_contradicts_itself_is_refused() {
    let spoil = |what: &dyn Fn(&mut Manifest)| {
        let mut manifest = manifest();
        what(&mut manifest);
        assert!(manifest.encode().is_err());
    };
    spoil(&|manifest| manifest.pool = uuid(0x21));
    spoil(&|manifest| manifest.pools.clear());
    let puddle = |manifest: &mut Manifest, change: &dyn Fn(&mut ExportedPuddle)| {
        change(manifest.puddles.get_mut(&uuid(0x31)).unwrap());
    };
    spoil(&|manifest| puddle(manifest, &|puddle| puddle.address = DEFAULT_BASE));
    spoil(&|manifest| puddle(manifest, &|puddle| puddle.address += 1));
    spoil(&|manifest| puddle(manifest, &|puddle| puddle.size = 0));
    spoil(&|manifest| puddle(manifest, &|puddle| puddle.size = !(UNIT - 1)));
    spoil(&|manifest| puddle(manifest, &|puddle| puddle.kind = PuddleKind::Data));
    spoil(&|manifest| puddle(manifest, &|puddle| puddle.kind = PuddleKind::Log));
    spoil(&|manifest| puddle(manifest, &|puddle| puddle.is_root = true));
    spoil(&|manifest| puddle(manifest, &|puddle| puddle.owner = uuid(0x55)));
    spoil(&|manifest| _ = manifest.types.insert(7, TYPE.to_owned()));
    spoil(&|manifest| manifest.store.base = 0);
    spoil(&|manifest| {
        let pool = manifest.pools.get_mut(&uuid(0x20)).unwrap();
        pool.name = "a/b".to_owned();
    });
}

#[test]
fn a_sum_is_that_of_all_parts_together() {
    assert_eq!(sum([&b"123456789"[..]]), 0xe306_9283);
    assert_eq!(sum([&b"1234"[..], b"", b"56789"]), 0xe306_9283);
}

/// A type with a case for whatever else a tag says makes a manifest of version 3, which older builds refuse.
#[test]
fn a_type_with_a_case_without_a_number_is_of_version_3() {
    let mut manifest = manifest();
    let text = "variants \"E\"(1,1,tag 0,1){2:\"A\"{}else:\"B\"{0:\"0\":bool;}}\n";
    manifest.types.insert(type_id(text), text.to_owned());
    let bytes = manifest.encode().unwrap();
    assert!(bytes.starts_with(b"durum export 3 "));
    assert_eq!(parse(&bytes), Ok(manifest));
    let older = [b"durum export 2 ".as_slice(), &bytes[15..]].concat();
    let refused = parse(&older).unwrap_err().to_string();
    assert!(refused.contains("as this version"), "{refused}");
}

/// Types that may change, and those that did, are of version 2, which older builds refuse.
#[test]
fn types_with_a_history_are_of_version_2() {
    let mut reserved = manifest();
    let old = "struct \"T\"(8,8){0:\"later\":reserved(8,1);}\n";
    let new = "struct \"T\"(8,8){0:\"n\":u64 in reserved;}\n";
    let ids = [old, new].map(type_id);
    reserved.types.insert(ids[0], old.to_owned());
    let mut changed = reserved.clone();
    let meanings = Meanings::new([(ids[0], ids[1])].into());
    for pool in changed.pools.values_mut() {
        pool.meanings = meanings.clone().unwrap();
    }
    assert!(
        changed
            .validate()
            .unwrap_err()
            .to_string()
            .contains("not registered")
    );
    changed.types.insert(ids[1], new.to_owned());
    for manifest in [reserved, changed] {
        let bytes = manifest.encode().unwrap();
        assert!(bytes.starts_with(b"durum export 2 "));
        assert_eq!(parse(&bytes), Ok(manifest));
        let older = [b"durum export 1 ".as_slice(), &bytes[15..]].concat();
        assert!(
            parse(&older)
                .unwrap_err()
                .to_string()
                .contains("as this version")
        );
    }
}
