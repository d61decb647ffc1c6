//! Objects are shown as what they mean; what their bytes cannot mean is said, and never believed.

#[path = "common/contents.rs"]
mod contents;
#[path = "../../../fuzz/src/content.rs"]
mod heap;

use contents::heaps;
use durum_format::content::{Content, Limits, Object, Path, Target, at_path, of_object};
use durum_format::types::{Descriptor, Strength};
use heap::{BASE, Heap, STRIDE};

const LIMITS: Limits = Limits {
    depth: 4,
    objects: 8,
    elements: 4,
};

#[test]
fn what_is_recognised_is_shown_as_what_it_is() {
    for (data, expected) in heaps() {
        let heap = Heap::parse(&data).unwrap();
        let look = of_object(&heap, BASE, "root", &LIMITS);
        assert_eq!(look.to_string(), expected);
        heap::content(&data);
    }
}

#[test]
fn a_path_leads_to_what_is_shown_there() {
    let heap_of = |index: usize| Heap::parse(&heaps()[index].0).unwrap();
    for (heap, path, expected) in [
        (0, "root[2]", Ok("9")),
        (0, "root[3]", Err("`root[3]`: it has 3 elements")),
        (2, "root[6]", Ok("60")),
        (2, "root[7]", Err("`root[7]`: none of its 2 keys is that")),
        (3, "root[50]", Ok("5")),
        (4, "root.head[2].value", Ok("3")),
        (4, "root.tail.value", Ok("3")),
        (
            4,
            "root.nothing",
            Err("`root.nothing`: no such field; there are: head, tail, first value"),
        ),
        (5, "root.1", Ok("\"abc\"")),
        (6, "root.1", Err("`root`: the pointer there is null")),
        (7, "root[2].1", Ok("inf")),
        (8, "root[-1]", Ok("30")),
        (9, "root.to.name", Ok("\"two\"")),
        (10, "root[0].accounts", Ok("12")),
        (11, "root.accounts", Ok("13")),
        (9, "roots", Err("`roots` is no path")),
        (9, "root[\"]", Err("`root[\"]` is no path")),
    ] {
        let found = path.parse::<Path>();
        let found = found.and_then(|path| at_path(&heap_of(heap), BASE, &path, &LIMITS));
        match (found, expected) {
            (Ok(look), Ok(expected)) => assert_eq!(look.to_string(), expected, "{path}"),
            (Err(error), Err(expected)) => {
                let error = error.to_string();
                assert!(error.contains(expected), "{path}: {error}");
            }
            (found, expected) => panic!("{path}: {found:?}, and not {expected:?}"),
        }
    }
}

/// Each word of each heap becomes wrong in turn: what is shown says so, or something else, and nothing else happens.
#[test]
fn lengths_tags_and_pointers_that_lie_are_shown_as_what_they_are() {
    let mut invalid = 0;
    for (data, _) in heaps() {
        let start = data.iter().position(|byte| *byte == 0).unwrap() + 1;
        for at in start..data.len().saturating_sub(8) {
            for word in [0, 1, 0xff, u64::MAX, BASE, BASE + 8, BASE + STRIDE] {
                let mut data = data.clone();
                data[at..at + 8].copy_from_slice(&word.to_le_bytes());
                heap::content(&data);
                let heap = Heap::parse(&data).unwrap();
                let look = of_object(&heap, BASE, "root", &LIMITS);
                invalid += u64::from(look.to_string().contains("(invalid: "));
            }
        }
    }
    assert!(invalid > 100, "{invalid} were told");
}

#[test]
fn nothing_of_the_programs_data_is_left_when_it_is_redacted() {
    for (data, _) in heaps() {
        let heap = Heap::parse(&data).unwrap();
        let mut look = of_object(&heap, BASE, "root", &LIMITS);
        look.content = look.content.redact();
        look.shown.clear();
        let text = look.to_string();
        for secret in [
            "abc", "\"one", "two", "äxy", ": 60", "value: 3", "Pair", "7, 8",
        ] {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
    }
}

#[test]
fn numbers_that_readers_of_json_round_are_text() {
    let text = "struct \"n\"(24,8){0:\"a\":u64;8:\"b\":i64;16:\"c\":f32;20:\"d\":char;}\n\0";
    let mut data = text.as_bytes().to_vec();
    data.extend([0, 24]);
    data.extend((1_u64 << 53).wrapping_add(1).to_le_bytes());
    data.extend(i64::MIN.to_le_bytes());
    data.extend(0.1_f32.to_le_bytes());
    data.extend(0xd800_u32.to_le_bytes());
    let heap = Heap::parse(&data).unwrap();
    let look = of_object(&heap, BASE, "root", &LIMITS);
    assert_eq!(
        look.to_json().to_string(),
        r#"{"a":"9007199254740993","b":"-9223372036854775808","c":0.1,"d":{"invalid":"0xd800 is no character"}}"#
    );
    assert!(matches!(look.content, Content::Struct { .. }));
}

/// The part that a pointer leads to may lie in the case of an enum, which is data.
#[test]
fn a_redacted_pointer_does_not_tell_the_part() {
    let pointer = |part: &str| Content::Pointer {
        address: 4096,
        strength: Strength::Strong,
        target: Target::Elsewhere {
            start: 4000,
            type_name: "shape".into(),
            part: part.into(),
        },
    };
    assert_eq!(pointer(".Circle.0").redact(), pointer("?"));
    assert_eq!(pointer("").redact(), pointer(""));
}

/// The letters of a short string have the room of one that is alone, and a small object has room to spare.
#[test]
fn rows_of_cells_are_rows_however_short() {
    let element = |size: u64, type_id: u64| Object {
        start: 0,
        size,
        type_id,
        is_element: true,
    };
    let letters = "struct \"N5durum6detail4cellIcEE\"(1,1){0:\"value\":i8;}\n";
    let letters = Descriptor::parse(letters).unwrap();
    for size in [8, 16, 24] {
        assert_eq!(element(size, letters.id()).size_by(&letters), size);
    }
    let small = Descriptor::parse("struct \"small\"(1,1){0:\"value\":i8;}\n").unwrap();
    assert_eq!(element(8, small.id()).size_by(&small), 1);
    assert_eq!(element(16, small.id()).size_by(&small), 16);
    assert_eq!(element(8, small.id()).row_by(&small), 8);
    let state = "variants \"state\"(1,1,tag 0,1){1:\"On\"{}}\n";
    let state = Descriptor::parse(state).unwrap();
    assert_eq!(element(8, state.id()).row_by(&state), 1);
    let five = Descriptor::parse("struct \"five\"(5,1){0:\"value\":[u8;5];}\n").unwrap();
    assert_eq!(element(8, five.id()).row_by(&five), 5);
}
