//! Collections in a pool, with the methods of their twins in std.
//!
//! What only reads is as there. What may allocate asks for the journal; what changes asks for `&mut`, which a cell
//! gives in a transaction. The contents lie in allocations of their own, of which a change announces the part that it
//! changes.

pub mod btree_map;
mod collection;
pub mod hash_map;
mod map;
mod string;
mod vec;

pub use btree_map::PBTreeMap;
pub use hash_map::PHashMap;
pub(super) use map::rebuild::Outcome;
pub use map::rebuild::{MapType, Rebuild};
pub use string::PString;
pub use vec::{IterMut, PVec};
