//! Private pages of the Shadow engine: how many a store has, and when there are too many.
//!
//! A page counts from when a change of it goes home, or is rolled back, until it is given back. Where memory comes in
//! large pages, a whole one counts from the first change. What a program stores without any transaction is not seen
//! here.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

use super::ahead::{Ahead, LARGE_AHEAD};
use crate::alloc::Puddle;
use crate::mapping::{LARGE_PAGE, PAGE};
use crate::primitive::locked;
use crate::upkeep::Upkeep;

/// Pages that one word of a table tells about.
pub(crate) const WORD_PAGES: usize = 64;
/// Words of a table for a large page.
const LARGE_WORDS: usize = LARGE_PAGE / PAGE / WORD_PAGES;

/// What is kept between rounds of giving pages back.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Pages are being given back until half of the limit is left.
    pub(super) is_under_way: bool,
    /// Nothing before this.
    pub(super) not_before: Option<Instant>,
    /// That is to leave time for other work, and only as long as there is room.
    pub(super) is_rest: bool,
    pub(super) failures: u32,
    /// Where the next round begins.
    pub(super) cursor: usize,
    /// Given back since the cursor was at the beginning.
    pub(super) lap: usize,
    pub(super) has_warned: bool,
    /// What the file holds.
    pub(super) buffer: Vec<u8>,
}

/// What the puddles of a store have together.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Pages that may be kept.
    max: usize,
    /// Its level is the number of pages.
    upkeep: Arc<Upkeep>,
    given_back: AtomicU64,
    puddles: Mutex<Vec<Weak<Puddle>>>,
    ahead: Ahead,
    pub(super) progress: Mutex<Progress>,
}

impl Budget {
    /// `makes_ahead`: a thread makes pages before they are needed.
    pub(crate) fn new(bytes: u64, makes_ahead: bool, upkeep: Arc<Upkeep>) -> Arc<Self> {
        let max = usize::try_from(bytes / PAGE as u64).unwrap_or(usize::MAX);
        upkeep.set_due(due(max));
        Arc::new(Self {
            max,
            upkeep,
            given_back: AtomicU64::new(0),
            puddles: Mutex::default(),
            ahead: Ahead::new(makes_ahead),
            progress: Mutex::default(),
        })
    }

    #[inline]
    pub(crate) fn pages(&self) -> usize {
        self.upkeep.level()
    }

    /// Pages that may come before some are given back, with half of the limit left for others.
    pub(crate) fn room(&self) -> usize {
        (self.max / 2).saturating_sub(self.pages())
    }

    /// Whether there are more than may be kept, or are to be while some are given back.
    pub(crate) fn is_due(&self) -> bool {
        self.upkeep.is_level_due()
    }

    /// Whether a thread was asked to make pages ahead. It has come.
    pub(crate) fn was_asked(&self) -> bool {
        self.upkeep.was_asked()
    }

    /// Whether a thread of the store's has something to make.
    pub(crate) fn has_work(&self) -> bool {
        self.ahead.has_work()
    }

    /// The system gives no thread.
    pub(crate) fn make_nothing_ahead(&self) {
        self.ahead.forget();
    }

    /// Home of a fresh puddle is to be made: how many bytes of it by the caller.
    pub(super) fn leave_home_pages(&self, range: Range<usize>) -> usize {
        let (len, at_once) = (range.len(), self.ahead.want_home(range));
        if at_once < len {
            self.upkeep.ask();
        }
        at_once
    }

    /// For the thread: makes a piece of what is wanted. `is_large` tells whether an address lies in a large page.
    pub(crate) fn make_piece(&self, is_large: impl FnOnce(&Puddle, usize) -> bool) {
        let find = |range: &Range<usize>| {
            let mut puddles = self.puddles().into_iter();
            puddles.find(|puddle| puddle.contains(range.start, range.len()))
        };
        self.ahead.make_piece(find, is_large);
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// From now on, some are to be given back when there are more than so many.
    pub(crate) fn set_due(&self, pages: usize) {
        self.upkeep.set_due(due(pages));
    }

    /// Pages that were given back so far.
    pub(crate) fn given_back(&self) -> u64 {
        self.given_back.load(Ordering::Relaxed)
    }

    pub(crate) fn were_given_back(&self, pages: usize) {
        self.given_back.fetch_add(pages as u64, Ordering::Relaxed);
    }

    pub(crate) fn enter(&self, puddle: &Arc<Puddle>) {
        let mut puddles = locked(&self.puddles);
        puddles.retain(|puddle| puddle.strong_count() > 0);
        puddles.push(Arc::downgrade(puddle));
    }

    /// The puddles, in the order of their addresses. Some may be unmapped.
    pub(crate) fn puddles(&self) -> Vec<Arc<Puddle>> {
        let puddles = locked(&self.puddles);
        let mut found: Vec<_> = puddles.iter().filter_map(Weak::upgrade).collect();
        found.sort_by_key(|puddle| puddle.address);
        found
    }
}

/// One more than may be kept; but without a limit at all pages are given back also before any is known.
fn due(max: usize) -> usize {
    match max {
        0 => 0,
        max => max.saturating_add(1),
    }
}

/// Which pages of a puddle count.
#[derive(Debug)]
pub(crate) struct PrivatePages {
    budget: Arc<Budget>,
    /// Of the puddle.
    address: usize,
    /// A bit for each page. All of a large page have the same.
    pages: Box<[AtomicU64]>,
    /// A bit for each 2 MiB: these are memory of their own, from which no page can be taken, and not pages copied from
    /// the file.
    large: Box<[AtomicU64]>,
}

impl PrivatePages {
    pub(crate) fn new(budget: Arc<Budget>, address: usize, size: usize) -> Self {
        let table = |bits: usize| (0..bits.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self {
            budget,
            address,
            pages: table(size / PAGE),
            large: table(size / LARGE_PAGE),
        }
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The page at this offset has changed.
    #[inline]
    pub(crate) fn note(&self, offset: usize) {
        let page = offset / PAGE;
        if self.pages[page / WORD_PAGES].load(Ordering::Relaxed) >> (page % WORD_PAGES) & 1 == 0 {
            self.note_new(page);
        }
    }

    #[cold]
    fn note_new(&self, page: usize) {
        let (word, bit) = (page / WORD_PAGES, 1 << (page % WORD_PAGES));
        let unit = page / (LARGE_PAGE / PAGE);
        let is_large = self.is_large(unit);
        let (words, bits) = match is_large {
            true => (unit * LARGE_WORDS..(unit + 1) * LARGE_WORDS, u64::MAX),
            false => (word..word + 1, bit),
        };
        let new: usize = words.map(|word| self.count(word, bits)).sum();
        // A pool that is being filled comes to the next ones soon. One that touches a unit here and there does not:
        // what is made ahead does not count, and never is more than what does.
        let is_filled = unit > 0 && self.has_private(unit - 1);
        if new == 0 || !is_large || !is_filled {
            return;
        }
        let end = self.address + self.pages.len() * WORD_PAGES * PAGE;
        let next = self.address + (unit + 1) * LARGE_PAGE;
        let range = next..end.min(next + LARGE_AHEAD * LARGE_PAGE);
        if self.budget.ahead.want_large(range, self.budget.room()) {
            self.budget.upkeep.ask();
        }
    }

    /// Whether pages of these 2 MiB count.
    fn has_private(&self, unit: usize) -> bool {
        let words = unit * LARGE_WORDS..(unit + 1) * LARGE_WORDS;
        let mut words = self.pages[words].iter();
        words.any(|word| word.load(Ordering::Relaxed) != 0)
    }

    /// These pages count from now on: how many did not.
    fn count(&self, word: usize, bits: u64) -> usize {
        let before = self.pages[word].fetch_or(bits, Ordering::Relaxed);
        let new = (bits & !before).count_ones() as usize;
        self.budget.upkeep.raise(new);
        new
    }

    /// These pages count no more.
    pub(crate) fn forget(&self, word: usize, bits: u64) {
        let before = self.pages[word].fetch_and(!bits, Ordering::Relaxed);
        let old = (bits & before).count_ones() as usize;
        self.budget.upkeep.lower(old);
    }

    /// The puddle goes, and every page with it.
    pub(crate) fn forget_all(&self) {
        (0..self.pages.len()).for_each(|word| self.forget(word, u64::MAX));
    }

    pub(crate) fn words(&self) -> usize {
        self.pages.len()
    }

    /// Of 64 pages, those that count.
    pub(crate) fn word(&self, word: usize) -> u64 {
        self.pages[word].load(Ordering::Relaxed)
    }

    pub(crate) fn is_large(&self, unit: usize) -> bool {
        self.large[unit / 64].load(Ordering::Relaxed) >> (unit % 64) & 1 == 1
    }

    /// Whether some of these bytes lie in large pages, by their offsets.
    pub(crate) fn has_large(&self, range: Range<usize>) -> bool {
        (range.start / LARGE_PAGE..range.end.div_ceil(LARGE_PAGE)).any(|unit| self.is_large(unit))
    }

    pub(crate) fn all_are_large(&self) {
        for word in &self.large {
            word.store(u64::MAX, Ordering::Relaxed);
        }
    }

    pub(crate) fn is_small_now(&self, unit: usize) {
        self.large[unit / 64].fetch_and(!(1 << (unit % 64)), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_made_ahead_behind_two_that_follow_each_other() {
        let budget = Budget::new(1 << 30, true, Arc::default());
        let copies = PrivatePages::new(budget.clone(), 0, 8 * LARGE_PAGE);
        copies.all_are_large();
        for unit in [1, 3, 5] {
            copies.note(unit * LARGE_PAGE);
            assert!(!budget.has_work() && !budget.was_asked());
        }
        copies.note(2 * LARGE_PAGE);
        assert!(budget.has_work() && budget.was_asked());
    }

    #[test]
    fn each_page_counts_once_and_a_large_one_as_a_whole() {
        let upkeep = Arc::new(Upkeep::default());
        let budget = Budget::new(1 << 20, false, upkeep.clone());
        assert!(!upkeep.is_due());
        let copies = PrivatePages::new(budget.clone(), 0, 3 * LARGE_PAGE);
        copies.note(5000);
        copies.note(4096);
        copies.note(LARGE_PAGE - 1);
        assert_eq!(budget.pages(), 2);
        copies.all_are_large();
        copies.note(LARGE_PAGE + 7);
        copies.note(2 * LARGE_PAGE - 1);
        assert_eq!(budget.pages(), 2 + 512);
        assert!(upkeep.is_due(), "512 pages are above 256");
        copies.is_small_now(1);
        (LARGE_WORDS..2 * LARGE_WORDS).for_each(|word| copies.forget(word, u64::MAX));
        assert_eq!(budget.pages(), 2);
        copies.note(LARGE_PAGE);
        assert_eq!(budget.pages(), 3);
        // The first large page counted in part.
        copies.note(0);
        assert_eq!(budget.pages(), 513);
        copies.forget_all();
        assert_eq!(budget.pages(), 0);
    }
}
