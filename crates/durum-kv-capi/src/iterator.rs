//! Iterators. A step that fails leaves the iterator nowhere; the failure stays until it is asked for.

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use kv::Iter;

use crate::db::{leveldb_t, reading};
use crate::dependents::{Dependent, Dependents};
use crate::guard::{NONE, bytes, functions, handle, run};
use crate::options::leveldb_readoptions_t;
use crate::status::Failure;

/// Entries in the order of keys.
#[derive(Debug)]
pub struct leveldb_iterator_t {
    /// None: its database is closed.
    iter: Option<Iter>,
    failed: Option<Failure>,
    among: Arc<Dependents>,
}

impl Dependent for leveldb_iterator_t {
    fn end(&mut self) {
        self.iter = None;
        self.failed = Some(Failure::argument("the iterator's database is closed"));
    }
}

/// # Safety
/// NULL, or a live iterator that nobody else uses.
unsafe fn step(
    iterator: *mut leveldb_iterator_t,
    step: impl FnOnce(&mut Iter) -> kv::Result<bool>,
) {
    // SAFETY: as the caller promises.
    unsafe {
        run(NONE, (), || {
            if let Some(iterator) = iterator.as_mut()
                && let Some(iter) = &mut iterator.iter
            {
                iterator.failed = step(iter).err().map(Failure::from);
            }
            Ok(())
        })
    }
}

/// # Safety
/// NULL, or a live iterator; a place for the length.
unsafe fn field<'a>(
    iterator: *const leveldb_iterator_t,
    len: *mut usize,
    field: impl FnOnce(&'a Iter) -> Option<&'a [u8]>,
) -> *const c_char {
    // SAFETY: as the caller promises.
    unsafe {
        let iter = iterator
            .as_ref()
            .and_then(|iterator| iterator.iter.as_ref());
        let found = iter.and_then(field);
        if let Some(len) = len.as_mut() {
            *len = found.map_or(0, <[u8]>::len);
        }
        found.map_or(ptr::null(), |found| found.as_ptr().cast())
    }
}

functions! {
    fn leveldb_create_iterator(
        db: *mut leveldb_t,
        options: *const leveldb_readoptions_t,
    ) -> *mut leveldb_iterator_t {
        run(NONE, ptr::null_mut(), || {
            let db = handle(db)?;
            let iter = db.db.iter_with(&reading(options)?)?;
            let among = db.dependents.clone();
            Ok(db.dependents.give(leveldb_iterator_t {
                iter: Some(iter),
                failed: None,
                among,
            }))
        })
    }

    fn leveldb_iter_destroy(iterator: *mut leveldb_iterator_t) {
        if let Some(found) = iterator.as_ref() {
            found.among.clone().take_back(iterator);
        }
    }

    fn leveldb_iter_valid(iterator: *const leveldb_iterator_t) -> u8 {
        let iter = iterator.as_ref().and_then(|iterator| iterator.iter.as_ref());
        u8::from(iter.is_some_and(Iter::valid))
    }

    fn leveldb_iter_seek_to_first(iterator: *mut leveldb_iterator_t) {
        step(iterator, Iter::seek_to_first)
    }

    fn leveldb_iter_seek_to_last(iterator: *mut leveldb_iterator_t) {
        step(iterator, Iter::seek_to_last)
    }

    fn leveldb_iter_seek(iterator: *mut leveldb_iterator_t, key: *const c_char, key_len: usize) {
        let key = bytes(key, key_len);
        step(iterator, |iter| iter.seek(key))
    }

    fn leveldb_iter_next(iterator: *mut leveldb_iterator_t) {
        step(iterator, Iter::next)
    }

    fn leveldb_iter_prev(iterator: *mut leveldb_iterator_t) {
        step(iterator, Iter::prev)
    }

    fn leveldb_iter_key(iterator: *const leveldb_iterator_t, len: *mut usize) -> *const c_char {
        field(iterator, len, Iter::key)
    }

    fn leveldb_iter_value(iterator: *const leveldb_iterator_t, len: *mut usize) -> *const c_char {
        field(iterator, len, Iter::value)
    }

    fn leveldb_iter_get_error(iterator: *const leveldb_iterator_t, errptr: *mut *mut c_char) {
        run(errptr, (), || match &handle(iterator)?.failed {
            None => Ok(()),
            Some(failure) => Err(failure.clone()),
        })
    }
}
