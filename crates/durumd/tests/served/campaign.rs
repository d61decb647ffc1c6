//! A thousand programs, of which a hundred are killed while the others work, and the service ten times.

use std::path::Path;
use std::time::{Duration, Instant};

use durum_service::{CheckOptions, Embedded, OpenOptions, ReadOnlyStore, Service as _};

use crate::support::{Client, Served, until};

const ENGINES: [&str; 3] = ["shadow", "hybrid", "twin"];

fn number_of(variable: &str, default: usize) -> usize {
    std::env::var(variable).map_or(default, |text| text.parse().unwrap())
}

/// How often the service is killed.
const RESTARTS: usize = 10;

/// A small generator of numbers that do not repeat soon.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// What a process has of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Held {
    descriptors: usize,
    threads: usize,
}

fn held_by(pid: u32) -> Held {
    let count = |what| {
        std::fs::read_dir(format!("/proc/{pid}/{what}"))
            .unwrap()
            .count()
    };
    Held {
        descriptors: count("fd"),
        threads: count("task"),
    }
}

fn resident_kib(pid: u32) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.unwrap()
        .split_ascii_whitespace()
        .nth(1)
        .unwrap()
        .parse()
        .unwrap()
}

struct Works {
    client: Client,
    pool: String,
    engine: &'static str,
}

#[test]
#[ignore = "it takes minutes, and gigabytes of memory"]
fn a_thousand_programs_lose_nothing_when_a_hundred_and_the_service_are_killed() {
    let programs = number_of("DURUM_PROGRAMS", 1000);
    let killed = number_of("DURUM_KILLED", programs / 10);
    let time = Duration::from_secs(number_of("DURUM_SECONDS", 60) as u64);
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let mut served = Served::start();
    let mut first = served.client("first");
    first.expect("here");
    first.end();
    std::thread::sleep(Duration::from_secs(1));
    let idle = held_by(served.pid());
    let mut at_work: Vec<Works> = (0..programs)
        .map(|number| {
            let engine = ENGINES[number % ENGINES.len()];
            Works {
                client: served.client_on("works", engine),
                pool: format!("pool-{number}"),
                engine,
            }
        })
        .collect();
    for works in &mut at_work {
        works.client.expect("here");
        works.client.tell(&format!("work {}", works.pool));
    }
    for works in &mut at_work {
        works.client.expect("did 1");
    }
    eprintln!(
        "{programs} programs work; the service has {:?}",
        held_by(served.pid())
    );
    let mut dead = Vec::new();
    let began = Instant::now();
    for event in 0..killed {
        let due = time * event as u32 / killed as u32;
        std::thread::sleep(due.saturating_sub(began.elapsed()));
        // Ten of the programs are killed while there is no service.
        let is_services_turn = event * RESTARTS / killed != (event + 1) * RESTARTS / killed;
        if is_services_turn {
            served.kill();
        }
        let mut one = at_work.swap_remove(chance.below(at_work.len()));
        one.client.kill();
        dead.push(one);
        if is_services_turn {
            served.start_again();
        }
    }
    std::thread::sleep(time.saturating_sub(began.elapsed()));
    // What the dead have said that they did is there, for another program.
    for engine in ENGINES {
        let mut next = served.client_on("next", engine);
        next.expect("here");
        for one in dead.iter_mut().filter(|one| one.engine == engine) {
            let did = one.client.last_words();
            let did = did.map_or(1, |line| {
                line.strip_prefix("did ").unwrap().parse().unwrap()
            });
            let mut found = String::new();
            until("the pool is free", || {
                found = next.ask(&format!("open {}", one.pool));
                !found.contains("used by another program")
            });
            let (value, other) = found.split_once(' ').unwrap_or_else(|| panic!("{found}"));
            assert_eq!(value, other, "{}", one.pool);
            let value: u64 = value.parse().unwrap();
            // Sixteen are done between two words, and one may have committed without having said so.
            assert!(
                (did..=did + 17).contains(&value),
                "{}: {did}, {value}",
                one.pool
            );
        }
        next.end();
    }
    let lived = at_work.len();
    let mut commits = 0;
    for works in &mut at_work {
        works.client.tell("stop");
    }
    for works in &mut at_work {
        let worked = loop {
            let line = works.client.hear();
            match line.strip_prefix("worked ") {
                Some(worked) => break worked.parse::<u64>().unwrap(),
                None => assert!(line.starts_with("did "), "{}: {line}", works.pool),
            }
        };
        commits += worked;
    }
    for works in at_work {
        works.client.end();
    }
    let since = Instant::now();
    while held_by(served.pid()) != idle {
        let waited = since.elapsed();
        assert!(
            waited < Duration::from_secs(20),
            "{idle:?}, {:?}",
            held_by(served.pid())
        );
        std::thread::sleep(Duration::from_millis(10));
    }
    eprintln!(
        "{lived} programs lived and made {commits} commits; {} died; the service has {:?}, {} KiB of memory",
        dead.len(),
        held_by(served.pid()),
        resident_kib(served.pid())
    );
    served.end();
    nothing_is_left(&served.store());
}

/// The store has its pools, and nothing of any client.
fn nothing_is_left(store: &Path) {
    assert!(ReadOnlyStore::open(store).unwrap().is_clean());
    let checked = durum_service::check(store, &CheckOptions::default()).unwrap();
    assert_eq!(checked.findings, []);
    assert_eq!(std::fs::read_dir(store.join("clients")).unwrap().count(), 0);
    let embedded = Embedded::open(store, OpenOptions::default()).unwrap();
    let puddles: u64 = embedded
        .pools()
        .unwrap()
        .iter()
        .map(|pool| pool.puddles)
        .sum();
    embedded.close().unwrap();
    let files = std::fs::read_dir(store.join("puddles")).unwrap().count();
    assert_eq!(files as u64, puddles);
}
