//! Guards that were forgotten: what the words beside the cells keep saying says nothing about what lies there later.

use std::mem::forget;
use std::sync::{Barrier, Mutex};

use durum::typed::*;

use crate::{Place, on_each_engine, options};

on_each_engine! {
    fn an_object_in_the_place_of_another_is_not_borrowed(engine) {
        durum::pool!(P);
        type Root = PRefCell<Option<Pbox<PRefCell<u64, P>, P>>, P>;
        let place = Place::new();
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        let mut places = Vec::new();
        for number in 0..100 {
            let at = P::transaction(|j| {
                let made = Pbox::new(PRefCell::new(number, j), j);
                *made.borrow_mut(j) += 1;
                forget(made.borrow());
                let at = made.as_ptr().addr();
                *root.borrow_mut(j) = Some(made);
                at
            })
            .unwrap();
            places.push(at);
            P::transaction(|j| drop(root.take(j))).unwrap();
        }
        places.sort_unstable();
        places.dedup();
        assert!(places.len() < 100, "places are used again");
    }

    fn an_element_in_the_place_of_another_is_not_borrowed(engine) {
        durum::pool!(P);
        type Root = PRefCell<PVec<PRefCell<u64, P>, P>, P>;
        let place = Place::new();
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let mut all = root.borrow_mut(j);
            (0..4).for_each(|number| all.push(PRefCell::new(number, j), j));
            // What is borrowed moves on, and its place is another's.
            forget(all[2].borrow());
            all.remove(0);
            *all[2].borrow_mut(j) += 10;
            forget(all[2].borrow());
            all.pop();
            all.push(PRefCell::new(7, j), j);
            *all[2].borrow_mut(j) += 10;
            forget(all[0].borrow());
            all.swap(0, 1);
            *all[0].borrow_mut(j) += 10;
            forget(all[0].borrow());
            all.insert(0, PRefCell::new(5, j), j);
            *all[0].borrow_mut(j) += 10;
            all.iter().for_each(|cell| forget(cell.borrow()));
            // All of them move to another place, and what grows there later does not find it borrowed.
            all.reserve(100, j);
            all.iter().for_each(|cell| *cell.borrow_mut(j) += 100);
        })
        .unwrap();
        let found: Vec<u64> = root.borrow().iter().map(|cell| *cell.borrow()).collect();
        assert_eq!(found, [115, 112, 101, 117]);
    }

    fn entries_of_maps_in_the_place_of_others_are_not_borrowed(engine) {
        durum::pool!(P);
        type Cell = PRefCell<u64, P>;
        type Root = PRefCell<(PHashMap<u64, Cell, P>, PBTreeMap<u64, Cell, P>), P>;
        let place = Place::new();
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        for round in 0..3 {
            P::transaction(|j| {
                let (hashed, ordered) = &mut *root.borrow_mut(j);
                for key in 0..50 {
                    hashed.insert(key, PRefCell::new(0, j), j);
                    ordered.insert(key, PRefCell::new(0, j), j);
                    for cell in hashed.values().chain(ordered.values()) {
                        forget(cell.try_borrow());
                    }
                }
                for key in 0..50 {
                    hashed.insert(key, PRefCell::new(1, j), j);
                    *hashed[&key].borrow_mut(j) += 1;
                    *ordered.get_mut(&key).unwrap() = PRefCell::new(1, j);
                    *ordered[&key].borrow_mut(j) += 1;
                    assert_eq!((*hashed[&key].borrow(), *ordered[&key].borrow()), (2, 2), "{round}");
                }
                for key in 0..50 {
                    hashed.remove(&key);
                    ordered.remove(&key);
                }
            })
            .unwrap();
        }
    }

    fn a_value_that_is_assigned_is_not_borrowed(engine) {
        durum::pool!(P);
        #[derive(PSafe)]
        #[repr(C)]
        struct Inner {
            number: u64,
            cell: PRefCell<u64, P>,
        }
        let place = Place::new();
        let root = P::open::<(PRefCell<PRefCell<u64, P>, P>, PMutex<PRefCell<u64, P>, P>)>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let mut inner = root.0.borrow_mut(j);
            forget(inner.borrow());
            assert!(inner.try_borrow_mut(j).is_err());
            *inner = PRefCell::new(1, j);
            *inner.borrow_mut(j) += 1;
            forget(inner.borrow());
            *inner = PRefCell::new(2, j);
            *inner.borrow_mut(j) += 1;

            let mut inner = root.1.lock(j);
            forget(inner.borrow());
            *inner = PRefCell::new(1, j);
            forget(inner.borrow());
            *inner = PRefCell::new(2, j);
            *inner.borrow_mut(j) += 1;

            let mut boxed = Pbox::<Inner, P>::new(Inner { number: 0, cell: PRefCell::new(0, j) }, j);
            forget(boxed.cell.borrow());
            boxed.number += 1;
            *boxed.cell.borrow_mut(j) += 1;
            assert_eq!((boxed.number, *boxed.cell.borrow()), (1, 1));
        })
        .unwrap();
    }

    fn a_mutex_in_the_place_of_a_locked_one_is_another_one(engine) {
        durum::pool!(P);
        type Root = PMutex<PVec<PMutex<u64, P>, P>, P>;
        let place = Place::new();
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        P::transaction(|j| root.lock(j).push(PMutex::new(0, j), j)).unwrap();
        P::transaction(|j| {
            let mut all = root.lock(j);
            forget(all[0].lock(j));
            all.clear();
            all.push(PMutex::new(0, j), j);
            *all[0].lock(j) += 1;
            forget(all[0].lock(j));
            all[0] = PMutex::new(1, j);
            *all[0].lock(j) += 1;
        })
        .unwrap();
        P::transaction(|j| assert_eq!(*root.lock(j)[0].lock(j), 2)).unwrap();
    }

    fn a_cell_in_the_place_of_a_locked_mutex_is_not_unlocked_for_it(engine) {
        durum::pool!(P);
        #[derive(PSafe, Root)]
        #[repr(C, u64)]
        enum Either {
            #[default]
            None,
            Mutex(PMutex<u64, P>),
            Cell(PRefCell<u64, P>),
        }
        let place = Place::new();
        let root = P::open::<PRefCell<Either, P>>(&place.path, options(engine)).unwrap();
        let kept = Mutex::new(None);
        P::transaction(|j| {
            let mut either = root.borrow_mut(j);
            *either = Either::Mutex(PMutex::new(1, j));
            if let Either::Mutex(mutex) = &*either {
                assert_eq!(*mutex.lock(j), 1);
            }
            *either = Either::Cell(PRefCell::new(2, j));
            drop(either);
            let outer: &PRef<'_, Either> = Box::leak(Box::new(root.borrow()));
            let Either::Cell(cell) = &**outer else { panic!("a cell") };
            *kept.lock().unwrap() = Some((cell, cell.borrow()));
        })
        .unwrap();
        let (cell, guard) = kept.into_inner().unwrap().unwrap();
        P::transaction(|j| assert!(cell.try_borrow_mut(j).is_err())).unwrap();
        assert_eq!(*guard, 2);
    }

    fn a_lock_is_given_back_once(engine) {
        durum::pool!(P);
        type Root = PMutex<PVec<PMutex<u64, P>, P>, P>;
        let place = Place::new();
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        P::transaction(|j| root.lock(j).push(PMutex::new(0, j), j)).unwrap();
        let start = Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    start.wait();
                    for _ in 0..200 {
                        P::transaction(|j| {
                            let mut all = root.lock(j);
                            let old = *all[0].lock(j);
                            all[0] = PMutex::new(old, j);
                            *all[0].lock(j) += 1;
                        })
                        .unwrap();
                    }
                });
            }
        });
        P::transaction(|j| assert_eq!(*root.lock(j)[0].lock(j), 800)).unwrap();
    }
}
