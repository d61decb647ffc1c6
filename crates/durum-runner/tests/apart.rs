//! Code that another process runs: this executable, with a socket as its standard input.

mod support;

use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use durum_runner::{Apart, Ended, Limits, Runner, apart};
use rustix::net::{AddressFamily, Shutdown, SocketFlags, SocketType, shutdown, socketpair};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

const IS_RUNNER: &str = "DURUM_TEST_IS_RUNNER";
const NO_THREADS: &str = "no threads";

/// What the others start. Nothing of it is tried where nobody does.
#[test]
fn be_the_runner() {
    if let Some(how) = std::env::var_os(IS_RUNNER) {
        if how == NO_THREADS {
            refuse_threads();
        }
        let connection = std::io::stdin().as_fd().try_clone_to_owned();
        apart::serve(connection.unwrap()).unwrap();
        std::process::exit(0);
    }
}

/// As where the system has no more of them.
fn refuse_threads() {
    let calls = [libc::SYS_clone, libc::SYS_clone3].map(|call| (call, Vec::new()));
    let refused = SeccompAction::Errno(libc::EAGAIN as u32);
    let here = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let filter = SeccompFilter::new(calls.into(), SeccompAction::Allow, refused, here).unwrap();
    seccompiler::apply_filter(&BpfProgram::try_from(filter).unwrap()).unwrap();
}

/// A runner, and the connection to it once more.
fn runner() -> (Apart, OwnedFd, Child) {
    runner_that("")
}

fn runner_that(how: &str) -> (Apart, OwnedFd, Child) {
    let flags = SocketFlags::CLOEXEC;
    let (ours, its) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    let runner = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "be_the_runner"])
        .env(IS_RUNNER, how)
        .stdin(its)
        .stdout(Stdio::null())
        .spawn();
    let again = ours.try_clone().unwrap();
    (Apart::over(ours).unwrap(), again, runner.unwrap())
}

/// Runs the code, which tries this.
fn tries(runner: &Apart, what: &str, limits: &Limits) -> std::io::Result<Ended> {
    let (mut ours, its) = UnixStream::pair().unwrap();
    ours.write_all(what.as_bytes()).unwrap();
    runner.run(&support::code(), its.into(), limits)
}

#[test]
fn how_it_ends_is_told() {
    let (runner, _, mut process) = runner();
    let limits = Limits::default();
    assert_eq!(tries(&runner, "e0", &limits).unwrap(), Ended::Done);
    let told = "something is wrong".to_owned();
    assert_eq!(
        tries(&runner, "w", &limits).unwrap(),
        Ended::Failed { code: 3, told }
    );
    let little = Limits {
        processor: Duration::from_secs(1),
        ..limits
    };
    assert_eq!(
        tries(&runner, "l", &little).unwrap(),
        Ended::OverProcessor(Duration::from_secs(1))
    );
    // What runs long holds nobody up.
    let long = Limits {
        time: Duration::from_secs(2),
        ..Limits::default()
    };
    std::thread::scope(|scope| {
        let sleeps = scope.spawn(|| tries(&runner, "s", &long));
        let began = Instant::now();
        assert_eq!(tries(&runner, "e0", &little).unwrap(), Ended::Done);
        assert!(began.elapsed() < Duration::from_secs(1));
        let ended = sleeps.join().unwrap().unwrap();
        assert_eq!(ended, Ended::OverTime(Duration::from_secs(2)));
    });
    drop(runner);
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn it_ends_with_the_connection_and_with_its_runner() {
    for is_killed in [false, true] {
        let (runner, connection, mut process) = runner();
        let (mut ours, its) = UnixStream::pair().unwrap();
        std::thread::scope(|scope| {
            let runs = scope.spawn(|| {
                let limits = Limits::default();
                runner.run(&support::code(), its.into(), &limits)
            });
            // It is there: it has heard this.
            ours.write_all(b"s").unwrap();
            std::thread::sleep(Duration::from_millis(100));
            let began = Instant::now();
            match is_killed {
                true => process.kill().unwrap(),
                false => shutdown(&connection, Shutdown::Both).unwrap(),
            }
            process.wait().unwrap();
            let error = runs.join().unwrap().unwrap_err();
            assert_eq!(error.kind(), std::io::ErrorKind::ConnectionAborted);
            // Nobody has the code's end of its socket any more.
            let mut end = [0];
            assert_eq!(std::io::Read::read(&mut ours, &mut end).unwrap_or(0), 0);
            assert!(began.elapsed() < Duration::from_secs(5));
        });
        let error = tries(&runner, "e0", &Limits::default()).unwrap_err();
        assert!(
            error.to_string().contains("start the service again"),
            "{error}"
        );
    }
}

/// It is not gone: the next one may be run.
#[test]
fn a_runner_without_threads_says_so() {
    let (runner, _, mut process) = runner_that(NO_THREADS);
    for _ in 0..2 {
        let error = tries(&runner, "e0", &Limits::default()).unwrap_err();
        let no_more = std::io::Error::from_raw_os_error(libc::EAGAIN);
        assert_eq!(error.to_string(), no_more.to_string());
    }
    drop(runner);
    process.kill().unwrap();
    process.wait().unwrap();
}
