//! How much code may take.

use std::time::Duration;

/// What the code may take.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Processor time of all its threads, in whole seconds.
    pub processor: Duration,
    /// From its start to its end.
    pub time: Duration,
    /// Bytes of memory of its own, stacks included. Files that it has mapped do not count.
    pub memory: u64,
    /// Descriptors that it has open at a time.
    pub files: u64,
    /// Bytes of files that are made for it: to keep to that is for whoever makes them.
    pub space: u64,
}

impl Default for Limits {
    /// Ten seconds of processor time, a minute in all, 256 MiB, 4,096 files, and 1 GiB of new ones.
    fn default() -> Limits {
        Limits {
            processor: Duration::from_secs(10),
            time: Duration::from_secs(60),
            memory: 256 << 20,
            files: 4096,
            space: 1 << 30,
        }
    }
}

/// A limit of the system for a process: which, and how much.
pub(crate) type Limit = (libc::__rlimit_resource_t, libc::rlimit);

impl Limits {
    /// As the system knows them. Soft and hard limits are the same, so that no handler of the code's comes in between.
    pub(crate) fn of_process(&self) -> Vec<Limit> {
        let seconds = self.processor.as_secs().max(1);
        let all = [
            (libc::RLIMIT_CPU, seconds),
            // Not the addresses: a store reserves terabytes of these.
            (libc::RLIMIT_DATA, self.memory),
            (libc::RLIMIT_STACK, self.memory.min(8 << 20)),
            (libc::RLIMIT_NOFILE, self.files),
            // What it has in memory is somebody's data.
            (libc::RLIMIT_CORE, 0),
            // It writes to mappings. A file of the store becomes no longer by it.
            (libc::RLIMIT_FSIZE, 0),
            (libc::RLIMIT_MEMLOCK, 0),
            (libc::RLIMIT_MSGQUEUE, 0),
            (libc::RLIMIT_NICE, 0),
            (libc::RLIMIT_RTPRIO, 0),
        ];
        let limit = |(resource, value): (libc::__rlimit_resource_t, u64)| {
            let limit = libc::rlimit {
                rlim_cur: value,
                rlim_max: value,
            };
            (resource, limit)
        };
        all.map(limit).to_vec()
    }
}
