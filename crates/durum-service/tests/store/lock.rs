//! One writer: a second opener is refused by name, whoever it is, and the lock ends with its process.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use durum_service::{Embedded, Error, ReadOnlyStore, Service, check};

use crate::support::{create, open, open_options, scratch, spec};

const STORE: &str = "DURUM_TEST_LOCK_STORE";
const MODE: &str = "DURUM_TEST_LOCK_MODE";

/// Not a test of its own: what the second process does.
#[test]
fn second_process() {
    let Some(path) = std::env::var_os(STORE) else {
        return;
    };
    let path = PathBuf::from(path);
    let opened = Embedded::open(&path, open_options());
    match &opened {
        Ok(store) => {
            store.open_pool("words").unwrap();
            if std::env::var_os(MODE).is_some_and(|mode| mode == "fork") {
                fork(store);
            }
            println!("held");
        }
        Err(Error::StoreBusy { pid, .. }) => println!("busy {}", pid.unwrap_or(0)),
        Err(error) => println!("failed {error}"),
    }
    std::io::stdout().flush().unwrap();
    // Holds what it holds until it is told to end, or killed.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
    std::process::exit(0);
}

/// A child that inherits the handle: it is refused, and its end changes nothing.
fn fork(store: &Embedded) {
    // SAFETY: the child calls into this crate only to be refused (which allocates; the C library makes that
    // safe after a fork) and ends at once without running destructors.
    match unsafe { libc::fork() } {
        0 => {
            let refused = matches!(store.pools(), Err(Error::Forked { .. }))
                && matches!(store.close(), Err(Error::Forked { .. }));
            // SAFETY: ends the process; no preconditions.
            unsafe { libc::_exit(if refused { 0 } else { 1 }) }
        }
        child => {
            let mut status = 0;
            // SAFETY: the pointer is to a local that outlives the call.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0, "the child was not refused");
        }
    }
}

struct Second {
    child: Child,
    answer: String,
}

impl Second {
    fn start(path: &Path, mode: &str) -> Second {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "lock::second_process", "--nocapture"])
            .env(STORE, path)
            .env(MODE, mode)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let answer = lines
            .find_map(|line| {
                let line = line.unwrap();
                // The harness prints the test's name without a line end before it.
                ["held", "busy", "failed"]
                    .iter()
                    .find_map(|word| line.find(word).map(|at| line[at..].to_owned()))
            })
            .expect("the second process answers");
        Second { child, answer }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn store_with_pool(path: &Path) {
    let store = create(path);
    store.create_pool("words", &spec()).unwrap();
    store.close().unwrap();
}

#[test]
fn a_second_process_is_refused_with_the_holders_pid() {
    let directory = scratch();
    let path = directory.path().join("store");
    store_with_pool(&path);
    let store = open(&path);
    let second = Second::start(&path, "");
    assert_eq!(second.answer, format!("busy {}", std::process::id()));
    second.kill();
    // Another name of the same directory is the same store.
    let link = directory.path().join("link");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    let refusal = Embedded::open(&link, open_options()).unwrap_err();
    assert!(matches!(refusal, Error::StoreBusy { .. }), "{refusal}");
    assert!(matches!(
        check(&path, &Default::default()),
        Err(Error::StoreBusy { .. })
    ));
    let second = Second::start(&path, "");
    assert!(
        second.answer.starts_with("busy"),
        "the refused openers did not drop the lock: {}",
        second.answer
    );
    second.kill();
    drop(store);
    open(&path);
}

#[test]
fn a_killed_holder_leaves_the_store_free_and_is_no_corruption() {
    let directory = scratch();
    let path = directory.path().join("store");
    store_with_pool(&path);
    let second = Second::start(&path, "");
    assert_eq!(second.answer, "held");
    match Embedded::open(&path, open_options()) {
        Err(error @ Error::StoreBusy { .. }) => {
            assert!(
                error.to_string().contains(&second.child.id().to_string()),
                "{error}"
            );
        }
        other => panic!("{other:?}"),
    }
    let reader = ReadOnlyStore::open(&path).unwrap();
    assert_eq!(reader.writer().unwrap(), Some(second.child.id()));
    let root = reader.pools()[0].root_puddle;
    assert!(matches!(
        reader.puddle_bytes(root),
        Err(Error::StoreBusy { .. })
    ));
    second.kill();
    assert_eq!(reader.writer().unwrap(), None);
    let report = check(&path, &Default::default()).unwrap();
    assert!(
        report.is_sound() && report.findings.is_empty(),
        "{report:?}"
    );
    let store = open(&path);
    assert!(!store.recovery_report().was_clean);
    assert!(store.recovery_report().quarantined.is_empty());
    store.open_pool("words").unwrap();
}

#[test]
fn a_forked_child_is_refused_and_its_end_does_not_free_the_store() {
    let directory = scratch();
    let path = directory.path().join("store");
    store_with_pool(&path);
    let second = Second::start(&path, "fork");
    assert_eq!(second.answer, "held");
    assert!(matches!(
        Embedded::open(&path, open_options()),
        Err(Error::StoreBusy { .. })
    ));
    second.kill();
    open(&path).open_pool("words").unwrap();
}

#[test]
fn threads_that_open_one_store_at_once_do_not_free_each_others_lock() {
    let directory = scratch();
    let path = directory.path().join("store");
    store_with_pool(&path);
    for _ in 0..5 {
        let barrier = std::sync::Barrier::new(4);
        let winners: Vec<Option<Embedded>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        barrier.wait();
                        Embedded::open(&path, open_options()).ok()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        assert_eq!(winners.iter().flatten().count(), 1);
        let second = Second::start(&path, "");
        assert!(second.answer.starts_with("busy"), "{}", second.answer);
        second.kill();
    }
}
