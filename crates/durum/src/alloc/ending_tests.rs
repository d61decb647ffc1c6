//! Locks of a transaction are let go of before its end is over: what others may do from then on.

use std::ptr;
use std::sync::mpsc::channel;
use std::thread;

use crate::opened::BeforeReuse;
use crate::{Engine, Error, Pool, PoolOptions, Store, StoreOptions, Tx};

/// Of a slab, and by itself.
const SIZES: [usize; 2] = [48, 700];

fn for_each_case(test: impl Fn(&Pool, usize)) {
    for engine in [Engine::Hybrid, Engine::Shadow] {
        for size in SIZES {
            let dir = tempfile::tempdir_in("/dev/shm").unwrap();
            let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
            let options = PoolOptions::new().engine(engine);
            test(&store.create_pool("pool", options).unwrap(), size);
        }
    }
}

/// An object of the only type, by its address.
fn allocate(tx: &Tx, pool: &Pool, size: usize) -> usize {
    let object = tx.alloc_bytes(pool, 7, size, 8).unwrap();
    object.expose_provenance()
}

fn free(tx: &Tx, object: usize) -> Result<(), Error> {
    // SAFETY: nobody uses what lies there.
    unsafe { tx.free(ptr::with_exposed_provenance_mut::<u8>(object)) }
}

/// Frees an object in a transaction of another thread.
fn free_elsewhere(pool: &Pool, object: usize) {
    let free = || pool.transaction(|tx| free(tx, object));
    let freed = thread::scope(|scope| scope.spawn(free).join().unwrap());
    freed.unwrap();
}

fn is_there(pool: &Pool, object: usize) -> bool {
    // SAFETY: no transaction runs, so nothing is given back meanwhile.
    let found = unsafe { pool.object_at(ptr::with_exposed_provenance(object)) };
    found.unwrap().is_some()
}

/// Has `work` done where typed locks are let go of.
fn when_locks_are_let_go<F: Fn()>(tx: &Tx, work: &F) {
    unsafe fn call<F: Fn()>(work: *const (), _committed: bool) {
        // SAFETY: borrowed for longer than the transaction.
        let work = unsafe { &*work.cast::<F>() };
        work();
    }
    tx.tell_before_reuse(BeforeReuse {
        context: ptr::from_ref(work).cast(),
        call: call::<F>,
    });
}

/// A slab was not known to others before the end of the transaction that had made it. What they freed there stayed for
/// ever, and what lay in it pointed to objects that were gone.
#[test]
fn what_a_transaction_has_allocated_others_can_free() {
    for_each_case(|pool, size| {
        let object = std::cell::Cell::new(0);
        let work = || free_elsewhere(pool, object.get());
        let allocated = pool.transaction(|tx| {
            object.set(allocate(tx, pool, size));
            when_locks_are_let_go(tx, &work);
            Ok::<_, Error>(())
        });
        allocated.unwrap();
        assert!(!is_there(pool, object.get()), "{size}");
    });
}

/// A transaction that has allocated something and freed it again took what others were freeing for that, and gave it
/// back before they had committed.
#[test]
fn what_others_are_freeing_is_theirs_to_give_back() {
    for_each_case(|pool, size| {
        thread::scope(|scope| {
            let (begin, begins) = channel();
            let (freed, is_freed) = channel();
            let (abort, aborts) = channel();
            let other = scope.spawn(move || {
                pool.transaction(|tx| {
                    free(tx, begins.recv().unwrap())?;
                    freed.send(()).unwrap();
                    aborts.recv().unwrap();
                    Err::<(), _>(Error::Aborted)
                })
            });
            let object = std::cell::Cell::new(0);
            let work = || {
                begin.send(object.get()).unwrap();
                is_freed.recv().unwrap();
            };
            let allocated = pool.transaction(|tx| {
                object.set(allocate(tx, pool, size));
                free(tx, allocate(tx, pool, size))?;
                when_locks_are_let_go(tx, &work);
                Ok::<_, Error>(())
            });
            allocated.unwrap();
            let next = pool.transaction(|tx| Ok::<_, Error>(allocate(tx, pool, size)));
            assert_ne!(next.unwrap(), object.get(), "{size}: it is not free yet");
            abort.send(()).unwrap();
            let aborted = other.join().unwrap();
            assert!(matches!(aborted, Err(Error::Aborted)), "{aborted:?}");
            assert!(is_there(pool, object.get()), "{size}");
            pool.transaction(|tx| free(tx, object.get())).unwrap();
            assert!(!is_there(pool, object.get()), "{size}");
        });
    });
}

/// Who freed what an aborted transaction had wanted to free was told that it is not allocated.
#[test]
fn what_was_not_freed_after_all_others_can_free() {
    for_each_case(|pool, size| {
        let object = pool.transaction(|tx| Ok::<_, Error>(allocate(tx, pool, size)));
        let object = object.unwrap();
        let work = || free_elsewhere(pool, object);
        let aborted = pool.transaction(|tx| {
            free(tx, object)?;
            when_locks_are_let_go(tx, &work);
            Err::<(), _>(Error::Aborted)
        });
        assert!(matches!(aborted, Err(Error::Aborted)), "{aborted:?}");
        assert!(!is_there(pool, object), "{size}");
    });
}
