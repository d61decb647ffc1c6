//! What code is answered, by a client that asks for more. A section is a record here, and completing it another one.

use std::io::{BufRead, BufReader};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use durum_format::puddle::heap_offset;
use durum_format::section::{BANK_WORDS, Code as Region, Head, RecordWriter, bank_of};
use durum_format::{UNIT, code};
use durum_protocol::frame::Frame;
use durum_protocol::message::{FEATURES, GREETING, Hello, VERSION};
use durum_service::{CreateOptions, EngineKind, PoolSpec, PuddleGrant, PuddleOwner, TakenOver};

use super::*;
use crate::Remote;
use crate::connection::{Waiting, Way};

/// Writes the next record of a thread: that it is in a section, or in none.
fn record(puddle: &PuddleGrant, client: Uuid, sequence: u64, is_in: bool) {
    let head = Head {
        client,
        salt: 0x5a17,
        slots: 4,
        stack_size: 256,
    };
    let heap = heap_offset(puddle.size);
    puddle.file.write_all_at(&head.encode(), heap).unwrap();
    let (mut bank, salt) = ([0; BANK_WORDS], head.slot_salt(0));
    let code = Region::new(0xaaaa_bbbb_cccc, 7).unwrap();
    let written = match is_in {
        true => RecordWriter::new(&mut bank, sequence, code)
            .live_ins(&[5])
            .finish(&salt),
        false => RecordWriter::idle(&mut bank, sequence).finish(&salt),
    };
    let bytes: Vec<u8> = bank.iter().flat_map(|word| word.to_le_bytes()).collect();
    let place = heap + head.bank_offset(0, bank_of(sequence));
    let bytes = bytes.get(..written.unwrap().bytes).unwrap();
    puddle.file.write_all_at(bytes, place).unwrap();
}

/// A program has ended in a section, with this pool open.
fn left(host: &Arc<Host>, pool: &str) -> Uuid {
    left_after(host, pool, |_| {})
}

/// The same, where it has done something before.
fn left_after(host: &Arc<Host>, pool: &str, before: impl FnOnce(&Embedded)) -> Uuid {
    let program = host.client().unwrap();
    program
        .create_pool(pool, &PoolSpec::new(EngineKind::Hybrid))
        .unwrap();
    before(&program);
    let puddle = program.create_puddle(PuddleOwner::Client, PuddleKind::Sections, UNIT);
    record(&puddle.unwrap(), program.id(), 1, true);
    host.recover_client(program.id()).unwrap();
    program.id()
}

struct Store {
    _directory: tempfile::TempDir,
    host: Arc<Host>,
}

impl Store {
    fn new() -> Store {
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let host = Host::create(&directory.path().join("store"), &CreateOptions::default());
        Store {
            host: host.unwrap(),
            _directory: directory,
        }
    }

    /// What code of a client gets that asks as any client does. Whether it has said that all is done, and has closed.
    fn answer(&self, of: Uuid, space: u64, code: impl FnOnce(&Remote)) -> (bool, bool) {
        let (client, liveness) = self.host.client_elsewhere(user_of(&self.host, of)).unwrap();
        let id = client.id();
        let mut session = Session {
            client,
            of,
            pools: Vec::new(),
            space,
            has_said: false,
            has_closed: false,
        };
        let (ours, its) = Socket::pair().unwrap();
        thread::scope(|scope| {
            let answering = scope.spawn(|| session.answer(&ours, &liveness));
            let remote = Remote::by(Way::given(its), Waiting::default()).unwrap();
            code(&remote);
            drop(remote);
            answering.join().unwrap().unwrap();
        });
        if !session.has_closed || session.client.close().is_err() {
            self.host.recover_client(id).unwrap();
        }
        (session.has_said, session.has_closed)
    }
}

fn take_over(code: &Remote, of: Uuid) -> TakenOver {
    let left = code.interrupted().unwrap();
    assert_eq!(
        left.iter().map(|left| left.client).collect::<Vec<_>>(),
        [of]
    );
    code.take_over(of).unwrap()
}

#[test]
fn code_completes_what_it_was_started_for() {
    let store = Store::new();
    let [of, other] = ["heap", "other"].map(|pool| left(&store.host, pool));
    let ended = store.answer(of, 64 * UNIT, |code| {
        let taken = take_over(code, of);
        let pool = taken.pools[0].uuid;
        // Its pool may grow, and it has logs.
        code.create_puddle(PuddleOwner::Pool(pool), PuddleKind::Data, UNIT)
            .unwrap();
        let log = code
            .create_puddle(PuddleOwner::Client, PuddleKind::LogSpace, UNIT)
            .unwrap();
        code.register_log_space(log.uuid).unwrap();
        record(&taken.puddles[0], of, 2, false);
        code.sections_done(of).unwrap();
        code.close_pool(pool).unwrap();
        code.close().unwrap();
    });
    assert_eq!(ended, (true, true));
    let next = store.host.client().unwrap();
    assert_eq!(next.interrupted().unwrap()[0].client, other);
    next.open_pool("heap").unwrap();
}

#[test]
fn what_code_leaves_undone_waits_for_the_next_one() {
    let store = Store::new();
    let of = left(&store.host, "heap");
    let mut refused = false;
    let ended = store.answer(of, 64 * UNIT, |code| {
        take_over(code, of);
        // It says that all is done, and that is not so.
        refused = matches!(
            code.sections_done(of),
            Err(Error::PoolInterrupted { sections: 1, .. })
        );
    });
    assert!(refused);
    assert_eq!(ended, (false, false));
    let completed = store.answer(of, 64 * UNIT, |code| {
        let taken = take_over(code, of);
        record(&taken.puddles[0], of, 2, false);
        code.sections_done(of).unwrap();
    });
    // That it was killed then takes nothing back.
    assert_eq!(completed, (true, false));
    store.host.client().unwrap().open_pool("heap").unwrap();
}

/// Another pool, what others have left, what concerns the whole store, and more room than it may have.
#[test]
fn code_is_answered_nothing_else() {
    let store = Store::new();
    let [of, other] = ["heap", "other"].map(|pool| left(&store.host, pool));
    let owner = store.host.client().unwrap();
    let theirs = owner
        .create_pool("theirs", &PoolSpec::new(EngineKind::Hybrid))
        .unwrap();
    let pages = owner
        .create_puddle(PuddleOwner::Pool(theirs.uuid), PuddleKind::Data, UNIT)
        .unwrap();
    store.answer(of, 2 * UNIT, |code| {
        let pool = take_over(code, of).pools[0].uuid;
        let spec = PoolSpec::new(EngineKind::Hybrid);
        let asked: Vec<(&str, Result<()>)> = vec![
            ("open", code.open_pool("theirs").map(drop)),
            ("open its own", code.open_pool("heap").map(drop)),
            ("read", code.read_pool("theirs").map(drop)),
            ("look", code.look_at_pool("theirs").map(drop)),
            ("make", code.create_pool("new", &spec).map(drop)),
            ("list", code.pools().map(drop)),
            ("take over", code.take_over(other).map(drop)),
            ("end others' sections", code.sections_done(other)),
            ("abandon", code.abandon_sections("heap").map(drop)),
            ("give up", code.give_up("theirs").map(drop)),
            ("accept", code.accept_quarantined("theirs")),
            ("try again", code.retry_quarantined("theirs").map(drop)),
            ("registry", code.registry().map(drop)),
            ("logs", code.logs().map(drop)),
            ("types", code.types().map(drop)),
            ("lost files", code.lost_files().map(drop)),
            ("other files", code.stray_files().map(drop)),
            ("whose", code.pool_at(theirs.root.address).map(drop)),
            ("mode", code.set_mode("heap", 0o666)),
            ("owner", code.set_owner("heap", Some(1), None)),
            ("revoke", code.revoke_pool("theirs")),
            ("move", code.make_way()),
            ("clients", code.clients().map(drop)),
            ("recovery", code.recovery().map(drop)),
            (
                "files",
                code.open_puddles(theirs.uuid, &[pages.uuid]).map(drop),
            ),
            ("file", code.reopen_puddle(pages.uuid).map(drop)),
            ("remove", code.remove_puddle(pages.uuid)),
            ("close", code.close_pool(theirs.uuid)),
            (
                "grow",
                code.create_puddle(PuddleOwner::Pool(theirs.uuid), PuddleKind::Data, UNIT)
                    .map(drop),
            ),
            (
                "sections",
                code.create_puddle(PuddleOwner::Client, PuddleKind::Sections, UNIT)
                    .map(drop),
            ),
            (
                "room",
                code.create_puddle(PuddleOwner::Pool(pool), PuddleKind::Data, 3 * UNIT)
                    .map(drop),
            ),
        ];
        for (what, answer) in asked {
            assert!(answer.is_err(), "{what}");
        }
        let grow = || code.create_puddle(PuddleOwner::Pool(pool), PuddleKind::Data, UNIT);
        let made = [grow().unwrap().uuid, grow().unwrap().uuid];
        let error = grow().unwrap_err().to_string();
        assert!(error.contains("may have 0 more (the limit"), "{error}");
        for puddle in made {
            code.remove_puddle(puddle).unwrap();
        }
    });
    assert_eq!(owner.pools().unwrap().len(), 3);
    assert_eq!(owner.interrupted().unwrap().len(), 2);
    owner.open_puddles(theirs.uuid, &[pages.uuid]).unwrap();
}

/// Code that greets, sends its own end of the socket to the bell, where nobody takes it, and ends.
#[derive(Debug)]
struct LeavesItsSocket;

impl Runner for LeavesItsSocket {
    fn run(&self, _: &Code, socket: OwnedFd, _: &Limits) -> io::Result<Ended> {
        let socket = Socket::over(socket)?;
        let hello = Hello {
            greeting: GREETING,
            from: VERSION,
            to: VERSION,
            features: FEATURES,
            client: None,
        };
        socket.send(Frame::request(0), &message::encode(&hello), &[])?;
        let welcome = socket.receive(REQUEST_MAX, 2)?.unwrap();
        let bell = Socket::over(welcome.files.into_iter().next_back().unwrap())?;
        bell.send(Frame::note(), b"", &[socket.descriptor()?])?;
        Ok(Ended::Done)
    }
}

#[test]
fn an_end_that_code_has_left_in_a_message_holds_nobody_up() {
    let store = Store::new();
    let of = left(&store.host, "heap");
    let (tells, ended) = std::sync::mpsc::channel();
    let host = store.host.clone();
    thread::spawn(move || {
        let code = Code::copied(b"code", Hash::of(b"code")).unwrap();
        let limits = Limits::default();
        let _ = tells.send(complete_with(&code, &host, of, &LeavesItsSocket, &limits));
    });
    let ended = ended.recv_timeout(Duration::from_secs(20));
    assert!(matches!(ended, Ok(Err(NotCompleted::NotSaid))), "{ended:?}");
}

/// It is killed so often after it has taken the sections over and made a puddle, and then it completes them. Or it does
/// not begin as often.
#[derive(Debug, Default)]
struct KilledTimes {
    left: AtomicU32,
    started: AtomicU32,
    /// It does not begin.
    is_full: bool,
    /// What it may make yet, in the end.
    space: AtomicU64,
    /// The milliseconds that it has yet, in the end.
    time: AtomicU64,
}

impl Runner for KilledTimes {
    fn run(&self, _: &Code, socket: OwnedFd, limits: &Limits) -> io::Result<Ended> {
        self.started.fetch_add(1, Ordering::Relaxed);
        self.space.store(limits.space, Ordering::Relaxed);
        let time = limits.time.as_millis() as u64;
        self.time.store(time, Ordering::Relaxed);
        if self.is_full && self.left.load(Ordering::Relaxed) > 0 {
            self.left.fetch_sub(1, Ordering::Relaxed);
            return Err(io::Error::from_raw_os_error(libc::EAGAIN));
        }
        let code = Remote::by(Way::given(Socket::over(socket)?), Waiting::default()).unwrap();
        let of = code.interrupted().unwrap()[0].client;
        let taken = code.take_over(of).unwrap();
        if self.left.load(Ordering::Relaxed) > 0 {
            self.left.fetch_sub(1, Ordering::Relaxed);
            let pool = PuddleOwner::Pool(taken.pools[0].uuid);
            code.create_puddle(pool, PuddleKind::Data, UNIT).unwrap();
            thread::sleep(Duration::from_millis(2));
            let told = String::new();
            return Ok(Ended::Signalled {
                signal: libc::SIGKILL,
                told,
            });
        }
        record(&taken.puddles[0], of, 2, false);
        code.sections_done(of).unwrap();
        code.close().unwrap();
        Ok(Ended::Done)
    }
}

#[test]
fn code_that_is_killed_is_started_again_and_not_for_ever() {
    let store = Store::new();
    let deposit = |program: &Embedded| {
        let puddle = program.create_puddle(PuddleOwner::Client, PuddleKind::Code, UNIT);
        let (puddle, bytes) = (puddle.unwrap(), b"code");
        let heap = heap_offset(puddle.size);
        let mut all = code::Head::of(bytes, b"").encode().to_vec();
        all.extend(bytes);
        puddle.file.write_all_at(&all, heap).unwrap();
    };
    // What the system had no room for was no start.
    let cases = [
        ("often", 9, STARTS_MAX, false),
        ("twice", 2, 3, false),
        ("full", 4, 5, true),
    ];
    for (pool, left, started, is_full) in cases {
        let of = left_after(&store.host, pool, deposit);
        let runner = KilledTimes {
            left: left.into(),
            is_full,
            ..KilledTimes::default()
        };
        let limits = Limits::default();
        let completed = complete(&store.host, of, &runner, &limits);
        // All starts together take no more than one may.
        let made = if is_full { 0 } else { 2 * UNIT };
        assert_eq!(runner.space.into_inner(), limits.space - made);
        assert!(Duration::from_millis(runner.time.into_inner()) < limits.time);
        assert_eq!(runner.started.into_inner(), started);
        let opened = store.host.client().unwrap().open_pool(pool).map(drop);
        match pool {
            "twice" | "full" => {
                completed.unwrap();
                opened.unwrap();
            }
            _ => {
                completed.unwrap_err();
                let error = opened.unwrap_err().to_string();
                assert!(error.contains("it was killed"), "{error}");
            }
        }
    }
}

/// It says that it has let go of its pool, and has it still.
#[derive(Debug)]
struct WritesOn {
    host: Arc<Host>,
}

impl Runner for WritesOn {
    fn run(&self, _: &Code, socket: OwnedFd, _: &Limits) -> io::Result<Ended> {
        let code = Remote::by(Way::given(Socket::over(socket)?), Waiting::default()).unwrap();
        let of = code.interrupted().unwrap()[0].client;
        let taken = code.take_over(of).unwrap();
        let is_busy = || {
            let opened = self.host.client().unwrap().open_pool("heap");
            matches!(opened, Err(Error::PoolBusy { .. }))
        };
        record(&taken.puddles[0], of, 2, false);
        code.sections_done(of).unwrap();
        assert!(is_busy());
        code.close_pool(taken.pools[0].uuid).unwrap();
        assert!(is_busy());
        code.close().unwrap();
        assert!(is_busy());
        Ok(Ended::Done)
    }
}

#[test]
fn nobody_has_a_pool_before_the_process_of_its_code_has_ended() {
    let store = Store::new();
    let of = left(&store.host, "heap");
    let code = Code::copied(b"code", Hash::of(b"code")).unwrap();
    let host = store.host.clone();
    let runner = WritesOn { host };
    complete_with(&code, &store.host, of, &runner, &Limits::default()).unwrap();
    store.host.client().unwrap().open_pool("heap").unwrap();
}

const IS_CODE: &str = "DURUM_TEST_IS_CODE";
/// How long the code lives on.
const LONGER: Duration = Duration::from_millis(500);

/// What the next test starts: it has the pool, and is gone after a while. Nothing of it is tried where nobody does.
#[test]
fn be_the_code() {
    if std::env::var_os(IS_CODE).is_none() {
        return;
    }
    let socket = Socket::over(std::io::stdin().as_fd().try_clone_to_owned().unwrap()).unwrap();
    let code = Remote::by(Way::given(socket), Waiting::default()).unwrap();
    let left = code.interrupted().unwrap();
    let _taken = code.take_over(left[0].client).unwrap();
    println!("\nit has the pool");
    thread::sleep(LONGER);
    std::process::exit(0);
}

/// One that is gone before its code is.
#[derive(Debug)]
struct Killed;

impl Runner for Killed {
    fn run(&self, _: &Code, socket: OwnedFd, _: &Limits) -> io::Result<Ended> {
        let code = std::process::Command::new(std::env::current_exe()?)
            .args(["--exact", "completing::tests::be_the_code", "--nocapture"])
            .env(IS_CODE, "")
            .stdin(socket)
            .stdout(std::process::Stdio::piped())
            .spawn()?;
        let mut told = BufReader::new(code.stdout.unwrap()).lines();
        assert!(told.any(|line| line.unwrap() == "it has the pool"));
        Err(io::Error::other("it was killed"))
    }
}

/// Else whoever comes next would write what it writes, too.
#[test]
fn nobody_goes_on_before_code_has_ended_whose_runner_was_killed() {
    let store = Store::new();
    let of = left(&store.host, "heap");
    let code = Code::copied(b"code", Hash::of(b"code")).unwrap();
    let began = Instant::now();
    let error = complete_with(&code, &store.host, of, &Killed, &Limits::default());
    assert!(matches!(error, Err(NotCompleted::NotStarted(_))));
    assert!(began.elapsed() >= LONGER);
    let next = store.host.client().unwrap();
    assert_eq!(next.interrupted().unwrap()[0].client, of);
    next.take_over(of).unwrap();
}
