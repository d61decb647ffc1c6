//! Pools on their way to another store.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;
use std::time::Duration;

use client::{Compression, ExportOptions, ImportOptions, ImportReport, SnapshotOptions};

use crate::code;
use crate::guard::{Failure, Result, handle, status, string};
use crate::pool::PoolHandle;
use crate::store::{StoreHandle, path};

/// Pools to which pointers of the pool lead are exported with it, and those to which theirs lead.
pub const DURUM_EXPORT_WITH_REFERENCED: u32 = 1;
/// One file, a tar archive, instead of a directory.
pub const DURUM_EXPORT_ARCHIVE: u32 = 2;
/// The archive is compressed, as by gzip. Implies DURUM_EXPORT_ARCHIVE.
pub const DURUM_EXPORT_COMPRESSED: u32 = 4;

/// The export stays as it is, and the store gets copies of its files.
pub const DURUM_IMPORT_COPY: u32 = 1;
/// All contents are compared with their sums now, not when each puddle is first mapped.
pub const DURUM_IMPORT_VERIFY: u32 = 2;
/// Objects without a known type hold no pointers. Without that promise an export that has some is refused where it
/// cannot have the addresses that it had.
pub const DURUM_IMPORT_UNTYPED_HOLD_NO_POINTERS: u32 = 4;

/// Exports a pool that nobody has open for writing: makes a directory `place`, which must not exist yet, with the pool
/// as it is in memory and the descriptors of its types. `flags` are DURUM_EXPORT_* in any combination. It is durable on
/// return.
///
/// DURUM_E_POOL_MISSING; DURUM_E_POOL_OPEN close all its handles first; DURUM_E_POOL_BUSY another client of the store's
/// service writes it; DURUM_E_SHIPPING pointers lead to other pools, or something has that name; DURUM_E_DAMAGED,
/// DURUM_E_STORAGE_FULL, DURUM_E_OPTIONS, DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_export(
    store: *mut StoreHandle,
    name: *const c_char,
    place: *const c_char,
    flags: u32,
) -> c_int {
    status(|| {
        check_flags(
            flags,
            DURUM_EXPORT_WITH_REFERENCED | DURUM_EXPORT_ARCHIVE | DURUM_EXPORT_COMPRESSED,
        )?;
        // SAFETY: handle and strings as the conventions say.
        let (store, name) = unsafe {
            (
                handle(store, "the store")?,
                string(name, "the pool's name")?,
            )
        };
        let options = ExportOptions {
            with_referenced: flags & DURUM_EXPORT_WITH_REFERENCED != 0,
            archive: archive_of(flags),
            ..ExportOptions::default()
        };
        // SAFETY: as above.
        let place = unsafe { path(place)? };
        store.0.export_pool(name, place, &options)?;
        Ok(())
    })
}

/// Exports `count` pools of one store that the program has open, as they are at one moment, while its threads go on:
/// makes a directory `place`, as durum_pool_export, named by the first. It holds what was committed before, and nothing
/// that is committed later. `flags` are DURUM_EXPORT_ARCHIVE and DURUM_EXPORT_COMPRESSED. For `wait_ms` milliseconds at
/// most a moment is waited for at which no transaction of the store is open. It is durable on return.
///
/// What the program stores without announcing it (locks, what it makes durable by durum_persist) may be in the export
/// as it was at any moment.
///
/// DURUM_E_SHIPPING a transaction stays open, or is open on this thread; a pool is of another store; pointers lead to
/// pools that are not among these; something has that name. DURUM_E_READ_ONLY, DURUM_E_DAMAGED, DURUM_E_STORAGE_FULL,
/// DURUM_E_OPTIONS, DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_snapshot(
    pools: *const *mut PoolHandle,
    count: usize,
    place: *const c_char,
    flags: u32,
    wait_ms: u64,
) -> c_int {
    status(|| {
        check_flags(flags, DURUM_EXPORT_ARCHIVE | DURUM_EXPORT_COMPRESSED)?;
        if pools.is_null() || count == 0 {
            return Err(Failure::argument("the pools are NULL, or none"));
        }
        // SAFETY: the caller has `count` handles there.
        let handles = unsafe { std::slice::from_raw_parts(pools, count) };
        let mut options = SnapshotOptions::new().wait(Duration::from_millis(wait_ms));
        options.archive = archive_of(flags);
        // SAFETY: handles and string as the conventions say.
        let (first, place) = unsafe { (handle(handles[0], "a pool")?, path(place)?) };
        for other in handles {
            // SAFETY: as above.
            options = options.with(&unsafe { handle(*other, "a pool")? }.0);
        }
        first.0.snapshot(place, &options)?;
        Ok(())
    })
}

/// Imports what durum_pool_export has exported: as a pool of the same name (`name` NULL), or of another one. `flags`
/// are DURUM_IMPORT_* in any combination. The pool is durable on return. On the same file system the export's files
/// become the store's and the export is gone, unless DURUM_IMPORT_COPY.
///
/// DURUM_E_POOL_EXISTS; DURUM_E_POOL_NAME; DURUM_E_SHIPPING it cannot be imported so; DURUM_E_FORMAT, DURUM_E_DAMAGED
/// it is no whole export; DURUM_E_ADDRESSES_EXHAUSTED, DURUM_E_STORAGE_FULL, DURUM_E_TYPE, DURUM_E_OPTIONS,
/// DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT, DURUM_E_IO.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_import(
    store: *mut StoreHandle,
    place: *const c_char,
    name: *const c_char,
    flags: u32,
) -> c_int {
    status(|| {
        let name = match name.is_null() {
            true => None,
            // SAFETY: the string is as the conventions say.
            false => Some(unsafe { string(name, "the pool's name")? }.to_owned()),
        };
        let options = ImportOptions {
            name,
            ..options_of(flags)?
        };
        // SAFETY: handle and string as the conventions say.
        unsafe { import(store, place, &options) }?;
        Ok(())
    })
}

/// As durum_pool_import; but the puddles join a pool of the store, which must be of the same engine and not open. The
/// root object becomes an object of it, whose address is put in `root` (NULL where there is none): it is garbage, with
/// all that it leads to, until the program has something lead there.
///
/// As durum_pool_import; DURUM_E_POOL_MISSING; DURUM_E_POOL_OPEN close all its handles first; DURUM_E_POOL_BUSY another
/// client of the store's service has it; DURUM_E_QUARANTINED.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_import_into(
    store: *mut StoreHandle,
    place: *const c_char,
    pool: *const c_char,
    flags: u32,
    root: *mut *mut c_void,
) -> c_int {
    status(|| {
        // SAFETY: the string is as the conventions say.
        let into = unsafe { string(pool, "the pool's name")? };
        let options = ImportOptions {
            into: Some(into.to_owned()),
            ..options_of(flags)?
        };
        // SAFETY: handle and string as the conventions say.
        let report = unsafe { import(store, place, &options) }?;
        if !root.is_null() {
            let address = report.root.unwrap_or(0) as usize;
            // SAFETY: the caller has room for a pointer there.
            unsafe { root.write(ptr::with_exposed_provenance_mut(address)) };
        }
        Ok(())
    })
}

/// # Safety
/// As the conventions say of handle and string.
unsafe fn import(
    store: *mut StoreHandle,
    place: *const c_char,
    options: &ImportOptions,
) -> Result<ImportReport> {
    // SAFETY: as the caller promises.
    let (store, place) = unsafe { (handle(store, "the store")?, path(place)?) };
    Ok(store.0.import(place, options)?)
}

fn archive_of(flags: u32) -> Option<Compression> {
    match (
        flags & DURUM_EXPORT_COMPRESSED,
        flags & DURUM_EXPORT_ARCHIVE,
    ) {
        (0, 0) => None,
        (0, _) => Some(Compression::None),
        _ => Some(Compression::Gzip),
    }
}

fn options_of(flags: u32) -> Result<ImportOptions> {
    let all = DURUM_IMPORT_COPY | DURUM_IMPORT_VERIFY | DURUM_IMPORT_UNTYPED_HOLD_NO_POINTERS;
    check_flags(flags, all)?;
    Ok(ImportOptions {
        copies: flags & DURUM_IMPORT_COPY != 0,
        verifies: flags & DURUM_IMPORT_VERIFY != 0,
        untyped_hold_no_pointers: flags & DURUM_IMPORT_UNTYPED_HOLD_NO_POINTERS != 0,
        ..ImportOptions::default()
    })
}

fn check_flags(flags: u32, all: u32) -> Result<()> {
    match flags & !all {
        0 => Ok(()),
        unknown => Err(Failure::new(
            code::DURUM_E_OPTIONS,
            format!("the flags {unknown:#x} are unknown to this version"),
        )),
    }
}
