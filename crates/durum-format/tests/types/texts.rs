//! Texts and ids: the same for the same type, and for no other.

use durum_format::types::{Descriptor, Field, Primitive, Registry, Type, TypeError, type_id};

use crate::{node, number, one_pointer, resolve, table};

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
