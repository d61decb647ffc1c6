//! `init`, `ls` and `stat`: stores that are made and looked at.

use durum::{PoolOptions, Store, StoreOptions};

use crate::support::*;

#[test]
fn init_makes_a_store_that_ls_and_stat_know() {
    let dir = scratch();
    let store = dir.path().join("store");
    let made = succeeds(&["init", text(&store)]);
    assert!(made.out.contains("domain dram"), "{}", made.out);
    assert_eq!(succeeds(&["ls", text(&store)]).out, "no pools\n");
    let stat = succeeds(&["stat", text(&store), "--json"]).json();
    assert_eq!(stat["domain"], "dram");
    assert_eq!(stat["clean"], true);
    assert_eq!(stat["base"], "0x200000000000");
    assert_eq!(stat["pools"], 0);
    assert_eq!(stat["format"]["store"], 1);
    assert_eq!(stat["writer"], serde_json::Value::Null);
}

#[test]
fn init_takes_a_base_and_refuses_what_is_no_place_for_a_store() {
    let dir = scratch();
    let store = dir.path().join("store");
    let made = succeeds(&["init", text(&store), "--base", "0x3000_0000_0000", "--json"]).json();
    assert_eq!(made["base"], "0x300000000000");
    fails(&["init", text(&store)], 2, "already exists");
    let other = dir.path().join("other");
    fails(&["init", text(&other), "--base", "0x1001"], 2, "base");
    fails(
        &["init", text(&other), "--base", "twelve"],
        2,
        "0x200000000000",
    );
    fails(
        &["init", text(&other), "--domain", "dax"],
        2,
        "the domain here is dram",
    );
    fails(
        &["init", text(&other), "--domain", "tape"],
        2,
        "no such domain",
    );
    assert!(!other.exists());
    succeeds(&["init", text(&other), "--domain", "dram"]);
}

#[test]
fn what_is_no_store_is_refused() {
    let dir = scratch();
    let nothing = dir.path().join("nothing");
    for command in ["ls", "stat", "check", "recover", "rm"] {
        fails(&[command, text(&nothing)], 2, "no durum store here");
        fails(&[command, text(dir.path())], 2, "no durum store here");
    }
    fails(
        &["inspect", text(&nothing), "pool"],
        2,
        "no durum store here",
    );
    fails(
        &["clone", text(&nothing), text(&dir.path().join("copy"))],
        2,
        "no durum store here",
    );
}

#[test]
fn ls_shows_pools_with_engine_and_size() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let listed = succeeds(&["ls", text(&store)]).out;
    let line = listed.lines().nth(1).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    // Behind the mode, the names of this user and group.
    assert_eq!(
        words[..6],
        ["things", "shadow", "2.0", "MiB", "1", "rw-------"]
    );
    assert_eq!((words.len(), words[8]), (9, "ok"));
    let pools = succeeds(&["ls", text(&store), "--json"]).json();
    assert_eq!(pools["pools"][0]["name"], "things");
    assert_eq!(pools["pools"][0]["bytes"], 2 << 20);
    assert_eq!(pools["pools"][0]["quarantine"], serde_json::Value::Null);
}

#[test]
fn stat_tells_the_domain_of_any_directory() {
    let dir = scratch();
    assert_eq!(
        succeeds(&["stat", "--domain", text(dir.path())]).out,
        "dram\n"
    );
    let json = succeeds(&["stat", "--domain", text(dir.path()), "--json"]).json();
    assert_eq!(json["domain"], "dram");
    fails(
        &["stat", "--domain", text(&dir.path().join("absent"))],
        2,
        "no directory",
    );
}

#[test]
fn stat_tells_who_has_a_store_open_and_others_keep_off() {
    let dir = scratch();
    let path = dir.path().join("store");
    make_store(&path);
    let store = Store::open(&path, StoreOptions::new()).unwrap();
    let _pool = store.open_pool("things", PoolOptions::new()).unwrap();
    let stat = succeeds(&["stat", text(&path), "--json"]).json();
    assert_eq!(stat["writer"], std::process::id());
    assert!(
        succeeds(&["stat", text(&path)])
            .out
            .contains(&format!("process {}", std::process::id()))
    );
    succeeds(&["ls", text(&path)]);
    let copy = dir.path().join("copy");
    for arguments in [
        &["check", text(&path)][..],
        &["check", text(&path), "--repair"],
        &["recover", text(&path)],
        &["inspect", text(&path), "things"],
        &["clone", text(&path), text(&copy)],
        &["rm", text(&path), "things", "--yes"],
        &["rm", text(&path), "--yes"],
    ] {
        fails(arguments, 2, "in use by process");
    }
    assert!(!copy.exists() && path.exists());
}

#[test]
fn a_path_where_no_store_can_be_is_refused_with_what_to_do() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let parent = dir.path().join("a/b");
    let below = parent.join("c");
    let make = format!("`mkdir -p {}`", parent.display());
    fails(&["init", text(&below)], 2, &make);
    fails(&["init", text(&below), "--domain", "dram"], 2, &make);
    fails(&["clone", text(&store), text(&below)], 2, &make);
    fails(&["kv", "put", text(&below), "a", "b", "--create"], 2, &make);
    assert!(!dir.path().join("a").exists());
    let file = dir.path().join("file");
    std::fs::write(&file, "mine").unwrap();
    for command in ["ls", "stat", "check", "recover", "rm"] {
        fails(
            &[command, text(&file)],
            2,
            "this is not a directory, so no store is here",
        );
        // Only who makes a store wants a path where nothing is.
        let told = fails(&[command, "/etc"], 2, "name the directory of a store").err;
        assert!(!told.contains("or a path where nothing is yet"), "{told}");
    }
    let through = file.join("store");
    let told = format!(
        "{}, which is on the way to it, is not a directory",
        file.display()
    );
    fails(&["ls", text(&through)], 2, &told);
    fails(&["init", text(&through)], 2, &told);
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}
