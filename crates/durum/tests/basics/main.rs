//! What a program may count on in one process: transactions, roots, allocation, nesting, errors, costs.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod beside_words;
mod buffered;
mod checkpointer;
mod costs;
mod fixture;
mod groups;
mod in_flight;
mod observing;
mod owners;
mod read_only;
mod space;
#[path = "../support/mod.rs"]
mod support;
mod threads;
mod transactions;
