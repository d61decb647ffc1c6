//! Benchmarks of durum, side by side with other libraries and with the physical limit.
//!
//! A *row* is one operation, e.g. `add_8`. A *side* is a contestant: a peer library, an engine of durum, a limit
//! (`flush1`: plain stores, each written line written back once, one fence per transaction, no atomicity; `overwrite`:
//! a bare write and a sync) and `volatile` (plain stores). Rows and the sides that compete in them make a *suite*.
//! Every side of a suite runs every row of it with the same inputs and must give the same answers.
//!
//! Read [`workload`] for the rows, [`suite`] for who competes in them, [`side`] for what a side implements, [`run`] for
//! how rounds go, [`report`] for what comes out; [`measure`] and [`syncs`] for what is counted; [`audit`] checks that
//! all sides flush alike; [`kernels`] runs suites whose sides are programs in C, [`nvlc`] that of NVL-C, [`locks`] that
//! of code that holds locks; [`service`] starts what sides of the suite `daemon` ask; [`sides`] are the contestants and
//! [`structures`] the data structures that the Rust sides share. `docs/internals/benchmarks.md` tells how to read the
//! results.

pub mod audit;
pub mod command;
pub mod error;
pub mod inputs;
pub mod kernels;
pub mod locks;
pub mod measure;
pub mod measured;
pub mod nvlc;
pub mod report;
pub mod run;
pub mod service;
pub mod side;
pub mod sides;
pub mod step;
pub mod structures;
pub mod suite;
pub mod syncs;
pub mod workload;
