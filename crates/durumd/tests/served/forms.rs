//! A program that is given the path of a store or the address of a service is the same program: typed pools and
//! durum-kv. C, C++ and NVL-C have such tests of their own.

use std::path::PathBuf;

use durum::typed::{Flags, PCell, PoolType};
use durum::{Error, StoreError};
use durum_kv::{Db, Engine, Options};

use crate::support::Served;

/// What names the pool or database `name` in a directory, and in a service's store; and what has to live meanwhile.
fn forms() -> (tempfile::TempDir, Served, impl Fn(&str) -> [PathBuf; 2]) {
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let served = Served::start();
    let (path, address) = (directory.path().to_owned(), served.address());
    let named = move |name: &str| [path.join(name), format!("{address}:{name}").into()];
    (directory, served, named)
}

durum::pool!(Counting);

type Runs = PCell<u64, Counting>;

#[test]
fn a_typed_pool() {
    let (_directory, served, named) = forms();
    for path in named("counter") {
        for (flags, before) in [(Flags::NEW, 0), (Flags::OPEN, 1), (Flags::CREATE, 2)] {
            let runs = Counting::open::<Runs>(&path, flags).unwrap();
            assert_eq!(runs.get(), before, "{}", path.display());
            Counting::transaction(|j| runs.set(before + 1, j)).unwrap();
        }
        let again = Counting::open::<Runs>(&path, Flags::NEW).map(drop);
        assert!(again.is_err(), "{}", path.display());
    }
    // Another pool of the same service, and one that another program has.
    let [_, other] = named("other");
    assert_eq!(
        Counting::open::<Runs>(&other, Flags::CREATE).unwrap().get(),
        0
    );
    let mut client = served.client("client");
    client.expect("here");
    assert_eq!(client.ask("open held"), "0 0");
    let [_, held] = named("held");
    let busy = Counting::open::<Runs>(&held, Flags::OPEN).map(drop);
    assert!(
        matches!(busy, Err(Error::Store(StoreError::PoolBusy { .. }))),
        "{busy:?}"
    );
}

#[test]
fn a_database() {
    let (_directory, _served, named) = forms();
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        for path in named(&format!("{engine:?}")) {
            let options = Options::new().engine(engine);
            assert!(!durum_kv::exists(&path).unwrap());
            let missing = Db::open(&path, options.clone()).unwrap_err();
            assert!(
                matches!(missing, durum_kv::Error::Missing { .. }),
                "{missing}"
            );
            let missing = durum_kv::repair(&path, options.clone()).unwrap_err();
            assert!(
                matches!(missing, durum_kv::Error::Missing { .. }),
                "{missing}"
            );
            let db = Db::open(&path, options.clone().create_if_missing(true)).unwrap();
            for number in 0..100_u32 {
                db.put(&number.to_be_bytes(), b"value").unwrap();
            }
            db.delete(&7_u32.to_be_bytes()).unwrap();
            assert!(Db::open(&path, options.clone()).is_err(), "it is open");
            assert!(durum_kv::destroy(&path).is_err(), "it is open");
            drop(db);
            assert!(durum_kv::exists(&path).unwrap());
            assert_eq!(durum_kv::repair(&path, options.clone()).unwrap(), 99);
            let db = Db::open(&path, options.clone()).unwrap();
            assert_eq!(db.get(&7_u32.to_be_bytes()).unwrap(), None);
            assert_eq!(
                db.get(&99_u32.to_be_bytes()).unwrap().unwrap(),
                b"value",
                "{}",
                path.display()
            );
            drop(db);
            durum_kv::destroy(&path).unwrap();
            durum_kv::destroy(&path).unwrap();
            assert!(!durum_kv::exists(&path).unwrap());
        }
    }
}
