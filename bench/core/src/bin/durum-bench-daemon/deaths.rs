//! What the end of a writer costs whoever opens its pool next.

use std::time::{Duration, Instant};

use durum::{Engine, Error as ClientError, Pool, PoolOptions, Store, StoreError, StoreOptions};
use durum_bench_core::error::Result;
use durum_bench_core::service::Durumd;

use crate::parts::{Actor, BEFORE, CHANGED, Root, count_one};
use crate::table::{Limit, Line};
use crate::{Bench, check, median, said};

/// The engine of the paper comes first.
const ENGINES: [Engine; 3] = [Engine::Hybrid, Engine::Shadow, Engine::Twin];

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    log_work(bench)?;
    first_commit(bench)
}

/// Whether the block is as it was before the transaction that was cut off.
fn is_whole(pool: &Pool) -> Result<bool> {
    let root = pool.root::<Root>().map_err(said)?;
    // SAFETY: the root and its block are live while the pool is open, and nobody changes them.
    let block = unsafe { std::slice::from_raw_parts((*root).block, CHANGED) };
    Ok(block.iter().all(|byte| *byte == BEFORE))
}

/// A transaction that was cut off is recovered at the start of a service: reading and applying its log.
fn log_work(bench: &mut Bench) -> Result<()> {
    if !bench.wants("crashed transaction") {
        return Ok(());
    }
    for engine in ENGINES {
        let mut times = Vec::new();
        for _ in 0..bench.count(30, 2) {
            let directory = bench.memory().join("crashed");
            let mut service = Durumd::start(&directory)?;
            let part = format!("crash {}", engine.name());
            let mut writer = Actor::start(&part, &service.address())?;
            check("crashed transaction", "half".to_owned(), writer.hear()?)?;
            service.kill();
            writer.kill()?;
            drop(writer);
            service.start_again()?;
            let store = Store::open(service.address(), StoreOptions::new()).map_err(said)?;
            let report = store.recovery().cloned().unwrap_or_default();
            check(
                "crashed transaction",
                (false, 0),
                (report.was_clean, report.quarantined.len()),
            )?;
            let pool = store.open_pool("pool", PoolOptions::new()).map_err(said)?;
            check("crashed transaction", true, is_whole(&pool)?)?;
            times.push(report.log_time);
            drop(pool);
            store.close().map_err(said)?;
            drop(service);
            std::fs::remove_dir_all(&directory).map_err(said)?;
        }
        let row = format!("crashed transaction recovered: {} log work", engine.name());
        let line = Line::micros(row, median(times)).limit(Limit::Value(110.0));
        bench.table.push(line.paper(110.1));
    }
    Ok(())
}

/// A writer with 1 MiB of log is killed: until its successor has committed.
fn first_commit(bench: &mut Bench) -> Result<()> {
    if !bench.wants("death to next commit") {
        return Ok(());
    }
    for place in 0..bench.places.len() {
        for engine in ENGINES {
            let (directory, name) = &bench.places[place];
            let directory = directory.path().join("deaths");
            let service = Durumd::start(&directory)?;
            let store = Store::open(service.address(), StoreOptions::new()).map_err(said)?;
            let mut times = Vec::new();
            for _ in 0..bench.count(30, 2) {
                let part = format!("writer {}", engine.name());
                let mut writer = Actor::start(&part, &service.address())?;
                check("death to next commit", "half".to_owned(), writer.hear()?)?;
                let began = Instant::now();
                writer.kill()?;
                let pool = next(&store)?;
                count_one(&pool)?;
                times.push(began.elapsed());
                check("death to next commit", true, is_whole(&pool)?)?;
                drop(pool);
                store.remove_pool("pool").map_err(said)?;
            }
            let row = format!("death to next commit: {} 1 MiB of log", engine.name());
            let took = median(times).as_secs_f64() * 1e3;
            let most = if *name == "memory" { 3.0 } else { 50.0 };
            let line = Line::new(row, took, "ms").at(name);
            bench.table.push(line.limit(Limit::Value(most)));
            store.close().map_err(said)?;
            drop(service);
            std::fs::remove_dir_all(&directory).map_err(said)?;
        }
    }
    Ok(())
}

/// The pool, as soon as its writer is gone: a process lives on a little when it is killed.
fn next(store: &Store) -> Result<Pool> {
    loop {
        match store.open_pool("pool", PoolOptions::new()) {
            Err(ClientError::Store(StoreError::PoolBusy { .. })) => {
                std::thread::sleep(Duration::from_micros(20));
            }
            opened => return opened.map_err(said),
        }
    }
}
