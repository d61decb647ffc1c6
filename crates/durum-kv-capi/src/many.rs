//! Many keys in one call.

use std::ffi::c_char;
use std::ptr;

use crate::db::{leveldb_t, reading};
use crate::guard::{bytes, copy, functions, handle, run};
use crate::options::{leveldb_readoptions_t, leveldb_writeoptions_t};
use crate::status::Failure;

/// A row of byte strings that C passes in: where each begins, and their lengths.
///
/// # Safety
/// Both have `count` elements, or `count` is 0; each of the strings as for [`bytes`].
unsafe fn row<'a>(
    count: usize,
    starts: *const *const c_char,
    lens: *const usize,
) -> Result<Vec<&'a [u8]>, Failure> {
    if count > 0 && (starts.is_null() || lens.is_null()) {
        return Err(Failure::argument("an array is NULL"));
    }
    // SAFETY: as the caller promises.
    let at = |at: usize| unsafe { bytes(*starts.add(at), *lens.add(at)) };
    Ok((0..count).map(at).collect())
}

/// Frees what was copied for C, which then has got nothing.
///
/// # Safety
/// `count` places, each of which holds NULL or what [`copy`] gave, and its length.
unsafe fn take_back(count: usize, values: *mut *mut c_char, lens: *mut usize) {
    for at in 0..count {
        // SAFETY: as the caller promises.
        unsafe {
            libc::free((*values.add(at)).cast());
            *values.add(at) = ptr::null_mut();
            *lens.add(at) = 0;
        }
    }
}

functions! {
    fn durum_kv_multi_get(
        db: *mut leveldb_t,
        options: *const leveldb_readoptions_t,
        count: usize,
        keys: *const *const c_char,
        key_lens: *const usize,
        values: *mut *mut c_char,
        value_lens: *mut usize,
        errptr: *mut *mut c_char,
    ) {
        if count > 0 && (values.is_null() || value_lens.is_null()) {
            return run(errptr, (), || Err(Failure::argument("an array is NULL")));
        }
        for at in 0..count {
            *values.add(at) = ptr::null_mut();
            *value_lens.add(at) = 0;
        }
        run(errptr, (), || {
            let db = handle(db)?;
            let keys = row(count, keys, key_lens)?;
            let mut found = Vec::new();
            let places = db.db.multi_get_into(&keys, &reading(options)?, &mut found)?;
            for (at, place) in places.into_iter().enumerate() {
                let Some(place) = place else { continue };
                let len = place.len();
                let value = copy(&found[place]);
                if value.is_null() {
                    take_back(at, values, value_lens);
                    return Err(Failure::argument("no memory for the values"));
                }
                *values.add(at) = value;
                *value_lens.add(at) = len;
            }
            Ok(())
        });
    }

    fn durum_kv_multi_put(
        db: *mut leveldb_t,
        options: *const leveldb_writeoptions_t,
        count: usize,
        keys: *const *const c_char,
        key_lens: *const usize,
        values: *const *const c_char,
        value_lens: *const usize,
        errptr: *mut *mut c_char,
    ) {
        run(errptr, (), || {
            let db = handle(db)?;
            let (keys, values) = (row(count, keys, key_lens)?, row(count, values, value_lens)?);
            let pairs: Vec<_> = keys.into_iter().zip(values).collect();
            Ok(db.db.multi_put_with(&pairs, &db.writing(options))?)
        })
    }
}
