//! A process, told apart from a later one that gets its number.

use std::fmt;
use std::fs;
use std::io;
use std::str::FromStr;
use std::sync::OnceLock;

/// A process of this start of the system: its number, and when it was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    /// In clock ticks after the start of the system.
    started: u64,
    /// Which start of the system.
    boot: String,
}

impl Process {
    /// The process that has this number now.
    pub(crate) fn of(pid: u32) -> io::Result<Process> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        let started = started(&text).ok_or_else(|| {
            io::Error::other(format!(
                "process {pid} has ended, or /proc has another form"
            ))
        })?;
        let boot = boot()?.to_owned();
        Ok(Process { pid, started, boot })
    }

    pub(crate) fn lives(&self) -> bool {
        Process::of(self.pid).is_ok_and(|now| now == *self)
    }
}

/// When a process was started, by the line that /proc has of it; none for one of which only that line is left.
fn started(stat: &str) -> Option<u64> {
    // The program's name comes before, in parentheses, and may contain any byte.
    let (_, rest) = stat.rsplit_once(')')?;
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Counted from the third field of proc(5): state, number of threads, start.
    let [state, threads, started] = [words.first()?, words.get(17)?, words.get(19)?];
    let is_over = matches!(*state, "Z" | "X") && threads.parse::<u32>().ok()? <= 1;
    started.parse().ok().filter(|_| !is_over)
}

fn boot() -> io::Result<&'static str> {
    static BOOT: OnceLock<String> = OnceLock::new();
    if let Some(boot) = BOOT.get() {
        return Ok(boot);
    }
    let read = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(BOOT.get_or_init(|| read.trim().to_owned()))
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "pid {} started {} boot {}",
            self.pid, self.started, self.boot
        )
    }
}

impl FromStr for Process {
    type Err = ();

    fn from_str(text: &str) -> Result<Process, ()> {
        match *text.split_ascii_whitespace().collect::<Vec<_>>() {
            ["pid", pid, "started", started, "boot", boot] => Ok(Process {
                pid: pid.parse().map_err(|_| ())?,
                started: started.parse().map_err(|_| ())?,
                boot: boot.to_owned(),
            }),
            _ => Err(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lives_until_it_has_ended_also_while_nobody_has_waited_for_it() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let process = Process::of(child.id()).unwrap();
        assert!(process.lives());
        assert_eq!(process.to_string().parse(), Ok(process.clone()));
        child.kill().unwrap();
        let began = std::time::Instant::now();
        while process.lives() {
            assert!(began.elapsed().as_secs() < 20);
        }
        child.wait().unwrap();
        assert!(!process.lives());
    }

    #[test]
    fn a_later_process_of_the_same_number_is_another() {
        let this = Process::of(std::process::id()).unwrap();
        let earlier = Process {
            started: this.started - 1,
            ..this.clone()
        };
        let of_another_start = Process {
            boot: "another".to_owned(),
            ..this.clone()
        };
        assert!(this.lives() && !earlier.lives() && !of_another_start.lives());
    }

    #[test]
    fn what_is_no_process_is_none() {
        for text in [
            "",
            "pid 1",
            "pid x started 1 boot b",
            "pid 1 started 1 boot b more",
        ] {
            assert_eq!(text.parse::<Process>(), Err(()));
        }
        let line = "1 (a) b) c) S 0 1 1 0 -1 4194560 1 1 1 1 1 1 1 1 20 0 1 0 33 1 1";
        assert_eq!(started(line), Some(33));
        assert_eq!(started(&line.replace(" S ", " Z ")), None);
        assert_eq!(started("1 (a"), None);
        assert_eq!(started("1 (a) S 1"), None);
    }
}
