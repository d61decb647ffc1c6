//! Messages keep their bytes, and bytes that are no message are refused, whatever they are.

#[path = "messages/watching.rs"]
mod watching;

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use durum_format::puddle::PuddleKind;
use durum_format::section::Code;
use durum_format::types::Meanings;
use durum_format::{EngineKind, Uuid};
use durum_persist::domain::Domain;
use durum_protocol::frame::{ANSWER_MAX, FILES_MAX, HEADER, PACKET_MAX, REQUEST_MAX};
use durum_protocol::message::{self, GREETING, OpenPool, Owner};
use durum_protocol::{
    Answer, Failure, Frame, FrameError, Grant, Hello, Kind, Names, Note, Parts, Request, Welcome,
};
use durum_service::{
    AddressRange, Error, ErrorKind, FileProblem, ImportReport, InterruptedClient,
    InterruptionDetails, LostFile, PoolSummary, PuddlePlace, Rights, ShownAt, StoreInfo, StrayFile,
    StrayKind, StrayState, UsedElsewhere,
};
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

const UUID: Uuid = Uuid([0x11; 16]);
const SHOWN: ShownAt = ShownAt {
    puddle: UUID,
    offset: 2 << 20,
};

fn requests() -> Vec<Request> {
    let (name, text) = ("words".to_owned(), "u64".to_owned());
    let (puddle, pool) = (UUID, UUID);
    vec![
        Request::Ping,
        Request::Ready,
        Request::Recovery,
        Request::Pools,
        Request::CreatePool {
            pool,
            root: UUID,
            name: name.clone(),
            engine: EngineKind::Shadow,
            root_size: 2 << 20,
        },
        Request::OpenPool { name: name.clone() },
        Request::OpenPuddles {
            pool,
            puddles: vec![puddle],
        },
        Request::ClosePool { pool },
        Request::RemovePool {
            pool,
            name: name.clone(),
        },
        Request::CreatePuddle {
            puddle,
            owner: Owner::Client,
            kind: PuddleKind::LogSpace,
            size: 2 << 20,
        },
        Request::ReopenPuddle { puddle },
        Request::RemovePuddle { puddle },
        Request::RegisterLogSpace { puddle },
        Request::RegisterType { id: 7, text },
        Request::TypeText { id: 7 },
        Request::Types,
        Request::RefusedPools,
        Request::GiveUp { name: name.clone() },
        Request::AcceptQuarantined { name: name.clone() },
        Request::RetryQuarantined { name },
        Request::FindGarbage { pool: None },
        Request::Close,
        Request::ReadPool {
            name: "words".into(),
        },
        Request::Registry,
        Request::LostFiles,
        Request::SetMode {
            name: "words".to_owned(),
            mode: 0o640,
        },
        Request::SetOwner {
            name: "words".to_owned(),
            uid: Some(1000),
            gid: None,
        },
        Request::RevokePool {
            name: "words".to_owned(),
        },
        Request::Clients,
        Request::AskToLeave {
            client: UUID,
            wait_ms: 2000,
        },
        Request::LookAtPool {
            name: "words".to_owned(),
        },
        Request::StrayFiles,
        Request::Logs,
        Request::OpenLogs { logs: vec![UUID] },
        Request::Occupied,
        Request::Avoid(UsedElsewhere {
            ranges: vec![RANGE],
            untyped_hold_no_pointers: true,
        }),
        Request::MakeWay,
        Request::FinishMoving,
        Request::Manifest {
            begins: true,
            part: vec![1, 2],
        },
        Request::BeginImport {
            name: Some("copy".to_owned()),
            into: None,
            untyped_hold_no_pointers: true,
        },
        Request::GivePuddles {
            puddles: vec![UUID],
        },
        Request::FinishImport,
        Request::PoolAt { address: 1 << 44 },
        Request::ShowPool {
            name: "words".into(),
            wait_ms: 60_000,
        },
        Request::ShowingFile { showing: UUID },
        Request::EndShowing {
            showing: UUID,
            shown: Ok(vec![SHOWN]),
        },
        Request::EndShowing {
            showing: UUID,
            shown: Err("a transaction stays open".into()),
        },
        Request::Interrupted,
        Request::AbandonSections {
            name: "words".to_owned(),
        },
        Request::TakeOver { client: UUID },
        Request::SectionsDone { client: UUID },
        Request::Meanings { pool: UUID },
        Request::ChangeTypes {
            pool: UUID,
            old: 7,
            new: 8,
        },
    ]
}

const RANGE: AddressRange = AddressRange {
    address: 1 << 44,
    size: 2 << 20,
};

fn answers() -> Vec<Answer> {
    let grant = Grant {
        uuid: UUID,
        address: 1 << 44,
        size: 2 << 20,
        kind: PuddleKind::Data,
        is_root: true,
    };
    let place = PuddlePlace {
        uuid: UUID,
        address: 1 << 44,
        size: 2 << 20,
        kind: PuddleKind::Data,
    };
    let summary = PoolSummary {
        uuid: UUID,
        name: "words".to_owned(),
        engine: EngineKind::Twin,
        root_puddle: UUID,
        puddles: 3,
        bytes: 6 << 20,
        rights: Rights {
            uid: 1000,
            gid: 100,
            mode: 0o640,
        },
        quarantine: None,
    };
    let info = StoreInfo {
        path: "/s".into(),
        uuid: UUID,
        client: UUID,
        base: 1 << 44,
        space_size: 1 << 40,
        next_address: 1 << 44,
        domain: Domain::File,
        format_version: 1,
        served: None,
    };
    let welcome = Welcome {
        version: 1,
        features: 0,
        info,
    };
    let pool = OpenPool {
        uuid: UUID,
        name: "words".to_owned(),
        engine: EngineKind::Hybrid,
        root: grant.clone(),
        others: vec![place],
    };
    let interrupted = InterruptedClient {
        client: UUID,
        pools: vec!["words".to_owned()],
        sections: 3,
        first: Code::new(0xaaaa_bbbb_cccc, 7),
        places: vec!["push, queue.c:66".to_owned()],
        program: Some("queue, build 3f2a81".to_owned()),
        damage: None,
        not_completed: None,
    };
    vec![
        Answer::Done,
        Answer::Failed(Failure::from(Error::PoolBusy {
            name: "words".to_owned(),
        })),
        Answer::Welcome(welcome),
        Answer::OtherVersion { from: 1, to: 1 },
        Answer::Recovery(Default::default()),
        Answer::Pools(vec![summary]),
        Answer::Pool(pool.clone()),
        Answer::Puddle(grant.clone()),
        Answer::Puddles(vec![grant.clone()]),
        Answer::File,
        Answer::TypeText(Some("u64".to_owned())),
        Answer::Types(vec![(7, "u64".to_owned())]),
        Answer::RefusedPools(Vec::new()),
        Answer::Garbage(Default::default()),
        Answer::Registry(b"a snapshot".to_vec()),
        Answer::LostFiles(vec![LostFile {
            pool: "words".into(),
            file: "/store/puddles/1".into(),
            problem: FileProblem::Length {
                found: 1,
                expected: 2,
            },
        }]),
        Answer::Files(vec!["/store/quarantine/1".into()]),
        Answer::Occupied(vec![RANGE]),
        Answer::Rewritten(3),
        Answer::Imported(ImportReport {
            pools: vec!["words".to_owned()],
            puddles: 3,
            bytes: 6 << 20,
            moved: 2,
            root: Some(1 << 44),
            copied: Some("by a service".to_owned()),
        }),
        Answer::PoolAt(Some("words".into())),
        Answer::Shown {
            shown: vec![SHOWN],
            registry: vec![1, 2, 3],
        },
        Answer::Interrupted(vec![interrupted]),
        Answer::Abandoned(vec!["others".to_owned()]),
        Answer::TakenOver {
            pools: vec![pool],
            puddles: vec![grant],
        },
        Answer::Meanings(Meanings::new([(7, 8), (9, 8)].into()).unwrap()),
        Answer::StrayFiles(vec![
            StrayFile {
                file: "/store/notes".into(),
                bytes: None,
                kind: StrayKind::Foreign,
            },
            StrayFile {
                file: "/store/puddles/2".into(),
                bytes: Some(8192),
                kind: StrayKind::Puddle(StrayState::Used),
            },
        ]),
    ]
}

fn hello() -> Hello {
    Hello {
        greeting: GREETING,
        from: 1,
        to: 1,
        features: 0,
        client: Some(UUID),
    }
}

/// One line for each message: what it is, and its bytes.
fn line<T: Serialize + DeserializeOwned + PartialEq + Debug>(message: &T) -> String {
    let bytes = message::encode(message);
    assert_eq!(&message::decode::<T>(&bytes).unwrap(), message);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{message:?}\n    {hex}\n")
}

fn golden() -> String {
    let requests = requests().iter().map(line).collect::<String>();
    let answers = answers().iter().map(line).collect::<String>();
    let notes = [Note::AreYouThere, Note::Ends]
        .iter()
        .map(line)
        .collect::<String>();
    let watching = watching::messages().concat();
    format!("{}{requests}{answers}{notes}{watching}", line(&hello()))
}

/// What changes here changes the protocol: it needs another version, or a feature where something is added behind the
/// rest. The file is written anew with `DURUM_WRITE_GOLDEN=1`.
#[test]
fn messages_have_the_bytes_that_they_had() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden.txt");
    if std::env::var_os("DURUM_WRITE_GOLDEN").is_some() {
        std::fs::write(&path, golden()).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), golden());
}

#[test]
fn an_error_says_the_same_at_the_other_end() {
    let (store, pool, name) = (PathBuf::from("/s"), "p".to_owned(), "n".to_owned());
    let io = || std::io::Error::from_raw_os_error(5);
    let errors = [
        Error::Closed {
            store: store.clone(),
        },
        Error::PoolOpen {
            name: name.clone(),
            operation: "removed",
        },
        Error::PoolName {
            name: name.clone(),
            reason: "it is too long",
        },
        Error::PoolBusy { name: name.clone() },
        Error::PoolInterrupted {
            store: store.clone(),
            pool: pool.clone(),
            sections: 3,
            first: Code::new(7, 1),
            details: Box::new(InterruptionDetails {
                place: Some("push, queue.c:66".into()),
                damage: Some("torn".into()),
                not_completed: Some("it took too long".into()),
            }),
            others: vec![name.clone()],
        },
        Error::PoolMissing {
            store: store.clone(),
            name: name.clone(),
        },
        Error::StorageFull {
            path: store.clone(),
            bytes: 7,
        },
        Error::FileMissing {
            file: store.clone(),
            structure: "a puddle",
            cure: "bring it back".into(),
        },
        Error::PoolQuarantined {
            store: store.clone(),
            pool,
            log: "q/l".into(),
            reason: name.clone(),
        },
        Error::Io {
            operation: "reading",
            path: store.clone(),
            offset: Some(3),
            source: io(),
        },
        Error::Io {
            operation: "reading",
            path: store.clone(),
            offset: None,
            source: std::io::Error::other("odd"),
        },
        // One that is told by its text.
        Error::StoreDirty { path: store },
    ];
    for error in errors {
        let (text, kind) = (error.to_string(), error.kind());
        let bytes = message::encode(&Failure::from(error));
        let told = Error::from(message::decode::<Failure>(&bytes).unwrap());
        assert_eq!((told.to_string(), told.kind()), (text, kind));
    }
}

#[test]
fn texts_that_are_constants_take_bounded_memory() {
    let mut shown = 0;
    for number in 0..2000 {
        let failure = Failure::PoolOpen {
            name: String::new(),
            operation: format!("done {number}"),
        };
        shown += usize::from(
            Error::from(failure)
                .to_string()
                .contains(&format!("done {number}")),
        );
    }
    assert!((900..=1024).contains(&shown), "{shown}");
    let failure = Failure::Told {
        kind: durum_protocol::failure::Cause::Data,
        text: "x".to_owned(),
    };
    assert_eq!(Error::from(failure).kind(), ErrorKind::Data);
}

/// What a client is told to type names the store as the client does; files lie where they lie.
#[test]
fn errors_name_the_store_as_the_client_does() {
    let names = Names {
        directory: Path::new("/srv/my store"),
        place: Path::new("durum:"),
    };
    let told = |error: Error| Error::from(Failure::from(error).named(names)).to_string();
    let missing = Error::PoolMissing {
        store: "/srv/my store".into(),
        name: "x".into(),
    };
    assert_eq!(
        told(missing),
        "durum:: no pool \"x\"; `durum ls durum:` lists the pools"
    );
    let file = "/srv/my store/puddles/1";
    let lost = Error::FileMissing {
        file: file.into(),
        structure: "a puddle",
        cure: "bring it back to /srv/my store, or drop the pool: `durum rm /srv/my store x`, `durum ls /srv/my store`".into(),
    };
    assert_eq!(
        told(lost),
        format!(
            "{file}: a puddle is missing; bring it back to /srv/my store, or drop the pool: `durum rm durum: x`, `durum ls durum:`"
        )
    );
    // Another store's name, a file's, and what is no command of durum.
    let other = "`durum ls /srv/my store2`, `durum ls /srv/my store/x`, `ls /srv/my store `";
    let other = Error::Told {
        kind: ErrorKind::User,
        text: other.to_owned(),
    };
    assert_eq!(
        told(other),
        "`durum ls /srv/my store2`, `durum ls /srv/my store/x`, `ls /srv/my store `"
    );
}

fn frame(number: u64) -> Frame {
    Frame {
        number,
        kind: Kind::Request,
        more: false,
        again: true,
        length: 0,
    }
}

fn put_together(
    packets: impl Iterator<Item = Vec<u8>>,
    max: usize,
) -> Result<Option<Vec<u8>>, FrameError> {
    let mut parts = Parts::new(max);
    let mut message = None;
    for packet in packets {
        assert!(packet.len() <= PACKET_MAX && message.is_none());
        message = parts.add(&packet)?.map(|(_, bytes)| bytes);
    }
    Ok(message)
}

#[test]
fn long_messages_and_many_descriptors_come_in_parts() {
    for (bytes, files) in [
        (0, 0),
        (1, 1),
        (PACKET_MAX - HEADER, 3),
        (PACKET_MAX, 0),
        (1 << 20, 0),
        (5000, 1000),
    ] {
        let message: Vec<u8> = (0..bytes).map(|at| at as u8).collect();
        let packets: Vec<_> = frame(7).packets(&message, files).collect();
        assert!(packets.len() * FILES_MAX >= files);
        assert_eq!(
            put_together(packets.into_iter(), REQUEST_MAX).unwrap(),
            Some(message)
        );
    }
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let message = vec![1; 3 * PACKET_MAX];
    let packets = || frame(7).packets(&message, 0);
    assert!(matches!(
        put_together(packets(), 1000),
        Err(FrameError::Long { max: 1000, .. })
    ));
    // One is missing, one comes twice, another message is in between, the first says too little.
    assert!(put_together(packets().skip(1), ANSWER_MAX).is_err());
    assert_eq!(put_together(packets().take(2), ANSWER_MAX), Ok(None));
    let twice = packets().take(1).chain(packets());
    assert!(put_together(twice, ANSWER_MAX).is_err());
    let mixed = packets().take(1).chain(frame(8).packets(&[1], 0));
    assert!(put_together(mixed, ANSWER_MAX).is_err());
    let empty = Frame {
        more: true,
        length: 9,
        ..frame(7)
    }
    .encode()
    .to_vec();
    assert!(put_together(std::iter::repeat_n(empty, 2), ANSWER_MAX).is_err());
}

proptest! {
    #[test]
    fn any_bytes_are_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = message::decode::<Request>(&bytes);
        let _ = message::decode::<Answer>(&bytes);
        let _ = message::decode::<Hello>(&bytes);
        let _ = Parts::new(REQUEST_MAX).add(&bytes);
    }

    #[test]
    fn a_message_with_a_byte_changed_is_one_or_an_error(
        which in 0..22_usize, at in any::<prop::sample::Index>(), to in any::<u8>(),
    ) {
        let mut bytes = message::encode(&requests()[which]);
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(request) = message::decode::<Request>(&bytes) {
            prop_assert_eq!(message::decode::<Request>(&message::encode(&request)), Ok(request));
        }
    }

    #[test]
    fn a_header_is_read_as_it_was_written(
        number in any::<u64>(), length in any::<u32>(), more in any::<bool>(), again in any::<bool>(),
    ) {
        let frame = Frame { number, kind: Kind::Answer, more, again, length };
        let bytes = frame.encode();
        prop_assert_eq!(Frame::decode(&bytes), Ok((frame, &[][..])));
    }
}
