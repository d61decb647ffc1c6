//! A pool's objects are printed through their descriptors, by a program that knows none of them, and nothing is
//! written.

mod support;

use std::os::unix::fs::FileExt;

use serde_json::{Value, json};
use support::*;

#[test]
fn the_tree_has_lists_cycles_arrays_and_names_shared_objects_once() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let before = contents(&store);
    let run = succeeds(&["inspect", text(&store), "things", "--raw"]);
    // Addresses are drawn at random.
    let mut shown = String::new();
    for (at, part) in run.out.split("0x").enumerate() {
        let rest = if at == 0 {
            part
        } else {
            part.trim_start_matches(|c: char| c.is_ascii_hexdigit())
        };
        shown += if at == 0 { "" } else { "0x*" };
        shown += rest;
    }
    let expected = "\
root #1 root at 0x*, 88 B
  list: -> #2 node at 0x*, 16 B
    value: 11
    next: -> #6
  ring: -> #3 node at 0x*, 16 B
    value: 1
    next: -> #4 node at 0x*, 16 B
      value: 2
      next: -> #3 (cycle)
  leaves: [6]
    0: -> #5 leaf at 0x*, 48 B
      label: \"secret word\"
      numbers: [4]
        0: -1
        1: 2
        2: -3
        3: 4
      ratio: 0.5
      is_set: true
      padding: 7 bytes of zero
    1: -> #5
    2-5: null
  second: -> #6 node at 0x*, 16 B
    value: 22
    next: -> #7 node at 0x*, 16 B
      value: 33
      next: null
  inside: -> #5+24
  bytes: -> #8 (untyped) at 0x*, 300 B
    "
    .to_owned()
        + &"ab".repeat(64)
        + " ... 236 more bytes\n";
    // The second node is nearer to the root by the field `second`, so it is printed there.
    assert_eq!(shown, expected);
    assert_eq!(contents(&store), before, "inspect changes nothing");
}

/// A small object's place in a slab may be larger than its type says; an array whose length a field tells is no such
/// rounding.
#[test]
fn an_array_behind_a_small_struct_is_shown() {
    use durum::{Description, PoolOptions, Store, StoreOptions};
    use durum_format::types::Descriptor;

    let dir = scratch();
    let path = dir.path().join("store");
    let store = Store::create(&path, StoreOptions::new()).unwrap();
    let pool = store.create_pool("things", PoolOptions::new()).unwrap();
    let root = pool.root::<*mut u64>().unwrap();
    let text = "struct \"row\"(32,8){0:\"count\":u64;8:\"a\":u64;16:\"b\":u64;24:\"c\":u64;32:\"data\":[u64;field \"count\"];}\n";
    let row = Description::from_descriptor(&Descriptor::parse(text).unwrap());
    let id = pool.ensure_described(&row).unwrap();
    pool.transaction(|tx| {
        let row = tx.alloc_bytes(&pool, id, 48, 8)?.cast::<u64>();
        // SAFETY: six words, just allocated, and the root.
        unsafe {
            for (index, value) in [2, 0, 0, 0, 71, 72].into_iter().enumerate() {
                row.add(index).write(value);
            }
            tx.set(root, row)
        }
    })
    .unwrap();
    drop((pool, store));
    let shown = succeeds(&["inspect", crate::text(&path), "things", "--raw"]).out;
    assert!(
        shown.contains("0: 71") && shown.contains("1: 72"),
        "{shown}"
    );
}

#[test]
fn json_has_the_same_objects_and_pointers_between_them() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let json = succeeds(&["inspect", text(&store), "things", "--raw", "--json"]).json();
    assert_eq!(json["pool"], "things");
    assert_eq!(json["clean"], true);
    let objects = json["objects"].as_array().unwrap();
    assert_eq!(objects.len(), 8);
    let object = |pointer: &Value| {
        let number = pointer["object"].as_u64().unwrap();
        objects
            .iter()
            .find(|object| object["object"] == number)
            .unwrap()
    };
    let root = &objects[0];
    assert_eq!(root["object"], json["root"]);
    let first = object(&root["value"]["list"]);
    assert_eq!(first["value"]["value"], 11);
    assert_eq!(first["address"], root["value"]["list"]["pointer"]);
    let second = object(&first["value"]["next"]);
    assert_eq!(second["value"]["value"], 22);
    assert_eq!(object(&root["value"]["second"])["object"], second["object"]);
    let back = object(&object(&root["value"]["ring"])["value"]["next"]);
    assert_eq!(back["value"]["next"]["cycle"], true);
    let leaf = object(&root["value"]["leaves"][1]);
    assert_eq!(leaf["value"]["numbers"], json!([-1, 2, -3, 4]));
    assert_eq!(root["value"]["leaves"][2], Value::Null);
    assert_eq!(root["value"]["inside"]["offset"], 24);
    assert_eq!(object(&root["value"]["inside"])["object"], leaf["object"]);
}

#[test]
fn redact_hides_values_and_keeps_the_structure() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    for format in [&["--redact"][..], &["--redact", "--json"]] {
        let mut arguments = vec!["inspect", text(&store), "things", "--raw"];
        arguments.extend(format);
        let out = succeeds(&arguments).out;
        for secret in [
            "secret",
            "73656372",
            "11,",
            ": 11\n",
            "abab",
            "0.5",
            "true,\n        \"label",
        ] {
            assert!(!out.contains(secret), "{secret:?} is in {out}");
        }
        for kept in ["leaf", "numbers", "next", "redacted"] {
            assert!(out.contains(kept), "{kept:?} is not in {out}");
        }
    }
    let json = succeeds(&[
        "inspect",
        text(&store),
        "things",
        "--raw",
        "--redact",
        "--json",
    ])
    .json();
    assert_eq!(
        json["objects"].as_array().unwrap().len(),
        8,
        "all pointers are still followed"
    );
}

#[test]
fn limits_cut_what_is_far_and_say_so() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let cut = |arguments: &[&str]| {
        let mut all = vec!["inspect", text(&store), "things", "--raw", "--json"];
        all.extend(arguments);
        let json = succeeds(&all).json();
        (
            json["objects"].as_array().unwrap().len(),
            json["pointers_cut"].as_u64().unwrap(),
        )
    };
    assert_eq!(cut(&["--depth", "0"]), (1, 7));
    // The third node and the ring's second one are two pointers away.
    assert_eq!(cut(&["--depth", "1"]), (6, 2));
    assert_eq!(cut(&["--depth", "2"]), (8, 0));
    assert_eq!(cut(&["--objects", "3"]).0, 3);
    let shown = succeeds(&["inspect", text(&store), "things", "--raw", "--depth", "1"]).out;
    assert!(
        shown.contains("(not followed)") && shown.contains("2 pointers not followed"),
        "{shown}"
    );
    fails(
        &[
            "inspect",
            text(&store),
            "things",
            "--raw",
            "--depth",
            "100000",
        ],
        2,
        "up to 500",
    );
    let shown = succeeds(&[
        "inspect",
        text(&store),
        "things",
        "--raw",
        "--elements",
        "2",
    ])
    .out;
    assert!(shown.contains("... 2 more"), "{shown}");
}

#[test]
fn a_long_list_is_followed_as_far_as_asked() {
    let dir = scratch();
    let path = dir.path().join("store");
    let store = durum::Store::create(&path, durum::StoreOptions::new()).unwrap();
    let pool = store
        .create_pool("list", durum::PoolOptions::new())
        .unwrap();
    let root = pool.root::<Node>().unwrap();
    pool.transaction(|tx| {
        let mut next = std::ptr::null_mut();
        for value in 0..2000 {
            let node = tx.alloc::<Node>()?;
            // SAFETY: fresh.
            unsafe { node.write(Node { value, next }) };
            next = node;
        }
        // SAFETY: the root is live.
        unsafe { tx.set(&raw mut (*root).next, next) }
    })
    .unwrap();
    drop((pool, store));
    let json = succeeds(&[
        "inspect",
        text(&path),
        "list",
        "--raw",
        "--depth",
        "500",
        "--json",
    ])
    .json();
    assert_eq!(json["objects"].as_array().unwrap().len(), 501);
    let run = succeeds(&["inspect", text(&path), "list", "--raw", "--depth", "500"]);
    assert!(run.out.contains("value: 1500") && !run.out.contains("value: 1499"));
}

#[test]
fn a_pool_without_a_root_is_no_failure_and_a_missing_one_is() {
    let dir = scratch();
    let path = dir.path().join("store");
    let store = durum::Store::create(&path, durum::StoreOptions::new()).unwrap();
    drop((
        store
            .create_pool("empty", durum::PoolOptions::new())
            .unwrap(),
        store,
    ));
    assert_eq!(
        succeeds(&["inspect", text(&path), "empty"]).out,
        "pool \"empty\" has no root object\n"
    );
    let json = succeeds(&["inspect", text(&path), "empty", "--raw", "--json"]).json();
    assert_eq!(
        (&json["root"], &json["objects"]),
        (&Value::Null, &json!([]))
    );
    fails(&["inspect", text(&path), "nobody"], 2, "no pool \"nobody\"");
}

#[test]
fn without_a_pool_all_are_listed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let store = durum::Store::create(&path, durum::StoreOptions::new()).unwrap();
    let twin = durum::PoolOptions::new().engine(durum::Engine::Twin);
    store.create_pool("one", durum::PoolOptions::new()).unwrap();
    store.create_pool("two", twin).unwrap();
    drop(store);
    let shown = succeeds(&["inspect", text(&path)]).out;
    for (name, engine) in [("one", "shadow"), ("two", "twin")] {
        let line = shown.lines().find(|line| line.starts_with(name)).unwrap();
        assert!(
            line.contains(engine) && line.contains("MiB") && line.ends_with("ok"),
            "{shown}"
        );
    }
    let json = succeeds(&["inspect", text(&path), "--json"]).json();
    assert_eq!(json, succeeds(&["ls", text(&path), "--json"]).json());
    assert_eq!(json["pools"][1]["name"], "two");
    fails(&["inspect", text(&path), "--log"], 2, "name the pool");
}

#[test]
fn the_heap_accounts_for_all_of_it() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let json = succeeds(&["inspect", text(&store), "things", "--heap", "--json"]).json();
    let heap = &json["heap"];
    let types = heap["types"].as_array().unwrap();
    let of = |name: &str| {
        types.iter().find(|entry| entry["type"] == name).unwrap()["objects"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(
        (of("node"), of("leaf"), of("root"), of("(untyped)")),
        (5, 1, 1, 1)
    );
    assert_eq!(heap["puddles"][0]["objects"], 8);
    let blocks = heap["free_blocks"].as_array().unwrap();
    let sum: u64 = blocks
        .iter()
        .map(|block| block["bytes"].as_u64().unwrap() * block["count"].as_u64().unwrap())
        .sum();
    assert_eq!(heap["puddles"][0]["free_bytes"], sum);
    // 2 MiB, less 4 KiB of header and what 8 objects take: two slabs and two extents at most.
    assert!(sum > (2 << 20) - 4096 - 64 * 1024 && sum < 2 << 20, "{sum}");
    assert!(json.get("objects").is_none());
    let shown = succeeds(&["inspect", text(&store), "things", "--heap"]).out;
    assert!(
        shown.contains("FREE BLOCKS OF") && shown.contains("####"),
        "{shown}"
    );
}

#[test]
fn logs_of_a_killed_program_are_shown_and_the_store_as_recovery_will_leave_it() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_dirty_store(&store, "hybrid");
    let before = contents(&store);
    let json = succeeds(&["inspect", text(&store), "words", "--log", "--json"]).json();
    assert_eq!(json["clean"], false);
    let logs = json["logs"].as_array().unwrap();
    // Those that are kept in reserve have no generation yet.
    let generations = logs.iter().filter_map(|log| log["generation"].as_u64());
    let generations: Vec<u64> = generations.collect();
    assert!(!generations.is_empty(), "{logs:?}");
    assert!(generations.iter().all(|number| *number > 0), "{logs:?}");
    let shown = succeeds(&["inspect", text(&store), "words", "--log"]).out;
    assert!(
        shown.contains("GENERATION") && shown.contains("recovery will roll"),
        "{shown}"
    );
    // Those in reserve are told as what they are, and not as damage.
    let is_reserve = |log: &&Value| log["generation"].is_null();
    assert!(
        logs.iter()
            .any(|log| is_reserve(&log) && log["state"] == "never used"),
        "{logs:?}"
    );
    assert!(
        shown.contains("  never used") && !shown.contains("holds [00"),
        "{shown}"
    );
    let listed = succeeds(&["ls", text(&store)]).out;
    assert!(
        listed.contains("note: the store was not closed in order"),
        "{listed}"
    );
    let is_clean = || succeeds(&["ls", text(&store), "--json"]).json()["clean"].clone();
    assert_eq!(is_clean(), false);
    let tree = succeeds(&["inspect", text(&store), "words"]).out;
    assert!(
        tree.contains("not closed in order") && tree.contains("text_piece"),
        "{tree}"
    );
    assert_eq!(
        contents(&store),
        before,
        "inspect changes nothing, not even a dirty store"
    );
    let seen = succeeds(&["inspect", text(&store), "words", "--json"]).json()["objects"].clone();
    succeeds(&["recover", text(&store)]);
    assert_eq!(is_clean(), true);
    let recovered =
        succeeds(&["inspect", text(&store), "words", "--json"]).json()["objects"].clone();
    assert_eq!(seen, recovered);
    assert!(
        succeeds(&["inspect", text(&store), "words", "--log"])
            .out
            .contains("no logs")
    );
}

#[test]
fn records_of_a_killed_program_are_shown() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_dirty_store(&store, "shadow");
    let before = contents(&store);
    let json = succeeds(&["inspect", text(&store), "words", "--log", "--json"]).json();
    assert_eq!(json["logs"], serde_json::json!([]));
    let [records] = json["records"].as_array().unwrap().as_slice() else {
        panic!("{json}");
    };
    let number = |name: &str| records[name].as_u64().unwrap();
    assert!(number("transactions") > 0 && number("records") >= number("transactions"));
    assert!(number("changes") >= number("records") && number("data_bytes") > 0);
    assert!(number("last_stamp") > number("home_up_to"));
    let shown = succeeds(&["inspect", text(&store), "words", "--log"]).out;
    let expected = format!(
        "roll 0 transactions back and {} forward",
        number("transactions")
    );
    assert!(
        shown.contains("HOME UP TO") && shown.replace(',', "").contains(&expected),
        "{shown}"
    );
    assert_eq!(contents(&store), before, "inspect changes nothing");
    let seen = succeeds(&["inspect", text(&store), "words", "--json"]).json()["objects"].clone();
    succeeds(&["recover", text(&store)]);
    let recovered =
        succeeds(&["inspect", text(&store), "words", "--json"]).json()["objects"].clone();
    assert_eq!(seen, recovered);
    let shown = succeeds(&["inspect", text(&store), "words", "--log"]).out;
    assert!(shown.contains("no logs"), "{shown}");
}

#[test]
fn damage_is_shown_where_it_is_and_ends_with_code_3() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let puddle = puddle_file(&store);
    let file = std::fs::File::open(&puddle).unwrap();
    let mut word = [0; 8];
    // The first field of the root object, behind the extent's header, is the list.
    file.read_exact_at(&mut word, 4096 + 16).unwrap();
    let address = u64::from_le_bytes(word);
    // The slab of nodes is at the 4 KiB boundary below; its second word says how it is divided.
    let slab = (address & 0x1f_ffff) / 4096 * 4096;
    overwrite(&puddle, slab + 16, &[0xff; 8]);
    let run = fails(&["inspect", text(&store), "things"], 3, "durum check");
    assert!(
        run.out.contains("leaf") && run.out.contains("slab"),
        "{}",
        run.out
    );
    let run = fails(
        &["inspect", text(&store), "things", "--heap"],
        3,
        "durum check",
    );
    assert!(run.out.contains("(untyped)"), "{}", run.out);
}
