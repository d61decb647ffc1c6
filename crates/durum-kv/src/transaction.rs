//! Transactions: reads that see their own writes, and writes that are made together.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::thread;

use crate::batch::WriteBatch;
use crate::comparator::Keys;
use crate::error::Result;
use crate::inner::Inner;
use crate::iter::Iter;
use crate::lock::Turn;
use crate::options::{ReadOptions, WriteOptions};
use crate::primitive::locked;
use crate::snapshot::Pin;
use crate::tree::Tree;
use crate::write::Work;

/// A key in the database's order.
#[derive(Clone, Debug)]
struct Ordered {
    bytes: Vec<u8>,
    keys: Keys,
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        self.keys.compare(&self.bytes, &other.bytes)
    }
}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Ordered {}

/// A transaction on a database. It sees what was there when it began, and what it has written; nobody else sees that
/// before it commits.
///
/// Transactions and other writes happen one after the other: while one is open, all other writers wait, and readers see
/// what was there before. Dropping it takes everything back. It belongs to the thread that began it, which must not
/// write to the database past it.
///
/// ```
/// # let dir = tempfile::tempdir_in("/dev/shm").unwrap();
/// # let path = dir.path().join("db");
/// # let db = durum_kv::Db::open(path, durum_kv::Options::new().create_if_missing(true))?;
/// let mut transaction = db.transaction()?;
/// let hits = transaction.get(b"hits")?.map_or(0, |value| value.len());
/// transaction.put(b"hits", &b"|".repeat(hits + 1));
/// transaction.commit()?;
/// assert_eq!(db.get(b"hits")?.as_deref(), Some(&b"|"[..]));
/// # Ok::<(), durum_kv::Error>(())
/// ```
#[derive(Debug)]
pub struct Transaction<'d> {
    db: &'d Arc<Inner>,
    turn: Turn<'d, Tree>,
    keys: Keys,
    /// What it has written: a value, or nothing where it has deleted.
    written: BTreeMap<Ordered, Option<Vec<u8>>>,
}

impl<'d> Transaction<'d> {
    pub(crate) fn begin(db: &'d Arc<Inner>) -> Result<Self> {
        let turn = db.wait_for_turn()?;
        *locked(&db.owner) = Some(thread::current().id());
        let keys = db.tree.read().keys.clone();
        Ok(Self {
            db,
            turn,
            keys,
            written: BTreeMap::new(),
        })
    }

    fn ordered(&self, key: &[u8]) -> Ordered {
        Ordered {
            bytes: key.to_vec(),
            keys: self.keys.clone(),
        }
    }

    /// The value of a key, as this transaction sees it.
    ///
    /// # Errors
    /// As for [`Db::get`](crate::Db::get).
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        match self.written.get(&self.ordered(key)) {
            Some(written) => Ok(written.clone()),
            None => self.db.look(key, &ReadOptions::new(), <[u8]>::to_vec),
        }
    }

    /// Gives a key a value.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.written.insert(self.ordered(key), Some(value.to_vec()));
    }

    /// Deletes a key, if it is there.
    pub fn delete(&mut self, key: &[u8]) {
        self.written.insert(self.ordered(key), None);
    }

    /// The first entry whose key is not smaller, or is larger, as this transaction sees it: key and value.
    ///
    /// # Errors
    /// As for [`Db::get`](crate::Db::get).
    pub fn first_from(&self, from: Bound<&[u8]>) -> Result<Option<(Vec<u8>, Vec<u8>)>> {
        let bound = from.map(|key| self.ordered(key));
        let mut written = self.written.range((bound, Bound::Unbounded)).peekable();
        let mut stored = Iter::new(Pin::now(self.db), false);
        match from {
            Bound::Unbounded => stored.seek_to_first()?,
            Bound::Included(key) => stored.seek(key)?,
            Bound::Excluded(key) => {
                let is_there = stored.seek(key)?;
                let is_equal = |key: &[u8]| stored.key().map(|other| self.keys.compare(other, key));
                match is_there && is_equal(key).is_some_and(Ordering::is_eq) {
                    true => stored.next()?,
                    false => is_there,
                }
            }
        };
        loop {
            let order = match (written.peek(), stored.key()) {
                (None, None) => return Ok(None),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some((own, _)), Some(key)) => self.keys.compare(&own.bytes, key),
            };
            if order.is_gt() {
                let entry = stored.key().zip(stored.value());
                return Ok(entry.map(|(key, value)| (key.to_vec(), value.to_vec())));
            }
            if order.is_eq() {
                stored.next()?;
            }
            if let Some((own, Some(value))) = written.next() {
                return Ok(Some((own.bytes.clone(), value.clone())));
            }
        }
    }

    /// Makes what was written durable together, as [`Db::put`](crate::Db::put) does. Where nothing was written it costs
    /// nothing.
    ///
    /// # Errors
    /// As for [`Db::put`](crate::Db::put). Nothing has changed then.
    pub fn commit(self) -> Result<()> {
        self.commit_with(&WriteOptions::new())
    }

    /// Makes what was written durable together, when the options say.
    ///
    /// # Errors
    /// As for [`Transaction::commit`].
    pub fn commit_with(self, options: &WriteOptions) -> Result<()> {
        if self.written.is_empty() {
            return Ok(());
        }
        let mut batch = WriteBatch::new();
        for (key, value) in &self.written {
            match value {
                Some(value) => batch.put(&key.bytes, value),
                None => batch.delete(&key.bytes),
            }
        }
        let inner = self.db;
        let durability = options.durability.unwrap_or_else(|| inner.durability());
        inner.commit(&self.turn, Work::Batches(&[&batch]), durability)
    }

    /// Takes everything back.
    pub fn abort(self) {
        drop(self);
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // Before the lock goes, which it does after this.
        *locked(&self.db.owner) = None;
    }
}
