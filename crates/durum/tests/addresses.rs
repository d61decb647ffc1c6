//! Address space: a process that may have little of it (`ulimit -v`) opens stores all the same, and is told which limit
//! it met; a store's space can be chosen; a pool of the typed interface takes no more than its puddles need.

mod support;

use std::path::Path;

use durum::typed::*;
use durum::{Engine, Error, Pool, PoolOptions, Store, StoreOptions};
use durum_service as service;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::pool_options;

const MIB: u64 = 1 << 20;

fn options() -> StoreOptions {
    StoreOptions::new().log_max(4 * MIB)
}

/// What the process has of addresses.
fn used() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = text.split(' ').next().unwrap().parse().unwrap();
    pages * rustix::param::page_size() as u64
}

/// Lets this process have so many bytes more of addresses, and no more.
fn limit(more: u64) {
    set_limit(Resource::As, used() + more);
}

fn set_limit(resource: Resource, bytes: u64) {
    let limit = Rlimit {
        current: Some(bytes),
        maximum: getrlimit(resource).maximum,
    };
    setrlimit(resource, limit).unwrap();
}

/// What the process has of private memory that it can write.
fn data() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("VmData:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse::<u64>().unwrap() << 10
}

/// Allocates and fills `count` objects of a MiB, and leads to them from the root.
fn fill(pool: &Pool, count: usize, byte: u8) -> Result<(), Error> {
    let root = pool.root_bytes(0, 8 * 1024, 8)?.cast::<*mut u8>();
    for index in 0..count {
        pool.transaction(|tx| {
            let object = tx.alloc_bytes(pool, 0, MIB as usize - 4096, 1)?;
            // SAFETY: the object is fresh, and the place in the root is this thread's alone.
            unsafe {
                object.write_bytes(byte, MIB as usize - 4096);
                let place = root.add(index);
                tx.add(place)?;
                place.write(object);
            }
            Ok::<_, Error>(())
        })?;
    }
    Ok(())
}

fn is_filled(pool: &Pool, count: usize, byte: u8) -> bool {
    let root = pool.root_bytes(0, 8 * 1024, 8).unwrap().cast::<*mut u8>();
    (0..count).all(|index| {
        // SAFETY: as `fill` has left it.
        let object =
            unsafe { std::slice::from_raw_parts(root.add(index).read(), MIB as usize - 4096) };
        object.iter().all(|found| *found == byte)
    })
}

/// Runs the other process of a test.
fn run(name: &str, dir: &Path) {
    let status = support::start(name, dir).wait().unwrap();
    assert!(status.success(), "{name}: {status}");
}

fn assert_names_the_limit(error: &Error) {
    assert_names(error, "RLIMIT_AS: `ulimit -v`");
}

fn assert_names(error: &Error, limit: &str) {
    assert!(
        matches!(error, Error::Store(service::Error::AddressSpace { .. })),
        "{error}"
    );
    let text = error.to_string();
    assert!(text.contains(limit), "{text}");
    assert!(!text.contains("clone"), "{text}");
    assert_eq!(error.kind(), durum::ErrorKind::System);
}

#[test]
#[ignore = "the other process of the test below"]
fn uses_a_store_with_little_address_space() {
    let Some(dir) = support::directory() else {
        return;
    };
    limit(256 * MIB);
    for domain in ["memory", "disk"] {
        let path = match domain {
            "memory" => dir.join("store"),
            _ => std::env::temp_dir().join(format!("durum-addresses-{}", std::process::id())),
        };
        for round in 1..4 {
            let store = Store::open_or_create(&path, options()).unwrap();
            let pool = store.open_or_create_pool("pool", pool_options()).unwrap();
            if round > 1 {
                assert!(is_filled(&pool, 16, round - 1));
            }
            fill(&pool, 16, round).unwrap();
            drop(pool);
            store.close().unwrap();
        }
        // It does not take more than it may, and says so; what was there stays.
        let store = Store::open(&path, options()).unwrap();
        let pool = store.open_pool("pool", pool_options()).unwrap();
        if domain == "memory" {
            let refused = fill(&pool, 1024, 9).unwrap_err();
            assert_names_the_limit(&refused);
        }
        pool.transaction(|tx| {
            let root = pool.root_bytes(0, 8 * 1024, 8)?;
            // SAFETY: the root is this thread's alone.
            unsafe {
                tx.add(root.add(8 * 1023))?;
                root.add(8 * 1023).write(7);
            }
            Ok::<_, Error>(())
        })
        .unwrap();
        drop(pool);
        store.close().unwrap();
        std::fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn little_address_space_is_enough_for_small_pools() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    run("uses_a_store_with_little_address_space", dir.path());
}

#[test]
#[ignore = "the other process of the test below"]
fn opens_a_pool_that_is_larger_than_its_addresses() {
    let Some(dir) = support::directory() else {
        return;
    };
    limit(96 * MIB);
    let store = Store::open(dir.join("store"), options()).unwrap();
    let refused = store.open_pool("pool", pool_options()).unwrap_err();
    assert_names_the_limit(&refused);
    drop(store);
    // Growth that was asked for is refused at once, and what fits is had.
    let growing = |bytes| Store::open(dir.join("store"), options().growth(bytes));
    assert_names_the_limit(&growing(1024 * MIB).unwrap_err());
    let before = used();
    let store = growing(16 * MIB).unwrap();
    assert!(used() >= before + 32 * MIB, "{before} {}", used());
    store.close().unwrap();
}

#[test]
fn a_pool_that_does_not_fit_is_refused_by_the_name_of_the_limit() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    let pool = store.create_pool("pool", pool_options()).unwrap();
    fill(&pool, 128, 3).unwrap();
    drop(pool);
    store.close().unwrap();
    run("opens_a_pool_that_is_larger_than_its_addresses", dir.path());
    let store = Store::open(dir.path().join("store"), options()).unwrap();
    let pool = store.open_pool("pool", pool_options()).unwrap();
    assert!(is_filled(&pool, 128, 3));
}

#[test]
#[ignore = "the other process of the test below"]
fn uses_a_store_with_little_private_memory() {
    let Some(dir) = support::directory() else {
        return;
    };
    let path = dir.join("store");
    // Not the limit that is met: it is named only where it is.
    limit(1 << 44);
    set_limit(Resource::Data, data() + 64 * MIB);
    let store = Store::create(&path, options()).unwrap();
    let pool = store.create_pool("pool", pool_options()).unwrap();
    fill(&pool, 16, 1).unwrap();
    let more = fill(&pool, 160, 2);
    // The other engines store to the files' own pages.
    match pool.engine() {
        Engine::Shadow => assert_names(&more.unwrap_err(), "RLIMIT_DATA: `ulimit -d`"),
        _ => more.unwrap(),
    }
    drop(pool);
    store.close().unwrap();
    // A pool that is too large now is refused by the same name.
    set_limit(Resource::Data, data() + 8 * MIB);
    let opened =
        Store::open(&path, options()).and_then(|store| store.open_pool("pool", pool_options()));
    match opened {
        Err(refused) => assert_names(&refused, "RLIMIT_DATA: `ulimit -d`"),
        Ok(pool) => assert_ne!(pool.engine(), Engine::Shadow),
    }
}

#[test]
fn little_private_memory_is_named_as_the_limit_that_was_met() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    run("uses_a_store_with_little_private_memory", dir.path());
}

#[test]
#[ignore = "the other process of the test below"]
fn opens_a_store_with_as_many_mappings_as_there_may_be() {
    let Some(dir) = support::directory() else {
        return;
    };
    // Neighbours differ, so that each page is a mapping.
    let page = |access| {
        // SAFETY: a new mapping, which nobody uses.
        unsafe { mmap_anonymous(std::ptr::null_mut(), 4096, access, MapFlags::PRIVATE) }
    };
    while page(ProtFlags::READ).is_ok() && page(ProtFlags::empty()).is_ok() {}
    let refused = Store::open(dir.join("store"), options()).unwrap_err();
    assert_names(&refused, "mappings, and the kernel allows");
}

#[test]
fn too_many_mappings_are_named_as_the_limit_that_was_met() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), options()).unwrap();
    store.close().unwrap();
    run(
        "opens_a_store_with_as_many_mappings_as_there_may_be",
        dir.path(),
    );
}

#[test]
fn the_space_of_a_store_can_be_chosen() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    // Apart from the stores of the other tests.
    let options = options().base(0x2800_0000_0000).space(32 * MIB);
    let store = Store::create(dir.path().join("store"), options).unwrap();
    assert_eq!(store.info().space_size, 32 * MIB);
    let pool = store.create_pool("pool", pool_options()).unwrap();
    let refused = fill(&pool, 64, 1).unwrap_err();
    assert!(
        matches!(
            refused,
            Error::Store(service::Error::AddressesExhausted { .. })
        ),
        "{refused}"
    );
    drop(pool);
    store.close().unwrap();
    let odd = StoreOptions::new().space(MIB);
    let refused = Store::create(dir.path().join("odd"), odd).unwrap_err();
    assert!(refused.to_string().contains("multiple of"), "{refused}");
}

pool!(P);

#[derive(PSafe, Root)]
#[repr(C)]
struct Shelf {
    count: PCell<u64, P>,
    books: PRefCell<Option<Prc<u64, P>>, P>,
}

#[test]
#[ignore = "the other process of the test below"]
fn uses_a_typed_pool_with_little_address_space() {
    let Some(dir) = support::directory() else {
        return;
    };
    limit(256 * MIB);
    for round in 0..3 {
        let shelf = P::open::<Shelf>(dir.join("typed"), Flags::CREATE).unwrap();
        P::transaction(|j| {
            shelf.count.set(shelf.count.get() + 1, j);
            *shelf.books.borrow_mut(j) = Some(Prc::new(round, j));
        })
        .unwrap();
        assert_eq!(shelf.count.get(), round + 1);
        shelf.close().unwrap();
    }
}

#[test]
fn a_typed_pool_needs_little_address_space() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    run("uses_a_typed_pool_with_little_address_space", dir.path());
}

/// For a machine whose kernel promises no more memory than it has (`vm.overcommit_memory` is 2), such as the virtual
/// one of ci/power.sh: that cannot be set for one process alone. The directory is where stores are to be made.
#[test]
#[ignore = "needs a machine with vm.overcommit_memory=2"]
fn works_where_no_more_memory_is_promised_than_there_is() {
    let Some(dir) = support::directory() else {
        return;
    };
    let setting = std::fs::read_to_string("/proc/sys/vm/overcommit_memory").unwrap();
    assert_eq!(setting.trim(), "2", "vm.overcommit_memory");
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        let path = dir.join(engine.name());
        for round in 1..4 {
            let store = Store::open_or_create(&path, options()).unwrap();
            let how = PoolOptions::new().engine(engine);
            let pool = store.open_or_create_pool("pool", how).unwrap();
            assert!(round == 1 || is_filled(&pool, 8, round - 1));
            fill(&pool, 8, round).unwrap();
            drop(pool);
            store.close().unwrap();
        }
        std::fs::remove_dir_all(&path).unwrap();
    }
    for round in 0..3 {
        let shelf = P::open::<Shelf>(dir.join("typed"), Flags::CREATE).unwrap();
        P::transaction(|j| shelf.count.set(shelf.count.get() + 1, j)).unwrap();
        assert_eq!(shelf.count.get(), round + 1);
        shelf.close().unwrap();
    }
    // Others have taken nearly all: a private mapping, which counts with all of its length, is refused by the name of
    // the setting.
    let store = Store::create(dir.join("large"), options()).unwrap();
    let pool = store.create_pool("pool", PoolOptions::new()).unwrap();
    let access = ProtFlags::READ | ProtFlags::WRITE;
    let take = || {
        // SAFETY: a new mapping, which nobody uses.
        let taken = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                32 * MIB as usize,
                access,
                MapFlags::PRIVATE,
            )
        };
        taken.is_ok()
    };
    while take() {}
    let refused = pool.reserve(64 * MIB).unwrap_err();
    assert!(
        refused.to_string().contains("vm.overcommit_memory=2"),
        "{refused}"
    );
}
