//! Handles of heaps that are closed, or were never open, are told by name and followed nowhere; closing a heap waits
//! for who uses it.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::ptr::{null, null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use durum::Engine;
use durum_nvl::{Handle, Heap};

use crate::support::*;

const FILE: &std::ffi::CStr = c"list.c";
/// Where the heap is closed, and where it is used.
const CLOSED_LINE: u32 = 3;
const USED_LINE: u32 = 9;

/// Functions that are given a heap.
const OF_HANDLES: [&str; 8] = [
    "close",
    "collect",
    "set_concurrent",
    "alloc",
    "alloc_pinned",
    "get_root",
    "set_root",
    "tx_begin",
];
/// Functions that are given an address.
const OF_ADDRESSES: [&str; 9] = [
    "store_ptr",
    "store_weak",
    "load_weak",
    "copy",
    "fill",
    "log",
    "write_back",
    "persist",
    "check_same",
];

/// Calls a function, which ends the program.
fn call(function: &str, heap: *mut Handle, node: *mut Node, open: *mut Handle) -> ! {
    let (file, line) = (FILE.as_ptr(), USED_LINE);
    let data = node.cast();
    let (heaps, open) = ([heap.cast_const()], [open.cast_const()]);
    let mut block = std::mem::MaybeUninit::<TxBlock>::uninit();
    let block = block.as_mut_ptr();
    unsafe {
        match function {
            "close" => nvl_close_at(heap, file, line),
            "collect" => drop(nvl_collect_at(heap, file, line)),
            "set_concurrent" => nvl_set_concurrent_at(heap, 1, file, line),
            "alloc" => drop(__nvl_alloc_at(heap, 1, 32, NODE.as_ptr(), file, line)),
            "alloc_pinned" => drop(__nvl_alloc_pinned_at(
                heap,
                1,
                32,
                NODE.as_ptr(),
                file,
                line,
            )),
            "get_root" => drop(__nvl_get_root_at(heap, NODE.as_ptr(), file, line)),
            "set_root" => __nvl_set_root_at(heap, null(), NODE.as_ptr(), file, line),
            "tx_begin" => __nvl_tx_begin_at(block, 0, 1, heaps.as_ptr(), file, line),
            "store_ptr" => __nvl_store_ptr_at(data, null(), file, line),
            "store_weak" => __nvl_store_weak_at(data, null(), file, line),
            "load_weak" => drop(__nvl_load_weak_at(data, file, line)),
            "copy" => __nvl_copy_at(data, (&raw const line).cast(), 4, file, line),
            "fill" => __nvl_fill_at(data, 0, 4, file, line),
            "log" => {
                __nvl_tx_begin(block, 0, 1, open.as_ptr());
                __nvl_log_at(data, 8, file, line);
            }
            "write_back" => __nvl_write_back_at(data, 8, file, line),
            "persist" => __nvl_persist_at(data, 8, file, line),
            "check_same" => __nvl_check_same_at(data, data.byte_add(8), file, line),
            other => panic!("{other}"),
        }
    }
    panic!("the program goes on after {function}");
}

/// What the other process says that does `what`.
fn message(what: &str) -> String {
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    std::fs::write(dir.path().join("what"), what).unwrap();
    let output = start("handles::program_that_ends", dir.path())
        .wait_with_output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        output.status.signal(),
        Some(libc::SIGABRT),
        "{what}: {text}"
    );
    assert!(!text.contains("panicked"), "{what}: {text}");
    text
}

#[test]
#[ignore = "the other process of the tests below"]
fn program_that_ends() {
    let Some(dir) = directory() else { return };
    let what = std::fs::read_to_string(dir.join("what")).unwrap();
    let (case, function) = what.split_once(' ').unwrap();
    let options = options(Engine::Shadow);
    let create = |name: &str| Heap::create(&dir.join(name), 0, 0, &options).unwrap();
    let (heap, open) = (create("heap"), create("open"));
    let node = node(heap, 1);
    let close = || unsafe { nvl_close_at(heap, FILE.as_ptr(), CLOSED_LINE) };
    match case {
        "closed" => {
            close();
            call(function, heap, node, open);
        }
        "closed_and_opened" => {
            close();
            // In the same place of the table.
            let again = Heap::open(&dir.join("heap"), &options).unwrap();
            assert_ne!(again, heap);
            call(function, heap, node, open);
        }
        "null" => call(function, null_mut(), node, open),
        "garbage" => call(
            function,
            without_provenance_mut(0x5555_5550_1230),
            node,
            open,
        ),
        "by_this_thread" => transaction(open, |_| close()),
        "by_another_thread" => close_beside_a_transaction(heap),
        "racing" => close_beside_functions(heap, node, function),
        other => panic!("{other}"),
    }
    panic!("the program goes on after {what}");
}

#[test]
fn a_closed_heap_is_told_with_the_place_where_it_was_closed() {
    for function in OF_HANDLES.iter().chain(&OF_ADDRESSES) {
        let text = message(&format!("closed {function}"));
        assert!(text.contains("list.c:9: nvl: "), "{function}: {text}");
        assert!(
            text.contains("/heap\" was closed at list.c:3"),
            "{function}: {text}"
        );
    }
    for function in OF_HANDLES {
        let text = message(&format!("closed_and_opened {function}"));
        assert!(
            text.contains("/heap\" was closed at list.c:3"),
            "{function}: {text}"
        );
    }
}

#[test]
fn what_is_no_heap_is_told() {
    for function in OF_HANDLES {
        let text = message(&format!("garbage {function}"));
        assert!(
            text.contains("list.c:9: nvl: 0x555555501230 is no heap"),
            "{function}: {text}"
        );
    }
    for function in OF_HANDLES.iter().filter(|name| **name != "close") {
        let text = message(&format!("null {function}"));
        assert!(
            text.contains("list.c:9: nvl: the heap is NULL"),
            "{function}: {text}"
        );
    }
}

#[test]
fn no_heap_is_closed_in_a_transaction() {
    let text = message("by_this_thread -");
    assert!(
        text.contains("list.c:3: nvl: ") && text.contains("inside of a transaction"),
        "{text}"
    );
    let text = message("by_another_thread -");
    assert!(
        text.contains("list.c:3: nvl: the heap \"")
            && text.contains("another thread is in a transaction on it that began at list.c:20"),
        "{text}"
    );
}

fn close_beside_a_transaction(heap: *mut Handle) {
    let shared = AtomicPtr::new(heap);
    thread::scope(|scope| {
        let (tell, told) = channel();
        let shared = &shared;
        scope.spawn(move || {
            let heap = shared.load(Ordering::Relaxed).cast_const();
            let mut block = std::mem::MaybeUninit::<TxBlock>::uninit();
            unsafe {
                __nvl_tx_begin_at(block.as_mut_ptr(), 0, 1, &raw const heap, FILE.as_ptr(), 20);
            }
            tell.send(()).unwrap();
            loop {
                thread::park();
            }
        });
        told.recv().unwrap();
        unsafe { nvl_close_at(heap, FILE.as_ptr(), CLOSED_LINE) };
    });
}

/// Threads call a function again and again until the heap is closed: they are told, at whatever moment that is.
fn close_beside_functions(heap: *mut Handle, node: *mut Node, function: &str) {
    let (heaps, nodes) = (AtomicPtr::new(heap), AtomicPtr::new(node));
    thread::scope(|scope| {
        let (tell, told) = channel();
        for _ in 0..3 {
            let (heaps, nodes, tell) = (&heaps, &nodes, tell.clone());
            scope.spawn(move || {
                let (heap, node) = (heaps.load(Ordering::Relaxed), nodes.load(Ordering::Relaxed));
                let mut calls = 0u64;
                loop {
                    unsafe {
                        match function {
                            "alloc" => drop(__nvl_alloc(heap, 1, 32, NODE.as_ptr())),
                            "get_root" => drop(__nvl_get_root(heap, NODE.as_ptr())),
                            "collect" => drop(nvl_collect(heap)),
                            "persist" => __nvl_persist(node.cast(), 8),
                            "check_same" => {
                                __nvl_check_same(node.cast(), (&raw const (*node).next).cast());
                            }
                            "tx_begin" => transaction(heap, |_| ()),
                            other => panic!("{other}"),
                        }
                    }
                    calls += 1;
                    if calls == 20 {
                        tell.send(()).unwrap();
                    }
                }
            });
        }
        told.recv().unwrap();
        unsafe { nvl_close_at(heap, FILE.as_ptr(), CLOSED_LINE) };
        loop {
            thread::park();
        }
    });
}

#[test]
fn who_uses_a_heap_while_it_is_closed_is_told() {
    for function in [
        "alloc",
        "get_root",
        "collect",
        "persist",
        "check_same",
        "tx_begin",
    ] {
        for _ in 0..4 {
            let text = message(&format!("racing {function}"));
            let is_told = text.contains("/heap\" was closed at list.c:3")
                || text.contains("/heap\" is closed while another thread is in a transaction");
            assert!(is_told, "{function}: {text}");
        }
    }
}

/// Heaps that are opened and closed do not concern those who use others.
#[test]
fn other_heaps_come_and_go() {
    for engine in ENGINES {
        let place = Place::new(engine);
        let root = place.node(0);
        place.set_root(root);
        let is_over = AtomicBool::new(false);
        let (heap, shared) = (AtomicPtr::new(place.heap), AtomicPtr::new(root));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| unsafe {
                    let own = node(heap.load(Ordering::Relaxed), 1);
                    let root = shared.load(Ordering::Relaxed);
                    while !is_over.load(Ordering::Relaxed) {
                        __nvl_store_weak((&raw mut (*own).back).cast(), own.cast());
                        assert_eq!(__nvl_load_weak((&raw const (*own).back).cast()), own.cast());
                        __nvl_check_same(root.cast(), (&raw const (*root).next).cast());
                        __nvl_persist((&raw const (*own).value).cast(), 8);
                    }
                });
            }
            let mut handles = Vec::new();
            for number in 0..40 {
                handles.push(open_and_close(
                    &place.dir.path().join("other"),
                    engine,
                    number,
                ));
            }
            is_over.store(true, Ordering::Relaxed);
            handles.sort_unstable();
            handles.dedup();
            assert_eq!(handles.len(), 40, "a handle is given twice");
        });
    }
}

fn open_and_close(path: &Path, engine: Engine, number: i64) -> usize {
    let options = options(engine);
    unsafe {
        let heap = match number {
            0 => Heap::create(path, 0, 0, &options).unwrap(),
            _ => Heap::open(path, &options).unwrap(),
        };
        let root: *mut Node = __nvl_get_root(heap, NODE.as_ptr()).cast();
        if number > 0 {
            assert_eq!((*root).value, number - 1);
        }
        let next = node(heap, number);
        __nvl_set_root(heap, next.cast(), NODE.as_ptr());
        nvl_close(heap);
        heap.addr()
    }
}
