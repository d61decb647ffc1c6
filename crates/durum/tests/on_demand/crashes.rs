//! A program that maps on demand dies: recovery finds what it committed, wherever that is.

use durum::{PoolOptions, PuddleMapping, StoreOptions};

use crate::fixture::{BLOCKS, Root, WAYS, everywhere, make, open};
use crate::support::{directory, start};

#[test]
fn what_was_committed_is_there_and_other_puddles_are_as_they_were() {
    everywhere(|dir, engine, domain| {
        make(dir, engine, domain, BLOCKS);
        for (round, way) in (1..).zip(WAYS) {
            std::fs::write(dir.join("way"), name(way)).unwrap();
            let domains = crate::fixture::domains();
            let at = domains.iter().position(|other| *other == domain);
            std::fs::write(dir.join("domain"), at.unwrap().to_string()).unwrap();
            let mut child = start("crashes::process_that_dies", dir);
            assert_eq!(child.wait().unwrap().code(), Some(42));
            let opened = open(dir, domain, way);
            assert!(!opened.store.recovery().unwrap().was_clean);
            for block in (0..BLOCKS).rev() {
                assert_eq!(opened.load(block, 0), block as u64);
                let committed = if block % 11 == 0 { round } else { 0 };
                assert_eq!(opened.load(block, 5), committed, "{block}");
            }
            opened.close();
        }
    });
}

fn name(way: PuddleMapping) -> &'static str {
    match way {
        PuddleMapping::Userfaultfd => "userfaultfd",
        PuddleMapping::Signal => "signal",
        _ => "eager",
    }
}

#[test]
#[ignore = "another test starts it in a process of its own"]
fn process_that_dies() {
    let Some(dir) = directory() else { return };
    let read = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    // SAFETY: this process has one thread that matters.
    unsafe { std::env::set_var("DURUM_MAPPING", read("way")) };
    let domain: usize = read("domain").parse().unwrap();
    let options = StoreOptions::new().domain(crate::fixture::domains()[domain]);
    let store = durum::Store::open(dir.join("store"), options).unwrap();
    let pool = store.open_pool("pool", PoolOptions::new()).unwrap();
    let root = pool.root::<Root>().unwrap();
    let word = |block: usize| unsafe { (*root).blocks[block].cast::<u64>().add(5) };
    for block in (0..BLOCKS).step_by(11) {
        pool.transaction(|tx| unsafe {
            tx.add(word(block))?;
            *word(block) += 1;
            Ok::<_, durum::Error>(())
        })
        .unwrap();
    }
    // And in the middle of one that touches others for the first time.
    let _ = pool.transaction(|tx| unsafe {
        for block in (0..BLOCKS).skip(5).step_by(11) {
            tx.add(word(block))?;
            *word(block) = 77;
        }
        libc::_exit(42);
        #[allow(unreachable_code, reason = "it says what the closure returns")]
        Ok::<_, durum::Error>(())
    });
}
