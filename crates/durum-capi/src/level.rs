//! A level of a thread's transaction, for plain calls and for blocks.

use std::ffi::c_int;

use client::{Durability, Tx};

use crate::code::DURUM_OK;
use crate::guard::{self, Failure, failed, missing};
use crate::pool::PoolHandle;

/// The transaction is durable when its commit returns.
pub const DURUM_DURABLE: u32 = 0;
/// The transaction is durable soon after its commit has returned: a crash loses at most what was committed within the
/// store's `buffered_window_us` before it. The order stays: once a later durable transaction has committed, it cannot
/// be lost. On other engines than DURUM_ENGINE_SHADOW the same as DURUM_DURABLE.
pub const DURUM_BUFFERED: u32 = 1;

/// Begins one, which is durable as DURUM_DURABLE or DURUM_BUFFERED says.
///
/// # Safety
/// A live handle or NULL; it stays open until the outermost level has ended.
#[inline(always)]
pub(crate) unsafe fn begin(pool: *mut PoolHandle, durability: u32) -> c_int {
    // SAFETY: as the caller promises.
    let Some(pool) = (unsafe { pool.as_ref() }) else {
        return failed(missing("the pool"));
    };
    let durability = match durability {
        DURUM_DURABLE => Durability::Durable,
        DURUM_BUFFERED => Durability::Buffered,
        other => return failed(Failure::argument(format!("{other} is no durability"))),
    };
    // SAFETY: levels are ended in reverse order by `Tx::end_level`, and the handle stays open until the outermost is.
    match unsafe { pool.0.begin_level(durability) } {
        Ok(()) => DURUM_OK,
        Err(error) => failed(error),
    }
}

/// Commits one level.
#[inline(always)]
pub(crate) fn commit() -> c_int {
    // SAFETY: in C every level is one of these.
    match unsafe { Tx::end_level(true) } {
        Ok(0) => {
            guard::forget();
            DURUM_OK
        }
        Ok(_) => DURUM_OK,
        Err(error) => failed(error),
    }
}
