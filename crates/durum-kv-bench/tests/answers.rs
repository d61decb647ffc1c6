//! The benchmarks do what LevelDB's of the same name do, and print it in LevelDB's form.

use std::path::Path;
use std::sync::Mutex;

use durum_kv_bench::stats::Stats;
use durum_kv_bench::store::Batch;
use durum_kv_bench::{Durum, Flags, Output, Store, run};

/// What a run took, and what it printed.
struct Done {
    taken: Vec<(String, Stats)>,
    out: String,
    err: String,
}

fn done(store: impl Store, flags: &Flags) -> Done {
    let mut output = Output {
        out: Vec::new(),
        err: Vec::new(),
    };
    let taken = run(flags, store, &mut output).unwrap();
    let [out, err] = [output.out, output.err].map(|text| String::from_utf8(text).unwrap());
    println!("{out}{err}");
    Done { taken, out, err }
}

fn flags<const N: usize>(dir: &Path, more: [&str; N]) -> Flags {
    let db = format!("--db={}", dir.join("db").display());
    let more = more.into_iter().map(str::to_owned);
    Flags::parse([db].into_iter().chain(more)).unwrap()
}

#[test]
fn every_benchmark_does_its_work() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let names = "--benchmarks=fillseq,readseq,readreverse,readrandom,readmissing,seekrandom,seekordered,readhot,readrandomsmall,overwrite,\
        readwhilewriting,open,compact,stats,sstables,deleteseq,readseq,fillbatch,readseq,deleterandom,fillone,readseq,deleteone,readseq,fillrandom,fillsync,fill100K,readseq";
    let more = [
        "--num=2000",
        "--threads=2",
        "--histogram=1",
        "--cache_size=1",
        names,
    ];
    let flags = flags(dir.path(), more);
    let Done { taken, out, .. } = done(Durum::new(&flags), &flags);
    let of = |name: &str| {
        let found = taken.iter().filter(|(taken, _)| taken == name);
        found.map(|(_, stats)| stats).collect::<Vec<_>>()
    };
    // Two threads do the same.
    assert_eq!(of("fillseq")[0].done, 4000);
    assert_eq!(of("readreverse")[0].done, 4000);
    // As many as there are entries, of which each is there.
    assert_eq!(of("readrandom")[0].message, "(2000 of 2000 found)");
    assert_eq!(of("seekrandom")[0].message, "(2000 of 2000 found)");
    assert_eq!(of("seekordered")[0].message, "(2000 of 2000 found)");
    assert_eq!(of("readwhilewriting")[0].message, "(2000 of 2000 found)");
    // LevelDB counts them by entries, also where it reads fewer.
    assert_eq!(of("readrandomsmall")[0].message, "(2 of 2000 found)");
    let quiet = [of("readmissing")[0], of("readhot")[0]];
    assert_eq!(quiet.map(|stats| stats.found), [0, 4000]);
    assert!(quiet.iter().all(|stats| stats.message.is_empty()));
    // After deleteseq nothing, after fillbatch all, so with one batch; after fill100K its two.
    let scans: Vec<u64> = of("readseq").iter().map(|stats| stats.done).collect();
    assert_eq!(&scans[..5], [4000, 0, 4000, 4000, 0]);
    assert!(scans[5] <= 8, "{scans:?}");
    assert!(out.contains("\nfillseq      : ") && out.contains(" micros/op; "));
    // Scans have times, too.
    let scan = out.split("\nreadseq ").nth(1).unwrap();
    assert!(
        scan.contains("\nMicroseconds per op:\nCount: 4000  Average: "),
        "{scan}"
    );
}

#[test]
fn benchmarks_of_rows_and_flights_do_their_work() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let names = "--benchmarks=fillseqmulti,readseq,readrandommulti,fillseqflying,readseq,overwriteflying,overwritemulti,readseq,readrandommulti,fillrandommulti,readseq";
    let flags = flags(dir.path(), ["--num=2000", "--multi=7", names]);
    let Done { taken, .. } = done(Durum::new(&flags), &flags);
    for (name, stats) in &taken {
        match &**name {
            "readrandommulti" => assert_eq!(stats.message, "(2000 of 2000 found)"),
            "readseq" => assert!(stats.done <= 2000),
            _ => assert_eq!((stats.done, stats.bytes), (2000, 2000 * 116), "{name}"),
        }
    }
    let scans = taken.iter().filter(|(name, _)| name == "readseq");
    let scans: Vec<u64> = scans.map(|(_, stats)| stats.done).collect();
    assert_eq!(scans[..3], [2000; 3]);
    // Keys that are drawn come several times.
    assert!((1000..1500).contains(&scans[3]), "{scans:?}");
    // A store without such calls is asked for one key after the other, for the same ones.
    let one_by_one = asked("fillrandom", 500).0.puts;
    assert_eq!(asked("fillrandommulti", 500).0.puts, one_by_one);
    assert_eq!(asked("overwriteflying", 500).0.puts, one_by_one);
    assert_eq!(
        asked("readrandommulti", 500).0.gets,
        asked("readrandom", 500).0.gets
    );
}

#[test]
fn leveldbs_list_and_a_misspelt_name_run_to_the_end() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    // db_bench's own, with the comma at its end.
    let list = "--benchmarks=fillseq,fillsync,fillrandom,overwrite,readrandom,readrandom,readseq,readreverse,compact,readrandom,readseq,readreverse,\
        fill100K,crc32c,snappycomp,snappyuncomp,";
    let more = ["--num=1000", "--reads=-1", "--compression=1", list];
    let mut flags = flags(dir.path(), more);
    assert_eq!(
        list.trim_end_matches(','),
        format!("--benchmarks={}", Flags::default().benchmarks)
    );
    flags.benchmarks.insert_str(0, "readrandm,heapprofile,");
    let Done { taken, out, err } = done(Durum::new(&flags), &flags);
    assert_eq!(taken.len(), 13);
    assert!(err.contains("unknown benchmark 'readrandm'\n"), "{err}");
    assert!(err.contains("there are no heap profiles here\n"), "{err}");
    for name in ["crc32c", "snappycomp", "snappyuncomp"] {
        let line = format!("\n{name:<12} : skipped (times a part of LevelDB's)\n");
        assert!(out.contains(&line), "{out}");
    }
    assert!(!out.contains("readrandm"));
}

#[test]
fn the_lines_before_results_are_leveldbs() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let more = ["--num=1000000", "--benchmarks=", "--key_prefix=4"];
    let flags = flags(dir.path(), more);
    let Done { out, err, .. } = done(Durum::new(&flags), &flags);
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(
        lines[..5],
        [
            "Keys:       20 bytes each",
            "Values:     100 bytes each (50 bytes after compression)",
            "Entries:    1000000",
            "RawSize:    114.4 MB (estimated)",
            "FileSize:   66.8 MB (estimated)",
        ]
    );
    assert_eq!(*lines.last().unwrap(), "-".repeat(48));
    assert!(err.starts_with("durum-kv:   version "), "{err}");
    assert!(err.contains("\nDate:       "), "{err}");
}

/// What a store was asked for.
#[derive(Default)]
struct Asked {
    puts: Vec<Vec<u8>>,
    batches: Vec<usize>,
    gets: Vec<Vec<u8>>,
    iterators: usize,
    seeks: Vec<Vec<u8>>,
}

/// Stores nothing.
#[derive(Default)]
struct Mock(Mutex<Asked>);

impl Store for &Mock {
    fn version(&self) -> String {
        "Mock 1".into()
    }
    fn open(&mut self, _: bool) -> Result<(), String> {
        Ok(())
    }
    fn close(&mut self) {}
    fn put(&self, key: &[u8], _: &[u8], _: bool) -> Result<(), String> {
        self.0.lock().unwrap().puts.push(key.to_vec());
        Ok(())
    }
    fn write(&self, batch: Batch<'_>, _: bool) -> Result<(), String> {
        self.0.lock().unwrap().batches.push(batch.len());
        Ok(())
    }
    fn get(&self, key: &[u8], _: &mut Vec<u8>) -> Result<bool, String> {
        self.0.lock().unwrap().gets.push(key.to_vec());
        Ok(false)
    }
    fn scan(&self, _: bool, _: u64, _: &mut impl FnMut(usize)) -> Result<(), String> {
        self.0.lock().unwrap().iterators += 1;
        Ok(())
    }
    fn seek(&self, key: &[u8]) -> Result<bool, String> {
        let mut asked = self.0.lock().unwrap();
        asked.iterators += 1;
        asked.seeks.push(key.to_vec());
        Ok(true)
    }
    fn seek_many(
        &self,
        count: u64,
        next: &mut impl FnMut(&mut Vec<u8>),
        seen: &mut impl FnMut(bool),
    ) -> Result<(), String> {
        let mut asked = self.0.lock().unwrap();
        asked.iterators += 1;
        for _ in 0..count {
            let mut key = Vec::new();
            next(&mut key);
            asked.seeks.push(key);
            seen(true);
        }
        Ok(())
    }
}

/// Runs one benchmark on the mock. What it was asked for, and what the line says at its end.
fn asked(name: &str, num: u64) -> (Asked, String) {
    let flags = Flags {
        benchmarks: name.into(),
        num,
        ..Flags::default()
    };
    let mock = Mock::default();
    let done = done(&mock, &flags);
    let message = done.taken[0].1.message.clone();
    (mock.0.into_inner().unwrap(), message)
}

fn number(key: &[u8]) -> u64 {
    std::str::from_utf8(key).unwrap().parse().unwrap()
}

#[test]
fn fewer_writes_draw_keys_of_as_many_entries() {
    for name in ["fillsync", "fill100K"] {
        let (asked, message) = asked(name, 1_000_000);
        assert_eq!(asked.puts.len(), 1000);
        let max = asked.puts.iter().map(|key| number(key)).max().unwrap();
        assert!(max > 900_000, "{name}: {max}");
        assert_eq!(message, "(1000 ops)");
    }
    // The first numbers of LevelDB's generator from the seed of its first thread: 1001 * 16807, and on, modulo
    // 2^31 - 1.
    let (asked_for, message) = asked("fillrandom", 2000);
    let keys: Vec<u64> = asked_for.puts[..3].iter().map(|key| number(key)).collect();
    let mut state = 1001;
    let drawn = keys.iter().map(|_| {
        state = state * 16807 % ((1 << 31) - 1);
        state % 2000
    });
    assert_eq!(keys, drawn.collect::<Vec<u64>>());
    // Said only where there are fewer.
    assert_eq!(message, "");
    assert_eq!(asked("fillsync", 999).1, "(0 ops)");
}

#[test]
fn a_program_may_ask_for_more_of_the_slow_writes() {
    let mut flags = Flags {
        benchmarks: "fillsync,fill100K".into(),
        num: 5000,
        ..Flags::default()
    };
    let counts = |flags: &Flags| {
        let mock = Mock::default();
        let done = done(&mock, flags);
        let writes = mock.0.into_inner().unwrap().puts.len();
        let messages = done.taken.into_iter().map(|(_, stats)| stats.message);
        (writes, messages.collect::<Vec<_>>())
    };
    assert_eq!(
        counts(&flags),
        (10, vec!["(5 ops)".into(), "(5 ops)".into()])
    );
    (flags.sync_writes, flags.large_writes) = (Some(1000), Some(200));
    let messages = vec!["(1000 ops)".into(), "(200 ops)".into()];
    assert_eq!(counts(&flags), (1200, messages));
}

#[test]
fn batches_are_full() {
    assert_eq!(asked("fillbatch", 2500).0.batches, [1000; 3]);
    assert_eq!(asked("fillone", 2500).0.batches, [2500]);
    assert_eq!(asked("deleteone", 2500).0.batches, [2500]);
    assert_eq!(asked("deleteseq", 3).0.batches, [1; 3]);
}

#[test]
fn keys_that_are_missing_are_cut_by_a_byte() {
    let (asked, _) = asked("readmissing", 100);
    assert_eq!(asked.gets.len(), 100);
    assert!(asked.gets.iter().all(|key| key.len() == 15));
}

#[test]
fn seeks_in_order_take_one_iterator() {
    let (ordered, message) = asked("seekordered", 3000);
    assert_eq!(ordered.iterators, 1);
    assert_eq!(message, "(3000 of 3000 found)");
    let near = |pair: &[Vec<u8>]| (number(&pair[1]) + 3000 - number(&pair[0])) % 3000 < 100;
    assert!(ordered.seeks.windows(2).all(near));
    assert_eq!(asked("seekrandom", 3000).0.iterators, 3000);
}

#[test]
fn comparisons_are_counted_on_demand() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let more = [
        "--num=1000",
        "--comparisons=1",
        "--benchmarks=fillrandom,readrandom,stats",
    ];
    let flags = flags(dir.path(), more);
    let Done { out, .. } = done(Durum::new(&flags), &flags);
    let counts: Vec<u64> = out
        .lines()
        .filter_map(|line| line.strip_prefix("Comparisons: ")?.parse().ok())
        .collect();
    assert_eq!(counts.len(), 2);
    // A search among some hundreds of keys takes more than two.
    assert!(counts.iter().all(|count| *count > 2000), "{counts:?}");
}

#[test]
fn an_existing_database_is_kept() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let first = flags(dir.path(), ["--num=500", "--benchmarks=fillseq"]);
    done(Durum::new(&first), &first);
    let more = [
        "--num=500",
        "--use_existing_db=1",
        "--benchmarks=fillrandom,readseq",
    ];
    let again = flags(dir.path(), more);
    let Done { taken, out, .. } = done(Durum::new(&again), &again);
    assert!(out.contains("fillrandom   : skipped (--use_existing_db is true)\n"));
    assert_eq!(taken[0].1.done, 500);
    // Nothing is made where there is nothing.
    let other = tempfile::tempdir_in("/dev/shm").unwrap();
    let nothing = flags(other.path(), ["--use_existing_db=1"]);
    let mut output = Output {
        out: Vec::new(),
        err: Vec::new(),
    };
    assert!(run(&nothing, Durum::new(&nothing), &mut output).is_err());
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
        "--reads=many",
    ] {
        assert!(Flags::parse([flag.to_owned()]).is_err(), "{flag}");
    }
}

#[test]
fn the_manual_page_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/man/durum-kv-bench.1");
    let cure =
        "make it anew: `cargo run -p durum-kv-bench -- --manual > docs/man/durum-kv-bench.1`";
    let found = std::fs::read_to_string(path).unwrap_or_default();
    assert!(found == durum_kv_bench::manual::page(), "{cure}");
}
