//! The checker of announcements names what was not announced.

use durum::{Error, Pool, Store};

use crate::support::{engine, pool_options};
use crate::{Pair, is_told, store};

#[test]
fn the_checker_names_the_field_that_was_not_announced() {
    let (_dir, store) = store();
    let pool = store
        .create_pool("pool", pool_options().check_stores(true))
        .unwrap();
    let root = pool.root::<Pair>().unwrap();
    pool.transaction(|tx| unsafe {
        tx.add(&raw const (*root).left)?;
        (*root).left = 1;
        let object = tx.alloc::<Pair>()?;
        *object = Pair { left: 1, right: 2 };
        tx.set(&raw mut (*root).right, 7)
    })
    .unwrap();
    let result = pool.transaction(|tx| unsafe {
        tx.add(&raw const (*root).left)?;
        (*root).right = 8;
        Ok::<_, Error>(())
    });
    let told = result.as_ref().unwrap_err().to_string();
    assert!(told.contains(": 1 store was not announced"), "{told}");
    match result {
        Err(Error::Unannounced { first, count, .. }) => {
            assert_eq!(count, 1);
            assert!(
                first.contains("\"right\"") && first.contains("\"pair\""),
                "{first}"
            );
        }
        other => panic!("{other:?}"),
    }
}

/// A pool that is checked, and its root.
fn checked_pool(store: &Store, name: &str) -> (Pool, *mut Pair) {
    let options = pool_options().check_stores(true);
    let pool = store.create_pool(name, options).unwrap();
    let root = pool.root::<Pair>().unwrap();
    (pool, root)
}

/// Nothing announced at all is the commonest mistake.
#[test]
fn the_checker_looks_where_nothing_was_announced() {
    let (_dir, store) = store();
    let (pool, root) = checked_pool(&store, "pool");
    let forgets = |value: u64| {
        pool.transaction(|_| {
            unsafe { (*root).left = value };
            Ok::<_, Error>(())
        })
    };
    is_told(forgets(1), "\"left\"");
    // Told once; and so in an update, and where volatile memory is all that comes back.
    pool.transaction(|_| Ok::<_, Error>(())).unwrap();
    let address = root.expose_provenance();
    is_told(
        pool.update(|_| {
            let root = std::ptr::with_exposed_provenance_mut::<Pair>(address);
            unsafe { (*root).right = 2 };
            Ok::<_, Error>(())
        }),
        "\"right\"",
    );
    let mut volatile = 1;
    is_told(
        pool.transaction(|tx| unsafe {
            tx.volatile(&raw mut volatile);
            volatile = 2;
            (*root).left = 3;
            Ok(())
        }),
        "\"left\"",
    );
    assert_eq!(volatile, 1);
    // The checker is done with these; nothing is announced, and nothing stored.
    pool.transaction(|_| Ok::<_, Error>(())).unwrap();
    is_told(forgets(4), "\"left\"");
}

#[test]
fn the_checker_looks_at_the_pool_that_a_transaction_began_on() {
    if engine() == durum::Engine::Twin {
        return; // One pool is what its transactions have.
    }
    let (_dir, store) = store();
    let (pool, root) = checked_pool(&store, "pool");
    let (_other_pool, other) = checked_pool(&store, "other");
    let result = pool.transaction(|tx| unsafe {
        tx.add(other)?;
        (*other).left = 1;
        (*root).right = 1;
        Ok(())
    });
    is_told(result, "\"right\"");
    assert_eq!(unsafe { (*other).left }, 0);
}

#[test]
fn what_was_persisted_needs_no_announcement() {
    let (_dir, store) = store();
    let (pool, root) = checked_pool(&store, "pool");
    unsafe {
        (*root).left = 1;
        pool.persist(&raw const (*root).left, 8).unwrap();
    }
    pool.transaction(|_| Ok::<_, Error>(())).unwrap();
}
