//! The numbers that a program tells. All are counted anyway, or kept for another reason: nothing is counted for them.

use std::sync::PoisonError;
use std::sync::Weak;
use std::time::Instant;

use durum_persist::count::{self, Counters};
use durum_protocol::watching::{Number, Numbers, OpenPool};

use crate::opened::StoreInner;

/// Those of a store that has been open since then, and of its program.
pub(super) fn of(store: &StoreInner, since: Instant) -> Numbers {
    let mut all = Vec::new();
    counted(&mut all);
    let mut tell = |name: &str, help: &str, grows, value| {
        all.push(Number {
            name: name.to_owned(),
            help: help.to_owned(),
            grows,
            values: vec![value],
            is_by_pool: false,
        });
    };
    let logs = store.logs.puddles();
    let logs = logs.iter().filter_map(Weak::upgrade);
    let log_bytes: usize = logs.map(|puddle| puddle.size).sum();
    tell("log_bytes", "Bytes of the logs", false, log_bytes as u64);
    store.kept.tell(&mut tell);
    let pools = of_pools(store, &mut all);
    Numbers {
        store: store.info.uuid,
        pid: std::process::id(),
        open_us: u64::try_from(since.elapsed().as_micros()).unwrap_or(u64::MAX),
        pools,
        all,
    }
}

/// What the whole process has counted since it began.
fn counted(all: &mut Vec<Number>) {
    let own = count::all_counters();
    let background = count::background_counters();
    let mut tell = |name: &str, help: &str, value| {
        all.push(Number {
            name: name.to_owned(),
            help: help.to_owned(),
            grows: true,
            values: vec![value],
            is_by_pool: false,
        });
    };
    let commits = "Transactions that changed something and committed";
    tell("transactions", commits, own.commits);
    let aborts = "Transactions that changed something and were rolled back";
    tell("transactions_rolled_back", aborts, own.aborts);
    let lines = |counters: &Counters| counters.write_backs + counters.streamed_lines;
    tell(
        "fences",
        "Fences, but those of background threads",
        own.fences,
    );
    tell(
        "lines",
        "Lines written back or stored past the cache",
        lines(&own),
    );
    tell("syncs", "Syncs of files and directories", own.syncs);
    tell("file_writes", "Writes to files", own.file_writes);
    tell("logged_bytes", "Bytes of log entries", own.bytes_logged);
    let written = "Bytes that were meant to be durable";
    tell("written_bytes", written, own.bytes_written);
    let name = |name| format!("background_{name}");
    let help = "The same by background threads";
    tell(&name("fences"), help, background.fences);
    tell(&name("lines"), help, lines(&background));
    tell(&name("syncs"), help, background.syncs);
    tell(&name("file_writes"), help, background.file_writes);
    tell(&name("written_bytes"), help, background.bytes_written);
}

/// The pools, and what they have.
fn of_pools(store: &StoreInner, all: &mut Vec<Number>) -> Vec<OpenPool> {
    let mut found = Vec::new();
    // No pool is kept open for this: the program would find it open that has just dropped its last handle.
    for (name, open) in store.open_pools().iter() {
        let pool = OpenPool {
            name: name.clone(),
            engine: open.engine,
            is_read_only: open.is_read_only,
        };
        found.push((pool, open.puddles.clone()));
    }
    found.sort_by(|(one, _), (other, _)| one.name.cmp(&other.name));
    let mut by_pool = [Vec::new(), Vec::new(), Vec::new()];
    for (_, puddles) in &found {
        let puddles = puddles.read().unwrap_or_else(PoisonError::into_inner);
        let bytes: usize = puddles.iter().map(|puddle| puddle.size).sum();
        let heaps = puddles.iter().filter_map(|puddle| puddle.heap.get());
        let free: usize = heaps.map(|heap| heap.free_bytes()).sum();
        let values = [puddles.len(), bytes, free];
        for (known, value) in by_pool.iter_mut().zip(values) {
            known.push(value as u64);
        }
    }
    let told = [
        ("pool_puddles", "Puddles that are mapped"),
        ("pool_bytes", "Bytes of puddles that are mapped"),
        (
            "pool_free_bytes",
            "Bytes that no extent covers, of puddles that the program has allocated in",
        ),
    ];
    for ((name, help), values) in told.into_iter().zip(by_pool) {
        all.push(Number {
            name: name.to_owned(),
            help: help.to_owned(),
            grows: false,
            values,
            is_by_pool: true,
        });
    }
    found.into_iter().map(|(pool, _)| pool).collect()
}
