//! Pages that vanish under a mapping, or cannot be read.

use std::fs::OpenOptions;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use durum::{Announce, Engine, Error, Pool, PoolOptions, Store, StoreOptions};

use crate::support::pool_options;
use crate::{Root, increment, open, puddle_file, support};

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

/// The same for words that vanish when they have been announced: the commit is the first to read them again.
#[test]
#[ignore = "the other process of the test below"]
fn loses_announced_words() {
    let Some(dir) = support::directory() else {
        return;
    };
    let (_store, pool, root, path) = with_block(&dir, pool_options());
    let word = |at: usize| unsafe { root.blocks[0].add(at).cast::<u64>() };
    let (kept, lost) = (word(8), word((2 << 20) + 8));
    let old = unsafe { kept.read() };
    for value in [1, old] {
        let done = pool.transaction(|tx| unsafe {
            tx.add(kept)?;
            kept.write(value);
            Ok::<_, Error>(())
        });
        done.unwrap();
    }
    let mut before = 0;
    let result = pool.transaction(|tx| unsafe {
        tx.add(kept)?;
        tx.add(lost)?;
        kept.write(2);
        cut_short(&pool, &path);
        before = durum::thread_counters().fences;
        Ok::<_, Error>(())
    });
    if pool.engine() == Engine::Shadow {
        assert!(matches!(result, Err(Error::Poisoned { file, .. }) if file == path));
        assert_eq!(unsafe { kept.read() }, old);
        assert_eq!(
            durum::thread_counters().fences,
            before,
            "no record tells of it"
        );
    }
}

/// The program's own code reads them, in a place that the handler knows.
#[test]
fn vanished_words_that_are_announced_without_a_call_fail_the_commit() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let status = support::start("vanished::announces_vanished_words", dir.path())
        .wait()
        .unwrap();
    assert!(status.success(), "{status}");
}

#[test]
fn words_that_vanish_when_they_have_been_announced_fail_the_commit() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let status = support::start("vanished::loses_announced_words", dir.path())
        .wait()
        .unwrap();
    assert!(status.success(), "{status}");
}

/// What nobody read when it was announced is read by the commit: it has failed before anything of it counts. What was
/// clobbered holds anything then; nothing else has changed.
#[test]
fn a_commit_of_a_large_range_with_a_vanished_page_is_an_error() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let (store, pool, root, path) = with_block(dir.path(), pool_options());
    cut_short(&pool, &path);
    let block = root.blocks[0];
    let result = pool.transaction(|tx| unsafe {
        tx.add(&raw mut root.blocks[1])?;
        root.blocks[1] = block;
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
    let (_store, pool, root) = open(dir.path(), StoreOptions::new(), pool_options());
    assert_eq!(pool.engine(), Engine::Shadow);
    assert!(root.blocks[1].is_null(), "nothing of it was committed");
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
    let status = support::start("vanished::reads_a_vanished_page", dir.path())
        .wait()
        .unwrap();
    assert_eq!(status.signal(), Some(7), "SIGBUS: {status}");
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
