//! A runner that is killed, by somebody or by a system without memory, is followed by another one: what it ran can be
//! started again, without a service that has given up all that starts processes.
//!
//! ```text
//! keeper   greets | makes a runner, and waits for its end | it was killed: makes another one
//! runner   has the same connection: what nobody has read yet is the next one's
//!          the connection is closed: it ends by itself, and so does the keeper
//! ```

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::Duration;

use crate::apart::{answer, greet};
use crate::runner::Here;

/// Before the next one: nobody is helped by many in a row.
const PAUSE: Duration = Duration::from_millis(100);

/// As [`serve`](crate::apart::serve), by a child of this process, which has another one whenever that is killed. To be
/// called by a process that has one thread, does nothing else, and ends then.
///
/// # Errors
/// Of the connection.
pub fn keep(connection: OwnedFd) -> io::Result<()> {
    let Some(runner) = greet(connection.as_fd())? else {
        return Ok(());
    };
    // Else nobody tells how the runner has ended, where who has started this process ignores its own children.
    // SAFETY: no handler of this process's is for that.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
    loop {
        // SAFETY: no other thread of this process holds anything that the child would wait for.
        match unsafe { libc::fork() } {
            0 => be_runner(&connection, runner),
            // It may be that code which runs has taken all processes that there are.
            -1 => {}
            child => match wait_for(child)? {
                Some(0) => return Ok(()),
                Some(_) => return Err(io::Error::other("the runner has failed")),
                None => {}
            },
        }
        thread::sleep(PAUSE);
    }
}

fn be_runner(connection: &OwnedFd, runner: Here) -> ! {
    let code = match answer(connection.as_fd(), runner) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("a runner of code: {error}");
            1
        }
    };
    std::process::exit(code)
}

/// With which code a child has ended; `None` where it was killed.
fn wait_for(child: libc::pid_t) -> io::Result<Option<i32>> {
    let mut status = 0;
    loop {
        // SAFETY: the status lives meanwhile.
        if unsafe { libc::waitpid(child, &raw mut status, 0) } == child {
            return Ok(libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
