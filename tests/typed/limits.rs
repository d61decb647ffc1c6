//! What a hostile or careless program may do, and nothing breaks.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Barrier, Mutex};

use durum::typed::*;

use crate::{Place, on_each_engine, options, where_transactions_run_side_by_side};

/// A node of a list of any pool.
#[derive(PSafe)]
#[repr(C)]
struct Node<P: PoolType> {
    value: u64,
    next: Option<Pbox<Node<P>, P>>,
}

/// A node that is counted.
#[derive(PSafe)]
#[repr(C)]
struct Link<P: PoolType> {
    next: Option<Parc<Link<P>, P>>,
}

/// Checks a closed store: every object is reached from the root. The number of objects.
fn nothing_is_lost(place: &Place) -> u64 {
    let report =
        durum_service::check(&place.path, &durum_service::CheckOptions::default()).unwrap();
    let leaks = &report.pools[0].leaks;
    assert!(
        matches!(leaks, durum_service::Leaks::Judged { objects: 0, .. }),
        "{leaks:?}"
    );
    report.pools[0].objects
}

on_each_engine! {
    fn long_lists_are_dropped_without_recursion(engine) {
        durum::pool!(P);
        type Root = (PRefCell<Option<Pbox<Node<P>, P>>, P>, PRefCell<Option<Parc<Link<P>, P>>, P>);
        let place = Place::new();
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            for value in 0..20_000 {
                let next = root.0.borrow_mut(j).take();
                *root.0.borrow_mut(j) = Some(Pbox::new(Node { value, next }, j));
                let next = root.1.borrow_mut(j).take();
                *root.1.borrow_mut(j) = Some(Parc::new(Link { next }, j));
            }
        })
        .unwrap();
        P::transaction(|j| {
            assert_eq!(root.0.borrow().as_ref().unwrap().value, 19_999);
            assert!(root.1.borrow().as_ref().unwrap().next.is_some());
            *root.0.borrow_mut(j) = None;
            *root.1.borrow_mut(j) = None;
        })
        .unwrap();
        root.close().unwrap();
        assert_eq!(nothing_is_lost(&place), 1);
    }

    fn odd_sizes_have_addresses_of_their_own(engine) {
        #[derive(PSafe)]
        #[repr(C, align(64))]
        struct Wide(u8);
        durum::pool!(P);
        let place = Place::new();
        type Root = PRefCell<PVec<Pbox<Wide, P>, P>, P>;
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let (a, b) = (Pbox::new((), j), Pbox::<(), P>::new((), j));
            assert_ne!(a.as_ptr(), b.as_ptr());
            assert_eq!(size_of::<Option<Pbox<(), P>>>(), 8);
            let mut empties = PVec::<(), P>::new();
            (0..5).for_each(|_| empties.push((), j));
            assert_eq!((empties.len(), empties.pop()), (5, Some(())));
            for number in 0..10 {
                root.borrow_mut(j).push(Pbox::new(Wide(number), j), j);
            }
        })
        .unwrap();
        for (number, wide) in root.borrow().iter().enumerate() {
            assert_eq!(wide.0 as usize, number);
            assert_eq!(wide.as_ptr().addr() % 64, 0);
        }
    }

    fn an_inner_panic_that_is_caught_dooms_the_outer_transaction(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap();
        let root = &*root;
        let result = P::transaction(|j| {
            root.set(1, j);
            let inner = catch_unwind(AssertUnwindSafe(|| P::transaction(|_| panic!("inside"))));
            assert!(inner.is_err());
            assert!(P::transaction(|_| ()).is_err());
        });
        assert!(matches!(result, Err(durum::Error::Aborted)));
        assert_eq!(root.get(), 0);
    }

    fn a_transaction_in_a_destructor_while_unwinding_is_rolled_back_too(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap();
        struct Late<'a>(&'a PCell<u64, P>);
        impl Drop for Late<'_> {
            fn drop(&mut self) {
                let cell = self.0;
                P::transaction(|j| cell.set(9, j)).unwrap();
            }
        }
        let caught = catch_unwind(|| {
            P::transaction(|_| {
                let _late = Late(&root);
                panic!("first");
            })
        });
        assert!(caught.is_err());
        assert_eq!(root.get(), 0);
    }

    fn an_allocation_that_cannot_be_is_an_error_of_the_transaction(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PRefCell<PVec<u64, P>, P>>(&place.path, options(engine)).unwrap();
        let result = P::transaction(|j| {
            root.borrow_mut(j).push(1, j);
            root.borrow_mut(j).reserve(1 << 45, j);
        });
        assert!(matches!(result, Err(durum::Error::ObjectSize { .. })), "{result:?}");
        assert!(root.borrow().is_empty());
        P::transaction(|j| root.borrow_mut(j).push(2, j)).unwrap();
        assert_eq!(*root.borrow(), [2]);
    }

    fn a_mutex_is_locked_once_by_a_transaction(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PMutex<u64, P>>(&place.path, options(engine)).unwrap();
        let twice = catch_unwind(|| {
            P::transaction(|j| {
                let _first = root.lock(j);
                let _second = root.lock(j);
            })
        });
        assert!(twice.is_err());
        P::transaction(|j| {
            *root.lock(j) += 1;
            *root.lock(j) += 1;
            std::mem::forget(root.lock(j));
        })
        .unwrap();
        P::transaction(|j| assert_eq!(*root.lock(j), 2)).unwrap();
    }

    fn a_store_is_open_under_one_type_only(engine) {
        durum::pool!(P);
        durum::pool!(Q);
        let place = Place::new();
        let root = P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap();
        let other = Q::open::<PCell<u64, Q>>(&place.path, 0);
        assert!(matches!(&other, Err(durum::Error::Store(durum::StoreError::StoreBusy { .. }))), "{other:?}");
        drop(root);
        Q::open::<PCell<u64, Q>>(&place.path, 0).unwrap();
    }

    fn many_threads_share_counted_objects_and_abort(engine) {
        durum::pool!(P);
        let place = Place::new();
        type Root = [PMutex<PVec<Parc<u64, P>, P>, P>; 4];
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            for value in 0..8 {
                let object = Parc::new(value, j);
                root.iter().for_each(|held| held.lock(j).push(object.pclone(j), j));
            }
        })
        .unwrap();
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let root = &root;
                scope.spawn(move || {
                    let mut random = thread + 1;
                    for _ in 0..300 {
                        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let (mut from, mut to) = ((random >> 40) as usize % 4, (random >> 50) as usize % 4);
                        if from > to {
                            std::mem::swap(&mut from, &mut to);
                        }
                        let (pick, aborts) = ((random >> 20) as usize, (random >> 60) % 3 == 0);
                        let _: durum::Result<()> = P::try_transaction(|j| {
                            let picked = {
                                let from = root[from].lock(j);
                                from.get(pick % from.len().max(1)).map(|object| object.pclone(j))
                            };
                            let mut to = root[to].lock(j);
                            if let Some(object) = picked {
                                to.push(object, j);
                            }
                            if to.len() > 6 {
                                let at = pick % to.len();
                                drop(to.swap_remove(at));
                            }
                            if aborts { Err(durum::Error::Aborted) } else { Ok(()) }
                        });
                    }
                });
            }
        });
        P::transaction(|j| {
            let mut held = [0u64; 8];
            for list in &*root {
                list.lock(j).iter().for_each(|object| held[**object as usize] += 1);
            }
            for list in &*root {
                for object in list.lock(j).iter() {
                    assert_eq!(object.strong_count(j), held[**object as usize]);
                }
            }
        })
        .unwrap();
        root.close().unwrap();
        nothing_is_lost(&place);
    }

    fn words_are_ordered_without_a_log(engine) {
        durum::pool!(P);
        #[derive(PSafe, Root)]
        #[repr(C)]
        struct Ring {
            entries: [LogFree<u64, P>; 4],
            head: LogFree<u64, P>,
        }
        let place = Place::new();
        let root = P::open::<Ring>(&place.path, options(engine)).unwrap();
        let aborted: durum::Result<()> = P::try_transaction(|j| {
            for (number, entry) in root.entries.iter().enumerate() {
                // SAFETY: an entry counts when the head says so, which comes after it.
                unsafe {
                    entry.publish(7, j)?;
                    root.head.publish(number as u64 + 1, j)?;
                }
            }
            Err(durum::Error::Aborted)
        });
        assert!(aborted.is_err());
        assert_eq!(root.head.get(), 4);
        assert!(root.entries.iter().all(|entry| entry.get() == 7));
        root.close().unwrap();
        let root = P::open::<Ring>(&place.path, 0).unwrap();
        assert_eq!(root.head.get(), 4);
    }

    fn a_typed_transaction_is_no_part_of_an_untyped_one(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap();
        let outer: durum::Result<()> = root.pool().transaction(|_| {
            let inner = P::transaction(|j| root.set(1, j));
            assert!(matches!(inner, Err(durum::Error::TypedInside { .. })), "{inner:?}");
            Ok(())
        });
        outer.unwrap();
        assert_eq!(root.get(), 0);
        P::transaction(|j| root.set(2, j)).unwrap();
        assert_eq!(root.get(), 2);
    }

    fn what_was_rolled_back_is_not_promoted(engine) {
        durum::pool!(P);
        #[derive(Debug)]
        struct Refused<T>(Option<T>);
        impl<T> From<durum::Error> for Refused<T> {
            fn from(_: durum::Error) -> Self {
                Self(None)
            }
        }
        let place = Place::new();
        let _root = P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap();
        let local: Result<(), Refused<VWeak<u64, P, Local>>> = P::try_transaction(|j| Err(Refused(Some(Prc::new(9, j).demote()))));
        let shared: Result<(), Refused<VWeak<u64, P>>> = P::try_transaction(|j| Err(Refused(Some(Parc::new(9, j).demote()))));
        let (local, shared) = (local.unwrap_err().0.unwrap(), shared.unwrap_err().0.unwrap());
        P::transaction(|j| {
            let others = [Pbox::new([1u64, 0, 0xdead], j), Pbox::new([1u64, 0, 0xdead], j)];
            assert!(local.promote(j).is_none() && shared.promote(j).is_none());
            drop(others);
        })
        .unwrap();
    }

    fn a_walk_along_counted_pointers_leaves_nothing_to_do(engine) {
        durum::pool!(P);
        #[derive(PSafe)]
        #[repr(C)]
        struct Step {
            number: u64,
            next: Option<Prc<Step, P>>,
        }
        let place = Place::new();
        let root = P::open::<PRefCell<Option<Prc<Step, P>>, P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            for number in 0..100 {
                let next = root.borrow_mut(j).take();
                *root.borrow_mut(j) = Some(Prc::new(Step { number, next }, j));
            }
        })
        .unwrap();
        let before = durum::thread_counters();
        let kept = P::transaction(|j| {
            let mut at = root.borrow().pclone(j);
            let mut steps = 0;
            let mut kept = None;
            while let Some(step) = at {
                steps += 1;
                if step.number == 50 {
                    // One that is cloned and kept does count.
                    kept = Some(step.pclone(j));
                }
                at = step.next.pclone(j);
            }
            assert_eq!(kept.as_ref().unwrap().strong_count(j), 2);
            *root.borrow_mut(j) = kept;
            steps
        });
        assert_eq!(kept.unwrap(), 100);
        assert!((durum::thread_counters() - before).fences > 0);
        root.close().unwrap();
        // The root object and the steps 0 to 50.
        assert_eq!(nothing_is_lost(&place), 52);
    }

    fn a_large_object_is_not_taken_for_its_first_field(engine) {
        durum::pool!(P);
        #[derive(PSafe)]
        #[repr(C)]
        struct Large {
            first: PCell<u64, P>,
            rest: [u8; 1 << 16],
        }
        let place = Place::new();
        let root = P::open::<PRefCell<Option<Pbox<Large, P>>, P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let first = PCell::new(0, j);
            *root.borrow_mut(j) = Some(Pbox::new(Large { first, rest: [0; 1 << 16] }, j));
        })
        .unwrap();
        let aborted: durum::Result<()> = P::try_transaction(|j| {
            let mut large = root.borrow_mut(j);
            let large = large.as_mut().unwrap();
            large.first.set(1, j);
            large.rest[1000] = 1;
            Err(durum::Error::Aborted)
        });
        assert!(aborted.is_err());
        let large = root.borrow();
        let large = large.as_ref().unwrap();
        assert_eq!((large.first.get(), large.rest[1000]), (0, 0));
    }
}

on_each_engine! {
    fn a_value_without_bytes_is_written_to(engine) {
        durum::pool!(P);

        #[derive(PSafe, Root)]
        #[repr(C)]
        struct Desk {
            none: PRefCell<[Pbox<u64, P>; 0], P>,
            some: PRefCell<Option<Pbox<u64, P>>, P>,
        }

        let place = Place::new();
        let desk = P::open::<Desk>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let mut none = desk.none.borrow_mut(j);
            none.reverse();
            *desk.some.borrow_mut(j) = Some(Pbox::new(1, j));
            none.reverse();
        })
        .unwrap();
        assert_eq!(desk.some.borrow().as_deref(), Some(&1));
    }
}

where_transactions_run_side_by_side! {
    fn the_last_reference_to_what_another_transaction_uses_waits(engine) {
        durum::pool!(P);
        let place = Place::new();
        type Root = (PMutex<Option<Parc<Link<P>, P>>, P>, PMutex<Option<Parc<Link<P>, P>>, P>);
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        for keeps in [false, true] {
            let weak = P::transaction(|j| {
                let tail = Parc::new(Link { next: None }, j);
                let head = Parc::new(Link { next: Some(tail) }, j);
                let weak = head.demote();
                *root.0.lock(j) = Some(head);
                weak
            })
            .unwrap();
            let (promoted, dropped) = (Barrier::new(2), Barrier::new(2));
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    P::transaction(|j| {
                        let head = weak.promote(j).unwrap();
                        promoted.wait();
                        dropped.wait();
                        // Nobody else holds it, and it is all there.
                        assert!(head.next.as_ref().unwrap().next.is_none());
                        if keeps {
                            *root.1.lock(j) = Some(head);
                        }
                    })
                    .unwrap();
                });
                promoted.wait();
                P::transaction(|j| *root.0.lock(j) = None).unwrap();
                dropped.wait();
            });
            // Some transaction that changes counts makes the deferred drop.
            P::transaction(|j| drop(Parc::<u64, P>::new(0, j))).unwrap();
            P::transaction(|j| match weak.promote(j) {
                Some(head) => assert!(keeps && head.strong_count(j) == 2),
                None => assert!(!keeps),
            })
            .unwrap();
        }
        root.close().unwrap();
        nothing_is_lost(&place);
    }

    fn threads_that_wait_for_each_other_are_found(engine) {
        durum::pool!(P);
        let place = Place::new();
        // Tests are built with `debug_assertions`, where they are looked for without being asked.
        let root = P::open::<[PMutex<u64, P>; 3]>(&place.path, options(engine)).unwrap();
        // Two, and three in a ring.
        for count in [2, 3] {
            let locked = Barrier::new(count);
            let told = Mutex::new(Vec::new());
            std::thread::scope(|scope| {
                for first in 0..count {
                    let (root, locked, told) = (&root, &locked, &told);
                    scope.spawn(move || {
                        let caught = catch_unwind(AssertUnwindSafe(|| {
                            P::transaction(|j| {
                                let mine = root[first].lock(j);
                                locked.wait();
                                assert_eq!((*mine, *root[(first + 1) % count].lock(j)), (0, 0));
                            })
                        }));
                        if let Err(panic) = caught {
                            told.lock().unwrap().push(panic.downcast_ref::<String>().unwrap().clone());
                        }
                    });
                }
            });
            // One of them gives up, and the others go on.
            let told = told.into_inner().unwrap();
            assert_eq!(told.len(), 1, "{told:?}");
            for (number, mutex) in root.iter().enumerate() {
                let name = format!("PMutex<u64> of pool P at {mutex:p}");
                assert_eq!(told[0].matches(&name).count(), usize::from(number < count), "{number}: {told:?}");
            }
        }
    }

    fn threads_that_wait_for_each_other_in_two_pools_are_found(engine) {
        durum::pool!(P);
        durum::pool!(Q);
        let (one, other) = (Place::new(), Place::new());
        let p = P::open::<PMutex<u64, P>>(&one.path, options(engine)).unwrap();
        let q = Q::open::<PMutex<u64, Q>>(&other.path, options(engine)).unwrap();
        let locked = Barrier::new(2);
        let p_first = || {
            P::transaction(|j| {
                let _mine = p.lock(j);
                locked.wait();
                Q::transaction(|j| *q.lock(j)).unwrap()
            })
        };
        let q_first = || {
            Q::transaction(|j| {
                let _mine = q.lock(j);
                locked.wait();
                P::transaction(|j| *p.lock(j)).unwrap()
            })
        };
        let found = std::thread::scope(|scope| {
            let other = scope.spawn(|| catch_unwind(AssertUnwindSafe(q_first)).is_err());
            let one = catch_unwind(AssertUnwindSafe(p_first)).is_err();
            [one, other.join().unwrap()]
        });
        assert_eq!(found.iter().filter(|found| **found).count(), 1);
    }
}
