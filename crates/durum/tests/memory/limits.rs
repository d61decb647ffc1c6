//! Pools that are larger than the memory that there is.

use std::io::Write;
use std::path::{Path, PathBuf};

use durum::{Domain, Error, Store, StoreOptions};

use crate::{
    LARGE, LIMIT, PIECE, Random, alone, make_piece, parent, piece, pool_options, root, support,
};

/// A control group of the kernel that limits memory, of either version; `None` where this process may not make one.
struct Group(PathBuf);

impl Group {
    fn new(bytes: usize) -> Option<Self> {
        let name = format!("durum-test-{}", std::process::id());
        for (parent, limit) in [
            ("/sys/fs/cgroup", "memory.max"),
            ("/sys/fs/cgroup/memory", "memory.limit_in_bytes"),
        ] {
            let path = Path::new(parent).join(&name);
            if !Path::new(parent).join("cgroup.procs").exists()
                || std::fs::create_dir(&path).is_err()
            {
                continue;
            }
            let group = Group(path);
            let set = |file: &str, value: &str| {
                let path = group.0.join(file);
                path.exists() && std::fs::write(path, value).is_ok()
            };
            if set(limit, &bytes.to_string()) {
                // What does not fit is not to go to a swap area.
                set("memory.swap.max", "0");
                set("memory.swappiness", "0");
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Fills a pool of 160 MiB in a process that may have 96, changes it all over, and reads it.
fn works_in_little_memory(private_max: u64) {
    let Some(dir) = support::directory() else {
        return;
    };
    let group = std::fs::read_to_string(dir.join("group")).unwrap();
    let own = std::process::id().to_string();
    std::fs::write(Path::new(&group).join("cgroup.procs"), own).unwrap();
    let options = StoreOptions::new()
        .domain(Domain::File)
        .log_max(4 << 20)
        .private_max(private_max);
    let store = Store::open_or_create(dir.join("store"), options).unwrap();
    let pool = store.open_or_create_pool("pool", pool_options()).unwrap();
    let root = root(&pool);
    let value = |at: usize, index: usize| (at << 32 | index) as u64;
    for at in 0..LARGE {
        make_piece(&pool, at, |index| value(at, index));
    }
    let mut random = Random(3);
    // Few: each may take a page from the disk, and some systems read megabytes around it.
    for _ in 0..10 {
        pool.transaction(|tx| unsafe {
            for _ in 0..50 {
                let (at, index) = (random.below(LARGE), random.below(PIECE / 8));
                let word = &raw mut piece(root, at)[index];
                tx.add(word)?;
                *word = !value(at, index);
            }
            Ok::<_, Error>(())
        })
        .unwrap();
    }
    let mut changed = 0;
    for at in 0..LARGE {
        for (index, word) in piece(root, at).iter().enumerate() {
            changed += usize::from(*word == !value(at, index));
            assert!(*word == value(at, index) || *word == !value(at, index));
        }
    }
    assert!(changed > 490 && changed <= 500, "{changed}");
    println!("{:?}", store.private_pages());
}

#[test]
#[ignore = "the other process of the test below"]
fn works_in_little_memory_with_a_limit() {
    works_in_little_memory(24 << 20);
}

#[test]
#[ignore = "the other process of the test below"]
fn works_in_little_memory_without_a_limit() {
    works_in_little_memory(u64::MAX);
}

#[test]
fn a_pool_larger_than_memory_works() {
    let Some(_alone) = alone() else { return };
    let Some(group) = Group::new(LIMIT) else {
        // Not by `println`, which the test runner keeps to itself.
        let why = "no control group that limits memory can be made here (that takes root, and a writable /sys/fs/cgroup)";
        let _ = writeln!(
            std::io::stderr(),
            "a_pool_larger_than_memory_works: skipped, {why}"
        );
        return;
    };
    let dir = tempfile::tempdir_in(parent(Domain::File)).unwrap();
    std::fs::write(dir.path().join("group"), group.0.to_str().unwrap()).unwrap();
    let run = |name| support::start(name, dir.path()).wait().unwrap();
    let status = run("limits::works_in_little_memory_with_a_limit");
    assert!(status.success(), "{status}");
    // What it left is whole.
    let options = StoreOptions::new().domain(Domain::File);
    let store = Store::open(dir.path().join("store"), options).unwrap();
    assert!(store.recovery().unwrap().was_clean);
    let pool = store.open_pool("pool", pool_options()).unwrap();
    let root = root(&pool);
    for at in 0..LARGE {
        for (index, word) in piece(root, at).iter().enumerate() {
            let value = (at << 32 | index) as u64;
            assert!(*word == value || *word == !value);
        }
    }
    drop((pool, store));
    // That the group limits memory at all: without giving pages back the process is killed.
    std::fs::remove_dir_all(dir.path().join("store")).unwrap();
    let status = run("limits::works_in_little_memory_without_a_limit");
    assert!(!status.success() && status.code().is_none(), "{status}");
}
