//! What the end of a writer costs whoever opens its pool next.

use std::time::{Duration, Instant};

use durum::{Engine, Error as ClientError, Pool, PoolOptions, Store, StoreError, StoreOptions};
use durum_bench_core::error::Result;
use durum_bench_core::service::Durumd;

use crate::parts::{self, Actor, BEFORE, CHANGED, RANGE, Root, count_one};
use crate::table::{Limit, Line};
use crate::{Bench, check, median, said};

/// The engine of the paper comes first.
const ENGINES: [Engine; 3] = [Engine::Hybrid, Engine::Shadow, Engine::Twin];

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    log_work(bench)?;
    first_commit(bench)
}

/// Whether the block of so many bytes is as it was before the transaction that was cut off.
fn is_whole(pool: &Pool, size: usize) -> Result<bool> {
    let root = pool.root::<Root>().map_err(said)?;
    // SAFETY: the root and its block are live while the pool is open, and nobody changes them.
    let block = unsafe { std::slice::from_raw_parts((*root).block, size) };
    Ok(block.iter().all(|byte| *byte == BEFORE))
}

/// Transactions that were cut off are recovered at the start of a service, many and one: reading and applying their
/// logs. What is done for the first time after a pause waits for memory and caches, which many share.
fn log_work(bench: &mut Bench) -> Result<()> {
    const ROW: &str = "crashed transaction recovered";
    if !bench.wants(ROW) {
        return Ok(());
    }
    let many = bench.count(32, 2);
    for engine in ENGINES {
        for (count, limit) in [(many, Some(Limit::Value(110.0))), (1, None)] {
            let mut times = Vec::new();
            for _ in 0..bench.count(11, 1) {
                times.push(recovered_at_start(bench, engine, count)? / count as u32);
            }
            let row = format!("{ROW}: {} log work: one of {count}", engine.name());
            let line = Line::micros(row, median(times)).paper(110.1);
            bench.table.push(Line { limit, ..line });
        }
    }
    Ok(())
}

/// The log work of a service at whose start so many clients are gone, each in a transaction.
fn recovered_at_start(bench: &Bench, engine: Engine, count: usize) -> Result<Duration> {
    let directory = bench.memory().join("crashed");
    let mut service = Durumd::start(&directory)?;
    let mut writers = Vec::new();
    for number in 0..count {
        let part = format!("crash {} {number}", engine.name());
        let mut writer = Actor::start(&part, &service.address())?;
        check("crashed transaction", "half".to_owned(), writer.hear()?)?;
        writers.push(writer);
    }
    service.kill();
    for mut writer in writers {
        writer.kill()?;
    }
    service.start_again()?;
    let store = Store::open(service.address(), StoreOptions::new()).map_err(said)?;
    let report = store.recovery().cloned().unwrap_or_default();
    check(
        "crashed transaction",
        (false, 0),
        (report.was_clean, report.quarantined.len()),
    )?;
    for number in 0..count {
        let name = parts::pool_name(&number.to_string());
        let pool = store.open_pool(&name, PoolOptions::new()).map_err(said)?;
        check("crashed transaction", true, is_whole(&pool, RANGE)?)?;
    }
    store.close().map_err(said)?;
    drop(service);
    std::fs::remove_dir_all(&directory).map_err(said)?;
    Ok(report.log_time)
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
            let (mut times, mut ends) = (Vec::new(), Vec::new());
            for round in 0..bench.count(60, 4) {
                let part = format!("writer {}", engine.name());
                let mut writer = Actor::start(&part, &service.address())?;
                check("death to next commit", "half".to_owned(), writer.hear()?)?;
                let began = Instant::now();
                writer.kill()?;
                // Every second time it is only looked how long the system takes to end the process.
                if round % 2 == 1 {
                    writer.wait()?;
                    ends.push(began.elapsed());
                }
                let pool = next(&store)?;
                count_one(&pool)?;
                if round % 2 == 0 {
                    times.push(began.elapsed());
                }
                check("death to next commit", true, is_whole(&pool, CHANGED)?)?;
                drop(pool);
                store.remove_pool("pool").map_err(said)?;
            }
            let row = format!("death to next commit: {} 1 MiB of log", engine.name());
            let took = median(times).as_secs_f64() * 1e3;
            let most = if *name == "memory" { 3.0 } else { 50.0 };
            let end = median(ends).as_secs_f64() * 1e3;
            let line = Line::new(row, took, "ms").at(name).beside(end);
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
