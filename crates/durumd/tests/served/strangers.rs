//! Those who do not keep to the protocol, or come by two connections: what they leave, and what is not done for them.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use durum_format::{EngineKind, Uuid};
use durum_protocol::frame::{ANSWER_MAX, Frame};
use durum_protocol::message::{self, GREETING, VERSION};
use durum_protocol::{Answer, Hello, Request};
use durum_remote::socket::Socket;
use durum_service::Liveness;

use crate::support::{Served, until};

/// A client of the protocol alone.
pub(crate) struct Raw {
    socket: Socket,
    client: Uuid,
    liveness: Option<OwnedFd>,
    _bell: OwnedFd,
}

impl Raw {
    /// Greets, and is not ready yet.
    pub(crate) fn greet(socket: &Path, client: Option<Uuid>) -> Raw {
        Raw::greet_with(socket, client, 0).0
    }

    /// Offers features, too. Those that the service answers.
    pub(crate) fn greet_with(socket: &Path, client: Option<Uuid>, features: u64) -> (Raw, u64) {
        let socket = Socket::connect(socket).unwrap();
        let hello = Hello {
            greeting: GREETING,
            from: VERSION,
            to: VERSION,
            features,
            client,
        };
        socket
            .send(Frame::request(0), &message::encode(&hello), &[])
            .unwrap();
        let mut received = socket.receive(ANSWER_MAX, 2).unwrap().unwrap();
        let Answer::Welcome(welcome) = message::decode(&received.bytes).unwrap() else {
            panic!("not welcome");
        };
        let bell = received.files.pop().unwrap();
        let raw = Raw {
            socket,
            client: welcome.info.client,
            liveness: received.files.pop(),
            _bell: bell,
        };
        (raw, welcome.features)
    }

    /// Greets, and holds its lock.
    pub(crate) fn enter(socket: &Path) -> (Raw, Liveness) {
        let mut raw = Raw::greet(socket, None);
        let lock = Liveness::hold(raw.client, raw.liveness.take().unwrap()).unwrap();
        assert_eq!(raw.ask(&Request::Ready), Answer::Done);
        (raw, lock)
    }

    pub(crate) fn send(&self, number: u64, request: &Request) {
        let message = message::encode(request);
        self.socket
            .send(Frame::request(number), &message, &[])
            .unwrap();
    }

    pub(crate) fn ask(&self, request: &Request) -> Answer {
        self.send(1, request);
        self.hear()
    }

    /// The next answer; what came beside it is closed.
    pub(crate) fn hear(&self) -> Answer {
        let received = self.socket.receive(ANSWER_MAX, 253).unwrap().unwrap();
        message::decode(&received.bytes).unwrap()
    }
}

/// Somebody who works as usual, soon.
fn others_work(served: &Served, pool: &str) {
    let began = Instant::now();
    let mut client = served.client("other");
    client.expect("here");
    assert_eq!(client.ask(&format!("open {pool}")), "0 0");
    assert_eq!(client.ask("add 1"), "1");
    client.end();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
}

fn clients_of(served: &Served) -> usize {
    std::fs::read_dir(served.store().join("clients")).map_or(0, Iterator::count)
}

#[test]
fn nothing_stays_of_one_who_is_not_let_in() {
    let served = Served::start();
    for _ in 0..20 {
        drop(Raw::greet(&served.socket(), None));
    }
    // Says that it holds the lock, and does not.
    let liar = Raw::greet(&served.socket(), None);
    assert!(matches!(liar.ask(&Request::Ready), Answer::Failed(_)));
    until("their files are gone", || clients_of(&served) == 0);
    let mut client = served.client("client");
    client.expect("here");
    assert_eq!(client.ask("open pool"), "0 0");
    assert_eq!(clients_of(&served), 1);
}

#[test]
fn what_an_earlier_connection_has_left_over_is_not_done() {
    let served = Served::start();
    let (mut first, _lock) = Raw::enter(&served.socket());
    let (pool, root) = (Uuid([7; 16]), Uuid([8; 16]));
    let make = Request::CreatePool {
        pool,
        root,
        name: "pool".to_owned(),
        engine: EngineKind::Hybrid,
        root_size: 2 << 20,
    };
    assert!(matches!(first.ask(&make), Answer::Pool { .. }));
    for round in 0..10 {
        // Requests that wait for their turn, and the last one closes the pool.
        for number in 0..60 {
            first.send(number, &Request::Recovery);
        }
        first.send(60, &Request::ClosePool { pool });
        let second = Raw::greet(&served.socket(), Some(first.client));
        assert_eq!(second.ask(&Request::Ready), Answer::Done);
        let is_open = || {
            matches!(
                second.ask(&Request::OpenPuddles {
                    pool,
                    puddles: vec![root]
                }),
                Answer::Puddles(_)
            )
        };
        // What was done before the second one was let in counts.
        if !is_open() {
            assert!(matches!(
                second.ask(&Request::OpenPool {
                    name: "pool".to_owned()
                }),
                Answer::Pool { .. }
            ));
        }
        std::thread::sleep(Duration::from_millis(10));
        assert!(is_open(), "round {round}");
        first = second;
    }
}

#[test]
fn what_is_no_request_ends_its_own_connection_alone() {
    let served = Served::start();
    let answer = message::encode(&Answer::Done);
    let request = message::encode(&Request::Pools);
    let longer = [&request[..], b"more"].concat();
    for (number, (frame, bytes)) in [
        (Frame::request(1), &b""[..]),
        (Frame::request(1), &[0xff; 64][..]),
        (Frame::request(1), &longer),
        (Frame::request(1).answer(), &answer),
        (Frame::note(), &request),
    ]
    .into_iter()
    .enumerate()
    {
        let (raw, _lock) = Raw::enter(&served.socket());
        raw.socket.send(frame, bytes, &[]).unwrap();
        // No answer, and the end; where it had more to read, an error.
        let ended = raw.socket.receive(ANSWER_MAX, 0);
        assert!(!matches!(ended, Ok(Some(_))), "{number}: {ended:?}");
    }
    // Descriptors, which a client has no reason to send, do not stay with the service.
    let before = descriptors(&served);
    for _ in 0..20 {
        let (raw, _lock) = Raw::enter(&served.socket());
        let file = std::fs::File::open("/dev/null").unwrap();
        let files = [std::os::fd::AsFd::as_fd(&file); 50];
        let _ = raw.socket.send(Frame::request(1), &request, &files);
        let _ = raw.socket.receive(ANSWER_MAX, 0);
    }
    until("its descriptors are closed", || {
        descriptors(&served) <= before
    });
    others_work(&served, "pool");
}

fn descriptors(served: &Served) -> usize {
    let open = std::fs::read_dir(format!("/proc/{}/fd", served.pid()));
    open.unwrap().count()
}

#[test]
fn a_client_that_never_reads_holds_up_nobody_else() {
    let served = Served::start();
    let (raw, _lock) = Raw::enter(&served.socket());
    raw.socket
        .wait_at_most(Some(Duration::from_millis(200)), None)
        .unwrap();
    let request = message::encode(&Request::Recovery);
    let mut sent = 0;
    while raw.socket.send(Frame::request(sent), &request, &[]).is_ok() {
        sent += 1;
        assert!(sent < 1_000_000, "the service reads without end");
    }
    others_work(&served, "pool");
}

#[test]
fn those_who_say_nothing_keep_nobody_out() {
    let served = Served::start();
    let silent: Vec<Socket> = (0..400)
        .map(|_| Socket::connect(&served.socket()).unwrap())
        .collect();
    others_work(&served, "pool");
    drop(silent);
}
