//! The file of a puddle is not there.

use std::os::unix::process::ExitStatusExt;

use durum::{Domain, Engine, Error, PoolOptions, PuddleMapping, StoreOptions};
use durum_service::Error::FileMissing;

use crate::fixture::{
    BLOCKS, ENGINES, IN_MEMORY, domains, everywhere, file_of, make, open, try_open,
};
use crate::support::{directory, start};

const LOST: usize = 20;

#[test]
fn it_is_the_error_of_the_call_that_needs_it_until_the_file_is_back() {
    everywhere(|dir, engine, domain| {
        make(dir, engine, domain, BLOCKS);
        let opened = open(dir, domain, PuddleMapping::OnDemand);
        let lost = opened.blocks[LOST];
        opened.close();
        let (file, aside) = (file_of(dir, lost), dir.join("aside"));
        for (round, way) in (1..).zip([PuddleMapping::Userfaultfd, PuddleMapping::Signal]) {
            std::fs::rename(&file, &aside).unwrap();
            let eager = try_open(dir, domain, PuddleMapping::Eager, PoolOptions::new());
            assert!(matches!(eager, Err(Error::Store(FileMissing { .. }))));
            drop(eager);

            let opened = open(dir, domain, way);
            for _ in 0..2 {
                let refused = opened.increment(LOST, 3);
                assert!(
                    matches!(refused, Err(Error::Store(FileMissing { .. }))),
                    "{refused:?}"
                );
                assert!(!opened.pool.holds(lost.cast(), 8));
                assert!(opened.pool.touch(lost, 8).is_err());
                assert!(opened.pool.usage().is_err());
            }
            // Others are as they were, neighbours above all.
            for block in (0..BLOCKS).filter(|block| *block != LOST) {
                opened.increment(block, 3).unwrap();
            }
            std::fs::rename(&aside, &file).unwrap();
            opened.increment(LOST, 3).unwrap();
            assert_eq!(opened.load(LOST, 3), round);
            opened.close();
        }
        let opened = open(dir, domain, PuddleMapping::Eager);
        for block in 0..BLOCKS {
            assert_eq!(opened.load(block, 3), 2);
        }
        opened.close();
    });
}

#[test]
fn an_access_poisons_the_store_where_media_errors_are_survived() {
    everywhere(|dir, engine, domain| {
        make(dir, engine, domain, BLOCKS);
        for way in [PuddleMapping::Userfaultfd, PuddleMapping::Signal] {
            let opened = open(dir, domain, way);
            let lost = opened.blocks[LOST];
            opened.close();
            let (file, aside) = (file_of(dir, lost), dir.join("aside"));
            std::fs::rename(&file, &aside).unwrap();
            let options = PoolOptions::new().survive_media_errors(true);
            let opened = try_open(dir, domain, way, options).unwrap();
            opened.increment(3, 4).unwrap();
            std::thread::scope(|scope| {
                for _ in 0..4 {
                    scope.spawn(|| assert_eq!(opened.load(LOST, 0), 0));
                }
            });
            let refused = opened.increment(3, 4).unwrap_err();
            assert!(matches!(refused, Error::Poisoned { .. }), "{refused}");
            assert!(refused.to_string().contains("puddles/"), "{refused}");
            drop(opened);
            std::fs::rename(&aside, &file).unwrap();
        }
        // Nothing is lost: what was committed before, and what the file holds.
        let opened = open(dir, domain, PuddleMapping::Eager);
        assert_eq!((opened.load(3, 4), opened.load(LOST, 0)), (2, LOST as u64));
        opened.close();
    });
}

#[test]
fn an_access_ends_the_process_as_a_media_error_does() {
    for engine in ENGINES {
        for domain in domains() {
            for way in ["userfaultfd", "signal"] {
                let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
                make(dir.path(), engine, domain, BLOCKS);
                let opened = open(dir.path(), domain, PuddleMapping::OnDemand);
                let lost = opened.blocks[LOST];
                opened.close();
                std::fs::remove_file(file_of(dir.path(), lost)).unwrap();
                std::fs::write(dir.path().join("way"), way).unwrap();
                let mut child = start("missing::process_that_accesses", dir.path());
                let status = child.wait().unwrap();
                assert_eq!(status.signal(), Some(libc::SIGBUS), "{way} {status}");
            }
        }
    }
}

#[test]
#[ignore = "another test starts it in a process of its own"]
fn process_that_accesses() {
    let Some(dir) = directory() else { return };
    let way = std::fs::read_to_string(dir.join("way")).unwrap();
    // SAFETY: this process has one thread that matters.
    unsafe { std::env::set_var("DURUM_MAPPING", way) };
    let store = durum::Store::open(dir.join("store"), StoreOptions::new()).unwrap();
    let pool = store.open_pool("pool", PoolOptions::new()).unwrap();
    assert!(pool.puddles_waiting() > 0);
    let root = pool.root::<crate::fixture::Root>().unwrap();
    unsafe { (*root).blocks[LOST].read_volatile() };
}

/// The environment names the way where the program does not.
#[test]
fn other_engines_are_eager_by_default() {
    let dir = tempfile::tempdir_in(IN_MEMORY).unwrap();
    make(dir.path(), Engine::Hybrid, Domain::Dram, 3);
    if std::env::var_os("DURUM_MAPPING").is_none() {
        let store = durum::Store::open(dir.path().join("store"), StoreOptions::new()).unwrap();
        let pool = store.open_pool("pool", PoolOptions::new()).unwrap();
        assert_eq!(pool.puddles_waiting(), 0);
    }
}
