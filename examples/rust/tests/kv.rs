//! The programs in docs/tutorials/kv.md are those of `examples/kv`, and the one in Rust does what it says.
//! `ci/test-kv.sh` compiles and runs the others.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

mod names {
    include!("../../kv/names.rs");

    pub fn run() -> durum_kv::Result<()> {
        main()
    }
}

/// Set for the process that is to be the program.
const BE_THE_PROGRAM: &str = "DURUM_TEST_BE_THE_PROGRAM";

#[test]
fn the_page_on_the_store_has_the_programs_as_they_are_tested() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = fs::read_to_string(top.join("docs/tutorials/kv.md")).unwrap();
    // The mark behind `rust` keeps this one apart from pieces of code, which are in the tests of durum-kv.
    for (name, fence) in [
        ("names.rs", "rust,ignore"),
        ("names.c", "c"),
        ("names.cpp", "cpp"),
    ] {
        let program = fs::read_to_string(top.join("examples/kv").join(name)).unwrap();
        let shown = format!("```{fence}\n{program}```\n");
        assert!(
            page.contains(&shown),
            "docs/tutorials/kv.md has another {name}"
        );
    }
}

#[test]
fn the_program_counts_names() {
    const NAME: &str = "the_program_counts_names";
    if std::env::var_os(BE_THE_PROGRAM).is_some() {
        names::run().unwrap();
        return;
    }
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    for run in 1..=3 {
        // The program's first argument is the name of this test.
        let output = Command::new(std::env::current_exe().unwrap())
            .args([NAME, "--exact", "--nocapture"])
            .env(BE_THE_PROGRAM, "1")
            .current_dir(dir.path())
            .output()
            .unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        assert!(out.contains(&format!("{NAME}: {run}\n")), "{out}");
    }
    support::assert_comes_back(&dir.path().join("names"));
}
