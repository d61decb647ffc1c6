//! Type descriptors: texts and ids, pointers, paths, values.

use durum_format::types::{
    Case, Count, Declarations, Descriptor, Field, Primitive, Registry, Strength, Type, TypeError,
    Value, ValueError, Variants, type_id,
};
use proptest::prelude::*;
use serde_json::json;

fn number(primitive: Primitive) -> Type<String> {
    Type::Primitive(primitive)
}

fn node() -> Type<String> {
    let fields = vec![
        Field::new("value", 0, number(Primitive::I64)),
        Field::new("next", 8, Type::pointer("Node")),
    ];
    Type::structure("Node", 16, 8, fields)
}

fn one_pointer(name: &str, field: &str, pointer: Type<String>) -> Type<String> {
    Type::structure(name, 8, 8, vec![Field::new(field, 0, pointer)])
}

fn resolve(types: &[Type<String>], name: &str) -> Descriptor {
    let mut declared = Declarations::new();
    for ty in types {
        declared.declare(ty.clone()).unwrap();
    }
    declared.resolve(name).unwrap()
}

/// A map with what there is: variants, arrays of all three kinds, nested structs, every kind of pointer.
fn table() -> Vec<Type<String>> {
    let slot = Type::Variants(Variants {
        was: Vec::new(),
        name: "Slot".into(),
        size: 24,
        align: 8,
        tag_offset: 0,
        tag_width: 1,
        cases: vec![
            Case {
                was: Vec::new(),
                discriminant: Some(0),
                name: "Empty".into(),
                fields: vec![],
            },
            Case {
                was: Vec::new(),
                discriminant: Some(1),
                name: "One".into(),
                fields: vec![
                    Field::new("key", 4, number(Primitive::U32)),
                    Field::new("node", 8, Type::pointer("Node")),
                ],
            },
            Case {
                was: Vec::new(),
                discriminant: Some(2),
                name: "Pair".into(),
                fields: vec![Field::new(
                    "nodes",
                    8,
                    Type::weak("Node").array(Count::Fixed(2)),
                )],
            },
        ],
    });
    let table = Type::structure(
        "Table",
        40,
        8,
        vec![
            Field::new("lock", 0, Type::Volatile { size: 8, align: 8 }),
            Field::new("name", 8, number(Primitive::U8).array(Count::Fixed(6))),
            Field::new("hash", 14, Type::Opaque { size: 2, align: 1 }),
            Field::new("owner", 16, Type::pointer_to_any()),
            Field::new("len", 24, number(Primitive::U16)),
            Field::new("ratio", 32, number(Primitive::F64)),
            Field::new("slots", 40, slot.array(Count::Field("len".into()))),
        ],
    );
    vec![table, node()]
}

/// A table with three slots: Empty, One, Pair.
fn table_bytes() -> Vec<u8> {
    let mut bytes = vec![0; 40 + 3 * 24];
    let mut put = |at: usize, data: &[u8]| bytes[at..at + data.len()].copy_from_slice(data);
    put(0, &[0xff; 8]);
    put(8, b"count\0");
    put(14, &[0xab, 0xcd]);
    put(16, &0x1000u64.to_le_bytes());
    put(24, &3u16.to_le_bytes());
    put(32, &0.5f64.to_le_bytes());
    put(64, &[1]);
    put(68, &7u32.to_le_bytes());
    put(72, &0x2000u64.to_le_bytes());
    put(88, &[2]);
    put(96, &0x3000u64.to_le_bytes());
    bytes
}

/// Texts and ids are promises: a changed one orphans every object of the type in every store. Ids were computed apart
/// from the code.
#[test]
fn texts_and_ids_never_change() {
    let (a, b) = (
        one_pointer("A", "b", Type::pointer("B")),
        one_pointer("B", "a", Type::weak("A")),
    );
    let golden = [
        (resolve(&[], "u64"), "u64\n", 0xcd9c_3c43_88ed_b4b2),
        (
            resolve(&[node()], "Node"),
            "struct \"Node\"(16,8){0:\"value\":i64;8:\"next\":*0;}\n",
            0x2da8_1b49_6776_78b8,
        ),
        (
            resolve(&[a.clone(), b.clone()], "A"),
            "struct \"A\"(8,8){0:\"b\":*1;}\nstruct \"B\"(8,8){0:\"a\":~0;}\n",
            0xfb22_c2bb_ea0b_8d1b,
        ),
        (
            resolve(&[b, a], "B"),
            "struct \"B\"(8,8){0:\"a\":~1;}\nstruct \"A\"(8,8){0:\"b\":*0;}\n",
            0x4cdb_8c40_0b15_0f6c,
        ),
    ];
    for (descriptor, text, id) in golden {
        assert_eq!(descriptor.text(), text);
        assert_eq!(descriptor.id(), id, "{text}");
        assert_eq!(type_id(text), id);
    }
    let table = resolve(&table(), "Table");
    assert_eq!(
        table.text(),
        "struct \"Table\"(40,8){0:\"lock\":volatile(8,8);8:\"name\":[u8;6];14:\"hash\":opaque(2,1);16:\"owner\":*any;\
         24:\"len\":u16;32:\"ratio\":f64;40:\"slots\":[variants \"Slot\"(24,8,tag 0,1){0:\"Empty\"{}1:\"One\"{4:\"key\":u32;\
         8:\"node\":*1;}2:\"Pair\"{8:\"nodes\":[~1;2];}};field \"len\"];}\n\
         struct \"Node\"(16,8){0:\"value\":i64;8:\"next\":*1;}\n"
    );
}

#[test]
fn the_order_of_declarations_and_of_fields_does_not_matter() {
    let mut backwards = table();
    backwards.reverse();
    assert_eq!(
        resolve(&table(), "Table").id(),
        resolve(&backwards, "Table").id()
    );

    let Type::Struct(mut shuffled) = node() else {
        panic!()
    };
    shuffled.fields.reverse();
    // A field without bytes says nothing.
    shuffled.fields.push(Field::new(
        "marker",
        8,
        Type::structure("Marker", 0, 1, vec![]),
    ));
    assert_eq!(
        resolve(&[Type::Struct(shuffled)], "Node"),
        resolve(&[node()], "Node")
    );
}

#[test]
fn whatever_can_be_declared_differently_has_another_id() {
    let base = resolve(&[node()], "Node").id();
    let changed = |change: fn(&mut durum_format::types::Struct<String>)| {
        let Type::Struct(mut node) = node() else {
            panic!()
        };
        change(&mut node);
        let name = node.name.clone();
        resolve(
            &[
                Type::Struct(node),
                one_pointer("Other", "x", Type::pointer("u8")),
            ],
            &name,
        )
        .id()
    };
    let ids = [
        changed(|node| node.fields[0].name = "other".into()),
        changed(|node| node.fields[0].ty = number(Primitive::U64)),
        changed(|node| node.fields[0].ty = number(Primitive::F64)),
        changed(|node| node.fields[1].ty = Type::weak("Node")),
        changed(|node| node.fields[1].ty = Type::pointer("Other")),
        changed(|node| node.fields[1].ty = Type::pointer_to_any()),
        changed(|node| node.size = 24),
        changed(|node| (node.size, node.align) = (16, 16)),
        changed(|node| drop(node.fields.remove(0))),
        changed(|node| {
            node.name = "Knot".into();
            node.fields[1].ty = Type::pointer("Knot");
        }),
    ];
    let mut all: Vec<u64> = ids.into_iter().chain([base]).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 11);
}

#[test]
fn a_text_is_read_back_as_the_same_descriptor() {
    for (types, name) in [
        (table(), "Table"),
        (table(), "Slot"),
        (vec![node()], "Node"),
        (vec![], "char"),
    ] {
        let descriptor = resolve(&types, name);
        let read = Descriptor::parse(descriptor.text()).unwrap();
        assert_eq!(read, descriptor);
        assert_eq!(read.id(), descriptor.id());
        assert_eq!(read.root(), descriptor.root());
    }
}

/// What a pointer leads to is the same type whoever points to it.
#[test]
fn the_target_of_a_pointer_has_the_id_of_its_own_declaration() {
    let table = resolve(&table(), "Table");
    assert_eq!(table.lines(), 2);
    assert_eq!(
        table.target(1).unwrap().id(),
        resolve(&[node()], "Node").id()
    );
    assert_eq!(table.target(0).unwrap(), table);
    assert!(table.target(2).is_err());
    let mut registry = Registry::new();
    assert_eq!(registry.register(&table).unwrap().len(), 2);
    assert!(
        registry
            .register(&resolve(&[node()], "Node"))
            .unwrap()
            .is_empty()
    );
    assert_eq!(registry.register_text(table.text()).unwrap(), table.id());
    assert_eq!(registry.by_id(table.id()), Some(&table));
    assert_eq!(registry.len(), 2);
}

#[test]
fn every_changed_character_of_a_text_is_refused_or_gives_another_id() {
    let table = resolve(&table(), "Table");
    for at in 0..table.text().len() {
        for byte in [b'0', b'9', b'a', b'"', b';', b'\n', b'~', b' ', b'}'] {
            let mut text = table.text().as_bytes().to_vec();
            if text[at] == byte {
                continue;
            }
            text[at] = byte;
            let text = String::from_utf8(text).unwrap();
            if let Ok(other) = Descriptor::parse(&text) {
                assert_eq!(other.text(), text);
                assert_ne!(other.id(), table.id());
            }
        }
        assert!(
            Descriptor::parse(&table.text()[..at]).is_err() || table.text()[..at].ends_with('\n')
        );
    }
}

#[test]
fn texts_that_are_not_canonical_are_refused() {
    let refused = |text: &str| Descriptor::parse(text).unwrap_err();
    assert!(matches!(refused(""), TypeError::Syntax { .. }));
    assert!(matches!(refused("u8"), TypeError::Syntax { .. }));
    assert!(
        matches!(refused("u8\nu8\n"), TypeError::NotCanonical { .. }),
        "a line that nothing points to"
    );
    assert!(
        matches!(refused("*1\n"), TypeError::Syntax { .. }),
        "a line that is not there"
    );
    assert!(matches!(refused("[u8;08]\n"), TypeError::Syntax { .. }));
    assert!(matches!(refused("[u8; 8]\n"), TypeError::Syntax { .. }));
    assert!(matches!(
        refused("[u8;18446744073709551616]\n"),
        TypeError::Syntax { .. }
    ));
    let unordered = "struct \"P\"(16,8){0:\"a\":*2;8:\"b\":*1;}\nu8\nu16\n";
    assert!(
        matches!(refused(unordered), TypeError::NotCanonical { .. }),
        "lines not in the order of discovery"
    );
    assert!(matches!(
        refused("variants \"V\"(8,8,tag 0,1){1:\"A\"{}0:\"B\"{}}\n"),
        TypeError::Layout { .. }
    ));
    let unknown = refused("decimal(16,8)\n").to_string();
    assert!(unknown.contains("written by a newer durum"), "{unknown}");
    assert!(matches!(
        refused(&format!("{}u8{}\n", "[".repeat(40), ";1]".repeat(40))),
        TypeError::TooLarge { .. }
    ));
    assert!(matches!(
        refused(&"u8\n".repeat(1 << 19)),
        TypeError::TooLarge { .. }
    ));
}

#[test]
fn impossible_types_are_refused() {
    let mut declared = Declarations::new();
    let mut refused = |ty: Type<String>| declared.declare_as("X", ty).unwrap_err();
    let with = |fields: Vec<Field<String>>| Type::structure("X", 16, 8, fields);
    let u64_at = |name: &str, offset| Field::new(name, offset, number(Primitive::U64));
    let tail = |count: Count| number(Primitive::U8).array(count);
    let of_case = |fields| {
        Type::Variants(Variants {
            was: Vec::new(),
            name: "X".into(),
            size: 16,
            align: 8,
            tag_offset: 0,
            tag_width: 1,
            cases: vec![Case {
                was: Vec::new(),
                discriminant: Some(1),
                name: "A".into(),
                fields,
            }],
        })
    };
    let tag = |tag_offset, tag_width, discriminant| {
        let cases = vec![Case {
            was: Vec::new(),
            discriminant: Some(discriminant),
            name: "A".into(),
            fields: vec![],
        }];
        Type::Variants(Variants {
            was: Vec::new(),
            name: "X".into(),
            size: 16,
            align: 8,
            tag_offset,
            tag_width,
            cases,
        })
    };
    for (ty, problem) in [
        (with(vec![u64_at("a", 0), u64_at("b", 4)]), "aligned"),
        (
            with(vec![
                u64_at("a", 0),
                Field::new("b", 6, number(Primitive::U16)),
            ]),
            "before the end",
        ),
        (with(vec![u64_at("a", 16)]), "behind"),
        (with(vec![u64_at("a", u64::MAX - 7)]), "behind"),
        (with(vec![u64_at("a", 0), u64_at("a", 8)]), "twice"),
        (Type::structure("X", 12, 8, vec![]), "multiple"),
        (Type::structure("X", 16, 3, vec![]), "power of two"),
        (Type::structure("X", 16, 0, vec![]), "power of two"),
        (Type::structure("X", 8, 4, vec![u64_at("a", 0)]), "aligned"),
        (Type::structure("X", 1 << 48, 8, vec![]), "2^48"),
        (
            number(Primitive::U64).array(Count::Fixed(1 << 61)),
            "larger than any object",
        ),
        (
            Type::Opaque { size: 0, align: 1 }.array(Count::Fixed(3)),
            "size of their own",
        ),
        (
            tail(Count::Tail).array(Count::Fixed(3)),
            "size of their own",
        ),
        (tail(Count::Field("n".into())), "no earlier unsigned field"),
        (
            with(vec![Field::new("t", 0, tail(Count::Tail)), u64_at("a", 8)]),
            "follow a tail",
        ),
        (
            with(vec![
                u64_at("a", 0),
                Field::new("t", 8, tail(Count::Field("b".into()))),
            ]),
            "no earlier unsigned field",
        ),
        (
            with(vec![
                Field::new("a", 0, number(Primitive::I64)),
                Field::new("t", 8, tail(Count::Field("a".into()))),
            ]),
            "no earlier unsigned field",
        ),
        (
            of_case(vec![Field::new("t", 8, tail(Count::Tail))]),
            "no tail",
        ),
        (of_case(vec![u64_at("a", 0)]), "over the tag"),
        (tag(0, 3, 1), "aligned"),
        (tag(4, 8, 1), "aligned"),
        (tag(16, 1, 1), "does not lie"),
        (tag(u64::MAX, 1, 1), "does not lie"),
        (tag(0, 1, 256), "does not fit"),
    ] {
        let text = format!("{ty:?}");
        match refused(ty) {
            TypeError::Layout { problem: found, .. } => {
                assert!(found.contains(problem), "{found} for {text}")
            }
            other => panic!("{other:?} for {text}"),
        }
    }
    for name in ["", "a\"b", "a\\b", "a\nb", &"x".repeat(256)] {
        assert!(
            matches!(
                refused(Type::structure(name, 8, 8, vec![])),
                TypeError::Name { .. }
            ),
            "{name:?}"
        );
    }
    let deep = (0..40).fold(number(Primitive::U8), |inner, _| {
        inner.array(Count::Fixed(1))
    });
    assert!(matches!(refused(deep), TypeError::TooLarge { .. }));
}

/// As deep as is allowed, with cases in cases: the work must not double with each level.
#[test]
fn deeply_nested_variants_are_read_in_no_time() {
    let mut ty = number(Primitive::U64);
    for level in 0..31u64 {
        let size = 16 + level * 8;
        let fields = vec![Field::new("inner", 8, ty)];
        let cases = vec![Case {
            was: Vec::new(),
            discriminant: Some(0),
            name: "C".into(),
            fields,
        }];
        ty = Type::Variants(Variants {
            was: Vec::new(),
            name: format!("V{level}"),
            size,
            align: 8,
            tag_offset: 0,
            tag_width: 1,
            cases,
        });
    }
    let start = std::time::Instant::now();
    let deep = resolve(&[ty], "V30");
    assert_eq!(Descriptor::parse(deep.text()).unwrap(), deep);
    assert!(start.elapsed() < std::time::Duration::from_secs(1));
}

#[test]
fn names_stand_for_one_type_each() {
    let mut declared = Declarations::new();
    declared.declare(node()).unwrap();
    declared.declare(node()).unwrap();
    let other = Type::structure("Node", 8, 8, vec![]);
    let conflict = |name: &str| Err(TypeError::Conflict { name: name.into() });
    assert_eq!(declared.declare(other.clone()), conflict("Node"));
    // Also inside another type, which is not declared then either.
    let holder = Type::structure("Holder", 8, 8, vec![Field::new("n", 0, other)]);
    assert_eq!(declared.declare(holder), conflict("Node"));
    assert_eq!(declared.names().collect::<Vec<_>>(), ["Node"]);
    assert_eq!(
        declared.declare(Type::structure("u8", 8, 8, vec![])),
        conflict("u8")
    );
    assert_eq!(declared.declare_as("Knot", node()), conflict("Knot"));
    declared
        .declare_as("[Node]", node().array(Count::Tail))
        .unwrap();
    assert_eq!(
        declared.resolve("[Node]").unwrap().text(),
        "[struct \"Node\"(16,8){0:\"value\":i64;8:\"next\":*1;};tail]\nstruct \"Node\"(16,8){0:\"value\":i64;8:\"next\":*1;}\n"
    );
    declared
        .declare(one_pointer("Lost", "x", Type::pointer("Nowhere")))
        .unwrap();
    let undeclared = TypeError::Undeclared {
        name: "Nowhere".into(),
        referrer: "Lost".into(),
    };
    assert_eq!(declared.resolve("Lost").unwrap_err(), undeclared);
}

#[test]
fn pointers_are_found_in_arrays_cases_and_tails() {
    let table = resolve(&table(), "Table");
    let bytes = table_bytes();
    let found: Vec<_> = table
        .pointers(&bytes)
        .unwrap()
        .map(|at| (at.offset, at.strength, at.target))
        .collect();
    let (strong, weak) = (Strength::Strong, Strength::Weak);
    assert_eq!(
        found,
        [
            (16, strong, None),
            (72, strong, Some(1)),
            (96, weak, Some(1)),
            (104, weak, Some(1))
        ]
    );

    let rows = resolve(&[node()], "Node");
    let found: Vec<_> = rows
        .pointers(&[0; 50])
        .unwrap()
        .map(|at| at.offset)
        .collect();
    assert_eq!(
        found,
        [8, 24, 40],
        "an object longer than its type is a row of them"
    );

    let tail = Type::pointer("Node").array(Count::Tail);
    let mut declared = Declarations::new();
    declared.declare(node()).unwrap();
    declared
        .declare(Type::structure(
            "Tail",
            8,
            8,
            vec![Field::new("p", 8, tail)],
        ))
        .unwrap();
    let tail = declared.resolve("Tail").unwrap();
    let found: Vec<_> = tail
        .pointers(&[0; 31])
        .unwrap()
        .map(|at| at.offset)
        .collect();
    assert_eq!(found, [8, 16]);
    assert!(!resolve(&[], "u64").has_pointers());
    assert_eq!(resolve(&[], "u64").pointers(&[0; 64]).unwrap().count(), 0);
}

fn case(discriminant: u64, name: &str, fields: Vec<Field<String>>) -> Case<String> {
    Case {
        was: Vec::new(),
        discriminant: Some(discriminant),
        name: name.into(),
        fields,
    }
}

#[test]
fn volatile_parts_are_found_in_arrays_and_cases() {
    let lock = || Type::Volatile { size: 8, align: 8 };
    let locked = || {
        Type::structure(
            "Locked",
            24,
            8,
            vec![
                Field::new("lock", 0, lock()),
                Field::new("value", 8, Type::Primitive(Primitive::U64)),
                Field::new("next", 16, Type::pointer("Locked")),
            ],
        )
    };
    let either = Type::Variants(Variants {
        was: Vec::new(),
        name: "Either".into(),
        size: 24,
        align: 8,
        tag_offset: 0,
        tag_width: 8,
        cases: vec![
            case(1, "Bare", vec![]),
            case(2, "Guarded", vec![Field::new("lock", 8, lock())]),
        ],
    });
    let mut declared = Declarations::new();
    declared.declare(locked()).unwrap();
    declared.declare(either).unwrap();
    declared
        .declare_as("rows", locked().array(Count::Fixed(3)))
        .unwrap();
    let places = |name: &str, bytes: &[u8]| {
        let mut found = Vec::new();
        let told = declared
            .resolve(name)
            .unwrap()
            .visit_volatile(bytes, |part| {
                found.push((part.offset, part.size));
            });
        told.map(|()| found)
    };
    assert_eq!(places("Locked", &[1; 24]).unwrap(), [(0, 8)]);
    // A row of objects, and an array.
    let thrice = [(0, 8), (24, 8), (48, 8)];
    assert_eq!(places("Locked", &[1; 72]).unwrap(), thrice);
    assert_eq!(places("rows", &[1; 72]).unwrap(), thrice);
    let mut bytes = [0; 24];
    bytes[0] = 1;
    assert_eq!(places("Either", &bytes).unwrap(), []);
    bytes[0] = 2;
    assert_eq!(places("Either", &bytes).unwrap(), [(8, 8)]);
    bytes[0] = 3;
    assert!(matches!(
        places("Either", &bytes),
        Err(ValueError::Case { found: 3, .. })
    ));
}

#[test]
fn a_place_of_an_array_without_an_element_has_no_pointers() {
    let mut declared = Declarations::new();
    let either = Type::Variants(Variants {
        was: Vec::new(),
        name: "Either".into(),
        size: 16,
        align: 8,
        tag_offset: 0,
        tag_width: 8,
        cases: vec![
            case(1, "One", vec![Field::new("to", 8, Type::pointer("Either"))]),
            case(
                2,
                "Two",
                vec![Field::new("number", 8, Type::Primitive(Primitive::U64))],
            ),
        ],
    });
    declared.declare(either.clone()).unwrap();
    let row = either.array(Count::Tail);
    declared.declare_as("row", row).unwrap();
    let row = declared.resolve("row").unwrap();
    let mut bytes = [0; 64];
    (bytes[0], bytes[32]) = (1, 1);
    let found: Vec<u64> = row.pointers(&bytes).unwrap().map(|at| at.offset).collect();
    assert_eq!(found, [8, 40]);
    bytes[63] = 1;
    let refused = row.pointers(&bytes).err().unwrap();
    assert_eq!(
        refused,
        ValueError::Case {
            offset: 48,
            found: 0
        }
    );
}

#[test]
fn bytes_that_do_not_fit_their_type_are_an_error() {
    let table = resolve(&table(), "Table");
    let bytes = table_bytes();
    let refused = |bytes: &[u8]| table.pointers(bytes).err().unwrap();
    assert_eq!(
        refused(&bytes[..39]),
        ValueError::Short {
            offset: 0,
            needed: 40,
            found: 39
        }
    );
    assert_eq!(
        refused(&bytes[..111]),
        ValueError::Length {
            offset: 24,
            found: 3,
            room: 2
        }
    );
    let mut unknown = bytes.clone();
    unknown[64] = 3;
    assert_eq!(
        refused(&unknown),
        ValueError::Case {
            offset: 64,
            found: 3
        }
    );
    let mut long = bytes.clone();
    long[24] = 200;
    assert_eq!(
        refused(&long),
        ValueError::Length {
            offset: 24,
            found: 200,
            room: 3
        }
    );
    let shown = table.value(&unknown, 100).to_string();
    assert!(
        shown.contains("the tag at offset 64 of the object is 3"),
        "{shown}"
    );
}

#[test]
fn an_offset_leads_to_its_field() {
    let table = resolve(&table(), "Table");
    let bytes = table_bytes();
    let path = |offset| {
        let path = table.path(&bytes, offset).unwrap();
        (path.text, path.offset)
    };
    assert_eq!(path(3), ("lock".into(), 0));
    assert_eq!(path(10), ("name[2]".into(), 10));
    assert_eq!(path(30), (String::new(), 0), "padding");
    assert_eq!(path(39), ("ratio".into(), 32));
    assert_eq!(path(40), ("slots[0].Empty".into(), 40));
    assert_eq!(path(71), ("slots[1].One.key".into(), 68));
    assert_eq!(path(75), ("slots[1].One.node".into(), 72));
    assert_eq!(path(104), ("slots[2].Pair.nodes[1]".into(), 104));
    assert!(matches!(
        table.path(&bytes, 200),
        Err(ValueError::Short { .. })
    ));
    let row = resolve(&[node()], "Node");
    assert_eq!(row.path(&[0; 64], 40).unwrap().text, "[2].next");
    assert_eq!(row.path(&[0; 16], 8).unwrap().text, "next");
}

#[test]
fn values_print_as_a_tree_and_as_json() {
    let table = resolve(&table(), "Table");
    let value = table.value(&table_bytes(), 100);
    assert_eq!(
        value.to_string(),
        "Table\n  lock: (volatile)\n  name: \"count\"\n  hash: abcd\n  owner: -> 0x1000\n  len: 3\n  ratio: 0.5\n  \
         slots: [3]\n    0: Slot.Empty\n    1: Slot.One\n      key: 7\n      node: -> 0x2000\n    2: Slot.Pair\n      \
         nodes: [2]\n        0: ~> 0x3000\n        1: null"
    );
    assert_eq!(
        value.to_json(),
        json!({
            "lock": { "volatile": true }, "name": { "hex": "636f756e7400" }, "hash": { "hex": "abcd" },
            "owner": { "pointer": "0x1000" }, "len": 3, "ratio": 0.5,
            "slots": [
                { "Empty": {} },
                { "One": { "key": 7, "node": { "pointer": "0x2000" } } },
                { "Pair": { "nodes": [{ "weak": "0x3000" }, null] } },
            ],
        })
    );
    let short = table.value(&table_bytes(), 2);
    assert!(
        short.to_string().contains("name: \"co\" ... 4 more bytes"),
        "{short}"
    );
    assert!(short.to_string().contains("slots: [3]"), "{short}");
    assert_eq!(short.to_json()["slots"][2], json!({ "omitted": 1 }));
    let redacted = value.redact();
    let text = redacted.to_string();
    for secret in ["count", "abcd", "0.5", "One", "Pair", ": 7"] {
        assert!(!text.contains(secret), "{text}");
    }
    assert!(
        text.contains("owner: -> 0x1000") && text.contains("slots: [3]"),
        "{text}"
    );
}

#[test]
fn numbers_are_read_by_their_width_and_sign() {
    let value = |name: &str, bytes: &[u8]| resolve(&[], name).value(bytes, 10);
    assert_eq!(value("i8", &[0xff]), Value::Signed(-1));
    assert_eq!(value("i16", &[0, 0x80]), Value::Signed(-32768));
    assert_eq!(value("i32", &[0xfe, 0xff, 0xff, 0xff]), Value::Signed(-2));
    assert_eq!(
        value("u32", &[0xfe, 0xff, 0xff, 0xff]),
        Value::Unsigned(0xffff_fffe)
    );
    assert_eq!(value("i64", &[0xff; 8]), Value::Signed(-1));
    assert_eq!(value("u64", &[0xff; 8]), Value::Unsigned(u64::MAX));
    assert_eq!(value("f32", &1.5f32.to_le_bytes()), Value::Float(1.5));
    assert_eq!(
        value("f64", &f64::NAN.to_le_bytes()).to_json(),
        json!("NaN")
    );
    assert_eq!(value("bool", &[1]), Value::Bool(true));
    assert!(matches!(value("bool", &[2]), Value::Invalid(_)));
    assert_eq!(value("char", &[0xe9, 0, 0, 0]), Value::Char('é'));
    assert!(matches!(value("char", &[0, 0xd8, 0, 0]), Value::Invalid(_)));
    assert!(matches!(value("u64", &[0; 7]), Value::Invalid(_)));
    let row = value("u16", &[1, 0, 2, 0]);
    assert_eq!(
        row,
        Value::Array {
            elements: vec![Value::Unsigned(1), Value::Unsigned(2)],
            omitted: 0
        }
    );
}

/// Random types: fields laid out as C would, pointers to any of the others.
fn leaf(types: usize) -> impl Strategy<Value = Type<String>> {
    prop_oneof![
        prop::sample::select(Primitive::ALL.to_vec()).prop_map(Type::Primitive),
        (0..types).prop_map(|target| Type::pointer(format!("T{target}"))),
        (0..types).prop_map(|target| Type::weak(format!("T{target}"))),
        (1..20u64).prop_map(|size| Type::Opaque { size, align: 1 }),
        Just(Type::Volatile { size: 8, align: 8 }),
    ]
}

fn member(types: usize) -> impl Strategy<Value = Type<String>> {
    (leaf(types), prop::option::of(1..4u64)).prop_map(|(leaf, count)| match count {
        Some(count) => leaf.array(Count::Fixed(count)),
        None => leaf,
    })
}

fn laid_out(name: String, members: Vec<Type<String>>, is_variants: bool) -> Type<String> {
    let mut at = if is_variants { 8 } else { 0 };
    let mut fields = Vec::new();
    for (index, member) in members.into_iter().enumerate() {
        let layout = member.layout().unwrap();
        at = u64::next_multiple_of(at, layout.align);
        fields.push(Field::new(format!("f{index}"), at, member));
        at += layout.size;
    }
    let size = u64::next_multiple_of(at, 8);
    if !is_variants {
        return Type::structure(name, size, 8, fields);
    }
    let empty = Case {
        was: Vec::new(),
        discriminant: Some(0),
        name: "Zero".into(),
        fields: vec![],
    };
    let cases = vec![
        Case {
            was: Vec::new(),
            discriminant: Some(9),
            name: "Nine".into(),
            fields,
        },
        empty,
    ];
    Type::Variants(Variants {
        was: Vec::new(),
        name,
        size,
        align: 8,
        tag_offset: 0,
        tag_width: 4,
        cases,
    })
}

fn family() -> impl Strategy<Value = Vec<Type<String>>> {
    (1..6usize).prop_flat_map(|count| {
        let one = (prop::collection::vec(member(count), 0..6), any::<bool>());
        prop::collection::vec(one, count).prop_map(|types| {
            types
                .into_iter()
                .enumerate()
                .map(|(index, (members, is_variants))| {
                    laid_out(format!("T{index}"), members, is_variants)
                })
                .collect()
        })
    })
}

proptest! {
    #[test]
    fn random_families_have_stable_texts_in_any_order(family in family(), bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut backwards = family.clone();
        backwards.reverse();
        for index in 0..family.len() {
            let name = format!("T{index}");
            let descriptor = resolve(&family, &name);
            prop_assert_eq!(&descriptor, &resolve(&backwards, &name));
            prop_assert_eq!(&Descriptor::parse(descriptor.text()).unwrap(), &descriptor);
            for line in 0..descriptor.lines() {
                let target = descriptor.target(line).unwrap();
                prop_assert_eq!(resolve(&family, target.name().unwrap()).id(), target.id());
            }
            // Any bytes: no panic, and pointers inside the object and inside fields that are pointers.
            let _ = descriptor.value(&bytes, 5).to_string();
            if let Ok(pointers) = descriptor.pointers(&bytes) {
                for pointer in pointers {
                    prop_assert!(pointer.offset + 8 <= bytes.len() as u64);
                    let path = descriptor.path(&bytes, pointer.offset).unwrap();
                    prop_assert_eq!(path.offset, pointer.offset);
                    prop_assert!(matches!(path.ty, Type::Pointer { .. }), "{:?}", path);
                }
            }
            let mut volatile = Vec::new();
            if descriptor.visit_volatile(&bytes, |part| volatile.push(part)).is_ok() {
                for part in volatile {
                    prop_assert!(part.offset + part.size <= bytes.len() as u64);
                    let path = descriptor.path(&bytes, part.offset).unwrap();
                    prop_assert_eq!(path.offset, part.offset);
                    prop_assert!(matches!(path.ty, Type::Volatile { .. }), "{:?}", path);
                }
            }
        }
    }
}
