//! Fuzzing without a fuzzer: corpora, and mutations of them, for the tests of the crates whose parsers are fuzzed.

use std::fs;
use std::path::PathBuf;

/// Where the corpus of a target lies.
pub fn corpus_dir(target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target)
}

/// The inputs of a target, with their names.
pub fn corpus(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(corpus_dir(target))
        .unwrap()
        .map(|file| file.unwrap().path())
        .map(|path| {
            (
                path.file_name().unwrap().to_string_lossy().into_owned(),
                fs::read(&path).unwrap(),
            )
        })
        .collect();
    files.sort();
    files
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}

fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    const NUMBERS: [u64; 8] = [0, 1, 2, 0x7f, 0xff, 0xffff, u32::MAX as u64, u64::MAX];
    let at = random.below(input.len());
    let len = random.below(16).min(input.len() - at);
    match random.below(8) {
        0 | 1 if at < input.len() => input[at] ^= 1 << random.below(8),
        2 if at < input.len() => input[at] = random.next() as u8,
        3 => {
            let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
            let width = [1, 2, 4, 8][random.below(4)].min(input.len() - at);
            input[at..at + width].copy_from_slice(&number[..width]);
        }
        4 => drop(input.drain(at..at + len)),
        5 => {
            let copy = input[at..at + len].to_vec();
            let to = random.below(input.len());
            input.splice(to..to, copy);
        }
        6 => input.truncate(at),
        _ => {
            let from = random.below(other.len());
            let piece = &other[from..(from + len.max(1)).min(other.len())];
            let end = (at + piece.len()).min(input.len());
            input.splice(at..end, piece.iter().copied());
        }
    }
}

/// The first of at least `least` mutations at which `function` fails, with what it was made of. As many are tried as
/// take about half a second. The same in each run: a failure is found again by running the test again.
pub fn first_failure(
    corpus: &[(String, Vec<u8>)],
    function: fn(&[u8]),
    least: usize,
) -> Option<(usize, String, Vec<u8>)> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let start = std::time::Instant::now();
    for count in 0..200_000 {
        if count >= least && start.elapsed().as_millis() > 500 {
            break;
        }
        let (name, seed) = &corpus[random.below(corpus.len())];
        let (_, other) = &corpus[random.below(corpus.len())];
        let mut input = seed.clone();
        for _ in 0..=random.below(6) {
            mutate(&mut input, other, &mut random);
        }
        if std::panic::catch_unwind(|| function(&input)).is_err() {
            return Some((count, name.clone(), input));
        }
    }
    None
}

/// Bytes as text.
pub fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
