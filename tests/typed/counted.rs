//! Counted and weak pointers.

use durum::typed::*;

use crate::{Place, on_each_engine, options, where_transactions_run_side_by_side};

on_each_engine! {
    fn the_last_pointer_frees_the_object(engine) {
        durum::pool!(P);
        let place = Place::new();
        type Root = (PRefCell<Option<Prc<u64, P>>, P>, PRefCell<Option<PWeak<u64, P, Local>>, P>);
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        let volatile = P::transaction(|j| {
            let object = Prc::new(5, j);
            *root.1.borrow_mut(j) = Some(object.downgrade(j));
            assert_eq!(object.strong_count(j), 1);
            *root.0.borrow_mut(j) = Some(object.pclone(j));
            assert_eq!(object.strong_count(j), 2);
            drop(object);
        });
        volatile.unwrap();
        P::transaction(|j| {
            let weak = root.1.borrow();
            let object = weak.as_ref().unwrap().upgrade(j).unwrap();
            assert_eq!((*object, object.strong_count(j)), (5, 2));
        })
        .unwrap();
        P::transaction(|j| *root.0.borrow_mut(j) = None).unwrap();
        P::transaction(|j| assert!(root.1.borrow().as_ref().unwrap().upgrade(j).is_none())).unwrap();
        P::transaction(|j| *root.1.borrow_mut(j) = None).unwrap();
    }

    fn counts_of_threads_add_up(engine) {
        durum::pool!(P);
        let place = Place::new();
        type Slots = [PMutex<Option<Parc<u64, P>>, P>; 4];
        let root = P::open::<Slots>(&place.path, options(engine)).unwrap();
        let weak = P::transaction(|j| {
            let object = Parc::new(1, j);
            for slot in &*root {
                *slot.lock(j) = Some(object.pclone(j));
            }
            object.demote()
        })
        .unwrap();
        std::thread::scope(|scope| {
            for at in 0..4 {
                let (weak, root) = (weak.clone(), &root);
                scope.spawn(move || {
                    for turn in 0..400 {
                        let result: Result<(), durum::Error> = P::try_transaction(|j| {
                            let mut slot = root[at].lock(j);
                            match slot.take() {
                                Some(object) => drop(object),
                                None => *slot = weak.promote(j),
                            }
                            if turn % 3 == 0 { Err(durum::Error::Aborted) } else { Ok(()) }
                        });
                        assert!(result.is_ok() || turn % 3 == 0);
                    }
                });
            }
        });
        // What was dropped while another used it goes now, also where a transaction has the object in hand itself.
        P::transaction(|j| drop(weak.promote(j))).unwrap();
        P::transaction(|j| {
            let held = root.iter().filter(|slot| slot.lock(j).is_some()).count() as u64;
            match weak.promote(j) {
                Some(object) => assert_eq!(object.strong_count(j), held + 1),
                None => assert_eq!(held, 0),
            }
            root.iter().for_each(|slot| *slot.lock(j) = None);
        })
        .unwrap();
        P::transaction(|j| assert!(weak.promote(j).is_none())).unwrap();
        root.close().unwrap();
    }

    fn what_one_thread_counts_is_promoted_by_that_thread(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PRefCell<Option<Prc<PCell<u64, P>, P>>, P>>(&place.path, options(engine)).unwrap();
        let weak = P::transaction(|j| {
            let object = Prc::new(PCell::new(4, j), j);
            let weak = object.demote();
            *root.borrow_mut(j) = Some(object);
            weak
        })
        .unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| P::transaction(|j| assert!(weak.promote(j).is_none())).unwrap());
        });
        P::transaction(|j| weak.promote(j).unwrap().set(5, j)).unwrap();
        assert_eq!(root.borrow().as_ref().unwrap().get(), 5);
        root.close().unwrap();
        let _root = P::open::<PRefCell<Option<Prc<PCell<u64, P>, P>>, P>>(&place.path, 0).unwrap();
        P::transaction(|j| assert!(weak.promote(j).is_none())).unwrap();
    }
}

where_transactions_run_side_by_side! {
    fn a_last_reference_dropped_under_another_transaction_goes_when_that_ends(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PMutex<Option<Parc<u64, P>>, P>>(&place.path, options(engine)).unwrap();
        let weak = P::transaction(|j| {
            let object = Parc::new(3, j);
            let weak = object.demote();
            *root.lock(j) = Some(object);
            weak
        })
        .unwrap();
        let (promoted, dropped) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                P::transaction(|j| {
                    let object = weak.promote(j).unwrap();
                    promoted.wait();
                    dropped.wait();
                    assert_eq!((*object, object.strong_count(j)), (3, 2));
                })
                .unwrap();
            });
            promoted.wait();
            P::transaction(|j| *root.lock(j) = None).unwrap();
            dropped.wait();
        });
        P::transaction(|j| assert!(weak.promote(j).is_none())).unwrap();
    }

    fn a_fresh_object_is_its_transactions_own(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PMutex<Option<Parc<u64, P>>, P>>(&place.path, options(engine)).unwrap();
        let (send, receive) = std::sync::mpsc::channel::<VWeak<u64, P>>();
        let (tried, go_on) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            let (tried, go_on) = (&tried, &go_on);
            scope.spawn(move || {
                let weak = receive.recv().unwrap();
                P::transaction(|j| assert!(weak.promote(j).is_none())).unwrap();
                tried.wait();
                go_on.wait();
                P::transaction(|j| assert_eq!(*weak.promote(j).unwrap(), 3)).unwrap();
            });
            let sender = std::sync::Mutex::new(send);
            P::transaction(|j| {
                let object = Parc::new(3, j);
                sender.lock().unwrap().send(object.demote()).unwrap();
                assert!(object.demote().promote(j).is_some());
                tried.wait();
                *root.lock(j) = Some(object);
            })
            .unwrap();
            go_on.wait();
        });
    }
}

on_each_engine! {
    fn a_reference_costs_a_word_of_the_log(engine) {
        durum::pool!(P);

        #[derive(PSafe, Root)]
        #[repr(C)]
        struct Desk {
            kept: PRefCell<Option<Prc<u64, P>>, P>,
            weak: PRefCell<Option<PWeak<u64, P, Local>>, P>,
            other: PRefCell<Option<Prc<u64, P>>, P>,
            far: PRefCell<Option<Pbox<PCell<u64, P>, P>>, P>,
            near: PCell<u64, P>,
        }

        let logged = |transaction: &dyn Fn()| {
            let before = durum::thread_counters().bytes_logged;
            transaction();
            durum::thread_counters().bytes_logged - before
        };
        let place = Place::new();
        let desk = P::open::<Desk>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            *desk.kept.borrow_mut(j) = Some(Prc::new(1, j));
            *desk.far.borrow_mut(j) = Some(Pbox::new(PCell::new(0, j), j));
        }).unwrap();
        let kept = desk.kept.borrow();
        let (kept, far) = (kept.as_ref().unwrap(), desk.far.borrow());
        let far = far.as_ref().unwrap();
        // A word here and a word in an object.
        let two_words = logged(&|| P::transaction(|j| {
            desk.near.set(1, j);
            far.set(1, j);
        }).unwrap());
        let reference = logged(&|| P::transaction(|j| *desk.other.borrow_mut(j) = Some(kept.pclone(j))).unwrap());
        assert_eq!(reference, two_words);
        let dropped = logged(&|| P::transaction(|j| *desk.other.borrow_mut(j) = None).unwrap());
        assert_eq!(dropped, two_words);
        let weak = logged(&|| P::transaction(|j| *desk.weak.borrow_mut(j) = Some(kept.downgrade(j))).unwrap());
        assert_eq!(weak, two_words);
        // One that comes and goes costs nothing at all.
        let nothing = logged(&|| P::transaction(|j| drop(kept.pclone(j))).unwrap());
        assert_eq!(nothing, 0);
    }
}
