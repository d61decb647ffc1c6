//! A structure in a pool that several threads use: updates are combined, readers wait for them or read the other copy.

use std::cell::UnsafeCell;
use std::sync::Arc;

use super::pool::TempPool;
use crate::error::{Error, Result};
use crate::inputs::{Op, Walk};
use crate::side::Shared;
use crate::structures::InCopies;

pub(super) struct Combined<S> {
    name: &'static str,
    temp: Arc<TempPool>,
    /// Readers read a copy beside the updates.
    reads_copy: bool,
    structure: UnsafeCell<S>,
}

// SAFETY: by the contract of `InTurns`; the pool lets one update run at a time, and nobody read meanwhile.
unsafe impl<S: InCopies> Sync for Combined<S> {}

impl<S> Combined<S> {
    pub(super) fn new(
        name: &'static str,
        temp: Arc<TempPool>,
        reads_copy: bool,
        structure: S,
    ) -> Self {
        Combined {
            name,
            temp,
            reads_copy,
            structure: structure.into(),
        }
    }
}

impl<S: InCopies> Shared for Combined<S> {
    fn load(&mut self, entries: &[Op]) -> Result<()> {
        self.structure.get_mut().load(entries)
    }

    fn update(&self, op: &Op) -> Result<()> {
        for step in 0..S::STEPS {
            let updated = self.temp.pool.update(|_| {
                // SAFETY: no other reference is alive: an update runs alone. Those who read a copy read other bytes.
                let structure = unsafe { &mut *self.structure.get() };
                Ok(structure.update(step, op))
            });
            updated.map_err(Error::side::<durum::Error>(self.name))??;
        }
        Ok(())
    }

    fn read(&self, key: u64) -> u64 {
        let pool = &self.temp.pool;
        // SAFETY: no update runs, or only in the other copy: what is read outside of the pool never changes.
        let structure = || unsafe { &*self.structure.get() };
        let read = match self.reads_copy {
            true => pool.read_copy(|view| structure().read_at(key, view.distance())),
            false => pool.read(|| structure().read(key)),
        };
        // The sum will be wrong, and the harness says so.
        read.unwrap_or(0)
    }

    fn walk(&mut self) -> Walk {
        self.structure.get_mut().walk()
    }
}
