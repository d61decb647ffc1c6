//! Updates of a thread that has met nobody: it owns the pool's lock, and runs them as transactions of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use durum::{Concurrency, Durability, Error, Pool};

use crate::support::pool_options;
use crate::{Shared, change, pool, pool_with};

/// Updates until this thread owns the pool's lock: whether it does, which takes a membarrier.
fn owns(pool: &Pool) -> bool {
    for _ in 0..10_000 {
        if begins_alone(pool) {
            return true;
        }
        pool.update(|_| Ok::<_, Error>(())).unwrap();
    }
    false
}

fn begins_alone(pool: &Pool) -> bool {
    // It ends at once, on this thread.
    unsafe {
        let begins = pool.begin_update_alone().unwrap();
        if begins {
            pool.end_update_alone(true).unwrap();
        }
        begins
    }
}

#[test]
fn what_fails_is_taken_back_whatever_is_left_open_in_it() {
    let place = pool();
    let (pool, word) = (&place.pool, Shared(place.pool.root::<u64>().unwrap()));
    let value = || pool.read(|| unsafe { *word.at() }).unwrap();
    let open_level = || unsafe { pool.begin_level(Durability::Durable).unwrap() };
    if !owns(pool) {
        return;
    }
    pool.update(|tx| unsafe { change(tx, word.at(), 1) })
        .unwrap();
    assert_eq!(value(), 1);

    let failed = pool.update(|tx| {
        unsafe { change(tx, word.at(), 2)? };
        Err::<(), _>(Error::NotAllocated { address: 3 })
    });
    assert!(matches!(failed, Err(Error::NotAllocated { address: 3 })));
    assert!(value() == 1 && begins_alone(pool));

    let panicked = catch_unwind(AssertUnwindSafe(|| {
        pool.update(|tx| {
            unsafe { change(tx, word.at(), 3)? };
            let _open = unsafe { pool.begin_level(Durability::Durable) };
            if value() == 3 {
                panic!("as told");
            }
            Ok::<_, Error>(())
        })
    }));
    assert_eq!(panicked.unwrap_err().downcast_ref(), Some(&"as told"));
    assert!(value() == 1 && begins_alone(pool));

    let aborted = pool.update(|tx| {
        unsafe { change(tx, word.at(), 4)? };
        let _ = pool.transaction(|tx| tx.abort::<()>());
        Ok::<_, Error>(())
    });
    assert!(matches!(aborted, Err(Error::Aborted)));
    let unbalanced = pool.update(|tx| {
        unsafe { change(tx, word.at(), 5)? };
        open_level();
        Ok::<_, Error>(())
    });
    assert!(matches!(unbalanced, Err(Error::Aborted)));
    assert!(value() == 1 && begins_alone(pool));
    pool.update(|tx| unsafe { change(tx, word.at(), 6) })
        .unwrap();
    assert_eq!(value(), 6);
}

#[test]
fn who_comes_waits_until_the_update_has_ended() {
    let place = pool();
    let (pool, word) = (&place.pool, Shared(place.pool.root::<u64>().unwrap()));
    if !owns(pool) {
        return;
    }
    for (rounds, reads) in [true, false].into_iter().enumerate() {
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let update = unsafe { pool.begin_update().unwrap() };
            let other = scope.spawn(|| {
                match reads {
                    true => assert_eq!(pool.read(|| unsafe { *word.at() }).unwrap(), 2),
                    false => pool
                        .update(|tx| unsafe { change(tx, word.at(), 4) })
                        .unwrap(),
                }
                done.store(true, Ordering::SeqCst);
            });
            unsafe { change(&update, word.at(), 1).unwrap() };
            std::thread::sleep(Duration::from_millis(20));
            assert!(!done.load(Ordering::SeqCst));
            unsafe { change(&update, word.at(), 2).unwrap() };
            update.commit().unwrap();
            other.join().unwrap();
        });
        assert!(!begins_alone(pool), "somebody has come");
        assert_eq!(unsafe { *word.at() }, 2 + 2 * rounds as u64);
        assert!(owns(pool));
    }
}

#[test]
fn its_own_reads_let_others_read() {
    let place = pool();
    let pool = &place.pool;
    if !owns(pool) {
        return;
    }
    let within =
        pool.read(|| std::thread::scope(|scope| scope.spawn(|| pool.read(|| 7).unwrap()).join()));
    assert_eq!(within.unwrap().unwrap(), 7);
}

#[test]
fn a_pool_of_one_thread_begins_alone_at_once() {
    let place = pool_with(pool_options().concurrency(Concurrency::SingleThreaded));
    let (pool, word) = (&place.pool, Shared(place.pool.root::<u64>().unwrap()));
    unsafe {
        assert!(pool.begin_update_alone().unwrap());
        assert!(
            !pool.begin_update_alone().unwrap(),
            "within it is a part of it"
        );
        pool.update(|tx| change(tx, word.at(), 3)).unwrap();
        pool.end_update_alone(false).unwrap();
        assert_eq!(*word.at(), 0);
        assert!(pool.begin_update_alone().unwrap());
        pool.update(|tx| change(tx, word.at(), 3)).unwrap();
        pool.end_update_alone(true).unwrap();
        assert_eq!(*word.at(), 3);
    }
}
