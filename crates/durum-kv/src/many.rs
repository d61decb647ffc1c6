//! Many keys in one call: what they need is fetched for several of them at a time.

use std::ops::Range;
use std::sync::Arc;

use arrayvec::ArrayVec;

use crate::batch::Change;
use crate::db::Db;
use crate::error::Result;
use crate::inner::Inner;
use crate::options::{ReadOptions, WriteOptions};
use crate::snapshot::Pin;
use crate::tree::group::GROUP;

/// So many keys are read at a stretch while the writer waits.
const READ_STRETCH: usize = 4 * GROUP;

impl Db {
    /// The values of keys, in their order, which may be any, and the same one several times. All are of one moment.
    ///
    /// The keys are looked up in groups: of what lies in no cache much is fetched at the same time, where a row of
    /// [`Db::get`] waits for one place after the other.
    ///
    /// ```
    /// # let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    /// # let path = dir.path().join("db");
    /// # let db = durum_kv::Db::open(path, durum_kv::Options::new().create_if_missing(true))?;
    /// db.multi_put(&[("apple", "red"), ("pear", "green")])?;
    /// let colors = db.multi_get(&["pear", "plum", "apple"])?;
    /// assert_eq!(colors, [Some(b"green".to_vec()), None, Some(b"red".to_vec())]);
    /// # Ok::<(), durum_kv::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Damaged`, `Broken`: of the first key that has one.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>> {
        self.multi_get_with(keys, &ReadOptions::new())
    }

    /// The values of keys, read as the options say.
    ///
    /// # Errors
    /// As for [`Db::multi_get`]; `OtherSnapshot`.
    pub fn multi_get_with<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        options: &ReadOptions<'_>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let mut values = Vec::with_capacity(keys.len());
        let see = |value: Option<&[u8]>| values.push(value.map(<[u8]>::to_vec));
        look_many(&self.inner, keys, options, see)?;
        Ok(values)
    }

    /// Copies the values of keys to the end of `values`, one behind the other. Where each lies there; `None` where the
    /// key has none.
    ///
    /// # Errors
    /// As for [`Db::multi_get_with`]. `values` is as it was then.
    pub fn multi_get_into<K: AsRef<[u8]>>(
        &self,
        keys: &[K],
        options: &ReadOptions<'_>,
        values: &mut Vec<u8>,
    ) -> Result<Vec<Option<Range<usize>>>> {
        let before = values.len();
        let mut places = Vec::with_capacity(keys.len());
        let see = |value: Option<&[u8]>| {
            places.push(value.map(|value| {
                let start = values.len();
                values.extend_from_slice(value);
                start..values.len()
            }));
        };
        let looked = look_many(&self.inner, keys, options, see);
        if looked.is_err() {
            values.truncate(before);
        }
        looked.map(|()| places)
    }

    /// Gives keys values, one pair after the other; of several with one key the last one counts. All are durable when
    /// this returns, unless the database was set otherwise ([`Db::set_durability`]).
    ///
    /// It is no batch: a reader, and a crash, may come between any two pairs. What is there then is the first ones, up
    /// to some pair, and each as a whole. In return it costs less than a row of [`Db::put`]: keys are looked up in
    /// groups, as by [`Db::multi_get`], and several pairs share a fence, or on a file system a sync. Other threads
    /// write in between.
    ///
    /// # Errors
    /// As for [`Db::put`]. The first ones of the pairs may be there then, and durable.
    pub fn multi_put<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, pairs: &[(K, V)]) -> Result<()> {
        self.multi_put_with(pairs, &WriteOptions::new())
    }

    /// Gives keys values, one pair after the other, which are durable when the options say.
    ///
    /// # Errors
    /// As for [`Db::multi_put`].
    pub fn multi_put_with<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        pairs: &[(K, V)],
        options: &WriteOptions,
    ) -> Result<()> {
        let changes = pairs
            .iter()
            .map(|(key, value)| Change::Put(key.as_ref(), value.as_ref()));
        self.inner.write_row(changes, options)
    }
}

/// Has `see` look at the value of each key, in their order. The writer waits meanwhile.
fn look_many<K: AsRef<[u8]>>(
    db: &Arc<Inner>,
    keys: &[K],
    options: &ReadOptions<'_>,
    mut see: impl FnMut(Option<&[u8]>),
) -> Result<()> {
    // The writer gets its turn between two stretches: what they all see has to stay.
    let pin = match options.snapshot {
        None if keys.len() > READ_STRETCH => Some(Pin::now(db)),
        _ => None,
    };
    let fixed = match (options.snapshot, &pin) {
        (Some(snapshot), _) => Some(db.sequence_of(snapshot)?),
        (None, pin) => pin.as_ref().map(|pin| pin.sequence),
    };
    for stretch in keys.chunks(READ_STRETCH) {
        // The program's own code, which may write: not while the writer is kept out.
        let stretch: ArrayVec<&[u8], READ_STRETCH> = stretch.iter().map(AsRef::as_ref).collect();
        let tree = db.readable()?;
        let sequence = fixed.unwrap_or_else(|| db.visible());
        for group in stretch.chunks(GROUP) {
            let keys = group.iter().copied();
            let places = tree.look_up(keys.clone())?;
            for (key, place) in keys.zip(&places) {
                let record = tree.get_at(place, key, sequence)?;
                see(db.value_of(&tree, key, record, options)?);
            }
        }
    }
    Ok(())
}
