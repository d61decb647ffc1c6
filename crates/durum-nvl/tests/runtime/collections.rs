//! Collections: what is named anywhere stays, and nothing else.

use std::ptr::null_mut;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use durum_nvl::Heap;

use crate::support::*;

fn collect(place: &Place) -> usize {
    unsafe { nvl_collect(place.heap) }
}

/// Makes nodes that nothing names, `chain` each in a row, out of sight of the caller's registers.
#[inline(never)]
fn litter(place: &Place, count: usize, chain: usize) {
    for _ in 0..count {
        let mut list = null_mut();
        for value in 0..chain {
            let head = place.node(value as i64);
            unsafe { store(&raw mut (*head).next, list) };
            list = head;
        }
    }
}

/// Overwrites what calls have left on the stack.
#[inline(never)]
fn sweep_stack() {
    std::hint::black_box([0u8; 16 << 10]);
}

#[test]
fn litter_goes_and_what_is_named_stays() {
    for engine in ENGINES {
        let place = Place::new(engine);
        let root = place.node(1);
        place.set_root(root);
        litter(&place, 6000, 5);
        sweep_stack();
        let freed = collect(&place);
        // Words that are left over somewhere keep some: on Shadow those of the records that are not home.
        assert!((20_000..=30_000).contains(&freed), "{engine:?}: {freed}");
        // On the stack, in a box, and only by a pointer into the middle or behind the end.
        let on_stack = place.node(2);
        let boxed = Box::new(place.node(3));
        let middle =
            std::hint::black_box(unsafe { (&raw mut (*place.node(4)).other).cast::<u8>() });
        let behind = std::hint::black_box(unsafe { place.node(5).add(1) });
        let kept = place.node(6);
        unsafe { store(&raw mut (**boxed).next, kept) };
        litter(&place, 100, 2);
        sweep_stack();
        collect(&place);
        unsafe {
            assert_eq!((*std::hint::black_box(on_stack)).value, 2);
            assert_eq!((**boxed).value, 3);
            assert_eq!((*(**boxed).next).value, 6);
            assert_eq!(*middle.sub(16).cast::<i64>(), 4);
            assert_eq!((*behind.sub(1)).value, 5);
            for node in [on_stack, *boxed, behind.sub(1)] {
                assert_eq!(header(node).0, 0);
                assert_ne!(header(node).1 & LISTED, 0);
            }
        }
        assert_eq!(unsafe { (*root).value }, 1);
    }
}

#[test]
fn pointers_of_all_threads_are_found() {
    static GLOBAL: AtomicPtr<Node> = AtomicPtr::new(null_mut());
    for engine in ENGINES {
        let place = Place::new(engine);
        let heap = AtomicPtr::new(place.heap);
        let (ready, over) = (Barrier::new(7), AtomicBool::new(false));
        GLOBAL.store(place.node(77), Ordering::Relaxed);
        std::thread::scope(|scope| {
            for number in 0..6i64 {
                let (heap, ready, over) = (&heap, &ready, &over);
                scope.spawn(move || {
                    let mine = node(heap.load(Ordering::Relaxed), number);
                    match number % 3 {
                        // Nowhere but in a register, while the thread runs.
                        0 => unsafe { hold_in_register(mine, ready, over) },
                        1 => {
                            let place = std::hint::black_box([mine]);
                            ready.wait();
                            while !over.load(Ordering::Relaxed) {
                                std::thread::yield_now();
                            }
                            assert_eq!(unsafe { (*place[0]).value }, number);
                        }
                        // In memory of its own, a large block, while the thread sleeps.
                        _ => {
                            let mut block = vec![0usize; 1 << 20];
                            block[777_777] = mine.expose_provenance();
                            ready.wait();
                            while !over.load(Ordering::Relaxed) {
                                std::thread::sleep(std::time::Duration::from_millis(1));
                            }
                            let mine: *mut Node =
                                std::ptr::with_exposed_provenance_mut(block[777_777]);
                            assert_eq!(unsafe { (*mine).value }, number);
                        }
                    }
                });
            }
            ready.wait();
            litter(&place, 20_000, 1);
            sweep_stack();
            let freed = collect(&place);
            // First: threads that wait for it would wait for ever.
            over.store(true, Ordering::Relaxed);
            assert!(freed >= 10_000, "{engine:?}: {freed}");
        });
        assert_eq!(unsafe { (*GLOBAL.load(Ordering::Relaxed)).value }, 77);
    }
}

/// Keeps the pointer in one register and nowhere else until `over`; then it has to lead to the node still.
#[inline(never)]
unsafe fn hold_in_register(node: *mut Node, ready: &Barrier, over: &AtomicBool) {
    let expected = unsafe { (*node).value };
    ready.wait();
    let over = over.as_ptr();
    let value: i64;
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(
            "2:", "pause", "cmp byte ptr [{over}], 0", "je 2b", "mov {value}, [r12]",
            over = in(reg) over, value = lateout(reg) value, in("r12") node,
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    unsafe {
        while !std::ptr::read_volatile(over) {
            std::hint::spin_loop();
        }
        value = (*node).value;
    }
    assert_eq!(value, expected);
}

#[test]
fn what_an_open_transaction_of_another_thread_links_stays() {
    for engine in [durum::Engine::Shadow, durum::Engine::Hybrid] {
        let place = Place::new(engine);
        let root = place.node(1);
        place.set_root(root);
        let heap = AtomicPtr::new(place.heap);
        let root = AtomicPtr::new(root);
        let steps = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (heap, root) = (heap.load(Ordering::Relaxed), root.load(Ordering::Relaxed));
                link_and_forget(heap, root, &steps);
            });
            steps.wait();
            litter(&place, 100, 1);
            collect(&place);
            steps.wait();
        });
        let root = root.into_inner();
        unsafe {
            assert_eq!((*(*root).next).value, 42);
            assert_eq!(strong((*root).next), 1);
        }
    }

    /// Allocates before the transaction, links inside of it, and keeps no pointer but the one in the heap.
    fn link_and_forget(heap: *mut durum_nvl::Handle, root: *mut Node, steps: &Barrier) {
        #[inline(never)]
        fn link(heap: *mut durum_nvl::Handle, root: *mut Node) {
            unsafe { store(&raw mut (*root).next, *Box::new(node(heap, 42))) };
        }
        transaction(heap, |_| {
            link(heap, root);
            sweep_stack();
            steps.wait();
            steps.wait();
        });
    }
}

/// A heap on a file system that holds a sixth of what is allocated: each time that it is full, what nothing names makes
/// room.
#[test]
fn a_full_heap_is_collected_before_it_says_that_there_is_no_room() {
    const ROW: usize = 32 << 10;
    const ROWS: i64 = 1500;
    let mount = |arguments: &[&str]| {
        let status = std::process::Command::new(arguments[0])
            .args(&arguments[1..])
            .status();
        status.is_ok_and(|status| status.success())
    };
    for engine in ENGINES {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        if !mount(&["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", path]) {
            println!("skipped: mounting a small tmpfs needs root");
            return;
        }
        let filled = std::panic::catch_unwind(|| unsafe {
            let heap = Heap::create(&dir.path().join("heap"), 0, 0, &options(engine)).unwrap();
            let kept = __nvl_alloc(heap, 20, 8, SLOT.as_ptr()).cast::<*mut Node>();
            __nvl_set_root(heap, kept.cast(), SLOT.as_ptr());
            for number in 0..ROWS {
                let row = __nvl_alloc(heap, ROW, 8, LONG.as_ptr()).cast::<i64>();
                row.write(number);
                __nvl_persist(row.cast(), 8);
                if number % 100 == 0 {
                    let node = node(heap, number);
                    store(kept.add(number as usize / 100), node);
                }
            }
            for number in (0..ROWS).step_by(100) {
                let node = *kept.add(number as usize / 100);
                assert_eq!((*node).value, number, "{engine:?}");
            }
            nvl_close(heap);
        });
        assert!(mount(&["umount", "-l", path]));
        filled.unwrap();
    }
}

#[test]
fn weak_pointers_to_what_is_collected_read_null() {
    const COUNT: usize = 16;
    #[inline(never)]
    fn point(place: &Place, from: *mut Node) {
        let target = place.node(2);
        unsafe { __nvl_store_weak((&raw mut (*from).back).cast(), target.cast()) };
    }
    for engine in ENGINES {
        let place = Place::new(engine);
        let size = size_of::<Node>();
        let nodes: *mut Node =
            unsafe { __nvl_alloc(place.heap, COUNT, size, NODE.as_ptr()).cast() };
        place.set_root(nodes);
        for at in 0..COUNT {
            point(&place, unsafe { nodes.add(at) });
            litter(&place, 500, 1);
        }
        for _ in 0..4 {
            litter(&place, 10_000, 1);
            sweep_stack();
            collect(&place);
        }
        let is_gone = |at: &usize| unsafe {
            __nvl_load_weak((&raw const (*nodes.add(*at)).back).cast()).is_null()
        };
        let gone = (0..COUNT).filter(is_gone).count();
        // Words that are left over somewhere keep some, such as addresses of lines in records.
        assert!(gone > COUNT / 2, "{engine:?}: {gone}");
    }
}

/// Threads that build, read by weak pointers and drop while one collects again and again: whatever a thread has a
/// pointer to keeps its contents.
#[test]
fn collections_beside_busy_threads_free_nothing_that_is_used() {
    for engine in ENGINES {
        let place = Place::new(engine);
        let rows: *mut Node =
            unsafe { __nvl_alloc(place.heap, 8, size_of::<Node>(), NODE.as_ptr()).cast() };
        place.set_root(rows);
        let (heap, rows) = (AtomicPtr::new(place.heap), AtomicPtr::new(rows));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..3 {
                let (heap, rows, over) = (&heap, &rows, &over);
                scope.spawn(move || {
                    let heap = heap.load(Ordering::Relaxed);
                    let own = unsafe { rows.load(Ordering::Relaxed).add(thread) };
                    let mut value = thread as i64 * 1_000_000;
                    while !over.load(Ordering::Relaxed) {
                        value += 1;
                        churn(heap, own, value);
                    }
                });
            }
            let (mut freed, begun) = (0, std::time::Instant::now());
            for round in 0.. {
                freed += collect(&place);
                let is_late = begun.elapsed().as_secs() > 20;
                if round > 40 && freed > 1000 || is_late {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            over.store(true, Ordering::Relaxed);
            assert!(freed > 0, "{engine:?}");
        });
    }

    fn churn(heap: *mut durum_nvl::Handle, own: *mut Node, value: i64) {
        unsafe {
            let weak = (&raw mut (*own).back).cast();
            let before: *mut Node = __nvl_load_weak(weak).cast();
            if !before.is_null() {
                assert_eq!(
                    (*before).value,
                    value - 1,
                    "what a weak pointer gives is whole"
                );
            }
            let made = node(heap, value);
            let tail = node(heap, -value);
            store(&raw mut (*made).next, tail);
            match value % 3 {
                0 => store(&raw mut (*own).next, made),
                1 => transaction(heap, |_| {
                    store(&raw mut (*own).next, null_mut());
                    store(&raw mut (*own).other, made);
                }),
                _ => store(&raw mut (*own).other, null_mut()),
            }
            __nvl_store_weak(weak, made.cast());
            assert_eq!(((*made).value, (*(*made).next).value), (value, -value));
            if !before.is_null() {
                assert_eq!((*before).value, value - 1, "and stays so");
            }
        }
    }
}

/// More pointers in one allocation, and a longer list, than fit a transaction or a stack.
#[test]
fn large_and_deep_garbage_goes_in_pieces() {
    for engine in ENGINES {
        let mut place = Place::new(engine);
        unsafe {
            let row: *mut *mut Node = __nvl_alloc(place.heap, 5000, 8, SLOT.as_ptr()).cast();
            __nvl_set_root(place.heap, row.cast(), SLOT.as_ptr());
            transaction(place.heap, |_| {
                for index in 0..5000 {
                    store(row.add(index), place.node(1));
                }
                for _ in 0..20_000 {
                    let head = place.node(2);
                    store(&raw mut (*head).next, *row);
                    store(row, head);
                }
            });
            __nvl_set_root(place.heap, null_mut(), SLOT.as_ptr());
        }
        place.close();
        assert_eq!(
            (objects(&place.path()), leaks(&place.path())),
            (1, 0),
            "{engine:?}"
        );
        place.heap = durum_nvl::Heap::open(&place.path(), &place.options).unwrap();
    }
}
