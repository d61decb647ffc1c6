//! Sections as compiled code has them, by hand: crashed at each step, counted, and by several threads.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use the heap as compiled C does: the pointers are live, and theirs alone"
)]

mod costs;
mod crash;
mod ends;
mod handing;
mod locals;
mod locks;
mod memory;
mod program;
mod resumption;
mod support;
mod telling;
