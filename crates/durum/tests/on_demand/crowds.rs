//! Many threads need puddles of a store that is moving: each is rewritten once, and whoever waits for it goes on.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::thread;

use durum::{Domain, Engine, PoolOptions, PuddleMapping};

use crate::accesses::{Committed, THREADS, all_at_one, crowd, has};
use crate::fixture::{
    BLOCKS, IN_MEMORY, Opened, Random, copy, everywhere, everywhere_in, make_movable, open,
    try_open,
};
use crate::support::{command, directory};

/// Puddles of each copy: copying them takes most of the time.
const MOVING: usize = 20;
/// Blocks that all threads need at the same moment; they come to the others one by one.
const TOGETHER: usize = 6;
const ON_DEMAND: [PuddleMapping; 2] = [PuddleMapping::Userfaultfd, PuddleMapping::Signal];

/// A store that is open, and a copy of it that has moved, opened by `open`.
fn beside<T>(
    dir: &Path,
    domain: Domain,
    way: PuddleMapping,
    open_copy: impl FnOnce(&Path) -> Opened,
    work: impl FnOnce(&Opened) -> T,
) -> T {
    let place = tempfile::tempdir_in(dir).unwrap();
    copy(&dir.join("store"), &place.path().join("store"));
    let original = open(dir, domain, way);
    let moving = open_copy(place.path());
    for (moved, stayed) in moving.blocks.iter().zip(&original.blocks) {
        assert_ne!(moved, stayed);
    }
    let result = work(&moving);
    moving.close();
    // Nothing of that was done to the original.
    for block in 0..MOVING {
        original.follow(block);
        assert_eq!(original.load(block, 1), 0);
    }
    original.close();
    // And the copy has it where it is now, for who opens it alone.
    let alone = open(place.path(), domain, PuddleMapping::Eager);
    for block in 0..MOVING {
        alone.follow(block);
    }
    result
}

fn writers(dir: &Path, domain: Domain, way: PuddleMapping) {
    let mut committed: Committed = [[0; BLOCKS]; THREADS];
    let open_copy = |copy: &Path| open(copy, domain, way);
    beside(dir, domain, way, open_copy, |moving| {
        all_at_one(MOVING - TOGETHER..MOVING, |thread, block| {
            moving.follow(block);
            if thread % 4 == 3 {
                moving.increment(block, 20 + thread).unwrap();
            }
        });
        crowd(moving, &mut committed, 100);
        has(moving, &committed);
        for block in 0..MOVING {
            moving.follow(block);
        }
    });
}

fn readers(dir: &Path, domain: Domain, way: PuddleMapping) {
    let open_copy = |copy: &Path| {
        let options = PoolOptions::new().read_only(true);
        try_open(copy, domain, way, options).unwrap()
    };
    beside(dir, domain, way, open_copy, |moving| {
        thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    let mut random = Random(thread as u64 + 1);
                    for _ in 0..100 {
                        moving.follow(random.below(MOVING));
                    }
                });
            }
        });
    });
}

fn on_each_way(dir: &Path, engine: Engine, domain: Domain) {
    make_movable(dir, engine, domain, MOVING);
    for way in ON_DEMAND {
        writers(dir, domain, way);
    }
    readers(dir, domain, PuddleMapping::Signal);
}

#[test]
fn sixteen_threads_lose_no_store_of_one_that_moves_and_none_stays_asleep() {
    everywhere(on_each_way);
}

/// The same by a user who may do less: its userfaultfd sees no access of the kernel's.
#[test]
fn sixteen_threads_of_nobody_lose_no_store_of_one_that_moves() {
    // SAFETY: asks only.
    if unsafe { libc::geteuid() } != 0 {
        return; // Only root can run a process as another user, and another user has run the test above.
    }
    let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
    std::os::unix::fs::chown(dir.path(), Some(65534), Some(65534)).unwrap();
    let status = command("crowds::threads_of_nobody", dir.path())
        .uid(65534)
        .gid(65534)
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
#[ignore = "the other process of the test above"]
fn threads_of_nobody() {
    let Some(dir) = directory() else { return };
    everywhere_in(&dir, on_each_way);
}
