//! What becomes of objects whose types change, type by type.

mod doubts;
mod maps;
mod templates;

use std::sync::Arc;

use durum_format::migrate::{
    Conversion, MadeBy, Pairs, Program, Refusal, Rule, Rules, Source, map,
};
use durum_format::types::Descriptor;

fn parsed(lines: &[&str]) -> Descriptor {
    Descriptor::parse(&(lines.join("\n") + "\n")).unwrap()
}

/// What an old root becomes, of which a program has a new one.
fn pairs(was: &Descriptor, is: &Descriptor, rules: &Rules) -> Pairs {
    let rules = Arc::new(rules.clone());
    let mut objects = Vec::new();
    for line in 0..was.lines() {
        objects.push(was.target(line).unwrap());
    }
    Pairs::of_program(&objects, &[(Some(was.id()), is)], &[], &rules)
}

fn refusals(pairs: &Pairs) -> Vec<String> {
    let of_types = pairs.iter().flat_map(|(_, it)| &it.refusals);
    let all = of_types.chain(&pairs.refusals);
    all.map(ToString::to_string).collect()
}

/// Functions that make the second half of the new value of the first byte of the old one.
#[derive(Default)]
struct Functions {
    asked: usize,
    told: Vec<String>,
}

impl Program for Functions {
    fn make(&mut self, function: usize, _: u64, old: &[u8], new: &mut [u8]) -> Result<(), String> {
        self.asked += 1;
        match function {
            // Bytes stay where they are.
            0 => new[..old.len()].copy_from_slice(old),
            // The first word twice.
            1 => (0..2).for_each(|at| new[8 * at..8 * at + 8].copy_from_slice(&old[..8])),
            _ => return Err("not this one".to_owned()),
        }
        Ok(())
    }

    fn checks(&self) -> bool {
        true
    }

    fn refuse(&mut self, refusal: Refusal) {
        self.told.push(refusal.to_string());
    }
}

/// The new object.
fn made(conversion: &Conversion, old: &[u8], functions: &mut Functions) -> Vec<u8> {
    let mut new = vec![0; conversion.size(old.len() as u64) as usize];
    conversion.convert(old, &mut new, functions).unwrap();
    new
}

/// One type, and what becomes of its bytes.
fn becomes(was: &[&str], is: &[&str], rules: &Rules, old: &[u8]) -> Vec<u8> {
    let (was, is) = (parsed(was), parsed(is));
    let pairs = pairs(&was, &is, rules);
    assert_eq!(refusals(&pairs), [""; 0]);
    let mut functions = Functions::default();
    let new = made(pairs.of(was.id()).unwrap(), old, &mut functions);
    assert_eq!(functions.told, [""; 0]);
    new
}

fn refused(was: &[&str], is: &[&str], rules: &Rules) -> Vec<String> {
    refusals(&pairs(&parsed(was), &parsed(is), rules))
}

fn rule(name: &str, rule: Rule) -> Rules {
    Rules::of_types([(name.to_owned(), rule)].into())
}

fn default(name: &str, json: &str) -> Rule {
    Rule {
        fields: [(name.to_owned(), Source::Value(json.to_owned()))].into(),
        ..Rule::default()
    }
}

#[test]
fn numbers_get_more_bits_and_keep_what_they_say() {
    let none = Rules::default();
    for (was, is, old, new) in [
        ("u8", "u32", vec![200], vec![200, 0, 0, 0]),
        ("i8", "i16", vec![0xfe], vec![0xfe, 0xff]),
        ("u16", "i64", vec![1, 0x80], vec![1, 0x80, 0, 0, 0, 0, 0, 0]),
        (
            "f32",
            "f64",
            1.5_f32.to_le_bytes().to_vec(),
            1.5_f64.to_le_bytes().to_vec(),
        ),
    ] {
        assert_eq!(becomes(&[was], &[is], &none, &old), new, "{was} {is}");
    }
    for (was, is) in [
        ("i8", "u64"),
        ("u64", "u32"),
        ("u32", "i32"),
        ("f64", "f32"),
        ("bool", "u8"),
    ] {
        let told = refused(&[was], &[is], &none);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains(&format!("{was}, now {is}")), "{told:?}");
    }
}

#[test]
fn cases_are_found_by_name() {
    let was = r#"variants "State"(16,8,tag 0,1){0:"Idle"{}1:"Busy"{8:"by":u32;}2:"Gone"{}}"#;
    let is = r#"variants "State"(24,8,tag 16,2){5:"Active" was "Busy"{0:"by":u64;8:"since":u64;}7:"Idle"{}}"#;
    let none = Rules::default();
    let told = refused(&[was], &[is], &none);
    assert_eq!(told, ["State(Busy).since: it is new, and has no default"]);
    let is = r#"variants "State"(24,8,tag 16,2){5:"Active" was "Busy"{0:"by":u64;}7:"Idle"{}}"#;
    let mut old = [0; 16];
    (old[0], old[8], old[11]) = (1, 9, 1);
    let mut new = [0; 24];
    (new[0], new[3], new[16]) = (9, 1, 5);
    assert_eq!(becomes(&[was], &[is], &none, &old), new);
    let mut new = [0; 24];
    new[16] = 7;
    assert_eq!(becomes(&[was], &[is], &none, &[0; 16]), new);
    // A case that is gone is told where an object has it.
    let (was, is) = (parsed(&[was]), parsed(&[is]));
    let pairs = pairs(&was, &is, &none);
    let mut functions = Functions::default();
    old[0] = 2;
    made(pairs.of(was.id()).unwrap(), &old, &mut functions);
    assert_eq!(
        functions.told,
        ["State(Gone): there is no such case any more, and an object has it"]
    );
}

#[test]
fn arrays_keep_their_elements_and_rows_their_objects() {
    let point = |fields: &str, size: u64| format!("struct \"P\"({size},4){{{fields}}}");
    let (was, is) = (
        point("0:\"x\":u32;", 4),
        point("0:\"z\":u32;4:\"x\":u32;", 8),
    );
    let rules = rule("P", default("z", "7"));
    let old: Vec<u8> = [1_u32, 2].iter().flat_map(|it| it.to_le_bytes()).collect();
    let new: Vec<u8> = [7_u32, 1, 7, 2]
        .iter()
        .flat_map(|it| it.to_le_bytes())
        .collect();
    assert_eq!(becomes(&[&was], &[&is], &rules, &old), new);
    let tail = |of: &str| format!("[{of};tail]");
    assert_eq!(becomes(&[&tail(&was)], &[&tail(&is)], &rules, &old), new);
    // A number says how many count; what is behind them has a place.
    let list = |of: &str| format!("struct \"L\"(4,4){{0:\"n\":u32;4:\"all\":[{of};field \"n\"];}}");
    let with_length = |n: u32, rest: &[u8]| [&n.to_le_bytes()[..], rest].concat();
    let found = becomes(&[&list(&was)], &[&list(&is)], &rules, &with_length(1, &old));
    assert_eq!(found, with_length(1, &[&new[..8], &[0; 8]].concat()));
    // Text gets longer.
    assert_eq!(
        becomes(&["[u8;2]"], &["[u8;4]"], &rules, &[1, 2]),
        [1, 2, 0, 0]
    );
    assert_eq!(refused(&["[u8;4]"], &["[u8;2]"], &rules).len(), 1);
    assert_eq!(refused(&["[*any;2]"], &["[*any;4]"], &rules).len(), 1);
}

#[test]
fn defaults_are_read_as_in_a_dump() {
    let is = |ty: &str| format!("struct \"S\"(8,8){{0:\"a\":{ty};}}");
    let was = "struct \"S\"(8,8){0:\"gone\":u64;}";
    for (ty, json, bytes) in [
        ("u64", "5", vec![5, 0, 0, 0, 0, 0, 0, 0]),
        ("i8", "-1", vec![255, 0, 0, 0, 0, 0, 0, 0]),
        ("[i8;8]", "\"new\"", b"new\0\0\0\0\0".to_vec()),
        ("bool", "true", vec![1, 0, 0, 0, 0, 0, 0, 0]),
        ("*any", "null", vec![0; 8]),
    ] {
        let found = becomes(&[was], &[&is(ty)], &rule("S", default("a", json)), &[9; 8]);
        assert_eq!(found, bytes, "{ty}");
    }
    for (ty, json) in [("u8", "300"), ("u8", "\"x\""), ("*any", "7"), ("u8", "1 2")] {
        let told = refused(&[was], &[&is(ty)], &rule("S", default("a", json)));
        assert!(
            told[0].starts_with("S.a: its default: "),
            "{ty} {json}: {told:?}"
        );
    }
}

#[test]
fn a_function_carries_each_pointer_over_once() {
    let was = "struct \"N\"(16,8){0:\"next\":*0;8:\"other\":*0;}";
    let is = "struct \"N\"(16,8){0:\"next\":*0;8:\"again\":*0;}";
    let by = |function| {
        rule(
            "N",
            Rule {
                made_by: Some(MadeBy {
                    function,
                    zero_is_value: true,
                }),
                ..Rule::default()
            },
        )
    };
    let (was, is) = (parsed(&[was]), parsed(&[is]));
    let words = |one: u64, other: u64| [one.to_le_bytes(), other.to_le_bytes()].concat();
    for (function, old, what) in [
        (0, words(1, 2), None),
        (0, words(0, 2), None),
        (1, words(1, 2), Some("forgets a pointer")),
        (1, words(1, 0), Some("more than once")),
        (1, words(0, 0), None),
        (9, words(1, 0), Some("not this one")),
    ] {
        let pairs = pairs(&was, &is, &by(function));
        let mut functions = Functions::default();
        made(pairs.of(was.id()).unwrap(), &old, &mut functions);
        assert_eq!(
            functions.told.len(),
            usize::from(what.is_some()),
            "{:?}",
            functions.told
        );
        assert!(
            what.is_none_or(|what| functions.told[0].contains(what)),
            "{:?}",
            functions.told
        );
    }
}

/// In an array nothing may be stored, which no function is asked about.
#[test]
fn no_function_is_asked_about_what_is_no_value() {
    let was = parsed(&["[struct \"N\"(8,8){0:\"is\":bool;};tail]"]);
    let is = parsed(&["[struct \"N\"(16,8){0:\"is\":bool;8:\"n\":u64;};tail]"]);
    let mut bytes = vec![0; 32];
    (bytes[8], bytes[16]) = (1, 7);
    for (zero_is_value, asked) in [(true, 3), (false, 1)] {
        let made_by = Some(MadeBy {
            function: 0,
            zero_is_value,
        });
        let rules = rule(
            "N",
            Rule {
                made_by,
                ..Rule::default()
            },
        );
        let pairs = pairs(&was, &is, &rules);
        let mut functions = Functions::default();
        let new = made(pairs.of(was.id()).unwrap(), &bytes, &mut functions);
        assert_eq!(
            (functions.asked, new[16]),
            (asked, 1),
            "{:?}",
            functions.told
        );
    }
}

#[test]
fn keys_of_maps_stay() {
    let map = |key: &str, value: &str, size: u64| {
        parsed(&[
            r#"struct "PHashMap<K,V>"(32,8){0:"table":*1;8:"groups":u64;16:"len":u64;24:"seed":u64;}"#,
            &format!(
                r#"[struct "group"({},8){{0:"tags":u64;8:"slots":[struct "slot"({size},8){{0:"key":{key};8:"value":{value};}};7];}};tail]"#,
                8 + 7 * size
            ),
        ])
    };
    let none = Rules::default();
    let told = refusals(&pairs(
        &map("u32", "u64", 16),
        &map("u64", "u64", 16),
        &none,
    ));
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].contains("slots[].key: the keys of a map change"),
        "{told:?}"
    );
    let told = refusals(&pairs(
        &map("u32", "u32", 16),
        &map("u32", "u64", 16),
        &none,
    ));
    assert_eq!(told, [""; 0]);
}

#[test]
fn a_part_is_where_it_was_by_its_name() {
    let was = parsed(&[
        r#"struct "N"(24,8){0:"p":struct "P"(8,4){0:"x":u32;4:"y":u32;};8:"text":[u8;8];16:"gone":u64;}"#,
    ]);
    let is = parsed(&[
        r#"struct "N"(40,8){0:"first":u64;8:"text":[u8;8];16:"p":struct "P"(16,8){0:"z":u64;8:"y":u32;12:"x":u32;};32:"new":u64;}"#,
    ]);
    let rules: Rules = map::parse(
        r#"{"durum-map":1,"types":{
            "N":{"fields":[{"name":"first","default":0},"text","p",{"name":"new","default":0}]},
            "P":{"fields":[{"name":"z","default":0},"x","y"]}}}"#,
    )
    .unwrap();
    let pairs = pairs(&was, &is, &rules);
    let conversion = pairs.of(was.id()).unwrap();
    // A pointer to a `P`, or to a `u32`, or to whatever it may be.
    let point = parsed(&["struct \"P\"(16,8){0:\"z\":u64;8:\"y\":u32;12:\"x\":u32;}"]);
    let number = parsed(&["u32"]);
    let follow = |offset, wanted: Option<&Descriptor>| {
        let wanted = wanted.map(|it| (it, 0));
        conversion.follow(offset, wanted, &mut || Vec::new())
    };
    assert_eq!(follow(0, None), Ok(0));
    assert_eq!(follow(0, Some(&is)), Ok(0));
    assert_eq!(follow(0, Some(&point)), Ok(16));
    assert_eq!(
        follow(0, Some(&number)),
        Ok(28),
        "to `p.x`, which is the first number"
    );
    assert_eq!(follow(4, None), Ok(24));
    assert_eq!(follow(11, None), Ok(11));
    assert_eq!(follow(24 + 4, None), Ok(40 + 24), "in the next of a row");
    let gone = follow(16, None).unwrap_err();
    assert_eq!(
        (gone.path.as_str(), gone.why),
        ("N.gone", "a pointer leads to it, and it is gone")
    );
}

/// What contains a type that changes has other places, too, and is named after it.
#[test]
fn types_follow_those_in_them() {
    let was = parsed(&[
        r#"struct "Head"(32,8){0:"list":struct "PVec<Task>"(24,8){0:"buffer":*1;8:"capacity":u64;16:"len":u64;};24:"one":*2;}"#,
        r#"[struct "Task"(8,4){0:"n":u32;4:"m":u32;};tail]"#,
        r#"struct "counted Task"(24,8){0:"strong":u64;8:"weak":u64;16:"value":struct "Task"(8,4){0:"n":u32;4:"m":u32;};}"#,
    ]);
    let rules = map::parse(
        r#"{"durum-map":1,"types":{"Task":{"now":"Job","fields":["n",{"name":"deadline","type":"u64","default":1},"m"]}}}"#,
    )
    .unwrap();
    let is = parsed(&[
        r#"struct "Head"(32,8){0:"list":struct "PVec<Job>"(24,8){0:"buffer":*1;8:"capacity":u64;16:"len":u64;};24:"one":*2;}"#,
        r#"[struct "Job"(24,8){0:"n":u32;8:"deadline":u64;16:"m":u32;};tail]"#,
        r#"struct "counted Job"(40,8){0:"strong":u64;8:"weak":u64;16:"value":struct "Job"(24,8){0:"n":u32;8:"deadline":u64;16:"m":u32;};}"#,
    ]);
    let objects: Vec<Descriptor> = (0..3).map(|line| was.target(line).unwrap()).collect();
    let pairs = Pairs::of_rules(&objects, &Arc::new(rules));
    assert_eq!(refusals(&pairs), [""; 0]);
    for line in 0..3 {
        let old = was.target(line).unwrap();
        let new = pairs.of(old.id()).unwrap().new_type().text().to_owned();
        assert_eq!(new, is.target(line).unwrap().text(), "line {line}");
    }
}

#[test]
fn a_map_that_says_something_else_is_refused() {
    for (text, what) in [
        ("", "EOF"),
        ("{}", "\"durum-map\": 1"),
        (r#"{"durum-map":2,"types":{}}"#, "\"durum-map\": 1"),
        (r#"{"durum-map":1}"#, "no \"types\""),
        (r#"{"durum-map":1,"types":{},"x":1}"#, "\"x\" says nothing"),
        (
            r#"{"durum-map":1,"types":{"T":{"feilds":[]}}}"#,
            "\"feilds\" says nothing in T",
        ),
        (
            r#"{"durum-map":1,"types":{"T":{"fields":[{"type":"u8"}]}}}"#,
            "no \"name\"",
        ),
        (
            r#"{"durum-map":1,"types":{"T":{"fields":[{"name":"a","was":"b","default":1}]}}}"#,
            "\"default\"",
        ),
        (
            r#"{"durum-map":1,"types":{"T":{"size":8}}}"#,
            "go with \"fields\"",
        ),
        (
            r#"{"durum-map":1,"types":{"T":{"fields":[],"align":3}}}"#,
            "power of two",
        ),
    ] {
        let told = map::parse(text).unwrap_err();
        assert!(told.contains(what), "{text}: {told}");
    }
}

/// What the page shows of a map is one, for the program that it shows.
#[test]
fn the_page_shows_a_map() {
    let top = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(top.join("../../docs/how-to/change-types.md")).unwrap();
    let shown = page.split("```json\n").nth(1).unwrap();
    let rules = map::parse(shown.split("```").next().unwrap()).unwrap();
    let was = parsed(&[
        r#"struct "queue"(16,8){0:"first":*1;8:"count":u64;}"#,
        r#"struct "task"(40,8){0:"number":u64;8:"next":*1;16:"tries":u64;24:"later":reserved(16,1);}"#,
    ]);
    let objects = [was.clone(), was.target(1).unwrap()];
    let pairs = Pairs::of_rules(&objects, &Arc::new(rules));
    assert_eq!(refusals(&pairs), [""; 0]);
    let is = pairs.of(was.id()).unwrap().new_type().text();
    assert_eq!(
        is,
        "struct \"queue\"(16,8){0:\"first\":*1;8:\"count\":u64;}\n\
        struct \"job\"(32,8){0:\"number\":u64;8:\"priority\":u32;16:\"attempts\":u64;24:\"next\":*1;}\n"
    );
}

/// Converts one object of the only type.
fn converted(pairs: &Pairs, old: &[u8]) -> Vec<u8> {
    let (_, conversion) = pairs.iter().next().unwrap();
    let mut new = vec![0; conversion.size(old.len() as u64) as usize];
    let mut functions = Functions::default();
    conversion.convert(old, &mut new, &mut functions).unwrap();
    assert_eq!(functions.told, <[String; 0]>::default());
    new
}

#[test]
fn what_an_option_holds_changes_with_its_type() {
    let of = |number: &str| {
        parsed(&[&format!(
            r#"struct "T"(24,8){{0:"a":variants "Option<N>"(8,4,tag 0,1){{0:"None"{{}}1:"Some"{{4:"0":{number};}}}};8:"b":variants "Option<bool>"(1,1,tag 0,1){{2:"None"{{}}else:"Some"{{0:"0":bool;}}}};16:"c":u64;}}"#
        )])
    };
    let wide = parsed(&[
        r#"struct "T"(24,8){0:"a":variants "Option<N>"(16,8,tag 0,1){0:"None"{}1:"Some"{8:"0":u64;}};16:"b":variants "Option<bool>"(2,1,tag 1,1){0:"None"{}1:"Some"{0:"0":bool;}};}"#,
    ]);
    let pairs = pairs(&of("u32"), &wide, &Rules::default());
    assert_eq!(refusals(&pairs), <[String; 0]>::default());
    let object = |a: [u32; 2], b: u8| {
        let mut bytes = vec![0xee; 24];
        bytes[..4].copy_from_slice(&a[0].to_le_bytes());
        bytes[4..8].copy_from_slice(&a[1].to_le_bytes());
        bytes[8] = b;
        bytes
    };
    let expected = |tag: u8, a: u64, b: [u8; 2]| {
        let mut bytes = vec![0; 24];
        bytes[0] = tag;
        bytes[8..16].copy_from_slice(&a.to_le_bytes());
        bytes[16..18].copy_from_slice(&b);
        bytes
    };
    // What lay beside the tag does not come along.
    assert_eq!(
        converted(&pairs, &object([0xabcd_ef01, 7], 1)),
        expected(1, 7, [1, 1])
    );
    assert_eq!(
        converted(&pairs, &object([0xabcd_ef00, 7], 2)),
        expected(0, 0, [0, 0])
    );
    assert_eq!(
        converted(&pairs, &object([0, 0], 0)),
        expected(0, 0, [0, 1])
    );
    // The other way there is no tag to be written.
    let narrow = parsed(&[
        r#"struct "T"(24,8){16:"b":variants "Option<bool>"(1,1,tag 0,1){2:"None"{}else:"Some"{0:"0":bool;}};}"#,
    ]);
    let back = self::pairs(&wide, &narrow, &Rules::default());
    for (old, new) in [([0, 0], 2), ([0, 1], 0), ([1, 1], 1)] {
        assert_eq!(converted(&back, &expected(0, 0, old))[16], new);
    }
}

#[test]
fn an_option_that_was_bytes_stays_what_it_is_or_is_made_by_a_function() {
    let bytes = |value: &str| {
        let id = durum_format::types::type_id(&format!("{value}\n"));
        format!(r#"struct "Option<u64>"(16,8){{0:"bytes of {id:016x}":opaque(16,8);}}"#)
    };
    let option = r#"variants "Option<u64>"(16,8,tag 0,1){0:"None"{}1:"Some"{8:"0":u64;}}"#;
    let of = |option: &str| {
        parsed(&[&format!(
            r#"struct "T"(24,8){{0:"n":{option};16:"x":u64;}}"#
        )])
    };
    let fields =
        |option: &str| parsed(&[&format!(r#"struct "T"(24,8){{0:"x":u64;8:"n":{option};}}"#)]);
    let same = pairs(&of(&bytes("u64")), &fields(option), &Rules::default());
    assert_eq!(refusals(&same), <[String; 0]>::default());
    let old: Vec<u8> = (1..25).collect();
    assert_eq!(converted(&same, &old), [&old[16..], &old[..16]].concat());
    let other = pairs(&of(&bytes("i64")), &fields(option), &Rules::default());
    let told = refusals(&other);
    assert!(
        told[0].contains("was bytes to the store") && told.len() == 1,
        "{told:?}"
    );
    // A function for what it lies in knows the option by its new description.
    let mut rules = Rules::default();
    let rule = Rule {
        made_by: Some(MadeBy {
            function: 0,
            zero_is_value: true,
        }),
        made_of: Some(Box::new((of(option), of(option)))),
        ..Rule::default()
    };
    rules.types.insert("T".to_owned(), rule);
    let made = pairs(&of(&bytes("u64")), &of(option), &rules);
    assert_eq!(refusals(&made), <[String; 0]>::default());
    let made = pairs(&of(&bytes("i64")), &of(option), &rules);
    let told = refusals(&made);
    assert!(
        told[0].contains("takes another type than the pool has"),
        "{told:?}"
    );
}
