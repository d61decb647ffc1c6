//! Durable data structures: pools of persistent memory, plain pointers, failure-atomic transactions.
//!
//! A [`Store`] is a directory. A [`Pool`] in it holds objects, which lie at the same addresses in every run, so that
//! they point to each other with plain pointers. A transaction announces what it is about to change ([`Tx::add`]),
//! changes it in place, and is either durable as a whole when it returns or was never there, whatever kills the program
//! in between.
//!
//! ```
//! use durum::{Pool, PoolOptions, Store, StoreOptions};
//!
//! #[repr(C)]
//! struct Counter {
//!     value: u64,
//! }
//! durum::describe!(Counter as "counter" { value });
//!
//! # let dir = tempfile::tempdir_in("/dev/shm").unwrap();
//! # let path = dir.path().join("store");
//! let store = Store::open_or_create(&path, StoreOptions::new())?;
//! let pool = store.open_or_create_pool("numbers", PoolOptions::new())?;
//! let counter = pool.root::<Counter>()?;
//! pool.transaction(|tx| {
//!     // SAFETY: the root is live as long as the pool is open, and this program has one thread.
//!     unsafe {
//!         tx.add(counter)?;
//!         (*counter).value += 1;
//!     }
//!     Ok::<_, durum::Error>(())
//! })?;
//! # Ok::<(), durum::Error>(())
//! ```
//!
//! Reading order: [`store`](Store) and [`pool`](Pool) (what exists), `tx` (what a transaction announced), `engine` (in
//! which order it becomes durable), `log` and `media` (how); `alloc` (who may take which bytes of a puddle);
//! `addresses`, `space`, `mapping`, `fault` (addresses and what lies there); `combine` (how threads share a pool);
//! `gate`, `pages` (how transactions are kept out, and how changes are found that nobody announced). [`gc`] frees what
//! nothing leads to.

mod addresses;
mod alloc;
mod announced;
#[doc(hidden)]
pub mod asymmetric;
mod budget;
mod checker;
mod combine;
mod contention;
mod described;
mod engine;
mod error;
mod fault;
mod gate;
#[cfg(test)]
mod gate_tests;
pub mod gc;
mod log;
mod mapping;
mod media;
mod pages;
mod poison;
mod pool;
#[doc(hidden)]
pub mod primitive;
mod rawlog;
mod saved;
mod space;
mod spare;
mod stats;
mod steps;
mod store;
mod tracking;
mod tx;
pub mod typed;

pub use combine::{Concurrency, OpenUpdate, Reading};
pub use described::{Described, Description, Walk};
pub use durum_format as format;
pub use durum_format::Uuid;
pub use durum_persist::count::{
    Counters as Stats, all_counters, background_counters, thread_counters,
};
pub use durum_persist::domain::Domain;
pub use durum_persist::{self as persist, Site};
pub use durum_service::{
    self as service, EngineKind as Engine, PoolSummary, Progress, RecoveryReport, Stage, StoreInfo,
};
pub use engine::{LrRef, TwinMode, View};
pub use error::{Error, ErrorKind, Result};
pub use pages::PageTracking;
pub use pool::{Extent, Pool, PoolOptions, Usage};
pub use rawlog::{RawEntry, RawLog};
pub use store::{Store, StoreOptions};
pub use tx::{Announce, Durability, Transaction, Tx};

/// Every write-back and fence of the client, by what it is there for. A crash test that leaves one out has to fail.
pub fn sites() -> Vec<Site> {
    [
        &engine::SITES.concat()[..],
        log::SITES,
        rawlog::SITES,
        store::SITES,
    ]
    .concat()
}
