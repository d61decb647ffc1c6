//! What safe code can still do wrong, and what becomes of it: docs/reference/safety.md tells it, this shows it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use durum::typed::*;
use durum_service::{CheckOptions, Leaks, check};

use crate::{Place, on_each_engine, options};

on_each_engine! {
    fn what_is_captured_by_shared_reference_keeps_its_changes_when_a_transaction_aborts(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap();
        let (atomic, mutex) = (AtomicU64::new(0), Mutex::new(0));
        let aborted: durum::Result<()> = P::try_transaction(|j| {
            root.set(1, j);
            atomic.store(1, Ordering::Relaxed);
            *mutex.lock().unwrap() = 1;
            Err(durum::Error::Aborted)
        });
        assert!(aborted.is_err());
        assert_eq!(root.get(), 0);
        assert_eq!((atomic.into_inner(), mutex.into_inner().unwrap()), (1, 1));
    }

    fn a_cycle_of_strong_pointers_is_a_leak_that_check_reports(engine) {
        durum::pool!(P);
        #[derive(PSafe)]
        #[repr(C)]
        struct Knot {
            next: PRefCell<Option<Prc<Knot, P>>, P>,
        }
        let place = Place::new();
        let root = P::open_no_root(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let knot = Prc::new(Knot { next: PRefCell::default() }, j);
            *knot.next.borrow_mut(j) = Some(knot.pclone(j));
        })
        .unwrap();
        root.close().unwrap();
        let report = check(&place.path, &CheckOptions::default()).unwrap();
        assert!(matches!(report.pools[0].leaks, Leaks::Judged { objects: 1, .. }), "{:?}", report.pools[0].leaks);
    }

    fn a_weak_pointer_that_is_not_in_a_cycle_lets_both_go(engine) {
        durum::pool!(P);
        #[derive(PSafe)]
        #[repr(C)]
        struct Node {
            below: PRefCell<Option<Prc<Node, P>>, P>,
            above: PRefCell<Option<PWeak<Node, P, Local>>, P>,
        }
        let place = Place::new();
        let root = P::open_no_root(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let node = || Node { below: PRefCell::default(), above: PRefCell::default() };
            let (above, below) = (Prc::new(node(), j), Prc::new(node(), j));
            *below.above.borrow_mut(j) = Some(above.downgrade(j));
            *above.below.borrow_mut(j) = Some(below);
        })
        .unwrap();
        root.close().unwrap();
        let report = check(&place.path, &CheckOptions::default()).unwrap();
        assert!(matches!(report.pools[0].leaks, Leaks::Judged { objects: 0, .. }), "{:?}", report.pools[0].leaks);
    }

    fn another_layout_behind_a_pointer_of_the_root_is_refused(engine) {
        durum::pool!(P);
        mod old {
            use super::*;
            #[derive(Debug, PSafe)]
            #[repr(C)]
            pub struct Node { pub value: u64, pub next: u64 }
        }
        mod new {
            use super::*;
            #[derive(Debug, PSafe)]
            #[repr(C)]
            pub struct Node { pub value: u32, pub other: u32, pub next: u64 }
        }
        let place = Place::new();
        let root = P::open::<PRefCell<Option<Pbox<old::Node, P>>, P>>(&place.path, options(engine)).unwrap();
        root.close().unwrap();
        let other = P::open::<PRefCell<Option<Pbox<new::Node, P>>, P>>(&place.path, 0);
        assert!(matches!(other, Err(durum::Error::RootType { .. })), "{other:?}");
    }
}
