//! The low-level log: the caller's own sequence numbers, ranges and order.

use std::ffi::{c_int, c_void};

use client::{Order, RawEntry, RawLog};

use crate::guard::{self, Failure, Result, handle, pointer, status};
use crate::store::StoreHandle;

/// Applied before all entries without this flag, the last one first. For undo.
pub const DURUM_LOG_REVERSE: u32 = 1;
/// The target is volatile memory: durum_log_apply writes it, recovery ignores it.
pub const DURUM_LOG_VOLATILE: u32 = 2;

/// The sequence number by which durum marks undo entries: they count in the range (0, 2).
pub const DURUM_SEQUENCE_UNDO: u8 = 1;
/// The sequence number by which durum marks redo entries: they count in the range (2, 4).
pub const DURUM_SEQUENCE_REDO: u8 = 3;

/// A log of the program's own. Opaque; one thread at a time uses it.
#[derive(Debug)]
pub struct LogHandle(RawLog);

/// # Safety
/// NULL, or a live handle that nobody else uses during the call.
unsafe fn log<'a>(log: *mut LogHandle) -> Result<&'a mut RawLog> {
    // SAFETY: as the caller promises.
    match unsafe { log.as_mut() } {
        Some(log) => Ok(&mut log.0),
        None => Err(guard::missing("the log")),
    }
}

/// Takes an empty log with the range (0, 2). If the process dies, the service replays the entries that the durable
/// range admits before any pool is handed out again. Close it with durum_log_close, before the pools that its entries
/// name.
///
/// Returns NULL on failure: DURUM_E_STORAGE_FULL, DURUM_E_ADDRESSES_EXHAUSTED, DURUM_E_POISONED, DURUM_E_ARGUMENT,
/// DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_log_open(store: *mut StoreHandle) -> *mut LogHandle {
    pointer(|| {
        // SAFETY: a live handle, as the conventions say.
        let store = unsafe { handle(store, "the store")? };
        Ok(Box::into_raw(Box::new(LogHandle(store.0.raw_log()?))))
    })
}

/// Empties the log and gives it back. NULL is allowed. Its entries count no more, durably, on return.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_log_close(log: *mut LogHandle) -> c_int {
    status(|| {
        if !log.is_null() {
            // SAFETY: made by `durum_log_open`, and not used after this call, as the conventions say.
            drop(unsafe { Box::from_raw(log) });
        }
        Ok(())
    })
}

/// Appends an entry: when it is applied, `len` bytes at `target` become those that `source` holds now. Pass the target
/// itself as source to log its present contents (undo). `sequence` is compared with the log's range: the entry counts
/// if lo < sequence < hi. `flags`: DURUM_LOG_REVERSE, DURUM_LOG_VOLATILE. Durable after the next durum_log_flush.
///
/// DURUM_E_NOT_IN_POOL a persistent target outside the open pools of the store; DURUM_E_LOG_MISUSE sequence 0, or the
/// pool's engine is not DURUM_ENGINE_HYBRID: on others the program does not work in the media; DURUM_E_STORAGE_FULL the
/// log had to grow and cannot; DURUM_E_ARGUMENT, DURUM_E_POISONED, DURUM_E_IO. Nothing is appended then.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_log_append(
    log: *mut LogHandle,
    target: *mut c_void,
    source: *const c_void,
    len: usize,
    sequence: u8,
    flags: u32,
) -> c_int {
    status(|| {
        // SAFETY: a live handle that one thread uses, as the conventions say.
        let log = unsafe { self::log(log)? };
        if target.is_null() || source.is_null() {
            return Err(Failure::argument("target or source is NULL"));
        }
        if flags & !(DURUM_LOG_REVERSE | DURUM_LOG_VOLATILE) != 0 {
            return Err(Failure::argument(format!("{flags:#x} has unknown flags")));
        }
        let entry = RawEntry {
            sequence,
            order: if flags & DURUM_LOG_REVERSE != 0 {
                Order::Reverse
            } else {
                Order::Forward
            },
            volatile: flags & DURUM_LOG_VOLATILE != 0,
        };
        // SAFETY: the source is readable and unchanged during the call, as the conventions say.
        unsafe { log.append(target.cast(), source.cast(), len, entry) }?;
        Ok(())
    })
}

/// Makes the entries appended so far durable: one fence. Before this returns, do not store to what an undo entry
/// protects.
///
/// DURUM_E_ARGUMENT, DURUM_E_POISONED, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_log_flush(log: *mut LogHandle) -> c_int {
    // SAFETY: a live handle that one thread uses, as the conventions say.
    status(|| Ok(unsafe { self::log(log)? }.flush()?))
}

/// Changes which entries count, by one atomic 8-byte store; durable on return: one fence. (4, 4) admits none.
///
/// DURUM_E_LOG_MISUSE lo > hi; DURUM_E_ARGUMENT, DURUM_E_POISONED, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_log_set_range(log: *mut LogHandle, lo: u8, hi: u8) -> c_int {
    // SAFETY: a live handle that one thread uses, as the conventions say.
    status(|| Ok(unsafe { self::log(log)? }.set_range(lo, hi)?))
}

/// Applies the entries that count now, in their order, as recovery would, and volatile ones as well; their targets are
/// durable on return: one fence. No other thread may use the targets.
///
/// DURUM_E_ARGUMENT, DURUM_E_POISONED, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_log_apply(log: *mut LogHandle) -> c_int {
    // SAFETY: a live handle that one thread uses, and valid targets, as the conventions say.
    status(|| Ok(unsafe { self::log(log)?.apply() }?))
}

/// Empties the log: no entry counts any more, and the range is (0, 2) again. Durable on return: one fence.
///
/// DURUM_E_ARGUMENT, DURUM_E_POISONED, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_log_reset(log: *mut LogHandle) -> c_int {
    // SAFETY: a live handle that one thread uses, as the conventions say.
    status(|| Ok(unsafe { self::log(log)? }.reset()?))
}
