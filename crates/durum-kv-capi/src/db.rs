//! Databases and snapshots.

use std::ffi::{CStr, c_char, c_int};
use std::io::ErrorKind;
use std::ptr;
use std::sync::Arc;

use kv::{Db, Error, Range, ReadOptions, WriteOptions};

use crate::batch::leveldb_writebatch_t;
use crate::dependents::Dependents;
use crate::guard::{NONE, bytes, copy_string, destroy, functions, give, handle, path, run, value};
use crate::options::{leveldb_options_t, leveldb_readoptions_t, leveldb_writeoptions_t};
use crate::snapshot::leveldb_snapshot_t;
use crate::status::Failure;

/// An open database.
#[derive(Debug)]
pub struct leveldb_t {
    pub(crate) db: Db,
    buffers: bool,
    pub(crate) dependents: Arc<Dependents>,
}

impl leveldb_t {
    /// How to write; a NULL means the defaults.
    ///
    /// # Safety
    /// NULL, or live options.
    pub(crate) unsafe fn writing(&self, options: *const leveldb_writeoptions_t) -> WriteOptions {
        let defaults = leveldb_writeoptions_t { is_sync: false };
        // SAFETY: as the caller promises.
        let options = unsafe { options.as_ref() }.unwrap_or(&defaults);
        let mut writing = WriteOptions::new();
        writing.durability = options.durability(self.buffers);
        writing
    }
}

/// How to read; a NULL means the defaults.
///
/// # Safety
/// NULL, or live options whose snapshot is live.
pub(crate) unsafe fn reading<'a>(
    options: *const leveldb_readoptions_t,
) -> Result<ReadOptions<'a>, Failure> {
    let mut reading = ReadOptions::new();
    // SAFETY: as the caller promises.
    unsafe {
        if let Some(options) = options.as_ref() {
            reading = reading.verify_checksums(options.verifies);
            if let Some(snapshot) = options.snapshot.as_ref() {
                let closed = || Failure::argument("the snapshot's database is closed");
                reading.snapshot = Some(snapshot.snapshot.as_ref().ok_or_else(closed)?);
            }
        }
    }
    Ok(reading)
}

functions! {
    fn leveldb_open(
        options: *const leveldb_options_t,
        name: *const c_char,
        errptr: *mut *mut c_char,
    ) -> *mut leveldb_t {
        run(errptr, ptr::null_mut(), || {
            let options = handle(options)?;
            let db = Db::open(path(name)?, options.options.clone())?;
            let buffers = options.buffers;
            Ok(give(leveldb_t {
                db,
                buffers,
                dependents: Arc::default(),
            }))
        })
    }

    fn leveldb_close(db: *mut leveldb_t) {
        run(NONE, (), || {
            if let Some(db) = db.as_ref() {
                db.dependents.end();
            }
            Ok(())
        });
        destroy(db);
    }

    fn leveldb_put(
        db: *mut leveldb_t,
        options: *const leveldb_writeoptions_t,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        errptr: *mut *mut c_char,
    ) {
        run(errptr, (), || {
            let db = handle(db)?;
            let (key, value) = (bytes(key, key_len), bytes(value, value_len));
            Ok(db.db.put_with(key, value, &db.writing(options))?)
        })
    }

    fn leveldb_delete(
        db: *mut leveldb_t,
        options: *const leveldb_writeoptions_t,
        key: *const c_char,
        key_len: usize,
        errptr: *mut *mut c_char,
    ) {
        run(errptr, (), || {
            let db = handle(db)?;
            let options = db.writing(options);
            Ok(db.db.delete_with(bytes(key, key_len), &options)?)
        })
    }

    fn leveldb_write(
        db: *mut leveldb_t,
        options: *const leveldb_writeoptions_t,
        batch: *mut leveldb_writebatch_t,
        errptr: *mut *mut c_char,
    ) {
        run(errptr, (), || {
            let db = handle(db)?;
            match batch.as_ref() {
                Some(batch) => Ok(db.db.write_with(&batch.batch, &db.writing(options))?),
                // To LevelDB it means that what is in memory goes to a file.
                None => Ok(()),
            }
        })
    }

    fn leveldb_get(
        db: *mut leveldb_t,
        options: *const leveldb_readoptions_t,
        key: *const c_char,
        key_len: usize,
        value_len: *mut usize,
        errptr: *mut *mut c_char,
    ) -> *mut c_char {
        value(value_len, errptr, || {
            let db = handle(db)?;
            Ok(db.db.get_with(bytes(key, key_len), &reading(options)?)?)
        })
    }

    fn leveldb_create_snapshot(db: *mut leveldb_t) -> *const leveldb_snapshot_t {
        run(NONE, ptr::null_mut(), || {
            let db = handle(db)?;
            let snapshot = leveldb_snapshot_t {
                snapshot: Some(db.db.snapshot()),
                among: db.dependents.clone(),
            };
            Ok(db.dependents.give(snapshot))
        })
    }

    fn leveldb_release_snapshot(_: *mut leveldb_t, snapshot: *const leveldb_snapshot_t) {
        if let Some(found) = snapshot.as_ref() {
            found.among.clone().take_back(snapshot.cast_mut());
        }
    }

    fn leveldb_property_value(db: *mut leveldb_t, name: *const c_char) -> *mut c_char {
        run(NONE, ptr::null_mut(), || {
            if name.is_null() {
                return Ok(ptr::null_mut());
            }
            let name = CStr::from_ptr(name).to_string_lossy();
            let value = handle(db)?.db.property(&name)?;
            Ok(value.map_or(ptr::null_mut(), |value| copy_string(&value)))
        })
    }

    fn leveldb_approximate_sizes(
        db: *mut leveldb_t,
        count: c_int,
        starts: *const *const c_char,
        start_lens: *const usize,
        limits: *const *const c_char,
        limit_lens: *const usize,
        sizes: *mut u64,
    ) {
        // Each array has `count` elements.
        run(NONE, (), || {
            let db = handle(db)?;
            for at in 0..usize::try_from(count).unwrap_or(0) {
                let range = Range {
                    start: bytes(*starts.add(at), *start_lens.add(at)),
                    limit: bytes(*limits.add(at), *limit_lens.add(at)),
                };
                let found = db.db.approximate_sizes(&[range]);
                *sizes.add(at) = found.map_or(0, |found| found[0]);
            }
            Ok(())
        })
    }

    fn leveldb_compact_range(
        db: *mut leveldb_t,
        _: *const c_char,
        _: usize,
        _: *const c_char,
        _: usize,
    ) {
        run(NONE, (), || Ok(handle(db)?.db.compact()?))
    }

    fn leveldb_destroy_db(
        _: *const leveldb_options_t,
        name: *const c_char,
        errptr: *mut *mut c_char,
    ) {
        run(errptr, (), || match kv::destroy(path(name)?) {
            // There is no database, so there is nothing to do. LevelDB leaves the files of others, too.
            Err(Error::NotAStore { .. }) => Ok(()),
            Err(Error::System { source, .. }) if source.kind() == ErrorKind::NotADirectory => {
                Ok(())
            }
            result => Ok(result?),
        })
    }

    fn leveldb_repair_db(
        options: *const leveldb_options_t,
        name: *const c_char,
        errptr: *mut *mut c_char,
    ) {
        run(errptr, (), || {
            let (options, path) = (handle(options)?.options.clone(), path(name)?);
            match kv::repair(path, options.clone()) {
                // LevelDB repairs nothing to an empty database.
                Err(Error::Missing { .. }) => {
                    Db::open(path, options.create_if_missing(true).error_if_exists(false))?;
                }
                result => {
                    result?;
                }
            }
            Ok(())
        })
    }
}
