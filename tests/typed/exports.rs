//! Pointers from one pool to objects of another.

use durum::typed::*;

use crate::{Place, on_each_engine, options};

on_each_engine! {
    fn a_pointer_leads_into_the_other_pool_until_its_object_is_gone(engine) {
        durum::pool!(P);
        durum::pool!(Q);
        let (here, there) = (Place::new(), Place::new());
        type Here = PRefCell<PVec<Pptr<u64, P, Q>, P>, P>;
        type There = (PRefCell<Exports<u64, Q>, Q>, PRefCell<PVec<Parc<u64, Q>, Q>, Q>);
        let open_there = || Q::open::<There>(&there.path, options(engine)).unwrap();
        let from = P::open::<Here>(&here.path, options(engine)).unwrap();
        let to = open_there();
        let made = Q::transaction(|j| {
            let mut objects = to.1.borrow_mut(j);
            let mut exports = to.0.borrow_mut(j);
            [5_u64, 6, 7].map(|value| {
                let object = Parc::new(value, j);
                let pointer = exports.export(&object, j);
                objects.push(object, j);
                pointer
            })
        })
        .unwrap();
        P::transaction(|j| made.map(|pointer| from.borrow_mut(j).push(pointer, j))).unwrap();
        // One that failed has made a pointer that leads nowhere.
        let mut failed = None;
        let aborted = Q::try_transaction(|j| {
            let pointer: Pptr<u64, P, Q> = to.0.borrow_mut(j).export(&to.1.borrow()[0], j);
            Err::<(), _>(Kept(pointer))
        });
        if let Err(Kept(pointer)) = aborted {
            failed = Some(pointer);
        }
        let follow = |to: &There| {
            Q::transaction(|j| {
                let exports = to.0.borrow();
                let from = from.borrow();
                let value = |at: usize| from[at].follow(&exports, j).map(|object| *object);
                [value(0), value(1), value(2)]
            })
            .unwrap()
        };
        assert_eq!(follow(&to), [Some(5), Some(6), Some(7)]);
        to.close().unwrap();
        let to = open_there();
        assert_eq!(follow(&to), [Some(5), Some(6), Some(7)]);
        let nowhere = failed.unwrap();
        Q::transaction(|j| assert!(nowhere.follow(&to.0.borrow(), j).is_none())).unwrap();

        Q::transaction(|j| drop(to.1.borrow_mut(j).remove(1))).unwrap();
        assert_eq!(follow(&to), [Some(5), None, Some(7)]);
        // Its place is another object's, which nobody exported.
        Q::transaction(|j| {
            to.0.borrow_mut(j).purge(j);
            for value in 100..140 {
                to.1.borrow_mut(j).push(Parc::new(value, j), j);
            }
        })
        .unwrap();
        assert_eq!(to.0.borrow().len(), 2);
        assert_eq!(follow(&to), [Some(5), None, Some(7)]);
        let withdrawn = from.borrow()[0];
        for is_first in [true, false] {
            let was_there = Q::transaction(|j| to.0.borrow_mut(j).withdraw(&withdrawn));
            assert_eq!(was_there.unwrap(), is_first);
        }
        assert_eq!(follow(&to), [None, None, Some(7)]);
        let kept = Q::transaction(|j| to.1.borrow().iter().map(|kept| kept.strong_count(j)).sum());
        let kept: u64 = kept.unwrap();
        assert_eq!(kept, 42);
        let (to, report) = (to.close(), |place: &Place| {
            durum_service::check(&place.path, &Default::default()).unwrap().findings
        });
        to.unwrap();
        from.close().unwrap();
        assert_eq!((report(&here), report(&there)), (vec![], vec![]));
    }

    fn pointers_lead_between_pools_of_one_store(engine) {
        durum::pool!(P);
        durum::pool!(Q);
        durum::pool!(Another);
        let place = Place::new();
        type Here = PRefCell<Option<Pptr<u64, P, Q>>, P>;
        type There = (PRefCell<Exports<u64, Q>, Q>, PRefCell<Option<Parc<u64, Q>>, Q>);
        for round in 0..2 {
            let from = P::open::<Here>(&place.path, options(engine)).unwrap();
            let to = Q::open_in::<There>(from.store(), "log", options(engine)).unwrap();
            if round == 0 {
                let made = Q::transaction(|j| {
                    let object = Parc::new(5, j);
                    let pointer = to.0.borrow_mut(j).export(&object, j);
                    *to.1.borrow_mut(j) = Some(object);
                    pointer
                });
                let made = made.unwrap();
                P::transaction(|j| *from.borrow_mut(j) = Some(made)).unwrap();
            }
            let found = Q::transaction(|j| {
                let pointer = from.borrow().unwrap();
                pointer.follow(&to.0.borrow(), j).map(|object| *object)
            });
            assert_eq!(found.unwrap(), Some(5));
            // A pool has one type at a time, also in one program.
            for name in ["pool", "log"] {
                let twice = Another::open_in::<PRefCell<u64, Another>>(from.store(), name, 0);
                assert!(
                    matches!(twice, Err(durum::Error::Store(durum::StoreError::PoolOpen { .. }))),
                    "{name}"
                );
            }
            let missing = Another::open_in::<PRefCell<u64, Another>>(from.store(), "none", 0);
            assert!(matches!(missing, Err(durum::Error::NothingToOpen { .. })));
            // Whichever goes first: the store stays until both are gone.
            match round {
                0 => {
                    to.close().unwrap();
                    let to = Q::open_in::<There>(from.store(), "log", 0).unwrap();
                    drop(from);
                    Q::transaction(|j| assert!(to.1.borrow_mut(j).is_some())).unwrap();
                    to.close().unwrap();
                }
                _ => {
                    to.close().unwrap();
                    from.close().unwrap();
                }
            }
        }
        let report = durum_service::check(&place.path, &Default::default()).unwrap();
        assert_eq!(report.findings, []);
    }

    fn a_pointer_of_another_table_or_pool_leads_nowhere(engine) {
        durum::pool!(P);
        durum::pool!(Q);
        let (there, elsewhere) = (Place::new(), Place::new());
        type There = ([PRefCell<Exports<u64, Q>, Q>; 2], PRefCell<Option<Parc<u64, Q>>, Q>);
        let open = |place: &Place| Q::open::<There>(&place.path, options(engine)).unwrap();
        let export = |to: &There| {
            Q::transaction(|j| {
                let object = Parc::new(1, j);
                let pointer: Pptr<u64, P, Q> = to.0[0].borrow_mut(j).export(&object, j);
                *to.1.borrow_mut(j) = Some(object);
                pointer
            })
            .unwrap()
        };
        let follow = |to: &There, table: usize, pointer: Pptr<u64, P, Q>| {
            let followed = |j: &Journal<Q>| pointer.follow(&to.0[table].borrow(), j).is_some();
            Q::transaction(|j| followed(j)).unwrap()
        };
        let first = open(&there);
        let pointer = export(&first);
        assert!(follow(&first, 0, pointer) && !follow(&first, 1, pointer));
        drop(first);
        // Another pool, of the same type and with the same number.
        let second = open(&elsewhere);
        let other = export(&second);
        assert!(follow(&second, 0, other) && !follow(&second, 0, pointer));
        assert_ne!(pointer, other);
        let withdrawn = Q::transaction(|j| second.0[0].borrow_mut(j).withdraw(&pointer));
        assert!(!withdrawn.unwrap());
        drop(second);
        let first = open(&there);
        assert!(follow(&first, 0, pointer) && !follow(&first, 0, other));
        // A table that is made anew is another one.
        Q::transaction(|j| *first.0[0].borrow_mut(j) = Exports::new(j)).unwrap();
        assert!(!follow(&first, 0, pointer));
    }

    fn a_pool_that_is_only_read_is_followed_without_a_transaction(engine) {
        durum::pool!(P);
        durum::pool!(Q);
        let there = Place::new();
        type There = (PRefCell<Exports<u64, Q>, Q>, PRefCell<Option<Parc<u64, Q>>, Q>);
        let to = Q::open::<There>(&there.path, options(engine)).unwrap();
        let pointer: Pptr<u64, P, Q> = Q::transaction(|j| {
            let object = Parc::new(9, j);
            let pointer = to.0.borrow_mut(j).export(&object, j);
            *to.1.borrow_mut(j) = Some(object);
            pointer
        })
        .unwrap();
        drop(to);
        let to = Q::open::<There>(&there.path, Flags::READ_ONLY).unwrap();
        let exports = to.0.borrow();
        assert_eq!(pointer.read(&exports, to.reading().unwrap()), Some(&9));
    }
}

/// An error that carries a pointer out of a transaction that is rolled back.
struct Kept<T>(T);

impl<T> From<durum::Error> for Kept<T> {
    fn from(error: durum::Error) -> Self {
        panic!("{error}")
    }
}
