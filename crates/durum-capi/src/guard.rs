//! The edge between C and Rust: pointers come in, failures go out as codes and messages, and no panic passes. Where a
//! transaction begins or commits a panic ends the process: what has come of it only the next who opens the store can
//! tell, and a frame that catches it would cost each of them. Where a small object is allocated or freed the short way
//! is tried before there is such a frame; nothing panics there.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use crate::code;

/// Why a call failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: c_int,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn new(code: c_int, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(code::DURUM_E_ARGUMENT, message)
    }
}

impl From<client::Error> for Failure {
    #[cold]
    fn from(error: client::Error) -> Self {
        Self::new(code::of(&error), error.to_string())
    }
}

impl From<Box<client::Error>> for Failure {
    #[cold]
    fn from(error: Box<client::Error>) -> Self {
        (*error).into()
    }
}

pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

thread_local! {
    /// The code of the thread's latest failure. Const and without destructor, so cheap.
    static CODE: Cell<c_int> = const { Cell::new(code::DURUM_OK) };
    static MESSAGE: RefCell<CString> = RefCell::new(CString::default());
}

/// Records a failure as this thread's latest one.
#[cold]
pub(crate) fn record(failure: Failure) -> c_int {
    CODE.with(|code| code.set(failure.code));
    let bytes: Vec<u8> = failure.message.bytes().filter(|&byte| byte != 0).collect();
    let message = CString::new(bytes).unwrap_or_default();
    // A thread that ends has no message any more; the code is enough then.
    let _ = MESSAGE.try_with(|slot| slot.replace(message));
    failure.code
}

/// Forgets the latest failure: a transaction has committed.
#[inline]
pub(crate) fn forget() {
    // A store behind the commit's fence costs more than a look.
    if latest() != code::DURUM_OK {
        CODE.with(|code| code.set(code::DURUM_OK));
    }
}

pub(crate) fn latest() -> c_int {
    CODE.with(Cell::get)
}

fn latest_message() -> String {
    let told = MESSAGE.try_with(|message| message.borrow().to_string_lossy().into_owned());
    told.unwrap_or_default()
}

/// Runs the body of a C function. A failure or a panic becomes the thread's latest failure and `Err` with its code.
#[inline]
pub(crate) fn run<T>(body: impl FnOnce() -> Result<T>) -> Result<T, c_int> {
    // What a panic leaves half done stays behind locks that tolerate it; the transaction is rolled back by its owner.
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(failure)) => Err(record(failure)),
        Err(panic) => Err(record(panicked(panic))),
    }
}

#[cold]
fn panicked(panic: Box<dyn Any + Send>) -> Failure {
    let text = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "no message".to_owned(),
    };
    // The payload's destructor is foreign code that could panic outside of every guard.
    std::mem::forget(panic);
    Failure::new(
        code::DURUM_E_INTERNAL,
        format!("internal error: {text}; please report it"),
    )
}

/// The failure that a function of the program tells by its result: with the thread's message, if that is of this code.
#[cold]
pub(crate) fn failure_of(code: c_int) -> Failure {
    let message = match latest() == code {
        true => latest_message(),
        false => format!("the function returned {code}"),
    };
    Failure::new(code, message)
}

/// [`run`] for functions that give a code.
#[inline]
pub(crate) fn status(body: impl FnOnce() -> Result<()>) -> c_int {
    run(body).err().unwrap_or(code::DURUM_OK)
}

/// Records a failure; its code.
#[cold]
#[inline(never)]
pub(crate) fn failed(failure: impl Into<Failure>) -> c_int {
    record(failure.into())
}

/// [`run`] for functions that give a pointer, NULL on failure.
#[inline]
pub(crate) fn pointer<T>(body: impl FnOnce() -> Result<*mut T>) -> *mut T {
    run(body).unwrap_or(ptr::null_mut())
}

/// A handle that C passes in.
///
/// # Safety
/// NULL, or a live handle that is not closed before the call ends.
#[inline]
pub(crate) unsafe fn handle<'a, T>(pointer: *const T, what: &str) -> Result<&'a T> {
    // SAFETY: as the caller promises.
    match unsafe { pointer.as_ref() } {
        Some(handle) => Ok(handle),
        None => Err(missing(what)),
    }
}

/// A handle is NULL because the call that should have given it failed, and that failure is the one to report.
#[cold]
pub(crate) fn missing(what: &str) -> Failure {
    match latest() {
        code::DURUM_OK => Failure::argument(format!("{what} is NULL")),
        code => Failure::new(code, latest_message()),
    }
}

/// A string that C passes in.
///
/// # Safety
/// NULL, or a string that ends with a NUL byte and stays unchanged during the call.
pub(crate) unsafe fn string<'a>(pointer: *const c_char, what: &str) -> Result<&'a str> {
    if pointer.is_null() {
        return Err(Failure::argument(format!("{what} is NULL")));
    }
    // SAFETY: as the caller promises.
    let string = unsafe { CStr::from_ptr(pointer) };
    string
        .to_str()
        .map_err(|_| Failure::argument(format!("{what} is not UTF-8")))
}

/// The code of this thread's latest failure; DURUM_OK if there was none, or if a transaction has committed since.
///
/// In DURUM_TX_ONABORT it tells why the block did not commit.
#[unsafe(no_mangle)]
pub extern "C" fn durum_errorcode() -> c_int {
    latest()
}

/// The message of this thread's latest failure, for people; "" if there was none. It names files and offsets, and says
/// what to do.
///
/// The string belongs to durum and is valid until the thread's next failure.
#[unsafe(no_mangle)]
pub extern "C" fn durum_errormsg() -> *const c_char {
    if latest() == code::DURUM_OK {
        return c"".as_ptr();
    }
    MESSAGE
        .try_with(|message| match message.try_borrow() {
            Ok(message) => message.as_ptr(),
            Err(_) => c"".as_ptr(),
        })
        .unwrap_or(c"".as_ptr())
}

/// The version of the library, as in "1.2.3". The string is constant.
#[unsafe(no_mangle)]
pub extern "C" fn durum_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> String {
        // SAFETY: the message of this thread, which has no failure meanwhile.
        unsafe { CStr::from_ptr(durum_errormsg()) }
            .to_str()
            .unwrap()
            .to_owned()
    }

    #[test]
    fn a_panic_becomes_a_code_and_a_message() {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let code = status(|| panic!("number {}", 7));
        let other = status(|| std::panic::panic_any(3));
        std::panic::set_hook(hook);
        assert_eq!(
            (code, other),
            (code::DURUM_E_INTERNAL, code::DURUM_E_INTERNAL)
        );
        assert_eq!(message(), "internal error: no message; please report it");
    }

    #[test]
    fn a_message_with_a_nul_byte_is_still_a_string() {
        record(Failure::argument("a\0b"));
        assert_eq!(message(), "ab");
        assert_eq!(durum_errorcode(), code::DURUM_E_ARGUMENT);
        forget();
        assert_eq!(durum_errorcode(), code::DURUM_OK);
        assert_eq!(message(), "");
    }
}
