//! What one thread's transaction on a pool type has gathered.
//!
//! Above the transaction of the untyped core, which knows bytes, this one knows handles. It keeps the *balance of
//! owners*: the number of handles in volatile hands. A handle is counted when it comes there (made, cloned, upgraded,
//! moved out of persistent memory), and no longer when it is dropped or moved into persistent memory. At the end of a
//! transaction, whether it commits or not, the balance has to be zero: otherwise safe code has carried a handle away
//! where no type can see it (a thread-local, a captured mutex, `mem::forget`), and the process ends before anything
//! that it points to does.
//!
//! The data is here. `memory` changes the pool, `counting` and `deferring` keep references, `settle` and `commit` are
//! the end.

mod commit;
mod counting;
mod deferring;
mod memory;
mod settle;

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::binding::{Binding, OpenPool};
use super::borrow_word::BorrowWord;
use super::counts::Counts;
use super::drop_glue::KnownGlue;
use super::lock_word::LockWord;
use super::open_ranges::OpenRanges;
use super::revocable::Reader;
use crate::error::{Error, Result};
use crate::tx::{Transaction, Tx};

/// An error on its way out of a transaction's body, as the payload of a panic.
#[derive(Debug)]
pub(super) struct Failure(pub(super) Error);

/// Ends the process: going on would be undefined behaviour. The next opener rolls the pool back.
#[cold]
pub(super) fn give_up(reason: &str) -> ! {
    eprintln!(
        "durum: {reason}; the process ends here, and the pool will be as its last committed transaction left it (docs/reference/safety.md)"
    );
    std::process::abort()
}

/// Draws the number of a thread. No other thread has or had it, and it leaves the upper bits of a word free.
fn draw_number(numbers: &AtomicU32) -> u32 {
    match numbers.fetch_add(1, Ordering::Relaxed) {
        number if number < 1 << 28 => number,
        _ => give_up("more than 268 million threads have used pools"),
    }
}

/// Something whose contents are to be dropped before the commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct QueuedDrop {
    pub(super) address: usize,
    /// Known to `drop`: the number of elements, say.
    pub(super) extent: usize,
    /// Drops what lies at the address; freed afterwards.
    ///
    /// Counts the owners in it as the transaction's own first, because dropping them will count them off.
    pub(super) drop: unsafe fn(&TypedTx, usize, usize),
}

/// One thread's transaction on one pool type, running or at rest.
#[derive(Debug)]
pub struct TypedTx {
    binding: &'static Binding,
    /// This thread's way to the open pool.
    reader: Reader<'static, OpenPool>,
    depth: Cell<u32>,
    core: Cell<*const Tx>,
    open: Cell<*const OpenPool>,
    /// The number of this transaction. No other transaction of this process has or had it.
    id: Cell<u64>,
    /// This thread has drawn the ids up to this one.
    id_end: Cell<u64>,
    /// The number of this thread, as the owner of locks. It is never 0, and never used again.
    number: u32,
    /// What the end has to do beside what the untyped core does: `LOOKS`, `SETTLES`, `HOLDS`, `ABORTS`.
    tasks: Cell<u8>,
    /// The locks and pins have been given back.
    has_ended: Cell<bool>,
    failure: RefCell<Option<Error>>,
    balance: Cell<i64>,
    open_ranges: RefCell<OpenRanges>,
    /// Ranges that are announced and open, with the id of their transaction.
    recent: [Cell<(u64, u64)>; RECENT],
    queued_drops: RefCell<Vec<QueuedDrop>>,
    /// Words of the cells that were borrowed to be written to.
    written: RefCell<Vec<NonNull<BorrowWord>>>,
    /// Words of the mutexes that are locked until the end.
    locked: RefCell<Vec<NonNull<LockWord>>>,
    counts: RefCell<Counts>,
    known_glue: RefCell<KnownGlue>,
    /// By how many the pool's deferred drops grow when it commits; `None` while the list is not this transaction's.
    deferred_change: Cell<Option<isize>>,
    set_current: unsafe fn(*const TypedTx),
}

const RECENT: usize = 8;
/// Ranges are open, or cells were written to: the end looks at them.
const LOOKS: u8 = 1;
/// Something was put off, or counted.
const SETTLES: u8 = 2;
/// The transaction holds something until its outcome is certain: locks, counted objects, the list of deferred drops.
const HOLDS: u8 = 4;
/// The transaction can only roll back.
const ABORTS: u8 = 8;
/// A thread draws so many ids at a time.
const IDS: u64 = 1 << 20;

/// The transactions of a thread, one for each pool type.
struct Thread {
    /// One number for all pools, so that a deadlock over several pools is found.
    number: Cell<u32>,
    all: RefCell<Vec<Rc<TypedTx>>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        for tx in self.all.get_mut().drain(..) {
            // SAFETY: null is what it was at first.
            unsafe { (tx.set_current)(ptr::null()) };
        }
    }
}

thread_local! {
    static THREAD: Thread = const {
        Thread {
            number: Cell::new(0),
            all: RefCell::new(Vec::new()),
        }
    };
}

/// Takes the thread away from the pool when the transaction is over.
#[derive(Debug)]
pub(super) struct Entered<'r>(&'r TypedTx);

impl Drop for Entered<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.reader.leave();
    }
}

/// An inner transaction.
#[derive(Debug)]
pub(super) struct Level<'r>(&'r TypedTx);

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.0.depth.set(self.0.depth.get() - 1);
    }
}

impl TypedTx {
    /// Makes this thread's transaction on a pool type.
    #[cold]
    pub(super) fn of_thread<'a>(
        binding: &'static Binding,
        set_current: unsafe fn(*const TypedTx),
    ) -> Result<&'a TypedTx> {
        static NUMBERS: AtomicU32 = AtomicU32::new(1);
        THREAD
            .try_with(|thread| {
                if thread.number.get() == 0 {
                    thread.number.set(draw_number(&NUMBERS));
                }
                let tx = Rc::new(TypedTx {
                    binding,
                    reader: binding.open.reader(),
                    depth: Cell::new(0),
                    core: Cell::new(ptr::null()),
                    open: Cell::new(ptr::null()),
                    id: Cell::new(0),
                    id_end: Cell::new(0),
                    number: thread.number.get(),
                    tasks: Cell::new(0),
                    has_ended: Cell::new(false),
                    failure: RefCell::new(None),
                    balance: Cell::new(0),
                    open_ranges: RefCell::default(),
                    recent: [const { Cell::new((0, 0)) }; RECENT],
                    queued_drops: RefCell::default(),
                    written: RefCell::default(),
                    locked: RefCell::default(),
                    counts: RefCell::default(),
                    known_glue: RefCell::default(),
                    deferred_change: Cell::new(None),
                    set_current,
                });
                let pointer = ptr::from_ref(&*tx);
                thread.all.borrow_mut().push(tx);
                // SAFETY: kept until the thread ends.
                unsafe { set_current(pointer) };
                // SAFETY: kept until the thread ends, which unsets it first.
                unsafe { &*pointer }
            })
            .map_err(|_| Error::NoTransaction)
    }

    #[inline(always)]
    pub(super) fn depth(&self) -> u32 {
        self.depth.get()
    }

    /// The number of this transaction.
    #[inline(always)]
    pub(super) fn id(&self) -> u64 {
        self.id.get()
    }

    /// The number of this thread.
    #[inline(always)]
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    #[inline(always)]
    pub(super) fn binding(&self) -> &'static Binding {
        self.binding
    }

    /// The transaction of the untyped core. It exists while this one runs.
    #[inline(always)]
    pub(super) fn core(&self) -> &Tx {
        debug_assert!(self.depth.get() > 0);
        // SAFETY: set by `begin`, and kept by the `Transaction` of `journal::run`.
        unsafe { &*self.core.get() }
    }

    /// The open pool. It is known while a transaction runs.
    #[inline(always)]
    pub(super) fn open(&self) -> &OpenPool {
        debug_assert!(self.depth.get() > 0);
        // SAFETY: set by `begin`, and kept open by `enter`.
        unsafe { &*self.open.get() }
    }

    /// The open pool, and a guard that keeps it open.
    ///
    /// # Errors
    /// `NotOpen`.
    #[inline(always)]
    pub(super) fn enter(&self) -> Result<(&OpenPool, Entered<'_>)> {
        match self.reader.enter() {
            Some(open) => Ok((open, Entered(self))),
            // Made here only: to drop an error that nobody needs takes time.
            None => Err(self.binding.not_open()),
        }
    }

    #[inline(always)]
    pub(super) fn begin(&self, transaction: &Transaction<'_>, open: &OpenPool) {
        self.core.set(&raw const **transaction);
        self.open.set(open);
        let id = self.id.get() + 1;
        if id >= self.id_end.get() {
            self.draw_ids();
        } else {
            self.id.set(id);
        }
        self.depth.set(1);
    }

    #[cold]
    fn draw_ids(&self) {
        static IDS_DRAWN: AtomicU64 = AtomicU64::new(1);
        let id = IDS_DRAWN.fetch_add(1, Ordering::Relaxed) * IDS;
        self.id.set(id);
        self.id_end.set(id + IDS);
    }

    pub(super) fn deeper(&self) -> Level<'_> {
        self.depth.set(self.depth.get() + 1);
        Level(self)
    }

    /// The transaction can only roll back.
    pub(super) fn doom(&self) {
        self.note(ABORTS);
    }

    pub(super) fn is_doomed(&self) -> bool {
        self.tasks.get() & ABORTS != 0
    }

    /// Leaves the transaction's body with an error: it is rolled back and returns that.
    #[cold]
    pub(super) fn fail(&self, error: Error) -> ! {
        std::panic::resume_unwind(Box::<dyn Any + Send>::from(Box::new(Failure(error))))
    }

    /// Something has failed where nobody can be told: the transaction rolls back, and returns the first such error.
    #[cold]
    pub(super) fn fail_later(&self, error: Error) {
        self.doom();
        self.failure.borrow_mut().get_or_insert(error);
    }

    /// Handles have come into volatile hands, or have left them.
    #[inline(always)]
    pub(super) fn gain(&self, owners: i64) {
        self.balance.set(self.balance.get() + owners);
    }

    #[inline(always)]
    fn note(&self, tasks: u8) {
        self.tasks.set(self.tasks.get() | tasks);
    }

    /// Queues a drop, which is run before the commit. Long chains take no stack that way.
    #[inline]
    pub(super) fn queue_drop(&self, queued: QueuedDrop) {
        self.note(SETTLES);
        self.queued_drops.borrow_mut().push(queued);
    }

    /// A cell was borrowed to be written to for the first time.
    #[inline]
    pub(super) fn note_written(&self, word: &BorrowWord) {
        self.note(LOOKS);
        self.written.borrow_mut().push(NonNull::from(word));
    }

    /// A mutex was locked, until the transaction ends.
    #[inline]
    pub(super) fn note_locked(&self, word: &LockWord) {
        self.note(HOLDS);
        self.locked.borrow_mut().push(NonNull::from(word));
    }

    /// References to counted objects have come or gone, an object was pinned, or the list of deferred drops is held.
    #[inline]
    pub(super) fn note_counted(&self) {
        self.note(SETTLES | HOLDS);
    }

    #[inline]
    pub(super) fn has_queued_drops(&self) -> bool {
        !self.queued_drops.borrow().is_empty()
    }

    /// Drops everything that was put off.
    pub(super) fn run_queued_drops(&self) {
        loop {
            let Some(queued) = self.queued_drops.borrow_mut().pop() else {
                return;
            };
            // SAFETY: whoever put it off was the last owner.
            unsafe { (queued.drop)(self, queued.address, queued.extent) };
        }
    }
}
