//! How an access to a puddle that is not mapped yet is noticed (docs/internals/on-demand.md).

use super::trap;
use crate::demand::{Follow, PuddleMapping, resolver};
use crate::userfaultfd::Accesses;

/// How the puddles of a store come to be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// All at once.
    Eager,
    /// The kernel tells of accesses.
    Userfaultfd,
    /// A SIGSEGV handler does.
    Signal,
}

impl Way {
    /// What accesses to pools do that are not open. To notice them takes the handler of SIGSEGV, in whichever way
    /// puddles are mapped: nobody knows ahead where a pool is that another program may still make.
    pub(crate) fn follow(self, wanted: Option<Follow>) -> Follow {
        let wanted = wanted.unwrap_or(match self {
            Self::Eager => Follow::Never,
            Self::Userfaultfd | Self::Signal => Follow::Writing,
        });
        match wanted {
            Follow::Never => Follow::Never,
            _ if resolver().is_ok() && trap::stay_installed() => wanted,
            _ => {
                tracing::warn!(
                    "pointers to pools that are not open are not followed: another handler of SIGSEGV has the place of \
                     durum's, or there is no thread to open them"
                );
                Follow::Never
            }
        }
    }

    /// The way that is wanted; one that the process cannot have makes room for the next. Says which, and why.
    pub(crate) fn choose(wanted: Option<PuddleMapping>) -> Self {
        use PuddleMapping::{Eager, Signal};
        let wanted = (wanted.or_else(PuddleMapping::of_environment)).unwrap_or_default();
        if wanted == Eager {
            return Self::Eager;
        }
        let resolver = match resolver() {
            Ok(resolver) => resolver,
            Err(error) => {
                tracing::warn!(%error, "puddles are mapped when pools are opened: there is no thread to do it later");
                return Self::Eager;
            }
        };
        if wanted != Signal {
            match resolver.accesses() {
                Ok(Accesses::ProgramAndKernel) => {
                    tracing::info!(
                        "puddles are mapped on demand by userfaultfd, also for system calls"
                    );
                    return Self::Userfaultfd;
                }
                Ok(Accesses::Program) => {
                    tracing::info!(
                        "puddles are mapped on demand by userfaultfd, not for system calls: that takes CAP_SYS_PTRACE"
                    );
                    return Self::Userfaultfd;
                }
                Err(error) => tracing::info!(%error, "there is no userfaultfd"),
            }
        }
        match trap::stay_installed() {
            true => {
                tracing::info!(
                    "puddles are mapped on demand by a handler of SIGSEGV, not for system calls"
                );
                Self::Signal
            }
            false => {
                tracing::warn!(
                    "puddles are mapped when pools are opened: another handler has the place of durum's"
                );
                Self::Eager
            }
        }
    }
}
