//! A program of pointer stores, transactions and collections, crashed at every store, write-back and fence of the
//! runtime.
//!
//! The crashes: between an allocation and its link, inside of an implicit transaction, inside of an explicit one with
//! clauses, while garbage is freed. Each image is recovered by the service alone, checked (no damage), opened, and
//! compared as a whole with what the program had at some moment since the last store that was durable; counts are
//! exact, and after closing it nothing is left to which nothing leads.

#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "tests use heaps as compiled C does: the pointers are live, and theirs alone"
)]

use std::ffi::CStr;
use std::path::Path;
use std::ptr::null_mut;
use std::time::Duration;

use durum::{Domain, Engine};
use durum_nvl::abi::*;
use durum_nvl::{Handle, Heap, HeapOptions};
use durum_persist::record::{self, Recorder, RecorderOptions};
use durum_persist::simulate::{Plan, Rules, explore_with_recovery};
use durum_service::{CheckOptions, Embedded, Leaks, OpenOptions, Severity};

#[repr(C)]
struct Node {
    value: i64,
    next: *mut Node,
    row: *mut i64,
    back: usize,
}

const NODE: &CStr = c"nvl1 32 8 1\nstruct \"node\"(32,8){0:\"value\":i64;8:\"next\":*0;16:\"row\":*1;24:\"back\":~0;}\ni64\n";
const LONG: &CStr = c"nvl1 8 8 2\ni64\n";

/// What is reachable: for each node its value, its row, and the value of what its weak pointer leads to.
type State = Vec<(i64, Vec<i64>, Option<i64>)>;

unsafe fn state(root: *mut Node) -> State {
    let mut found: State = Vec::new();
    let mut at = root;
    while !at.is_null() {
        unsafe {
            let row = (*at).row;
            let row = match row.is_null() {
                true => Vec::new(),
                false => {
                    let count = *row.cast::<u64>().sub(6) as usize;
                    std::slice::from_raw_parts(row, count).to_vec()
                }
            };
            let back: *mut Node = __nvl_load_weak((&raw const (*at).back).cast()).cast();
            let back = (!back.is_null()).then(|| (*back).value);
            found.push(((*at).value, row, back));
            at = (*at).next;
        }
    }
    // What only weak pointers lead to is there until somebody frees it, and the next opener does.
    let values: Vec<i64> = found.iter().map(|(value, ..)| *value).collect();
    for (.., back) in &mut found {
        *back = back.filter(|value| values.contains(value));
    }
    found
}

unsafe fn node(heap: *mut Handle, value: i64) -> *mut Node {
    unsafe {
        let node: *mut Node = __nvl_alloc(heap, 1, size_of::<Node>(), NODE.as_ptr()).cast();
        (*node).value = value;
        node
    }
}

unsafe fn root(heap: *mut Handle) -> *mut Node {
    unsafe { __nvl_get_root(heap, NODE.as_ptr()).cast() }
}

unsafe fn store<T>(slot: *mut *mut T, value: *mut T) {
    unsafe { __nvl_store_ptr(slot.cast(), value.cast()) };
}

/// The steps of the program; each is one acknowledged change.
unsafe fn step(heap: *mut Handle, number: i64) {
    unsafe {
        let first = root(heap);
        match number {
            // A list, made before anything leads there.
            0 => {
                let mut list = null_mut();
                for value in [30, 20, 10] {
                    let head = node(heap, value);
                    store(&raw mut (*head).next, list);
                    list = head;
                }
                store(&raw mut (*first).next, list);
            }
            // A row that was filled by plain stores, partly inside the transaction that links it.
            1 => {
                let row: *mut i64 = __nvl_alloc(heap, 40, 8, LONG.as_ptr()).cast();
                (0..40).for_each(|index| *row.add(index) = index as i64);
                let mut block = std::mem::MaybeUninit::<TxBlock>::uninit();
                __nvl_tx_begin(block.as_mut_ptr(), 0, 1, [heap.cast_const()].as_ptr());
                __nvl_log(row.cast(), 16);
                // As it was, and otherwise.
                (*row, *row.add(1)) = (0, 100);
                store(&raw mut (*first).row, row);
                __nvl_log((&raw const (*first).value).cast(), 8);
                (*first).value = 2;
                __nvl_tx_end(block.as_mut_ptr());
            }
            2 => __nvl_store_weak((&raw mut (*first).back).cast(), (*first).next.cast()),
            // A clause and a new node, and a struct copied over another one.
            3 => {
                let mut block = std::mem::MaybeUninit::<TxBlock>::uninit();
                __nvl_tx_begin(block.as_mut_ptr(), 0, 1, [heap.cast_const()].as_ptr());
                __nvl_tx_range(block.as_mut_ptr(), 1, (*first).row.cast(), 20, 8);
                (0..20).for_each(|index| *(*first).row.add(index) = -5);
                let made = node(heap, 15);
                let second = (*first).next;
                store(&raw mut (*made).next, (*second).next);
                store(&raw mut (*second).next, made);
                __nvl_copy(
                    (&raw mut (*made).row).cast(),
                    (&raw const (*first).row).cast(),
                    16,
                );
                __nvl_tx_end(block.as_mut_ptr());
            }
            // The second node goes; a weak pointer leads to it still.
            4 => {
                let second = (*first).next;
                store(&raw mut (*first).next, (*second).next);
            }
            5 => {
                let mut block = std::mem::MaybeUninit::<TxBlock>::uninit();
                __nvl_tx_begin(block.as_mut_ptr(), 0, 1, [heap.cast_const()].as_ptr());
                store(&raw mut (*first).next, null_mut());
                __nvl_log((&raw const (*first).value).cast(), 8);
                (*first).value = 99;
                __nvl_tx_unwind(0);
                *(*first).row += 1;
                __nvl_write_back((*first).row.cast(), 8);
                __nvl_persist(null_mut(), 0);
            }
            6 => __nvl_set_root(heap, node(heap, 77).cast(), NODE.as_ptr()),
            _ => drop(nvl_collect(heap)),
        }
    }
}

const STEPS: i64 = 8;

fn options(engine: Engine, domain: Domain, base: u64) -> HeapOptions {
    let mut options = HeapOptions::default();
    options.engine = Some(engine);
    options.store = durum::StoreOptions::new()
        .domain(domain)
        .base(base)
        .checkpoint_thread(false)
        .buffered_window(Duration::from_secs(1000));
    options
}

fn no_damage(image: &Path) -> Result<u64, String> {
    let report = durum_service::check(image, &CheckOptions::default());
    let report = report.map_err(|error| error.to_string())?;
    let worst = report
        .findings
        .iter()
        .find(|one| one.severity > Severity::Leak);
    if let Some(worst) = worst {
        return Err(worst.to_string());
    }
    match report.pools.first().map(|pool| &pool.leaks) {
        Some(Leaks::Judged { objects, .. }) => Ok(*objects),
        other => Err(format!("{other:?}")),
    }
}

/// Opens what a crash left and compares it.
fn judge(image: &Path, options: &HeapOptions, allowed: &[State]) -> Result<usize, String> {
    no_damage(image)?;
    let heap = Heap::open(image, options).map_err(|error| error.to_string())?;
    let found = unsafe {
        let found = state(root(heap));
        // It is of use.
        let made = node(heap, 1000);
        store(&raw mut (*root(heap)).next, made);
        nvl_close(heap);
        found
    };
    match no_damage(image)? {
        0 => {}
        leaks => return Err(format!("{leaks} objects are lost")),
    }
    let at = allowed.iter().position(|state| *state == found);
    at.ok_or_else(|| format!("{found:?} is none of {allowed:?}"))
}

fn survives(engine: Engine, domain: Domain, rules: Rules, base: u64) {
    let dir = match domain {
        Domain::File => tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap(),
        _ => tempfile::tempdir_in("/dev/shm").unwrap(),
    };
    let path = dir.path().join("heap");
    let options = options(engine, domain, base);
    let heap = Heap::create(&path, 0, 0, &options).unwrap();
    unsafe { __nvl_set_root(heap, node(heap, 1).cast(), NODE.as_ptr()) };
    let recorder = Recorder::start(&path, RecorderOptions::default());
    let mut states = vec![unsafe { state(root(heap)) }];
    for number in 0..STEPS {
        unsafe {
            step(heap, number);
            states.push(state(root(heap)));
        }
        record::note("acknowledged", number as u64 + 1);
    }
    unsafe { nvl_close(heap) };
    let trace = recorder.stop();
    let mut plan = Plan::new(rules, base);
    let is_long = std::env::var_os("DURUM_CRASH_ALL").is_some();
    plan.points_max = (!is_long).then_some(25);
    plan.random_images = 2;
    plan.single_units_max = 3;
    plan.nested_one_in = 60;
    plan.nested_points_max = Some(4);
    let recover = |image: &Path| {
        let open = OpenOptions {
            domain: Some(domain),
            ..Default::default()
        };
        Embedded::open(image, open)
            .map(drop)
            .map_err(|error| error.to_string())
    };
    let report = explore_with_recovery(&trace, &plan, recover, |image, point| {
        let last = point.last_note("acknowledged").unwrap_or(0) as usize;
        let allowed = &states[last..states.len().min(last + 2)];
        // A thread of its own: what it keeps of the store goes away with it.
        std::thread::scope(|scope| {
            let judged = scope.spawn(|| judge(image, &options, allowed));
            judged.join().unwrap_or_else(|_| Err("a panic".into()))?;
            Ok(())
        })
    });
    match report {
        Ok(report) => println!(
            "{engine:?}: {} points, {} images",
            report.points, report.images
        ),
        Err(failure) => panic!("{engine:?} {domain:?}: {failure}"),
    }
}

#[test]
fn every_crash_on_shadow_leaves_a_whole_heap() {
    survives(Engine::Shadow, Domain::Dax, Rules::Lines, 0x3000_0000_0000);
}

#[test]
fn every_crash_on_hybrid_leaves_a_whole_heap() {
    survives(Engine::Hybrid, Domain::Dax, Rules::Lines, 0x3400_0000_0000);
}

#[test]
fn every_crash_on_twin_leaves_a_whole_heap() {
    survives(Engine::Twin, Domain::Dax, Rules::Lines, 0x3800_0000_0000);
}

#[test]
fn every_crash_on_a_file_system_leaves_a_whole_heap() {
    survives(
        Engine::Shadow,
        Domain::File,
        Rules::Sectors,
        0x3c00_0000_0000,
    );
    survives(
        Engine::Hybrid,
        Domain::File,
        Rules::Sectors,
        0x4000_0000_0000,
    );
}
