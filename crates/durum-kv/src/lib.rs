//! A durable, ordered key-value store with LevelDB's interface.
//!
//! A [`Db`] lies in a pool of a durum store. Every write is durable when it returns, unless it was asked to be
//! buffered; batches and transactions are there as a whole or not at all, whatever kills the program. Readers go on
//! while somebody writes, and snapshots and iterators see one moment.
//!
//! ```
//! use durum_kv::{Db, Options, WriteBatch};
//! # let dir = tempfile::tempdir_in("/dev/shm").unwrap();
//! # let path = dir.path().join("fruit");
//! let db = Db::open(&path, Options::new().create_if_missing(true))?;
//! db.put(b"apple", b"red")?;
//!
//! let before = db.snapshot();
//! let mut batch = WriteBatch::new();
//! batch.put(b"pear", b"green");
//! batch.delete(b"apple");
//! db.write(&batch)?;
//!
//! assert_eq!(db.get(b"apple")?, None);
//! let then = durum_kv::ReadOptions::new().snapshot(&before);
//! assert_eq!(db.get_with(b"apple", &then)?.as_deref(), Some(&b"red"[..]));
//! # Ok::<(), durum_kv::Error>(())
//! ```
//!
//! docs/tutorials/kv.md is a tutorial, and tells how it works. Reading order: [`Db`] (what may be asked), `inner` (what
//! its handles share), `read`, `write`, `queue` and `in_flight` (how changes become durable and visible), `many` (many
//! keys in one call), `tree`, `versions` and `media` (what changes, and where it lies), `index`, `chunk`, `entries`,
//! `sorted` and `heads` (finding a key), `lock`, `pins` and `snapshot` (readers beside the writer), [`Iter`],
//! [`Transaction`].

#![warn(clippy::unwrap_used)]

mod batch;
mod chunk;
mod comparator;
mod db;
mod entries;
mod error;
mod heads;
mod in_flight;
mod index;
mod inner;
mod iter;
#[cfg(test)]
mod layout_tests;
mod lock;
#[cfg(test)]
mod lock_tests;
mod many;
mod media;
mod options;
mod pins;
mod property;
mod queue;
mod read;
mod snapshot;
mod sorted;
mod transaction;
mod tree;
mod versions;
mod write;

use durum::{asymmetric, fair_lock, primitive};

pub use batch::{Change, WriteBatch};
pub use comparator::{BYTEWISE, Comparator};
pub use db::{Db, POOL};
pub use durum::{Durability, Engine, StoreOptions};
pub use error::{Error, ErrorKind, Result};
pub use in_flight::InFlight;
pub use iter::Iter;
pub use options::{Options, ReadOptions, WriteOptions};
pub use property::{Range, destroy, exists, repair};
pub use snapshot::Snapshot;
pub use transaction::Transaction;
