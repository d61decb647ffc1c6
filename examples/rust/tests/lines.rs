//! How many lines make a program durable, beside what the Corundum paper counts for the same structures (ASPLOS'21,
//! Table 3).

use std::fs;
use std::path::Path;

use similar::{ChangeTag, TextDiff};

/// A program, and the paper's rows: lines of the volatile version, and lines that Corundum and PMDK add.
struct Pair {
    name: &'static str,
    volatile: &'static str,
    durum: &'static str,
    paper: &'static str,
}

const fn pair(
    name: &'static str,
    volatile: &'static str,
    durum: &'static str,
    paper: &'static str,
) -> Pair {
    Pair {
        name,
        volatile,
        durum,
        paper,
    }
}

const PAIRS: [Pair; 6] = [
    pair(
        "linked list",
        "list_volatile.rs",
        "list_durum.rs",
        "192 +19, PMDK +45",
    ),
    pair(
        "binary tree",
        "tree_volatile.rs",
        "tree_durum.rs",
        "256 +12, PMDK +41",
    ),
    pair(
        "hash map",
        "map_volatile.rs",
        "map_durum.rs",
        "165 +10, PMDK +42",
    ),
    pair("B+tree", "btree_volatile.rs", "btree_durum.rs", ""),
    pair("key-value store", "store_volatile.rs", "store_durum.rs", ""),
    pair(
        "word count",
        "word_count_volatile.rs",
        "word_count_durum.rs",
        "",
    ),
];

/// A program's lines without indentation, and without blank ones.
fn lines(file: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/bin")
        .join(file);
    let text = fs::read_to_string(path).unwrap();
    let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = text.lines().map(words);
    lines.filter(|line| !line.is_empty()).collect()
}

/// The lines that the second version has and the first one has not, and the other way round.
fn changes(volatile: &[String], durum: &[String]) -> (usize, usize) {
    let volatile: Vec<&str> = volatile.iter().map(String::as_str).collect();
    let durum: Vec<&str> = durum.iter().map(String::as_str).collect();
    let diff = TextDiff::from_slices(&volatile, &durum);
    let count = |tag| diff.iter_all_changes().filter(|c| c.tag() == tag).count();
    (count(ChangeTag::Insert), count(ChangeTag::Delete))
}

#[test]
fn few_lines_make_a_program_durable() {
    println!("program          lines  new or changed  gone or changed  the paper: Corundum");
    for pair in PAIRS {
        let (volatile, durum) = (lines(pair.volatile), lines(pair.durum));
        let (added, removed) = changes(&volatile, &durum);
        println!(
            "{:<16} {:>5}  {:>6} ({:>4.1} %)  {:>15}  {}",
            pair.name,
            volatile.len(),
            format!("+{added}"),
            added as f64 / volatile.len() as f64 * 100.0,
            format!("-{removed}"),
            pair.paper
        );
        assert!(volatile.len() >= 100, "{} is no program", pair.name);
        assert!(added > 5, "{} is not durable", pair.name);
        if pair.name == "linked list" {
            assert!(added <= 20, "{added} lines make a list durable");
        }
    }
}
