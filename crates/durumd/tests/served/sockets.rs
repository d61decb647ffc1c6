//! The socket's name in the file system: who may have it, and who removes it.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

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

/// What `--check-config` says of a store and a socket, and whether it takes them.
fn checked(user: Option<u32>, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(BINARY);
    if let Some(user) = user {
        command.uid(user).gid(user);
    }
    command.arg("--check-config").args(arguments);
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let said = [stdout, stderr].concat();
    (
        status.success(),
        String::from_utf8_lossy(&said).into_owned(),
    )
}

#[test]
fn a_configuration_is_checked_with_the_place_of_its_socket() {
    let mut served = Served::start();
    let (store, socket) = (served.store(), served.socket());
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let beside = |name: &str| place.path().join(name);
    let (new, file, free) = (beside("new"), beside("file"), beside("sock"));
    std::fs::write(&file, "precious").unwrap();
    let (long, lost) = (beside(&"x".repeat(120)), beside("lost/sock"));
    let says = |store: &Path, socket: &Path, more: &[&str], fine: bool, said: &str| {
        let arguments = ["--store", text(store), "--socket", text(socket)];
        let (is_fine, text) = checked(None, &[&arguments[..], more].concat());
        assert!(
            is_fine == fine && text.contains(said),
            "{arguments:?} {more:?}: {text}"
        );
    };
    let serving = format!("process {}", served.pid());
    says(&store, &socket, &[], true, &format!("{serving} serves it"));
    says(
        &store,
        &free,
        &[],
        false,
        &format!("served by durumd ({serving})"),
    );
    says(
        &new,
        &socket,
        &[],
        false,
        &format!("{serving} listens there"),
    );
    says(&new, &free, &[], true, "a store will be made");
    says(&new, &file, &[], false, "no socket");
    says(&new, &lost, &[], false, "make that directory");
    says(&new, &long, &[], false, "107 bytes");
    says(&new, &free, &["--metrics", text(&file)], false, "no socket");
    says(&new, &free, &["--metrics", "nowhere"], false, "no address");
    says(&beside("lost/new"), &free, &[], false, "no durum store");
    assert!(!new.exists() && !free.exists());
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "precious");
    // One that was killed has left its socket.
    served.kill();
    assert!(socket.exists());
    says(&store, &socket, &[], true, "can be served");
    if rustix::process::geteuid().is_root() {
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(place.path(), open).unwrap();
        let shm = format!("/dev/shm/durum-check-{}", std::process::id());
        let arguments = ["--store", &shm, "--socket", text(&free)];
        let (is_fine, said) = checked(Some(61002), &arguments);
        assert!(!is_fine && said.contains("the right to write it"), "{said}");
    }
    served.start_again();
}
