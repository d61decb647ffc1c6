//! The edge between C and Rust: failures go out as strings, no panic passes, and bytes come in without being looked at.

use std::cell::Cell;
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;

use crate::status::{Code, Failure};

thread_local! {
    static CODE: Cell<c_int> = const { Cell::new(0) };
}

/// Bytes in memory that C frees. NULL if there is no memory.
pub(crate) fn copy(bytes: &[u8]) -> *mut c_char {
    // SAFETY: at least one byte is asked for.
    let place = unsafe { libc::malloc(bytes.len().max(1)) }.cast::<u8>();
    if !place.is_null() {
        // SAFETY: just allocated with that many bytes.
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
    place.cast()
}

/// A string in memory that C frees.
pub(crate) fn copy_string(text: &str) -> *mut c_char {
    let mut bytes: Vec<u8> = text.bytes().filter(|&byte| byte != 0).collect();
    bytes.push(0);
    copy(&bytes)
}

/// Puts a message where C looks for one. One that is there is freed.
///
/// # Safety
/// NULL, or a place that holds NULL or a message that an earlier call put there.
unsafe fn report(errptr: *mut *mut c_char, failure: &Failure) {
    CODE.with(|code| code.set(failure.code()));
    if errptr.is_null() {
        return;
    }
    // SAFETY: as the caller promises.
    unsafe {
        libc::free((*errptr).cast());
        *errptr = copy_string(&failure.message());
    }
}

/// Runs the body of a function. What it gives if it fails is `default`.
///
/// # Safety
/// `errptr` as for LevelDB's functions: NULL, or a place that holds NULL or an earlier message.
pub(crate) unsafe fn run<T>(
    errptr: *mut *mut c_char,
    default: T,
    body: impl FnOnce() -> Result<T, Failure>,
) -> T {
    // What a panic leaves half done is rolled back by the database.
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => return value,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            // The payload's destructor could panic outside of every guard.
            std::mem::forget(panic);
            Failure::new(Code::IoError, "internal error; please report it")
        }
    };
    // SAFETY: as the caller promises.
    unsafe { report(errptr, &failure) };
    default
}

/// Bytes that C passes in; a NULL with the length 0 is no bytes.
///
/// # Safety
/// `len` readable bytes, unchanged during the call.
pub(crate) unsafe fn bytes<'a>(start: *const c_char, len: usize) -> &'a [u8] {
    match len {
        0 => &[],
        // SAFETY: as the caller promises.
        _ => unsafe { std::slice::from_raw_parts(start.cast(), len) },
    }
}

/// A path that C passes in.
///
/// # Safety
/// NULL, or a string that ends with a NUL byte and stays unchanged during the call.
pub(crate) unsafe fn path<'a>(name: *const c_char) -> Result<&'a Path, Failure> {
    if name.is_null() {
        return Err(Failure::argument("the name is NULL"));
    }
    // SAFETY: as the caller promises.
    let name = unsafe { CStr::from_ptr(name) };
    Ok(Path::new(OsStr::from_bytes(name.to_bytes())))
}

/// A handle that C passes in.
///
/// # Safety
/// NULL, or a live handle that is not destroyed during the call.
pub(crate) unsafe fn handle<'a, T>(pointer: *const T) -> Result<&'a T, Failure> {
    // SAFETY: as the caller promises.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::argument("a handle is NULL"))
}

/// Gives a new object to C.
pub(crate) fn give<T>(value: T) -> *mut T {
    Box::into_raw(Box::new(value))
}

/// Takes an object back from C, and drops it.
///
/// # Safety
/// NULL, or what [`give`] gave, which nobody uses any more.
pub(crate) unsafe fn destroy<T>(pointer: *mut T) {
    if !pointer.is_null() {
        // SAFETY: as the caller promises. A destructor that panics must not unwind into C.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(unsafe { Box::from_raw(pointer) })));
        if let Err(panic) = dropped {
            std::mem::forget(panic);
        }
    }
}

/// Functions of LevelDB's header. Their bodies rely on what that asks of callers.
macro_rules! functions {
    ($(fn $name:ident($($arg:tt: $type:ty),* $(,)?) $(-> $out:ty)? $body:block)*) => { $(
        #[unsafe(no_mangle)]
        #[doc(hidden)]
        pub unsafe extern "C" fn $name($($arg: $type),*) $(-> $out)? {
            // SAFETY: as durum_kv.h asks for.
            unsafe { $body }
        }
    )* };
}
pub(crate) use functions;

/// Functions that take an object back.
macro_rules! destroys {
    ($($name:ident: $type:ty),* $(,)?) => { $(
        #[unsafe(no_mangle)]
        #[doc(hidden)]
        pub unsafe extern "C" fn $name(pointer: *mut $type) {
            // SAFETY: as durum_kv.h asks for.
            unsafe { $crate::guard::destroy(pointer) };
        }
    )* };
}
pub(crate) use destroys;

/// A value that is looked for, in memory that C frees: NULL if there is none, or none was found.
///
/// # Safety
/// As for [`run`]; NULL, or a place for the length.
pub(crate) unsafe fn value(
    value_len: *mut usize,
    errptr: *mut *mut c_char,
    find: impl FnOnce() -> Result<Option<Vec<u8>>, Failure>,
) -> *mut c_char {
    let copied = || match find()? {
        None => Ok((ptr::null_mut(), 0)),
        Some(found) => match copy(&found) {
            value if value.is_null() => Err(Failure::argument("no memory for the value")),
            value => Ok((value, found.len())),
        },
    };
    // SAFETY: as the caller promises.
    unsafe {
        let (value, len) = run(errptr, (ptr::null_mut(), 0), copied);
        if let Some(place) = value_len.as_mut() {
            *place = len;
        }
        value
    }
}

/// What kind of failure the calling thread's latest one was.
#[unsafe(no_mangle)]
pub extern "C" fn durum_kv_error_code() -> c_int {
    CODE.with(Cell::get)
}

/// Frees what the library has allocated for C.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn leveldb_free(pointer: *mut libc::c_void) {
    // SAFETY: NULL, or memory of `malloc`.
    unsafe { libc::free(pointer) };
}

/// The version of LevelDB whose functions these are.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_major_version() -> c_int {
    1
}

/// The version of LevelDB whose functions these are.
#[unsafe(no_mangle)]
pub extern "C" fn leveldb_minor_version() -> c_int {
    23
}

/// The version of the library, as in "1.2.3". The string is constant.
#[unsafe(no_mangle)]
pub extern "C" fn durum_kv_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

pub(crate) const NONE: *mut *mut c_char = ptr::null_mut();
