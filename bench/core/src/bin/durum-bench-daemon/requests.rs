//! Single requests: an empty one, puddles, the log space of a client.

use std::time::{Duration, Instant};

use durum_bench_core::error::{Error, Result};
use durum_bench_core::service::Durumd;
use durum_format::registry::{Change, PoolRecord, PuddleRecord};
use durum_format::types::type_id;
use durum_format::{UNIT, Uuid, log_space, puddle};
use durum_remote::{Remote, Waiting};
use durum_service::{EngineKind, PoolSpec, PuddleKind, PuddleOwner, Service};

use crate::bare::{Bare, Mapped, PUDDLE};
use crate::table::{Limit, Line};
use crate::{Bench, check, median, placed, registry, said};

/// What the large store holds.
const TYPES: u64 = 5_000;
const POOLS: u64 = 10_000;

pub(crate) fn measure(bench: &mut Bench, bare: &Bare) -> Result<()> {
    empty(bench, bare)?;
    puddle(bench, bare)?;
    new_puddle(bench)?;
    log_space(bench)
}

fn connect(service: &Durumd) -> Result<Remote> {
    Remote::open(service.socket(), Waiting::default()).map_err(said)
}

/// A row of many batches, each of a bare program and of a service a moment later: the medians of the batch whose ratio
/// is the median of the ratios.
fn in_turns(
    row: String,
    rounds: usize,
    each: usize,
    mut bare: impl FnMut() -> Result<Duration>,
    mut own: impl FnMut() -> Result<Duration>,
) -> Result<Line> {
    let mut pairs = Vec::new();
    let (mut all_bare, mut all_own) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let batch = |run: &mut dyn FnMut() -> Result<Duration>,
                     all: &mut Vec<Duration>|
         -> Result<Duration> {
            let times: Vec<Duration> = (0..each).map(|_| run()).collect::<Result<_>>()?;
            all.extend(&times);
            Ok(median(times))
        };
        pairs.push((
            batch(&mut bare, &mut all_bare)?,
            batch(&mut own, &mut all_own)?,
        ));
    }
    pairs.sort_by(|left, right| {
        let ratio = |pair: &(Duration, Duration)| pair.1.as_secs_f64() / pair.0.as_secs_f64();
        ratio(left).total_cmp(&ratio(right))
    });
    let (bare, own) = pairs[pairs.len() / 2];
    let line = Line::micros(row, own).beside(bare.as_secs_f64() * 1e6);
    Ok(Line {
        each: all_own,
        each_beside: all_bare,
        ..line
    })
}

fn empty(bench: &mut Bench, bare: &Bare) -> Result<()> {
    if !bench.wants("empty request") {
        return Ok(());
    }
    let directory = bench.memory().join("empty");
    placed::each(
        bare,
        || Durumd::start(&directory),
        |placed| {
            let remote = connect(&placed.service)?;
            let line = in_turns(
                format!("empty request {}", placed.name),
                11,
                bench.count(3000, 100),
                || bare.round_trip(),
                || {
                    let began = Instant::now();
                    let text = remote.type_text(1).map_err(said)?;
                    let took = began.elapsed();
                    check("empty request", None, text)?;
                    Ok(took)
                },
            )?;
            bench.table.push(line.limit(Limit::Ratio(2.5)).paper(46.9));
            remote.close().map_err(said)
        },
    )
}

/// A puddle that exists: asked for, mapped, and loaded from.
fn puddle(bench: &mut Bench, bare: &Bare) -> Result<()> {
    if !bench.wants("puddle to first load") {
        return Ok(());
    }
    let directory = bench.memory().join("puddles");
    placed::each(
        bare,
        || Durumd::start(&directory),
        |placed| {
            let remote = connect(&placed.service)?;
            let spec = PoolSpec::new(EngineKind::Hybrid);
            let pool = remote.create_pool(placed.name, &spec).map_err(said)?.uuid;
            let mut puddles = Vec::new();
            for number in 0..64_u8 {
                let made = remote
                    .create_puddle(PuddleOwner::Pool(pool), PuddleKind::Data, UNIT)
                    .map_err(said)?;
                let mapped = Mapped::of(&made.file.as_fd(), PUDDLE).ok_or_else(no_mapping)?;
                mapped.store(PUDDLE - 1, number);
                puddles.push(made.uuid);
            }
            let mut next = 0;
            let line = in_turns(
                format!("puddle to first load {}", placed.name),
                11,
                bench.count(300, 20),
                || bare.file_to_load(),
                || {
                    let number = next % puddles.len();
                    next += 1;
                    let began = Instant::now();
                    let opened = remote
                        .open_puddles(pool, &puddles[number..=number])
                        .map_err(said)?;
                    let mapped =
                        Mapped::of(&opened[0].file.as_fd(), PUDDLE).ok_or_else(no_mapping)?;
                    let byte = mapped.load(PUDDLE - 1);
                    let took = began.elapsed();
                    check("puddle to first load", number as u8, byte)?;
                    Ok(took)
                },
            )?;
            bench
                .table
                .push(line.limit(Limit::Value(40.0)).paper(125.3));
            remote.close().map_err(said)
        },
    )
}

fn no_mapping() -> Error {
    said(std::io::Error::last_os_error())
}

/// A new puddle: asked for, mapped, and stored to.
fn new_puddle(bench: &mut Bench) -> Result<()> {
    if !bench.wants("new puddle to first store") {
        return Ok(());
    }
    for place in 0..bench.places.len() {
        let (directory, name) = &bench.places[place];
        let service = Durumd::start(&directory.path().join("new"))?;
        let remote = connect(&service)?;
        let spec = PoolSpec::new(EngineKind::Hybrid);
        let pool = remote.create_pool("pool", &spec).map_err(said)?.uuid;
        let mut times = Vec::new();
        for _ in 0..bench.count(200, 5) {
            let began = Instant::now();
            let made = remote
                .create_puddle(PuddleOwner::Pool(pool), PuddleKind::Data, UNIT)
                .map_err(said)?;
            let mapped = Mapped::of(&made.file.as_fd(), PUDDLE).ok_or_else(no_mapping)?;
            mapped.store(PUDDLE - 1, 1);
            times.push(began.elapsed());
            check("new puddle to first store", 0, mapped.load(PUDDLE - 2))?;
            drop(mapped);
            remote.remove_puddle(made.uuid).map_err(said)?;
        }
        let line = Line::median_micros("new puddle to first store", times).at(name);
        let line = line.paper(1705.0);
        bench.table.push(match *name {
            "memory" => line.limit(Limit::Value(700.0)),
            _ => line,
        });
        remote.close().map_err(said)?;
    }
    Ok(())
}

/// A client names its log space, in a new store and in one with many pools and types.
fn log_space(bench: &mut Bench) -> Result<()> {
    for (row, is_large) in [
        ("log space registered", false),
        (
            "log space registered beside 10000 pools and 5000 types",
            true,
        ),
    ] {
        if !bench.wants(row) {
            continue;
        }
        let directory = bench.memory().join("spaces");
        if is_large {
            make_large(&directory)?;
        }
        let service = Durumd::start(&directory)?;
        let mut times = Vec::new();
        for _ in 0..bench.count(200, 5) {
            let remote = connect(&service)?;
            let pools = if is_large { POOLS } else { 0 };
            check(
                "log space registered",
                pools as usize,
                remote.pools().map_err(said)?.len(),
            )?;
            let space = remote
                .create_puddle(PuddleOwner::Client, PuddleKind::LogSpace, UNIT)
                .map_err(said)?;
            let mapped = Mapped::of(&space.file.as_fd(), PUDDLE).ok_or_else(no_mapping)?;
            let heap = puddle::heap_offset(UNIT) as usize;
            for (offset, byte) in log_space::encode_header(remote.info().client)
                .into_iter()
                .enumerate()
            {
                mapped.store(heap + offset, byte);
            }
            let began = Instant::now();
            remote.register_log_space(space.uuid).map_err(said)?;
            times.push(began.elapsed());
            remote.close().map_err(said)?;
        }
        let line = Line::median_micros(row, times).limit(Limit::Value(134.0));
        bench.table.push(line.paper(134.0));
        drop(service);
        std::fs::remove_dir_all(&directory).map_err(Error::file(&directory))?;
    }
    Ok(())
}

/// Makes a store whose registry knows of many types, and of many pools, whose files nobody looks at.
fn make_large(path: &std::path::Path) -> Result<()> {
    Durumd::start(path)?.end()?;
    registry::change(path, |state| {
        let uuid = |number: u64| Uuid(u128::from(number + 1).to_be_bytes());
        let mut changes: Vec<Change> = (0..TYPES)
            .map(|number| {
                let text = format!("struct \"type number {number}\"(8,8){{0:\"value\":i64;}}\n");
                Change::PutType(type_id(&text), text)
            })
            .collect();
        let base = state.store.base;
        for number in 0..POOLS {
            let (pool, root) = (uuid(number), uuid(number + POOLS));
            let record = PuddleRecord {
                owner: pool,
                address: base + number * UNIT,
                size: UNIT,
                kind: PuddleKind::Data,
                is_root: true,
                is_stale: false,
                origin: None,
            };
            changes.push(Change::PutPuddle(root, record));
            let record = PoolRecord {
                name: format!("pool number {number}"),
                engine: EngineKind::Hybrid,
                root_puddle: root,
                rights: None,
                damage: None,
                meanings: Default::default(),
            };
            changes.push(Change::PutPool(pool, record));
        }
        changes
    })
}
