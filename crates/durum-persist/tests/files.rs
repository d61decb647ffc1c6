//! File operations: what they do, what they count, and that injected failures reach the caller.

use std::io::ErrorKind;

use durum_persist::file::{self, MediaFile};
use durum_persist::inject::{self, Operation};
use durum_persist::{Site, count};

const SITE: Site = Site("test");

#[test]
fn files_are_created_written_read_and_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a");
    let before = count::thread_counters();
    let file = MediaFile::create_new(&path).unwrap();
    assert_eq!(
        MediaFile::create_new(&path).unwrap_err().kind(),
        ErrorKind::AlreadyExists
    );
    file.allocate(10_000, SITE).unwrap();
    assert_eq!(file.len().unwrap(), 10_000);
    file.allocate(100, SITE).unwrap();
    assert_eq!(file.len().unwrap(), 10_000, "allocation never shortens");
    file.write_all_at(b"hello", 9_998).unwrap();
    assert_eq!(file.len().unwrap(), 10_003);
    file.sync(SITE).unwrap();
    file::sync_dir(dir.path(), SITE).unwrap();
    let cost = count::thread_counters() - before;
    assert_eq!(
        (cost.syncs, cost.file_writes, cost.bytes_written),
        (2, 1, 5)
    );

    let other = dir.path().join("b");
    file::rename(&path, &other, SITE).unwrap();
    let reader = MediaFile::open(&other, false).unwrap();
    let mut bytes = [0; 6];
    reader.read_exact_at(&mut bytes, 9_997).unwrap();
    assert_eq!(&bytes, b"\0hello");
    assert_eq!(
        reader.read_exact_at(&mut bytes, 9_998).unwrap_err().kind(),
        ErrorKind::UnexpectedEof
    );
    assert!(
        reader.write_all_at(b"x", 0).is_err(),
        "opened for reading only"
    );
    file.set_len(9_998).unwrap();
    assert_eq!(reader.len().unwrap(), 9_998);
    assert_eq!(
        (reader.path(), file.path()),
        (other.as_path(), path.as_path())
    );

    file::create_dir(&dir.path().join("d"), SITE).unwrap();
    file::remove(&dir.path().join("d"), SITE).unwrap();
    file::remove(&other, SITE).unwrap();
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    assert_eq!(
        MediaFile::open(&other, false).unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn clones_share_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = MediaFile::create_new(&dir.path().join("a")).unwrap();
    let clone = file.clone();
    std::thread::spawn(move || clone.write_all_at(b"1", 0).unwrap())
        .join()
        .unwrap();
    assert_eq!(file.len().unwrap(), 1);
}

#[test]
fn injected_failures_come_after_the_given_successes_and_end_with_the_guard() {
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = MediaFile::create_new(&dir.path().join("a")).unwrap();
    let other = MediaFile::create_new(&elsewhere.path().join("a")).unwrap();
    let fault = inject::fail_after(Operation::Sync, 2, dir.path());
    file.sync(SITE).unwrap();
    file::sync_dir(dir.path(), SITE).unwrap();
    for _ in 0..3 {
        assert_eq!(file.sync(SITE).unwrap_err().raw_os_error(), Some(libc::EIO));
        assert!(file::sync_dir(dir.path(), SITE).is_err());
        other.sync(SITE).unwrap();
    }
    drop(fault);
    file.sync(SITE).unwrap();
}

#[test]
fn a_full_disk_can_be_injected_at_every_growth() {
    let dir = tempfile::tempdir().unwrap();
    let file = MediaFile::create_new(&dir.path().join("a")).unwrap();
    file.set_len(100).unwrap();
    let _fault = inject::fail_after(Operation::Grow, 0, dir.path());
    let full = |result: std::io::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::StorageFull)
    };
    full(file.allocate(1000, SITE));
    full(file.set_len(101));
    full(file.write_all_at(&[1; 2], 99));
    full(MediaFile::create_new(&dir.path().join("b")).map(drop));
    full(file::create_dir(&dir.path().join("d"), SITE));
    assert_eq!(file.len().unwrap(), 100);
    file.write_all_at(&[1; 2], 98).unwrap();
    file.set_len(50).unwrap();
    file::remove(&dir.path().join("a"), SITE).unwrap();
}

#[test]
fn a_failed_write_changes_nothing_when_injected() {
    let dir = tempfile::tempdir().unwrap();
    let file = MediaFile::create_new(&dir.path().join("a")).unwrap();
    let _fault = inject::fail_after(Operation::Write, 0, dir.path());
    assert_eq!(
        file.write_all_at(b"x", 0).unwrap_err().raw_os_error(),
        Some(libc::EIO)
    );
    assert_eq!(file.len().unwrap(), 0);
}
