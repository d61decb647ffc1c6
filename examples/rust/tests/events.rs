//! The database and its log of events: a writer is killed again and again, and what is there is both or neither.

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use support::{Random, assert_come_back, assert_nothing_is_lost};

const PROGRAM: &str = env!("CARGO_BIN_EXE_events");

fn ask(store: &Path, what: &str) -> u64 {
    let output = Command::new(PROGRAM).arg(store).arg(what).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {} {told}", output.status);
    String::from_utf8(output.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn both_pools_have_a_transaction_or_neither_has() {
    const ROUNDS: u64 = 25;
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = dir.path().join("store");
    let (mut random, mut told) = (Random(7), 0);
    for _ in 0..ROUNDS {
        let mut writer = Command::new(PROGRAM)
            .arg(&store)
            .args(["write", "1000000"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(writer.stdout.take().unwrap()).lines();
        // It has both pools now.
        let first: u64 = lines.next().unwrap().unwrap().parse().unwrap();
        assert!(first > told);
        std::thread::sleep(Duration::from_micros(random.below(20_000) as u64));
        writer.kill().unwrap();
        writer.wait().unwrap();
        let last = lines
            .map_while(|line| line.ok()?.parse::<u64>().ok())
            .last();
        told = last.unwrap_or(first);
        let events = ask(&store, "read");
        // The last line may be cut off, and the last event not told.
        assert!(events + 1 >= told, "{events} events of {told}");
        assert_eq!(ask(&store, "rows"), events.min(64));
        assert_eq!(ask(&store, "last"), events * events);
        told = events;
    }
    assert!(told > 10 * ROUNDS);
    assert_nothing_is_lost(&store);
    assert_come_back(&store, &["database", "events"]);
}
