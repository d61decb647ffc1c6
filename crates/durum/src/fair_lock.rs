//! A lock that nobody waits for without end: whose turn it is, of threads that may do something one at a time only.
//!
//! Who comes takes a turn that is nobody's, also when others wait: they would have to be woken first, and the turn
//! would be nobody's for that long. But whoever has waited longest is passed over [`PASSES_MAX`] times at most. Then
//! the turn is handed to it, and is nobody's in between. So nobody waits for ever.
//!
//! A turn takes less time than to fall asleep and to be woken. So who is next looks on for a while before it sleeps,
//! and a thread that gives its turn up need not wake it. The others sleep until they are next.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::primitive::{
    AtomicBool, AtomicUsize, Mutex, Ordering, Thread, current, limit, locked, order, park, relax,
    this_thread, yield_now,
};

/// Turns that are taken past a thread which waits for one, before it is handed one: what it waits for at most beside
/// those that came before it.
pub const PASSES_MAX: usize = limit(128, 1);
/// Microseconds that who is next looks on before it sleeps: for longer than [`PASSES_MAX`] small turns take.
const LOOKING: u64 = limit(200, 0) as u64;
/// Microseconds between two of its tries to take a turn that is nobody's, at most; the first tries come sooner. Each
/// takes the lock's line from the thread that has the turn. And where that thread was about to take the next one, all
/// that it has in its caches goes to another processor.
const TRYING: u64 = 64;
/// Looks at whether it was handed the turn, before it lets others run on its processor: whose turn it is may wait for
/// that. How many processors there are says nothing, where threads are bound to some of them.
const LOOKS: usize = limit(128, 1);

/// The time that who is next has looked on for.
struct Watch {
    since: Instant,
    /// When it tries again.
    next: Duration,
}

impl Watch {
    fn new() -> Self {
        Self {
            since: Instant::now(),
            next: Duration::ZERO,
        }
    }
}

/// The lock. Taking a turn that is nobody's, and giving it up where nobody waits, is an atomic operation each.
#[derive(Debug, Default)]
pub struct FairLock {
    /// Whose it is: the thread's number ([`this_thread`]), or 0.
    holder: AtomicUsize,
    /// Threads that wait, or are about to.
    waiting: AtomicUsize,
    /// Who is next sleeps, or is about to.
    next_sleeps: AtomicBool,
    /// The thread that was handed a turn last. A line of its own, which who is next can look at all the time.
    handed: CachePadded<AtomicUsize>,
    /// How often turns were taken past those who wait, since one of them had one. Used by who has the turn.
    passes: AtomicUsize,
    /// Turns take longer than to fall asleep and to be woken: nobody looks on.
    is_slow: bool,
    /// Who waits, the longest first.
    queue: Mutex<VecDeque<Waiter>>,
}

#[derive(Debug)]
struct Waiter {
    number: usize,
    thread: Thread,
}

impl FairLock {
    /// Nobody's turn yet. Where turns `are_slow`, as those that wait for a disk, who is next sleeps at once.
    pub fn new(are_slow: bool) -> Self {
        Self {
            is_slow: are_slow,
            ..Self::default()
        }
    }

    /// Waits for a turn. The thread has none.
    #[inline]
    pub fn take(&self) {
        if !self.try_take() {
            self.wait();
        }
    }

    #[cold]
    fn wait(&self) {
        let number = this_thread();
        let mut queue = locked(&self.queue);
        // Who takes the turn from here on passes this thread.
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let thread = current();
        queue.push_back(Waiter { number, thread });
        let mut watch = Watch::new();
        // It was handed over; or it is nobody's, and this thread is the next.
        while !self.is_mine() {
            let is_next = queue.front().is_some_and(|first| first.number == number);
            if is_next && self.exchange() {
                queue.pop_front();
                break;
            }
            drop(queue);
            match is_next {
                true => self.look_on_or_sleep(&mut watch),
                // Woken when it is the next: then it looks on.
                false => {
                    park();
                    watch = Watch::new();
                }
            }
            queue = locked(&self.queue);
        }
        // Who is next now is to look on.
        if let Some(next) = queue.front() {
            next.thread.unpark();
        }
        drop(queue);
        self.handed.store(0, Ordering::Relaxed);
        self.passes.store(0, Ordering::Relaxed);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
    }

    /// For who is next: returns when there is something to try, or for no reason.
    fn look_on_or_sleep(&self, watch: &mut Watch) {
        loop {
            if self.is_slow {
                break;
            }
            for _ in 0..LOOKS {
                if self.handed.load(Ordering::Relaxed) == this_thread() {
                    return;
                }
                relax();
            }
            yield_now();
            let waited = watch.since.elapsed();
            if waited >= watch.next {
                watch.next = waited + waited.min(Duration::from_micros(TRYING));
                if self.is_there_to_take() {
                    return;
                }
            }
            if waited >= Duration::from_micros(LOOKING) {
                break;
            }
        }
        // ORDER (of threads): told before the holder is asked, who gives up before he asks for this. So one of the two
        // sees the other.
        self.next_sleeps.store(true, Ordering::SeqCst);
        order();
        if !self.is_there_to_take() {
            park();
        }
        self.next_sleeps.store(false, Ordering::Relaxed);
        *watch = Watch::new();
    }

    /// Whether the turn is nobody's, or was handed to this thread.
    #[inline]
    fn is_there_to_take(&self) -> bool {
        let holder = self.holder.load(Ordering::SeqCst);
        holder == 0 || holder == this_thread()
    }

    /// Whether it was nobody's, and now is this thread's.
    #[inline]
    pub fn try_take(&self) -> bool {
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

    /// Whether this thread has the turn.
    pub fn is_mine(&self) -> bool {
        self.holder.load(Ordering::Relaxed) == this_thread()
    }

    /// Whether somebody waits, or is about to.
    #[inline]
    pub fn has_waiters(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    /// Ends this thread's turn.
    #[inline]
    pub fn give_up(&self) {
        if self.passes.load(Ordering::Relaxed) >= PASSES_MAX {
            return self.hand_over();
        }
        self.holder.store(0, Ordering::SeqCst);
        order();
        if self.next_sleeps.load(Ordering::SeqCst) {
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
        self.handed.store(number, Ordering::Relaxed);
        drop(queue);
        if let Some(first) = first {
            first.thread.unpark();
        }
    }
}
