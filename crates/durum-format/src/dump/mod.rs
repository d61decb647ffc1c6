//! Pools as lines of JSON, by their descriptors: `docs/format/dump.md` tells the lines.
//!
//! [`Plan`] is a type as both directions go over it; [`mod@write`] makes a value of an object's bytes, [`mod@read`] an
//! object's bytes of a value. What is not an object's contents is in [`mod@line`].

pub mod line;
mod plan;
pub mod read;
mod scan;
pub mod write;

pub use line::{Head, Line, ObjectHead, PoolWith};
pub use plan::Plan;
pub use read::Reference;
pub use scan::Refused;
pub use write::{To, Wrong};

/// The version that this build writes and reads.
pub const VERSION: u64 = 1;
/// Whole numbers beyond this are text: most readers of JSON round them.
const EXACT_MAX: u64 = 1 << 53;
