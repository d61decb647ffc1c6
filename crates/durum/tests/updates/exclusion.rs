//! Whom an update keeps out, and what would wait for itself.

use std::time::Duration;

use durum::{Concurrency, Error, Tx};

use crate::support::pool_options;
use crate::{Shared, change, pool, pool_with};

#[test]
fn what_would_wait_for_itself_is_an_error() {
    let place = pool();
    let (pool, word) = (&place.pool, place.pool.root::<u64>().unwrap());
    let shared = Shared(word);
    let nothing = |_: &Tx| Ok::<(), Error>(());
    let found = pool.read(|| pool.update(nothing)).unwrap();
    assert!(matches!(found, Err(Error::UpdateInRead { .. })));
    let found = pool.transaction(|_| Ok::<_, Error>((pool.update(nothing), pool.read(|| ()))));
    let (update, read) = found.unwrap();
    assert!(matches!(update, Err(Error::InsideTransaction { .. })));
    assert!(matches!(read, Err(Error::InsideTransaction { .. })));
    // Within: parts of the update.
    pool.update(|tx| unsafe {
        change(tx, shared.at(), 1)?;
        pool.update(|tx| change(tx, shared.at(), 2))?;
        assert_eq!(pool.read(|| *shared.at())?, 2);
        pool.read(|| pool.read(|| ()))?
    })
    .unwrap();
    let failed = pool.update(|_| {
        let inner = pool.update(|tx| unsafe {
            change(tx, shared.at(), 3)?;
            Err::<(), _>(Error::Aborted)
        });
        assert!(inner.is_err());
        Ok::<_, Error>(())
    });
    assert!(matches!(failed, Err(Error::Aborted)));
    assert_eq!(unsafe { *word }, 2);
}

#[test]
fn an_open_update_keeps_the_others_out() {
    let place = pool();
    let (pool, word) = (&place.pool, Shared(place.pool.root::<u64>().unwrap()));
    let open = unsafe { pool.begin_update() }.unwrap();
    std::thread::scope(|scope| {
        let others: Vec<_> = (0..6)
            .map(|number| {
                scope.spawn(move || match number % 3 {
                    0 => pool.read(|| unsafe { *word.at() }).unwrap(),
                    1 => pool
                        .update(|tx| unsafe {
                            change(tx, word.at(), *word.at() + 1)?;
                            Ok::<_, Error>(*word.at())
                        })
                        .unwrap(),
                    _ => unsafe {
                        let update = pool.begin_update().unwrap();
                        change(&update, word.at(), *word.at() + 1).unwrap();
                        let value = *word.at();
                        update.commit().unwrap();
                        value
                    },
                })
            })
            .collect();
        std::thread::sleep(Duration::from_millis(50));
        unsafe { change(&open, word.at(), 100).unwrap() };
        let level = unsafe { pool.begin_update() }.unwrap();
        level.commit().unwrap();
        open.commit().unwrap();
        for other in others {
            assert!(other.join().unwrap() >= 100);
        }
    });
    let dropped = unsafe { pool.begin_update() }.unwrap();
    unsafe { change(&dropped, word.at(), 7).unwrap() };
    drop(dropped);
    assert_eq!(pool.read(|| unsafe { *word.at() }).unwrap(), 104);
}

#[test]
fn one_thread_may_do_without() {
    let place = pool_with(pool_options().concurrency(Concurrency::SingleThreaded));
    let (pool, word) = (&place.pool, Shared(place.pool.root::<u64>().unwrap()));
    pool.update(|tx| unsafe { change(tx, word.at(), 1) })
        .unwrap();
    // Nobody to wait for: it is a part of any transaction.
    pool.transaction(|_| pool.update(|tx| unsafe { change(tx, word.at(), 2) }))
        .unwrap();
    assert_eq!(pool.read(|| unsafe { *word.at() }).unwrap(), 2);
    let update = unsafe { pool.begin_update() }.unwrap();
    unsafe { change(&update, word.at(), 3).unwrap() };
    drop(update);
    assert_eq!(unsafe { *word.at() }, 2);
}
