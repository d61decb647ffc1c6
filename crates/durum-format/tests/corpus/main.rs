//! Everything that parses media, fuzzed on stable: the corpora in `fuzz/corpus`, and mutations of them.
//!
//! `DURUM_WRITE_CORPUS=1 cargo test -p durum-format --test corpus` writes the seeds anew after a target has changed.
//! Inputs that `cargo fuzz` found are put beside them under their own names.

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/contents.rs"]
mod contents;
mod files;
mod seeds;
// What the fuzzer calls, so that a corpus is replayed without a nightly toolchain.
#[path = "../../../../fuzz/src/lib.rs"]
mod fuzz;
#[path = "../../../../fuzz/src/replay.rs"]
mod replay;

use std::fs;

use fuzz::TARGETS;
use replay::{corpus, corpus_dir, first_failure, hex_of};
use seeds::seeds;

/// Seeds are small images of the version that is written: a changed one is a changed layout.
#[test]
fn seeds_on_disk_are_those_that_this_build_makes() {
    for (target, _) in TARGETS {
        let seeds = seeds(target);
        assert!(!seeds.is_empty(), "{target} has seeds");
        for (index, seed) in seeds.iter().enumerate() {
            let path = corpus_dir(target).join(format!("seed-{index}"));
            if std::env::var_os("DURUM_WRITE_CORPUS").is_some() {
                fs::create_dir_all(corpus_dir(target)).unwrap();
                fs::write(&path, seed).unwrap();
            }
            // Not `assert_eq`, which would print thousands of bytes.
            assert!(
                &fs::read(&path).unwrap() == seed,
                "{} is not the seed that this build makes",
                path.display()
            );
        }
    }
}

#[test]
fn no_input_of_the_corpora_makes_a_parser_fail() {
    for (target, function) in TARGETS {
        for (_, input) in corpus(target) {
            function(&input);
        }
    }
}

#[test]
fn no_mutation_of_the_corpora_makes_a_parser_fail() {
    for (target, function) in TARGETS {
        if let Some((count, name, input)) = first_failure(&corpus(target), function, 2_000) {
            panic!("{target}: mutation {count}, of {name}: {}", hex_of(&input));
        }
    }
}

/// A canary: a parser that trusts one length must be caught, or nothing above says anything.
#[test]
fn a_parser_that_trusts_a_length_is_caught() {
    let trusting = |data: &[u8]| {
        if let Some(len) = data.first() {
            assert!(data.len() > usize::from(*len) / 8, "length beyond the end");
        }
    };
    assert!(first_failure(&corpus("log_entries"), trusting, 20_000).is_some());
}
