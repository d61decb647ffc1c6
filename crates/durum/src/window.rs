//! The words that a transaction has announced, and where its thread puts them without a call.
//!
//! Words are what most transactions change. They lie in an array (`Words`): each with what it was, in the order in
//! which they came. Nothing is looked up but the word before. A word that is there twice makes two entries of the
//! record, of the same value; an abort goes through them backwards. When many have come it is seen whether they are the
//! same ones again and again: so counters that are added a thousand times are there a few times.
//!
//! A [`Window`] lies beside the array. It says of which addresses words may be put there as they come, and where the
//! next one goes. So the program's own code announces a word: Rust's, where `Window::add` is inlined, and that of C and
//! C++, whose header has the same steps. Everything else goes the long way: another puddle, an array that is full, what
//! is no word, an engine that keeps no words.
//!
//! The window of the transaction that runs on a thread is known by a variable of the thread, for interfaces that have
//! no closure and for the handler of media errors.

use std::cell::Cell;
use std::ops::Range;
use std::ptr;
use std::rc::Rc;
use std::slice;

use durum_persist::line;
use rustc_hash::FxHashSet;

/// More words than this go to a table of lines.
const WORDS_MAX: usize = 4096;
/// After so many words, and each time that there are twice as many, it is seen whether they repeat.
const WORDS_AT_FIRST: usize = 64;
/// So many of those that came last are looked at.
const LAST: usize = 64;

/// A word of a mapped puddle, and what it was when it was announced. Who looks for pointers in this process's memory is
/// not to find any here, nor where such an array was before it grew.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct AnnouncedWord {
    /// The address divided by 8.
    number: usize,
    /// What the word held, each bit inverted.
    inverted: u64,
}

impl AnnouncedWord {
    #[inline(always)]
    pub(crate) fn new(address: usize, old: u64) -> Self {
        let (number, inverted) = (address / 8, !old);
        Self { number, inverted }
    }

    #[inline(always)]
    pub(crate) fn address(&self) -> usize {
        self.number * 8
    }

    #[inline(always)]
    pub(crate) fn old(&self) -> u64 {
        !self.inverted
    }

    /// Brings back what was kept, in a puddle of this transaction.
    pub(crate) fn restore(&self) {
        // SAFETY: a word that this transaction announced, in a mapped puddle.
        unsafe { line::store_u64(self.address() as *mut u64, self.old()) };
    }
}

/// Of which addresses words are taken, and where the next one goes.
///
/// The header of the C interface has the same layout, and its version in the name of a function of the library
/// (`durum_words_2`): who changes the one changes the other.
#[derive(Debug)]
#[repr(C)]
pub struct Window {
    /// The first address of which words are taken, a multiple of 8.
    pub first: Cell<usize>,
    /// How many are taken from there on; 0: none.
    pub count: Cell<usize>,
    /// Where the next word goes. There is one before it, of which no address is taken if it is the first.
    pub next: Cell<*mut AnnouncedWord>,
    /// Where there is no more room, but for one that is not counted.
    pub end: Cell<*mut AnnouncedWord>,
}

/// So many words are announced together at most.
pub const WORDS_AT_ONCE: usize = 8;

impl Default for Window {
    fn default() -> Self {
        Self::CLOSED
    }
}

impl Window {
    #[expect(
        clippy::declare_interior_mutable_const,
        reason = "a value to begin with"
    )]
    const CLOSED: Window = Window {
        first: Cell::new(0),
        count: Cell::new(0),
        next: Cell::new(ptr::null_mut()),
        end: Cell::new(ptr::null_mut()),
    };

    /// Announces the word at an address, if it is one and is taken.
    ///
    /// # Safety
    /// The window's transaction runs on this thread, and no other thread changes the word until it has ended.
    #[inline(always)]
    pub(crate) unsafe fn add(&self, address: usize) -> bool {
        if self.place_of(address) >= self.count.get() {
            return false;
        }
        let next = self.next.get();
        // SAFETY: there is one before.
        if unsafe { (*next.sub(1)).number } == address / 8 {
            return true;
        }
        if next == self.end.get() {
            return false;
        }
        // SAFETY: there is room, and the word is taken.
        unsafe { take(next, address) };
        // SAFETY: the end was not reached.
        self.next.set(unsafe { next.add(1) });
        true
    }

    /// Announces a few words, [`WORDS_AT_ONCE`] at most, if all of them are and there is room.
    ///
    /// # Safety
    /// As for [`Window::add`].
    #[inline]
    pub(crate) unsafe fn add_words(&self, address: usize, count: usize) -> bool {
        let (place, next) = (self.place_of(address), self.next.get());
        // SAFETY: both are places of the array.
        let room = unsafe { self.end.get().offset_from_unsigned(next) };
        if place >= self.count.get() || self.count.get() - place < count || room < count {
            return false;
        }
        for at in 0..count {
            // SAFETY: there is room, and the word is taken.
            unsafe { take(next.add(at), address + 8 * at) };
        }
        // SAFETY: the end was not passed.
        self.next.set(unsafe { next.add(count) });
        true
    }

    /// Which of the words that may be taken the one at an address is. What is no word lies far behind all.
    #[inline(always)]
    fn place_of(&self, address: usize) -> usize {
        let within = address.wrapping_sub(self.first.get());
        within.rotate_right(8_u32.trailing_zeros())
    }

    /// Whether the array is empty.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        // SAFETY: there is one before.
        unsafe { (*self.next.get().sub(1)).number == 0 }
    }

    /// Takes words of these addresses from now on.
    #[inline(always)]
    pub(crate) fn open(&self, addresses: &Range<usize>) {
        self.first.set(addresses.start);
        self.count.set(addresses.len() / 8);
    }

    /// Takes no words from now on.
    #[inline(always)]
    pub(crate) fn close(&self) {
        self.count.set(0);
    }
}

/// Puts the word at an address, with what it holds, into a place of the array.
///
/// # Safety
/// The place is one; the word lies in a mapped puddle, and nobody changes it.
#[inline(always)]
unsafe fn take(place: *mut AnnouncedWord, address: usize) {
    // SAFETY: as the caller promises. The handler of media errors finds the number before what is read.
    unsafe {
        (&raw mut (*place).number).write_volatile(address / 8);
        (*place).inverted = !(address as *const u64).read_volatile();
    }
}

/// The words, as long as nothing else was announced but fresh objects.
#[derive(Debug)]
pub(crate) struct Words {
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
    pub(crate) fn window(&self) -> &Rc<Window> {
        &self.window
    }

    /// Whether the engine of the transactions to come can do with words; and of which addresses the window may take
    /// them, which it does at once if it `may_be_open`.
    #[inline(always)]
    pub(crate) fn want(&mut self, is_wanted: bool, within: &Range<usize>, may_be_open: bool) {
        if self.is_wanted != is_wanted {
            self.is_wanted = is_wanted;
            self.is_open &= is_wanted;
        }
        self.within = match is_wanted {
            true => within.clone(),
            false => 0..0,
        };
        if self.is_open && may_be_open {
            self.window.open(&self.within);
        }
    }

    /// The window takes no words until it is told of which addresses.
    pub(crate) fn close_window(&mut self) {
        self.within = 0..0;
        self.window.close();
    }

    /// Whether words go here: nothing else was announced but objects.
    #[inline(always)]
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.window.is_empty()
    }

    /// Behind one that is no word.
    #[inline(always)]
    fn first(&self) -> *const AnnouncedWord {
        // SAFETY: the array is never empty.
        unsafe { self.array.as_ptr().add(1) }
    }

    #[inline(always)]
    pub(crate) fn get(&self) -> &[AnnouncedWord] {
        let first = self.first();
        // SAFETY: what lies before the next one was put there.
        unsafe {
            let len = self.window.next.get().offset_from_unsigned(first);
            slice::from_raw_parts(first, len)
        }
    }

    /// Adds a word that holds `old`. Whether there was room.
    #[inline(always)]
    pub(crate) fn insert(&mut self, address: usize, old: u64) -> bool {
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
    pub(crate) fn close(&mut self) -> &[AnnouncedWord] {
        self.is_open = false;
        self.window.close();
        self.get()
    }

    #[inline(always)]
    pub(crate) fn forget(&mut self) {
        self.window.next.set(self.first().cast_mut());
        // SAFETY: the array has room for so many.
        let end = unsafe { self.first().cast_mut().add(WORDS_AT_FIRST) };
        self.window.end.set(end);
    }

    /// For the next transaction.
    #[inline(always)]
    pub(crate) fn clear(&mut self) {
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

/// A window that takes nothing.
struct Closed(Window);

// SAFETY: nobody changes it.
unsafe impl Sync for Closed {}

static CLOSED: Closed = Closed(Window::CLOSED);

/// Which window is a thread's.
#[derive(Debug)]
#[repr(transparent)]
pub struct ThreadWindow(Cell<*const Window>);

thread_local! {
    /// Const and without destructor, so cheap, and safe to touch in a signal handler.
    static OF_THREAD: ThreadWindow = const { ThreadWindow(Cell::new(&raw const CLOSED.0)) };
}

impl ThreadWindow {
    /// This thread's; it stays where it is until the thread has ended.
    pub fn find() -> *const ThreadWindow {
        OF_THREAD.with(ptr::from_ref)
    }

    /// The window of the transaction that runs.
    #[inline(always)]
    pub(crate) fn set(&self, window: &Window) {
        self.0.set(window);
    }

    /// The transaction has ended, if it was this thread's.
    #[inline(always)]
    pub(crate) fn leave(&self, window: &Window) {
        if ptr::eq(self.0.get(), window) {
            self.0.set(&raw const CLOSED.0);
        }
    }
}

/// Whether this thread's transaction may be reading the word at `address` to announce it: it stands in the array where
/// the next one goes, or is one of those behind it. Async-signal-safe.
pub(crate) fn reads(address: usize) -> bool {
    // SAFETY: that of a transaction that runs on this thread, or one that takes nothing.
    let window = unsafe { &*OF_THREAD.with(|of_thread| of_thread.0.get()) };
    // SAFETY: behind the end there is room for one more.
    let next = || unsafe { (*window.next.get()).number };
    window.count.get() > 0 && (address / 8).wrapping_sub(next()) < WORDS_AT_ONCE
}

/// This thread's transaction takes no more words: it goes on in a forked child, where no puddle is mapped.
/// Async-signal-safe.
pub(crate) fn close_in_child() {
    // SAFETY: as in `reads`.
    let window = unsafe { &*OF_THREAD.with(|of_thread| of_thread.0.get()) };
    if !ptr::eq(window, &raw const CLOSED.0) {
        window.close();
    }
}
