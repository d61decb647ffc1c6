//! `recover`: what it reports, and what is kept until somebody decides.

use durum::{PoolOptions, Store, StoreOptions};

use crate::support::*;

#[test]
fn recover_names_a_puddle_that_cannot_be_used_and_writes_nothing() {
    let dir = scratch();
    let path = dir.path().join("store");
    make_store(&path);
    let puddle = puddle_file(&path);
    let whole = std::fs::read(&puddle).unwrap();
    let name = puddle.file_name().unwrap().to_str().unwrap().to_owned();
    let refused = || {
        let before = contents(&path);
        fails(&["recover", text(&path)], 3, &name);
        assert_eq!(contents(&path), before, "byte for byte");
    };
    std::fs::write(&puddle, &whole[..whole.len() / 2]).unwrap();
    refused();
    overwrite(&puddle, 0, b"something else");
    refused();
    std::fs::remove_file(&puddle).unwrap();
    refused();
    std::fs::write(&puddle, &whole).unwrap();
    succeeds(&["recover", text(&path)]);
}

#[test]
fn recover_reports_what_a_killed_program_left() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_dirty_store(&store, "hybrid");
    let stat = succeeds(&["stat", text(&store), "--json"]).json();
    assert_eq!(stat["clean"], false);
    let pending = &stat["pending"];
    let recovered = succeeds(&["recover", text(&store), "--json"]).json();
    assert_eq!(recovered["was_clean"], false);
    assert!(recovered["logs"].as_u64().unwrap() > 0);
    for key in ["rolled_back", "rolled_forward", "entries", "bytes"] {
        assert_eq!(
            recovered[key], pending[key],
            "{key}: what was announced is what was done"
        );
    }
    assert!(
        succeeds(&["recover", text(&store)])
            .out
            .contains("nothing to do")
    );
    succeeds(&["check", text(&store)]);
    fails(
        &["recover", text(&store), "--accept-quarantined", "nobody"],
        2,
        "no pool \"nobody\"",
    );
    fails(
        &["recover", text(&store), "--accept-quarantined", "words"],
        2,
        "it is not quarantined",
    );
}

#[test]
fn a_damaged_log_is_quarantined_until_it_is_accepted() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_dirty_store(&store, "hybrid");
    // The magic of each log's header; the word of a log at rest alone would not be missed.
    for file in contents(&store)
        .into_iter()
        .filter(|(_, bytes)| bytes.get(4096..4104) == Some(b"DURUMLOG"))
    {
        overwrite(&file.0, 4096, b"DAMAGED!");
    }
    let before = contents(&store);
    let check = fails(&["check", text(&store)], 3, "damage");
    assert!(
        check.out.contains("recovery will quarantine it"),
        "{}",
        check.out
    );
    assert_eq!(contents(&store), before, "check changes nothing");
    fails(&["recover", text(&store)], 3, "--accept-quarantined words");
    let listed = fails(&["ls", text(&store)], 3, "--accept-quarantined words").out;
    assert!(listed.contains("quarantined"), "{listed}");
    let stat = fails(&["stat", text(&store)], 3, "in quarantine").out;
    assert!(stat.contains("quarantined  words\n"), "{stat}");
    let listed = fails(&["ls", text(&store), "--json"], 3, "in quarantine").json();
    assert!(listed["pools"][0]["quarantine"]["reason"].is_string());
    let shown = succeeds(&["inspect", text(&store), "words", "--depth", "0"]).out;
    assert!(shown.contains("in quarantine"), "{shown}");
    let demo = durum(&["demo", "--verify-only", "--store", text(&store)]);
    assert_eq!(demo.code, 3, "{}", demo.err);
    let accepted = succeeds(&[
        "recover",
        text(&store),
        "--accept-quarantined",
        "words",
        "--json",
    ])
    .json();
    assert_eq!(accepted["accepted"], "words");
    assert_eq!(accepted["pools_in_quarantine"], serde_json::json!([]));
    assert!(succeeds(&["ls", text(&store)]).out.contains("ok"));
}

#[test]
fn what_is_kept_for_a_pool_is_given_up_after_a_yes_only() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_dirty_store(&store, "shadow");
    let root = durum_service::ReadOnlyStore::open(&store).unwrap().pools()[0].root_puddle;
    let file = store.join("puddles").join(root.to_string());
    let whole = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let told = fails(&["recover", text(&store), "--json"], 3, "--give-up words").json();
    assert_eq!(told["refused"][0]["pool"], "words");
    assert!(
        told["refused"][0]["transactions"].as_u64().unwrap() > 0,
        "{told}"
    );
    fails(&["gc", text(&store)], 3, "--give-up POOL");
    let checked = fails(
        &["check", text(&store)],
        3,
        "pools that are not recovered: words: run `durum recover",
    );
    assert!(!checked.err.contains("--repair"), "{}", checked.err);
    let listed = fails(&["ls", text(&store)], 3, "--give-up words").out;
    assert!(
        listed.contains("refused: ") && listed.contains("is missing"),
        "{listed}"
    );
    let listed = fails(&["ls", text(&store), "--json"], 3, "--give-up words").json();
    assert_eq!(listed["pools"][0]["refused"], told["refused"][0]);
    for decision in ["--accept-quarantined", "--retry"] {
        let told = fails(
            &["recover", text(&store), decision, "words"],
            2,
            "pool \"words\" is refused, not quarantined: ",
        );
        assert!(told.err.contains(text(&file)), "{}", told.err);
        assert!(told.err.contains("--give-up words`"), "{}", told.err);
        assert!(!told.err.contains("nothing is kept"), "{}", told.err);
    }
    let stat = fails(&["stat", text(&store)], 3, "--give-up words").out;
    let line = stat
        .lines()
        .find(|line| line.starts_with("refused"))
        .unwrap();
    assert!(line.contains("words; `durum recover"), "{stat}");
    let before = contents(&store);
    fails(
        &["recover", text(&store), "--give-up", "words"],
        2,
        "lost in it for ever",
    );
    assert_eq!(contents(&store), before);
    let given_up = [
        "recover",
        text(&store),
        "--give-up",
        "words",
        "--yes",
        "--json",
    ];
    let lost = succeeds(&given_up).json();
    assert_eq!(lost["given_up"], "words");
    for what in ["transactions", "undecided", "bytes"] {
        assert_eq!(lost["lost"][what], told["refused"][0][what], "{what}");
    }
    fails(&given_up, 2, "nothing is kept");
    fails(&["recover", text(&store)], 3, "is missing");
    std::fs::write(&file, whole).unwrap();
    fails(&given_up, 2, "nothing is kept");
    assert_eq!(
        succeeds(&["recover", text(&store), "--json"]).json()["was_clean"],
        true
    );
    fails(
        &["recover", text(&store), "--retry", "words"],
        2,
        "it is not quarantined",
    );
}

#[test]
fn nobody_is_told_to_give_up_a_twin_pool() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_dirty_store(&store, "twin");
    let root = durum_service::ReadOnlyStore::open(&store).unwrap().pools()[0].root_puddle;
    let file = store.join("puddles").join(root.to_string());
    let whole = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    let cure = format!("durum rm {} words`", text(&store));
    let told = fails(&["recover", text(&store)], 3, &cure);
    assert!(!told.err.contains("--give-up"), "{}", told.err);
    let told = fails(&["gc", text(&store)], 3, &cure);
    assert!(!told.err.contains("--give-up"), "{}", told.err);
    // Back, and nobody has opened the store since.
    std::fs::write(&file, whole).unwrap();
    let told = fails(&["check", text(&store)], 3, "not recovered: words").out;
    assert!(told.contains("lies in its own files; open"), "{told}");
    std::fs::remove_file(&file).unwrap();
    succeeds(&["rm", text(&store), "words", "--yes"]);
    succeeds(&["check", text(&store)]);
}

/// What is printed of recovery speaks of no structure that a reader cannot know, and writes numbers as everywhere.
#[test]
fn numbers_of_recovery_are_written_alike() {
    let dir = scratch();
    let store = dir.path().join("store");
    let opened = Store::create(&store, StoreOptions::new()).unwrap();
    let pool = opened.create_pool("words", PoolOptions::new()).unwrap();
    let root = pool.root::<Leaf>().unwrap();
    for number in 0..1500 {
        // SAFETY: the root is live, and there is one thread.
        let changed = pool.transaction(|tx| unsafe { tx.set(&raw mut (*root).numbers[0], number) });
        changed.unwrap();
    }
    // As a kill leaves it.
    let copy = dir.path().join("copy");
    let copied = std::process::Command::new("cp")
        .args(["-r", text(&store), text(&copy)])
        .status();
    assert!(copied.unwrap().success());
    let grouped = |text: &str| {
        let forward = text.find(" forward").unwrap();
        let number = text[..forward].rsplit(' ').next().unwrap().to_owned();
        assert!(number.contains(','), "{text}");
        number
    };
    let number = grouped(&succeeds(&["stat", text(&copy)]).out);
    assert_eq!(grouped(&succeeds(&["check", text(&copy)]).out), number);
    assert_eq!(
        grouped(&succeeds(&["inspect", text(&copy), "words"]).out),
        number
    );
    let report = succeeds(&["recover", text(&copy)]).out;
    assert!(
        report.contains(&format!("rolled forward  {number} transactions\n")),
        "{report}"
    );
    assert!(report.starts_with("logs            "), "{report}");
    assert!(!report.contains("log space"), "{report}");
}

/// A store of two pools: the file of `b`, which is returned, is gone, and whether their last transaction committed only
/// this file can tell.
fn make_waiting_store(store: &std::path::Path) -> (std::path::PathBuf, Vec<u8>) {
    let open = store.with_extension("open");
    let running = Store::create(&open, StoreOptions::new()).unwrap();
    for name in ["a", "b"] {
        running.create_pool(name, PoolOptions::new()).unwrap();
    }
    running.close().unwrap();
    let running = Store::open(&open, StoreOptions::new()).unwrap();
    let pools = ["a", "b"].map(|name| running.open_pool(name, PoolOptions::new()).unwrap());
    // Large objects lie in their places only: whether it committed, these tell.
    pools[0]
        .transaction(|tx| {
            for pool in &pools {
                let object = tx.alloc_bytes(pool, 0, 3 << 20, 8)?;
                // SAFETY: fresh.
                unsafe { object.write_bytes(7, 3 << 20) };
            }
            Ok::<_, durum::Error>(())
        })
        .unwrap();
    // As a kill leaves it.
    let copied = std::process::Command::new("cp")
        .args(["-r", text(&open), text(store)])
        .status();
    assert!(copied.unwrap().success());
    let reader = durum_service::ReadOnlyStore::open(store).unwrap();
    let b = &reader.pools()[1];
    let puddles = reader.puddles();
    let mut puddles = puddles.iter().filter(|puddle| puddle.owner == b.uuid);
    let grown = puddles.find(|puddle| !puddle.is_root).unwrap();
    let file = store.join("puddles").join(grown.uuid.to_string());
    let bytes = std::fs::read(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    (file, bytes)
}

#[test]
fn a_pool_that_only_waits_is_neither_blamed_nor_given_up() {
    let dir = scratch();
    let store = dir.path().join("store");
    let (file, bytes) = make_waiting_store(&store);
    let recover = ["recover", text(&store)];
    let told = fails(&recover, 3, "1 pool could not be recovered: b;");
    assert!(told.err.contains("--give-up b`"), "{}", told.err);
    assert!(
        told.err.contains("1 pool wait, which loses nothing: a"),
        "{}",
        told.err
    );
    assert!(told.out.contains("waits for b"), "{}", told.out);
    let told = durum(&["recover", text(&store), "--json"]).json();
    assert_eq!(told["refused"][0]["waits_for"], serde_json::json!(["b"]));
    assert_eq!(told["refused"][1]["waits_for"], serde_json::json!([]));
    let told = fails(&["check", text(&store)], 3, "damage").out;
    assert!(
        told.contains("it loses nothing while it waits for \"b\""),
        "{told}"
    );
    let before = contents(&store);
    fails(
        &["recover", text(&store), "--give-up", "a", "--yes"],
        2,
        "--give-up b`",
    );
    assert_eq!(contents(&store), before);
    let copy = dir.path().join("copy");
    let copied = std::process::Command::new("cp")
        .args(["-r", text(&store), text(&copy)])
        .status();
    assert!(copied.unwrap().success());
    let lost = succeeds(&["recover", text(&copy), "--give-up", "b", "--yes"]).out;
    assert!(
        lost.contains("lost in it for ever: ") && lost.contains("1 of which nobody can say"),
        "{lost}"
    );
    std::fs::write(file, bytes).unwrap();
    succeeds(&recover);
    succeeds(&["check", text(&store)]);
}
