//! A service that systemd starts: its sockets are there before it is, and stay behind it.

use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use durum_remote::socket::Socket;

use crate::support::{BINARY, Served};

/// A command that begins the service with these descriptors, as systemd does: from 3 on, in that order.
fn with_sockets(clients: i32, metrics: i32) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", "export LISTEN_PID=$$; exec \"$0\" \"$@\"", BINARY])
        .env("LISTEN_FDS", "2")
        .env("LISTEN_FDNAMES", "clients:metrics");
    let give = move || {
        // Away from the places that they are to have.
        // SAFETY: system calls on numbers, as may be made between fork and exec.
        let moved = [clients, metrics].map(|fd| unsafe { libc::fcntl(fd, libc::F_DUPFD, 100) });
        for (place, fd) in (3..).zip(moved) {
            // SAFETY: as above.
            if unsafe { libc::dup2(fd, place) } < 0 {
                return Err(std::io::Error::last_os_error());
            }
        }
        Ok(())
    };
    // SAFETY: nothing but system calls.
    unsafe { command.pre_exec(give) };
    command
}

#[test]
fn a_service_takes_the_sockets_that_it_is_given_and_leaves_them() {
    let mut served = Served::prepare(Path::new("/dev/shm"));
    let clients = Socket::listen(&served.socket()).unwrap();
    let metrics = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = metrics.local_addr().unwrap();
    let number = clients.descriptor().unwrap().as_fd().as_raw_fd();
    // Whoever comes before it is there waits for it.
    let mut early = served.client("early");
    served.start_by(&mut with_sockets(number, metrics.as_raw_fd()));
    early.expect("here");
    assert_eq!(early.ask("open pool"), "0 0");
    let answer = crate::metrics::over_tcp(at);
    assert!(answer.contains("durum_clients 1"), "{answer}");
    early.end();
    served.end();
    // systemd goes on listening.
    assert!(served.socket().exists());
    let mut late = served.client("late");
    served.start_by(&mut with_sockets(number, metrics.as_raw_fd()));
    late.expect("here");
    assert_eq!(late.ask("open pool"), "0 0");
    late.end();
}
