//! How the value of a key is read.

use crate::error::{Error, Result};
use crate::inner::Inner;
use crate::lock::Reading;
use crate::media::Record;
use crate::options::ReadOptions;
use crate::snapshot::Snapshot;
use crate::tree::Tree;

impl Inner {
    /// Has `see` look at the value of a key. The writer waits meanwhile.
    #[inline]
    pub(crate) fn look<R>(
        &self,
        key: &[u8],
        options: &ReadOptions<'_>,
        see: impl FnOnce(&[u8]) -> R,
    ) -> Result<Option<R>> {
        let tree = self.readable()?;
        let sequence = match options.snapshot {
            Some(snapshot) => self.sequence_of(snapshot)?,
            None => self.visible(),
        };
        let record = tree.get(key, sequence)?;
        Ok(self.value_of(&tree, key, record, options)?.map(see))
    }

    /// The value of a record that was found for a key, checked as the options say.
    #[inline]
    pub(crate) fn value_of<'t>(
        &self,
        tree: &'t Reading<'_, Tree>,
        key: &[u8],
        record: Option<*const Record>,
        options: &ReadOptions<'_>,
    ) -> Result<Option<&'t [u8]>> {
        let Some(record) = record else {
            if options.verify_checksums {
                tree.verify(tree.find(key)?)?;
            }
            return Ok(None);
        };
        if options.verify_checksums {
            // SAFETY: the record was found in the tree, and the writer is kept out.
            unsafe { Record::verify(record)? };
        }
        // SAFETY: the record was found in the tree, and the writer is kept out.
        Ok(Some(unsafe { Record::value(record) }))
    }

    pub(crate) fn sequence_of(&self, snapshot: &Snapshot) -> Result<u64> {
        match std::ptr::eq(&*snapshot.pin.db, self) {
            true => Ok(snapshot.pin.sequence),
            false => Err(Error::OtherSnapshot),
        }
    }
}
