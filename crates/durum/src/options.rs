//! How stores and pools are made, and how they are used while they are open.

use std::sync::Arc;
use std::time::Duration;

use durum_persist::domain::Domain;
use durum_service::EngineKind;

use crate::addresses::Beside;
use crate::combine::Concurrency;
use crate::demand::{Follow, PuddleMapping};
use crate::memory;
use crate::pages::PageTracking;

/// `Options: field(argument: Type);`: methods that set one field each.
macro_rules! setters {
    ($options:ident: $($field:ident($argument:ident: $type:ty);)+) => {
        impl $options {
            $(
                #[doc = concat!("Sets [`", stringify!($options), "::", stringify!($field), "`].")]
                #[must_use]
                pub fn $field(mut self, $argument: $type) -> Self {
                    self.$field = $argument.into();
                    self
                }
            )+
        }
    };
}

pub(crate) use setters;

/// How a store is made and opened.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct StoreOptions {
    /// The persistence domain, where it should not be detected. Claiming `dax` for a file system that is not loses
    /// data.
    pub domain: Option<Domain>,
    /// The base of the store's address range, a multiple of 2 MiB; fixed when the store is made. Default:
    /// 0x2000_0000_0000.
    pub base: Option<u64>,
    /// Bytes of log that the pools of the Shadow engine may have together before commits wait for home updates; default
    /// 64 MiB. It bounds what a recovery has to read and write, and so how long that takes: 1.5 ms for each MiB, 0.1 s
    /// for the default.
    ///
    /// On mapped memory each place that a large transaction changes counts as 768 bytes more, because it may be a page
    /// of its own: a commit that leaves more than so much to recover brings it home before it returns. On the `file`
    /// domain, where a page takes up to 10 us, its bytes count alone. Transactions that are larger take longer if they
    /// are cut off at their very end, and so do many threads: each that has committed holds 256 KiB until it ends.
    pub log_max: u64,
    /// What a crash may lose of transactions that are [`Durability::Buffered`](crate::Durability::Buffered), as a time
    /// before it; default 10 ms. A thread of the store's writes them after half of it; the other half is for the write,
    /// and for a machine too busy to run that thread at once. Zero makes them durable when their commits return.
    pub buffered_window: Duration,
    /// Bytes of private memory that the pools of the Shadow engine may keep together; default a quarter of the memory
    /// that the process may use. Above it, threads that commit give pages back which hold nothing but what is at home,
    /// until half of it is left: up to a millisecond in a commit, on the `file` domain a few syncs, while other
    /// transactions wait.
    ///
    /// A page counts when changes of it go home, so that up to [`StoreOptions::log_max`] may come on top. Zero gives
    /// pages back after every commit, which is for tests; `u64::MAX` never does.
    ///
    /// What a program stores in a pool without a transaction is kept, in its page. A thread that stores there in the
    /// very moment waits for it, in a handler for SIGSEGV: it must not block that signal, nor may a system call store
    /// there (it would fail with EFAULT). A program that takes the handler away keeps its pages.
    pub private_max: u64,
    /// Bytes of addresses for the puddles of the store, a multiple of 2 MiB; fixed when the store is made. Default: 1
    /// TiB.
    ///
    /// An opener reserves twice as much, which takes no memory. Where its limit of address space (`ulimit -v`,
    /// systemd's `LimitAS`) is lower, it reserves what the puddles need that it maps, and [`StoreOptions::growth`].
    pub space: Option<u64>,
    /// Bytes by which pools may grow while the store is open, for which addresses are reserved when it is opened, where
    /// the process cannot reserve all of the space. Default: 0: pools grow until the limit is met, and an allocation
    /// fails with `AddressSpace`.
    pub growth: u64,
    /// On mapped memory, whether a thread of the store's makes pages ahead of a Shadow pool that grows (default), so
    /// that commits meet fewer page faults: home of new puddles, and the two large private pages behind two that are
    /// filled, as long as no more than half of [`StoreOptions::private_max`] is. It starts when a pool first grows by
    /// more than 4 MiB or fills two large pages, and ends when a pool is closed; the next commits start another one.
    pub pages_ahead: bool,
    /// On the `file` domain, whether a thread of the store's writes home what pools of the Shadow engine have logged
    /// (default), so that no commit waits for it. Without, commits do it. It starts with the first commits that need
    /// it, and ends when a pool is closed; the next commits start another one.
    pub checkpoint_thread: bool,
    /// Objects without a known type hold no pointers. Where two stores of a process have the same addresses, as copies
    /// of one store have, the one that is opened later is moved to others, and its pointers are rewritten. With
    /// objects of which nobody knows where their pointers are it cannot be moved, unless this is said. Default: off.
    pub untyped_hold_no_pointers: bool,
    /// A program may have ended in sections, while it held locks (`durumcc -fido`), and have left code that completes
    /// them. Where this process opens the directory of the store, and one of the pools, that code is run, in a sandbox
    /// that has these pools and nothing else; the opener waits for it, at most a minute. Default: on. A service has an
    /// option of its own.
    pub run_code: bool,
    /// When puddles are mapped. Default: what the environment variable `DURUM_MAPPING` says (`eager`, `on-demand`,
    /// `userfaultfd`, `signal`), and else [`PuddleMapping::Eager`].
    pub mapping: Option<PuddleMapping>,
    /// What an access does that leads to a pool of the store which is not open. Default: [`Follow::Writing`] where
    /// puddles are mapped on demand, and [`Follow::Never`] where they are mapped with [`PuddleMapping::Eager`]. It
    /// takes a SIGSEGV handler, which then stays. The program must not block that signal, nor take the handler away; a
    /// system call that is given such an address fails with EFAULT.
    pub follow: Option<Follow>,
    /// Others may watch the program while it has the store open: `durum stat --watch` shows what it counts. A thread of
    /// the store's answers programs of the same user, and of root, at a socket in the user's run directory
    /// (`$XDG_RUNTIME_DIR/durum`, else `/run/user/UID/durum`, else `/tmp/durum-UID`). Nothing of the program waits for
    /// it; where there can be no such socket, the log says why, and the store opens all the same. Default: off.
    pub observe: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self {
            domain: None,
            base: None,
            space: None,
            growth: 0,
            log_max: 64 << 20,
            buffered_window: Duration::from_millis(10),
            private_max: memory::quarter(),
            pages_ahead: true,
            checkpoint_thread: true,
            untyped_hold_no_pointers: false,
            run_code: true,
            mapping: None,
            follow: None,
            observe: false,
        }
    }
}

impl StoreOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }
}

setters! {
    StoreOptions:
    domain(domain: Domain);
    log_max(bytes: u64);
    buffered_window(window: Duration);
    private_max(bytes: u64);
    pages_ahead(wanted: bool);
    checkpoint_thread(wanted: bool);
    untyped_hold_no_pointers(said: bool);
    run_code(wanted: bool);
    mapping(mapping: PuddleMapping);
    follow(follow: Follow);
    observe(wanted: bool);
    space(bytes: u64);
    growth(bytes: u64);
    base(base: u64);
}

/// How a pool is made, and how it is used while it is open.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PoolOptions {
    /// The engine that runs its transactions. Fixed when the pool is made. Default: Shadow.
    pub engine: EngineKind,
    /// Bytes of the puddle that holds the root, a multiple of 2 MiB. The root has to fit. Fixed when the pool is made.
    /// Default: 2 MiB.
    pub root_puddle_size: u64,
    /// A pool doubles when it grows, but by at most this many bytes, unless one object needs more. Default: 256 MiB.
    pub growth_max: u64,
    /// So many bytes of unused puddles are kept for when the pool grows again, or as many as the puddles in use have,
    /// if that is more; the rest is given back to the file system at once, and all of it when the pool closes. 0 keeps
    /// none. Default: 64 MiB.
    pub spare_max: u64,
    /// Survive media errors in the program's own accesses: a page that cannot be read is replaced by a private one, and
    /// the next operation returns `Poisoned`. Default: off, and such an access ends the process (SIGBUS).
    pub survive_media_errors: bool,
    /// How sections find what has changed ([`Pool::section`](crate::Pool::section)). Default: the best that the system
    /// has.
    pub page_tracking: PageTracking,
    /// How a Twin pool copies and is read. Default: [`TwinMode::Log`].
    pub twin_mode: TwinMode,
    /// Who keeps threads apart in [`Pool::update`](crate::Pool::update) and [`Pool::read`](crate::Pool::read). Default:
    /// durum does.
    pub concurrency: Concurrency,
    /// Look for stores that no `add` announced, and for pointers that lead out of the store, at each commit and abort.
    /// Slow, for tests: keeps a copy of the pool. Default: off.
    pub check_stores: bool,
    /// Open it for reading only: nothing of it can be changed, as far as the system's memory protection goes, and other
    /// programs may read it meanwhile, where a service serves the store. What is in it is what was committed. It is
    /// mapped when it is opened. Default: off.
    pub read_only: bool,
    /// Another engine than its own runs its transactions, until it is closed ([`PoolOptions::run_by`]).
    pub(crate) run_by: Option<&'static str>,
    /// What a Twin pool keeps of where its copies may differ ([`PoolOptions::suspects`]).
    pub(crate) suspects: Suspected,
    /// Memory beside its puddles that the opener keeps something in.
    pub(crate) beside: Option<Arc<Beside>>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            engine: EngineKind::Shadow,
            root_puddle_size: durum_format::UNIT,
            growth_max: 256 << 20,
            spare_max: 64 << 20,
            survive_media_errors: false,
            page_tracking: PageTracking::Auto,
            twin_mode: TwinMode::Log,
            concurrency: Concurrency::Combining,
            check_stores: false,
            read_only: false,
            run_by: None,
            suspects: Suspected::default(),
            beside: None,
        }
    }
}

impl PoolOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`PoolOptions::engine`].
    #[must_use]
    pub fn engine(mut self, engine: EngineKind) -> Self {
        (self.engine, self.run_by) = (engine, None);
        self
    }

    /// Transactions are run by an engine that no pool is made for, until the pool is closed: `direct` or `sample`. What
    /// they promise is theirs; `direct` and `sample` promise nothing for a crash. For tests and benchmarks, with pools
    /// of the Hybrid engine; without the feature `test-engines` there are none.
    #[doc(hidden)]
    #[must_use]
    pub fn run_by(mut self, name: &'static str) -> Self {
        self.run_by = Some(name);
        self
    }

    /// A Twin pool names the blocks where its copies may differ in at most so many groups, and keeps at most so many
    /// blocks named that the transaction which runs has not touched. For tests, in which the list is to be full soon.
    #[doc(hidden)]
    #[must_use]
    pub fn suspects(mut self, groups: usize, blocks: u32) -> Self {
        self.suspects = Suspected { groups, blocks };
        self
    }
}

/// See [`PoolOptions::suspects`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspected {
    pub(crate) groups: usize,
    pub(crate) blocks: u32,
}

impl Default for Suspected {
    /// 128 MiB in all: some 45 ms are enough to compare as much, and what fits into that needs no word of its own
    /// again. One place of the list is for all that finds none.
    fn default() -> Self {
        Suspected {
            groups: durum_format::twin::SUSPECT_WORDS - 1,
            blocks: 2048,
        }
    }
}

setters! {
    PoolOptions:
    root_puddle_size(bytes: u64);
    growth_max(bytes: u64);
    spare_max(bytes: u64);
    survive_media_errors(survive: bool);
    page_tracking(tracking: PageTracking);
    twin_mode(mode: TwinMode);
    concurrency(concurrency: Concurrency);
    check_stores(check: bool);
    read_only(wanted: bool);
}

/// How a Twin pool is used while it is open. On the media all are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TwinMode {
    /// A commit copies the lines that were announced, where they differ (RomulusLog, §4.7 of the paper).
    #[default]
    Log,
    /// A commit copies all that is in use, where it differs: the cost of a commit grows with the pool (Romulus, §4.1).
    /// For comparisons, and for pools of some pages.
    Basic,
    /// As `Log`, and threads may read beside a transaction without waiting
    /// ([`Pool::read_copy`](crate::Pool::read_copy); RomulusLR, §5.3). A commit waits for readers of the copy that it
    /// is about to change.
    LeftRight,
}
