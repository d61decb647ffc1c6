//! LMDB, with a transaction for each put and its default of durability.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::{fs, ptr};

use durum_kv_bench::Store;
use durum_kv_bench::store::Batch;

#[repr(C)]
struct Opaque {
    _private: [u8; 0],
}

type Handle = *mut Opaque;

/// `MDB_val`.
#[repr(C)]
struct Value {
    size: usize,
    data: *mut c_void,
}

/// Bytes that somebody else owns.
impl Value {
    fn of(bytes: &[u8]) -> Self {
        Self {
            size: bytes.len(),
            data: bytes.as_ptr().cast_mut().cast(),
        }
    }

    const fn none() -> Self {
        Self {
            size: 0,
            data: ptr::null_mut(),
        }
    }

    /// # Safety
    /// Filled by the library, in a transaction that is open as long as the bytes are used.
    unsafe fn bytes<'a>(&self) -> &'a [u8] {
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts(self.data.cast(), self.size) }
    }
}

// Of lmdb.h.
const NO_SYNC: c_uint = 0x10000;
const READ_ONLY: c_uint = 0x20000;
const NOT_FOUND: c_int = -30798;
const FIRST: c_uint = 0;
const LAST: c_uint = 6;
const NEXT: c_uint = 8;
const PREVIOUS: c_uint = 12;
const SET_RANGE: c_uint = 17;

#[link(name = "lmdb")]
unsafe extern "C" {
    fn mdb_version(major: *mut c_int, minor: *mut c_int, patch: *mut c_int) -> *const c_char;
    fn mdb_strerror(error: c_int) -> *const c_char;
    fn mdb_env_create(env: *mut Handle) -> c_int;
    fn mdb_env_set_mapsize(env: Handle, size: usize) -> c_int;
    fn mdb_env_set_flags(env: Handle, flags: c_uint, on: c_int) -> c_int;
    fn mdb_env_open(env: Handle, path: *const c_char, flags: c_uint, mode: c_uint) -> c_int;
    fn mdb_env_close(env: Handle);
    fn mdb_txn_begin(env: Handle, parent: Handle, flags: c_uint, txn: *mut Handle) -> c_int;
    fn mdb_txn_commit(txn: Handle) -> c_int;
    fn mdb_txn_abort(txn: Handle);
    fn mdb_txn_reset(txn: Handle);
    fn mdb_txn_renew(txn: Handle) -> c_int;
    fn mdb_dbi_open(txn: Handle, name: *const c_char, flags: c_uint, dbi: *mut c_uint) -> c_int;
    fn mdb_put(
        txn: Handle,
        dbi: c_uint,
        key: *mut Value,
        value: *mut Value,
        flags: c_uint,
    ) -> c_int;
    fn mdb_get(txn: Handle, dbi: c_uint, key: *mut Value, value: *mut Value) -> c_int;
    fn mdb_del(txn: Handle, dbi: c_uint, key: *mut Value, value: *mut Value) -> c_int;
    fn mdb_cursor_open(txn: Handle, dbi: c_uint, cursor: *mut Handle) -> c_int;
    fn mdb_cursor_close(cursor: Handle);
    fn mdb_cursor_get(cursor: Handle, key: *mut Value, value: *mut Value, step: c_uint) -> c_int;
}

fn check(code: c_int) -> Result<(), String> {
    match code {
        0 => Ok(()),
        // SAFETY: gives a string that stays.
        code => Err(unsafe { CStr::from_ptr(mdb_strerror(code)) }
            .to_string_lossy()
            .into_owned()),
    }
}

/// A read transaction that a thread uses again and again, as LMDB recommends; it goes with the thread, or when another
/// database is read.
struct Reader {
    env: Handle,
    txn: Handle,
}

impl Drop for Reader {
    fn drop(&mut self) {
        // SAFETY: a transaction of this thread's.
        unsafe { mdb_txn_abort(self.txn) };
    }
}

thread_local! {
    static READER: RefCell<Option<Reader>> = const { RefCell::new(None) };
}

/// LMDB.
pub struct Lmdb {
    path: PathBuf,
    /// Open, or null.
    env: Handle,
    dbi: c_uint,
}

// SAFETY: environments may be used by several threads; transactions stay in theirs.
unsafe impl Sync for Lmdb {}

impl Lmdb {
    /// A database at a path.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            env: ptr::null_mut(),
            dbi: 0,
        }
    }

    fn change<R>(
        &self,
        sync: bool,
        change: impl FnOnce(Handle) -> Result<R, String>,
    ) -> Result<R, String> {
        // SAFETY: an open environment; the transaction ends in this call.
        unsafe {
            check(mdb_env_set_flags(self.env, NO_SYNC, c_int::from(!sync)))?;
            let mut txn = ptr::null_mut();
            check(mdb_txn_begin(self.env, ptr::null_mut(), 0, &mut txn))?;
            match change(txn) {
                Ok(value) => check(mdb_txn_commit(txn)).map(|()| value),
                Err(error) => {
                    mdb_txn_abort(txn);
                    Err(error)
                }
            }
        }
    }

    fn read<R>(&self, read: impl FnOnce(Handle) -> Result<R, String>) -> Result<R, String> {
        READER.with_borrow_mut(|reader| {
            // SAFETY: an open environment, and a transaction of this thread's that was reset.
            unsafe {
                match reader {
                    Some(reader) if reader.env == self.env => check(mdb_txn_renew(reader.txn))?,
                    _ => {
                        *reader = None;
                        let mut txn = ptr::null_mut();
                        check(mdb_txn_begin(
                            self.env,
                            ptr::null_mut(),
                            READ_ONLY,
                            &mut txn,
                        ))?;
                        let env = self.env;
                        *reader = Some(Reader { env, txn });
                    }
                }
                let txn = reader.as_ref().ok_or("no transaction")?.txn;
                let result = read(txn);
                mdb_txn_reset(txn);
                result
            }
        })
    }

    fn with_cursor<R>(&self, read: impl FnOnce(Handle) -> Result<R, String>) -> Result<R, String> {
        self.read(|txn| {
            let mut cursor = ptr::null_mut();
            // SAFETY: an open transaction; the cursor is closed before it ends.
            unsafe {
                check(mdb_cursor_open(txn, self.dbi, &mut cursor))?;
                let result = read(cursor);
                mdb_cursor_close(cursor);
                result
            }
        })
    }
}

/// Whether the first key that is not smaller is equal. The cursor is open.
fn seek(cursor: Handle, key: &[u8]) -> Result<bool, String> {
    let (mut found, mut value) = (Value::of(key), Value::none());
    // SAFETY: an open cursor; the key stays until the transaction ends.
    unsafe {
        match mdb_cursor_get(cursor, &mut found, &mut value, SET_RANGE) {
            NOT_FOUND => Ok(false),
            code => check(code).map(|()| found.bytes() == key),
        }
    }
}

impl Drop for Lmdb {
    fn drop(&mut self) {
        self.close();
    }
}

impl Store for Lmdb {
    fn version(&self) -> String {
        // SAFETY: gives a string that stays; NULL places are left alone.
        let text = unsafe {
            CStr::from_ptr(mdb_version(
                ptr::null_mut(),
                ptr::null_mut(),
                ptr::null_mut(),
            ))
        };
        let text = text.to_string_lossy();
        text.split(':').next().unwrap_or("LMDB").to_owned()
    }

    fn open(&mut self, fresh: bool) -> Result<(), String> {
        self.close();
        let said = |error: std::io::Error| format!("{}: {error}", self.path.display());
        if fresh && self.path.exists() {
            fs::remove_dir_all(&self.path).map_err(said)?;
        }
        fs::create_dir_all(&self.path).map_err(said)?;
        let path = CString::new(self.path.as_os_str().as_encoded_bytes())
            .map_err(|error| error.to_string())?;
        // SAFETY: a fresh environment; the place for the handle of the main database.
        unsafe {
            check(mdb_env_create(&mut self.env))?;
            check(mdb_env_set_mapsize(self.env, 8 << 30))?;
            check(mdb_env_open(self.env, path.as_ptr(), 0, 0o644))?;
            let mut txn = ptr::null_mut();
            check(mdb_txn_begin(self.env, ptr::null_mut(), 0, &mut txn))?;
            check(mdb_dbi_open(txn, ptr::null(), 0, &mut self.dbi))?;
            check(mdb_txn_commit(txn))
        }
    }

    fn close(&mut self) {
        READER.with_borrow_mut(|reader| *reader = None);
        if !self.env.is_null() {
            // SAFETY: an open environment, which is null afterwards; other threads have ended.
            unsafe { mdb_env_close(std::mem::replace(&mut self.env, ptr::null_mut())) };
        }
    }

    fn put(&self, key: &[u8], value: &[u8], sync: bool) -> Result<(), String> {
        let (mut key, mut value) = (Value::of(key), Value::of(value));
        // SAFETY: an open transaction and live bytes.
        self.change(sync, |txn| unsafe {
            check(mdb_put(txn, self.dbi, &mut key, &mut value, 0))
        })
    }

    fn write(&self, changes: Batch<'_>, sync: bool) -> Result<(), String> {
        self.change(sync, |txn| {
            for (key, value) in changes {
                let mut key = Value::of(key);
                // SAFETY: as above.
                let code = unsafe {
                    match value {
                        Some(value) => mdb_put(txn, self.dbi, &mut key, &mut Value::of(value), 0),
                        None => mdb_del(txn, self.dbi, &mut key, ptr::null_mut()),
                    }
                };
                check(if code == NOT_FOUND { 0 } else { code })?;
            }
            Ok(())
        })
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool, String> {
        let (mut key, mut found) = (Value::of(key), Value::none());
        // SAFETY: an open transaction, which ends after the bytes were copied.
        self.read(|txn| unsafe {
            match mdb_get(txn, self.dbi, &mut key, &mut found) {
                NOT_FOUND => Ok(false),
                code => {
                    check(code)?;
                    value.extend_from_slice(found.bytes());
                    Ok(true)
                }
            }
        })
    }

    fn scan(&self, reverse: bool, count: u64, seen: &mut impl FnMut(usize)) -> Result<(), String> {
        let (mut step, further) = if reverse {
            (LAST, PREVIOUS)
        } else {
            (FIRST, NEXT)
        };
        self.with_cursor(|cursor| {
            for _ in 0..count {
                let (mut key, mut value) = (Value::none(), Value::none());
                // SAFETY: an open cursor.
                match unsafe { mdb_cursor_get(cursor, &mut key, &mut value, step) } {
                    NOT_FOUND => break,
                    code => check(code)?,
                }
                seen(key.size + value.size);
                step = further;
            }
            Ok(())
        })
    }

    fn seek(&self, key: &[u8]) -> Result<bool, String> {
        self.with_cursor(|cursor| seek(cursor, key))
    }

    fn seek_many(
        &self,
        count: u64,
        next: &mut impl FnMut(&mut Vec<u8>),
        seen: &mut impl FnMut(bool),
    ) -> Result<(), String> {
        let mut key = Vec::new();
        self.with_cursor(|cursor| {
            for _ in 0..count {
                next(&mut key);
                seen(seek(cursor, &key)?);
            }
            Ok(())
        })
    }
}
