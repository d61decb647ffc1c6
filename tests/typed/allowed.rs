//! What looks like an attack and is right: it compiles, and does what it says.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use durum::typed::*;

use crate::{Place, on_each_engine, options};

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("in a drop");
    }
}

on_each_engine! {
    fn a_number_behind_a_guard_is_read_by_a_thread_of_the_scope(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PMutex<u64, P>>(&place.path, options(engine)).unwrap();
        let read = P::transaction(|j| {
            let mut guard = root.lock(j);
            *guard = 7;
            let number: &u64 = &guard;
            std::thread::scope(|scope| scope.spawn(move || *number).join().unwrap())
        });
        assert_eq!(read.unwrap(), 7);
    }

    fn cells_exchange_their_objects(engine) {
        durum::pool!(P);
        let place = Place::new();
        type Link = PRefCell<Option<Pbox<u64, P>>, P>;
        let root = P::open::<(Link, Link)>(&place.path, options(engine)).unwrap();
        let values = || {
            let value = |link: &Link| link.borrow().as_ref().map(|object| **object);
            (value(&root.0), value(&root.1))
        };
        P::transaction(|j| *root.0.borrow_mut(j) = Some(Pbox::new(5, j))).unwrap();
        let swap = |j: &Journal<P>| std::mem::swap(&mut *root.0.borrow_mut(j), &mut *root.1.borrow_mut(j));
        let aborted: durum::Result<()> = P::try_transaction(|j| {
            swap(j);
            Err(durum::Error::Aborted)
        });
        assert!(aborted.is_err());
        assert_eq!(values(), (Some(5), None));
        P::transaction(|j| swap(j)).unwrap();
        assert_eq!(values(), (None, Some(5)));
    }

    fn types_name_each_other(engine) {
        durum::pool!(P);
        #[derive(PSafe)]
        #[repr(C)]
        struct Author {
            name: PString<P>,
            books: PRefCell<PVec<Prc<Book, P>, P>, P>,
        }
        #[derive(PSafe)]
        #[repr(C)]
        struct Book {
            title: PString<P>,
            by: PRefCell<Option<PWeak<Author, P, Local>>, P>,
        }
        let place = Place::new();
        let root = P::open::<PRefCell<Option<Prc<Author, P>>, P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let author = Prc::new(Author { name: PString::new("Knuth", j), books: PRefCell::default() }, j);
            for title in ["one", "two"] {
                let by = PRefCell::new(Some(author.downgrade(j)), j);
                author.books.borrow_mut(j).push(Prc::new(Book { title: PString::new(title, j), by }, j), j);
            }
            *root.borrow_mut(j) = Some(author);
        })
        .unwrap();
        root.close().unwrap();
        let root = P::open::<PRefCell<Option<Prc<Author, P>>, P>>(&place.path, 0).unwrap();
        P::transaction(|j| {
            let author = root.borrow();
            let books = author.as_ref().unwrap().books.borrow();
            assert_eq!(books[1].title, *"two");
            let by = books[1].by.borrow().as_ref().unwrap().upgrade(j).unwrap();
            assert_eq!(by.name, *"Knuth");
        })
        .unwrap();
    }

    fn a_future_that_touches_nothing_leaves(engine) {
        durum::pool!(P);
        let place = Place::new();
        let _root = P::open_no_root(&place.path, options(engine)).unwrap();
        let future = P::transaction(|_| async { 5 }).unwrap();
        let polled = pin!(future).poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(polled, Poll::Ready(5));
    }

    fn what_panics_when_it_is_dropped_in_a_transaction_rolls_it_back(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PRefCell<Option<Pbox<u64, P>>, P>>(&place.path, options(engine)).unwrap();
        let root = &*root;
        P::transaction(|j| *root.borrow_mut(j) = Some(Pbox::new(1, j))).unwrap();
        let change = |j: &Journal<P>| {
            // An object that is to be freed, one that is new, and one in volatile hands.
            *root.borrow_mut(j) = Some(Pbox::new(2, j));
            Pbox::<u64, P>::new(3, j)
        };
        let rolls_back = |body: &dyn Fn()| {
            let caught = catch_unwind(AssertUnwindSafe(body));
            assert_eq!(*caught.unwrap_err().downcast_ref::<&str>().unwrap(), "in a drop");
            assert_eq!(**root.borrow().as_ref().unwrap(), 1);
            P::transaction(|j| **root.borrow_mut(j).as_mut().unwrap() = 1).unwrap();
        };
        // A variable of the body, before others and behind them.
        rolls_back(&|| {
            P::transaction(|j| {
                let _bomb = Bomb;
                let _kept = change(j);
            })
            .unwrap();
        });
        rolls_back(&|| {
            P::transaction(|j| {
                let _kept = change(j);
                let _bomb = Bomb;
            })
            .unwrap();
        });
        // What the closure has captured.
        rolls_back(&|| {
            let bomb = Bomb;
            P::transaction(move |j| {
                let _captured = &bomb;
                change(j);
            })
            .unwrap();
        });
        // What an inner transaction would have returned, had another one not failed before.
        rolls_back(&|| {
            P::transaction(|j| {
                change(j);
                let failed: durum::Result<()> = P::try_transaction(|_| Err(durum::Error::Aborted));
                assert!(failed.is_err());
                let _ = P::transaction(|_| Bomb);
            })
            .unwrap();
        });
    }

    fn what_panics_when_it_is_dropped_after_a_transaction_leaves_it_committed(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PCell<u64, P>>(&place.path, options(engine)).unwrap();
        let root = &*root;
        let caught = catch_unwind(AssertUnwindSafe(|| {
            let _ = P::transaction(|j| {
                root.set(1, j);
                Bomb
            });
        }));
        assert!(caught.is_err());
        assert_eq!(root.get(), 1);
        P::transaction(|j| root.set(2, j)).unwrap();
        assert_eq!(root.get(), 2);
    }
}
