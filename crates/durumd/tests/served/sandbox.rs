//! The service gives up what it does not need. All other tests here run with that, too.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::Served;

fn check(served: &Served, more: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_durumd"))
        .arg("--store")
        .arg(served.store())
        .arg("--socket")
        .arg(served.socket())
        .arg("--check-sandbox")
        .args(more)
        .output()
        .unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, log)
}

#[test]
fn what_the_service_gives_up_is_refused_and_was_possible_before() {
    let served = Served::prepare(Path::new("/dev/shm"));
    let (output, log) = check(&served, &[]);
    if log.contains("no landlock") || log.contains("no seccomp") {
        return eprintln!("skipped, as this kernel cannot: {log}");
    }
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}{log}");
    let tried = said.lines().count();
    assert!(
        tried >= 6 && said.lines().all(|line| line.starts_with("refused: ")),
        "{said}"
    );
    // The same without the sandbox: each would have been possible.
    let (output, _) = check(&served, &["--no-sandbox"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!output.status.success(), "{said}");
    assert_eq!(
        said.lines()
            .filter(|line| line.starts_with("POSSIBLE: "))
            .count(),
        tried,
        "{said}"
    );
}

#[test]
fn the_log_tells_what_is_given_up() {
    let mut served = Served::start();
    served.end();
    let log = served.log();
    assert!(log.contains("landlock") && log.contains("seccomp"), "{log}");
    let mut served = Served::prepare(Path::new("/dev/shm")).with(&["--no-sandbox"]);
    served.start_again();
    served.end();
    let log = served.log();
    assert!(
        log.contains("no sandbox") && !log.contains("landlock"),
        "{log}"
    );
}
