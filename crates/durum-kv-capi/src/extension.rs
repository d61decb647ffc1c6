//! What LevelDB does not have: transactions, and waiting for buffered writes.

use std::ffi::c_char;
use std::ptr;

use kv::{Db, Transaction};

use crate::db::leveldb_t;
use crate::guard::{bytes, destroys, functions, give, handle, run, value};
use crate::options::leveldb_writeoptions_t;

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

functions! {
    fn durum_kv_transaction_begin(
        db: *mut leveldb_t,
        errptr: *mut *mut c_char,
    ) -> *mut durum_kv_transaction_t {
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

    fn durum_kv_transaction_get(
        transaction: *const durum_kv_transaction_t,
        key: *const c_char,
        key_len: usize,
        value_len: *mut usize,
        errptr: *mut *mut c_char,
    ) -> *mut c_char {
        value(value_len, errptr, || {
            Ok(handle(transaction)?.transaction.get(bytes(key, key_len))?)
        })
    }

    fn durum_kv_transaction_put(
        transaction: *mut durum_kv_transaction_t,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
    ) {
        if let Some(transaction) = transaction.as_mut() {
            let (key, value) = (bytes(key, key_len), bytes(value, value_len));
            transaction.transaction.put(key, value);
        }
    }

    fn durum_kv_transaction_delete(
        transaction: *mut durum_kv_transaction_t,
        key: *const c_char,
        key_len: usize,
    ) {
        if let Some(transaction) = transaction.as_mut() {
            transaction.transaction.delete(bytes(key, key_len));
        }
    }

    fn durum_kv_transaction_commit(
        transaction: *mut durum_kv_transaction_t,
        options: *const leveldb_writeoptions_t,
        errptr: *mut *mut c_char,
    ) {
        // The handle is gone after this.
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

/// Makes every buffered write durable that has returned before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_kv_sync(db: *mut leveldb_t, errptr: *mut *mut c_char) {
    // SAFETY: as durum_kv.h asks for.
    // ORDER: the caller's: buffered writes are durable before what it does next; else a crash takes them back.
    unsafe { run(errptr, (), || Ok(handle(db)?.db.sync()?)) }
}

destroys! {
    durum_kv_transaction_abort: durum_kv_transaction_t,
}
