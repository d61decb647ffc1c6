//! A service and a program of which one is older: they do what both can do, and the program says what it cannot have.

use std::fs::File;
use std::os::fd::AsFd;

use durum_format::Uuid;
use durum_persist::domain::Domain;
use durum_protocol::frame::REQUEST_MAX;
use durum_protocol::message::{self, FEATURES, VERSION};
use durum_protocol::{Answer, Hello, Request, Welcome};
use durum_remote::Remote;
use durum_remote::socket::Socket;
use durum_service::{Error, ErrorKind, Service, StoreInfo};

use crate::strangers::Raw;
use crate::support::Served;

/// Serves one client as a service without any feature would, until that closes. The requests that came.
fn serve(socket: &Socket) -> Vec<Request> {
    let client = socket.accept().unwrap();
    let greeting = client.receive(1024, 0).unwrap().unwrap();
    let hello: Hello = message::decode(&greeting.bytes).unwrap();
    assert_eq!(hello.features, FEATURES);
    let welcome = Answer::Welcome(Welcome {
        version: VERSION,
        features: 0,
        info: StoreInfo {
            path: "/older".into(),
            uuid: Uuid([1; 16]),
            client: Uuid([2; 16]),
            base: 1 << 44,
            space_size: 1 << 40,
            next_address: 1 << 44,
            domain: Domain::File,
            format_version: 1,
            served: None,
        },
    });
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let liveness = File::create_new(directory.path().join("liveness")).unwrap();
    let (_bell, theirs) = Socket::pair().unwrap();
    let files = [liveness.as_fd(), theirs.descriptor().unwrap()];
    let answer = message::encode(&welcome);
    client
        .send(greeting.frame.answer(), &answer, &files)
        .unwrap();
    let mut asked = Vec::new();
    while let Some(received) = client.receive(REQUEST_MAX, 0).unwrap() {
        asked.push(message::decode(&received.bytes).unwrap());
        let done = message::encode(&Answer::Done);
        client.send(received.frame.answer(), &done, &[]).unwrap();
        if asked.last() == Some(&Request::Close) {
            break;
        }
    }
    asked
}

#[test]
fn a_program_asks_an_older_service_for_nothing_that_it_does_not_know() {
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = place.path().join("sock");
    let socket = Socket::listen(&path).unwrap();
    let older = std::thread::spawn(move || serve(&socket));
    let remote = Remote::open(&path, Default::default()).unwrap();
    for refused in [
        remote.look_at_pool("words").map(drop),
        remote.stray_files().map(drop),
        remote.logs().map(drop),
        remote.open_logs(&[Uuid([3; 16])]).map(drop),
        remote.pool_at(1 << 44).map(drop),
    ] {
        let Err(error) = refused else {
            panic!("it is not refused");
        };
        assert!(
            matches!(error, Error::Told { .. }) && error.kind() == ErrorKind::User,
            "{error:?}"
        );
        assert!(
            error.to_string().contains("older than this program"),
            "{error}"
        );
    }
    // The connection is as good as before.
    remote.remove_puddle(Uuid([3; 16])).unwrap();
    remote.close().unwrap();
    let puddle = Uuid([3; 16]);
    let sent = [
        Request::Ready,
        Request::RemovePuddle { puddle },
        Request::Close,
    ];
    assert_eq!(older.join().unwrap(), sent);
}

#[test]
fn a_service_offers_no_more_than_the_program_does_nor_than_it_has() {
    let served = Served::start();
    for (offered, answered) in [(0, 0), (FEATURES, FEATURES), (u64::MAX, FEATURES)] {
        let (_, features) = Raw::greet_with(&served.socket(), None, offered);
        assert_eq!(features, answered);
    }
}
