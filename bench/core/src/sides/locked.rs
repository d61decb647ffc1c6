//! A structure behind a lock of its users' own: what a library without any concurrency control leaves to them.

use std::sync::{PoisonError, RwLock};

use crate::error::Result;
use crate::inputs::{Op, Walk};
use crate::side::Shared;
use crate::structures::InTurns;

/// One who updates, or any number who read.
pub(super) struct Locked<S> {
    lock: RwLock<()>,
    structure: std::cell::UnsafeCell<S>,
}

// SAFETY: by the contract of `InTurns`, and who changes the structure has the lock alone.
unsafe impl<S: InTurns> Sync for Locked<S> {}

impl<S> Locked<S> {
    pub(super) fn new(structure: S) -> Self {
        Locked {
            lock: RwLock::new(()),
            structure: structure.into(),
        }
    }
}

impl<S: InTurns> Shared for Locked<S> {
    fn load(&mut self, entries: &[Op]) -> Result<()> {
        self.structure.get_mut().load(entries)
    }

    fn update(&self, op: &Op) -> Result<()> {
        for step in 0..S::STEPS {
            let _alone = self.lock.write().unwrap_or_else(PoisonError::into_inner);
            // SAFETY: no other reference is alive: this thread has the lock alone.
            unsafe { &mut *self.structure.get() }.update(step, op)?;
        }
        Ok(())
    }

    fn read(&self, key: u64) -> u64 {
        let _beside = self.lock.read().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: nobody changes the structure while the lock is held.
        unsafe { &*self.structure.get() }.read(key)
    }

    fn walk(&mut self) -> Walk {
        self.structure.get_mut().walk()
    }
}
