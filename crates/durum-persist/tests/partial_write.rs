//! A write that fails half-way. The one test of this file: it puts a limit on its whole process.

use std::io::ErrorKind;

use durum_persist::file::MediaFile;
use durum_persist::record::{Recorder, RecorderOptions};

#[test]
fn a_partial_write_is_recorded_as_far_as_it_went() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let recorder = Recorder::start(dir.path(), RecorderOptions::default());
    let file = MediaFile::create_new(&dir.path().join("data")).unwrap();
    // A limit on file sizes is the one full disk that a test can have everywhere.
    let limit = |bytes| {
        let limits = libc::rlimit {
            rlim_cur: bytes,
            rlim_max: libc::RLIM_INFINITY,
        };
        // SAFETY: changes a limit of this process, which has nothing else to do.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limits) }, 0);
    };
    // SAFETY: without this the signal would end the process.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
    limit(6000);
    let result = file.write_all_at(&[1; 8192], 0);
    // The test's own output may go to a file that is longer.
    limit(libc::RLIM_INFINITY);
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::FileTooLarge);
    assert_eq!(file.len().unwrap(), 6000);
    let trace = recorder.stop();
    assert_eq!(trace.bypassed(), [""; 0]);
    assert_eq!(
        trace.events().len(),
        2,
        "creation, and the part that was written"
    );
}
