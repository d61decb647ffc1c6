//! Persistence domains: what a write must reach to survive.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use rustix::fs::{Mode, OFlags, StatFs};
use rustix::mm::{MapFlags, ProtFlags};

pub use crate::delay::{Delays, emulate};
use crate::file::MediaFile;
use crate::large::TMPFS_MAGIC;

/// What makes a write durable in a directory, and against what.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub enum Domain {
    /// Persistent memory mapped without a page cache: durable after write-back and fence, survives power loss.
    Dax,
    /// Memory (tmpfs): write-backs and fences are executed, survives the end of the process only.
    Dram,
    /// An ordinary file system: durable after a sync, survives power loss.
    File,
    /// [`Dram`](Domain::Dram) with the delays of a slower medium.
    Emulated(Delays),
}

/// Finds the domain of a directory by mapping a temporary file there with MAP_SYNC, and by the kind of file system.
/// Never gives [`Domain::Emulated`]: that is a choice.
///
/// Where the caller may not create files, MAP_SYNC cannot be tried; the answer is then [`Domain::Dram`] or
/// [`Domain::File`].
///
/// # Errors
/// `NotFound` if the directory does not exist; otherwise as the system says.
pub fn detect(dir: &Path) -> io::Result<Domain> {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    if is_in_memory(&rustix::fs::statfs(dir)?) {
        return Ok(Domain::Dram);
    }
    let file = match temporary_file(dir) {
        Err(error) if matches!(error.kind(), PermissionDenied | ReadOnlyFilesystem) => {
            return Ok(Domain::File);
        }
        result => result?,
    };
    file.set_len(PAGE)?;
    let access = ProtFlags::READ | ProtFlags::WRITE;
    Ok(match maps_synchronously(&file, access) {
        true => Domain::Dax,
        false => Domain::File,
    })
}

fn is_in_memory(system: &StatFs) -> bool {
    let kind = system.f_type as u64;
    kind == TMPFS_MAGIC || kind == RAMFS_MAGIC
}

/// As [`detect`], for the directory that holds an open file, and without writing anything.
///
/// # Errors
/// As the system says.
pub fn of_file(file: &MediaFile) -> io::Result<Domain> {
    Ok(if is_in_memory(&rustix::fs::fstatfs(file)?) {
        Domain::Dram
    } else if maps_synchronously(file, ProtFlags::READ) {
        Domain::Dax
    } else {
        Domain::File
    })
}

/// Whether every persistent memory region of this machine has the processor caches in its persistence
/// domain (eADR), so that [`Instruction::None`](crate::line::Instruction::None) is right for [`Domain::Dax`].
/// False on machines without such regions. Says nothing about tmpfs, whose peers measure with write-backs.
pub fn caches_are_persistent() -> bool {
    persistence_domains(Path::new("/sys/bus/nd/devices"))
}

fn persistence_domains(devices: &Path) -> bool {
    let Ok(entries) = fs::read_dir(devices) else {
        return false;
    };
    let mut regions = 0;
    for entry in entries.flatten() {
        if !entry.file_name().to_string_lossy().starts_with("region") {
            continue;
        }
        regions += 1;
        match fs::read_to_string(entry.path().join("persistence_domain")) {
            Ok(text) if text.trim() == "cpu_cache" => {}
            _ => return false,
        }
    }
    regions > 0
}

const RAMFS_MAGIC: u64 = 0x8584_58f6;

const PAGE: u64 = 4096;

/// An open file without a name, or with one that is removed at once where the file system has no other way.
fn temporary_file(dir: &Path) -> io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    if let Ok(file) = rustix::fs::open(dir, flags, Mode::RUSR | Mode::WUSR) {
        return Ok(File::from(file));
    }
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!(
        ".durum-detect-{}-{}",
        std::process::id(),
        NEXT.fetch_add(1, Relaxed)
    );
    let path = dir.join(name);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

fn maps_synchronously(file: impl AsFd, access: ProtFlags) -> bool {
    let flags = MapFlags::SHARED_VALIDATE | MapFlags::SYNC;
    // SAFETY: a new mapping at an address of the kernel's choice; nobody touches its memory.
    let mapping =
        unsafe { rustix::mm::mmap(ptr::null_mut(), PAGE as usize, access, flags, file, 0) };
    let Ok(mapping) = mapping else { return false };
    // SAFETY: the mapping made above, which nobody else knows.
    // An error would leave one page mapped, harmless.
    let _ = unsafe { rustix::mm::munmap(mapping, PAGE as usize) };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_memory_is_dram_and_leaves_no_file_behind() {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        assert_eq!(detect(dir.path()).unwrap(), Domain::Dram);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let file = MediaFile::create_new(&dir.path().join("any")).unwrap();
        assert_eq!(of_file(&file).unwrap(), Domain::Dram);
        fs::remove_file(file.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_disk_is_file_and_leaves_no_file_behind() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let kind = rustix::fs::statfs(dir.path()).unwrap().f_type as u64;
        let expected = if kind == TMPFS_MAGIC {
            Domain::Dram
        } else {
            Domain::File
        };
        assert_eq!(detect(dir.path()).unwrap(), expected);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_missing_directory_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let error = detect(&dir.path().join("absent")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn caches_count_as_persistent_only_if_every_region_says_so() {
        let dir = tempfile::tempdir().unwrap();
        let region = |name: &str, text: &str| {
            fs::create_dir_all(dir.path().join(name)).unwrap();
            fs::write(dir.path().join(name).join("persistence_domain"), text).unwrap();
        };
        assert!(!persistence_domains(&dir.path().join("absent")));
        assert!(!persistence_domains(dir.path()), "no region");
        region("region0", "cpu_cache\n");
        region("nmem0", "unknown\n");
        assert!(persistence_domains(dir.path()));
        region("region1", "memory_controller\n");
        assert!(!persistence_domains(dir.path()));
    }
}
