//! `clone`, `export` and `import`: copies of stores and of pools.

use durum::{PoolOptions, Store, StoreOptions};

use crate::support::*;

#[test]
fn a_clone_opens_beside_its_source() {
    let dir = scratch();
    let [source, copy] = ["source", "copy"].map(|name| dir.path().join(name));
    make_store(&source);
    let before = contents(&source);
    let report = succeeds(&["clone", text(&source), text(&copy), "--json"]).json();
    assert_eq!(
        (report["puddles"].as_u64(), report["objects"].as_u64()),
        (Some(1), Some(8))
    );
    // Seven in the root, four in the nodes; nulls do not count.
    assert_eq!(report["pointers"], 11);
    assert_eq!(report["untyped_objects"], 1);
    assert_eq!(contents(&source), before, "the source is not changed");
    succeeds(&["check", text(&copy)]);
    let open = |path| {
        let store = Store::open(path, StoreOptions::new()).unwrap();
        let pool = store.open_pool("things", PoolOptions::new()).unwrap();
        (pool.root::<Root>().unwrap(), pool, store)
    };
    let [first, second] = [open(&source), open(&copy)];
    assert_ne!(first.0, second.0);
    // SAFETY: both pools are open.
    let values = unsafe {
        [
            (*(*(*first.0).list).next).value,
            (*(*(*second.0).list).next).value,
        ]
    };
    assert_eq!(values, [22, 22]);
    fails(&["clone", text(&source), text(&copy)], 2, "");
}

#[test]
fn a_pool_is_exported_and_imported() {
    let dir = scratch();
    let [store, place, other] =
        ["store", "things.export", "other"].map(|name| dir.path().join(name));
    make_store(&store);
    let before = contents(&store);
    let report = succeeds(&["export", text(&store), "things", text(&place), "--json"]).json();
    assert_eq!(report["pools"], serde_json::json!(["things"]));
    assert_eq!(
        (
            report["objects"].as_u64(),
            report["untyped_objects"].as_u64()
        ),
        (Some(8), Some(1))
    );
    assert_eq!(contents(&store), before, "the store is not changed");
    fails(
        &["export", text(&store), "things", text(&place)],
        2,
        "there already",
    );
    fails(
        &["export", text(&store), "nothing", text(&other)],
        2,
        "no pool \"nothing\"",
    );
    fails(&["export", text(&store), text(&other)], 2, "name a pool");
    fails(&["import", text(&place), text(&store)], 2, "things");
    fails(&["import", text(&store), text(&store)], 3, "durum export");
    // Its addresses are taken, and nobody knows of what one of its objects is.
    let copy = [
        "import",
        text(&place),
        text(&store),
        "--name",
        "copy",
        "--copy",
    ];
    fails(&copy, 2, "--untyped-hold-no-pointers");
    let promised = [&copy[..], &["--untyped-hold-no-pointers", "--json"]].concat();
    let report = succeeds(&promised).json();
    assert_eq!(
        (report["moved"].as_u64(), report["puddles"].as_u64()),
        (Some(1), Some(1))
    );
    assert!(report["copied"].is_string());
    succeeds(&["init", text(&other)]);
    let told = succeeds(&["import", text(&place), text(&other), "--verify"]).out;
    assert!(told.contains("is the store's now"), "{told}");
    assert!(!place.exists());
    fails(&["check", text(&store)], 2, "durum recover");
    let value = |store: &std::path::Path, name: &str| {
        let store = Store::open(store, StoreOptions::new()).unwrap();
        let pool = store.open_pool(name, PoolOptions::new()).unwrap();
        let root = pool.root::<Root>().unwrap();
        // SAFETY: the pool is open.
        let value = unsafe { (*(*(*root).list).next).value };
        drop(pool);
        store.close().unwrap();
        value
    };
    assert_eq!(
        [
            value(&store, "things"),
            value(&store, "copy"),
            value(&other, "things")
        ],
        [22; 3]
    );
    for path in [&store, &other] {
        succeeds(&["check", text(path)]);
    }
}

#[test]
fn a_clone_goes_to_another_base_and_not_over_what_is_there() {
    let dir = scratch();
    let [source, copy] = ["source", "copy"].map(|name| dir.path().join(name));
    make_store(&source);
    assert!(
        succeeds(&[
            "clone",
            text(&source),
            text(&copy),
            "--base",
            "0x300000000000"
        ])
        .out
        .contains("translated")
    );
    assert_eq!(
        succeeds(&["stat", text(&copy), "--json"]).json()["base"],
        "0x300000000000"
    );
    fails(&["clone", text(&source), text(&copy)], 2, "already exists");
    let dirty = dir.path().join("dirty");
    make_dirty_store(&dirty, "hybrid");
    fails(
        &["clone", text(&dirty), text(&dir.path().join("other"))],
        2,
        "durum recover",
    );
}
