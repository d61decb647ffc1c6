//! Crashes at every event of real transactions, recovered by the service and opened again by the client.
//!
//! Each test records one run of the client on a store (`durum_persist::record`), then draws the states in which a crash
//! at any moment may leave the directory (`durum_persist::simulate`), and lets each be recovered, checked and used.
//! Reading order: `harness` (how a run is recorded together with a model of it, and how an image is judged), then a
//! module for each subject.
//!
//! A failure names its image and the event before the crash. `DURUM_CRASH_KEEP=1` keeps the directory of the image,
//! which `durum inspect` and `durum check` read; `DURUM_CRASH_SEED=N` replaces the seed, which failures and reports
//! print.

// Every test follows raw pointers into pools that it has just opened; the harness says once why that holds.
#![allow(clippy::undocumented_unsafe_blocks)]
#![allow(
    dead_code,
    clippy::needless_update,
    clippy::field_reassign_with_default,
    clippy::result_large_err,
    clippy::match_overlapping_arm,
    reason = "workloads are written as tables, which stay alike when one of them names every field or a harness part waits for its next user"
)]

mod harness;
mod in_flight;
#[path = "../support/mod.rs"]
mod support;

mod allocator;
mod buffered;
mod canaries;
mod chaining;
mod checkpoints;
mod failing_disk;
mod fresh;
mod lanes;
mod life_cycle;
mod memory;
mod model;
mod pools;
mod raw_log;
mod recovery;
mod redo;
mod sections;
mod sectors;
mod suspects;
mod torn;
mod undo;
mod updates;
mod waiting;
mod wrap;
