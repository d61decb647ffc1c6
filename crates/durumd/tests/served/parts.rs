//! What clients do, each in a process of its own: a counter in a pool, changed when told to.

use std::io::BufRead;
use std::os::unix::process::CommandExt;
use std::process::Command;

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
    let part = std::env::var(PART).unwrap();
    let store = match Store::open(std::env::var(STORE).unwrap(), StoreOptions::new()) {
        Ok(store) => store,
        Err(error) => return say(format!("no store: {error}")),
    };
    let options = PoolOptions::new().engine(engine());
    let mut counters = None;
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
            "add" => {
                let counters = counters.as_ref().unwrap();
                let times = 0..words[1].parse::<u64>().unwrap();
                match times.into_iter().try_for_each(|_| counters.add()) {
                    Ok(()) => say(counters.values().0),
                    Err(error) => say(error),
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
                        std::thread::sleep(std::time::Duration::from_secs(1));
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
    store.close().unwrap();
}
