//! `PMutex`: a value that threads change in turn, each in a transaction of its own.
//!
//! It is unlocked when the transaction has ended: only then is what it did durable, and may others build on it.

use std::cell::{Cell, UnsafeCell};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::sync::Mutex;
use std::sync::atomic::Ordering;

use super::as_target::as_target;
use super::cell_impls::cell;
use super::journal::Journal;
use super::later::Later;
use super::lock_word::{LockWord, NO_EPOCH};
use super::pool_type::PoolType;
use super::psafe::{PSafe, name_of};
use super::reading::Reading;
use super::typed_tx::TypedTx;
use super::values::PClone;
use super::waiting;
use crate::primitive::locked;

/// A guard lives.
const GUARDED: u32 = 1;

/// A value in the pool that threads change in turn (Corundum Table 1).
///
/// A thread that has locked it keeps it until its transaction ends, so nobody sees what is not committed. No lock
/// survives a crash.
#[repr(C)]
pub struct PMutex<T: PSafe, P: PoolType> {
    word: LockWord,
    value: UnsafeCell<T>,
    _pool: PhantomData<(*mut (), P)>,
}

/// Threads take turns: what `Mutex` makes of a type.
#[doc(hidden)]
#[derive(Debug)]
pub struct InTurn<T>(PhantomData<Mutex<T>>);

/// The value of a [`PMutex`]. It is announced to the transaction when it is written to for the first time. The mutex
/// stays locked when it is dropped, but the same transaction can `lock` it again.
pub struct PMutexGuard<'a, T: PSafe> {
    word: &'a LockWord,
    value: &'a UnsafeCell<T>,
    tx: &'a TypedTx,
    is_open: Cell<bool>,
}

cell! { PMutex<T> { "A mutex", check: T::POOL.assert_fits(P::ID), Threads: InTurn, WORDS: true, word } }

impl<T: PSafe, P: PoolType> PMutex<T, P> {
    /// Locks the value until the transaction ends; waits while another thread's transaction has it.
    ///
    /// The order of locking is the program's concern;
    /// [`OpenOptions::find_deadlocks`](super::OpenOptions::find_deadlocks) finds threads that wait for each other.
    ///
    /// # Panics
    /// If a guard of this transaction lives: there would be two.
    #[inline]
    #[track_caller]
    pub fn lock<'a>(&'a self, j: &'a Journal<P>) -> PMutexGuard<'a, T> {
        let (word, tx) = (P::binding().words.of(&self.word), j.tx());
        let mine = tx.number() << 1;
        // Only this thread writes its number there.
        let owned = word.owner().load(Ordering::Relaxed);
        assert!(
            owned != mine | GUARDED,
            "a mutex is locked again while a guard of the same transaction lives"
        );
        // A mutex that is not in the pool is nobody else's, and nothing will unlock it.
        if owned != mine && tx.holds(std::ptr::from_ref(&self.word).addr()) {
            if !word.lock().try_lock(NO_EPOCH) {
                wait::<T, P>(&self.word, word, tx);
            }
            tx.note_locked(word);
        }
        word.owner().store(mine | GUARDED, Ordering::Relaxed);
        PMutexGuard {
            word,
            value: &self.value,
            tx,
            is_open: Cell::new(false),
        }
    }

    /// The value, in a pool that is open for reading only: nobody has the mutex locked there.
    #[inline]
    pub fn read<'a>(&'a self, _reading: &'a Reading<P>) -> &'a T
    where
        T: PSafe<Threads: Sync>,
    {
        // SAFETY: only a transaction on `P` gives a reference to change it, and none runs; that others read it at the
        // same time, the bound allows.
        unsafe { &*self.value.get() }
    }

    /// The value of a mutex that is in nobody else's hands.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }
}

/// Waits for a mutex, and locks it. `at` is its word in the pool, `word` what is kept about it.
#[cold]
fn wait<T: PSafe, P: PoolType>(at: &LockWord, word: &LockWord, tx: &TypedTx) {
    waiting::count_contended();
    let _waiting = tx.open().finds_deadlocks.then(|| {
        let name = format!(
            "PMutex<{}> of pool {} at {:p}",
            name_of::<T>(),
            P::binding().name,
            at
        );
        Waiting::begin(word, tx.number(), name)
    });
    word.lock().lock_slowly(NO_EPOCH);
}

/// Which thread waits for which mutex, where deadlocks are looked for: its word, and what it is called.
static WAITING: Mutex<Option<HashMap<u32, (usize, String)>>> = Mutex::new(None);

struct Waiting(u32);

impl Waiting {
    /// # Panics
    /// If the owner of the mutex waits for this thread, directly or through others.
    fn begin(word: &LockWord, number: u32, name: String) -> Self {
        let mut known = locked(&WAITING);
        let waiting = known.get_or_insert_default();
        waiting.insert(
            number,
            (std::ptr::from_ref(word).expose_provenance(), name.clone()),
        );
        let mut chain = vec![name];
        let mut at = word.owner().load(Ordering::Relaxed) >> 1;
        while let Some((next, name)) = waiting.get(&at) {
            chain.push(name.clone());
            // SAFETY: a thread waits there, so the pool is open.
            let next: &LockWord = unsafe { &*std::ptr::with_exposed_provenance(*next) };
            at = next.owner().load(Ordering::Relaxed) >> 1;
            if at == number {
                waiting.remove(&number);
                drop(known);
                panic!(
                    "deadlock: this thread waits for {}, which this thread has locked",
                    chain.join(", whose owner waits for ")
                );
            }
            if chain.len() > waiting.len() + 1 {
                break;
            }
        }
        Self(number)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut known = locked(&WAITING);
        if let Some(waiting) = known.as_mut() {
            waiting.remove(&self.0);
        }
    }
}

impl<T: PSafe> PMutexGuard<'_, T> {
    /// The value, to be changed in parts: announced is what [`Later::change`] is called of, not the whole.
    #[inline]
    pub fn later(&mut self) -> Later<'_, T> {
        // SAFETY: locked by this transaction, and this is its only guard, which is lent.
        unsafe { Later::of_place(self.value.get(), Some(self.tx)) }
    }
}

impl<T: PSafe> Deref for PMutexGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: locked by this transaction, and this is its only guard.
        unsafe { &*self.value.get() }
    }
}

impl<T: PSafe> DerefMut for PMutexGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        if !self.is_open.get() {
            self.tx.open_to_changes(self.value.get());
            self.is_open.set(true);
        } else if T::WORDS && self.tx.holds(self.value.get().addr()) {
            let address = self.value.get().addr();
            self.tx.reset_words::<T>(address, size_of::<T>());
        }
        // SAFETY: locked by this transaction, this is its only guard, and the value is announced.
        unsafe { &mut *self.value.get() }
    }
}

impl<T: PSafe> Drop for PMutexGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // The mutex is still this thread's, and nobody else writes here while it is.
        let mine = self.tx.number() << 1;
        self.word.owner().store(mine, Ordering::Relaxed);
    }
}

impl<T: PSafe + PClone<P>, P: PoolType> PClone<P> for PMutex<T, P> {
    /// A mutex with a copy of the value, which is locked for that.
    fn pclone(&self, j: &Journal<P>) -> Self {
        Self::with(self.lock(j).pclone(j))
    }
}

impl<T: PSafe, P: PoolType> fmt::Debug for PMutex<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PMutex").finish_non_exhaustive()
    }
}

as_target! {
    ['a, T: PSafe] PMutexGuard<'a, T>, to T: Debug Display;
}
