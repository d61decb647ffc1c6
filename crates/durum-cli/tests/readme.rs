//! The programs in the README are those that are compiled and tested, and the Rust one does what it says.

use std::path::Path;
use std::process::Command;

mod counter {
    include!("readme/counter.rs");

    pub fn run() -> durum::Result<()> {
        main()
    }
}

/// Set for the process that is to be the example.
const BE_THE_EXAMPLE: &str = "DURUM_TEST_BE_THE_EXAMPLE";

/// The text of the fenced block of this language.
fn block(language: &str) -> String {
    let readme = include_str!("../../../README.md");
    let (_, rest) = readme
        .split_once(&format!("```{language}\n"))
        .expect("a fenced block");
    rest.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_examples_in_the_readme_are_those_that_are_tested() {
    assert_eq!(block("rust"), include_str!("readme/counter.rs"));
    assert_eq!(block("c"), include_str!("../../../examples/c/counter.c"));
    assert!(block("rust").lines().count() <= 25 && block("c").lines().count() <= 32);
}

/// Runs itself as the example, whose first argument is then the name of this test: a store in the directory it runs in.
#[test]
fn the_rust_example_counts_its_runs() {
    if std::env::var_os(BE_THE_EXAMPLE).is_some() {
        counter::run().unwrap();
        return;
    }
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    for run in 1..=3 {
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["the_rust_example_counts_its_runs", "--exact", "--nocapture"])
            .env(BE_THE_EXAMPLE, "1")
            .current_dir(dir.path())
            .output()
            .unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && out.contains(&format!("run {run}\n")),
            "{out}"
        );
    }
    let store = dir.path().join("the_rust_example_counts_its_runs");
    assert!(Path::new(&store).join("durum.store").exists());
}
