//! What is kept for a pool that waits, until it is given up.

use std::fs;

use durum::{Domain, Engine};
use durum_service::{Embedded, Service};

use crate::{Case, End, Left, each_file, look, open, pool_or_refusal, snapshot};

/// What is given up is gone for good, and nothing else is.
#[test]
fn what_is_given_up_is_lost_in_that_pool_only() {
    for case in Case::all().filter(|case| case.engine != Engine::Twin) {
        let left = Left::new(case);
        let file = left.files_of("b").remove(0);
        let kept = fs::read(&file).unwrap();
        fs::remove_file(&file).unwrap();
        let store = Embedded::open(&left.store(), durum_service::OpenOptions::default()).unwrap();
        if case.end == End::Alone {
            assert!(store.give_up("a").is_err(), "it does not wait");
        }
        let refused = store.refused_pools().unwrap();
        match refused.iter().find(|pool| pool.name == "b") {
            Some(b) => {
                assert!(b.transactions + b.undecided > 0, "{case:?}: {b:?}");
                store.give_up("b").unwrap();
            }
            None => {
                let nothing = store.give_up("b").unwrap_err();
                assert!(nothing.to_string().contains("nothing is kept"), "{nothing}");
            }
        }
        assert!(store.refused_pools().unwrap().is_empty(), "{case:?}");
        store.close().unwrap();
        fs::write(&file, kept).unwrap();
        let store = open(&left.store(), case.domain);
        assert!(store.recovery().unwrap().was_clean, "{case:?}");
        let a = pool_or_refusal(&store, "a").unwrap();
        let lost = match (case.engine, case.end) {
            // Only the file that is gone could tell that it committed, and undoing it is sound.
            (Engine::Hybrid, End::Both) => 1,
            _ => 0,
        };
        let count = look(&a).0;
        assert!(
            count == left.acknowledged[0] || count + lost == left.acknowledged[0],
            "{case:?}: {count} of {}",
            left.acknowledged[0]
        );
    }
}

/// What was decided is noted once. Otherwise each open would note it again, in a store that nobody can do anything for.
#[test]
fn an_open_that_can_do_nothing_writes_nothing() {
    for engine in [Engine::Shadow, Engine::Hybrid] {
        let is_chosen = |case: Case| case.domain == Domain::Dram || engine == Engine::Shadow;
        each_file(engine, is_chosen, |case, left, file, _| {
            fs::remove_file(file).unwrap();
            open(&left.store(), case.domain).close().unwrap();
            let before = snapshot(&left.store(), &[]);
            for _ in 0..2 {
                open(&left.store(), case.domain).close().unwrap();
                assert!(snapshot(&left.store(), &[]) == before, "{case:?}");
            }
        });
    }
}

/// A copy of the file from before is not the file of then.
#[test]
fn an_older_copy_of_the_file_is_refused() {
    let case = Case {
        engine: Engine::Shadow,
        domain: Domain::Dram,
        end: End::Alone,
    };
    let left = Left::new(case);
    let files = left.files_of("b");
    let whole: Vec<Vec<u8>> = files.iter().map(|file| fs::read(file).unwrap()).collect();
    for file in &files {
        fs::remove_file(file).unwrap();
    }
    open(&left.store(), case.domain).close().unwrap();
    // As they were before the transactions: what went home with them is not there.
    for (file, bytes) in files.iter().zip(&whole) {
        let mut old = bytes.clone();
        let heap = old.len() / 8;
        old[heap..].fill(0);
        fs::write(file, old).unwrap();
    }
    let before = snapshot(&left.store(), &[]);
    let store = open(&left.store(), case.domain);
    let why = pool_or_refusal(&store, "b").expect_err("it is not the file of then");
    assert!(why.contains("not the file that the pool had"), "{why}");
    drop(store);
    assert!(
        snapshot(&left.store(), &[]) == before,
        "nothing could be done, so nothing is written"
    );
    for (file, bytes) in files.iter().zip(&whole) {
        fs::write(file, bytes).unwrap();
    }
    let store = open(&left.store(), case.domain);
    let b = pool_or_refusal(&store, "b").unwrap();
    assert_eq!(look(&b).0, left.acknowledged[1]);
}

/// While a part is kept nothing follows pointers through the store, and the pool is not removed.
#[test]
fn nothing_that_follows_pointers_is_done_while_a_part_is_kept() {
    let case = Case {
        engine: Engine::Shadow,
        domain: Domain::Dram,
        end: End::Alone,
    };
    let left = Left::new(case);
    let file = left.files_of("b").remove(0);
    fs::remove_file(&file).unwrap();
    let store = open(&left.store(), case.domain);
    store.close().unwrap();
    let path = left.store();
    let kept = |error: durum_service::Error| {
        assert!(
            matches!(&error, durum_service::Error::PartsKept { pools, .. } if pools == &["b"]),
            "{error}"
        );
    };
    kept(durum_service::repair(&path).unwrap_err());
    let target = left.dir.path().join("clone");
    kept(
        durum_service::clone_store(&path, &target, &durum_service::CloneOptions::default())
            .unwrap_err(),
    );
    kept(
        durum_service::find_garbage(&path, &durum_service::GarbageOptions::default()).unwrap_err(),
    );
    let report = durum_service::check(&path, &durum_service::CheckOptions::default()).unwrap();
    assert!(!report.is_sound());
    let told = report.findings.iter().map(ToString::to_string);
    assert!(
        told.clone()
            .any(|text| text.contains("pool \"b\"") && text.contains("kept for it")),
        "{:?}",
        told.collect::<Vec<_>>()
    );
    let store = Embedded::open(&path, durum_service::OpenOptions::default()).unwrap();
    assert!(matches!(
        store.remove_pool("b").unwrap_err(),
        durum_service::Error::PoolRefused { .. }
    ));
    store.remove_pool("a").unwrap();
    store.give_up("b").unwrap();
    store.remove_pool("b").unwrap();
}
