//! Pools: made, opened, closed, removed; and the root of each.

use std::ffi::{c_char, c_int, c_void};

use client::{Concurrency, Engine, PageTracking, Pool, TwinMode, Tx};

use crate::begun;
use crate::code;
use crate::guard::{Failure, Result, handle, pointer, run, status, string};
use crate::store::StoreHandle;
use crate::types::{self, TypeDeclaration};

/// The engine that new pools get by default: Shadow.
pub const DURUM_ENGINE_DEFAULT: u32 = 0;
/// Undo and redo logs, changes in place.
pub const DURUM_ENGINE_HYBRID: u32 = 1;
/// Two copies, main and back.
pub const DURUM_ENGINE_TWIN: u32 = 2;
/// Private pages and one redo record for each commit.
pub const DURUM_ENGINE_SHADOW: u32 = 3;

/// A page that cannot be read does not end the process: it is replaced by a private one, and the next call returns
/// DURUM_E_POISONED.
pub const DURUM_POOL_SURVIVE_MEDIA_ERRORS: u32 = 1;
/// Each commit looks for stores that were not announced (DURUM_E_UNANNOUNCED), and for pointers that lead out of the
/// store (DURUM_E_POINTER_OUTSIDE). Slow, for tests.
pub const DURUM_POOL_CHECK_STORES: u32 = 2;
/// Sections find what has changed by userfaultfd (Linux 6.7), or fail. Without this and the next one: the best that the
/// system has.
pub const DURUM_POOL_TRACK_USERFAULTFD: u32 = 4;
/// Sections find what has changed by mprotect and a SIGSEGV handler. System calls that write to a page of the pool then
/// fail (EFAULT) in a section.
pub const DURUM_POOL_TRACK_MPROTECT: u32 = 8;
/// Nobody keeps threads apart in durum_pool_update and durum_pool_read: for programs in which one thread at a time uses
/// the pool.
pub const DURUM_POOL_SINGLE_THREADED: u32 = 16;
/// A pool of DURUM_ENGINE_TWIN: a commit copies all that is in use, where it differs, and not what was announced. For
/// comparisons, and for pools of some pages.
pub const DURUM_POOL_BASIC_COPIES: u32 = 32;
/// A pool of DURUM_ENGINE_TWIN: threads may read it beside a transaction, without waiting (durum_pool_read_copy).
pub const DURUM_POOL_LEFT_RIGHT: u32 = 64;
/// The pool is only read. Any number of programs may do that at the same time, where a service serves the store. What
/// would change it fails with DURUM_E_READ_ONLY, and a plain store to it ends the process (SIGSEGV). Nothing is made:
/// one that is not there is DURUM_E_POOL_MISSING.
pub const DURUM_POOL_READ_ONLY: u32 = 128;

/// An open pool. Opaque.
#[derive(Debug)]
pub struct PoolHandle(pub(crate) Pool);

/// How a pool is made, and how it is used while it is open. Start from DURUM_POOL_OPTIONS_INIT.
#[derive(Debug)]
#[repr(C)]
pub struct PoolOptions {
    /// sizeof(durum_pool_options).
    pub struct_size: u64,
    /// Bytes of the puddle that holds the root, a multiple of 2 MiB; fixed when the pool is made. 0: 2 MiB.
    pub root_puddle_size: u64,
    /// One of DURUM_ENGINE_*; fixed when the pool is made.
    pub engine: u32,
    /// DURUM_POOL_* in any combination.
    pub flags: u32,
}

impl PoolOptions {
    /// # Safety
    /// NULL, or readable options.
    unsafe fn read(options: *const Self) -> Result<client::PoolOptions> {
        let mut read = client::PoolOptions::new();
        // SAFETY: as the caller promises.
        let Some(options) = (unsafe { options.as_ref() }) else {
            return Ok(read);
        };
        let track = DURUM_POOL_TRACK_USERFAULTFD | DURUM_POOL_TRACK_MPROTECT;
        let copies = DURUM_POOL_BASIC_COPIES | DURUM_POOL_LEFT_RIGHT;
        let flags = DURUM_POOL_SURVIVE_MEDIA_ERRORS
            | DURUM_POOL_CHECK_STORES
            | DURUM_POOL_SINGLE_THREADED
            | DURUM_POOL_READ_ONLY
            | track
            | copies;
        if options.struct_size != size_of::<Self>() as u64 || options.flags & !flags != 0 {
            return Err(Failure::argument(
                "the pool options were not made with DURUM_POOL_OPTIONS_INIT of this version",
            ));
        }
        match options.engine {
            DURUM_ENGINE_DEFAULT => {}
            number => match Engine::from_number(number) {
                Some(engine) => read = read.engine(engine),
                None => return Err(Failure::argument(format!("{number} is no DURUM_ENGINE_*"))),
            },
        }
        if options.root_puddle_size != 0 {
            read = read.root_puddle_size(options.root_puddle_size);
        }
        let tracking = match options.flags & track {
            0 => PageTracking::Auto,
            DURUM_POOL_TRACK_USERFAULTFD => PageTracking::Userfaultfd,
            DURUM_POOL_TRACK_MPROTECT => PageTracking::Mprotect,
            _ => {
                return Err(Failure::argument(
                    "DURUM_POOL_TRACK_USERFAULTFD and DURUM_POOL_TRACK_MPROTECT exclude each other",
                ));
            }
        };
        if options.flags & copies != 0 && options.engine != DURUM_ENGINE_TWIN {
            return Err(Failure::argument(
                "DURUM_POOL_BASIC_COPIES and DURUM_POOL_LEFT_RIGHT are for pools of DURUM_ENGINE_TWIN: name it as the engine, also of a pool that exists",
            ));
        }
        read = match options.flags & copies {
            0 => read,
            DURUM_POOL_BASIC_COPIES => read.twin_mode(TwinMode::Basic),
            DURUM_POOL_LEFT_RIGHT => read.twin_mode(TwinMode::LeftRight),
            _ => {
                return Err(Failure::argument(
                    "DURUM_POOL_BASIC_COPIES and DURUM_POOL_LEFT_RIGHT exclude each other",
                ));
            }
        };
        if options.flags & DURUM_POOL_SINGLE_THREADED != 0 {
            read = read.concurrency(Concurrency::SingleThreaded);
        }
        Ok(read
            .page_tracking(tracking)
            .survive_media_errors(options.flags & DURUM_POOL_SURVIVE_MEDIA_ERRORS != 0)
            .check_stores(options.flags & DURUM_POOL_CHECK_STORES != 0)
            .read_only(options.flags & DURUM_POOL_READ_ONLY != 0))
    }
}

type Open = fn(&client::Store, &str, client::PoolOptions) -> client::Result<Pool>;

/// # Safety
/// Arguments as the conventions say.
unsafe fn open(
    store: *mut StoreHandle,
    name: *const c_char,
    options: *const PoolOptions,
    how: Open,
) -> *mut PoolHandle {
    pointer(|| {
        // SAFETY: handle, string and options as the conventions say.
        let (store, name, options) = unsafe {
            (
                handle(store, "the store")?,
                string(name, "the pool's name")?,
                PoolOptions::read(options)?,
            )
        };
        let needs_copies = options.twin_mode != TwinMode::Log;
        let pool = how(&store.0, name, options)?;
        if needs_copies && pool.engine() != Engine::Twin {
            // It was there before: a new one has the engine that the options name.
            return Err(Failure::new(
                code::DURUM_E_NO_COPIES,
                format!(
                    "pool \"{name}\" has the {} engine, without copies: open it without DURUM_POOL_BASIC_COPIES and DURUM_POOL_LEFT_RIGHT",
                    pool.engine().name()
                ),
            ));
        }
        Ok(Box::into_raw(Box::new(PoolHandle(pool))))
    })
}

/// Opens a pool of the store. A pool that is open in this process already gives another handle to it. `options` may be
/// NULL: the defaults. Close each handle with durum_pool_close.
///
/// Returns NULL on failure:
/// DURUM_E_POOL_MISSING; DURUM_E_POOL_BUSY another client of the store's service writes it, or reads it
/// (DURUM_POOL_READ_ONLY) and it is to be written; DURUM_E_POOL_OPEN this process has it open in one of these ways, and
/// asks for the other; DURUM_E_QUARANTINED a log that concerns it failed validation; DURUM_E_POOL_REFUSED a file of it
/// is missing or damaged; DURUM_E_NO_COPIES the flags are about copies, and its engine is not DURUM_ENGINE_TWIN;
/// DURUM_E_ENGINE_MISSING, DURUM_E_ADDRESS_CONFLICT, DURUM_E_DAMAGED, DURUM_E_POISONED, DURUM_E_FORKED,
/// DURUM_E_ARGUMENT, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_open(
    store: *mut StoreHandle,
    name: *const c_char,
    options: *const PoolOptions,
) -> *mut PoolHandle {
    // SAFETY: as the caller promises.
    unsafe { open(store, name, options, client::Store::open_pool) }
}

/// Makes a pool in the store and opens it. It exists durably on return.
///
/// Returns NULL on failure, and leaves nothing behind:
/// DURUM_E_POOL_EXISTS; DURUM_E_POOL_NAME a name that a pool cannot have; DURUM_E_OPTIONS a size that is no multiple of
/// 2 MiB; DURUM_E_READ_ONLY a new pool has nothing to read; DURUM_E_ENGINE_MISSING, DURUM_E_STORAGE_FULL,
/// DURUM_E_ADDRESSES_EXHAUSTED, DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_create(
    store: *mut StoreHandle,
    name: *const c_char,
    options: *const PoolOptions,
) -> *mut PoolHandle {
    // SAFETY: as the caller promises.
    unsafe { open(store, name, options, client::Store::create_pool) }
}

/// Opens a pool, or makes it if the store has none of this name. Returns NULL on failure, with the codes of
/// durum_pool_open and durum_pool_create.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_open_or_create(
    store: *mut StoreHandle,
    name: *const c_char,
    options: *const PoolOptions,
) -> *mut PoolHandle {
    // SAFETY: as the caller promises.
    unsafe { open(store, name, options, client::Store::open_or_create_pool) }
}

/// Makes every DURUM_BUFFERED transaction of the pool durable that has committed before, in any thread. They are
/// durable on return.
///
/// DURUM_E_POISONED which of them are durable is unknown; DURUM_E_STORAGE_FULL, DURUM_E_IO they are not durable, and
/// are tried again later; DURUM_E_FORKED, DURUM_E_ARGUMENT.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_sync(pool: *mut PoolHandle) -> c_int {
    status(|| {
        // SAFETY: a live handle, as the conventions say.
        let pool = unsafe { handle(pool, "the pool")? };
        // ORDER: the client's; nothing here depends on it.
        Ok(pool.0.sync()?)
    })
}

/// Makes room: afterwards at least `bytes` of the pool are free, so that transactions that allocate as much need not
/// wait while it grows. The room stays as long as the pool is open; what is not used by then goes when it is closed.
///
/// DURUM_E_STORAGE_FULL the file system has no such room, and the pool is as large as before; DURUM_E_IO,
/// DURUM_E_DAMAGED, DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_reserve(pool: *mut PoolHandle, bytes: u64) -> c_int {
    status(|| {
        // SAFETY: a live handle, as the conventions say.
        let pool = unsafe { handle(pool, "the pool")? };
        Ok(pool.0.reserve(bytes)?)
    })
}

/// Gives the handle back. NULL is allowed. The pool closes with its last handle: its objects are not mapped any more
/// then. No thread may be in a transaction on the pool.
///
/// DURUM_E_IN_TRANSACTION if this thread's transaction, update or read began on this handle; the handle stays valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_pool_close(pool: *mut PoolHandle) -> c_int {
    status(|| {
        if pool.is_null() {
            return Ok(());
        }
        // SAFETY: a live handle, as the conventions say.
        if Tx::began_on(&unsafe { handle(pool, "the pool")? }.0) || begun::has_begun_on(pool) {
            return Err(Failure::new(
                code::DURUM_E_IN_TRANSACTION,
                "the pool cannot be closed while this thread's transaction, update or read on it runs",
            ));
        }
        // SAFETY: made by `open`, and not used after this call, as the conventions say.
        drop(unsafe { Box::from_raw(pool) });
        Ok(())
    })
}

/// Removes a pool and everything in it. It is durably gone on return.
///
/// DURUM_E_POOL_MISSING; DURUM_E_POOL_OPEN close all its handles first; DURUM_E_POOL_BUSY another client of the store's
/// service has it; DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_remove(store: *mut StoreHandle, name: *const c_char) -> c_int {
    status(|| {
        // SAFETY: handle and string as the conventions say.
        let (store, name) = unsafe {
            (
                handle(store, "the store")?,
                string(name, "the pool's name")?,
            )
        };
        Ok(store.0.remove_pool(name)?)
    })
}

/// Takes objects of the pool whose type has the id `found` as objects of `type`, and so all that pointers lead to from
/// there: for a program that keeps ids beside objects of its own. A newer version of the type becomes their type,
/// durably (docs/how-to/change-types.md). Returns 0 or
/// DURUM_E_ROOT_TYPE they are of another type, or of a newer version; DURUM_E_TYPE, DURUM_E_POISONED, DURUM_E_FORKED,
/// DURUM_E_ARGUMENT, DURUM_E_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_pool_take_type(
    pool: *mut PoolHandle,
    found: u64,
    r#type: *mut TypeDeclaration,
) -> c_int {
    status(|| {
        // SAFETY: a live handle, and a type made by DURUM_TYPE, as the conventions say.
        let (pool, id) = unsafe {
            let pool = &handle(pool, "the pool")?.0;
            (pool, types::ensure(pool, r#type, usize::MAX)?.0)
        };
        Ok(pool.take_type(found, id)?)
    })
}

/// Whether types of the pool have changed since objects of them were stored: 1 or 0. Also 0 with DURUM_E_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_pool_has_old_types(pool: *mut PoolHandle) -> c_int {
    run(|| {
        // SAFETY: a live handle, as the conventions say.
        let pool = unsafe { handle(pool, "the pool")? };
        Ok(c_int::from(pool.0.has_old_types()))
    })
    .unwrap_or(0)
}

/// The root object of the pool: made now, all bytes zero and durable, if the pool has none yet. `type` may be NULL:
/// bytes without pointers. Inside a transaction the making is part of it.
///
/// Returns NULL on failure:
/// DURUM_E_ROOT_TYPE the pool's root is of another type or size; DURUM_E_ROOT_PENDING another thread's transaction is
/// making it; DURUM_E_READ_ONLY it has none, and the pool is only read; DURUM_E_OBJECT_SIZE it does not fit into the
/// root puddle; DURUM_E_TYPE a type declared in two ways; DURUM_E_DAMAGED, DURUM_E_POISONED, DURUM_E_FORKED,
/// DURUM_E_ARGUMENT, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_root(
    pool: *mut PoolHandle,
    r#type: *mut TypeDeclaration,
    size: usize,
) -> *mut c_void {
    pointer(|| {
        // SAFETY: a live handle, and a type made by DURUM_TYPE, as the conventions say.
        let (pool, id, align) = unsafe {
            let pool = &handle(pool, "the pool")?.0;
            let (id, align) = types::ensure(pool, r#type, size)?;
            (pool, id, align)
        };
        Ok(pool.root_bytes(id, size, align)?.cast())
    })
}
