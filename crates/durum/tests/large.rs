//! Large transactions cost what they contain: processor time of each object, in transactions of a thousand and in one
//! of two million.
//!
//! `cargo test --release -p durum-tests --test large -- --ignored --nocapture` prints a table. Memory was used before,
//! so that no figure is about pages that the kernel makes.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use pools as programs do: their objects are live, and theirs alone"
)]

use durum::{Engine, Error, Pool, PoolOptions, Store, StoreOptions};

const FEW: usize = 1000;
/// What grows with the size of a transaction is hundreds of times as much; the figure on a quiet machine is 1.5.
const RATIO_MAX: f64 = 6.0;

/// Nanoseconds of this thread.
fn now() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Does something in transactions of `each` objects, `count` in all: nanoseconds for an object.
fn timed(count: usize, each: usize, mut part: impl FnMut(std::ops::Range<usize>)) -> f64 {
    let begin = now();
    for from in (0..count).step_by(each) {
        part(from..(from + each).min(count));
    }
    (now() - begin) / count as f64
}

struct Objects<'p> {
    pool: &'p Pool,
    size: usize,
    all: Vec<*mut u8>,
}

impl Objects<'_> {
    fn allocate(&mut self, range: std::ops::Range<usize>, commit: bool) {
        let Self { pool, size, all } = self;
        let done = pool.transaction(|tx| {
            for _ in range {
                let object = tx.alloc_bytes(pool, 7, *size, 8)?;
                unsafe { object.cast::<u64>().write(1) };
                if commit {
                    all.push(object);
                }
            }
            if commit { Ok(()) } else { tx.abort() }
        });
        assert!(commit == done.is_ok(), "{done:?}");
    }

    fn free(&mut self, range: std::ops::Range<usize>, commit: bool) {
        let some = &self.all[range];
        let done: Result<(), Error> = self.pool.transaction(|tx| {
            some.iter()
                .try_for_each(|&object| unsafe { tx.free(object) })?;
            if commit { Ok(()) } else { tx.abort() }
        });
        assert!(commit == done.is_ok(), "{done:?}");
    }

    /// Allocation, free that is aborted, free, allocation that is aborted.
    fn times(&mut self, count: usize, each: usize) -> [f64; 4] {
        self.all.clear();
        let allocated = timed(count, each, |range| self.allocate(range, true));
        let kept = timed(count, each, |range| self.free(range, false));
        let freed = timed(count, each, |range| self.free(range, true));
        let aborted = timed(count, each, |range| self.allocate(range, false));
        [allocated, kept, freed, aborted]
    }
}

/// What the memory alone takes: as many objects of the C library, a word written to each, and all freed.
fn plain(count: usize, each: usize, size: usize) -> f64 {
    let mut all = Vec::with_capacity(each);
    timed(count, each, |range| {
        for _ in range {
            let object = unsafe { libc::malloc(size) };
            assert!(!object.is_null());
            unsafe { object.cast::<u64>().write(1) };
            all.push(object);
        }
        all.drain(..)
            .for_each(|object| unsafe { libc::free(object) });
    })
}

fn each_object_takes_as_long(count: usize) {
    for size in [48, 700] {
        let [few, many] = [FEW, count].map(|each| plain(count, each, size));
        println!("malloc and free, {size} bytes, {FEW} at once: {few:.0?}, {count}: {many:.0?}");
    }
    println!("ns for an object: allocated, free aborted, freed, allocation aborted");
    for engine in [Engine::Shadow, Engine::Hybrid, Engine::Twin] {
        for size in [48, 700] {
            let dir = tempfile::tempdir_in("/dev/shm").unwrap();
            let options = StoreOptions::new();
            let store = Store::create(dir.path().join("store"), options).unwrap();
            let options = PoolOptions::new().engine(engine).spare_max(u64::MAX);
            let pool = &store.create_pool("pool", options).unwrap();
            let mut objects = Objects {
                pool,
                size,
                all: Vec::with_capacity(count),
            };
            // For the memory.
            objects.times(count, count);
            let few = objects.times(count, FEW);
            let many = objects.times(count, count);
            println!("{engine:?}, {size} bytes, {FEW} in one: {few:.0?}, {count}: {many:.0?}");
            for (few, many) in few.into_iter().zip(many) {
                assert!(many < few.max(10.0) * RATIO_MAX, "{engine:?}, {size} bytes");
            }
        }
    }
}

#[test]
fn each_object_takes_about_as_long_in_a_large_transaction() {
    each_object_takes_as_long(60_000);
}

#[test]
#[ignore = "a minute, and some GB of memory"]
fn each_object_takes_as_long_in_one_of_two_million() {
    each_object_takes_as_long(2_000_000);
}
