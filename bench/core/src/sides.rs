//! The contestants.

pub mod arena;
pub mod durum;
pub mod lines;
pub mod plain;
#[cfg(feature = "peers")]
pub mod pmdk;

use crate::error::{Error, Result};
use crate::side::Side;

/// Every side, the peer first.
pub fn all() -> Vec<Box<dyn Side>> {
    vec![
        #[cfg(feature = "peers")]
        Box::new(pmdk::Pmdk),
        Box::new(durum::Durum::hybrid()),
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

/// Refuses a run in which the peer would not execute the same instructions as we do.
///
/// libpmemobj takes the best instruction that the processor has, as durum does; on tmpfs only when told that the
/// file is persistent memory, and environment variables can take instructions from it.
pub fn check_peers() -> Result<()> {
    if peer_version().is_none() {
        return Ok(());
    }
    if std::env::var("PMEM_IS_PMEM_FORCE").as_deref() != Ok("1") {
        let text = "libpmemobj would msync instead of writing lines back: set PMEM_IS_PMEM_FORCE=1, as bench/run.sh does";
        return Err(Error::Unfair(text.to_owned()));
    }
    for name in [
        "PMEM_NO_FLUSH",
        "PMEM_NO_CLWB",
        "PMEM_NO_CLFLUSHOPT",
        "PMEM_NO_MOVNT",
    ] {
        if std::env::var_os(name).is_some() {
            return Err(Error::Unfair(format!(
                "libpmemobj would flush differently from durum: unset {name}"
            )));
        }
    }
    Ok(())
}
