//! Updates and reads of several threads on one pool.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;
use std::mem;

use client::Tx;

use crate::begun::{self, Open, keep, take};
use crate::code::{DURUM_E_UNBALANCED, DURUM_OK};
use crate::guard::{self, Failure, Result, failed, handle, missing, status};
use crate::pool::PoolHandle;

/// What an update or a read runs. Not 0: an update is not to be kept.
pub type Body = Option<unsafe extern "C" fn(arg: *mut c_void) -> c_int>;

/// Why an update was not kept, on its way to the thread that asked for it.
struct Refused(Failure);

impl From<client::Error> for Refused {
    fn from(error: client::Error) -> Self {
        Self(error.into())
    }
}

/// The argument of a C function, which may run on another thread.
struct Argument(*mut c_void);

// SAFETY: that is what the caller of `durum_pool_update` promises.
unsafe impl Send for Argument {}

impl Argument {
    fn get(&self) -> *mut c_void {
        self.0
    }
}

unsafe extern "C" {
    // Of POSIX threads, which every program that links with this has.
    safe fn pthread_setcancelstate(state: c_int, before: &mut c_int) -> c_int;
}
/// The same in glibc, musl and the BSDs.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// Whoever cancels this thread waits until this is dropped: it runs what others want, and holds what they wait for.
struct Uncancelled {
    before: c_int,
    _one_thread: PhantomData<*mut ()>,
}

impl Uncancelled {
    fn new() -> Self {
        let mut before = 0;
        pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before);
        Self {
            before,
            _one_thread: PhantomData,
        }
    }
}

impl Drop for Uncancelled {
    fn drop(&mut self) {
        pthread_setcancelstate(self.before, &mut 0);
    }
}

/// Runs `body(arg)` as a transaction, alone with the pool: no other update runs meanwhile, and no durum_pool_read. What
/// it announced, deferred, allocated and freed is durable on return.
///
/// Updates that threads ask for at the same time are combined: one thread runs them all, as one transaction, with the
/// fences of one. So `body` may run on another thread while this one waits; thread-locals are those of the thread that
/// runs it. It must not wait for another thread that uses the pool, nor be left by longjmp, an exception or
/// pthread_exit (docs/tutorials/c.md shows how it can end its thread). A thread that is cancelled ends behind the
/// update, not in it. durum_tx_add and the like work in it, as do DURUM_TX_BEGIN blocks; inside of an update of the
/// same pool it is a part of that one.
///
/// A result other than 0, durum_tx_abort() in it, or an inner transaction that aborts takes back what `body` has done,
/// and only that. If `body` says why by a code of durum (DURUM_E_*), the message goes along.
///
/// DURUM_OK; otherwise nothing was kept: what `body` returned; DURUM_E_ABORTED; DURUM_E_UPDATE_IN_READ this thread
/// reads this pool; DURUM_E_READS_COPY it reads a copy; DURUM_E_IN_TRANSACTION a transaction that is no update of this
/// pool runs on this thread; the codes of durum_tx_begin and durum_tx_commit.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_update(
    pool: *mut PoolHandle,
    body: Body,
    arg: *mut c_void,
) -> c_int {
    let _uncancelled = Uncancelled::new();
    status(|| {
        // SAFETY: a live handle, as the conventions say.
        let pool = unsafe { handle(pool, "the pool")? };
        let body = body.ok_or_else(|| Failure::argument("the function is NULL"))?;
        let arg = Argument(arg);
        let updated = pool.0.update(move |_| {
            guard::forget();
            // SAFETY: the function and its argument may be used on another thread, as the caller promises.
            match begun::in_update(|| unsafe { body(arg.get()) }) {
                0 => Ok(()),
                code => Err(Refused(guard::failure_of(code))),
            }
        });
        updated.map_err(|refused| refused.0)
    })
}

/// Runs `body(arg)` while no update of the pool runs; other reads may. It sees what is durable. Costs no fence, and
/// readers write to no common cache line. Within a read or an update of this pool it is a call. It is left as that of
/// an update is.
///
/// What `body` returned; or, if it was not called, DURUM_E_IN_TRANSACTION a transaction that is no update of this pool
/// runs on this thread; DURUM_E_READS_COPY it reads a copy; DURUM_E_POISONED, DURUM_E_FORKED, DURUM_E_ARGUMENT.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_read(
    pool: *mut PoolHandle,
    body: Body,
    arg: *mut c_void,
) -> c_int {
    returned(|| {
        // SAFETY: a live handle, as the conventions say.
        let pool = unsafe { handle(pool, "the pool")? };
        let body = body.ok_or_else(|| Failure::argument("the function is NULL"))?;
        // SAFETY: the function takes the argument, as the caller promises.
        Ok(pool.0.read(|| unsafe { body(arg) })?)
    })
}

/// The copy of a pool that a reader sees.
#[derive(Debug)]
#[repr(C)]
pub struct CopySeen {
    /// What to add to the address of an object of the pool to read it: 0, or the distance between the copies.
    pub distance: usize,
    /// The first address at which objects may lie. What lies elsewhere, or 0, is not to be moved.
    pub start: usize,
    /// The bytes from there in which they do.
    pub size: usize,
}

/// What durum_pool_read_copy runs. `copy` is valid until it returns.
pub type CopyBody = Option<unsafe extern "C" fn(copy: *const CopySeen, arg: *mut c_void) -> c_int>;

/// Runs `body(copy, arg)` on what is committed, beside an update that changes the pool and without waiting for it, for
/// pools that are open with DURUM_POOL_LEFT_RIGHT. `body` sees one copy of the pool, all of it as of one commit; it
/// adds `copy->distance` to the address of each object before it reads there, also to those that it reads from pointers
/// in objects. Nobody changes the copy meanwhile, nor may `body`. A commit waits until it has returned, so it must not
/// wait for other threads' updates, nor be left by longjmp, an exception or pthread_exit.
///
/// Within another one on this pool it is a call and sees the same copy; within an update of this pool it is a call and
/// sees what that has changed. Inside of it, updates and transactions of pools of DURUM_ENGINE_TWIN are refused, and
/// durum_pool_read of them, with DURUM_E_READS_COPY.
///
/// What `body` returned; or, if it was not called, DURUM_E_NO_COPIES the pool is not open so; DURUM_E_POISONED,
/// DURUM_E_FORKED, DURUM_E_ARGUMENT.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_pool_read_copy(
    pool: *mut PoolHandle,
    body: CopyBody,
    arg: *mut c_void,
) -> c_int {
    returned(|| {
        // SAFETY: a live handle, as the conventions say.
        let pool = unsafe { handle(pool, "the pool")? };
        let body = body.ok_or_else(|| Failure::argument("the function is NULL"))?;
        Ok(pool.0.read_copy(|view| {
            let addresses = view.addresses();
            let copy = CopySeen {
                distance: view.distance(),
                start: addresses.start,
                size: addresses.len(),
            };
            // SAFETY: the function takes the argument, as the caller promises.
            unsafe { body(&raw const copy, arg) }
        })?)
    })
}

/// What a function of the program returned; or the code of why it was not called.
fn returned(body: impl FnOnce() -> Result<c_int>) -> c_int {
    guard::run(body).unwrap_or_else(|code| code)
}

/// A pool that stays open for as long as what began on it.
///
/// # Safety
/// As for [`handle`], until what is begun has ended.
unsafe fn lasting(pool: *mut PoolHandle) -> Result<&'static client::Pool> {
    // SAFETY: as the caller promises.
    unsafe { handle(pool, "the pool") }.map(|pool: &'static PoolHandle| &pool.0)
}

/// Begins an update on this thread, or one more level of it. End it with durum_update_end. Until then all other updates
/// and reads of the pool wait, in all threads. The handle must stay open until then. It is never combined with others:
/// durum_pool_update costs fewer fences.
///
/// The codes of durum_pool_update. None begins then.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_update_begin(pool: *mut PoolHandle) -> c_int {
    status(|| {
        // SAFETY: the handle stays open until the update has ended, and levels end in reverse order: `durum_update_end`
        // takes the latest.
        let update = unsafe { lasting(pool)?.begin_update()? };
        keep(pool, Open::Update(update));
        Ok(())
    })
}

/// Ends what durum_update_begin began on this pool: with `commit` not 0 it is durable on return, with 0 it is taken
/// back. Then others go on.
///
/// DURUM_E_UNBALANCED the latest that this thread began is no update of this pool, or a transaction inside of it has
/// not ended; nothing is ended then. The codes of durum_tx_commit: it has ended, and nothing was kept.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_update_end(pool: *mut PoolHandle, commit: c_int) -> c_int {
    status(|| {
        match take(pool, |open| {
            matches!(open, Open::Update(_)) && Tx::levels() == begun::floor()
        })? {
            Open::Update(update) if commit != 0 => {
                update.commit()?;
                if Tx::levels() == 0 {
                    guard::forget();
                }
                Ok(())
            }
            // Ends here.
            _ => Ok(()),
        }
    })
}

/// Begins an update on this thread if that takes nobody else: no other thread has used the pool for a while, or the
/// pool is used by one thread at a time, and this thread is in no transaction. DURUM_OK: it has begun, and
/// durum_update_end_alone ends it. -1: it has not; durum_pool_update waits for the others, or joins the update. Both
/// together cost little more than durum_tx_begin and durum_tx_commit.
///
/// The handle must stay open until it has ended. Transactions that begin in it end in it. It keeps all others out, as
/// durum_update_begin does, and a thread that ends in it takes it back.
///
/// The codes of durum_pool_update. None begins then.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_update_begin_alone(pool: *mut PoolHandle) -> c_int {
    // SAFETY: a live handle, as the conventions say.
    let Some(pool) = (unsafe { pool.as_ref() }) else {
        return failed(missing("the pool"));
    };
    // SAFETY: the handle stays open, as the caller promises; what is begun in it ends in it.
    match unsafe { pool.0.begin_update_alone() } {
        Ok(true) if begun::begin_alone(pool, &raw const pool.0) => {
            guard::forget();
            DURUM_OK
        }
        Ok(true) => {
            // SAFETY: it has begun. The thread is ending, and nobody would end it later.
            let _ = unsafe { pool.0.end_update_alone(false) };
            -1
        }
        Ok(false) => -1,
        Err(error) => failed(error),
    }
}

/// Ends what durum_update_begin_alone began: with `commit` not 0 it is durable on return, with 0 it is taken back.
///
/// DURUM_E_UNBALANCED none has begun on this pool and thread; nothing is ended then. DURUM_E_ABORTED a transaction in
/// it has not ended, or was aborted; the codes of durum_tx_commit: it has ended, and nothing was kept.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_update_end_alone(pool: *mut PoolHandle, commit: c_int) -> c_int {
    // SAFETY: a live handle, as the conventions say.
    let Some(pool) = (unsafe { pool.as_ref() }) else {
        return failed(missing("the pool"));
    };
    if !begun::end_alone(pool) {
        return failed(Failure::new(
            DURUM_E_UNBALANCED,
            "this thread has begun no such update on this pool, or has ended it",
        ));
    }
    // SAFETY: the update has begun on this thread.
    match unsafe { pool.0.end_update_alone(commit != 0) } {
        Ok(()) => {
            if commit != 0 {
                guard::forget();
            }
            DURUM_OK
        }
        Err(error) => failed(error),
    }
}

/// Begins to read: until durum_read_end, updates of the pool wait, in all threads. As durum_pool_read, without a
/// function.
///
/// The codes of durum_pool_read. It does not begin then.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_read_begin(pool: *mut PoolHandle) -> c_int {
    status(|| {
        // SAFETY: the handle stays open until the read has ended.
        let reading = unsafe { lasting(pool)? }.begin_read()?;
        keep(pool, Open::Read(reading));
        Ok(())
    })
}

/// Ends what durum_read_begin began on this pool.
///
/// DURUM_E_UNBALANCED the latest that this thread began is no read of this pool; nothing is ended then.
#[unsafe(no_mangle)]
#[must_use]
pub unsafe extern "C" fn durum_read_end(pool: *mut PoolHandle) -> c_int {
    status(|| take(pool, |open| matches!(open, Open::Read(_))).map(mem::drop))
}
