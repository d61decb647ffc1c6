//! What is timed.

use std::cmp::Ordering;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use durum_kv::{BYTEWISE, Comparator, Db, Durability, Options, WriteBatch, WriteOptions};

use crate::flags::Flags;

/// Changes of a batch: keys, and the values of those that are put.
pub type Batch<'b> = &'b [(Vec<u8>, Option<Vec<u8>>)];

/// Keys that get values.
pub type Pairs<'p> = &'p [(Vec<u8>, Vec<u8>)];

/// A key-value store. Failures are texts.
pub trait Store: Sync {
    /// Name and version.
    fn version(&self) -> String;

    /// Removes what there is, if `fresh`, and opens.
    fn open(&mut self, fresh: bool) -> Result<(), String>;

    /// Closes it, if it is open.
    fn close(&mut self);

    /// Gives a key a value.
    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), String>;

    /// Makes changes together.
    fn write(&self, batch: Batch<'_>, sync: bool) -> Result<(), String>;

    /// Copies the value of a key to the end of `value`. Whether there is one.
    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, String>;

    /// Gives keys values, one pair after the other, which nobody sees as one change. Stores that have no call for that
    /// put each pair.
    fn multi_put(&self, pairs: Pairs<'_>, sync: bool) -> Result<(), String> {
        let mut pairs = pairs.iter();
        pairs.try_for_each(|(key, value)| self.put(key, value, sync))
    }

    /// Copies the values of keys to the end of `values`. How many there are. Stores that have no call for that get each
    /// one.
    fn multi_get(&self, keys: &[Vec<u8>], values: &mut Vec<u8>) -> Result<u64, String> {
        let found = keys.iter().map(|key| self.get(key, values));
        found.map(|found| found.map(u64::from)).sum()
    }

    /// Gives a key a value, which `wait` makes durable. Stores that cannot leave it to that do it at once.
    fn put_begin(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        self.put(key, value, true)
    }

    /// All that this thread has put is durable.
    fn wait(&self) -> Result<(), String> {
        Ok(())
    }

    /// Goes over up to `count` entries, from the first on, or from the last on. `seen` gets the bytes of each one's key
    /// and value.
    fn scan(&self, reverse: bool, count: u64, seen: &mut impl FnMut(usize)) -> Result<(), String>;

    /// Looks for the first key that is not smaller, with an iterator of its own. Whether it is equal.
    fn seek(&self, key: &[u8]) -> Result<bool, String>;

    /// Does so `count` times with one iterator: `next` gives a key, `seen` gets whether it is there.
    fn seek_many(
        &self,
        count: u64,
        next: &mut impl FnMut(&mut Vec<u8>),
        seen: &mut impl FnMut(bool),
    ) -> Result<(), String>;

    /// Brings it into a good shape.
    fn compact(&self) -> Result<(), String> {
        Ok(())
    }

    /// A text about itself.
    fn property(&self, name: &str) -> Option<String> {
        let _ = name;
        None
    }

    /// Comparisons of keys since it was last asked, if they are counted.
    fn take_comparisons(&self) -> Option<u64> {
        None
    }
}

/// The order of bytes, which counts.
#[derive(Debug, Default)]
struct Counting(AtomicU64);

impl Comparator for Counting {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        self.0.fetch_add(1, Relaxed);
        a.cmp(b)
    }

    fn name(&self) -> &str {
        BYTEWISE
    }
}

/// `durum-kv`.
#[derive(Debug)]
pub struct Durum {
    db: Option<Db>,
    path: PathBuf,
    options: Options,
    buffers: bool,
    comparisons: Option<Arc<Counting>>,
}

impl Durum {
    /// The database that the flags ask for.
    pub fn new(flags: &Flags) -> Self {
        let mut options = Options::new()
            .create_if_missing(!flags.use_existing_db)
            .engine(flags.engine);
        let comparisons = flags.comparisons.then(Arc::<Counting>::default);
        if let Some(comparisons) = &comparisons {
            options = options.comparator(comparisons.clone());
        }
        Self {
            db: None,
            path: flags.db.clone(),
            options,
            buffers: flags.buffered,
            comparisons,
        }
    }

    fn db(&self) -> Result<&Db, String> {
        self.db.as_ref().ok_or_else(|| "no database is open".into())
    }

    fn options(&self, sync: bool) -> WriteOptions {
        WriteOptions::new().durability(match sync || !self.buffers {
            true => Durability::Durable,
            false => Durability::Buffered,
        })
    }
}

fn text(error: durum_kv::Error) -> String {
    error.to_string()
}

impl Store for Durum {
    fn version(&self) -> String {
        concat!("durum-kv ", env!("CARGO_PKG_VERSION")).into()
    }

    fn open(&mut self, fresh: bool) -> Result<(), String> {
        self.close();
        if fresh {
            durum_kv::destroy(&self.path).map_err(text)?;
        }
        self.db = Some(Db::open(&self.path, self.options.clone()).map_err(text)?);
        Ok(())
    }

    fn close(&mut self) {
        self.db = None;
    }

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), String> {
        let options = self.options(sync);
        self.db()?.put_with(key, value, &options).map_err(text)
    }

    fn write(&self, changes: Batch<'_>, sync: bool) -> Result<(), String> {
        let mut batch = WriteBatch::new();
        for (key, value) in changes {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        self.db()?
            .write_with(&batch, &self.options(sync))
            .map_err(text)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, String> {
        let options = durum_kv::ReadOptions::new();
        self.db()?.get_into(key, &options, value).map_err(text)
    }

    fn multi_put(&self, pairs: Pairs<'_>, sync: bool) -> Result<(), String> {
        let options = self.options(sync);
        self.db()?.multi_put_with(pairs, &options).map_err(text)
    }

    fn multi_get(&self, keys: &[Vec<u8>], values: &mut Vec<u8>) -> Result<u64, String> {
        let options = durum_kv::ReadOptions::new();
        let found = self.db()?.multi_get_into(keys, &options, values);
        Ok(found.map_err(text)?.iter().flatten().count() as u64)
    }

    fn put_begin(&self, key: &[u8], value: &[u8]) -> Result<(), String> {
        // The next one waits for it, and `wait` for the last one.
        let _in_flight = self.db()?.put_begin(key, value).map_err(text)?;
        Ok(())
    }

    fn wait(&self) -> Result<(), String> {
        // ORDER: what was put is durable before it is said to be; else its fence is not timed.
        self.db()?.sync().map_err(text)
    }

    fn scan(&self, reverse: bool, count: u64, seen: &mut impl FnMut(usize)) -> Result<(), String> {
        let mut entries = self.db()?.iter();
        let mut is_there = match reverse {
            true => entries.seek_to_last(),
            false => entries.seek_to_first(),
        }
        .map_err(text)?;
        let mut left = count;
        while is_there && left > 0 {
            left -= 1;
            let lengths = [entries.key(), entries.value()].map(|part| part.map_or(0, <[u8]>::len));
            seen(lengths[0] + lengths[1]);
            is_there = match reverse {
                true => entries.prev(),
                false => entries.next(),
            }
            .map_err(text)?;
        }
        Ok(())
    }

    fn seek(&self, key: &[u8]) -> Result<bool, String> {
        let mut entries = self.db()?.iter();
        entries.seek(key).map_err(text)?;
        Ok(entries.key() == Some(key))
    }

    fn seek_many(
        &self,
        count: u64,
        next: &mut impl FnMut(&mut Vec<u8>),
        seen: &mut impl FnMut(bool),
    ) -> Result<(), String> {
        let (mut entries, mut key) = (self.db()?.iter(), Vec::new());
        for _ in 0..count {
            next(&mut key);
            entries.seek(&key).map_err(text)?;
            seen(entries.key() == Some(&key[..]));
        }
        Ok(())
    }

    fn compact(&self) -> Result<(), String> {
        self.db()?.compact().map_err(text)
    }

    fn property(&self, name: &str) -> Option<String> {
        self.db().ok()?.property(name).ok()?
    }

    fn take_comparisons(&self) -> Option<u64> {
        Some(self.comparisons.as_ref()?.0.swap(0, Relaxed))
    }
}
