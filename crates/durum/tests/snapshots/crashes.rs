//! Power cuts while a pool is shown: the pool loses nothing that was committed, and the export is as of its moment or
//! is none.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use durum::{
    Compression, Domain, Engine, ImportOptions, Pool, PoolOptions, SnapshotOptions, Store,
    StoreOptions, TwinMode,
};
use durum_persist::Site;
use durum_persist::record::{Recorder, RecorderOptions, note};
use durum_persist::simulate::{Failure, Plan, Report, Rules, explore_with_recovery};

use crate::{EVERYWHERE, alone};

const LINES: usize = 200;

/// What each transaction leaves follows from how many there were.
#[repr(C)]
struct Board {
    count: u64,
    lines: [[u64; 8]; LINES],
}
durum::describe!(Board as "board" { count, lines });

fn lines_of(count: u64) -> impl Iterator<Item = usize> {
    (0..3).map(move |line| (count * 7 + line * 31) as usize % LINES)
}

fn commit(pool: &Pool) {
    let board = pool.root::<Board>().unwrap();
    let count = unsafe { (*board).count } + 1;
    pool.transaction(|tx| unsafe {
        for line in lines_of(count) {
            let line = &raw mut (*board).lines[line];
            tx.add(line)?;
            line.write([count; 8]);
        }
        tx.set(&raw mut (*board).count, count)
    })
    .unwrap();
    note("committed", count);
}

/// The number of transactions that the pool holds whole.
fn count(store: &Store) -> Result<u64, String> {
    let pool = store.open_pool("board", PoolOptions::new());
    let pool = pool.map_err(|error| error.to_string())?;
    let board = pool.root::<Board>().map_err(|error| error.to_string())?;
    let board = unsafe { &*board };
    let mut wanted = [[0; 8]; LINES];
    for count in 1..=board.count {
        lines_of(count).for_each(|line| wanted[line] = [count; 8]);
    }
    match board.lines == wanted {
        true => Ok(board.count),
        false => Err(format!("{} transactions, and other lines", board.count)),
    }
}

fn explore(
    (engine, mode, domain): (Engine, TwinMode, Domain),
    skip: Option<Site>,
) -> Result<Report, Failure> {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let options = StoreOptions::new().domain(domain).checkpoint_thread(false);
    let store = Store::create(dir.path().join("store"), options.clone()).unwrap();
    Store::create(dir.path().join("other"), StoreOptions::new()).unwrap();
    let pool = PoolOptions::new().engine(engine).twin_mode(mode);
    let pool = store.create_pool("board", pool).unwrap();
    (0..5).for_each(|_| commit(&pool));
    let recording = RecorderOptions {
        skip,
        ..RecorderOptions::default()
    };
    let recorder = Recorder::start(dir.path(), recording);
    commit(&pool);
    let moment = unsafe { (*pool.root::<Board>().unwrap()).count };
    let calls = Arc::new(AtomicU64::new(0));
    let (changed, called) = (pool.clone(), calls.clone());
    let snapshots = SnapshotOptions::new().progress(Arc::new(move |_| {
        called.fetch_add(1, Ordering::Relaxed);
        commit(&changed);
    }));
    pool.snapshot(dir.path().join("directory"), &snapshots)
        .unwrap();
    note("directory", moment);
    assert!(calls.load(Ordering::Relaxed) > 0);
    commit(&pool);
    let second = unsafe { (*pool.root::<Board>().unwrap()).count };
    pool.snapshot(
        dir.path().join("archive"),
        &snapshots.archive(Compression::None),
    )
    .unwrap();
    note("archive", second);
    commit(&pool);
    let trace = recorder.stop();
    drop((pool, store));
    let rules = match domain {
        Domain::File => Rules::Sectors,
        _ => Rules::Lines,
    };
    let plan = Plan {
        random_images: 2,
        single_units_max: 3,
        exhaustive_max: 6,
        nested_one_in: 40,
        nested_depth: 1,
        nested_points_max: Some(4),
        points_max: match std::env::var_os("DURUM_CRASH_ALL") {
            Some(_) => None,
            None => Some(25),
        },
        ..Plan::new(rules, 0x5ead)
    };
    let open = |image: &Path, name: &str| {
        let store = Store::open(image.join(name), options.clone());
        store.map_err(|error| error.to_string())
    };
    explore_with_recovery(
        &trace,
        &plan,
        |image| open(image, "store").map(drop),
        |image, point| {
            let found = count(&open(image, "store")?)?;
            if found < point.last_note("committed").unwrap_or(5) {
                return Err(format!("only {found} transactions are left"));
            }
            let other = open(image, "other")?;
            for (name, moment) in [("directory", moment), ("archive", second)] {
                let place = image.join(name);
                match other.import(&place, &ImportOptions::default()) {
                    Ok(_) => {
                        let shown = count(&other)?;
                        if shown != moment {
                            return Err(format!("{name} is of {shown}, not {moment}"));
                        }
                        let removed = other.remove_pool("board");
                        removed.map_err(|error| error.to_string())?;
                    }
                    Err(error) if point.last_note(name).is_some() => {
                        return Err(format!("{name} was told: {error}"));
                    }
                    // A manifest or an archive is there when all else is.
                    Err(error) if place.join("durum.export").exists() || place.is_file() => {
                        return Err(format!("{name} is there: {error}"));
                    }
                    Err(_) => {}
                }
            }
            Ok(())
        },
    )
}

#[test]
fn power_cuts_lose_nothing_and_leave_no_half_of_a_snapshot() {
    let _alone = alone();
    for place in EVERYWHERE {
        match explore(place, None) {
            Ok(report) => assert!(report.images > 30, "{report:?}"),
            Err(failure) => panic!("{place:?}: {failure}"),
        }
    }
}

/// Each of these, left out, is noticed.
#[test]
fn a_sync_of_a_snapshot_that_is_left_out_is_noticed() {
    let _alone = alone();
    let place = (Engine::Shadow, TwinMode::Log, Domain::Dram);
    for site in [
        "exported puddle",
        "export's place",
        "name of an export's manifest",
        "export's archive",
    ] {
        assert!(explore(place, Some(Site(site))).is_err(), "{site}");
    }
}
