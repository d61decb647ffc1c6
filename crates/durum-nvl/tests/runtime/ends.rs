//! What breaks a rule ends the program, with a message that says where and what.

use std::os::unix::process::ExitStatusExt;
use std::ptr::null_mut;

use durum_nvl::Heap;

use crate::support::*;

const OTHER: &std::ffi::CStr = c"nvl1 32 8 00000000000000ff\nstruct \"other\"(32,8){0:\"value\":u64;8:\"next\":*0;16:\"other\":*0;24:\"back\":~0;}\n";
const FILE: &std::ffi::CStr = c"list.c";

/// What is done, by number, and words of the message.
const ENDS: [(&str, &[&str]); 14] = [
    (
        "inter_heap",
        &["list.c:26: ", "/heap\"", "/second\"", "heap to heap"],
    ),
    (
        "root_type",
        &[
            "list.c:9: ",
            "/heap\"",
            "node",
            "other",
            "checksum",
            "since then: ",
        ],
    ),
    (
        "comparison",
        &["list.c:40: ", "compared or subtracted", "node", "/heap\""],
    ),
    (
        "two_heaps_compared",
        &["list.c:40: ", "/heap\"", "/second\""],
    ),
    ("two_stores", &["list.c:50: ", "two stores", "nvl_create("]),
    ("segment", &["list.c:51: ", "clause", "node"]),
    ("cut", &["list.c:60: ", "cuts the pointer"]),
    (
        "unnamed_store",
        &[
            "list.c:72: ",
            "/second\"",
            "heap(...) of this transaction, which began at list.c:70, does not name it",
        ],
    ),
    (
        "unnamed_allocation",
        &["list.c:73: ", "/second\"", "does not name it"],
    ),
    ("unnamed_root", &["list.c:74: ", "does not name it"]),
    // The inner level names it, and has ended.
    (
        "unnamed_behind_inner",
        &["list.c:72: ", "list.c:70", "does not name it"],
    ),
    (
        "null",
        &["list.c:80: ", "a store at 0x8", "the pointer is null"],
    ),
    ("room", &["list.c:2: ", "no room", "/heap\""]),
    ("jump", &["longjmp"]),
];

#[test]
fn broken_rules_end_the_program_with_a_message() {
    for (name, words) in ENDS {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        std::fs::write(dir.path().join("end"), name).unwrap();
        let output = start("ends::program_that_breaks_a_rule", dir.path())
            .wait_with_output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(
            output.status.signal(),
            Some(libc::SIGABRT),
            "{name}: {text}"
        );
        for word in words {
            assert!(text.contains(word), "{name}: no {word:?} in {text}");
        }
        assert!(!text.contains("panicked"), "{name}: {text}");
        // Nothing of it is left.
        let heap = Heap::open(&dir.path().join("heap"), &options(durum::Engine::Shadow)).unwrap();
        unsafe {
            let root: *mut Node = __nvl_get_root(heap, NODE.as_ptr()).cast();
            assert_eq!(((*root).value, (*root).next), (1, null_mut()), "{name}");
            nvl_close(heap);
        }
    }
}

#[test]
#[ignore = "the other process of the test above"]
fn program_that_breaks_a_rule() {
    let Some(dir) = directory() else { return };
    let name = std::fs::read_to_string(dir.join("end")).unwrap();
    let options = options(durum::Engine::Shadow);
    let heap = Heap::create(&dir.join("heap"), 0, 0, &options).unwrap();
    let (a, b) = (node(heap, 1), node(heap, 2));
    let file = FILE.as_ptr();
    let mut block = std::mem::MaybeUninit::<TxBlock>::uninit();
    let block = block.as_mut_ptr();
    unsafe {
        __nvl_set_root(heap, a.cast(), NODE.as_ptr());
        let second_path = match name.as_str() {
            "two_stores" => dir.join("second"),
            _ => dir.join("heap/second"),
        };
        let second = Heap::create(&second_path, 0, 0, &options);
        let heaps = [
            heap.cast_const(),
            second.as_ref().map_or(heap.cast_const(), |heap| *heap),
        ];
        match name.as_str() {
            "inter_heap" => {
                let foreign = node(second.unwrap(), 3);
                __nvl_store_ptr_at((&raw mut (*a).next).cast(), foreign.cast(), file, 26);
            }
            "root_type" => drop(__nvl_get_root_at(heap, OTHER.as_ptr(), file, 9)),
            "comparison" => __nvl_check_same_at(a.cast(), b.cast(), file, 40),
            "two_heaps_compared" => {
                let foreign = node(second.unwrap(), 3);
                __nvl_check_same_at(a.cast(), foreign.cast(), file, 40);
            }
            "two_stores" => __nvl_tx_begin_at(block, 0, 2, heaps.as_ptr(), file, 50),
            "segment" => {
                __nvl_tx_begin(block, 0, 1, heaps.as_ptr());
                __nvl_log(a.cast(), 8);
                (*a).value = 5;
                __nvl_tx_range_at(block, 1, a.cast(), 33, 1, file, 51);
            }
            "cut" => __nvl_copy_at(a.cast(), b.cast(), 12, file, 60),
            "unnamed_store" | "unnamed_allocation" | "unnamed_root" | "unnamed_behind_inner" => {
                let b = node(second.unwrap(), 3);
                __nvl_tx_begin_at(block, 0, 1, heaps.as_ptr(), file, 70);
                match name.as_str() {
                    "unnamed_allocation" => {
                        __nvl_alloc_at(heaps[1].cast_mut(), 1, 32, NODE.as_ptr(), file, 73);
                    }
                    "unnamed_root" => {
                        __nvl_set_root_at(heaps[1].cast_mut(), b.cast(), NODE.as_ptr(), file, 74);
                    }
                    "unnamed_behind_inner" => {
                        let mut inner = std::mem::MaybeUninit::<TxBlock>::uninit();
                        __nvl_tx_begin_at(inner.as_mut_ptr(), 0, 1, &raw const heaps[1], file, 71);
                        __nvl_log(b.cast(), 8);
                        // Of the level around it.
                        __nvl_log(a.cast(), 8);
                        __nvl_tx_end(inner.as_mut_ptr());
                    }
                    _ => {}
                }
                __nvl_log_at(b.cast(), 8, file, 72);
            }
            "null" => {
                __nvl_tx_begin(block, 0, 1, heaps.as_ptr());
                __nvl_log_at(std::ptr::without_provenance(8), 8, file, 80);
            }
            "room" => drop(__nvl_alloc_at(heap, 1 << 57, 32, NODE.as_ptr(), file, 2)),
            "jump" => {
                __nvl_tx_begin(block, 0, 1, heaps.as_ptr());
                let mut inner = std::mem::MaybeUninit::<TxBlock>::uninit();
                __nvl_tx_begin(inner.as_mut_ptr(), 0, 1, heaps.as_ptr());
                __nvl_log(a.cast(), 8);
                (*a).value = 5;
                __nvl_tx_unwind(1);
                __nvl_tx_end(block);
            }
            other => panic!("{other}"),
        }
    }
    panic!("the program goes on after {name}");
}
