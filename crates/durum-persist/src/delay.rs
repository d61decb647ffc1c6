//! Emulation of slower media by waiting.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::state;

/// Delays of an emulated medium, in nanoseconds, added to what the instructions cost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
pub struct Delays {
    /// Per line written back or streamed.
    pub write_back_ns: u64,
    /// Per fence.
    pub fence_ns: u64,
    /// Per sync of a file or directory.
    pub sync_ns: u64,
}

impl Delays {
    /// Spin-torque-transfer magnetic memory, as the literature emulates it.
    pub const STT_RAM: Delays = Delays {
        write_back_ns: 140,
        fence_ns: 200,
        sync_ns: 200,
    };
    /// Phase-change memory, as the literature emulates it.
    pub const PCM: Delays = Delays {
        write_back_ns: 340,
        fence_ns: 500,
        sync_ns: 500,
    };
}

/// Slows down every write-back, fence and sync of the process from now on; `None` ends it.
pub fn emulate(delays: Option<Delays>) {
    let values = delays.unwrap_or(Delays {
        write_back_ns: 0,
        fence_ns: 0,
        sync_ns: 0,
    });
    WRITE_BACK_NS.store(values.write_back_ns, Relaxed);
    FENCE_NS.store(values.fence_ns, Relaxed);
    SYNC_NS.store(values.sync_ns, Relaxed);
    state::set(state::DELAYED, delays.is_some());
}

pub(crate) fn write_back(lines: u64) {
    spin(WRITE_BACK_NS.load(Relaxed).saturating_mul(lines));
}

pub(crate) fn fence() {
    spin(FENCE_NS.load(Relaxed));
}

pub(crate) fn sync() {
    spin(SYNC_NS.load(Relaxed));
}

static WRITE_BACK_NS: AtomicU64 = AtomicU64::new(0);
static FENCE_NS: AtomicU64 = AtomicU64::new(0);
static SYNC_NS: AtomicU64 = AtomicU64::new(0);

/// Waits without giving up the processor, as an instruction would. Overshoots by up to one reading of the
/// clock, some 25 ns here.
fn spin(delay_ns: u64) {
    if delay_ns == 0 {
        return;
    }
    let delay = Duration::from_nanos(delay_ns);
    let start = Instant::now();
    while start.elapsed() < delay {
        spin_loop();
    }
}
