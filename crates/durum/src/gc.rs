//! Garbage: cycles of counted pointers, and whatever else no root leads to, is freed while nobody uses the store.
//!
//! The service finds it through type descriptors, so that the programs that made it are not needed. It goes in one
//! transaction for all pools whose garbage has to do with each other: a crash leaves all of it or none. Where that is
//! more than a log holds, it goes in several, one strongly connected component after the other, those first to which no
//! other garbage leads: after each of them what is left of the garbage points to objects that are there, counts are
//! right, and the next collection finds the rest.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use durum_protocol::Address;
use durum_service::{
    GarbageGroup, GarbageLimbo, GarbageObject, GarbageOptions, OpenOptions, PoolGarbage,
    ProgressFn, RecoveryReport, find_garbage,
};

use crate::error::{Error, Result};
use crate::fault;
use crate::opened::{Announce, Pool, Store};
use crate::options::{PoolOptions, StoreOptions, setters};
use crate::services;
use crate::tx::Tx;
use crate::typed::Tally;

/// How garbage is collected.
#[derive(Clone)]
#[non_exhaustive]
pub struct GcOptions {
    /// Only in the pool of this name; what objects of other pools lead to stays, whatever leads to those. Default: in
    /// all pools.
    pub pool: Option<String>,
    /// Each 8 bytes of an object without a type that are an address of an object are a pointer, and nothing else
    /// leads out of such objects. Default: no, and where live ones may hold pointers nothing is freed.
    pub untyped_hold_pointers: bool,
    /// Only tell what would be freed, and write nothing. Default: no.
    pub dry_run: bool,
    /// How the store is opened.
    pub store: StoreOptions,
    /// Called as it goes on.
    pub progress: Option<Arc<ProgressFn>>,
    /// More objects than this are freed in several transactions, as if a log held no more. For tests.
    #[doc(hidden)]
    pub objects_max: usize,
}

impl Default for GcOptions {
    fn default() -> Self {
        Self {
            pool: None,
            untyped_hold_pointers: false,
            dry_run: false,
            store: StoreOptions::new(),
            progress: None,
            objects_max: usize::MAX,
        }
    }
}

impl fmt::Debug for GcOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GcOptions")
            .field("pool", &self.pool)
            .field("untyped_hold_pointers", &self.untyped_hold_pointers)
            .field("dry_run", &self.dry_run)
            .field("store", &self.store)
            .finish_non_exhaustive()
    }
}

impl GcOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`GcOptions::pool`].
    #[must_use]
    pub fn pool(mut self, name: impl Into<String>) -> Self {
        self.pool = Some(name.into());
        self
    }
}

setters! {
    GcOptions:
    untyped_hold_pointers(hold: bool);
    dry_run(dry_run: bool);
    store(options: StoreOptions);
    progress(progress: Arc<ProgressFn>);
}

/// What a collection did, or would do.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct GcReport {
    /// What went, pool by pool, in order of name.
    pub pools: Vec<PoolGarbage>,
    /// The transactions in which it went; 0 if there was nothing to free, or for a dry run.
    pub transactions: u64,
    /// What recovery did before, or would do.
    pub recovery: RecoveryReport,
}

impl GcReport {
    /// The objects that went, of all pools.
    pub fn objects(&self) -> u64 {
        self.pools.iter().map(|pool| pool.objects).sum()
    }

    /// Their bytes.
    pub fn bytes(&self) -> u64 {
        self.pools.iter().map(|pool| pool.bytes).sum()
    }

    /// The objects that lost their value and stay, because weak pointers lead to them.
    pub fn husks(&self) -> u64 {
        self.pools.iter().map(|pool| pool.husks).sum()
    }
}

/// Frees what no root leads to in the store at `path`, which nobody has open: cycles of [`Prc`](crate::typed::Prc) and
/// [`Parc`](crate::typed::Parc) above all.
///
/// A garbage object that live weak pointers lead to loses its value and stays for them, as any object whose last strong
/// pointer is gone. It is all durable when this returns.
///
/// # Errors
/// `StoreMissing`, `StoreBusy`, `PoolMissing`; `GarbageUnjudged` where live objects may hold pointers that no
/// descriptor shows; `GarbageDamaged` and `PoolQuarantined` where data is damaged; `MixedEngines` where garbage of
/// pools of different engines points to each other. The objects are then as they were, but the store was recovered if
/// it had not been closed in order. `TransactionTooLarge` for a cycle that no log holds: other garbage is gone.
pub fn collect(path: impl AsRef<Path>, options: &GcOptions) -> Result<GcReport> {
    let path = path.as_ref();
    let search = GarbageOptions {
        pool: options.pool.clone(),
        untyped_hold_pointers: options.untyped_hold_pointers,
        progress: options.progress.clone(),
    };
    fault::check_forked()?;
    if options.dry_run {
        let garbage = match Address::parse(path) {
            Address::Directory(path) => find_garbage(&path, &search)?,
            Address::Service(_) => {
                let service = services::open(path, OpenOptions::default())?.service;
                let found = service.find_garbage(&search);
                service.close()?;
                found?
            }
        };
        return Ok(GcReport {
            pools: garbage.pools,
            transactions: 0,
            recovery: garbage.pending,
        });
    }
    let open = OpenOptions {
        domain: options.store.domain,
        progress: options.progress.clone(),
        ..OpenOptions::default()
    };
    let opened = services::open(path, open)?;
    let recovery = opened.recovery.clone().unwrap_or_default();
    let garbage = match opened.service.find_garbage(&search) {
        Ok(garbage) => garbage,
        Err(error) => {
            opened.service.close()?;
            return Err(error.into());
        }
    };
    let store = Store::over(opened, &options.store)?;
    let mut report = GcReport {
        pools: garbage.pools,
        transactions: 0,
        recovery,
    };
    let freed: Result<()> = garbage.groups.iter().try_for_each(|group| {
        report.transactions += Sweep::of(&store, group, options)?.free(&group.objects)?;
        Ok(())
    });
    // The first error counts; closing frees what is open either way.
    let closed = store.close();
    freed.and(closed)?;
    Ok(report)
}

/// The open pools of a group.
struct Sweep<'g> {
    pools: Vec<Pool>,
    limbos: &'g [GarbageLimbo],
    objects_max: usize,
}

impl<'g> Sweep<'g> {
    fn of(store: &Store, group: &'g GarbageGroup, options: &GcOptions) -> Result<Self> {
        let names = group.pools.iter();
        Ok(Self {
            pools: names
                .map(|name| store.open_pool(name, PoolOptions::new()))
                .collect::<Result<_>>()?,
            limbos: &group.limbos,
            objects_max: options.objects_max,
        })
    }

    /// Frees objects that no other garbage leads to, in one transaction if a log holds it. How many it took.
    fn free(&self, objects: &[GarbageObject]) -> Result<u64> {
        let Some(pool) = self.pools.first() else {
            return Ok(0);
        };
        let cut = cut(objects);
        let result = match cut {
            Some(_) if objects.len() > self.objects_max => {
                Err(Error::TransactionTooLarge { bytes: 0, max: 0 })
            }
            _ => pool.transaction(|tx| free_at_once(tx, objects, self.limbos)),
        };
        match (result, cut) {
            (Err(Error::TransactionTooLarge { .. }), Some(cut)) => {
                // ORDER: the second part may be pointed to by the first one, and never the other way round; so the
                // first one has to go before.
                let (first, second) = objects.split_at(cut);
                Ok(self.free(first)? + self.free(second)?)
            }
            (result, _) => result.map(|()| 1),
        }
    }
}

/// Where a list of objects can be cut between two components, near its middle.
fn cut(objects: &[GarbageObject]) -> Option<usize> {
    let middle = objects.get(objects.len() / 2)?.component;
    let start = objects.partition_point(|object| object.component < middle);
    let end = objects.partition_point(|object| object.component <= middle);
    match (start, end) {
        (1.., _) => Some(start),
        (0, end) => (end < objects.len()).then_some(end),
    }
}

fn free_at_once(tx: &Tx, objects: &[GarbageObject], limbos: &[GarbageLimbo]) -> Result<()> {
    lead_past(tx, objects, limbos)?;
    // Pointers that go with these objects, by what they lead to.
    let mut gone: HashMap<u64, Tally> = HashMap::new();
    for reference in objects.iter().flat_map(|object| &object.references) {
        let tally = gone.entry(reference.target).or_default();
        match reference.is_weak {
            true => tally.weak += 1,
            false => tally.strong += 1,
        }
    }
    for object in objects {
        gone.remove(&object.address);
        let address = std::ptr::with_exposed_provenance_mut::<u8>(object.address as usize);
        if object.weak == 0 {
            // SAFETY: no pointer to it is left in a live object, nor in garbage that stays, and nobody else uses the
            // store.
            unsafe { tx.free(address)? };
            continue;
        }
        let husk = Tally {
            strong: 0,
            weak: object.weak,
        };
        let (size, tally_size) = (object.size as usize, size_of::<Tally>());
        // SAFETY: a counted object of an open pool, so large, which nobody else uses; it begins with its counts.
        unsafe {
            tx.add_bytes(address, size, Announce::Backup)?;
            address.cast::<Tally>().write(husk);
            address.add(tally_size).write_bytes(0, size - tally_size);
        }
    }
    for (address, gone) in gone {
        let counts = std::ptr::with_exposed_provenance_mut::<Tally>(address as usize);
        // SAFETY: a counted object of an open pool, which nobody else uses; it begins with its counts.
        unsafe {
            tx.add(counts)?;
            let old = counts.read();
            // The search has shown that no count is too low.
            counts.write(Tally {
                strong: old.strong.saturating_sub(gone.strong),
                weak: old.weak.saturating_sub(gone.weak),
            });
        }
    }
    Ok(())
}

/// Makes each list of deferred drops begin with the first one that is not freed with these objects, nor was before: one
/// leads to the next, which is freed later or at once.
fn lead_past(tx: &Tx, objects: &[GarbageObject], limbos: &[GarbageLimbo]) -> Result<()> {
    if limbos.is_empty() {
        return Ok(());
    }
    let freed: HashSet<u64> = objects.iter().map(|object| object.address).collect();
    for limbo in limbos {
        let references = &limbo.references;
        let Some(last) = references.iter().rposition(|at| freed.contains(at)) else {
            continue;
        };
        let head = std::ptr::with_exposed_provenance_mut::<u64>(limbo.head as usize);
        // SAFETY: a pointer in an object of an open pool, which nobody else uses.
        unsafe {
            tx.add(head)?;
            head.write(references.get(last + 1).copied().unwrap_or(0));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_components(components: &[u32]) -> Vec<GarbageObject> {
        let object = |component: &u32| GarbageObject {
            address: 0,
            size: 16,
            component: *component,
            weak: 0,
            references: Vec::new(),
        };
        components.iter().map(object).collect()
    }

    #[test]
    fn components_are_never_cut() {
        assert_eq!(cut(&of_components(&[])), None);
        assert_eq!(cut(&of_components(&[0])), None);
        assert_eq!(cut(&of_components(&[0, 0, 0])), None);
        assert_eq!(cut(&of_components(&[0, 1])), Some(1));
        assert_eq!(cut(&of_components(&[0, 0, 0, 1])), Some(3));
        assert_eq!(cut(&of_components(&[0, 1, 1, 1])), Some(1));
        assert_eq!(cut(&of_components(&[0, 1, 2, 3])), Some(2));
    }
}
