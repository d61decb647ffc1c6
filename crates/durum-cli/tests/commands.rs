//! Each small subcommand does what it says, and its exit code tells whose turn it is.

mod support;

use durum::{PoolOptions, Store, StoreOptions};
use support::*;

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
fn shells_complete_what_the_command_takes() {
    for shell in ["bash", "zsh", "fish"] {
        let script = succeeds(&["completions", shell]).out;
        for word in ["inspect", "redact", "dry-run"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
    fails(&["completions", "tcl"], 2, "bash");
    // As bash does when a user has typed the last word and a tab.
    let complete = |words: &str| {
        let script = format!(
            "eval \"$('{}' completions bash)\"; COMP_WORDS=(durum {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _durum durum \"${{COMP_WORDS[COMP_CWORD]}}\" \"\"; echo \"${{COMPREPLY[*]}}\"",
            env!("CARGO_BIN_EXE_durum")
        );
        let run = std::process::Command::new("bash")
            .args(["--norc", "-c", &script])
            .output();
        let run = run.unwrap();
        assert!(run.stderr.is_empty(), "{run:?}");
        String::from_utf8(run.stdout).unwrap()
    };
    assert_eq!(complete("insp"), "inspect\n");
    assert_eq!(complete("gc --dr"), "--dry-run\n");
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
fn unknown_arguments_are_refused_and_help_is_not() {
    assert_eq!(durum(&["frobnicate"]).code, 2);
    assert_eq!(durum(&["ls"]).code, 2);
    assert_eq!(durum::<&str>(&[]).code, 2);
    for command in [
        "init", "ls", "stat", "inspect", "check", "recover", "clone", "export", "import", "rm",
        "demo",
    ] {
        let help = succeeds(&[command, "--help"]);
        assert!(
            help.out.contains("Example"),
            "{command} --help has an example"
        );
    }
    assert!(succeeds(&["--version"]).out.starts_with("durum "));
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

#[test]
fn output_that_nobody_reads_to_the_end_is_no_failure() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_durum"))
        .args(["inspect", text(&store), "things"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
