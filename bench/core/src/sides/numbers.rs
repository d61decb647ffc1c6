//! Maps from numbers to numbers in the typed interface, each behind a `PRefCell`.

use durum::typed::{Journal, PRefCell, PSafe, PoolType};

use super::open::Open;
use crate::error::{Error, Result};
use crate::inputs::{Op, Walk};
use crate::side;

/// A map from numbers to numbers.
pub(super) trait Numbers<P: PoolType>: PSafe {
    fn put(&mut self, key: u64, value: u64, j: &Journal<P>);
    fn take(&mut self, key: u64) -> bool;
    fn find_value(&self, key: u64) -> Option<u64>;
    /// Shows each entry. Whether the keys ascend, where they have an order.
    fn show(&self, see: &mut dyn FnMut(u64, u64)) -> bool;
}

impl<T: Numbers<P>, P: PoolType> side::Tree for Open<PRefCell<T, P>, P> {
    fn insert(&mut self, entries: &[Op]) -> Result<()> {
        let root = &*self.root;
        for entry in entries {
            P::transaction(|j| root.borrow_mut(j).put(entry.key, entry.value, j))
                .map_err(Error::side(self.name))?;
        }
        Ok(())
    }

    fn lookup(&self, keys: &[u64]) -> u64 {
        let map = self.root.borrow();
        let found = keys.iter().filter_map(|key| map.find_value(*key));
        found.fold(0, u64::wrapping_add)
    }

    fn delete(&mut self, keys: &[u64]) -> Result<u64> {
        let root = &*self.root;
        let mut deleted = 0;
        for key in keys {
            let was_there = P::transaction(|j| root.borrow_mut(j).take(*key))
                .map_err(Error::side(self.name))?;
            deleted += u64::from(was_there);
        }
        Ok(deleted)
    }

    fn walk(&mut self) -> Walk {
        let mut walk = Walk::default();
        walk.sorted = self.root.borrow().show(&mut |key, value| {
            walk.count += 1;
            walk.sum = walk.sum.wrapping_add(key ^ value);
        });
        walk
    }
}
