//! Allocation: who may take which bytes of a pool, decided in volatile memory.
//!
//! Reading order: [`slab`] (objects up to 256 bytes), `buddy` (extents), [`heap`] (one puddle), [`growth`] (the puddles
//! of a pool), [`pool`] (slabs owned by threads), [`reserve`] (what a transaction took and gave back, and the bits that
//! record it), [`recorded`] (the same for whoever keeps records of his own).

mod bits;
mod buddy;
#[cfg(test)]
mod ending_tests;
mod free_set;
mod ground;
mod growth;
mod headers;
mod heap;
#[cfg(test)]
mod large_tests;
mod objects;
mod places;
mod pool;
mod pool_heap;
mod puddle;
mod recorded;
mod reserve;
mod slab;
#[cfg(test)]
mod slab_tests;

pub(crate) use bits::{BitChange, Bitmap};
pub(crate) use ground::Ground;
pub(crate) use growth::{FILLED_MIN, Grow};
pub(crate) use heap::PuddleHeap;
pub(crate) use pool::ThreadCache;
pub(crate) use pool_heap::{PoolHeap, Puddles};
pub(crate) use recorded::objects_of;
pub use recorded::{Freed, Taking};

pub(crate) use puddle::{Puddle, puddle_at, puddle_followed_at, puddle_near_at, puddle_needed_at};
pub(crate) use reserve::{Allocation, AllocationMark, lone_room};
pub(crate) use slab::{Class, Slab};
