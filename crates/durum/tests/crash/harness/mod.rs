//! How a run is recorded together with a model of it, and how an image is judged.
//!
//! `state` is the model; `lane` runs transactions and writes down what each may leave (`turns`: of several threads);
//! `campaign` records a run and explores it; `judge` recovers, checks and uses an image (`copies`: of
//! Twin); `workload` gives runs names.

mod arena;
mod campaign;
mod copies;
mod judge;
mod lane;
mod random;
mod state;
mod turns;
mod workload;

pub use arena::Arena;
pub use campaign::{Campaign, Recording, World};
pub use judge::{Judge, check_structures, recover};
pub use lane::{How, Lane, Running, Step, Stop};
pub use random::{Random, seed};
pub use state::{BYTES, SLOTS, pattern};
pub use turns::{Helper, Turns, in_turns};
pub use workload::{Medium, PLAIN, Workload};
