//! Processes of clients, by descriptors that stay theirs.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Whether a process has ended.
pub(super) fn has_ended(process: &OwnedFd) -> bool {
    ends_within(process, Duration::ZERO)
}

/// Whether a process has ended, or does within this time.
pub(super) fn ends_within(process: &OwnedFd, time: Duration) -> bool {
    let mut process = [PollFd::new(process, PollFlags::IN)];
    let limit = Timespec::try_from(time).unwrap_or_default();
    poll(&mut process, Some(&limit)).is_ok_and(|ended| ended > 0)
}

/// The process that has this number now.
///
/// # Errors
/// Of the system; where it is in another pid namespace.
pub(super) fn open_process(pid: u32) -> io::Result<OwnedFd> {
    let number = i32::try_from(pid).ok().and_then(Pid::from_raw);
    let number = number.ok_or_else(|| {
        io::Error::other(
            "it is in another pid namespace; run the service where it sees its clients",
        )
    })?;
    Ok(pidfd_open(number, PidfdFlags::empty())?)
}
