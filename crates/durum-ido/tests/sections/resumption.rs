//! Which sections go on after a crash, in which order, and which do not. The crash is a copy of the store that is made
//! while sections are under way.

use std::path::{Path, PathBuf};
use std::sync::Barrier;

use durum::{Delays, Domain};
use durum_ido::abi::{
    __durum_ido_record, __durum_ido_recorded, __durum_ido_thread, Region, nv_calloc,
};
use durum_ido::abi_locks::*;

use crate::program::{Lock, Root, begin_set, set, set_value, unlock};
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
    durum_ido::close().map_err(|error| error.to_string())
}

/// The heap is closed, and this is what it left before.
fn closed(crashed: PathBuf) -> Result<PathBuf, String> {
    close().map(|()| crashed)
}

#[test]
fn many_sections_go_on_at_a_time() {
    const THREADS: usize = 40;
    let _alone = alone();
    let directory = scratch();
    let path = directory.path().join("heap");
    let (recorded, copied) = (Barrier::new(THREADS + 1), Barrier::new(THREADS + 1));
    let crashed = on_a_thread(|| {
        let root = open(&path)?;
        // More than a puddle has slots; each with a lock of its own.
        let locks = nv_calloc(THREADS, 64).expose_provenance();
        let root = root.expose_provenance();
        closed(std::thread::scope(|scope| {
            for number in 0..THREADS {
                let (recorded, copied) = (&recorded, &copied);
                scope.spawn(move || unsafe {
                    let root: *mut Root = std::ptr::with_exposed_provenance_mut(root);
                    let lock = std::ptr::with_exposed_provenance_mut(locks + 64 * number);
                    assert_eq!(__durum_ido_pthread_mutex_lock(lock), 0);
                    let words =
                        begin_set(root, Lock::Mutex(lock), number as u64, number as u64 + 100);
                    recorded.wait();
                    copied.wait();
                    set_value(words);
                });
            }
            recorded.wait();
            let crashed = crash(&path);
            copied.wait();
            crashed
        }))
    })
    .unwrap();
    on_a_thread(|| {
        let root = open(&crashed)?;
        let values = unsafe { (&raw const (*root).values).read() };
        assert!(
            values[..THREADS]
                .iter()
                .copied()
                .eq(100..100 + THREADS as u64)
        );
        close()
    })
    .unwrap();
}

/// Two sections read under one lock, and each has another one; both go on.
#[test]
fn readers_that_were_interrupted_have_their_lock_together() {
    let _alone = alone();
    let directory = scratch();
    let path = directory.path().join("heap");
    let (recorded, copied) = (Barrier::new(3), Barrier::new(3));
    let crashed = on_a_thread(|| {
        let root = open(&path)?.expose_provenance();
        let lock = nv_calloc(1, 64).expose_provenance();
        closed(std::thread::scope(|scope| {
            for number in 0..2 {
                let (recorded, copied) = (&recorded, &copied);
                scope.spawn(move || unsafe {
                    let root: *mut Root = std::ptr::with_exposed_provenance_mut(root);
                    let lock = std::ptr::with_exposed_provenance_mut(lock);
                    assert_eq!(__durum_ido_pthread_rwlock_rdlock(lock), 0);
                    let words = begin_set(root, Lock::ReadWrite(lock), number, 7);
                    recorded.wait();
                    copied.wait();
                    set_value(words);
                });
            }
            recorded.wait();
            let crashed = crash(&path);
            copied.wait();
            crashed
        }))
    })
    .unwrap();
    on_a_thread(|| {
        let root = open(&crashed)?;
        assert_eq!(
            unsafe { (&raw const (*root).values).read() }[..3],
            [7, 7, 0]
        );
        close()
    })
    .unwrap();
}

#[test]
fn a_section_whose_code_is_not_there_keeps_the_heap_from_being_opened() {
    let _alone = alone();
    let directory = scratch();
    let path = directory.path().join("heap");
    let crashed = on_a_thread(|| unsafe {
        let root = open(&path)?;
        assert_eq!(__durum_ido_pthread_mutex_lock(&raw mut (*root).lock), 0);
        let region = Region {
            code: 0xbad << 16 | 3,
            line: 0,
            words: 0,
            flags: 0,
            addresses: [0; 2],
        };
        __durum_ido_record(__durum_ido_thread(), &region);
        __durum_ido_recorded(__durum_ido_thread(), &region);
        let crashed = crash(&path);
        unlock(root);
        closed(crashed)
    })
    .unwrap();
    for _ in 0..2 {
        let refused = on_a_thread(|| open(&crashed).map(drop)).unwrap_err();
        assert!(
            refused.contains("region 3 of function 0x000000000bad"),
            "{refused}"
        );
        assert!(
            refused.contains("run the one that was interrupted"),
            "{refused}"
        );
    }
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
    assert!(
        refused.contains("make the heap in a directory of its own"),
        "{refused}"
    );
    let disk = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let options = durum::StoreOptions::new().domain(durum::Domain::File);
    let refused = durum_ido::open(&disk.path().join("heap"), &options).unwrap_err();
    assert!(refused.to_string().contains("/dev/shm"), "{refused}");
}
