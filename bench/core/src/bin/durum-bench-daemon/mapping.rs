//! Mapping on demand: a pool of many puddles is opened, and a puddle is touched for the first time.

use std::path::Path;
use std::time::{Duration, Instant};

use durum::{Announce, Engine, Pool, PoolOptions, PuddleMapping, Store, StoreOptions};
use durum_bench_core::error::Result;
use durum_bench_core::service::Durumd;
use durum_format::registry::{Change, PuddleRecord};
use durum_format::{UNIT, Uuid};
use durum_service::PuddleKind;

use crate::table::{Limit, Line};
use crate::{Bench, check, median, registry, said};

/// The puddles of the pool that is opened.
const PUDDLES: u64 = 10_000;
/// An object so large that a puddle holds one.
const BLOCK: usize = 1_200_000;
const BLOCKS_MAX: usize = 256;

const WAYS: [(PuddleMapping, &str, f64); 2] = [
    (PuddleMapping::Signal, "signal", 3.0),
    (PuddleMapping::Userfaultfd, "userfaultfd", 6.0),
];

#[repr(C)]
struct Root {
    blocks: [*mut u64; BLOCKS_MAX],
}
durum::describe!(Root as "daemon bench blocks" { blocks });

pub(crate) fn measure(bench: &mut Bench) -> Result<()> {
    open(bench)?;
    first_touches(bench)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Opens a pool of many puddles, which are neighbours. Their files need not be there.
fn open(bench: &mut Bench) -> Result<()> {
    if !bench.wants("pool of 10000 puddles") {
        return Ok(());
    }
    let directory = bench.memory().join("many");
    let mut service = Durumd::start(&directory)?;
    let store = Store::open(service.address(), StoreOptions::new()).map_err(said)?;
    let hybrid = PoolOptions::new().engine(Engine::Hybrid);
    let pool = store.create_pool("pool", hybrid).map_err(said)?;
    let (uuid, info) = (pool.uuid(), store.info().clone());
    drop(pool);
    store.close().map_err(said)?;
    service.end()?;
    // Where the root is not.
    let half = info.space_size / 2;
    let first = match info.next_address < info.base + half {
        true => info.base + half,
        false => info.base,
    };
    registry::change(&directory, |_| {
        let puddle = |index: u64| PuddleRecord {
            owner: uuid,
            address: first + index * UNIT,
            size: UNIT,
            kind: PuddleKind::Data,
            is_root: false,
            is_stale: false,
            origin: None,
        };
        let name = |index: u64| Uuid(u128::from(index + 1).to_be_bytes());
        (0..PUDDLES)
            .map(|index| Change::PutPuddle(name(index), puddle(index)))
            .collect()
    })?;
    service.start_again()?;
    for (way, name, _) in WAYS {
        let options = StoreOptions::new().mapping(way);
        let store = Store::open(service.address(), options).map_err(said)?;
        let (mut times, mut most) = (Vec::new(), 0);
        for _ in 0..bench.count(50, 3) {
            let before = descriptors();
            let began = Instant::now();
            let pool = store.open_pool("pool", PoolOptions::new()).map_err(said)?;
            times.push(began.elapsed());
            most = most.max(descriptors().saturating_sub(before));
            check(
                "pool of 10000 puddles",
                PUDDLES,
                pool.puddles_waiting() as u64,
            )?;
        }
        let row = format!("pool of 10000 puddles opened by {name}");
        let line = Line::micros(row, median(times)).limit(Limit::Value(1000.0));
        bench.table.push(line);
        let line = Line::new(format!("its descriptors by {name}"), most as f64, "");
        bench.table.push(line.limit(Limit::Value(3.0)));
        store.close().map_err(said)?;
    }
    Ok(())
}

/// A pool with a block in each of so many puddles.
struct Blocks {
    store: Store,
    pool: Pool,
    root: *mut Root,
    count: usize,
}

impl Blocks {
    fn open(path: &Path, engine: Engine, way: PuddleMapping, count: usize) -> Result<Blocks> {
        let options = StoreOptions::new().mapping(way);
        let store = Store::open_or_create(path, options).map_err(said)?;
        let options = PoolOptions::new().engine(engine).growth_max(UNIT);
        let pool = store.open_or_create_pool("pool", options).map_err(said)?;
        let root = pool.root::<Root>().map_err(said)?;
        Ok(Blocks {
            store,
            pool,
            root,
            count,
        })
    }

    fn fill(&self) -> Result<()> {
        for index in 0..self.count {
            let filled = self.pool.transaction(|tx| {
                let block = tx.alloc_bytes(&self.pool, 0, BLOCK, 8)?.cast::<u64>();
                // SAFETY: just allocated, so nobody else touches it.
                unsafe {
                    tx.add_bytes(block.cast(), BLOCK, Announce::Clobber)?;
                    block.cast::<u8>().write_bytes(1, BLOCK);
                    block.write(index as u64);
                    tx.set(&raw mut (*self.root).blocks[index], block)
                }
            });
            filled.map_err(|error: durum::Error| said(error))?;
        }
        Ok(())
    }

    /// Loads from each block, in an order that read-ahead does not guess.
    fn touch(&self) -> Result<()> {
        for at in 0..self.count {
            let index = at * 151 % self.count;
            // SAFETY: the root and the blocks are live while the pool is open, and nobody changes them.
            let found = unsafe { (*self.root).blocks[index].read_volatile() };
            check("first touch", index as u64, found)?;
        }
        Ok(())
    }

    fn close(self) -> Result<()> {
        drop(self.pool);
        self.store.close().map_err(said)
    }
}

fn first_touches(bench: &mut Bench) -> Result<()> {
    if !bench.wants("first touch") {
        return Ok(());
    }
    let count = bench.count(BLOCKS_MAX, 16);
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        for is_served in [false, true] {
            let directory = bench.memory().join("touched");
            let service = match is_served {
                true => Some(Durumd::start(&directory)?),
                false => None,
            };
            let path = service.as_ref().map_or(directory.clone(), Durumd::address);
            let made = Blocks::open(&path, engine, PuddleMapping::Eager, count)?;
            made.fill()?;
            made.close()?;
            let each = |way| -> Result<Duration> {
                let mut times = Vec::new();
                for _ in 0..bench.count(15, 2) {
                    let began = Instant::now();
                    let opened = Blocks::open(&path, engine, way, count)?;
                    opened.touch()?;
                    times.push(began.elapsed() / count as u32);
                    opened.close()?;
                }
                Ok(median(times))
            };
            let eager = each(PuddleMapping::Eager)?.as_secs_f64() * 1e6;
            let ways = WAYS.map(|(way, name, most)| each(way).map(|took| (took, name, most)));
            for way in ways {
                let (took, name, most) = way?;
                let whose = if is_served { " served" } else { "" };
                let row = format!("first touch by {name}: {}{whose}", engine.name());
                let line = Line::micros(row, took).beside(eager);
                bench.table.push(line.limit(Limit::Ratio(most)));
            }
            drop(service);
            std::fs::remove_dir_all(&directory).map_err(said)?;
        }
    }
    Ok(())
}
