//! What the command takes, whatever the subcommand.

use crate::support::*;

#[test]
fn shells_complete_what_the_command_takes() {
    for shell in ["bash", "zsh", "fish"] {
        let script = succeeds(&["completions", shell]).out;
        for word in ["inspect", "redact", "dry-run"] {
            assert!(script.contains(word), "{shell}: no {word}");
        }
    }
    fails(&["completions", "tcl"], 2, "bash");
    // As bash does when a user has typed the last word and a tab.
    let complete = |words: &str| {
        let script = format!(
            "eval \"$('{}' completions bash)\"; COMP_WORDS=(durum {words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _durum durum \"${{COMP_WORDS[COMP_CWORD]}}\" \"\"; echo \"${{COMPREPLY[*]}}\"",
            env!("CARGO_BIN_EXE_durum")
        );
        let run = std::process::Command::new("bash")
            .args(["--norc", "-c", &script])
            .output();
        let run = run.unwrap();
        assert!(run.stderr.is_empty(), "{run:?}");
        String::from_utf8(run.stdout).unwrap()
    };
    assert_eq!(complete("insp"), "inspect\n");
    assert_eq!(complete("gc --dr"), "--dry-run\n");
}

#[test]
fn unknown_arguments_are_refused_and_help_is_not() {
    assert_eq!(durum(&["frobnicate"]).code, 2);
    assert_eq!(durum(&["ls"]).code, 2);
    assert_eq!(durum::<&str>(&[]).code, 2);
    for command in [
        "init", "ls", "stat", "inspect", "check", "recover", "clone", "export", "import", "rm",
        "demo",
    ] {
        let help = succeeds(&[command, "--help"]);
        assert!(
            help.out.contains("Example"),
            "{command} --help has an example"
        );
    }
    assert!(succeeds(&["--version"]).out.starts_with("durum "));
}

#[test]
fn output_that_nobody_reads_to_the_end_is_no_failure() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_durum"))
        .args(["inspect", text(&store), "things"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
}
