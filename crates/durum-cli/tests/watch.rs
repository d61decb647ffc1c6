//! A program that has a store open is watched.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use durum::{PoolOptions, Store, StoreOptions};
use serde_json::Value;
use support::*;

#[test]
fn stat_watches_a_program_that_wants_that_and_says_why_not() {
    let dir = scratch();
    let path = dir.path().join("store");
    let store = Store::create(&path, StoreOptions::new()).unwrap();
    let stat = |how: &[&'static str]| [&["stat", text(&path)], how].concat();
    let pid = format!("process {} has it open", std::process::id());
    fails(&stat(&["--watch"]), 2, &pid);
    fails(&stat(&["--prometheus"]), 2, "StoreOptions::observe");
    drop(store);
    fails(&stat(&["--watch"]), 2, "no program has it open");

    let store = Store::open(&path, StoreOptions::new().observe(true)).unwrap();
    let pool = store.create_pool("a \"pool\"", PoolOptions::new());
    let pool = pool.unwrap();
    let root = pool.root::<u64>().unwrap();
    let commit = || {
        pool.transaction(|tx| {
            // SAFETY: the root lives as long as the pool is open, and only this thread is there.
            unsafe {
                tx.add(root)?;
                *root += 1;
            }
            Ok::<_, durum::Error>(())
        })
        .unwrap();
    };
    commit();
    let shown = succeeds(&stat(&["--watch", "--once"])).out;
    let me = format!("process {}: open for ", std::process::id());
    assert!(shown.starts_with(&me), "{shown}");
    let row = |name: &str| {
        let mut lines = shown.lines();
        let line = lines.find(|line| line.starts_with(name));
        line.unwrap_or_else(|| panic!("no {name} in {shown}"))
            .to_owned()
    };
    assert!(row("a \"pool\"").contains("shadow"), "{shown}");
    assert!(row("fences").ends_with('-'), "{shown}");

    let text = succeeds(&stat(&["--prometheus"])).out;
    let labels = format!(
        "store=\"{}\",process=\"{}\"",
        store.info().uuid,
        std::process::id()
    );
    for line in [
        "# TYPE durum_program_fences counter".to_owned(),
        "# TYPE durum_program_pool_bytes gauge".to_owned(),
        format!("durum_program_pool_bytes{{{labels},pool=\"a \\\"pool\\\"\"}} 2097152"),
        "# EOF".to_owned(),
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let begins = format!("durum_program_transactions_total{{{labels}}} ");
    assert!(text.contains(&begins), "{text}");

    // Lines come as long as the store is open, and the last one says what was done meanwhile.
    let mut watcher = Command::new(env!("CARGO_BIN_EXE_durum"))
        .args(stat(&["--watch", "--json", "--interval", "0.1"]))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watcher.stdout.take().unwrap()).lines();
    let mut transactions = || {
        let line: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        let program = &line["programs"][0];
        assert_eq!(program["pools"][0]["bytes"], 2097152);
        program["numbers"]["transactions"].as_u64().unwrap()
    };
    let before = transactions();
    commit();
    commit();
    while transactions() < before + 2 {}
    drop((pool, store));
    let ended = watcher.wait_with_output().unwrap();
    assert!(ended.status.success());
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains("the store was closed"), "{said}");
}
