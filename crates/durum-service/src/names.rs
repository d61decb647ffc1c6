//! Names and numbers that the service draws or checks.

use std::path::Path;

use durum_format::Uuid;
use rustix::process::{Resource, Rlimit};

use crate::error::{Error, Result};

/// Descriptors kept free for the rest of the program when a pool is opened.
const DESCRIPTORS_SPARE: u64 = 64;

/// The longest name of a pool, in bytes.
const POOL_NAME_BYTES_MAX: usize = 255;

/// A name that nothing else has.
///
/// # Errors
/// `Io` where no random numbers are to be had.
pub fn random_uuid() -> Result<Uuid> {
    let mut bytes = [0; 16];
    random(&mut bytes)?;
    Ok(Uuid::from_random(bytes))
}

/// 64 random bits.
pub(crate) fn random_u64() -> Result<u64> {
    let mut bytes = [0; 8];
    random(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn random(bytes: &mut [u8]) -> Result<()> {
    durum_persist::random::fill(bytes)
        .map_err(|error| Error::io("drawing random numbers", Path::new("/dev/urandom"), error))
}

/// Refuses names that a person could not type or tell apart in a list.
pub(crate) fn check_pool_name(name: &str) -> Result<()> {
    let refuse = |reason| {
        Err(Error::PoolName {
            name: name.to_owned(),
            reason,
        })
    };
    if name.is_empty() {
        return refuse("the name is empty");
    }
    if name.len() > POOL_NAME_BYTES_MAX {
        return refuse("the name has more than 255 bytes");
    }
    if name.chars().any(char::is_control) {
        return refuse("the name has control characters");
    }
    if name.contains('/') {
        return refuse("the name has a '/'");
    }
    if name.trim() != name {
        return refuse("the name begins or ends with white space");
    }
    Ok(())
}

/// Opens `count` files; where the process may have no more open ones, after there is room for them. To make sure of
/// that before takes as long as there are many: in a service with a thousand clients longer than the request.
pub(crate) fn with_descriptors<T>(
    store: &Path,
    count: usize,
    open: impl Fn() -> Result<T>,
) -> Result<T> {
    match open() {
        Err(error) if is_out_of_descriptors(&error) => {
            ensure_descriptors(store, count)?;
            open()
        }
        opened => opened,
    }
}

fn is_out_of_descriptors(error: &Error) -> bool {
    let limit = Some(rustix::io::Errno::MFILE.raw_os_error());
    matches!(error, Error::Io { source, .. } if source.raw_os_error() == limit)
}

/// Makes room for `count` more open files.
///
/// Raises this process's soft limit where it must: the usual 1,024 is kept low for the sake of programs that use
/// `select`, and the hard limit is what is meant. And has the kernel enlarge the table of descriptors at once: by
/// itself it doubles the table again and again, and a process with threads waits for all its readers each time
/// (measured: opening 1,000 puddles took 33 ms without this and 23 with it, 10 of them processor time).
pub(crate) fn ensure_descriptors(store: &Path, count: usize) -> Result<()> {
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    let wanted = open + count as u64 + DESCRIPTORS_SPARE;
    let limit = rustix::process::getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| wanted > current) {
        raise_limit(store, wanted, limit.maximum)?;
    }
    if count as u64 > DESCRIPTORS_SPARE
        && let Ok(lowest) = i32::try_from(wanted - 1)
        && let Ok(file) = std::fs::File::open(store)
    {
        // Only for its effect on the table. Where it fails, opening the files is slower, or says why.
        let _ = rustix::io::fcntl_dupfd_cloexec(&file, lowest);
    }
    Ok(())
}

fn raise_limit(store: &Path, wanted: u64, maximum: Option<u64>) -> Result<()> {
    // Room for growth, so that this is not asked for each pool.
    let raised = wanted.saturating_mul(2);
    let raised = maximum.map_or(raised, |most| raised.min(most));
    if raised < wanted {
        return Err(Error::io(
            "opening the puddles of a pool (raise the limit of open files: `ulimit -n`)",
            store,
            rustix::io::Errno::MFILE.into(),
        ));
    }
    let limit = Rlimit {
        current: Some(raised),
        maximum,
    };
    rustix::process::setrlimit(Resource::Nofile, limit)
        .map_err(|errno| Error::io("raising the limit of open files", store, errno.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_be_typed_are_refused() {
        for good in ["a", "word counts", "Wörter 2024", &"x".repeat(255)] {
            check_pool_name(good).unwrap();
        }
        for bad in ["", " a", "a ", "a\nb", "a/b", "\u{7f}", &"x".repeat(256)] {
            assert!(check_pool_name(bad).is_err(), "{bad:?}");
        }
    }
}
