//! What LevelDB does not have: transactions, and waiting for buffered writes.

use std::ffi::c_char;
use std::ptr;

use kv::{Db, Transaction};

use crate::db::leveldb_t;
use crate::guard::{bytes, copy, destroy, give, handle, run};
use crate::options::leveldb_writeoptions_t;
use crate::status::Failure;

/// An open transaction. It belongs to the thread that began it.
#[derive(Debug)]
pub struct durum_kv_transaction_t {
    // INVARIANT: borrows what `db` owns, which goes after this.
    transaction: Transaction<'static>,
    db: Own,
    handle: *const leveldb_t,
}

/// A handle to the database, apart from any box that could be moved while it is borrowed.
#[derive(Debug)]
struct Own(*mut Db);

impl Drop for Own {
    fn drop(&mut self) {
        // SAFETY: came from `Box::into_raw`, and nobody borrows it any more.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn durum_kv_transaction_begin(
    db: *mut leveldb_t,
    errptr: *mut *mut c_char,
) -> *mut durum_kv_transaction_t {
    // SAFETY: as durum_kv.h asks for.
    unsafe {
        run(errptr, ptr::null_mut(), || {
            let own = Own(Box::into_raw(Box::new(handle(db)?.db.clone())));
            // SAFETY: it is freed after the transaction.
            let borrowed: &'static Db = &*own.0;
            Ok(give(durum_kv_transaction_t {
                transaction: borrowed.transaction()?,
                db: own,
                handle: db,
            }))
        })
    }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn durum_kv_transaction_get(
    transaction: *const durum_kv_transaction_t,
    key: *const c_char,
    key_len: usize,
    value_len: *mut usize,
    errptr: *mut *mut c_char,
) -> *mut c_char {
    // SAFETY: as durum_kv.h asks for.
    unsafe {
        let (value, len) = run(errptr, (ptr::null_mut(), 0), || {
            let found = handle(transaction)?.transaction.get(bytes(key, key_len))?;
            let Some(found) = found else {
                return Ok((ptr::null_mut(), 0));
            };
            match copy(&found) {
                value if value.is_null() => Err(Failure::argument("no memory for the value")),
                value => Ok((value, found.len())),
            }
        });
        if let Some(place) = value_len.as_mut() {
            *place = len;
        }
        value
    }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn durum_kv_transaction_put(
    transaction: *mut durum_kv_transaction_t,
    key: *const c_char,
    key_len: usize,
    value: *const c_char,
    value_len: usize,
) {
    // SAFETY: as durum_kv.h asks for.
    unsafe {
        if let Some(transaction) = transaction.as_mut() {
            let (key, value) = (bytes(key, key_len), bytes(value, value_len));
            transaction.transaction.put(key, value);
        }
    }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn durum_kv_transaction_delete(
    transaction: *mut durum_kv_transaction_t,
    key: *const c_char,
    key_len: usize,
) {
    // SAFETY: as durum_kv.h asks for.
    unsafe {
        if let Some(transaction) = transaction.as_mut() {
            transaction.transaction.delete(bytes(key, key_len));
        }
    }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn durum_kv_transaction_commit(
    transaction: *mut durum_kv_transaction_t,
    options: *const leveldb_writeoptions_t,
    errptr: *mut *mut c_char,
) {
    // SAFETY: as durum_kv.h asks for; the handle is gone after this.
    unsafe {
        run(errptr, (), || {
            handle(transaction)?;
            let durum_kv_transaction_t {
                transaction,
                db,
                handle: from,
            } = *Box::from_raw(transaction);
            let options = handle(from)?.writing(options);
            let committed = transaction.commit_with(&options);
            drop(db);
            Ok(committed?)
        })
    }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn durum_kv_transaction_abort(transaction: *mut durum_kv_transaction_t) {
    // SAFETY: as durum_kv.h asks for.
    unsafe { destroy(transaction) };
}

/// Makes every buffered write durable that has returned before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_kv_sync(db: *mut leveldb_t, errptr: *mut *mut c_char) {
    // SAFETY: as durum_kv.h asks for.
    // ORDER: the caller's: buffered writes are durable before what it does next; else a crash takes them back.
    unsafe { run(errptr, (), || Ok(handle(db)?.db.sync()?)) }
}
