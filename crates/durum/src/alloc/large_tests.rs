//! Large transactions cost what they contain: the steps for each object are the same in one of a thousand and in one of
//! many thousands.

use std::path::PathBuf;

use crate::{Engine, Error, Pool, PoolOptions, Store, StoreOptions, Tx, steps};

const FEW: usize = 1000;
const MANY: usize = 15_000;

/// What a program allocates.
#[derive(Clone, Copy, Debug)]
enum Objects {
    /// Of one class.
    Small,
    /// Of two classes in turn.
    TwoClasses,
    /// Too large for a class.
    Extents,
    /// The first and the last in turn.
    Mixed,
}

impl Objects {
    const ALL: [Self; 4] = [Self::Small, Self::TwoClasses, Self::Extents, Self::Mixed];

    fn size(self, index: usize) -> usize {
        match (self, index % 2) {
            (Self::Small, _) | (Self::TwoClasses | Self::Mixed, 0) => 48,
            (Self::TwoClasses, _) => 120,
            (Self::Extents | Self::Mixed, _) => 700,
        }
    }
}

struct Place {
    pool: Pool,
    _store: Store,
    _dir: tempfile::TempDir,
}

fn place(engine: Engine) -> Place {
    let parent = PathBuf::from("/dev/shm");
    let dir = tempfile::tempdir_in(parent).unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    let options = PoolOptions::new().engine(engine);
    let pool = store.create_pool("pool", options).unwrap();
    Place {
        pool,
        _store: store,
        _dir: dir,
    }
}

fn allocate(tx: &Tx, pool: &Pool, objects: Objects, count: usize) -> Result<Vec<*mut u8>, Error> {
    (0..count)
        .map(|index| tx.alloc_bytes(pool, 7, objects.size(index), 8))
        .collect()
}

/// In an order that has nothing to do with addresses.
fn scattered<T: Copy>(items: &[T]) -> impl Iterator<Item = T> {
    (0..items.len()).map(|index| items[index * 7919 % items.len()])
}

fn free(tx: &Tx, objects: &[*mut u8]) -> Result<(), Error> {
    // SAFETY: objects of this test, which nobody looks at any more.
    scattered(objects).try_for_each(|object| unsafe { tx.free(object) })
}

/// The steps of each operation with `count` objects: allocation, free that is aborted, free, allocation that is
/// aborted, allocation and free in one transaction.
fn steps_of(engine: Engine, objects: Objects, count: usize) -> [u64; 5] {
    let Place { pool, .. } = &place(engine);
    let mut at = steps::taken();
    let mut step = || {
        let before = std::mem::replace(&mut at, steps::taken());
        at - before
    };
    let made = pool.transaction(|tx| allocate(tx, pool, objects, count));
    let made = made.unwrap();
    let allocated = step();
    let kept: Result<(), Error> = pool.transaction(|tx| {
        free(tx, &made)?;
        tx.abort()
    });
    assert!(matches!(kept, Err(Error::Aborted)));
    let kept = step();
    pool.transaction(|tx| free(tx, &made)).unwrap();
    let freed = step();
    let aborted: Result<(), Error> = pool.transaction(|tx| {
        allocate(tx, pool, objects, count)?;
        tx.abort()
    });
    assert!(matches!(aborted, Err(Error::Aborted)));
    let aborted = step();
    let in_one = pool.transaction(|tx| free(tx, &allocate(tx, pool, objects, count)?));
    in_one.unwrap();
    [allocated, kept, freed, aborted, step()]
}

#[test]
fn each_object_takes_as_many_steps_in_a_large_transaction() {
    for engine in [Engine::Hybrid, Engine::Shadow, Engine::Twin] {
        for objects in Objects::ALL {
            let [few, many] = [FEW, MANY].map(|count| {
                steps_of(engine, objects, count).map(|steps| steps as f64 / count as f64)
            });
            println!("{engine:?}, {objects:?}: {few:.2?} {many:.2?}");
            for (few, many) in few.into_iter().zip(many) {
                assert!(many <= few.max(1.0) * 1.5, "{engine:?}, {objects:?}");
            }
        }
    }
}

/// The next transaction that changes bits gives back what others have left empty, however much that is.
#[test]
fn all_empty_slabs_go_back_with_the_next_commit() {
    for engine in [Engine::Hybrid, Engine::Shadow, Engine::Twin] {
        let Place { pool, .. } = &place(engine);
        let spare = pool.transaction(|tx| allocate(tx, pool, Objects::Small, 1));
        let used = || {
            let usage = pool.usage().unwrap();
            usage.bytes - usage.free_bytes
        };
        let before = used();
        let made = pool.transaction(|tx| allocate(tx, pool, Objects::TwoClasses, 20_000));
        // Another thread owns nothing of it.
        let made: Vec<usize> = made.unwrap().iter().map(|object| object.addr()).collect();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let made: Vec<_> = made.iter().map(|&object| object as *mut u8).collect();
                pool.transaction(|tx| free(tx, &made)).unwrap();
            });
        });
        // SAFETY: an object of this test.
        let freed = pool.transaction(|tx| unsafe { tx.free(spare.as_ref().unwrap()[0]) });
        freed.unwrap();
        // Slabs that this thread owns stay with it.
        let owned = 2 * (16 << 10);
        assert!(used() <= before + owned, "{engine:?}: {before}, {}", used());
    }
}
