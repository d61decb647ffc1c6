//! What stays on its thread, said such that the compiler names the cure.
//!
//! Pointers into a pool, cells, guards and journals are neither `Send` nor `Sync`. Were that left to a raw pointer
//! inside, the compiler would speak of that one. So they are both under a condition that nothing meets, and the
//! compiler says what goes with the condition.

use super::collections::{PBTreeMap, PHashMap, PVec};
use super::counted::{Counted, Counting, PWeak};
use super::journal::Journal;
use super::later::Later;
use super::log_free::LogFree;
use super::pbox::Pbox;
use super::pcell::PCell;
use super::pmutex::{PMutex, PMutexGuard};
use super::pool_type::PoolType;
use super::prefcell::{PRef, PRefCell, PRefMut};
use super::psafe::PSafe;

/// A condition that nothing meets: nobody else can name it, and here it is not implemented.
#[diagnostic::on_unimplemented(
    message = "`{Self}` stays on its thread, in its transaction",
    label = "goes to another thread, or out of the transaction",
    note = "another thread could see what is not committed: to find an object there, send what `demote()` gives (`VWeak`), and `promote(j)` it in a transaction of that thread",
    note = "threads share a pool's root by its guard, `&RootGuard`, if the root is made of `PMutex` and `Parc`"
)]
pub trait GoesElsewhere {}

/// The same for what proves that a transaction is running.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is its transaction's own",
    label = "goes to another thread, or out of the transaction",
    note = "a transaction runs on one thread: let each thread begin one of its own, with `transaction(|j| ..)`, and lock there what it needs",
    note = "a value read from a guard, or a reference to a number behind it, may be shared"
)]
pub trait OutlivesItsTransaction {}

macro_rules! not_send {
    ($($condition:ident { $([$($parameters:tt)*] $type:ty;)* })*) => { $($(
        // SAFETY: it never is.
        unsafe impl<$($parameters)*> Send for $type where $type: $condition {}
        // SAFETY: it never is.
        unsafe impl<$($parameters)*> Sync for $type where $type: $condition {}
    )*)* };
}

not_send! {
    GoesElsewhere {
        [T: PSafe, P: PoolType] Pbox<T, P>;
        [T: PSafe, P: PoolType, K: Counting] Counted<T, P, K>;
        [T: PSafe, P: PoolType, K: Counting] PWeak<T, P, K>;
        [T: PSafe, P: PoolType] PVec<T, P>;
        [K: PSafe, V: PSafe, P: PoolType] PHashMap<K, V, P>;
        [K: PSafe, V: PSafe, P: PoolType] PBTreeMap<K, V, P>;
        [T: PSafe, P: PoolType] PCell<T, P>;
        [T: PSafe, P: PoolType] PRefCell<T, P>;
        [T: PSafe, P: PoolType] PMutex<T, P>;
        [T: PSafe + Copy, P: PoolType] LogFree<T, P>;
    }
    OutlivesItsTransaction {
        [P: PoolType] Journal<P>;
        ['a, T: PSafe] PRef<'a, T>;
        ['a, T: PSafe] PRefMut<'a, T>;
        ['a, T: PSafe] PMutexGuard<'a, T>;
        ['a, T: PSafe] Later<'a, T>;
    }
}
