//! A lock that nobody waits for without end: whose turn it is, of threads that may do something one at a time only.
//!
//! Who comes takes a turn that is nobody's, also when others wait: they would have to be woken first, and the turn
//! would be nobody's for that long. But whoever has waited longest is passed over [`PASSES_MAX`] times at most. Then
//! the turn is handed to it, and is nobody's in between. So nobody waits for ever.

use std::collections::VecDeque;

use crate::primitive::{
    AtomicUsize, Mutex, Ordering, Thread, current, limit, locked, order, park, this_thread,
};

/// FairLock that are taken past a thread which waits for one, before it is handed one: what it waits for at most beside
/// those that came before it.
pub(super) const PASSES_MAX: usize = limit(64, 1);

/// The lock. Taking a turn that is nobody's, and giving it up where nobody waits, is an atomic operation each.
#[derive(Debug, Default)]
pub(super) struct FairLock {
    /// Whose it is: the thread's number ([`this_thread`]), or 0.
    holder: AtomicUsize,
    /// Threads that wait, or are about to.
    waiting: AtomicUsize,
    /// How often turns were taken past those who wait, since one of them had one. Used by who has the turn.
    passes: AtomicUsize,
    /// Who waits, the longest first.
    queue: Mutex<VecDeque<Waiter>>,
}

#[derive(Debug)]
struct Waiter {
    number: usize,
    thread: Thread,
}

impl FairLock {
    #[inline]
    pub(super) fn take(&self) {
        if !self.try_take() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        let number = this_thread();
        let mut queue = locked(&self.queue);
        // ORDER (of threads): told before the holder is asked, who gives up before he asks for this. So one of the two
        // sees the other.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        order();
        let thread = current();
        queue.push_back(Waiter { number, thread });
        // It was handed over; or it is nobody's, and this thread is the next.
        while !self.is_mine() {
            if queue.front().is_some_and(|first| first.number == number) && self.exchange() {
                queue.pop_front();
                break;
            }
            drop(queue);
            park();
            queue = locked(&self.queue);
        }
        drop(queue);
        self.passes.store(0, Ordering::Relaxed);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Whether it was nobody's, and now is this thread's.
    #[inline]
    pub(super) fn try_take(&self) -> bool {
        let is_taken = self.exchange();
        if is_taken && self.has_waiters() {
            let passes = self.passes.load(Ordering::Relaxed);
            self.passes.store(passes + 1, Ordering::Relaxed);
        }
        is_taken
    }

    #[inline]
    fn exchange(&self) -> bool {
        let (none, seen) = (0, Ordering::SeqCst);
        self.holder
            .compare_exchange(none, this_thread(), seen, seen)
            .is_ok()
    }

    pub(super) fn is_mine(&self) -> bool {
        self.holder.load(Ordering::Relaxed) == this_thread()
    }

    /// Whether somebody waits, or is about to.
    #[inline]
    pub(super) fn has_waiters(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    #[inline]
    pub(super) fn give_up(&self) {
        if self.passes.load(Ordering::Relaxed) >= PASSES_MAX {
            return self.hand_over();
        }
        self.holder.store(0, Ordering::SeqCst);
        order();
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.wake();
        }
    }

    /// Wakes who is next, to try.
    #[cold]
    fn wake(&self) {
        // Who has told that it waits has the lock until it is in the queue.
        if let Some(first) = locked(&self.queue).front() {
            first.thread.unpark();
        }
    }

    /// The turn of who has waited longest. Nobody can take it meanwhile.
    #[cold]
    fn hand_over(&self) {
        let mut queue = locked(&self.queue);
        let first = queue.pop_front();
        // ORDER (of threads): in the lock, in which who waits looks.
        let number = first.as_ref().map_or(0, |first| first.number);
        self.holder.store(number, Ordering::SeqCst);
        drop(queue);
        if let Some(first) = first {
            first.thread.unpark();
        }
    }
}
