//! What the code may do: bounds that it cannot leave, as far as this kernel has them all.

use std::fmt;
use std::os::fd::OwnedFd;

use landlock::{
    ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, Scope,
};
use seccompiler::BpfProgram;

use crate::calls;

/// The newest rights of files and networks that are taken away; of these a kernel takes what it knows.
const KNOWN: ABI = ABI::V6;

/// Why code cannot be kept in bounds here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// The kernel has not what it takes.
    OfKernel(String),
    /// The real and the effective user or group of this process differ.
    TwoUsers,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, why) = match self {
            Missing::OfKernel(why) => ("kernel", why.as_str()),
            Missing::TwoUsers => ("process", "its real and its effective user or group differ"),
        };
        let text = "cannot keep a stranger's code in bounds";
        write!(f, "this {who} {text}: {why}; run the program itself")
    }
}

impl std::error::Error for Missing {}

fn has_two_users() -> bool {
    use rustix::process::{getegid, geteuid, getgid, getuid};
    getuid() != geteuid() || getgid() != getegid()
}

/// What code is kept in: no file that has a name can be opened or executed, no port reached, nobody signalled
/// (Landlock); and the system calls are those of a list (seccomp).
#[derive(Debug)]
pub struct Bounds {
    pub(crate) files: OwnedFd,
    /// In the order in which they are put in place.
    pub(crate) calls: [BpfProgram; 2],
}

impl Bounds {
    /// Those of this kernel.
    ///
    /// # Errors
    /// [`Missing`]: one of the two is not there. Nothing is run without both, nor by a process with two users.
    pub fn of_this_kernel() -> Result<Bounds, Missing> {
        // Code would get the real user at its execution, and not be killed any more with who has started it.
        if has_two_users() {
            return Err(Missing::TwoUsers);
        }
        let files = no_files().map_err(|error| Missing::OfKernel(error.to_string()))?;
        let missing = |what: &str| Missing::OfKernel(format!("it has no {what}"));
        let files = files.ok_or_else(|| missing("Landlock"))?;
        if !has_seccomp() {
            return Err(missing("seccomp"));
        }
        let program = |made: Result<BpfProgram, seccompiler::BackendError>| {
            made.map_err(|error| Missing::OfKernel(error.to_string()))
        };
        Ok(Bounds {
            files,
            calls: [
                program(calls::without_clone3())?,
                program(calls::program())?,
            ],
        })
    }
}

/// Rules of Landlock that allow nothing; `None` where there is no Landlock.
fn no_files() -> Result<Option<OwnedFd>, landlock::RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)?
        .create()?;
    Ok(rules.into())
}

fn has_seccomp() -> bool {
    let action = libc::SECCOMP_RET_ERRNO;
    // SAFETY: asks only, with a number that lives meanwhile.
    let answer = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            &raw const action,
        )
    };
    answer == 0
}
