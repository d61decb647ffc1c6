//! A program that observes itself: who may ask, what is told, and that nobody is held up.

use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use durum::{Engine, Pool, Store, StoreOptions, Uuid};
use durum_protocol::Frame;
use durum_protocol::frame::Kind;
use durum_protocol::message;
use durum_protocol::watching::{Numbers, Question, SHOWN, Told, Why};
use durum_remote::run_directory;
use durum_remote::socket::Socket;
use durum_remote::watcher::{self, Watched};

use crate::fixture::*;
use crate::support::{self, pool_options};

fn observed() -> Fixture {
    Fixture::with(StoreOptions::new().observe(true), pool_options())
}

fn uuid(fixture: &Fixture) -> Uuid {
    fixture.store.as_ref().unwrap().info().uuid
}

fn place(fixture: &Fixture) -> &Path {
    let store = fixture.store.as_ref().unwrap();
    store.observed_at().expect("it answers nobody")
}

fn user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The one program that has the store open.
fn watch(store: Uuid) -> Watched {
    let mut all = watcher::find(store, user());
    assert_eq!(all.len(), 1);
    all.remove(0)
}

fn numbers(watched: &mut Watched) -> Numbers {
    match watched.ask(&Question::Numbers).unwrap() {
        Told::Numbers(numbers) => numbers,
        told => panic!("{told:?}"),
    }
}

fn number(numbers: &Numbers, name: &str) -> u64 {
    let found = numbers.all.iter().find(|number| number.name == name);
    found.unwrap_or_else(|| panic!("no {name}")).values[0]
}

fn commit(pool: &Pool) {
    let root = pool.root::<Root>().unwrap();
    pool.transaction(|tx| unsafe {
        tx.add(root)?;
        (*root).count += 1;
        Ok::<_, durum::Error>(())
    })
    .unwrap();
}

#[test]
fn who_watches_sees_what_is_counted() {
    let fixture = observed();
    commit(fixture.pool());
    let socket = fs::symlink_metadata(place(&fixture)).unwrap();
    assert!(socket.file_type().is_socket());
    assert_eq!(socket.mode() & 0o777, 0o600);
    let directory = fs::metadata(place(&fixture).parent().unwrap()).unwrap();
    assert_eq!(directory.mode() & 0o777, 0o700);

    let mut watched = watch(uuid(&fixture));
    assert_eq!(watched.pid, std::process::id());
    let before = numbers(&mut watched);
    for _ in 0..10 {
        commit(fixture.pool());
    }
    let after = numbers(&mut watched);
    let grown = |name| number(&after, name) - number(&before, name);
    // Other tests run in this process.
    assert!(grown("transactions") >= 10, "{after:?}");
    assert!(grown("fences") >= 10, "{after:?}");
    assert!(after.open_us > before.open_us);
    assert_eq!(after.store, uuid(&fixture));
    let pool = fixture.pool();
    assert_eq!(after.pools.len(), 1);
    assert_eq!(after.pools[0].name, "pool");
    assert_eq!(after.pools[0].engine, pool.engine());
    let usage = pool.usage().unwrap();
    assert_eq!(number(&after, "pool_bytes"), usage.bytes as u64);
    assert_eq!(number(&after, "pool_free_bytes"), usage.free_bytes as u64);
    if crate::support::has_logs() && pool.engine() == durum::Engine::Shadow {
        assert!(number(&after, "log_bytes") > 0);
        assert!(number(&after, "shadow_records") >= 11);
    }
}

#[test]
fn nobody_answers_who_was_not_asked_to_or_has_closed() {
    let fixture = Fixture::new();
    assert_eq!(fixture.store.as_ref().unwrap().observed_at(), None);
    assert!(watcher::find(uuid(&fixture), user()).is_empty());

    let mut fixture = observed();
    let (store, place) = (uuid(&fixture), place(&fixture).to_owned());
    let mut watched = watch(store);
    numbers(&mut watched);
    fixture.pool = None;
    fixture.store = None;
    assert!(!place.exists());
    watched.ask(&Question::Numbers).unwrap_err();
    assert!(watcher::find(store, user()).is_empty());
}

/// Whoever asks may hold the last reference for a moment.
#[test]
fn a_store_is_closed_when_its_last_handle_is_gone_whoever_watches() {
    let mut fixture = observed();
    let (store, done) = (uuid(&fixture), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    for mut watched in watcher::find(store, user()) {
                        // It may close meanwhile.
                        while watched.ask(&Question::Numbers).is_ok()
                            && !done.load(Ordering::Relaxed)
                        {}
                    }
                }
            });
        }
        for _ in 0..10 {
            commit(fixture.pool());
            fixture.pool = None;
            fixture.store = None;
            let again = Store::open(
                fixture.dir.path().join("store"),
                StoreOptions::new().observe(true),
            );
            let again = again.unwrap();
            fixture.pool = Some(again.open_pool("pool", pool_options()).unwrap());
            // One that was just dropped can be removed.
            again.create_pool("other", pool_options()).unwrap();
            again.remove_pool("other").unwrap();
            fixture.store = Some(again);
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_watcher_that_does_not_read_holds_up_nobody() {
    let mut fixture = observed();
    let question = message::encode(&Question::Numbers);
    let deaf: Vec<Socket> = (0..20)
        .map(|_| {
            let socket = Socket::connect(place(&fixture)).unwrap();
            // Until nothing more is taken of it.
            let limit = Some(Duration::from_millis(20));
            socket.wait_at_most(limit, limit).unwrap();
            for number in 0..50 {
                if socket.send(Frame::request(number), &question, &[]).is_err() {
                    break;
                }
            }
            socket
        })
        .collect();
    // Others are answered, and the program goes on.
    let mut watched = watch(uuid(&fixture));
    for _ in 0..10 {
        commit(fixture.pool());
    }
    assert!(number(&numbers(&mut watched), "transactions") >= 10);
    let began = Instant::now();
    fixture.pool = None;
    fixture.store.take().unwrap().close().unwrap();
    assert!(began.elapsed() < Duration::from_secs(2));
    drop(deaf);
}

/// Whoever is neither the program's user nor root, whatever lets him reach the socket.
#[test]
fn another_user_is_not_answered() {
    use rustix::thread::{CapabilitySet, CapabilitySets, capabilities, set_capabilities};

    if user() != 0 {
        return eprintln!("skipped: only root can become another user");
    }
    let fixture = observed();
    let place = place(&fixture);
    let is_answered = |user: libc::uid_t| {
        // SAFETY: of this thread only, as the library's function is not called, and the thread ends.
        let set = unsafe { libc::syscall(libc::SYS_setresuid, -1, user, -1) };
        assert_eq!(set, 0);
        // Without this the directory would be closed to it.
        let own = capabilities(None).unwrap();
        let effective = own.effective | CapabilitySet::DAC_OVERRIDE;
        set_capabilities(None, CapabilitySets { effective, ..own }).unwrap();
        let socket = Socket::connect(place).unwrap();
        let limit = Some(Duration::from_secs(5));
        socket.wait_at_most(limit, limit).unwrap();
        let question = message::encode(&Question::Numbers);
        let asked = socket.send(Frame::request(1), &question, &[]);
        asked.is_ok() && matches!(socket.receive(1 << 20, 0), Ok(Some(_)))
    };
    let asked_by =
        |user| std::thread::scope(|scope| scope.spawn(|| is_answered(user)).join().unwrap());
    assert!(asked_by(0));
    assert!(!asked_by(65534));
    numbers(&mut watch(uuid(&fixture)));
}

#[test]
fn whatever_is_sent_the_next_one_is_answered() {
    let fixture = observed();
    let kinds = [Kind::Request, Kind::Answer, Kind::Note];
    for round in 0..60u8 {
        let socket = Socket::connect(place(&fixture)).unwrap();
        let bytes: Vec<u8> = (0..round).map(|at| at.wrapping_mul(round) ^ 0x5a).collect();
        let frame = Frame {
            kind: kinds[usize::from(round) % 3],
            ..Frame::request(7)
        };
        socket.send(frame, &bytes, &[]).unwrap();
        let bare = socket.descriptor().unwrap();
        let flags = rustix::net::SendFlags::NOSIGNAL;
        // It may have ended the connection.
        let _ = rustix::net::send(bare, &bytes, flags);
        if frame.kind == Kind::Request && round > 1 {
            let limit = Some(Duration::from_secs(5));
            socket.wait_at_most(limit, limit).unwrap();
            let told = socket.receive(100, 0).unwrap().unwrap();
            assert_eq!(told.bytes, message::encode(&Told::Unknown));
        }
    }
    numbers(&mut watch(uuid(&fixture)));
}

#[test]
fn pools_are_shown_in_a_directory_and_nowhere_else() {
    let fixture = observed();
    commit(fixture.pool());
    let scratch = tempfile::tempdir_in("/dev/shm").unwrap();
    let open = |path: &Path| fs::File::open(path).unwrap();
    let show = |pools: &[&str], file: fs::File| {
        let pools: Vec<String> = pools.iter().map(|name| (*name).to_owned()).collect();
        watch(uuid(&fixture)).show(&pools, file.as_fd()).unwrap()
    };
    let why = |told| match told {
        Told::NotShown { why, .. } => why,
        told => panic!("{told:?}"),
    };
    assert_eq!(show(&["pool"], open(scratch.path())), Told::Shown);
    let shown = scratch.path().join(SHOWN);
    assert!(fs::metadata(&shown).unwrap().is_dir());
    assert_eq!(fs::metadata(&shown).unwrap().mode() & 0o777, 0o700);
    // It is there.
    assert_eq!(why(show(&[], open(scratch.path()))), Why::Refused);
    assert_eq!(why(show(&["other"], open(scratch.path()))), Why::Refused);
    let file = scratch.path().join("file");
    fs::write(&file, b"").unwrap();
    assert_eq!(why(show(&[], open(&file))), Why::Refused);
    let pools = Vec::new();
    let told = watch(uuid(&fixture)).ask(&Question::Show { pools });
    assert_eq!(told.unwrap(), Told::Unknown);
    numbers(&mut watch(uuid(&fixture)));
}

#[test]
fn what_a_program_has_left_that_was_killed_is_removed() {
    let mut fixture = observed();
    let directory = run_directory::make().unwrap();
    let left = directory.join(format!("{}1.1", watcher::name_of(uuid(&fixture))));
    let young = directory.join(format!("{}2.1", watcher::name_of(uuid(&fixture))));
    for path in [&left, &young] {
        drop(Socket::listen(path).unwrap());
    }
    let old = rustix::fs::Timespec {
        tv_sec: 1_000_000_000,
        tv_nsec: 0,
    };
    let times = rustix::fs::Timestamps {
        last_access: old,
        last_modification: old,
    };
    rustix::fs::utimensat(rustix::fs::CWD, &left, &times, rustix::fs::AtFlags::empty()).unwrap();
    numbers(&mut watch(uuid(&fixture)));
    fixture.reopen(StoreOptions::new().observe(true));
    numbers(&mut watch(uuid(&fixture)));
    assert!(!left.exists());
    // One may be about to listen there.
    assert!(young.exists());
    fs::remove_file(young).unwrap();
}

/// Copies files and directories.
fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type().unwrap().is_dir() {
            true => copy(&from, &to),
            false => drop(fs::copy(&from, &to).unwrap()),
        }
    }
}

#[test]
fn opening_recovery_growth_and_checkpoints_are_spans() {
    use tracing_subscriber::filter::LevelFilter;
    use tracing_subscriber::fmt::format::FmtSpan;

    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = fs::File::create(dir.path().join("log")).unwrap();
    let log = tracing_subscriber::fmt()
        .with_max_level(LevelFilter::DEBUG)
        .with_span_events(FmtSpan::CLOSE)
        .with_ansi(false)
        .with_writer(std::sync::Mutex::new(file))
        .finish();
    let place = |name: &str| dir.path().join(name);
    tracing::subscriber::with_default(log, || {
        let store = Store::create(place("store"), StoreOptions::new()).unwrap();
        let pool = store.create_pool("pool", pool_options()).unwrap();
        commit(&pool);
        // More than its first puddle has.
        let more = pool.transaction(|tx| tx.alloc_bytes(&pool, 0, 5 << 20, 8).map(drop));
        more.unwrap();
        // As if the machine had stopped here.
        copy(&place("store"), &place("copy"));
        drop((pool, store));
        let copy = Store::open(place("copy"), StoreOptions::new()).unwrap();
        drop(copy.open_pool("pool", pool_options()).unwrap());
    });
    let told = fs::read_to_string(place("log")).unwrap();
    let is_shadow = matches!(support::engine(), Engine::Shadow);
    let checkpoint_ends = |line: &str| line.contains("checkpoint: ") && line.contains("time.busy");
    // Other engines have none.
    assert_eq!(told.lines().any(checkpoint_ends), is_shadow, "{told}");
    for span in [
        "create_store{",
        "create_pool{pool=\"pool\"}",
        "open_store{",
        "open_pool{pool=\"pool\"}",
        ":recover_client{",
        "grow_pool{pool=\"pool\" bytes=",
        "grow_log",
    ] {
        let ends = |line: &str| line.contains(span) && line.contains("time.busy");
        assert!(told.lines().any(ends), "{span}: {told}");
    }
}

/// A question is short, so it comes in one packet: one that comes byte by byte would keep others waiting.
#[test]
fn a_question_in_parts_is_not_waited_for() {
    let fixture = observed();
    let pools = vec!["pool".repeat(20)];
    let question = message::encode(&Question::Show { pools });
    let socket = Socket::connect(place(&fixture)).unwrap();
    let frame = Frame {
        more: true,
        length: question.len() as u32,
        ..Frame::request(1)
    };
    let mut parts = question.chunks(1).map(|part| {
        std::thread::sleep(Duration::from_millis(20));
        let packet = [&frame.encode()[..], part].concat();
        let flags = rustix::net::SendFlags::NOSIGNAL;
        rustix::net::send(socket.descriptor().unwrap(), &packet, flags)
    });
    assert!(parts.by_ref().take(20).any(|sent| sent.is_err()));
    numbers(&mut watch(uuid(&fixture)));
}
