//! A service that is there and answers nothing: what waits for it, and how long.

use std::time::{Duration, Instant};

use durum_remote::socket::Socket;
use durum_remote::{Remote, Waiting};
use durum_service::{EngineKind, PoolSpec, Service};

use crate::support::{Served, until};

const WAITING: Waiting = Waiting {
    service: Duration::from_millis(500),
    answer: Duration::from_secs(60),
};

/// A client whose service was replaced by one that lets nobody in. It has greeted that one, and waits.
fn client_of_a_stuck_service(served: &mut Served) -> (Remote, Socket) {
    let remote = Remote::open(&served.socket(), WAITING).unwrap();
    let spec = PoolSpec::new(EngineKind::Shadow);
    drop(remote.create_pool("pool", &spec).unwrap());
    served.kill();
    std::fs::remove_file(served.socket()).unwrap();
    let stuck = Socket::listen(&served.socket()).unwrap();
    (remote, stuck)
}

#[test]
fn a_client_ends_soon_while_a_thread_of_it_greets_a_service_that_is_stuck() {
    let mut served = Served::start();
    let (remote, stuck) = client_of_a_stuck_service(&mut served);
    // Its own thread comes.
    let came = stuck.accept().unwrap();
    assert!(came.receive(1024, 0).unwrap().is_some());
    let began = Instant::now();
    let closed = remote.close();
    assert!(closed.is_err(), "{closed:?}");
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    let began = Instant::now();
    drop(remote);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn a_client_ends_soon_when_its_service_stops_answering() {
    let served = Served::start();
    let remote = Remote::open(&served.socket(), WAITING).unwrap();
    served.signal(libc::SIGSTOP);
    until("each of its threads has stopped", || {
        let threads = std::fs::read_dir(format!("/proc/{}/task", served.pid())).unwrap();
        let stats =
            threads.map(|thread| std::fs::read_to_string(thread.unwrap().path().join("stat")));
        stats
            .into_iter()
            .all(|stat| stat.is_ok_and(|stat| stat.contains(") T ")))
    });
    let began = Instant::now();
    assert!(remote.close().is_err());
    drop(remote);
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    served.signal(libc::SIGCONT);
    // What it had sent is done, and its lock is free anyway.
    until("the client has ended", || {
        let log = served.log();
        log.contains("event=\"ended\"") || log.contains("event=\"recovered\"")
    });
}
