//! A file mapped as persistent memory, and the states that crashes may leave.
#![allow(dead_code)] // Each test file uses its part.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

use durum_persist::file::{self, MediaFile};
use durum_persist::record::{self, Recorder, RecorderOptions, Trace};
use durum_persist::simulate::{Plan, Rules, explore};
use durum_persist::{Site, line};
use rustix::mm::{MapFlags, ProtFlags};

pub const SETUP: Site = Site("setup");
pub const DATA: Site = Site("data");
pub const FLAG: Site = Site("flag");

/// Bytes in a test's mapping.
pub const LEN: usize = 8192;

/// A shared mapping of a file; its words by index.
pub struct Mapped {
    pub file: MediaFile,
    addr: *mut u8,
}

// SAFETY: the memory is accessed through raw pointers by the functions of `line`, by word-sized atomic operations where
// threads meet.
unsafe impl Sync for Mapped {}

impl Mapped {
    pub fn open(path: &Path, watch: bool) -> Mapped {
        let (dir, name) = (path.parent().unwrap(), path.file_name().unwrap());
        Mapped::of(MediaFile::open(dir, name, true).unwrap(), watch)
    }

    pub fn of(file: MediaFile, watch: bool) -> Mapped {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let addr = unsafe {
            rustix::mm::mmap(std::ptr::null_mut(), LEN, flags, MapFlags::SHARED, &file, 0)
                .unwrap()
                .cast()
        };
        // SAFETY: mapped until `drop`, which says so; tests store to it by aligned words.
        unsafe { record::mapped(addr, LEN, &file, 0, watch) };
        Mapped { file, addr }
    }

    pub fn byte(&self, offset: usize) -> *mut u8 {
        assert!(offset <= LEN);
        self.addr.wrapping_add(offset)
    }

    pub fn word(&self, index: usize) -> *mut u64 {
        self.byte(index * 8).cast()
    }

    pub fn load(&self, index: usize) -> u64 {
        // SAFETY: a word of the mapping.
        unsafe { self.word(index).read_volatile() }
    }

    pub fn store(&self, index: usize, value: u64) {
        // SAFETY: a word of the mapping.
        unsafe { line::store_u64(self.word(index), value) }
    }

    /// As a program would, past the library.
    pub fn own_store(&self, index: usize, value: u64) {
        // SAFETY: a word of the mapping.
        unsafe { self.word(index).write_volatile(value) }
    }

    pub fn copy(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: inside the mapping.
        unsafe { line::copy(self.byte(offset), bytes.as_ptr(), bytes.len()) }
    }

    pub fn stream(&self, offset: usize, bytes: &[u8]) {
        // SAFETY: inside the mapping.
        unsafe { line::copy_streaming(self.byte(offset), bytes.as_ptr(), bytes.len(), DATA) }
    }

    pub fn write_back(&self, index: usize, site: Site) {
        // SAFETY: inside the mapping.
        unsafe { line::write_back(self.byte(index * 8), 8, site) }
    }

    pub fn persist(&self, index: usize, value: u64, site: Site) {
        self.store(index, value);
        self.write_back(index, site);
        line::fence(site);
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        record::unmapped(self.addr, LEN);
        // SAFETY: our own mapping, not used any more.
        unsafe { rustix::mm::munmap(self.addr.cast(), LEN).unwrap() };
    }
}

/// A directory with a durable file `data` of `LEN` zeros.
pub fn fresh_dir() -> tempfile::TempDir {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = MediaFile::create_new(&dir.path().join("data")).unwrap();
    file.allocate(LEN as u64, SETUP).unwrap();
    dir
}

/// Records what `protocol` does to a fresh directory.
pub fn record_in(protocol: impl FnOnce(&Path)) -> Trace {
    record_with(RecorderOptions::default(), protocol)
}

pub fn record_with(options: RecorderOptions, protocol: impl FnOnce(&Path)) -> Trace {
    let dir = fresh_dir();
    let recorder = Recorder::start(dir.path(), options);
    protocol(dir.path());
    recorder.stop()
}

/// Records what `protocol` does to a fresh mapping.
pub fn record_mapped(protocol: impl FnOnce(&Mapped)) -> Trace {
    record_in(|dir| protocol(&Mapped::open(&dir.join("data"), true)))
}

/// All states, as `look` sees them, in which a crash after the last event may leave the directory.
pub fn states_at_end<T: Ord>(
    trace: &Trace,
    rules: Rules,
    look: impl Fn(&Path) -> T,
) -> BTreeSet<T> {
    let states = Mutex::new(BTreeSet::new());
    // No crash points but the last event, which always is one; there, all combinations.
    let plan = Plan {
        points_max: Some(0),
        exhaustive_max: 4096,
        ..Plan::new(rules, 1)
    };
    explore(trace, &plan, |image, _| {
        states.lock().unwrap().insert(look(image));
        Ok(())
    })
    .unwrap_or_else(|failure| panic!("{failure}"));
    states.into_inner().unwrap()
}

/// The words of the file `data` at these indexes.
pub fn words<const N: usize>(indexes: [usize; N]) -> impl Fn(&Path) -> [u64; N] {
    move |dir| {
        let bytes = std::fs::read(dir.join("data")).unwrap();
        indexes.map(|index| u64::from_ne_bytes(bytes[index * 8..index * 8 + 8].try_into().unwrap()))
    }
}

/// The values of one word after a crash at the end of `protocol`.
pub fn values(protocol: impl FnOnce(&Mapped)) -> Vec<u64> {
    let states = states_at_end(&record_mapped(protocol), Rules::Lines, words([0]));
    states.into_iter().map(|[value]| value).collect()
}

pub fn sync_dir(dir: &Path) {
    file::sync_dir(dir, SETUP).unwrap();
}
