//! Options: what is meant, and what is accepted without effect.

use std::ffi::{CStr, c_char, c_int};
use std::sync::Arc;

use kv::{Durability, Engine, Options};

use crate::comparator::{Foreign, leveldb_comparator_t};
use crate::guard::{destroys, functions, give};
use crate::ignored::{leveldb_cache_t, leveldb_env_t, leveldb_filterpolicy_t, leveldb_logger_t};
use crate::snapshot::leveldb_snapshot_t;

/// How a database is opened.
#[derive(Debug)]
pub struct leveldb_options_t {
    pub(crate) options: Options,
    /// Writes without `sync` are buffered.
    pub(crate) buffers: bool,
}

/// How a database is read.
#[derive(Debug)]
pub struct leveldb_readoptions_t {
    pub(crate) verifies: bool,
    /// NULL: what is there now.
    pub(crate) snapshot: *const leveldb_snapshot_t,
}

/// How a database is written.
#[derive(Debug)]
pub struct leveldb_writeoptions_t {
    pub(crate) is_sync: bool,
}

impl leveldb_writeoptions_t {
    /// `None`: as the database is set.
    pub(crate) fn durability(&self, buffers: bool) -> Option<Durability> {
        match (self.is_sync, buffers) {
            (true, _) => Some(Durability::Durable),
            (false, true) => Some(Durability::Buffered),
            (false, false) => None,
        }
    }
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn leveldb_options_create() -> *mut leveldb_options_t {
    give(leveldb_options_t {
        options: Options::new(),
        buffers: false,
    })
}

functions! {
    fn leveldb_options_set_comparator(
        options: *mut leveldb_options_t,
        comparator: *mut leveldb_comparator_t,
    ) {
        if let Some(options) = options.as_mut() {
            let foreign = comparator.as_ref().map(|comparator| Arc::new(Foreign::of(comparator)) as _);
            options.options.comparator = foreign;
        }
    }

    fn leveldb_readoptions_set_snapshot(
        options: *mut leveldb_readoptions_t,
        snapshot: *const leveldb_snapshot_t,
    ) {
        if let Some(options) = options.as_mut() {
            options.snapshot = snapshot;
        }
    }
}

/// Functions that set a flag.
macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident: $type:ty, $($field:ident).+;)*) => { $(
        $(#[$doc])*
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(options: *mut $type, wanted: u8) {
            // SAFETY: as durum_kv.h asks for.
            if let Some(options) = unsafe { options.as_mut() } {
                options.$($field).+ = wanted != 0;
            }
        }
    )* };
}

flags! {
    #[doc(hidden)]
    leveldb_options_set_create_if_missing: leveldb_options_t, options.create_if_missing;
    #[doc(hidden)]
    leveldb_options_set_error_if_exists: leveldb_options_t, options.error_if_exists;
    #[doc(hidden)]
    leveldb_options_set_paranoid_checks: leveldb_options_t, options.paranoid_checks;
    /// Writes without `sync` need not be durable when they return.
    durum_kv_options_set_buffered: leveldb_options_t, buffers;
    /// For reading only: a database that is there, which this program need not have the right to write.
    durum_kv_options_set_read_only: leveldb_options_t, options.read_only;
    #[doc(hidden)]
    leveldb_readoptions_set_verify_checksums: leveldb_readoptions_t, verifies;
    #[doc(hidden)]
    leveldb_writeoptions_set_sync: leveldb_writeoptions_t, is_sync;
}

/// Functions whose value means nothing here.
macro_rules! without_effect {
    ($($name:ident: $type:ty),* $(,)?) => { $(
        #[unsafe(no_mangle)]
        #[doc(hidden)]
        pub extern "C" fn $name(_: *mut leveldb_options_t, _: $type) {}
    )* };
}

without_effect! {
    leveldb_options_set_filter_policy: *mut leveldb_filterpolicy_t,
    leveldb_options_set_env: *mut leveldb_env_t,
    leveldb_options_set_info_log: *mut leveldb_logger_t,
    leveldb_options_set_write_buffer_size: usize,
    leveldb_options_set_max_open_files: c_int,
    leveldb_options_set_cache: *mut leveldb_cache_t,
    leveldb_options_set_block_size: usize,
    leveldb_options_set_block_restart_interval: c_int,
    leveldb_options_set_max_file_size: usize,
    leveldb_options_set_compression: c_int,
}

/// The engine of a database that is made. Whether there is one of that name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_kv_options_set_engine(
    options: *mut leveldb_options_t,
    name: *const c_char,
) -> u8 {
    // SAFETY: as durum_kv.h asks for.
    let (options, name) = unsafe {
        match (options.as_mut(), name.is_null()) {
            (Some(options), false) => (options, CStr::from_ptr(name)),
            _ => return 0,
        }
    };
    let engine = name.to_str().ok().and_then(Engine::from_name);
    if let Some(engine) = engine {
        options.options.engine = engine;
    }
    u8::from(engine.is_some())
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn leveldb_readoptions_create() -> *mut leveldb_readoptions_t {
    give(leveldb_readoptions_t {
        verifies: false,
        snapshot: std::ptr::null(),
    })
}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn leveldb_readoptions_set_fill_cache(_: *mut leveldb_readoptions_t, _: u8) {}

#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn leveldb_writeoptions_create() -> *mut leveldb_writeoptions_t {
    give(leveldb_writeoptions_t { is_sync: false })
}

destroys! {
    leveldb_options_destroy: leveldb_options_t,
    leveldb_readoptions_destroy: leveldb_readoptions_t,
    leveldb_writeoptions_destroy: leveldb_writeoptions_t,
}
