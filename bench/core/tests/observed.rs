//! A program that lets itself be watched executes what it executes without that. One test: it forks, and a second test
//! thread could hold a lock meanwhile.
#![cfg(target_arch = "x86_64")]

mod audited;

use durum_bench_core::audit;
use durum_bench_core::side::Side;
use durum_bench_core::sides::durum::Durum;

#[test]
fn what_is_executed_is_the_same_where_somebody_may_watch() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let plan = audited::plan(dir.path(), 8, 8);
    let engines = [Durum::hybrid(), Durum::shadow(), Durum::twin()];
    let audited = |is_observed: bool| {
        let side = |engine: Durum| match is_observed {
            true => engine.observed(),
            false => engine,
        };
        let sides = engines.clone().map(side).into_iter();
        let sides: Vec<Box<dyn Side>> = sides.map(|side| Box::new(side) as Box<dyn Side>).collect();
        audit::run(&plan, &sides, &mut |_| ()).unwrap()
    };
    let (alone, observed) = (audited(false), audited(true));
    println!("{observed}");
    assert!(alone.lines().count() > 3 * 6, "{alone}");
    for (alone, observed) in alone.lines().zip(observed.lines()).skip(1) {
        let [(counts, alone_took), (observed_counts, took)] = [alone, observed].map(parts);
        assert_eq!(counts, observed_counts);
        // The end of a batch takes some instructions more in a process with threads, which its operations share.
        let ratio = took / alone_took;
        assert!(
            (0.98..1.02).contains(&ratio),
            "{alone}, observed {observed}"
        );
    }
}

/// A row and side with their fences and lines, and how many instructions an operation takes.
fn parts(line: &str) -> (&str, f64) {
    let (counts, instructions) = line.trim_end().rsplit_once(' ').unwrap();
    let thousands = instructions.strip_suffix('k');
    let number: f64 = thousands.unwrap_or(instructions).parse().unwrap();
    let unit = if thousands.is_some() { 1e3 } else { 1.0 };
    (counts.trim_end(), number * unit)
}
