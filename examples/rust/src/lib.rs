//! Data structures as plain Rust (`src/bin/*_volatile.rs`) and as durable ones (`src/bin/*_durum.rs`), and the code of
//! the tutorial, docs/tutorials/rust.md.
//!
//! The two of a pair take the same commands and give the same answers, and differ in few lines, which `tests/lines.rs`
//! counts. `tests/pairs.rs` runs them side by side, and kills and reopens the durable ones; `tests/word_count.rs` does
//! the same to the one with threads.
//!
//! `src/bin/events.rs` has a database and the log of its events in two pools, changed in one transaction.

pub mod agenda;
