//! Which system calls the code makes: a list that seccomp holds it to. It has what a client with threads needs that is
//! given its descriptors, and no more.

use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition,
    SeccompFilter, SeccompRule, TargetArch,
};

/// The descriptor of the code while it is executed. It is closed then.
pub(crate) const CODE: i32 = 4;

macro_rules! calls {
    ($($name:ident)*) => { &[$(libc::$name),*] };
}

/// Files that it has: it opens none, and makes none longer or shorter.
const FILES: &[i64] = calls![
    SYS_read SYS_readv SYS_pread64 SYS_write SYS_writev SYS_close SYS_fstat SYS_fstatfs SYS_dup SYS_fsync SYS_fdatasync
    SYS_msync SYS_lseek
];

const MEMORY: &[i64] = calls![SYS_munmap SYS_mremap SYS_madvise SYS_brk];

const THREADS: &[i64] = calls![
    SYS_set_robust_list SYS_rseq SYS_set_tid_address SYS_exit SYS_exit_group SYS_futex SYS_membarrier SYS_sched_yield
    SYS_sched_getaffinity SYS_sigaltstack SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigreturn SYS_restart_syscall
    SYS_clock_gettime SYS_clock_nanosleep SYS_nanosleep SYS_gettimeofday
    SYS_clone3
];

/// The socket that it was given, and those that come by it.
const SOCKETS: &[i64] = calls![
    SYS_sendmsg SYS_sendto SYS_recvmsg SYS_recvfrom SYS_shutdown SYS_setsockopt SYS_getsockopt SYS_ppoll
];

const OTHERS: &[i64] = calls![
    SYS_getpid SYS_gettid SYS_getuid SYS_geteuid SYS_getgid SYS_getegid SYS_getrandom SYS_uname
];

/// Older forms, which the C library takes where there are any.
#[cfg(target_arch = "x86_64")]
const OLDER: &[i64] = calls![SYS_arch_prctl SYS_dup2 SYS_poll];
#[cfg(not(target_arch = "x86_64"))]
const OLDER: &[i64] = &[];

/// An argument, counted from 0, has this value in these bits.
type Is = (u8, u64, u64);

const EXEC: u64 = libc::PROT_EXEC as u64;
const SHARED: u64 = libc::MAP_SHARED as u64;
const ANONYMOUS: u64 = libc::MAP_ANONYMOUS as u64;
const GROWS: u64 = libc::MAP_GROWSDOWN as u64;
const THREAD: u64 = libc::CLONE_THREAD as u64 | libc::CLONE_VM as u64;
const ALL: u64 = u64::MAX;
const INT: u64 = u32::MAX as u64;

const FCNTL: &[&[Is]] = &[
    &[(1, INT, libc::F_DUPFD as u64)],
    &[(1, INT, libc::F_DUPFD_CLOEXEC as u64)],
    &[(1, INT, libc::F_GETFD as u64)],
    &[(1, INT, libc::F_SETFD as u64)],
    &[(1, INT, libc::F_GETFL as u64)],
    &[(1, INT, libc::F_GETLK as u64)],
    &[(1, INT, libc::F_SETLK as u64)],
];

/// Calls that are allowed where all of one of these rows hold.
const LIMITED: &[(i64, &[&[Is]])] = &[
    // Nothing that was data is ever executed. Memory without a file is its own alone, and no stack that grows by
    // itself: no limit counts the others.
    (
        libc::SYS_mmap,
        &[
            &[(2, EXEC, 0), (3, ANONYMOUS, 0)],
            &[(2, EXEC, 0), (3, ANONYMOUS | SHARED | GROWS, ANONYMOUS)],
        ],
    ),
    (libc::SYS_mprotect, &[&[(2, EXEC, 0)]]),
    // Threads, no processes. `clone3` is missing by another list: what that wants, none can see.
    (libc::SYS_clone, &[&[(0, THREAD, THREAD)]]),
    (libc::SYS_prctl, &[&[(0, INT, libc::PR_SET_NAME as u64)]]),
    // Locks, and what a descriptor is; not whom the system signals when it is ready.
    (libc::SYS_fcntl, FCNTL),
    (libc::SYS_ioctl, &[&[(1, INT, libc::FIONBIO)]]),
    // It asks for its limits, and changes none.
    (libc::SYS_prlimit64, &[&[(0, ALL, 0), (2, ALL, 0)]]),
    // The code itself, once: its descriptor is closed then. No file that has a name can be executed (Landlock).
    (
        libc::SYS_execveat,
        &[&[(0, INT, CODE as u64), (4, INT, libc::AT_EMPTY_PATH as u64)]],
    ),
];

/// The list as the kernel takes it. A call that is not in it is an error.
pub(crate) fn program() -> Result<BpfProgram, BackendError> {
    let unlimited = [FILES, MEMORY, THREADS, SOCKETS, OTHERS, OLDER];
    let unlimited = unlimited.into_iter().flatten();
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> =
        unlimited.map(|number| (*number, Vec::new())).collect();
    for (number, rows) in LIMITED {
        let rows = rows.iter().map(|row| SeccompRule::new(conditions(row)?));
        rules.insert(*number, rows.collect::<Result<_, _>>()?);
    }
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let here = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, refused, SeccompAction::Allow, here)?.try_into()
}

/// Another one: `clone3` is missing, as in an older kernel, so that the C library takes `clone`, whose flags can be
/// seen. Of two lists the one that refuses counts.
pub(crate) fn without_clone3() -> Result<BpfProgram, BackendError> {
    let rules = BTreeMap::from([(libc::SYS_clone3, Vec::new())]);
    let missing = SeccompAction::Errno(libc::ENOSYS as u32);
    let here = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, missing, here)?.try_into()
}

fn conditions(row: &[Is]) -> Result<Vec<SeccompCondition>, BackendError> {
    let condition = |(argument, bits, value): &Is| {
        let is = SeccompCmpOp::MaskedEq(*bits);
        SeccompCondition::new(*argument, SeccompCmpArgLen::Qword, is, *value)
    };
    row.iter().map(condition).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_in_one_list() {
        let unlimited = [FILES, MEMORY, THREADS, SOCKETS, OTHERS, OLDER];
        let limited = LIMITED.iter().map(|(number, _)| *number);
        let mut all: Vec<i64> = unlimited.into_iter().flatten().copied().collect();
        all.extend(limited);
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        for never in [
            libc::SYS_execve,
            libc::SYS_ptrace,
            libc::SYS_kill,
            libc::SYS_tgkill,
            libc::SYS_openat,
            libc::SYS_connect,
            libc::SYS_socket,
            libc::SYS_memfd_create,
        ] {
            assert!(!all.contains(&never));
        }
    }

    #[test]
    fn there_are_programs_for_this_machine() {
        assert!(program().unwrap().len() > 50);
        assert!(without_clone3().unwrap().len() > 3);
    }
}
