//! The limit on a disk: a file that was filled with zeros before is overwritten from front to back, a record of key and
//! value for each put, with one sync each.
//!
//! Blocks that were written before cost the file system no journal. What is left is the disk's own time; nothing is
//! atomic, nothing is ever found again but by reading the whole file. It writes and syncs through the same thin layer
//! as durum, so that the same is counted.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use durum_persist::Site;
use durum_persist::file::MediaFile;

use crate::error::{Error, Result};
use crate::side::{self, PutsShape, Role, Side};

const ZEROS: Site = Site("overwrite zeros");
const RECORD: Site = Site("overwrite record");
const KEY_LEN: usize = size_of::<u64>();

/// The limit.
#[derive(Debug, Default)]
pub struct Overwrite;

impl Side for Overwrite {
    fn name(&self) -> &str {
        "overwrite"
    }

    fn role(&self) -> Role {
        Role::Limit
    }

    fn domain(&self) -> &str {
        "file"
    }

    fn puts(&self, dir: &Path, shape: &PutsShape) -> Result<Box<dyn side::Puts>> {
        let path = dir.join(self.name());
        let created = Records::create(&path, shape).map_err(Error::file(path))?;
        Ok(Box::new(created))
    }
}

/// A file of records. Each thread has the next free place, so that puts of several threads overwrite the same
/// part of the file, as they would in a log.
struct Records {
    file: MediaFile,
    value_len: usize,
    threads: usize,
    /// Records written or being written.
    used: AtomicU64,
    records_max: u64,
}

impl Records {
    fn create(path: &Path, shape: &PutsShape) -> io::Result<Records> {
        let file = MediaFile::create_new(path)?;
        let records_max = shape.puts_max as u64;
        let len = records_max * (KEY_LEN + shape.value_len) as u64;
        let zeros = vec![0; 1 << 20];
        for offset in (0..len).step_by(zeros.len()) {
            let missing = (len - offset) as usize;
            file.write_all_at(&zeros[..missing.min(zeros.len())], offset)?;
        }
        // ORDER: the zeros are written before the first record; else its sync would write them, and the journal with
        // them.
        file.sync(ZEROS)?;
        Ok(Records {
            file,
            value_len: shape.value_len,
            threads: shape.threads,
            used: AtomicU64::new(0),
            records_max,
        })
    }

    fn record_len(&self) -> usize {
        KEY_LEN + self.value_len
    }

    /// Writes whole records to the next places, and syncs.
    fn append(&self, records: &[u8]) -> Result<()> {
        let count = (records.len() / self.record_len()) as u64;
        let first = self.used.fetch_add(count, Relaxed);
        assert!(
            first + count <= self.records_max,
            "a file of zeros has room"
        );
        let written = self
            .file
            .write_all_at(records, first * self.record_len() as u64)
            // ORDER: the put is durable before the next one begins; that is all that this side promises.
            .and_then(|()| self.file.sync(RECORD));
        written.map_err(Error::file(self.file.path()))
    }
}

impl side::Puts for Records {
    fn handles(&mut self) -> Vec<Box<dyn side::Put + Send + '_>> {
        let records = &*self;
        let handle = |_| {
            Box::new(Handle {
                records,
                record: Vec::new(),
            }) as Box<dyn side::Put + Send>
        };
        (0..self.threads).map(handle).collect()
    }

    fn visit(&mut self, see: &mut dyn FnMut(u64, &[u8])) -> Result<()> {
        let bytes = fs::read(self.file.path()).map_err(Error::file(self.file.path()))?;
        // A key belongs to one thread, whose places ascend: the last record of a key is its value.
        let mut last: HashMap<u64, &[u8]> = HashMap::new();
        let used = self.used.load(Relaxed) as usize;
        for record in bytes.chunks_exact(self.record_len()).take(used) {
            if let Some((key, value)) = record.split_first_chunk::<KEY_LEN>() {
                last.insert(u64::from_le_bytes(*key), value);
            }
        }
        last.into_iter().for_each(|(key, value)| see(key, value));
        Ok(())
    }
}

impl Drop for Records {
    fn drop(&mut self) {
        // A file that stays behind is found by the directory's owner, who removes the directory.
        let _ = fs::remove_file(self.file.path());
    }
}

struct Handle<'r> {
    records: &'r Records,
    /// Room for a record, kept.
    record: Vec<u8>,
}

impl side::Put for Handle<'_> {
    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        self.load(&[key], value)
    }

    fn load(&mut self, keys: &[u64], values: &[u8]) -> Result<()> {
        self.record.clear();
        for (key, value) in keys.iter().zip(values.chunks_exact(self.records.value_len)) {
            self.record.extend_from_slice(&key.to_le_bytes());
            self.record.extend_from_slice(value);
        }
        self.records.append(&self.record)
    }
}
