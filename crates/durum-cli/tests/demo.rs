//! The demo survives its kills, tells the truth about what it finds, and goes on where it stood.

mod support;

use std::path::Path;
use std::process::{Command, Stdio};

use durum::{PoolOptions, Store, StoreOptions};
use support::*;

const WORDS: &str =
    "It was the best of times, it was the worst of times, it was the age of wisdom\n";

fn book(directory: &Path) -> std::path::PathBuf {
    let path = directory.join("book.txt");
    let lines = (0..400).map(|line| format!("{line} {WORDS}"));
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    path
}

#[test]
fn counts_are_right_after_kills() {
    let dir = scratch();
    let book = book(dir.path());
    // The fences of a transaction of eight words; on Hybrid, one for each undo entry more.
    for (engine, fences) in [
        ("shadow", 1.0..1.1),
        ("hybrid", 4.0..14.0),
        ("twin", 2.0..2.2),
    ] {
        let options = ["demo", "--engine", engine, "--kills", "4", "--pace", "150"];
        let rest = ["--seed", "7", "--json", text(&book)];
        let json = succeeds(&[&options[..], &rest].concat()).json();
        assert_eq!(json["kills"], 4);
        assert_eq!(json["seed"], 7);
        assert_eq!(json["equal"], true);
        assert_eq!(json["files"], 1);
        assert_eq!(json["text_words"], 400 * 19);
        assert_eq!(
            json["words_counted"].as_u64().unwrap(),
            json["passes"].as_u64().unwrap() * 400 * 19
        );
        assert!(json["transactions"].as_u64().unwrap() > 0);
        let found = json["fences_per_transaction"].as_f64().unwrap();
        assert!(fences.contains(&found), "{engine}: {found}");
        assert_eq!(json["store"], serde_json::Value::Null, "nothing is kept");
        assert!(json["recovery_open_ms"]["median"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_store_of_ones_own_is_kept_and_gone_on_with() {
    let dir = scratch();
    let book = book(dir.path());
    let store = dir.path().join("store");
    let arguments = [
        "demo",
        "--kills",
        "1",
        "--pace",
        "100",
        "--threads",
        "3",
        "--store",
        text(&store),
        text(&book),
    ];
    let first = succeeds(&arguments).out;
    assert!(
        first.contains("counts equal a count in plain memory") && first.contains(text(&store)),
        "{first}"
    );
    let passes = |store: &Path| {
        let run = succeeds(&["demo", "--verify-only", "--json", "--store", text(store)]);
        run.json()["counted"].as_u64().unwrap() / (400 * 19)
    };
    let before = passes(&store);
    assert!(before > 0);
    succeeds(&arguments);
    assert!(passes(&store) > before);
    succeeds(&["check", text(&store)]);
    // Another text cannot be mixed in.
    let other = dir.path().join("other.txt");
    std::fs::write(&other, "another text").unwrap();
    fails(
        &[
            "demo",
            "--kills",
            "0",
            "--store",
            text(&store),
            text(&other),
        ],
        2,
        "another text",
    );
    fails(
        &[
            "demo",
            "--worker-only",
            "--store",
            text(&store),
            text(&other),
        ],
        2,
        "another text",
    );
}

#[test]
fn a_wrong_count_is_found_and_named() {
    let dir = scratch();
    let path = dir.path().join("store");
    make_dirty_store(&path, "hybrid");
    succeeds(&["demo", "--verify-only", "--store", text(&path)]);
    // What a lost update would leave: one count differs.
    let json = succeeds(&[
        "inspect",
        text(&path),
        "words",
        "--raw",
        "--json",
        "--objects",
        "100000",
        "--elements",
        "100000",
    ])
    .json();
    let three = hex("three");
    let objects = json["objects"].as_array().unwrap();
    let entry = objects.iter().find(|object| {
        object["type"] == "word_count"
            && object["value"]["word"]["hex"]
                .as_str()
                .unwrap()
                .starts_with(&three)
    });
    let entry = entry.unwrap();
    let address = u64::from_str_radix(&entry["address"].as_str().unwrap()[2..], 16).unwrap();
    let store = Store::open(&path, StoreOptions::new()).unwrap();
    let pool = store.open_pool("words", PoolOptions::new()).unwrap();
    pool.transaction(|tx| {
        let count = std::ptr::with_exposed_provenance_mut::<u64>(address as usize + 8);
        // SAFETY: the count of a live entry, behind its first pointer; there is one thread.
        unsafe {
            tx.add(count)?;
            *count -= 1;
        }
        Ok::<_, durum::Error>(())
    })
    .unwrap();
    drop((pool, store));
    let run = fails(
        &["demo", "--verify-only", "--store", text(&path)],
        3,
        "1 words are counted wrongly",
    );
    assert!(run.err.contains("three "), "{}", run.err);
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn what_a_worker_reported_is_durable() {
    let dir = scratch();
    let book = book(dir.path());
    let store = dir.path().join("store");
    succeeds(&["init", text(&store)]);
    let nothing = succeeds(&["demo", "--verify-only", "--store", text(&store)]).out;
    assert!(nothing.starts_with("0 words"), "{nothing}");
    for _ in 0..3 {
        let mut worker = Command::new(env!("CARGO_BIN_EXE_durum"))
            .args([
                "demo",
                "--worker-only",
                "--store",
                text(&store),
                text(&book),
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(std::time::Duration::from_millis(300));
        worker.kill().unwrap();
        let output = worker.wait_with_output().unwrap();
        let lines = String::from_utf8(output.stdout).unwrap();
        // The last line may be cut.
        let last = lines.lines().rev().nth(1);
        let durable = last.map_or("0", |line| line.split(' ').nth(1).unwrap());
        succeeds(&[
            "demo",
            "--verify-only",
            "--at-least",
            durable,
            "--store",
            text(&store),
        ]);
    }
    fails(
        &[
            "demo",
            "--verify-only",
            "--at-least",
            "99999999999",
            "--store",
            text(&store),
        ],
        3,
        "reported as durable",
    );
}

#[test]
fn ctrl_c_leaves_a_store_that_can_be_gone_on_with() {
    let dir = scratch();
    let book = book(dir.path());
    let store = dir.path().join("store");
    let demo = Command::new(env!("CARGO_BIN_EXE_durum"))
        .args(["demo", "--store", text(&store), text(&book)])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(700));
    // SAFETY: a signal to a child that has not been waited for.
    assert_eq!(unsafe { libc::kill(demo.id() as i32, libc::SIGINT) }, 0);
    let output = demo.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{message}");
    assert!(
        message.contains("the store is consistent") && message.contains("goes on from there"),
        "{message}"
    );
    assert_eq!(
        succeeds(&["stat", text(&store), "--json"]).json()["clean"],
        true
    );
    succeeds(&["demo", "--kills", "0", "--store", text(&store), text(&book)]);
}

#[test]
fn text_that_is_not_there_is_refused_and_no_text_too() {
    let dir = scratch();
    fails(
        &["demo", text(&dir.path().join("absent.txt"))],
        2,
        "cannot be read",
    );
    let empty = dir.path().join("empty.txt");
    std::fs::write(&empty, "...").unwrap();
    fails(&["demo", text(&empty)], 2, "no words to count");
    let picture = dir.path().join("picture.bin");
    std::fs::write(&picture, b"words\0and more").unwrap();
    fails(&["demo", text(&picture)], 2, "picture.bin: is not text");
    let left = std::fs::read_dir("/dev/shm").unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy()
            .starts_with(&format!("durum-demo-{}", std::process::id()))
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn a_store_whose_making_was_interrupted_is_made() {
    let dir = scratch();
    let book = book(dir.path());
    let store = dir.path().join("store");
    std::fs::create_dir(&store).unwrap();
    std::fs::write(store.join("unfinished"), "").unwrap();
    succeeds(&["demo", "--kills", "0", "--store", text(&store), text(&book)]);
    succeeds(&["check", text(&store)]);
}

#[test]
fn a_store_with_another_pool_of_that_name_is_refused() {
    let dir = scratch();
    let book = book(dir.path());
    let path = dir.path().join("store");
    let store = Store::create(&path, StoreOptions::new()).unwrap();
    let pool = store.create_pool("words", PoolOptions::new()).unwrap();
    pool.root::<Node>().unwrap();
    drop((pool, store));
    let run = durum(&["demo", "--kills", "0", "--store", text(&path), text(&book)]);
    assert_eq!(run.code, 2, "{}", run.err);
    assert!(run.err.contains("its root is of type node"), "{}", run.err);
}
