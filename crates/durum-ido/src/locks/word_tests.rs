//! Words that another opening has left, and deadlines. What threads do to each other is tried in `tests/loom`.

use super::deadline::Deadline;
use super::read_write::ReadWriteLock;
use super::word::LockWord;
use crate::held::Mode;
use crate::reach;

const EPOCH: u32 = 7;
const BEFORE: u32 = EPOCH - 1;

fn past() -> Deadline {
    let at = libc::timespec {
        tv_sec: 1,
        tv_nsec: 0,
    };
    Deadline::new(libc::CLOCK_REALTIME, at).unwrap()
}

#[test]
fn what_another_opening_has_left_is_free() {
    reach::open(0, 0, EPOCH);
    for left in [0, 1, 2, u32::MAX, BEFORE << 2 | 1] {
        let word = LockWord::left(left);
        assert!(word.try_lock(), "{left:#x}");
        assert!(!word.try_lock() && !word.lock(Some(&past())), "{left:#x}");
        word.unlock();
        assert!(word.lock(None), "{left:#x}");
    }
}

#[test]
fn readers_share_a_lock_and_a_writer_does_not() {
    reach::open(0, 0, EPOCH);
    for left in [0, u64::MAX, u64::from(BEFORE) << 32 | 1 << 31] {
        let lock = ReadWriteLock::left(left);
        assert!(lock.try_lock(Mode::Shared) && lock.try_lock(Mode::Shared));
        assert!(!lock.try_lock(Mode::Exclusive));
        lock.unlock(Mode::Shared);
        assert!(!lock.lock(Mode::Exclusive, Some(&past())));
        lock.unlock(Mode::Shared);
        assert!(lock.lock(Mode::Exclusive, None));
        assert!(!lock.try_lock(Mode::Shared));
        lock.unlock(Mode::Exclusive);
    }
}

#[test]
fn only_moments_are_deadlines() {
    let at = |tv_sec, tv_nsec| libc::timespec { tv_sec, tv_nsec };
    assert!(Deadline::new(libc::CLOCK_REALTIME, at(0, 1_000_000_000)).is_none());
    assert!(Deadline::new(libc::CLOCK_REALTIME, at(0, -1)).is_none());
    assert!(Deadline::new(libc::CLOCK_THREAD_CPUTIME_ID, at(0, 0)).is_none());
    assert!(Deadline::new(libc::CLOCK_MONOTONIC, at(-1, 0)).is_some_and(|at| at.left().is_none()));
}
