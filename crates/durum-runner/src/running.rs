//! Code that runs, and how it ends.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::bounds::Bounds;
use crate::child::{ABOVE, Prepared, Step};
use crate::code::Code;
use crate::limits::Limits;

/// The most bytes that are kept of what the code says.
const TOLD_MAX: usize = 4096;

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
    /// By a signal: it has faulted, or has taken more processor time than it may.
    Signalled {
        /// The signal.
        signal: i32,
        /// What it has said.
        told: String,
    },
    /// It took longer than it may, and was killed.
    OverTime(Duration),
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
                    let text = "it was killed: it took more processor time than it may, or the system had no memory left";
                    write!(f, "{text}{}", words(told))
                }
                signal => write!(f, "it ended by signal {signal}{}", words(told)),
            },
            Ended::OverTime(time) => write!(f, "it did not end within {time:?}"),
        }
    }
}

/// Code that runs. Dropping it kills the code.
///
/// The code ends with the thread that has started it, too.
#[derive(Debug)]
pub struct Running {
    /// Absent once its end was seen.
    process: Option<OwnedFd>,
    told: File,
    until: Instant,
    time: Duration,
}

impl Running {
    /// Starts code, which has its end of `socket` as descriptor 3. Who waits for any child of this process finds it,
    /// and its end is a signal (`SIGCHLD`), as of all that execute something: nobody else may wait for it.
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
            files: files.as_fd(),
            limits: &of_process,
            bounds,
        };
        let until = Instant::now() + limits.time;
        let process = fork(&prepared)?;
        let running = Running {
            process: Some(process),
            told: File::from(told),
            until,
            time: limits.time,
        };
        // Only the child has them from here on: their end says that it has executed the code, or has ended.
        drop((tells, says, its_socket));
        let mut failed = [0; 5];
        match File::from(status).read_exact(&mut failed) {
            Ok(()) => Err(Step::failed(failed)),
            // It was closed: the code is there.
            Err(_) => Ok(running),
        }
    }

    /// Waits for the end of the code.
    ///
    /// # Errors
    /// Of the system; the code is killed.
    pub fn wait(mut self) -> io::Result<Ended> {
        let Some(process) = &self.process else {
            return Err(io::Error::other("its end was seen before"));
        };
        let mut told = Vec::new();
        let mut is_telling = true;
        loop {
            let left = self.until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Ended::OverTime(self.time));
            }
            let mut events = vec![PollFd::new(process, PollFlags::IN)];
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
            let (has_ended, has_told) = (has(events.first()), has(events.get(1)));
            drop(events);
            if has_told {
                is_telling = hear(&mut self.told, &mut told)?;
            } else if has_ended {
                break;
            }
        }
        let told = String::from_utf8_lossy(&told).into_owned();
        self.reap(told)
    }

    fn reap(&mut self, told: String) -> io::Result<Ended> {
        let Some(process) = self.process.take() else {
            return Err(io::Error::other("its end was seen before"));
        };
        let end = wait_for(&process)?;
        Ok(match end {
            (libc::CLD_EXITED, 0) => Ended::Done,
            (libc::CLD_EXITED, code) => Ended::Failed { code, told },
            (_, signal) => Ended::Signalled { signal, told },
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(process) = self.process.take() {
            let _ = rustix::process::pidfd_send_signal(&process, rustix::process::Signal::KILL);
            let _ = wait_for(&process);
        }
    }
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

/// How a process ended: the kind of its end, and its code or signal.
fn wait_for(process: &OwnedFd) -> io::Result<(i32, i32)> {
    loop {
        // SAFETY: a row of numbers.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the process is a child of ours. If it executed nothing it has no signal.
        let waited = unsafe {
            let number = process.as_raw_fd() as libc::id_t;
            libc::waitid(
                libc::P_PIDFD,
                number,
                &raw mut info,
                libc::WEXITED | libc::__WALL,
            )
        };
        if waited == 0 {
            // SAFETY: it is there after a wait.
            return Ok((info.si_code, unsafe { info.si_status() }));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// A child that is told of by a descriptor. It sends no signal at its end, if that is before the code is executed.
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
        0 => unsafe { prepared.become_code() },
        // SAFETY: the kernel has just made it.
        _ => Ok(unsafe { OwnedFd::from_raw_fd(process) }),
    }
}
