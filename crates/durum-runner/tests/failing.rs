//! A child that fails tells only who has started it. Alone in its process: it takes a number of a descriptor.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

use durum_runner::{Bounds, Code, Hash, Limits, Running};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, TargetArch};

/// Where a child has the pipe by which it tells, when its descriptors are in their places.
const STATUS: i32 = 5;

/// Makes the first step of a child fail that this thread starts.
fn refuse_sessions() {
    let rules = BTreeMap::from([(libc::SYS_setsid, Vec::new())]);
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let here = TargetArch::try_from(std::env::consts::ARCH).unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refused, here).unwrap();
    let program = BpfProgram::try_from(filter).unwrap();
    seccompiler::apply_filter(&program).unwrap();
}

/// Until then a file of who has started it has that number.
#[test]
fn what_failed_is_written_to_no_other_file() {
    let file = tempfile::tempfile().unwrap();
    // SAFETY: nothing else is open in this process that is used later.
    assert_eq!(unsafe { libc::dup2(file.as_raw_fd(), STATUS) }, STATUS);
    let code = Code::copied(b"no executable", Hash::of(b"no executable")).unwrap();
    let bounds = Bounds::of_this_kernel().unwrap();
    let (_ours, its) = UnixStream::pair().unwrap();
    refuse_sessions();
    let error = Running::start(&code, OwnedFd::from(its), &bounds, &Limits::default());
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("a session of its own: "), "{error}");
    assert_eq!(file.metadata().unwrap().len(), 0);
}
