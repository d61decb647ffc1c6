//! Updates and reads of several threads on one pool: what is combined, what a failure takes back, who waits for whom.
// The tests follow pointers into pools that they have just opened; updates and reads keep the threads apart.
#![allow(clippy::undocumented_unsafe_blocks)]

mod combining;
mod exclusion;
mod failing;
mod owner;
mod readers;
#[path = "../support/mod.rs"]
mod support;

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use durum::{Error, Pool, Store, StoreOptions, Tx};

use support::pool_options;

struct Place {
    dir: tempfile::TempDir,
    store: Store,
    pool: Pool,
}

fn pool_with(options: durum::PoolOptions) -> Place {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let store = Store::create(dir.path().join("store"), StoreOptions::new()).unwrap();
    let pool = store.create_pool("shared", options).unwrap();
    Place { dir, store, pool }
}

fn pool() -> Place {
    pool_with(pool_options())
}

/// A pointer that closures take along.
struct Shared<T>(*mut T);
impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Shared<T> {}
// What it points to is used in updates and reads only.
unsafe impl<T> Send for Shared<T> {}
unsafe impl<T> Sync for Shared<T> {}
impl<T> Shared<T> {
    fn at(self) -> *mut T {
        self.0
    }
}

unsafe fn change(tx: &Tx, target: *mut u64, value: u64) -> Result<(), Error> {
    unsafe {
        tx.add(target)?;
        target.write(value);
    }
    Ok(())
}

/// Runs `first` as the leader, and lets it go on when `others` threads have announced `other` (each with its number).
fn combined<R: Send>(
    pool: &Pool,
    others: usize,
    first: impl FnOnce(&Tx) -> Result<(), Error> + Send,
    other: impl Fn(usize, &Tx) -> Result<R, Error> + Sync,
) -> Vec<std::thread::Result<Result<R, Error>>> {
    let (leads, here) = (Barrier::new(others + 1), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..others)
            .map(|number| {
                let (leads, here, other) = (&leads, &here, &other);
                scope.spawn(move || {
                    leads.wait();
                    // One after the other, so that they are announced in this order.
                    std::thread::sleep(Duration::from_millis(20 * number as u64));
                    here.fetch_add(1, Ordering::SeqCst);
                    pool.update(|tx| other(number, tx))
                })
            })
            .collect();
        let led = pool.update(|tx| {
            leads.wait();
            while here.load(Ordering::SeqCst) < others {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(50));
            first(tx)
        });
        assert!(
            matches!(led, Ok(()) | Err(Error::CombinedUpdates { .. })),
            "{led:?}"
        );
        threads.into_iter().map(|thread| thread.join()).collect()
    })
}
