//! The socket's name in the file system: who may have it, and who removes it.

use std::path::Path;
use std::process::Command;

use crate::support::{BINARY, Served, text};

/// A path that was mistyped costs no file.
#[test]
fn what_is_no_socket_is_not_replaced_by_one() {
    let served = Served::start();
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let (store, precious) = (place.path().join("store"), place.path().join("precious"));
    std::fs::write(&precious, "precious").unwrap();
    for option in ["--socket", "--metrics"] {
        let mut command = Command::new(BINARY);
        command.args(["--store", text(&store), option, text(&precious)]);
        if option == "--metrics" {
            command.args(["--socket", text(&place.path().join("sock"))]);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && said.contains("no socket"),
            "{said}"
        );
        assert_eq!(std::fs::read_to_string(&precious).unwrap(), "precious");
    }
    drop(served);
}

/// Somebody has removed the socket of a service that runs, and another one has made its own there.
#[test]
fn a_service_leaves_a_socket_that_is_not_its_own() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let metrics = place.path().join("metrics");
    let with_metrics = ["--metrics", text(&metrics)];
    let mut one = Served::start_with(&with_metrics);
    let mut other = Served::prepare(Path::new("/dev/shm")).with(&with_metrics);
    std::fs::remove_file(&metrics).unwrap();
    std::fs::remove_file(one.socket()).unwrap();
    other.start_again();
    std::fs::rename(other.socket(), one.socket()).unwrap();
    one.end();
    assert!(one.socket().exists() && metrics.exists());
    assert!(one.log().contains("another socket"), "{}", one.log());
    std::fs::rename(one.socket(), other.socket()).unwrap();
    other.end();
    assert!(!other.socket().exists() && !metrics.exists());
}
