//! Cycles of counted pointers leak, are found, and are freed while the pool is closed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Barrier;

use durum::gc::{GcOptions, GcReport, collect};
use durum::typed::*;
use durum_service::{CheckOptions, CheckReport, Leaks, Severity, check};

use crate::{Place, on_each_engine, options, where_transactions_run_side_by_side};

/// The report of a store without damage, and the number of objects that leak.
fn leaks(path: &Path) -> (CheckReport, u64) {
    let report = check(path, &CheckOptions::default()).unwrap();
    assert!(report.is_sound(), "{:?}", report.findings);
    match report.pools[0].leaks {
        Leaks::Judged { objects, .. } => (report, objects),
        ref leaks => panic!("{leaks:?}"),
    }
}

/// Frees the garbage; then there is none, and every count is right.
fn clean(path: &Path) -> GcReport {
    let found = collect(path, &GcOptions::new().dry_run(true)).unwrap();
    let report = collect(path, &GcOptions::new()).unwrap();
    assert_eq!(report.pools, found.pools);
    nothing_is_wrong(path);
    let again = collect(path, &GcOptions::new()).unwrap();
    assert_eq!(
        (again.objects(), again.husks(), again.transactions),
        (0, 0, 0)
    );
    report
}

fn nothing_is_wrong(path: &Path) {
    let (report, lost) = leaks(path);
    assert_eq!((lost, report.findings), (0, Vec::new()));
}

/// All files below a directory.
fn contents(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(contents(&path)),
            false => {
                files.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

/// A node of a graph of each kind of counted pointer.
macro_rules! nodes {
    ($counted:ident, $kind:ident) => {
        durum::pool!(P);

        #[derive(PSafe)]
        #[repr(C)]
        struct Node {
            value: u64,
            next: PRefCell<Option<$counted<Node, P>>, P>,
            other: PRefCell<Option<$counted<Node, P>>, P>,
            weak: PRefCell<Option<PWeak<Node, P, $kind>>, P>,
            text: PString<P>,
            numbers: PVec<u64, P>,
            more: PVec<$counted<Node, P>, P>,
            boxed: Option<Pbox<Inner, P>>,
        }

        #[derive(PSafe)]
        #[repr(C)]
        struct Inner {
            node: PRefCell<Option<$counted<Node, P>>, P>,
            text: PString<P>,
        }

        #[derive(PSafe, Root)]
        #[repr(C)]
        struct Root {
            node: PRefCell<Option<$counted<Node, P>>, P>,
            weak: PRefCell<Option<PWeak<Node, P, $kind>>, P>,
            second_weak: PRefCell<Option<PWeak<Node, P, $kind>>, P>,
        }

        #[allow(dead_code, reason = "not every test uses it")]
        fn node(value: u64, j: &Journal<P>) -> $counted<Node, P> {
            let node = Node {
                value,
                next: PRefCell::new(None, j),
                other: PRefCell::new(None, j),
                weak: PRefCell::new(None, j),
                text: PString::new("", j),
                numbers: PVec::new(),
                more: PVec::new(),
                boxed: None,
            };
            $counted::new(node, j)
        }

        /// A ring of nodes; gives the first one.
        #[allow(dead_code, reason = "not every test uses it")]
        fn ring(len: u64, j: &Journal<P>) -> $counted<Node, P> {
            let first = node(0, j);
            let mut last = first.pclone(j);
            for value in 1..len {
                let next = node(value, j);
                *last.next.borrow_mut(j) = Some(next.pclone(j));
                last = next;
            }
            *last.next.borrow_mut(j) = Some(first.pclone(j));
            first
        }
    };
}

/// The tests for one kind of counted pointer.
macro_rules! garbage {
    ($module:ident, $counted:ident, $kind:ident) => {
        mod $module {
            use super::*;

            on_each_engine! {
                fn a_cycle_of_two_is_found_and_freed(engine) {
                    nodes!($counted, $kind);
                    let place = Place::new();
                    let root = P::open::<Root>(&place.path, options(engine)).unwrap();
                    P::transaction(|j| *root.node.borrow_mut(j) = Some(ring(2, j))).unwrap();
                    root.close().unwrap();
                    nothing_is_wrong(&place.path);
                    let root = P::open::<Root>(&place.path, options(engine)).unwrap();
                    let before = root.pool().usage().unwrap().free_bytes;
                    P::transaction(|j| *root.node.borrow_mut(j) = None).unwrap();
                    root.close().unwrap();

                    let (report, lost) = leaks(&place.path);
                    assert_eq!((lost, report.pools[0].in_cycles), (2, 2));
                    let found: Vec<_> = report
                        .findings
                        .iter()
                        .filter(|finding| finding.severity == Severity::Leak)
                        .collect();
                    assert_eq!(found.len(), 2);
                    assert!(found[0].text.contains("cycle of counted pointers"), "{}", found[0]);
                    let report = clean(&place.path);
                    assert_eq!((report.objects(), report.husks(), report.transactions), (2, 0, 1));

                    let root = P::open::<Root>(&place.path, options(engine)).unwrap();
                    assert!(root.pool().usage().unwrap().free_bytes >= before);
                    P::transaction(|j| *root.node.borrow_mut(j) = Some(node(7, j))).unwrap();
                    assert_eq!(root.node.borrow().as_ref().unwrap().value, 7);
                    root.close().unwrap();
                    nothing_is_wrong(&place.path);
                }

                fn a_cycle_of_one_is_freed(engine) {
                    nodes!($counted, $kind);
                    let place = Place::new();
                    let root = P::open::<Root>(&place.path, options(engine)).unwrap();
                    P::transaction(|j| drop(ring(1, j))).unwrap();
                    root.close().unwrap();
                    assert_eq!(clean(&place.path).objects(), 1);
                }

                fn what_lives_no_longer_counts_the_pointers_of_garbage(engine) {
                    nodes!($counted, $kind);
                    let place = Place::new();
                    let root = P::open::<Root>(&place.path, options(engine)).unwrap();
                    P::transaction(|j| {
                        let live = node(9, j);
                        let ring = ring(3, j);
                        *ring.other.borrow_mut(j) = Some(live.pclone(j));
                        *ring.weak.borrow_mut(j) = Some(live.downgrade(j));
                        *root.node.borrow_mut(j) = Some(live);
                    })
                    .unwrap();
                    root.close().unwrap();
                    assert_eq!(leaks(&place.path).1, 3);
                    assert_eq!(clean(&place.path).objects(), 3);
                    let root = P::open::<Root>(&place.path, options(engine)).unwrap();
                    P::transaction(|j| {
                        let live = root.node.borrow().as_ref().unwrap().strong_count(j);
                        assert_eq!(live, 1);
                        *root.node.borrow_mut(j) = None;
                    })
                    .unwrap();
                    root.close().unwrap();
                    // It went with its last pointer.
                    let (report, _) = leaks(&place.path);
                    assert_eq!(report.pools[0].objects, 1);
                }

                fn live_weak_pointers_into_a_cycle_find_nothing_afterwards(engine) {
                    nodes!($counted, $kind);
                    let place = Place::new();
                    let root = P::open::<Root>(&place.path, options(engine)).unwrap();
                    P::transaction(|j| {
                        let ring = ring(3, j);
                        let second = ring.next.borrow().as_ref().unwrap().pclone(j);
                        *root.weak.borrow_mut(j) = Some(ring.downgrade(j));
                        *root.second_weak.borrow_mut(j) = Some(ring.downgrade(j));
                        // One of the garbage, too.
                        *second.weak.borrow_mut(j) = Some(ring.downgrade(j));
                    })
                    .unwrap();
                    root.close().unwrap();
                    assert_eq!(leaks(&place.path).1, 3);
                    let report = clean(&place.path);
                    assert_eq!((report.objects(), report.husks()), (2, 1));
                    let root = P::open::<Root>(&place.path, options(engine)).unwrap();
                    let is_gone = |weak: &PRefCell<Option<PWeak<Node, P, $kind>>, P>| {
                        P::transaction(|j| weak.borrow().as_ref().unwrap().upgrade(j).is_none())
                    };
                    assert!(is_gone(&root.weak).unwrap() && is_gone(&root.second_weak).unwrap());
                    P::transaction(|j| *root.weak.borrow_mut(j) = None).unwrap();
                    assert!(is_gone(&root.second_weak).unwrap());
                    P::transaction(|j| *root.second_weak.borrow_mut(j) = None).unwrap();
                    root.close().unwrap();
                    nothing_is_wrong(&place.path);
                    assert_eq!(leaks(&place.path).0.pools[0].objects, 1);
                }

                fn what_a_cycle_holds_goes_with_it(engine) {
                    nodes!($counted, $kind);
                    let place = Place::new();
                    let root = P::open::<Root>(&place.path, options(engine)).unwrap();
                    let fresh = root.pool().usage().unwrap();
                    P::transaction(|j| {
                        let back = node(5, j);
                        let text = PString::new(&"long text ".repeat(2000), j);
                        let mut numbers = PVec::new();
                        (0..10_000).for_each(|number| numbers.push(number, j));
                        let mut more = PVec::new();
                        more.push(back.pclone(j), j);
                        more.push(node(6, j), j);
                        let inner = Inner {
                            node: PRefCell::new(Some(back.pclone(j)), j),
                            text: PString::new("", j),
                        };
                        let full = $counted::new(
                            Node {
                                value: 4,
                                next: PRefCell::new(None, j),
                                other: PRefCell::new(None, j),
                                weak: PRefCell::new(None, j),
                                text,
                                numbers,
                                more,
                                boxed: Some(Pbox::new(inner, j)),
                            },
                            j,
                        );
                        *back.next.borrow_mut(j) = Some(full);
                    })
                    .unwrap();
                    root.close().unwrap();
                    let (report, lost) = leaks(&place.path);
                    // Two nodes, the vector and the box between them are the cycle; a node, a text and numbers hang
                    // from it.
                    assert_eq!((lost, report.pools[0].in_cycles), (7, 4));
                    assert!(report.findings.iter().any(|found| found.text.contains("held by a cycle")));
                    let report = clean(&place.path);
                    assert_eq!(report.objects(), 7);
                    assert!(report.bytes() > 100_000);
                    let root = P::open::<Root>(&place.path, options(engine)).unwrap();
                    let usage = root.pool().usage().unwrap();
                    assert!(usage.bytes - usage.free_bytes <= fresh.bytes - fresh.free_bytes + 64 * 1024);
                    root.close().unwrap();
                }

                fn in_several_transactions_each_leaves_nothing_wrong(engine) {
                    nodes!($counted, $kind);
                    let place = Place::new();
                    let root = P::open::<Root>(&place.path, options(engine)).unwrap();
                    P::transaction(|j| {
                        // Rings that lead to each other in one direction, and to what lives; a weak pointer leads to
                        // the last.
                        let live = node(9, j);
                        let mut before = ring(3, j);
                        *root.weak.borrow_mut(j) = Some(before.downgrade(j));
                        for _ in 0..20 {
                            let ring = ring(3, j);
                            *ring.weak.borrow_mut(j) = Some(before.downgrade(j));
                            *ring.other.borrow_mut(j) = Some(before);
                            let next = ring.next.borrow().as_ref().unwrap().pclone(j);
                            *next.other.borrow_mut(j) = Some(live.pclone(j));
                            before = ring;
                        }
                        *root.node.borrow_mut(j) = Some(live);
                    })
                    .unwrap();
                    root.close().unwrap();
                    assert_eq!(leaks(&place.path).1, 63);
                    let mut options = GcOptions::new();
                    options.objects_max = 7;
                    let report = collect(&place.path, &options).unwrap();
                    assert_eq!((report.objects(), report.husks()), (62, 1));
                    assert!(report.transactions > 8, "{}", report.transactions);
                    nothing_is_wrong(&place.path);
                }

                fn a_dry_run_writes_nothing(engine) {
                    nodes!($counted, $kind);
                    let place = Place::new();
                    let root = P::open::<Root>(&place.path, options(engine)).unwrap();
                    P::transaction(|j| drop(ring(4, j))).unwrap();
                    root.close().unwrap();
                    let before = contents(&place.path);
                    let report = collect(&place.path, &GcOptions::new().dry_run(true)).unwrap();
                    assert_eq!((report.objects(), report.transactions), (4, 0));
                    assert!(contents(&place.path) == before, "something was written");
                }
            }
        }
    };
}

garbage!(of_one_thread, Prc, Local);
garbage!(of_threads, Parc, Shared);

on_each_engine! {
    fn a_store_in_use_is_refused(engine) {
        nodes!(Prc, Local);
        let place = Place::new();
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        for dry_run in [false, true] {
            let error = collect(&place.path, &GcOptions::new().dry_run(dry_run)).unwrap_err();
            assert!(
                matches!(error, durum::Error::Store(durum_service::Error::StoreBusy { .. })),
                "{error}"
            );
        }
        root.close().unwrap();
        let error = collect(&place.path, &GcOptions::new().pool("other")).unwrap_err();
        assert!(
            matches!(error, durum::Error::Store(durum_service::Error::PoolMissing { .. })),
            "{error}"
        );
        collect(&place.path, &GcOptions::new().pool("pool")).unwrap();
    }
}

on_each_engine! {
    fn a_store_that_was_not_closed_in_order_is_recovered_first(engine) {
        nodes!(Parc, Shared);
        let place = Place::new();
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            *root.node.borrow_mut(j) = Some(node(8, j));
            *root.weak.borrow_mut(j) = Some(ring(4, j).downgrade(j));
        })
        .unwrap();
        // What a process leaves that dies now.
        let copy = place.path.with_extension("copy");
        fs::create_dir_all(copy.join("quarantine")).unwrap();
        for (path, bytes) in contents(&place.path) {
            let path = copy.join(path.strip_prefix(&place.path).unwrap());
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        root.close().unwrap();
        let before = contents(&copy);
        let report = collect(&copy, &GcOptions::new().dry_run(true)).unwrap();
        assert_eq!((report.objects(), report.husks()), (3, 1));
        assert!(!report.recovery.was_clean);
        assert!(contents(&copy) == before, "something was written");
        let report = collect(&copy, &GcOptions::new()).unwrap();
        assert_eq!((report.objects(), report.husks()), (3, 1));
        assert!(!report.recovery.was_clean);
        nothing_is_wrong(&copy);
        let root = P::open::<Root>(&copy, options(engine)).unwrap();
        assert_eq!(root.node.borrow().as_ref().unwrap().value, 8);
        root.close().unwrap();
    }
}

/// Enumerations without a case 0: the zeros of a husk are no value of theirs.
#[derive(PSafe)]
#[repr(u8)]
enum Shape {
    Round {
        radius: u64,
    } = 3,
    #[allow(dead_code)]
    Flat = 4,
}

on_each_engine! {
    fn a_husk_need_not_fit_its_type(engine) {
        durum::pool!(P);
        let place = Place::new();
        type Root = PRefCell<Option<PWeak<Shape, P, Local>>, P>;
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let shape = Prc::<Shape, P>::new(Shape::Round { radius: 5 }, j);
            assert!(matches!(&*shape, Shape::Round { radius: 5 }));
            *root.borrow_mut(j) = Some(shape.downgrade(j));
        })
        .unwrap();
        root.close().unwrap();
        nothing_is_wrong(&place.path);
    }
}

/// Holds itself: no root has to reach it.
#[derive(PSafe)]
#[repr(C)]
struct Loop<P: PoolType> {
    itself: PMutex<Option<Parc<Loop<P>, P>>, P>,
    text: PString<P>,
}

impl<P: PoolType> Loop<P> {
    fn new(j: &Journal<P>) -> Parc<Self, P> {
        let text = PString::new("lost", j);
        let itself = PMutex::new(None, j);
        Parc::new(Loop { itself, text }, j)
    }
}

/// A store that was cut off while the last references to so many [`Loop`]s were in its list of deferred drops.
fn with_lost_references<P: PoolType>(engine: durum::Engine, count: usize) -> Place {
    let (place, image) = (Place::new(), Place::new());
    let root = P::open_no_root(&place.path, options(engine)).unwrap();
    let make = || {
        P::transaction(|j| {
            let node = Loop::<P>::new(j);
            *node.itself.lock(j) = Some(node.pclone(j));
            node.demote()
        })
        .unwrap()
    };
    let nodes: Vec<_> = (0..count).map(|_| make()).collect();
    let (promoted, dropped) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            P::transaction(|j| {
                let _nodes: Vec<_> = nodes.iter().map(|node| node.promote(j).unwrap()).collect();
                promoted.wait();
                dropped.wait();
            })
            .unwrap();
        });
        promoted.wait();
        P::transaction(|j| {
            for node in &nodes {
                *node.promote(j).unwrap().itself.lock(j) = None;
            }
        })
        .unwrap();
        let copied = Command::new("cp")
            .arg("-r")
            .arg(&place.path)
            .arg(&image.path)
            .status();
        assert!(copied.unwrap().success());
        dropped.wait();
    });
    root.close().unwrap();
    assert_eq!(objects(&place.path), 1);
    image
}

/// The objects in the pool, which are all right.
fn objects(path: &Path) -> u64 {
    let (report, lost) = leaks(path);
    assert_eq!((lost, &report.findings), (0, &Vec::new()));
    report.pools[0].objects
}

on_each_engine! {
    fn what_holds_no_element_is_not_looked_at(engine) {
        durum::pool!(P);
        /// Zero is none of them.
        #[derive(PSafe)]
        #[repr(C, u8)]
        enum Either {
            Text(PString<P>) = 1,
            Number(u64) = 2,
        }
        #[derive(PSafe, Root)]
        #[repr(C)]
        struct Root {
            row: PRefCell<PVec<Either, P>, P>,
            hashed: PRefCell<PHashMap<u64, Either, P>, P>,
            ordered: PRefCell<PBTreeMap<u64, (Either, u8), P>, P>,
        }
        let place = Place::new();
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let mut row = root.row.borrow_mut(j);
            row.reserve(10, j);
            for number in 0..5 {
                let either = || match number % 2 {
                    0 => Either::Number(number),
                    _ => Either::Text(PString::new("text", j)),
                };
                row.push(either(), j);
                root.hashed.borrow_mut(j).insert(number, either(), j);
                root.ordered.borrow_mut(j).insert(number, (either(), 1), j);
            }
            row.pop();
        })
        .unwrap();
        root.close().unwrap();
        // The root, three collections and their texts.
        assert_eq!(objects(&place.path), 10);
        nothing_is_wrong(&place.path);
    }
}

fn waits_until_its_type_is_used<P: PoolType, Q: PoolType>(engine: durum::Engine) {
    let image = with_lost_references::<P>(engine, 1);
    // The root does not reach the type, and of `Q` it has not been used.
    Q::open_no_root(&image.path, 0).unwrap().close().unwrap();
    assert_eq!(objects(&image.path), 4);
    let root = Q::open_no_root(&image.path, 0).unwrap();
    Q::transaction(|j| drop(Loop::<Q>::new(j))).unwrap();
    root.close().unwrap();
    assert_eq!(objects(&image.path), 1);
}

where_transactions_run_side_by_side! {
    fn a_lost_reference_waits_until_its_type_is_used(engine) {
        // A process that has used a type knows it for good, so each engine has pool types of its own.
        durum::pool!(P);
        durum::pool!(Q);
        durum::pool!(OnHybrid);
        durum::pool!(OnHybridLater);
        match engine {
            durum::Engine::Hybrid => waits_until_its_type_is_used::<OnHybrid, OnHybridLater>(engine),
            _ => waits_until_its_type_is_used::<P, Q>(engine),
        }
    }

    fn a_lost_reference_to_a_type_that_was_used_is_dropped_when_the_pool_is_opened(engine) {
        durum::pool!(P);
        let image = with_lost_references::<P>(engine, 1);
        P::open_no_root(&image.path, 0).unwrap().close().unwrap();
        assert_eq!(objects(&image.path), 1);
    }

    fn a_lost_reference_is_garbage(engine) {
        durum::pool!(P);
        for objects_max in [usize::MAX, 1] {
            let image = with_lost_references::<P>(engine, 3);
            let mut options = GcOptions::new();
            options.objects_max = objects_max;
            // Three references, the objects, and their texts.
            let report = collect(&image.path, &options).unwrap();
            assert_eq!(report.objects(), 9);
            assert_eq!(report.transactions, if objects_max == 1 { 9 } else { 1 });
            assert_eq!(clean(&image.path).objects(), 0);
            assert_eq!(objects(&image.path), 1);
            let root = P::open_no_root(&image.path, 0).unwrap();
            P::transaction(|j| drop(Loop::<P>::new(j))).unwrap();
            root.close().unwrap();
            assert_eq!(objects(&image.path), 1);
        }
    }
}
