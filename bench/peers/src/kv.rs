//! Key-value stores on a disk: LevelDB and LMDB behind one interface (`c/kv.h`).

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

use crate::{PeerError, c_path, text_at};

type RawSee = unsafe extern "C" fn(*mut c_void, u64, *const u8, usize);

/// `struct peer_kv_library`.
#[repr(C)]
#[derive(Debug)]
struct RawLibrary {
    version: unsafe extern "C" fn() -> *const c_char,
    open: unsafe extern "C" fn(*const c_char) -> *mut c_void,
    close: unsafe extern "C" fn(*mut c_void),
    put: unsafe extern "C" fn(*mut c_void, u64, *const u8, usize) -> c_int,
    load: unsafe extern "C" fn(*mut c_void, *const u64, *const u8, usize, usize) -> c_int,
    visit: unsafe extern "C" fn(*mut c_void, RawSee, *mut c_void) -> c_int,
}

unsafe extern "C" {
    static peer_leveldb: RawLibrary;
    static peer_lmdb: RawLibrary;
    fn peer_kv_error() -> *const c_char;
}

/// One of the libraries.
#[derive(Clone, Copy, Debug)]
pub struct Library(&'static RawLibrary);

impl Library {
    /// LevelDB.
    pub fn leveldb() -> Library {
        // SAFETY: a constant.
        Library(unsafe { &peer_leveldb })
    }

    /// LMDB.
    pub fn lmdb() -> Library {
        // SAFETY: a constant.
        Library(unsafe { &peer_lmdb })
    }

    /// Its name and version.
    pub fn version(self) -> String {
        // SAFETY: a function of the library; returns a C string that stays.
        unsafe { text_at((self.0.version)()) }
    }

    /// Makes a store in an empty directory.
    pub fn open(self, dir: &Path) -> Result<Store, PeerError> {
        let dir = c_path(dir)?;
        // SAFETY: the path is a C string.
        let raw = unsafe { (self.0.open)(dir.as_ptr()) };
        if raw.is_null() {
            return Err(self.last_error());
        }
        Ok(Store { library: self, raw })
    }

    fn last_error(self) -> PeerError {
        // SAFETY: returns a C string that stays until the next error of this thread.
        let text = unsafe { text_at(peer_kv_error()) };
        PeerError::of(&self.version(), &text)
    }

    fn check(self, result: c_int) -> Result<(), PeerError> {
        if result == 0 {
            Ok(())
        } else {
            Err(self.last_error())
        }
    }
}

/// An open store, closed on drop. Its files stay.
pub struct Store {
    library: Library,
    // INVARIANT: a store that `open` of this library returned, not null, not closed.
    raw: *mut c_void,
}

// SAFETY: a store is not bound to the thread that opened it.
unsafe impl Send for Store {}
// SAFETY: rule 4 of `c/kv.h`; only `drop` closes.
unsafe impl Sync for Store {}

impl Store {
    /// Sets the key's value, durably.
    pub fn put(&self, key: u64, value: &[u8]) -> Result<(), PeerError> {
        // SAFETY: the store is open; `value` has the length that is passed.
        let result = unsafe { (self.library.0.put)(self.raw, key, value.as_ptr(), value.len()) };
        self.library.check(result)
    }

    /// Sets the values of all keys in one commit; value i is the i-th of equal parts of `values`.
    ///
    /// # Panics
    /// If `values` has no equal parts for the keys.
    pub fn load(&self, keys: &[u64], values: &[u8]) -> Result<(), PeerError> {
        let len = values.len() / keys.len();
        assert_eq!(len * keys.len(), values.len(), "values of one length");
        // SAFETY: the store is open; there are as many keys, and values of that length, as are passed.
        let result = unsafe {
            let load = self.library.0.load;
            load(self.raw, keys.as_ptr(), values.as_ptr(), len, keys.len())
        };
        self.library.check(result)
    }

    /// Shows every entry.
    pub fn visit(&self, see: &mut dyn FnMut(u64, &[u8])) -> Result<(), PeerError> {
        let mut see = see;
        let context: *mut &mut dyn FnMut(u64, &[u8]) = &raw mut see;
        // SAFETY: the store is open; `show` gets its context back.
        let result = unsafe { (self.library.0.visit)(self.raw, show, context.cast()) };
        self.library.check(result)
    }
}

/// # Safety
/// `context` points to a `&mut dyn FnMut(u64, &[u8])`, and `value` is valid for `len` bytes.
unsafe extern "C" fn show(context: *mut c_void, key: u64, value: *const u8, len: usize) {
    // SAFETY: as the caller promises.
    let see = unsafe { &mut *context.cast::<&mut dyn FnMut(u64, &[u8])>() };
    // SAFETY: as the caller promises.
    see(key, unsafe { std::slice::from_raw_parts(value, len) });
}

impl Drop for Store {
    fn drop(&mut self) {
        // SAFETY: the invariant of `raw`; nobody uses it after this.
        unsafe { (self.library.0.close)(self.raw) }
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").finish_non_exhaustive()
    }
}
