//! Words of a small transaction: an array instead of a table.
//!
//! Each word stands there with what it was, in the order in which they came. Nothing is looked up but a short memory of
//! the words that came last, so that a counter which is added a thousand times is there once or a few times. A word
//! that is there twice makes two entries of the record, of the same value; an abort goes through them backwards.

use durum_persist::line;

/// A word of a mapped puddle, and what it was when it was announced.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnnouncedWord {
    /// The address divided by 8: who looks for pointers in this process's memory is not to find any here.
    number: usize,
    pub(crate) old: u64,
}

impl AnnouncedWord {
    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        self.number * 8
    }

    /// Brings back what was kept, in a puddle of this transaction.
    pub(crate) fn restore(&self) {
        // SAFETY: a word that this transaction announced, in a mapped puddle.
        unsafe { line::store_u64(self.address() as *mut u64, self.old) };
    }
}

/// More words than this go to the table.
const WORDS_MAX: usize = 4096;
/// Places of words that came last, by the lowest bits of their numbers; a power of two.
const LAST: usize = 128;

/// The words, as long as nothing else was announced but fresh objects.
#[derive(Debug)]
pub(super) struct Words {
    words: Vec<AnnouncedWord>,
    /// Where a word may stand: true only if it does.
    last: [u16; LAST],
    /// The engine can do with words.
    is_wanted: bool,
    /// Nothing else was announced.
    is_open: bool,
}

impl Default for Words {
    fn default() -> Self {
        Self {
            words: Vec::with_capacity(64),
            last: [0; LAST],
            is_wanted: false,
            is_open: false,
        }
    }
}

impl Words {
    /// Whether the engine of the transactions to come can do with words.
    #[inline(always)]
    pub(super) fn want(&mut self, is_wanted: bool) {
        if self.is_wanted != is_wanted {
            self.is_wanted = is_wanted;
            self.is_open &= is_wanted;
        }
    }

    /// Whether words go here.
    #[inline(always)]
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    pub(super) fn get(&self) -> &[AnnouncedWord] {
        &self.words
    }

    /// Adds a word that holds `old`. Whether there was room.
    #[inline(always)]
    pub(super) fn insert(&mut self, address: usize, old: u64) -> bool {
        let number = address / 8;
        let last = &mut self.last[number % LAST];
        if (self.words.get(usize::from(*last))).is_some_and(|word| word.number == number) {
            return true;
        }
        if self.words.len() == self.words.capacity() && !grow(&mut self.words) {
            return false;
        }
        *last = self.words.len() as u16;
        self.words.push(AnnouncedWord { number, old });
        true
    }

    /// No more words come here: what else is announced may be about the same bytes.
    pub(super) fn close(&mut self) -> &[AnnouncedWord] {
        self.is_open = false;
        &self.words
    }

    pub(super) fn forget(&mut self) {
        self.words.clear();
    }

    /// For the next transaction.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.words.clear();
        self.is_open = self.is_wanted;
    }
}

#[cold]
#[inline(never)]
fn grow(words: &mut Vec<AnnouncedWord>) -> bool {
    let has_room = words.len() < WORDS_MAX;
    if has_room {
        words.reserve(words.len());
    }
    has_room
}
