//! What an engine is (how announced ranges become durable all at once), and what it works on: an open pool, and what a
//! transaction has gathered.

use std::any::{Any, TypeId};
use std::fmt::{self, Debug};
use std::ops::{Deref, Range};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use durum_format::Uuid;
use durum_service::EngineKind;

use super::frontier::Frontier;
use super::store::{SharedBias, StoreInner};
use super::tie::Tie;
use crate::addresses::Beside;
use crate::alloc::{Allocation, BitChange, Bitmap, PoolHeap, Puddle, ThreadCache};
use crate::announced::Announced;
use crate::checker::Check;
use crate::combine::Combine;
use crate::deferred::Set;
use crate::error::{Error, Result, Step};
use crate::gate::Closed;
use crate::mapping::Kept;
use crate::media::Barrier;
use crate::options::PoolOptions;
use crate::poison::Poison;
use crate::pool_types::PoolTypes;
use crate::saved::Saved;
use crate::savepoint::Savepoint;
use crate::window::AnnouncedWord;

/// A way to make transactions failure-atomic. A property of a pool, chosen when it is made.
///
/// The transaction tells it each range before the program stores there, and leaves it the order of everything that
/// reaches the media.
pub(crate) trait Engine: Sync + std::fmt::Debug {
    /// A transaction is about to use this pool as its first one of this engine; or it begins on it, where transactions
    /// take turns: the caller has asked [`PoolInner::check_turn_may_come`] then. Makes what the engine keeps of the
    /// thread the one at hand.
    ///
    /// # Errors
    /// `MixedEngines` where it may not.
    fn enter(&self, _tx: &mut TxState, _pool: &Arc<PoolInner>) -> Result<()> {
        Ok(())
    }

    /// What holds of all its pools.
    fn facts(&self) -> Facts;

    /// Called before a store of a transaction to what was there before, where [transactions take
    /// turns](Facts::takes_turns). The range lies in the transaction's pool. The addresses around its first byte of
    /// which it need not be told in this transaction again.
    fn before_store(&self, _tx: &mut TxState, _address: usize, _len: usize) -> Step<Range<usize>> {
        Ok(0..usize::MAX)
    }

    /// Called before stores to a range, which may have been announced before. Enters it in `tx.announced`. Not for
    /// ranges that are [kept by line](Facts::keeps_lines).
    ///
    /// Most keep in memory what it holds, so that an abort can put it back. Of `Clobber` ranges, too, unless an abort
    /// takes it from the media: what it left in memory and not there would be lost by a later transaction that
    /// announces it and leaves it as it is.
    fn announce(
        &self,
        tx: &mut TxState,
        puddle: &Puddle,
        address: usize,
        len: usize,
        _announce: Announce,
    ) -> Step {
        tx.announce_saving(address, len);
        puddle.check_failed()?;
        Ok(())
    }

    /// Called when all ranges were announced of those that are announced at once, with what [`TxState::gathered`] has
    /// held of them: enters these in `tx.announced`.
    fn announce_gathered(&self, _tx: &mut TxState, _gathered: &[(usize, usize)]) -> Step {
        Ok(())
    }

    /// Makes the transaction durable. After an error the caller calls `abort`.
    fn commit(&self, tx: &mut TxState) -> Step;

    /// Makes durable what a commit of this thread has left [in flight](TxState::in_flight).
    fn land(&self, _tx: &mut TxState, _in_flight: u64) -> Result<()> {
        Ok(())
    }

    /// Puts announced memory back as it was.
    fn abort(&self, tx: &mut TxState);

    /// Makes ranges durable outside of any transaction, with one fence. The puddles are the pool's.
    fn persist(
        &self,
        tx: &mut TxState,
        pool: &PoolInner,
        ranges: &[(&Puddle, Range<usize>)],
    ) -> Result<()>;

    /// Writes whole pages of a fresh object to where they will stay, at once, if it can: `parts` are their bytes, one
    /// behind the other. Whether it has.
    fn write_now(
        &self,
        _tx: &mut TxState,
        _pages: Range<usize>,
        _parts: &mut dyn Iterator<Item = &[u8]>,
        _puddle: &Puddle,
    ) -> bool {
        false
    }

    /// Begins a section in the transaction: changes that nobody announces are found. `closed` keeps other transactions
    /// out until it is dropped.
    ///
    /// # Errors
    /// `SectionEngine` if it has none; `System` where pages cannot be watched.
    fn begin_section(&self, _tx: &mut TxState, pool: &PoolInner, _closed: Closed) -> Result<()> {
        self.check_sections(pool)
    }

    /// # Errors
    /// `SectionEngine` if it has no sections.
    fn check_sections(&self, pool: &PoolInner) -> Result<()> {
        Err(Error::SectionEngine {
            pool: pool.name.clone(),
            engine: pool.kind.name(),
        })
    }

    /// What is mapped besides the place where programs see a puddle.
    fn second_mapping(&self) -> SecondMapping {
        SecondMapping::None
    }

    /// What it keeps about a pool that is being opened.
    fn keep_pool(&self, _store: &Arc<StoreInner>, _options: &PoolOptions) -> Box<dyn OfPool> {
        Box::new(())
    }

    /// The bias of what its threads take to change what the pool's transactions share.
    fn bias(&self, _store: &StoreInner) -> Option<SharedBias> {
        None
    }

    /// What it keeps about a puddle of its pools, which is about to be mapped.
    fn keep_puddle(
        &self,
        _store: &Arc<StoreInner>,
        _address: usize,
        _size: usize,
    ) -> Option<Box<dyn Kept>> {
        None
    }

    /// A puddle of its pools is mapped.
    fn puddle_is_mapped(&self, _store: &StoreInner, _puddle: &Arc<Puddle>) {}

    /// The pool is open: sees to it that a first log is at hand, so that what needs a log but no room (a delete) works
    /// on a full disk. Without room the first transaction that needs one reports it.
    fn prepare_log(&self, _store: &StoreInner) {}

    /// See [`Pool::sync`](crate::Pool::sync).
    ///
    /// # Errors
    /// Those of making buffered transactions durable.
    fn flush_buffered(&self, _pool: &PoolInner) -> Result<()> {
        Ok(())
    }

    /// See [`Pool::flush_if_due`](crate::Pool::flush_if_due).
    ///
    /// # Errors
    /// As above.
    fn flush_if_due(&self, _pool: &PoolInner, _now: Instant) -> Result<Option<Duration>> {
        Ok(None)
    }

    /// Sees to it that nothing will be written to the pool's puddles for what was committed before, nor anything on the
    /// media tell of it.
    ///
    /// # Errors
    /// Those of bringing home what is logged.
    fn drain(&self, _pool: &PoolInner) -> Result<()> {
        Ok(())
    }

    /// Has `show` run while the media hold what was committed on the pool, and nobody changes that: they tell it to
    /// the puddles that a snapshot shows ([`crate::before_images`]). No transaction is open.
    ///
    /// # Errors
    /// Those of bringing home what is logged.
    fn show(&self, _pool: &PoolInner, show: &mut dyn FnMut()) -> Result<()> {
        show();
        Ok(())
    }

    /// A snapshot that showed the pool is over.
    fn is_shown_no_more(&self, _pool: &PoolInner) {}

    /// The pool is about to be closed.
    fn before_close(&self, _pool: &PoolInner) {}

    /// The pool closes in order: nothing runs on it any more, and it is drained.
    fn close(&self, _pool: &PoolInner) {}
}

/// What holds of all pools of an engine. A pool has it at hand, to be seen without a call.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    /// One transaction may span several pools of this engine.
    pub(crate) commits_with_others: bool,
    /// Transactions take turns, which have to begin and to end also where nothing is announced. Then
    /// [`Engine::before_store`] is called, too.
    pub(crate) takes_turns: bool,
    /// What a program stores is what recovery finds, where nothing of it is in a log.
    pub(crate) works_in_place: bool,
    /// Old contents of ranges shorter than [`LARGE`](crate::announced::LARGE) are kept in `tx.announced`, by line. Then
    /// these are not announced to the engine.
    pub(crate) keeps_lines: bool,
    /// Announced bytes of which nothing is kept count as changed, whatever is durable by then.
    pub(crate) compares_announced: bool,
    /// Fresh objects are noted apart from announced bytes
    /// ([`Announced::insert_object`](crate::announced::Announced::insert_object)).
    pub(crate) keeps_objects: bool,
    /// See [`CommitWords`].
    pub(crate) commit_words: Option<CommitWords>,
}

/// A shorter way than [`Engine::commit`], for a transaction that has changed words and nothing else, and is to be
/// durable when this returns; its thread has left nothing in flight. It gets what the engine keeps of the thread, the
/// words, and how far behind them their homes are.
///
/// False: this is not the way for it, and nothing was done. After an error the caller calls [`Engine::abort`].
pub(crate) type CommitWords =
    fn(&mut dyn OfThread, &[AnnouncedWord], usize, &mut Barrier) -> Step<bool>;

/// What is mapped besides the place where programs see a puddle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecondMapping {
    /// Nothing: programs work in the media, or in this process where these are a file.
    None,
    /// The media, where they are mapped: programs work in private pages.
    Home,
    /// The back copy.
    Back,
}

/// An open pool. Handles are cheap to clone and may be used from any thread; the pool closes with the last one.
#[derive(Clone, Debug)]
pub struct Pool {
    pub(crate) inner: Arc<PoolInner>,
    /// Goes last; `None` where the caller has another handle.
    pub(crate) _tie: Option<Tie>,
}

/// What all handles of an open pool share.
#[derive(Debug)]
pub(crate) struct PoolInner {
    /// Different for each opening in this process.
    pub(crate) key: u64,
    pub(crate) uuid: Uuid,
    pub(crate) name: String,
    pub(crate) kind: EngineKind,
    pub(crate) engine: &'static dyn Engine,
    /// The engine is not that of its kind, but the one with this name ([`PoolOptions::run_by`]).
    pub(crate) run_by: Option<&'static str>,
    /// Sections change it in place, and nobody announces that ([`Pool::admit_sections`](crate::Pool)).
    pub(crate) has_sections: AtomicBool,
    /// What holds of all pools of its engine.
    pub(crate) facts: Facts,
    /// A transaction on it has something to do at its end also where nothing was announced: its turn ends, or the
    /// checker looks.
    pub(crate) ends_empty: bool,
    /// What its engine keeps.
    pub(crate) kept: Box<dyn OfPool>,
    /// What [`Engine::bias`] says.
    pub(crate) bias: Option<SharedBias>,
    pub(crate) store: Arc<StoreInner>,
    /// The store's; of a pool that is open for reading only one of its own, which says so.
    pub(crate) poison: Arc<Poison>,
    pub(crate) is_read_only: bool,
    pub(crate) survive: bool,
    pub(crate) beside: Option<Arc<Beside>>,
    pub(crate) heap: PoolHeap,
    pub(crate) frontier: Arc<Frontier>,
    pub(crate) combine: Combine,
    pub(crate) root: Mutex<()>,
    pub(crate) types: PoolTypes,
    pub(crate) on_mismatch: OnMismatch,
    pub(crate) this: std::sync::Weak<PoolInner>,
    pub(crate) checker: Option<Mutex<Box<dyn Check>>>,
}

/// What is done where a pool's root is not what a program takes it for.
pub(crate) type OnMismatch = fn(&PoolInner, &Mismatch) -> Result<()>;

/// Ids and sizes of such a root.
pub(crate) struct Mismatch {
    pub(crate) found: (u64, u64),
    /// What its id means in the pool.
    pub(crate) was: u64,
    pub(crate) wanted: (u64, u64),
    pub(crate) is_so_large: bool,
}

/// What an engine keeps of an open pool.
pub(crate) trait OfPool: Any + Send + Sync + Debug {}

/// Nothing.
impl OfPool for () {}

/// A pool that the running transaction uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PoolRef(pub(crate) NonNull<PoolInner>);

impl Deref for PoolRef {
    type Target = PoolInner;

    #[inline]
    fn deref(&self) -> &PoolInner {
        // SAFETY: the pool that the transaction began on is borrowed until it ends, others are in `TxState::held`. One
        // that stays in `TxState::pools` when it ends is used again by a transaction that begins on the same pool, and
        // dropped by any other.
        unsafe { self.0.as_ref() }
    }
}

/// For [`TxState::in_flight`] of one that has changed nothing: what the thread has left in flight before, if it has.
pub(crate) const WHATEVER: u64 = u64::MAX;

/// The part of a transaction that its engine works on.
#[derive(Debug, Default)]
pub(crate) struct TxState {
    /// When it is durable.
    pub(crate) durability: Durability,
    /// Its fence may be left to whoever needs it durable; then the engine says here which record that is, as it numbers
    /// them. 0: it is durable.
    pub(crate) may_fly: bool,
    pub(crate) in_flight: u64,
    /// The pools that it touched; they stay open until it ends. The pool that it began on may be here from the last
    /// one.
    pub(crate) pools: Vec<PoolRef>,
    /// Keeps pools open other than the one that the transaction began on: that one is borrowed. Counting references
    /// would cost an atomic operation right behind the commit's last fence, which waits for it.
    pub(crate) held: Vec<Arc<PoolInner>>,
    pub(crate) announced: Announced,
    /// Addresses of the puddle that was announced in last, in this transaction or an earlier one, where the engine
    /// keeps old contents in `announced`; where it wants to be told of stores, those of which it was told. Empty if
    /// that has to be looked at first: the puddle's pool is not in `pools`, or a `set` is pending.
    pub(crate) recent: Range<usize>,
    /// How far behind that its home is.
    pub(crate) recent_home: usize,
    pub(crate) sets: Vec<Set>,
    pub(crate) set_bytes: Vec<u8>,
    pub(crate) set_index: Announced,
    pub(crate) allocation: Allocation,
    pub(crate) bits: Vec<BitChange>,
    pub(crate) bitmaps: Vec<Bitmap>,
    /// What the engines keep of this thread.
    pub(crate) kept: ByThread,
    /// One of them has something to do when the transaction has ended.
    pub(crate) wants_end: bool,
    /// The transaction is a section of the pool with this key: changes that nobody announces are found.
    pub(crate) section: Option<u64>,
    pub(crate) barrier: Barrier,
    /// While one of several ranges is announced that are announced at once: those of which the engine has still to make
    /// the old contents safe, where it does that for all of them together. Address and length.
    pub(crate) gathered: Option<Vec<(usize, usize)>>,
    /// Old contents of announced ranges, where they are kept neither by line nor in a log.
    pub(crate) backups: Saved,
    /// Old contents of volatile memory.
    pub(crate) volatile: Saved,
    pub(crate) caches: Vec<ThreadCache>,
    pub(crate) before_reuse: Option<BeforeReuse>,
    /// While a part of the transaction can be taken back alone. `recent` is empty then.
    pub(crate) savepoint: Option<Box<Savepoint>>,
}

/// Who wants to know that the outcome is certain, and memory as it will be, before places that became free can be
/// allocated again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BeforeReuse {
    pub(crate) context: *const (),
    /// Called once, with whether the transaction has committed.
    pub(crate) call: unsafe fn(*const (), bool),
}

/// What an engine keeps of a thread, for its transactions on the pools of one store.
pub(crate) trait OfThread: Any {
    /// The transaction has ended; `pool` is the first one that it touched.
    fn end(&mut self, _pool: Option<&PoolInner>) {}

    /// The thread leaves the store, with no transaction open.
    fn leave(self: Box<Self>, _store: &Arc<StoreInner>) {}
}

/// What it holds is its engine's. Were `Debug` demanded of it, code that only completes sections would have all that
/// prints it.
impl Debug for dyn OfThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OfThread")
    }
}

/// What the engines keep of a thread. That of the engine which runs the transaction is at hand.
#[derive(Debug)]
pub(crate) struct ByThread {
    pub(crate) current: Option<Box<dyn OfThread>>,
    /// Its type, to be seen without a call.
    current_type: TypeId,
    others: Vec<Box<dyn OfThread>>,
}

impl Default for ByThread {
    fn default() -> Self {
        Self {
            current: None,
            current_type: TypeId::of::<()>(),
            others: Vec::new(),
        }
    }
}

impl ByThread {
    /// Makes what an engine keeps the one at hand.
    #[inline]
    pub(crate) fn turn_to<T: OfThread>(&mut self, make: impl FnOnce() -> T) -> &mut T {
        if self.current_type != TypeId::of::<T>() {
            self.exchange(make);
        }
        // SAFETY: it is what is at hand.
        unsafe { kept_as(self.current.as_deref_mut().unwrap_unchecked()) }
    }

    #[inline(never)]
    fn exchange<T: OfThread>(&mut self, make: impl FnOnce() -> T) {
        let known = self.others.iter().position(|kept| is::<T>(&**kept));
        let next = match known {
            Some(at) => self.others.swap_remove(at),
            None => Box::new(make()),
        };
        // From here on nothing can fail.
        self.others.reserve(1);
        self.others.extend(self.current.replace(next));
        self.current_type = TypeId::of::<T>();
    }

    /// What the engine keeps that runs the transaction. For that engine only.
    #[inline(always)]
    pub(crate) fn current<T: OfThread>(&mut self) -> Option<&mut T> {
        let kept = self.current.as_deref_mut()?;
        // SAFETY: an engine runs transactions for which it has turned to what it keeps.
        Some(unsafe { kept_as(kept) })
    }

    /// What an engine keeps, at hand or not.
    #[inline]
    pub(crate) fn find<T: OfThread>(&mut self) -> Option<&mut T> {
        match self.current_type == TypeId::of::<T>() {
            true => self.current(),
            false if self.others.is_empty() => None,
            false => self.find_other(),
        }
    }

    #[inline(never)]
    fn find_other<T: OfThread>(&mut self) -> Option<&mut T> {
        let kept = self.others.iter_mut().find(|kept| is::<T>(&***kept))?;
        // SAFETY: it was just made sure of.
        Some(unsafe { kept_as(&mut **kept) })
    }

    /// What an engine keeps, at hand or not; made now if there is nothing yet.
    #[inline]
    pub(crate) fn find_or_make<T: OfThread>(&mut self, make: impl FnOnce() -> T) -> &mut T {
        match self.current.is_none() || self.current_type == TypeId::of::<T>() {
            true => self.turn_to(make),
            false => self.find_or_make_other(make),
        }
    }

    #[inline(never)]
    fn find_or_make_other<T: OfThread>(&mut self, make: impl FnOnce() -> T) -> &mut T {
        let known = self.others.iter().position(|kept| is::<T>(&**kept));
        let at = known.unwrap_or_else(|| {
            self.others.push(Box::new(make()));
            self.others.len() - 1
        });
        // SAFETY: it was just found, or made.
        unsafe { kept_as(&mut *self.others[at]) }
    }

    /// The transaction has ended.
    #[inline]
    pub(crate) fn end(&mut self, pool: Option<&PoolInner>) {
        if let Some(current) = &mut self.current {
            current.end(pool);
        }
        if !self.others.is_empty() {
            self.others.iter_mut().for_each(|kept| kept.end(pool));
        }
    }

    /// The thread leaves the store.
    pub(crate) fn leave(&mut self, store: &Arc<StoreInner>) {
        let all = std::mem::take(self);
        let all = all.current.into_iter().chain(all.others);
        all.for_each(|kept| kept.leave(store));
    }
}

fn is<T: OfThread>(kept: &dyn OfThread) -> bool {
    (kept as &dyn Any).is::<T>()
}

/// What an engine keeps, for that engine.
///
/// # Safety
/// It is a `T`.
#[inline(always)]
pub(crate) unsafe fn kept_as<T: OfThread>(kept: &mut dyn OfThread) -> &mut T {
    debug_assert!(is::<T>(kept), "the transaction is another engine's");
    // SAFETY: as the caller promises.
    unsafe { &mut *ptr::from_mut(kept).cast::<T>() }
}

/// What `add` does about the old contents of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Announce {
    /// The old contents come back if the transaction does not commit.
    #[default]
    Backup,
    /// The old contents are not needed: after an abort or a crash the range holds anything. Saves the log entry.
    Clobber,
}

/// When a transaction is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// When its commit returns.
    #[default]
    Durable,
    /// Soon after its commit has returned: a crash loses at most what was committed within
    /// [`StoreOptions::buffered_window`](crate::StoreOptions::buffered_window) before it.
    ///
    /// The commit returns without a fence or a sync. The order stays: after a crash the buffered transactions of the
    /// store that are there are those up to some moment, and everything that a durable one came after is there with it.
    /// [`Pool::sync`], and any durable transaction of a Shadow pool of the store, makes all of them durable that have
    /// returned before. On other engines than Shadow it is durable when its commit returns.
    Buffered,
}
