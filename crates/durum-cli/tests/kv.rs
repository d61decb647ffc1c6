//! `durum kv`: entries go in and come out as they were, and exit codes say what went wrong.

mod support;

use serde_json::json;
use support::*;

#[test]
fn entries_are_put_read_listed_and_deleted() {
    let dir = scratch();
    let path = dir.path().join("names");
    let db = path.to_str().unwrap();
    let missing = durum(&["kv", "get", db, "color"]);
    assert_eq!(missing.code, 2);
    let cure = format!("`durum kv put {db} KEY VALUE --create`");
    assert!(missing.err.contains(&cure), "{}", missing.err);
    // An option of programs is no flag of the command.
    assert!(
        !missing.err.contains("create_if_missing"),
        "{}",
        missing.err
    );
    fails(
        &["kv", "put", db, "color", "red"],
        2,
        "add --create to make one",
    );
    for command in ["stats", "scan"] {
        fails(&["kv", command, db], 2, &cure);
    }
    fails(
        &["kv", "put", "/etc", "color", "red", "--create"],
        2,
        "choose another directory",
    );
    succeeds(&["kv", "put", db, "color", "red", "--create"]);
    succeeds(&["kv", "put", db, "shape", "round"]);
    succeeds(&["kv", "put", db, "count", "7"]);
    assert_eq!(
        with_input(&["kv", "put", db, "bytes"], b"\x00\xff\n\t\\").code,
        0
    );
    assert_eq!(succeeds(&["kv", "get", db, "color"]).out, "red\n");
    assert_eq!(succeeds(&["kv", "get", db, "color", "--raw"]).out, "red");
    assert_eq!(
        succeeds(&["kv", "get", db, "bytes"]).out,
        "\\x00\\xff\\n\\t\\\\\n"
    );
    assert_eq!(
        succeeds(&["kv", "get", db, "636f6c6f72", "--hex", "--json"]).json(),
        json!({ "key": "636f6c6f72", "value": "726564" })
    );
    let absent = durum(&["kv", "get", db, "colour"]);
    assert_eq!((absent.code, absent.out), (2, String::new()));
    let scan = |more: &[&str]| succeeds(&[&["kv", "scan", db], more].concat()).out;
    let all = "bytes\t\\x00\\xff\\n\\t\\\\\ncolor\tred\ncount\t7\nshape\tround\n";
    assert_eq!(scan(&[]), all);
    assert_eq!(
        scan(&["--keys", "--reverse"]),
        "shape\ncount\ncolor\nbytes\n"
    );
    assert_eq!(scan(&["--prefix", "co"]), "color\tred\ncount\t7\n");
    assert_eq!(
        scan(&["--prefix", "co", "--reverse", "--keys"]),
        "count\ncolor\n"
    );
    assert_eq!(
        scan(&["--from", "color", "--to", "shape", "--keys"]),
        "color\ncount\n"
    );
    assert_eq!(
        scan(&["--to", "zz", "--reverse", "--limit", "1"]),
        "shape\tround\n"
    );
    assert_eq!(
        scan(&["--json", "--limit", "1", "--from", "s"]),
        "{\"key\":\"shape\",\"value\":\"round\"}\n"
    );
    succeeds(&["kv", "del", db, "color", "colour", "bytes"]);
    assert_eq!(scan(&["--keys"]), "count\nshape\n");
    let stats = succeeds(&["kv", "stats", db, "--json"]).json();
    assert_eq!(
        (
            &stats["entries"],
            &stats["key_bytes"],
            &stats["value_bytes"]
        ),
        (&json!(2), &json!(10), &json!(6))
    );
    assert_eq!(stats["engine"], "shadow");
    assert!(
        succeeds(&["kv", "stats", db])
            .out
            .contains("entries     2\n")
    );
    // It is a store like any other.
    succeeds(&["check", db]);
    let inspected = succeeds(&["inspect", db, "kv"]).out;
    let root = "root: map of 2 { \"count\": \"7\", \"shape\": \"round\" }";
    assert!(inspected.contains(root), "{inspected}");
    assert!(
        inspected.contains(&format!("`durum kv scan {db}` shows its entries")),
        "{inspected}"
    );
}

#[test]
fn what_is_set_is_kept_and_shown() {
    let dir = scratch();
    let path = dir.path().join("names");
    let db = path.to_str().unwrap();
    succeeds(&["kv", "put", db, "color", "red", "--create"]);
    let durability = || succeeds(&["kv", "stats", db, "--json"]).json()["durability"].clone();
    assert_eq!(durability(), "durable");
    succeeds(&["kv", "set", db, "durability=buffered"]);
    assert_eq!(durability(), "buffered");
    assert!(
        succeeds(&["kv", "stats", db])
            .out
            .contains("durability  buffered\n")
    );
    // A command that has ended has closed the database, which loses nothing.
    succeeds(&["kv", "put", db, "shape", "round"]);
    assert_eq!(succeeds(&["kv", "get", db, "shape"]).out, "round\n");
    succeeds(&["kv", "set", db, "durability=durable"]);
    assert_eq!(durability(), "durable");
    for wrong in ["durability=soon", "speed=high", "durability"] {
        assert_eq!(durum(&["kv", "set", db, wrong]).code, 2, "{wrong}");
    }
    let other = dir.path().join("hybrid");
    let hybrid = other.to_str().unwrap();
    succeeds(&[
        "kv", "put", hybrid, "a", "1", "--create", "--engine", "hybrid",
    ]);
    let refused = durum(&["kv", "set", hybrid, "durability=buffered"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("every write is durable"),
        "{}",
        refused.err
    );
}

#[test]
fn what_scan_prints_load_reads() {
    let dir = scratch();
    let (first, second) = (dir.path().join("first"), dir.path().join("second"));
    let (first, second) = (first.to_str().unwrap(), second.to_str().unwrap());
    let lines: String = (0..2500)
        .map(|number| format!("key {number:05}\tvalue \\x{:02x}\\t\n", number % 256))
        .collect();
    let loaded = with_input(
        &[
            "kv", "load", first, "--create", "--engine", "hybrid", "--json",
        ],
        lines.as_bytes(),
    );
    assert_eq!(loaded.json()["entries"], 2500, "{}", loaded.err);
    let printed = succeeds(&["kv", "scan", first]).out;
    let file = dir.path().join("entries");
    std::fs::write(&file, &printed).unwrap();
    succeeds(&["kv", "load", second, file.to_str().unwrap(), "--create"]);
    assert!(succeeds(&["kv", "scan", second]).out == printed);
    let stats = succeeds(&["kv", "stats", first, "--json"]).json();
    assert_eq!(stats["engine"], "hybrid");
    let wrong = with_input(&["kv", "load", second, "--batch", "1"], b"new\t1\nno tab\n");
    assert_eq!(wrong.code, 2);
    assert!(
        wrong
            .err
            .contains("line 2: there is no tab between key and value; 1 entry before it"),
        "{}",
        wrong.err
    );
    assert_eq!(succeeds(&["kv", "get", second, "new"]).out, "1\n");
}
