//! `durum migrate` makes a pool anew as a map says, and tells before what it would do and what stands in the way.

mod support;

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use durum::{PoolOptions, Store, StoreOptions};
use support::pair::make_pair;
use support::*;

/// A node as a map makes it.
#[repr(C)]
struct Weighed {
    weight: u64,
    value: u64,
    next: *mut Weighed,
}
durum::describe!(Weighed as "node" { weight, value, next });

/// A pool type has one pool at a time.
static MAKING: Mutex<()> = Mutex::new(());

fn make_jobs(store: &Path) {
    let _one = MAKING.lock().unwrap();
    support::jobs::make_jobs(store);
}

#[test]
fn a_pool_has_other_types_and_says_the_same() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_jobs(&store);
    let map = directory.path().join("jobs.map");
    fs::write(
        &map,
        r#"{"durum-map": 1, "types": {"Worker": {"now": "Person", "fields": [
            {"name": "age", "type": "u32", "default": 36}, "name", "boss"]}}}"#,
    )
    .unwrap();
    let shown = || {
        let path = "root.tasks[2203].worker";
        succeeds(&["inspect", text(&store), "pool", "--path", path]).out
    };
    assert!(shown().contains("Bob"), "{}", shown());
    let before = contents(&store);
    let arguments = ["migrate", text(&store), "pool", "--map", text(&map)];
    let with = |more: &[&'static str]| [&arguments[..], more].concat();
    let planned = succeeds(&with(&["--dry-run"])).out;
    assert!(
        planned.contains("counted Worker: 2 objects of 48 bytes, now counted Person of 56"),
        "{planned}"
    );
    assert!(planned.contains("would be migrated"), "{planned}");
    assert_eq!(contents(&store), before, "a dry run writes nothing");

    let told = succeeds(&with(&["--json"])).json();
    assert_eq!(told["dry_run"], false);
    assert_eq!(told["refusals"].as_array().unwrap().len(), 0);
    let now = shown();
    assert!(now.contains("Bob") && now.contains("age: 36"), "{now}");
    let checked = succeeds(&["check", text(&store), "--json"]).json();
    assert_eq!(
        checked["findings"].as_array().unwrap().len(),
        0,
        "{checked:#}"
    );
}

#[test]
fn what_stands_in_the_way_is_told_with_exit_code_2() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_jobs(&store);
    let map = directory.path().join("jobs.map");
    let arguments = [
        "migrate",
        text(&store),
        "pool",
        "--map",
        text(&map),
        "--dry-run",
    ];
    let refused = |said: &str, what: &[&str]| {
        fs::write(&map, said).unwrap();
        let run = durum(&arguments);
        assert_eq!(run.code, 2, "{}{}", run.out, run.err);
        let told = format!("{}{}", run.out, run.err);
        what.iter()
            .for_each(|what| assert!(told.contains(what), "{what}: {told}"));
    };
    refused("{", &["jobs.map: EOF"]);
    refused(
        r#"{"durum-map": 1, "types": {"Worker": {"fields": ["boss", {"name": "age", "type": "u32"}]}, "Boss": {}}}"#,
        &[
            "counted Worker.value.age: it is new, and has no default",
            "Boss: no object of the pool has such a type",
            "2 things in the way",
        ],
    );
    refused(
        r#"{"durum-map": 1, "types": {"Worker": {"fields": ["boss"]}}}"#,
        &[
            "counted Worker.value.name: it goes, and has pointers",
            "(2 objects)",
        ],
    );
    // Where keys belong only the program knows.
    refused(
        r#"{"durum-map": 1, "types": {"PHashMap<u64,Task>.slot": {"fields": [
            {"name": "key", "type": "i64"}, "value"]}}}"#,
        &[
            "slots[].key: the keys of a map change: it finds them no more; only the program builds it anew, by its `Hash` or `Ord`: `P::migrate`, with `Migration::rebuild`",
        ],
    );
}

#[test]
fn pools_that_lead_into_each_other_are_migrated_together() {
    let directory = scratch();
    let store = directory.path().join("store");
    make_pair(&store);
    let map = directory.path().join("nodes.map");
    fs::write(
        &map,
        r#"{"durum-map": 1, "types": {"node": {"fields": [
            {"name": "weight", "type": "u64", "default": 5}, "value", "next"]}}}"#,
    )
    .unwrap();
    let arguments = ["migrate", text(&store), "words", "--map", text(&map)];
    let with = |more: &[&'static str]| [&arguments[..], more].concat();
    let alone = durum(&with(&["--dry-run"]));
    assert_eq!(alone.code, 2);
    let part = "pool \"index\", node: a pointer of it leads into the pool; both are made anew together by `durum migrate --with`, `Migration::with` or `durum_pools_migrate`";
    assert!(alone.out.contains(part), "{}", alone.out);
    let planned = succeeds(&with(&["--with", "index", "--dry-run"])).out;
    assert!(
        planned.contains("node: 2 objects of 16 bytes, now node of 24")
            && planned.contains("\"words\", \"index\" would be migrated"),
        "{planned}"
    );
    let told = succeeds(&with(&["--with", "index", "--json"])).json();
    assert_eq!(told["with"], serde_json::json!(["index"]));
    let checked = succeeds(&["check", text(&store), "--json"]).json();
    let findings = checked["findings"].as_array().unwrap().len();
    assert_eq!(findings, 0, "{checked:#}");
    // Each leads to the other, which has a weight, too.
    let opened = Store::open(&store, StoreOptions::new()).unwrap();
    let roots = ["words", "index"].map(|name| {
        let pool = opened.open_pool(name, PoolOptions::new()).unwrap();
        let root = pool.root::<Weighed>().unwrap();
        (pool, root)
    });
    for (at, (_, root)) in roots.iter().enumerate() {
        // SAFETY: the pools are open.
        let node = unsafe { &**root };
        assert_eq!((node.weight, node.value), (5, at as u64 + 1));
        assert_eq!(node.next, roots[1 - at].1);
    }
}

/// Beside the new pool less than an eighth of both is needed, also for objects that are as small as any.
#[test]
fn little_has_to_be_known_of_small_objects() {
    let directory = scratch();
    let store = directory.path().join("store");
    succeeds(&["init", text(&store)]);
    const OBJECTS: usize = 100_000;
    let mut lines = format!(
        r#"{{"durum-dump":1,"pool":"numbers","engine":"shadow","space":["0x200000000000","0x10000000000"],"objects":{OBJECTS},"root":false}}"#
    );
    lines += "\n{\"type\":1,\"text\":\"struct \\\"number\\\"(8,8){0:\\\"was\\\":u64;}\\n\"}\n";
    for number in 1..=OBJECTS {
        lines += &format!("{{\"object\":{number},\"type\":1,\"value\":{{\"was\":{number}}}}}\n");
    }
    lines += &format!("{{\"end\":{OBJECTS}}}\n");
    let run = load(&[text(&store)], lines.as_bytes());
    assert_eq!(run.code, 0, "{}", run.err);
    let map = directory.path().join("numbers.map");
    let renamed =
        r#"{"durum-map": 1, "types": {"number": {"fields": [{"name": "is", "was": "was"}]}}}"#;
    fs::write(&map, renamed).unwrap();
    let plan = [
        "migrate",
        text(&store),
        "numbers",
        "--map",
        text(&map),
        "--dry-run",
        "--json",
    ];
    let told = succeeds(&plan).json();
    let bytes = |of: &str| told[of].as_u64().unwrap();
    assert_eq!(bytes("objects"), OBJECTS as u64, "{told:#}");
    let both = bytes("old_bytes") + bytes("bytes");
    assert!(bytes("scratch_bytes") * 8 < both, "{told:#}");
}
