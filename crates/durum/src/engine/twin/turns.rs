//! Whose turn it is, of threads that may do something one at a time only.

use super::primitive::{AtomicUsize, Condvar, Mutex, Ordering, locked, order, this_thread, waited};

/// The turns of a pool. Taking one that is nobody's, and giving it up where nobody waits, is an atomic operation each.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Whose it is: the thread's number ([`this_thread`]), or 0.
    holder: AtomicUsize,
    /// Threads that wait, or are about to.
    waiting: AtomicUsize,
    lock: Mutex<()>,
    given_up: Condvar,
}

impl Turns {
    #[inline]
    pub(super) fn take(&self) {
        if !self.try_take() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        let mut lock = locked(&self.lock);
        // ORDER (of threads): told before the holder is asked, who gives up before he asks for this. So one of the two sees the other.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        order();
        while !self.try_take() {
            lock = waited(&self.given_up, lock);
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether it was nobody's, and now is this thread's.
    #[inline]
    pub(super) fn try_take(&self) -> bool {
        let (none, seen) = (0, Ordering::SeqCst);
        self.holder
            .compare_exchange(none, this_thread(), seen, seen)
            .is_ok()
    }

    pub(super) fn is_mine(&self) -> bool {
        self.holder.load(Ordering::Relaxed) == this_thread()
    }

    #[inline]
    pub(super) fn give_up(&self) {
        self.holder.store(0, Ordering::SeqCst);
        order();
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Who has told that it waits has the lock until it really does.
        drop(locked(&self.lock));
        self.given_up.notify_one();
    }
}
