//! Transactions by plain calls: begin, announce, end. The macros of durum.h stand on these and on [`crate::block`].

use std::ffi::{c_int, c_void};
use std::mem::offset_of;

use client::window::{self, Window};
use client::{Announce, Tx};

use crate::begun;
use crate::block;
use crate::code;
use crate::guard::{self, Failure, Result, handle, status};
use crate::level::{self, DURUM_DURABLE};
use crate::migrate::room;
use crate::pool::PoolHandle;

/// Begins a transaction on this thread, or one more level of the one that runs. End each level with durum_tx_commit or
/// durum_tx_rollback. The handle must stay open until then. DURUM_TX_BEGIN is the safer way.
///
/// DURUM_E_OTHER_STORE a transaction on another store runs; DURUM_E_READS_COPY the pool is of DURUM_ENGINE_TWIN, and
/// the thread reads a copy; DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT. None begins then.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_tx_begin(pool: *mut PoolHandle) -> c_int {
    // SAFETY: a live handle, as the conventions say.
    unsafe { level::begin(pool, DURUM_DURABLE) }
}

/// As durum_tx_begin, for a transaction that is durable when `durability` says: DURUM_DURABLE or DURUM_BUFFERED. If
/// several levels of a transaction say different things, it is durable when its outermost level has committed.
///
/// The codes of durum_tx_begin; DURUM_E_ARGUMENT also for any other number.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_tx_begin_with(pool: *mut PoolHandle, durability: u32) -> c_int {
    // SAFETY: as in `durum_tx_begin`.
    unsafe { level::begin(pool, durability) }
}

/// Begins a section on this thread: a transaction in which everything in this pool may be changed by plain stores,
/// without durum_tx_add, by code that knows nothing of durum. End it with durum_tx_commit or durum_tx_rollback, as a
/// level of a transaction; inside a section of the same pool it is one more level of that one. The handle must stay
/// open until then.
///
/// On commit every word of the pool's objects that has changed is durable, or none is; on rollback all are as they were
/// before. It waits until no other transaction of the store is open, and keeps new ones out until it has ended. No
/// other thread may change the pool meanwhile in any other way. The thread holds nothing that another one waits for
/// inside a transaction, and does not wait itself for one that does.
///
/// DURUM_E_SECTION_ENGINE the pool's engine is not DURUM_ENGINE_SHADOW; DURUM_E_IN_TRANSACTION a transaction that is no
/// section of this pool runs on this thread; DURUM_E_OTHER_STORE, DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT;
/// DURUM_E_IO the system cannot tell which pages change. None begins then.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_section_begin(pool: *mut PoolHandle) -> c_int {
    status(|| {
        // SAFETY: a live handle, as the conventions say.
        let pool = unsafe { handle(pool, "the pool")? };
        // SAFETY: as in `begin`; what the caller owes to a section is said above.
        let section = unsafe { pool.0.begin_section()? };
        // From here on the level is ended by `Tx::end_level`.
        std::mem::forget(section);
        Ok(())
    })
}

/// Ends a level that durum_tx_begin or durum_section_begin began. On the outermost one, everything announced, allocated
/// and freed is durable on return (soon after, if every level is DURUM_BUFFERED), all of it or, on failure, nothing.
///
/// DURUM_E_ABORTED an inner level or durum_tx_abort has aborted it; DURUM_E_UNBALANCED the level belongs to a
/// DURUM_TX_BEGIN block or an update; DURUM_E_NO_TRANSACTION; DURUM_E_UNANNOUNCED, DURUM_E_POINTER_OUTSIDE the checker
/// found something; DURUM_E_POISONED the outcome is unknown; DURUM_E_FORKED, DURUM_E_STORAGE_FULL, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub extern "C" fn durum_tx_commit() -> c_int {
    match is_plain() {
        true => level::commit(),
        false => commit_level(),
    }
}

/// As durum_tx_commit, without waiting until what the transaction has done is durable: durum_tx_wait does, by the
/// number that is put into `in_flight`. Meanwhile the thread can do something else, the next transaction above all.
///
/// When it returns, locks may be let go of, and other threads see what was done. After a crash the transaction is there
/// as a whole or not at all. Of those that a thread has begun to commit at most the last is missing, and nothing is
/// there without what it came after. Where other threads commit to the store, on a file system, for a transaction of
/// more than about a kilobyte, on other engines than DURUM_ENGINE_SHADOW, and where buffered transactions wait, it is
/// durable when this returns, and the number is 0. On an inner level this is durum_tx_commit.
///
/// The codes of durum_tx_commit; DURUM_E_ARGUMENT `in_flight` is NULL, and the transaction goes on.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_tx_commit_begin(in_flight: *mut u64) -> c_int {
    if in_flight.is_null() {
        return guard::failed(Failure::argument("the place for the number is NULL"));
    }
    if !is_plain()
        && let Err(failure) = plain_level()
    {
        return guard::failed(failure);
    }
    // SAFETY: in C every level is one of these.
    match unsafe { Tx::begin_to_end_level() } {
        Ok(record) => {
            // SAFETY: the program's, as the conventions say.
            unsafe { in_flight.write(record) };
            if Tx::levels() == 0 {
                guard::forget();
            }
            code::DURUM_OK
        }
        Err(error) => guard::failed(error),
    }
}

/// Waits until the transaction is durable for which durum_tx_commit_begin has given this number to this thread, and
/// with it all that the thread has committed before. 0 is durable.
///
/// DURUM_E_FORKED, DURUM_E_POISONED, DURUM_E_ARGUMENT.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_tx_wait(pool: *mut PoolHandle, in_flight: u64) -> c_int {
    status(|| {
        // SAFETY: a live handle, as the conventions say.
        let pool = unsafe { handle(pool, "the pool")? };
        Ok(pool.0.land(in_flight)?)
    })
}

/// Ends a level that durum_tx_begin or durum_section_begin began, without its changes: announced memory, allocations
/// and registered volatile memory are as before. Inside an outer level the outer one can only roll back, too, and does
/// it at its end.
///
/// DURUM_E_UNBALANCED the level belongs to a DURUM_TX_BEGIN block or an update; DURUM_E_NO_TRANSACTION; DURUM_E_FORKED.
#[unsafe(no_mangle)]
pub extern "C" fn durum_tx_rollback() -> c_int {
    status(|| {
        plain_level()?;
        // SAFETY: in C every level is one of these.
        unsafe { Tx::end_level(false) }?;
        Ok(())
    })
}

/// Whether no block and no update runs on this thread, which a level could belong to.
#[inline(always)]
fn is_plain() -> bool {
    block::none_runs() && begun::floor() == 0
}

/// Commits a level that may belong to one.
#[inline(never)]
fn commit_level() -> c_int {
    match plain_level() {
        Ok(()) => level::commit(),
        Err(failure) => guard::failed(failure),
    }
}

/// Refuses to end the level of a block, which its DURUM_TX_END would miss.
fn plain_level() -> Result<()> {
    block::with_innermost(|block| match block {
        Some(block) if block.level == Tx::levels() => Err(Failure::new(
            code::DURUM_E_UNBALANCED,
            format!("this transaction ends at the DURUM_TX_END of {block}, not by a call"),
        )),
        _ if Tx::levels() > 0 && Tx::levels() == begun::floor() => Err(Failure::new(
            code::DURUM_E_UNBALANCED,
            "this transaction is an update, and ends with it",
        )),
        _ => Ok(()),
    })
}

/// How many levels of transaction run on this thread; 0: none.
#[unsafe(no_mangle)]
pub extern "C" fn durum_tx_level() -> u32 {
    Tx::levels()
}

/// Announces that the program is about to change `len` bytes at `ptr`, in any open pool of the store.
///
/// On return the old contents are safe: whatever is stored there, an abort or a crash before the commit brings them
/// back, exactly these bytes. Ranges may overlap and repeat. The new contents are durable once the transaction has
/// committed.
///
/// DURUM_E_NO_TRANSACTION, DURUM_E_NOT_IN_POOL, DURUM_E_PENDING_SET, DURUM_E_MIXED_ENGINES, DURUM_E_POISONED,
/// DURUM_E_FORKED; DURUM_E_STORAGE_FULL, DURUM_E_IO the log had to grow and cannot. Nothing is announced then: do not
/// store. Of words in a page that cannot be read durum_tx_commit may be the first to say so.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_tx_add(ptr: *const c_void, len: usize) -> c_int {
    // SAFETY: no other thread changes the range until the transaction has ended, as the conventions say.
    status(|| match unsafe { announce(ptr, len, Announce::Backup) } {
        // C++ announces whatever it stores.
        Err(_) if room::is_being_made(ptr, len) => Ok(()),
        announced => announced,
    })
}

/// `len` bytes at `ptr`.
#[repr(C)]
pub struct Range {
    /// Where they begin.
    pub ptr: *const c_void,
    /// How many there are.
    pub len: usize,
}

/// Announces `count` ranges at once, each as durum_tx_add does; on a pool of DURUM_ENGINE_HYBRID with one fence for all
/// of them.
///
/// The codes of durum_tx_add, of the first range that cannot be announced: do not store to any of them.
/// DURUM_E_ARGUMENT.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_tx_add_all(ranges: *const Range, count: usize) -> c_int {
    status(|| {
        if ranges.is_null() && count > 0 {
            return Err(Failure::argument("the ranges are NULL"));
        }
        let ranges = match count {
            0 => &[],
            // SAFETY: as many ranges, as the conventions say.
            _ => unsafe { std::slice::from_raw_parts(ranges, count) },
        };
        let ranges = ranges.iter().map(|range| (range.ptr.cast(), range.len));
        // SAFETY: as in `durum_tx_add`.
        Ok(Tx::with_running(|tx| unsafe { tx.add_all(ranges) })?)
    })
}

/// A word that was announced, and what it held. For durum.h itself, as Words is.
#[repr(C)]
pub struct Word {
    /// Its address divided by 8.
    number: usize,
    /// What it held, each bit inverted.
    inverted: u64,
}

/// Where the thread's transaction takes words without a call of the library. For durum.h itself, whose durum_tx_add
/// puts them there; another layout has another number in the name of durum_words_2.
#[repr(C)]
pub struct Words {
    /// The first address of which words are taken, and how many words are; 0: none.
    first: usize,
    count: usize,
    /// Where the next word goes, behind one that came before or is none; and where there is no more room.
    next: *mut Word,
    end: *mut Word,
}

// The library has the same layout.
const _: () = {
    assert!(offset_of!(Words, first) == offset_of!(Window, first));
    assert!(offset_of!(Words, count) == offset_of!(Window, count));
    assert!(offset_of!(Words, next) == offset_of!(Window, next));
    assert!(offset_of!(Words, end) == offset_of!(Window, end));
    assert!(size_of::<Words>() == size_of::<Window>());
    assert!(size_of::<Word>() == size_of::<window::AnnouncedWord>());
};

/// Where this thread finds its Words, which are others with each transaction. The place stays until the thread has
/// ended. For durum.h itself.
#[unsafe(no_mangle)]
pub extern "C" fn durum_words_2() -> *const *mut Words {
    window::ThreadWindow::find().cast()
}

/// As durum_tx_add, without keeping the old contents: after an abort or a crash the range holds anything. Saves the log
/// entry.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_tx_clobber(ptr: *const c_void, len: usize) -> c_int {
    // SAFETY: as in `durum_tx_add`.
    status(|| unsafe { announce(ptr, len, Announce::Clobber) })
}

/// # Safety
/// As for [`Tx::add_bytes`].
#[inline]
unsafe fn announce(ptr: *const c_void, len: usize, announce: Announce) -> Result<()> {
    // SAFETY: as the caller promises.
    Ok(Tx::with_running(|tx| unsafe {
        tx.add_bytes(ptr.cast(), len, announce)
    })?)
}

/// Defers a store: `len` bytes at `ptr` become those at `source` when the transaction commits, and not before. Until
/// then reading `ptr` gives the old contents. `source` is copied now. Costs no fence of its own.
///
/// The codes of durum_tx_add. Nothing is deferred then.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_tx_redo_set(
    ptr: *mut c_void,
    source: *const c_void,
    len: usize,
) -> c_int {
    status(|| {
        if source.is_null() && len > 0 {
            return Err(Failure::argument("the source is NULL"));
        }
        // SAFETY: the source is readable, and no other thread changes the range, as the conventions say.
        Ok(Tx::with_running(|tx| unsafe {
            tx.set_bytes(ptr.cast(), source.cast(), len)
        })?)
    })
}

/// Remembers `len` bytes of volatile memory at `ptr`: if the transaction does not commit, they get back what they hold
/// now. They must stay valid until it has ended. Recovery ignores them.
///
/// DURUM_E_NO_TRANSACTION, DURUM_E_FORKED, DURUM_E_ARGUMENT.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_tx_volatile(ptr: *mut c_void, len: usize) -> c_int {
    status(|| {
        if ptr.is_null() {
            return Err(Failure::argument("the address is NULL"));
        }
        Ok(Tx::with_running(|tx| {
            // SAFETY: valid and not shared until the transaction has ended, as the conventions say.
            unsafe { tx.volatile_bytes(ptr.cast(), len) };
            Ok(())
        })?)
    })
}
