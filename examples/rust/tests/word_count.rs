//! The word count with threads: as many words as the plain one, whenever it was killed on the way.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use support::{Random, assert_comes_back, assert_nothing_is_lost};

const VOLATILE: &str = env!("CARGO_BIN_EXE_word_count_volatile");
const DURUM: &str = env!("CARGO_BIN_EXE_word_count_durum");
const FILES: [&str; 3] = ["a.txt", "b.txt", "c.txt"];

/// Makes the files, of words of which some are frequent and most are rare. Gives their texts.
fn corpus(dir: &Path, words: usize) -> Vec<String> {
    let mut random = Random(3);
    let mut write = |file: &str| {
        let mut text = String::new();
        for _ in 0..words {
            let rank = (0..3).fold(20_000, |limit, _| 1 + random.below(limit));
            let end = ["", ",", ".\n", "\n"][random.below(4)];
            text += &format!("wört{rank}{end} ");
        }
        fs::write(dir.join(file), &text).unwrap();
        text
    };
    FILES.into_iter().map(&mut write).collect()
}

fn command(program: &str, dir: &Path, how: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.current_dir(dir).args(how);
    command
}

fn run(program: &str, dir: &Path, how: &[&str]) -> Output {
    let output = command(program, dir, how).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program}: {told}");
    output
}

/// What a program prints: the words, and at the end the status.
fn text(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn count(program: &str, dir: &Path, how: &str, threads: usize) -> Output {
    let threads = threads.to_string();
    run(program, dir, &[&[how, &threads], &FILES[..]].concat())
}

/// The numbers in a text.
fn numbers(text: &str) -> Vec<usize> {
    let parts = text.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|part| part.parse().ok()).collect()
}

#[test]
fn both_count_the_same() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    corpus(dir.path(), 20_000);
    let expected = text(&count(VOLATILE, dir.path(), "run", 4));
    assert!(expected.contains("counted 60000 waiting 0"));
    assert_eq!(text(&count(DURUM, dir.path(), "run", 4)), expected);
    // A second run finds nothing more to read.
    assert_eq!(text(&count(DURUM, dir.path(), "apart", 2)), expected);
    assert_nothing_is_lost(&dir.path().join("word_count.store"));
    assert_comes_back(&dir.path().join("word_count.store"));
}

#[test]
fn no_word_is_lost_or_counted_twice_by_kills() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let texts = corpus(dir.path(), 60_000);
    let expected = text(&count(VOLATILE, dir.path(), "run", 2));
    let store = dir.path().join("word_count.store");
    let start = Instant::now();
    count(DURUM, dir.path(), "run", 3);
    let whole = start.elapsed();
    fs::remove_dir_all(&store).unwrap();
    let mut random = Random(4);
    let mut kills_on_the_way = 0;
    for round in 0..7 {
        // Each time another number of threads counts, some of them what another one has left.
        let threads = (1 + round % 5).to_string();
        let how = [&["run", &threads], &FILES[..]].concat();
        let mut child = command(DURUM, dir.path(), &how)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let part = random.below(150) as u32;
        std::thread::sleep(Duration::from_millis(2) + whole * part / 1000);
        child.kill().unwrap();
        child.wait().unwrap();
        let told = text(&run(DURUM, dir.path(), &["status"]));
        let [counted, waiting, read @ ..] = &numbers(told.lines().last().unwrap())[..] else {
            panic!("no status: {told}");
        };
        let read_words: usize = texts
            .iter()
            .zip(read)
            .map(|(text, read)| text[..*read].split_whitespace().count())
            .sum();
        assert_eq!(counted + waiting, read_words, "{counted} and {waiting}");
        kills_on_the_way += usize::from(*counted > 0 && *counted < 180_000);
        assert_nothing_is_lost(&store);
    }
    assert!(kills_on_the_way > 0, "no kill met work");
    assert_eq!(text(&count(DURUM, dir.path(), "run", 2)), expected);
    assert_nothing_is_lost(&store);
}

/// Threads that count do not meet: each has its own lanes, and allocates from its own slabs.
#[test]
fn threads_that_count_do_not_wait_for_each_other() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    corpus(dir.path(), 100_000);
    let processors = std::thread::available_parallelism().unwrap().get();
    println!(
        "threads  volatile  durum (million words/s)  in the pool  durum, while reading  contended  in the pool"
    );
    for threads in 1..=processors.min(8) {
        let rate = |output: &Output| {
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            let found = numbers(&told);
            // "apart 4 threads: 1234 us", and for the durable one "contended 0, 3 in the pool"
            let met = found.get(2).copied().zip(found.get(3).copied());
            (300_000.0 / found[1] as f64, met)
        };
        let plain = count(VOLATILE, dir.path(), "apart", threads);
        let durable = count(DURUM, dir.path(), "apart", threads);
        assert_eq!(text(&durable), text(&plain), "{threads} threads");
        let (volatile, _) = rate(&plain);
        let (apart, met_apart) = rate(&durable);
        fs::remove_dir_all(dir.path().join("word_count.store")).unwrap();
        let (together, met) = rate(&count(DURUM, dir.path(), "run", threads));
        fs::remove_dir_all(dir.path().join("word_count.store")).unwrap();
        let ((contended, within), (met, met_within)) = (met_apart.unwrap(), met.unwrap());
        println!(
            "{threads:>7}  {volatile:>8.2}  {apart:>23.2}  {within:>11}  {together:>20.2}  {met:>9}  {met_within:>11}"
        );
        assert_eq!(contended, 0, "{threads} threads met");
    }
}
