//! What compiled code calls (docs/reference/ido-ir.md), but for locks ([`crate::abi_locks`]).
//!
//! None of these fails: whatever cannot be done ends the program with a message. They do not unwind.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;

pub use crate::code::{Function, Region};
pub use crate::globals::Global;
pub use crate::names::GlobalLock;
pub use crate::refusals::Place;
pub use crate::thread::Thread;

use crate::alloc::{self, Contents};
use crate::{code, globals, heap, names, open, record, refusals, section, thread};

/// What is known of the calling thread. The first 32 bits are how many locks it holds.
#[unsafe(no_mangle)]
pub extern "C" fn __durum_ido_thread() -> *mut Thread {
    thread::current()
}

/// Enters the functions of a module.
///
/// # Safety
/// There are `count` of them, and they do not change as long as the program runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_register(functions: *const Function, count: u64) {
    // SAFETY: as the caller promises.
    unsafe { code::register(functions, count) };
}

/// Enters the variables of a module that may be or hold locks.
///
/// # Safety
/// As for [`__durum_ido_register`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_register_locks(locks: *const GlobalLock, count: u64) {
    // SAFETY: as the caller promises.
    unsafe { names::register(locks, count) };
}

/// Enters the variables that last and that a module defines.
///
/// # Safety
/// `count` pointers to variables, which stay as long as the program runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_register_globals(table: *const *const Global, count: u64) {
    // SAFETY: as the caller promises.
    unsafe { globals::register(table, count) };
}

/// Where a variable lies that lasts. It exists durably when this returns, with its initial bytes if it is new.
///
/// # Safety
/// A variable, which stays as long as the program runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_global(global: *const Global) -> *mut c_void {
    // SAFETY: as the caller promises.
    let global = unsafe { &*global };
    if let Some(place) = globals::known(global) {
        return place;
    }
    open::open_of_environment();
    globals::place(global)
}

/// Begins a section that no lock guards, or a further region of one, until [`__durum_ido_durum_durable_end`].
#[unsafe(no_mangle)]
pub extern "C" fn __durum_ido_durum_durable_begin() {
    // SAFETY: the thread's own, and nobody else here has it.
    section::begin(unsafe { &mut *thread::current() });
}

/// Ends a region. If it is the last one, and no lock is held, what the section has stored is durable when this
/// returns.
#[unsafe(no_mangle)]
pub extern "C" fn __durum_ido_durum_durable_end() {
    // SAFETY: the same.
    let thread = unsafe { &mut *thread::current() };
    section::end(thread);
    alloc::free_what_was_freed(thread);
}

/// Begins a record in front of a store: what the section has stored is durable, and its live-ins go to what this
/// returns. Null outside of sections.
///
/// # Safety
/// The calling thread, and a region of its code.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_record(
    thread: *mut Thread,
    _region: *const Region,
) -> *mut c_void {
    // SAFETY: the calling thread.
    let thread = unsafe { &mut *thread };
    match thread.depth {
        0 => ptr::null_mut(),
        _ => record::begin(thread, 0).cast(),
    }
}

/// The same in front of the store of one aligned word, behind which the section stores nothing before it lets a lock
/// go. Null outside of sections, and where it is all that the section stores: that needs no record.
///
/// # Safety
/// As for [`__durum_ido_record`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_record_word(
    thread: *mut Thread,
    _region: *const Region,
) -> *mut c_void {
    // SAFETY: the calling thread.
    let thread = unsafe { &mut *thread };
    match (thread.depth, thread.is_published) {
        (0, _) => ptr::null_mut(),
        (1, false) => {
            record::begin_word(thread);
            ptr::null_mut()
        }
        _ => record::begin(thread, 0).cast(),
    }
}

/// The same in front of the call that lets a lock go, without which the record is. Null where that ends the section,
/// and where it has recorded nothing.
///
/// # Safety
/// As for [`__durum_ido_record`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_record_release(
    thread: *mut Thread,
    _region: *const Region,
    lock: *const c_void,
) -> *mut c_void {
    // SAFETY: the calling thread.
    let thread = unsafe { &mut *thread };
    match thread.depth > 1 && thread.is_published {
        true => record::begin(thread, lock.addr()).cast(),
        false => ptr::null_mut(),
    }
}

/// The same in front of a call. Null outside of sections, and where a call writes over nothing that the last record
/// needs.
///
/// # Safety
/// As for [`__durum_ido_record`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_record_call(
    thread: *mut Thread,
    _region: *const Region,
) -> *mut c_void {
    // SAFETY: the calling thread.
    let thread = unsafe { &mut *thread };
    match thread.depth > 0 && thread.is_published && thread.stack.is_needed_above() {
        true => record::begin(thread, 0).cast(),
        false => ptr::null_mut(),
    }
}

/// The live-ins lie where they belong: the record is durable when this returns.
///
/// # Safety
/// As for [`__durum_ido_record`], which has been called.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_recorded(thread: *mut Thread, region: *const Region) {
    // SAFETY: as the caller promises.
    unsafe { record::finish(&mut *thread, &*region) };
}

/// A store to `size` bytes at `start` has been made. Durable with the next record, or when the section has ended.
///
/// # Safety
/// The calling thread, which has stored there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_wrote(thread: *mut Thread, start: *const c_void, size: u64) {
    // SAFETY: the calling thread.
    section::wrote(unsafe { &mut *thread }, start.addr(), size as usize);
}

/// `size` bytes at `start` were written outside of sections. They are durable before anything that a later section of
/// this thread stores. What does not lie in the heap is left as it is.
///
/// # Safety
/// They are the program's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_own(start: *const c_void, size: usize) {
    // SAFETY: the thread's own, and what lies in the heap is mapped, as the caller promises.
    unsafe { section::own(&mut *thread::current(), start.expose_provenance(), size) };
}

/// Takes a part of the stack that lasts, aligned to 64: locals that a record may need, so they need the heap.
///
/// # Safety
/// The calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_locals(thread: *mut Thread, size: u64) -> *mut c_void {
    open::open_of_environment();
    // SAFETY: as the caller promises.
    unsafe { __durum_ido_other_locals(thread, size) }
}

/// The same for locals that no record needs, which may come before the heap.
///
/// # Safety
/// The calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_other_locals(thread: *mut Thread, size: u64) -> *mut c_void {
    // SAFETY: the calling thread.
    let thread = unsafe { &mut *thread };
    ptr::with_exposed_provenance_mut(thread.next_stack().take(size as usize))
}

/// Gives back a part of the stack that lasts, and all above.
///
/// # Safety
/// The calling thread, which has taken it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_leave(thread: *mut Thread, place: *mut c_void) {
    // SAFETY: the calling thread.
    let thread = unsafe { &mut *thread };
    thread.stack_of(place.addr()).give_back(place.addr());
}

/// Copies an argument to the stack that lasts. Durable with the next record.
///
/// # Safety
/// As for `memcpy`; the place was just taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_copy_argument(
    place: *mut c_void,
    argument: *const c_void,
    size: u64,
) {
    // SAFETY: as the caller promises.
    unsafe { ptr::copy_nonoverlapping(argument.cast::<u8>(), place.cast(), size as usize) };
}

/// Begins a frame in front of a call: what the caller needs behind it goes to what this returns. Null outside of
/// sections, unless the call may come back in one.
///
/// # Safety
/// As for [`__durum_ido_record`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_call(
    thread: *mut Thread,
    region: *const Region,
) -> *mut c_void {
    // SAFETY: the calling thread, and a region of its code.
    let (thread, region) = unsafe { (&mut *thread, &*region) };
    if thread.depth == 0 && !region.may_begin_section() {
        return ptr::null_mut();
    }
    ptr::with_exposed_provenance_mut(thread.next_stack().begin_frame(region))
}

/// The frame is the innermost one. Durable with the next record.
///
/// # Safety
/// As for [`__durum_ido_call`], which has been called and gave not null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_called(thread: *mut Thread, region: *const Region) {
    // SAFETY: as the caller promises.
    let (thread, region) = unsafe { (&mut *thread, &*region) };
    record::end_frame(thread, region);
}

/// The call has returned, and its frame is none any more. `words` is what [`__durum_ido_call`] gave.
///
/// # Safety
/// The calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_returned(thread: *mut Thread, words: *mut c_void) {
    if !words.is_null() {
        // SAFETY: the calling thread.
        let thread = unsafe { &mut *thread };
        thread.stack_of(words.addr()).end_call(words.addr());
        thread.is_stale = true;
    }
}

/// Ends the program if it is in a section, and tells the place.
///
/// # Safety
/// The calling thread; a place with strings.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_refused(thread: *mut Thread, place: *const Place) {
    // SAFETY: as the caller promises.
    unsafe { refusals::refused(&*thread, &*place) };
}

/// The same where the symbol is null: the function that is called next was not compiled for sections.
///
/// # Safety
/// As for [`__durum_ido_refused`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_check_call(
    thread: *mut Thread,
    symbol: *const c_void,
    place: *const Place,
) {
    if symbol.is_null() {
        // SAFETY: as the caller promises.
        unsafe { refusals::refused(&*thread, &*place) };
    }
}

/// The same where the code at a pointer was not compiled for sections.
///
/// # Safety
/// As for [`__durum_ido_refused`]; a function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_check_pointer(
    thread: *mut Thread,
    function: *const c_void,
    place: *const Place,
) {
    // SAFETY: as the caller promises.
    unsafe { refusals::check_pointer(&*thread, function, &*place) };
}

/// The same where a section reads memory that does not last, and has recorded something. Constants of the program are
/// the same when it goes on.
///
/// # Safety
/// As for [`__durum_ido_refused`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_read_elsewhere(
    thread: *mut Thread,
    object: *const c_void,
    place: *const Place,
) {
    // SAFETY: as the caller promises.
    unsafe { refusals::read_elsewhere(&*thread, object, &*place) };
}

/// Where to write instead of an object in memory that does not last: the object itself, or, where nobody is left to
/// read it, memory that nobody reads.
///
/// # Safety
/// The calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_written_elsewhere(
    thread: *mut Thread,
    object: *mut c_void,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    refusals::written_elsewhere(unsafe { &*thread }, object)
}

/// The program's root: `size` bytes, of zeros when it is first called for. It is there durably when this returns.
#[unsafe(no_mangle)]
pub extern "C" fn nv_root(size: usize) -> *mut c_void {
    open::open_of_environment();
    heap::root(size).cast()
}

/// `size` bytes of the heap, whatever they hold. NULL, and ENOMEM, where there is no room. They are taken durably
/// when this returns: a crash before anything leads to them leaves them taken.
#[unsafe(no_mangle)]
pub extern "C" fn nv_malloc(size: usize) -> *mut c_void {
    open::open_of_environment();
    alloc::allocate(size, Contents::Any).cast()
}

/// The same for `count` elements, of zeros, which are durable.
#[unsafe(no_mangle)]
pub extern "C" fn nv_calloc(count: usize, size: usize) -> *mut c_void {
    // What is too large has no room.
    let size = count.checked_mul(size).unwrap_or(usize::MAX >> 1);
    open::open_of_environment();
    alloc::allocate(size, Contents::Zeros).cast()
}

/// The same, with the contents of an object, durably, which is freed as by [`nv_free`].
///
/// # Safety
/// NULL, or an object of the heap that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nv_realloc(object: *mut c_void, size: usize) -> *mut c_void {
    open::open_of_environment();
    // SAFETY: as the caller promises.
    unsafe { alloc::reallocate(object.cast(), size) }.cast()
}

/// The same, with a copy of a string, which is durable.
///
/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nv_strdup(text: *const c_char) -> *mut c_char {
    open::open_of_environment();
    // SAFETY: as the caller promises.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes_with_nul();
    alloc::allocate(bytes.len(), Contents::Copy(bytes.as_ptr(), bytes.len())).cast()
}

/// Frees an object; NULL is allowed. Durable when this returns; in a section, when that has ended. A crash in between
/// may leave it taken.
///
/// # Safety
/// Nothing leads there that is followed any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nv_free(object: *mut c_void) {
    alloc::free(object.cast());
}
