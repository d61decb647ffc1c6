//! A level of a thread's transaction, for plain calls and for blocks.

use client::{Durability, Tx};

use crate::guard::{self, Failure, Result, handle};
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
pub(crate) unsafe fn begin(pool: *mut PoolHandle, durability: u32) -> Result<()> {
    // SAFETY: as the caller promises.
    let pool = unsafe { handle(pool, "the pool")? };
    let durability = match durability {
        DURUM_DURABLE => Durability::Durable,
        DURUM_BUFFERED => Durability::Buffered,
        other => return Err(Failure::argument(format!("{other} is no durability"))),
    };
    // SAFETY: levels are ended in reverse order by `Tx::end_level`, and the handle stays open until the outermost is.
    let transaction = unsafe { pool.0.begin_with(durability)? };
    // From here on the level is ended by `Tx::end_level`.
    std::mem::forget(transaction);
    Ok(())
}

/// Commits one level.
#[inline]
pub(crate) fn commit() -> Result<()> {
    // SAFETY: in C every level is one of these.
    unsafe { Tx::end_level(true) }?;
    if Tx::levels() == 0 {
        guard::forget();
    }
    Ok(())
}
