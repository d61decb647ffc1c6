//! Values of objects, as lines of a dump have them, both ways.

use durum_format::EngineKind;
use durum_format::dump::line::read_value;
use durum_format::dump::{Head, Line, Plan, PoolWith, Reference, To};
use durum_format::types::Descriptor;

fn plan(text: &str) -> Plan {
    Plan::of(&Descriptor::parse(text).unwrap()).unwrap()
}

/// Objects are at their numbers times 4096; 13 leads nowhere.
fn written(plan: &Plan, bytes: &[u8]) -> String {
    let mut value = Vec::new();
    let mut to = |address| match address {
        13 => To::Nowhere,
        address => To::Object {
            number: address >> 12,
            offset: address & 4095,
        },
    };
    plan.write(bytes, &mut value, &mut to).unwrap();
    String::from_utf8(value).unwrap()
}

fn read(plan: &Plan, value: &str, length: usize) -> Result<Vec<u8>, String> {
    let mut bytes = vec![0; length];
    let mut pointer = |_, reference| match reference {
        Reference::Address(address) => Ok(address),
        Reference::Object { number, .. } if number > 9 => Err(format!("no object {number}")),
        Reference::Object { number, offset } => Ok(number << 12 | offset),
    };
    let line = format!("{value}}}");
    match read_value(line.as_bytes(), 0, plan, &mut bytes, &mut pointer) {
        Ok(()) => Ok(bytes),
        Err(refused) => Err(refused.to_string()),
    }
}

const NUMBERS: &str = "struct \"N\"(32,8){0:\"a\":u64;8:\"b\":f64;16:\"c\":i32;20:\"d\":char;24:\"e\":bool;25:\"f\":[u8;7];}\n";
const POINTERS: &str =
    "struct \"P\"(32,8){0:\"lock\":volatile(8,8);8:\"all\":[*any;2];24:\"weak\":~0;}\n";
const CASES: &str = "[variants \"V\"(16,8,tag 0,1){1:\"None\"{}2:\"Some\"{8:\"0\":*any;}};tail]\n";
const PLAIN: &str = "variants \"V\"(4,2,tag 0,1){1:\"A\"{2:\"0\":u16;}}\n";
const COUNTED: &str = "struct \"L\"(4,2){0:\"len\":u16;2:\"more\":[u16;field \"len\"];}\n";

#[test]
fn values_are_what_the_document_says_and_come_back() {
    let bits = |number: f64| number.to_bits().to_le_bytes();
    let number = |a: u64, b: f64, rest: &[u8; 16]| [&a.to_le_bytes()[..], &bits(b), rest].concat();
    let words =
        |words: &[u64]| -> Vec<u8> { words.iter().flat_map(|it| it.to_le_bytes()).collect() };
    for (text, bytes, value) in [
        (
            NUMBERS,
            number(
                1 << 53,
                -0.0,
                b"\xff\xff\xff\xff\xe4\0\0\0\x01a\0\"\\\n\0\0",
            ),
            r#"{"a":9007199254740992,"b":-0.0,"c":-1,"d":"ä","e":true,"f":"a\u0000\"\\\n"}"#,
        ),
        (
            NUMBERS,
            number(
                (1 << 53) + 1,
                f64::NEG_INFINITY,
                b"\0\0\0\x80\0\xd8\0\0\x02\xff\xfe\0\0\0\0\0",
            ),
            r#"{"a":"9007199254740993","b":{"bits":"0xfff0000000000000"},"c":-2147483648,"d":{"bits":"0xd800"},"e":{"bits":"0x2"},"f":{"base64":"//4="}}"#,
        ),
        (
            NUMBERS,
            number(0, 1e300, b"\0\0\0\0\x1b\0\0\0\0\xc2\x9bx\0\0\0\0"),
            r#"{"a":0,"b":1e300,"c":0,"d":"\u001b","e":false,"f":"\u009bx"}"#,
        ),
        (
            POINTERS,
            words(&[0, 0x3000, 0x4008, 13]),
            r#"{"all":[3,[4,8]],"weak":{"address":"0xd"}}"#,
        ),
        (
            POINTERS,
            words(&[0, 0x3000, 0, 0]),
            r#"{"all":[3],"weak":null}"#,
        ),
        (
            CASES,
            words(&[0, 0, 2, 0x5000, 1, 0]),
            r#"[null,{"Some":{"0":5}},{"None":{}}]"#,
        ),
        (PLAIN, b"\x01\0\x05\0".to_vec(), r#"{"A":{"0":5}}"#),
        (PLAIN, b"\x09\x08\x07\0".to_vec(), r#"{"base64":"CQgH"}"#),
        (PLAIN, b"\0\0\0\0".to_vec(), "null"),
        // A row of two.
        (
            PLAIN,
            b"\x01\0\x05\0\0\0\0\0".to_vec(),
            r#"[{"A":{"0":5}},null]"#,
        ),
        (
            COUNTED,
            b"\x02\0\x07\0\x08\0\0\0".to_vec(),
            r#"{"len":2,"more":[7,8]}"#,
        ),
    ] {
        let plan = plan(text);
        assert_eq!(written(&plan, &bytes), value, "{text}");
        assert_eq!(
            read(&plan, value, bytes.len()),
            Ok(bytes.clone()),
            "{value}"
        );
        let spaced = value.replace(":{", " : { ").replace(",\"", " , \"");
        assert_eq!(read(&plan, &spaced, bytes.len()), Ok(bytes), "{spaced}");
    }
}

#[test]
fn padding_and_what_is_volatile_are_not_said() {
    let mut bytes = vec![7; 32];
    bytes[8..].fill(0);
    assert_eq!(
        written(&plan(POINTERS), &bytes),
        r#"{"all":[],"weak":null}"#
    );
    let bytes = b"\x01\xff\x05\0";
    assert_eq!(written(&plan(PLAIN), bytes), r#"{"A":{"0":5}}"#);
}

#[test]
fn values_that_do_not_fit_are_refused() {
    for (text, length, value, why) in [
        (NUMBERS, 32, r#"{"a":-1,"#, "does not fit"),
        (NUMBERS, 32, r#"{"a":1.5,"#, "does not fit"),
        (NUMBERS, 32, r#"{"a":18446744073709551616,"#, "does not fit"),
        (NUMBERS, 32, r#"{"a":1,"b":true"#, "a number is missing"),
        (NUMBERS, 32, r#"{"a":1,"b":1e999"#, "no f64"),
        (
            NUMBERS,
            32,
            r#"{"a":1,"b":{"bits":"0x12345678123456789"}"#,
            "a number like",
        ),
        (NUMBERS, 32, r#"{"a":1,"b":1,"c":2147483648"#, "no i32"),
        (
            NUMBERS,
            32,
            r#"{"a":1,"b":1,"c":1,"d":"ab""#,
            "not one character",
        ),
        (
            NUMBERS,
            32,
            r#"{"a":1,"b":1,"c":1,"d":"\ud800x""#,
            "half of a character",
        ),
        (
            NUMBERS,
            32,
            r#"{"a":1,"b":1,"c":1,"d":"a","e":1"#,
            "true or false",
        ),
        (
            NUMBERS,
            32,
            r#"{"a":1,"b":1,"c":1,"d":"a","e":{"bits":"0x100"}"#,
            "no bool",
        ),
        (
            NUMBERS,
            32,
            r#"{"a":1,"b":1,"c":1,"d":"a","e":true,"f":"12345678"}"#,
            "room for 7",
        ),
        (
            NUMBERS,
            32,
            r#"{"a":1,"b":1,"c":1,"d":"a","e":true,"f":{"base64":"Zg="}}"#,
            "no base64",
        ),
        (NUMBERS, 32, r#"{"b":1,"a":1"#, "\"a\" is missing"),
        (NUMBERS, 31, "{}", "shorter than its type"),
        (
            POINTERS,
            32,
            r#"{"all":[1,2,3],"weak":null}"#,
            "more than 2",
        ),
        (POINTERS, 32, r#"{"all":[10],"weak":null}"#, "no object 10"),
        (
            POINTERS,
            32,
            r#"{"all":[[1]],"weak":null}"#,
            "`,` is missing",
        ),
        (
            POINTERS,
            32,
            r#"{"all":["nul"],"weak":null}"#,
            "a number is missing",
        ),
        (
            POINTERS,
            32,
            r#"{"all":[],"weak":null,"lock":1}"#,
            "`}` is missing",
        ),
        (CASES, 16, r#"[{"Other":{}}]"#, "no such case"),
        (CASES, 16, r#"[{"base64":"CQgH"}]"#, "no such case"),
        (COUNTED, 6, r#"{"len":3,"more":[]}"#, "room for 2"),
        (COUNTED, 6, r#"{"len":1,"more":[1,2]}"#, "more than 1"),
        (PLAIN, 4, "null null", "`}` is missing"),
    ] {
        let refused = read(&plan(text), value, length).unwrap_err();
        assert!(refused.contains(why), "{value}: {refused}");
    }
}

/// What contradicts its type is no value, where pointers may be in it.
#[test]
fn objects_that_contradict_their_types_are_not_written() {
    let write = |text: &str, bytes: &[u8]| {
        let mut to = |_| To::Nowhere;
        plan(text).write(bytes, &mut Vec::new(), &mut to)
    };
    assert!(write(CASES, &[3; 16]).is_err());
    assert!(write(COUNTED, &[9, 0, 0, 0]).is_err());
    assert!(write(NUMBERS, &[0; 31]).is_err());
    assert!(write(CASES, &[]).is_ok());
}

/// Reserved bytes are zero and say nothing; a later version of the type has a field there.
#[test]
fn what_is_reserved_is_not_said() {
    let text = "struct \"R\"(16,8){0:\"a\":u64;8:\"later\":reserved(8,1);}\n";
    let plan = plan(text);
    assert_eq!(
        written(&plan, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        r#"{"a":1}"#
    );
    assert_eq!(read(&plan, r#"{"a":1}"#, 16).unwrap()[0], 1);
}

#[test]
fn a_head_names_all_pools() {
    let with = |pool: &str, objects| PoolWith {
        pool: pool.to_owned(),
        engine: EngineKind::Twin,
        objects,
        has_root: objects % 2 == 0,
    };
    let all = [with("a \"b\"", 3), with("c", u64::MAX), with("", 0)];
    for count in 0..=all.len() {
        let head = Head {
            pool: "first".to_owned(),
            engine: EngineKind::Shadow,
            space: (0x2000_0000_0000, 1 << 40),
            objects: 2,
            has_root: true,
            with: all[..count].to_vec(),
        };
        let mut line = Vec::new();
        head.write(&mut line);
        assert_eq!(line.pop(), Some(b'\n'));
        assert_eq!(Line::parse(&line), Ok(Line::Head(head.clone())));
        for end in 0..line.len() {
            Line::parse(&line[..end]).unwrap_err();
        }
        assert_eq!(head.all_objects(), [2, 5, u64::MAX, u64::MAX][count]);
    }
    let empty = r#"{"durum-dump":1,"pool":"a","engine":"twin","space":["0x0","0x0"],"objects":2,"root":true,"with":[]}"#;
    Line::parse(empty.as_bytes()).unwrap_err();
}

#[test]
fn words_that_are_addresses_of_objects_are_named_apart_from_the_bytes() {
    let plan = Plan::untyped_with_pointers();
    let words = [0x2000_u64, 7, 0x3008, u64::from_le_bytes(*b"text\0\0\0\0")];
    let mut bytes: Vec<u8> = words.iter().flat_map(|it| it.to_le_bytes()).collect();
    // A word that is not whole is none.
    bytes.extend([0, 0x20, 0, 0]);
    let mut value = Vec::new();
    let mut to = |address: u64| match address {
        0x2000..0x4000 => To::Object {
            number: address >> 12,
            offset: address & 0xfff,
        },
        _ => To::Nowhere,
    };
    plan.write(&bytes, &mut value, &mut to).unwrap();
    let value = String::from_utf8(value).unwrap();
    assert_eq!(
        value,
        r#"{"bytes":"\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0000\u0007"#.to_owned()
            + &r"\u0000".repeat(15)
            + r#"text\u0000\u0000\u0000\u0000\u0000 ","pointers":[[0,2],[16,[3,8]]]}"#
    );
    let line = format!("{value}}}");
    let mut back = vec![0; bytes.len()];
    let mut found = Vec::new();
    let mut pointer = |at, reference| {
        found.push((at, reference));
        Ok(words[at / 8])
    };
    read_value(line.as_bytes(), 0, &plan, &mut back, &mut pointer).unwrap();
    assert_eq!(back, bytes);
    let reference = |number, offset| Reference::Object { number, offset };
    assert_eq!(found, [(0, reference(2, 0)), (16, reference(3, 8))]);
}

/// In a packed struct. What is aligned is a pointer all the same where one reaches over its beginning.
#[test]
fn words_that_are_not_aligned_are_pointers_too() {
    let plan = Plan::untyped_with_pointers();
    let mut bytes = vec![0; 31];
    for (at, address) in [(3, 0x2000_u64), (16, 0x20_0030)] {
        bytes[at..at + 8].copy_from_slice(&address.to_le_bytes());
    }
    bytes[15] = 0x40;
    let mut to = |address: u64| match address {
        // The second one is bytes 15 to 22.
        0x2000 | 0x20_0030 | 0x2000_3040 => To::Object {
            number: 1,
            offset: 0,
        },
        _ => To::Nowhere,
    };
    let mut value = Vec::new();
    plan.write(&bytes, &mut value, &mut to).unwrap();
    let line = format!("{}}}", String::from_utf8(value).unwrap());
    let mut back = vec![0; bytes.len()];
    let mut found = Vec::new();
    let mut pointer = |at: usize, _| {
        found.push(at);
        let word = bytes[at..at + 8].try_into().unwrap();
        Ok(u64::from_le_bytes(word))
    };
    read_value(line.as_bytes(), 0, &plan, &mut back, &mut pointer).unwrap();
    assert_eq!(back, bytes, "{line}");
    assert_eq!(found, [3, 16], "{line}");
}
