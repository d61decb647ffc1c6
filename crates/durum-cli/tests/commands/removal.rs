//! `rm` of a store: what goes, and what stays.

use crate::support::*;

/// A directory may have a file of that name, and be no store.
#[test]
fn rm_leaves_a_directory_without_an_identity() {
    let directory = scratch();
    let store = directory.path().join("store");
    std::fs::create_dir(&store).unwrap();
    std::fs::write(store.join("registry"), "of somebody else").unwrap();
    fails(&["rm", text(&store), "--yes"], 3, "durum.store");
    assert!(store.join("registry").exists());
}

#[test]
fn rm_asks_and_without_an_answer_removes_nothing() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    fails(&["rm", text(&store), "things"], 2, "--yes");
    fails(&["rm", text(&store)], 2, "--yes");
    fails(
        &["rm", text(&store), "nobody", "--yes"],
        2,
        "no pool \"nobody\"",
    );
    assert!(succeeds(&["ls", text(&store)]).out.contains("things"));
    assert!(
        succeeds(&["rm", text(&store), "things", "--yes"])
            .out
            .contains("removed pool")
    );
    assert_eq!(succeeds(&["ls", text(&store)]).out, "no pools\n");
    succeeds(&["rm", text(&store), "--yes"]);
    assert!(!store.exists());
}

#[test]
fn rm_spares_what_is_not_the_stores() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let mine = store.join("notes.txt");
    std::fs::write(&mine, "mine").unwrap();
    fails(
        &["rm", text(&store), "--yes"],
        2,
        "notes.txt is no part of the store",
    );
    assert!(mine.exists() && store.join("durum.store").exists());
    std::fs::remove_file(mine).unwrap();
    succeeds(&["rm", text(&store), "--yes"]);
}

#[test]
fn a_damaged_store_can_be_removed() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    std::fs::write(store.join("registry.copy"), "rubbish").unwrap();
    std::fs::write(store.join("registry"), "rubbish").unwrap();
    succeeds(&["rm", text(&store), "--yes"]);
    assert!(!store.exists());
}
