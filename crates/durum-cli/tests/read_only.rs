//! `ls`, `stat`, `inspect` and `check` write nothing at all: they work on a store that their user may not write, and on
//! a file system that nobody may write.

mod support;

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::*;
use tempfile::TempDir;

/// Somebody without rights, on any system.
const NOBODY: u32 = 65534;

const COMMANDS: [&[&str]; 7] = [
    &["ls"],
    &["stat"],
    &["stat", "--domain"],
    &["inspect"],
    &["inspect", "--json"],
    &["check"],
    &["check", "--json"],
];

/// A directory that anybody may look into: in memory, or on the disk that the tests are built on.
fn open_to_all(in_memory: bool) -> TempDir {
    let parent = match in_memory {
        true => Path::new("/dev/shm").to_owned(),
        false => std::env::temp_dir(),
    };
    let dir = tempfile::tempdir_in(parent).unwrap();
    permit(dir.path(), 0o755);
    dir
}

fn permit(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// Whether this is root, for whom permissions mean nothing.
fn is_root() -> bool {
    std::fs::metadata("/proc/self").unwrap().uid() == 0
}

/// A copy of the command that everybody can run.
fn command_for_all(dir: &Path) -> PathBuf {
    let copy = dir.join("durum");
    // By another process: what this one had open for writing, a child of another test's would have for a moment, and
    // the copy could not be run (ETXTBSY).
    let mut copying = Command::new("cp");
    copying.arg(env!("CARGO_BIN_EXE_durum")).arg(&copy);
    assert!(copying.status().unwrap().success());
    permit(&copy, 0o755);
    copy
}

/// The arguments with the store's path, and for `inspect` with the name of its pool.
fn filled<'a>(arguments: &[&'a str], store: &'a Path) -> Vec<&'a str> {
    let mut filled = arguments.to_vec();
    filled.push(text(store));
    if arguments[0] == "inspect" {
        filled.push(match store.ends_with("closed") {
            true => "things",
            false => "words",
        });
    }
    filled
}

fn run_as_nobody(command: &Path, arguments: &[&str]) -> Run {
    let mut command = Command::new(command);
    command.args(arguments).current_dir("/");
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    shown(command.output().unwrap())
}

fn shown(output: Output) -> Run {
    Run {
        code: output.status.code().expect("the command was killed"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// All that can be seen of what is below a directory: names, kinds, lengths, times of change, bytes.
fn state(directory: &Path) -> BTreeMap<PathBuf, (u32, u64, i64, i64, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut left = vec![directory.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        let bytes = match metadata.is_dir() {
            true => {
                let entries = std::fs::read_dir(&path).unwrap();
                left.extend(entries.map(|entry| entry.unwrap().path()));
                Vec::new()
            }
            false => std::fs::read(&path).unwrap(),
        };
        // The time of any change of the file itself; reading is none.
        let changed = (metadata.ctime(), metadata.ctime_nsec());
        let row = (metadata.mode(), metadata.ino(), changed.0, changed.1, bytes);
        found.insert(path, row);
    }
    found
}

/// Takes the right to write from everything below a directory.
fn forbid_writing(directory: &Path) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => forbid_writing(&path),
            false => permit(&path, 0o444),
        }
    }
    permit(directory, 0o555);
}

/// Gives it back to the directories, so that they can be removed.
fn allow_writing(directory: &Path) {
    permit(directory, 0o755);
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            allow_writing(&path);
        }
    }
}

/// Stores to look at: closed ones and those of killed programs, on each engine.
fn make_stores(dir: &Path) -> Vec<PathBuf> {
    let closed = dir.join("closed");
    make_store(&closed);
    let mut stores = vec![closed];
    for engine in ["shadow", "hybrid", "twin"] {
        let store = dir.join(engine);
        make_dirty_store(&store, engine);
        stores.push(store);
    }
    stores
}

#[test]
fn what_only_reads_needs_no_right_to_write_and_changes_nothing() {
    let tools = open_to_all(false);
    let command = command_for_all(tools.path());
    for in_memory in [true, false] {
        let dir = open_to_all(in_memory);
        for store in make_stores(dir.path()) {
            for has_lock in [true, false] {
                if !has_lock {
                    permit(&store, 0o755);
                    std::fs::remove_file(store.join("lock")).unwrap();
                }
                forbid_writing(&store);
                let before = state(&store);
                for arguments in COMMANDS {
                    let run = run_as_nobody(&command, &filled(arguments, &store));
                    assert_eq!(
                        run.code,
                        0,
                        "{arguments:?} {}\n{}{}",
                        store.display(),
                        run.out,
                        run.err
                    );
                    assert!(state(&store) == before, "{arguments:?} changed the store");
                }
            }
            allow_writing(&store);
        }
    }
}

#[test]
fn what_may_not_be_read_is_named_with_what_to_do() {
    let dir = open_to_all(true);
    let command = command_for_all(dir.path());
    let store = dir.path().join("store");
    make_store(&store);
    for name in ["registry", "durum.store"] {
        permit(&store.join(name), 0o000);
        let run = run_as_nobody(&command, &["ls", text(&store)]);
        assert_eq!(run.code, 1, "{}{}", run.out, run.err);
        assert!(run.err.contains(name), "{}", run.err);
        assert!(run.err.contains("let this user read it"), "{}", run.err);
        permit(&store.join(name), 0o644);
    }
    let puddle = puddle_file(&store);
    permit(&puddle, 0o000);
    for command_name in ["ls", "stat"] {
        let run = run_as_nobody(&command, &[command_name, text(&store)]);
        assert_eq!(run.code, 1, "{}{}", run.out, run.err);
        let state = format!("unreadable: {}", puddle.display());
        assert!(run.out.contains(&state), "{}", run.out);
        assert!(run.err.contains("let this user read it"), "{}", run.err);
    }
}

#[test]
fn who_may_not_make_a_store_is_told_so() {
    let dir = open_to_all(true);
    let command = command_for_all(dir.path());
    let place = dir.path().join("mine");
    std::fs::create_dir(&place).unwrap();
    permit(&place, 0o700);
    if is_root() {
        let store = place.join("store");
        let run = run_as_nobody(&command, &["init", text(&store)]);
        assert_eq!(run.code, 1, "{}{}", run.out, run.err);
        assert!(
            run.err.contains("no right to make it; choose a place"),
            "{}",
            run.err
        );
        let run = run_as_nobody(&command, &["ls", text(&store)]);
        assert_eq!(run.code, 1, "{}{}", run.out, run.err);
        assert!(run.err.contains("no right to look for it"), "{}", run.err);
    }
}

/// With every right, and where writing works: the temptation is greatest.
#[test]
fn what_only_reads_changes_nothing_that_it_could_change() {
    for in_memory in [true, false] {
        let dir = open_to_all(in_memory);
        for store in make_stores(dir.path()) {
            std::fs::remove_file(store.join("lock")).unwrap();
            let before = state(&store);
            for arguments in COMMANDS {
                let run = durum(&filled(arguments, &store));
                assert_eq!(run.code, 0, "{arguments:?}\n{}{}", run.out, run.err);
                assert!(state(&store) == before, "{arguments:?} changed the store");
            }
        }
    }
}

#[test]
fn what_only_reads_works_on_a_file_system_that_nobody_may_write() {
    let dir = open_to_all(true);
    for store in make_stores(dir.path()) {
        // The mount is seen in a namespace of its own, and goes with it.
        let script = "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" || exit 77; \
                      shift; exec \"$@\"";
        for arguments in COMMANDS {
            let output = Command::new("unshare")
                .args(["-m", "bash", "-c", script, "bash"])
                .arg(&store)
                .arg(env!("CARGO_BIN_EXE_durum"))
                .args(filled(arguments, &store))
                .output()
                .unwrap();
            let run = shown(output);
            if run.code == 77 || run.err.contains("unshare") {
                println!("skipped: this user may not mount: {}", run.err);
                return;
            }
            assert_eq!(run.code, 0, "{arguments:?}\n{}{}", run.out, run.err);
        }
    }
}
