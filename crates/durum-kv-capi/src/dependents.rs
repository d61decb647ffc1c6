//! Snapshots and iterators that a program has not given back when it closes their database.
//!
//! Programs for LevelDB may forget them: the database is closed all the same, and can be opened again. So they end with
//! it, and what is left of them is given back later, or never.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::guard::{destroy, give};

/// What keeps a database open.
pub(crate) trait Dependent {
    /// Lets go of the database.
    fn end(&mut self);
}

/// Those of one database that were not given back, by their addresses.
#[derive(Default)]
// INVARIANT: each is live, and is taken off before it goes.
pub(crate) struct Dependents(Mutex<HashMap<usize, *mut dyn Dependent>>);

// SAFETY: the pointers are followed by `end` only, whose caller owes that nobody else uses them.
unsafe impl Send for Dependents {}
// SAFETY: a shared reference changes the table behind its lock only.
unsafe impl Sync for Dependents {}

impl fmt::Debug for Dependents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.lock().len();
        f.debug_struct("Dependents").field("count", &count).finish()
    }
}

impl Dependents {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, *mut dyn Dependent>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives one to C.
    pub(crate) fn give<T: Dependent + 'static>(&self, value: T) -> *mut T {
        let dependent = give(value);
        self.lock().insert(dependent.addr(), dependent);
        dependent
    }

    /// Takes one back from C, and drops it.
    ///
    /// # Safety
    /// What [`Dependents::give`] of these gave, and nobody uses any more.
    pub(crate) unsafe fn take_back<T>(self: Arc<Self>, dependent: *mut T) {
        self.lock().remove(&dependent.addr());
        // SAFETY: as the caller promises.
        unsafe { destroy(dependent) };
    }

    /// Ends all of them: they keep the database open no longer.
    ///
    /// # Safety
    /// Nobody uses any of them meanwhile.
    pub(crate) unsafe fn end(&self) {
        for (_, dependent) in std::mem::take(&mut *self.lock()) {
            // SAFETY: live, as the invariant says, and used by nobody else, as the caller promises.
            unsafe { (*dependent).end() };
        }
    }
}
