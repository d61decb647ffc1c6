//! What transactions cost, counted.

use std::ffi::c_int;

use client::thread_counters;
use durum_persist::domain::{Delays, emulate};

use crate::guard::{Failure, status};

/// Counts of one thread, which only grow: take the difference of two.
#[derive(Debug)]
#[repr(C)]
pub struct Stats {
    /// Fences on mapped memory.
    pub fences: u64,
    /// Cache lines written back.
    pub write_backs: u64,
    /// Cache lines stored past the cache.
    pub streamed_lines: u64,
    /// Syncs of files and directories.
    pub syncs: u64,
    /// Bytes of log entries.
    pub bytes_logged: u64,
    /// Bytes that were written to become durable.
    pub bytes_written: u64,
    /// Transactions that changed something and committed.
    pub commits: u64,
    /// Transactions that changed something and were rolled back.
    pub aborts: u64,
}

/// Tells what this thread has done so far, in all stores. A leader's counts have the updates that it ran for other
/// threads.
///
/// DURUM_E_ARGUMENT.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn durum_thread_stats(stats: *mut Stats) -> c_int {
    status(|| {
        // SAFETY: NULL, or writable, as the conventions say.
        let Some(place) = (unsafe { stats.as_mut() }) else {
            return Err(Failure::argument("the place for the counts is NULL"));
        };
        *place = Stats::of(thread_counters());
        Ok(())
    })
}

/// Lets each line that is written back, each fence and each sync take so many nanoseconds more, for all threads of the
/// process: as on slower media, to see what a program takes there. Zeros end it.
///
/// None.
#[unsafe(no_mangle)]
pub extern "C" fn durum_emulate_delays(write_back_ns: u64, fence_ns: u64, sync_ns: u64) {
    let delays = Delays {
        write_back_ns,
        fence_ns,
        sync_ns,
    };
    emulate(Some(delays).filter(|_| write_back_ns | fence_ns | sync_ns != 0));
}

impl Stats {
    pub(crate) fn of(counted: client::Stats) -> Self {
        Self {
            fences: counted.fences,
            write_backs: counted.write_backs,
            streamed_lines: counted.streamed_lines,
            syncs: counted.syncs,
            bytes_logged: counted.bytes_logged,
            bytes_written: counted.bytes_written,
            commits: counted.commits,
            aborts: counted.aborts,
        }
    }
}
