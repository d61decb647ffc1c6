//! What clients do, each in a process of its own: a counter in a pool, changed when told to.

use std::io::BufRead;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use durum::{Engine, Pool, PoolOptions, Store, StoreOptions};

use crate::support::{ENGINE, PART, STORE};

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

/// Two counters that are always equal, in a root of their own.
struct Counters {
    pool: Pool,
    at: *mut u64,
}

// SAFETY: the place is the pool's, which any thread may use, and one does at a time.
unsafe impl Send for Counters {}

impl Counters {
    fn of(pool: Pool) -> Counters {
        let at = pool.root::<[u64; 2]>().unwrap().cast::<u64>();
        Counters { pool, at }
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
    let store = match Store::open(std::env::var(STORE).unwrap(), StoreOptions::new()) {
        Ok(store) => Arc::new(store),
        Err(error) => return say(format!("no store: {error}")),
    };
    let options = PoolOptions::new().engine(engine());
    let mut counters = None;
    let (stops, mut work) = (Arc::new(AtomicBool::new(false)), None::<JoinHandle<u64>>);
    let mut read = Vec::new();
    say("here");
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "open" => match store.open_or_create_pool(words[1], options.clone()) {
                Ok(pool) => {
                    counters = Some(Counters::of(pool));
                    let (one, other) = counters.as_ref().unwrap().values();
                    say(format!("{one} {other}"));
                }
                Err(error) => say(error),
            },
            // For reading only, as long as the process lives.
            "read" => match store.open_pool(words[1], PoolOptions::new().read_only(true)) {
                Ok(pool) => {
                    let counters = Counters::of(pool);
                    let (one, other) = counters.values();
                    say(format!("{one} {other}"));
                    read.push(counters);
                }
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
                    let counters = Counters::of(opened.unwrap());
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
