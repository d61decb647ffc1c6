//! The runtime as compiled code uses it: every function, on every engine.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use heaps as compiled C does: the pointers are live, and theirs alone"
)]

mod collections;
mod copies;
mod costs;
mod ends;
mod graphs;
mod handles;
mod isolation;
mod kills;
mod migrating;
mod objects;
#[path = "../../../durum/tests/support/mod.rs"]
mod processes;
mod support;
mod transactions;
mod weak;
