//! A process opens a store beside the one that it is a copy of, and is killed before one of its own steps: before a
//! system call that changes a file. Whoever comes next finds all data, and goes on.
//!
//! The page cache survives it, so no missing sync shows here: `moving::` of durum-service cuts the power.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use durum::{Domain, Engine, PoolOptions, Store, StoreOptions};
use durum_service::{Embedded, OpenOptions, Service, Stage};

use crate::fixture::{ENGINES, Opened, Random, WAYS, copy, domains, make_movable, try_open};
use crate::killer::Killer;
use crate::support::{command, directory};

const MOVING: usize = 8;
/// The word of each block that the process increments.
const COUNT: usize = 5;
/// Steps between those that are tried by each run of the tests; `--ignored` tries all.
const STRIDE: usize = 41;
const READY: &str = "ready to go";

/// Starts a process of the tests that [waits](wait_to_go): all its threads are there, and one can follow them.
pub fn start_and_wait(name: &str, dir: &Path) -> Child {
    let mut command = command(name, dir);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let said = BufReader::new(child.stdout.as_mut().unwrap());
    let mut lines = said.lines();
    while !lines.next().unwrap().unwrap().contains(READY) {}
    child
}

pub fn let_go(child: &mut Child) {
    child.stdin.take().unwrap().write_all(b"go\n").unwrap();
}

/// The other side of this.
pub fn wait_to_go() {
    println!("{READY}");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

/// When the process ends.
enum End {
    BeforeStep(u64),
    After(Duration),
}

/// What a scene is played with.
#[derive(Clone, Copy, Debug)]
struct Scene {
    engine: Engine,
    domain: usize,
    way: usize,
}

impl Scene {
    fn of(engine: Engine, number: u64) -> Scene {
        Scene {
            engine,
            domain: number as usize % 3,
            way: number as usize / 3 % 3,
        }
    }

    fn domain(self) -> Domain {
        domains()[self.domain]
    }
}

fn open(dir: &Path, scene: Scene) -> Opened {
    try_open(dir, scene.domain(), WAYS[scene.way], PoolOptions::new()).unwrap()
}

/// Plays the scene, and looks at what is left. Gives the number of steps, if there are not so many, and how long it
/// took.
fn killed(scene: Scene, end: &End) -> (Option<u64>, Duration) {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    make_movable(dir.path(), scene.engine, scene.domain(), MOVING);
    std::fs::create_dir(dir.path().join("copy")).unwrap();
    copy(&dir.path().join("store"), &dir.path().join("copy/store"));
    let told = format!("{} {}", scene.domain, scene.way);
    std::fs::write(dir.path().join("scene"), told).unwrap();
    let mut child = start_and_wait("killed::process_that_moves", dir.path());
    let killer = match end {
        End::BeforeStep(number) => Some(Killer::before_step(*number, child.id())),
        End::After(_) => None,
    };
    let began = Instant::now();
    let_go(&mut child);
    let steps = match (killer, end) {
        (Some(Killer { aim, follows }), _) => {
            follows.join().unwrap();
            aim.disarm()
        }
        (None, End::After(delay)) => {
            std::thread::sleep(*delay);
            child.kill().unwrap();
            None
        }
        (None, End::BeforeStep(_)) => None,
    };
    // The thread that follows it has waited for it, too.
    let _ = child.wait();
    let took = began.elapsed();
    look(dir.path(), scene);
    (steps, took)
}

fn look(dir: &Path, scene: Scene) {
    let original = open(dir, scene);
    let moved = open(&dir.join("copy"), scene);
    let counts: Vec<u64> = (0..MOVING).map(|block| moved.load(block, COUNT)).collect();
    // It went through them in order, and a transaction is there or not.
    assert!(counts.is_sorted_by(|one, other| one >= other), "{counts:?}");
    assert!(counts[0] <= 1, "{counts:?}");
    for (block, count) in counts.iter().enumerate() {
        moved.follow(block);
        moved.increment(block, COUNT).unwrap();
        assert_eq!(moved.load(block, COUNT), count + 1);
        original.follow(block);
        assert_eq!(original.load(block, COUNT), 0);
    }
    moved.close();
    original.close();
    for store in ["store", "copy/store"] {
        let report = durum_service::check(&dir.join(store), &Default::default()).unwrap();
        assert_eq!(report.findings, [], "{store}, {scene:?}");
    }
}

#[test]
#[ignore = "another test starts it in a process of its own"]
fn process_that_moves() {
    let Some(dir) = directory() else { return };
    wait_to_go();
    let told = std::fs::read_to_string(dir.join("scene")).unwrap();
    let (domain, way) = told.split_once(' ').unwrap();
    let scene = Scene {
        engine: Engine::Shadow,
        domain: domain.parse().unwrap(),
        way: way.parse().unwrap(),
    };
    let original = open(&dir, scene);
    let moved = open(&dir.join("copy"), scene);
    for block in 0..MOVING {
        moved.follow(block);
        moved.increment(block, COUNT).unwrap();
        original.follow(block);
    }
    moved.close();
    original.close();
}

/// Tries steps until there are no more.
fn try_all(stride: usize) {
    for (engine, first) in ENGINES.into_iter().zip([1, 8, 15]) {
        let tried = (first..).step_by(stride);
        let steps = tried
            .map(|number| {
                let scene = Scene::of(engine, number);
                (number, killed(scene, &End::BeforeStep(number)).0)
            })
            .find_map(|(number, steps)| steps.map(|steps| (number, steps)));
        let (number, steps) = steps.unwrap();
        println!("{}: {steps} steps", engine.name());
        // Else it never moved a puddle.
        assert!(steps > 4 * MOVING as u64 && steps < number, "{steps} steps");
    }
}

#[test]
fn a_move_goes_on_when_its_process_is_killed_at_some_steps() {
    try_all(STRIDE);
}

#[test]
#[ignore = "long: a minute or two"]
fn a_move_goes_on_when_its_process_is_killed_at_each_step() {
    try_all(1);
}

#[test]
#[ignore = "long: a minute or two"]
fn a_move_goes_on_when_its_process_is_killed_at_random_moments() {
    let mut random = Random(u64::from(std::process::id()));
    for number in 0..100 {
        for engine in ENGINES {
            let scene = Scene::of(engine, number);
            let delay = Duration::from_micros(random.below(60_000) as u64);
            killed(scene, &End::After(delay));
        }
    }
}

/// `durum recover` is killed whenever it has told of one more puddle.
#[test]
fn a_move_is_finished_by_processes_that_are_killed_behind_each_puddle() {
    for engine in ENGINES {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        make_movable(dir.path(), engine, Domain::Dram, MOVING);
        std::fs::create_dir(dir.path().join("copy")).unwrap();
        copy(&dir.path().join("store"), &dir.path().join("copy/store"));
        let stores = [dir.path().to_owned(), dir.path().join("copy")].map(|place| {
            let options = StoreOptions::new().domain(Domain::Dram);
            Store::open(place.join("store"), options).unwrap()
        });
        for store in stores {
            store.close().unwrap();
        }
        for _ in 0..MOVING {
            let status = command("killed::process_that_finishes", dir.path()).status();
            let signal = std::os::unix::process::ExitStatusExt::signal(&status.unwrap());
            assert_eq!(signal, Some(libc::SIGKILL));
        }
        let left = recover(&dir.path().join("copy/store"), |_| {});
        assert_eq!(left, 0, "each of them has rewritten one");
        look(dir.path(), Scene::of(engine, 0));
    }
}

fn recover(path: &Path, told: impl Fn(Stage) + Send + Sync + 'static) -> u64 {
    let options = OpenOptions {
        domain: Some(Domain::Dram),
        progress: Some(std::sync::Arc::new(move |progress| told(progress.stage))),
        ..OpenOptions::default()
    };
    let store = Embedded::open(path, options).unwrap();
    let left = store.finish_moving().unwrap();
    store.close().unwrap();
    left
}

#[test]
#[ignore = "another test starts it in a process of its own"]
fn process_that_finishes() {
    let Some(dir) = directory() else { return };
    recover(&dir.join("copy/store"), |stage| {
        if stage == Stage::Move {
            // SAFETY: it ends this process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
    });
}
