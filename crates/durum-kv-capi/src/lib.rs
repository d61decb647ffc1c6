//! The key-value store for C: LevelDB's functions by their own names, so that a program changes stores by linking with
//! another library.
//!
//! `include/durum_kv.h` is what users read; it says what each function does and where it differs from LevelDB. The
//! functions are thin: each takes what C gave apart, calls `durum-kv` inside [`guard`], and gives a failure as a
//! string. [`extension`], [`many`] and [`in_flight`] have what LevelDB does not.
//!
//! Reading order: `status` (failures), [`guard`] (bytes from and to C), [`options`], [`db`], `dependents`,
//! [`iterator`], [`batch`], [`comparator`], [`ignored`] (accepted, without effect).

#![warn(clippy::unwrap_used)]
#![allow(
    clippy::missing_safety_doc,
    reason = "the conventions at the top of durum_kv.h say what callers owe"
)]
#![allow(
    non_camel_case_types,
    reason = "handles have the names that LevelDB gave them"
)]

pub mod batch;
pub mod comparator;
pub mod db;
mod dependents;
pub mod extension;
pub mod guard;
pub mod ignored;
pub mod in_flight;
pub mod iterator;
pub mod many;
pub mod options;
pub mod snapshot;
mod status;
