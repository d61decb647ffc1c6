//! Transactions: what `#pragma nvl atomic` becomes, and the implicit ones around a single operation.
//!
//! Explicit ones nest, and inner ones become part of the outer one: only the outermost end commits. Counts are settled
//! there ([`crate::pending`]).

use std::cell::{Cell, RefCell};
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicU64, Ordering};

use durum::{Announce, Durability, Engine, Result, Tx};

use crate::dirty::DirtyRanges;
use crate::fatal::{Location, OrFatal, fatal};
use crate::handles::{Guard, Handle, in_no_heap};
use crate::heap::{Counts, Heap};
use crate::locks::{self, Segment};
use crate::pending::PendingCounts;
use crate::presence;
use crate::words::Words;

/// Shadow keeps what fewer bytes held, whatever is said of them.
const CLOBBERED_MIN: usize = 4 << 10;

/// What a clause says of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClauseKind {
    /// The old contents come back unless the transaction commits.
    Backup,
    /// The old contents are not needed.
    Clobber,
    /// Nothing is stored there.
    ReadOnly,
}

impl ClauseKind {
    /// From the numbers of nvl.h; 0 is what no clause says.
    pub(crate) fn from_c(number: i32, at: Location) -> Self {
        match number {
            0 | 1 => Self::Backup,
            2 => Self::Clobber,
            3 => Self::ReadOnly,
            other => fatal!(at, "{other} is no kind of clause"),
        }
    }
}

/// An open level.
struct Level {
    /// The program's `struct __nvl_tx`.
    block: usize,
    /// Where the stack was when it began.
    frame: usize,
    default: ClauseKind,
    /// Those that it may change: named by it, or by a level around it.
    heaps: u64,
    /// Where it began.
    began: Location,
}

/// The thread's transaction.
#[derive(Default)]
pub(crate) struct Running {
    levels: Vec<Level>,
    pub(crate) pending: PendingCounts,
    /// Stores outside of transactions.
    pub(crate) dirty: DirtyRanges,
    /// An inner level was left by a jump: the outermost one cannot commit.
    is_doomed: bool,
    /// Of the outermost level, as long as it is the only one.
    clauses: Vec<(Segment, ClauseKind)>,
    /// Holds locks under this number; 0 as long as it has never wanted one.
    owner: u64,
    /// It may hold some.
    has_locks: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        // The thread ends inside a transaction. durum rolls back what it has of it, if that is still there to be asked.
        if !self.levels.is_empty() {
            self.abort_to(0);
        }
    }
}

thread_local! {
    static RUNNING: RefCell<Running> = RefCell::default();
    /// Levels of explicit transactions. Const and without destructor, so cheap; compiled code reads it.
    static DEPTH: Cell<i32> = const { Cell::new(0) };
    /// The heap that the outermost level began on; cheap, too.
    static FIRST_HEAP: Cell<Option<&'static Heap>> = const { Cell::new(None) };
    /// The largest range that a clause of the innermost level has announced: from where to where. Stores there have
    /// nothing more to tell.
    static NAMED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// Whether an explicit transaction runs on this thread.
#[inline]
pub(crate) fn is_running() -> bool {
    DEPTH.get() > 0
}

/// Whether a clause has announced these bytes.
#[inline]
pub(crate) fn is_named(start: usize, len: usize) -> bool {
    let (from, to) = NAMED.get();
    from <= start && start < to && len <= to - start
}

/// The heap that the thread's explicit transaction began on.
#[inline]
pub(crate) fn first_heap() -> Option<&'static Heap> {
    FIRST_HEAP.get()
}

/// The heap that a store goes to.
#[inline]
pub(crate) fn heap_of(guard: &Guard, slot: usize, at: Location) -> &Heap {
    // Mostly the first heap of the transaction, which stays open as long as that.
    let place = std::ptr::without_provenance(slot);
    let known = first_heap().filter(|heap| heap.pool.holds(place, 1));
    known
        .or_else(|| guard.holding(slot))
        .unwrap_or_else(|| in_no_heap("a store", slot, at))
}

/// Where this thread's depth is.
pub(crate) fn depth_place() -> *mut i32 {
    DEPTH.with(Cell::as_ptr)
}

/// Runs `f` with the thread's transaction.
pub(crate) fn with_running<R>(f: impl FnOnce(&mut Running) -> R) -> R {
    // A destructor of a thread-local that comes after ours has no transaction to take part in.
    let result = RUNNING.try_with(|running| match running.try_borrow_mut() {
        Ok(mut running) => f(&mut running),
        Err(_) => fatal!(
            Location::UNKNOWN,
            "a signal handler or a destructor uses a heap inside of an operation on one"
        ),
    });
    result.unwrap_or_else(|_| {
        fatal!(
            Location::UNKNOWN,
            "a heap is used by a thread that has ended"
        )
    })
}

/// Makes durable what the thread has noted of plain stores.
pub(crate) fn make_dirty_durable(at: Location) {
    with_running(|running| running.dirty.make_durable(at));
}

/// Rolls back the levels above `depth`, which a jump has left.
pub(crate) fn unwind(depth: i32) {
    let depth = usize::try_from(depth).unwrap_or(0);
    with_running(|running| {
        if running.levels.len() > depth {
            running.abort_to(depth);
        }
    });
}

impl Running {
    /// Begins a level.
    pub(crate) fn begin(
        &mut self,
        guard: &Guard,
        block: usize,
        frame: usize,
        default: ClauseKind,
        named: &[*const Handle],
        at: Location,
    ) {
        self.forget_left(block, frame);
        let Some(first) = named.first() else {
            fatal!(at, "a transaction without a heap");
        };
        let mut heaps = self.levels.last().map_or(0, |level| level.heaps);
        let first = guard.heap(*first, at);
        let first_heap = first_heap().unwrap_or(first);
        for handle in named {
            let heap = guard.heap(*handle, at);
            // Copies of a store have its uuid.
            if heap.store.info().client != first_heap.store.info().client {
                fatal!(
                    at,
                    "one transaction over the heaps {first_heap} and {heap}, which are two stores; make the second one in the store of the first: nvl_create(\"{}/NAME\")",
                    first_heap.store.info().path.display()
                );
            }
            heaps |= heap.bit();
        }
        guard.keep_for_transaction(heaps, at);
        // SAFETY: kept until the transaction has ended, and forgotten then.
        let first_heap: &'static Heap = unsafe { &*std::ptr::from_ref(first_heap) };
        begin_level(first_heap, "beginning a transaction", at);
        FIRST_HEAP.set(Some(first_heap));
        self.levels.push(Level {
            block,
            frame,
            default,
            heaps,
            began: at,
        });
        self.depth_changed();
    }

    /// Ends the program if the transaction may not change a heap.
    #[inline]
    pub(crate) fn check_named(&self, heap: &Heap, at: Location) {
        match self.levels.last() {
            Some(level) if level.heaps & heap.bit() == 0 => unnamed(level, heap, at),
            _ => {}
        }
    }

    /// Rolls back levels that are open and cannot be: a jump has left their frames. (Stacks grow downwards, and a level
    /// begins inside those that are open.)
    fn forget_left(&mut self, block: usize, frame: usize) {
        let is_left = |level: &Level| level.frame < frame || level.block == block;
        if let Some(first) = self.levels.iter().position(is_left) {
            self.abort_to(first);
        }
    }

    /// A clause of the innermost level.
    pub(crate) fn clause(
        &mut self,
        guard: &Guard,
        kind: ClauseKind,
        start: usize,
        count: i64,
        size: usize,
        at: Location,
    ) {
        let Ok(count) = usize::try_from(count) else {
            fatal!(at, "a clause names {count} elements");
        };
        let Some(len) = count.checked_mul(size) else {
            fatal!(at, "a clause names {count} elements of {size} bytes");
        };
        if self.levels.is_empty() {
            fatal!(at, "a clause outside of a transaction");
        }
        if start == 0 || len == 0 {
            return;
        }
        let heap = guard
            .holding(start)
            .unwrap_or_else(|| in_no_heap("a clause names memory", start, at));
        let segment = Segment {
            range: start..start + len,
            is_exclusive: kind != ClauseKind::ReadOnly,
        };
        match heap.object(start, at) {
            Some(object) if start + len <= object.data() + object.len() => {}
            Some(object) => fatal!(
                at,
                "a clause names {len} bytes, and its allocation of type {} in heap {heap} has {} from there on",
                object.info.name,
                object.data() + object.len() - start
            ),
            None => fatal!(
                at,
                "a clause names memory at {start:#x} in heap {heap}, where nothing is allocated"
            ),
        }
        if heap.is_concurrent.load(Ordering::Relaxed) {
            self.lock(guard, &segment, at);
        }
        self.announce_clause(heap, &segment, kind, at);
        let (from, to) = NAMED.get();
        if kind != ClauseKind::ReadOnly && len > to - from {
            NAMED.set((start, start + len));
        }
        if self.levels.len() == 1 {
            self.clauses.push((segment, kind));
        }
    }

    /// Locks a segment, waiting for others.
    fn lock(&mut self, guard: &Guard, segment: &Segment, at: Location) {
        if self.owner == 0 {
            static NEXT: AtomicU64 = AtomicU64::new(1);
            self.owner = NEXT.fetch_add(1, Ordering::Relaxed);
        }
        self.has_locks = true;
        if locks::lock(self.owner, segment.clone()).is_ok() {
            return;
        }
        let (1, Some(first_heap)) = (self.levels.len(), first_heap()) else {
            fatal!(
                at,
                "two transactions wait for each other's segments; name this segment in a clause of the outermost transaction, before it has locked others for good"
            );
        };
        // The body has not begun, so nothing was changed. Rolled back before others may change what was announced: that
        // puts its bytes back as they are. SAFETY: the outermost level, begun above.
        let ended = unsafe { Tx::end_level(false) };
        ended.or_fatal(at, "beginning a transaction again");
        locks::unlock(self.owner);
        let others = self.clauses.iter().map(|(other, _)| other);
        let wanted: Vec<Segment> = others.chain([segment]).cloned().collect();
        locks::lock_all(self.owner, &wanted);
        begin_level(first_heap, "beginning a transaction again", at);
        let clauses = std::mem::take(&mut self.clauses);
        for (segment, kind) in &clauses {
            if let Some(heap) = guard.holding(segment.range.start) {
                self.announce_clause(heap, segment, *kind, at);
            }
        }
        self.clauses = clauses;
    }

    fn announce_clause(&self, heap: &Heap, segment: &Segment, kind: ClauseKind, at: Location) {
        if kind != ClauseKind::ReadOnly {
            let (start, len) = (segment.range.start, segment.range.len());
            self.announce(heap, start, len, kind, at);
        }
    }

    /// What stores without a clause of their own do with old contents.
    pub(crate) fn default_kind(&self) -> ClauseKind {
        match self.levels.last() {
            Some(level) if level.default == ClauseKind::Clobber => ClauseKind::Clobber,
            // Backup never harms, also where the program has promised not to store.
            _ => ClauseKind::Backup,
        }
    }

    /// Announces that the program is about to store to a range in the explicit transaction.
    pub(crate) fn announce(
        &self,
        heap: &Heap,
        start: usize,
        len: usize,
        kind: ClauseKind,
        at: Location,
    ) {
        self.check_named(heap, at);
        let doing = "announcing a store in a transaction";
        let target = std::ptr::with_exposed_provenance_mut::<u8>(start);
        if heap.fresh.load(Ordering::Acquire) > 0
            && let Some(object) = heap.object(start, at)
            && object.is_fresh()
            && !self.pending.is_new(object)
        {
            // What was stored there before may not be durable, so nobody can tell by comparison what has to become so.
            // SAFETY: the program stores there next, and no other thread does.
            Tx::with_running(|tx| unsafe {
                if heap.engine() == Engine::Shadow {
                    tx.volatile_bytes(target, len);
                }
                tx.add_contents(target, len)
            })
            .or_fatal(at, doing);
            return;
        }
        // Shadow keeps small ranges anyway. Pointers have to come back with their counts, whatever the clause says.
        let keeps_old = kind != ClauseKind::Clobber
            || len < CLOBBERED_MIN && heap.engine() == Engine::Shadow
            || heap
                .object(start, at)
                .is_none_or(|object| object.info.has_pointers());
        let announce = match keeps_old {
            true => Announce::Backup,
            false => Announce::Clobber,
        };
        // SAFETY: the program stores there next, and no other thread does.
        Tx::with_running(|tx| unsafe { tx.add_bytes(target, len, announce) }).or_fatal(at, doing);
    }

    /// Ends a level; the outermost one commits.
    pub(crate) fn end(&mut self, block: usize, at: Location) {
        let Some(level) = self.levels.iter().rposition(|level| level.block == block) else {
            // Rolled back when a jump left it; the block was entered again by another jump.
            fatal!(at, "a transaction ends that is not open");
        };
        if level + 1 < self.levels.len() {
            self.abort_to(level + 1);
        }
        if level > 0 {
            self.levels.pop();
            self.depth_changed();
            // SAFETY: a level that `begin` began.
            let ended = unsafe { Tx::end_level(true) };
            if !self.is_doomed {
                ended.or_fatal(at, "ending a transaction");
            }
            return;
        }
        if self.is_doomed {
            fatal!(
                at,
                "a transaction cannot commit, because a jump (longjmp) has left one inside it; nothing of it is kept"
            );
        }
        self.commit(at).or_fatal(at, "committing a transaction");
        self.rest(true);
    }

    /// Settles counts and commits.
    fn commit(&mut self, at: Location) -> Result<()> {
        if self.pending.is_empty() {
            // SAFETY: the outermost level, which `begin` began.
            unsafe { Tx::end_level(true) }?;
            return Ok(());
        }
        let heaps = self.pending.heaps();
        // SAFETY: heaps of the running transaction are open.
        let heaps: Vec<&Heap> = heaps.iter().map(|heap| unsafe { &**heap }).collect();
        let mut locked: Vec<MutexGuard<'_, Counts>> =
            heaps.iter().map(|heap| heap.counts()).collect();
        Tx::with_running(|tx| {
            for (heap, counts) in heaps.iter().zip(&mut locked) {
                let mut words = Words::new(tx, heap, counts);
                self.pending.apply(&mut words, at)?;
                words.finish()?;
            }
            Ok(())
        })?;
        // SAFETY: the outermost level, which `begin` began.
        unsafe { Tx::end_level(true) }?;
        // ORDER: only here are the counts unlocked: whoever changes them next builds on what is durable, or comes
        // behind it in the order of commits.
        Ok(())
    }

    /// The outermost level has ended.
    fn rest(&mut self, has_committed: bool) {
        self.levels.clear();
        self.depth_changed();
        self.pending.clear(has_committed);
        self.is_doomed = false;
        self.clauses.clear();
        if std::mem::take(&mut self.has_locks) {
            locks::unlock(self.owner);
        }
        FIRST_HEAP.set(None);
        presence::end_transaction();
    }

    /// Rolls back the levels from number `depth` on.
    fn abort_to(&mut self, depth: usize) {
        while self.levels.len() > depth {
            self.levels.pop();
            // Nothing to end: the thread ends, and durum has rolled back already.
            if Tx::levels() > 0 {
                // SAFETY: a level that `begin` began. An error poisons the store, which the next operation tells.
                let _ = unsafe { Tx::end_level(false) };
            }
        }
        if depth == 0 {
            let made: Vec<_> = self.pending.heaps();
            for heap in made {
                // SAFETY: heaps of a transaction that was running a moment ago are open.
                unsafe { &*heap }.forget_objects();
            }
            self.rest(false);
        } else {
            self.is_doomed = true;
            self.depth_changed();
        }
    }

    /// A level has begun or ended.
    fn depth_changed(&self) {
        DEPTH.set(self.levels.len() as i32);
        NAMED.set((0, 0));
    }
}

/// Begins a level of durum's transaction, which `Tx::end_level` ends.
fn begin_level(heap: &Heap, doing: &str, at: Location) {
    // SAFETY: the levels end in reverse order, and the heap stays open until the outermost one has.
    unsafe { heap.pool.begin_level(Durability::Durable) }.or_fatal(at, doing);
}

/// A heap is to change that the clause of the level does not name.
#[cold]
fn unnamed(level: &Level, heap: &Heap, at: Location) -> ! {
    let began = level.began.place();
    fatal!(
        at,
        "a store to the heap {heap}, and heap(...) of this transaction{} does not name it; add it to the clause, heap(..., h), with its handle",
        began.map_or_else(String::new, |place| format!(", which began at {place},"))
    )
}

/// A transaction around a single operation.
pub(crate) struct ImplicitTx<'c, 't> {
    pub(crate) words: Words<'t>,
    pub(crate) pending: &'c mut PendingCounts,
}

/// Runs `body` as a transaction of its own, outside of explicit ones, with the heap's counts locked.
pub(crate) fn implicit<R>(
    heap: &Heap,
    durability: Durability,
    at: Location,
    body: impl FnOnce(&mut ImplicitTx<'_, '_>) -> Result<R>,
) -> Result<R> {
    with_running(|running| {
        // The transaction before the lock: on Twin it waits for a turn that a thread may have which waits for the lock.
        // SAFETY: ends below, in this function.
        let transaction = unsafe { heap.pool.begin_with(durability)? };
        let mut counts = heap.counts();
        let mut own = ImplicitTx {
            words: Words::new(&transaction, heap, &mut counts),
            pending: &mut running.pending,
        };
        let result = body(&mut own).and_then(|value| {
            own.pending.apply(&mut own.words, at)?;
            own.words.finish()?;
            Ok(value)
        });
        let result = match result {
            Ok(value) => transaction.commit().map(|()| value),
            Err(error) => {
                transaction.abort();
                heap.forget_objects();
                Err(error)
            }
        };
        running.pending.clear(result.is_ok());
        result
    })
}
