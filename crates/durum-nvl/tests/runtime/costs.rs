//! Fences on Shadow, the default engine: what docs/reference/nvl-runtime.md promises.

use std::ptr::null_mut;
use std::time::Duration;

use durum::Engine;

use crate::support::*;

fn fences(what: impl FnOnce()) -> u64 {
    let before = durum::thread_counters();
    what();
    (durum::thread_counters() - before).fences
}

/// Without the thread that writes buffered transactions: it would do so on its own.
fn place() -> Place {
    let mut options = options(Engine::Shadow);
    options.store = options.store.buffered_window(Duration::from_secs(1000));
    Place::with(options)
}

#[test]
fn each_operation_costs_a_fence_or_none() {
    let place = place();
    let root = place.node(1);
    place.set_root(root);
    // The thread's first transactions make logs.
    place.set_root(null_mut());
    place.set_root(root);
    unsafe {
        let next = &raw mut (*root).next;
        let mut node = null_mut();
        assert_eq!(fences(|| node = place.node(2)), 0, "a fresh allocation");
        assert_eq!(fences(|| (*node).value = 3), 0);
        assert_eq!(fences(|| store(next, node)), 1, "the store that links it");
        assert_eq!(fences(|| store(next, node)), 0, "the same again");
        assert_eq!(fences(|| store(next, null_mut())), 1, "a store of null");
        let weak = (&raw mut (*root).back).cast();
        assert_eq!(
            fences(|| __nvl_store_weak(weak, node.cast())),
            1,
            "a weak one"
        );
        let load = || assert!(!__nvl_load_weak(weak.cast()).is_null());
        assert_eq!(fences(load), 0);
        let other = &raw mut (*root).other;
        let build = || {
            // A list is fresh until its head is linked.
            let mut list = null_mut();
            for value in 0..10 {
                let head = place.node(value);
                store(&raw mut (*head).next, list);
                list = head;
            }
            list
        };
        let mut list = null_mut();
        assert_eq!(fences(|| list = build()), 0, "a list that nothing leads to");
        assert_eq!(fences(|| store(other, list)), 1, "and its head");
        let in_one = || {
            transaction(place.heap, |_| {
                let made = place.node(5);
                store(next, made);
                __nvl_log((&raw const (*root).value).cast(), 8);
                (*root).value += 1;
                store(other, made);
                store(&raw mut (*made).next, list);
            })
        };
        assert_eq!(fences(in_one), 1, "a transaction, whatever it does");
        assert_eq!(
            fences(|| transaction(place.heap, |_| ())),
            0,
            "an empty one"
        );
        (*root).value = 8;
        assert_eq!(fences(|| __nvl_persist(root.cast(), 8)), 1, "a plain store");
        let several = || {
            for node in [list, root] {
                (*node).value += 1;
                __nvl_write_back((&raw const (*node).value).cast(), 8);
            }
            __nvl_persist(std::ptr::null(), 0);
        };
        assert_eq!(fences(several), 1, "plain stores that were noted");
        assert_eq!(fences(|| __nvl_persist(std::ptr::null(), 0)), 0, "none");
        let copied = || __nvl_copy(root.cast(), list.cast(), size_of::<Node>());
        assert_eq!(fences(copied), 1, "a struct with pointers");
    }
}

/// `cargo test --release -p durum-nvl --test runtime -- --ignored --nocapture measure`
#[test]
#[ignore = "prints times"]
fn measure() {
    const ROUNDS: u32 = 200_000;
    let time = |what: &str, body: &mut dyn FnMut()| {
        let begun = std::time::Instant::now();
        (0..ROUNDS).for_each(|_| body());
        println!(
            "{what}: {} ns",
            begun.elapsed().as_nanos() / u128::from(ROUNDS)
        );
    };
    for engine in ENGINES {
        println!("{engine:?}");
        let place = Place::new(engine);
        let root = place.node(1);
        place.set_root(root);
        let (a, b) = (place.node(2), place.node(3));
        unsafe {
            let next = &raw mut (*root).next;
            store(&raw mut (*root).other, a);
            store(&raw mut (*a).other, b);
            let mut turn = false;
            time("store of a pointer, outside", &mut || {
                turn = !turn;
                store(next, if turn { a } else { b });
            });
            transaction(place.heap, |_| {
                time("store of a pointer, in a transaction", &mut || {
                    turn = !turn;
                    store(next, if turn { a } else { b });
                });
                time("log of a word", &mut || __nvl_log(root.cast(), 8));
            });
            let weak = (&raw mut (*root).back).cast();
            __nvl_store_weak(weak, a.cast());
            time("load of a weak pointer", &mut || {
                std::hint::black_box(__nvl_load_weak(weak.cast()));
            });
            time("check of two pointers", &mut || {
                __nvl_check_same((&raw const (*a).next).cast(), a.cast());
            });
            time("allocation, outside", &mut || {
                std::hint::black_box(place.node(1));
            });
            let begun = std::time::Instant::now();
            println!(
                "collection: {} freed in {:?}",
                nvl_collect(place.heap),
                begun.elapsed()
            );
        }
    }
}

#[test]
fn a_pinned_allocation_is_durable_at_once_and_pointers_do_not_bring_it_to_zero() {
    const PINNED: u64 = 1 << 62;
    let place = place();
    let root = place.node(1);
    place.set_root(root);
    for count in [1, 1 << 14] {
        let mut pinned: *mut Node = null_mut();
        let allocate = || unsafe {
            pinned = __nvl_alloc_pinned(place.heap, count, size_of::<Node>(), NODE.as_ptr()).cast();
        };
        assert_eq!(fences(allocate), 1, "{count} nodes");
        assert_eq!(header(pinned), (PINNED, 0, count as u64));
        unsafe {
            // What stores there need not be told by a link that it has to be durable.
            assert_eq!(fences(|| __nvl_persist(pinned.cast(), 8)), 1);
            let next = &raw mut (*root).next;
            assert_eq!(fences(|| store(next, pinned)), 1);
            assert_eq!(header(pinned), (PINNED + 1, 0, count as u64));
            store(next, null_mut());
        }
        assert_eq!(header(pinned), (PINNED, 0, count as u64));
        let mut inside: *mut Node = null_mut();
        transaction(place.heap, |_| unsafe {
            inside = __nvl_alloc_pinned(place.heap, count, size_of::<Node>(), NODE.as_ptr()).cast();
            store(&raw mut (*root).next, inside);
            store(&raw mut (*root).next, null_mut());
        });
        assert_eq!(header(inside), (PINNED, 0, count as u64));
    }
}
