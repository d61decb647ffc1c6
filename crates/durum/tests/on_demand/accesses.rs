//! A program follows pointers into puddles that wait.

use std::ops::Range;
use std::sync::Barrier;

use durum::{Domain, Engine, PuddleMapping};

use crate::fixture::{BLOCKS, IN_MEMORY, Opened, Random, WAYS, everywhere, make, open};

pub const THREADS: usize = 16;

/// How often each thread has committed an increment of its word in each block.
pub type Committed = [[u64; BLOCKS]; THREADS];

/// Threads load, store and commit at random. What they commit is counted.
pub fn crowd(opened: &Opened, committed: &mut Committed, steps: usize) {
    let blocks = opened.blocks.len();
    let start = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for (thread, committed) in committed.iter_mut().enumerate() {
            let start = &start;
            scope.spawn(move || {
                let mut random = Random(thread as u64 + 1);
                let mut stored = [0; BLOCKS];
                start.wait();
                for step in 0..steps {
                    let block = random.below(blocks);
                    assert_eq!(opened.load(block, 0), block as u64);
                    match step % 10 == 9 {
                        true => {
                            opened.increment(block, 1 + thread).unwrap();
                            committed[block] += 1;
                        }
                        // Without an announcement: volatile, and this thread's alone.
                        false => {
                            let word = opened.word(block, 128 + 8 * thread);
                            if stored[block] != 0 {
                                assert_eq!(unsafe { word.read_volatile() }, stored[block]);
                            }
                            stored[block] = step as u64 + 1;
                            unsafe { word.write_volatile(stored[block]) };
                        }
                    }
                }
            });
        }
    });
}

/// Nothing of what a crowd has committed is lost.
pub fn has(opened: &Opened, committed: &Committed) {
    for (thread, committed) in committed.iter().enumerate() {
        for (block, committed) in committed.iter().enumerate().take(opened.blocks.len()) {
            assert_eq!(opened.load(block, 1 + thread), *committed);
        }
    }
}

#[test]
fn sixteen_threads_at_random_lose_no_store_and_none_stays_asleep() {
    everywhere(|dir, engine, domain| {
        make(dir, engine, domain, BLOCKS);
        let mut committed = [[0; BLOCKS]; THREADS];
        for way in WAYS {
            let opened = open(dir, domain, way);
            crowd(&opened, &mut committed, 400);
            has(&opened, &committed);
            opened.close();
        }
        let opened = open(dir, domain, PuddleMapping::Eager);
        has(&opened, &committed);
        opened.close();
    });
}

/// Threads do something with one block after the other, all at the same moment.
pub fn all_at_one(blocks: Range<usize>, access: impl Fn(usize, usize) + Sync) {
    let start = Barrier::new(THREADS);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (access, blocks, start) = (&access, blocks.clone(), &start);
            scope.spawn(move || {
                for block in blocks.rev() {
                    start.wait();
                    access(thread, block);
                }
            });
        }
    });
}

/// All at the same puddle: one maps, the others wait for it.
#[test]
fn many_threads_at_one_puddle_see_it_whole() {
    everywhere(|dir, engine, domain| {
        make(dir, engine, domain, BLOCKS);
        for way in WAYS {
            let opened = open(dir, domain, way);
            all_at_one(0..BLOCKS, |thread, block| {
                if thread % 4 == 3 {
                    opened.increment(block, 20 + thread).unwrap();
                }
                assert_eq!(opened.load(block, 0), block as u64);
            });
            assert_eq!(opened.pool.puddles_waiting(), 0);
            opened.close();
        }
    });
}

#[test]
fn readers_of_the_other_copy_map_it_too() {
    let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
    make(dir.path(), Engine::Twin, Domain::Dram, BLOCKS);
    for way in WAYS {
        let options = durum::PoolOptions::new().twin_mode(durum::TwinMode::LeftRight);
        let opened = crate::fixture::try_open(dir.path(), Domain::Dram, way, options).unwrap();
        let distance = opened.store.info().space_size as usize;
        for block in (0..BLOCKS).rev() {
            let copy = opened.blocks[block].wrapping_byte_add(distance);
            assert_eq!(unsafe { copy.read_volatile() }, block as u64);
        }
        opened.close();
    }
}

/// What a program may do with memory, a system call may, once it is mapped.
#[test]
fn a_system_call_works_after_a_touch() {
    let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
    make(dir.path(), Engine::Hybrid, Domain::Dram, BLOCKS);
    for way in WAYS {
        let opened = open(dir.path(), Domain::Dram, way);
        let block = opened.word(20, 300).cast::<u8>();
        let read = |from: &[u8]| {
            let (reader, mut writer) = std::io::pipe().unwrap();
            std::io::Write::write_all(&mut writer, from).unwrap();
            let fd = std::os::fd::AsRawFd::as_raw_fd(&reader);
            unsafe { libc::read(fd, block.cast(), from.len()) }
        };
        let before = read(b"before");
        if way == PuddleMapping::Signal {
            assert_eq!(before, -1, "no handler sees this access");
        }
        opened.pool.touch(block, 6).unwrap();
        assert_eq!(read(b"behind"), 6);
        let found = unsafe { std::slice::from_raw_parts(block, 6) };
        assert_eq!(found, b"behind");
        let outside = opened.blocks[20].cast_const().wrapping_byte_add(1 << 40);
        assert!(opened.pool.touch(outside, 8).is_err());
        opened.close();
    }
}

/// A child has no resolver: the access ends it, instead of waiting for ever.
#[test]
fn an_access_in_a_forked_child_ends_it() {
    let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
    make(dir.path(), Engine::Shadow, Domain::Dram, BLOCKS);
    for way in WAYS {
        let opened = open(dir.path(), Domain::Dram, way);
        let word = opened.word(15, 0);
        let child = unsafe { libc::fork() };
        if child == 0 {
            unsafe {
                libc::prctl(libc::PR_SET_DUMPABLE, 0);
                word.read_volatile();
                libc::_exit(0);
            }
        }
        let mut status = 0;
        assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == libc::SIGSEGV);
        assert_eq!(opened.load(15, 0), 15);
        opened.close();
    }
}
