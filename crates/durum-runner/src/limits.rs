//! How much code may take.

use std::str::FromStr;
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
    /// Threads that it has at a time. They are counted now and then, so there may be more for a moment.
    pub threads: u64,
    /// Bytes of files that are made for it: to keep to that is for whoever makes them.
    pub space: u64,
}

impl Default for Limits {
    /// Ten seconds of processor time, a minute in all, 256 MiB, 4,096 files, 1,024 threads, and 1 GiB of new files.
    fn default() -> Limits {
        Limits {
            processor: Duration::from_secs(10),
            time: Duration::from_secs(60),
            memory: 256 << 20,
            files: 4096,
            threads: 1024,
            space: 1 << 30,
        }
    }
}

/// A limit that somebody sets: `processor=SECONDS`, `time=SECONDS`, `memory=BYTES`, `files=N`, `threads=N` or
/// `space=BYTES`, where a number may end with K, M, G or T.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    name: &'static str,
    number: u64,
}

impl Setting {
    const NAMES: [&'static str; 6] = ["processor", "time", "memory", "files", "threads", "space"];

    /// The most seconds: a clock can be asked for what comes after them.
    const SECONDS_MAX: u64 = u32::MAX as u64;
}

impl FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Setting, String> {
        let found = text.split_once('=').and_then(|(name, number)| {
            let name = Setting::NAMES.into_iter().find(|known| *known == name)?;
            let most = match name {
                "processor" | "time" => Setting::SECONDS_MAX,
                _ => u64::MAX,
            };
            Some(Setting {
                name,
                number: number_of(number).filter(|number| (1..=most).contains(number))?,
            })
        });
        found.ok_or_else(|| format!("NAME=N, where NAME is one of {}", Setting::NAMES.join(", ")))
    }
}

/// A number as people write it: digits, and K, M, G or T.
pub fn number_of(text: &str) -> Option<u64> {
    let shift = match text.chars().last()? {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => 0,
    };
    let digits = text.get(..text.len() - usize::from(shift > 0))?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u64 = is_number.then(|| digits.parse().ok()).flatten()?;
    number.checked_mul(1 << shift)
}

/// A limit of the system for a process: which, and how much.
pub(crate) type Limit = (libc::__rlimit_resource_t, libc::rlimit);

impl Limits {
    /// The usual ones, but for those that are set. Of several settings of one the last counts.
    pub fn set(settings: &[Setting]) -> Limits {
        let mut limits = Limits::default();
        for Setting { name, number } in settings {
            match *name {
                "processor" => limits.processor = Duration::from_secs(*number),
                "time" => limits.time = Duration::from_secs(*number),
                "memory" => limits.memory = *number,
                "files" => limits.files = *number,
                "threads" => limits.threads = *number,
                _ => limits.space = *number,
            }
        }
        limits
    }

    /// The processor time as the system counts it.
    pub(crate) fn processor_seconds(&self) -> Duration {
        Duration::from_secs(self.processor.as_secs().max(1))
    }

    /// As the system knows them. Soft and hard limits are the same, so that no handler of the code's comes in between.
    pub(crate) fn of_process(&self) -> Vec<Limit> {
        let all = [
            (libc::RLIMIT_CPU, self.processor_seconds().as_secs()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_set_as_people_write_them() {
        let settings = [
            "time=90",
            "memory=1G",
            "space=3",
            "files=64K",
            "threads=9",
            "processor=2",
            "time=5",
        ];
        let settings = settings.map(|text| text.parse().unwrap());
        let limits = Limits::set(&settings);
        assert_eq!(limits.time, Duration::from_secs(5));
        assert_eq!(limits.processor, Duration::from_secs(2));
        assert_eq!(
            (limits.memory, limits.files, limits.threads, limits.space),
            (1 << 30, 64 << 10, 9, 3)
        );
        for text in [
            "",
            "time",
            "time=",
            "time=0",
            "time=M",
            "time=-1",
            "times=3",
            "time=99999999T",
            "time=16000000T",
            "processor=5G",
        ] {
            let error = text.parse::<Setting>().unwrap_err();
            assert!(error.contains("processor, time"), "{text}: {error}");
        }
    }
}
