//! Objects are shown as what they mean; what their bytes cannot mean is said, and never believed.

#[path = "common/contents.rs"]
mod contents;
#[path = "../../../fuzz/src/content.rs"]
mod heap;

use contents::heaps;
use durum_format::content::{
    At, Content, Limits, Object, Objects, Path, Target, at_path, has_data_in_paths, of_object,
    part_of, printable,
};
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
        (2, "root[key 6]", Ok("6")),
        (
            2,
            "root[key 7]",
            Err("`root[key 7]`: none of its 2 keys is that; there are: 5, 6"),
        ),
        (
            2,
            "root[7]",
            Err("`root[7]`: none of its 2 keys is that; there are: 5, 6"),
        ),
        (3, "root[50]", Ok("5")),
        (4, "root.head[2].value", Ok("3")),
        (
            0,
            "root.x",
            Err("it has 3 elements and no fields: name one by its number"),
        ),
        (
            7,
            "root.x",
            Err("it has 3 elements and no fields: name one by its number"),
        ),
        (
            2,
            "root.x",
            Err("it is a map and has no fields: name a value by its key, as in `[5]`"),
        ),
        (
            4,
            "root.head[0].value.low",
            Err("it is a value without fields"),
        ),
        (4, "0x200000000100.value", Ok("1")),
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
        (10, "root.accounts", Ok("12")),
        (10, "root[0].accounts", Ok("12")),
        (10, "root[1].accounts", Err("`root[1]`: it has no elements")),
        (11, "root.accounts", Ok("13")),
        (14, "root.to.name", Ok("\"two\"")),
        (
            14,
            "root.to.to.name",
            Err("`root.to.to`: what the weak pointer there led to is gone"),
        ),
        (15, "root[main.c]", Ok("7")),
        (15, "root[\"main.c\"]", Ok("7")),
        (
            15,
            "root[x]",
            Err("no entry with this key; there are: \"main.c\""),
        ),
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

/// Whoever is told of an object by a path can look at it by that, or at the collection that keeps it.
#[test]
fn the_path_to_an_object_leads_to_it() {
    for (number, (data, _)) in heaps().iter().enumerate() {
        let heap = Heap::parse(data).unwrap();
        for (start, path) in of_object(&heap, BASE, "root", &LIMITS).shown {
            let look = path
                .parse()
                .and_then(|path| at_path(&heap, BASE, &path, &LIMITS));
            let is_shown = look.as_ref().is_ok_and(|look| {
                let at = heap.at(look.address);
                let is_it = matches!(at, At::Object(found) if found.start == start);
                is_it || look.shown.contains_key(&start)
            });
            assert!(is_shown, "{number}: {start:#x}, {path}: {look:?}");
        }
    }
}

/// Who redacts shows no paths through keys and cases.
#[test]
fn paths_that_may_tell_data_are_known_by_the_type() {
    for (heap, object, expected) in [
        (2, 1, true),
        (3, 1, true),
        (7, 0, true),
        (8, 1, true),
        (4, 1, false),
        (13, 0, false),
    ] {
        let heap = Heap::parse(&heaps()[heap].0).unwrap();
        let At::Object(found) = heap.at(BASE + object * STRIDE) else {
            panic!("no object {object}");
        };
        let descriptor = heap.descriptor(found.type_id).unwrap();
        assert_eq!(has_data_in_paths(descriptor), expected, "{descriptor:?}");
    }
    // A part of a map may lie in something else.
    let node = "struct \"node\"(32,8){0:\"entry\":struct \"entry\"(16,8){0:\"first\":u64;8:\"second\":u64;};16:\"left\":*1;\
        24:\"right\":*1;}";
    for text in [
        format!("struct \"outer\"(32,8){{0:\"of a map\":{node};}}\n{node}\n"),
        format!("[{node};2]\n{node}\n"),
    ] {
        let outer = Descriptor::parse(&text).unwrap();
        assert!(has_data_in_paths(&outer), "{text}");
    }
}

#[test]
fn many_numbers_share_a_line() {
    let heap = Heap::parse(&heaps()[17].0).unwrap();
    let look = of_object(
        &heap,
        BASE,
        "root",
        &Limits {
            elements: 39,
            ..LIMITS
        },
    );
    let lines: Vec<String> = look.to_string().lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 5, "{look}");
    assert!(
        lines[1].starts_with("    1, 2, 3, ") && lines[1].len() <= 100,
        "{look}"
    );
    assert!(
        lines[2].starts_with("    ") && lines[2].ends_with(" 38, 39,"),
        "{look}"
    );
    assert_eq!(lines[3], "    … 1 more");
}

/// By number of the heap and of the object in it, with the offset in the object.
#[test]
fn a_part_is_told_by_a_path_without_what_collections_keep() {
    for (heap, object, offset, expected) in [
        (0, 0, 0, ("", 0)),
        (0, 0, 8, ("", 8)),
        (0, 1, 8, ("[2]", 0)),
        (2, 1, 20, ("[5]", 0)),
        (2, 1, 16, ("[key 5]", 0)),
        (3, 1, 28, ("[30]", 0)),
        (4, 0, 8, (".tail", 0)),
        (4, 1, 8, (".next", 0)),
        (4, 1, 12, (".next", 4)),
        (5, 0, 24, ("", 0)),
        (5, 1, 18, (".1[1]", 0)),
        (7, 0, 36, ("[2].0", 0)),
        (8, 1, 4, ("[2]", 0)),
        (9, 0, 56, (".to", 0)),
        (12, 1, 8, ("[1]", 0)),
        (13, 0, 24, ("[1].b", 0)),
    ] {
        let data = &heaps()[heap].0;
        let heap = Heap::parse(data).unwrap();
        let At::Object(found) = heap.at(BASE + object * STRIDE) else {
            panic!("no object {object}");
        };
        let (part, rest) = part_of(&heap, &found, offset);
        assert_eq!((part.as_str(), rest), expected, "{found:?} + {offset}");
        if object == 0 && rest == 0 && !part.is_empty() {
            let path = format!("root{part}").parse::<Path>().unwrap();
            let look = at_path(&heap, BASE, &path, &LIMITS).unwrap();
            assert_eq!(look.address, BASE + offset, "{path}");
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
fn names_are_escaped_where_they_control_what_is_shown_and_else_as_they_are() {
    for (name, shown) in [
        (
            "a\u{1b}[2J\u{9b}\u{202e}\u{2066}\u{200b}\0\n",
            r"a\u{1b}[2J\u{9b}\u{202e}\u{2066}\u{200b}\0\n",
        ),
        ("\u{feff}a\u{e0001}\u{2028}", r"\u{feff}a\u{e0001}\u{2028}"),
        // A mark that would join what stands before the name.
        ("\u{301}e\u{301}", "\\u{301}e\u{301}"),
        ("हिन्दी \"ไทย\" it's \\ 名前", "हिन्दी \"ไทย\" it's \\ 名前"),
    ] {
        assert_eq!(printable(name), shown);
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
