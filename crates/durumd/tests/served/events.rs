//! A database and its log of events, which one user writes and another one reads (Puddles, EuroSys'24, Figure 3). The
//! program is the example's.

use std::io::BufRead;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use durum::PoolOptions;
use durum_format::EngineKind;
use durum_remote::Remote;
use durum_service::Service;

use crate::support::{Client, ENGINE, STORE, Served, USER, until};
use crate::users::{ALICE, BOB, is_root};

#[path = "../../../../examples/rust/src/bin/events.rs"]
#[allow(dead_code, reason = "the program has a main function")]
mod example;

fn say(what: impl std::fmt::Display) {
    println!("client: {what}");
}

#[test]
#[ignore = "it is a client that other tests start"]
fn program() {
    let Ok(user) = std::env::var(USER) else {
        return;
    };
    let log = tracing_subscriber::fmt().with_ansi(false);
    log.with_writer(std::io::stderr).init();
    crate::parts::become_user(&user);
    let store = std::env::var(STORE).unwrap();
    let engine = EngineKind::from_name(&std::env::var(ENGINE).unwrap()).unwrap();
    // SAFETY: no pointers are passed.
    unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) };
    say("here");
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let done = match line.split_once(' ').unwrap_or((&line, "")) {
            ("write", count) => {
                let options = PoolOptions::new().engine(engine);
                let count = count.parse().unwrap();
                example::write(&store, options, count, |number| match count {
                    100 => {}
                    _ => say(number),
                })
                .map(|()| "written".to_owned())
            }
            ("half", _) => example::begin(&store, || {
                say("half");
                std::thread::sleep(Duration::from_secs(60));
            })
            .map(|()| "committed".to_owned()),
            ("read", _) => example::read(&store).map(|events| events.to_string()),
            ("rows", _) => example::rows(&store).map(|rows| rows.to_string()),
            ("last", _) => example::last(&store).map(|value| value.to_string()),
            other => panic!("{other:?}"),
        };
        say(done.unwrap_or_else(|error| error.to_string()));
    }
}

/// A program of a user. What it logs is kept.
fn program_of(served: &Served, user: &str, engine: &str) -> Client {
    let mut program = served.start_program("events::program", user, engine);
    program.expect("here");
    program
}

/// Has a program follow a pointer into a pool that it may not have: SIGSEGV, and what its log says.
fn refused(served: &Served, user: &str, what: &str) -> String {
    let mut program = program_of(served, user, "shadow");
    program.tell(what);
    let status = program.process.wait().unwrap();
    assert_eq!(status.signal(), Some(libc::SIGSEGV), "{status}");
    program.log()
}

#[test]
fn a_reader_of_the_log_alone_finds_what_was_committed() {
    if !is_root() {
        return;
    }
    for engine in ["shadow", "hybrid"] {
        let served = Served::start_with(&[]);
        let mut alice = program_of(&served, ALICE, engine);
        assert_eq!(alice.ask("write 100"), "written");
        let mut modes = served.client_of(ALICE);
        modes.expect("here");
        for pool in ["database", "events"] {
            assert_eq!(modes.ask(&format!("group {pool} 62001")), "changed");
        }
        assert_eq!(modes.ask("mode events 0640"), "changed");
        let mut bob = program_of(&served, BOB, engine);
        assert_eq!(bob.ask("read"), "100");

        // The database is not bob's to read: neither by its name, nor by a pointer that leads there.
        assert!(bob.ask("rows").contains("may not be opened by user 61002"));
        let log = refused(&served, BOB, "last");
        assert!(
            log.contains("a pool of another user may not be opened by user 61002"),
            "{log}"
        );
        assert!(
            log.contains("ERROR") && log.contains("address=0x2"),
            "{log}"
        );
        assert_eq!(modes.ask("mode database 0640"), "changed");
        assert_eq!(bob.ask("last"), "10000");
        assert_eq!(bob.ask("rows"), "64");

        // In use: as the writer has both, and then the log alone.
        let mut writer = program_of(&served, ALICE, engine);
        writer.tell("write 1000000");
        let told: u64 = writer.hear().parse().unwrap();
        assert!(
            bob.ask("read")
                .contains("\"events\" is used by another program")
        );
        writer.kill();
        let events: u64 = bob.ask("read").parse().unwrap();
        assert!(events >= told);
        let remote = Remote::open(&served.socket(), Default::default()).unwrap();
        let held = remote.open_pool("events").unwrap();
        let log = refused(&served, BOB, "rows");
        assert!(
            log.contains("pool=\"events\"") && log.contains("ERROR"),
            "{log}"
        );
        assert!(log.contains("is used by another program"), "{log}");
        remote.close_pool(held.uuid).unwrap();
        assert_eq!(bob.ask("rows"), "64");
        remote.close().unwrap();
        for client in [bob, modes, alice] {
            client.end();
        }
    }
}

/// A pool that is open because a pointer led there has a durable grant: recovery takes back what was half done in it.
#[test]
fn what_was_half_done_in_a_pool_that_a_pointer_opened_is_taken_back() {
    if !is_root() {
        return;
    }
    for engine in ["shadow", "hybrid"] {
        let mut served = Served::start_with(&[]);
        let mut alice = program_of(&served, ALICE, engine);
        assert_eq!(alice.ask("write 100"), "written");
        for service_dies in [false, true] {
            let mut half = program_of(&served, ALICE, engine);
            assert_eq!(half.ask("half"), "half");
            if service_dies {
                served.kill();
            }
            half.kill();
            if service_dies {
                served.start_again();
            }
            assert_eq!(alice.ask("read"), "100");
            assert_eq!(alice.ask("rows"), "64");
        }
        alice.end();
        served.end();
    }
}

/// Killed at any moment while it commits: the log and the database have the same transactions.
#[test]
fn a_writer_that_is_killed_leaves_both_or_neither() {
    if !is_root() {
        return;
    }
    for engine in ["shadow", "hybrid"] {
        let served = Served::start_with(&[]);
        let mut reader = program_of(&served, ALICE, engine);
        let mut before = 0;
        for round in 0..8 {
            let mut writer = program_of(&served, ALICE, engine);
            writer.tell("write 1000000");
            until("it writes", || {
                writer.hear().parse::<u64>().unwrap() > before
            });
            std::thread::sleep(Duration::from_micros(700 * round));
            writer.kill();
            let told: u64 = writer
                .last_words()
                .map_or(0, |told| told.parse().unwrap_or(0));
            let events: u64 = reader.ask("read").parse().unwrap();
            assert!(events > before && events + 1 >= told, "{events} of {told}");
            assert_eq!(reader.ask("rows"), events.min(64).to_string());
            assert_eq!(reader.ask("last"), (events * events).to_string());
            before = events;
        }
        reader.end();
    }
}
