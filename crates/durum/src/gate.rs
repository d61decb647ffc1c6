//! The gate of a store, by which it comes to quiescence: closed, it keeps new transactions out, and whoever closed it
//! knows that none is open.
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

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::asymmetric;
use crate::asymmetric::members::{FENCED, Locked, Members};
use crate::error::Result;
use crate::fault::forked;
use crate::primitive::{
    Condvar, MutexGuard, Ordering, limit, relax, sleep, waited, waited_for, yield_now,
};

/// New transactions wait: a bit of the word beside [`FENCED`].
const CLOSED: u64 = 2;

/// The gate of a store.
#[derive(Debug)]
pub(crate) struct Gate {
    /// Threads that have used the store; whether the gate is closed. The word is 0 where nothing hinders anybody.
    members: Members<GateState, ()>,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct GateState {
    is_closed: bool,
}

/// A thread's way through the gate.
#[derive(Debug)]
pub(crate) struct Member {
    /// Inside while a transaction is open.
    pub(crate) active: Arc<asymmetric::members::Member<()>>,
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

    pub(crate) fn with(has_membarrier: bool) -> Arc<Self> {
        let word = if has_membarrier { 0 } else { FENCED };
        Arc::new(Self {
            members: Members::new(GateState::default(), word),
            opened: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Locked<GateState, ()>> {
        self.members.lock()
    }

    /// Lets a thread use the gate.
    pub(crate) fn join(self: &Arc<Self>) -> Member {
        Member {
            active: self.lock().join(()),
            gate: self.clone(),
        }
    }

    #[cfg(test)]
    pub(crate) fn members(&self) -> usize {
        self.lock().list.len()
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
        let mut locked = self.lock();
        while locked.state.is_closed {
            let left = deadline.map(|end| end.saturating_duration_since(Instant::now()));
            locked = match left {
                None => waited(&self.opened, locked),
                Some(Duration::ZERO) => return Ok(None),
                Some(left) => waited_for(&self.opened, locked, left),
            };
        }
        locked.state.is_closed = true;
        self.members.word.fetch_or(CLOSED, Ordering::SeqCst);
        // Who joins from here on has the lock after us and sees the word.
        let members = locked.list.clone();
        drop(locked);
        // From here on every way out opens the gate.
        let closed = Closed { gate: self.clone() };
        self.fence_all()?;
        for member in &members {
            if !wait_for(member, deadline) {
                return Ok(None);
            }
        }
        Ok(Some(closed))
    }

    /// A full fence in this thread and in every other one that runs, however long it takes.
    fn fence_all(&self) -> Result<()> {
        if self.members.word.load(Ordering::Relaxed) & FENCED != 0 {
            self.members.fence_against_fenced();
            return Ok(());
        }
        // ORDER (of threads): the word before the flags are read.
        asymmetric::heavy_fence()
    }
}

/// Waits until a thread has no transaction open; false if it still has one at the deadline.
///
/// It polls: leaving is one store, which tells nobody.
fn wait_for(member: &asymmetric::members::Member<()>, deadline: Option<Instant>) -> bool {
    const SPINS: usize = limit(200, 1);
    const PAUSE_MAX: Duration = Duration::from_micros(500);
    let mut pause = Duration::from_micros(10);
    let mut spins = 0;
    while member.is_inside() {
        if deadline.is_some_and(|end| Instant::now() >= end) {
            return false;
        }
        spins += 1;
        if spins < SPINS {
            relax();
        } else if spins < 2 * SPINS {
            yield_now();
        } else {
            sleep(pause);
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
        if self.gate.members.enter(&self.active) != 0 {
            self.enter_slowly();
        }
    }

    #[cold]
    fn enter_slowly(&self) {
        loop {
            if self.gate.members.enter_with_fence(&self.active) & CLOSED == 0 {
                return;
            }
            self.leave();
            let mut locked = self.gate.lock();
            while locked.state.is_closed {
                locked = waited(&self.gate.opened, locked);
            }
        }
    }

    /// The thread's transaction is over.
    #[inline]
    pub(crate) fn leave(&self) {
        self.active.leave();
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
            self.gate.lock().remove(&self.active);
        }
    }
}

impl Drop for Closed {
    fn drop(&mut self) {
        if forked() {
            return;
        }
        let mut locked = self.gate.lock();
        locked.state.is_closed = false;
        // ORDER (of threads): what was done while the gate was closed is seen by those who find it open.
        self.gate.members.word.fetch_and(!CLOSED, Ordering::Release);
        drop(locked);
        self.gate.opened.notify_all();
    }
}
