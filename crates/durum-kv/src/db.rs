//! The database: opening, reading, and what it says of itself.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use durum::{Address, Described, Domain, Durability, Pool, PoolOptions, Store, Tx};
use durum_service::Error as StoreError;

use crate::batch::{Change, WriteBatch};
use crate::error::{Error, Result};
use crate::in_flight::InFlight;
use crate::inner::{Inner, Root};
use crate::iter::Iter;
use crate::lock::ReadersWriter;
use crate::media::{
    BUFFERED, Database, GuidedDatabase, HAS_STALE, LAYOUT, LAYOUT_WITHOUT_GUIDES, Media, store,
};
use crate::options::{Options, ReadOptions, WriteOptions};
use crate::pins::Pins;
use crate::snapshot::{Pin, Snapshot};
use crate::transaction::Transaction;
use crate::tree::Tree;
use crate::write::Work;

/// The pool of a database that has a store of its own.
pub const POOL: &str = "kv";

/// An open database: ordered keys with values, any bytes.
///
/// Handles are cheap to clone and may be used from any thread. The database closes with the last one, and with the last
/// [`Snapshot`] and [`Iter`] of it. If the process dies before, every write that has returned is there at the next
/// opening, except for buffered ones within their window.
#[derive(Clone, Debug)]
pub struct Db {
    pub(crate) inner: Arc<Inner>,
}

/// Whether there is a directory with something in it.
pub(crate) fn is_occupied(path: &Path) -> Result<bool> {
    match path.read_dir() {
        Ok(mut names) => Ok(names.next().is_some()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(Error::System {
            path: path.into(),
            operation: "reading the directory",
            source,
        }),
    }
}

impl Db {
    /// Opens the database in the store at `path`, a directory that belongs to it; or in a pool of a service's store, by
    /// the name `durum:POOL` or `durum+unix:SOCKET:POOL`.
    ///
    /// # Errors
    /// `Missing` and `Exists`, as the options say; `Comparator`; `Occupied`; `Newer`; `Damaged`; those of durum: the
    /// store is open already, or has quarantined logs. Nothing was changed then.
    ///
    /// Open for reading only ([`Options::read_only`]), every write is refused with durum's `ReadOnly`.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Db> {
        let path = path.as_ref();
        if let Some((store, pool)) = Address::split_pool(path) {
            let store = Store::open(store, options.store.clone())?;
            return Self::open_in(&store, pool.as_deref().unwrap_or(POOL), options);
        }
        let missing = || Error::Missing { path: path.into() };
        let store = match Store::open(path, options.store.clone()) {
            Ok(store) => store,
            Err(durum::Error::Store(StoreError::StoreMissing { .. })) => {
                let is_occupied = is_occupied(path)?;
                if !options.create_if_missing {
                    return Err(missing());
                }
                if is_occupied && !path.join("unfinished").exists() {
                    return Err(Error::Occupied { path: path.into() });
                }
                Store::open_or_create(path, options.store.clone())?
            }
            Err(error) => return Err(error.into()),
        };
        Self::open_in(&store, POOL, options)
    }

    /// Opens the database in a pool of an open store. Other pools of the store may hold anything; this pool is the
    /// database's.
    ///
    /// # Errors
    /// As for [`Db::open`].
    pub fn open_in(store: &Store, pool: &str, options: Options) -> Result<Db> {
        if Tx::levels() > 0 {
            // What that transaction takes back, the database would count on.
            return Err(Error::InTransaction);
        }
        let path = store.info().path.clone();
        // Puddles stay while the database is open: who reads by an old number may be looking at what has just been
        // freed.
        let pool_options = PoolOptions::new()
            .engine(options.engine)
            .read_only(options.read_only)
            .spare_max(u64::MAX);
        let (pool, was_there) = match store.open_pool(pool, pool_options.clone()) {
            Ok(pool) => (pool, true),
            Err(durum::Error::Store(StoreError::PoolMissing { .. })) => {
                if !options.create_if_missing {
                    return Err(Error::Missing { path });
                }
                (store.create_pool(pool, pool_options)?, false)
            }
            Err(error) => return Err(error.into()),
        };
        let (database, own_layout) = match Self::root(&pool) {
            // Nothing is there yet.
            Err(Error::Durum(durum::Error::ReadOnly { .. })) => {
                return Err(Error::Missing { path });
            }
            root => root?,
        };
        let mut media = Media::new(pool.clone())?;
        // SAFETY: the root is live as long as the pool is open; nobody else has the database open.
        let layout = unsafe { (*database).layout };
        match layout & !(BUFFERED | HAS_STALE) {
            0 if was_there && (options.read_only || !options.create_if_missing) => {
                return Err(Error::Missing { path });
            }
            0 => Self::make(&media, database, own_layout, &options)?,
            found if found != u64::from(own_layout) => return Err(Error::Newer { path, found }),
            _ if options.error_if_exists => return Err(Error::Exists { path }),
            _ => {}
        }
        // SAFETY: the root is live as long as the pool is open; nobody else has the database open.
        let (comparator, sequence) = unsafe { ((*database).comparator, (*database).sequence_max) };
        let stored = String::from_utf8_lossy(media.text(comparator)?).into_owned();
        let keys = options.keys();
        if stored != keys.name() {
            let given = keys.name().to_owned();
            return Err(Error::Comparator {
                path,
                stored,
                given,
            });
        }
        media.sequence_max = sequence;
        let tree = Tree::open(media, keys, database, options.leaves)?;
        let has_slow_commits = store.info().domain == Domain::File;
        let inner = Inner {
            tree: ReadersWriter::new(tree, !has_slow_commits),
            visible: AtomicU64::new(sequence),
            pins: Pins::default(),
            owner: Mutex::new(None),
            queue: Mutex::new(Vec::new()),
            waiting: AtomicUsize::new(0),
            has_slow_commits,
            is_read_only: options.read_only,
            is_buffered: AtomicBool::new(layout & BUFFERED != 0),
            flies: AtomicBool::new(false),
            database: Root(database),
            pool,
            path,
            _store: store.clone(),
        };
        inner.sweep_all(&inner.tree.turn())?;
        let db = Db {
            inner: Arc::new(inner),
        };
        if options.paranoid_checks {
            db.verify()?;
        }
        // Often it is another thread that writes, which is faster where no other has a part in the store.
        store.leave();
        Ok(db)
    }

    /// The root, and the layout that goes with its type.
    fn root(pool: &Pool) -> Result<(*mut Database, u32)> {
        if pool.root_type()? == Some(Database::description().id()) {
            return Ok((pool.root::<Database>()?, LAYOUT_WITHOUT_GUIDES));
        }
        Ok((pool.root::<GuidedDatabase>()?.cast(), LAYOUT))
    }

    /// Writes the root of a new database.
    fn make(media: &Media, database: *mut Database, layout: u32, options: &Options) -> Result<()> {
        let name = options.keys().name().to_owned();
        media.pool().transaction(|tx| {
            let comparator = media.alloc_text(tx, name.as_bytes())?;
            let first = tx.alloc_zeroed()?;
            // SAFETY: the root is live, and nobody else knows of the pool.
            unsafe {
                tx.add(database)?;
                database.write(Database {
                    layout: layout.into(),
                    first,
                    comparator,
                    sequence_max: 0,
                });
            }
            Ok(())
        })
    }

    /// The value of a key.
    ///
    /// # Errors
    /// `Damaged`, `Broken`.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        self.get_with(key, &ReadOptions::new())
    }

    /// The value of a key, read as the options say.
    ///
    /// # Errors
    /// `Damaged`, `Broken`; `OtherSnapshot`.
    pub fn get_with(&self, key: &[u8], options: &ReadOptions<'_>) -> Result<Option<Vec<u8>>> {
        self.inner.look(key, options, <[u8]>::to_vec)
    }

    /// Copies the value of a key to the end of `value`; whether there is one.
    ///
    /// # Errors
    /// As for [`Db::get_with`].
    pub fn get_into(
        &self,
        key: &[u8],
        options: &ReadOptions<'_>,
        value: &mut Vec<u8>,
    ) -> Result<bool> {
        let found = self
            .inner
            .look(key, options, |found| value.extend_from_slice(found))?;
        Ok(found.is_some())
    }

    /// Gives a key a value. It is durable when this returns, unless the database was set otherwise
    /// ([`Db::set_durability`]).
    ///
    /// # Errors
    /// Those of durum, such as a full disk; `InTransaction`, `KeyTooLong`, `Broken`. Nothing has changed then, unless
    /// durum says that the outcome is unknown.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_with(key, value, &WriteOptions::new())
    }

    /// Gives a key a value, which is durable when the options say.
    ///
    /// # Errors
    /// As for [`Db::put`].
    pub fn put_with(&self, key: &[u8], value: &[u8], options: &WriteOptions) -> Result<()> {
        let change = Change::Put(key, value);
        self.inner.write(Work::One(change), options)
    }

    /// Deletes a key, if it is there. It is durable as for [`Db::put`].
    ///
    /// # Errors
    /// As for [`Db::put`].
    pub fn delete(&self, key: &[u8]) -> Result<()> {
        self.delete_with(key, &WriteOptions::new())
    }

    /// Deletes a key, if it is there, durably when the options say.
    ///
    /// # Errors
    /// As for [`Db::put`].
    pub fn delete_with(&self, key: &[u8], options: &WriteOptions) -> Result<()> {
        let change = Change::Delete(key);
        self.inner.write(Work::One(change), options)
    }

    /// Makes all changes of a batch: they are durable together, as for [`Db::put`], and no reader sees some of them.
    ///
    /// # Errors
    /// As for [`Db::put`].
    pub fn write(&self, batch: &WriteBatch) -> Result<()> {
        self.write_with(batch, &WriteOptions::new())
    }

    /// Makes all changes of a batch, durably when the options say.
    ///
    /// # Errors
    /// As for [`Db::put`].
    pub fn write_with(&self, batch: &WriteBatch, options: &WriteOptions) -> Result<()> {
        self.inner.write(Work::Batches(&[batch]), options)
    }

    /// Gives a key a value, and leaves it to [`InFlight::wait`] that it is durable. What the thread does in between,
    /// the next write above all, hides the time that the media take.
    ///
    /// When this returns readers see the value. After a crash it is there as a whole or not at all; of the writes that
    /// a thread has begun at most the last one is missing, and no write is there without all those before it, of
    /// whichever thread. What the program tells others of it waits for `wait`.
    ///
    /// It is durable when this returns where other threads write to the store, on a file system, if it is larger than
    /// about a kilobyte, on other engines than Shadow, and where buffered writes wait. A database that is set to buffer
    /// ([`Db::set_durability`]) makes no difference to it: `wait` waits.
    ///
    /// ```
    /// # let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    /// # let path = dir.path().join("db");
    /// # let db = durum_kv::Db::open(path, durum_kv::Options::new().create_if_missing(true))?;
    /// let first = db.put_begin(b"apples", b"3")?;
    /// let second = db.put_begin(b"pears", b"4")?; // waits for the first one while it has something to do itself
    /// assert_eq!(db.get(b"pears")?.as_deref(), Some(&b"4"[..]));
    /// first.wait()?;
    /// second.wait()?; // from here on no crash takes any of them
    /// # Ok::<(), durum_kv::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`Db::put`].
    pub fn put_begin(&self, key: &[u8], value: &[u8]) -> Result<InFlight<'_>> {
        let change = Change::Put(key, value);
        self.inner.begin_to_write(Work::One(change))
    }

    /// Deletes a key, if it is there, and leaves it to [`InFlight::wait`] that this is durable, as [`Db::put_begin`]
    /// does.
    ///
    /// # Errors
    /// As for [`Db::put`].
    pub fn delete_begin(&self, key: &[u8]) -> Result<InFlight<'_>> {
        let change = Change::Delete(key);
        self.inner.begin_to_write(Work::One(change))
    }

    /// Makes all changes of a batch, which no reader sees in part, and leaves it to [`InFlight::wait`] that they are
    /// durable, as [`Db::put_begin`] does.
    ///
    /// # Errors
    /// As for [`Db::put`].
    pub fn write_begin(&self, batch: &WriteBatch) -> Result<InFlight<'_>> {
        self.inner.begin_to_write(Work::Batches(&[batch]))
    }

    /// Makes every buffered write durable that has returned before, and what is in flight.
    ///
    /// # Errors
    /// Those of durum.
    pub fn sync(&self) -> Result<()> {
        // ORDER: the caller's: buffered writes are durable before what it does next; else a crash takes them back.
        Ok(self.inner.pool.sync()?)
    }

    /// When writes are durable that say nothing of it, in this program and in others.
    pub fn durability(&self) -> Durability {
        self.inner.durability()
    }

    /// Sets [`Db::durability`]. The database keeps it.
    ///
    /// # Errors
    /// Those of durum; `InTransaction`, `Broken`. Nothing has changed then.
    pub fn set_durability(&self, durability: Durability) -> Result<()> {
        let inner = &self.inner;
        let _turn = inner.wait_for_turn()?;
        let is_buffered = durability == Durability::Buffered;
        // SAFETY: the root is live as long as the pool is open, and only who has the turn changes it.
        let (place, before) = unsafe {
            let place = &raw mut (*inner.database.0).layout;
            (place, *place)
        };
        let layout = before & !BUFFERED | if is_buffered { BUFFERED } else { 0 };
        inner.pool.transaction(|tx| store(tx, place, layout))?;
        inner.is_buffered.store(is_buffered, Ordering::Relaxed);
        Ok(())
    }

    /// Begins a transaction: reads that see its own writes, and writes that are made together when it commits. Other
    /// writers wait until it has ended; readers do not.
    ///
    /// # Errors
    /// `InTransaction` if this thread has one already.
    pub fn transaction(&self) -> Result<Transaction<'_>> {
        Transaction::begin(&self.inner)
    }

    /// The database as it is now, to be read later.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            pin: Pin::now(&self.inner),
        }
    }

    /// All entries as they are now, in the order of keys. It stands at none until it is told where to begin.
    pub fn iter(&self) -> Iter {
        Iter::new(Pin::now(&self.inner), false)
    }

    /// Entries as the options say.
    ///
    /// # Errors
    /// `OtherSnapshot`.
    pub fn iter_with(&self, options: &ReadOptions<'_>) -> Result<Iter> {
        let pin = match options.snapshot {
            Some(snapshot) => {
                // The writer, who asks for pins one after the other, must not miss both this one and the snapshot's.
                let _tree = self.inner.tree.read();
                Pin::at(&self.inner, self.inner.sequence_of(snapshot)?)
            }
            None => Pin::now(&self.inner),
        };
        Ok(Iter::new(pin, options.verify_checksums))
    }

    /// Reads every record and compares it with its checksum. How many there are.
    ///
    /// # Errors
    /// `Damaged`: the first one that is not as it was written.
    pub fn verify(&self) -> Result<u64> {
        Iter::new(Pin::now(&self.inner), true).count()
    }

    /// Its store, as messages name it: the directory, or the service.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// The pool that it lies in. Whoever changes anything there breaks the database.
    pub fn pool(&self) -> &Pool {
        &self.inner.pool
    }
}
