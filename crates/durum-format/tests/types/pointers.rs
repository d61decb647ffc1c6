//! Pointers and volatile parts of an object.

use durum_format::types::{
    Case, Count, Declarations, Field, Primitive, Strength, Type, ValueError, Variants,
};

use crate::{node, resolve, table, table_bytes};

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
