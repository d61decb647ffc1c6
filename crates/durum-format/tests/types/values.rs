//! Bytes of an object as values, and the field at an offset.

use durum_format::types::{Value, ValueError};
use serde_json::json;

use crate::{node, resolve, table, table_bytes};

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
