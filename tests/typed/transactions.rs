//! Transactions, cells and boxes.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use durum::typed::*;
use durum::{Engine, Error, ErrorKind};

use crate::{Place, on_each_engine, options};

on_each_engine! {
    fn a_cell_keeps_its_value(engine) {
        durum::pool!(P);
        let place = Place::new();
        {
            let root = P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap();
            P::transaction(|j| root.set(7, j)).unwrap();
            assert_eq!(root.get(), 7);
        }
        let root = P::open::<PCell<u64, P>>(&place.path, 0).unwrap();
        assert_eq!(root.get(), 7);
    }

    fn a_panic_rolls_back(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PRefCell<Option<Pbox<u64, P>>, P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| *root.borrow_mut(j) = Some(Pbox::new(1, j))).unwrap();
        let caught = std::panic::catch_unwind(|| {
            P::transaction(|j| {
                **root.borrow_mut(j).as_mut().unwrap() = 2;
                *root.borrow_mut(j) = None;
                panic!("on purpose");
            })
        });
        assert_eq!(*caught.unwrap_err().downcast_ref::<&str>().unwrap(), "on purpose");
        assert_eq!(**root.borrow().as_ref().unwrap(), 1);
        let before = root.pool().usage().unwrap();
        for _ in 0..100 {
            P::transaction(|j| *root.borrow_mut(j) = Some(Pbox::new(1, j))).unwrap();
        }
        assert_eq!(root.pool().usage().unwrap().free_bytes, before.free_bytes);
    }

    fn an_error_rolls_back(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap();
        let result: Result<(), durum::Error> = P::try_transaction(|j| {
            root.set(5, j);
            Err(durum::Error::Aborted)
        });
        assert!(matches!(result, Err(durum::Error::Aborted)));
        assert_eq!(root.get(), 0);
    }

    fn an_inner_transaction_is_part_of_the_outer_one(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            root.set(1, j);
            P::transaction(|j| root.set(root.get() + 1, j)).unwrap();
        })
        .unwrap();
        assert_eq!(root.get(), 2);
        let doomed = P::transaction(|j| {
            root.set(9, j);
            let inner: Result<(), durum::Error> = P::try_transaction(|_| Err(durum::Error::Aborted));
            assert!(inner.is_err());
        });
        assert!(matches!(doomed, Err(durum::Error::Aborted)));
        assert_eq!(root.get(), 2);
    }

    fn two_pools_have_transactions_of_their_own(engine) {
        durum::pool!(P);
        durum::pool!(Q);
        let (place, other) = (Place::new(), Place::new());
        let p = P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap();
        let q_options = options(engine).store(durum::StoreOptions::new().base(0x3000_0000_0000));
        let q = Q::open::<PCell<u64, Q>>(&other.path, q_options).unwrap();
        let aborted: Result<(), durum::Error> = P::try_transaction(|j| {
            p.set(1, j);
            Q::transaction(|j| q.set(2, j)).unwrap();
            p.set(3, j);
            P::transaction(|j| p.set(p.get() + 1, j)).unwrap();
            assert_eq!(p.get(), 4);
            Err(durum::Error::Aborted)
        });
        assert!(aborted.is_err());
        assert_eq!((p.get(), q.get()), (0, 2));
    }

    fn a_pool_is_made_within_a_transaction_on_another_one(engine) {
        durum::pool!(P);
        durum::pool!(Q);
        let (place, other) = (Place::new(), Place::new());
        let p = P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap();
        let aborted: Result<(), durum::Error> = P::try_transaction(|j| {
            p.set(1, j);
            let q_options = options(engine).store(durum::StoreOptions::new().base(0x3000_0000_0000));
            let q = Q::open::<PCell<u64, Q>>(&other.path, q_options)?;
            Q::transaction(|j| q.set(q.get() + 2, j))?;
            p.set(p.get() + q.get(), j);
            assert_eq!(p.get(), 3);
            q.close()?;
            Err(durum::Error::Aborted)
        });
        assert!(matches!(aborted, Err(durum::Error::Aborted)), "{aborted:?}");
        let q = Q::open::<PCell<u64, Q>>(&other.path, 0).unwrap();
        assert_eq!((p.get(), q.get()), (0, 2));
    }

    fn roots_are_made_of_roots(engine) {
        durum::pool!(P);
        /// No pool is named here.
        #[derive(PSafe, Root)]
        #[repr(C)]
        pub struct Top {
            parts: [PartOfTwo<u8>; 2],
            any: Any,
        }
        #[derive(PSafe, Root)]
        #[repr(C)]
        struct PartOfTwo<T: PSafe> {
            made: PRefCell<Made, P>,
            boxed: Pbox<Made, P>,
            shared: PMutex<Prc<PCell<T, P>, P>, P>,
            word: LogFree<u32, P>,
        }
        #[derive(Clone, Copy, Debug, PartialEq, PSafe, Root)]
        #[repr(u8)]
        enum Any {
            One,
            #[default]
            Two,
        }
        #[derive(Debug, PSafe, PartialEq)]
        #[repr(C)]
        struct Made {
            text: PString<P>,
        }
        impl Root<P> for Made {
            fn init(j: &Journal<P>) -> Self {
                let text = PString::new("made", j);
                Self { text }
            }
        }
        let place = Place::new();
        drop(P::open::<Top>(&place.path, options(engine)).unwrap());
        let root = P::open::<Top>(&place.path, 0).unwrap();
        assert_eq!(root.any, Any::Two);
        P::transaction(|j| {
            for part in &root.parts {
                assert_eq!((part.made.borrow().text.as_str(), part.boxed.text.as_str()), ("made", "made"));
                assert_eq!((part.shared.lock(j).get(), part.word.get()), (0, 0));
            }
        })
        .unwrap();
    }

    fn a_pool_type_has_one_pool_at_a_time(engine) {
        durum::pool!(P);
        let (place, other) = (Place::new(), Place::new());
        assert!(matches!(P::transaction(|_| ()), Err(durum::Error::NotOpen { .. })));
        let root = P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap();
        let again = P::open::<PCell<u64, P>>(&other.path, options(engine));
        assert!(matches!(again, Err(durum::Error::PoolTypeInUse { .. })));
        root.close().unwrap();
        assert!(matches!(P::transaction(|_| ()), Err(durum::Error::NotOpen { .. })));
        let wrong = P::open::<PCell<u32, P>>(&place.path, 0);
        assert!(matches!(wrong, Err(durum::Error::RootType { .. })));
        P::open::<PCell<u64, P>>(&place.path, 0).unwrap();
    }

    fn who_opens_no_pool_is_told_how_one_is_made(engine) {
        durum::pool!(P);
        let place = Place::new();
        let open = || P::open::<PCell<u64, P>>(&place.path, Flags::OPEN);
        let told = |error: Error| {
            assert!(matches!(error, Error::NothingToOpen { .. }), "{error}");
            assert_eq!(error.kind(), ErrorKind::User);
            let text = error.to_string();
            assert!(text.contains("Flags::CREATE") && !text.contains("durum init"), "{text}");
        };
        told(open().unwrap_err());
        // As `durum init` does.
        let store = durum::Store::create(&place.path, durum::StoreOptions::new()).unwrap();
        store.close().unwrap();
        told(open().unwrap_err());
        P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap().close().unwrap();
        open().unwrap().close().unwrap();
        // What is no store stays as it is, so nobody is told to make one there.
        let file = place.path.join("durum.store");
        let foreign = P::open::<PCell<u64, P>>(&file, Flags::OPEN).unwrap_err();
        assert!(!matches!(foreign, Error::NothingToOpen { .. }), "{foreign}");
    }

    fn a_pool_closes_when_the_last_transaction_has_ended(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PMutex<u64, P>>(&place.path, options(engine)).unwrap();
        let (begun, go_on) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        let weak = root.pool().uuid();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                P::transaction(|_| {
                    begun.wait();
                    go_on.wait();
                })
                .unwrap();
            });
            begun.wait();
            drop(root);
            assert!(matches!(P::transaction(|_| ()), Err(durum::Error::NotOpen { .. })));
            let early = P::open::<PMutex<u64, P>>(&place.path, 0);
            assert!(matches!(early, Err(durum::Error::PoolTypeInUse { .. })));
            go_on.wait();
        });
        let root = P::open::<PMutex<u64, P>>(&place.path, 0).unwrap();
        assert_eq!(root.pool().uuid(), weak);
    }

    fn borrowing_is_checked(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PRefCell<u64, P>>(&place.path, options(engine)).unwrap();
        let reader = root.borrow();
        P::transaction(|j| assert!(matches!(root.try_borrow_mut(j), Err(BorrowError::Read)))).unwrap();
        drop(reader);
        P::transaction(|j| {
            let mut writer = root.borrow_mut(j);
            *writer = 3;
            assert!(root.try_borrow().is_err());
            assert!(root.try_borrow_mut(j).is_err());
            drop(writer);
            assert_eq!(*root.borrow(), 3);
            // Forgotten, it keeps the cell until the transaction ends.
            std::mem::forget(root.borrow_mut(j));
            assert!(root.try_borrow().is_err());
        })
        .unwrap();
        assert_eq!(*root.borrow(), 3);
        P::transaction(|j| *root.borrow_mut(j) = 4).unwrap();
    }

    fn cells_are_born_on_the_stack(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PRefCell<Option<Pbox<PRefCell<u64, P>, P>>, P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let cell = PRefCell::new(1, j);
            *cell.borrow_mut(j) += 1;
            let mutex = PMutex::<u64, P>::new(1, j);
            *mutex.lock(j) += 1;
            *mutex.lock(j) += 1;
            assert_eq!(mutex.into_inner(), 3);
            *root.borrow_mut(j) = Some(Pbox::new(cell, j));
        })
        .unwrap();
        assert_eq!(*root.borrow().as_ref().unwrap().borrow(), 2);
    }

    fn threads_take_turns(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<(PMutex<u64, P>, PMutex<u64, P>), >(&place.path, options(engine));
        let root = root.unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        P::transaction(|j| {
                            *root.0.lock(j) += 1;
                            *root.1.lock(j) += 2;
                        })
                        .unwrap();
                    }
                });
            }
        });
        P::transaction(|j| assert_eq!((*root.0.lock(j), *root.1.lock(j)), (2000, 4000))).unwrap();
    }
}

#[test]
fn flags_choose_the_engine() {
    durum::pool!(P);
    for (flags, engine) in [
        (Flags::CREATE, Engine::Shadow),
        (Flags::CREATE | Flags::HYBRID, Engine::Hybrid),
        (Flags::NEW | Flags::TWIN, Engine::Twin),
    ] {
        let place = Place::new();
        let root = P::open::<PCell<u64, P>>(&place.path, flags).unwrap();
        assert_eq!(root.pool().engine(), engine);
        P::transaction(|j| root.set(1, j)).unwrap();
        root.close().unwrap();
        let root = P::open::<PCell<u64, P>>(&place.path, Flags::OPEN).unwrap();
        assert_eq!((root.pool().engine(), root.get()), (engine, 1));
        root.close().unwrap();
        // Whoever names an engine does not get another one.
        let others = [(Flags::HYBRID, Engine::Hybrid), (Flags::TWIN, Engine::Twin)];
        for (flag, other) in others {
            for flags in [Flags::OPEN | flag, Flags::CREATE | flag] {
                match P::open::<PCell<u64, P>>(&place.path, flags) {
                    Ok(root) => assert_eq!((root.pool().engine(), other), (engine, engine)),
                    Err(error) => {
                        assert_ne!(other, engine);
                        assert!(matches!(error, Error::OtherEngine { .. }), "{error}");
                        assert_eq!(error.kind(), ErrorKind::User);
                    }
                }
            }
        }
        let shadow = OpenOptions::new().engine(Engine::Shadow);
        let opened = P::open::<PCell<u64, P>>(&place.path, shadow);
        assert_eq!(opened.is_ok(), engine == Engine::Shadow);
    }
}

/// What docs/reference/safety.md says of threads that wait for each other within transactions.
#[test]
fn on_twin_a_transaction_begins_when_that_of_another_thread_has_ended() {
    durum::pool!(P);
    let place = Place::new();
    let root = P::open::<[PMutex<u64, P>; 2]>(&place.path, options(Engine::Twin)).unwrap();
    let (begun, has_ended) = (Barrier::new(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            begun.wait();
            // It wants another mutex, and waits all the same.
            P::transaction(|j| {
                *root[1].lock(j) += 1;
                assert!(has_ended.load(Ordering::SeqCst));
            })
            .unwrap();
        });
        P::transaction(|j| {
            *root[0].lock(j) += 1;
            begun.wait();
            std::thread::sleep(Duration::from_millis(50));
            has_ended.store(true, Ordering::SeqCst);
        })
        .unwrap();
    });
}
