//! Transactions that announce words, which may have a way of their own, and do something else beside that.

use crate::fixture::*;
use crate::support::pool_options;
use durum::{Error, Pool, StoreOptions, Tx};

/// What a transaction does before or behind its words, with a number that is another one each time.
type Else = fn(&Tx, &Pool, &mut Root, u64) -> Result<(), Error>;

/// The number is in `table[20]` afterwards.
const ALL: &[(&str, Else)] = &[
    (
        "a store that waits for the commit",
        |tx, _, root, number| unsafe { tx.set(&raw mut root.table[20], number) },
    ),
    ("half a word", |tx, _, root, number| unsafe {
        let half = (&raw mut root.table[20]).cast::<u32>();
        tx.add(half)?;
        half.write(number as u32);
        Ok(())
    }),
    ("eight bytes of two words", |tx, _, root, number| unsafe {
        let bytes = (&raw mut root.table[19]).cast::<u8>().add(7);
        tx.add_bytes(bytes, 8, durum::Announce::Backup)?;
        root.table[20] = number;
        Ok(())
    }),
    ("a large range", |tx, _, root, number| unsafe {
        tx.add(&raw const root.table)?;
        root.table[20] = number;
        Ok(())
    }),
    ("something stored before", |tx, _, root, number| unsafe {
        root.table[20] = number;
        tx.add_contents((&raw const root.table[20]).cast(), 8)
    }),
    ("something persisted", |_, pool, root, number| unsafe {
        root.table[20] = number;
        pool.persist(&raw const root.table[20], 8)
    }),
    ("an inner level", |_, pool, root, number| {
        pool.transaction(|tx| unsafe {
            tx.add(&raw const root.table[20])?;
            root.table[20] = number;
            Ok(())
        })
    }),
    ("an object", |tx, _, root, number| unsafe {
        let node = tx.alloc::<Node>()?;
        (*node).value = number;
        (*node).next = std::ptr::null_mut();
        tx.add(&raw const root.head)?;
        root.head = node;
        tx.add(&raw const root.table[20])?;
        root.table[20] = number;
        Ok(())
    }),
    ("an object less", |tx, _, root, number| unsafe {
        tx.free(root.head)?;
        tx.set(&raw mut root.head, std::ptr::null_mut())?;
        tx.set(&raw mut root.table[20], number)
    }),
];

/// Words that the thread may announce without a call: it has found out where on this pool.
fn words(tx: &Tx, root: &mut Root, number: u64) -> Result<(), Error> {
    for at in [0, 1, 8] {
        unsafe { tx.add(&raw const root.table[at])? };
        root.table[at] = number;
    }
    Ok(())
}

fn prepare(pool: &Pool, root: &mut Root) {
    for value in [0, 1] {
        pool.transaction(|tx| words(tx, root, value)).unwrap();
    }
}

fn seen(root: &Root) -> [u64; 4] {
    [0, 1, 8, 20].map(|at| root.table[at])
}

#[test]
fn what_a_transaction_does_beside_words_is_durable_with_them() {
    for is_behind in [false, true] {
        let mut fixture = Fixture::new();
        for (number, (name, run)) in (100..).zip(ALL) {
            let (pool, root) = (fixture.pool(), fixture.root());
            prepare(pool, root);
            let done = pool.transaction(|tx| {
                if is_behind {
                    words(tx, root, number)?;
                }
                run(tx, pool, root, number)?;
                if !is_behind {
                    words(tx, root, number)?;
                }
                Ok::<_, Error>(())
            });
            done.unwrap();
            assert_eq!(seen(root), [number; 4], "{name}");
            fixture.reopen(StoreOptions::new());
            assert_eq!(seen(fixture.root()), [number; 4], "{name}, reopened");
        }
    }
}

/// A word of another pool of the store, which a thread knows only by what it has touched.
#[test]
fn a_word_of_another_pool_is_durable_with_those_of_the_first() {
    let mut fixture = Fixture::new();
    let other = fixture.store.as_ref().unwrap();
    let other = other.create_pool("other", pool_options()).unwrap();
    let (pool, root, word) = (fixture.pool(), fixture.root(), other.root::<u64>().unwrap());
    prepare(pool, root);
    let both = pool.transaction(|tx| unsafe {
        tx.add(&raw const root.count)?;
        tx.add(word)
    });
    if both.is_err() {
        // Its transactions are on one pool.
        assert_eq!(pool.engine(), durum::Engine::Twin, "{both:?}");
        return;
    }
    for number in 100..103 {
        prepare(pool, root);
        let done = pool.transaction(|tx| unsafe {
            words(tx, root, number)?;
            tx.add(word)?;
            word.write(number);
            Ok::<_, Error>(())
        });
        done.unwrap();
    }
    drop(other);
    fixture.reopen(StoreOptions::new());
    let other = fixture.store.as_ref().unwrap();
    let other = other.open_pool("other", pool_options()).unwrap();
    assert_eq!(seen(fixture.root())[..3], [102; 3]);
    assert_eq!(unsafe { other.root::<u64>().unwrap().read() }, 102);
}

#[test]
fn a_level_that_was_aborted_and_volatile_memory_go_back_with_words() {
    let mut fixture = Fixture::new();
    for _ in 0..3 {
        let (pool, root) = (fixture.pool(), fixture.root());
        prepare(pool, root);
        let done = pool.transaction(|tx| {
            words(tx, root, 5)?;
            let inner = pool.transaction(|tx| tx.abort::<()>());
            assert!(inner.is_err());
            Ok::<_, Error>(())
        });
        assert!(matches!(done, Err(Error::Aborted)), "{done:?}");
        assert_eq!(seen(root), [1, 1, 1, 0]);
        let mut volatile = 7_u64;
        let done = pool.transaction(|tx| {
            words(tx, root, 6)?;
            unsafe { tx.volatile(&raw mut volatile) };
            volatile = 8;
            tx.abort::<()>()
        });
        assert!(done.is_err());
        assert_eq!((seen(root), volatile), ([1, 1, 1, 0], 7));
        // And not with the next one, whose words are all that it has.
        volatile = 9;
        assert!(
            pool.transaction(|tx| {
                words(tx, root, 6)?;
                tx.abort::<()>()
            })
            .is_err()
        );
        assert_eq!(volatile, 9);
        fixture.reopen(StoreOptions::new());
        assert_eq!(seen(fixture.root()), [1, 1, 1, 0]);
    }
}
