//! What the service and its clients parse of each other, fuzzed on stable: the messages of `golden.txt`, the corpora in
//! `fuzz/corpus`, and mutations of both.
//!
//! `DURUM_WRITE_CORPUS=1 cargo test -p durum-protocol --test corpus` writes the seeds of the fuzzer anew.

#[path = "../../../fuzz/src/protocol.rs"]
mod fuzz;
#[path = "../../../fuzz/src/replay.rs"]
mod replay;

use std::fs;

use durum_protocol::Frame;
use durum_protocol::frame::REQUEST_MAX;
use fuzz::TARGETS;
use replay::{corpus, corpus_dir, first_failure, hex_of};

/// All messages that there are.
fn golden() -> Vec<Vec<u8>> {
    let bytes = |line: &str| {
        let digits = line.as_bytes().chunks(2);
        let digits = digits.map(|pair| std::str::from_utf8(pair).unwrap());
        digits
            .map(|pair| u8::from_str_radix(pair, 16).unwrap())
            .collect()
    };
    let lines = include_str!("golden.txt").lines();
    lines
        .filter_map(|line| line.strip_prefix("    ").map(bytes))
        .collect()
}

/// Packets in a row, as the functions take them.
fn row(packets: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let with_length =
        |packet: Vec<u8>| [&(packet.len() as u16).to_le_bytes(), &packet[..]].concat();
    packets.into_iter().flat_map(with_length).collect()
}

/// Each message in a packet of its own, and one that takes three.
fn seeds() -> Vec<Vec<u8>> {
    let packet = |(number, message): (usize, &Vec<u8>)| {
        let packets = Frame::request(number as u64).packets(message, 0);
        packets.collect::<Vec<_>>()
    };
    let golden = golden();
    assert!(golden.len() > 30, "{}", golden.len());
    let all = row(golden.iter().enumerate().flat_map(packet));
    let text = "u64".repeat(50);
    let long =
        durum_protocol::message::encode(&durum_protocol::Request::RegisterType { id: 7, text });
    // As many descriptors as need three packets.
    let long = row(Frame::request(1).packets(&long, 600));
    vec![all, long]
}

/// The corpus of a target, and messages that are newer than it.
fn inputs(target: &str) -> Vec<(String, Vec<u8>)> {
    let new = seeds().into_iter().chain(golden());
    let new = new.map(|input| ("golden.txt".to_owned(), input));
    corpus(target).into_iter().chain(new).collect()
}

#[test]
fn no_input_of_the_corpora_makes_a_parser_fail() {
    for (target, function) in TARGETS {
        if std::env::var_os("DURUM_WRITE_CORPUS").is_some() {
            fs::create_dir_all(corpus_dir(target)).unwrap();
            for (index, seed) in seeds().iter().enumerate() {
                fs::write(corpus_dir(target).join(format!("seed-{index}")), seed).unwrap();
            }
        }
        for (_, input) in inputs(target) {
            function(&input);
        }
    }
}

#[test]
fn no_mutation_of_the_corpora_makes_a_parser_fail() {
    for (target, function) in TARGETS {
        if let Some((count, name, input)) = first_failure(&inputs(target), function, 2_000) {
            panic!("{target}: mutation {count}, of {name}: {}", hex_of(&input));
        }
    }
}

/// The packets of the seeds reach the messages in them, or nothing above says anything.
#[test]
fn the_seeds_hold_all_messages() {
    let seeds = seeds();
    assert_eq!(fuzz::messages(&seeds[0], REQUEST_MAX), golden());
    assert_eq!(fuzz::messages(&seeds[1], REQUEST_MAX).len(), 1);
}

/// A canary: a parser that trusts one length is caught.
#[test]
fn a_parser_that_trusts_a_length_is_caught() {
    let trusting = |data: &[u8]| {
        for message in fuzz::messages(data, REQUEST_MAX) {
            assert!(
                message
                    .first()
                    .is_none_or(|length| usize::from(*length) <= message.len() + 30)
            );
        }
    };
    assert!(first_failure(&inputs("protocol_service"), trusting, 20_000).is_some());
}
