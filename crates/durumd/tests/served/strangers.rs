//! Those who do not keep to the protocol, or come by two connections: what they leave, and what is not done for them.

use std::os::fd::OwnedFd;
use std::time::Duration;

use durum_format::{EngineKind, Uuid};
use durum_protocol::frame::{ANSWER_MAX, Frame};
use durum_protocol::message::{self, GREETING, VERSION};
use durum_protocol::{Answer, Hello, Request};
use durum_remote::socket::Socket;
use durum_service::Liveness;

use crate::support::{Served, until};

/// A client of the protocol alone.
struct Raw {
    socket: Socket,
    client: Uuid,
    liveness: Option<OwnedFd>,
    _bell: OwnedFd,
}

impl Raw {
    /// Greets, and is not ready yet.
    fn greet(served: &Served, client: Option<Uuid>) -> Raw {
        let socket = Socket::connect(&served.socket()).unwrap();
        let hello = Hello {
            greeting: GREETING,
            from: VERSION,
            to: VERSION,
            features: 0,
            client,
        };
        socket
            .send(Frame::request(0), &message::encode(&hello), &[])
            .unwrap();
        let mut received = socket.receive(ANSWER_MAX, 2).unwrap().unwrap();
        let Answer::Welcome(welcome) = message::decode(&received.bytes).unwrap() else {
            panic!("not welcome: {}", served.log());
        };
        let bell = received.files.pop().unwrap();
        Raw {
            socket,
            client: welcome.info.client,
            liveness: received.files.pop(),
            _bell: bell,
        }
    }

    fn send(&self, number: u64, request: &Request) {
        let message = message::encode(request);
        self.socket
            .send(Frame::request(number), &message, &[])
            .unwrap();
    }

    fn ask(&self, request: &Request) -> Answer {
        self.send(1, request);
        let received = self.socket.receive(ANSWER_MAX, 253).unwrap().unwrap();
        message::decode(&received.bytes).unwrap()
    }
}

fn clients_of(served: &Served) -> usize {
    std::fs::read_dir(served.store().join("clients")).map_or(0, Iterator::count)
}

#[test]
fn nothing_stays_of_one_who_is_not_let_in() {
    let served = Served::start();
    for _ in 0..20 {
        drop(Raw::greet(&served, None));
    }
    // Says that it holds the lock, and does not.
    let liar = Raw::greet(&served, None);
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
    let mut first = Raw::greet(&served, None);
    let _lock = Liveness::hold(first.client, first.liveness.take().unwrap()).unwrap();
    assert_eq!(first.ask(&Request::Ready), Answer::Done);
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
        let second = Raw::greet(&served, Some(first.client));
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
