//! How far all records are home, which one finds out while others commit.

use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use crate::missing::Missing;
use crate::stamps::Stamps;

const STAMPS: usize = 4;

/// Stamps, two logs, and what home holds of the records.
struct Store {
    stamps: Stamps,
    logs: [Missing; 2],
    home: [AtomicBool; STAMPS],
}

/// What a log does with its first record in another order, or leaves out.
#[derive(Clone, Copy, PartialEq)]
enum Wrong {
    Nothing,
    SpeaksLate,
    IsHomeEarly,
}

impl Store {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            stamps: Stamps::new(1),
            logs: [Missing::new(), Missing::new()],
            home: [(); STAMPS].map(|()| AtomicBool::new(false)),
        })
    }

    /// Two records of a log, which are home one after the other.
    fn commits(&self, log: usize, wrong: Wrong) {
        let missing = &self.logs[log];
        let first = match wrong {
            Wrong::SpeaksLate => {
                let stamp = self.stamps.draw(1, false);
                missing.begin_with(stamp);
                stamp
            }
            _ => self.stamps.draw_for(missing, 1, false),
        };
        let second = self.stamps.draw_for(missing, 1, false);
        if wrong == Wrong::IsHomeEarly {
            missing.begin_with(second);
        }
        self.bring_home(first);
        missing.begin_with(second);
        self.bring_home(second);
        missing.begin_with(0);
    }

    fn bring_home(&self, stamp: u64) {
        // Only what the stamps order makes it seen.
        self.home[stamp as usize - 1].store(true, Ordering::Relaxed);
    }

    fn asks(&self) {
        self.stamps.find_home(self.logs.iter());
        for stamp in 1..=self.stamps.home() {
            let is_home = self.home[stamp as usize - 1].load(Ordering::Relaxed);
            assert!(is_home, "{stamp} counts as home");
        }
    }
}

fn explore(wrong: Wrong) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let store = Store::new();
        let threads = [0, 1].map(|log| {
            let store = store.clone();
            thread::spawn(move || store.commits(log, wrong))
        });
        let asker = {
            let store = store.clone();
            thread::spawn(move || store.asks())
        };
        for thread in threads {
            thread.join().unwrap();
        }
        asker.join().unwrap();
        store.asks();
        assert_eq!(store.stamps.home(), STAMPS as u64);
    });
}

#[test]
fn what_counts_as_home_is_home() {
    explore(Wrong::Nothing);
}

#[test]
#[should_panic]
fn a_log_that_speaks_when_it_has_drawn_is_found_out() {
    explore(Wrong::SpeaksLate);
}

#[test]
#[should_panic]
fn a_log_whose_records_count_before_they_are_home_is_found_out() {
    explore(Wrong::IsHomeEarly);
}
