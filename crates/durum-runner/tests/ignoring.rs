//! A program may ignore the end of its children: who runs code for it hears of that end all the same. Alone in its
//! process, whose signals it sets.

mod support;

use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use durum_runner::{Bounds, Ended, Limits, Running};

#[test]
fn a_program_that_ignores_its_children_hears_how_code_has_ended() {
    let code = support::code();
    // SAFETY: nothing of this process waits for children any more.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    let bounds = Bounds::of_this_kernel().unwrap();
    let (tells, ended) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let (mut ours, its) = UnixStream::pair().unwrap();
        ours.write_all(b"e5").unwrap();
        let running = Running::start(&code, OwnedFd::from(its), &bounds, &Limits::default());
        tells.send(running.unwrap().wait().unwrap()).unwrap();
    });
    let ended = ended.recv_timeout(Duration::from_secs(20));
    let told = String::new();
    assert_eq!(ended, Ok(Ended::Failed { code: 5, told }));
}
