//! The process that runs code which programs have deposited: this service starts none itself, once it has given up what
//! starts processes. It is another unit of systemd's, with a user of its own, or this executable once more.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use durum_remote::socket::Socket;
use durum_runner::{Apart, Runner, keeper};

use crate::options::Options;

/// The only argument of the service's executable as a runner: its standard input is the connection.
pub(crate) const ARGUMENT: &str = "run-code";

/// The runner that the options ask for; or why there is none, for whoever wants a pool that waits for code. To be
/// called before the service narrows itself.
pub(crate) fn of(options: &Options) -> Result<Box<dyn Runner>, String> {
    if options.no_code {
        return Err("the service runs no code: it was started with --no-code".to_owned());
    }
    let runner = match &options.runner {
        Some(socket) => at(socket),
        None => start(),
    };
    match runner {
        Ok(runner) => Ok(Box::new(runner)),
        Err(error) => {
            tracing::warn!(%error, "sections that are interrupted wait for their programs: no code is run");
            Err(format!("the service runs no code: {error}"))
        }
    }
}

fn at(socket: &Path) -> io::Result<Apart> {
    let socket = Socket::connect(socket)?;
    Apart::over(socket.descriptor()?.try_clone_to_owned()?)
}

fn start() -> io::Result<Apart> {
    let (ours, its) = Socket::pair()?;
    let its: OwnedFd = its.descriptor()?.try_clone_to_owned()?;
    Command::new("/proc/self/exe")
        .arg(ARGUMENT)
        .env_clear()
        .stdin(its)
        .stdout(Stdio::null())
        // A signal from a terminal is the service's: that lets code end which is nearly through.
        .process_group(0)
        .spawn()?;
    Apart::over(ours.descriptor()?.try_clone_to_owned()?)
}

/// Is the runner, until the service ends.
pub(crate) fn be() -> ExitCode {
    let connection = io::stdin().as_fd().try_clone_to_owned();
    match connection.and_then(keeper::keep) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("durumd {ARGUMENT}: {error}");
            ExitCode::FAILURE
        }
    }
}
