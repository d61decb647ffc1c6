//! The last handle goes while somebody looks at the store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use durum_protocol::watching::Question;
use durum_remote::watcher;

use crate::{Store, StoreOptions};

static IS_SLOW: AtomicBool = AtomicBool::new(false);
static LOOKS: AtomicBool = AtomicBool::new(false);

/// Holds the store for long, where the test below wants that.
pub(super) fn pause() {
    if IS_SLOW.load(Ordering::Relaxed) {
        LOOKS.store(true, Ordering::Relaxed);
        thread::sleep(Duration::from_millis(100));
    }
}

#[test]
fn a_store_can_be_opened_again_whoever_looks_at_it() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("store");
    let store = Store::create(&path, StoreOptions::new().observe(true)).unwrap();
    let user = rustix::process::geteuid().as_raw();
    let mut watched = watcher::find(store.info().uuid, user);
    IS_SLOW.store(true, Ordering::Relaxed);
    let asking = thread::spawn(move || watched[0].ask(&Question::Numbers));
    while !LOOKS.load(Ordering::Relaxed) {
        thread::yield_now();
    }
    drop(store);
    Store::open(&path, StoreOptions::new()).unwrap();
    let _ = asking.join();
}
