//! The benchmarks do what their names say, and print it in LevelDB's form.

use durum_kv_bench::{Durum, Flags, run};

#[test]
fn every_benchmark_does_its_work() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let names = "fillseq,readseq,readreverse,readrandom,readmissing,seekrandom,seekordered,readhot,overwrite,\
        readwhilewriting,open,compact,stats,sstables,deleteseq,readseq,fillbatch,readseq,deleterandom,fillrandom,fillsync,fill100K,readseq";
    let flag = |name: &str, value: &str| format!("--{name}={value}");
    let flags = Flags::parse([
        flag("num", "2000"),
        flag("threads", "2"),
        flag("histogram", "1"),
        flag("cache_size", "1"),
        flag("benchmarks", names),
        flag("db", dir.path().join("db").to_str().unwrap()),
    ])
    .unwrap();
    let mut out = Vec::new();
    let taken = run(&flags, Durum::new(&flags), &mut out).unwrap();
    let out = String::from_utf8(out).unwrap();
    println!("{out}");
    let done: Vec<(&str, u64)> = taken
        .iter()
        .map(|(name, stats)| (&name[..], stats.done))
        .collect();
    // Two threads do the same.
    assert_eq!(done[0], ("fillseq", 4000));
    assert_eq!(done[1], ("readseq", 4000));
    assert_eq!(done[2], ("readreverse", 4000));
    let message = |at: usize| &taken[at].1.message[..];
    assert_eq!(message(3), "(2000 of 2000 found)");
    assert_eq!(message(4), "(0 of 2000 found)");
    assert_eq!(message(5), "(2000 of 2000 found)");
    let scans: Vec<u64> = (taken.iter())
        .filter(|(name, _)| name == "readseq")
        .map(|(_, stats)| stats.done)
        .collect();
    // After deleteseq nothing, after fillbatch all, after fill100K its two.
    assert_eq!(&scans[..3], [4000, 0, 4000]);
    assert!(scans[3] <= 4, "{scans:?}");
    assert!(out.contains("\nfillseq      : ") && out.contains(" micros/op; "));
    assert!(out.contains("Keys:       16 bytes each\n") && out.contains("Microseconds per op:"));
}

#[test]
fn flags_that_mean_nothing_are_refused() {
    for flag in [
        "--numb=3",
        "--num=0",
        "--num",
        "num=3",
        "--histogram=2",
        "--engine=steam",
    ] {
        assert!(Flags::parse([flag.to_owned()]).is_err(), "{flag}");
    }
}
