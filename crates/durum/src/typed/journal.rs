//! Journals: the proof that a transaction is running.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::binding::PoolType;
use super::running::{Failure, Running};
use crate::error::{Error, Result};
use crate::tx::Transaction;

/// The running transaction of a pool, on one thread (Corundum §3.3, Invariant 2).
///
/// Everything that changes the pool asks for a reference to it, and only [`PoolType::transaction`] gives one, for as
/// long as it runs.
#[repr(transparent)]
#[derive(Debug)]
pub struct Journal<P> {
    running: Running,
    _pool: PhantomData<(*mut (), P)>,
}

impl<P: PoolType> Journal<P> {
    #[inline(always)]
    pub(crate) fn of(running: &Running) -> &Self {
        // SAFETY: transparent.
        unsafe { &*std::ptr::from_ref(running).cast() }
    }

    #[inline(always)]
    pub(crate) fn running(&self) -> &Running {
        &self.running
    }
}

/// The running transaction on `P`, for what has no journal at hand: dropping handles, and changing through `&mut`.
///
/// Without one the process ends: a handle or a `&mut` into a pool is outside of a transaction, where the balance of
/// owners lets none come.
#[inline(always)]
pub(crate) fn running<'a, P: PoolType>() -> &'a Running {
    // SAFETY: null, or this thread's, which lives until the thread ends.
    match unsafe { P::current().as_ref() } {
        Some(running) if running.depth() > 0 => running,
        _ => super::running::give_up(
            "a handle to a persistent object was used outside of a transaction",
        ),
    }
}

/// The same for a collection that may be empty: that needs no transaction, and has nothing to change in one.
#[inline(always)]
pub(crate) fn running_unless<'a, P: PoolType>(is_empty: bool) -> Option<&'a Running> {
    (!is_empty).then(running::<P>)
}

/// The running transaction's journal, for std's traits, whose methods get none.
///
/// # Panics
/// If no transaction on the pool runs on this thread.
#[track_caller]
pub(crate) fn current<'a, P: PoolType>() -> &'a Journal<P> {
    // SAFETY: as in `running`.
    match unsafe { P::current().as_ref() } {
        Some(running) if running.depth() > 0 => Journal::of(running),
        _ => panic!("{}", Error::NoTransaction),
    }
}

/// Runs a transaction, or a part of the one that is running.
#[inline]
pub(crate) fn run<P: PoolType, R, E: From<Error>>(
    body: impl FnOnce(&Journal<P>) -> Result<R, E>,
) -> Result<R, E> {
    // SAFETY: as in `running`.
    let running = match unsafe { P::current().as_ref() } {
        Some(running) => running,
        None => Running::of_thread::<P>()?,
    };
    if running.depth() > 0 {
        return run_inside(running, body);
    }
    let (open, seated) = running.sit_down()?;
    let transaction = Transaction::begin_beside(&open.pool)?;
    running.begin(&transaction, open);
    let result = catch_unwind(AssertUnwindSafe(|| body(Journal::of(running))));
    let result = match result {
        Ok(Ok(value)) => match running.commit(transaction) {
            Ok(()) => Ok(value),
            Err(error) => Err(error.into()),
        },
        Ok(Err(error)) => {
            running.abort(transaction);
            Err(error)
        }
        Err(panic) => {
            running.abort(transaction);
            match panic.downcast::<Failure>() {
                Ok(failure) => Err(failure.0.into()),
                Err(panic) => resume_unwind(panic),
            }
        }
    };
    drop(seated);
    result
}

/// An inner transaction is a part of the outer one: if it fails, that one can only roll back.
fn run_inside<P: PoolType, R, E: From<Error>>(
    running: &Running,
    body: impl FnOnce(&Journal<P>) -> Result<R, E>,
) -> Result<R, E> {
    let _level = running.deeper();
    match catch_unwind(AssertUnwindSafe(|| body(Journal::of(running)))) {
        Ok(Ok(value)) if !running.is_doomed() => Ok(value),
        Ok(Ok(_)) => Err(Error::Aborted.into()),
        Ok(Err(error)) => {
            running.doom();
            Err(error)
        }
        Err(panic) => {
            running.doom();
            match panic.downcast::<Failure>() {
                Ok(failure) => Err(failure.0.into()),
                Err(panic) => resume_unwind(panic),
            }
        }
    }
}
