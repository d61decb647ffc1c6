//! Stamps that owners of lines order: those of records about one word grow in the order of its lock, and none is drawn
//! that counts as home already.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;

use crate::asymmetric::fails_so_without_either_half;
use crate::missing::Missing;
use crate::stamps::Stamps;

/// The line that all words here lie in.
const LINE: usize = 0;

/// What a commit does not do as it should.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    /// It does not listen to what the line says.
    Deaf,
    /// It looks at the line before it has the word's lock.
    LooksEarly,
    /// Others can have the lock before its stamp is drawn.
    DrawsLate,
}

struct Store {
    stamps: Stamps,
    logs: [Missing; 2],
    /// Words of one line, each with the stamp of the last record about it.
    words: [Mutex<u64>; 2],
}

impl Store {
    fn new() -> Arc<Self> {
        let stamps = Stamps::new(1);
        assert!(stamps.order_by_owner(0..64));
        Arc::new(Self {
            stamps,
            logs: [Missing::new(), Missing::new()],
            words: [Mutex::new(0), Mutex::new(0)],
        })
    }

    fn commits(&self, log: usize, word: usize, wrong: Wrong) {
        let owners = &self.stamps.owners;
        let claim = || {
            owners.claim(
                log,
                &self.logs[log],
                [].into_iter(),
                Some([LINE].into_iter()),
            )
        };
        let early = (wrong == Wrong::LooksEarly).then(claim);
        let mut last = self.words[word].lock().unwrap();
        let claimed = early.unwrap_or_else(claim);
        if wrong == Wrong::DrawsLate {
            drop(last);
            last = self.words[word].lock().unwrap();
        }
        let above = match wrong {
            Wrong::Deaf => 0,
            _ => claimed.above,
        };
        let stamp = owners.draw(log, above);
        assert!(stamp > *last, "{stamp} comes after {}", *last);
        *last = stamp;
    }
}

fn explore(wrong: Wrong) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(move || {
        let store = Store::new();
        // Each word is changed by both, and before by one of them alone.
        let other = {
            let store = store.clone();
            thread::spawn(move || {
                store.commits(1, 1, Wrong::Nothing);
                store.commits(1, 0, Wrong::Nothing);
            })
        };
        store.commits(0, 0, Wrong::Nothing);
        store.commits(0, 1, wrong);
        other.join().unwrap();
    });
}

#[test]
fn stamps_about_a_word_grow_in_the_order_of_its_lock() {
    explore(Wrong::Nothing);
}

#[test]
#[should_panic]
fn a_commit_that_does_not_listen_to_a_line_is_found_out() {
    explore(Wrong::Deaf);
}

#[test]
#[should_panic]
fn a_commit_that_looks_before_it_has_the_lock_is_found_out() {
    explore(Wrong::LooksEarly);
}

#[test]
#[should_panic]
fn a_commit_that_draws_when_others_have_the_lock_is_found_out() {
    explore(Wrong::DrawsLate);
}

/// A log commits to lines of its own, while somebody asks how far all are home: what counts is home.
fn asks_while_one_commits() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let store = Store::new();
        // The other log is far ahead, with nothing that is not home.
        store.stamps.owners.draw(1, 5 * 32);
        let asker = {
            let store = store.clone();
            thread::spawn(move || {
                store.stamps.raise_floor();
                store.stamps.find_home(store.logs.iter());
            })
        };
        let owners = &store.stamps.owners;
        let claimed = owners.claim(0, &store.logs[0], [].into_iter(), Some([LINE].into_iter()));
        let stamp = owners.draw(0, claimed.above);
        asker.join().unwrap();
        assert!(store.stamps.home() < stamp, "it counts as home");
    });
}

#[test]
fn no_stamp_is_drawn_that_counts_as_home() {
    asks_while_one_commits();
}

#[test]
fn no_stamp_is_drawn_that_counts_as_home_without_either_half_of_the_fence() {
    fails_so_without_either_half(asks_while_one_commits, "it counts as home");
}
