//! What is refused because nobody says what it means.

use durum_format::migrate::{Pairs, Rule, Rules, Source, map};
use durum_format::types::Primitive;

use crate::{Functions, becomes, pairs, parsed, refusals, refused, rule};

const NONE: Rules = Rules::of_types(std::collections::BTreeMap::new());

fn node(size: u64, fields: &str) -> String {
    format!("struct \"N\"({size},8){{{fields}}}")
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A field becomes one field: what it owns would have two owners otherwise.
#[test]
fn no_field_becomes_two() {
    let was = node(8, r#"0:"a":*any;"#);
    for (is, what) in [
        // The name that one had is what another one is called.
        (
            r#"0:"a":*any;8:"b" was "a":*any;"#,
            "N.b: the field a becomes another one",
        ),
        (
            r#"0:"b" was "a":*any;8:"a":*any;"#,
            "N.b: the field a becomes another one",
        ),
        (
            r#"0:"b" was "a":*any;8:"c" was "a":*any;"#,
            "N.c: the field a becomes another one",
        ),
        (
            r#"0:"b" was "a":*any;8:"c" was "a":*any in reserved;"#,
            "N.c: the field a becomes another one",
        ),
    ] {
        assert_eq!(refused(&[&was], &[&node(16, is)], &NONE), [what], "{is}");
    }
    let text = r#"{"durum-map":1,"types":{"N":{"fields":["a",{"name":"b","was":"a"}]}}}"#;
    let was = parsed(&[&was]);
    let found = Pairs::of_rules(&[was], &std::sync::Arc::new(map::parse(text).unwrap()));
    assert_eq!(refusals(&found), ["N.a: the field a becomes another one"]);
}

/// A field that has a former name besides goes on as the one of its name; the one of the former name is gone, which is
/// told where it owns something.
#[test]
fn a_field_that_no_other_has_become_is_gone() {
    let was = node(16, r#"0:"a":*any;8:"b":*any;"#);
    let is = node(8, r#"0:"b" was "a":*any;"#);
    let (was, is) = (parsed(&[&was]), parsed(&[&is]));
    let found = pairs(&was, &is, &NONE);
    assert_eq!(refusals(&found), [""; 0]);
    let conversion = found.of(was.id()).unwrap();
    let (mut functions, mut new) = (Functions::default(), [0; 8]);
    conversion
        .convert(&words(&[5, 7]), &mut new, &mut functions)
        .unwrap();
    assert_eq!(new.to_vec(), words(&[7]));
    assert_eq!(functions.told.len(), 1, "{:?}", functions.told);
    assert!(functions.told[0].starts_with("N.a: it goes, and has pointers"));
    // Pointers follow in the same way.
    let follow = |offset| conversion.follow(offset, None, &mut Vec::new);
    assert_eq!(follow(8), Ok(0));
    assert_eq!(follow(0), Ok(0), "to the whole");
    let was = node(24, r#"0:"x":u64;8:"a":u64;16:"b":u64;"#);
    let is = node(16, r#"0:"x":u64;8:"b" was "a":u64;"#);
    let (was, is) = (parsed(&[&was]), parsed(&[&is]));
    let found = pairs(&was, &is, &NONE);
    let conversion = found.of(was.id()).unwrap();
    let follow = |offset| conversion.follow(offset, None, &mut Vec::new);
    assert_eq!(follow(16), Ok(8));
    assert!(follow(8).is_err());
    // Names that change places are names.
    let (was, is) = (
        r#"0:"a":u64;8:"b":u64;"#,
        r#"0:"a" was "b":u64;8:"b" was "a":u64;"#,
    );
    let made = becomes(&[&node(16, was)], &[&node(16, is)], &NONE, &words(&[1, 2]));
    assert_eq!(made, words(&[1, 2]));
}

#[test]
fn a_case_goes_on_under_its_name() {
    let was = r#"variants "State"(8,8,tag 0,1){0:"A"{}1:"B"{}}"#;
    // `A` is there: the other one was it before, in a pool that has it no more.
    let is = r#"variants "State"(8,8,tag 0,1){5:"X" was "A"{}6:"A"{}7:"B"{}}"#;
    assert_eq!(becomes(&[was], &[is], &NONE, &words(&[0])), words(&[6]));
    // Two do not become one.
    let (was, is) = (
        parsed(&[was]),
        parsed(&[r#"variants "State"(8,8,tag 0,1){7:"B" was "A"{}}"#]),
    );
    let found = pairs(&was, &is, &NONE);
    let conversion = found.of(was.id()).unwrap();
    for (tag, new, told) in [(1, 7, 0), (0, 0, 1)] {
        let (mut functions, mut made) = (Functions::default(), [0; 8]);
        conversion
            .convert(&words(&[tag]), &mut made, &mut functions)
            .unwrap();
        assert_eq!(made.to_vec(), words(&[new]));
        assert_eq!(functions.told.len(), told, "{:?}", functions.told);
    }
}

/// A case that there is not is nothing only where nothing may be stored.
#[test]
fn a_tag_of_no_case_is_told() {
    let state = r#"variants "State"(8,8,tag 0,1){1:"A"{}2:"B"{}}"#;
    let is = r#"variants "State"(8,8,tag 0,1){1:"B"{}2:"A"{}}"#;
    for (was, is, old, fits) in [
        (state.to_owned(), is.to_owned(), vec![1], true),
        (state.to_owned(), is.to_owned(), vec![9], false),
        (state.to_owned(), is.to_owned(), vec![0], true),
        (
            format!("[{state};2]"),
            format!("[{is};2]"),
            vec![1, 9],
            true,
        ),
    ] {
        let (was, is) = (parsed(&[&was]), parsed(&[&is]));
        let found = pairs(&was, &is, &NONE);
        let mut new = vec![0; 8 * old.len()];
        let conversion = found.of(was.id()).unwrap();
        let done = conversion.convert(&words(&old), &mut new, &mut Functions::default());
        assert_eq!(done.is_ok(), fits, "{old:?}: {done:?}");
    }
}

/// Wherever a map lies: in a struct, in a lock, in another map.
#[test]
fn keys_of_maps_in_others_stay() {
    let holder = |map: &str| {
        format!(
            r#"struct "Head"(48,8){{0:"lock":struct "PMutex"(40,8){{0:"word":volatile(8,8);8:"value":{map};}};40:"n":u64;}}"#
        )
    };
    let hash = |key: &str, value: &str| {
        [
            holder(
                r#"struct "PHashMap<K,V>"(32,8){0:"table":*1;8:"groups":u64;16:"len":u64;24:"seed":u64;}"#,
            ),
            format!(
                r#"[struct "PHashMap<K,V>.group"(120,8){{0:"tags":u64;8:"slots":[struct "PHashMap<K,V>.slot"(16,8){{0:"key":{key};8:"value":{value};}};7];}};tail]"#
            ),
        ]
    };
    let tree = |key: &str, value: &str| {
        [
            holder(
                r#"struct "PBTreeMap<K,V>"(32,8){0:"root":*1;8:"height":u64;16:"len":u64;24:"seed":u64;}"#,
            ),
            format!(
                r#"struct "PBTreeMap<K,V>.node"(120,8){{0:"order":u64;8:"slots":[struct "PBTreeMap<K,V>.slot"(16,8){{0:"key":{key};8:"value":{value};}};7];120:"children":[*1;tail];}}"#
            ),
        ]
    };
    let cpp = |key: &str, value: &str| {
        [
            holder(r#"struct "N5durum3mapIyyE"(32,8){0:"root_":*1;8:"size_":u64;}"#),
            format!(
                r#"struct "N5durum3mapIyyE4nodeE"(48,8){{0:"entry":struct "N5durum3mapIyyE10value_typeE"(16,8){{0:"first":{key};8:"second":{value};}};16:"left":*1;24:"right":*1;32:"up":*1;40:"weight":u64;}}"#
            ),
        ]
    };
    let kinds: [&dyn Fn(&str, &str) -> [String; 2]; 3] = [&hash, &tree, &cpp];
    let told = |was: &[String; 2], is: &[String; 2], rules: &Rules| {
        let lines = |of: &[String; 2]| parsed(&[&of[0], &of[1]]);
        refusals(&pairs(&lines(was), &lines(is), rules))
    };
    let key = |ty: &str| format!(r#"struct "Key"(8,8){{0:"n":{ty};}}"#);
    for map in kinds {
        let found = told(&map(&key("u32"), "u64"), &map(&key("u64"), "u64"), &NONE);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("the keys of a map change"), "{found:?}");
        let found = told(&map(&key("u32"), "u32"), &map(&key("u32"), "u64"), &NONE);
        assert_eq!(found, [""; 0]);
        // A function gives the same type, and another key.
        let made_by = Some(durum_format::migrate::MadeBy {
            function: 0,
            zero_is_value: true,
        });
        let rules = rule(
            "Key",
            Rule {
                made_by,
                ..Rule::default()
            },
        );
        let found = told(&map(&key("u64"), "u64"), &map(&key("u64"), "u64"), &rules);
        assert_eq!(found.len(), 1, "{found:?}");
    }
}

/// The bytes of a number are no pointer, no case, and no other number.
#[test]
fn a_default_is_of_the_type_of_its_field() {
    let number = |number, bytes: &[u8]| {
        let fields = [("a".to_owned(), Source::Bytes(number, bytes.to_vec()))].into();
        rule(
            "N",
            Rule {
                fields,
                ..Rule::default()
            },
        )
    };
    let was = node(8, r#"0:"gone":u64;"#);
    for (ty, size) in [
        ("*any", 8),
        ("u64", 8),
        ("bool", 1),
        ("char", 4),
        ("opaque(8,8)", 8),
        (r#"variants "V"(8,8,tag 0,8){0:"A"{}}"#, 8),
        (r#"struct "C"(8,8){0:"v":*any;}"#, 8),
    ] {
        let is = node(8, &format!(r#"0:"a":{ty};"#));
        let primitive = match size {
            1 => Primitive::U8,
            4 => Primitive::U32,
            _ => Primitive::I64,
        };
        let told = refused(&[&was], &[&is], &number(primitive, &vec![9; size]));
        assert_eq!(told.len(), 1, "{ty}: {told:?}");
        assert!(told[0].starts_with("N.a: its default is a "), "{told:?}");
    }
    let cell = r#"0:"a":struct "PMutex"(16,8){0:"word":volatile(8,8);8:"value":u32;};"#;
    let made = becomes(
        &[&was],
        &[&node(16, cell)],
        &number(Primitive::U32, &[7, 0, 0, 0]),
        &[1; 8],
    );
    assert_eq!(made, words(&[0, 7]));
}

/// What is something else now has no part that was one of it.
#[test]
fn a_pointer_into_what_is_something_else_leads_nowhere() {
    let was = parsed(&[&node(
        24,
        r#"0:"n":u64;8:"p":struct "P"(8,4){0:"x":u32;4:"y":u32;};16:"q":u64;"#,
    )]);
    for (p, q) in [
        ("8:\"p\":u64;", "16:\"q\":u64;"),
        (
            r#"8:"p":variants "V"(8,8,tag 0,8){0:"A"{}};"#,
            "16:\"q\":u64;",
        ),
    ] {
        let is = parsed(&[&node(24, &format!("0:\"n\":u64;{p}{q}"))]);
        // A function makes the part.
        let rules = rule(
            "P",
            Rule {
                made_by: Some(durum_format::migrate::MadeBy {
                    function: 0,
                    zero_is_value: true,
                }),
                ..Rule::default()
            },
        );
        let found = pairs(&was, &is, &rules);
        assert_eq!(refusals(&found), [""; 0]);
        let conversion = found.of(was.id()).unwrap();
        let follow = |offset| conversion.follow(offset, None, &mut || vec![0; 24]);
        assert_eq!(follow(20), Ok(20), "into a number");
        let gone = follow(12).unwrap_err();
        assert_eq!(gone.path, "N.p");
    }
}

/// Sizes that no number says are refused, or told as the largest one.
#[test]
fn no_object_has_more_bytes_than_there_are() {
    let was = parsed(&[&node(8, r#"0:"a":u64;"#)]);
    for more in [
        r#""fields":["a"],"size":18446744073709551615"#,
        r#""fields":["a",{"name":"b","type":"[u8;18446744073709551615]","default":0}]"#,
        r#""fields":["a",{"name":"b","type":"[u8;18446744073709551600]","default":0},{"name":"c","type":"[u64;4]","default":0}]"#,
    ] {
        let text = format!(r#"{{"durum-map":1,"types":{{"N":{{{more}}}}}}}"#);
        let rules = std::sync::Arc::new(map::parse(&text).unwrap());
        let found = Pairs::of_rules(std::slice::from_ref(&was), &rules);
        assert!(!refusals(&found).is_empty(), "{more}");
    }
    let text = r#"{"durum-map":1,"types":{"N":{"fields":["a"],"size":140737488355328}}}"#;
    let rules = std::sync::Arc::new(map::parse(text).unwrap());
    let found = Pairs::of_rules(std::slice::from_ref(&was), &rules);
    assert_eq!(refusals(&found), [""; 0]);
    let conversion = found.of(was.id()).unwrap();
    assert_eq!(conversion.size(8), 1 << 47);
    assert_eq!(conversion.size(8 << 20), u64::MAX);
}
