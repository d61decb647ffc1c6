//! Private pages are given back, and nobody notices: memory stays bounded, and no value ever goes back.
//!
//! What could go wrong: a page goes although home is older, or will be changed by a record that waits; a store without
//! a transaction is lost in between; a section does not find what was written to a page that was given back; a crash in
//! the middle.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod ahead;
mod limits;
mod measures;
mod pages;
#[path = "../../src/engine/shadow/pages/private_pages.rs"]
mod private_pages;
#[path = "../support/mod.rs"]
mod support;
mod threads;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::AtomicU64;

use durum::{Domain, Engine, Pool, PoolOptions, Store, StoreOptions};

const PIECE: usize = 1 << 20;
const PIECES: usize = 512;
const PAGE: usize = 4096;

/// An area of pieces that lie in puddles of many sizes.
#[repr(C)]
struct Root {
    pieces: [*mut u64; PIECES],
    lock: u64,
    objects: [*mut [u64; 9]; 64],
    count: u64,
}
durum::describe!(Root as "memory root" { pieces, lock, objects, count });

fn parent(domain: Domain) -> &'static str {
    match domain {
        Domain::File => env!("CARGO_TARGET_TMPDIR"),
        _ => "/dev/shm",
    }
}

fn pool_options() -> PoolOptions {
    PoolOptions::new().engine(Engine::Shadow)
}

struct Fixture {
    pool: Option<Pool>,
    store: Option<Store>,
    path: PathBuf,
    options: StoreOptions,
    pool_options: PoolOptions,
    _dir: tempfile::TempDir,
}

impl Fixture {
    fn new(domain: Domain, private_max: u64) -> Self {
        Self::with(domain, private_max, pool_options())
    }

    fn with(domain: Domain, private_max: u64, pool_options: PoolOptions) -> Self {
        let dir = tempfile::tempdir_in(parent(domain)).unwrap();
        let path = dir.path().join("store");
        let options = StoreOptions::new()
            .domain(domain)
            .log_max(4 << 20)
            .private_max(private_max);
        let store = Store::create(&path, options.clone()).unwrap();
        let pool = store.create_pool("pool", pool_options.clone()).unwrap();
        Self {
            pool: Some(pool),
            store: Some(store),
            path,
            options,
            pool_options,
            _dir: dir,
        }
    }

    fn pool(&self) -> Pool {
        self.pool.clone().unwrap()
    }

    fn store(&self) -> &Store {
        self.store.as_ref().unwrap()
    }

    fn root(&self) -> &'static mut Root {
        root(&self.pool())
    }

    /// Until no transaction of another thread is in the way.
    fn give_back(&self) -> usize {
        loop {
            if let Some(pages) = self.store().give_pages_back().unwrap() {
                return pages;
            }
        }
    }

    fn reopen(&mut self) {
        self.pool = None;
        self.store.take().unwrap().close().unwrap();
        let found = durum_service::check(&self.path, &Default::default()).unwrap();
        assert!(found.is_sound(), "{found:?}");
        let store = Store::open(&self.path, self.options.clone()).unwrap();
        let pool = store.open_pool("pool", self.pool_options.clone()).unwrap();
        (self.store, self.pool) = (Some(store), Some(pool));
    }
}

fn root(pool: &Pool) -> &'static mut Root {
    unsafe { &mut *pool.root::<Root>().unwrap() }
}

/// Allocates a piece that holds `word(index)` at each place.
fn make_piece(pool: &Pool, at: usize, word: impl Fn(usize) -> u64) {
    let root = root(pool);
    pool.transaction(|tx| unsafe {
        let piece = tx.alloc_bytes(pool, 0, PIECE, 8)?.cast::<u64>();
        for index in 0..PIECE / 8 {
            piece.add(index).write(word(index));
        }
        tx.set(&raw mut root.pieces[at], piece)
    })
    .unwrap();
}

/// A word that no transaction touches.
fn lock(root: &Root) -> &'static AtomicU64 {
    unsafe { AtomicU64::from_ptr((&raw const root.lock).cast_mut()) }
}

fn piece(root: &Root, at: usize) -> &'static mut [u64] {
    unsafe { std::slice::from_raw_parts_mut(root.pieces[at], PIECE / 8) }
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 20) as usize % end
    }
}

/// One test at a time: they measure memory and attach recorders.
static ALONE: Mutex<()> = Mutex::new(());

/// `None` while all tests run once more on another engine: these have their own.
fn alone() -> Option<std::sync::MutexGuard<'static, ()>> {
    let alone = || {
        ALONE
            .lock()
            .unwrap_or_else(|poisoned| poisoned.into_inner())
    };
    (support::engine() == Engine::Shadow).then(alone)
}

const DOMAINS: [Domain; 2] = [Domain::Dram, Domain::File];

const LIMIT: usize = 96 << 20;
const LARGE: usize = 160;
