//! The service runs code that programs have deposited, to complete their sections. What such code does that completes
//! some, the tests of the compiler try; here it is code that does not.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use durum_format::code;
use durum_format::puddle::{PuddleKind, heap_offset};
use durum_protocol::{Answer, Request};
use durum_remote::Remote;
use durum_service::{EngineKind, Error, PoolSpec, PuddleOwner, Service};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

use crate::sections::{come, record};
use crate::strangers::Raw;
use crate::support::{BINARY, Served, until};

const UNIT: u64 = 2 << 20;

/// A static executable with this body of its `main`.
pub fn compiled(name: &str, body: &str) -> Vec<u8> {
    let text = format!("#include <stdio.h>\nint main(void) {{ {body} }}\n");
    compiled_text(name, &text, &["-static"])
}

/// An executable of this text.
pub fn compiled_text(name: &str, text: &str, options: &[&str]) -> Vec<u8> {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let source = place.with_extension("c");
    std::fs::write(&source, text).unwrap();
    let compiled = Command::new("cc")
        .args(["-O1", "-o"])
        .args([&place, &source])
        .args(options)
        .status();
    assert!(compiled.unwrap().success());
    std::fs::read(place).unwrap()
}

/// A program has ended in a section, with this pool open, and has deposited code before.
pub fn left(served: &Served, pool: &str, bytes: &[u8]) {
    let program = come(served);
    program
        .create_pool(pool, &PoolSpec::new(EngineKind::Hybrid))
        .unwrap();
    let size = (heap_offset(UNIT) + (code::HEAD_SIZE + bytes.len()) as u64).next_multiple_of(UNIT);
    let puddle = program
        .create_puddle(PuddleOwner::Client, PuddleKind::Code, size)
        .unwrap();
    let heap = heap_offset(puddle.size);
    let head = code::Head::of(bytes, b"").encode();
    puddle.file.write_all_at(&head, heap).unwrap();
    let place = heap + code::HEAD_SIZE as u64;
    puddle.file.write_all_at(bytes, place).unwrap();
    let sections = program.create_puddle(PuddleOwner::Client, PuddleKind::Sections, UNIT);
    record(&sections.unwrap(), program.info().client, 1, true);
}

/// Why nobody has completed what is left in a pool, as who opens it is told.
pub fn why_not(client: &Remote, pool: &str) -> Option<String> {
    match client.open_pool(pool) {
        Err(Error::PoolInterrupted { details, .. }) => details.not_completed,
        other => panic!("{other:?}"),
    }
}

#[test]
fn who_wants_the_pool_is_told_why_its_code_did_not_complete_it() {
    let served = Served::start();
    let fails = compiled("fails", "fputs(\"something is wrong\", stderr); return 3;");
    left(&served, "heap", &fails);
    let client = come(&served);
    let why = why_not(&client, "heap").unwrap();
    assert!(
        why.ends_with("it ended with code 3: \"something is wrong\""),
        "{why}"
    );
    let listed = client.interrupted().unwrap();
    assert_eq!(listed[0].not_completed.as_ref(), Some(&why));
    // It is not tried again, and what it says is not forgotten when others go.
    left(&served, "other", b"no executable");
    let other = why_not(&client, "other").unwrap();
    assert!(other.contains("its execution"), "{other}");
    assert_eq!(why_not(&client, "heap").unwrap(), why);
    let attempts = served
        .log()
        .matches("sections wait for their program")
        .count();
    assert_eq!(attempts, 2);
    // Somebody completes it after all.
    let gone = client.interrupted().unwrap();
    let gone = gone.iter().find(|left| left.pools == ["heap"]).unwrap();
    let taken = client.take_over(gone.client).unwrap();
    record(&taken.puddles[0], gone.client, 2, false);
    client.sections_done(gone.client).unwrap();
    come(&served).open_pool("other").unwrap_err();
    client.close().unwrap();
    come(&served).open_pool("heap").unwrap();
}

#[test]
fn nobody_waits_for_code_but_who_wants_its_pools() {
    let served = Served::start_with(&["--code-limit", "time=2"]);
    come(&served)
        .create_pool("free", &PoolSpec::new(EngineKind::Hybrid))
        .unwrap();
    left(&served, "heap", &compiled("loops", "for (;;) ;"));
    let client = come(&served);
    std::thread::scope(|scope| {
        let began = Instant::now();
        let waits = scope.spawn(|| why_not(&come(&served), "heap").unwrap());
        client.open_pool("free").unwrap();
        assert!(began.elapsed() < Duration::from_secs(1));
        let why = waits.join().unwrap();
        assert!(why.ends_with("it did not end within 2s"), "{why}");
        assert!(began.elapsed() >= Duration::from_secs(1));
    });
    let said = served.log();
    assert!(
        said.contains("more=\"--code-limit time=SECONDS\""),
        "{said}"
    );
}

/// Others want what it has open besides.
#[test]
fn who_is_gone_waits_for_no_code() {
    let served = Served::start_with(&["--code-limit", "time=10"]);
    let client = come(&served);
    for pool in ["free", "taken"] {
        client
            .create_pool(pool, &PoolSpec::new(EngineKind::Hybrid))
            .unwrap();
    }
    left(&served, "heap", &compiled("goes-on-for-long", "for (;;) ;"));
    client.close().unwrap();
    let open = |name: &str| Request::OpenPool {
        name: name.to_owned(),
    };
    let (raw, lock) = Raw::enter(&served.socket());
    assert!(matches!(raw.ask(&open("taken")), Answer::Pool { .. }));
    raw.send(2, &open("heap"));
    let client = come(&served);
    until("it waits", || {
        let clients = client.clients().unwrap();
        clients
            .iter()
            .any(|client| client.waits_for.as_deref() == Some("opening pool \"heap\""))
    });
    drop((raw, lock));
    let began = Instant::now();
    client.open_pool("taken").unwrap();
    let took = began.elapsed();
    assert!(took < Duration::from_secs(3), "{took:?}");
}

fn parent(pid: u32) -> Option<u32> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    parent.trim().parse().ok()
}

/// The process of code that a service has run: a child of a child of the runner, which is a child of the keeper,
/// which is a child of the service.
fn code_of(service: u32) -> Option<u32> {
    let pids = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    pids.find(|pid| {
        let is_code = std::fs::read(format!("/proc/{pid}/cmdline"))
            .is_ok_and(|words| words.starts_with(b"durum-code"));
        is_code && runner_of(*pid).and_then(parent).and_then(parent) == Some(service)
    })
}

/// The process of the runner that has started code.
fn runner_of(code: u32) -> Option<u32> {
    parent(code).and_then(parent)
}

/// The process that makes runners, as the service started it.
fn keeper_of(service: u32) -> u32 {
    children(service).into_iter().next().unwrap()
}

fn children(pid: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let children = children.split_whitespace().map(|pid| pid.parse().unwrap());
    children.collect()
}

fn kill(pid: u32) {
    // SAFETY: the process was started by a service of this test.
    assert_eq!(unsafe { libc::kill(pid as i32, libc::SIGKILL) }, 0);
}

/// Waits for code that another process runs than this one, if there was one.
fn until_code_runs(service: u32, before: Option<u32>) -> u32 {
    let mut code = None;
    until("the code runs", || {
        code = code_of(service).filter(|code| Some(*code) != before);
        code.is_some()
    });
    code.unwrap()
}

/// What runs is nobody's any more when the service is gone.
#[test]
fn code_ends_with_the_service_and_the_next_one_tries_again() {
    let mut served = Served::start();
    left(&served, "heap", &compiled("goes-on", "for (;;) ;"));
    for _ in 0..2 {
        let code = until_code_runs(served.pid(), None);
        served.kill();
        let place = format!("/proc/{code}");
        until("the code has ended", || !Path::new(&place).exists());
        served.start_again();
    }
}

/// As the system does where it has no memory left. Sections go on where the code has left them, as after any crash.
#[test]
fn code_that_is_killed_is_started_again() {
    let served = Served::start();
    left(&served, "heap", &compiled("is-killed", "for (;;) ;"));
    let client = come(&served);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| why_not(&come(&served), "heap").unwrap());
        let mut last = None;
        // Once with the process that has started it, once with the runner.
        for whom in [0, 1, 2] {
            let code = until_code_runs(served.pid(), last);
            let mut killed = code;
            for _ in 0..whom {
                killed = parent(killed).unwrap();
            }
            kill(killed);
            last = Some(code);
        }
        // Not for ever.
        let why = waits.join().unwrap();
        assert!(why.ends_with("the process that ran it was killed"), "{why}");
        // It ends with its runner, which may be told of first.
        until("the code has ended", || code_of(served.pid()).is_none());
    });
    client
        .create_pool("free", &PoolSpec::new(EngineKind::Hybrid))
        .unwrap();
    // The runner that has followed runs what comes next.
    left(&served, "next", &compiled("is-not-killed", "return 3;"));
    let why = why_not(&client, "next").unwrap();
    assert!(why.ends_with("it ended with code 3"), "{why}");
}

#[test]
fn no_code_is_run_where_none_is_wanted() {
    let served = Served::start_with(&["--no-code"]);
    left(&served, "heap", &compiled("unwanted", "return 3;"));
    let why = why_not(&come(&served), "heap").unwrap();
    assert!(why.ends_with("it was started with --no-code"), "{why}");
    assert_eq!(code_of(served.pid()), None);
}

/// A filter that has no Landlock, as kernels before it.
fn without_landlock() -> BpfProgram {
    let calls = [(libc::SYS_landlock_create_ruleset, Vec::new())];
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    let here = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let filter = SeccompFilter::new(calls.into(), SeccompAction::Allow, missing, here);
    filter.unwrap().try_into().unwrap()
}

/// Neither by the service nor by who opens the directory.
#[test]
fn no_code_is_run_that_the_kernel_cannot_keep_in_bounds() {
    let mut served = Served::prepare(Path::new("/dev/shm"));
    let mut service = Command::new(BINARY);
    let filter = without_landlock();
    // SAFETY: the filter was made before the fork.
    unsafe {
        service.pre_exec(move || seccompiler::apply_filter(&filter).map_err(std::io::Error::other))
    };
    served.start_by(&mut service);
    left(&served, "heap", &compiled("unbounded", "return 3;"));
    let client = come(&served);
    let why = why_not(&client, "heap").unwrap();
    assert!(
        why.contains("the service runs no code: this kernel cannot keep"),
        "{why}"
    );
    client
        .create_pool("free", &PoolSpec::new(EngineKind::Hybrid))
        .unwrap();
    client.close().unwrap();
    served.end();
    let opens = std::thread::scope(|scope| {
        let opens = || {
            seccompiler::apply_filter(&without_landlock()).unwrap();
            let store = durum::Store::open(served.store(), durum::StoreOptions::new()).unwrap();
            let error = store.open_pool("heap", durum::PoolOptions::default());
            store
                .open_pool("free", durum::PoolOptions::default())
                .unwrap();
            store.close().unwrap();
            error.unwrap_err().to_string()
        };
        scope.spawn(opens).join().unwrap()
    });
    assert!(
        opens.contains("its code is not run: this kernel cannot keep"),
        "{opens}"
    );
}

/// A runner that somebody has killed for good is told of, and costs nobody else anything.
#[test]
fn a_service_whose_runner_is_gone_goes_on() {
    let served = Served::start();
    let keeper = keeper_of(served.pid());
    // It makes the next one after the service is there.
    until("there is a runner", || !children(keeper).is_empty());
    let runners = children(keeper);
    kill(keeper);
    runners.into_iter().for_each(kill);
    left(&served, "heap", &compiled("unrun", "return 3;"));
    let client = come(&served);
    let why = why_not(&client, "heap").unwrap();
    assert!(why.contains("start the service again"), "{why}");
    client
        .create_pool("free", &PoolSpec::new(EngineKind::Hybrid))
        .unwrap();
}

/// Who opens the directory is the host then: a pool's opener has the code run, if that is wanted.
#[test]
fn who_opens_the_directory_has_code_run_that_the_service_has_not() {
    let mut served = Served::start_with(&["--no-code"]);
    let fails = compiled(
        "fails-here",
        "fputs(\"something is wrong\", stderr); return 3;",
    );
    left(&served, "heap", &fails);
    let client = come(&served);
    assert!(why_not(&client, "heap").unwrap().contains("--no-code"));
    client.close().unwrap();
    served.end();
    for runs in [false, true] {
        let options = durum::StoreOptions::new().run_code(runs);
        let store = durum::Store::open(served.store(), options).unwrap();
        for _ in 0..2 {
            let opened = store.open_pool("heap", durum::PoolOptions::default());
            let Err(durum::Error::Store(Error::PoolInterrupted { details, .. })) = opened else {
                panic!("{opened:?}");
            };
            let why = details.not_completed;
            match runs {
                true => assert!(why.unwrap().ends_with("code 3: \"something is wrong\"")),
                false => assert_eq!(why, None),
            }
        }
        store.close().unwrap();
    }
}

/// Else the one that comes second fails, and is told of.
#[test]
fn one_thread_of_a_program_has_code_run_and_others_wait_for_it() {
    let mut served = Served::start_with(&["--no-code"]);
    let fails = compiled(
        "fails-sometime",
        "extern long getrandom(void *, unsigned long, unsigned); extern int usleep(unsigned); \
         unsigned any; getrandom(&any, sizeof any, 0); usleep(200000 + any % 300000); \
         fprintf(stderr, \"%u\", any); return 3;",
    );
    left(&served, "heap", &fails);
    let client = come(&served);
    assert!(why_not(&client, "heap").unwrap().contains("--no-code"));
    client.close().unwrap();
    served.end();
    let store = durum::Store::open(served.store(), durum::StoreOptions::new()).unwrap();
    let open = || store.open_pool("heap", durum::PoolOptions::default());
    let told = std::thread::scope(|scope| {
        let openers = [scope.spawn(open), scope.spawn(open)];
        openers.map(|opener| opener.join().unwrap().unwrap_err().to_string())
    });
    assert!(told[0].contains("it ended with code 3"), "{told:?}");
    assert_eq!(told[0], told[1]);
    store.close().unwrap();
}
