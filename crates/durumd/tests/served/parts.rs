//! What clients do, each in a process of its own: a counter in a pool, changed when told to.

use std::io::BufRead;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use durum::{Engine, Pool, PoolOptions, Store, StoreOptions};
use durum_format::{EngineKind, Uuid};
use durum_protocol::{Answer, Failure, Request};
use durum_remote::Remote;
use durum_service::Service;

use crate::strangers::Raw;
use crate::support::{ENGINE, PART, STORE, USER};

fn say(what: impl std::fmt::Display) {
    println!("client: {what}");
}

fn engine() -> Engine {
    match std::env::var(ENGINE).unwrap().as_str() {
        "hybrid" => Engine::Hybrid,
        "twin" => Engine::Twin,
        _ => Engine::Shadow,
    }
}

/// Gives up root's rights for those of a user and its groups.
pub fn become_user(user: &str) {
    let numbers: Vec<u32> = user
        .split(',')
        .filter_map(|part| part.parse().ok())
        .collect();
    let [uid, gid, groups @ ..] = numbers.as_slice() else {
        return;
    };
    // SAFETY: the pointer is to as many numbers as the length says.
    unsafe {
        assert_eq!(libc::setgroups(groups.len(), groups.as_ptr()), 0);
        assert_eq!(libc::setgid(*gid), 0);
        assert_eq!(libc::setuid(*uid), 0);
    }
}

/// The socket that the store's address names.
fn socket() -> PathBuf {
    let address = std::env::var(STORE).unwrap();
    address.strip_prefix("durum+unix:").unwrap().into()
}

/// A client beside the store that is open, for what the store does not offer.
fn beside<T>(work: impl FnOnce(&Remote) -> durum_service::Result<T>) -> Result<T, String> {
    let remote = Remote::open(&socket(), Default::default()).map_err(|error| error.to_string())?;
    let done = work(&remote).map_err(|error| error.to_string());
    remote.close().unwrap();
    done
}

/// Asks again and again for descriptors without taking any. How many came, and how many answers were refusals of the
/// quota.
fn hoard(asked: u64) -> (usize, usize) {
    let (raw, _lock) = Raw::enter(&socket());
    let (pool, root) = (Uuid([7; 16]), Uuid([8; 16]));
    let make = Request::CreatePool {
        pool,
        root,
        name: "hoard".to_owned(),
        engine: EngineKind::Hybrid,
        root_size: 2 << 20,
    };
    assert!(matches!(raw.ask(&make), Answer::Pool { .. }));
    for number in 0..asked {
        let puddles = vec![root; 2];
        raw.send(number, &Request::OpenPuddles { pool, puddles });
    }
    std::thread::sleep(Duration::from_millis(300));
    let (mut taken, mut refused) = (0, 0);
    for _ in 0..asked {
        match raw.hear() {
            Answer::Puddles(puddles) => taken += puddles.len(),
            Answer::Failed(Failure::QuotaExceeded { quota, .. }) => {
                assert_eq!(quota, "descriptors");
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    // All were taken: there is room again.
    let puddles = vec![root];
    let more = raw.ask(&Request::OpenPuddles { pool, puddles });
    assert!(matches!(more, Answer::Puddles(_)), "{more:?}");
    assert_eq!(raw.ask(&Request::Close), Answer::Done);
    (taken, refused)
}

/// Two counters that are always equal, in a root of their own.
struct Counters {
    pool: Pool,
    at: *mut u64,
}

// SAFETY: the place is the pool's, which any thread may use, and one does at a time.
unsafe impl Send for Counters {}

impl Counters {
    fn of(pool: Pool) -> durum::Result<Counters> {
        let at = pool.root::<[u64; 2]>()?.cast::<u64>();
        Ok(Counters { pool, at })
    }

    fn values(&self) -> (u64, u64) {
        // SAFETY: the root is two numbers, and this process alone uses it.
        unsafe { (self.at.read_volatile(), self.at.add(1).read_volatile()) }
    }

    fn add(&self) -> durum::Result<()> {
        self.pool.transaction(|tx| {
            let (one, other) = self.values();
            // SAFETY: as above.
            unsafe {
                tx.set(self.at, one + 1)?;
                tx.set(self.at.add(1), other + 1)
            }
        })
    }
}

#[test]
#[ignore = "it is a client that other tests start"]
fn client() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    become_user(&std::env::var(USER).unwrap());
    let store = match Store::open(std::env::var(STORE).unwrap(), StoreOptions::new()) {
        Ok(store) => Arc::new(store),
        Err(error) => return say(format!("no store: {error}")),
    };
    let options = PoolOptions::new().engine(engine());
    let mut counters = None;
    let (stops, mut work) = (Arc::new(AtomicBool::new(false)), None::<JoinHandle<u64>>);
    let (mut read, mut looking) = (Vec::new(), Vec::new());
    say("here");
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "open" => match store
                .open_or_create_pool(words[1], options.clone())
                .and_then(Counters::of)
            {
                Ok(open) => {
                    counters = Some(open);
                    let (one, other) = counters.as_ref().unwrap().values();
                    say(format!("{one} {other}"));
                }
                Err(error) => say(error),
            },
            // For reading only, as long as the process lives.
            "read" => match store.open_pool(words[1], PoolOptions::new().read_only(true)) {
                Ok(pool) => {
                    let counters = Counters::of(pool).unwrap();
                    let (one, other) = counters.values();
                    say(format!("{one} {other}"));
                    read.push(counters);
                }
                Err(error) => say(error),
            },
            // As the crash left it, as long as the process lives.
            "look" => {
                let remote = Remote::open(&socket(), Default::default()).unwrap();
                match remote.look_at_pool(words[1]) {
                    Ok(_) => say("looks"),
                    Err(error) => say(error),
                }
                looking.push(remote);
            }
            "retry" => match beside(|remote| remote.retry_quarantined(words[1])) {
                Ok(report) => say(format!("{} are invalid", report.quarantined.len())),
                Err(error) => say(error),
            },
            "accept" => match beside(|remote| remote.accept_quarantined(words[1])) {
                Ok(()) => say("accepted"),
                Err(error) => say(error),
            },
            "unread" => {
                read.clear();
                say("read no more");
            }
            // What it has open for reading: by a transaction, and by a plain store.
            "change" => match read[0].pool.transaction(|_| Ok::<_, durum::Error>(())) {
                Ok(()) => say("changed"),
                Err(error) => say(error),
            },
            "poke" => {
                // SAFETY: none; it is to end the process.
                unsafe { read[0].at.write_volatile(1) };
                say("poked");
            }
            "add" => {
                let counters = counters.as_ref().unwrap();
                let times = 0..words[1].parse::<u64>().unwrap();
                match times.into_iter().try_for_each(|_| counters.add()) {
                    Ok(()) => say(counters.values().0),
                    Err(error) => say(error),
                }
            }
            // Works until it is told to stop, and opens another pool now and then.
            "work" => {
                let opened = store.open_or_create_pool(words[1], options.clone());
                let (store, options, side) =
                    (store.clone(), options.clone(), format!("{}-side", words[1]));
                let stop = stops.clone();
                work = Some(std::thread::spawn(move || {
                    let counters = Counters::of(opened.unwrap()).unwrap();
                    for round in 0_u64.. {
                        counters.add().unwrap();
                        if round % 16 == 0 {
                            say(format!("did {}", counters.values().0));
                        }
                        if round % 64 == 63 {
                            drop(store.open_or_create_pool(&side, options.clone()).unwrap());
                        }
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        std::thread::sleep(Duration::from_millis(100));
                    }
                    let (one, other) = counters.values();
                    assert_eq!(one, other);
                    one
                }));
            }
            "stop" => {
                stops.store(true, Ordering::Relaxed);
                match work.take().unwrap().join() {
                    Ok(value) => say(format!("worked {value}")),
                    Err(_) => say("failed"),
                }
            }
            // Sees no file of the store any more.
            "hide" => {
                std::os::unix::fs::chroot(words[1]).unwrap();
                say("hidden");
            }
            "grow" => {
                let pool = &counters.as_ref().unwrap().pool;
                match pool.reserve(words[1].parse::<u64>().unwrap()) {
                    Ok(()) => say("grown"),
                    Err(error) => say(error),
                }
            }
            // Leaves a transaction half done.
            "half" => {
                let counters = counters.as_ref().unwrap();
                let _ = counters.pool.transaction(|tx| -> durum::Result<()> {
                    // SAFETY: as above.
                    unsafe { tx.set(counters.at, 1 << 40)? };
                    say("half");
                    loop {
                        std::thread::sleep(Duration::from_secs(1));
                    }
                    #[allow(unreachable_code)]
                    Ok(())
                });
            }
            "remove" => match store.remove_pool(words[1]) {
                Ok(()) => say("removed"),
                Err(error) => say(error),
            },
            "close" => {
                counters = None;
                say("closed");
            }
            // Another process of the same descriptors lives on.
            "fork" => {
                // SAFETY: the child only sleeps.
                if unsafe { libc::fork() } == 0 {
                    // SAFETY: as above.
                    unsafe {
                        libc::sleep(30);
                        libc::_exit(0);
                    }
                }
                say("forked");
            }
            "exec" => {
                say("executes");
                panic!("{}", Command::new("sleep").arg("30").exec());
            }
            "pools" => say(store
                .pools()
                .map_or_else(|error| error.to_string(), |pools| pools.len().to_string())),
            "mode" => {
                let mode = u16::from_str_radix(words[2], 8).unwrap();
                match beside(|remote| remote.set_mode(words[1], mode)) {
                    Ok(()) => say("changed"),
                    Err(error) => say(error),
                }
            }
            "group" => {
                let gid = words[2].parse().unwrap();
                match beside(|remote| remote.set_owner(words[1], None, Some(gid))) {
                    Ok(()) => say("changed"),
                    Err(error) => say(error),
                }
            }
            // What can be reached without the service, and what a descriptor gives.
            "reach" => {
                let store = Path::new(words[1]);
                let is_closed = std::fs::read_dir(store).is_err()
                    && std::fs::read_dir(store.join("puddles")).is_err();
                let mine: Vec<PathBuf> = std::fs::read_dir("/proc/self/fd")
                    .unwrap()
                    .map(|entry| entry.unwrap().path())
                    .filter(|fd| std::fs::read_link(fd).is_ok_and(|file| file.starts_with(store)))
                    .collect();
                let is_opened_again = mine.iter().any(|fd| std::fs::File::open(fd).is_ok());
                say(format!(
                    "{is_closed} {} {is_opened_again}",
                    !mine.is_empty()
                ));
            }
            // A database with an older version of a key that somebody has yet.
            "versions" => {
                let options = durum_kv::Options::new().create_if_missing(true);
                let db = durum_kv::Db::open_in(&store, words[1], options).unwrap();
                db.put(b"key", b"old").unwrap();
                let snapshot = db.snapshot();
                db.put(b"key", b"new").unwrap();
                std::mem::forget((db, snapshot));
                say("both are there");
            }
            "asked" => say(store.is_asked_to_leave()),
            "kick" => {
                let name = words[1].to_owned();
                let grace = Duration::from_millis(words[2].parse().unwrap());
                let kicked = beside(|remote| {
                    let clients = remote.clients()?;
                    let holder = clients.iter().find(|client| client.holds.contains(&name));
                    match holder {
                        Some(client) => remote.kick(client.client, grace).map(|()| "kicked"),
                        None => Ok("no holder is seen"),
                    }
                });
                match kicked {
                    Ok(said) => say(said),
                    Err(error) => say(error),
                }
            }
            "hoard" => {
                let (taken, refused) = hoard(words[1].parse().unwrap());
                say(format!("{taken} {refused}"));
            }
            // A program that closes what it does not know.
            "closefrom" => {
                for fd in 3..1024 {
                    // SAFETY: a program may do that; nothing here uses its descriptors afterwards without an error.
                    unsafe { libc::close(fd) };
                }
                say("closed all");
                if words.get(1) == Some(&"stop") {
                    // SAFETY: it stops this process, until somebody lets it go on.
                    unsafe { libc::raise(libc::SIGSTOP) };
                }
            }
            other => panic!("{part} does not know {other}"),
        }
    }
    drop(counters);
    Arc::into_inner(store).unwrap().close().unwrap();
}
