//! Code that runs, and how it ends.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::bounds::Bounds;
use crate::child::{ABOVE, Prepared, Step};
use crate::code::Code;
use crate::limits::Limits;

/// The most bytes that are kept of what the code says.
const TOLD_MAX: usize = 4096;

/// The system counts what a limit is about by the ticks in which the code was running, also where others had the
/// processor for a part of each; what it tells in the end is exact, and may be less by so many times.
const TICKS_FACTOR: u32 = 2;

/// How often its threads are counted.
const COUNTED: Duration = Duration::from_millis(20);

/// How code ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ended {
    /// By itself, with code 0.
    Done,
    /// By itself, with another code, and with these last words.
    Failed {
        /// The code.
        code: i32,
        /// What it has said.
        told: String,
    },
    /// By a signal: it has faulted, mostly.
    Signalled {
        /// The signal.
        signal: i32,
        /// What it has said.
        told: String,
    },
    /// It took more processor time than it may, and was killed.
    OverProcessor(Duration),
    /// It took longer than it may, and was killed.
    OverTime(Duration),
    /// It had more threads than it may, and was killed.
    OverThreads(u64),
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |told: &str| match told.trim() {
            "" => String::new(),
            told => format!(": {told:?}"),
        };
        match self {
            Ended::Done => f.write_str("it has ended"),
            Ended::Failed { code, told } => write!(f, "it ended with code {code}{}", words(told)),
            Ended::Signalled { signal, told } => match *signal {
                libc::SIGKILL => {
                    let text =
                        "it was killed: somebody has done so, or the system had no memory left";
                    write!(f, "{text}{}", words(told))
                }
                signal => write!(f, "it ended by signal {signal}{}", words(told)),
            },
            Ended::OverProcessor(time) => {
                write!(f, "it took more than {time:?} of processor time")
            }
            Ended::OverTime(time) => write!(f, "it did not end within {time:?}"),
            Ended::OverThreads(threads) => write!(f, "it had more than {threads} threads"),
        }
    }
}

/// Code that runs. Dropping it kills the code.
///
/// The code ends with the thread that has started it, too.
#[derive(Debug)]
pub struct Running {
    /// The code. Absent once its end was seen.
    process: Option<OwnedFd>,
    /// Its number; another process may have it once this one has ended.
    number: Option<i32>,
    /// The process between: a child of this one, which nobody else finds.
    between: OwnedFd,
    ended: File,
    told: File,
    until: Instant,
    time: Duration,
    processor: Duration,
    threads: u64,
}

impl Running {
    /// Starts code, which has its end of `socket` as descriptor 3. Who waits for any child of this process finds none,
    /// and no signal tells of its end.
    ///
    /// # Errors
    /// Of the system, with the step that failed. Nothing runs then.
    pub fn start(
        code: &Code,
        socket: OwnedFd,
        bounds: &Bounds,
        limits: &Limits,
    ) -> io::Result<Running> {
        let above = |descriptor: &dyn AsFd| fcntl_dupfd_cloexec(descriptor.as_fd(), ABOVE);
        let nothing = above(&File::open("/dev/null")?)?;
        let ((told, tells), (status, says)) = (pipe()?, pipe()?);
        let (ended, tells_end) = pipe()?;
        let (code, files) = (above(code)?, above(&bounds.files)?);
        let its_socket = above(&socket)?;
        drop(socket);
        let of_process = limits.of_process();
        let prepared = Prepared {
            parent: std::process::id() as libc::pid_t,
            nothing: nothing.as_fd(),
            told: tells.as_fd(),
            socket: its_socket.as_fd(),
            code: code.as_fd(),
            status: says.as_fd(),
            ended: tells_end.as_fd(),
            files: files.as_fd(),
            limits: &of_process,
            bounds,
        };
        let until = Instant::now() + limits.time;
        let between = fork(&prepared)?;
        // Only the children have them from here on: their end says that one has executed the code, or has ended.
        drop((tells, says, tells_end, its_socket));
        let mut running = Running {
            process: None,
            number: None,
            between,
            ended: File::from(ended),
            told: File::from(told),
            until,
            time: limits.time,
            processor: limits.processor_seconds(),
            threads: limits.threads,
        };
        running.number = running.hear_number();
        running.process = running.number.and_then(open_process);
        let mut failed = [0; 5];
        match File::from(status).read_exact(&mut failed) {
            Ok(()) => Err(Step::failed(failed)),
            // It was closed: the code is there.
            Err(_) => running.ensure_counted(),
        }
    }

    /// Nothing runs whose threads cannot be counted.
    fn ensure_counted(self) -> io::Result<Running> {
        match (self.count_threads(), self.lives()) {
            (Err(error), true) => {
                let text = format!("its threads cannot be counted: {error}");
                Err(io::Error::new(error.kind(), text))
            }
            _ => Ok(self),
        }
    }

    /// The number of its process. Its end may have been seen since.
    pub fn id(&self) -> Option<i32> {
        self.number
    }

    /// The next number that the process between tells.
    fn hear_number(&mut self) -> Option<i32> {
        let mut number = [0; 4];
        self.ended.read_exact(&mut number).ok()?;
        Some(i32::from_ne_bytes(number))
    }

    /// Waits for the end of the code.
    ///
    /// # Errors
    /// Of the system; the code is killed.
    pub fn wait(mut self) -> io::Result<Ended> {
        // Absent where it has ended before it could be held: what it has said is there.
        let process = self.process.as_ref();
        let mut told = Vec::new();
        let mut is_telling = true;
        let mut counted = Instant::now();
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Ended::OverTime(self.time));
            }
            let left = process.map_or(Duration::ZERO, |_| left.min(COUNTED));
            let events = process.map(|process| PollFd::new(process, PollFlags::IN));
            let mut events: Vec<PollFd<'_>> = events.into_iter().collect();
            if is_telling {
                events.push(PollFd::new(&self.told, PollFlags::IN));
            }
            match poll(
                &mut events,
                Some(&left.try_into().map_err(io::Error::other)?),
            ) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let has =
                |event: Option<&PollFd<'_>>| event.is_some_and(|event| !event.revents().is_empty());
            let has_ended = process.is_none() || has(events.first());
            let has_told = is_telling && has(events.last());
            drop(events);
            if has_told {
                is_telling = hear(&mut self.told, &mut told)?;
            } else if has_ended {
                break;
            }
            // Not each time: the code says how often this thread is woken.
            if !has_ended && counted.elapsed() >= COUNTED {
                if self.has_too_many_threads() {
                    return Ok(Ended::OverThreads(self.threads));
                }
                counted = Instant::now();
            }
        }
        let told = String::from_utf8_lossy(&told).into_owned();
        self.reap(told)
    }

    /// Whether it has, as far as the system tells. Where its end comes in between, and another process has its number,
    /// that one's threads are of no account.
    fn has_too_many_threads(&self) -> bool {
        let has = self.count_threads().is_ok_and(|has| has > self.threads);
        has && self.lives()
    }

    fn count_threads(&self) -> io::Result<u64> {
        let number = self.number.unwrap_or_default();
        // The directory has a link for each thread, and two of its own.
        let tasks = std::fs::metadata(format!("/proc/{number}/task"))?;
        Ok(tasks.nlink().saturating_sub(2))
    }

    /// Whether it has not ended yet.
    fn lives(&self) -> bool {
        let Some(process) = &self.process else {
            return false;
        };
        let at_once = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&at_once)) == Ok(0)
    }

    fn reap(&mut self, told: String) -> io::Result<Ended> {
        self.process = None;
        let end = (self.hear_number(), self.hear_number());
        // In milliseconds.
        let took = self.hear_number().and_then(|took| took.try_into().ok());
        let took = Duration::from_millis(took.unwrap_or_default());
        wait_for(&self.between)?;
        Ok(match end {
            (Some(libc::CLD_EXITED), Some(0)) => Ended::Done,
            (Some(libc::CLD_EXITED), Some(code)) => Ended::Failed { code, told },
            (Some(_), Some(libc::SIGKILL)) if took * TICKS_FACTOR >= self.processor => {
                Ended::OverProcessor(self.processor)
            }
            (Some(_), Some(signal)) => Ended::Signalled { signal, told },
            // The process between was killed, and the code with it.
            _ => Ended::Signalled {
                signal: libc::SIGKILL,
                told,
            },
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            let _ = rustix::process::pidfd_send_signal(&process, rustix::process::Signal::KILL);
            // Whatever it has mapped, it writes no more.
            while let Err(Errno::INTR) = poll(&mut [PollFd::new(&process, PollFlags::IN)], None) {}
        }
        let _ = wait_for(&self.between);
    }
}

/// Holds a process that the process between has not waited for yet; `None` where it has.
fn open_process(number: i32) -> Option<OwnedFd> {
    let number = rustix::process::Pid::from_raw(number)?;
    rustix::process::pidfd_open(number, rustix::process::PidfdFlags::empty()).ok()
}

/// The ends of a pipe: to read, and to write, which is for the child.
fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (from, to) = pipe_with(PipeFlags::CLOEXEC)?;
    Ok((from, fcntl_dupfd_cloexec(&to, ABOVE)?))
}

/// Reads what there is, and keeps the first of it. False once nothing comes any more.
fn hear(from: &mut File, told: &mut Vec<u8>) -> io::Result<bool> {
    let mut part = [0; 512];
    let count = from.read(&mut part)?;
    told.extend(part.iter().take(count));
    told.truncate(TOLD_MAX);
    Ok(count > 0)
}

/// Waits for the end of the process between. Nothing happens where that was seen before.
fn wait_for(process: &OwnedFd) -> io::Result<()> {
    loop {
        // SAFETY: a row of numbers.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the process is a child of ours, without a signal at its end.
        let waited = unsafe {
            let number = process.as_raw_fd() as libc::id_t;
            libc::waitid(
                libc::P_PIDFD,
                number,
                &raw mut info,
                libc::WEXITED | libc::__WALL,
            )
        };
        let error = io::Error::last_os_error();
        match (waited, error.raw_os_error()) {
            (0, _) | (_, Some(libc::ECHILD)) => return Ok(()),
            (_, Some(libc::EINTR)) => {}
            _ => return Err(error),
        }
    }
}

/// A child that is told of by a descriptor, and by no signal at its end.
fn fork(prepared: &Prepared<'_>) -> io::Result<OwnedFd> {
    let mut process: libc::c_int = -1;
    // SAFETY: as `fork`, with the number of the descriptor written to a place that lives. The child makes system calls
    // only, from what was prepared. The first three arguments are the same on all our architectures.
    let child = unsafe {
        libc::syscall(
            libc::SYS_clone,
            libc::CLONE_PIDFD,
            0,
            &raw mut process,
            0,
            0,
        )
    };
    match child {
        -1 => Err(io::Error::last_os_error()),
        // SAFETY: this is the child.
        0 => unsafe { prepared.be_between() },
        // SAFETY: the kernel has just made it.
        _ => Ok(unsafe { OwnedFd::from_raw_fd(process) }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::process::Command;

    use super::*;
    use crate::code::Hash;

    /// As it happens to code that fails at once, where the system is busy.
    #[test]
    fn what_code_has_said_that_ended_before_it_was_held_is_heard() {
        let place = tempfile::tempdir().unwrap();
        let (source, program) = (place.path().join("code.c"), place.path().join("code"));
        let text = "#include <stdio.h>\nint main(void) { fputs(\"no\", stderr); return 3; }\n";
        std::fs::write(&source, text).unwrap();
        let compiled = Command::new("cc")
            .args(["-static", "-o"])
            .args([&program, &source])
            .status();
        assert!(compiled.unwrap().success());
        let bytes = std::fs::read(program).unwrap();
        let code = Code::copied(&bytes, Hash::of(&bytes)).unwrap();
        let bounds = Bounds::of_this_kernel().unwrap();
        let (_ours, its) = UnixStream::pair().unwrap();
        let running = Running::start(&code, its.into(), &bounds, &Limits::default());
        let mut running = running.unwrap();
        poll(&mut [PollFd::new(&running.between, PollFlags::IN)], None).unwrap();
        running.process = None;
        let told = "no".to_owned();
        assert_eq!(running.wait().unwrap(), Ended::Failed { code: 3, told });
    }
}
