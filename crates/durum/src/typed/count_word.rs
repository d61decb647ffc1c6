//! The word of a counted object that threads share: who is about to commit its counts, who has pinned it, and the
//! number that a `VWeak` knows it by.
//!
//! ```text
//! 63      62     61      48 47           0
//! locked  known  pins       number
//! ```
//!
//! A transaction *locks* the objects whose counts it commits until the new counts are durable. A transaction that makes
//! a strong reference of a weak one *pins* the object until its end, and looks at the counts only after that: from then
//! on no commit takes the last reference away. `tests/loom` tries all interleavings of both.

use crate::primitive::{AtomicU64, Ordering};

const LOCKED: u64 = 1 << 63;
/// The word is that of a counted object.
const KNOWN: u64 = 1 << 62;
const PIN: u64 = 1 << 48;
const PINS: u64 = KNOWN - PIN;
/// The largest number.
pub(super) const NUMBER_MAX: u64 = PIN - 1;

#[repr(transparent)]
#[derive(Debug, Default)]
pub(super) struct CountWord(AtomicU64);

/// What of a word is a transaction's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held(u64);

impl Held {
    pub(super) fn is_locked(self) -> bool {
        self.0 & LOCKED != 0
    }

    pub(super) fn is_pinned(self) -> bool {
        self.0 & PIN != 0
    }

    pub(super) fn is_nothing(self) -> bool {
        self.0 == 0
    }

    pub(super) fn note_locked(&mut self) {
        self.0 |= LOCKED;
    }

    pub(super) fn note_pinned(&mut self) {
        self.0 |= PIN;
    }
}

/// More transactions have pinned an object than its word can count.
#[derive(Debug)]
pub(super) struct TooManyPins;

/// What a word said before its object was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Taken(u64);

impl CountWord {
    /// The object was just allocated. What the word says of an earlier one in its place is forgotten.
    pub(super) fn begin(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// The number that the object is known by.
    #[inline]
    pub(super) fn number(&self) -> Option<u64> {
        match self.0.load(Ordering::Relaxed) & NUMBER_MAX {
            0 => None,
            number => Some(number),
        }
    }

    /// Gives the object a number, unless another thread was faster. The number that it has.
    pub(super) fn name(&self, number: u64) -> u64 {
        let with_number = |old: u64| (old & NUMBER_MAX == 0).then_some(old | KNOWN | number);
        let named = self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Relaxed, with_number);
        named.map_or_else(|old| old & NUMBER_MAX, |_| number)
    }

    /// Whether this is the object of that number still.
    #[inline]
    pub(super) fn is_named(&self, number: u64) -> bool {
        has_name(self.0.load(Ordering::Relaxed), number)
    }

    /// Locks it, unless it is locked.
    pub(super) fn try_lock(&self) -> bool {
        let locked = |old: u64| (old & LOCKED == 0).then_some(old | LOCKED | KNOWN);
        // ORDER (of threads): the counts are read after this.
        self.0
            .fetch_update(Ordering::Acquire, Ordering::Relaxed, locked)
            .is_ok()
    }

    /// Whether another transaction than the one with `held` has locked or pinned it.
    pub(super) fn is_held_by_others(&self, held: Held) -> bool {
        self.0.load(Ordering::Acquire) & (LOCKED | PINS) != held.0
    }

    /// Whether anybody else has pinned it; for who has it locked. Then the last references must stay: whoever pins it
    /// may be about to look at the counts.
    pub(super) fn is_pinned_by_others(&self, held: Held) -> bool {
        self.0.load(Ordering::Acquire) & PINS != held.0 & PIN
    }

    /// Pins the object if it has references by `strong`; waits while others commit its counts. Not if it is expected to
    /// have a number that it has not.
    #[inline]
    pub(super) fn pin_alive(
        &self,
        expected: Option<u64>,
        strong: impl Fn() -> u64,
        mut wait: impl FnMut(),
    ) -> Result<bool, TooManyPins> {
        loop {
            if !self.pin(expected, &mut wait)? {
                return Ok(false);
            }
            let is_alive = strong() > 0;
            let is_settled = self.0.load(Ordering::Acquire) & LOCKED == 0;
            if is_settled && is_alive {
                return Ok(true);
            }
            // What was seen may be about to be committed, or not. Who has it locked may wait for the pin.
            self.0.fetch_sub(PIN, Ordering::Release);
            if is_settled {
                return Ok(false);
            }
            wait();
        }
    }

    #[inline]
    fn pin(&self, expected: Option<u64>, wait: &mut impl FnMut()) -> Result<bool, TooManyPins> {
        loop {
            let old = self.0.load(Ordering::Acquire);
            if expected.is_some_and(|number| !has_name(old, number)) {
                return Ok(false);
            }
            if old & LOCKED != 0 {
                wait();
                continue;
            }
            if old & PINS == PINS {
                return Err(TooManyPins);
            }
            let pinned = (old | KNOWN) + PIN;
            if self
                .0
                .compare_exchange_weak(old, pinned, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return Ok(true);
            }
        }
    }

    /// The object is freed, if the transaction commits: no weak pointer finds it any more.
    pub(super) fn take(&self) -> Taken {
        Taken(self.0.swap(0, Ordering::AcqRel))
    }

    /// The transaction does not commit.
    pub(super) fn put_back(&self, taken: Taken) {
        self.0.store(taken.0, Ordering::Release);
    }

    /// The object was allocated by a transaction that is rolled back. Others pin it for a moment only, to find that it
    /// has no references: taken from under them it would be unpinned as something else.
    pub(super) fn take_unpinned(&self, held: Held, mut wait: impl FnMut()) {
        let without_others = |old: u64| (old & PINS == held.0 & PIN).then_some(0);
        while self
            .0
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, without_others)
            .is_err()
        {
            wait();
        }
    }

    /// Gives lock and pin back.
    pub(super) fn release(&self, held: Held) {
        // ORDER (of threads): the counts are seen by whoever locks or pins the object next.
        self.0.fetch_sub(held.0, Ordering::Release);
    }
}

fn has_name(word: u64, number: u64) -> bool {
    word & (KNOWN | NUMBER_MAX) == KNOWN | number
}
