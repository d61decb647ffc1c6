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

/// An update that a thread began alone.
#[derive(Clone, Copy)]
struct Alone {
    /// The address of its handle; 0: there is none.
    handle: usize,
    pool: *const Pool,
    /// How much else was open when it began.
    opened: usize,
}

const NOBODY: Alone = Alone {
    handle: 0,
    pool: ptr::null(),
    opened: 0,
};

thread_local! {
    static OPEN: RefCell<Vec<Begun>> = const { RefCell::new(Vec::new()) };
    /// Levels of the running transaction that end with an update, and not by durum_tx_commit or durum_tx_rollback.
    static FLOOR: Cell<u32> = const { Cell::new(0) };
    /// How many there are. Const and without destructor, so cheap.
    static OPENED: Cell<usize> = const { Cell::new(0) };
    static ALONE: Cell<Alone> = const { Cell::new(NOBODY) };
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
    ALONE.get().handle == pool.addr() || OPEN.try_with(is_on).unwrap_or(false)
}

/// Runs a function of the program inside of an update: the levels around it belong to updates meanwhile. What it begins
/// and leaves open ends with it.
pub(crate) fn in_update<R>(run: impl FnOnce() -> R) -> R {
    let opened = OPENED.get();
    let around = FLOOR.replace(Tx::levels());
    let result = run();
    end_since(opened);
    FLOOR.set(around);
    result
}

/// The outermost level of this thread's transaction is an update that began alone, on this handle. Whether it is taken
/// back if the thread ends in it; else it must not begin.
#[inline(always)]
pub(crate) fn begin_alone<H>(handle: *const H, pool: *const Pool) -> bool {
    if !TAKES_BACK.get() && !take_back_at_end() {
        return false;
    }
    ALONE.set(Alone {
        handle: handle.addr(),
        pool,
        opened: OPENED.get(),
    });
    FLOOR.set(1);
    true
}

/// It ends, and what was begun in it before. Whether it was begun on this handle, and has not ended.
#[inline(always)]
pub(crate) fn end_alone<H>(handle: *const H) -> bool {
    let alone = ALONE.get();
    let is_begun = alone.handle == handle.addr() && alone.handle != 0;
    if is_begun {
        end_since(alone.opened);
        ALONE.set(NOBODY);
        FLOOR.set(0);
    }
    is_begun
}

/// Ends what this thread has begun since so much was open, without its changes.
#[inline(always)]
fn end_since(opened: usize) {
    while OPENED.get() > opened {
        end_latest();
    }
}

#[cold]
fn end_latest() {
    let latest = OPEN.try_with(|list| list.borrow_mut().pop());
    OPENED.set(OPENED.get() - 1);
    if let Ok(Some(latest)) = latest {
        FLOOR.set(latest.around);
    }
}

/// A thread that ends in an update that it began alone takes it back.
struct AtEnd;

impl Drop for AtEnd {
    fn drop(&mut self) {
        let alone = ALONE.get();
        // SAFETY: null, or the pool of a handle that stays open until the update has ended.
        if let Some(pool) = unsafe { alone.pool.as_ref() } {
            end_since(alone.opened);
            ALONE.set(NOBODY);
            FLOOR.set(0);
            // SAFETY: begun on this thread, and not ended.
            let _ = unsafe { pool.end_update_alone(false) };
        }
    }
}

/// Whether it will: not where the thread is ending already.
#[cold]
fn take_back_at_end() -> bool {
    thread_local!(static AT_END: AtEnd = const { AtEnd });
    let takes_back = AT_END.try_with(|_| ()).is_ok();
    TAKES_BACK.set(takes_back);
    takes_back
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
        });
        OPENED.set(OPENED.get() + 1);
    });
}

/// The latest that this thread began, if it is such a one.
pub(crate) fn take<H>(pool: *mut H, is_it: impl Fn(&Open) -> bool) -> Result<Open> {
    let latest = OPEN.try_with(|list| {
        let mut list = list.borrow_mut();
        // What was begun before an update that began alone ends behind it.
        let is_latest = list.len() > ALONE.get().opened || ALONE.get().handle == 0;
        match list.last() {
            Some(latest) if is_latest && latest.pool == pool.addr() && is_it(&latest.open) => {
                list.pop()
            }
            _ => None,
        }
    });
    match latest {
        Ok(Some(latest)) => {
            OPENED.set(OPENED.get() - 1);
            FLOOR.set(latest.around);
            Ok(latest.open)
        }
        _ => Err(Failure::new(
            code::DURUM_E_UNBALANCED,
            "this thread has not begun that on this pool, or has to end something else first",
        )),
    }
}
