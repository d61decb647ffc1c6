//! Something else lies in the place of a file of a store: a pipe, a link, a directory, a socket, a file of 1 TiB. No
//! command waits for it, follows it, dies of it or takes memory for it; `check` names it, and what cannot be read is
//! refused.

mod support;

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use support::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StandIn {
    Pipe,
    /// A link to what it takes the place of.
    Link,
    Dangling,
    Directory,
    Socket,
    /// The file itself, of 1 TiB.
    Huge,
}

impl StandIn {
    const ALL: [StandIn; 6] = [
        StandIn::Pipe,
        StandIn::Link,
        StandIn::Dangling,
        StandIn::Directory,
        StandIn::Socket,
        StandIn::Huge,
    ];

    /// Takes the place of a file, which is moved aside.
    fn put(self, file: &Path, aside: &Path) {
        if self == StandIn::Huge {
            let file = std::fs::File::options().write(true).open(file).unwrap();
            return file.set_len(1 << 40).unwrap();
        }
        std::fs::rename(file, aside).unwrap();
        match self {
            StandIn::Pipe => {
                let made = Command::new("mkfifo").arg(file).status();
                assert!(made.unwrap().success());
            }
            StandIn::Link => symlink(aside, file).unwrap(),
            StandIn::Dangling => symlink(aside.with_extension("nothing"), file).unwrap(),
            StandIn::Directory => std::fs::create_dir(file).unwrap(),
            StandIn::Socket => drop(UnixListener::bind(file).unwrap()),
            StandIn::Huge => {}
        }
    }

    fn name(self) -> &'static str {
        match self {
            StandIn::Pipe => "a pipe",
            StandIn::Link | StandIn::Dangling => "a symbolic link",
            StandIn::Directory => "a directory",
            StandIn::Socket => "a socket",
            StandIn::Huge => "",
        }
    }
}

/// Runs the command with 256 MiB of address space, and with seconds to end in.
fn bounded(arguments: &[&str]) -> Run {
    let output = Command::new("bash")
        .args(["-c", "ulimit -v 262144 && exec timeout 20 \"$0\" \"$@\""])
        .arg(env!("CARGO_BIN_EXE_durum"))
        .args(arguments)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    Run {
        code: output.status.code().expect("the command was killed"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.unwrap().success());
}

fn try_all(original: &Path, pool: &str, engine: &str, stand_ins: &[StandIn]) {
    let dir = original.parent().unwrap();
    let store = dir.join("tried");
    let mut names: Vec<PathBuf> = contents(original)
        .into_keys()
        .map(|path| path.strip_prefix(original).unwrap().to_owned())
        .collect();
    let files = names.len();
    names.extend(["puddles", "quarantine"].map(PathBuf::from));
    for (index, name) in names.iter().enumerate() {
        let is_directory = index >= files;
        for &stand_in in stand_ins {
            let is_itself = is_directory && [StandIn::Directory, StandIn::Huge].contains(&stand_in);
            if is_itself {
                continue;
            }
            copy(original, &store);
            let (file, aside) = (store.join(name), dir.join("aside"));
            stand_in.put(&file, &aside);
            let what = format!("{engine}: {} is now {stand_in:?}", name.display());
            let is_lock = name == Path::new("lock");
            // It is made anew where the registry is whole.
            let is_copy = name == Path::new("registry.copy");
            for command in ["ls", "stat", "inspect", "check", "recover"] {
                let arguments = [command, text(&store), pool];
                let run = bounded(match command {
                    "inspect" => &arguments,
                    _ => &arguments[..2],
                });
                let shown = format!("{what}: {command}: {}\n{}{}", run.code, run.out, run.err);
                assert!([0, 2, 3].contains(&run.code), "{shown}");
                // Nobody reads the bytes of the lock.
                if command == "check" && !(is_lock && stand_in == StandIn::Huge) {
                    assert!(is_copy || run.code != 0, "{shown}");
                    let told = format!("{}{}", run.out, run.err);
                    let named = told
                        .lines()
                        .any(|line| line.contains(text(name)) && line.contains(stand_in.name()));
                    assert!(named, "{shown}");
                }
                let is_needed = name.components().count() == 1 && !is_copy;
                if command == "recover" && is_needed && stand_in != StandIn::Huge {
                    assert_ne!(run.code, 0, "{shown}");
                }
            }
            std::fs::remove_dir_all(&store).unwrap();
            if stand_in != StandIn::Huge {
                let removed = match is_directory {
                    true => std::fs::remove_dir_all(&aside),
                    false => std::fs::remove_file(&aside),
                };
                removed.unwrap();
            }
        }
    }
}

#[test]
fn a_stand_in_for_a_file_of_a_closed_store_is_named_and_not_waited_for() {
    let dir = scratch();
    let store = dir.path().join("store");
    make_store(&store);
    try_all(&store, "things", "closed", &StandIn::ALL);
}

#[test]
fn a_stand_in_for_a_file_of_a_dirty_store_is_named_and_not_waited_for() {
    for engine in ["shadow", "hybrid", "twin"] {
        let dir = scratch();
        let store = dir.path().join("store");
        make_dirty_store(&store, engine);
        try_all(&store, "words", engine, &[StandIn::Pipe, StandIn::Huge]);
    }
}

/// A first line that speaks of 268 MB, in a file that is as long as that asks for and has none of it.
#[test]
fn a_first_line_that_promises_much_takes_no_memory() {
    const PROMISED: u64 = 268_000_000;
    let dir = scratch();
    let original = dir.path().join("store");
    make_store(&original);
    for name in ["registry", "registry.copy"] {
        let store = dir.path().join("tried");
        copy(&original, &store);
        let file = store.join(name);
        let bytes = std::fs::read(&file).unwrap();
        let line_end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        let line = std::str::from_utf8(&bytes[..line_end]).unwrap();
        let words: Vec<&str> = line.split(' ').collect();
        let line = line.replace(&format!(" {} ", words[3]), &format!(" {PROMISED} "));
        std::fs::write(&file, [line.as_bytes(), &bytes[line_end..]].concat()).unwrap();
        let length = (3 * (PROMISED + line.len() as u64 + 1)).next_multiple_of(4096);
        let opened = std::fs::File::options().write(true).open(&file).unwrap();
        opened.set_len(length).unwrap();
        let is_copy = name == "registry.copy";
        for arguments in [&["ls"][..], &["stat"], &["check"], &["check", "--repair"]] {
            let run = bounded(&[arguments, &[text(&store)]].concat());
            let shown = format!(
                "{name}: {arguments:?}: {}\n{}{}",
                run.code, run.out, run.err
            );
            let expected = match arguments {
                ["check"] => 3,
                ["check", _] => 0,
                _ if is_copy => 0,
                _ => 3,
            };
            assert_eq!(run.code, expected, "{shown}");
        }
        let run = bounded(&["check", text(&store)]);
        assert_eq!(run.code, 0, "{name}: {}{}", run.out, run.err);
        std::fs::remove_dir_all(&store).unwrap();
    }
}
