//! Which heaps each thread uses at the moment: a word that only it changes, and that whoever closes a heap reads
//! ([`crate::handles`]).

use std::cell::Cell;
use std::ffi::c_char;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use crate::fatal::Location;

/// A thread that looks a heap up, and does not know yet which.
pub(crate) const ANY: u64 = u64::MAX;

/// A thread's words, a bit for each heap. On lines of their own, never freed, and given on to another thread when this
/// one has ended.
#[repr(align(128))]
pub(crate) struct Presence {
    /// Heaps that the function uses in which the thread is, and those that are kept.
    pub(crate) uses: AtomicU64,
    /// Kept behind the end of functions.
    kept: AtomicU64,
    /// Heaps of the thread's explicit transaction.
    transaction: AtomicU64,
    /// Where that began.
    file: AtomicPtr<c_char>,
    line: AtomicU32,
    is_taken: AtomicBool,
    next: AtomicPtr<Presence>,
}

/// The latest of all threads' words; they lead to the others.
static FIRST: AtomicPtr<Presence> = AtomicPtr::new(ptr::null_mut());

thread_local! {
    /// Const and without destructor, so cheap.
    static OWN: Cell<Option<&'static Presence>> = const { Cell::new(None) };
    static LEAVER: Leaver = const { Leaver };
}

/// Gives the thread's words back when it ends.
struct Leaver;

impl Drop for Leaver {
    fn drop(&mut self) {
        if let Some(own) = OWN.take() {
            own.kept.store(0, Ordering::Relaxed);
            own.end();
            own.leave();
            own.is_taken.store(false, Ordering::Release);
        }
    }
}

/// The words of this thread.
#[inline]
pub(crate) fn of_thread() -> &'static Presence {
    match OWN.get() {
        Some(own) => own,
        None => take(),
    }
}

fn all() -> impl Iterator<Item = &'static Presence> {
    // SAFETY: null, or words that are never freed.
    let first = unsafe { FIRST.load(Ordering::Acquire).as_ref() };
    std::iter::successors(first, |one| {
        // SAFETY: the same.
        unsafe { one.next.load(Ordering::Acquire).as_ref() }
    })
}

#[cold]
fn take() -> &'static Presence {
    let free = |one: &&Presence| !one.is_taken.swap(true, Ordering::AcqRel);
    let own = all().find(free).unwrap_or_else(|| {
        let new = Box::leak(Box::new(Presence {
            uses: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            transaction: AtomicU64::new(0),
            file: AtomicPtr::new(ptr::null_mut()),
            line: AtomicU32::new(0),
            is_taken: AtomicBool::new(true),
            next: AtomicPtr::new(ptr::null_mut()),
        }));
        let mut first = FIRST.load(Ordering::Relaxed);
        loop {
            new.next.store(first, Ordering::Relaxed);
            // ORDER (of threads): who closes a heap finds the words: they are on the list before the thread looks
            // anything up, with a fence of both between.
            match FIRST.compare_exchange_weak(first, new, Ordering::SeqCst, Ordering::Relaxed) {
                Ok(_) => return new,
                Err(other) => first = other,
            }
        }
    });
    OWN.set(Some(own));
    // In a destructor behind ours they stay this thread's for good.
    let _ = LEAVER.try_with(|_| ());
    own
}

impl Presence {
    /// The thread leaves a function.
    #[inline]
    pub(crate) fn leave(&self) {
        // ORDER (of threads): what the function did is over for whoever sees this.
        self.uses.store(self.kept(), Ordering::Release);
    }

    #[inline]
    pub(crate) fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    pub(crate) fn keep(&self, heap: u64) {
        let kept = self.kept();
        self.kept.store(kept | heap, Ordering::Relaxed);
    }

    /// A transaction has these heaps.
    pub(crate) fn begin(&self, heaps: u64, at: Location) {
        let known = self.transaction.load(Ordering::Relaxed);
        if known == 0 {
            let (file, line) = at.parts();
            self.file.store(file.cast_mut(), Ordering::Relaxed);
            self.line.store(line, Ordering::Relaxed);
        }
        // ORDER (of threads): before the function ends, whose end releases it.
        self.transaction.store(known | heaps, Ordering::Release);
    }

    fn end(&self) {
        self.transaction.store(0, Ordering::Release);
    }

    /// Where the transaction began.
    pub(crate) fn began(&self) -> Location {
        let file = self.file.load(Ordering::Relaxed);
        // SAFETY: what another `Location` had.
        unsafe { Location::new(file, self.line.load(Ordering::Relaxed)) }
    }
}

/// The thread's transaction has ended.
pub(crate) fn end_transaction() {
    // None where the thread ends, and has given its words back.
    if let Some(own) = OWN.get() {
        own.end();
    }
}

/// What was kept is not used any more.
pub(crate) fn drop_kept() {
    if let Some(own) = OWN.get() {
        own.kept.store(0, Ordering::Relaxed);
    }
}

/// Waits until no other thread uses a heap, which nobody finds any more. `refuse` is called where one is in a
/// transaction on it, and told where that began.
pub(crate) fn wait_for_others(heap: u64, refuse: impl Fn(String)) {
    const SPINS: u32 = 200;
    let own = OWN.get().map(ptr::from_ref);
    for other in all().filter(|other| own != Some(ptr::from_ref(*other))) {
        let mut spins = 0;
        loop {
            // ORDER (of threads): first the function that may have begun the transaction.
            let is_using = other.uses.load(Ordering::Acquire) & heap != 0;
            if other.transaction.load(Ordering::Acquire) & heap != 0 {
                let place = other.began().place();
                refuse(place.map_or_else(String::new, |place| format!(" that began at {place}")));
            }
            if !is_using {
                break;
            }
            spins += 1;
            match spins {
                0..SPINS => std::hint::spin_loop(),
                SPINS.. => std::thread::sleep(Duration::from_micros(100)),
            }
        }
    }
}
