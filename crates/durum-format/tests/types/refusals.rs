//! Types that cannot be are refused, soon and by name.

use durum_format::types::{
    Case, Count, Declarations, Descriptor, Field, Primitive, Type, TypeError, Variants,
};

use crate::{node, number, one_pointer, resolve};

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
