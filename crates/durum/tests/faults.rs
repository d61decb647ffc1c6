//! Full disks, failing syncs, vanished media and forks: an error that says what happened, and nothing lost.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod support;

use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use durum::{Announce, Domain, Engine, Error, Pool, PoolOptions, Store, StoreOptions};
use durum_persist::inject::{self, Operation};
use support::pool_options;

#[repr(C)]
struct Root {
    count: u64,
    blocks: [*mut u8; 512],
}
durum::describe!(Root as "faults root" { count, blocks });

fn open(dir: &Path, options: StoreOptions, pool: PoolOptions) -> (Store, Pool, &'static mut Root) {
    let store = Store::open_or_create(dir.join("store"), options).unwrap();
    let pool = store.open_or_create_pool("pool", pool).unwrap();
    let root = unsafe { &mut *pool.root::<Root>().unwrap() };
    (store, pool, root)
}

fn increment(pool: &Pool, root: &mut Root) -> Result<(), Error> {
    pool.transaction(|tx| {
        unsafe { tx.add(&raw const root.count)? };
        root.count += 1;
        Ok(())
    })
}

/// Fills the pool with blocks until it cannot grow; the number of blocks.
fn fill(pool: &Pool, root: &mut Root) -> (usize, Error) {
    for at in 0..root.blocks.len() {
        let result = pool.transaction(|tx| unsafe {
            let block = tx.alloc_bytes(pool, 0, 100_000, 8)?;
            block.write_bytes(7, 100_000);
            tx.set(&raw mut root.blocks[at], block)
        });
        if let Err(error) = result {
            return (at, error);
        }
    }
    panic!("the disk was never full");
}

/// Frees objects in an order that has nothing to do with where they are, and counts them, in one transaction.
fn free_all(pool: &Pool, root: &mut Root, objects: &[usize]) -> Result<(), Error> {
    pool.transaction(|tx| {
        for at in 0..objects.len() {
            let object = objects[at * 7919 % objects.len()] as *mut u8;
            unsafe { tx.free(object)? };
        }
        unsafe { tx.add(&raw const root.count)? };
        root.count += 1;
        Ok(())
    })
}

/// Where there is no log at all a smaller transaction would not fit either: the error names the file and what it needs.
#[test]
fn a_disk_that_is_full_from_the_first_names_the_log() {
    for engine in [Engine::Shadow, Engine::Hybrid] {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let options = || PoolOptions::new().engine(engine);
        drop(open(dir.path(), StoreOptions::new(), options()));
        let mut refused = 0;
        for grown in 0..12 {
            let full = inject::fail_after(Operation::Grow, grown, dir.path());
            let opened = Store::open(dir.path().join("store"), StoreOptions::new())
                .and_then(|store| store.open_pool("pool", options()));
            let Ok(pool) = opened else {
                continue;
            };
            let root = unsafe { &mut *pool.root::<Root>().unwrap() };
            if let Err(error) = increment(&pool, root) {
                refused += 1;
                let is_told = matches!(
                    &error,
                    Error::Store(durum_service::Error::StorageFull { .. })
                );
                assert!(is_told, "{engine:?}, {grown}: {error}");
            }
            drop(full);
            increment(&pool, root).unwrap();
        }
        assert!(refused > 0, "{engine:?}");
    }
}

/// What 100,000 deletes need is kept for them; what is more fails as a whole, and says why. Afterwards there is as much
/// again.
#[test]
fn a_hundred_thousand_deletes_fit_on_a_full_disk() {
    const DELETES: usize = 100_000;
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        for domain in [Domain::Dram, Domain::File] {
            let dir = tempfile::tempdir_in("/dev/shm").unwrap();
            let options = StoreOptions::new().domain(domain);
            let (store, pool, _) = open(
                dir.path(),
                options.clone(),
                PoolOptions::new().engine(engine),
            );
            let objects: Vec<usize> = (0..4)
                .flat_map(|_| {
                    let some = pool.transaction(|tx| {
                        let alloc = |_| tx.alloc_bytes(&pool, 0, 40, 8).map(|object| object.addr());
                        (0..DELETES).map(alloc).collect::<Result<Vec<_>, _>>()
                    });
                    some.unwrap()
                })
                .collect();
            // Logs that the allocation has made go with this.
            drop((pool, store));
            let (store, pool, root) = open(
                dir.path(),
                options.clone(),
                PoolOptions::new().engine(engine),
            );
            let full = inject::fail_after(Operation::Grow, 0, dir.path());
            // On Twin nothing is logged.
            let all = free_all(&pool, root, &objects);
            let left = match engine {
                Engine::Twin => {
                    all.unwrap();
                    &[]
                }
                _ => {
                    let error = all.unwrap_err();
                    assert!(
                        matches!(error, Error::LogFull { .. }),
                        "{engine:?}, {domain:?}: {error}"
                    );
                    assert_eq!(error.kind(), durum::ErrorKind::System);
                    &objects[..]
                }
            };
            for some in left.chunks(DELETES) {
                free_all(&pool, root, some)
                    .unwrap_or_else(|error| panic!("{engine:?}, {domain:?}: {error}"));
            }
            drop(full);
            let count = root.count;
            drop((pool, store));
            let (_store, pool, root) = open(dir.path(), options, PoolOptions::new().engine(engine));
            assert_eq!(root.count, count);
            // Slabs that were left empty go back with the first commit that changes bits.
            let one = pool.transaction(|tx| tx.alloc_bytes(&pool, 0, 10_000, 8));
            one.unwrap();
            let usage = pool.usage().unwrap();
            let used = usage.bytes - usage.free_bytes;
            assert!(used < 1 << 20, "{engine:?}, {domain:?}: {used}");
        }
    }
}

fn full_disk(dir: &Path, limit: impl FnOnce() -> Option<inject::Fault>) {
    let (store, pool, root) = open(dir, StoreOptions::new(), pool_options());
    increment(&pool, root).unwrap();
    let fault = limit();
    let (filled, error) = fill(&pool, root);
    assert!(
        matches!(error, Error::Store(durum::StoreError::StorageFull { .. })),
        "{error}"
    );
    assert!(filled > 5);
    // The pool is usable: what needs no room works, deletes work, and what they free can be used.
    increment(&pool, root).unwrap();
    for at in 0..filled / 2 {
        pool.transaction(|tx| unsafe {
            tx.free(root.blocks[at])?;
            tx.set(&raw mut root.blocks[at], std::ptr::null_mut())
        })
        .unwrap();
    }
    let again = pool.transaction(|tx| unsafe {
        let block = tx.alloc_bytes(&pool, 0, 100_000, 8)?;
        tx.set(&raw mut root.blocks[0], block)
    });
    again.unwrap();
    // Another thread needs a log of its own, for which there may be no room: an error, and nothing breaks.
    let other = std::thread::scope(|scope| {
        let (pool, count) = (&pool, (&raw mut root.count).expose_provenance());
        scope
            .spawn(move || {
                pool.transaction(|tx| unsafe {
                    tx.set(std::ptr::with_exposed_provenance_mut::<u64>(count), 2)
                })
            })
            .join()
            .unwrap()
    });
    assert!(
        matches!(
            other,
            Ok(()) | Err(Error::Store(durum::StoreError::StorageFull { .. }))
        ),
        "{other:?}"
    );
    assert_eq!(root.count, 2);
    drop(fault);
    drop(pool);
    drop(store);
    let (_store, _pool, root) = open(dir, StoreOptions::new(), pool_options());
    assert_eq!(root.count, 2);
    let blocks = root.blocks.iter().filter(|block| !block.is_null()).count();
    assert_eq!(blocks, filled - filled / 2 + 1);
}

/// Runs `body` in a file system of 24 MiB; not without root.
fn on_a_small_file_system(body: impl FnOnce(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    let mount = |arguments: &[&str]| {
        std::process::Command::new(arguments[0])
            .args(&arguments[1..])
            .status()
            .unwrap()
            .success()
    };
    let path = dir.path().to_str().unwrap();
    if !mount(&["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", path]) {
        println!("skipped: mounting a small tmpfs needs root");
        return;
    }
    let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| body(Path::new(path))));
    assert!(mount(&["umount", "-l", path]));
    result.unwrap();
}

#[test]
fn a_full_file_system_leaves_the_pool_usable() {
    on_a_small_file_system(|path| full_disk(path, || None));
}

/// What large transactions took of the disk for their logs is there for objects when no other room is left.
#[test]
fn a_pool_that_finds_no_room_takes_that_of_the_logs() {
    on_a_small_file_system(|path| {
        let (_store, pool, root) = open(path, StoreOptions::new(), pool_options());
        let len = 1 << 20;
        let block = pool
            .transaction(|tx| unsafe {
                let block = tx.alloc_bytes(&pool, 0, len, 8)?;
                tx.set(&raw mut root.blocks[511], block)?;
                Ok::<_, Error>(block)
            })
            .unwrap();
        for round in 0..40 {
            pool.transaction(|tx| unsafe {
                tx.add_bytes(block, len, Announce::Backup)?;
                block.write_bytes(round, len);
                Ok::<_, Error>(())
            })
            .unwrap();
        }
        let (filled, _) = fill(&pool, root);
        let copies = pool.engine().puddle_kind().copies();
        // What is kept for deletes on a full disk stays: four puddles of logs on Hybrid.
        assert!(filled as u64 * copies > 80, "{filled}");
    });
}

#[test]
fn any_growth_can_fail_and_leaves_the_pool_usable() {
    for successes in 4..10 {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let store = dir.path().to_owned();
        full_disk(dir.path(), || {
            Some(inject::fail_after(Operation::Grow, successes, &store))
        });
    }
}

#[test]
fn a_failed_sync_poisons_the_pool_until_it_is_opened_again() {
    let syncs_of_a_commit = match support::engine() {
        durum::Engine::Hybrid => 3,
        durum::Engine::Twin => 2,
        _ => 1,
    };
    for syncs in 0..syncs_of_a_commit {
        let dir = tempfile::tempdir().unwrap();
        let options = StoreOptions::new().domain(Domain::File);
        let (store, pool, root) = open(dir.path(), options.clone(), pool_options());
        increment(&pool, root).unwrap();
        increment(&pool, root).unwrap();
        let fault = inject::fail_after(Operation::Sync, syncs, dir.path());
        let error = increment(&pool, root).unwrap_err();
        assert!(error.to_string().contains("sync"), "{error}");
        drop(fault);
        let error = increment(&pool, root).unwrap_err();
        assert!(matches!(error, Error::Poisoned { .. }), "{error}");
        drop(pool);
        drop(store);
        let (_store, pool, root) = open(dir.path(), options, pool_options());
        assert!(
            root.count == 2 || root.count == 3,
            "{} of 2 or 3",
            root.count
        );
        increment(&pool, root).unwrap();
    }
}

/// Changes two places, pages apart, in one transaction.
fn change_both(pool: &Pool, root: &mut Root) -> Result<(), Error> {
    pool.transaction(|tx| {
        let last = &raw mut root.blocks[511];
        unsafe {
            tx.add(&raw const root.count)?;
            root.count += 1;
            tx.add(last)?;
            *last = std::ptr::without_provenance_mut(root.count as usize);
        }
        Ok(())
    })
}

#[test]
fn after_a_failed_write_or_sync_the_next_opener_finds_all_of_the_transaction_or_nothing() {
    for operation in [Operation::Write, Operation::Sync] {
        for successes in 0..5 {
            let dir = tempfile::tempdir().unwrap();
            let options = StoreOptions::new().domain(Domain::File);
            let (store, pool, root) = open(dir.path(), options.clone(), pool_options());
            change_both(&pool, root).unwrap();
            let fault = inject::fail_after(operation, successes, dir.path());
            let result = change_both(&pool, root);
            drop(fault);
            if let Err(error) = &result {
                assert!(matches!(error, Error::Poisoned { .. }), "{error}");
                let again = change_both(&pool, root).unwrap_err();
                assert!(matches!(again, Error::Poisoned { .. }), "{again}");
            }
            drop(pool);
            drop(store);
            let (store, _pool, root) = open(dir.path(), options, pool_options());
            assert_eq!(store.recovery().unwrap().was_clean, result.is_ok());
            assert_eq!(
                root.blocks[511].addr() as u64,
                root.count,
                "{operation:?} {successes}"
            );
            assert!(root.count == 2 || result.is_err() && root.count == 1);
        }
    }
}

#[test]
fn a_vanished_page_of_a_log_is_noticed() {
    if !support::has_logs() {
        return;
    }
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let (_store, pool, root) = open(dir.path(), StoreOptions::new(), pool_options());
    increment(&pool, root).unwrap();
    increment(&pool, root).unwrap();
    let puddles = dir.path().join("store/puddles");
    for entry in std::fs::read_dir(puddles).unwrap() {
        let path = entry.unwrap().path();
        // The kind of a puddle is at offset 12 of its header: 2 is a log, 4 are records.
        if matches!(std::fs::read(&path).unwrap()[12], 2 | 4) {
            std::fs::OpenOptions::new()
                .write(true)
                .open(&path)
                .unwrap()
                .set_len(4096)
                .unwrap();
        }
    }
    let error = increment(&pool, root).unwrap_err();
    assert!(matches!(error, Error::Poisoned { .. }), "{error}");
}

/// The file of the puddle at this address.
fn puddle_file(dir: &Path, address: usize) -> PathBuf {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps
        .lines()
        .find(|line| {
            let (start, end) = line.split(' ').next().unwrap().split_once('-').unwrap();
            let parse = |text| usize::from_str_radix(text, 16).unwrap();
            (parse(start)..parse(end)).contains(&address)
        })
        .unwrap();
    let path = PathBuf::from(line.split_whitespace().last().unwrap());
    assert!(path.starts_with(dir.canonicalize().unwrap()));
    path
}

/// A pool with a block of 3 MiB of sevens, in the root's first place, and the block's file.
fn with_block(dir: &Path, options: PoolOptions) -> (Store, Pool, &'static mut Root, PathBuf) {
    let (store, pool, root) = open(dir, StoreOptions::new(), options.clone());
    pool.transaction(|tx| unsafe {
        let block = tx.alloc_bytes(&pool, 0, 3 << 20, 8)?;
        block.write_bytes(7, 3 << 20);
        tx.set(&raw mut root.blocks[0], block)
    })
    .unwrap();
    // Opened again, all its memory is the file's; a fresh puddle of an engine that works in private pages is not.
    drop((store, pool));
    let (store, pool, root) = open(dir, StoreOptions::new(), options);
    let path = puddle_file(dir, root.blocks[0].addr());
    (store, pool, root, path)
}

/// Takes the last 2 MiB of the main copy away, which comes first.
fn cut_short(pool: &Pool, path: &Path) {
    let file = OpenOptions::new().write(true).open(path).unwrap();
    let copies = pool.engine().puddle_kind().copies();
    file.set_len(file.metadata().unwrap().len() / copies - (2 << 20))
        .unwrap();
}

fn truncate_under(dir: &Path, options: PoolOptions) -> (Store, Pool, *mut u8, PathBuf) {
    let (store, pool, root, path) = with_block(dir, options);
    cut_short(&pool, &path);
    (store, pool, root.blocks[0], path)
}

#[test]
fn with_the_option_a_vanished_page_reads_as_zeros_and_the_next_commit_says_so() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let (_store, pool, block, path) =
        truncate_under(dir.path(), pool_options().survive_media_errors(true));
    let lost = unsafe { block.add((3 << 20) - 8) };
    let result = pool.transaction(|_| {
        assert_eq!(
            unsafe { lost.read_volatile() },
            0,
            "a private page took the place of the lost one"
        );
        assert_eq!(
            unsafe { block.read_volatile() },
            7,
            "other pages are as they were"
        );
        Ok::<_, Error>(())
    });
    // A transaction that announced nothing has nothing to lose; the next one that begins is refused.
    result.unwrap();
    match pool.transaction(|_| Ok::<_, Error>(())) {
        Err(Error::Poisoned { file, offset, .. }) => {
            assert_eq!(file, path);
            assert!(offset >= 2 << 20, "{offset}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn durums_own_reads_of_a_vanished_page_are_errors_without_any_option() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let (_store, pool, block, path) = truncate_under(dir.path(), pool_options());
    let lost = unsafe { block.add((3 << 20) - 8) };
    let result = pool.transaction(|tx| unsafe { tx.add(lost) });
    match result {
        Err(Error::Poisoned { file, .. }) => assert_eq!(file, path),
        other => panic!("{other:?}"),
    }
    assert!(matches!(
        pool.transaction(|_| Ok::<_, Error>(())),
        Err(Error::Poisoned { .. })
    ));
}

/// In a process of its own: in one where a page has failed before each word is looked at.
#[test]
#[ignore = "the other process of the test below"]
fn announces_vanished_words() {
    let Some(dir) = support::directory() else {
        return;
    };
    let (_store, pool, root, path) = with_block(&dir, pool_options());
    let block = root.blocks[0];
    // From here on words of its puddle are announced without a call.
    let first = pool.transaction(|tx| unsafe {
        tx.add(block.cast::<u64>())?;
        block.cast::<u64>().write(1);
        Ok::<_, Error>(())
    });
    first.unwrap();
    let mut announced = 0;
    let result = pool.transaction(|tx| unsafe {
        cut_short(&pool, &path);
        tx.add(block.add((2 << 20) + 8).cast::<u64>())?;
        announced += 1;
        // Several at once; the last of them is in another page.
        tx.add(block.add((2 << 20) + (8 << 10) - 16).cast::<[u64; 3]>())?;
        announced += 1;
        Ok::<_, Error>(())
    });
    assert!(matches!(result, Err(Error::Poisoned { file, .. }) if file == path));
    // Other engines look at each word.
    let is_shadow = pool.engine() == Engine::Shadow;
    assert_eq!(announced == 2, is_shadow);
    assert!(pool.transaction(|_| Ok::<_, Error>(())).is_err());
}

/// The program's own code reads them, in a place that the handler knows.
#[test]
fn vanished_words_that_are_announced_without_a_call_fail_the_commit() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let status = support::start("announces_vanished_words", dir.path())
        .wait()
        .unwrap();
    assert!(status.success(), "{status}");
}

/// What nobody read when it was announced is read by the commit: it has failed before anything of it counts.
#[test]
fn a_commit_of_a_large_range_with_a_vanished_page_is_an_error() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let (store, pool, block, path) = truncate_under(dir.path(), pool_options());
    let result = pool.transaction(|tx| unsafe {
        tx.add_bytes(block, 3 << 20, Announce::Clobber)?;
        block.write(8);
        Ok::<_, Error>(())
    });
    match result {
        Err(Error::Poisoned { file, .. }) => assert_eq!(file, path),
        other => panic!("{other:?}"),
    }
    if pool.engine() != Engine::Shadow {
        // What was clobbered in place is whatever it is.
        return;
    }
    drop((pool, store));
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(file.metadata().unwrap().len() + (2 << 20))
        .unwrap();
    let (_store, pool, _) = open(dir.path(), StoreOptions::new(), pool_options());
    assert_eq!(pool.engine(), Engine::Shadow);
    assert_eq!(unsafe { block.read() }, 7, "nothing of it was committed");
}

/// Pages that wait with going home when their places vanish: the pool is poisoned when they are written.
#[test]
fn pages_that_go_home_to_vanished_places_poison_the_pool() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let (_store, pool, root, path) = with_block(dir.path(), pool_options());
    if pool.engine() != Engine::Shadow {
        return;
    }
    let (block, len) = (root.blocks[0], 3 << 20);
    pool.transaction(|tx| unsafe {
        tx.add_bytes(block, len, Announce::Backup)?;
        block.write_bytes(8, len);
        Ok::<_, Error>(())
    })
    .unwrap();
    cut_short(&pool, &path);
    let mut change = |round: usize| {
        pool.transaction(|tx| unsafe {
            tx.add_bytes((&raw const root.blocks[1]).cast(), 2048, Announce::Backup)?;
            (&raw mut root.blocks[1])
                .cast::<u8>()
                .write_bytes(round as u8, 2048);
            Ok::<_, Error>(())
        })
    };
    let failed = (0..20_000).find_map(|round| change(round).err());
    match failed {
        Some(Error::Poisoned { file, .. }) => assert_eq!(file, path),
        other => panic!("{other:?}"),
    }
}

#[test]
#[ignore = "the other process of the test below"]
fn reads_a_vanished_page() {
    let Some(dir) = support::directory() else {
        return;
    };
    let (_store, _pool, block, _) = truncate_under(&dir, pool_options());
    // SAFETY: mapped memory; that its page is gone is what this is about.
    std::hint::black_box(unsafe { block.add((3 << 20) - 8).read_volatile() });
}

#[test]
fn without_the_option_the_programs_own_read_ends_it_as_ever() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let status = support::start("reads_a_vanished_page", dir.path())
        .wait()
        .unwrap();
    assert_eq!(status.signal(), Some(7), "SIGBUS: {status}");
}

#[test]
#[ignore = "the other process of the test below"]
fn forks_and_uses_the_pool_in_the_child() {
    let Some(dir) = support::directory() else {
        return;
    };
    let (store, pool, root) = open(&dir, StoreOptions::new(), pool_options());
    increment(&pool, root).unwrap();
    // SAFETY: this process has one thread that matters; the child only tries the handles and exits.
    match unsafe { libc::fork() } {
        0 => {
            let pool_refuses =
                matches!(pool.transaction(|_| Ok::<_, Error>(())), Err(Error::Forked));
            let store_refuses =
                matches!(store.open_pool("pool", pool_options()), Err(Error::Forked));
            let usage_refuses = matches!(pool.usage(), Err(Error::Forked));
            let refuses = pool_refuses && store_refuses && usage_refuses;
            std::process::exit(if refuses { 0 } else { 1 });
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child just forked.
            unsafe { libc::waitpid(child, &mut status, 0) };
            increment(&pool, root).unwrap();
            drop((pool, store));
            std::process::exit(if status == 0 { 0 } else { 2 });
        }
    }
}

#[test]
#[ignore = "the other process of the test below"]
fn forks_inside_a_transaction() {
    let Some(dir) = support::directory() else {
        return;
    };
    let (store, pool, root) = open(&dir, StoreOptions::new(), pool_options());
    let mut child = 0;
    // From the second one on words of its puddle are announced without a call.
    increment(&pool, root).unwrap();
    pool.transaction(|tx| {
        // SAFETY: the root is this thread's alone.
        unsafe { tx.add(&raw const root.count)? };
        root.count = 1;
        // SAFETY: this process has one thread that matters; the child only tries the handles and exits.
        child = unsafe { libc::fork() };
        if child != 0 {
            return Ok::<(), Error>(());
        }
        let word = &raw mut root.count;
        // SAFETY: refused before anything is touched.
        let refused = unsafe {
            [
                tx.add(word),
                tx.set(word, 9),
                tx.free(word),
                tx.alloc_bytes(&pool, 0, 8, 8).map(drop),
                pool.root_bytes(0, 8, 8).map(drop),
                pool.persist(word, 8),
            ]
        };
        let all = refused
            .iter()
            .all(|result| matches!(result, Err(Error::Forked)));
        std::process::exit(if all { 0 } else { 1 });
    })
    .unwrap();
    let mut status = 0;
    // SAFETY: waits for the child just forked.
    unsafe { libc::waitpid(child, &mut status, 0) };
    drop((pool, store));
    std::process::exit(if status == 0 { 0 } else { 2 });
}

#[test]
fn a_child_forked_in_a_transaction_is_refused_and_the_parent_commits() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let status = support::start("forks_inside_a_transaction", dir.path())
        .wait()
        .unwrap();
    assert!(status.success(), "{status}");
    let (_store, _pool, root) = open(dir.path(), StoreOptions::new(), pool_options());
    assert_eq!(root.count, 1);
}

#[test]
fn a_forked_child_is_refused_and_the_parent_goes_on() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let status = support::start("forks_and_uses_the_pool_in_the_child", dir.path())
        .wait()
        .unwrap();
    assert!(status.success(), "{status}");
    let (_store, _pool, root) = open(dir.path(), StoreOptions::new(), pool_options());
    assert_eq!(root.count, 2);
}

#[repr(C)]
struct Wide {
    words: [u64; 600_000],
}
durum::describe!(Wide as "wide" { words });

/// The crash: home blocks were written and not synced, so they may be lost, and only the records have them. Nothing may
/// say that these are home.
#[test]
fn what_a_failed_sync_left_unknown_is_replayed() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let options = StoreOptions::new()
        .domain(Domain::File)
        .log_max(2 << 20)
        .checkpoint_thread(false);
    let pool_options = PoolOptions::new()
        .engine(Engine::Shadow)
        .root_puddle_size(8 << 20);
    let store = Store::create(dir.path().join("store"), options.clone()).unwrap();
    let pool = store.create_pool("pool", pool_options.clone()).unwrap();
    pool.root::<Wide>().unwrap();
    drop(pool);
    // New puddles are memory; from now on it is mapped from its file.
    let pool = store.open_pool("pool", pool_options).unwrap();
    let words = pool.root::<Wide>().unwrap().cast::<u64>();
    // It is larger than what is left of the log: committing it brings records home, or tries to.
    let open = unsafe { pool.begin() }.unwrap();
    unsafe { open.add_bytes(words.cast(), 4_640_000, Announce::Backup) }.unwrap();
    for at in 0..580_000 {
        unsafe { words.add(at).write(77) };
    }
    let path = puddle_file(dir.path(), words.addr());
    let fault = inject::fail_after(Operation::Sync, 0, &path);
    let place = unsafe { words.add(585_000) }.expose_provenance();
    let committed = std::thread::scope(|scope| {
        let commits = || {
            let place = std::ptr::with_exposed_provenance_mut::<u64>(place);
            let commit = |round: &u64| {
                let change = |tx: &durum::Tx| unsafe {
                    tx.add_bytes(place.cast(), 100_000, Announce::Backup)?;
                    for at in 0..12_500 {
                        place.add(at).write(*round);
                    }
                    Ok::<_, Error>(())
                };
                pool.transaction(change).is_ok()
            };
            (1..).take_while(commit).count() as u64
        };
        scope.spawn(commits).join().unwrap()
    });
    assert!(committed > 10, "{committed}");
    drop(fault);
    assert!(matches!(open.commit(), Err(Error::Poisoned { .. })));
    drop(pool);
    // It tells that not everything is home.
    assert!(matches!(store.close(), Err(Error::Poisoned { .. })));
    let store = Store::open(dir.path().join("store"), options).unwrap();
    assert!(store.recovery().unwrap().rolled_forward >= committed);
    let pool = store.open_pool("pool", PoolOptions::new()).unwrap();
    let words = pool.root::<Wide>().unwrap().cast::<u64>();
    assert!(unsafe { words.add(585_000).read() } >= committed);
}

#[test]
fn giving_pages_back_survives_a_page_that_cannot_be_read() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let shadow = PoolOptions::new().engine(Engine::Shadow);
    let (store, pool, root) = open(dir.path(), StoreOptions::new(), shadow);
    let block = pool
        .transaction(|tx| unsafe {
            let block = tx.alloc_bytes(&pool, 0, 3 << 20, 8)?;
            block.write_bytes(7, 3 << 20);
            tx.set(&raw mut root.blocks[0], block)?;
            Ok::<_, Error>(block)
        })
        .unwrap();
    // The place itself is memory; home is mapped one address space further.
    let home = block.addr() + store.info().space_size as usize;
    let file = OpenOptions::new()
        .write(true)
        .open(puddle_file(dir.path(), home))
        .unwrap();
    file.set_len(file.metadata().unwrap().len() - (1 << 20))
        .unwrap();
    let _ = store.give_pages_back();
    let refused = pool.transaction(|tx| unsafe { tx.set(&raw mut root.count, 1) });
    assert!(refused.is_err(), "the pool has a page that failed");
}
