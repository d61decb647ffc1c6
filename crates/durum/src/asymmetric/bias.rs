//! A bias: one thread, the *holder*, goes in and out of something by plain stores, until others come.
//!
//! ```text
//! the holder                             who comes
//! 1  busy = 1                            1  the word names somebody else
//! 2  light fence                         2  heavy fence
//! 3  the word is not its own:            3  wait until busy is 0
//!    busy = 0, do as all others
//! ```
//!
//! The processor carries an atomic read-modify-write out when everything before it has left for the cache, and a fence
//! of the media is under way until what was written back is there. So each of them on the way from one commit's fence
//! to the next one's write-backs adds what comes after it to the time that the fence takes. Without any, the next
//! commit is gathered while the fence of the last one is under way: measured, a thousand instructions cost nothing
//! then.
//!
//! Two locks are biased. That of Shadow's checkpoint counts in the word who else is there: 0 is the holder's, and
//! there can be only one. That of readers and a writer has the number of its [`Owner`](super::Owner) there, and gives
//! it to a thread that has met nobody for a while. When a bias is given, and when it is given again, is theirs:
//! Shadow's gets it back as soon as the others have gone, at the cost of an addition, because it knows its members;
//! the threads of a pool or a database are known to nobody, so their lock learns from their turns. So are the ways of
//! all who are not the holder: a flag there, readers' counters here.

use super::{fence_all, light_fence};
use crate::primitive::{AtomicUsize, Ordering, Patience, constructor};

/// Whom something is biased to, and whether that one is inside.
///
/// On one line, or two neighbours: while there is a holder nobody else writes to either.
#[derive(Debug)]
pub struct Bias {
    /// Has the holder's value as long as there is one. What else it has is its user's.
    pub word: AtomicUsize,
    /// Whether the holder is inside.
    pub busy: Busy,
}

/// Whether somebody is inside, and how deep; 0 if not. Only the one who is inside stores to it.
#[derive(Debug)]
pub struct Busy(AtomicUsize);

impl Busy {
    constructor! {
        /// Nobody is.
        pub fn new() -> Self {
            Self(AtomicUsize::new(0))
        }
    }

    /// As the one who is inside sees it, and a guess for others.
    #[inline(always)]
    pub fn depth(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// Goes further in. For the one who is inside.
    #[inline(always)]
    pub fn deepen(&self, depth: usize) {
        self.0.store(depth, Ordering::Relaxed);
    }

    /// Goes back, out at 0. For the one who is inside.
    #[inline(always)]
    pub fn leave(&self, depth: usize) {
        // ORDER (of threads): what was done inside is seen by who finds nobody there.
        self.0.store(depth, Ordering::Release);
    }

    /// Goes inside if nobody is: for those to whom nothing is biased.
    #[inline]
    pub fn try_take(&self) -> bool {
        let taken = self
            .0
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }

    /// Whether somebody is. For who comes, behind the heavy fence.
    pub(super) fn is_taken(&self) -> bool {
        // ORDER (of threads): what was done inside is seen.
        self.0.load(Ordering::Acquire) > 0
    }
}

/// The holder is inside, until this is dropped.
#[derive(Debug)]
pub struct Inside<'b>(&'b Busy);

impl Drop for Inside<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.leave(0);
    }
}

impl Default for Busy {
    fn default() -> Self {
        Self::new()
    }
}

impl Bias {
    constructor! {
        /// With a first value of the word.
        pub fn new(word: usize) -> Self {
            Self {
                word: AtomicUsize::new(word),
                busy: Busy::new(),
            }
        }
    }

    /// Goes inside, unless somebody has come. For the holder, who has seen its own value in the word, and is not
    /// inside. It leaves by [`Busy::leave`].
    #[inline(always)]
    pub fn enter(&self, own: usize) -> bool {
        debug_assert_eq!(self.busy.depth(), 0, "not within what it guards");
        self.busy.deepen(1);
        // ORDER (of threads): busy before the word; the processor's part is done by the fence of who comes.
        light_fence();
        if self.word.load(Ordering::Acquire) == own {
            return true;
        }
        self.busy.leave(0);
        false
    }

    /// Goes inside if the word has the holder's value and nobody comes. For the holder, if there is one.
    #[inline(always)]
    pub fn enter_if(&self, own: usize) -> bool {
        // ORDER (of threads): what the last holder did is seen.
        self.word.load(Ordering::Acquire) == own && self.enter(own)
    }

    /// Goes inside until what this returns is dropped, if the word has the holder's value and nobody comes. For the
    /// holder, if there is one.
    #[inline(always)]
    pub fn try_enter(&self, own: usize) -> Option<Inside<'_>> {
        self.enter_if(own).then(|| self.entered())
    }

    /// The holder, who is inside, leaves when this is dropped.
    #[inline(always)]
    pub(super) fn entered(&self) -> Inside<'_> {
        Inside(&self.busy)
    }

    /// The holder is outside when this returns, and stays there as long as the word is not its own. For who comes, and
    /// has changed the word; only where [`can_fence_all`](super::can_fence_all).
    pub fn wait_for_holder(&self) {
        // ORDER (of threads): a holder that has not seen the word has its busy up by now, for all to see.
        fence_all();
        let patience = Patience::new();
        while self.busy.is_taken() {
            patience.wait();
        }
    }
}
