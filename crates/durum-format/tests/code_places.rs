//! Where sections go on, for a person: what is written is read, and a stranger's bytes are an error or harmless text.

use durum_format::code::places::{Function, Places, TEXT_MAX};
use durum_format::section::Code;
use proptest::prelude::*;

fn function<'a>(hash: u64, name: &'a str, file: &'a str, lines: &[u32]) -> Function<'a> {
    Function {
        hash,
        name,
        file,
        lines: lines.to_vec(),
    }
}

#[test]
fn a_function_and_a_line_are_found() {
    let made = Places {
        program: "queue",
        build: "3f2a81",
        functions: vec![
            function(9, "pop", "queue.c", &[7, 0]),
            function(4, "push", "src/queue.c", &[66]),
            function(9, "again", "queue.c", &[8]),
        ],
    };
    let bytes = made.encode();
    let places = Places::parse(&bytes).unwrap();
    let told = |hash, region| {
        let place = places.find(Code::new(hash, region).unwrap());
        place.map(|place| place.to_string())
    };
    assert_eq!(told(4, 1).unwrap(), "push, src/queue.c:66");
    assert_eq!(told(9, 1).unwrap(), "pop, queue.c:7");
    assert_eq!(told(9, 2).unwrap(), "pop, queue.c");
    assert_eq!(told(9, 3).unwrap(), "pop, queue.c");
    assert_eq!(told(9, 0).unwrap(), "pop, queue.c");
    assert_eq!(told(5, 1), None);
    assert_eq!(places.told(), "queue, build 3f2a81");
    for end in 0..bytes.len() {
        assert!(Places::parse(&bytes[..end]).is_err(), "{end} bytes");
    }
    let more = [&bytes[..], &[0]].concat();
    assert!(Places::parse(&more).is_err());
}

#[test]
fn what_is_no_letter_is_escaped_and_long_texts_are_cut() {
    let long = "ü".repeat(TEXT_MAX);
    let made = Places {
        program: "\u{1b}[2J\u{202e}q\"",
        build: "\n",
        functions: vec![function(1, &long, "a\tb", &[3])],
    };
    let bytes = made.encode();
    let places = Places::parse(&bytes).unwrap();
    assert_eq!(places.told(), "\\u{1b}[2J\\u{202e}q\", build \\n");
    let place = places.find(Code::new(1, 1).unwrap()).unwrap();
    assert_eq!(place.function.name.len(), TEXT_MAX);
    assert!(place.to_string().ends_with(", a\\tb:3"));
    let long = "x".repeat(TEXT_MAX + 1);
    let mut forged = (long.len() as u16).to_le_bytes().to_vec();
    forged.extend(long.bytes());
    forged.extend([0; 6]);
    assert!(Places::parse(&forged).is_err());
}

#[test]
fn hashes_are_in_order_and_each_is_there_once() {
    let one = |hash| {
        let made = Places {
            functions: vec![function(hash, "f", "g", &[])],
            ..Places::default()
        };
        made.encode()
    };
    let count = 4..8;
    let behind = |bytes: &[u8]| bytes[count.end..].to_vec();
    let two = |first: u64, second: u64| {
        let mut bytes = one(first);
        bytes.extend(behind(&one(second)));
        bytes[count.start] = 2;
        Places::parse(&bytes).map(|places| places.functions.len())
    };
    assert_eq!(two(3, 4).unwrap(), 2);
    assert!(two(4, 4).is_err() && two(4, 3).is_err());
    assert!(Places::parse(&one(0)).is_err() && Places::parse(&one(1 << 48)).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_places_or_an_error(
        mut bytes in prop::collection::vec(any::<u8>(), 0..200),
        is_made: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        hash in 0..1u64 << 48,
        region: u16,
    ) {
        if is_made {
            let functions = vec![function(1, "push", "queue.c", &[1, 2]), function(hash, "pop", "", &[3])];
            bytes = Places { program: "p", build: "b", functions }.encode();
        }
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        if let Ok(places) = Places::parse(&bytes) {
            prop_assert!(!places.told().contains(char::is_control));
            for code in [Code::new(hash, region), Code::new(1, 1)].into_iter().flatten() {
                if let Some(place) = places.find(code) {
                    prop_assert!(!place.to_string().contains(char::is_control));
                }
            }
            prop_assert_eq!(places.encode(), bytes);
        }
    }
}
