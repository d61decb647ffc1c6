//! Colours are there where people read, and nowhere else; no other byte depends on them.

mod support;

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use support::*;

const ESCAPE: char = '\u{1b}';

/// Runs `durum` in pipes, with these variables of the environment.
fn piped(arguments: &[&str], environment: &[(&str, &str)]) -> Run {
    let Output {
        status,
        stdout,
        stderr,
    } = command(arguments, environment).output().unwrap();
    Run {
        code: status.code().unwrap(),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

fn command(arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_durum"));
    for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "CI"] {
        command.env_remove(name);
    }
    command
        .args(arguments)
        .env("TERM", "xterm-256color")
        .envs(environment.iter().copied())
        .stdin(Stdio::null());
    command
}

/// What `durum` prints on a terminal, output and messages.
fn on_terminal(arguments: &[&str], environment: &[(&str, &str)]) -> String {
    let (mut controller, mut terminal) = (-1, -1);
    let nothing = std::ptr::null_mut();
    // SAFETY: both numbers are valid for writes; neither a name nor settings are asked for or given.
    let opened = unsafe {
        libc::openpty(
            &raw mut controller,
            &raw mut terminal,
            nothing,
            nothing.cast(),
            nothing.cast(),
        )
    };
    assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the descriptors were just opened, and nobody else has them.
    let (mut controller, terminal) = unsafe {
        (
            File::from_raw_fd(controller),
            OwnedFd::from_raw_fd(terminal),
        )
    };
    let mut command = command(arguments, environment);
    command.stdout(terminal.try_clone().unwrap());
    let mut child = command.stderr(terminal).spawn().unwrap();
    // Only the child may keep the terminal open: its end is the end of the text.
    drop(command);
    let mut text = Vec::new();
    // A terminal that everybody has closed is read with an error.
    let _ = controller.read_to_end(&mut text);
    child.wait().unwrap();
    String::from_utf8(text).unwrap()
}

/// What of a text is no colour.
fn without_colours(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Whether a text has colours; a terminal is told by other signs how a progress bar moves.
fn has_colours(text: &str) -> bool {
    let mut signs = text.split("\u{1b}[").skip(1);
    signs.any(|sign| {
        sign.trim_start_matches(|it: char| it.is_ascii_digit() || it == ';')
            .starts_with('m')
    })
}

/// A store whose root has a pointer that leads nowhere, and one that is sound.
fn stores(dir: &Path) -> [String; 2] {
    let (broken, sound) = (dir.join("broken"), dir.join("sound"));
    make_store(&sound);
    make_store(&broken);
    let file = puddle_file(&broken);
    // The header of the root object.
    overwrite(&file, 4096 + 9, &[0x55]);
    [broken, sound].map(|store| text(&store).to_owned())
}

/// What prints something that has colours, with a part of it.
fn coloured([broken, sound]: &[String; 2]) -> Vec<(Vec<&str>, &'static str)> {
    vec![
        (vec!["ls", sound], "\u{1b}[1mPOOL"),
        (vec!["stat", sound], "\u{1b}[32mclean\u{1b}[0m"),
        (vec!["check", sound], "\u{1b}[32msound\u{1b}[0m"),
        (
            vec!["check", broken],
            "\u{1b}[1m\u{1b}[31mdamage\u{1b}[0m: ",
        ),
        (vec!["check", broken], "\u{1b}[1m\u{1b}[31mdurum:\u{1b}[0m "),
        (
            vec!["inspect", sound, "things"],
            "\u{1b}[36mroot\u{1b}[0m {",
        ),
        (
            vec!["inspect", sound, "things"],
            "\u{1b}[32m\"secret word\"\u{1b}[0m",
        ),
        (
            vec!["inspect", sound, "things", "--raw"],
            "\u{1b}[34mlist\u{1b}[0m: -> ",
        ),
        (vec!["inspect", sound, "things", "--heap"], "\u{1b}[1mTYPE"),
        (
            vec!["ls", "/nowhere"],
            "\u{1b}[1m\u{1b}[31mdurum:\u{1b}[0m ",
        ),
    ]
}

#[test]
fn a_pipe_has_no_colours_unless_they_are_asked_for() {
    let dir = scratch();
    let stores = stores(dir.path());
    for (arguments, part) in coloured(&stores) {
        let plain = piped(&arguments, &[]);
        assert!(!plain.out.contains(ESCAPE) && !plain.err.contains(ESCAPE));
        let asked = [&["--color", "always"], &arguments[..]].concat();
        let behind = [&arguments[..], &["--color=always"]].concat();
        for (arguments, environment) in [
            (&asked, &[][..]),
            (&behind, &[("NO_COLOR", "1")]),
            (&arguments, &[("CLICOLOR_FORCE", "1")]),
        ] {
            let painted = piped(arguments, environment);
            let all = painted.out.clone() + &painted.err;
            assert!(
                all.contains(part),
                "{arguments:?}: {part:?} is not in {all:?}"
            );
            assert_eq!(without_colours(&painted.out), plain.out, "{arguments:?}");
            assert_eq!(without_colours(&painted.err), plain.err, "{arguments:?}");
            assert_eq!(painted.code, plain.code);
        }
        let never = [&["--color", "never"], &arguments[..]].concat();
        for (arguments, environment) in [
            (&never, &[("CLICOLOR_FORCE", "1")][..]),
            (&arguments, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")]),
        ] {
            let run = piped(arguments, environment);
            assert_eq!(
                (&run.out, &run.err),
                (&plain.out, &plain.err),
                "{arguments:?}"
            );
        }
    }
}

#[test]
fn a_terminal_has_colours_unless_they_are_refused() {
    let dir = scratch();
    let stores = stores(dir.path());
    for (arguments, part) in coloured(&stores) {
        let text = on_terminal(&arguments, &[]);
        assert!(
            text.contains(part),
            "{arguments:?}: {part:?} is not in {text:?}"
        );
        let never = [&arguments[..], &["--color", "never"]].concat();
        for (arguments, environment) in [
            (&arguments, &[("NO_COLOR", "1")][..]),
            (&arguments, &[("CLICOLOR", "0")]),
            (&arguments, &[("TERM", "dumb")]),
            (&never, &[]),
        ] {
            let plain = on_terminal(arguments, environment);
            assert!(
                !has_colours(&plain),
                "{arguments:?}, {environment:?}: {plain:?}"
            );
            assert!(!plain.is_empty());
        }
    }
}

#[test]
fn what_programs_read_has_none_even_if_they_are_asked_for() {
    let dir = scratch();
    let [broken, sound] = &stores(dir.path());
    for arguments in [
        &["ls", sound, "--json"][..],
        &["stat", sound, "--json"],
        &["stat", sound, "--domain"],
        &["check", sound, "--json"],
        &["check", broken, "--json"],
        &["inspect", sound, "things", "--json"],
        &["inspect", sound, "things", "--raw", "--json"],
        &["inspect", sound, "things", "--heap", "--json"],
        &["dump", sound, "things"],
        &["completions", "bash"],
    ] {
        let plain = piped(arguments, &[]);
        let asked = piped(&[arguments, &["--color", "always"]].concat(), &[]);
        assert!(!plain.out.is_empty(), "{arguments:?}");
        assert_eq!(asked.out, plain.out, "{arguments:?}");
    }
}

#[test]
fn messages_about_arguments_have_them_too() {
    let error = "\u{1b}[1m\u{1b}[31merror:\u{1b}[0m ";
    for arguments in [
        &["ls", "--color", "always"][..],
        &["--color=always", "ls", "--what", "store"],
    ] {
        let run = piped(arguments, &[("NO_COLOR", "1")]);
        assert_eq!(run.code, 2);
        assert!(run.err.contains(error), "{arguments:?}: {:?}", run.err);
    }
    assert!(on_terminal(&["ls"], &[]).contains(error));
    assert!(!has_colours(&on_terminal(&["ls", "--color", "never"], &[])));
    assert!(!has_colours(&piped(&["ls"], &[]).err));
    assert!(has_colours("a\u{1b}[1;31mb") && !has_colours("a\u{1b}[2Kb\u{1b}"));
}
