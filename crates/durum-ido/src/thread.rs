//! What is known of each thread: how many locks it holds, what it has recorded, what it has to make durable.

use std::cell::Cell;
use std::mem::offset_of;
use std::ptr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use durum::primitive::locked;

use durum_format::section::STACK_SIZE_DEFAULT;
use durum_persist::line::LINE;

use crate::fatal::OrFatal;
use crate::held::Held;
use crate::lines::Lines;
use crate::memory;
use crate::reach;
use crate::slots::{self, Slot};
use crate::stack::Stack;
use crate::stats::OpenRegion;

/// A thread. Compiled code reads the first members (docs/reference/ido-ir.md), and passes its address on.
#[derive(Debug, Default)]
#[repr(C)]
pub struct Thread {
    /// How many locks it holds, each as often as it has taken it, and how many regions that no lock guards.
    pub(crate) depth: u32,
    /// 1 while it goes on with what a crash has interrupted.
    pub(crate) is_resuming: u32,
    /// Where the addresses of the store begin.
    store_base: AtomicU64,
    /// How many there are; 0 while none is open.
    store_size: AtomicU64,
    /// How a function is entered that goes on.
    pub(crate) entry: Entry,
    /// Its section has a record.
    pub(crate) is_published: bool,
    /// Something was done since the last record that no other record tells.
    pub(crate) is_stale: bool,
    /// Its section has stored one word, which needs no record.
    pub(crate) is_word: bool,
    /// Others may store where it has stored: that of the last record's region.
    pub(crate) hands_over: bool,
    /// The lock that the last record is without, which is held yet.
    pub(crate) releasing: usize,
    pub(crate) held: Held,
    /// How many regions of `durum_durable_begin` are open.
    pub(crate) unguarded: u32,
    pub(crate) lines: Lines,
    /// The region in which it is.
    pub(crate) region: OpenRegion,
    pub(crate) stack: Stack,
    /// Where it records; none while it has recorded nothing.
    pub(crate) slot: Option<Slot>,
    /// Its stack of before a heap was open, which does not last.
    pub(crate) early: Stack,
    /// The memory of that.
    volatile: Vec<VolatileLine>,
    /// The epoch in which its section has begun to record ([`crate::memory`]).
    under_way: AtomicU64,
}

/// Where the code that resumes puts what it was called with, for the function that it calls.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Entry {
    /// The region's number; 0: the function is called as any other one is.
    pub(crate) region: u32,
    /// The live-ins.
    pub(crate) words: *const u64,
    /// What the region's call has returned.
    result: *const u64,
}

impl Default for Entry {
    fn default() -> Self {
        Self {
            region: 0,
            words: ptr::null(),
            result: ptr::null(),
        }
    }
}

const _: () = assert!(offset_of!(Thread, is_resuming) == 4);
const _: () = assert!(offset_of!(Thread, store_base) == 8 && offset_of!(Thread, store_size) == 16);
const _: () = assert!(offset_of!(Thread, entry) == 24 && offset_of!(Entry, words) == 8);
const _: () = assert!(offset_of!(Entry, result) == 16);

/// The address of a thread that lives.
#[derive(Debug)]
struct Known(*mut Thread);

// SAFETY: what other threads change of it is atomic.
unsafe impl Send for Known {}

/// All threads.
#[derive(Debug)]
struct Threads {
    known: Vec<Known>,
    /// The epoch of the oldest section whose thread has ended in it.
    left_under_way: u64,
}

static THREADS: Mutex<Threads> = Mutex::new(Threads {
    known: Vec::new(),
    left_under_way: memory::IN_NONE,
});

/// Tells all threads where the store lies that is open now, or that none is.
pub(crate) fn tell_of_store() {
    let mut threads = locked(&THREADS);
    // It was in another opening.
    threads.left_under_way = memory::IN_NONE;
    for thread in &threads.known {
        // SAFETY: it lives as long as it is listed; only atomic members are used.
        unsafe { tell(thread.0) };
    }
}

/// # Safety
/// A thread that lives.
unsafe fn tell(thread: *mut Thread) {
    let (base, size) = reach::range();
    // SAFETY: as the caller promises; both are atomic.
    let (store_base, store_size) = unsafe { (&(*thread).store_base, &(*thread).store_size) };
    store_base.store(base as u64, Ordering::Release);
    store_size.store(size as u64, Ordering::Release);
}

/// The epoch of the oldest section that is under way and has recorded something; more than any where there is none.
pub(crate) fn oldest_under_way() -> u64 {
    let threads = locked(&THREADS);
    let epochs = threads.known.iter().map(|thread| {
        // SAFETY: it lives as long as it is listed; the member is atomic.
        unsafe { (*thread.0).under_way.load(Ordering::Acquire) }
    });
    let epochs = epochs.chain([threads.left_under_way]);
    let epochs = epochs.filter(|epoch| *epoch != memory::IN_NONE);
    epochs.min().unwrap_or(u64::MAX)
}

impl Thread {
    /// Its section records for the first time: what the record says is durable, and nothing of the region behind it has
    /// happened yet.
    ///
    /// Whoever frees something that this section uses does so behind that use, so it sees this.
    #[inline]
    pub(crate) fn note_published(&mut self, epoch: u64) {
        self.is_published = true;
        self.under_way.store(epoch, Ordering::Release);
    }

    /// Its section has ended, durably.
    #[inline]
    pub(crate) fn note_ended(&mut self) {
        self.is_published = false;
        self.under_way.store(memory::IN_NONE, Ordering::Release);
        if let Some(slot) = &mut self.slot {
            slot.memory.note_ended();
        }
    }

    /// Sees to it that it has a slot of the heap that is open, and its stack there. Whether it has.
    pub(crate) fn ensure_slot(&mut self) -> bool {
        let opening = reach::opening();
        if let Some(slot) = &self.slot
            && slot.opening == opening
        {
            return true;
        }
        self.find_slot()
    }

    #[cold]
    fn find_slot(&mut self) -> bool {
        // The stack of a heap that was closed is gone.
        self.slot = slots::take().or_fatal("a place for the records of a thread");
        self.stack = match &self.slot {
            Some(slot) => {
                let (base, size) = slot.stack();
                Stack::new(base, size)
            }
            None => Stack::default(),
        };
        self.slot.is_some()
    }

    /// The stack for what it calls next: one that does not last, while no heap is open.
    pub(crate) fn next_stack(&mut self) -> &mut Stack {
        if self.ensure_slot() {
            return &mut self.stack;
        }
        if self.volatile.is_empty() {
            let size = STACK_SIZE_DEFAULT as usize;
            self.volatile = vec![VolatileLine([0; LINE]); size / LINE];
            self.early = Stack::new(self.volatile.as_mut_ptr().expose_provenance(), size);
        }
        &mut self.early
    }

    /// The stack that a place lies on.
    pub(crate) fn stack_of(&mut self, place: usize) -> &mut Stack {
        match self.early.holds(place) {
            true => &mut self.early,
            false => &mut self.stack,
        }
    }
}

/// Memory of a stack that does not last.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct VolatileLine(#[expect(dead_code, reason = "bytes of a program's")] [u8; LINE]);

thread_local! {
    // Without a destructor, so that finding it is one load.
    static CURRENT: Cell<*mut Thread> = const { Cell::new(ptr::null_mut()) };
    static END: End = const { End };
}

/// The calling thread's. The address is the same as long as it runs.
#[inline]
pub(crate) fn current() -> *mut Thread {
    let current = CURRENT.get();
    match current.is_null() {
        true => make(),
        false => current,
    }
}

#[cold]
fn make() -> *mut Thread {
    let thread = Box::into_raw(Box::<Thread>::default());
    CURRENT.set(thread);
    let mut threads = locked(&THREADS);
    // SAFETY: just made.
    unsafe { tell(thread) };
    threads.known.push(Known(thread));
    drop(threads);
    // Where thread-locals are being destroyed, nobody gives it back.
    let _ = END.try_with(|_| ());
    thread
}

/// Gives back what a thread has when it ends.
struct End;

impl Drop for End {
    fn drop(&mut self) {
        let thread = CURRENT.replace(ptr::null_mut());
        if thread.is_null() {
            return;
        }
        let mut threads = locked(&THREADS);
        threads.known.retain(|known| known.0 != thread);
        // SAFETY: made by `make`, and nobody else's.
        let mut thread = unsafe { Box::from_raw(thread) };
        // In a section it can never end now, and its locks stay taken. The next opening goes on with it.
        let left = thread.under_way.load(Ordering::Relaxed);
        if left != memory::IN_NONE
            && (threads.left_under_way == memory::IN_NONE || threads.left_under_way > left)
        {
            threads.left_under_way = left;
        }
        drop(threads);
        // The slot of an interrupted thread goes with its puddle.
        if thread.depth == 0
            && thread.is_resuming == 0
            && let Some(slot) = thread.slot.take()
        {
            slots::give_back(slot);
        }
    }
}
