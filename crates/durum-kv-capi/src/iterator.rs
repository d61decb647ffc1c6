//! Iterators. A step that fails leaves the iterator nowhere; the failure stays until it is asked for.

use std::ffi::c_char;
use std::ptr;

use kv::{Error, Iter};

use crate::db::{leveldb_t, reading};
use crate::guard::{NONE, bytes, destroy, give, handle, run};
use crate::options::leveldb_readoptions_t;

/// Entries in the order of keys.
#[derive(Debug)]
pub struct leveldb_iterator_t {
    iter: Iter,
    failed: Option<Error>,
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn leveldb_create_iterator(
    db: *mut leveldb_t,
    options: *const leveldb_readoptions_t,
) -> *mut leveldb_iterator_t {
    // SAFETY: as durum_kv.h asks for.
    unsafe {
        run(NONE, ptr::null_mut(), || {
            let iter = handle(db)?.db.iter_with(&reading(options))?;
            Ok(give(leveldb_iterator_t { iter, failed: None }))
        })
    }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn leveldb_iter_destroy(iterator: *mut leveldb_iterator_t) {
    // SAFETY: as durum_kv.h asks for.
    unsafe { destroy(iterator) };
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn leveldb_iter_valid(iterator: *const leveldb_iterator_t) -> u8 {
    // SAFETY: as durum_kv.h asks for.
    let iterator = unsafe { iterator.as_ref() };
    u8::from(iterator.is_some_and(|iterator| iterator.iter.valid()))
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
            if let Some(iterator) = iterator.as_mut() {
                iterator.failed = step(&mut iterator.iter).err();
            }
            Ok(())
        })
    }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn leveldb_iter_seek_to_first(iterator: *mut leveldb_iterator_t) {
    // SAFETY: as durum_kv.h asks for.
    unsafe { step(iterator, Iter::seek_to_first) }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn leveldb_iter_seek_to_last(iterator: *mut leveldb_iterator_t) {
    // SAFETY: as durum_kv.h asks for.
    unsafe { step(iterator, Iter::seek_to_last) }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn leveldb_iter_seek(
    iterator: *mut leveldb_iterator_t,
    key: *const c_char,
    key_len: usize,
) {
    // SAFETY: as durum_kv.h asks for.
    unsafe {
        let key = bytes(key, key_len);
        step(iterator, |iter| iter.seek(key))
    }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn leveldb_iter_next(iterator: *mut leveldb_iterator_t) {
    // SAFETY: as durum_kv.h asks for.
    unsafe { step(iterator, Iter::next) }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn leveldb_iter_prev(iterator: *mut leveldb_iterator_t) {
    // SAFETY: as durum_kv.h asks for.
    unsafe { step(iterator, Iter::prev) }
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
        let found = iterator.as_ref().and_then(|iterator| field(&iterator.iter));
        if let Some(len) = len.as_mut() {
            *len = found.map_or(0, <[u8]>::len);
        }
        found.map_or(ptr::null(), |found| found.as_ptr().cast())
    }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn leveldb_iter_key(
    iterator: *const leveldb_iterator_t,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: as durum_kv.h asks for.
    unsafe { field(iterator, len, Iter::key) }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn leveldb_iter_value(
    iterator: *const leveldb_iterator_t,
    len: *mut usize,
) -> *const c_char {
    // SAFETY: as durum_kv.h asks for.
    unsafe { field(iterator, len, Iter::value) }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn leveldb_iter_get_error(
    iterator: *const leveldb_iterator_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: as durum_kv.h asks for.
    unsafe {
        run(errptr, (), || match &handle(iterator)?.failed {
            None => Ok(()),
            Some(error) => Err(crate::guard::Failure::of(error)),
        })
    }
}
