//! Pools on their way to another store: exported, registered, and copied by a service.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use durum::{Engine, ExportOptions, ImportOptions, Pool, PoolOptions, Store, StoreOptions};
use durum_bench_core::error::{Error, Result};
use durum_bench_core::service::Durumd;
use durum_format::UNIT;
use durum_service::{
    CreateOptions, Embedded, EngineKind, Export, PoolSpec, PuddleKind, PuddleOwner, ReadOnlyStore,
    Service, export_served,
};

use crate::table::{Limit, Line};
use crate::{Bench, check, median, said};

/// What pools hold: so many bytes of data, and the limits in milliseconds for their export, and the paper's figures.
const SIZES: [(&str, usize, f64, f64); 2] =
    [("16 B", 16, 10.0, 300.0), ("16 MiB", 16 << 20, 50.0, 500.0)];
/// Puddles of a pool whose further ones are counted.
const PUDDLES: usize = 256;
/// Bytes of a pool that is copied.
const COPIED: usize = 128 << 20;

#[repr(C)]
struct Root {
    bytes: u64,
    data: *mut u8,
}
durum::describe!(Root as "daemon bench shipment" { bytes, data });

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    sizes(bench)?;
    further_puddles(bench)?;
    copies(bench)
}

/// A store with a pool that holds so many bytes in one object.
fn filled(path: &Path, bytes: usize) -> Result<Store> {
    let store = Store::create(path, StoreOptions::new()).map_err(said)?;
    let pool = store
        .create_pool("pool", PoolOptions::new().engine(Engine::Hybrid))
        .map_err(said)?;
    let root = pool.root::<Root>().map_err(said)?;
    pool.transaction(|tx| {
        let data = tx.alloc_bytes(&pool, 0, bytes, 8)?;
        // SAFETY: fresh, and so large; the root is this thread's.
        unsafe {
            data.write_bytes(7, bytes);
            tx.add(root)?;
            (*root).bytes = bytes as u64;
            (*root).data = data;
        }
        Ok::<_, durum::Error>(())
    })
    .map_err(said)?;
    drop(pool);
    Ok(store)
}

/// Whether a pool holds what was put in it.
fn check_filled(row: &'static str, pool: &Pool, bytes: usize) -> Result<()> {
    let root = pool.root::<Root>().map_err(said)?;
    // SAFETY: `filled` wrote them, and nobody else uses the pool.
    let (found, last) = unsafe {
        let found = (*root).bytes as usize;
        (found, (*root).data.add(found - 1).read())
    };
    check(row, (bytes, 7), (found, last))
}

fn export(store: &Store, place: &Path) -> Result<Duration> {
    let began = Instant::now();
    let report = store.export_pool("pool", place, &ExportOptions::default());
    report.map_err(said)?;
    Ok(began.elapsed())
}

/// The store that was exported is open in this process, so that the other one's puddles go elsewhere.
fn promised() -> ImportOptions {
    ImportOptions {
        untyped_hold_no_pointers: true,
        ..ImportOptions::default()
    }
}

fn millis(row: String, took: Duration) -> Line {
    Line::new(row, took.as_secs_f64() * 1e3, "ms")
}

fn remove(path: &Path) -> Result<()> {
    fs::remove_dir_all(path).map_err(Error::file(path))
}

fn sizes(bench: &mut Bench) -> Result<()> {
    for (name, bytes, limit, paper) in SIZES {
        if !bench.wants("export") && !bench.wants("import") {
            continue;
        }
        let places: Vec<(PathBuf, &'static str)> = bench
            .places
            .iter()
            .map(|(dir, name)| (dir.path().join("shipping"), *name))
            .collect();
        for (directory, place_name) in places {
            fs::create_dir(&directory).map_err(Error::file(&directory))?;
            let store = filled(&directory.join("store"), bytes)?;
            let target = Store::create(directory.join("target"), StoreOptions::new());
            let target = target.map_err(said)?;
            let place = directory.join("export");
            let (mut exports, mut imports) = (Vec::new(), Vec::new());
            for _ in 0..bench.count(15, 2) {
                exports.push(export(&store, &place)?);
                let began = Instant::now();
                let report = target.import(&place, &promised());
                imports.push(began.elapsed());
                let report = report.map_err(said)?;
                check("import", None, report.copied)?;
                let pool = target.open_pool("pool", PoolOptions::new()).map_err(said)?;
                check_filled("import", &pool, bytes)?;
                drop(pool);
                target.remove_pool("pool").map_err(said)?;
            }
            let line = millis(format!("export of {name}"), median(exports)).at(place_name);
            bench
                .table
                .push(line.limit(Limit::Value(limit)).paper(paper));
            let line = millis(format!("import of {name}"), median(imports)).at(place_name);
            let is_memory = place_name == "memory";
            bench.table.push(match is_memory {
                true => line.limit(Limit::Value(1.0)).paper(1.5),
                false => line,
            });
            drop((store, target));
            remove(&directory)?;
        }
    }
    Ok(())
}

/// What each further puddle adds to an import that registers them.
fn further_puddles(bench: &mut Bench) -> Result<()> {
    if !bench.wants("import") {
        return Ok(());
    }
    let puddles = bench.count(PUDDLES, 8);
    let directory = bench.memory().join("shipping");
    fs::create_dir(&directory).map_err(Error::file(&directory))?;
    let made = CreateOptions::default();
    let source = Embedded::create(&directory.join("store"), &made).map_err(said)?;
    let target = Embedded::create(&directory.join("target"), &made).map_err(said)?;
    let pool = source
        .create_pool("pool", &PoolSpec::new(EngineKind::Hybrid))
        .map_err(said)?;
    let place = directory.join("export");
    let mut took = Vec::new();
    for count in [1, puddles] {
        for _ in 1..count {
            let owner = PuddleOwner::Pool(pool.uuid);
            let puddle = source.create_puddle(owner, PuddleKind::Data, UNIT);
            puddle.map_err(said)?;
        }
        source.close_pool(pool.uuid).map_err(said)?;
        let mut times = Vec::new();
        for _ in 0..bench.count(9, 2) {
            let reader = source.host().client().map_err(said)?;
            let mut reader = ReadOnlyStore::of(Arc::new(reader)).map_err(said)?;
            let exported = export_served(&mut reader, "pool", &place, &ExportOptions::default());
            check("import", count as u64, exported.map_err(said)?.puddles)?;
            drop(reader);
            let began = Instant::now();
            let export = Export::open(&place).map_err(said)?;
            let report = target.import(&export, &ImportOptions::default());
            times.push(began.elapsed());
            check("import", None, report.map_err(said)?.copied)?;
            target.remove_pool("pool").map_err(said)?;
        }
        took.push(median(times));
        source.open_pool("pool").map_err(said)?;
    }
    let each = took[1].saturating_sub(took[0]) / (puddles as u32 - 1).max(1);
    let line = Line::micros("import: a further puddle", each);
    bench.table.push(line.limit(Limit::Value(20.0)));
    drop((source, target));
    remove(&directory)
}

/// A service takes no files over: its copy beside that of `cp`.
fn copies(bench: &mut Bench) -> Result<()> {
    if !bench.wants("import by a service") {
        return Ok(());
    }
    let bytes = bench.count(COPIED, 4 << 20);
    let directory = bench.memory().join("shipping");
    fs::create_dir(&directory).map_err(Error::file(&directory))?;
    let store = filled(&directory.join("store"), bytes)?;
    let place = directory.join("export");
    export(&store, &place)?;
    let mut service = Durumd::start(&directory.join("served"))?;
    let served = Store::open(service.address(), StoreOptions::new()).map_err(said)?;
    let (mut copies, mut plain) = (Vec::new(), Vec::new());
    let copy = directory.join("copy");
    for _ in 0..bench.count(7, 2) {
        let began = Instant::now();
        let copied = Command::new("cp").arg("-r").args([&place, &copy]).status();
        plain.push(began.elapsed());
        let copied = copied.map_err(Error::file(&copy))?;
        check("import by a service", true, copied.success())?;
        remove(&copy)?;
        let began = Instant::now();
        let report = served.import(&place, &promised());
        copies.push(began.elapsed());
        report.map_err(said)?;
        let pool = served.open_pool("pool", PoolOptions::new()).map_err(said)?;
        check_filled("import by a service", &pool, bytes)?;
        drop(pool);
        served.remove_pool("pool").map_err(said)?;
    }
    let name = format!("import by a service: {} MiB beside cp", bytes >> 20);
    let beside = median(plain).as_secs_f64() * 1e3;
    let line = millis(name, median(copies)).beside(beside);
    bench.table.push(line.limit(Limit::Ratio(1.2)));
    served.close().map_err(said)?;
    service.end()?;
    drop(store);
    remove(&directory)
}
