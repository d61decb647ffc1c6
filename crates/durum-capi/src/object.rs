//! Objects: allocated, freed, made durable.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use client::{Described, Error, Pool, Tx};

use crate::block;
use crate::code::DURUM_OK;
use crate::guard::{Failure, Result, handle, pointer, status};
use crate::pool::PoolHandle;
use crate::types::{self, TypeDeclaration};

/// # Safety
/// Arguments as the conventions say.
unsafe fn allocate(
    pool: *mut PoolHandle,
    declaration: *mut TypeDeclaration,
    size: usize,
    zeroed: bool,
) -> Result<*mut c_void> {
    // SAFETY: a live handle, and a type made by DURUM_TYPE, as the conventions say.
    let (pool, id, align, is_lone) = unsafe {
        let pool = &handle(pool, "the pool")?.0;
        let (id, align) = types::ensure(pool, declaration, size)?;
        (pool, id, align, types::is_lone(declaration, size))
    };
    let allocate = |tx: &Tx| {
        let object = match is_lone {
            true => tx.alloc_lone(pool, id, size, align)?,
            false => tx.alloc_bytes(pool, id, size, align)?,
        };
        if zeroed {
            // SAFETY: just allocated, so nobody else touches its bytes.
            unsafe { durum_persist::line::zero(object, size) };
        }
        Ok::<_, Error>(object.cast())
    };
    in_transaction(pool, allocate)
}

/// The short way of [`allocate`], in which nothing panics: a small object, of a type that is known to the pool's store,
/// in the transaction that runs. NULL where there is more to do.
///
/// # Safety
/// As for [`allocate`].
#[inline(always)]
unsafe fn allocate_at_hand(
    pool: *mut PoolHandle,
    declaration: *mut TypeDeclaration,
    size: usize,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    match unsafe { (pool.as_ref(), types::known(declaration, size)) } {
        (Some(pool), Some((description, align))) => {
            // SAFETY: as the caller promises.
            let is_lone = unsafe { types::is_lone(declaration, size) };
            Tx::alloc_at_hand(&pool.0, description, size, align, is_lone).cast()
        }
        _ => ptr::null_mut(),
    }
}

/// What allocates is a part of the transaction that runs, or one of its own.
fn in_transaction<T>(pool: &Pool, allocate: impl FnOnce(&Tx) -> Result<T, Error>) -> Result<T> {
    Ok(if Tx::levels() > 0 {
        Tx::with_running(allocate)?
    } else {
        pool.transaction(allocate)?
    })
}

/// [`pointer`] for allocations: one that fails dooms the block around it.
fn allocation<T>(body: impl FnOnce() -> Result<*mut T>) -> *mut T {
    let object = pointer(body);
    if object.is_null() {
        block::allocation_failed();
    }
    object
}

/// Allocates `size` bytes in the pool for an object of the type, or for several in a row. `type` may be NULL: bytes
/// without pointers, aligned to 16. The bytes are whatever was there before.
///
/// In a transaction the object exists durably, with what the program stored in it, once the transaction has committed;
/// it needs no DURUM_TX_ADD. After an abort or a crash before, it was never allocated. Outside of a transaction this is
/// a transaction of its own: the object exists on return, and is lost room if the program dies before something durable
/// points to it.
///
/// Returns NULL on failure. A transaction goes on, but a DURUM_TX_BEGIN block that forgets to look does not commit: it
/// aborts at its end, unless it was begun with DURUM_ALLOC_MAY_FAIL. DURUM_E_OBJECT_SIZE; DURUM_E_STORAGE_FULL the pool
/// had to grow and cannot; DURUM_E_TYPE a type declared in two ways; DURUM_E_MIXED_ENGINES, DURUM_E_NOT_IN_POOL the
/// pool is of another store than the transaction; DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_malloc(
    pool: *mut PoolHandle,
    r#type: *mut TypeDeclaration,
    size: usize,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe {
        let object = allocate_at_hand(pool, r#type, size);
        match object.is_null() {
            true => allocation(|| allocate(pool, r#type, size, false)),
            false => object,
        }
    }
}

/// As durum_malloc, with all bytes zero.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_malloc_zeroed(
    pool: *mut PoolHandle,
    r#type: *mut TypeDeclaration,
    size: usize,
) -> *mut c_void {
    // SAFETY: as the caller promises; an object that was just allocated.
    unsafe {
        let object = allocate_at_hand(pool, r#type, size);
        if object.is_null() {
            return allocation(|| allocate(pool, r#type, size, true));
        }
        durum_persist::line::zero(object.cast(), size);
        object
    }
}

/// Allocates a copy of the string, its NUL included, in the pool; durum_free frees it. Else as durum_malloc. Outside of
/// a transaction the copy is durable on return.
///
/// The codes of durum_malloc.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_strdup(pool: *mut PoolHandle, string: *const c_char) -> *mut c_char {
    allocation(|| {
        // SAFETY: a live handle, as the conventions say.
        let pool = unsafe { &handle(pool, "the pool")?.0 };
        if string.is_null() {
            return Err(Failure::argument("the string is NULL"));
        }
        // SAFETY: a string, as the conventions say.
        let bytes = unsafe { CStr::from_ptr(string) }.to_bytes_with_nul();
        let id = pool.ensure_described(<c_char as Described>::description())?;
        // SAFETY: the program may store to the copy as soon as it has the address, by plain stores and not before.
        let copy = in_transaction(pool, |tx| unsafe { tx.alloc_filled(pool, id, &[bytes], 1) })?;
        Ok(copy.cast())
    })
}

/// Frees an object that durum_malloc gave; NULL is allowed. In a transaction it is free once that has committed, and
/// keeps its contents until then; outside of one this is a transaction of its own.
///
/// DURUM_E_ROOT_FREED it is the pool's root; DURUM_E_NOT_ALLOCATED no live object starts there, as after a first free;
/// DURUM_E_NOT_IN_POOL, also after a first free that left its puddle empty; DURUM_E_MIXED_ENGINES, DURUM_E_POISONED,
/// DURUM_E_FORKED, DURUM_E_IO. Nothing is freed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_free(ptr: *mut c_void) -> c_int {
    // SAFETY: nobody follows a pointer to the object after the commit, as the conventions say.
    if unsafe { Tx::free_at_hand(ptr) } {
        return DURUM_OK;
    }
    status(|| {
        if ptr.is_null() {
            return Ok(());
        }
        // SAFETY: nobody follows a pointer to the object after the commit, as the conventions say.
        let free = |tx: &Tx| unsafe { tx.free(ptr) };
        if Tx::levels() > 0 {
            return Ok(Tx::with_running(free)?);
        }
        Ok(Pool::holding(ptr.expose_provenance())?.transaction(free)?)
    })
}

/// Makes `len` bytes at `ptr`, in any open pool, durable as they are now, outside of any transaction. Not atomic: after
/// a crash before it returns, any part of the range may be old. No other thread may change the range meanwhile.
///
/// DURUM_E_NOT_IN_POOL, DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_persist(ptr: *const c_void, len: usize) -> c_int {
    status(|| {
        if len == 0 {
            return Ok(());
        }
        if ptr.is_null() {
            return Err(Failure::argument("the address is NULL"));
        }
        let pool = Pool::holding(ptr.expose_provenance())?;
        // SAFETY: no other thread changes the range, as the conventions say.
        Ok(unsafe { pool.persist(ptr.cast::<u8>(), len) }?)
    })
}

/// Sees to it that the puddle is mapped that `len` bytes at `ptr` lie in. For system calls: where puddles are mapped on
/// demand (DURUM_MAPPING_*), one that is given an address in a puddle which is not mapped yet fails with EFAULT.
///
/// DURUM_E_NOT_IN_POOL, DURUM_E_DAMAGED, DURUM_E_FORKED, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_touch(ptr: *const c_void, len: usize) -> c_int {
    status(|| {
        if len == 0 {
            return Ok(());
        }
        if ptr.is_null() {
            return Err(Failure::argument("the address is NULL"));
        }
        let pool = Pool::holding(ptr.expose_provenance())?;
        Ok(pool.touch(ptr.cast::<u8>(), len)?)
    })
}

/// Whether the address lies in an open pool of this process, or in a copy of one (durum_pool_read_copy), where nobody
/// may store: 1 or 0. Takes its time: for what fails, not for what works.
#[unsafe(no_mangle)]
pub extern "C" fn durum_in_pool(ptr: *const c_void) -> c_int {
    c_int::from(Pool::lies_in_any(ptr.expose_provenance()))
}
