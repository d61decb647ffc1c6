//! What the log tells of who did what.

use std::path::Path;

use serde_json::Value;

use crate::support::{Served, until};

/// The events of the audit target, oldest first.
fn events(served: &Served) -> Vec<Value> {
    let log = served.log();
    let lines = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect(line));
    lines
        .filter(|event| event["target"] == "audit")
        .map(|event| event["fields"].clone())
        .collect()
}

fn names(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| event["event"].as_str())
        .collect()
}

#[test]
fn the_audit_tells_who_was_let_in_and_what_was_done_for_whom() {
    let mut served = Served::prepare(Path::new("/dev/shm")).with(&["--log", "json"]);
    served.start_again();
    let mut client = served.client("client");
    client.expect("here");
    assert_eq!(client.ask("open pool"), "0 0");
    let mut other = served.client("other");
    other.expect("here");
    assert!(other.ask("open pool").contains("used by another program"));
    let (pid, of_other) = (client.process.id(), other.process.id());
    client.kill();
    other.end();
    until("both ends are told", || {
        let told = events(&served);
        let told = names(&told);
        told.contains(&"recovered") && told.contains(&"ended")
    });
    let events = events(&served);
    let of = |wanted: u32| {
        let mine = events.iter().filter(|event| event["pid"] == wanted);
        mine.cloned().collect::<Vec<_>>()
    };
    let (mine, others) = (of(pid), of(of_other));
    // A pool that is not there is looked for, and then made.
    assert_eq!(
        names(&mine),
        ["admitted", "refused", "created", "recovered"]
    );
    assert_eq!(names(&others), ["admitted", "refused", "ended"]);
    let created = &mine[2];
    // SAFETY: it only tells.
    assert_eq!(created["uid"], unsafe { libc::getuid() });
    assert_eq!(created["pool"], "\"pool\"");
    assert_eq!(created["client"], mine[0]["client"]);
    assert_eq!(others[1]["wanted"], "opened");
    assert!(
        others[1]["why"]
            .as_str()
            .unwrap()
            .contains("used by another program")
    );
    // A program of the service's own user came: that is told, once.
    let told = served.log();
    assert_eq!(
        told.matches("of the service's own user is let in").count(),
        1
    );
}

#[test]
fn a_name_with_a_line_in_it_does_not_forge_one() {
    let served = Served::start();
    let remote =
        durum_remote::Remote::open(&served.socket(), durum_remote::Waiting::default()).unwrap();
    let forged = "x\n2026 INFO audit: event=\"admitted\" uid=0";
    assert!(durum_service::Service::open_pool(&remote, forged).is_err());
    let log = served.log();
    assert!(log.contains("refused"), "{log}");
    assert!(
        log.lines().all(|line| !line.starts_with("2026 INFO audit")),
        "{log}"
    );
}
