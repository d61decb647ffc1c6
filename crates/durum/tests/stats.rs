//! `DURUM_STATS=1`: the costs of a program, without a change to it.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod support;

use std::process::{Command, Stdio};

use durum::{Error, Store, StoreOptions};
use support::pool_options;

#[test]
#[ignore = "the other process of the test below"]
fn commits_three_times_and_aborts_once() {
    let Some(dir) = std::env::var_os("DURUM_TEST_DIRECTORY") else {
        return;
    };
    let path = std::path::Path::new(&dir).join("store");
    let store = Store::create(path, StoreOptions::new()).unwrap();
    let pool = store.create_pool("pool", pool_options()).unwrap();
    let words: *mut u64 = pool.root_bytes(0, 4096, 8).unwrap().cast();
    for round in 0..4 {
        let _ = pool.transaction(|tx| unsafe {
            tx.add(words.add(round * 8))?;
            *words.add(round * 8) = 1;
            if round == 1 {
                tx.abort()
            } else {
                Ok::<_, Error>(())
            }
        });
    }
    drop(pool);
    store.close().unwrap();
}

fn told(stats: &str) -> String {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let program = Command::new(std::env::current_exe().unwrap())
        .args([
            "commits_three_times_and_aborts_once",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("DURUM_TEST_DIRECTORY", dir.path())
        .env("DURUM_STATS", stats)
        .stdout(Stdio::null())
        .output()
        .unwrap();
    assert!(program.status.success());
    String::from_utf8(program.stderr).unwrap()
}

#[test]
fn what_transactions_cost_is_told_on_request() {
    // The transaction that makes the root is the fourth that commits.
    let told_on_request = told("1");
    assert!(
        told_on_request.contains("4 transactions committed, 1 rolled back; each "),
        "{told_on_request}"
    );
    assert!(told_on_request.contains(" fences, "), "{told_on_request}");
    assert!(!told_on_request.contains(" 1 fences"), "{told_on_request}");
    assert!(!told("0").contains("transactions committed"));
}
