//! Journals: the proof that a transaction is running, and how a thread finds its own.

use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use super::binding::Binding;
use super::typed_tx::{Failure, TypedTx, give_up};
use crate::error::{Error, Result};
use crate::tx::Transaction;

/// What a pool type stands on: a static and a thread-local of its own.
///
/// # Safety
/// `binding` gives the same static always, and no other pool type's. `current` and `set_current` use a thread-local of
/// the type that is null at first.
#[doc(hidden)]
pub unsafe trait HasBinding: Sized + Copy + std::fmt::Debug + 'static {
    /// What the threads share.
    fn binding() -> &'static Binding;
    /// This thread's transaction, running or at rest; or null.
    fn current() -> *const TypedTx;
    /// # Safety
    /// Null, or this thread's, as long as it is the current one.
    unsafe fn set_current(tx: *const TypedTx);
}

/// The running transaction of a pool, on one thread (Corundum §3.3, Invariant 2).
///
/// Everything that changes the pool asks for a reference to it, and only
/// [`PoolType::transaction`](super::PoolType::transaction) gives one, for as long as it runs.
#[repr(transparent)]
#[derive(Debug)]
pub struct Journal<P> {
    tx: TypedTx,
    _pool: PhantomData<(*mut (), P)>,
}

impl<P> Journal<P> {
    #[inline(always)]
    pub(super) fn of(tx: &TypedTx) -> &Self {
        // SAFETY: transparent.
        unsafe { &*std::ptr::from_ref(tx).cast() }
    }

    #[inline(always)]
    pub(super) fn tx(&self) -> &TypedTx {
        &self.tx
    }
}

/// This thread's transaction on `P`, if one is running.
#[inline(always)]
pub(super) fn running_tx<'a, P: HasBinding>() -> Option<&'a TypedTx> {
    // SAFETY: null, or this thread's, which lives until the thread ends.
    unsafe { P::current().as_ref() }.filter(|tx| tx.depth() > 0)
}

/// The running transaction on `P`, for what has no journal at hand: dropping handles, and changing through `&mut`.
///
/// Without one the process ends: a handle or a `&mut` into a pool is outside of a transaction, where the balance of
/// owners lets none come.
#[inline(always)]
pub(super) fn current_tx<'a, P: HasBinding>() -> &'a TypedTx {
    match running_tx::<P>() {
        Some(tx) => tx,
        None => give_up("a handle to a persistent object was used outside of a transaction"),
    }
}

/// The same for a collection that may be empty: that needs no transaction, and has nothing to change in one.
#[inline(always)]
pub(super) fn current_tx_unless<'a, P: HasBinding>(is_empty: bool) -> Option<&'a TypedTx> {
    (!is_empty).then(current_tx::<P>)
}

/// The running transaction's journal, for std's traits, whose methods get none.
///
/// # Panics
/// If no transaction on the pool runs on this thread.
#[track_caller]
pub(super) fn current_journal<'a, P: HasBinding>() -> &'a Journal<P> {
    match running_tx::<P>() {
        Some(tx) => Journal::of(tx),
        None => panic!("{}", Error::NoTransaction),
    }
}

/// Runs a transaction, or a part of the one that is running.
#[inline]
pub(super) fn run<P: HasBinding, R, E: From<Error>>(
    body: impl FnOnce(&Journal<P>) -> Result<R, E>,
) -> Result<R, E> {
    // SAFETY: null, or this thread's, which lives until the thread ends.
    let tx = match unsafe { P::current().as_ref() } {
        Some(tx) => tx,
        None => TypedTx::of_thread(P::binding(), P::set_current)?,
    };
    if tx.depth() > 0 {
        return run_inside(tx, body);
    }
    let (open, entered) = tx.enter()?;
    let transaction = Transaction::begin_beside(&open.pool)?;
    tx.begin(&transaction, open);
    let result = match catch_unwind(AssertUnwindSafe(|| body(Journal::of(tx)))) {
        Ok(Ok(value)) => match tx.commit(transaction) {
            Ok(()) => Ok(value),
            Err(error) => Err(error.into()),
        },
        Ok(Err(error)) => {
            tx.abort(transaction);
            Err(error)
        }
        Err(panic) => {
            tx.abort(transaction);
            Err(failure_of(panic).into())
        }
    };
    drop(entered);
    result
}

/// An inner transaction is a part of the outer one: if it fails, that one can only roll back.
fn run_inside<P, R, E: From<Error>>(
    tx: &TypedTx,
    body: impl FnOnce(&Journal<P>) -> Result<R, E>,
) -> Result<R, E> {
    let _level = tx.deeper();
    match catch_unwind(AssertUnwindSafe(|| body(Journal::of(tx)))) {
        Ok(Ok(value)) if !tx.is_doomed() => Ok(value),
        Ok(Ok(_)) => Err(Error::Aborted.into()),
        Ok(Err(error)) => {
            tx.doom();
            Err(error)
        }
        Err(panic) => {
            tx.doom();
            Err(failure_of(panic).into())
        }
    }
}

/// The error with which a body was left. Any other panic goes on.
#[cold]
fn failure_of(panic: Box<dyn std::any::Any + Send>) -> Error {
    match panic.downcast::<Failure>() {
        Ok(failure) => failure.0,
        Err(panic) => resume_unwind(panic),
    }
}
