//! A process exports a pool, or imports one, and is killed before one of its own steps: before a system call that
//! changes a file. The pool that was there is whole; the other one is whole or is not there, and can be made again.
//!
//! The page cache survives it, so no missing sync shows here: `shipping::` of durum-service cuts the power.

use std::path::Path;

use durum::{
    Compression, Domain, Engine, ExportOptions, ImportOptions, PoolOptions, PuddleMapping, Store,
    StoreOptions,
};

use crate::fixture::{ENGINES, IN_MEMORY, Opened, make_movable, try_open};
use crate::killed::{let_go, start_and_wait, wait_to_go};
use crate::killer::Killer;
use crate::support::directory;

const BLOCKS: usize = 3;
/// Steps between those that are tried by each run of the tests; `--ignored` tries all.
const STRIDE: usize = 17;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Export,
    Archive,
    /// The export's files become the store's.
    Import,
    Copy,
}

const DEEDS: [Deed; 4] = [Deed::Export, Deed::Archive, Deed::Import, Deed::Copy];

impl Deed {
    fn is_import(self) -> bool {
        matches!(self, Deed::Import | Deed::Copy)
    }
}

fn store(dir: &Path, name: &str) -> Store {
    Store::open(
        dir.join(name).join("store"),
        StoreOptions::new().domain(Domain::Dram),
    )
    .unwrap()
}

fn export(dir: &Path, deed: Deed) {
    let options = ExportOptions {
        archive: (deed == Deed::Archive).then_some(Compression::None),
        ..ExportOptions::default()
    };
    store(dir, "")
        .export_pool("pool", dir.join("export"), &options)
        .unwrap();
}

fn import(dir: &Path, deed: Deed) {
    let options = ImportOptions {
        copies: deed == Deed::Copy,
        ..ImportOptions::default()
    };
    store(dir, "other")
        .import(dir.join("export"), &options)
        .unwrap();
}

fn does(dir: &Path, deed: Deed) {
    match deed.is_import() {
        true => import(dir, deed),
        false => export(dir, deed),
    }
}

/// A store with the pool, one without, and an export, where that is to be imported.
fn scene(engine: Engine, deed: Deed) -> tempfile::TempDir {
    let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
    make_movable(dir.path(), engine, Domain::Dram, BLOCKS);
    std::fs::create_dir(dir.path().join("other")).unwrap();
    let options = StoreOptions::new().domain(Domain::Dram);
    Store::create(dir.path().join("other/store"), options).unwrap();
    if deed.is_import() {
        export(dir.path(), deed);
    }
    dir
}

/// Gives the number of steps, if there are not so many.
fn killed(engine: Engine, deed: Deed, step: u64) -> Option<u64> {
    let dir = scene(engine, deed);
    let number = DEEDS.iter().position(|known| *known == deed).unwrap();
    std::fs::write(dir.path().join("deed"), number.to_string()).unwrap();
    let mut child = start_and_wait("shipped::process_that_ships", dir.path());
    let Killer { aim, follows } = Killer::before_step(step, child.id());
    let_go(&mut child);
    follows.join().unwrap();
    let steps = aim.disarm();
    // The thread that follows it has waited for it, too.
    let _ = child.wait();
    look(dir.path(), deed);
    steps
}

fn open(dir: &Path) -> Opened {
    try_open(dir, Domain::Dram, PuddleMapping::Eager, PoolOptions::new()).unwrap()
}

fn is_whole(opened: &Opened) {
    for block in 0..BLOCKS {
        assert_eq!(opened.load(block, 0), block as u64);
        opened.follow(block);
        opened.increment(block, 5).unwrap();
    }
}

fn look(dir: &Path, deed: Deed) {
    let has_pool = || {
        let pools = store(dir, "other").pools().unwrap();
        pools.iter().any(|pool| pool.name == "pool")
    };
    // The store that was not at work settles what is left by the one that was.
    if !deed.is_import() {
        if !dir.join("export").exists() {
            export(dir, deed);
        }
        import(dir, deed);
    } else if !has_pool() {
        import(dir, deed);
    }
    assert!(has_pool());
    let (original, other) = (open(dir), open(&dir.join("other")));
    is_whole(&original);
    is_whole(&other);
    original.close();
    other.close();
    for name in ["", "other"] {
        let report = durum_service::check(&dir.join(name).join("store"), &Default::default());
        assert_eq!(report.unwrap().findings, [], "{deed:?}");
        let files = std::fs::read_dir(dir.join(name).join("store/puddles")).unwrap();
        assert_eq!(
            files.count(),
            BLOCKS,
            "{deed:?} left something in \"{name}\""
        );
    }
}

#[test]
#[ignore = "another test starts it in a process of its own"]
fn process_that_ships() {
    let Some(dir) = directory() else { return };
    wait_to_go();
    let deed = std::fs::read_to_string(dir.join("deed")).unwrap();
    does(&dir, DEEDS[deed.parse::<usize>().unwrap()]);
}

/// Tries steps until there are no more.
fn try_all(stride: usize) {
    for (deed, first) in DEEDS.into_iter().zip(1..) {
        for (engine, more) in ENGINES.into_iter().zip([0, 2, 4]) {
            let mut tried = (first + more..).step_by(stride);
            let (number, steps) = tried
                .find_map(|number| Some((number, killed(engine, deed, number)?)))
                .unwrap();
            println!("{deed:?}, {}: {steps} steps", engine.name());
            assert!(steps > 8 * BLOCKS as u64 && steps < number, "{steps} steps");
        }
    }
}

#[test]
fn what_ships_is_whole_when_its_process_is_killed_at_some_steps() {
    try_all(STRIDE);
}

#[test]
#[ignore = "long: a minute or two"]
fn what_ships_is_whole_when_its_process_is_killed_at_each_step() {
    try_all(1);
}
