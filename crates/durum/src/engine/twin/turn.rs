//! Whose transaction may change a Twin pool: one at a time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::pool::PoolInner;

/// The turns of a pool. Taking one that is nobody's, and giving it up where nobody waits, is an atomic operation each.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Whose it is: the thread's [`mark`], or 0.
    holder: AtomicUsize,
    /// Threads that wait, or are about to.
    waiting: AtomicUsize,
    lock: Mutex<()>,
    given_up: Condvar,
}

/// A number that no other thread has that is alive.
fn mark() -> usize {
    thread_local!(static MARK: u8 = const { 0 });
    MARK.with(|mark| std::ptr::from_ref(mark).addr())
}

impl Turns {
    #[inline]
    fn take(&self) {
        if !self.try_take() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        // ORDER (of threads): told before the holder is asked, who gives up before he asks for this. So one of the two sees the other.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        while !self.try_take() {
            let woken = self.given_up.wait(lock);
            lock = woken.unwrap_or_else(PoisonError::into_inner);
        }
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether it was nobody's, and now is this thread's.
    #[inline]
    pub(super) fn try_take(&self) -> bool {
        let (none, seen) = (0, Ordering::SeqCst);
        self.holder
            .compare_exchange(none, mark(), seen, seen)
            .is_ok()
    }

    pub(super) fn is_mine(&self) -> bool {
        self.holder.load(Ordering::Relaxed) == mark()
    }

    #[inline]
    pub(super) fn give_up(&self) {
        self.holder.store(0, Ordering::SeqCst);
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Who has told that it waits has the lock until it really does.
        drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
        self.given_up.notify_one();
    }
}

/// The right of a transaction to change a Twin pool, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn(Arc<PoolInner>);

impl Turn {
    /// Waits until no other transaction has it. `None` where transactions need none.
    pub(crate) fn take(pool: &Arc<PoolInner>) -> Option<Self> {
        let copies = pool.copies.as_ref()?;
        copies.turns.take();
        Some(Self(pool.clone()))
    }

    /// Whose it is.
    pub(crate) fn pool(&self) -> &PoolInner {
        &self.0
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(copies) = &self.0.copies {
            copies.turns.give_up();
        }
    }
}
