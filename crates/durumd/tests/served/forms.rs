//! A program that is given the path of a store or the address of a service is the same program: typed pools and
//! durum-kv. C, C++ and NVL-C have such tests of their own.

use std::path::{Path, PathBuf};

use durum::typed::{
    Flags, OpenOptions, PCell, PHashMap, PMutex, PRefCell, PSafe, PVec, PWeak, Parc, PoolType,
    Root, RootGuard,
};
use durum::{Error, PoolOptions, Store, StoreError};
use durum_kv::{Db, Engine, Options};

use crate::support::{Served, until};

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

durum::pool!(Shelf);

#[derive(PSafe, Root)]
#[repr(C)]
struct Library {
    runs: PCell<u64, Shelf>,
    words: PRefCell<PVec<u64, Shelf>, Shelf>,
    names: PRefCell<PHashMap<u64, u64, Shelf>, Shelf>,
    shared: PMutex<Option<Parc<u64, Shelf>>, Shelf>,
    kept: PRefCell<Option<PWeak<u64, Shelf>>, Shelf>,
    lost: PRefCell<Option<PWeak<u64, Shelf>>, Shelf>,
}

fn fill(library: &RootGuard<Library, Shelf>) {
    Shelf::transaction(|j| {
        library.runs.set(1, j);
        library.words.borrow_mut(j).push(2, j);
        library.names.borrow_mut(j).insert(3, 4, j);
        let (kept, lost) = (Parc::new(5, j), Parc::new(6, j));
        *library.kept.borrow_mut(j) = Some(kept.downgrade(j));
        *library.lost.borrow_mut(j) = Some(lost.downgrade(j));
        *library.shared.lock(j) = Some(kept);
    })
    .unwrap();
}

fn check_read(library: &RootGuard<Library, Shelf>) {
    assert_eq!(library.runs.get(), 1);
    assert_eq!(library.words.borrow().as_slice(), [2]);
    assert_eq!(library.names.borrow().get(&3), Some(&4));
    let reading = library.reading().unwrap();
    assert_eq!(library.shared.read(reading).as_deref(), Some(&5));
    let weak = |cell: &PRefCell<Option<PWeak<u64, Shelf>>, Shelf>| {
        (cell.borrow().as_ref().unwrap().read(reading)).copied()
    };
    assert_eq!((weak(&library.kept), weak(&library.lost)), (Some(5), None));
}

fn is_read_only<T>(result: durum::Result<T>) -> bool {
    matches!(result, Err(Error::ReadOnly { .. }))
}

#[test]
fn a_typed_pool_that_is_only_read() {
    let (_directory, served, named) = forms();
    let mut client = served.client("client");
    client.expect("here");
    for engine in [
        durum::Engine::Shadow,
        durum::Engine::Hybrid,
        durum::Engine::Twin,
    ] {
        for (path, is_served) in named(&format!("{engine:?}")).into_iter().zip([false, true]) {
            let reading = || PoolOptions::new().read_only(true);
            let options = || OpenOptions::new().engine(engine);
            let open = |options| Shelf::open::<Library>(&path, options);
            // What is not there is not made.
            let missing = open(options().create(true).pool(reading())).map(drop);
            assert!(
                matches!(missing, Err(Error::NothingToOpen { .. })),
                "{missing:?}"
            );
            assert!(is_read_only(open(OpenOptions::from(
                Flags::NEW | Flags::READ_ONLY
            ))));
            assert!(!path.exists(), "{}", path.display());
            let library = open(options().create(true)).unwrap();
            assert!(library.reading().is_none());
            fill(&library);
            library.close().unwrap();

            for options in [options().pool(reading()), Flags::READ_ONLY.into()] {
                let library = open(options).unwrap();
                check_read(&library);
                assert!(is_read_only(Shelf::transaction::<(), _>(|_| panic!("run"))));
                let tried = Shelf::try_transaction::<(), Error, _>(|_| panic!("run"));
                assert!(is_read_only(tried));
                assert!(is_read_only(library.pool().reserve(1)));
                check_read(&library);
                if is_served {
                    let busy = client.ask(&format!("open {engine:?}"));
                    assert!(busy.contains("used by another program"), "{busy}");
                }
                library.close().unwrap();
            }
            // Who writes it goes on with what was there.
            let library = open(options()).unwrap();
            Shelf::transaction(|j| library.runs.set(library.runs.get() + 1, j)).unwrap();
            assert_eq!(library.runs.get(), 2);
        }
    }
    assert_eq!(client.ask("open held"), "0 0");
    let [_, held] = named("held");
    let busy = Shelf::open::<Library>(&held, Flags::READ_ONLY).map(drop);
    assert!(
        matches!(busy, Err(Error::Store(StoreError::PoolBusy { .. }))),
        "{busy:?}"
    );
}

durum::pool!(Empty);

#[test]
fn a_typed_pool_without_a_root_gets_none_from_who_reads() {
    let (_directory, served, named) = forms();
    for path in named("pool") {
        let store = match path.to_str().unwrap().strip_suffix(":pool") {
            Some(_) => durum::Store::open(served.address(), durum::StoreOptions::new()),
            None => durum::Store::create(&path, durum::StoreOptions::new()),
        }
        .unwrap();
        drop(store.create_pool("pool", PoolOptions::new()).unwrap());
        store.close().unwrap();
        let without = Empty::open::<u64>(&path, Flags::READ_ONLY);
        assert!(is_read_only(without), "{}", path.display());
        assert_eq!(
            Empty::open::<u64>(&path, Flags::OPEN)
                .map(|root| *root)
                .unwrap(),
            0
        );
    }
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
            reads_only(&path, options.read_only(true));
            durum_kv::destroy(&path).unwrap();
            durum_kv::destroy(&path).unwrap();
            assert!(!durum_kv::exists(&path).unwrap());
        }
    }
}

/// A database that is open for reading only says all that it holds, and refuses what would change it.
fn reads_only(path: &Path, options: Options) {
    let db = Db::open(path, options).unwrap();
    assert_eq!(
        db.get(&99_u32.to_be_bytes()).unwrap().as_deref(),
        Some(&b"value"[..])
    );
    assert_eq!(db.get(&7_u32.to_be_bytes()).unwrap(), None);
    assert_eq!(db.verify().unwrap(), 99);
    assert!(db.property("durum.pool-bytes").unwrap().is_some());
    let refusals = [
        db.put(b"key", b"value"),
        db.delete(&99_u32.to_be_bytes()),
        db.compact(),
        db.set_durability(durum::Durability::Durable),
        db.transaction().map(drop),
    ];
    for refusal in refusals {
        let error = refusal.unwrap_err();
        assert!(
            matches!(error, durum_kv::Error::Durum(Error::ReadOnly { .. })),
            "{error}"
        );
    }
    assert_eq!(db.verify().unwrap(), 99);
}

/// What the next one who writes will sweep is there yet, and in nobody's way.
#[test]
fn a_database_that_a_killed_program_has_left_is_read() {
    let served = Served::start();
    let mut writer = served.client("writer");
    writer.expect("here");
    assert_eq!(writer.ask("versions names"), "both are there");
    writer.kill();
    let store = Store::open(served.address(), Default::default()).unwrap();
    let options = Options::new().read_only(true);
    let mut opened = Db::open_in(&store, "names", options.clone());
    until("the pool is recovered", || {
        if opened.is_err() {
            opened = Db::open_in(&store, "names", options.clone());
        }
        opened.is_ok()
    });
    let db = opened.unwrap();
    assert_eq!(db.property("durum.stale-keys").unwrap().unwrap(), "1");
    assert_eq!(db.get(b"key").unwrap().as_deref(), Some(&b"new"[..]));
    drop(db);
    let db = Db::open_in(&store, "names", Options::new()).unwrap();
    assert_eq!(db.property("durum.stale-keys").unwrap().unwrap(), "0");
    assert_eq!(db.get(b"key").unwrap().as_deref(), Some(&b"new"[..]));
}
