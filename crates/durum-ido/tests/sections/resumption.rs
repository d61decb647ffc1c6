//! Which sections go on after a crash, in which order, and which do not. The crash is a copy of the store that is made
//! while sections are under way.

use std::path::{Path, PathBuf};
use std::sync::Barrier;

use durum::{Delays, Domain};
use durum_ido::abi::{
    __durum_ido_durum_durable_begin, __durum_ido_enter, __durum_ido_record, __durum_ido_thread,
    Region, nv_calloc,
};
use durum_ido::abi_locks::*;

use crate::locks::make_recursive;
use crate::program::{Lock, Root, SET, begin_set, set, set_value};
use crate::support::{self, alone, on_a_thread, open, scratch};

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (from, kind) = entry
            .map(|entry| (entry.path(), entry.file_type().unwrap()))
            .unwrap();
        let to = to.join(from.file_name().unwrap());
        match kind.is_dir() {
            true => copy(&from, &to),
            false => drop(std::fs::copy(from, to).unwrap()),
        }
    }
}

/// What is left of a store if it crashes now.
fn crash(path: &Path) -> PathBuf {
    let copied = path.with_extension("crashed");
    copy(path, &copied);
    copied
}

fn close() -> Result<(), String> {
    support::close().map_err(|error| error.to_string())
}

/// The heap is closed, and this is what it left before.
fn closed(crashed: PathBuf) -> Result<PathBuf, String> {
    close().map(|()| crashed)
}

/// What a crash leaves of so many sections, each of a thread of its own, behind the record that `begin` makes with the
/// root, the memory of their locks, and its number.
fn interrupted(
    path: &Path,
    sections: usize,
    begin: impl Fn(*mut Root, usize, u64) -> [u64; 5] + Sync,
) -> PathBuf {
    let (recorded, copied) = (Barrier::new(sections + 1), Barrier::new(sections + 1));
    on_a_thread(|| {
        let root = open(path)?.expose_provenance();
        let locks = nv_calloc(sections, LOCK).expose_provenance();
        closed(std::thread::scope(|scope| {
            for number in 0..sections {
                let (recorded, copied, begin) = (&recorded, &copied, &begin);
                scope.spawn(move || unsafe {
                    let root = std::ptr::with_exposed_provenance_mut(root);
                    let words = begin(root, locks, number as u64);
                    recorded.wait();
                    copied.wait();
                    set_value(words);
                });
            }
            recorded.wait();
            let crashed = crash(path);
            copied.wait();
            crashed
        }))
    })
    .unwrap()
}

/// Bytes for a lock of any kind.
const LOCK: usize = 64;

/// The values of a heap whose sections have been completed.
fn values(crashed: &Path) -> [u64; 64] {
    on_a_thread(|| {
        let root = open(crashed)?;
        let values = unsafe { (&raw const (*root).values).read() };
        close().map(|()| values)
    })
    .unwrap()
}

/// More than a puddle has slots.
#[test]
fn many_sections_go_on_at_a_time() {
    const SECTIONS: usize = 40;
    let _alone = alone();
    let directory = scratch();
    let crashed = interrupted(
        &directory.path().join("heap"),
        SECTIONS,
        |root, locks, number| unsafe {
            let lock = std::ptr::with_exposed_provenance_mut(locks + LOCK * number as usize);
            assert_eq!(__durum_ido_pthread_mutex_lock(lock), 0);
            begin_set(root, Lock::Mutex(lock), number, number + 100)
        },
    );
    assert!(
        values(&crashed)[..SECTIONS]
            .iter()
            .copied()
            .eq(100..100 + SECTIONS as u64)
    );
}

/// Two sections read under one lock; both go on.
#[test]
fn readers_that_were_interrupted_have_their_lock_together() {
    let _alone = alone();
    let directory = scratch();
    let crashed = interrupted(
        &directory.path().join("heap"),
        2,
        |root, locks, number| unsafe {
            let lock = std::ptr::with_exposed_provenance_mut(locks);
            assert_eq!(__durum_ido_pthread_rwlock_rdlock(lock), 0);
            begin_set(root, Lock::ReadWrite(lock), number, 7)
        },
    );
    assert_eq!(values(&crashed)[..3], [7, 7, 0]);
}

/// As many regions are open again as there were.
#[test]
fn sections_that_no_lock_guards_go_on() {
    let _alone = alone();
    let directory = scratch();
    let crashed = interrupted(
        &directory.path().join("heap"),
        3,
        |root, _, number| unsafe {
            (0..=number).for_each(|_| __durum_ido_durum_durable_begin());
            begin_set(root, Lock::None(number + 1), number, 9)
        },
    );
    assert_eq!(values(&crashed)[..4], [9, 9, 9, 0]);
}

/// A section holds its lock three times when it is interrupted, and lets it go three times.
#[test]
fn a_lock_that_was_taken_several_times_is_held_as_often() {
    let _alone = alone();
    let directory = scratch();
    let crashed = interrupted(
        &directory.path().join("heap"),
        1,
        |root, locks, number| unsafe {
            let lock: *mut libc::pthread_mutex_t = std::ptr::with_exposed_provenance_mut(locks);
            make_recursive(lock);
            for _ in 0..3 {
                assert_eq!(__durum_ido_pthread_mutex_lock(lock), 0);
            }
            begin_set(root, Lock::Recursive(lock), number, 100)
        },
    );
    assert_eq!(values(&crashed)[..2], [100, 0]);
}

/// Why the heap is not opened again whose section has made a record that says this.
fn refused_after(code: u64, words: u16) -> String {
    refused_after_section(code, words, |root| unsafe {
        assert_eq!(__durum_ido_pthread_mutex_lock(&raw mut (*root).lock), 0);
    })
}

/// The same of a section that begins so.
fn refused_after_section(code: u64, words: u16, begin: impl FnOnce(*mut Root) + Send) -> String {
    let _alone = alone();
    let directory = scratch();
    let path = directory.path().join("heap");
    let crashed = on_a_thread(|| unsafe {
        begin(open(&path)?);
        let region = Region {
            code,
            line: 0,
            words,
            flags: 0,
            addresses: [0; 2],
        };
        let live_ins = vec![0_u64; words.into()];
        __durum_ido_record(__durum_ido_thread(), &region, live_ins.as_ptr().cast());
        closed(crash(&path))
    })
    .unwrap();
    let mut refused = (0..2).map(|_| on_a_thread(|| open(&crashed).map(drop)).unwrap_err());
    let first = refused.next().unwrap();
    assert_eq!(refused.next().unwrap(), first, "the second time");
    first
}

#[test]
fn a_section_whose_code_is_not_there_keeps_the_heap_from_being_opened() {
    let refused = refused_after(0xbad << 16 | 3, 0);
    assert!(
        refused.contains("region 3 of function 0x000000000bad"),
        "{refused}"
    );
    assert!(
        refused.contains("run the one that was interrupted"),
        "{refused}"
    );
}

/// Whatever the checksum says, code is entered with the words that it reads, and where it has an entry.
#[test]
fn a_record_that_no_code_makes_keeps_the_heap_from_being_opened() {
    for (region, words) in [(99, 5), (0, 5), (1, 4), (1, 6)] {
        let refused = refused_after(SET << 16 | region, words);
        assert!(refused.contains("damaged, or forged"), "{refused}");
    }
}

/// What is in a section holds something, or it would never end.
#[test]
fn a_record_of_a_section_that_holds_nothing_keeps_the_heap_from_being_opened() {
    let refused = refused_after_section(SET << 16 | 1, 5, |_| {
        // The thread's depth, which compiled code reads.
        unsafe { __durum_ido_thread().cast::<u32>().write(1) };
    });
    assert!(refused.contains("holds nothing"), "{refused}");
}

/// Where compiled code finds what its `resume` has left in the thread: docs/reference/ido-ir.md.
#[test]
fn a_function_that_is_entered_still_finds_what_its_call_has_returned() {
    on_a_thread(|| unsafe {
        let thread = __durum_ido_thread();
        let place = thread.cast::<u8>();
        let (number, words, result) = (place.add(24), place.add(32), place.add(40));
        let (recorded, returned) = ([7u64, 8], 9u64);
        number.cast::<u32>().write(1);
        words.cast::<*const u64>().write(recorded.as_ptr());
        result.cast::<*const u64>().write(&returned);
        let region = Region {
            code: SET << 16 | 1,
            line: 0,
            words: 2,
            flags: 0,
            addresses: [0; 2],
        };
        let mut found = [0u64; 2];
        assert_eq!(
            __durum_ido_enter(thread, &region, found.as_mut_ptr().cast()),
            1
        );
        assert_eq!(found, recorded);
        assert_eq!(number.cast::<u32>().read(), 0, "nobody enters there again");
        assert_eq!(result.cast::<*const u64>().read().read(), 9);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_heap_is_opened_once_and_where_memory_lasts() {
    let _alone = alone();
    let directory = scratch();
    let path = directory.path().join("heap");
    on_a_thread(|| {
        let root = open(&path)?;
        let refused = open(&directory.path().join("other")).unwrap_err();
        assert!(refused.contains("is open already"), "{refused}");
        unsafe { set(root, 0, 1) };
        close()
    })
    .unwrap();
    let delays = Delays {
        write_back_ns: 1,
        fence_ns: 1,
        sync_ns: 1,
    };
    for (name, domain) in [("dram", Domain::Dram), ("slow", Domain::Emulated(delays))] {
        let path = directory.path().join(name);
        let options = support::options().domain(domain);
        on_a_thread(|| {
            durum_ido::open(&path, &options).map_err(|error| error.to_string())?;
            close()
        })
        .unwrap();
    }
    let refused = on_a_thread(|| open(Path::new("durum+unix:/nowhere")).map(drop)).unwrap_err();
    assert!(refused.contains("/nowhere"), "{refused}");
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let options = durum::StoreOptions::new().domain(durum::Domain::File);
    let refused = durum_ido::open(&disk.path().join("heap"), &options).unwrap_err();
    assert!(refused.to_string().contains("/dev/shm"), "{refused}");
}
