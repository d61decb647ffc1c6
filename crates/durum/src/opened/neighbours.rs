//! The stores of this process that share a range of addresses: what one has there, others keep away from, and who comes
//! later makes way (docs/internals/relocation.md).

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use durum_service::{AddressRange, Result, Service, UsedElsewhere};

use crate::deferred_events::put_off;
use crate::fault;
use crate::space::Space;

/// An open store, as others of the process know it.
struct Neighbour {
    key: u64,
    space: &'static Space,
    service: Weak<dyn Service>,
}

/// Written by who comes or goes, and read by whoever places a puddle: two that place at the same time, in stores that
/// know nothing of each other, could choose one place.
static OPEN: RwLock<Vec<Neighbour>> = RwLock::new(Vec::new());

/// What a store knows of others of the process; they know of it until this is dropped.
pub(crate) struct Neighbours {
    key: u64,
    space: &'static Space,
    service: Arc<dyn Service>,
    untyped_hold_no_pointers: bool,
}

impl fmt::Debug for Neighbours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Neighbours")
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl Neighbours {
    /// A store is open: what it has at addresses of others goes elsewhere, before anybody opens a pool of it. Where
    /// that cannot be, opening a pool tells.
    pub(crate) fn enter(
        key: u64,
        space: &'static Space,
        service: Arc<dyn Service>,
        untyped_hold_no_pointers: bool,
    ) -> Self {
        let entered = Self {
            key,
            space,
            service,
            untyped_hold_no_pointers,
        };
        put_off(|| {
            let mut all = OPEN.write().unwrap_or_else(PoisonError::into_inner);
            let ranges = entered.used_by_others(&all);
            if (!ranges.is_empty() || untyped_hold_no_pointers)
                && let Err(error) = entered
                    .avoid(ranges)
                    .and_then(|()| entered.service.make_way())
            {
                tracing::debug!(%error, "a store cannot make way for others of this process");
            }
            all.push(Neighbour {
                key,
                space,
                service: Arc::downgrade(&entered.service),
            });
        });
        entered
    }

    /// Whether another store of this process has something at an address.
    pub(crate) fn others_have(&self, address: u64) -> bool {
        let all = OPEN.read().unwrap_or_else(PoisonError::into_inner);
        let mut ranges = self.used_by_others(&all).into_iter();
        ranges.any(|range| range.address <= address && address - range.address < range.size)
    }

    /// Has the store make way for others that came before it, or that have grown since. Whether it has.
    ///
    /// # Errors
    /// `Unmovable`, and others that say why it cannot.
    pub(crate) fn make_way(&self) -> Result<bool> {
        put_off(|| {
            let all = OPEN.write().unwrap_or_else(PoisonError::into_inner);
            let ranges = self.used_by_others(&all);
            if ranges.is_empty() {
                return Ok(false);
            }
            let before = self.service.occupied()?;
            self.avoid(ranges)?;
            self.service.make_way()?;
            Ok(self.service.occupied()? != before)
        })
    }

    /// Asks the service for something that it places where no other store of this process has anything.
    ///
    /// # Errors
    /// Those of `place`.
    pub(crate) fn place<T>(&self, place: impl FnOnce(&dyn Service) -> Result<T>) -> Result<T> {
        let all = OPEN.read().unwrap_or_else(PoisonError::into_inner);
        if !all.iter().any(|other| other.key != self.key) {
            return place(&*self.service);
        }
        drop(all);
        put_off(|| {
            let all = OPEN.write().unwrap_or_else(PoisonError::into_inner);
            let ranges = self.used_by_others(&all);
            if !ranges.is_empty() {
                // A service that is too old to know of this places as ever.
                let _ = self.avoid(ranges);
            }
            place(&*self.service)
        })
    }

    /// What others of these have in the range of the store.
    fn used_by_others(&self, all: &[Neighbour]) -> Vec<AddressRange> {
        let others = all
            .iter()
            .filter(|other| other.key != self.key && std::ptr::eq(other.space, self.space));
        let services = others.filter_map(|other| other.service.upgrade());
        // Of one that does not answer any more nobody knows: where it is met, mapping says so.
        services
            .filter_map(|service| service.occupied().ok())
            .flatten()
            .collect()
    }

    /// Tells the service what to keep away from.
    fn avoid(&self, ranges: Vec<AddressRange>) -> Result<()> {
        self.service.avoid(&UsedElsewhere {
            ranges,
            untyped_hold_no_pointers: self.untyped_hold_no_pointers,
        })
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        // A forked child has none of the threads that may hold the lock.
        if !fault::forked() {
            let mut all = OPEN.write().unwrap_or_else(PoisonError::into_inner);
            all.retain(|other| other.key != self.key);
        }
    }
}
