//! The gate of a store: closed, it keeps new transactions out, and whoever closed it knows that none is open.
//!
//! Entering has to cost nothing, because every transaction does, and closing is rare. So the two sides are not alike
//! ([`asymmetric`]):
//!
//! ```text
//! enter                              close
//! 1  own flag = 1                    1  word = CLOSED
//! 2  light fence                     2  heavy fence
//! 3  read word; CLOSED: step back    3  wait until every flag is 0
//! ```
//!
//! So never do both go on.
//!
//! One gate for all pools of a store: a transaction may go on to any of them, and would have to wait in the middle for
//! a second gate while others wait for it. A transaction on a second store inside one on a first, which the typed
//! interface allows, does wait at a second gate: sections on two stores are like two locks, and the program takes them
//! in one order.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crossbeam_utils::CachePadded;

use crate::asymmetric;
use crate::error::Result;
use crate::fault::forked;

/// New transactions wait.
const CLOSED: u32 = 1;
/// The system has no membarrier: entering needs a fence.
const FENCED: u32 = 2;

/// Whether a transaction of the thread is open. Only that thread stores to it.
type Flag = Arc<CachePadded<AtomicBool>>;

/// The gate of a store.
#[derive(Debug)]
pub(crate) struct Gate {
    /// 0: nothing hinders anybody.
    word: CachePadded<AtomicU32>,
    state: Mutex<State>,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    /// One for each thread that has used the store.
    flags: Vec<Flag>,
}

/// A thread's way through the gate.
#[derive(Debug)]
pub(crate) struct Member {
    active: Flag,
    gate: Arc<Gate>,
}

/// The gate is closed and no transaction is open, until this is dropped.
#[derive(Debug)]
pub(crate) struct Closed {
    gate: Arc<Gate>,
}

impl Gate {
    pub(crate) fn new() -> Arc<Self> {
        Self::with(asymmetric::is_there())
    }

    fn with(has_membarrier: bool) -> Arc<Self> {
        Arc::new(Self {
            word: CachePadded::new(AtomicU32::new(if has_membarrier { 0 } else { FENCED })),
            state: Mutex::default(),
            opened: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a thread use the gate.
    pub(crate) fn join(self: &Arc<Self>) -> Member {
        let active = Flag::default();
        self.lock().flags.push(active.clone());
        Member {
            active,
            gate: self.clone(),
        }
    }

    /// Closes the gate and waits until no transaction is open. Others who want to close it take their turn.
    ///
    /// The caller is in no transaction, and holds nothing that a transaction may wait for.
    ///
    /// # Errors
    /// `System`: the gate is open.
    pub(crate) fn close(self: &Arc<Self>) -> Result<Closed> {
        // Without a deadline it is closed in the end.
        loop {
            if let Some(closed) = self.close_until(None)? {
                return Ok(closed);
            }
        }
    }

    /// As [`Gate::close`], for those who can do without: if a transaction is still open after `timeout`, the gate is
    /// opened again. That one may be waiting for a lock that a thread at the gate holds.
    ///
    /// # Errors
    /// `System`: the gate is open.
    pub(crate) fn try_close(self: &Arc<Self>, timeout: Duration) -> Result<Option<Closed>> {
        self.close_until(Some(Instant::now() + timeout))
    }

    fn close_until(self: &Arc<Self>, deadline: Option<Instant>) -> Result<Option<Closed>> {
        let mut state = self.lock();
        while state.is_closed {
            state = match deadline.map(|end| end.saturating_duration_since(Instant::now())) {
                None => self
                    .opened
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner),
                Some(Duration::ZERO) => return Ok(None),
                Some(left) => {
                    let waited = self.opened.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
        state.is_closed = true;
        self.word.fetch_or(CLOSED, Ordering::SeqCst);
        // Who joins from here on has locked `state` after us and sees the word.
        let flags = state.flags.clone();
        drop(state);
        // From here on every way out opens the gate.
        let closed = Closed { gate: self.clone() };
        self.fence_all()?;
        for flag in &flags {
            if !wait_for(flag, deadline) {
                return Ok(None);
            }
        }
        Ok(Some(closed))
    }

    /// A full fence in this thread and in every other one that runs.
    fn fence_all(&self) -> Result<()> {
        if self.word.load(Ordering::Relaxed) & FENCED != 0 {
            // ORDER (of threads): the word before the flags are read, against the fence of `enter_slowly`.
            fence(Ordering::SeqCst);
            return Ok(());
        }
        // ORDER (of threads): the word before the flags are read.
        asymmetric::heavy_fence()
    }
}

/// Waits until a thread has no transaction open; false if it still has one at the deadline.
///
/// It polls: leaving is one store, which tells nobody.
fn wait_for(flag: &Flag, deadline: Option<Instant>) -> bool {
    const SPINS: u32 = 200;
    const PAUSE_MAX: Duration = Duration::from_micros(500);
    let mut pause = Duration::from_micros(10);
    let mut spins = 0;
    // ORDER (of threads): what the transaction stored is seen by who closed the gate.
    while flag.load(Ordering::Acquire) {
        if deadline.is_some_and(|end| Instant::now() >= end) {
            return false;
        }
        spins += 1;
        if spins < SPINS {
            std::hint::spin_loop();
        } else if spins < 2 * SPINS {
            std::thread::yield_now();
        } else {
            std::thread::sleep(pause);
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
    true
}

impl Member {
    /// Goes through until what it returns is dropped.
    #[inline]
    pub(crate) fn pass(&self) -> Pass<'_> {
        self.enter();
        Pass { member: self }
    }

    /// Goes through, after waiting for it to open.
    #[inline]
    pub(crate) fn enter(&self) {
        self.active.store(true, Ordering::Relaxed);
        // ORDER (of threads): the flag before the word; the processor's part is done by the membarrier of who closes.
        asymmetric::light_fence();
        // Acquire: what was done while the gate was closed is seen by whoever enters after it.
        if self.gate.word.load(Ordering::Acquire) != 0 {
            self.enter_slowly();
        }
    }

    #[cold]
    fn enter_slowly(&self) {
        loop {
            self.active.store(true, Ordering::Relaxed);
            // ORDER (of threads): the flag before the word, where no membarrier sees to that.
            fence(Ordering::SeqCst);
            if self.gate.word.load(Ordering::Acquire) & CLOSED == 0 {
                return;
            }
            self.leave();
            let mut state = self.gate.lock();
            while state.is_closed {
                let opened = &self.gate.opened;
                state = opened.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// The thread's transaction is over.
    #[inline]
    pub(crate) fn leave(&self) {
        // ORDER (of threads): what the transaction stored is seen by whoever sees this.
        self.active.store(false, Ordering::Release);
    }
}

/// The way through the gate of something short that is no transaction.
#[derive(Debug)]
pub(crate) struct Pass<'m> {
    member: &'m Member,
}

impl Drop for Pass<'_> {
    #[inline]
    fn drop(&mut self) {
        self.member.leave();
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        // Also where the thread ends inside a transaction: somebody may be waiting for the flag.
        self.leave();
        // In a forked child the lock may be held by a thread that is not there.
        if !forked() {
            let mut state = self.gate.lock();
            state.flags.retain(|flag| !Arc::ptr_eq(flag, &self.active));
        }
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        if forked() {
            return;
        }
        let mut state = self.gate.lock();
        state.is_closed = false;
        // ORDER (of threads): what was done while the gate was closed is seen by those who find it open.
        self.gate.word.fetch_and(!CLOSED, Ordering::Release);
        drop(state);
        self.gate.opened.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, AtomicUsize};
    use std::thread;

    use super::*;

    /// Counts that only an exclusion can keep equal: each side changes them by plain loads and stores.
    #[derive(Default)]
    struct Shared {
        inside: AtomicUsize,
        /// While the gate is closed.
        alone: AtomicBool,
        one: AtomicU64,
        other: AtomicU64,
    }

    fn stress(gate: Arc<Gate>, seconds: f32) {
        let shared = Shared::default();
        let end = Instant::now() + Duration::from_secs_f32(seconds);
        let (entered, closed) = (AtomicU64::new(0), AtomicU64::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let mut rounds = 0u64;
                    while Instant::now() < end {
                        // Threads come and go, too.
                        let member = gate.join();
                        for _ in 0..1000 {
                            member.enter();
                            shared.inside.fetch_add(1, Ordering::Relaxed);
                            assert!(!shared.alone.load(Ordering::Relaxed));
                            assert_eq!(
                                shared.one.load(Ordering::Relaxed),
                                shared.other.load(Ordering::Relaxed)
                            );
                            shared.inside.fetch_sub(1, Ordering::Relaxed);
                            member.leave();
                            rounds += 1;
                        }
                    }
                    entered.fetch_add(rounds, Ordering::Relaxed);
                });
            }
            for number in 0..2 {
                let (gate, shared, closed) = (&gate, &shared, &closed);
                scope.spawn(move || {
                    while Instant::now() < end {
                        let guard = match number {
                            0 => Some(gate.close().unwrap()),
                            _ => gate.try_close(Duration::from_millis(1)).unwrap(),
                        };
                        let Some(guard) = guard else { continue };
                        assert!(!shared.alone.swap(true, Ordering::Relaxed));
                        assert_eq!(shared.inside.load(Ordering::Relaxed), 0);
                        let value = shared.one.load(Ordering::Relaxed) + 1;
                        shared.one.store(value, Ordering::Relaxed);
                        std::hint::spin_loop();
                        shared.other.store(value, Ordering::Relaxed);
                        shared.alone.store(false, Ordering::Relaxed);
                        drop(guard);
                        closed.fetch_add(1, Ordering::Relaxed);
                        thread::sleep(Duration::from_micros(50));
                    }
                });
            }
        });
        let (entered, closed) = (entered.into_inner(), closed.into_inner());
        println!("entered {entered} times, closed {closed} times");
        assert!(entered > 0 && closed > 0);
        assert_eq!(shared.one.into_inner(), closed);
        assert!(gate.lock().flags.is_empty());
    }

    #[test]
    fn whoever_closed_the_gate_is_alone() {
        stress(Gate::new(), 1.0);
    }

    #[test]
    fn whoever_closed_the_gate_is_alone_without_membarrier() {
        stress(Gate::with(false), 1.0);
    }

    #[test]
    fn closing_gives_up_and_opens_again_while_somebody_stays_inside() {
        let gate = Gate::new();
        let member = gate.join();
        member.enter();
        assert!(
            gate.try_close(Duration::from_millis(5)).unwrap().is_none(),
            "one is inside"
        );
        let other = gate.join();
        other.enter();
        other.leave();
        member.leave();
        let closed = gate.close().unwrap();
        assert!(
            gate.try_close(Duration::from_millis(5)).unwrap().is_none(),
            "another has closed it"
        );
        thread::scope(|scope| {
            let entering = scope.spawn(|| {
                let member = gate.join();
                member.enter();
                member.leave();
            });
            thread::sleep(Duration::from_millis(20));
            assert!(!entering.is_finished());
            drop(closed);
        });
    }

    #[test]
    fn a_thread_that_ends_inside_is_not_waited_for() {
        let gate = Gate::new();
        let member = gate.join();
        member.enter();
        thread::scope(|scope| {
            let closing = scope.spawn(|| drop(gate.close().unwrap()));
            thread::sleep(Duration::from_millis(20));
            assert!(!closing.is_finished());
            drop(member);
        });
    }

    /// All runs of two who enter and one who closes, on processors that keep stores back.
    mod model {
        use std::collections::HashSet;

        /// 0 and 1: the flags of who enters; 2: the word.
        type Memory = [bool; 3];

        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        struct Thread {
            step: u8,
            /// Stores that others do not see yet, the first one first.
            kept: [Option<(usize, bool)>; 2],
            inside: bool,
        }

        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
        struct Run {
            memory: Memory,
            /// The last one closes.
            threads: [Thread; 3],
        }

        impl Run {
            fn store(&mut self, thread: usize, place: usize, value: bool) -> bool {
                let kept = &mut self.threads[thread].kept;
                match kept.iter().position(Option::is_none) {
                    Some(free) => {
                        kept[free] = Some((place, value));
                        true
                    }
                    None => false,
                }
            }

            fn load(&self, thread: usize, place: usize) -> bool {
                let mut kept = self.threads[thread].kept.iter().flatten();
                let own = kept.rfind(|(at, _)| *at == place);
                own.map_or(self.memory[place], |(_, value)| *value)
            }

            fn make_visible(&mut self, thread: usize) -> bool {
                let kept = &mut self.threads[thread].kept;
                let Some((place, value)) = kept[0] else {
                    return false;
                };
                *kept = [kept[1], None];
                self.memory[place] = value;
                true
            }

            /// One step of a thread; false if it cannot go on just now.
            fn advance(&mut self, thread: usize, has_membarrier: bool) -> bool {
                let step = self.threads[thread].step;
                let next = match (thread == 2, step) {
                    (false, 0) => self.store(thread, thread, true).then_some(1),
                    (false, 1) if self.load(thread, 2) => Some(3),
                    (false, 1) => {
                        self.threads[thread].inside = true;
                        Some(2)
                    }
                    (false, 2) => {
                        self.threads[thread].inside = false;
                        self.store(thread, thread, false).then_some(0)
                    }
                    (false, 3) => self.store(thread, thread, false).then_some(0),
                    (true, 0) => self.store(2, 2, true).then_some(1),
                    (true, 1) => {
                        // Its own fence it makes in any case.
                        for other in 0..3 {
                            while (has_membarrier || other == 2) && self.make_visible(other) {}
                        }
                        Some(2)
                    }
                    (true, 2 | 3) => (!self.load(2, usize::from(step) - 2)).then(|| {
                        self.threads[2].inside = step == 3;
                        step + 1
                    }),
                    (true, 4) => {
                        self.threads[2].inside = false;
                        self.store(2, 2, false).then_some(0)
                    }
                    _ => None,
                };
                if let Some(next) = next {
                    self.threads[thread].step = next;
                }
                next.is_some()
            }
        }

        /// Whether whoever closed the gate was always alone, and how many states there were.
        fn explore(has_membarrier: bool) -> (bool, usize) {
            let at_rest = Thread {
                step: 0,
                kept: [None; 2],
                inside: false,
            };
            let mut open = vec![Run {
                memory: [false; 3],
                threads: [at_rest; 3],
            }];
            let mut seen = HashSet::new();
            let mut is_alone = true;
            while let Some(run) = open.pop() {
                if !seen.insert(run) {
                    continue;
                }
                let inside = run.threads.map(|thread| thread.inside);
                is_alone &= !(inside[2] && (inside[0] || inside[1]));
                for thread in 0..3 {
                    let mut next = run;
                    if next.advance(thread, has_membarrier) {
                        open.push(next);
                    }
                    let mut next = run;
                    if next.make_visible(thread) {
                        open.push(next);
                    }
                }
            }
            (is_alone, seen.len())
        }

        #[test]
        fn no_run_lets_a_transaction_in_beside_who_closed_the_gate() {
            let (is_alone, states) = explore(true);
            println!("{states} states");
            assert!(is_alone && states > 500);
            assert!(!explore(false).0, "without the barrier it has to fail");
        }
    }
}
