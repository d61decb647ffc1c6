//! Until when a thread waits.

use std::time::Duration;

use libc::{clockid_t, timespec};

/// A moment on a clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    clock: clockid_t,
    at: Duration,
}

impl Deadline {
    /// `None` for what is no moment, or on no clock that threads can wait on.
    pub(crate) fn new(clock: clockid_t, at: timespec) -> Option<Self> {
        let is_clock = matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC);
        let nanoseconds = u32::try_from(at.tv_nsec).ok()?;
        // A moment before 1970 has passed.
        let seconds = u64::try_from(at.tv_sec).unwrap_or(0);
        let at = Duration::new(seconds, nanoseconds);
        (is_clock && nanoseconds < 1_000_000_000).then_some(Self { clock, at })
    }

    /// What is left until then; `None` if it has passed.
    pub(crate) fn left(&self) -> Option<Duration> {
        let mut now = timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: a place on the stack, and a clock that there is.
        unsafe { libc::clock_gettime(self.clock, &raw mut now) };
        let now = Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
        self.at.checked_sub(now).filter(|left| !left.is_zero())
    }
}
