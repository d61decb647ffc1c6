//! Kills a service at one of its own steps: before a system call that changes a file or answers a client.

use std::collections::HashSet;
use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};

/// Follows a service by ptrace, and kills it before the step of a number.
pub struct Killer {
    pub aim: Arc<Aim>,
    /// Ends with the service.
    pub follows: JoinHandle<()>,
}

pub struct Aim(Mutex<State>);

struct State {
    /// Counted from 1; none when nothing is to be killed.
    number: Option<u64>,
    begun: u64,
    was_killed: bool,
}

impl Killer {
    /// Follows the process from now on.
    pub fn before_step(number: u64, pid: u32) -> Killer {
        let aim = Arc::new(Aim(Mutex::new(State {
            number: Some(number),
            begun: 0,
            was_killed: false,
        })));
        let (ready, is_ready) = mpsc::channel();
        let (pid, aims) = (pid as i32, aim.clone());
        // What follows a process is a thread: no other one may ask for it.
        let follows = thread::spawn(move || {
            // One that is not followed yet may begin others meanwhile.
            let mut followed = HashSet::new();
            while let Some(thread) = threads_of(pid).difference(&followed).next().copied() {
                seize(thread);
                followed.insert(thread);
            }
            ready.send(()).unwrap();
            follow(pid, &aims)
        });
        is_ready.recv().unwrap();
        Killer { aim, follows }
    }
}

impl Aim {
    /// A thread of the service begins or ends a system call.
    fn look_at(&self, thread: i32, pid: i32) {
        if !is_step(thread) {
            return;
        }
        let mut state = self.0.lock().unwrap();
        state.begun += 1;
        if state.number == Some(state.begun) {
            state.was_killed = true;
            // SAFETY: the process is a child of the test, and not waited for.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
    }

    /// Kills nothing from now on. Tells how many steps were begun, if the service was not killed.
    pub fn disarm(&self) -> Option<u64> {
        let mut state = self.0.lock().unwrap();
        state.number = None;
        (!state.was_killed).then_some(state.begun)
    }
}

fn threads_of(pid: i32) -> HashSet<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    tasks
        .map(|task| task.unwrap().file_name().to_str().unwrap().parse().unwrap())
        .collect()
}

fn seize(thread: i32) {
    let options = libc::PTRACE_O_TRACESYSGOOD | libc::PTRACE_O_TRACECLONE;
    // SAFETY: both requests read no memory of this process.
    unsafe {
        let seized = libc::ptrace(libc::PTRACE_SEIZE, thread, 0, options);
        let error = io::Error::last_os_error();
        // It has ended since the threads were listed, or is followed, as one is that another one has begun.
        if seized < 0 && matches!(error.raw_os_error(), Some(libc::ESRCH | libc::EPERM)) {
            return;
        }
        assert_eq!(seized, 0, "ptrace: {error}");
        libc::ptrace(libc::PTRACE_INTERRUPT, thread, 0, 0);
    }
}

fn follow(pid: i32, aim: &Aim) {
    loop {
        let mut status = 0;
        // Only what this thread follows: children of the test are waited for elsewhere.
        // SAFETY: the status is valid for the call.
        let thread = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD) };
        if thread < 0 {
            return;
        }
        if !libc::WIFSTOPPED(status) {
            continue;
        }
        let mut signal = 0;
        match (libc::WSTOPSIG(status), status >> 16) {
            (stop, 0) if stop == libc::SIGTRAP | 0x80 => aim.look_at(thread, pid),
            (stop, 0) => signal = stop,
            _ => {}
        }
        // SAFETY: the request reads no memory of this process. It fails where the thread was killed.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, thread, 0, signal) };
    }
}

/// Whether the thread is about to change a file, or to send something.
fn is_step(thread: i32) -> bool {
    // SAFETY: all zeros is a value of it.
    let mut info: libc::ptrace_syscall_info = unsafe { std::mem::zeroed() };
    let length = size_of_val(&info);
    // SAFETY: the kernel writes at most so many bytes there.
    let written =
        unsafe { libc::ptrace(libc::PTRACE_GET_SYSCALL_INFO, thread, length, &raw mut info) };
    if written <= 0 || info.op != libc::PTRACE_SYSCALL_INFO_ENTRY {
        return false;
    }
    // SAFETY: at an entry this is the field that was written.
    let entry = unsafe { info.u.entry };
    match entry.nr as i64 {
        libc::SYS_openat => entry.args[2] & libc::O_CREAT as u64 != 0,
        libc::SYS_openat2 => true,
        libc::SYS_pwrite64
        | libc::SYS_write
        | libc::SYS_fdatasync
        | libc::SYS_fsync
        | libc::SYS_ftruncate
        | libc::SYS_fallocate
        | libc::SYS_renameat2
        | libc::SYS_renameat
        | libc::SYS_linkat
        | libc::SYS_unlinkat
        | libc::SYS_mkdirat
        | libc::SYS_sendmsg => true,
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename | libc::SYS_unlink | libc::SYS_mkdir | libc::SYS_link => true,
        _ => false,
    }
}
