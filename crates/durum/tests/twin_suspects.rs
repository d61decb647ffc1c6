//! The blocks of a Twin pool in which its copies may differ: what it costs to name one, and that recovery reads these,
//! whatever the pool's size; all of it where nothing says which they are.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "the root is live as long as its pool is open, and each test knows who changes it"
)]

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use durum::{
    Domain, Engine, Error, Pool, PoolOptions, Store, StoreOptions, TwinMode, thread_counters,
};
use durum_format::puddle::header_size;
use durum_format::twin::{
    BLOCK_SIZE, STATE_OFFSET, SUSPECTS_SIZE, Stage, State, Suspects, parse_suspects,
    suspects_offset,
};
use durum_service::{Embedded, OpenOptions};

mod support;

/// Bytes of each object. It has a puddle of its own.
const OBJECT: usize = 16 << 20;
const FILLED: u8 = 0x11;
const CHANGED: u8 = 0x7a;

#[repr(C)]
struct Root {
    objects: [*mut u8; 64],
    count: u64,
}
durum::describe!(Root as "root of large objects" { objects, count });

fn path_in(dir: &Path) -> PathBuf {
    dir.join("store")
}

/// A pool with so many objects, which is closed in order.
fn make(dir: &Path, objects: usize) {
    let store = Store::create(path_in(dir), StoreOptions::new()).unwrap();
    let options = PoolOptions::new().engine(Engine::Twin);
    let pool = store.create_pool("pool", options).unwrap();
    let root: *mut Root = pool.root().unwrap();
    for index in 0..objects {
        pool.transaction(|tx| unsafe {
            let object = tx.alloc_bytes(&pool, 0, OBJECT, 64)?;
            object.write_bytes(FILLED, OBJECT);
            tx.set(&raw mut (*root).objects[index], object)?;
            tx.set(&raw mut (*root).count, index as u64 + 1)
        })
        .unwrap();
    }
    drop(pool);
    store.close().unwrap();
}

/// Changes some bytes in three objects, in the middle of a transaction that the process does not survive. A transaction
/// before it has changed another one.
fn die_in(dir: &Path, mode: TwinMode) {
    let store = Store::open(path_in(dir), StoreOptions::new()).unwrap();
    let options = PoolOptions::new().engine(Engine::Twin).twin_mode(mode);
    let pool = store.open_pool("pool", options).unwrap();
    let root: *mut Root = pool.root().unwrap();
    let objects = unsafe { &(&(*root).objects)[..(*root).count as usize] };
    let change = |tx: &durum::Tx, object: *mut u8, at: usize| unsafe {
        let target = object.add(at);
        tx.add_bytes(target, 300, durum::Announce::Backup)?;
        target.write_bytes(CHANGED, 300);
        Ok::<_, Error>(())
    };
    pool.transaction(|tx| change(tx, objects[1], 5000)).unwrap();
    let _ = pool.transaction(|tx| {
        change(tx, objects[0], 77)?;
        change(tx, objects[2], BLOCK_SIZE as usize * 9)?;
        change(tx, objects[objects.len() - 1], OBJECT - 300)?;
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL)
            .unwrap();
        Ok::<_, Error>(())
    });
}

#[test]
#[ignore = "the other process of the tests below"]
fn dies_in_a_transaction() {
    if let Some(dir) = support::directory() {
        die_in(&dir, TwinMode::Log);
    }
}

#[test]
#[ignore = "the other process of a test below"]
fn dies_in_a_transaction_that_copies_all() {
    if let Some(dir) = support::directory() {
        die_in(&dir, TwinMode::Basic);
    }
}

#[track_caller]
fn assert_killed(status: ExitStatus) {
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(status.signal(), Some(9), "{status}");
}

/// A pool whose process was killed in a transaction.
fn killed(objects: usize, process: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    make(dir.path(), objects);
    assert_killed(support::start(process, dir.path()).wait().unwrap());
    dir
}

/// Bytes that this thread has asked the system for so far.
fn bytes_read() -> u64 {
    let counts = fs::read_to_string("/proc/thread-self/io").unwrap();
    let line = counts.lines().find_map(|line| line.strip_prefix("rchar: "));
    line.unwrap().parse().unwrap()
}

/// What a recovery took.
struct Recovered {
    read: u64,
    written: u64,
    time: Duration,
}

/// Lets the service recover a store, and looks at what is there.
fn recover(dir: &Path) -> Recovered {
    let before = bytes_read();
    let store = Embedded::open(&path_in(dir), OpenOptions::default()).unwrap();
    let read = bytes_read() - before;
    let report = store.recovery_report().clone();
    drop(store);
    assert_eq!((report.rolled_back, report.rolled_forward), (1, 0));
    let recovered = Recovered {
        read,
        written: report.bytes,
        time: report.log_time,
    };
    look(dir);
    recovered
}

/// What was committed is there, and nothing else; also in the other copy, which the next recovery takes.
fn look(dir: &Path) {
    let store = Store::open(path_in(dir), StoreOptions::new()).unwrap();
    let options = PoolOptions::new()
        .engine(Engine::Twin)
        .twin_mode(TwinMode::LeftRight);
    let pool = store.open_pool("pool", options).unwrap();
    let root: *mut Root = pool.root().unwrap();
    let objects = unsafe { &(&(*root).objects)[..(*root).count as usize] };
    for (index, object) in objects.iter().enumerate() {
        let bytes = unsafe { std::slice::from_raw_parts(*object, OBJECT) };
        let mut wanted = vec![FILLED; OBJECT];
        if index == 1 {
            wanted[5000..5300].fill(CHANGED);
        }
        assert!(bytes == wanted, "object {index}");
    }
    drop(pool);
    store.close().unwrap();
    for path in puddles(dir) {
        let bytes = fs::read(&path).unwrap();
        let (main, back) = bytes.split_at(bytes.len() / 2);
        let heap = header_size(main.len() as u64) as usize;
        assert!(main[heap..] == back[heap..], "{}", path.display());
    }
}

/// The files of the pool's puddles.
fn puddles(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path_in(dir).join("puddles")).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .filter(|path| {
            let mut kind = [0];
            File::open(path)
                .unwrap()
                .read_exact_at(&mut kind, 12)
                .unwrap();
            kind == [5]
        })
        .collect()
}

/// The file of the root puddle, and where the list of suspects is in it.
fn root_file(dir: &Path) -> (File, u64) {
    let is_root = |path: &&PathBuf| {
        let mut flags = [0];
        File::open(path)
            .unwrap()
            .read_exact_at(&mut flags, 64)
            .unwrap();
        flags[0] & 1 == 1
    };
    let all = puddles(dir);
    let path = all.iter().find(is_root).unwrap();
    let file = File::options().read(true).write(true).open(path).unwrap();
    let size = file.metadata().unwrap().len() / 2;
    (file, suspects_offset(size))
}

fn state_of(file: &File) -> State {
    let mut word = [0; 8];
    file.read_exact_at(&mut word, STATE_OFFSET).unwrap();
    State::from_word(u64::from_le_bytes(word)).unwrap()
}

#[test]
fn recovery_reads_what_may_differ_whatever_the_size_of_the_pool() {
    for objects in [3, 8] {
        let dir = killed(objects, "dies_in_a_transaction");
        let (file, offset) = root_file(dir.path());
        let state = state_of(&file);
        assert!(state.stage == Stage::Changing && state.is_listed);
        let mut list = [0; SUSPECTS_SIZE];
        file.read_exact_at(&mut list, offset).unwrap();
        let Some(Suspects::In(ranges)) = parse_suspects(&list) else {
            panic!("there is no list");
        };
        let named: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        assert_eq!(
            named,
            4 * BLOCK_SIZE,
            "a block of each object that was changed"
        );
        let Recovered { read, written, .. } = recover(dir.path());
        // Both copies of each, and what a store and its puddles say of themselves.
        assert!(read < 2 * named + (300 << 10), "{read}");
        assert!((3 * 300..3 * 300 + 1000).contains(&written), "{written}");
    }
}

#[test]
fn a_list_that_is_damaged_says_nothing_and_all_is_compared() {
    let dir = killed(3, "dies_in_a_transaction");
    let (file, offset) = root_file(dir.path());
    let mut word = [0; 8];
    file.read_exact_at(&mut word, offset + 8).unwrap();
    for damage in [0xff, 1] {
        let copy = tempfile::tempdir_in("/dev/shm").unwrap();
        copy_store(dir.path(), copy.path());
        let (file, offset) = root_file(copy.path());
        let damaged = word.map(|byte| byte ^ damage);
        file.write_all_at(&damaged, offset + 8).unwrap();
        assert!(recover(copy.path()).read > 2 * 3 * OBJECT as u64);
    }
}

#[test]
fn a_pool_that_a_build_without_a_list_has_changed_is_compared_as_a_whole() {
    let dir = killed(3, "dies_in_a_transaction");
    let (file, offset) = root_file(dir.path());
    // It knows nothing of a list that others have left there, and none of the states that say so.
    let state = State {
        is_listed: false,
        ..state_of(&file)
    };
    file.write_all_at(&state.to_word().to_le_bytes(), STATE_OFFSET)
        .unwrap();
    file.write_all_at(&[0; SUSPECTS_SIZE], offset).unwrap();
    assert!(recover(dir.path()).read > 2 * 3 * OBJECT as u64);
}

#[test]
fn a_pool_of_the_mode_that_copies_all_is_compared_as_a_whole() {
    let dir = killed(3, "dies_in_a_transaction_that_copies_all");
    let (file, _) = root_file(dir.path());
    assert!(!state_of(&file).is_listed);
    assert!(recover(dir.path()).read > 2 * 3 * OBJECT as u64);
}

#[test]
fn words_about_puddles_that_are_gone_or_were_never_there_are_about_nothing() {
    let dir = killed(3, "dies_in_a_transaction");
    let (file, offset) = root_file(dir.path());
    let elsewhere = durum_format::twin::Suspect::new(0x3ff_ffff, 0xffff);
    let last = offset + SUSPECTS_SIZE as u64 - 8;
    file.write_all_at(&elsewhere.to_word().to_le_bytes(), last)
        .unwrap();
    assert!(recover(dir.path()).read < 2 << 20);
}

/// Fences and lines of a transaction that changes a word in each of these blocks of an object.
fn cost(pool: &Pool, object: *mut u8, blocks: &[usize]) -> (u64, u64) {
    let before = thread_counters();
    pool.transaction(|tx| unsafe {
        for block in blocks {
            let word = object.add(block * BLOCK_SIZE as usize).cast::<u64>();
            tx.add(word)?;
            *word += 1;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
    let cost = thread_counters() - before;
    let lines = cost.write_backs + cost.streamed_lines;
    (cost.fences, lines)
}

#[test]
fn the_first_change_in_a_block_costs_a_fence_and_a_line_and_no_other_one_does() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    make(dir.path(), 2);
    let store = Store::open(path_in(dir.path()), StoreOptions::new()).unwrap();
    // So that the list is full soon.
    let options = PoolOptions::new().engine(Engine::Twin).suspects(255, 128);
    let pool = store.open_pool("pool", options).unwrap();
    let root: *mut Root = pool.root().unwrap();
    let [first, second] = unsafe { [(*root).objects[0], (*root).objects[1]] };
    // A line in each copy, one of state, one with a seal.
    cost(&pool, first, &[0]);
    assert_eq!(cost(&pool, first, &[0]), (2, 4));
    assert_eq!(cost(&pool, first, &[1]), (3, 5));
    assert_eq!(cost(&pool, first, &[1]), (2, 4));
    // By two announcements, of which each has to be told before its store.
    assert_eq!(cost(&pool, first, &[2, 3]), (4, 8));
    assert_eq!(cost(&pool, first, &[0, 1, 2, 3]), (2, 10));
    // Blocks that fit the list stay there.
    for block in 0..120 {
        cost(&pool, first, &[block]);
    }
    for block in 0..120 {
        assert_eq!(cost(&pool, first, &[block]), (2, 4), "{block}");
    }
    // Others take the places of those that nobody has used for long, which costs as much as the first time.
    for block in 0..200 {
        let (fences, lines) = cost(&pool, second, &[block]);
        assert!(fences == 3 && (5..=6).contains(&lines), "{block}: {lines}");
        assert_eq!(cost(&pool, first, &[119]), (2, 4), "in use");
    }
    assert_eq!(cost(&pool, first, &[5]), (3, 5));
    // The commit says of all deferred stores, and of large ranges, at once.
    let before = thread_counters();
    pool.transaction(|tx| unsafe {
        for block in 40..50 {
            tx.set(first.add(block * BLOCK_SIZE as usize), 1)?;
        }
        let part = first.add(60 * BLOCK_SIZE as usize);
        tx.add_bytes(part, 5 * BLOCK_SIZE as usize, durum::Announce::Backup)
    })
    .unwrap();
    assert_eq!((thread_counters() - before).fences, 4);
}

#[test]
fn new_objects_and_what_is_freed_cost_no_fence_of_their_own() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    make(dir.path(), 1);
    let store = Store::open(path_in(dir.path()), StoreOptions::new()).unwrap();
    let options = PoolOptions::new().engine(Engine::Twin);
    let pool = store.open_pool("pool", options).unwrap();
    let objects = 20_000;
    let fences = |pool: &Pool| {
        let before = thread_counters().fences;
        pool.transaction(|tx| {
            let object = tx.alloc_bytes(pool, 0, 100, 8)?;
            unsafe { object.write_bytes(1, 100) };
            Ok::<_, Error>(())
        })
        .unwrap();
        thread_counters().fences - before
    };
    // Blocks of bitmaps are all that is named.
    let all: u64 = (0..objects).map(|_| fences(&pool)).sum();
    assert!(all < 2 * objects + 100, "{all}");
}

/// A crash between its two copies leaves one that is new and one that is old: they have to become the same, or what is
/// found new is old again after another crash.
#[test]
fn a_block_in_which_something_is_persisted_is_named_first() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    make(dir.path(), 1);
    let store = Store::open(path_in(dir.path()), StoreOptions::new()).unwrap();
    let options = PoolOptions::new().engine(Engine::Twin);
    let pool = store.open_pool("pool", options).unwrap();
    let root: *mut Root = pool.root().unwrap();
    let object = unsafe { (*root).objects[0] };
    let (file, offset) = root_file(dir.path());
    let is_named = |address: *mut u8| {
        let mut list = [0; SUSPECTS_SIZE];
        file.read_exact_at(&mut list, offset).unwrap();
        let Some(Suspects::In(ranges)) = parse_suspects(&list) else {
            panic!("there is no list");
        };
        let address = address.addr() as u64;
        ranges.iter().any(|range| range.contains(&address))
    };
    cost(&pool, object, &[0]);
    for (block, fences) in [(0, 2), (3, 2), (3, 1), (4, 2)] {
        let word = unsafe { object.add(block * BLOCK_SIZE as usize) };
        let before = thread_counters().fences;
        unsafe {
            word.write(7);
            pool.persist(word, 8).unwrap();
        }
        assert!(is_named(word), "block {block}");
        // The first one forgets the seal.
        let found = thread_counters().fences - before;
        assert!(found <= fences, "block {block}: {found}");
    }
    assert!(!is_named(unsafe { object.add(9 * BLOCK_SIZE as usize) }));
}

#[test]
fn the_first_change_in_a_block_costs_a_sync_on_a_file_system() {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let options = StoreOptions::new().domain(Domain::File);
    let store = Store::create(path_in(dir.path()), options).unwrap();
    let options = PoolOptions::new().engine(Engine::Twin);
    let pool = store.create_pool("pool", options).unwrap();
    let object = pool
        .transaction(|tx| tx.alloc_bytes(&pool, 0, 1 << 20, 64))
        .unwrap();
    let all: Vec<usize> = (0..8).collect();
    let syncs = |blocks: &[usize]| {
        let before = thread_counters().syncs;
        cost(&pool, object, blocks);
        thread_counters().syncs - before
    };
    syncs(&[9]);
    // The root puddle's file is another one.
    assert_eq!(syncs(&[9]), 4);
    assert_eq!(syncs(&all), 5, "one for all");
    assert_eq!(syncs(&all), 4);
}

fn copy_store(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => {
                fs::create_dir(&target).unwrap();
                copy_store(&entry.path(), &target);
            }
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

/// Changes words all over the pool, one in a transaction, and is killed in the last one. Leaves what they cost.
#[test]
#[ignore = "the other process of the measurement below"]
fn scatters_until_it_dies() {
    let Some(dir) = support::directory() else {
        return;
    };
    let store = Store::open(path_in(&dir), StoreOptions::new()).unwrap();
    let options = PoolOptions::new().engine(Engine::Twin);
    let pool = store.open_pool("pool", options).unwrap();
    let root: *mut Root = pool.root().unwrap();
    let objects = unsafe { &(&(*root).objects)[..(*root).count as usize] };
    let mut state = 1u64;
    let mut updates = |count: u64, dies: bool| {
        let before = thread_counters().fences;
        for number in 0..count {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let at = (state >> 20) as usize % (objects.len() * OBJECT / 8) * 8;
            let word = unsafe { objects[at / OBJECT].add(at % OBJECT).cast::<u64>() };
            pool.transaction(|tx| unsafe {
                tx.add(word)?;
                *word += 0;
                if dies && number + 1 == count {
                    let own = rustix::process::getpid();
                    rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
                }
                Ok::<_, Error>(())
            })
            .unwrap();
        }
        (thread_counters().fences - before) as f64 / count as f64
    };
    updates(100_000, false);
    let fences = updates(100_000, false);
    fs::write(dir.join("fences"), format!("{fences:.2}")).unwrap();
    updates(1000, true);
}

#[test]
#[ignore = "a measurement: needs 2 GiB of memory, and the release profile"]
fn updates_all_over_a_pool_cost_what_is_written_down() {
    for objects in [2, 4, 8, 16, 64] {
        let dir = killed(objects, "scatters_until_it_dies");
        let fences = fs::read_to_string(dir.path().join("fences")).unwrap();
        let store = Embedded::open(&path_in(dir.path()), OpenOptions::default()).unwrap();
        let time = store.recovery_report().log_time;
        let size = (objects * OBJECT) >> 20;
        println!("{size} MiB: {fences} fences an update, recovered in {time:.1?}");
    }
}

#[test]
#[ignore = "a measurement: needs 2 GiB of memory, and the release profile"]
fn a_gibibyte_takes_milliseconds() {
    let dir = killed(64, "dies_in_a_transaction");
    let Recovered {
        read,
        written,
        time,
    } = recover(dir.path());
    println!("1 GiB: {read} bytes read, {written} written, {time:.3?}");
    assert!(read < 2 << 20, "{read}");
    assert!(time < Duration::from_millis(5), "{time:?}");
}
