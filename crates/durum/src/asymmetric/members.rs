//! A list of members: threads that go in and out by plain stores, and one who comes and has to know who is inside.
//!
//! ```text
//! a member                               who comes
//! 1  own flag = 1, or 0 again            1  changes the word
//! 2  light fence                         2  heavy fence
//! 3  read the word: changed, then it     3  look at every flag
//!    does what the protocol asks for
//! ```
//!
//! So of a member and one who comes that meet, at least one sees the other. What follows from that differs: who closes
//! a [gate](crate::gate) waits until nobody is inside, and keeps members out until it opens; who revokes the open
//! pool of a type waits for nobody, and takes at once what those hold that are outside. So what the word says, what
//! is under the lock and which heavy fence it takes is theirs: a gate may take one of milliseconds, or one that fails.

use std::sync::Arc;

use crossbeam_utils::CachePadded;

use super::bias::Busy;
use super::light_fence;
use crate::primitive::{AtomicU64, Mutex, MutexGuard, Ordering, constructor, fence, locked};

/// A bit of the word: there is no heavy fence, or none that can be had here. A member that sees it makes its own.
pub(crate) const FENCED: u64 = 1;

/// The members of something with a state `S`; each has something of its own, a `T`.
#[derive(Debug)]
pub(crate) struct Members<S, T> {
    /// What members look at. But for [`FENCED`] it is their user's.
    pub(crate) word: CachePadded<AtomicU64>,
    locked: Mutex<Locked<S, T>>,
}

/// What is used under the lock.
#[derive(Debug)]
pub(crate) struct Locked<S, T> {
    pub(crate) state: S,
    pub(crate) list: Vec<Arc<Member<T>>>,
}

/// A thread. On a line of its own.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Member<T> {
    /// Whether it is inside. Only the thread itself stores to it.
    busy: Busy,
    pub(crate) own: T,
}

impl<S, T> Members<S, T> {
    constructor! {
        pub(crate) fn new(state: S, word: u64) -> Self {
            Self {
                word: CachePadded::new(AtomicU64::new(word)),
                locked: Mutex::new(Locked {
                    state,
                    list: Vec::new(),
                }),
            }
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Locked<S, T>> {
        locked(&self.locked)
    }

    /// Goes inside: the word.
    #[inline(always)]
    pub(crate) fn enter(&self, member: &Member<T>) -> u64 {
        member.busy.deepen(1);
        // ORDER (of threads): the flag before the word; the processor's part is done by the fence of who comes.
        light_fence();
        // Acquire: what was done before the word was changed is seen by who enters after it.
        self.word.load(Ordering::Acquire)
    }

    /// The same with a fence of its own, where the word has [`FENCED`].
    pub(crate) fn enter_with_fence(&self, member: &Member<T>) -> u64 {
        member.busy.deepen(1);
        // ORDER (of threads): the flag before the word, where no fence of who comes sees to that.
        fence(Ordering::SeqCst);
        self.word.load(Ordering::Acquire)
    }

    /// Goes out ([`Member::leave`]), and the word as it is then: for who has to do something about it.
    #[inline(always)]
    pub(crate) fn leave_and_look(&self, member: &Member<T>) -> u64 {
        member.leave();
        // ORDER (of threads): as in `enter`.
        light_fence();
        self.word.load(Ordering::Acquire)
    }

    /// Step 2 of who comes, where the word has [`FENCED`].
    pub(crate) fn fence_against_fenced(&self) {
        // ORDER (of threads): the word before the flags are read, against the fences of members.
        fence(Ordering::SeqCst);
    }
}

impl<S, T> Locked<S, T> {
    /// A thread becomes a member. Who comes afterwards finds it; it sees the word of who came before, as that one had
    /// the lock.
    pub(crate) fn join(&mut self, own: T) -> Arc<Member<T>> {
        let busy = Busy::new();
        let member = Arc::new(Member { busy, own });
        self.list.push(member.clone());
        member
    }

    pub(crate) fn remove(&mut self, member: &Arc<Member<T>>) {
        self.list.retain(|other| !Arc::ptr_eq(other, member));
    }
}

impl<T> Member<T> {
    /// Goes out.
    #[inline(always)]
    pub(crate) fn leave(&self) {
        self.busy.leave(0);
    }

    /// Whether it is inside. For who comes, behind the heavy fence.
    pub(crate) fn is_inside(&self) -> bool {
        self.busy.is_taken()
    }
}
