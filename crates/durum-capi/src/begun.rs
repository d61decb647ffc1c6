//! Updates and reads that a thread began without a closure, and which levels of its transaction are updates.

use std::cell::{Cell, RefCell};

use client::{OpenUpdate, Reading, Tx};

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

thread_local! {
    static OPEN: RefCell<Vec<Begun>> = const { RefCell::new(Vec::new()) };
    /// Levels of the running transaction that end with an update, and not by durum_tx_commit or durum_tx_rollback.
    static FLOOR: Cell<u32> = const { Cell::new(0) };
}

/// Levels of the running transaction that belong to updates.
#[inline(always)]
pub(crate) fn floor() -> u32 {
    FLOOR.get()
}

/// Whether this thread has begun something on this handle that has not ended.
pub(crate) fn has_begun_on<H>(pool: *mut H) -> bool {
    OPEN.try_with(|list| list.borrow().iter().any(|begun| begun.pool == pool.addr()))
        .unwrap_or(false)
}

/// Runs a function of the program inside of an update: the levels around it belong to updates meanwhile.
pub(crate) fn in_update<R>(run: impl FnOnce() -> R) -> R {
    let around = FLOOR.replace(Tx::levels());
    let result = run();
    FLOOR.set(around);
    result
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
