//! Heaps of NVL-C that are made anew under other types. `nvl.h` declares what is here; durum.h does not.

use std::cell::Cell;
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use client::migration::MigrateReport;
use durum_nvl::migrate::{ChangedField, ChangedType, HeapMigration, Origin, align_of, migrate};
use durum_nvl::open_error;

use crate::guard::{Failure, Result, failure_of, run, string};
use crate::migrate::{all, made_by};

/// `struct nvl_migrated_type`.
///
/// cbindgen:ignore
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HeapType {
    name: *const c_char,
    was: *const c_char,
    now: *const c_char,
    make: Option<unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void) -> c_int>,
    argument: *mut c_void,
}

/// `struct nvl_migrated_field`.
///
/// cbindgen:ignore
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HeapField {
    ty: *const c_char,
    name: *const c_char,
    was: *const c_char,
    value: *const c_char,
    forget: c_int,
}

/// `struct nvl_migration`.
///
/// cbindgen:ignore
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct HeapChanges {
    root: *const c_char,
    types: *const HeapType,
    type_count: usize,
    fields: *const HeapField,
    field_count: usize,
}

/// `struct nvl_migration_report`.
///
/// cbindgen:ignore
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct HeapReport {
    objects: u64,
    old_bytes: u64,
    bytes: u64,
    puddles: u64,
    scratch_bytes: u64,
}

/// Makes a heap anew. -1 on failure, with errno; `nvl_error` says everything that stands in the way.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvl_migrate(
    path: *const c_char,
    how: *const HeapChanges,
    report: *mut HeapReport,
) -> c_int {
    // SAFETY: as nvl.h says.
    unsafe { migrated("nvl_migrate", path, how, report, false) }
}

/// Tells what `nvl_migrate` would do, and writes nothing.
///
/// cbindgen:ignore
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvl_plan_migration(
    path: *const c_char,
    how: *const HeapChanges,
    report: *mut HeapReport,
) -> c_int {
    // SAFETY: as nvl.h says.
    unsafe { migrated("nvl_plan_migration", path, how, report, true) }
}

/// # Safety
/// Strings and arrays as nvl.h says.
unsafe fn migrated(
    function: &str,
    path: *const c_char,
    how: *const HeapChanges,
    report: *mut HeapReport,
    is_plan: bool,
) -> c_int {
    let errno = Cell::new(libc::EINVAL);
    let done = run(|| {
        // SAFETY: as the caller promises.
        let (path, how) = unsafe { (string(path, "the path")?, how.as_ref()) };
        let how = how.ok_or_else(|| Failure::argument("the migration is NULL"))?;
        // SAFETY: as the caller promises.
        let how = unsafe { changes(how)? };
        migrate(Path::new(path), how, is_plan).map_err(|error| {
            errno.set(error.errno());
            error.into()
        })
    });
    match done {
        Ok(found) => {
            // SAFETY: as the caller promises.
            if let Some(report) = unsafe { report.as_mut() } {
                *report = HeapReport::of(&found);
            }
            open_error::succeeded();
            0
        }
        Err(code) => {
            // SAFETY: as the caller promises.
            let path = unsafe { string(path, "the path") };
            open_error::failed(function, path.unwrap_or("NULL"), &failure_of(code).message);
            // SAFETY: the thread's own.
            unsafe { *libc::__errno_location() = errno.get() };
            -1
        }
    }
}

impl HeapReport {
    fn of(found: &MigrateReport) -> Self {
        Self {
            objects: found.objects,
            old_bytes: found.old_bytes,
            bytes: found.bytes,
            puddles: found.puddles,
            scratch_bytes: found.scratch_bytes,
        }
    }
}

/// # Safety
/// Strings and arrays as nvl.h says.
unsafe fn changes<'m>(said: &HeapChanges) -> Result<HeapMigration<'m>> {
    // SAFETY: as the caller promises.
    let (types, fields) = unsafe {
        (
            all(said.types, said.type_count, "the types are NULL")?,
            all(said.fields, said.field_count, "the fields are NULL")?,
        )
    };
    // SAFETY: as the caller promises.
    let text = |text, what: &str| unsafe { string(text, what) };
    let maybe = |given: *const c_char, what| match given.is_null() {
        true => Ok(None),
        false => text(given, what).map(Some),
    };
    let mut how = HeapMigration {
        root: text(said.root, "the root's type")?,
        types: Vec::new(),
        fields: Vec::new(),
    };
    for ty in types {
        let now = text(ty.now, "a type that is now")?;
        let align = align_of(now).map_err(Failure::argument)?;
        how.types.push(ChangedType {
            name: maybe(ty.name, "a type's name")?,
            was: maybe(ty.was, "a type that was")?,
            now,
            make: ty.make.map(|make| made_by(make, ty.argument, align)),
        });
    }
    for field in fields {
        let was = maybe(field.was, "what a field was")?;
        let value = maybe(field.value, "a field's value")?;
        let from = match (was, value, field.forget) {
            (Some(was), None, 0) => Origin::Field(was),
            (None, Some(value), 0) => Origin::Value(value),
            (None, None, 1..) => Origin::Nowhere,
            _ => {
                return Err(Failure::argument(
                    "of a field one of `was`, `value` and `forget` is said",
                ));
            }
        };
        how.fields.push(ChangedField {
            ty: text(field.ty, "a field's type")?,
            name: text(field.name, "a field's name")?,
            from,
        });
    }
    Ok(how)
}
