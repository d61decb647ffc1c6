//! Fences and write-backs that are counted are those that the processor executes. One test: it forks, and a second
//! test thread could hold a lock meanwhile.
#![cfg(target_arch = "x86_64")]

mod audited;

use durum_bench_core::audit;
use durum_bench_core::side::Side;
use durum_bench_core::sides;

#[test]
fn counters_agree_with_executed_instructions() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let plan = audited::plan(dir.path(), 4, 2);
    let mut sides: Vec<Box<dyn Side>> = sides::memory();
    // The peer's environment is fair only where bench/run.sh set it.
    sides.retain(|side| side.name() != "pmdk");
    let table = audit::run(&plan, &sides, &mut |_| ()).unwrap();
    // The simplest row there is: one store, one write-back, one fence.
    let floor: Vec<&str> = table
        .lines()
        .find(|line| line.starts_with("floor") && line.contains("flush1"))
        .unwrap()
        .split_whitespace()
        .collect();
    assert_eq!(floor[2], "1.00", "fences: {table}");
    assert!(
        table
            .lines()
            .any(|line| line.starts_with("kv_load") && line.contains("hybrid")),
        "{table}"
    );
}
