//! A section lets one of its locks go and goes on with the other: another thread stores where it has stored.

use std::ffi::c_void;
use std::sync::{Barrier, Once};

use durum_ido::abi::*;
use durum_ido::abi_locks::*;
use durum_persist::Site;
use durum_persist::record::{self, Trace};

use crate::crash::{explore_turns, site};
use crate::program::{
    Resume, Root, address, at, function, handing_over, lock, region, resumes, set, store, unlock,
    words,
};
use crate::support::{alone, recorded};

const HAND: u64 = 0xfedc_ba98_7654;

static REGIONS: [Region; 2] = [region(HAND, 1, 2), handing_over(region(HAND, 2, 2))];

struct Functions([Function; 1]);
unsafe impl Sync for Functions {}

static FUNCTIONS: Functions = Functions([function(HAND, c"hand", resume_hand as Resume, &REGIONS)]);

pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| unsafe { __durum_ido_register(FUNCTIONS.0.as_ptr(), 1) });
}

/// Stores a value under two locks, and lets the first one go: others may store there before the section ends.
unsafe fn hand(root: *mut Root, value: u64, meanwhile: impl FnOnce()) {
    unsafe {
        lock(root);
        __durum_ido_pthread_mutex_lock(&raw mut (*root).other);
        let words = [address(root), value];
        crate::program::record(__durum_ido_thread(), &REGIONS[0], words);
        hand_first(words);
        meanwhile();
        hand_rest(words);
    }
}

unsafe fn hand_first([root, value]: [u64; 2]) {
    unsafe {
        let (thread, words, root) = (__durum_ido_thread(), [root, value], at::<Root>(root));
        store(thread, &raw mut (*root).values[0], value);
        let lock = (&raw const (*root).lock).cast();
        __durum_ido_record_release(thread, &REGIONS[1], words.as_ptr().cast(), lock);
        unlock(root);
    }
}

unsafe fn hand_rest(words: [u64; 2]) {
    unsafe {
        let (thread, root) = (__durum_ido_thread(), at::<Root>(words[0]));
        crate::program::record(thread, &REGIONS[1], words);
        store(thread, &raw mut (*root).values[1], words[1]);
        __durum_ido_pthread_mutex_unlock(&raw mut (*root).other);
    }
}

unsafe fn hand_all(words: [u64; 2]) {
    unsafe {
        hand_first(words);
        hand_rest(words);
    }
}

resumes!(resume_hand: 1 => hand_all, _ => hand_rest);

fn record_two(skip: Option<Site>) -> Trace {
    recorded(
        skip,
        |_| (),
        |root, ()| {
            let root = root.expose_provenance();
            let root = || std::ptr::with_exposed_provenance_mut::<Root>(root);
            let turn = Barrier::new(2);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    record::join_thread();
                    for value in [1, 3] {
                        let meanwhile = || {
                            record::note("acknowledged", value);
                            turn.wait();
                            turn.wait();
                        };
                        unsafe { hand(root(), value, meanwhile) };
                    }
                });
                scope.spawn(|| {
                    record::join_thread();
                    for value in [2, 4] {
                        turn.wait();
                        unsafe { set(root(), 0, value) };
                        record::note("acknowledged", value);
                        turn.wait();
                    }
                });
            });
        },
    )
}

/// Else the word that the first one has stored comes back.
#[test]
fn no_record_tells_of_what_others_may_store() {
    let _alone = alone();
    let report = explore_turns(&record_two(None)).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{} points, {} images", report.points, report.images);
    let part = "tell nothing where others may store";
    let failure = explore_turns(&record_two(Some(site(part)))).expect_err("nothing is noticed");
    println!("{part}: {}", failure.lines().next().unwrap_or_default());
}
