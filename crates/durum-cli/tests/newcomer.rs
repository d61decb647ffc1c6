//! Somebody who has never seen durum reads pools with `durum inspect`: what is shown needs no knowledge of how durum
//! keeps it, and what is printed can be given back as an argument.

mod support;

use support::made::{LEAD, Made, things};
use support::*;

/// The table in which the library of C++ keeps what a program has put in the pool.
const TABLE: &str =
    "struct \"durum.objects\"(80,8){0:\"types\":[u64;5];40:\"objects\":[*any;5];}\n";
const QUEUE: &str = "struct \"5queue\"(16,8){0:\"first_\":*1;8:\"count_\":u64;}\n\
    struct \"3job\"(16,8){0:\"number\":u64;8:\"next\":*1;}\n";
const JOB: &str = "struct \"3job\"(16,8){0:\"number\":u64;8:\"next\":*0;}\n";

#[test]
fn the_one_object_of_a_pool_of_cpp_is_the_root() {
    let one = Made::of(
        "pool",
        &[TABLE, QUEUE, JOB],
        &[
            (1, r#"{"types":[7],"objects":[2]}"#),
            (2, r#"{"first_":3,"count_":2}"#),
            (3, r#"{"number":5,"next":4}"#),
            (3, r#"{"number":6,"next":null}"#),
        ],
    );
    let shown = one.inspect(&["pool"]);
    assert!(
        shown.starts_with("root: -> queue {") && !shown.contains("root[0]"),
        "{shown}"
    );
    for path in ["root.first_[1].number", "root[0].first_[1].number"] {
        assert_eq!(
            one.inspect(&["pool", "--path", path]),
            format!("{path}: 6\n")
        );
    }
    one.refuses(&["pool", "--path", "root[1]"], "`root[1]`: ");

    let two = Made::of(
        "pool",
        &[TABLE, QUEUE],
        &[
            (1, r#"{"types":[7,8],"objects":[2,3]}"#),
            (2, r#"{"first_":null,"count_":1}"#),
            (2, r#"{"first_":null,"count_":2}"#),
        ],
    );
    let shown = two.inspect(&["pool"]);
    assert!(
        shown.starts_with(
            "root: 2 objects that the program has put in the pool [\n    0: -> queue {"
        ) && shown.contains("\n    1: -> queue {"),
        "{shown}"
    );
    assert_eq!(
        two.inspect(&["pool", "--path", "root[1].count_"]),
        "root[1].count_: 2\n"
    );
    two.refuses(&["pool", "--path", "root[2]"], "it has 2 objects");
    two.refuses(&["pool", "--path", "root.count_"], "one of the 2 objects");
}

/// What is left off is counted, and the one option is named that shows it, with a number that is enough.
#[test]
fn what_is_cut_says_how_much_and_which_option_shows_it() {
    let list = "struct \"list\"(8,8){0:\"first\":*1;}\nstruct \"item\"(16,8){0:\"number\":u64;8:\"next\":*1;}\n";
    let item = "struct \"item\"(16,8){0:\"number\":u64;8:\"next\":*0;}\n";
    let items: Vec<String> = (0..20)
        .map(|at| match at {
            19 => r#"{"number":19,"next":null}"#.to_owned(),
            at => format!("{{\"number\":{at},\"next\":{}}}", at + 3),
        })
        .collect();
    let items = items.iter().map(|item| (2, item.as_str()));
    let objects: Vec<_> = [(1, r#"{"first":2}"#)].into_iter().chain(items).collect();
    let chain = Made::of("pool", &[list, item], &objects);
    let shown = chain.inspect(&["pool", "--elements", "3"]);
    assert!(shown.contains("chain of 20 by next ["), "{shown}");
    assert!(shown.contains("… 17 more"), "{shown}");
    let footer = "\n1 list, map or text is cut: --elements 20 is enough (now 3)\n";
    assert!(
        shown.ends_with(footer) && !shown.contains("--depth"),
        "{shown}"
    );
    let whole = chain.inspect(&["pool", "--elements", "20"]);
    assert!(
        whole.contains("number: 19") && !whole.contains("--elements"),
        "{whole}"
    );

    let table = "struct \"table\"(512,8){0:\"places\":[*1;64];}\nu64\n";
    let numbers: Vec<String> = (0..40).map(|at| at.to_string()).collect();
    let places: Vec<String> = (0..40).map(|at| (at + 2).to_string()).collect();
    let places = format!("{{\"places\":[null,{}]}}", places.join(","));
    let numbers = numbers.iter().map(|number| (2, number.as_str()));
    let objects: Vec<_> = [(1, places.as_str())].into_iter().chain(numbers).collect();
    let sparse = Made::of("pool", &[table, "u64\n"], &objects);
    let shown = sparse.inspect(&["pool"]);
    assert!(
        shown.contains("places: 64 elements, 40 filled ["),
        "{shown}"
    );
    assert!(shown.contains("… 24 more filled"), "{shown}");
    assert!(
        shown.contains("--elements 40 is enough (now 16)"),
        "{shown}"
    );
    let json: serde_json::Value =
        serde_json::from_str(&sparse.inspect(&["pool", "--json"])).unwrap();
    assert_eq!(json["value"]["places"]["filled"], 40);
    assert_eq!(
        (&json["elements_cut"], &json["elements_enough"]),
        (&1.into(), &40.into())
    );

    let deep = chain.inspect(&["pool", "--depth", "0"]);
    assert!(
        deep.ends_with("\n1 pointer not followed: a larger --depth (now 0) shows more\n"),
        "{deep}"
    );
    let few = sparse.inspect(&["pool", "--objects", "4", "--elements", "64"]);
    assert!(
        few.ends_with(" not followed: a larger --objects (now 4) shows more\n")
            && !few.contains("--elements"),
        "{few}"
    );
}

/// A chain with one element looks as one with more, and small elements that are alike are written once.
#[test]
fn what_is_alike_looks_alike() {
    let numbers = "struct \"numbers\"(80,8){0:\"few\":[u64;8];64:\"first\":*1;72:\"cases\":[variants \"Item\"\
        (1,1,tag 0,1){0:\"Nothing\"{}1:\"Some\"{}};8];}\nstruct \"job\"(16,8){0:\"number\":u64;8:\"next\":*1;}\n";
    let job = "struct \"job\"(16,8){0:\"number\":u64;8:\"next\":*0;}\n";
    let made = Made::of(
        "pool",
        &[numbers, job],
        &[
            (
                1,
                r#"{"few":[5,0,0,0,0,0,0,0],"first":2,"cases":[{"Some":{}},{"Nothing":{}},{"Nothing":{}},{"Nothing":{}},{"Nothing":{}},{"Nothing":{}},{"Nothing":{}},{"Nothing":{}}]}"#,
            ),
            (2, r#"{"number":1,"next":null}"#),
        ],
    );
    let shown = made.inspect(&["pool"]);
    assert!(shown.contains("few: [5, 0 × 7]"), "{shown}");
    assert!(
        shown.contains("first: -> chain by next [job { number: 1 }]"),
        "{shown}"
    );
    assert!(shown.contains("Item::Nothing × 7]"), "{shown}");
    for path in ["root.first.number", "root.first[0].number"] {
        assert_eq!(
            made.inspect(&["pool", "--path", path]),
            format!("{path}: 1\n")
        );
    }
    let json: serde_json::Value = serde_json::from_str(&made.inspect(&["pool", "--json"])).unwrap();
    let first = &json["value"]["first"]["value"];
    assert_eq!(
        (&first["number"], &first["next"]),
        (&1.into(), &serde_json::Value::Null)
    );
}

#[test]
fn long_names_of_cpp_are_short_where_they_are_alone() {
    let map = "struct \"8hash_mapImm4lockE\"(16,8){0:\"first_\":*1;8:\"count_\":u64;}\n\
        struct \"N8hash_mapImm4lockE4nodeE\"(16,8){0:\"key\":u64;8:\"next\":*1;}\n";
    let node = "struct \"N8hash_mapImm4lockE4nodeE\"(16,8){0:\"key\":u64;8:\"next\":*0;}\n";
    let objects = [
        (1, r#"{"types":[7],"objects":[2]}"#),
        (2, r#"{"first_":3,"count_":1}"#),
        (3, r#"{"key":9,"next":null}"#),
    ];
    let made = Made::of("pool", &[TABLE, map, node], &objects);
    let shown = made.inspect(&["pool"]);
    assert!(
        shown.contains("root: -> hash_map { first_: -> chain by next [node { key: 9 }]"),
        "{shown}"
    );
    let whole = "hash_map<unsigned long, unsigned long, lock>";
    let heap = made.inspect(&["pool", "--heap"]);
    assert!(heap.contains(&format!("{whole}::node")), "{heap}");
    for name in ["node", &format!("{whole}::node")] {
        let found = made.inspect(&["pool", "--find", name]);
        assert!(found.contains("root.first_ at 0x"), "{found}");
    }
    // Another one with the same last part.
    let other = "struct \"8hash_mapImm4lockE\"(16,8){0:\"first_\":*1;8:\"count_\":*2;}\n\
        struct \"N8hash_mapImm4lockE4nodeE\"(16,8){0:\"key\":u64;8:\"next\":*1;}\n\
        struct \"N4list4nodeE\"(8,8){0:\"key\":u64;}\n";
    let made = Made::of(
        "pool",
        &[TABLE, other, node],
        &[
            (1, r#"{"types":[7],"objects":[2]}"#),
            (2, r#"{"first_":3,"count_":null}"#),
            (3, r#"{"key":9,"next":null}"#),
        ],
    );
    let shown = made.inspect(&["pool"]);
    assert!(
        shown.contains(&format!("{whole}::node {{ key: 9 }}")),
        "{shown}"
    );
}

#[test]
fn bytes_of_no_type_look_like_no_address() {
    let dir = scratch();
    let path = dir.path().join("store");
    make_store(&path);
    let shown = succeeds(&["inspect", text(&path), "things"]).out;
    assert!(
        shown.contains("bytes: -> 300 bytes of no type: 0xabab"),
        "{shown}"
    );
    let store = durum::Store::open(&path, durum::StoreOptions::new()).unwrap();
    let pool = store
        .open_pool("things", durum::PoolOptions::new())
        .unwrap();
    let root = pool.root::<Root>().unwrap();
    pool.transaction(|tx| {
        let words = tx.alloc_bytes(&pool, 0, 160, 8)?.cast::<u64>();
        // SAFETY: fresh, and there is one thread.
        unsafe {
            for at in 0..20 {
                words
                    .add(at)
                    .write(if at == 1 { 1 << 40 } else { 47 + at as u64 });
            }
            tx.add(root)?;
            (*root).bytes = words.cast();
        }
        Ok::<_, durum::Error>(())
    })
    .unwrap();
    drop((pool, store));
    let shown = succeeds(&["inspect", text(&path), "things", "--elements", "4"]).out;
    let words =
        "bytes: -> 160 bytes of no type, as 8-byte numbers [47, 0x10000000000, 49, 50, … 16 more]";
    assert!(shown.contains(words), "{shown}");
    let json = succeeds(&[
        "inspect",
        text(&path),
        "things",
        "--elements",
        "1",
        "--json",
    ])
    .json();
    let bytes = &json["value"]["bytes"]["value"];
    assert_eq!(
        (&bytes["hex"], &bytes["omitted"]),
        (&"2f00000000000000".into(), &152.into())
    );
}

#[test]
fn a_heap_of_sections_shows_the_global_variables() {
    let heap = "struct \"durum.ido.heap\"(40,8){0:\"version\":u64;8:\"epoch\":u64;16:\"root\":*any;24:\"size\":u64;32:\"globals\":*1;}\n\
        struct \"durum.ido.variable\"(32,8){0:\"next\":*1;8:\"place\":*2;16:\"size\":u64;24:\"name_size\":u64;32:\"name\":[u8;tail];}\n\
        struct \"store\"(8,8){0:\"count\":u64;}\n";
    let variable = "struct \"durum.ido.variable\"(32,8){0:\"next\":*0;8:\"place\":*1;16:\"size\":u64;24:\"name_size\":u64;32:\"name\":[u8;tail];}\n\
        struct \"store\"(8,8){0:\"count\":u64;}\n";
    let made = Made::of(
        "heap",
        &[heap, variable, "struct \"store\"(8,8){0:\"count\":u64;}\n"],
        &[
            (
                1,
                r#"{"version":1,"epoch":1,"root":null,"size":0,"globals":2}"#,
            ),
            (
                2,
                r#"bytes 48 {"next":null,"place":3,"size":8,"name_size":16,"name":"run.c:main.store"}"#,
            ),
            (3, r#"{"count":7}"#),
        ],
    );
    assert_eq!(
        made.inspect(&["heap"]),
        "root: heap { global variable main.store of run.c: store { count: 7 } }\n"
    );
    // It is found where its name says.
    let found = made.inspect(&["heap", "--find", "store"]);
    assert!(found.contains("\nroot[main.store] at 0x"), "{found}");
    for name in ["main.store", "run.c:main.store"] {
        let path = format!("root[{name}].count");
        let shown = made.inspect(&["heap", "--path", &path]);
        assert_eq!(shown, format!("{path}: 7\n"));
    }
    let json: serde_json::Value = serde_json::from_str(&made.inspect(&["heap", "--json"])).unwrap();
    assert!(
        json["value"]["globals"]["value"]["place"].is_object(),
        "{json}"
    );
    // What the runtime keeps stands apart.
    let heap = made.inspect(&["heap", "--heap"]);
    let (program, own) = heap.split_once("\nOF DURUM ITSELF").unwrap();
    assert!(
        program.contains("\nstore ") && !program.contains("durum.ido"),
        "{heap}"
    );
    assert!(
        own.contains("durum.ido.heap") && own.contains("durum.ido.variable"),
        "{heap}"
    );
}

#[test]
fn a_database_shows_keys_and_values() {
    let dir = scratch();
    let path = dir.path().join("names");
    for (key, value) in [("grace", "2"), ("ada", "1"), ("gone", "3")] {
        succeeds(&["kv", "put", text(&path), key, value, "--create"]);
    }
    succeeds(&["kv", "del", text(&path), "gone"]);
    let shown = succeeds(&["inspect", text(&path), "kv"]).out;
    assert!(shown.contains("may write"), "{shown}");
    assert!(
        shown.ends_with("\nroot: map of 2 { \"ada\": \"1\", \"grace\": \"2\" }\n"),
        "{shown}"
    );
    for key in ["root[\"ada\"]", "root[ada]"] {
        let value = succeeds(&["inspect", text(&path), "kv", "--path", key]).out;
        assert!(value.ends_with(": \"1\"\n"), "{value}");
    }
    fails(
        &["inspect", text(&path), "kv", "--path", "root[gone]"],
        2,
        "there are: \"ada\", \"grace\"",
    );
    let json = succeeds(&["inspect", text(&path), "kv", "--json"]).json();
    assert!(json["value"]["first"].is_object(), "{json}");
    let raw = succeeds(&["inspect", text(&path), "kv", "--raw"]).out;
    assert!(
        raw.contains("kv leaf") && raw.contains("sequence_max"),
        "{raw}"
    );
}

#[test]
fn a_lone_number_and_a_null_pointer_tell_their_types() {
    let number = Made::of("pool", &["u64\n"], &[(1, "1")]);
    assert_eq!(number.inspect(&["pool"]), "root: u64 1\n");
    assert!(!number.inspect(&["pool", "--heap"]).contains("free element"));
    let empty = Made::of("pool", &[LEAD], &[(1, r#"{"first":null,"count":0}"#)]);
    assert_eq!(
        empty.inspect(&["pool"]),
        "root: lead { first: null (-> a thing), count: 0 }\n"
    );
    // Where one of them is to be seen, nobody has to be told.
    let found = things().inspect(&["things", "--find", "thing"]);
    assert!(found.contains("next: null }"), "{found}");
}

#[test]
fn the_help_explains_what_is_printed() {
    let help = succeeds(&["inspect", "--help"]).out;
    for explained in [
        "An object is what",
        "64 elements, 3 filled",
        "chain by next",
        "an option is",
        "Cells (",
        "A PATH begins with root",
        "0x20a90c603040.balance",
    ] {
        assert!(help.contains(explained), "{explained} in {help}");
    }
    assert!(
        help.find("--color").unwrap() > help.find("--live").unwrap(),
        "{help}"
    );
    let help = succeeds(&["--help"]).out;
    assert!(
        help.contains("To look, without writing: ls, stat, inspect"),
        "{help}"
    );
}
