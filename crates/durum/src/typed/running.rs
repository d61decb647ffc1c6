//! What one thread's transaction on a pool type has gathered, and how it ends.
//!
//! Above the transaction of the untyped core, which knows bytes, this one knows handles. It keeps the *balance of
//! owners*: the number of handles in volatile hands. A handle is counted when it comes there (made, cloned, upgraded,
//! moved out of persistent memory), and no longer when it is dropped or moved into persistent memory. At the end of a
//! transaction, whether it commits or not, the balance has to be zero: otherwise safe code has carried a handle away
//! where no type can see it (a thread-local, a captured mutex, `mem::forget`), and the process ends before anything
//! that it points to does.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{self, NonNull};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::accounts::{Account, Accounts};
use super::binding::{Binding, Open, PoolType, Seat};
use super::counts::Counts;
use super::mutex::LockWord;
use super::psafe::PSafe;
use super::refcell::BorrowWord;
use crate::described::Described;
use crate::error::{Error, Result};
use crate::opened::{Announce, BeforeReuse};
use crate::tx::{Transaction, Tx};

/// An error on its way out of a transaction's body, as the payload of a panic.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) Error);

/// Ends the process: going on would be undefined behaviour. The next opener rolls the pool back.
#[cold]
pub(crate) fn give_up(reason: &str) -> ! {
    eprintln!(
        "durum: {reason}; the process ends here, and the pool will be as its last committed transaction left it (docs/reference/safety.md)"
    );
    std::process::abort()
}

/// The number of a thread, which no other one has or had. The upper bits of a word that holds one say other things.
fn draw_number(numbers: &AtomicU32) -> u32 {
    match numbers.fetch_add(1, Ordering::Relaxed) {
        number if number < 1 << 28 => number,
        _ => give_up("more than 268 million threads have used pools"),
    }
}

/// Something whose contents are to be dropped before the commit.
#[derive(Clone, Copy)]
pub(crate) struct Work {
    pub(crate) address: usize,
    /// Known to `drop`: the number of elements, say.
    pub(crate) extent: usize,
    /// Drops what lies at the address; freed afterwards.
    ///
    /// Counts the owners in it as the transaction's own first, because dropping them will count them off.
    pub(crate) drop: unsafe fn(&Running, usize, usize),
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Work({:#x})", self.address)
    }
}

/// One thread's transaction on one pool type, running or at rest.
#[derive(Debug)]
pub struct Running {
    seat: Seat,
    depth: Cell<u32>,
    tx: Cell<*const Tx>,
    open: Cell<*const Open>,
    /// Of this transaction; no other one in this process has or had it.
    id: Cell<u64>,
    /// Where the ids end that this thread has drawn.
    id_end: Cell<u64>,
    /// Of this thread, as the owner of locks. Never 0, and never used again.
    number: u32,
    /// What has to be done at the end, beyond what the untyped core does: `LOOKS`, `SETTLES`, `HOLDS`, `ABORTS`.
    tasks: Cell<u8>,
    /// What was held until the outcome was durable has been given back.
    has_ended: Cell<bool>,
    failure: RefCell<Option<Error>>,
    balance: Cell<i64>,
    accounts: RefCell<Accounts>,
    /// Ranges that were announced, with their accounts opened, and the id of the transaction that did it.
    recent: [Cell<(u64, u64)>; RECENT],
    works: RefCell<Vec<Work>>,
    /// Words of the cells that were borrowed to be written to.
    written: RefCell<Vec<NonNull<BorrowWord>>>,
    /// Words of the mutexes that are locked until the end.
    locked: RefCell<Vec<NonNull<LockWord>>>,
    pub(crate) counts: RefCell<Counts>,
    set_current: unsafe fn(*const Running),
}

const RECENT: usize = 8;
/// Accounts are open, or cells were written to: the end looks at them.
const LOOKS: u8 = 1;
/// Something was put off, or counted.
const SETTLES: u8 = 2;
/// Something is this transaction's until its outcome is certain: locks, counted objects, the limbo.
const HOLDS: u8 = 4;
/// It is doomed.
const ABORTS: u8 = 8;
/// So many ids a thread draws at a time.
const IDS: u64 = 1 << 20;

/// What a thread has on each pool type.
struct Thread {
    /// The same on all of them, so that threads which wait for each other in several pools are found.
    number: Cell<u32>,
    all: RefCell<Vec<Rc<Running>>>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        for running in self.all.get_mut().drain(..) {
            // SAFETY: null is what it was at first.
            unsafe { (running.set_current)(ptr::null()) };
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
pub(crate) struct Seated<'r>(&'r Running);

impl Drop for Seated<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.0.seat.leave();
    }
}

/// An inner transaction.
#[derive(Debug)]
pub(crate) struct Level<'r>(&'r Running);

impl Drop for Level<'_> {
    fn drop(&mut self) {
        self.0.depth.set(self.0.depth.get() - 1);
    }
}

impl Running {
    /// This thread's, made now.
    #[cold]
    pub(crate) fn of_thread<'a, P: PoolType>() -> Result<&'a Running> {
        static NUMBERS: AtomicU32 = AtomicU32::new(1);
        THREAD
            .try_with(|thread| {
                if thread.number.get() == 0 {
                    thread.number.set(draw_number(&NUMBERS));
                }
                let running = Rc::new(Running {
                    seat: Seat::new(P::binding()),
                    depth: Cell::new(0),
                    tx: Cell::new(ptr::null()),
                    open: Cell::new(ptr::null()),
                    id: Cell::new(0),
                    id_end: Cell::new(0),
                    number: thread.number.get(),
                    tasks: Cell::new(0),
                    has_ended: Cell::new(false),
                    failure: RefCell::new(None),
                    balance: Cell::new(0),
                    accounts: RefCell::default(),
                    recent: [const { Cell::new((0, 0)) }; RECENT],
                    works: RefCell::default(),
                    written: RefCell::default(),
                    locked: RefCell::default(),
                    counts: RefCell::default(),
                    set_current: P::set_current,
                });
                let pointer = ptr::from_ref(&*running);
                thread.all.borrow_mut().push(running);
                // SAFETY: kept until the thread ends.
                unsafe { P::set_current(pointer) };
                // SAFETY: kept until the thread ends, which takes it out of `P` first.
                unsafe { &*pointer }
            })
            .map_err(|_| Error::NoTransaction)
    }

    #[inline(always)]
    pub(crate) fn depth(&self) -> u32 {
        self.depth.get()
    }

    /// The number of this transaction.
    #[inline(always)]
    pub(crate) fn id(&self) -> u64 {
        self.id.get()
    }

    /// The number of this thread.
    #[inline(always)]
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    #[inline(always)]
    pub(crate) fn binding(&self) -> &'static Binding {
        self.seat.binding()
    }

    /// The transaction of the core. Only within this one.
    #[inline(always)]
    pub(crate) fn tx(&self) -> &Tx {
        debug_assert!(self.depth.get() > 0);
        // SAFETY: set by `begin`, and kept by the `Transaction` that `run` has.
        unsafe { &*self.tx.get() }
    }

    /// The open pool. Only within a transaction.
    #[inline(always)]
    pub(crate) fn open(&self) -> &Open {
        debug_assert!(self.depth.get() > 0);
        // SAFETY: set by `begin`, and kept by the seat.
        unsafe { &*self.open.get() }
    }

    #[inline(always)]
    pub(crate) fn sit_down(&self) -> Result<(&Open, Seated<'_>)> {
        let open = self.seat.enter()?;
        Ok((open, Seated(self)))
    }

    #[inline(always)]
    pub(crate) fn begin(&self, transaction: &Transaction<'_>, open: &Open) {
        self.tx.set(&raw const **transaction);
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

    pub(crate) fn deeper(&self) -> Level<'_> {
        self.depth.set(self.depth.get() + 1);
        Level(self)
    }

    /// The transaction can only roll back.
    pub(crate) fn doom(&self) {
        self.note(ABORTS);
    }

    pub(crate) fn is_doomed(&self) -> bool {
        self.tasks.get() & ABORTS != 0
    }

    /// Leaves the transaction's body with an error: it is rolled back and returns that.
    #[cold]
    pub(crate) fn fail(&self, error: Error) -> ! {
        std::panic::resume_unwind(Box::<dyn Any + Send>::from(Box::new(Failure(error))))
    }

    /// Something has failed where nobody can be told. The transaction rolls back, and returns the first such error.
    #[cold]
    pub(crate) fn fail_later(&self, error: Error) {
        self.doom();
        self.failure.borrow_mut().get_or_insert(error);
    }

    /// Whether an address lies where the pool's objects do: not on the stack, not on the volatile heap.
    #[inline(always)]
    pub(crate) fn holds(&self, address: usize) -> bool {
        self.binding().words.hold(address)
    }

    /// Handles have come into volatile hands, or gone.
    #[inline(always)]
    pub(crate) fn gain(&self, owners: i64) {
        self.balance.set(self.balance.get() + owners);
    }

    /// Announces a change of persistent memory to the core.
    #[inline]
    pub(crate) fn announce(&self, address: usize, len: usize) {
        let start = ptr::with_exposed_provenance(address);
        // SAFETY: whoever may write there is alone with it until the transaction has ended: cells of one thread, or
        // locked.
        if let Err(error) = unsafe { self.tx().add_bytes(start, len, Announce::Backup) } {
            self.fail(error);
        }
    }

    #[inline(always)]
    fn note(&self, tasks: u8) {
        self.tasks.set(self.tasks.get() | tasks);
    }

    /// Prepares a value for being changed through `&mut` until the transaction ends: its old contents come back if that
    /// does not commit, and handles that are moved in and out are counted. A value that is not in the pool is nobody's
    /// concern. Whether it is there.
    ///
    /// No reference to the value is to be made before this: counting reads it, and would end the right of a `&mut` to
    /// be used.
    #[inline]
    pub(crate) fn open_to_changes<T: PSafe>(&self, value: *mut T) -> bool {
        // Exposed, because counting reads by address: of the pointers that it may then stand for this one is the last,
        // and stays good.
        let (address, len) = (value.expose_provenance(), size_of::<T>());
        if !self.holds(address) {
            return false;
        }
        self.forget_words::<T>(address, len);
        // Without an account it is not prepared for a type of the same size that has handles. A longer length would be
        // another's tag.
        let fits = len < 1 << 15;
        let tag = address as u64 | (len as u64) << 48 | u64::from(T::OWNERS) << 63;
        let slot = &self.recent[(address >> 4) % RECENT];
        if fits && slot.get() == (tag, self.id.get()) {
            return true;
        }
        self.announce(address, len);
        if T::OWNERS {
            self.open_account::<T>(address, len);
        }
        if fits {
            slot.set((tag, self.id.get()));
        }
        true
    }

    /// The same for values in a row.
    pub(crate) fn open_row_to_changes<T: PSafe>(&self, start: *mut T, len: usize) {
        let (address, bytes) = (start.expose_provenance(), len * size_of::<T>());
        if self.holds(address) {
            self.forget_words::<T>(address, bytes);
            self.announce(address, bytes);
            if T::OWNERS {
                self.open_account::<T>(address, bytes);
            }
        }
    }

    #[inline]
    fn open_account<T: PSafe>(&self, start: usize, bytes: usize) {
        unsafe fn owners<T: PSafe>(start: usize, end: usize) -> i64 {
            let (mut at, mut owners) = (start, 0);
            while at < end {
                // SAFETY: as the account says. One by one: others may hold references to what lies beside.
                owners += unsafe { &*ptr::with_exposed_provenance::<T>(at) }.owners();
                at += size_of::<T>();
            }
            owners
        }
        // Nothing is in no room, and accounts are told apart by where they lie.
        if bytes == 0 {
            return;
        }
        let account = Account {
            start,
            end: start + bytes,
            owners: owners::<T>,
        };
        self.note(LOOKS);
        // SAFETY: the values lie there; before they are moved or freed, `close_accounts` is called.
        if let Some(change) = unsafe { self.accounts.borrow_mut().open(account) } {
            // SAFETY: as above. Counted here, where the type is known: for a handle that is a comparison.
            self.gain(change + unsafe { owners::<T>(start, start + bytes) });
        }
    }

    /// Values in a range are about to be moved or freed: their accounts end.
    #[inline]
    pub(crate) fn close_accounts(&self, start: usize, len: usize) {
        let closed = self.accounts.borrow_mut().close(start, start + len);
        if let Some(change) = closed {
            self.gain(change);
            self.forget_recent();
        }
    }

    /// What was announced may hold other values now: nothing is taken as prepared before.
    fn forget_recent(&self) {
        self.recent.iter().for_each(|slot| slot.set((0, 0)));
    }

    /// The value at `address` goes into volatile hands, and nothing stays there.
    ///
    /// # Safety
    /// There is a value, which nobody uses after this.
    pub(crate) unsafe fn take_out<T: PSafe>(&self, address: usize) -> T {
        if T::OWNERS {
            self.close_accounts(address, size_of::<T>());
        }
        // SAFETY: as the caller promises.
        let value = unsafe { ptr::with_exposed_provenance::<T>(address).read() };
        if T::OWNERS {
            self.gain(value.owners());
        }
        value
    }

    /// A place of `len` bytes with `T`s, or about to have them, is this transaction's alone: no guard lives of the
    /// cells in it. What is left of guards that were forgotten, and of other cells that lay there, says nothing about
    /// the cells that lie there now.
    #[inline]
    pub(crate) fn forget_words<T: PSafe>(&self, address: usize, len: usize) {
        if !T::WORDS {
            return;
        }
        for at in (address..address + len).step_by(size_of::<u64>()) {
            // SAFETY: in the space of the open pool.
            let word: &AtomicU64 = unsafe { self.binding().words.at(at) };
            if word.load(Ordering::Relaxed) != 0 {
                self.forget_word(word);
            }
        }
    }

    #[cold]
    fn forget_word(&self, word: &AtomicU64) {
        // Unlocked at the end, it would be somebody else's by then.
        self.locked
            .borrow_mut()
            .retain(|locked| !ptr::addr_eq(locked.as_ptr(), word));
        word.store(0, Ordering::Relaxed);
    }

    /// Stores a value in memory of the pool where none is, and which is announced or fresh.
    ///
    /// # Safety
    /// The memory may be written to.
    #[inline]
    pub(crate) unsafe fn put_in<T: PSafe>(&self, address: usize, value: T) {
        if T::OWNERS {
            self.gain(-value.owners());
        }
        self.forget_words::<T>(address, size_of::<T>());
        // SAFETY: as the caller promises.
        unsafe { ptr::with_exposed_provenance_mut::<T>(address).write(value) };
    }

    /// Allocates memory of the described type.
    #[inline]
    pub(crate) fn allocate<T: Described>(&self, size: usize, align: usize) -> usize {
        let pool = &self.open().pool;
        let made = pool.ensure_described(T::description()).and_then(|type_id| {
            match size == size_of::<T>() {
                true => self.tx().alloc_lone(pool, type_id, size, align),
                false => self.tx().alloc_bytes(pool, type_id, size, align),
            }
        });
        match made {
            Ok(object) => object.expose_provenance(),
            Err(error) => self.fail(error),
        }
    }

    /// Frees memory whose contents were dropped or moved away.
    pub(crate) fn free(&self, address: usize) {
        // SAFETY: there was one owner, which is gone, or no reference is left.
        if let Err(error) = unsafe {
            self.tx()
                .free(ptr::with_exposed_provenance_mut::<u8>(address))
        } {
            self.fail_later(error);
        }
    }

    /// Drops what lies at an address before the commit, and frees it. From a list, so that long chains do not take the
    /// stack.
    #[inline]
    pub(crate) fn drop_later(&self, work: Work) {
        self.note(SETTLES);
        self.works.borrow_mut().push(work);
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

    /// References to counted objects have come or gone, an object was pinned, or the limbo is held.
    #[inline]
    pub(crate) fn note_counted(&self) {
        self.note(SETTLES | HOLDS);
    }

    #[inline]
    pub(crate) fn has_works(&self) -> bool {
        !self.works.borrow().is_empty()
    }

    /// Drops everything that was put off.
    pub(crate) fn do_works(&self) {
        loop {
            let Some(work) = self.works.borrow_mut().pop() else {
                return;
            };
            // SAFETY: whoever put it off was the last owner.
            unsafe { (work.drop)(self, work.address, work.extent) };
        }
    }

    #[inline]
    fn check_balance(&self) {
        let change = self.accounts.borrow_mut().close_all();
        let balance = self.balance.get() + change;
        if balance != 0 {
            self.give_up_owners(balance);
        }
        self.balance.set(0);
    }

    #[cold]
    fn give_up_owners(&self, balance: i64) -> ! {
        give_up(&format!(
            "{balance} handles to objects of pool {} were carried out of a transaction or forgotten",
            self.binding().name
        ))
    }

    /// What is rolled back must not be borrowed: a reader would see it change.
    fn check_readers(&self) {
        for word in &*self.written.borrow() {
            // SAFETY: words of the open pool.
            if unsafe { word.as_ref() }.has_readers() {
                give_up("a transaction is rolled back while what it changed is borrowed");
            }
        }
    }

    #[inline(always)]
    pub(crate) fn commit(&self, transaction: Transaction<'_>) -> Result<()> {
        if self.tasks.get() == 0 && self.balance.get() == 0 {
            let result = transaction.commit();
            self.depth.set(0);
            return result;
        }
        // Most others write to what is in cells, and do no more.
        if self.tasks.get() > LOOKS || self.open().limbo.len() > 0 {
            return self.commit_more(transaction);
        }
        self.check_balance();
        let result = transaction.commit();
        self.end_of_commit(&result);
        result
    }

    #[inline(never)]
    fn commit_more(&self, transaction: Transaction<'_>) -> Result<()> {
        if self.open().limbo.len() > 0 {
            self.note(SETTLES);
        }
        if self.tasks.get() & SETTLES != 0
            && !self.is_doomed()
            && let Err(panic) = self.settle()
        {
            self.abort(transaction);
            resume_unwind(panic);
        }
        if self.is_doomed() {
            let failure = self.failure.take().unwrap_or(Error::Aborted);
            self.abort(transaction);
            return Err(failure);
        }
        self.check_balance();
        // Settling may have locked and counted more.
        let holds = self.tasks.get() & HOLDS != 0;
        if holds {
            self.end_before_reuse();
        }
        let result = transaction.commit();
        if holds {
            self.end_unless_told(result.is_ok());
        }
        self.end_of_commit(&result);
        result
    }

    #[inline(always)]
    fn end_of_commit(&self, result: &Result<()>) {
        if result.is_err() {
            // It was rolled back.
            self.check_readers();
        }
        self.rest();
    }

    /// Drops what was put off, and adds up what was counted. Where that fails the transaction is doomed.
    ///
    /// # Errors
    /// A panic that is none of ours.
    #[inline(never)]
    fn settle(&self) -> std::thread::Result<()> {
        // What it announces may find no room, and then leaves it as it would leave the body.
        match catch_unwind(AssertUnwindSafe(|| Counts::settle(self))) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => self.fail_later(error),
            Err(panic) => self.fail_later(panic.downcast::<Failure>()?.0),
        }
        Ok(())
    }

    #[inline(never)]
    pub(crate) fn abort(&self, transaction: Transaction<'_>) {
        self.works.borrow_mut().clear();
        self.check_balance();
        self.check_readers();
        self.end_before_reuse();
        transaction.abort();
        self.end_unless_told(false);
        self.failure.take();
        self.rest();
    }

    /// Has [`Running::end`] called by the core as soon as the outcome is certain, and before it gives places back:
    /// their words are others' then.
    fn end_before_reuse(&self) {
        unsafe fn end(running: *const (), committed: bool) {
            // SAFETY: the context is this thread's, whose transaction is about to end.
            unsafe { &*running.cast::<Running>() }.end(committed);
        }
        self.has_ended.set(false);
        self.tx().tell_before_reuse(BeforeReuse {
            context: ptr::from_ref(self).cast(),
            call: end,
        });
    }

    /// Where the core had nothing to do it has told nobody.
    #[inline]
    fn end_unless_told(&self, committed: bool) {
        if !self.has_ended.get() {
            self.tx().tell_nobody();
            self.end(committed);
        }
    }

    /// The transaction is over.
    #[inline]
    fn rest(&self) {
        self.written.borrow_mut().clear();
        self.tasks.set(0);
        self.depth.set(0);
    }

    /// Gives back what was held until the outcome was durable.
    fn end(&self, committed: bool) {
        self.has_ended.set(true);
        self.counts.borrow_mut().end(self, committed);
        for word in self.locked.borrow_mut().drain(..) {
            // SAFETY: words of the open pool, which this thread has locked.
            unsafe { word.as_ref() }.unlock();
        }
    }
}
