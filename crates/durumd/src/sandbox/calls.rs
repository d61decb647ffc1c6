//! Which system calls the service makes: a list that seccomp holds it to.
//!
//! The program is made by `seccompiler`, which needs no library of C. It is put in place here, because the kernel is to
//! log what it refuses.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch,
};

/// A system call: its name, and its number here.
type Call = (&'static str, i64);

macro_rules! calls {
    ($($name:ident)*) => { [$((stringify!($name), libc::$name)),*] };
}

const FILES: &[Call] = &calls![
    SYS_read SYS_readv SYS_pread64 SYS_preadv SYS_write SYS_writev SYS_pwrite64 SYS_pwritev SYS_lseek SYS_openat SYS_close
    SYS_fstat SYS_newfstatat SYS_statx SYS_statfs SYS_fstatfs SYS_faccessat SYS_faccessat2 SYS_readlinkat SYS_getdents64
    SYS_getcwd SYS_fcntl SYS_flock SYS_dup SYS_dup3 SYS_ftruncate SYS_fallocate SYS_fadvise64 SYS_copy_file_range
    SYS_sendfile SYS_mkdirat SYS_unlinkat SYS_renameat SYS_renameat2 SYS_linkat SYS_fchmod SYS_fchmodat SYS_fsync SYS_fdatasync
    SYS_sync_file_range SYS_msync
];

const MEMORY: &[Call] = &calls![SYS_memfd_create SYS_munmap SYS_mremap SYS_madvise SYS_brk];

const THREADS: &[Call] = &calls![
    SYS_clone SYS_clone3 SYS_set_robust_list SYS_rseq SYS_set_tid_address SYS_exit SYS_exit_group SYS_futex SYS_membarrier
    SYS_sched_yield SYS_sched_getaffinity SYS_sigaltstack SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn
    SYS_restart_syscall SYS_clock_gettime SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday
];

const SOCKETS: &[Call] = &calls![
    SYS_bind SYS_listen SYS_accept4 SYS_connect SYS_sendmsg SYS_sendto SYS_recvmsg SYS_recvfrom SYS_shutdown SYS_setsockopt SYS_getsockopt
    SYS_getsockname SYS_getpeername SYS_ppoll SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_eventfd2 SYS_pidfd_open SYS_pipe2
];

const OTHERS: &[Call] = &calls![
    SYS_getpid SYS_gettid SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getrandom SYS_prlimit64 SYS_uname
];

/// Older forms, which the C library and `rustix` take where there are any.
#[cfg(target_arch = "x86_64")]
const OLDER: &[Call] = &calls![
    SYS_open SYS_stat SYS_lstat SYS_mkdir SYS_rmdir SYS_unlink SYS_rename SYS_link SYS_readlink SYS_access SYS_chmod SYS_dup2 SYS_poll SYS_epoll_wait
    SYS_getrlimit SYS_arch_prctl
];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[Call] = &[];

/// Calls that are allowed where an argument, counted from 0, is one of these values in these bits.
const LIMITED: &[(Call, u8, u64, &[u64])] = &[
    // Nothing that was data is ever executed.
    (
        ("SYS_mmap", libc::SYS_mmap),
        2,
        libc::PROT_EXEC as u64,
        &[0],
    ),
    (
        ("SYS_mprotect", libc::SYS_mprotect),
        2,
        libc::PROT_EXEC as u64,
        &[0],
    ),
    (
        ("SYS_socket", libc::SYS_socket),
        0,
        u64::MAX,
        &[libc::AF_UNIX as u64],
    ),
    (
        ("SYS_socketpair", libc::SYS_socketpair),
        0,
        u64::MAX,
        &[libc::AF_UNIX as u64],
    ),
    (
        ("SYS_prctl", libc::SYS_prctl),
        0,
        u64::MAX,
        &[libc::PR_SET_NAME as u64],
    ),
    (
        ("SYS_ioctl", libc::SYS_ioctl),
        1,
        u32::MAX as u64,
        // The last one tells whether a client has taken what was sent.
        &[libc::FIONBIO, libc::FICLONE, libc::TIOCOUTQ],
    ),
    // Ends itself after a panic in a panic, and nobody else.
    (
        ("SYS_tgkill", libc::SYS_tgkill),
        2,
        u32::MAX as u64,
        &[libc::SIGABRT as u64],
    ),
];

fn unlimited() -> impl Iterator<Item = Call> {
    let all = [FILES, MEMORY, THREADS, SOCKETS, OTHERS, OLDER];
    all.into_iter().flatten().copied()
}

/// The names of all calls that are made at all.
pub(crate) fn names() -> Vec<&'static str> {
    let limited = LIMITED.iter().map(|(call, ..)| *call);
    let names = unlimited().chain(limited);
    names
        .map(|(name, _)| name.trim_start_matches("SYS_"))
        .collect()
}

/// From here on all other calls are refused. How many there are.
pub(super) fn narrow() -> Result<usize, String> {
    let program = program().map_err(|error| error.to_string())?;
    apply(&program).map_err(|error| error.to_string())?;
    Ok(names().len())
}

fn program() -> Result<BpfProgram, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = unlimited()
        .map(|(_, number)| (number, Vec::new()))
        .collect();
    for ((_, number), argument, bits, values) in LIMITED {
        let mut any = Vec::new();
        for value in *values {
            let is = SeccompCmpOp::MaskedEq(*bits);
            let condition = SeccompCondition::new(*argument, SeccompCmpArgLen::Qword, is, *value)?;
            any.push(SeccompRule::new(vec![condition])?);
        }
        rules.insert(*number, any);
    }
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let here = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, refused, SeccompAction::Allow, here)?.try_into()
}

fn apply(program: &BpfProgram) -> io::Result<()> {
    // Without it the kernel takes a program from root alone.
    rustix::thread::set_no_new_privs(true)?;
    let length = program.len().try_into().map_err(io::Error::other)?;
    let program = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast_mut().cast(),
    };
    // SAFETY: the program is as long as it says, and the kernel copies it; `seccompiler` lays its instructions out as
    // the kernel's header does.
    let refused = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            libc::SECCOMP_FILTER_FLAG_LOG,
            &raw const program,
        )
    };
    match refused {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_in_one_list() {
        let names = names();
        let mut sorted = names.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), names.len());
        assert!(!names.contains(&"execve") && !names.contains(&"ptrace"));
    }

    #[test]
    fn there_is_a_program_for_this_machine() {
        assert!(program().unwrap().len() > names().len());
    }
}
