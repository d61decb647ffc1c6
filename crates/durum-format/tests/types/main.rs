//! Type descriptors: texts and ids, pointers, paths, values.

mod pointers;
mod random;
mod refusals;
mod texts;
mod values;

use durum_format::types::{
    Case, Count, Declarations, Descriptor, Field, Primitive, Type, Variants,
};

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
