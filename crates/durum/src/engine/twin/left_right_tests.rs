//! Readers and a writer at full speed; `tests/loom` tries their interleavings one by one.

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::left_right::LeftRight;

/// Two copies of two words that are always equal in a copy that is whole.
struct TwoCopies {
    left_right: LeftRight,
    words: [UnsafeCell<[u64; 2]>; 2],
    reads: AtomicU64,
}

// SAFETY: what the tests are about.
unsafe impl Sync for TwoCopies {}

#[test]
fn readers_never_meet_the_writer() {
    let copies = TwoCopies {
        left_right: LeftRight::default(),
        words: Default::default(),
        reads: AtomicU64::new(0),
    };
    thread::scope(|scope| {
        let copies = &copies;
        for _ in 0..3 {
            scope.spawn(move || {
                let mut last = 0;
                while last < 20_000 {
                    let reading = copies.left_right.come();
                    let copy = copies.words[usize::from(!reading.is_main)].get();
                    // SAFETY: the writer is at the other copy.
                    let [first, second] = unsafe { copy.read_volatile() };
                    assert_eq!(first, second);
                    assert!(first >= last, "time does not go back");
                    last = first;
                    copies.reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for value in 1..=20_000 {
            // Main is what the writer changes first; readers are at back.
            for copy in [0, 1] {
                copies.left_right.send(copy == 1);
                let words = copies.words[copy].get();
                // SAFETY: the readers are at the other copy.
                unsafe {
                    words.cast::<u64>().write_volatile(value);
                    words.cast::<u64>().add(1).write_volatile(value);
                }
            }
            if value == 20_000 {
                copies.left_right.send(true);
            }
        }
    });
    assert!(copies.reads.load(Ordering::Relaxed) > 0);
}

/// Each of them comes before the last one has gone, so that somebody always reads.
#[test]
fn new_readers_do_not_keep_the_writer_waiting() {
    let left_right = LeftRight::default();
    let is_done = AtomicBool::new(false);
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut reading = left_right.come();
    let mut came = 0;
    thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..100 {
                left_right.send(round % 2 == 0);
            }
            is_done.store(true, Ordering::Release);
        });
        while !is_done.load(Ordering::Acquire) && Instant::now() < deadline {
            let next = left_right.come();
            // The one before leaves.
            reading = next;
            came += 1;
        }
        let was_done = is_done.load(Ordering::Acquire);
        drop(reading);
        assert!(was_done, "it waits still, after {came} readers");
    });
}
