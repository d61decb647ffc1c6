//! What maps from numbers to numbers have in common: batches, what a walk checks, and how threads share them.

use super::{InCopies, InTurns};
use crate::error::{Error, Result};
use crate::inputs::{Op, Scan, Walk};
use crate::side;

/// A map from numbers to numbers.
///
/// # Safety
/// As for [`InTurns`].
pub unsafe trait Numbers {
    /// Whether the keys are in order.
    const SORTED: bool;
    /// Puts a value under a key, whether that is there or not.
    fn put(&mut self, key: u64, value: u64) -> Result<()>;
    /// Deletes a key; whether it was there.
    fn take(&mut self, key: u64) -> Result<bool>;
    /// The value of a key in what lies `distance` bytes behind the map; 0 if it is not there.
    fn value_at(&self, key: u64, distance: usize) -> u64;
    /// The sum of the values of `length` entries from a key on, of maps that have an order.
    fn sum_from(&self, _key: u64, _length: u64) -> Option<u64> {
        None
    }
    /// Shows each entry. Whether the rules of the structure hold, but for the order of its keys.
    fn show(&self, see: &mut dyn FnMut(u64, u64)) -> bool;
}

impl<T: Numbers> side::Tree for T {
    fn insert(&mut self, entries: &[Op]) -> Result<()> {
        let mut entries = entries.iter();
        entries.try_for_each(|entry| self.put(entry.key, entry.value))
    }

    fn lookup(&self, keys: &[u64]) -> u64 {
        keys.iter()
            .fold(0, |sum, key| sum.wrapping_add(self.value_at(*key, 0)))
    }

    fn delete(&mut self, keys: &[u64]) -> Result<u64> {
        let mut found = 0;
        for key in keys {
            found += u64::from(self.take(*key)?);
        }
        Ok(found)
    }

    fn serve(&mut self, requests: &[Scan]) -> Result<u64> {
        let mut sum = 0u64;
        for request in requests {
            if request.length == 0 {
                self.put(request.key, request.value)?;
                continue;
            }
            let Some(read) = self.sum_from(request.key, request.length) else {
                return Error::not_taken("a map without scans");
            };
            sum = sum.wrapping_add(read);
        }
        Ok(sum)
    }

    fn walk(&mut self) -> Walk {
        let (mut walk, mut last) = (Walk::default(), None);
        let mut sorted = true;
        let sound = self.show(&mut |key, value| {
            sorted &= !Self::SORTED || last < Some(key);
            last = Some(key);
            walk.sum = walk.sum.wrapping_add(key ^ value);
            walk.count += 1;
        });
        Walk {
            sorted: sorted && sound,
            ..walk
        }
    }
}

/// A map from numbers to numbers whose users replace a value by deleting the key in one transaction and inserting it in
/// another.
///
/// # Safety
/// As for [`InTurns`].
pub unsafe trait Reinserted: side::Tree {}

// SAFETY: by the contract of `Numbers`.
unsafe impl<T: Numbers> Reinserted for T {}

// SAFETY: by the contract of `Reinserted`.
unsafe impl<T: Reinserted> InTurns for T {
    const STEPS: usize = 2;

    fn load(&mut self, entries: &[Op]) -> Result<()> {
        self.insert(entries)
    }

    #[inline]
    fn update(&mut self, step: usize, op: &Op) -> Result<()> {
        match step {
            0 => self.delete(&[op.key]).map(drop),
            _ => self.insert(std::slice::from_ref(op)),
        }
    }

    #[inline]
    fn read(&self, key: u64) -> u64 {
        self.lookup(&[key])
    }

    fn walk(&mut self) -> Walk {
        side::Tree::walk(self)
    }
}

impl<T: Numbers> InCopies for T {
    #[inline]
    fn read_at(&self, key: u64, distance: usize) -> u64 {
        self.value_at(key, distance)
    }
}
