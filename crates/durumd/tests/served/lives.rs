//! Clients come, share a store, and go in all ways there are; and so does the service.

use std::time::{Duration, Instant};

use crate::support::{Served, until};

#[test]
fn two_programs_share_a_store_each_pool_being_one_programs() {
    let mut served = Served::start();
    let (mut one, mut other) = (served.client("one"), served.client("other"));
    one.expect("here");
    other.expect("here");
    assert_eq!(one.ask("open first"), "0 0");
    assert_eq!(other.ask("open second"), "0 0");
    assert_eq!(one.ask("add 100"), "100");
    assert_eq!(other.ask("add 50"), "50");
    assert!(other.ask("open first").contains("used by another program"));
    assert_eq!(one.ask("close"), "closed");
    assert_eq!(other.ask("open first"), "100 100");
    one.end();
    other.end();
    let took = served.end();
    assert!(took < Duration::from_secs(1), "{took:?}");
    // Closed in order: a directory like any other.
    assert!(
        durum_service::ReadOnlyStore::open(&served.store())
            .unwrap()
            .is_clean()
    );
}

#[test]
fn the_pool_of_a_killed_program_is_recovered_for_the_next_one_while_others_work() {
    for engine in ["shadow", "hybrid", "twin"] {
        let served = Served::start();
        let mut others: Vec<_> = (0..3).map(|_| served.client_on("other", engine)).collect();
        for (number, other) in others.iter_mut().enumerate() {
            other.expect("here");
            assert_eq!(other.ask(&format!("open {number}")), "0 0");
        }
        let mut writer = served.client_on("writer", engine);
        writer.expect("here");
        assert_eq!(writer.ask("open pool"), "0 0");
        assert_eq!(writer.ask("add 1000"), "1000");
        assert_eq!(writer.ask("half"), "half");
        let mut next = served.client_on("next", engine);
        next.expect("here");
        assert!(next.ask("open pool").contains("used by another program"));
        writer.kill();
        // At once: whoever asks waits for the recovery.
        assert_eq!(next.ask("open pool"), "1000 1000");
        assert_eq!(next.ask("add 1"), "1001");
        for other in &mut others {
            assert_eq!(other.ask("add 10"), "10");
        }
    }
}

/// A process closes its socket and its lock before it has ended: what it has open is not copied for that.
#[test]
fn the_files_of_a_killed_program_stay_the_same() {
    use std::os::unix::fs::MetadataExt;
    let served = Served::start();
    let files = || {
        let entries = std::fs::read_dir(served.store().join("puddles")).unwrap();
        let of = |entry: std::io::Result<std::fs::DirEntry>| entry.ok()?.metadata().ok();
        let found = entries.filter_map(of).map(|found| found.ino());
        found.collect::<std::collections::BTreeSet<u64>>()
    };
    let mut keeper = served.client("keeper");
    keeper.expect("here");
    assert_eq!(keeper.ask("open pool"), "0 0");
    let pool = files();
    assert_eq!(keeper.ask("close"), "closed");
    for round in 0..10 {
        let mut writer = served.client("writer");
        writer.expect("here");
        let sum = round * 7;
        assert_eq!(writer.ask("open pool"), format!("{sum} {sum}"));
        assert_eq!(writer.ask("add 7"), format!("{}", sum + 7));
        let before: Vec<u64> = files().intersection(&pool).copied().collect();
        writer.kill();
        let mut opened = String::new();
        until("the next one has the pool", || {
            opened = keeper.ask("open pool");
            !opened.contains("used by another program")
        });
        assert_eq!(opened, format!("{0} {0}", sum + 7));
        let after = files();
        assert!(before.iter().all(|file| after.contains(file)), "{round}");
        assert_eq!(keeper.ask("close"), "closed");
    }
}

/// Somebody waits long for another client to leave, and is killed meanwhile: that is nobody else's affair.
#[test]
fn who_is_gone_in_a_long_request_holds_up_nobody() {
    let served = Served::start();
    let [mut one, mut two, mut kicker] = ["one", "two", "kicker"].map(|name| {
        let mut client = served.client(name);
        client.expect("here");
        client
    });
    assert_eq!(one.ask("open one"), "0 0");
    assert_eq!(two.ask("open two"), "0 0");
    assert_eq!(kicker.ask("open three"), "0 0");
    // A client stays that is asked to leave and does not look.
    let mut asker = served.client("asker");
    asker.expect("here");
    assert_eq!(asker.ask("open four"), "0 0");
    asker.tell("kick one 30000");
    std::thread::sleep(Duration::from_millis(300));
    asker.kill();
    let began = Instant::now();
    assert!(kicker.ask("open two").contains("used by another program"));
    assert_eq!(two.ask("close"), "closed");
    assert_eq!(two.ask("open four"), "0 0");
    assert!(
        began.elapsed() < Duration::from_secs(10),
        "{:?}",
        began.elapsed()
    );
}

/// The same of a client that lives: what takes it long takes others no longer.
#[test]
fn a_long_request_holds_up_nobody() {
    let served = Served::start();
    let [mut one, mut two, mut asker] = ["one", "two", "asker"].map(|name| {
        let mut client = served.client(name);
        client.expect("here");
        client
    });
    assert_eq!(one.ask("open one"), "0 0");
    assert_eq!(asker.ask("open asked"), "0 0");
    asker.tell("kick one 5000");
    std::thread::sleep(Duration::from_millis(300));
    let began = Instant::now();
    assert_eq!(two.ask("open two"), "0 0");
    assert_eq!(two.ask("add 5"), "5");
    assert_eq!(two.ask("close"), "closed");
    assert!(two.ask("open asked").contains("used by another program"));
    let mut newcomer = served.client("newcomer");
    newcomer.expect("here");
    assert_eq!(newcomer.ask("open two"), "5 5");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}");
    // One that does not look is ended, when the time is over.
    assert_eq!(asker.hear(), "kicked");
    assert!(one.process.wait().unwrap().code().is_none());
}

#[test]
fn a_program_is_gone_when_its_child_lives_on_and_when_it_executes_another() {
    for way in ["fork", "exec"] {
        let served = Served::start();
        let (mut writer, mut next) = (served.client("writer"), served.client("next"));
        writer.expect("here");
        next.expect("here");
        assert_eq!(writer.ask("open pool"), "0 0");
        assert_eq!(writer.ask("add 7"), "7");
        match way {
            "fork" => {
                assert_eq!(writer.ask("fork"), "forked");
                writer.kill();
            }
            _ => assert_eq!(writer.ask("exec"), "executes"),
        }
        let mut opened = String::new();
        until("the pool is free", || {
            opened = next.ask("open pool");
            !opened.contains("used by another program")
        });
        assert_eq!(opened, "7 7", "{way}");
    }
}

#[test]
fn the_service_is_killed_and_started_again_and_no_living_program_notices() {
    for engine in ["shadow", "hybrid", "twin"] {
        let mut served = Served::start();
        let (mut lives, mut dies) = (
            served.client_on("lives", engine),
            served.client_on("dies", engine),
        );
        lives.expect("here");
        dies.expect("here");
        assert_eq!(lives.ask("open one"), "0 0");
        assert_eq!(dies.ask("open other"), "0 0");
        assert_eq!(lives.ask("add 10"), "10");
        assert_eq!(dies.ask("add 20"), "20");
        assert_eq!(dies.ask("half"), "half");
        served.kill();
        assert_eq!(lives.ask("add 10"), "20");
        // Nobody else may open the directory meanwhile.
        let refused =
            durum_service::Embedded::open(&served.store(), durum_service::OpenOptions::default());
        assert!(
            matches!(refused, Err(durum_service::Error::StoreServed { .. })),
            "{refused:?}"
        );
        dies.kill();
        served.start_again();
        assert_eq!(lives.ask("add 10"), "30");
        // What needs the service works, too, and so does a new client.
        assert_eq!(lives.ask("grow 8000000"), "grown");
        let mut next = served.client_on("next", engine);
        next.expect("here");
        assert_eq!(next.ask("open other"), "20 20");
        assert!(next.ask("open one").contains("used by another program"));
        lives.kill();
        assert_eq!(next.ask("open one"), "30 30");
    }
}

/// As code does whose opener was killed a moment ago (docs/internals/resumption.md).
#[test]
fn who_opens_the_directory_waits_for_a_client_that_is_just_ending() {
    let mut served = Served::start();
    let mut ends = served.client("ends");
    ends.expect("here");
    served.kill();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // It has looked by then, mostly, and does for long yet.
            std::thread::sleep(Duration::from_millis(50));
            ends.kill();
        });
        let options = durum_service::OpenOptions::default();
        let store = durum_service::Embedded::open(&served.store(), options).unwrap();
        durum_service::Service::close(&store).unwrap();
    });
}

#[test]
fn a_request_waits_for_a_service_that_comes_back() {
    let mut served = Served::start();
    let mut client = served.client("client");
    client.expect("here");
    assert_eq!(client.ask("open pool"), "0 0");
    served.kill();
    client.tell("pools");
    std::thread::sleep(Duration::from_millis(300));
    served.start_again();
    client.expect("1");
    client.end();
}

#[test]
fn a_program_that_closes_all_its_descriptors_is_known_again_and_loses_nothing() {
    let served = Served::start();
    let (mut writer, mut next) = (served.client("writer"), served.client("next"));
    writer.expect("here");
    next.expect("here");
    assert_eq!(writer.ask("open pool"), "0 0");
    assert_eq!(writer.ask("add 5"), "5");
    assert_eq!(writer.ask("closefrom"), "closed all");
    for _ in 0..50 {
        assert!(next.ask("open pool").contains("used by another program"));
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(writer.ask("add 5"), "10");
    writer.kill();
    assert_eq!(next.ask("open pool"), "10 10");
}

#[test]
fn a_program_that_closes_its_descriptors_while_the_service_is_away_is_not_taken_for_gone() {
    let mut served = Served::start();
    let (mut writer, mut executes) = (served.client("writer"), served.client("executes"));
    let mut next = served.client("next");
    for client in [&mut writer, &mut executes, &mut next] {
        client.expect("here");
    }
    assert_eq!(writer.ask("open pool"), "0 0");
    assert_eq!(executes.ask("open other"), "0 0");
    assert_eq!(writer.ask("add 5"), "5");
    assert_eq!(executes.ask("add 6"), "6");
    served.kill();
    assert_eq!(writer.ask("closefrom"), "closed all");
    // One that has ended as a program, in a process that lives, comes never again.
    assert_eq!(executes.ask("exec"), "executes");
    assert_eq!(writer.ask("add 5"), "10");
    // Nobody can tell without the service.
    let refused =
        durum_service::Embedded::open(&served.store(), durum_service::OpenOptions::default());
    assert!(
        matches!(refused, Err(durum_service::Error::StoreServed { .. })),
        "{refused:?}"
    );
    served.start_again();
    assert!(next.ask("open pool").contains("used by another program"));
    assert_eq!(writer.ask("add 5"), "15");
    // Who asks waits until it is known.
    assert_eq!(next.ask("open other"), "6 6");
    writer.kill();
    assert_eq!(next.ask("open pool"), "15 15");
}

#[test]
fn a_program_that_was_taken_for_gone_is_told_and_commits_nothing_more() {
    for engine in ["shadow", "hybrid", "twin"] {
        let served = Served::start();
        let (mut writer, mut next) = (
            served.client_on("writer", engine),
            served.client_on("next", engine),
        );
        writer.expect("here");
        next.expect("here");
        assert_eq!(writer.ask("open pool"), "0 0");
        assert_eq!(writer.ask("add 5"), "5");
        // It does not answer when it is asked where its lock is.
        assert_eq!(writer.ask("closefrom stop"), "closed all");
        assert_eq!(next.ask("open pool"), "5 5", "{engine}");
        // SAFETY: the process is a child of this one, and not waited for.
        // It goes on to write before it is told: that leads to nothing.
        let goes_on = unsafe { libc::kill(writer.process.id() as i32, libc::SIGCONT) };
        assert_eq!(goes_on, 0);
        let mut said = String::new();
        until("it is told", || {
            said = writer.ask("add 1");
            said.parse::<u64>().is_err()
        });
        assert_eq!(next.ask("add 1"), "6", "{engine}");
        assert!(
            said.contains("took this program for gone"),
            "{engine}: {said}"
        );
    }
}

#[test]
fn the_lock_of_a_client_is_looked_at_by_one_descriptor() {
    let served = Served::start();
    let mut client = served.client("client");
    client.expect("here");
    assert_eq!(client.ask("open pool"), "0 0");
    // Whoever opened the files at each look would find nobody, and ask the client to come again.
    std::fs::remove_dir_all(served.store().join("clients")).unwrap();
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(client.ask("add 1"), "1");
    assert!(!served.log().contains("admitted again"), "{}", served.log());
    client.end();
}
