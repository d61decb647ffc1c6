//! A program that lets itself be watched executes what it executes without that. One test: it forks, and a second test
//! thread could hold a lock meanwhile.
#![cfg(target_arch = "x86_64")]

use durum_bench_core::audit;
use durum_bench_core::inputs::Scale;
use durum_bench_core::run::Plan;
use durum_bench_core::side::Side;
use durum_bench_core::sides::durum::Durum;
use durum_bench_core::suite::suite;

#[test]
fn what_is_executed_is_the_same_where_somebody_may_watch() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let plan = Plan {
        suite: suite("core").unwrap(),
        filter: Vec::new(),
        rounds: 1,
        scale: Scale {
            elements: 4,
            small: 2,
            large: 1,
            ..Scale::tiny()
        },
        dir: dir.path(),
    };
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
    assert!(alone.lines().count() > 30, "{alone}");
    for (alone, observed) in alone.lines().zip(observed.lines()) {
        assert_eq!(alone, observed);
    }
}
