//! Times a key-value store as LevelDB's `db_bench` does: benchmarks of the same names, the same flags, the same form of
//! output.
//!
//! The program `durum-kv-bench` runs them on `durum-kv`. Other stores can be given by implementing [`Store`].
//!
//! Reading order: [`flags`] (what may be asked for), [`run()`] (the benchmarks), [`store`] (what is timed), [`stats`]
//! and [`histogram`] (what is printed), [`environment`] (where it ran), [`random`] (keys and values), [`manual`] (the
//! page of the manual).

#![warn(clippy::unwrap_used)]

pub mod environment;
pub mod flags;
pub mod histogram;
pub mod manual;
pub mod random;
pub mod run;
pub mod stats;
pub mod store;

pub use flags::Flags;
pub use run::{Output, run};
pub use store::{Durum, Store};
