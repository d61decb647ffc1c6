//! A typed pool and the processes that use it, one after the other.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, OnceLock, PoisonError};

use durum::Engine;
use durum::typed::*;

use crate::{Place, options};

durum::pool!(P);
type Root = PMutex<u64, P>;

const ENGINES: [Engine; 3] = [Engine::Shadow, Engine::Hybrid, Engine::Twin];

/// The store, in the process that a test has started.
fn store() -> Option<PathBuf> {
    std::env::var_os("DURUM_STORE_OF_THE_TEST").map(Into::into)
}

/// Runs a test in a process of its own, on a store. Gives what it says.
fn run(test: &str, store: &Path) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .env("DURUM_STORE_OF_THE_TEST", store)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{told}");
    told
}

/// One opening of `P` at a time in this process.
fn turn() -> std::sync::MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn value(root: &Root) -> u64 {
    P::transaction(|j| *root.lock(j)).unwrap()
}

#[test]
fn a_pool_that_another_process_has_open_is_busy() {
    if let Some(store) = store() {
        match P::open::<Root>(&store, 0) {
            Ok(root) => {
                P::transaction(|j| *root.lock(j) += 10).unwrap();
                eprintln!("it was open to me");
            }
            Err(durum::Error::Store(durum::StoreError::StoreBusy { .. })) => {
                eprintln!("it was busy");
            }
            Err(error) => panic!("{error:?}"),
        }
        return;
    }
    let _turn = turn();
    let test = "processes::a_pool_that_another_process_has_open_is_busy";
    for engine in ENGINES {
        let place = Place::new();
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        P::transaction(|j| *root.lock(j) = 1).unwrap();
        assert!(run(test, &place.path).contains("it was busy"), "{engine:?}");
        // Nor does it see one that a transaction has open.
        P::transaction(|j| {
            let mut guard = root.lock(j);
            *guard += 1;
            assert!(run(test, &place.path).contains("it was busy"), "{engine:?}");
        })
        .unwrap();
        assert_eq!(value(&root), 2);
        root.close().unwrap();
        assert!(
            run(test, &place.path).contains("it was open to me"),
            "{engine:?}"
        );
        let root = P::open::<Root>(&place.path, 0).unwrap();
        assert_eq!(value(&root), 12, "{engine:?}");
    }
}

#[test]
fn a_pool_whose_guard_is_in_a_static_is_as_its_last_transaction_left_it() {
    /// Never dropped, so the process ends with the pool open.
    static ROOT: OnceLock<RootGuard<Root, P>> = OnceLock::new();

    fn root() -> &'static Root {
        let store = store().unwrap();
        ROOT.get_or_init(|| P::open::<Root>(store, 0).unwrap())
    }

    if store().is_some() {
        root();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        P::transaction(|j| *root().lock(j) += 1).unwrap();
                    }
                });
            }
        });
        // One that is under way when the process ends.
        P::transaction(|j| {
            *root().lock(j) += 1;
            std::process::exit(0)
        })
        .unwrap()
    }
    let _turn = turn();
    let test = "processes::a_pool_whose_guard_is_in_a_static_is_as_its_last_transaction_left_it";
    for engine in ENGINES {
        let place = Place::new();
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        root.close().unwrap();
        run(test, &place.path);
        let root = P::open::<Root>(&place.path, 0).unwrap();
        assert_eq!(value(&root), 400, "{engine:?}");
    }
}
