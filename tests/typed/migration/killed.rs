//! Processes that are killed while they migrate leave the old pool or the new one. The page cache survives it: power
//! cuts are those of `migrating::` of durum-service.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use durum::typed::*;
use durum::{Engine, Error};

use super::{ENGINES, TASKS, alone, assert_migrated, make, maps, one, two};

const DIRECTORY: &str = "DURUM_TEST_MIGRATED";

/// A process that migrates, and what it finds and leaves.
struct Killed {
    /// The test that is the process.
    process: &'static str,
    make: fn(&Path, Engine),
    /// Whether the pool is the new one, and whatever is to be said of either.
    judge: fn(&Path) -> bool,
}

impl Killed {
    /// Kills it after this time, if it did not end before. Gives how long it took until then.
    fn after(&self, path: &Path, after: Duration) -> Duration {
        let began = Instant::now();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([self.process, "--exact", "--ignored", "--test-threads=1"])
            .env(DIRECTORY, path)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        while began.elapsed() < after && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(50));
        }
        let _ = child.kill();
        child.wait().unwrap();
        began.elapsed()
    }

    fn often(&self, rounds: u32) {
        for engine in ENGINES {
            let (mut old, mut new, mut took) = (0, 0, Duration::from_millis(20));
            for round in 0..rounds {
                let (_alone, directory) = alone();
                let path = directory.path().join("store");
                (self.make)(&path, engine);
                // The first shows how long it takes to the end.
                let after = match round {
                    0 => Duration::from_secs(60),
                    round => took * (round * 7919 % 2000) / 1000,
                };
                let until = self.after(&path, after);
                if round == 0 {
                    took = until;
                }
                match (self.judge)(&path) {
                    true => new += 1,
                    false => old += 1,
                }
                let puddles = std::fs::read_dir(path.join("puddles")).unwrap().count();
                assert_eq!(puddles, 1, "nothing is left");
            }
            println!("{engine:?}: {old} old, {new} new, {took:?} to the end");
            let least = rounds / 50;
            assert!(old > least && new > least, "{old} old, {new} new");
        }
    }
}

/// The store, in the other process.
fn store() -> Option<PathBuf> {
    std::env::var_os(DIRECTORY).map(PathBuf::from)
}

#[test]
#[ignore = "the other process of a test below"]
fn process_that_migrates() {
    if let Some(path) = store() {
        two::P::migrate::<two::Entry>(path, two::migration()).unwrap();
    }
}

#[test]
#[ignore = "the other process of a test below"]
fn process_that_builds_maps_anew() {
    if let Some(path) = store() {
        maps::migrate(&path);
    }
}

/// As often on each engine: old or new, never else.
#[test]
#[ignore = "minutes; make test-long runs it"]
fn a_thousand_killed_migrations_leave_the_old_pool_or_the_new_one() {
    let killed = Killed {
        process: "migration::killed::process_that_migrates",
        make,
        judge: |path| match one::P::open::<one::Entry>(path, 0) {
            Ok(root) => {
                one::P::transaction(|j| assert_eq!(root.lock(j).by_number.len() as u64, TASKS))
                    .unwrap();
                root.close().unwrap();
                let report = durum_service::check(path, &Default::default()).unwrap();
                assert_eq!(report.findings, []);
                false
            }
            Err(error) => {
                assert!(matches!(error, Error::RootType { .. }), "{error}");
                assert_migrated(path);
                true
            }
        },
    };
    killed.often(1000);
}

#[test]
#[ignore = "minutes; make test-long runs it"]
fn killed_migrations_leave_old_maps_or_those_that_were_built() {
    let killed = Killed {
        process: "migration::killed::process_that_builds_maps_anew",
        make: maps::make,
        judge: maps::is_migrated,
    };
    killed.often(300);
}
