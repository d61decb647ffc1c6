//! Puddles are mapped when they are needed (docs/internals/on-demand.md): whoever needs one, in each way, on each
//! engine and domain.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

mod accesses;
mod calls;
mod copies;
mod crashes;
mod crowds;
mod fixture;
mod killed;
#[path = "../../../durumd/tests/served/killer.rs"]
mod killer;
mod measures;
mod missing;
mod pointers;
mod shipped;
#[path = "../support/mod.rs"]
mod support;
