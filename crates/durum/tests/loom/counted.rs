//! Transactions that get references from weak ones, beside one that drops the last strong one and one that is rolled
//! back.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread::{self, yield_now};

use crate::count_word::{CountWord, Held};
use crate::model;

const NUMBER: u64 = 7;

/// A counted object: loom fails if anybody drops its value while another one reads it.
struct Object {
    word: CountWord,
    strong: AtomicU64,
    value: UnsafeCell<&'static str>,
}
// SAFETY: `value` is used with a reference or by who has dropped the last one, and loom checks that.
unsafe impl Sync for Object {}
// SAFETY: as above.
unsafe impl Send for Object {}

#[derive(Debug, PartialEq, Eq)]
enum Dropped {
    Freed,
    /// The reference went to the limbo.
    Later,
    /// Others are left.
    Counted,
}

fn object(strong: u64) -> Arc<Object> {
    let object = Object {
        word: CountWord::default(),
        strong: AtomicU64::new(strong),
        value: UnsafeCell::new("alive"),
    };
    object.word.name(NUMBER);
    Arc::new(object)
}

impl Object {
    fn strong(&self) -> u64 {
        self.strong.load(Ordering::Acquire)
    }

    fn lock(&self, held: &mut Held) {
        while !self.word.try_lock() {
            yield_now();
        }
        held.note_locked();
    }

    /// A transaction that gets a reference from a weak one, uses the object, and `keeps` the reference or not.
    fn upgrade(&self, keeps: bool) -> bool {
        let pinned = self
            .word
            .pin_alive(Some(NUMBER), || self.strong(), yield_now)
            .expect("few pins");
        if !pinned {
            return false;
        }
        let mut held = Held::default();
        held.note_pinned();
        // SAFETY: pinned, and it has a reference.
        let value = self.value.with(|value| unsafe { *value });
        assert_eq!(value, "alive");
        if keeps {
            self.lock(&mut held);
            self.strong.store(self.strong() + 1, Ordering::Release);
        }
        self.word.release(held);
        true
    }

    /// A transaction that drops a strong reference, as `Counts::apply` does.
    fn drop_one(&self) -> Dropped {
        let mut held = Held::default();
        self.lock(&mut held);
        let left = self.strong() - 1;
        let is_pinned = self.word.is_pinned_by_others(held);
        if left == 0 && !is_pinned {
            self.word.take();
            self.strong.store(0, Ordering::Release);
            // SAFETY: no reference is left.
            self.value.with_mut(|value| unsafe { *value = "dropped" });
            return Dropped::Freed;
        }
        // Where it would be the last one, it is counted until it is dropped from the limbo.
        if left > 0 {
            self.strong.store(left, Ordering::Release);
        }
        self.word.release(held);
        match left {
            0 => Dropped::Later,
            _ => Dropped::Counted,
        }
    }
}

fn upgrades_beside_the_last_drop(keeps: bool) {
    model(3, move || {
        let shared = object(1);
        let upgrader = {
            let shared = shared.clone();
            thread::spawn(move || shared.upgrade(keeps))
        };
        let dropped = shared.drop_one();
        let has_upgraded = upgrader.join().unwrap();
        let left = match dropped {
            Dropped::Freed => {
                assert!(!has_upgraded || !keeps, "a reference is left");
                return assert!(!shared.upgrade(false), "nobody gets another one");
            }
            Dropped::Later => 1 + u64::from(has_upgraded && keeps),
            Dropped::Counted => 1,
        };
        assert_eq!(shared.strong(), left);
        for reference in (0..left).rev() {
            let expected = if reference == 0 {
                Dropped::Freed
            } else {
                Dropped::Counted
            };
            assert_eq!(shared.drop_one(), expected, "each is counted once");
        }
    });
}

#[test]
fn the_last_reference_is_not_dropped_from_under_an_upgrade() {
    upgrades_beside_the_last_drop(false);
}

#[test]
fn who_upgrades_may_keep_the_reference() {
    upgrades_beside_the_last_drop(true);
}

/// What a transaction has allocated, and made a `VWeak` to, is gone when it is rolled back, whatever it had written
/// already.
#[test]
fn nobody_gets_what_is_rolled_back() {
    model(3, || {
        let shared = object(0);
        let upgrader = {
            let shared = shared.clone();
            thread::spawn(move || assert!(!shared.upgrade(false)))
        };
        let mut held = Held::default();
        shared.lock(&mut held);
        shared.strong.store(1, Ordering::Release);
        shared.word.take_unpinned(held, yield_now);
        // SAFETY: nobody finds it any more.
        shared.value.with_mut(|value| unsafe { *value = "gone" });
        upgrader.join().unwrap();
        assert!(!shared.upgrade(false));
    });
}

/// Two give an object its number at the same time.
#[test]
fn an_object_has_one_number() {
    model(3, || {
        let shared = Arc::new(CountWord::default());
        let other = {
            let shared = shared.clone();
            thread::spawn(move || shared.name(1))
        };
        let number = shared.name(2);
        assert_eq!(other.join().unwrap(), number);
        assert!(shared.is_named(number) && shared.number() == Some(number));
    });
}
