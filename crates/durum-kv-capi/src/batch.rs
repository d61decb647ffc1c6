//! Batches.

use std::ffi::{c_char, c_void};

use kv::{Change, WriteBatch};

use crate::guard::{bytes, destroys, functions, give};

/// Changes that are made together.
#[derive(Debug)]
pub struct leveldb_writebatch_t {
    pub(crate) batch: WriteBatch,
}

type Put = unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize);
type Deleted = unsafe extern "C" fn(*mut c_void, *const c_char, usize);

#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn leveldb_writebatch_create() -> *mut leveldb_writebatch_t {
    give(leveldb_writebatch_t {
        batch: WriteBatch::new(),
    })
}

functions! {
    fn leveldb_writebatch_clear(batch: *mut leveldb_writebatch_t) {
        if let Some(batch) = batch.as_mut() {
            batch.batch.clear();
        }
    }

    fn leveldb_writebatch_put(
        batch: *mut leveldb_writebatch_t,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
    ) {
        if let Some(batch) = batch.as_mut() {
            batch.batch.put(bytes(key, key_len), bytes(value, value_len));
        }
    }

    fn leveldb_writebatch_delete(
        batch: *mut leveldb_writebatch_t,
        key: *const c_char,
        key_len: usize,
    ) {
        if let Some(batch) = batch.as_mut() {
            batch.batch.delete(bytes(key, key_len));
        }
    }

    fn leveldb_writebatch_iterate(
        batch: *const leveldb_writebatch_t,
        state: *mut c_void,
        put: Put,
        deleted: Deleted,
    ) {
        let Some(batch) = batch.as_ref() else {
            return;
        };
        for change in batch.batch.iter() {
            match change {
                Change::Put(key, value) => {
                    put(state, key.as_ptr().cast(), key.len(), value.as_ptr().cast(), value.len());
                }
                Change::Delete(key) => deleted(state, key.as_ptr().cast(), key.len()),
            }
        }
    }

    fn leveldb_writebatch_append(
        target: *mut leveldb_writebatch_t,
        source: *const leveldb_writebatch_t,
    ) {
        // A batch may be appended to itself.
        if let Some(source) = source.as_ref() {
            let source = source.batch.clone();
            if let Some(target) = target.as_mut() {
                target.batch.append(&source);
            }
        }
    }
}

/// About how many bytes the changes take.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_kv_writebatch_size(batch: *const leveldb_writebatch_t) -> usize {
    // SAFETY: as durum_kv.h asks for.
    unsafe { batch.as_ref() }.map_or(0, |batch| batch.batch.size())
}

destroys! {
    leveldb_writebatch_destroy: leveldb_writebatch_t,
}
