//! What is said of pools whose file is gone, or is another one.

use durum::{PoolOptions, Store, StoreOptions};

use crate::support::*;

/// A closed store with the pools `a` and `b`, and the file of `a`.
fn make_two_pools(path: &std::path::Path) -> std::path::PathBuf {
    let store = Store::create(path, StoreOptions::new()).unwrap();
    for name in ["a", "b"] {
        fill(&store.create_pool(name, PoolOptions::new()).unwrap());
    }
    store.close().unwrap();
    file_of(path, "a")
}

fn file_of(store: &std::path::Path, pool: &str) -> std::path::PathBuf {
    let pools = durum_service::ReadOnlyStore::open(store).unwrap().pools();
    let pool = pools.iter().find(|summary| summary.name == pool).unwrap();
    store.join("puddles").join(pool.root_puddle.to_string())
}

/// The line about a pool in what `ls` prints.
fn line_of<'a>(listed: &'a str, pool: &str) -> &'a str {
    let mut lines = listed.lines();
    lines.find(|line| line.starts_with(pool)).unwrap()
}

#[test]
fn ls_and_stat_call_no_pool_ok_whose_file_is_gone() {
    let dir = scratch();
    let store = dir.path().join("store");
    let file = make_two_pools(&store);
    let whole = std::fs::read(&file).unwrap();
    let told = |problem: &str| {
        let before = contents(&store);
        let state = format!("{problem}: {}", file.display());
        let listed = fails(&["ls", text(&store)], 3, &state).out;
        assert!(line_of(&listed, "a").contains(&state), "{listed}");
        assert!(line_of(&listed, "b").ends_with("  ok"), "{listed}");
        let stat = fails(&["stat", text(&store)], 3, &state).out;
        assert!(stat.contains(&format!("damaged   a: {state}")), "{stat}");
        assert!(!stat.contains("state     clean"), "{stat}");
        let listed = fails(&["ls", text(&store), "--json"], 3, "durum rm").json();
        let [a, b] = [0, 1].map(|pool| &listed["pools"][pool]["damaged_files"]);
        assert_eq!(a[0]["problem"], problem);
        assert_eq!(a[0]["file"], text(&file));
        assert_eq!(*b, serde_json::json!([]));
        let stat = fails(&["stat", text(&store), "--json"], 3, "durum rm").json();
        assert_eq!(stat["damaged_files"][0]["pool"], "a");
        assert_eq!(stat["damaged_files"][0]["files"], *a);
        assert_eq!(contents(&store), before, "byte for byte");
    };
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    told("cut");
    std::fs::write(&file, [&whole[..], b"more"].concat()).unwrap();
    told("too long");
    std::fs::remove_file(&file).unwrap();
    told("missing");
    std::fs::create_dir(&file).unwrap();
    told("not a file");
    std::fs::remove_dir(&file).unwrap();
    // Of a store that a program has open its files are the program's affair.
    let opened = Store::open(&store, StoreOptions::new()).unwrap();
    succeeds(&["ls", text(&store)]);
    succeeds(&["stat", text(&store)]);
    drop(opened);
    std::fs::write(&file, &whole).unwrap();
    succeeds(&["ls", text(&store)]);
    assert!(succeeds(&["stat", text(&store)]).out.contains("clean"));
}

/// A file that is gone concerns its pool alone, and no repair makes it anew: each command says so, and what helps.
#[test]
fn the_advice_about_a_missing_file_leads_to_a_store_that_is_sound() {
    let dir = scratch();
    let store = dir.path().join("store");
    let file = make_two_pools(&store);
    std::fs::remove_file(&file).unwrap();
    let cure = format!("`durum rm {} a`", store.display());
    for arguments in [
        &["ls", text(&store)][..],
        &["stat", text(&store)],
        &["check", text(&store)],
        &["check", text(&store), "--repair"],
        &["recover", text(&store)],
        &["inspect", text(&store), "a"],
    ] {
        let told = fails(arguments, 3, &cure).err;
        assert!(told.contains("only pool \"a\" is concerned"), "{told}");
        assert!(!told.contains("--repair"), "{told}");
    }
    let opened = Store::open(&store, StoreOptions::new()).unwrap();
    let refused = opened.open_pool("a", PoolOptions::new()).unwrap_err();
    assert!(refused.to_string().contains(&cure), "{refused}");
    opened.open_pool("b", PoolOptions::new()).unwrap();
    drop(opened);
    let checked = fails(&["check", text(&store)], 3, "1 damage found");
    assert!(
        checked
            .out
            .contains("pool \"a\": not readable, see below\n"),
        "{}",
        checked.out
    );
    assert!(
        checked.out.contains("pool \"b\": 8 objects"),
        "{}",
        checked.out
    );
    let checked = durum(&["check", text(&store), "--json"]).json();
    assert_eq!(checked["pools"][0]["readable"], "no");
    assert_eq!(checked["pools"][1]["readable"], "whole");
    assert_eq!(checked["damaged_pools"], serde_json::json!(["a"]));
    assert_eq!(checked["can_repair"], false);
    succeeds(&["rm", text(&store), "a", "--yes"]);
    succeeds(&["check", text(&store)]);
    assert!(line_of(&succeeds(&["ls", text(&store)]).out, "b").ends_with("  ok"));
}

#[test]
fn another_pools_file_is_told_of_in_words() {
    let dir = scratch();
    let store = dir.path().join("store");
    let file = make_two_pools(&store);
    let other = file_of(&store, "b");
    std::fs::copy(&other, &file).unwrap();
    let name = |file: &std::path::Path| file.file_name().unwrap().to_str().unwrap().to_owned();
    let words = format!("this is the file of puddle {} of pool ", name(&other));
    let told = fails(&["recover", text(&store)], 3, &words).err;
    assert!(
        told.contains(&format!(", not of puddle {} of pool ", name(&file))),
        "{told}"
    );
    assert!(!told.contains("PuddleHeader"), "{told}");
    // The file is named once.
    let told = fails(&["gc", text(&store)], 3, &words).err;
    assert_eq!(told.matches(text(&file)).count(), 1, "{told}");
}

/// What is missing of one pool does not keep others from what was decided about them.
#[test]
fn a_quarantine_is_decided_beside_a_missing_file_of_another_pool() {
    for decision in ["--retry", "--accept-quarantined"] {
        let dir = scratch();
        let store = dir.path().join("store");
        make_dirty_store(&store, "hybrid");
        let is_log = |bytes: &Vec<u8>| bytes.get(4096..4104) == Some(b"DURUMLOG");
        for (file, _) in contents(&store)
            .into_iter()
            .filter(|(_, bytes)| is_log(bytes))
        {
            overwrite(&file, 4096, b"DAMAGED!");
        }
        fails(&["recover", text(&store)], 3, "in quarantine");
        let opened = Store::open(&store, StoreOptions::new()).unwrap();
        opened.create_pool("b", PoolOptions::new()).unwrap();
        drop(opened);
        let pools = durum_service::ReadOnlyStore::open(&store).unwrap().pools();
        let other = pools.iter().find(|pool| pool.name == "b").unwrap();
        let file = store.join("puddles").join(other.root_puddle.to_string());
        std::fs::remove_file(file).unwrap();
        for (file, bytes) in contents(&store.join("quarantine")) {
            if bytes.get(4096..4104) == Some(b"DAMAGED!") {
                overwrite(&file, 4096, b"DURUMLOG");
            }
        }
        fails(
            &["recover", text(&store), decision, "words"],
            3,
            "is missing",
        );
        let listed = fails(&["ls", text(&store)], 3, "durum rm").out;
        assert!(!listed.contains("quarantined"), "{decision}: {listed}");
    }
}
