//! Ways from the root of a pool to what lies in it, as `--path` follows them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use durum_format::content::{self, At, Limits, Objects, Shown, Way};
use durum_service::{PoolSummary, ReadOnlyStore, Uuid};

use super::pool::PoolView;
use crate::failure::Failure;

/// How far from the root it is looked for the path to an object.
const NAMED: Limits = Limits {
    depth: 64,
    objects: 20_000,
    elements: 20_000,
};

/// The paths to the objects of a pool.
pub(crate) struct Ways {
    pub(crate) shown: Shown,
}

impl Ways {
    pub(crate) fn of(pool: &PoolView<'_>) -> Result<Self, Failure> {
        let shown = match pool.root()? {
            Some(root) => content::of_object(pool, root, "root", &NAMED).shown,
            None => Shown::new(),
        };
        Ok(Self { shown })
    }

    /// The path to what lies at an address; `None` where that is too far from the root, or only a part of a value.
    pub(crate) fn to(&self, pool: &PoolView<'_>, address: u64) -> Option<String> {
        let At::Object(object) = pool.at(address) else {
            return None;
        };
        let path = self.shown.get(&object.start)?;
        let offset = address - object.start;
        if offset == 0 || offset == content::start_of(pool, &object) {
            return Some(path.clone());
        }
        let part = content::part_at(pool, &object, offset)?;
        Some(format!("{path}{part}"))
    }
}

/// Other pools of the store, with their ways; nothing for those that cannot be looked at.
#[derive(Default)]
pub(super) struct Neighbours<'a>(Mutex<BTreeMap<Uuid, Option<Arc<Neighbour<'a>>>>>);

struct Neighbour<'a> {
    view: PoolView<'a>,
    ways: Ways,
}

impl<'a> Neighbours<'a> {
    /// The way to an address that lies in a pool.
    pub(super) fn way(
        &self,
        store: &'a ReadOnlyStore,
        pool: &PoolSummary,
        address: u64,
    ) -> Option<Way> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let neighbour = all.entry(pool.uuid);
        let neighbour = neighbour.or_insert_with(|| {
            let view = PoolView::open(store, &pool.name).ok()?;
            let ways = Ways::of(&view).ok()?;
            Some(Arc::new(Neighbour { view, ways }))
        });
        let neighbour = neighbour.clone()?;
        drop(all);
        let path = neighbour.ways.to(&neighbour.view, address)?;
        Some(Way {
            pool: pool.name.clone(),
            path,
        })
    }
}
