//! What is counted by single steps: rows of all kinds, small enough for that.

use std::path::Path;

use durum_bench_core::inputs::Scale;
use durum_bench_core::run::Plan;
use durum_bench_core::suite::suite;

pub fn plan(dir: &Path, elements: usize, small: usize) -> Plan<'_> {
    Plan {
        suite: suite("core").unwrap(),
        filter: [
            "floor",
            "add",
            "alloc_256",
            "free_256",
            "list_append",
            "kv_load",
        ]
        .map(str::to_owned)
        .to_vec(),
        rounds: 1,
        scale: Scale {
            elements,
            small,
            large: 1,
            ..Scale::tiny()
        },
        dir,
    }
}
