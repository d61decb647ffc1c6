//! Blocks: what DURUM_TX_BEGIN and its companions keep. A block is one level of a transaction plus a place to go on at
//! when it fails.
//!
//! The place (a `jmp_buf`) is C's: it lies behind the [`Block`] in a struct of the header, and only C jumps to it.
//! These functions say which block is the place to go on at; they always return.

use std::cell::{Cell, RefCell};
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use client::Tx;

use crate::code;
use crate::guard::{self, Failure, status};
use crate::level;
use crate::pool::PoolHandle;

/// The block's body runs.
pub const DURUM_BLOCK_RUNNING: c_int = 1;
/// The block has committed.
pub const DURUM_BLOCK_COMMITTED: c_int = 2;
/// The block has not begun, or was aborted.
pub const DURUM_BLOCK_ABORTED: c_int = 3;

/// For DURUM_TX_BEGIN_WITH, beside DURUM_DURABLE or DURUM_BUFFERED: the block may commit after an allocation in it has
/// failed. The program looks itself at what it gets.
pub const DURUM_ALLOC_MAY_FAIL: u32 = 2;

/// The state of one DURUM_TX_BEGIN block. The macros make and use it.
#[derive(Debug)]
#[repr(C)]
pub struct Block {
    /// The block around it on this thread.
    outer: *mut Block,
    /// Where it begins in the program.
    file: *const c_char,
    line: c_int,
    /// DURUM_BLOCK_*.
    state: c_int,
    /// Its level in the transaction, from 1.
    pub(crate) level: u32,
    /// Whether it was begun with DURUM_ALLOC_MAY_FAIL.
    alloc_may_fail: c_int,
    /// The code of the first allocation that failed in it otherwise; DURUM_OK: none.
    failed: c_int,
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = if self.file.is_null() {
            c"?"
        } else {
            // SAFETY: `__FILE__` of the program.
            unsafe { CStr::from_ptr(self.file) }
        };
        write!(f, "the block at {}:{}", file.to_string_lossy(), self.line)
    }
}

thread_local! {
    /// The innermost block whose body runs. Const and without destructor, so cheap.
    static INNERMOST: Cell<*mut Block> = const { Cell::new(ptr::null_mut()) };
    /// What the allocation said that failed last in a block.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// An allocation has failed, and is the thread's latest failure: the innermost block cannot commit any more.
#[cold]
pub(crate) fn allocation_failed() {
    // SAFETY: as in `with_innermost`; nobody else refers to it during this call.
    if let Some(block) = unsafe { INNERMOST.with(Cell::get).as_mut() }
        && block.alloc_may_fail == 0
        && block.failed == code::DURUM_OK
    {
        let failure = guard::failure_of(guard::latest());
        block.failed = failure.code;
        let _ = SAID.try_with(|said| said.replace(failure.message));
    }
}

/// Why a block cannot commit in which an allocation failed.
#[cold]
fn without_allocation(block: &Block) -> Failure {
    let said = SAID.try_with(RefCell::take).unwrap_or_default();
    Failure::new(
        block.failed,
        format!("{block} is aborted, as an allocation in it failed: {said}"),
    )
}

/// Looks at the innermost block whose body runs on this thread.
pub(crate) fn with_innermost<R>(look: impl FnOnce(Option<&Block>) -> R) -> R {
    // SAFETY: a block takes itself out before its frame ends, and nothing ends it in here.
    look(unsafe { INNERMOST.with(Cell::get).as_ref() })
}

/// Whether no block's body runs on this thread.
#[inline(always)]
pub(crate) fn none_runs() -> bool {
    INNERMOST.with(Cell::get).is_null()
}

/// Ends the levels down to the block's own, which takes it and all inside it out.
///
/// # Safety
/// A block whose body runs on this thread.
unsafe fn take_out(block: *mut Block) {
    // SAFETY: as the caller promises.
    let block = unsafe { &mut *block };
    while Tx::levels() >= block.level.max(1) {
        // What fails in rolling back poisons the pool, which the next call reports.
        // SAFETY: in C every level is one of these.
        if guard::run(|| Ok(unsafe { Tx::end_level(false) }?)).is_err() {
            break;
        }
    }
    INNERMOST.with(|innermost| innermost.set(block.outer));
    block.state = DURUM_BLOCK_ABORTED;
}

/// Begins a block. For DURUM_TX_BEGIN and DURUM_TX_BEGIN_WITH: `how` is DURUM_DURABLE or DURUM_BUFFERED, and
/// DURUM_ALLOC_MAY_FAIL. Whether the body may run is in its state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_block_enter(
    block: *mut Block,
    pool: *mut PoolHandle,
    how: u32,
    file: *const c_char,
    line: c_int,
) {
    let outer = INNERMOST.with(Cell::get);
    let mut entered = Block {
        outer,
        file,
        line,
        state: DURUM_BLOCK_ABORTED,
        level: 0,
        alloc_may_fail: c_int::from(how & DURUM_ALLOC_MAY_FAIL != 0),
        failed: code::DURUM_OK,
    };
    let durability = how & !DURUM_ALLOC_MAY_FAIL;
    // SAFETY: a live handle, as the conventions say; the block lies inside the transaction.
    if unsafe { level::begin(pool, durability) } == code::DURUM_OK {
        entered.state = DURUM_BLOCK_RUNNING;
        entered.level = Tx::levels();
        INNERMOST.with(|innermost| innermost.set(block));
    }
    // SAFETY: the macro passes the block of its own frame.
    unsafe { block.write(entered) };
}

/// Commits a block whose body has come to its end; does nothing for one that was aborted. For DURUM_TX_ONABORT and
/// DURUM_TX_END.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_block_commit(block: *mut Block) {
    // SAFETY: the macro passes the block of its own frame.
    let this = unsafe { &mut *block };
    if this.state != DURUM_BLOCK_RUNNING {
        return;
    }
    let levels = Tx::levels();
    if levels != this.level || !ptr::eq(INNERMOST.with(Cell::get), block) {
        guard::record(Failure::new(
            code::DURUM_E_UNBALANCED,
            format!(
                "{this} ends on level {levels} of the transaction and began on level {}: something inside it was not ended; it is aborted",
                this.level
            ),
        ));
        // SAFETY: its body has just run.
        return unsafe { take_out(block) };
    }
    if this.failed != code::DURUM_OK {
        guard::record(without_allocation(this));
        // SAFETY: its body has just run.
        return unsafe { take_out(block) };
    }
    INNERMOST.with(|innermost| innermost.set(this.outer));
    this.state = match level::commit() {
        code::DURUM_OK => DURUM_BLOCK_COMMITTED,
        _ => DURUM_BLOCK_ABORTED,
    };
}

/// Aborts the innermost block and returns it: the caller goes on at its DURUM_TX_ONABORT. Without a block, the
/// transaction that durum_tx_begin began can only roll back from now on, and NULL is returned.
///
/// `code` is why: DURUM_E_ABORTED if the program wants it so, otherwise the code of the call that has just failed.
#[unsafe(no_mangle)]
pub extern "C" fn durum_block_abort(code: c_int) -> *mut Block {
    if code == code::DURUM_E_ABORTED {
        guard::record(Failure::new(
            code,
            "the program has aborted the transaction",
        ));
    }
    let block = INNERMOST.with(Cell::get);
    if block.is_null() {
        // If there is no transaction, that is the failure to report.
        status(|| match Tx::with_running(|tx| tx.abort::<()>()) {
            Err(client::Error::Aborted) => Ok(()),
            other => Ok(other?),
        });
    } else {
        // SAFETY: the innermost block runs on this thread.
        unsafe { take_out(block) };
    }
    block
}

/// Ends a block. For DURUM_TX_END. If it did not commit, neither can the block around it, which is aborted, too: the
/// caller goes on there. Returns NULL if there is none, or if the block has committed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_block_end(block: *mut Block) -> *mut Block {
    // SAFETY: the macro passes the block of its own frame.
    let state = unsafe { (*block).state };
    if state == DURUM_BLOCK_COMMITTED || Tx::levels() == 0 {
        return ptr::null_mut();
    }
    match guard::latest() {
        // Something has committed in DURUM_TX_ONABORT, which is no reason for the block around to go on.
        code::DURUM_OK => durum_block_abort(code::DURUM_E_ABORTED),
        cause => durum_block_abort(cause),
    }
}

/// Looks after a block whose frame ends. For the cleanup attribute. A body that was left by return, break, continue,
/// goto or an exception has not come to its end: it is aborted, and reported (durum_on_misuse).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_block_leave(block: *mut Block) {
    // SAFETY: the macro passes the block of its own frame.
    let this = unsafe { &*block };
    if this.state != DURUM_BLOCK_RUNNING {
        return;
    }
    let message = format!(
        "{this} was left by return, break, continue or goto before its DURUM_TX_END; the transaction is aborted"
    );
    // SAFETY: its body has not ended.
    unsafe { take_out(block) };
    misuse(message);
}

type Handler = unsafe extern "C" fn(message: *const c_char);

static HANDLER: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

/// Who is told, on the thread that does it, when a program leaves a DURUM_TX_BEGIN block in a way that aborts it. NULL,
/// the default: standard error. The message is valid during the call. The handler must return.
#[unsafe(no_mangle)]
pub extern "C" fn durum_on_misuse(handler: Option<unsafe extern "C" fn(message: *const c_char)>) {
    let handler = handler.map_or(ptr::null_mut(), |handler| handler as *mut c_void);
    HANDLER.store(handler, Ordering::Release);
}

#[cold]
fn misuse(message: String) {
    let line = format!("durum: {message}\n");
    guard::record(Failure::new(code::DURUM_E_BLOCK_LEFT, message));
    let handler = HANDLER.load(Ordering::Acquire);
    if handler.is_null() {
        // A closed standard error is no reason to fail.
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
        return;
    }
    // SAFETY: stored by `durum_on_misuse` from a function of this type.
    let handler = unsafe { std::mem::transmute::<*mut c_void, Handler>(handler) };
    // SAFETY: the message of this thread lasts until its next failure.
    unsafe { handler(guard::durum_errormsg()) };
}
