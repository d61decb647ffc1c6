//! What happens between the fork and the code's first instruction. The program that forks may have any number of
//! threads, of which the child has one: so it allocates nothing and takes no lock, and makes system calls only.
//!
//! There are two processes. The first is made without a signal at its end, so that the program notices no child, and
//! executes nothing, as that would give it the signal back. Its child becomes the code.

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, RawFd};
use std::ptr;

use crate::bounds::Bounds;
use crate::calls::CODE;
use crate::limits::Limit;

/// The code's end of the socket.
pub(crate) const SOCKET: RawFd = 3;
/// Tells what failed, and is closed when the code is executed.
const STATUS: RawFd = 5;
/// Descriptors of the parent are copied to here and above first, so that none is written over before it is used.
pub(crate) const ABOVE: RawFd = 16;

/// What a child does, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Step {
    Session = 1,
    Parent,
    Process,
    Descriptors,
    Limits,
    Privileges,
    Capabilities,
    Files,
    Calls,
    Execution,
}

impl Step {
    const ALL: [Step; 10] = [
        Step::Session,
        Step::Parent,
        Step::Process,
        Step::Descriptors,
        Step::Limits,
        Step::Privileges,
        Step::Capabilities,
        Step::Files,
        Step::Calls,
        Step::Execution,
    ];

    fn name(self) -> &'static str {
        match self {
            Step::Session => "a session of its own",
            Step::Parent => "to end with its parent",
            Step::Process => "a process",
            Step::Descriptors => "its descriptors",
            Step::Limits => "its limits",
            Step::Privileges => "no new privileges",
            Step::Capabilities => "no capabilities",
            Step::Files => "Landlock",
            Step::Calls => "seccomp",
            Step::Execution => "its execution",
        }
    }

    /// What a child has said that failed.
    pub(crate) fn failed(told: [u8; 5]) -> io::Error {
        let [step, number @ ..] = told;
        let step = Step::ALL.into_iter().find(|known| *known as u8 == step);
        let error = io::Error::from_raw_os_error(i32::from_ne_bytes(number));
        match step {
            Some(step) => io::Error::new(error.kind(), format!("{}: {error}", step.name())),
            None => error,
        }
    }
}

/// Everything that the child needs, made before the fork. All descriptors are at [`ABOVE`] or higher.
pub(crate) struct Prepared<'p> {
    pub(crate) parent: libc::pid_t,
    pub(crate) nothing: BorrowedFd<'p>,
    pub(crate) told: BorrowedFd<'p>,
    pub(crate) socket: BorrowedFd<'p>,
    pub(crate) code: BorrowedFd<'p>,
    pub(crate) status: BorrowedFd<'p>,
    /// Tells the code's number, and then how it has ended, and its processor time: four numbers of 4 bytes.
    pub(crate) ended: BorrowedFd<'p>,
    pub(crate) files: BorrowedFd<'p>,
    pub(crate) limits: &'p [Limit],
    pub(crate) bounds: &'p Bounds,
}

impl Prepared<'_> {
    /// Starts the code, tells its number, waits for its end, and tells how that was.
    ///
    /// # Safety
    /// In a child that was just forked, which nothing else runs in.
    pub(crate) unsafe fn be_between(&self) -> ! {
        // SAFETY: as the caller promises; system calls only.
        unsafe {
            if let Err(failed) = self.start_between() {
                self.fail(failed);
            }
            let between = libc::getpid();
            let code = libc::syscall(libc::SYS_clone, 0, 0, 0, 0, 0);
            if code == 0 {
                self.become_code(between);
            }
            if let Err(failed) = check(Step::Process, code) {
                self.fail(failed);
            }
            tell(self.ended, code as i32);
            // Nobody's files stay open because of this process.
            libc::dup3(self.ended.as_raw_fd(), 0, 0);
            libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let mut took: libc::rusage = std::mem::zeroed();
            let flags = libc::WEXITED | libc::__WALL;
            // The library's function does not tell what it took.
            while libc::syscall(
                libc::SYS_waitid,
                libc::P_PID,
                code,
                &raw mut info,
                flags,
                &raw mut took,
            ) != 0
            {
                // Nobody tells its end any more: this process has none to tell.
                if *libc::__errno_location() == libc::ECHILD {
                    libc::_exit(127);
                }
            }
            let ended = BorrowedFd::borrow_raw(0);
            tell(ended, info.si_code);
            tell(ended, info.si_status());
            tell(ended, millis(took.ru_utime) + millis(took.ru_stime));
            libc::_exit(0)
        }
    }

    /// # Safety
    /// As of [`Prepared::be_between`].
    unsafe fn start_between(&self) -> Result<(), (Step, i32)> {
        // SAFETY: of the process itself. Handlers of the program's never run here.
        let signals = unsafe {
            let mut all: libc::sigset_t = std::mem::zeroed();
            libc::sigfillset(&raw mut all);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const all, ptr::null_mut())
        };
        check(Step::Session, signals.into())?;
        // Where the program ignores its children, so would this process, and would not hear how the code has ended.
        // SAFETY: the same.
        let hears = unsafe { libc::signal(libc::SIGCHLD, libc::SIG_DFL) };
        if hears == libc::SIG_ERR {
            check(Step::Session, -1)?;
        }
        // SAFETY: a new process, which has no terminal and hears of no signal of its parent's from here on.
        unsafe { end_with(self.parent) }
    }

    /// Tells what failed, and ends this process.
    ///
    /// # Safety
    /// As of [`Prepared::be_between`].
    unsafe fn fail(&self, (step, number): (Step, i32)) -> ! {
        let [a, b, c, d] = number.to_ne_bytes();
        let message = [step as u8, a, b, c, d];
        // Where it was prepared, until all but those in their places are closed. Before, another file has that number.
        for descriptor in [self.status.as_raw_fd(), STATUS] {
            // SAFETY: the message is as long as it says.
            let written =
                unsafe { libc::write(descriptor, message.as_ptr().cast(), message.len()) };
            if written >= 0 {
                break;
            }
        }
        // SAFETY: ends this process only.
        unsafe { libc::_exit(127) }
    }

    /// Becomes the code, or tells why not.
    ///
    /// # Safety
    /// As of [`Prepared::be_between`], in the child of this process.
    unsafe fn become_code(&self, between: libc::pid_t) -> ! {
        // SAFETY: as the caller promises.
        unsafe {
            let Err(failed) = self.narrow(between);
            self.fail(failed)
        }
    }

    /// # Safety
    /// As of [`Prepared::become_code`].
    unsafe fn narrow(&self, between: libc::pid_t) -> Result<std::convert::Infallible, (Step, i32)> {
        // SAFETY: the same.
        unsafe { end_with(between) }?;
        // SAFETY: the signals' handlers are the parent's, and go with its memory; the mask would stay.
        let signals = unsafe {
            let mut none: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut none);
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, ptr::null_mut())
        };
        check(Step::Session, signals.into())?;
        for (from, to, flags) in [
            (self.nothing, 0, 0),
            (self.nothing, 1, 0),
            (self.told, 2, 0),
            (self.socket, SOCKET, 0),
            (self.code, CODE, libc::O_CLOEXEC),
            (self.status, STATUS, libc::O_CLOEXEC),
            (self.files, STATUS + 1, libc::O_CLOEXEC),
        ] {
            // SAFETY: nobody else uses descriptors of this process.
            let copied = unsafe { libc::dup3(from.as_raw_fd(), to, flags) };
            check(Step::Descriptors, copied.into())?;
        }
        // SAFETY: the same.
        let closed = unsafe { libc::syscall(libc::SYS_close_range, STATUS + 2, u32::MAX, 0) };
        check(Step::Descriptors, closed)?;
        // SAFETY: as the caller promises.
        unsafe { be_killed_first() };
        // SAFETY: the same.
        unsafe { run_as_others_do() };
        for (resource, limit) in self.limits {
            // SAFETY: of the process itself.
            let set = unsafe { libc::setrlimit(*resource, limit) };
            check(Step::Limits, set.into())?;
        }
        // SAFETY: of the process itself.
        let none = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) };
        check(Step::Privileges, none.into())?;
        // SAFETY: as the caller promises.
        unsafe { drop_capabilities() }?;
        // SAFETY: rules that were made before.
        let files = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, STATUS + 1, 0) };
        check(Step::Files, files)?;
        for program in &self.bounds.calls {
            let program = libc::sock_fprog {
                len: program.len() as u16,
                filter: program.as_ptr().cast_mut().cast(),
            };
            // SAFETY: the program is as long as it says, and the kernel copies it.
            let set = unsafe {
                libc::syscall(
                    libc::SYS_seccomp,
                    libc::SECCOMP_SET_MODE_FILTER,
                    0,
                    &raw const program,
                )
            };
            check(Step::Calls, set)?;
        }
        const NAME: &CStr = c"durum-code";
        let arguments = [NAME.as_ptr(), ptr::null()];
        // SAFETY: the arguments end with null, and so does the environment, which is empty.
        let executed = unsafe {
            libc::syscall(
                libc::SYS_execveat,
                CODE,
                c"".as_ptr(),
                arguments.as_ptr(),
                arguments[1..].as_ptr(),
                libc::AT_EMPTY_PATH,
            )
        };
        check(Step::Execution, executed)?;
        Err((Step::Execution, 0))
    }
}

/// A session of its own, and the end of this process with its parent.
///
/// # Safety
/// In a process that was just forked.
unsafe fn end_with(parent: libc::pid_t) -> Result<(), (Step, i32)> {
    // SAFETY: of the process itself.
    check(Step::Session, unsafe { libc::setsid() }.into())?;
    // SAFETY: the same.
    let with_parent = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
    check(Step::Parent, with_parent.into())?;
    // SAFETY: asks only.
    match unsafe { libc::getppid() } == parent {
        true => Ok(()),
        false => Err((Step::Parent, libc::ESRCH)),
    }
}

/// Where the system runs out of memory, it is to end a stranger's code before anything else. Where it cannot be asked
/// for that, the limits hold all the same.
///
/// # Safety
/// In a process that was just forked, before files are out of reach.
unsafe fn be_killed_first() {
    const MOST: &[u8] = b"1000";
    let flags = libc::O_WRONLY | libc::O_CLOEXEC;
    // SAFETY: names and bytes live, and the descriptor is nobody else's.
    unsafe {
        let file = libc::open(c"/proc/self/oom_score_adj".as_ptr(), flags);
        if file >= 0 {
            libc::write(file, MOST.as_ptr().cast(), MOST.len());
            libc::close(file);
        }
    }
}

/// A program that comes before others (real time, a priority above the usual one) hands that to nobody's code. One that
/// comes after others keeps its code there.
///
/// # Safety
/// In a process that was just forked.
unsafe fn run_as_others_do() {
    let usual = libc::sched_param { sched_priority: 0 };
    // SAFETY: of the process itself. Neither fails, as both give up what the process has.
    unsafe {
        if matches!(
            libc::sched_getscheduler(0),
            libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE
        ) {
            libc::sched_setscheduler(0, libc::SCHED_OTHER, &raw const usual);
        }
        if libc::getpriority(libc::PRIO_PROCESS, 0) < 0 {
            libc::setpriority(libc::PRIO_PROCESS, 0, 0);
        }
    }
}

/// The head of what the system says of capabilities, in its third version: two words for each set.
#[repr(C)]
struct CapabilityHead {
    version: u32,
    pid: i32,
}

const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// Gives up what root may do beside its files. The code gets none back when it is executed, as there are no new
/// privileges by then.
///
/// # Safety
/// In a process that was just forked.
unsafe fn drop_capabilities() -> Result<(), (Step, i32)> {
    let mut head = CapabilityHead {
        version: CAPABILITY_VERSION,
        pid: 0,
    };
    let (mut found, none) = ([[0u32; 3]; 2], [[0u32; 3]; 2]);
    // SAFETY: of the process itself, to a place that has room for both words of each set.
    let asked = unsafe { libc::syscall(libc::SYS_capget, &raw mut head, found.as_mut_ptr()) };
    check(Step::Capabilities, asked)?;
    // Who has none may be kept from giving them up, as the unit of systemd is.
    if found == none {
        return Ok(());
    }
    // SAFETY: of the process itself; the row is as long as this version has it.
    let given_up = unsafe { libc::syscall(libc::SYS_capset, &raw mut head, none.as_ptr()) };
    check(Step::Capabilities, given_up)
}

/// Whole milliseconds.
fn millis(time: libc::timeval) -> i32 {
    (time.tv_sec * 1000 + time.tv_usec / 1000) as i32
}

/// Writes a number. Who reads it may be gone; so is this process soon then.
fn tell(to: BorrowedFd<'_>, number: i32) {
    let bytes = number.to_ne_bytes();
    // SAFETY: as long as it says.
    let _ = unsafe { libc::write(to.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
}

fn check(step: Step, result: i64) -> Result<(), (Step, i32)> {
    match result {
        // SAFETY: the thread's own.
        -1 => Err((step, unsafe { *libc::__errno_location() })),
        _ => Ok(()),
    }
}
