//! A program that runs code notices no child. Alone in its process: it waits for any child, and counts signals.

mod support;

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

use durum_runner::{Bounds, Ended, Limits, Running};

static SIGNALS: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: libc::c_int) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

/// The result of a wait for any child, with the error.
fn any_child(flags: libc::c_int) -> (libc::pid_t, Option<i32>) {
    // SAFETY: asks only.
    let found = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG | flags) };
    (found, std::io::Error::last_os_error().raw_os_error())
}

#[test]
fn the_program_that_runs_it_notices_no_child() {
    // It is compiled: that makes children, too.
    drop(support::code());
    let handler = count as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler only counts.
    unsafe { libc::signal(libc::SIGCHLD, handler) };
    let bounds = Bounds::of_this_kernel().unwrap();
    let start = || {
        let code = support::code();
        let (ours, its) = UnixStream::pair().unwrap();
        let running = Running::start(&code, OwnedFd::from(its), &bounds, &Limits::default());
        (running.unwrap(), ours)
    };
    let none = (-1, Some(libc::ECHILD));
    let (running, mut socket) = start();
    assert_eq!(any_child(0), none);
    // It is there, for whoever knows how to ask.
    assert_eq!(any_child(libc::__WALL).0, 0);
    socket.write_all(b"e5").unwrap();
    // It has ended, and nobody has waited for it.
    assert_eq!(socket.read(&mut [0]).unwrap(), 0);
    assert_eq!(any_child(0), none);
    let told = String::new();
    assert_eq!(running.wait().unwrap(), Ended::Failed { code: 5, told });
    let (running, _socket) = start();
    drop(running);
    assert_eq!(any_child(libc::__WALL), none);
    assert_eq!(SIGNALS.load(Ordering::Relaxed), 0);
}
