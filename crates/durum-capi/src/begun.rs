//! Updates and reads that a thread began without a closure, and which levels of its transaction are updates.

use std::cell::{Cell, RefCell};
use std::ptr;

use client::{OpenUpdate, Pool, Reading, Tx};

use crate::code;
use crate::guard::{Failure, Result};

/// What this thread began without a closure and has not ended, the latest last.
pub(crate) enum Open {
    Update(OpenUpdate<'static>),
    Read(#[expect(dead_code, reason = "held until it is dropped")] Reading<'static>),
}

struct Begun {
    /// The handle, which is compared only.
    pool: usize,
    open: Open,
    /// What [`FLOOR`] was before.
    around: u32,
}

const NOBODY: (usize, *const Pool) = (0, ptr::null());

thread_local! {
    static OPEN: RefCell<Vec<Begun>> = const { RefCell::new(Vec::new()) };
    /// Levels of the running transaction that end with an update, and not by durum_tx_commit or durum_tx_rollback.
    static FLOOR: Cell<u32> = const { Cell::new(0) };
    /// The handle of an update that this thread began alone, and its pool.
    static ALONE: Cell<(usize, *const Pool)> = const { Cell::new(NOBODY) };
    /// Whether [`AtEnd`] is there on this thread.
    static TAKES_BACK: Cell<bool> = const { Cell::new(false) };
}

/// Levels of the running transaction that belong to updates.
#[inline(always)]
pub(crate) fn floor() -> u32 {
    FLOOR.get()
}

/// Whether this thread has begun something on this handle that has not ended.
pub(crate) fn has_begun_on<H>(pool: *mut H) -> bool {
    let is_on = |list: &RefCell<Vec<Begun>>| {
        let list = list.borrow();
        list.iter().any(|begun| begun.pool == pool.addr())
    };
    ALONE.get().0 == pool.addr() || OPEN.try_with(is_on).unwrap_or(false)
}

/// Runs a function of the program inside of an update: the levels around it belong to updates meanwhile.
pub(crate) fn in_update<R>(run: impl FnOnce() -> R) -> R {
    let around = FLOOR.replace(Tx::levels());
    let result = run();
    FLOOR.set(around);
    result
}

/// The outermost level of this thread's transaction is an update that began alone, on this handle.
#[inline(always)]
pub(crate) fn begin_alone<H>(handle: *const H, pool: *const Pool) {
    ALONE.set((handle.addr(), pool));
    FLOOR.set(1);
    if !TAKES_BACK.get() {
        take_back_at_end();
    }
}

/// It ends. Whether it was begun on this handle, and has not ended.
#[inline(always)]
pub(crate) fn end_alone<H>(handle: *const H) -> bool {
    let is_begun = ALONE.get().0 == handle.addr();
    if is_begun {
        ALONE.set(NOBODY);
        FLOOR.set(0);
    }
    is_begun
}

/// A thread that ends in an update that it began alone takes it back.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        // SAFETY: null, or the pool of a handle that stays open until the update has ended.
        if let Some(pool) = unsafe { ALONE.replace(NOBODY).1.as_ref() } {
            FLOOR.set(0);
            // SAFETY: begun on this thread, and not ended.
            let _ = unsafe { pool.end_update_alone(false) };
        }
    }
}

#[cold]
fn take_back_at_end() {
    thread_local!(static AT_END: AtEnd = const { AtEnd });
    // Where the thread is ending already, nobody takes back what it begins now.
    TAKES_BACK.set(AT_END.try_with(|_| ()).is_ok());
}

/// Notes what was begun on a handle.
pub(crate) fn keep<H>(pool: *mut H, open: Open) {
    // Where the thread is ending, what was begun ends at once.
    let around = match open {
        Open::Update(_) => FLOOR.replace(Tx::levels()),
        Open::Read(_) => FLOOR.get(),
    };
    let _ = OPEN.try_with(|list| {
        list.borrow_mut().push(Begun {
            pool: pool.addr(),
            open,
            around,
        })
    });
}

/// The latest that this thread began, if it is such a one.
pub(crate) fn take<H>(pool: *mut H, is_it: impl Fn(&Open) -> bool) -> Result<Open> {
    let latest = OPEN.try_with(|list| {
        let mut list = list.borrow_mut();
        match list.last() {
            Some(latest) if latest.pool == pool.addr() && is_it(&latest.open) => list.pop(),
            _ => None,
        }
    });
    match latest {
        Ok(Some(latest)) => {
            FLOOR.set(latest.around);
            Ok(latest.open)
        }
        _ => Err(Failure::new(
            code::DURUM_E_UNBALANCED,
            "this thread has not begun that on this pool, or has to end something else first",
        )),
    }
}
