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

#![warn(clippy::unwrap_used)]

mod addresses;
mod alloc;
mod announced;
#[doc(hidden)]
pub mod asymmetric;
mod before_images;
mod checker;
mod combine;
mod completed;
mod contention;
mod deferred;
mod deferred_events;
mod demand;
mod described;
mod engine;
mod error;
#[doc(hidden)]
pub mod fair_lock;
mod fault;
#[doc(hidden)]
pub mod futex_lock;
mod gate;
#[cfg(test)]
mod gate_tests;
pub mod gc;
mod kept_lines;
mod log;
mod logs;
mod mapping;
mod media;
mod memory;
#[doc(hidden)]
pub mod migration;
mod migration_memory;
mod observe;
mod opened;
mod options;
mod pages;
mod poison;
mod pool;
mod pool_types;
mod populate;
#[doc(hidden)]
pub mod primitive;
mod rawlog;
mod reach;
mod reading;
mod root_type;
mod saved;
mod savepoint;
mod section_memory;
mod section_puddles;
mod services;
mod signals;
mod sites;
mod snapshot;
mod snapshot_requests;
mod space;
mod spare;
mod stats;
mod steps;
mod store;
mod tracking;
mod tx;
pub mod typed;
mod updates;
mod upkeep;
mod userfaultfd;
#[doc(hidden)]
pub mod window;

#[doc(hidden)]
pub use alloc::{Freed, Taking};
pub use combine::Concurrency;
pub use demand::{Follow, PuddleMapping};
pub use described::{Described, Description, Walk};
pub use durum_format::Uuid;
pub use durum_format::log::Order;
pub use durum_persist::Site;
pub use durum_persist::count::{
    Counters as Stats, all_counters, background_counters, thread_counters,
};
pub use durum_persist::domain::{Delays, Domain};
pub use durum_protocol::Address;
pub use durum_service::{
    Compression, EngineKind as Engine, Error as StoreError, ExportOptions, ExportReport,
    ImportOptions, ImportReport, PoolGarbage, PoolSummary, Progress, ProgressFn, QuarantineNote,
    RecoveryReport, RefusedPool, Stage, StoreInfo,
};
pub use engine::{LrRef, View};
pub use error::{Error, ErrorKind, Result};
pub use opened::{Announce, Durability, Pool, Store};
pub use options::{PoolOptions, StoreOptions, TwinMode};
pub use pages::PageTracking;
pub use pool::{Extent, Usage};
pub use rawlog::{RawEntry, RawLog};
#[doc(hidden)]
pub use section_puddles::{InterruptedSections, SectionPuddle};
pub use snapshot::SnapshotOptions;
pub use tx::{InFlight, Transaction, Tx};
pub use updates::{OpenUpdate, Reading};

/// What a type's descriptor is made of, for [`Described::layout`] written by hand.
pub mod types {
    pub use durum_format::types::{
        Case, Count, Field, Primitive, Strength, Struct, Type, Variants,
    };
}

/// Every write-back and fence of the client, by what it is there for. A crash test that leaves one out has to fail.
pub fn sites() -> Vec<Site> {
    [
        &engine::SITES.concat()[..],
        log::SITES,
        rawlog::SITES,
        opened::SITES,
    ]
    .concat()
}
