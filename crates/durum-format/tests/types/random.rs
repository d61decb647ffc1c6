//! Random types: one text for each in whatever order they are declared, and no bytes that make a reader panic.

use durum_format::types::{Case, Count, Descriptor, Field, Primitive, Type, Variants};
use proptest::prelude::*;

use crate::resolve;

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
