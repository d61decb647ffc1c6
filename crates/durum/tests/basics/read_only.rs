//! Pools that are open for reading only: what a program finds there, and that it can change nothing.

use std::path::Path;

use durum::{Described, Domain, Engine, Error, Pool, PoolOptions, Store, StoreOptions};
use durum_service::ReadOnlyStore;

/// A root that leads to numbers, of which the second pool holds one.
#[repr(C)]
struct Root {
    first: *mut u64,
    numbers: [u64; 8],
}
durum::describe!(Root as "root" { first, numbers });

fn reading() -> PoolOptions {
    PoolOptions::new().read_only(true)
}

fn is_read_only<T>(result: durum::Result<T>) -> bool {
    matches!(result, Err(Error::ReadOnly { pool }) if pool == "pool")
}

fn make(path: &Path, domain: Domain, engine: Engine) {
    let store = Store::create(path, StoreOptions::new().domain(domain)).unwrap();
    let pool = store
        .create_pool("pool", PoolOptions::new().engine(engine))
        .unwrap();
    let root = pool.root::<Root>().unwrap();
    pool.transaction(|tx| unsafe {
        let first = tx.alloc::<u64>()?;
        first.write(11);
        // So that there are several puddles.
        tx.alloc_bytes(&pool, 0, 3 << 20, 1)?;
        tx.add(root)?;
        (*root).first = first;
        (*root).numbers = [7; 8];
        Ok::<_, Error>(())
    })
    .unwrap();
    store
        .create_pool("other", PoolOptions::new().engine(engine))
        .unwrap()
        .root::<u64>()
        .unwrap();
}

/// The files of the pool that is read.
fn puddles(path: &Path) -> Vec<Vec<u8>> {
    let store = ReadOnlyStore::open(path).unwrap();
    let mut pools = store.pools().into_iter();
    let pool = pools.find(|pool| pool.name == "pool").unwrap().uuid;
    let own = store.puddles().into_iter();
    own.filter(|puddle| puddle.owner == pool)
        .map(|puddle| std::fs::read(path.join("puddles").join(puddle.uuid.to_string())).unwrap())
        .collect()
}

fn in_all_ways(test: impl Fn(&Path, &Store, &Pool)) {
    for domain in [Domain::Dram, Domain::File] {
        for engine in [Engine::Hybrid, Engine::Twin, Engine::Shadow] {
            let dir = tempfile::tempdir_in("/dev/shm").unwrap();
            let path = dir.path().join("store");
            make(&path, domain, engine);
            let before = puddles(&path);
            let store = Store::open(&path, StoreOptions::new().domain(domain)).unwrap();
            let pool = store.open_pool("pool", reading()).unwrap();
            assert_eq!(pool.engine(), engine);
            test(&path, &store, &pool);
            drop((pool, store));
            assert!(puddles(&path) == before, "{domain:?}, {engine:?}");
        }
    }
}

#[test]
fn a_pool_that_is_only_read_shows_what_was_committed() {
    in_all_ways(|_, store, pool| {
        let root = pool.root::<Root>().unwrap();
        let numbers = pool.read(|| unsafe { (*root).numbers }).unwrap();
        assert_eq!(numbers, [7; 8]);
        assert_eq!(unsafe { *(*root).first }, 11);
        let copy = pool.read_copy(|view| unsafe { view.get(root) }.unwrap().numbers);
        match pool.engine() {
            Engine::Twin => assert_eq!(copy.unwrap(), [7; 8]),
            _ => assert!(matches!(copy, Err(Error::NoCopies { .. }))),
        }
        assert!(pool.holds(root.cast(), size_of::<Root>()));
        let object = unsafe { pool.object_at(root.cast()) }.unwrap().unwrap();
        assert_eq!(object.start, root.cast());
        assert!(pool.usage().unwrap().puddles > 1);
        let again = store.open_pool("pool", reading()).unwrap();
        assert_eq!(again.key(), pool.key());
    });
}

#[test]
fn nothing_of_it_can_be_changed() {
    in_all_ways(|_, store, pool| {
        let root = pool.root::<Root>().unwrap();
        let nothing = |_: &durum::Tx| Ok::<_, Error>(());
        assert!(is_read_only(pool.transaction(nothing)));
        assert!(is_read_only(pool.update(nothing)));
        assert!(is_read_only(unsafe { pool.begin() }.map(drop)));
        assert!(is_read_only(unsafe { pool.begin_update() }.map(drop)));
        assert!(is_read_only(unsafe { pool.begin_section() }.map(drop)));
        assert!(is_read_only(unsafe { pool.persist(root, 8) }));
        assert!(is_read_only(pool.reserve(1)));
        // By a transaction on another pool neither.
        let other = store.open_pool("other", PoolOptions::new()).unwrap();
        let mine = other.root::<u64>().unwrap();
        other
            .transaction(|tx| unsafe {
                tx.add(mine)?;
                mine.write(1);
                assert!(is_read_only(tx.add(root)));
                assert!(is_read_only(tx.set(&raw mut (*root).numbers[0], 8)));
                assert!(is_read_only(tx.alloc_in::<u64>(pool)));
                assert!(is_read_only(tx.free((*root).first)));
                assert!(is_read_only(pool.transaction(nothing)));
                Ok::<_, Error>(())
            })
            .unwrap();
        other
            .transaction(|tx| unsafe {
                assert!(is_read_only(tx.add(root)));
                tx.set(mine, 0)
            })
            .unwrap();
        assert_eq!(unsafe { ((*root).numbers, *(*root).first) }, ([7; 8], 11));
    });
}

#[test]
fn its_pages_cannot_be_made_writable() {
    in_all_ways(|_, _, pool| {
        let root = pool.root::<Root>().unwrap();
        let page = (root as usize & !4095) as *mut libc::c_void;
        // SAFETY: asks for a right that it must not get.
        let made_writable =
            unsafe { libc::mprotect(page, 4096, libc::PROT_READ | libc::PROT_WRITE) };
        assert_eq!(made_writable, -1, "the file is open for reading");
    });
}

#[test]
fn it_is_open_one_way_at_a_time() {
    in_all_ways(|_, store, _| {
        let refused = |result: durum::Result<Pool>| {
            let Err(Error::Store(durum_service::Error::PoolOpen { operation, .. })) = result else {
                panic!("{result:?}");
            };
            operation
        };
        let written = store.open_pool("pool", PoolOptions::new());
        assert_eq!(refused(written), "opened for writing");
        let other = store.open_pool("other", PoolOptions::new()).unwrap();
        let read = store.open_pool("other", reading());
        assert_eq!(refused(read), "opened for reading only");
        drop(other);
        store.open_pool("other", reading()).unwrap();
        store.open_pool("other", PoolOptions::new()).unwrap();
    });
}

#[test]
fn what_is_not_there_is_not_made() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, StoreOptions::new()).unwrap();
    assert!(is_read_only(store.create_pool("pool", reading())));
    for open in [Store::open_pool, Store::open_or_create_pool] {
        assert!(matches!(
            open(&store, "pool", reading()),
            Err(Error::Store(durum_service::Error::PoolMissing { .. }))
        ));
    }
    store.create_pool("pool", PoolOptions::new()).unwrap();
    let pool = store.open_pool("pool", reading()).unwrap();
    let types = || store.type_text(Root::description().id()).unwrap();
    assert!(is_read_only(pool.root::<Root>()));
    let described = pool.ensure_described(Root::description());
    assert_eq!(described.unwrap(), Root::description().id());
    assert_eq!(types(), None, "and no type is left behind");
}
