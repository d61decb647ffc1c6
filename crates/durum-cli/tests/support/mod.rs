//! Runs the command, and makes stores for it to look at.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod browser;
pub mod jobs;
pub mod large;
pub mod made;
pub mod page;
pub mod pair;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use durum::{Pool, PoolOptions, Store, StoreOptions};
use serde_json::Value;
use tempfile::TempDir;

/// A directory in memory, where stores of the domain `dram` can be.
pub fn scratch() -> TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

/// What a run of the command gave.
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Run {
    /// The output as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in:\n{}", self.out))
    }
}

/// Runs `durum` with these arguments.
pub fn durum<A: AsRef<OsStr>>(arguments: &[A]) -> Run {
    durum_in(Path::new("/"), arguments)
}

/// As [`durum`], in a directory.
pub fn durum_in<A: AsRef<OsStr>>(directory: &Path, arguments: &[A]) -> Run {
    let Output {
        status,
        stdout,
        stderr,
    } = Command::new(env!("CARGO_BIN_EXE_durum"))
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Run {
        code: status.code().expect("the command was killed"),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

/// Runs `durum`, which has to succeed.
pub fn succeeds<A: AsRef<OsStr>>(arguments: &[A]) -> Run {
    let run = durum(arguments);
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    run
}

/// Runs `durum`, which has to fail with this code and this text in its message.
pub fn fails<A: AsRef<OsStr>>(arguments: &[A], code: i32, text: &str) -> Run {
    let run = durum(arguments);
    assert_eq!(run.code, code, "{}{}", run.out, run.err);
    assert!(run.err.contains(text), "{text:?} is not in: {}", run.err);
    run
}

/// Runs `durum` with these bytes on its standard input.
pub fn with_input(arguments: &[&str], input: &[u8]) -> Run {
    let mut child = Command::new(env!("CARGO_BIN_EXE_durum"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut into = child.stdin.take().unwrap();
    // What is refused is not read to its end.
    let _ = into.write_all(input);
    drop(into);
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap(),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs `durum load` with these lines.
pub fn load(arguments: &[&str], lines: &[u8]) -> Run {
    with_input(&[&["load"], arguments].concat(), lines)
}

/// A path as an argument.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[repr(C)]
pub struct Node {
    pub value: u64,
    pub next: *mut Node,
}
durum::describe!(Node as "node" { value, next });

#[repr(C)]
pub struct Leaf {
    pub label: [u8; 16],
    pub numbers: [i32; 4],
    pub ratio: f64,
    pub is_set: bool,
    pub padding: [u8; 7],
}
durum::describe!(Leaf as "leaf" { label, numbers, ratio, is_set, padding });

#[repr(C)]
pub struct Root {
    /// Three nodes, then null.
    pub list: *mut Node,
    /// Two nodes, each leading to the other.
    pub ring: *mut Node,
    /// The same leaf twice, then nulls.
    pub leaves: [*mut Leaf; 6],
    /// The second node of the list.
    pub second: *mut Node,
    /// A number in the leaf.
    pub inside: *mut i32,
    pub bytes: *mut u8,
}
durum::describe!(Root as "root" { list, ring, leaves, second, inside, bytes });

/// A closed store with a pool "things" that has lists, a cycle, arrays and shared objects.
pub fn make_store(path: &Path) {
    let store = Store::create(path, StoreOptions::new()).unwrap();
    let pool = store.create_pool("things", PoolOptions::new()).unwrap();
    fill(&pool);
}

pub fn fill(pool: &Pool) {
    let root = pool.root::<Root>().unwrap();
    pool.transaction(|tx| {
        let node = |value, next| {
            let node = tx.alloc::<Node>()?;
            // SAFETY: fresh.
            unsafe { node.write(Node { value, next }) };
            Ok::<_, durum::Error>(node)
        };
        let third = node(33, std::ptr::null_mut())?;
        let second = node(22, third)?;
        let first = node(11, second)?;
        let back = node(2, std::ptr::null_mut())?;
        let ring = node(1, back)?;
        let leaf = tx.alloc::<Leaf>()?;
        let bytes = tx.alloc_bytes(pool, 0, 300, 1)?;
        let mut leaves = [std::ptr::null_mut(); 6];
        leaves[..2].fill(leaf);
        // SAFETY: the objects are fresh, and there is one thread.
        unsafe {
            (*back).next = ring;
            leaf.write(Leaf {
                label: *b"secret word\0\0\0\0\0",
                numbers: [-1, 2, -3, 4],
                ratio: 0.5,
                is_set: true,
                padding: [0; 7],
            });
            bytes.write_bytes(0xab, 300);
            tx.add(root)?;
            root.write(Root {
                list: first,
                ring,
                leaves,
                second,
                inside: &raw mut (*leaf).numbers[2],
                bytes,
            });
        }
        Ok::<_, durum::Error>(())
    })
    .unwrap();
}

/// All files below a directory, with their contents.
pub fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(contents(&path));
        } else {
            files.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    files
}

/// The one puddle file of a store.
pub fn puddle_file(store: &Path) -> PathBuf {
    let mut files = std::fs::read_dir(store.join("puddles")).unwrap();
    let file = files.next().unwrap().unwrap().path();
    assert!(files.next().is_none(), "more than one puddle");
    file
}

/// Changes bytes of a file.
pub fn overwrite(file: &Path, offset: u64, bytes: &[u8]) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().write(true).open(file).unwrap();
    file.write_all_at(bytes, offset).unwrap();
}

/// A store whose program was killed in a transaction, or right behind one: made by the demo's worker.
pub fn make_dirty_store(path: &Path, engine: &str) {
    use std::io::{BufRead, BufReader};

    let text_file = path.with_extension("txt");
    std::fs::write(
        &text_file,
        "one two three two three three four words and so on\n".repeat(50),
    )
    .unwrap();
    let mut worker = Command::new(env!("CARGO_BIN_EXE_durum"))
        .args([
            "demo",
            "--worker-only",
            "--engine",
            engine,
            "--store",
            text(path),
            text(&text_file),
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(worker.stdout.take().unwrap()).lines();
    let counted = |line: &str| line.split(' ').nth(1).unwrap().parse::<u64>().unwrap();
    while counted(&lines.next().unwrap().unwrap()) < 100 {}
    worker.kill().unwrap();
    worker.wait().unwrap();
}
