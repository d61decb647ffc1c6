//! Words of a small transaction: an array instead of a table.
//!
//! Each word stands there with what it was, in the order in which they came. Nothing is looked up but the word before.
//! A word that is there twice makes two entries of the record, of the same value; an abort goes through them backwards.
//! When many have come it is seen whether they are the same ones again and again: so counters that are added a thousand
//! times are there a few times.
//!
//! Where the program's own code may put words there the [`Window`] says.

use std::ops::Range;
use std::rc::Rc;
use std::slice;

use durum_persist::line::is_recorded;
use rustc_hash::FxHashSet;

use crate::fault::failed_or_forked;
use crate::window::{AnnouncedWord, Window};

/// More words than this go to the table.
const WORDS_MAX: usize = 4096;
/// After so many words, and each time that there are twice as many, it is seen whether they repeat.
const WORDS_AT_FIRST: usize = 64;
/// So many of those that came last are looked at.
const LAST: usize = 64;

/// Whether windows may take words: nobody records what is stored, and all that is mapped can be read.
#[inline(always)]
pub(crate) fn may_be_open() -> bool {
    !is_recorded() && !failed_or_forked()
}

/// The words, as long as nothing else was announced but fresh objects.
#[derive(Debug)]
pub(super) struct Words {
    array: Box<[AnnouncedWord]>,
    window: Rc<Window>,
    /// Of which addresses the window takes words, while it takes any.
    within: Range<usize>,
    /// The engine can do with words.
    is_wanted: bool,
    /// Nothing else was announced.
    is_open: bool,
}

impl Default for Words {
    fn default() -> Self {
        let mut words = Self {
            array: Box::default(),
            window: Rc::default(),
            within: 0..0,
            is_wanted: false,
            is_open: false,
        };
        words.set_room(0, WORDS_AT_FIRST);
        words
    }
}

impl Words {
    pub(super) fn window(&self) -> &Rc<Window> {
        &self.window
    }

    /// Whether the engine of the transactions to come can do with words; and of which addresses the window may take
    /// them.
    #[inline(always)]
    pub(super) fn want(&mut self, is_wanted: bool, within: &Range<usize>) {
        if self.is_wanted != is_wanted {
            self.is_wanted = is_wanted;
            self.is_open &= is_wanted;
        }
        self.within = match is_wanted {
            true => within.clone(),
            false => 0..0,
        };
        if self.is_open && may_be_open() {
            self.window.open(&self.within);
        }
    }

    /// The window takes no words until it is told of which addresses.
    pub(super) fn close_window(&mut self) {
        self.within = 0..0;
        self.window.close();
    }

    /// Whether words go here.
    #[inline(always)]
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    /// Behind one that is no word.
    #[inline(always)]
    fn first(&self) -> *const AnnouncedWord {
        // SAFETY: the array is never empty.
        unsafe { self.array.as_ptr().add(1) }
    }

    #[inline(always)]
    pub(super) fn get(&self) -> &[AnnouncedWord] {
        let first = self.first();
        // SAFETY: what lies before the next one was put there.
        unsafe {
            let len = self.window.next.get().offset_from_unsigned(first);
            slice::from_raw_parts(first, len)
        }
    }

    /// Adds a word that holds `old`. Whether there was room.
    #[inline(always)]
    pub(super) fn insert(&mut self, address: usize, old: u64) -> bool {
        let next = self.window.next.get();
        // SAFETY: there is one before.
        if unsafe { (*next.sub(1)).address() } == address {
            return true;
        }
        if next == self.window.end.get() && !self.make_room() {
            return false;
        }
        let next = self.window.next.get();
        // SAFETY: the end was not reached.
        unsafe {
            next.write(AnnouncedWord::new(address, old));
            self.window.next.set(next.add(1));
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self) -> bool {
        if repeats(self.get()) {
            self.forget_repeated();
        }
        let len = self.get().len();
        let room = (2 * len).clamp(WORDS_AT_FIRST, WORDS_MAX);
        if len == room {
            return false;
        }
        self.set_room(len, room);
        true
    }

    /// Leaves of each word what came first.
    fn forget_repeated(&mut self) {
        let mut known = FxHashSet::default();
        let mut words = self.get().to_vec();
        words.retain(|word| known.insert(word.address()));
        self.array[1..=words.len()].copy_from_slice(&words);
        self.set_room(words.len(), words.len());
    }

    /// Keeps the first `len` words, with room for so many in all; one more before them and one behind.
    fn set_room(&mut self, len: usize, room: usize) {
        if self.array.len() < room + 2 {
            let mut array = vec![AnnouncedWord::new(0, 0); room + 2];
            let kept = self.array.get(..=len).unwrap_or_default();
            array[..kept.len()].copy_from_slice(kept);
            self.array = array.into();
        }
        // SAFETY: all of these lie in the array.
        unsafe {
            let first = self.array.as_mut_ptr().add(1);
            self.window.next.set(first.add(len));
            self.window.end.set(first.add(room));
        }
    }

    /// No more words come here: what else is announced may be about the same bytes.
    pub(super) fn close(&mut self) -> &[AnnouncedWord] {
        self.is_open = false;
        self.window.close();
        self.get()
    }

    #[inline(always)]
    pub(super) fn forget(&mut self) {
        self.window.next.set(self.first().cast_mut());
        // SAFETY: the array has room for so many.
        let end = unsafe { self.first().cast_mut().add(WORDS_AT_FIRST) };
        self.window.end.set(end);
    }

    /// For the next transaction.
    #[inline(always)]
    pub(super) fn clear(&mut self) {
        self.forget();
        self.is_open = self.is_wanted;
        // The next one looks whether it may be open when it begins.
        self.window.open(&self.within);
    }
}

/// Whether the words that came last are few that come again and again.
fn repeats(words: &[AnnouncedWord]) -> bool {
    let last = &words[words.len().saturating_sub(LAST)..];
    let mut seen = [0; 2 * LAST];
    let again = last.iter().filter(|word| {
        let address = word.address();
        let place = &mut seen[address / 8 % (2 * LAST)];
        std::mem::replace(place, address) == address
    });
    again.count() >= LAST / 2
}
