//! Pools that programs open for reading only: by many at a time, or by one who writes.

use std::os::unix::process::ExitStatusExt;

use crate::support::{Served, until};

const BUSY: &str = "used by another program";

#[test]
fn a_pool_is_read_by_many_programs_or_written_by_one() {
    for engine in ["shadow", "hybrid", "twin"] {
        let served = Served::start();
        let mut clients: Vec<_> = ["writer", "one", "other"]
            .into_iter()
            .map(|part| served.client_on(part, engine))
            .collect();
        clients.iter_mut().for_each(|client| client.expect("here"));
        let [writer, one, other] = &mut clients[..] else {
            unreachable!()
        };
        assert_eq!(writer.ask("open pool"), "0 0");
        assert_eq!(writer.ask("add 100"), "100");
        assert!(one.ask("read pool").contains(BUSY));
        assert_eq!(writer.ask("close"), "closed");
        assert_eq!(one.ask("read pool"), "100 100");
        assert_eq!(other.ask("read pool"), "100 100");
        assert!(writer.ask("open pool").contains(BUSY));
        assert!(one.ask("change").contains("open for reading only"));
        assert_eq!(one.ask("unread"), "read no more");
        assert!(writer.ask("open pool").contains(BUSY));
        // One that is gone gives back what it has read.
        other.kill();
        assert_eq!(writer.ask("open pool"), "100 100");
        assert_eq!(writer.ask("add 1"), "101");
    }
}

#[test]
fn a_plain_store_to_a_pool_that_is_read_ends_the_program_and_changes_nothing() {
    let served = Served::start();
    let (mut reader, mut writer) = (served.client("reader"), served.client("writer"));
    reader.expect("here");
    writer.expect("here");
    assert_eq!(writer.ask("open pool"), "0 0");
    assert_eq!(writer.ask("add 3"), "3");
    assert_eq!(writer.ask("close"), "closed");
    assert_eq!(reader.ask("read pool"), "3 3");
    reader.tell("poke");
    let ended = reader.process.wait().unwrap();
    assert_eq!(ended.signal(), Some(libc::SIGSEGV), "{ended:?}");
    assert_eq!(writer.ask("open pool"), "3 3");
}

#[test]
fn who_reads_gets_the_pool_of_a_killed_program_recovered() {
    for engine in ["shadow", "hybrid", "twin"] {
        let served = Served::start();
        let mut writer = served.client_on("writer", engine);
        let mut reader = served.client_on("reader", engine);
        writer.expect("here");
        reader.expect("here");
        assert_eq!(writer.ask("open pool"), "0 0");
        assert_eq!(writer.ask("add 1000"), "1000");
        assert_eq!(writer.ask("half"), "half");
        writer.kill();
        assert_eq!(reader.ask("read pool"), "1000 1000");
    }
}

#[test]
fn a_service_that_is_started_again_knows_who_reads() {
    let mut served = Served::start();
    let (mut reader, mut writer) = (served.client("reader"), served.client("writer"));
    reader.expect("here");
    writer.expect("here");
    for pool in ["pool", "other"] {
        assert_eq!(writer.ask(&format!("open {pool}")), "0 0");
        assert_eq!(writer.ask("add 5"), "5");
        assert_eq!(writer.ask("close"), "closed");
        assert_eq!(reader.ask(&format!("read {pool}")), "5 5");
    }
    served.kill();
    served.start_again();
    // At once: it is not asked whether it still does.
    assert!(writer.ask("open pool").contains(BUSY));
    assert_eq!(reader.ask("unread"), "read no more");
    assert_eq!(writer.ask("open pool"), "5 5");
    assert_eq!(writer.ask("close"), "closed");
    assert_eq!(reader.ask("read pool"), "5 5");
    served.kill();
    reader.kill();
    served.start_again();
    until("the pool is free", || {
        !writer.ask("open pool").contains(BUSY)
    });
    assert_eq!(writer.ask("open other"), "5 5");
}
