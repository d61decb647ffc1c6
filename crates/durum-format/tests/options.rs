//! Options of values: a case for whatever else a tag says, and the bytes that such options were described as before.

use std::time::{Duration, Instant};

use durum_format::dump::line::read_value;
use durum_format::dump::{Plan, To};
use durum_format::registry::{self, Change};
use durum_format::types::{Descriptor, Value, differences, successors, type_id};

const BOOL: &str = r#"variants "Option<bool>"(1,1,tag 0,1){2:"None"{}else:"Some"{0:"0":bool;}}"#;
const LETTER: &str =
    r#"variants "Option<char>"(4,4,tag 0,4){1114112:"None"{}else:"Some"{0:"0":char;}}"#;
const NUMBER: &str = r#"variants "Option<u64>"(16,8,tag 0,1){0:"None"{}1:"Some"{8:"0":u64;}}"#;
const STATE: &str = r#"variants "State"(16,8,tag 0,1){0:"Waits"{}1:"Runs"{8:"by":u64;}}"#;

fn parsed(text: &str) -> Descriptor {
    Descriptor::parse(&format!("{text}\n")).unwrap()
}

/// How such an option was described.
fn as_bytes(name: &str, size: u64, align: u64, value: &str) -> String {
    let id = type_id(&format!("{value}\n"));
    format!(
        r#"struct "Option<{name}>"({size},{align}){{0:"bytes of {id:016x}":opaque({size},{align});}}"#
    )
}

fn shown(ty: &Descriptor, bytes: &[u8]) -> (String, Vec<(String, Value)>) {
    match ty.value(bytes, 9) {
        Value::Case { case, fields, .. } => (case, fields),
        value => panic!("{value:?}"),
    }
}

#[test]
fn a_tag_that_is_no_other_case_says_the_one_without_a_number() {
    let letter = parsed(LETTER);
    let of = |word: u32| shown(&letter, &word.to_le_bytes());
    assert_eq!(of(0x11_0000), ("None".to_owned(), Vec::new()));
    for char in ['\0', 'ä', char::MAX] {
        let some = ("Some".to_owned(), vec![("0".to_owned(), Value::Char(char))]);
        assert_eq!(of(char.into()), some);
    }
    // Pointers are found in it, too.
    let pointer = r#"variants "E"(8,8,tag 0,8){1:"None"{}else:"Some"{0:"0":*any;}}"#;
    let found = |word: u64| {
        parsed(pointer)
            .pointers(&word.to_le_bytes())
            .unwrap()
            .count()
    };
    assert_eq!((found(1), found(4096)), (0, 1));
}

#[test]
fn only_the_last_case_has_no_number_and_only_it_lies_over_the_tag() {
    for (cases, expected) in [
        (
            r#"else:"A"{}1:"B"{}"#,
            "behind one with a larger discriminant",
        ),
        (r#"else:"A"{}else:"B"{}"#, "stands there twice"),
        (r#"1:"A"{0:"0":u8;}else:"B"{}"#, "it lies over the tag"),
        (r#"else :"A"{}"#, "expected"),
    ] {
        let text = format!("variants \"E\"(8,8,tag 0,1){{{cases}}}\n");
        let error = Descriptor::parse(&text).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for text in [BOOL, LETTER, NUMBER] {
        assert_eq!(parsed(text).text(), format!("{text}\n"));
    }
}

#[test]
fn such_values_are_dumped_and_loaded() {
    let mut to = |_| To::Nowhere;
    for (text, bytes, value) in [
        (BOOL, &[2][..], r#"{"None":{}}"#),
        (BOOL, &[0], r#"{"Some":{"0":false}}"#),
        (BOOL, &[1], r#"{"Some":{"0":true}}"#),
        (LETTER, &[0, 0, 0x11, 0], r#"{"None":{}}"#),
        (LETTER, &[0x61, 0, 0, 0], r#"{"Some":{"0":"a"}}"#),
        (NUMBER, &[0; 16], r#"{"None":{}}"#),
    ] {
        let plan = Plan::of(&parsed(text)).unwrap();
        let mut line = Vec::new();
        plan.write(bytes, &mut line, &mut to).unwrap();
        assert_eq!(String::from_utf8(line.clone()).unwrap(), value);
        line.push(b'}');
        let mut back = vec![0; bytes.len()];
        let mut pointer = |_, _| Err("there are none".to_owned());
        read_value(&line, 0, &plan, &mut back, &mut pointer).unwrap();
        assert_eq!(back, bytes, "{value}");
    }
}

#[test]
fn files_with_such_a_type_are_of_a_newer_version() {
    for (text, version) in [
        (BOOL, registry::VERSION_OTHER_CASES),
        (NUMBER, registry::VERSION_MIN),
        (
            r#"struct "else:"(8,8){0:"else:":u64;}"#,
            registry::VERSION_MIN,
        ),
    ] {
        let text = format!("{text}\n");
        let put = Change::PutType(type_id(&text), text);
        assert_eq!(put.version_needed(), version);
    }
}

#[test]
fn what_was_described_as_bytes_is_the_same_option() {
    let inner = as_bytes("u64", 16, 8, "u64");
    let pair = |option: &str| format!(r#"struct "Pair"(24,8){{0:"a":u64;8:"b":{option};}}"#);
    let outer = r#"variants "Option<Pair>"(32,8,tag 0,1){0:"None"{}1:"Some"{8:"0":PAIR;}}"#;
    for (was, is) in [
        (inner.clone(), NUMBER.to_owned()),
        (as_bytes("bool", 1, 1, "bool"), BOOL.to_owned()),
        (pair(&inner), pair(NUMBER)),
        (format!("[{inner};3]"), format!("[{NUMBER};3]")),
        // An option in what an option holds.
        (
            as_bytes("Pair", 32, 8, &pair(&inner)),
            outer.replace("PAIR", &pair(NUMBER)),
        ),
        // Nothing in it has bytes.
        (
            as_bytes("()", 1, 1, "opaque(0,1)"),
            r#"variants "Option<()>"(1,1,tag 0,1){0:"None"{}1:"Some"{}}"#.to_owned(),
        ),
    ] {
        let (was, is) = (parsed(&was), parsed(&is));
        assert_eq!(successors(&was, &is), Ok([(was.id(), is.id())].into()));
        assert!(differences(&was, &is).all.is_empty());
        // What was described does not become bytes again.
        assert!(successors(&is, &was).is_err());
    }
}

#[test]
fn bytes_of_another_value_are_another_type() {
    let why = "what it holds was bytes to the store, and only the same value is known among them";
    for (was, is) in [
        // Another value of the same size, another size, another name.
        (as_bytes("u64", 16, 8, "i64"), NUMBER),
        (as_bytes("u64", 8, 8, "u64"), NUMBER),
        (as_bytes("bool", 1, 1, "u8"), BOOL),
    ] {
        let (was, is) = (parsed(&was), parsed(is));
        let obstacle = successors(&was, &is).unwrap_err().to_string();
        assert!(obstacle.ends_with(why), "{obstacle}");
        assert_eq!(differences(&was, &is).all.len(), 1);
    }
    let named = parsed(&as_bytes("State", 16, 8, "u64"));
    let obstacle = successors(&named, &parsed(NUMBER)).unwrap_err().to_string();
    assert!(obstacle.contains("does not say that it was"), "{obstacle}");
}

/// A text in which many types lead to one with a large option, which programs that nobody believes may register.
#[test]
fn work_is_bounded_where_options_are_large() {
    let fields: String = (0..50_000)
        .map(|at| format!("{at}:\"{at:x}\":u8;"))
        .collect();
    let value = format!("struct \"V\"(50000,1){{{fields}}}");
    let was_option = as_bytes("V", 50_001, 1, &value);
    let option = format!(
        r#"variants "Option<V>"(50001,1,tag 0,1){{0:"None"{{}}1:"Some"{{1:"0":{value};}}}}"#
    );
    let line = |next: usize, option: &str| {
        format!(r#"struct "R"(50016,8){{0:"next":*{next};8:"option":{option};}}"#)
    };
    let lines = 5000;
    let was: Vec<String> = (0..lines)
        .map(|at| line((at + 1) % lines, &was_option))
        .collect();
    let (was, is) = (parsed(&was.join("\n")), parsed(&line(0, &option)));
    let began = Instant::now();
    let error = successors(&was, &is).unwrap_err().to_string();
    assert!(error.contains("too large to be compared"), "{error}");
    assert!(differences(&was, &is).all.is_empty());
    assert!(began.elapsed() < Duration::from_secs(5));
}

#[test]
fn an_option_follows_its_value_but_not_where_its_none_lies() {
    let of = |state: &str, none: u64| {
        parsed(&format!(
            r#"variants "Option<State>"(16,8,tag 0,1){{{none}:"None"{{}}else:"Some"{{0:"0":{state};}}}}"#
        ))
    };
    let more = r#"variants "State"(16,8,tag 0,1){0:"Waits"{}1:"Runs"{8:"by":u64;}2:"Done"{}}"#;
    assert!(successors(&parsed(STATE), &parsed(more)).is_ok());
    // The bits of `None` are those of the new case.
    let obstacle = successors(&of(STATE, 2), &of(more, 3)).unwrap_err();
    assert!(
        obstacle.to_string().contains("there is no case 2 any more"),
        "{obstacle}"
    );
    assert!(successors(&of(STATE, 9), &of(more, 9)).is_ok());
    // A number more would take values from the case without one.
    let three = BOOL.replace("else", "3:\"Never\"{}else");
    assert!(successors(&parsed(BOOL), &parsed(&three)).is_err());
    let numbered = parsed(r#"variants "E"(1,1,tag 0,1){0:"A"{}}"#);
    let open = parsed(r#"variants "E"(1,1,tag 0,1){0:"A"{}else:"B"{}}"#);
    assert!(successors(&open, &numbered).is_err());
}
