//! The programs of examples/rust run on both engines, and on the peer if it is built, and give the right answers.

use durum_bench_core::inputs::Scale;
use durum_bench_core::measure::{Clock, Meter};
use durum_bench_core::run::{Plan, run};
use durum_bench_core::sides;
use durum_bench_core::suite::suite;

/// Of each program, what its rows begin with and how many they are.
const PROGRAMS: [(&str, usize); 6] = [
    ("stack_", 3),
    ("bst_", 3),
    ("hash_", 3),
    ("bplus_", 3),
    ("store_", 5),
    ("words_", 3),
];

#[test]
fn every_program_gives_the_right_answers_on_every_side() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let plan = Plan {
        suite: suite("programs").unwrap(),
        filter: Vec::new(),
        rounds: 2,
        // Enough for hash maps that grow again and again, and for a chunk in each lane.
        scale: Scale {
            programs: 3_000,
            words: 10_000,
            ..Scale::tiny()
        },
        dir: dir.path(),
    };
    let sides = sides::programs();
    let measured = run(&plan, &sides, &mut Meter::new(Clock::Cpu), &mut |_| ()).unwrap();
    for (name, count) in PROGRAMS {
        let of_program = |row: &&str| row.starts_with(name);
        let rows = measured.iter().map(|measured| measured.row.name);
        assert_eq!(rows.filter(of_program).count(), count, "{name}");
    }
    for measured in &measured {
        assert_eq!(measured.columns.len(), sides.len());
        // Only the rate of two threads is a multiple of anything but itself.
        let scaling = measured.columns.iter().map(|column| column.scaling());
        let is_scaled = measured.row.name.starts_with("words_");
        assert!(
            scaling
                .into_iter()
                .all(|scaling| scaling.is_some() == is_scaled)
        );
    }
}
