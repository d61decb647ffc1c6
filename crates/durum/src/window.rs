//! Where a thread's running transaction takes words without a call.
//!
//! A [`Window`] lies beside the array of words that a transaction has announced (`announced/words.rs`). It says of
//! which addresses words may be put there as they come, and where the next one goes. So the program's own code
//! announces a word: Rust's, where `Window::add` is inlined, and that of C and C++, whose header has the same steps.
//! Everything else goes the long way: another puddle, an array that is full, what is no word, an engine that keeps no
//! words.
//!
//! The window of the transaction that runs on a thread is known by a variable of the thread, for interfaces that have
//! no closure and for the handler of media errors.

use std::cell::Cell;
use std::ops::Range;
use std::ptr;

use durum_persist::line;

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
