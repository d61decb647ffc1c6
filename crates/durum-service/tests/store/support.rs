//! A client made by hand: it writes logs and objects as a program with the library would, byte by byte.

#![allow(dead_code)] // Each test file uses a part of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use durum_format::extent::{ExtentHeader, ExtentKind, encode};
use durum_format::log::{
    ENTRY_HEADER_SIZE, EntryFlags, EntryHeader, EntryKind, LOG_AREA_OFFSET, LogHeader, Order,
    RangeWord, SEQUENCE_REDO, SEQUENCE_UNDO, Salt, encode_bits, encode_chain, encode_copy,
    encode_seal, entry_size, next_entry_offset, seal_size, slot_offset,
};
use durum_format::log_space::{self, LogSpaceEntry};
use durum_format::puddle::{self, BITMAP_OFFSET};
use durum_format::record::{self, Operation, RecordHeader, RingSalt};
use durum_format::types::{Declarations, Descriptor, Field, Primitive, Type};
use durum_format::{GRANULE, UNIT};
use durum_persist::Site;
use durum_persist::domain::Domain;
use durum_persist::record::{Recorder, RecorderOptions, Trace};
use durum_persist::simulate::{CrashPoint, Plan, Rules, explore_with_recovery};
use durum_service::{
    CreateOptions, Embedded, EngineKind, Error, OpenOptions, PoolGrant, PoolSpec, PuddleGrant,
    PuddleKind, PuddleOwner, Service,
};

pub const SITE: Site = Site("test client");

/// The processor time of this thread: unlike the wall clock it does not tell how busy the machine is.
pub fn cpu_time() -> std::time::Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a local that outlives the call.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0);
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Lets this process have only so much more address space than it has.
pub fn limit_memory(more: u64) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = statm.split(' ').next().unwrap().parse().unwrap();
    let bytes = pages * rustix::param::page_size() as u64 + more;
    let limit = libc::rlimit {
        rlim_cur: bytes,
        rlim_max: bytes,
    };
    // SAFETY: the pointer is to a local that outlives the call.
    assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) }, 0);
}

/// Bytes that are free on the file system of a directory.
pub fn room(path: &Path) -> u64 {
    rustix::fs::statvfs(path).map_or(0, |found| found.f_bavail * found.f_frsize)
}

/// A directory in memory (on disk where there is little memory for files), removed at the end.
pub fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let parent = if room(memory) >= 256 << 20 {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::Builder::new()
        .prefix("durum-service-test-")
        .tempdir_in(parent)
        .unwrap()
}

/// Records what happens to the files below a directory, but for what is ordered at one site.
pub fn recorder(directory: &Path, skip: Option<Site>) -> Recorder {
    let options = RecorderOptions {
        skip,
        ..RecorderOptions::default()
    };
    Recorder::start(directory, options)
}

/// A plan that tries some of what a sector of a disk may hold, and crashes some recoveries again.
pub fn sampled(seed: u64) -> Plan {
    Plan {
        random_images: 2,
        single_units_max: 3,
        nested_one_in: 40,
        nested_depth: 1,
        nested_points_max: Some(4),
        points_max: match std::env::var_os("DURUM_CRASH_ALL") {
            Some(_) => None,
            None => Some(20),
        },
        ..Plan::new(Rules::Sectors, seed)
    }
}

/// Crashes what was recorded. Each image is looked at before it is opened, and checked afterwards, as the path of its
/// store; one that is not finished never was a store.
pub fn survives(
    trace: &Trace,
    plan: &Plan,
    look: impl Fn(&Path) -> Result<(), String>,
    mut check: impl FnMut(&Path, &CrashPoint<'_>) -> Result<(), String>,
) {
    let recover = |image: &Path| {
        let path = image.join("store");
        look(&path)?;
        match Embedded::open(&path, open_options()) {
            Ok(_) | Err(Error::StoreMissing { .. }) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    };
    let explored = explore_with_recovery(trace, plan, recover, |image, point| {
        check(&image.join("store"), point)
    });
    match explored {
        Ok(report) => assert!(report.images > 30, "{report:?}"),
        Err(failure) => panic!("{failure}"),
    }
}

pub fn create_options() -> CreateOptions {
    CreateOptions {
        domain: Some(Domain::File),
        ..CreateOptions::default()
    }
}

pub fn open_options() -> OpenOptions {
    OpenOptions {
        domain: Some(Domain::File),
        ..OpenOptions::default()
    }
}

pub fn create(path: &Path) -> Embedded {
    Embedded::create(path, &create_options()).unwrap()
}

pub fn open(path: &Path) -> Embedded {
    Embedded::open(path, open_options()).unwrap()
}

/// A type of one word.
pub fn small_type(name: &str) -> Descriptor {
    let text = format!("struct \"{name}\"(8,8){{0:\"value\":i64;}}\n");
    Descriptor::parse(&text).unwrap()
}

pub fn spec() -> PoolSpec {
    PoolSpec::new(EngineKind::Hybrid)
}

/// All files below a directory with their bytes, by relative path.
pub fn snapshot(path: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut directories = vec![path.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.path());
            } else {
                let name = entry.path().strip_prefix(path).unwrap().to_owned();
                files.insert(name, std::fs::read(entry.path()).unwrap());
            }
        }
    }
    files
}

/// Copies a store directory.
pub fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Reads a word of a puddle.
pub fn word(grant: &PuddleGrant, offset: u64) -> u64 {
    let mut bytes = [0; 8];
    grant.file.read_exact_at(&mut bytes, offset).unwrap();
    u64::from_le_bytes(bytes)
}

/// Writes bytes of a puddle durably.
pub fn put(grant: &PuddleGrant, offset: u64, bytes: &[u8]) {
    grant.file.write_all_at(bytes, offset).unwrap();
    grant.file.sync(SITE).unwrap();
}

/// The first offset of a puddle's heap.
pub fn heap(grant: &PuddleGrant) -> u64 {
    puddle::heap_offset(grant.size)
}

/// A client's log space, registered.
pub struct Space {
    pub grant: PuddleGrant,
    pub used: u64,
}

impl Space {
    pub fn new(store: &dyn Service) -> Space {
        let grant = store
            .create_puddle(PuddleOwner::Client, PuddleKind::LogSpace, UNIT)
            .unwrap();
        put(
            &grant,
            heap(&grant),
            &log_space::encode_header(store.info().client),
        );
        store.register_log_space(grant.uuid).unwrap();
        Space { grant, used: 0 }
    }

    /// Makes a log and lists it.
    pub fn log(&mut self, store: &dyn Service, log_id: u64) -> Log {
        let log = Log::new(store, log_id);
        self.list(&log);
        log
    }

    pub fn list(&mut self, log: &Log) {
        let entry = LogSpaceEntry {
            log_id: log.log_id,
            puddle: log.parts[0].uuid,
            address: log.parts[0].address,
        };
        let offset = heap(&self.grant) + log_space::entry_offset(self.used);
        put(&self.grant, offset, &entry.encode());
        self.used += 1;
    }
}

/// A log, written entry by entry.
pub struct Log {
    pub parts: Vec<PuddleGrant>,
    pub log_id: u64,
    pub generation: u64,
    pub offset: usize,
    pub count: u32,
}

impl Log {
    /// A log in a new puddle, armed.
    pub fn new(store: &dyn Service, log_id: u64) -> Log {
        let grant = store
            .create_puddle(PuddleOwner::Client, PuddleKind::Log, UNIT)
            .unwrap();
        let header = LogHeader::new(log_id, store.info().client, grant.size, false);
        put(&grant, heap(&grant), &header.encode());
        let mut log = Log {
            parts: vec![grant],
            log_id,
            generation: 0,
            offset: 0,
            count: 0,
        };
        log.arm();
        log
    }

    fn salt(&self) -> Salt {
        Salt::new(self.log_id, self.generation)
    }

    /// Retires this generation and arms the next.
    pub fn arm(&mut self) {
        self.generation += 1;
        self.offset = 0;
        self.count = 0;
        self.set_range(RangeWord::undo(self.generation));
    }

    pub fn set_range(&self, word: RangeWord) {
        let offset = heap(&self.parts[0]) + slot_offset(word.generation);
        put(&self.parts[0], offset, &word.to_u64().to_le_bytes());
    }

    fn append(
        &mut self,
        length: usize,
        flags: EntryFlags,
        write: impl FnOnce(&mut [u8], &Salt) -> Option<usize>,
    ) {
        let mut bytes = vec![0; length + 64];
        let written = write(&mut bytes, &self.salt()).unwrap();
        let part = self.parts.last().unwrap();
        let at = heap(part) + LOG_AREA_OFFSET + self.offset as u64;
        put(part, at, &bytes[..written]);
        self.offset = next_entry_offset(self.offset, length, flags);
        self.count += 1;
    }

    /// An entry of any kind that says anything.
    pub fn forge(
        &mut self,
        kind: EntryKind,
        order: Order,
        flags: EntryFlags,
        sequence: u8,
        target: u64,
        data: &[u8],
    ) {
        self.append(data.len(), flags, |out, salt| {
            let words = EntryHeader::words(salt, kind, order, flags, sequence, target, data);
            for (place, word) in out.chunks_exact_mut(8).zip(words) {
                place.copy_from_slice(&word.to_le_bytes());
            }
            out[ENTRY_HEADER_SIZE..][..data.len()].copy_from_slice(data);
            Some(entry_size(data.len()))
        });
    }

    /// The old bytes, to be restored unless the transaction commits.
    pub fn undo(&mut self, target: u64, old: &[u8]) {
        let flags = EntryFlags::FENCED;
        self.append(old.len(), flags, |out, salt| {
            encode_copy(out, salt, Order::Reverse, flags, SEQUENCE_UNDO, target, old)
        });
    }

    /// The new bytes, to be written when the transaction commits.
    pub fn redo(&mut self, target: u64, new: &[u8]) {
        let flags = EntryFlags::NONE;
        self.append(new.len(), flags, |out, salt| {
            encode_copy(out, salt, Order::Forward, flags, SEQUENCE_REDO, target, new)
        });
    }

    pub fn bits(&mut self, set: bool, target: u64, mask: u64) {
        let flags = EntryFlags::NONE;
        self.append(8, flags, |out, salt| {
            encode_bits(out, salt, set, flags, SEQUENCE_REDO, target, mask)
        });
    }

    /// Commits: over the given fresh ranges with their contents.
    pub fn seal(&mut self, fresh: &[(u64, &[u8])]) {
        let mut crc = self.salt().crc();
        for (_, contents) in fresh {
            crc.update(contents);
        }
        let ranges: Vec<(u64, u64)> = fresh
            .iter()
            .map(|(address, contents)| (*address, contents.len() as u64))
            .collect();
        self.seal_over(&ranges, crc.value());
    }

    /// Commits: over ranges whose contents have this checksum.
    pub fn seal_over(&mut self, ranges: &[(u64, u64)], contents: u32) {
        let count = self.count;
        self.append(seal_size(ranges.len()), EntryFlags::NONE, |out, salt| {
            encode_seal(out, salt, EntryFlags::NONE, count, ranges, contents)
        });
    }

    /// Goes on in a new puddle.
    pub fn chain(&mut self, store: &dyn Service) {
        let grant = store
            .create_puddle(PuddleOwner::Client, PuddleKind::Log, UNIT)
            .unwrap();
        let header = LogHeader::new(self.log_id, store.info().client, grant.size, true);
        put(&grant, heap(&grant), &header.encode());
        self.chain_to(grant.address);
        self.parts.push(grant);
        self.offset = 0;
    }

    /// Says that it goes on at an address.
    pub fn chain_to(&mut self, address: u64) {
        self.append(0, EntryFlags::NONE, |out, salt| {
            encode_chain(out, salt, address)
        });
    }
}

/// A puddle of redo records, written one by one.
pub struct Records {
    pub grant: PuddleGrant,
    /// Where the next one goes.
    pub offset: u64,
    /// The header of the next one.
    pub next: RecordHeader,
}

impl Records {
    pub fn new(store: &dyn Service) -> Records {
        let grant = store
            .create_puddle(PuddleOwner::Client, PuddleKind::Records, UNIT)
            .unwrap();
        let first = record::segments(grant.size).next().unwrap();
        let next = RecordHeader {
            stamp: 1,
            watermark: 0,
            previous: 0,
            log: 0,
            part: 0,
            more: false,
            fenced: true,
        };
        Records {
            grant,
            offset: first.start,
            next,
        }
    }

    /// Writes a record with these entries.
    pub fn append(&mut self, entries: &[u64]) {
        let mut words = vec![0; record::HEADER_WORDS];
        words.extend_from_slice(entries);
        self.next
            .seal(&mut words, &RingSalt::new(self.grant.uuid), self.offset);
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        put(&self.grant, self.offset, &bytes);
        self.offset += record::ring::record_size(entries);
        self.next.previous = self.next.stamp;
        self.next.stamp = self.next.stamp.wrapping_add(1);
    }

    /// Writes a record that stores a word.
    pub fn store(&mut self, target: u64, word: u64) {
        let mut entries = Vec::new();
        record::push_word(&mut entries, Operation::Store, target, word);
        self.append(&entries);
    }
}

/// Places an object of `size` bytes in an extent of its own at a granule. Returns its address.
pub fn place_object(grant: &PuddleGrant, granule: u64, type_id: u64, bytes: &[u8]) -> u64 {
    let extent = heap(grant) + granule * GRANULE;
    let header = ExtentHeader {
        type_id,
        kind: ExtentKind::Object {
            size: bytes.len() as u64,
            data_offset: 16,
        },
    };
    let [first, second] = encode(&header);
    put(grant, extent, &first.to_le_bytes());
    put(grant, extent + 8, &second.to_le_bytes());
    put(grant, extent + 16, bytes);
    let word_at = BITMAP_OFFSET + granule / 64 * 8;
    let bitmap = word(grant, word_at) | 1 << (granule % 64);
    put(grant, word_at, &bitmap.to_le_bytes());
    grant.address + extent + 16
}

/// `struct Node { value: i64, next: *Node }`.
pub fn node_type() -> Descriptor {
    let mut declared = Declarations::new();
    declared
        .declare(Type::structure(
            "Node",
            16,
            8,
            vec![
                Field::new("value", 0, Type::Primitive(Primitive::I64)),
                Field::new("next", 8, Type::pointer("Node")),
            ],
        ))
        .unwrap();
    declared.resolve("Node").unwrap()
}

/// A structure whose text has about 20 KiB: two of them fill the room for changes in a new registry.
pub fn large_type(name: &str) -> Descriptor {
    let field = |index: u64| {
        let name = format!("field number {index}");
        Field::new(&name, index * 8, Type::Primitive(Primitive::I64))
    };
    let mut declared = Declarations::new();
    declared
        .declare(Type::structure(
            name,
            600 * 8,
            8,
            (0..600).map(field).collect(),
        ))
        .unwrap();
    declared.resolve(name).unwrap()
}

pub fn node(value: i64, next: u64) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&value.to_le_bytes());
    bytes[8..].copy_from_slice(&next.to_le_bytes());
    bytes
}

pub fn root(pool: &PoolGrant) -> &PuddleGrant {
    &pool.root
}

/// Opens all puddles of a pool but its root.
pub fn open_others(store: &Embedded, pool: &PoolGrant) -> durum_service::Result<Vec<PuddleGrant>> {
    let all: Vec<_> = pool.others.iter().map(|place| place.uuid).collect();
    let mut opened = Vec::new();
    for some in all.chunks(durum_service::PUDDLES_AT_ONCE) {
        opened.extend(store.open_puddles(pool.uuid, some)?);
    }
    Ok(opened)
}

/// Opens all puddles of a pool, the root first.
pub fn open_all(store: &Embedded, pool: PoolGrant) -> Vec<PuddleGrant> {
    let others = open_others(store, &pool).unwrap();
    std::iter::once(pool.root).chain(others).collect()
}
