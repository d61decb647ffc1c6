//! Something that threads use while it is open, and that can be taken back from them.
//!
//! A transaction must know whether the pool is open, and keep it open, at no cost. A common reference count would cost
//! two atomic operations on a line that all threads share. So every thread keeps a reference of its own from one
//! transaction to the next. Whoever closes the pool takes back the references of the threads that are in no
//! transaction. The other threads give theirs back when their transactions end:
//!
//! ```text
//! a transaction begins / ends              the pool is closed
//! 1  own flag = 1 / 0                      1  generation += 1
//! 2  light fence                           2  heavy fence
//! 3  read the generation; another:         3  take back the reference of each thread
//!    take the lock, renew the reference       whose flag is 0
//!    / give it back
//! ```
//!
//! Threads are [`Members`], and the generation is their word.

use std::cell::Cell;
use std::sync::Arc;

use crate::asymmetric::members::{FENCED, Locked, Member, Members};
use crate::asymmetric::{can_fence_all, fence_all};
use crate::primitive::{MutexGuard, Ordering, UnsafeCell, constructor, fence};

/// What the generation grows by; below is [`FENCED`].
const STEP: u64 = 2;

/// A thread's reference. It is used by the thread while that is inside and the generation is the one it knows; by
/// others only under the lock, after they have seen that it is not inside since.
#[derive(Debug)]
struct Cached<T>(UnsafeCell<Option<Arc<T>>>);

// SAFETY: one thread at a time uses it; an `Arc` goes from thread to thread if what it holds may be shared.
unsafe impl<T: Send + Sync> Send for Cached<T> {}
// SAFETY: others use it under the lock only, and an `Arc` goes from thread to thread if what it holds may be shared.
unsafe impl<T: Send + Sync> Sync for Cached<T> {}

impl<T> Cached<T> {
    /// # Safety
    /// Under the lock, by the thread itself or while that is not inside.
    unsafe fn replace(&self, by: Option<Arc<T>>) -> Option<Arc<T>> {
        // SAFETY: as the caller promises.
        self.0.with_mut(|cached| unsafe { cached.replace(by) })
    }
}

/// One thing at a time that is open, and the threads that use it.
#[derive(Debug)]
pub(super) struct Revocable<T> {
    members: Members<Option<Arc<T>>, Cached<T>>,
}

/// Nobody opens or closes while this lives.
pub(super) struct RevocableLock<'l, T> {
    revocable: &'l Revocable<T>,
    locked: MutexGuard<'l, Locked<Option<Arc<T>>, Cached<T>>>,
}

/// A thread that uses it. Stays in its thread.
#[derive(Debug)]
pub(super) struct Reader<'l, T> {
    revocable: &'l Revocable<T>,
    member: Arc<Member<Cached<T>>>,
    /// Of the reference.
    generation: Cell<u64>,
}

impl<T> Revocable<T> {
    constructor! {
        pub(super) fn new() -> Self {
            Self {
                members: Members::new(None, 0),
            }
        }
    }

    pub(super) fn lock(&self) -> RevocableLock<'_, T> {
        RevocableLock {
            revocable: self,
            locked: self.members.lock(),
        }
    }

    pub(super) fn reader(&self) -> Reader<'_, T> {
        let mut locked = self.members.lock();
        if !can_fence_all() {
            // From here on no generation is one that a member knows, so that each looks under the lock, behind a fence.
            self.members.word.fetch_or(FENCED, Ordering::SeqCst);
        }
        Reader {
            revocable: self,
            member: locked.join(Cached(UnsafeCell::new(None))),
            generation: Cell::new(!FENCED),
        }
    }

    /// Without [`FENCED`].
    fn generation(&self) -> u64 {
        self.members.word.load(Ordering::SeqCst) & !FENCED
    }
}

impl<T> RevocableLock<'_, T> {
    /// Whether something is open, or a thread that was inside when it was closed still has it.
    pub(super) fn is_in_use(&self) -> bool {
        let has_cached = |member: &Arc<Member<Cached<T>>>| {
            // SAFETY: under the lock; one that is inside leaves its reference as it is.
            member.own.0.with(|cached| unsafe { (*cached).is_some() })
        };
        self.locked.state.is_some() || self.locked.list.iter().any(has_cached)
    }

    /// From here on all threads may use it.
    pub(super) fn publish(&mut self, what: Arc<T>) {
        self.locked.state = Some(what);
        let word = &self.revocable.members.word;
        word.fetch_add(STEP, Ordering::SeqCst);
    }

    /// From here on nobody may use it. Returns the references of all threads that are not inside; those that are give
    /// theirs back when they leave. The caller drops the references before the lock, so that whoever opens again finds
    /// it closed.
    pub(super) fn revoke(&mut self) -> Vec<Arc<T>> {
        let members = &self.revocable.members;
        let mut given_back = Vec::from_iter(self.locked.state.take());
        let word = members.word.fetch_add(STEP, Ordering::SeqCst);
        match word & FENCED == 0 && can_fence_all() {
            true => fence_all(),
            false => members.fence_against_fenced(),
        }
        for member in self.locked.list.iter().filter(|it| !it.is_inside()) {
            // SAFETY: the thread is outside, and takes the lock before it uses the reference when it is inside again.
            given_back.extend(unsafe { member.own.replace(None) });
        }
        given_back
    }
}

impl<T> Reader<'_, T> {
    /// What is open, which stays so until [`Reader::leave`]; nothing if nothing is, and then this thread is outside.
    #[inline(always)]
    pub(super) fn enter(&self) -> Option<&T> {
        if self.revocable.members.enter(&self.member) != self.generation.get() {
            self.renew();
        }
        // SAFETY: inside, and of this generation.
        let cached = self.member.own.0.with(|cached| unsafe { &*cached });
        if cached.is_none() {
            self.member.leave();
        }
        cached.as_deref()
    }

    #[cold]
    fn renew(&self) {
        // ORDER (of threads): the flag is set before the lock is taken, also where whoever closes makes no fence for
        // all.
        fence(Ordering::SeqCst);
        let locked = self.revocable.members.lock();
        self.generation.set(self.revocable.generation());
        // SAFETY: under the lock, this thread's.
        let old = unsafe { self.member.own.replace(locked.state.clone()) };
        // As in `give_back`.
        drop(old);
        drop(locked);
    }

    /// What was entered is not used any more.
    #[inline(always)]
    pub(super) fn leave(&self) {
        if self.revocable.members.leave_and_look(&self.member) != self.generation.get() {
            self.give_back();
        }
    }

    #[cold]
    fn give_back(&self) {
        // ORDER (of threads): the flag is cleared before the generation is read, also where whoever closes makes no
        // fence for all.
        fence(Ordering::SeqCst);
        if self.revocable.generation() == self.generation.get() {
            return;
        }
        let locked = self.revocable.members.lock();
        // SAFETY: under the lock, this thread's.
        let old = unsafe { self.member.own.replace(None) };
        // Closes the pool, if it is the last one; who opens it again waits for that.
        drop(old);
        drop(locked);
    }
}

impl<T> Drop for Reader<'_, T> {
    fn drop(&mut self) {
        let mut locked = self.revocable.members.lock();
        locked.remove(&self.member);
        // SAFETY: under the lock, this thread's.
        let old = unsafe { self.member.own.replace(None) };
        drop(old);
        drop(locked);
    }
}
