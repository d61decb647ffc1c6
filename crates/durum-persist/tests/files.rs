//! File operations: what they do, what they count, and that injected failures reach the caller.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;

use durum_persist::beneath::{Directory, NotRegular};
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
    let reader = MediaFile::open(dir.path(), "b", false).unwrap();
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
        MediaFile::open(dir.path(), "b", false).unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn only_regular_files_beneath_the_directory_are_opened() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    std::fs::create_dir_all(at("sub")).unwrap();
    std::fs::write(at("file"), "x").unwrap();
    std::fs::write(at("sub/file"), "x").unwrap();
    std::os::unix::fs::symlink(at("file"), at("link")).unwrap();
    std::os::unix::fs::symlink(at("sub"), at("way")).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
    drop(socket);
    let made = std::process::Command::new("mkfifo")
        .arg(at("pipe"))
        .status();
    assert!(made.unwrap().success());
    MediaFile::open(dir.path(), "file", true).unwrap();
    MediaFile::open(dir.path(), "sub/file", false).unwrap();
    let refused = [
        ("link", "link", "a symbolic link"),
        ("way/file", "way", "a symbolic link"),
        ("file/file", "file", "a regular file"),
        ("sub", "sub", "a directory"),
        ("socket", "socket", "a socket"),
        ("pipe", "pipe", "a pipe"),
    ];
    for writable in [false, true] {
        for (name, path, found) in refused {
            let error = MediaFile::open(dir.path(), name, writable).unwrap_err();
            let refusal = NotRegular::of(&error).unwrap_or_else(|| panic!("{name}: {error}"));
            assert_eq!((&refusal.path, refusal.found), (&at(path), found));
        }
        for name in ["", "..", "../x", "/etc/passwd"] {
            let error = MediaFile::open(dir.path(), name, writable).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}: {error}");
        }
    }
    let sub = Directory::find(dir.path(), "sub").unwrap();
    let file = MediaFile::open_in(&sub, "file", false).unwrap();
    assert_eq!(file.path(), at("sub/file"));
    for name in ["", "..", "../file", "/etc/passwd"] {
        assert!(MediaFile::open_in(&sub, name, false).is_err(), "{name}");
    }
    for name in ["way", "file", "pipe"] {
        let error = Directory::find(dir.path(), name).unwrap_err();
        assert!(NotRegular::of(&error).is_some(), "{name}: {error}");
    }
}

/// On tmpfs, where large pages are, and elsewhere, where none are.
#[test]
fn large_allocations_are_zero_and_have_all_their_space() {
    const LEN: u64 = (9 << 20) + 5000;
    for dir in [tempfile::tempdir_in("/dev/shm"), tempfile::tempdir()] {
        let dir = dir.unwrap();
        let path = dir.path().join("a");
        let file = MediaFile::create_new(&path).unwrap();
        file.write_all_at(b"kept", 100).unwrap();
        file.allocate_large(LEN, SITE).unwrap();
        let metadata = std::fs::metadata(&path).unwrap();
        assert_eq!(metadata.len(), LEN);
        assert!(metadata.blocks() * 512 >= LEN, "{}", metadata.blocks());
        let mut bytes = vec![1; LEN as usize];
        file.read_exact_at(&mut bytes, 0).unwrap();
        assert_eq!(&bytes[100..104], b"kept");
        bytes[100..104].fill(0);
        assert!(bytes.iter().all(|byte| *byte == 0));
        file.allocate_large(100, SITE).unwrap();
        assert_eq!(file.len().unwrap(), LEN, "allocation never shortens");
    }
}

#[test]
fn a_large_allocation_that_does_not_fit_changes_nothing() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = dir.path().join("a");
    let file = MediaFile::create_new(&path).unwrap();
    file.allocate_large(3 << 20, SITE).unwrap();
    let before = std::fs::metadata(&path).unwrap();
    // More than the file system has, and more than a file may have.
    for len in [1 << 50, u64::MAX >> 1, u64::MAX] {
        file.allocate_large(len, SITE).unwrap_err();
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!(
            (after.len(), after.blocks()),
            (before.len(), before.blocks())
        );
    }
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
    full(file.allocate_large(5 << 20, SITE));
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
