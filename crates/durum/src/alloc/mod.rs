//! Allocation: who may take which bytes of a pool, decided in volatile memory.
//!
//! Reading order: [`slab`] (objects up to 256 bytes), `buddy` (extents), [`heap`] (one puddle), [`pool`] (finding and
//! growing puddles, slabs owned by threads), [`reserve`] (what a transaction took and gave back, and the bits that
//! record it).

mod buddy;
mod free_set;
mod ground;
mod heap;
#[cfg(test)]
mod large_tests;
mod objects;
mod places;
mod pool;
mod puddle;
mod reserve;
mod slab;

pub(crate) use ground::Ground;
pub(crate) use heap::PuddleHeap;
pub(crate) use pool::{Allocate, FILLED_MIN, PoolHeap, ThreadCache};
pub(crate) use puddle::{Puddle, puddle_at, puddle_near_at};
pub(crate) use reserve::{Allocation, AllocationMark, BitChange, Bitmap, lone_room};
