//! What code can do that is run, and what it cannot: each is tried by a program that is compiled for this, in C.

mod support;

use std::fs::File;
use std::io::{IoSlice, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use durum_runner::{Bounds, Code, CodeError, Ended, Hash, Limits, Running};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

fn limits() -> Limits {
    Limits {
        time: Duration::from_secs(20),
        memory: 64 << 20,
        ..Limits::default()
    }
}

fn start(limits: &Limits) -> (Running, UnixStream) {
    let code = support::code();
    let (ours, its) = UnixStream::pair().unwrap();
    let bounds = Bounds::of_this_kernel().unwrap();
    let running = Running::start(&code, OwnedFd::from(its), &bounds, limits).unwrap();
    (running, ours)
}

/// Runs the code, which tries this.
fn tries_with(what: &str, file: Option<&File>, limits: &Limits) -> (Ended, UnixStream) {
    let (running, socket) = start(limits);
    let files: Vec<_> = file.into_iter().map(File::as_fd).collect();
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() {
        assert!(beside.push(SendAncillaryMessage::ScmRights(&files)));
    }
    let text = [IoSlice::new(what.as_bytes())];
    sendmsg(&socket, &text, &mut beside, SendFlags::empty()).unwrap();
    (running.wait().unwrap(), socket)
}

fn is_root() -> bool {
    // SAFETY: asks only.
    unsafe { libc::geteuid() == 0 }
}

fn tries(what: &str) -> Ended {
    tries_with(what, None, &limits()).0
}

#[test]
fn its_end_is_told() {
    assert_eq!(tries("e0"), Ended::Done);
    let told = String::new();
    assert_eq!(tries("e5"), Ended::Failed { code: 5, told });
    let told = "something is wrong".to_owned();
    let failed = tries("w");
    assert_eq!(
        failed.to_string(),
        "it ended with code 3: \"something is wrong\""
    );
    assert_eq!(failed, Ended::Failed { code: 3, told });
    // It can send no signal, not even to itself: what aborts runs into an instruction that ends it.
    for what in ["f", "a"] {
        let ended = tries(what);
        assert!(
            matches!(
                ended,
                Ended::Signalled {
                    signal: libc::SIGSEGV,
                    ..
                }
            ),
            "{ended:?}"
        );
    }
}

#[test]
fn it_takes_no_more_time_than_it_may() {
    let soon = Limits {
        time: Duration::from_millis(200),
        ..limits()
    };
    for what in ["s", "l"] {
        let began = Instant::now();
        assert!(matches!(
            tries_with(what, None, &soon).0,
            Ended::OverTime(_)
        ));
        assert!(began.elapsed() < Duration::from_secs(5));
    }
    let little = Limits {
        processor: Duration::from_secs(1),
        ..limits()
    };
    let ended = tries_with("l", None, &little).0;
    assert_eq!(ended, Ended::OverProcessor(Duration::from_secs(1)));
}

#[test]
fn it_reaches_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    let (ended, _) = tries_with(&format!("o{}", file.display()), None, &limits());
    assert_eq!(ended, Ended::Done);
    assert_eq!(std::fs::read(&file).unwrap(), b"kept");
    // One that it was given becomes no longer.
    let given = File::options().append(true).open(&file).unwrap();
    assert_eq!(tries_with("g", Some(&given), &limits()).0, Ended::Done);
    assert_eq!(std::fs::read(&file).unwrap(), b"kept");
}

#[test]
fn it_reaches_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("socket");
    let listens = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    assert_eq!(tries(&format!("n{}", socket.display())), Ended::Done);
    let pid = std::process::id();
    assert_eq!(tries(&format!("k{pid}")), Ended::Done);
    assert_eq!(tries(&format!("t{pid}")), Ended::Done);
    assert_eq!(tries("p"), Ended::Done);
    drop(listens);
}

/// Root has all capabilities, also where nobody needs them: a service that root has started, `durum recover`.
#[test]
fn it_has_no_capability() {
    if !is_root() {
        return eprintln!("skipped: only root has any");
    }
    assert_eq!(tries("c"), Ended::Done);
    let (running, socket) = start(&limits());
    let own = running.id().unwrap();
    let status = std::fs::read_to_string(format!("/proc/{own}/status")).unwrap();
    let value = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.strip_prefix(':')).unwrap().trim()
    };
    for set in ["CapInh", "CapPrm", "CapEff", "CapAmb"] {
        assert_eq!(value(set), "0000000000000000", "{set}");
    }
    assert_eq!((value("NoNewPrivs"), value("Seccomp")), ("1", "2"));
    // Where the system has no memory left, it ends this before anything else.
    let first = std::fs::read_to_string(format!("/proc/{own}/oom_score_adj")).unwrap();
    assert_eq!(first.trim(), "1000");
    drop((running, socket));
}

/// A program that comes before all others does not hand that on.
#[test]
fn it_comes_before_nobody() {
    if !is_root() {
        return eprintln!("skipped: only root comes before others");
    }
    let before_others = libc::sched_param { sched_priority: 1 };
    // SAFETY: of this thread, which nothing else runs on.
    unsafe {
        libc::setpriority(libc::PRIO_PROCESS, 0, -5);
        libc::sched_setscheduler(0, libc::SCHED_RR, &raw const before_others);
    }
    let (running, _socket) = start(&limits());
    let id = running.id().unwrap();
    // SAFETY: asks only.
    let (policy, priority) = unsafe {
        let priority = libc::getpriority(libc::PRIO_PROCESS, id as libc::id_t);
        (libc::sched_getscheduler(id), priority)
    };
    assert_eq!((policy, priority), (libc::SCHED_OTHER, 0));
}

/// As in a set-user-id program: the code would not end with it.
#[test]
fn who_has_two_users_runs_no_code() {
    if !is_root() {
        return eprintln!("skipped: only root can become another user");
    }
    let bounds = std::thread::spawn(|| {
        // SAFETY: of this thread only, as the library's function is not called, and the thread ends.
        let set = unsafe { libc::syscall(libc::SYS_setresuid, -1, 65534, -1) };
        assert_eq!(set, 0);
        Bounds::of_this_kernel()
    });
    let error = bounds.join().unwrap().unwrap_err().to_string();
    assert!(error.contains("its real and its effective user"), "{error}");
}

#[test]
fn it_executes_nothing_but_itself() {
    assert_eq!(tries("x"), Ended::Done);
    // A file with a name that it was given, as those of a store are.
    let program = File::open("/bin/true").unwrap();
    assert_eq!(tries_with("X", Some(&program), &limits()).0, Ended::Done);
}

#[test]
fn it_takes_no_more_memory_than_it_may() {
    assert_eq!(tries("m"), Ended::Done);
}

/// Each takes a number of a process from others, and memory of the kernel's that no limit of a process counts.
#[test]
fn it_has_no_more_threads_than_it_may() {
    let few = Limits {
        threads: 16,
        ..limits()
    };
    assert_eq!(tries_with("T12", None, &few).0, Ended::Done);
    let ended = tries_with("T100", None, &few).0;
    assert_eq!(ended, Ended::OverThreads(16));
    assert_eq!(ended.to_string(), "it had more than 16 threads");
}

#[test]
fn it_has_what_it_needs_and_nothing_else() {
    // Kept open by this process, and not for the code.
    let inherited = File::open("/dev/null").unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    assert_eq!(tries("h"), Ended::Done);
    let (ended, mut socket) = tries_with("y", None, &limits());
    assert_eq!(ended, Ended::Done);
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "answer");
}

#[test]
fn code_that_is_given_up_is_killed() {
    let (running, mut socket) = start(&limits());
    drop(running);
    // Its end of the socket is closed.
    assert_eq!(socket.read(&mut [0]).unwrap(), 0);
}

/// Who runs it is killed: nobody would see its end.
#[test]
fn code_ends_with_who_has_started_it() {
    let (running, mut socket) = std::thread::spawn(|| start(&limits())).join().unwrap();
    assert_eq!(socket.read(&mut [0]).unwrap(), 0);
    let ended = running.wait().unwrap();
    assert!(
        matches!(
            ended,
            Ended::Signalled {
                signal: libc::SIGKILL,
                ..
            }
        ),
        "{ended:?}"
    );
}

#[test]
fn what_is_no_executable_is_told_at_once() {
    let text = b"#!/bin/sh\nexit 0\n";
    let bounds = Bounds::of_this_kernel().unwrap();
    for bytes in [&text[..], b"no executable", b""] {
        let code = Code::copied(bytes, Hash::of(bytes)).unwrap();
        let (_ours, its) = UnixStream::pair().unwrap();
        let error = Running::start(&code, OwnedFd::from(its), &bounds, &limits());
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with("its execution: "), "{error}");
    }
    let changed = Code::copied(b"other bytes", Hash::of(text));
    assert!(matches!(changed, Err(CodeError::OtherBytes { .. })));
}
