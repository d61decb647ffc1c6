//! The programs in the README are those that are compiled and tested, and do what they say; so does the untyped counter
//! of docs/tutorials/rust.md.

use std::path::Path;
use std::process::Command;

mod counter {
    include!("readme/counter.rs");

    pub fn run() -> durum::Result<()> {
        main()
    }
}

mod typed_counter {
    include!("readme/typed_counter.rs");

    pub fn run() -> durum::Result<()> {
        main()
    }
}

/// Set for the process that is to be the example.
const BE_THE_EXAMPLE: &str = "DURUM_TEST_BE_THE_EXAMPLE";

/// The texts of the README's fenced blocks of this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let readme = include_str!("../../../README.md");
    let fence = format!("```{language}\n");
    let begun = readme.split(&*fence).skip(1);
    begun
        .map(|rest| rest.split_once("```").unwrap().0)
        .collect()
}

#[test]
fn the_examples_in_the_readme_are_those_that_are_tested() {
    assert_eq!(blocks("rust"), [include_str!("readme/typed_counter.rs")]);
    assert_eq!(blocks("c"), [include_str!("../../../examples/c/counter.c")]);
    assert!(blocks("rust")[0].lines().count() <= 25 && blocks("c")[0].lines().count() <= 32);
}

/// Runs itself as the example, whose first argument is then the name of this test: a store in the directory it runs in.
fn counts_its_runs(test: &str, example: fn() -> durum::Result<()>) {
    if std::env::var_os(BE_THE_EXAMPLE).is_some() {
        example().unwrap();
        return;
    }
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    for run in 1..=3 {
        let output = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture"])
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
    assert!(
        Path::new(&dir.path().join(test))
            .join("durum.store")
            .exists()
    );
}

#[test]
fn the_rust_example_counts_its_runs() {
    counts_its_runs("the_rust_example_counts_its_runs", counter::run);
}

#[test]
fn the_typed_example_counts_its_runs() {
    counts_its_runs("the_typed_example_counts_its_runs", typed_counter::run);
}
