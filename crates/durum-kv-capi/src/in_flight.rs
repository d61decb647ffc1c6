//! Writes in two halves. C has the number of an engine's record for what is in flight, so that it costs no allocation.

use std::ffi::c_char;

use kv::{Error, InFlight};

use crate::batch::leveldb_writebatch_t;
use crate::db::leveldb_t;
use crate::guard::{bytes, functions, handle, run};
use crate::status::Failure;

/// What is left of a write that has begun.
fn left(begun: Result<InFlight<'_>, Error>) -> Result<u64, Failure> {
    Ok(begun?.record())
}

functions! {
    fn durum_kv_put_begin(
        db: *mut leveldb_t,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        errptr: *mut *mut c_char,
    ) -> u64 {
        run(errptr, 0, || {
            let (key, value) = (bytes(key, key_len), bytes(value, value_len));
            left(handle(db)?.db.put_begin(key, value))
        })
    }

    fn durum_kv_delete_begin(
        db: *mut leveldb_t,
        key: *const c_char,
        key_len: usize,
        errptr: *mut *mut c_char,
    ) -> u64 {
        run(errptr, 0, || left(handle(db)?.db.delete_begin(bytes(key, key_len))))
    }

    fn durum_kv_write_begin(
        db: *mut leveldb_t,
        batch: *mut leveldb_writebatch_t,
        errptr: *mut *mut c_char,
    ) -> u64 {
        run(errptr, 0, || {
            let db = handle(db)?;
            match batch.as_ref() {
                Some(batch) => left(db.db.write_begin(&batch.batch)),
                None => Ok(0),
            }
        })
    }

    fn durum_kv_wait(db: *mut leveldb_t, in_flight: u64, errptr: *mut *mut c_char) {
        // ORDER: the caller's: the write is durable before what it does next.
        run(errptr, (), || Ok(handle(db)?.db.pool().land(in_flight).map_err(Error::from)?))
    }
}
