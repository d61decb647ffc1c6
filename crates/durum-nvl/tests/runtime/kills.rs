//! A program is killed at random moments, again and again: what the root leads to is whole each time, and nothing else
//! is left.
//!
//! The crash: SIGKILL at any instruction. The page cache survives it, so this tests rollback and the zero list, not
//! missing flushes (`tests/crash.rs` does).

use std::time::Duration;

use durum::Engine;
use durum_nvl::{Handle, Heap};

use crate::support::*;

/// A list whose values count down to 1 from its length, so that a lost or doubled link shows; and a tail that hangs on
/// a weak pointer.
unsafe fn work(heap: *mut Handle) {
    let mut random = std::process::id() as u64;
    let anchor: *mut Node = unsafe { __nvl_get_root(heap, NODE.as_ptr()).cast() };
    loop {
        random = random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        unsafe {
            let first = (*anchor).next;
            let length = if first.is_null() { 0 } else { (*first).value };
            let slot = &raw mut (*anchor).next;
            match random >> 60 {
                // One store links a fresh node.
                0..=4 => {
                    let head = node(heap, length + 1);
                    store(&raw mut (*head).next, first);
                    store(slot, head);
                }
                5..=8 => transaction(heap, |_| {
                    for more in 1..4 {
                        let head = node(heap, length + more);
                        store(&raw mut (*head).next, *slot);
                        store(slot, head);
                    }
                    __nvl_log((&raw const (*anchor).value).cast(), 8);
                    (*anchor).value += 1;
                }),
                9..=11 if length > 2 => store(slot, (*(*first).next).next),
                12 if length > 400 => store(slot, std::ptr::null_mut()),
                13 if !first.is_null() => {
                    __nvl_store_weak((&raw mut (*anchor).back).cast(), first.cast());
                }
                14 => drop(nvl_collect(heap)),
                _ => drop(node(heap, -1)),
            }
        }
    }
}

#[test]
#[ignore = "the other process of the test below"]
fn worker_that_is_killed() {
    let Some(dir) = directory() else { return };
    let heap = Heap::open(&dir.join("heap"), &options(Engine::Shadow)).unwrap();
    unsafe { work(heap) };
}

#[test]
fn killed_programs_leave_whole_heaps() {
    for engine in ENGINES {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let path = dir.path().join("heap");
        let heap = Heap::create(&path, 0, 0, &options(engine)).unwrap();
        unsafe {
            __nvl_set_root(heap, node(heap, 0).cast(), NODE.as_ptr());
            nvl_close(heap);
        }
        let mut longest = 0;
        for round in 0..12u64 {
            let mut child = start("kills::worker_that_is_killed", dir.path());
            std::thread::sleep(Duration::from_millis(40 + round * 17 % 90));
            child.kill().unwrap();
            let output = child.wait_with_output().unwrap();
            assert!(
                output.status.code().is_none(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            let heap = Heap::open(&path, &options(engine)).unwrap();
            let length = unsafe {
                let anchor: *mut Node = __nvl_get_root(heap, NODE.as_ptr()).cast();
                let mut at = (*anchor).next;
                let length = if at.is_null() { 0 } else { (*at).value };
                let mut expected = length;
                while !at.is_null() {
                    assert_eq!(((*at).value, strong(at)), (expected, 1), "{engine:?}");
                    expected -= 1;
                    at = (*at).next;
                }
                assert_eq!(expected, 0);
                let weak: *mut Node = __nvl_load_weak((&raw const (*anchor).back).cast()).cast();
                assert!(weak.is_null() || (*weak).value <= length);
                __nvl_store_weak((&raw mut (*anchor).back).cast(), std::ptr::null());
                nvl_close(heap);
                length as u64
            };
            longest = longest.max(length);
            assert_eq!(leaks(&path), 0, "{engine:?}");
            // The root object, the anchor, the list, and a proxy for some of its nodes.
            let found = objects(&path);
            assert!(
                (2 + length..=2 + 2 * length + 1).contains(&found),
                "{found} {length}"
            );
        }
        assert!(longest > 0, "{engine:?}");
    }
}
