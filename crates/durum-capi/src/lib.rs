//! The C interface of durum, for C, C++ and every language that can call C.
//!
//! `include/durum.h` is what its users read. It is made of `header/conventions.h.in`, the declarations in this crate
//! (by cbindgen) and `header/macros.h.in`; the test `header` keeps it current. The functions are thin: each checks its
//! pointers, calls the client crate inside [`guard`], and leaves code and message of a failure in the thread's record.
//!
//! No Rust frame is ever jumped over: [`block`] records that a block has failed and tells C where to go on; C jumps.
//!
//! Reading order: [`code`] and [`guard`] (failures), [`store`], [`pool`], [`ship`], [`migrate`], [`object`] (what
//! exists), [`level`], [`tx`] and [`block`] (transactions), [`shared`] (updates and reads of several threads),
//! [`types`] (descriptors of C types), [`log`] (the low-level log), [`stats`] (counts), [`nvl`] (heaps of NVL-C),
//! [`ido`] (heaps of lock-based code).

#![warn(clippy::unwrap_used)]
#![allow(
    clippy::missing_safety_doc,
    reason = "the conventions at the top of durum.h say what callers owe"
)]

mod begun;
pub mod block;
pub mod code;
pub mod guard;
pub mod ido;
pub mod level;
pub mod log;
pub mod migrate;
pub mod nvl;
pub mod nvl_migrate;
pub mod object;
pub mod pool;
pub mod shared;
pub mod ship;
pub mod stats;
pub mod store;
pub mod tx;
pub mod types;
