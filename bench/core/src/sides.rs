//! The contestants.

pub mod arena;
pub mod durum;
pub mod lines;
pub mod plain;
#[cfg(feature = "peers")]
pub mod pmdk;

use std::process::Command;

use crate::side::Side;

/// Every side, the peer first.
pub fn all() -> Vec<Box<dyn Side>> {
    vec![
        #[cfg(feature = "peers")]
        Box::new(pmdk::Pmdk),
        Box::new(durum::Durum::hybrid()),
        Box::new(durum::Durum::shadow()),
        Box::new(plain::Plain::<true>),
        Box::new(plain::Plain::<false>),
    ]
}

/// Name and version of the peer library.
pub fn peer_version() -> Option<String> {
    #[cfg(feature = "peers")]
    return Some(pmdk::version());
    #[cfg(not(feature = "peers"))]
    return None;
}

/// What would keep libpmemobj from writing lines back, or make it do so with other instructions than the best.
const UNFAIR_VARIABLES: [&str; 4] = [
    "PMEM_NO_FLUSH",
    "PMEM_NO_CLWB",
    "PMEM_NO_CLFLUSHOPT",
    "PMEM_NO_MOVNT",
];

/// Whether the peer executes the same instructions as we do in this environment.
///
/// libpmemobj takes the best instruction that the processor has, as durum does; but on tmpfs only when told that files there are
/// persistent memory (else it calls msync), and environment variables can take instructions from it. It reads them while it is loaded.
pub fn environment_is_fair() -> bool {
    std::env::var("PMEM_IS_PMEM_FORCE").as_deref() == Ok("1")
        && UNFAIR_VARIABLES
            .iter()
            .all(|name| std::env::var_os(name).is_none())
}

/// Gives the command an environment that is fair.
pub fn make_environment_fair(command: &mut Command) {
    command.env("PMEM_IS_PMEM_FORCE", "1");
    for name in UNFAIR_VARIABLES {
        command.env_remove(name);
    }
}
