//! Who owns a lock: a [`Bias`] that is given to a thread which has had several turns in a row and met nobody.
//!
//! ```text
//! turns among others   t t t t t t ... | the last of `turns_to_own`: nobody else was there, so the thread owns it
//! the owner            enters and leaves by plain stores
//! somebody comes       the word says so; heavy fence; the owner is waited for; nobody owns it, and the next owner has
//!                      to have twice as many turns
//! ```
//!
//! The threads of a pool or a database are known to nobody, so their [lock](super::ReadersWriter) learns from turns.

use super::{Bias, Busy, Inside, can_fence_all};
use crate::primitive::{AtomicUsize, Mutex, Ordering, limit, locked, thread_number};

/// After so many turns in a row a thread owns the lock, at first.
pub const TURNS_MIN: usize = limit(16, 1);
/// Each time that an owner has to leave they are doubled, up to this.
pub const TURNS_MAX: usize = 1 << 16;

/// In the word: somebody has come. Above it the owner's number, and 1.
const LEAVING: usize = 1;

/// What the word of the bias is where this thread owns a lock.
#[inline]
pub fn own_word() -> usize {
    (thread_number() + 1) << 1
}

/// To whom a lock belongs, if anybody.
#[derive(Debug)]
pub struct Owner {
    /// Its word is 0 if there is no owner.
    bias: Bias,
    /// Held by whoever has the owner leave.
    coming: Mutex<()>,
    /// Turns in a row after which a thread owns it; none is enough where that cannot be.
    turns_to_own: AtomicUsize,
}

/// The last turns, as far as one thread had them and nobody else has come meanwhile.
#[derive(Debug, Default)]
pub struct Turns {
    word: usize,
    length: usize,
    /// How many others had come before the first of them.
    came: u64,
}

impl Owner {
    /// Nobody owns it. With `may_be` somebody may later, if the system has what that needs, which is asked then.
    pub fn new(may_be: bool) -> Self {
        let turns = match may_be {
            true => TURNS_MIN,
            false => usize::MAX,
        };
        Self {
            bias: Bias::new(0),
            coming: Mutex::new(()),
            turns_to_own: AtomicUsize::new(turns),
        }
    }

    /// Goes inside until what this returns is dropped, if this thread owns the lock and nobody comes. For a thread that
    /// is not inside.
    #[inline(always)]
    pub fn try_enter(&self) -> Option<Inside<'_>> {
        self.bias.try_enter(own_word())
    }

    /// The same, until it leaves by [`busy`](Self::busy).
    #[inline(always)]
    pub fn enter(&self) -> bool {
        let own = own_word();
        // ORDER (of threads): what who came before did is seen.
        self.bias.word.load(Ordering::Acquire) == own && self.bias.enter(own)
    }

    /// What [`enter`](Self::enter) began, again as a value that ends it.
    ///
    /// # Safety
    /// This thread is inside by `enter`, and does not leave otherwise.
    #[inline(always)]
    pub unsafe fn entered(&self) -> Inside<'_> {
        self.bias.entered()
    }

    /// Whether this thread owns the lock, also if it is to leave.
    #[inline(always)]
    pub fn is_this_thread(&self) -> bool {
        self.bias.word.load(Ordering::Relaxed) & !LEAVING == own_word()
    }

    /// How deep the owner is inside, for locks that it enters more than once.
    #[inline(always)]
    pub fn busy(&self) -> &Busy {
        &self.bias.busy
    }

    /// Whether anybody owns the lock. For who comes: behind the look at whatever keeps it out while the lock is given.
    #[inline(always)]
    pub fn is_there(&self) -> bool {
        self.word() != 0
    }

    /// The word of the owner, or 0.
    #[inline(always)]
    pub fn word(&self) -> usize {
        self.bias.word.load(Ordering::SeqCst)
    }

    /// Nobody owns the lock when this returns. Not for who is inside.
    #[cold]
    pub fn come(&self) {
        let _one_at_a_time = locked(&self.coming);
        let owner = self.bias.word.load(Ordering::Acquire);
        if owner == 0 {
            return;
        }
        self.bias.word.store(owner | LEAVING, Ordering::SeqCst);
        self.bias.wait_for_holder();
        let turns = self.turns_to_own.load(Ordering::Relaxed);
        let doubled = turns.saturating_mul(2).min(TURNS_MAX);
        self.turns_to_own.store(doubled, Ordering::Relaxed);
        self.bias.word.store(0, Ordering::SeqCst);
    }

    /// A turn among others ends. Whether there were so many in a row, without others, that the thread may own the lock;
    /// `came` says how many others have come so far.
    #[inline]
    pub fn look_back(&self, turns: &mut Turns, came: impl FnOnce() -> u64) -> bool {
        let word = own_word();
        turns.length += 1;
        let is_one_thread = turns.word == word;
        if is_one_thread && turns.length < self.turns_to_own.load(Ordering::Relaxed) {
            return false;
        }
        let came = came();
        let is_alone = is_one_thread && turns.came == came;
        *turns = Turns {
            word,
            length: 0,
            came,
        };
        is_alone && self.may_be_given()
    }

    #[cold]
    fn may_be_given(&self) -> bool {
        let may_be = can_fence_all();
        if !may_be {
            self.turns_to_own.store(usize::MAX, Ordering::Relaxed);
        }
        may_be
    }

    /// This thread owns the lock from here on. For who has it alone, and lets others in behind this.
    #[cold]
    pub fn give(&self) {
        // ORDER (of threads): before others are let in, who look at the word then.
        self.bias.word.store(own_word(), Ordering::SeqCst);
    }
}
