//! LevelDB, by its C interface.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::PathBuf;
use std::ptr;

use durum_kv_bench::Store;
use durum_kv_bench::store::Batch;

/// What the library gives out.
#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

type Handle = *mut Opaque;

#[link(name = "leveldb")]
unsafe extern "C" {
    fn leveldb_major_version() -> c_int;
    fn leveldb_minor_version() -> c_int;
    fn leveldb_options_create() -> Handle;
    fn leveldb_options_destroy(options: Handle);
    fn leveldb_options_set_create_if_missing(options: Handle, wanted: u8);
    fn leveldb_options_set_compression(options: Handle, kind: c_int);
    fn leveldb_writeoptions_create() -> Handle;
    fn leveldb_writeoptions_destroy(options: Handle);
    fn leveldb_writeoptions_set_sync(options: Handle, wanted: u8);
    fn leveldb_readoptions_create() -> Handle;
    fn leveldb_readoptions_destroy(options: Handle);
    fn leveldb_open(options: Handle, name: *const c_char, error: *mut *mut c_char) -> Handle;
    fn leveldb_close(db: Handle);
    fn leveldb_destroy_db(options: Handle, name: *const c_char, error: *mut *mut c_char);
    fn leveldb_put(
        db: Handle,
        options: Handle,
        key: *const u8,
        key_len: usize,
        value: *const u8,
        value_len: usize,
        error: *mut *mut c_char,
    );
    fn leveldb_get(
        db: Handle,
        options: Handle,
        key: *const u8,
        key_len: usize,
        value_len: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut u8;
    fn leveldb_write(db: Handle, options: Handle, batch: Handle, error: *mut *mut c_char);
    fn leveldb_compact_range(
        db: Handle,
        start: *const u8,
        start_len: usize,
        limit: *const u8,
        limit_len: usize,
    );
    fn leveldb_property_value(db: Handle, name: *const c_char) -> *mut c_char;
    fn leveldb_free(pointer: *mut u8);
    fn leveldb_writebatch_create() -> Handle;
    fn leveldb_writebatch_destroy(batch: Handle);
    fn leveldb_writebatch_put(
        batch: Handle,
        key: *const u8,
        key_len: usize,
        value: *const u8,
        value_len: usize,
    );
    fn leveldb_writebatch_delete(batch: Handle, key: *const u8, key_len: usize);
    fn leveldb_create_iterator(db: Handle, options: Handle) -> Handle;
    fn leveldb_iter_destroy(entries: Handle);
    fn leveldb_iter_valid(entries: Handle) -> u8;
    fn leveldb_iter_seek_to_first(entries: Handle);
    fn leveldb_iter_seek_to_last(entries: Handle);
    fn leveldb_iter_seek(entries: Handle, key: *const u8, key_len: usize);
    fn leveldb_iter_next(entries: Handle);
    fn leveldb_iter_prev(entries: Handle);
    fn leveldb_iter_key(entries: Handle, len: *mut usize) -> *const u8;
    fn leveldb_iter_value(entries: Handle, len: *mut usize) -> *const u8;
}

/// LevelDB, without compression, as the values of the benchmarks are not worth it.
pub struct LevelDb {
    path: CString,
    // INVARIANT: options of the library, not destroyed before this is dropped.
    options: Handle,
    synced: Handle,
    unsynced: Handle,
    reading: Handle,
    /// Open, or null.
    db: Handle,
}

// SAFETY: LevelDB's databases are safe for several threads, and the options are only read.
unsafe impl Sync for LevelDb {}

/// Gives an error's text, and frees it.
fn check(error: *mut c_char) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: a string of the library, which is ours to free.
    unsafe {
        let text = CStr::from_ptr(error).to_string_lossy().into_owned();
        leveldb_free(error.cast());
        Err(text)
    }
}

/// Whether the first key that is not smaller is equal.
///
/// # Safety
/// An open iterator.
unsafe fn seek(entries: Handle, key: &[u8]) -> bool {
    // SAFETY: the caller's iterator; its key stays until the next step.
    unsafe {
        leveldb_iter_seek(entries, key.as_ptr(), key.len());
        if leveldb_iter_valid(entries) == 0 {
            return false;
        }
        let mut len = 0;
        let found = leveldb_iter_key(entries, &mut len);
        std::slice::from_raw_parts(found, len) == key
    }
}

impl LevelDb {
    /// A database at a path.
    pub fn new(path: PathBuf) -> Self {
        // SAFETY: functions that make options.
        unsafe {
            let options = leveldb_options_create();
            leveldb_options_set_create_if_missing(options, 1);
            leveldb_options_set_compression(options, 0);
            let synced = leveldb_writeoptions_create();
            leveldb_writeoptions_set_sync(synced, 1);
            Self {
                path: CString::new(path.into_os_string().into_encoded_bytes())
                    .expect("paths have no NUL"),
                options,
                synced,
                unsynced: leveldb_writeoptions_create(),
                reading: leveldb_readoptions_create(),
                db: ptr::null_mut(),
            }
        }
    }

    fn writing(&self, sync: bool) -> Handle {
        if sync { self.synced } else { self.unsynced }
    }
}

impl Drop for LevelDb {
    fn drop(&mut self) {
        self.close();
        // SAFETY: the invariant of the options.
        unsafe {
            leveldb_options_destroy(self.options);
            leveldb_writeoptions_destroy(self.synced);
            leveldb_writeoptions_destroy(self.unsynced);
            leveldb_readoptions_destroy(self.reading);
        }
    }
}

impl Store for LevelDb {
    fn version(&self) -> String {
        // SAFETY: functions that give numbers.
        let (major, minor) = unsafe { (leveldb_major_version(), leveldb_minor_version()) };
        format!("LevelDB {major}.{minor}")
    }

    fn open(&mut self, fresh: bool) -> Result<(), String> {
        self.close();
        let mut error = ptr::null_mut();
        // SAFETY: live options and a string.
        unsafe {
            if fresh {
                leveldb_destroy_db(self.options, self.path.as_ptr(), &mut error);
                check(error)?;
            }
            self.db = leveldb_open(self.options, self.path.as_ptr(), &mut error);
        }
        check(error)
    }

    fn close(&mut self) {
        if !self.db.is_null() {
            // SAFETY: an open database, which is null afterwards.
            unsafe { leveldb_close(std::mem::replace(&mut self.db, ptr::null_mut())) };
        }
    }

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), String> {
        let mut error = ptr::null_mut();
        let options = self.writing(sync);
        // SAFETY: the runner opens first; live options and bytes.
        unsafe {
            let (key, key_len) = (key.as_ptr(), key.len());
            leveldb_put(
                self.db,
                options,
                key,
                key_len,
                value.as_ptr(),
                value.len(),
                &mut error,
            );
        }
        check(error)
    }

    fn write(&self, changes: Batch<'_>, sync: bool) -> Result<(), String> {
        let mut error = ptr::null_mut();
        // SAFETY: as above; the batch is destroyed at the end.
        unsafe {
            let batch = leveldb_writebatch_create();
            for (key, value) in changes {
                let (key, key_len) = (key.as_ptr(), key.len());
                match value {
                    Some(value) => {
                        leveldb_writebatch_put(batch, key, key_len, value.as_ptr(), value.len());
                    }
                    None => leveldb_writebatch_delete(batch, key, key_len),
                }
            }
            leveldb_write(self.db, self.writing(sync), batch, &mut error);
            leveldb_writebatch_destroy(batch);
        }
        check(error)
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, String> {
        let (mut error, mut len) = (ptr::null_mut(), 0);
        // SAFETY: as above; what is found is ours to free.
        unsafe {
            let (key, key_len) = (key.as_ptr(), key.len());
            let found = leveldb_get(self.db, self.reading, key, key_len, &mut len, &mut error);
            check(error)?;
            if found.is_null() {
                return Ok(false);
            }
            value.extend_from_slice(std::slice::from_raw_parts(found, len));
            leveldb_free(found);
        }
        Ok(true)
    }

    fn scan(&self, reverse: bool, count: u64, seen: &mut impl FnMut(usize)) -> Result<(), String> {
        let mut left = count;
        // SAFETY: as above; the iterator is destroyed at the end.
        unsafe {
            let entries = leveldb_create_iterator(self.db, self.reading);
            match reverse {
                true => leveldb_iter_seek_to_last(entries),
                false => leveldb_iter_seek_to_first(entries),
            }
            while left > 0 && leveldb_iter_valid(entries) != 0 {
                let (mut key_len, mut value_len) = (0, 0);
                leveldb_iter_key(entries, &mut key_len);
                leveldb_iter_value(entries, &mut value_len);
                seen(key_len + value_len);
                left -= 1;
                match reverse {
                    true => leveldb_iter_prev(entries),
                    false => leveldb_iter_next(entries),
                }
            }
            leveldb_iter_destroy(entries);
        }
        Ok(())
    }

    fn seek(&self, key: &[u8]) -> Result<bool, String> {
        // SAFETY: as above.
        unsafe {
            let entries = leveldb_create_iterator(self.db, self.reading);
            let is_found = seek(entries, key);
            leveldb_iter_destroy(entries);
            Ok(is_found)
        }
    }

    fn seek_many(
        &self,
        count: u64,
        next: &mut impl FnMut(&mut Vec<u8>),
        seen: &mut impl FnMut(bool),
    ) -> Result<(), String> {
        let mut key = Vec::new();
        // SAFETY: as above.
        unsafe {
            let entries = leveldb_create_iterator(self.db, self.reading);
            for _ in 0..count {
                next(&mut key);
                seen(seek(entries, &key));
            }
            leveldb_iter_destroy(entries);
        }
        Ok(())
    }

    fn compact(&self) -> Result<(), String> {
        // SAFETY: as above; NULL stands for the first and the last key.
        unsafe { leveldb_compact_range(self.db, ptr::null(), 0, ptr::null(), 0) };
        Ok(())
    }

    fn property(&self, name: &str) -> Option<String> {
        let name = CString::new(name).ok()?;
        // SAFETY: as above; a string that is ours to free.
        unsafe {
            let found = leveldb_property_value(self.db, name.as_ptr());
            let text = CStr::from_ptr(found.as_ref()?)
                .to_string_lossy()
                .into_owned();
            leveldb_free(found.cast());
            Some(text)
        }
    }
}
