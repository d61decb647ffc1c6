//! What the threads of a pool share to allocate.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, RwLock};

use rustc_hash::FxHashMap;

use super::puddle::Puddle;
use super::slab::{Class, Slab};

/// What the threads of a pool share to allocate.
#[derive(Debug, Default)]
pub(crate) struct PoolHeap {
    pub(crate) puddles: RwLock<Vec<Arc<Puddle>>>,
    /// Bytes by which the pool grows at most, unless one object needs more.
    pub(super) growth_max: u64,
    /// Bytes of unused puddles that are kept.
    pub(super) spare_max: u64,
    /// Slabs that have room and no owner.
    pub(super) with_room: Mutex<FxHashMap<Class, Vec<Arc<Slab>>>>,
    /// Slabs that were seen empty without an owner: the next commits give their extents back.
    pub(super) empty: Mutex<Vec<Arc<Slab>>>,
    /// Whether `empty` is worth a look.
    pub(super) has_empty: AtomicBool,
    /// Held while the pool grows or shrinks, so that it does so once.
    pub(super) resize: Mutex<()>,
    /// The program gives large objects their contents when it allocates them.
    pub(super) fills: AtomicBool,
    /// Bytes that the program wants to find free, also where that is more than is kept otherwise.
    pub(super) wanted: AtomicU64,
}

impl PoolHeap {
    pub(crate) fn new(growth_max: u64, spare_max: u64) -> Self {
        Self {
            growth_max,
            spare_max,
            ..Self::default()
        }
    }
}
