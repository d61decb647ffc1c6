//! Processes that end in a section, or at an address that is none.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::Duration;

use durum::{Domain, Error, PageTracking, Store, StoreOptions};
use durum_service::{self as service, CheckOptions, Severity};

use crate::{Fixture, Random, WORDS, options, root, support};

#[test]
#[ignore = "the other process of a test below"]
fn steps_on_a_bad_address_in_a_section() {
    let Some(_) = support::directory() else {
        return;
    };
    let fixture = Fixture::new(PageTracking::Mprotect, Domain::Dram);
    let words = &mut root(fixture.pool()).words;
    let _ = unsafe {
        fixture.pool().section(|_| {
            words[0] = 1;
            // Not in the pool: whoever handled this before does so now.
            std::ptr::with_exposed_provenance_mut::<u64>(64).write_volatile(1);
            Ok::<_, Error>(())
        })
    };
}

#[test]
fn a_fault_outside_of_the_pool_ends_the_process() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut child = support::start("ended::steps_on_a_bad_address_in_a_section", dir.path());
    const SIGSEGV: i32 = 11;
    assert_eq!(child.wait().unwrap().signal(), Some(SIGSEGV));
}

fn move_money_for_ever(tracking: PageTracking, dir: &Path) {
    let store = Store::open_or_create(dir.join("store"), StoreOptions::new()).unwrap();
    let pool = store
        .open_or_create_pool("pool", options(tracking))
        .unwrap();
    let root_object = root(&pool);
    let mut random = Random(u64::from(std::process::id()));
    loop {
        let fails = random.below(5) == 0;
        let result = unsafe {
            pool.section(|tx| {
                for _ in 0..random.below(50) {
                    let (from, to) = (random.below(WORDS), random.below(WORDS));
                    root_object.words[from] = root_object.words[from].wrapping_sub(1);
                    root_object.words[to] = root_object.words[to].wrapping_add(1);
                }
                let place = random.below(64);
                let node = tx.alloc::<[u64; 5]>()?;
                *node = [place as u64; 5];
                let old = std::mem::replace(&mut root_object.nodes[place], node);
                if !old.is_null() {
                    tx.free(old)?;
                }
                root_object.area_size += 1;
                if fails { tx.abort() } else { Ok(()) }
            })
        };
        assert_eq!(result.is_err(), fails);
        let (from, to) = (random.below(WORDS), random.below(WORDS));
        pool.transaction(|tx| unsafe {
            tx.add(&raw const root_object.words[from])?;
            tx.add(&raw const root_object.words[to])?;
            root_object.words[from] = root_object.words[from].wrapping_sub(1);
            root_object.words[to] = root_object.words[to].wrapping_add(1);
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

#[test]
#[ignore = "the other process of a test below"]
fn worker_with_userfaultfd() {
    if let Some(dir) = support::directory() {
        move_money_for_ever(PageTracking::Userfaultfd, &dir);
    }
}

#[test]
#[ignore = "the other process of a test below"]
fn worker_with_mprotect() {
    if let Some(dir) = support::directory() {
        move_money_for_ever(PageTracking::Mprotect, &dir);
    }
}

#[test]
fn a_process_killed_in_a_section_leaves_all_of_it_or_nothing() {
    for worker in [
        "ended::worker_with_userfaultfd",
        "ended::worker_with_mprotect",
    ] {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        // Made here: on a busy machine the first kill may come before the worker has done anything.
        let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
        let pool = store
            .create_pool("pool", options(PageTracking::Auto))
            .unwrap();
        root(&pool);
        drop(pool);
        store.close().unwrap();
        let mut seen = 0;
        for kill in 0..6 {
            let mut child = support::start(worker, dir.path());
            std::thread::sleep(Duration::from_millis(150 + kill * 37));
            child.kill().unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(9));
            let store = Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
            assert!(store.recovery().unwrap().quarantined.is_empty());
            let pool = store
                .open_pool("pool", options(PageTracking::Auto))
                .unwrap();
            let root_object = root(&pool);
            let sum = root_object
                .words
                .iter()
                .fold(0u64, |sum, word| sum.wrapping_add(*word));
            assert_eq!(sum, 0, "what was taken in one place was given in another");
            for (place, node) in root_object.nodes.iter().enumerate() {
                if !node.is_null() {
                    assert_eq!(unsafe { **node }, [place as u64; 5]);
                }
            }
            assert!(root_object.area_size >= seen);
            seen = root_object.area_size;
            drop(pool);
            store.close().unwrap();
            let report =
                service::check(&dir.path().join("store"), &CheckOptions::default()).unwrap();
            assert!(
                report
                    .findings
                    .iter()
                    .all(|finding| finding.severity <= Severity::Leak)
            );
        }
        println!("{worker}: {seen} sections");
        assert!(seen > 0);
    }
}
