//! What LevelDB needs and this store does not: caches, filters, environments. They are accepted, kept until they are
//! destroyed, and have no effect.

use std::ffi::{c_char, c_int, c_void};

use crate::guard::{copy_string, destroys, give};

/// A cache of blocks: there are no blocks, the pool is memory.
#[derive(Debug)]
pub struct leveldb_cache_t(());

/// An environment: files are durum's.
#[derive(Debug)]
pub struct leveldb_env_t(());

/// A logger, which no function makes.
#[derive(Debug)]
pub struct leveldb_logger_t(());

/// A filter policy, whose functions are never called but for the destructor.
#[derive(Debug)]
pub struct leveldb_filterpolicy_t {
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
}

impl Drop for leveldb_filterpolicy_t {
    fn drop(&mut self) {
        if let Some(destructor) = self.destructor {
            // SAFETY: the policy's own state, once, as its maker wants it.
            unsafe { destructor(self.state) };
        }
    }
}

type CreateFilter = unsafe extern "C" fn(
    *mut c_void,
    *const *const c_char,
    *const usize,
    c_int,
    *mut usize,
) -> *mut c_char;
type KeyMayMatch =
    unsafe extern "C" fn(*mut c_void, *const c_char, usize, *const c_char, usize) -> u8;

#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn leveldb_cache_create_lru(_: usize) -> *mut leveldb_cache_t {
    give(leveldb_cache_t(()))
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn leveldb_create_default_env() -> *mut leveldb_env_t {
    give(leveldb_env_t(()))
}

/// A directory for tests, which is there afterwards; NULL if it cannot be made.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_env_get_test_directory(_: *mut leveldb_env_t) -> *mut c_char {
    let own = std::env::var_os("TEST_TMPDIR").map(std::path::PathBuf::from);
    let path = own.unwrap_or_else(|| {
        // SAFETY: asks for a number.
        let user = unsafe { libc::geteuid() };
        std::env::temp_dir().join(format!("durum-kv-test-{user}"))
    });
    match (std::fs::create_dir_all(&path), path.to_str()) {
        (Ok(()), Some(text)) => copy_string(text),
        _ => std::ptr::null_mut(),
    }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn leveldb_filterpolicy_create(
    state: *mut c_void,
    destructor: Option<unsafe extern "C" fn(*mut c_void)>,
    _: Option<CreateFilter>,
    _: Option<KeyMayMatch>,
    _: Option<unsafe extern "C" fn(*mut c_void) -> *const c_char>,
) -> *mut leveldb_filterpolicy_t {
    give(leveldb_filterpolicy_t { state, destructor })
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn leveldb_filterpolicy_create_bloom(_: c_int) -> *mut leveldb_filterpolicy_t {
    give(leveldb_filterpolicy_t {
        state: std::ptr::null_mut(),
        destructor: None,
    })
}

destroys! {
    leveldb_cache_destroy: leveldb_cache_t,
    leveldb_env_destroy: leveldb_env_t,
    leveldb_filterpolicy_destroy: leveldb_filterpolicy_t,
}
