//! Which heaps each thread uses, and how whoever closes one waits for them. What there is of heaps, threads and
//! messages is in [`handles`](crate::handles) and [`presence`](crate::presence); here is what `tests/loom` tries.
//!
//! ```text
//! look up                            close
//! 1  own word: in any heap           1  the table forgets the heap
//! 2  light fence                     2  heavy fence ([`asymmetric`])
//! 3  read the table                  3  wait until no word has the heap; a transaction that has it ends the program
//! 4  own word: in this heap
//! ```
//!
//! So never do both go on: the heavy fence falls behind step 1 of a thread, then the closer sees its word, or before,
//! then the thread reads a table without the heap.
//!
//! The members of a gate are not like this. A word here is a mask: a thread may be in several heaps, and who closes one
//! does not wait for those in others. It goes from "any" to what was found, which no flag of a member does. And words
//! are never freed, nor is the list of them locked: destructors of a thread that come behind ours call the runtime,
//! too, and a forked child might find a lock held by a thread that is not there.

use std::ffi::c_char;
use std::ptr;
use std::time::Duration;

use crate::asymmetric;
use crate::primitive::{
    AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, constructor, fence, limit,
    relax, sleep,
};

/// A thread that looks a heap up, and does not know yet which.
const ANY: u64 = u64::MAX;

/// A heap's place in the table.
pub(crate) struct Place<H> {
    /// 0: none is open here.
    handle: AtomicUsize,
    /// The key of its pool, or 0.
    pool: AtomicU64,
    heap: AtomicPtr<H>,
}

impl<H> Place<H> {
    constructor! {
        pub(crate) fn new() -> Self {
            Self {
                handle: AtomicUsize::new(0),
                pool: AtomicU64::new(0),
                heap: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }

    /// For who holds the lock of opening and closing.
    pub(crate) fn is_free(&self) -> bool {
        self.handle.load(Ordering::Relaxed) == 0
    }

    /// Lets others find a heap.
    pub(crate) fn publish(&self, handle: usize, pool: u64, heap: *mut H) {
        // ORDER (of threads): who finds the handle or the pool finds the heap.
        self.heap.store(heap, Ordering::Release);
        self.pool.store(pool, Ordering::Release);
        self.handle.store(handle, Ordering::Release);
    }

    /// Lets nobody find it any more: step 1 of who closes.
    pub(crate) fn hide(&self) {
        self.handle.store(0, Ordering::SeqCst);
        self.pool.store(0, Ordering::SeqCst);
    }

    /// When nobody uses it.
    pub(crate) fn clear(&self) {
        self.heap.store(ptr::null_mut(), Ordering::Release);
    }

    #[inline]
    pub(crate) fn has_handle(&self, handle: usize) -> bool {
        self.handle.load(Ordering::Acquire) == handle
    }

    #[inline]
    pub(crate) fn has_pool(&self, pool: u64) -> bool {
        self.pool.load(Ordering::Acquire) == pool
    }

    #[inline]
    pub(crate) fn heap(&self) -> *mut H {
        self.heap.load(Ordering::Acquire)
    }
}

/// A thread's words, a bit for each heap. On lines of their own, never freed, and given on to another thread when this
/// one has ended.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Presence {
    /// Heaps that the function uses in which the thread is, and those that are kept.
    uses: AtomicU64,
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

/// The words of all threads.
pub(crate) struct PresenceList {
    /// The latest; they lead to the others.
    first: AtomicPtr<Presence>,
}

impl PresenceList {
    constructor! {
        pub(crate) fn new() -> Self {
            Self {
                first: AtomicPtr::new(ptr::null_mut()),
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = &'static Presence> + use<> {
        // SAFETY: null, or words that are never freed.
        let first = unsafe { self.first.load(Ordering::Acquire).as_ref() };
        std::iter::successors(first, |one| {
            // SAFETY: null, or words that are never freed.
            unsafe { one.next.load(Ordering::Acquire).as_ref() }
        })
    }

    /// Words for a thread that has none.
    pub(crate) fn take(&self) -> &'static Presence {
        let free = |one: &&Presence| !one.is_taken.swap(true, Ordering::AcqRel);
        self.all().find(free).unwrap_or_else(|| {
            let new = Box::leak(Box::new(Presence {
                is_taken: AtomicBool::new(true),
                ..Presence::default()
            }));
            let mut first = self.first.load(Ordering::Relaxed);
            loop {
                new.next.store(first, Ordering::Relaxed);
                // ORDER (of threads): who closes a heap finds the words: they are on the list before the thread looks
                // anything up, with a fence of both between.
                let linked = self.first.compare_exchange_weak(
                    first,
                    new,
                    Ordering::SeqCst,
                    Ordering::Relaxed,
                );
                match linked {
                    Ok(_) => return new,
                    Err(other) => first = other,
                }
            }
        })
    }

    /// Waits until no other thread uses a heap, which is hidden. `refuse` is called where one is in a transaction on
    /// it. Looking up makes a fence of its own where `is_fenced`.
    pub(crate) fn wait_for_others(
        &self,
        own: Option<&Presence>,
        heap: u64,
        is_fenced: bool,
        refuse: impl Fn(&Presence),
    ) {
        const SPINS: usize = limit(200, 1);
        // ORDER (of threads): the table without the heap before the words are read.
        match is_fenced {
            true => fence(Ordering::SeqCst),
            false => asymmetric::fence_all(),
        }
        let own = own.map(ptr::from_ref);
        for other in self.all().filter(|it| own != Some(ptr::from_ref(*it))) {
            let mut spins = 0;
            loop {
                // ORDER (of threads): first the function that may have begun the transaction.
                let is_using = other.uses.load(Ordering::Acquire) & heap != 0;
                if other.transaction.load(Ordering::Acquire) & heap != 0 {
                    refuse(other);
                }
                if !is_using {
                    break;
                }
                spins += 1;
                match spins < SPINS {
                    true => relax(),
                    false => sleep(Duration::from_micros(100)),
                }
            }
        }
    }
}

impl Presence {
    /// Before the table is read. Makes a fence of its own where `is_fenced`.
    #[inline]
    pub(crate) fn announce(&self, is_fenced: bool) {
        self.uses.store(ANY, Ordering::Relaxed);
        // ORDER (of threads): the word before the table; the processor's part is done by the membarrier of who closes.
        match is_fenced {
            true => fence(Ordering::SeqCst),
            false => asymmetric::light_fence(),
        }
    }

    /// The function uses these heaps.
    #[inline]
    pub(crate) fn only(&self, heaps: u64) {
        // ORDER (of threads): what was found is not read behind the end of the function, where the word is taken back.
        self.uses.store(self.kept() | heaps, Ordering::Release);
    }

    /// The thread leaves a function.
    #[inline]
    pub(crate) fn leave(&self) {
        // ORDER (of threads): what the function did is over for whoever sees this.
        self.uses.store(self.kept(), Ordering::Release);
    }

    #[inline]
    fn kept(&self) -> u64 {
        self.kept.load(Ordering::Relaxed)
    }

    /// Keeps a heap behind the end of functions.
    pub(crate) fn keep(&self, heap: u64) {
        let kept = self.kept();
        self.kept.store(kept | heap, Ordering::Relaxed);
    }

    /// What was kept is not used any more.
    pub(crate) fn drop_kept(&self) {
        self.kept.store(0, Ordering::Relaxed);
    }

    /// A transaction has these heaps; where it begins, if it does.
    pub(crate) fn begin(&self, heaps: u64, place: (*const c_char, u32)) {
        let known = self.transaction.load(Ordering::Relaxed);
        if known == 0 {
            let (file, line) = place;
            self.file.store(file.cast_mut(), Ordering::Relaxed);
            self.line.store(line, Ordering::Relaxed);
        }
        // ORDER (of threads): before the function ends, whose end releases it.
        self.transaction.store(known | heaps, Ordering::Release);
    }

    /// The transaction has ended.
    pub(crate) fn end(&self) {
        self.transaction.store(0, Ordering::Release);
    }

    /// Where the transaction began.
    pub(crate) fn began(&self) -> (*const c_char, u32) {
        let file = self.file.load(Ordering::Relaxed);
        (file, self.line.load(Ordering::Relaxed))
    }

    /// The thread has ended: another one may have the words.
    pub(crate) fn give_back(&self) {
        self.drop_kept();
        self.end();
        self.leave();
        self.is_taken.store(false, Ordering::Release);
    }
}
