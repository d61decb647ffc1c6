//! What compiled code calls (docs/reference/ido-ir.md), but for locks ([`crate::abi_locks`]).
//!
//! None of these fails: whatever cannot be done ends the program with a message. They do not unwind.

use std::ffi::{CStr, c_char, c_void};
use std::ptr;
use std::sync::atomic::AtomicPtr;

pub use crate::addresses::Addressed;
pub use crate::code::{Function, Region};
pub use crate::globals::Global;
pub use crate::names::GlobalLock;
pub use crate::refusals::Place;
pub use crate::thread::Thread;
pub use crate::types::AllocatedType;

use crate::abi_typed::{
    __durum_ido_typed_calloc, __durum_ido_typed_malloc, __durum_ido_typed_nv_realloc,
    __durum_ido_typed_root,
};
use crate::alloc::{self, Contents};
use crate::{addresses, code, deposit, globals, names, open, record, refusals, section, thread};

/// What is known of the calling thread. The first 32 bits are how many locks it holds.
#[unsafe(no_mangle)]
pub extern "C" fn __durum_ido_thread() -> *mut Thread {
    thread::current()
}

/// The program carries code of so many bytes that completes its sections (what `durumcc -fdurable-code` links). It is
/// left with the heap before there is a record.
///
/// # Safety
/// They are there as long as the program runs, and nobody writes them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_carry(code: *const c_void, size: u64) {
    // SAFETY: as the caller promises.
    deposit::carry(unsafe { std::slice::from_raw_parts(code.cast(), size as usize) });
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

/// Enters what sections of a module may point to in the program.
///
/// # Safety
/// As for [`__durum_ido_register`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_register_addresses(table: *const Addressed, count: u64) {
    // SAFETY: as the caller promises.
    unsafe { addresses::register(table, count) };
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
    alloc::end_section(thread);
}

/// Records in front of a store, with live-ins at `words`: what the section has stored is durable when this returns, and
/// so is the record. Does nothing outside of sections.
///
/// # Safety
/// The calling thread, and a region of its code with as many words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_record(
    thread: *mut Thread,
    region: *const Region,
    words: *const c_void,
) {
    // SAFETY: as the caller promises.
    let (thread, region) = unsafe { (&mut *thread, &*region) };
    if thread.depth > 0 {
        // SAFETY: as the caller promises.
        unsafe { record::make(thread, region, words.cast(), 0) };
    }
}

/// The same in front of the store of one aligned word, behind which the section stores nothing before it lets a lock
/// go. Does nothing outside of sections, and where it is all that the section does: that needs no record.
///
/// # Safety
/// As for [`__durum_ido_record`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_record_word(
    thread: *mut Thread,
    region: *const Region,
    words: *const c_void,
) {
    // SAFETY: as the caller promises.
    let (thread, region) = unsafe { (&mut *thread, &*region) };
    let is_untold = (thread.slot.as_ref()).is_some_and(|slot| slot.memory.is_untold());
    match (thread.depth, thread.is_published || is_untold) {
        (0, _) => {}
        (1, false) => record::begin_word(thread, region),
        // SAFETY: as the caller promises.
        _ => unsafe { record::make(thread, region, words.cast(), 0) },
    }
}

/// The same in front of the call that lets a lock go, without which the record is. Does nothing where that ends the
/// section, and where it has recorded nothing.
///
/// # Safety
/// As for [`__durum_ido_record`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_record_release(
    thread: *mut Thread,
    region: *const Region,
    words: *const c_void,
    lock: *const c_void,
) {
    // SAFETY: as the caller promises.
    let (thread, region) = unsafe { (&mut *thread, &*region) };
    if thread.depth > 1 && thread.is_published {
        // SAFETY: as the caller promises.
        unsafe { record::make(thread, region, words.cast(), lock.addr()) };
    }
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
    // SAFETY: as the caller promises; the thread's own.
    unsafe {
        ptr::copy_nonoverlapping(argument.cast::<u8>(), place.cast(), size as usize);
        let thread = &mut *thread::current();
        thread.stack_of(place.addr()).note_unannounced();
    }
}

/// Makes a frame in front of a call, which is the innermost one: with `words` the caller goes on at `region` behind the
/// call. Durable with the next record. Gives the frame; null outside of sections, unless the call may come back in one.
///
/// The frame lies where it does not write over what the last record needs. Where there is no room for that, there is a
/// record of `call` before, the region that begins with the call; its words begin with those of the frame. Null: none
/// is needed.
///
/// # Safety
/// As for [`__durum_ido_record`], for both regions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_call(
    thread: *mut Thread,
    call: *const Region,
    region: *const Region,
    words: *const c_void,
) -> *mut c_void {
    // SAFETY: as the caller promises.
    let (thread, call, region) = unsafe { (&mut *thread, call.as_ref(), &*region) };
    if let Some(call) = call
        && thread.depth > 0
        && thread.is_published
        && !thread.stack.has_room()
    {
        // SAFETY: as the caller promises.
        unsafe { record::make(thread, call, words.cast(), 0) };
    }
    if thread.depth == 0 && !region.may_begin_section() {
        return ptr::null_mut();
    }
    // SAFETY: as the caller promises.
    ptr::with_exposed_provenance_mut(unsafe { record::push_frame(thread, region, words.cast()) })
}

/// The call has returned, and its frame is none any more: what [`__durum_ido_call`] gave.
///
/// # Safety
/// The calling thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_returned(thread: *mut Thread, frame: *mut c_void) {
    if !frame.is_null() {
        // SAFETY: the calling thread.
        let thread = unsafe { &mut *thread };
        thread.stack_of(frame.addr()).end_call(frame.addr());
        thread.is_stale = true;
    }
}

/// A function is entered where a crash has interrupted it: copies the live-ins of the region to `words`, and gives its
/// number. Nobody enters there again.
///
/// # Safety
/// The calling thread, which was told of the region and its words; the function's regions; a place for as many words.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __durum_ido_enter(
    thread: *mut Thread,
    regions: *const Region,
    words: *mut c_void,
) -> u32 {
    // SAFETY: the calling thread.
    let entry = unsafe { &mut (*thread).entry };
    // What the region's call has returned stays there: the function reads it next.
    let number = std::mem::take(&mut entry.region);
    // SAFETY: a region of the function's, with as many words.
    unsafe {
        let region = &*regions.add((number - 1) as usize);
        ptr::copy_nonoverlapping(entry.words, words.cast::<u64>(), region.words.into());
    }
    number
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
    // SAFETY: no type.
    unsafe { __durum_ido_typed_root(size, ptr::null()) }
}

/// `size` bytes of the heap, whatever they hold. NULL, and ENOMEM, where there is no room. In a section they are taken
/// durably with its next record, or when it lets a lock go: a crash before leaves nothing taken. Outside of sections
/// they are when this returns, and a crash before anything leads to them leaves them taken.
#[unsafe(no_mangle)]
pub extern "C" fn nv_malloc(size: usize) -> *mut c_void {
    // SAFETY: no type.
    unsafe { __durum_ido_typed_malloc(size, ptr::null()) }
}

/// The same for `count` elements, of zeros.
#[unsafe(no_mangle)]
pub extern "C" fn nv_calloc(count: usize, size: usize) -> *mut c_void {
    // SAFETY: no type.
    unsafe { __durum_ido_typed_calloc(count, size, ptr::null()) }
}

/// The same, with the contents of an object, which is freed as by [`nv_free`].
///
/// # Safety
/// NULL, or an object of the heap that nobody else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nv_realloc(object: *mut c_void, size: usize) -> *mut c_void {
    // SAFETY: as the caller promises.
    unsafe { __durum_ido_typed_nv_realloc(object, size, ptr::null()) }
}

/// The same, with a copy of a string.
///
/// # Safety
/// A string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nv_strdup(text: *const c_char) -> *mut c_char {
    static CHAR: AllocatedType = AllocatedType {
        text: c"i8\n".as_ptr(),
        known: AtomicPtr::new(ptr::null_mut()),
    };
    open::open_of_environment();
    // SAFETY: as the caller promises.
    let bytes = unsafe { CStr::from_ptr(text) }.to_bytes_with_nul();
    let copy = Contents::Copy(bytes.as_ptr(), bytes.len());
    // SAFETY: a type of this file.
    unsafe { alloc::allocate(bytes.len(), copy, &raw const CHAR) }.cast()
}

/// Frees an object; NULL is allowed. Durable when this returns; in a section, when that has ended. Nobody gets its
/// place before all sections have ended that are under way then.
///
/// # Safety
/// Nothing leads there that is followed any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nv_free(object: *mut c_void) {
    alloc::free(object.cast());
}
