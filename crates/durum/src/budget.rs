//! Private pages of the Shadow engine: how many a store has, and when there are too many.
//!
//! A page counts from when a change of it goes home, or is rolled back, until it is given back. Where memory comes in
//! large pages, a whole one counts from the first change. What a program stores without any transaction is not seen
//! here.

use std::fs;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crossbeam_utils::CachePadded;

use crate::alloc::Puddle;
use crate::mapping::{LARGE_PAGE, PAGE};

/// Pages that one word of a table tells about.
pub(crate) const WORD_PAGES: usize = 64;
/// Words of a table for a large page.
const LARGE_WORDS: usize = LARGE_PAGE / PAGE / WORD_PAGES;

/// What the puddles of a store have together.
#[derive(Debug)]
pub(crate) struct Budget {
    /// Pages that may be kept.
    max: usize,
    now: CachePadded<Now>,
    given_back: AtomicU64,
    puddles: Mutex<Vec<Weak<Puddle>>>,
}

#[derive(Debug)]
struct Now {
    pages: AtomicUsize,
    /// From this many on, some are to be given back.
    due: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(bytes: u64) -> Arc<Self> {
        let max = usize::try_from(bytes / PAGE as u64).unwrap_or(usize::MAX);
        Arc::new(Self {
            max,
            now: CachePadded::new(Now {
                pages: AtomicUsize::new(0),
                due: AtomicUsize::new(due(max)),
            }),
            given_back: AtomicU64::new(0),
            puddles: Mutex::default(),
        })
    }

    /// Whether a thread that has no transaction open should give pages back.
    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.pages() >= self.now.due.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn pages(&self) -> usize {
        self.now.pages.load(Ordering::Relaxed)
    }

    /// Pages that may come before some are given back, with half of the limit left for others.
    pub(crate) fn room(&self) -> usize {
        (self.max / 2).saturating_sub(self.pages())
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// From now on, some are to be given back when there are more than so many.
    pub(crate) fn set_due(&self, pages: usize) {
        self.now.due.store(due(pages), Ordering::Relaxed);
    }

    /// Pages that were given back so far.
    pub(crate) fn given_back(&self) -> u64 {
        self.given_back.load(Ordering::Relaxed)
    }

    pub(crate) fn were_given_back(&self, pages: usize) {
        self.given_back.fetch_add(pages as u64, Ordering::Relaxed);
    }

    pub(crate) fn enter(&self, puddle: &Arc<Puddle>) {
        let mut puddles = self.puddles.lock().unwrap_or_else(PoisonError::into_inner);
        puddles.retain(|puddle| puddle.strong_count() > 0);
        puddles.push(Arc::downgrade(puddle));
    }

    /// The puddles, in the order of their addresses. Some may be unmapped.
    pub(crate) fn puddles(&self) -> Vec<Arc<Puddle>> {
        let puddles = self.puddles.lock().unwrap_or_else(PoisonError::into_inner);
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

/// A quarter of the memory that this process may use: the machine's, or what its control groups allow.
pub(crate) fn default_max() -> u64 {
    // SAFETY: reads a number.
    let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) };
    let machine = u64::try_from(pages).map_or(u64::MAX, |pages| pages.saturating_mul(PAGE as u64));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = group_limit(&groups, |path| fs::read_to_string(path).ok());
    limit.unwrap_or(u64::MAX).min(machine) / 4
}

/// The lowest limit of the memory control groups that `groups` names, in the form of /proc/self/cgroup.
fn group_limit(groups: &str, read: impl Fn(&Path) -> Option<String>) -> Option<u64> {
    let limits = groups.lines().flat_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (base, file) = match fields.next() {
            Some("") => ("/sys/fs/cgroup", "memory.max"),
            Some(names) if names.split(',').any(|name| name == "memory") => {
                ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
            }
            _ => return Vec::new(),
        };
        let group = Path::new(fields.next().unwrap_or("/"));
        // A container may see its own group as the topmost one, whatever its path is outside.
        let places = group.ancestors().filter_map(|group| {
            let group = group.strip_prefix("/").ok()?;
            Some(Path::new(base).join(group).join(file))
        });
        // "max" is no number, and no limit.
        let limits = places.filter_map(|place| read(&place)?.trim().parse::<u64>().ok());
        limits.collect()
    });
    limits.min()
}

/// Which pages of a puddle count.
#[derive(Debug)]
pub(crate) struct Copies {
    budget: Arc<Budget>,
    /// A bit for each page. All of a large page have the same.
    pages: Box<[AtomicU64]>,
    /// A bit for each 2 MiB: these are memory of their own, from which no page can be taken, and not pages copied from
    /// the file.
    large: Box<[AtomicU64]>,
}

impl Copies {
    pub(crate) fn new(budget: Arc<Budget>, size: usize) -> Self {
        let table = |bits: usize| (0..bits.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        Self {
            budget,
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
        let (words, bits) = match self.is_large(unit) {
            true => (unit * LARGE_WORDS..(unit + 1) * LARGE_WORDS, u64::MAX),
            false => (word..word + 1, bit),
        };
        for word in &self.pages[words] {
            let before = word.fetch_or(bits, Ordering::Relaxed);
            let new = (bits & !before).count_ones() as usize;
            self.budget.now.pages.fetch_add(new, Ordering::Relaxed);
        }
    }

    /// These pages count no more.
    pub(crate) fn forget(&self, word: usize, bits: u64) {
        let before = self.pages[word].fetch_and(!bits, Ordering::Relaxed);
        let old = (bits & before).count_ones() as usize;
        self.budget.now.pages.fetch_sub(old, Ordering::Relaxed);
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
    fn each_page_counts_once_and_a_large_one_as_a_whole() {
        let budget = Budget::new(1 << 20);
        assert!(!budget.is_due());
        let copies = Copies::new(budget.clone(), 3 * LARGE_PAGE);
        copies.note(5000);
        copies.note(4096);
        copies.note(LARGE_PAGE - 1);
        assert_eq!(budget.pages(), 2);
        copies.all_are_large();
        copies.note(LARGE_PAGE + 7);
        copies.note(2 * LARGE_PAGE - 1);
        assert_eq!(budget.pages(), 2 + 512);
        assert!(budget.is_due(), "512 pages are above 256");
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
