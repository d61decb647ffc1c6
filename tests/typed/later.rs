//! Exclusive references that announce late: what they change is rolled back and counted as by `&mut`, and what they
//! pass is not logged.

use std::panic::{AssertUnwindSafe, UnwindSafe, catch_unwind};

use durum::thread_counters;
use durum::typed::*;

use crate::{Place, on_each_engine, options};

type Link<P> = Option<Pbox<Node<P>, P>>;

/// A search tree, whose nodes are larger than what a change of it writes.
#[derive(PSafe, Parts)]
#[repr(C)]
struct Node<P: PoolType> {
    key: u64,
    value: u64,
    less: Link<P>,
    greater: Link<P>,
    filling: [u64; 20],
}

#[derive(PSafe, Root, Parts)]
#[repr(C)]
struct Tree<P: PoolType> {
    top: Link<P>,
    length: u64,
}

/// The link to the node with a key, or where it would be.
fn link<'a, P: PoolType>(mut link: Later<'a, Link<P>>, key: u64) -> Later<'a, Link<P>> {
    while link.as_ref().is_some_and(|node| node.key != key) {
        link = match link.some() {
            Ok(node) if key < node.key => node.object().parts().less,
            Ok(node) => node.object().parts().greater,
            Err(none) => return none,
        };
    }
    link
}

fn insert<P: PoolType>(tree: Later<'_, Tree<P>>, key: u64, value: u64, j: &Journal<P>) {
    let tree = tree.parts();
    match link(tree.top, key).some() {
        Ok(node) => *node.object().parts().value.change() = value,
        Err(none) => {
            let (less, greater, filling) = (None, None, [key; 20]);
            let node = Node {
                key,
                value,
                less,
                greater,
                filling,
            };
            *none.change() = Some(Pbox::new(node, j));
            *tree.length.change() += 1;
        }
    }
}

/// Takes a node out that has one child at most.
fn remove<P: PoolType>(tree: Later<'_, Tree<P>>, key: u64, j: &Journal<P>) -> Option<u64> {
    let tree = tree.parts();
    let link = link(tree.top, key);
    if link.is_none() {
        return None;
    }
    let link = link.change();
    let node = link.take()?.into_inner(j);
    *link = node.less.or(node.greater);
    *tree.length.change() -= 1;
    Some(node.value)
}

fn entries<P: PoolType>(link: &Link<P>, found: &mut Vec<(u64, u64)>) {
    if let Some(node) = link {
        entries(&node.less, found);
        found.push((node.key, node.value));
        entries(&node.greater, found);
    }
}

fn all<P: PoolType>(tree: &Tree<P>) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    entries(&tree.top, &mut found);
    assert_eq!(found.len() as u64, tree.length);
    found
}

/// Keys that make a tree nine levels deep on one side, and wide on others.
const KEYS: [u64; 12] = [50, 60, 70, 80, 90, 100, 110, 120, 130, 20, 10, 30];

fn is_whole(place: &Place) {
    let options = durum_service::CheckOptions::default();
    let report = durum_service::check(&place.path, &options).unwrap();
    let leaks = &report.pools[0].leaks;
    assert!(
        matches!(leaks, durum_service::Leaks::Judged { objects: 0, .. }),
        "{leaks:?}"
    );
}

on_each_engine! {
    fn what_is_changed_later_is_kept_or_rolled_back(engine) {
        durum::pool!(P);
        let place = Place::new();
        let tree = P::open::<PRefCell<Tree<P>, P>>(&place.path, options(engine)).unwrap();
        for key in KEYS {
            P::transaction(|j| insert(tree.borrow_mut(j).later(), key, 1, j)).unwrap();
        }
        P::transaction(|j| insert(tree.borrow_mut(j).later(), 130, 2, j)).unwrap();
        let before = all(&tree.borrow());
        assert_eq!((before.len(), before[11]), (12, (130, 2)));
        let change = |j: &Journal<P>| {
            let mut guard = tree.borrow_mut(j);
            assert_eq!(remove(guard.later(), 30, j), Some(1));
            insert(guard.later(), 130, 3, j);
            insert(guard.later(), 125, 4, j);
            insert(guard.later(), 125, 5, j);
            assert_eq!(remove(guard.later(), 31, j), None);
        };
        let failed: durum::Result<()> = P::try_transaction(|j| {
            change(j);
            Err(durum::Error::Aborted)
        });
        assert!(failed.is_err());
        assert_eq!(all(&tree.borrow()), before);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            P::transaction(|j| {
                change(j);
                panic!("on purpose");
            })
        }));
        assert!(panicked.is_err());
        assert_eq!(all(&tree.borrow()), before);
        P::transaction(change).unwrap();
        let after = all(&tree.borrow());
        tree.close().unwrap();
        let tree = P::open::<PRefCell<Tree<P>, P>>(&place.path, options(engine)).unwrap();
        assert_eq!(all(&tree.borrow()), after);
        let here = |key| after.iter().find(|entry| entry.0 == key).map(|entry| entry.1);
        assert_eq!((after.len(), here(30), here(125), here(130)), (12, None, Some(5), Some(3)));
        drop(tree);
        is_whole(&place);
    }

    fn handles_that_go_through_it_are_counted(engine) {
        durum::pool!(P);
        let place = Place::new();
        type Root = (PRefCell<Tree<P>, P>, PRefCell<PVec<Pbox<Node<P>, P>, P>, P>);
        let root = P::open::<Root>(&place.path, options(engine)).unwrap();
        let move_some = |key: u64, fails: bool| {
            P::try_transaction(|j| {
                let mut guard = root.0.borrow_mut(j);
                // Twice the same place, then what it lies in, then a place in there again.
                let mut whole = guard.later();
                let taken = link(whole.reborrow().parts().top, key).change().take();
                assert!(link(whole.reborrow().parts().top, key).change().is_none());
                let above = whole.parts().top.some().ok().unwrap().object().change();
                above.value += 1;
                above.filling[3] = 7;
                let lowest = link(Later::from(&mut above.less), 1).change();
                assert!(lowest.replace(taken.unwrap()).is_none());
                // One goes, one comes from elsewhere, one is made and dropped.
                drop(link(guard.later().parts().top, 30).change().take());
                let spare = root.1.borrow_mut(j).pop();
                *link(guard.later().parts().top, 30).change() = spare;
                let (less, greater) = (None, None);
                let node = Node { key: 40, value: 0, less, greater, filling: [0; 20] };
                let place = link(guard.later().parts().top, 40).change();
                *place = Some(Pbox::new(node, j));
                *place = None;
                if fails { Err(durum::Error::Aborted) } else { Ok(()) }
            })
        };
        P::transaction(|j| {
            for key in KEYS {
                insert(root.0.borrow_mut(j).later(), key, 1, j);
            }
            for value in 0..2 {
                let (less, greater) = (None, None);
                let node = Node { key: 30, value, less, greater, filling: [0; 20] };
                root.1.borrow_mut(j).push(Pbox::new(node, j), j);
            }
        })
        .unwrap();
        let before = all(&root.0.borrow());
        assert!(move_some(100, true).is_err());
        assert_eq!(all(&root.0.borrow()), before);
        move_some(100, false).unwrap();
        let after: Vec<u64> = all(&root.0.borrow()).iter().map(|entry| entry.0).collect();
        assert_eq!(after, [100, 110, 120, 130, 10, 20, 30, 50, 60, 70, 80, 90]);
        assert_eq!(root.1.borrow().len(), 1);
        drop(root);
        is_whole(&place);
    }

    fn parts_are_changed_side_by_side(engine) {
        durum::pool!(P);
        #[derive(PSafe, Parts)]
        #[repr(C, u8)]
        enum Item<T: PSafe, P: PoolType> {
            Nothing,
            One(T),
            Two { first: u64, second: Pbox<T, P> },
        }
        #[derive(PSafe, Parts)]
        #[repr(C)]
        struct Pair<T>(T, T);
        #[derive(PSafe, Parts)]
        #[repr(C)]
        struct Shelf {
            items: [Item<Pair<u64>, P>; 3],
            spare: Option<u64>,
        }
        impl Root<P> for Shelf {
            fn init(j: &Journal<P>) -> Self {
                let second = Pbox::new(Pair(3, 4), j);
                let items = [Item::Nothing, Item::One(Pair(1, 2)), Item::Two { first: 5, second }];
                Self { items, spare: None }
            }
        }
        let place = Place::new();
        let root = P::open::<PMutex<Shelf, P>>(&place.path, options(engine)).unwrap();
        let look = |at: usize, j: &Journal<P>| {
            let shelf = root.lock(j);
            let digits = match &shelf.items[at] {
                Item::Nothing => 0,
                Item::One(pair) => pair.0 * 10 + pair.1,
                Item::Two { first, second } => first * 100 + second.0 * 10 + second.1,
            };
            (digits, shelf.spare)
        };
        let change = |at: usize, j: &Journal<P>| {
            let mut guard = root.lock(j);
            let shelf = guard.later().parts();
            match shelf.items.at(at).parts() {
                ItemParts::Nothing => {}
                ItemParts::One(pair) => {
                    let pair = pair.parts();
                    std::mem::swap(pair.0.change(), pair.1.change());
                }
                ItemParts::Two { first, second } => {
                    let (first, pair) = (first.change(), second.object().parts());
                    std::mem::swap(first, pair.1.change());
                }
            }
            *shelf.spare.change() = Some(at as u64);
        };
        for (at, before, after) in [(0, 0, 0), (1, 12, 21), (2, 534, 435)] {
            let spare = (at as u64).checked_sub(1);
            let failed = P::try_transaction(|j| {
                assert_eq!(look(at, j), (before, spare));
                change(at, j);
                assert_eq!(look(at, j), (after, Some(at as u64)));
                Err::<(), _>(durum::Error::Aborted)
            });
            assert!(failed.is_err());
            P::transaction(|j| {
                assert_eq!(look(at, j), (before, spare));
                change(at, j);
            })
            .unwrap();
            P::transaction(|j| assert_eq!(look(at, j), (after, Some(at as u64)))).unwrap();
        }
    }

    fn a_cell_is_borrowed_as_long_as_it_is_used(engine) {
        durum::pool!(P);
        let place = Place::new();
        let tree = P::open::<PRefCell<Tree<P>, P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let mut guard = tree.borrow_mut(j);
            let later = guard.later();
            assert_eq!(tree.try_borrow().err(), Some(BorrowError::Written));
            assert_eq!(tree.try_borrow_mut(j).err(), Some(BorrowError::Written));
            insert(later, 1, 1, j);
            drop(guard);
            let reader = tree.borrow();
            assert_eq!(tree.try_borrow_mut(j).err(), Some(BorrowError::Read));
            assert_eq!(reader.length, 1);
        })
        .unwrap();
    }

    fn cells_within_are_what_they_were(engine) {
        durum::pool!(P);
        #[derive(PSafe, Root, Parts)]
        #[repr(C)]
        struct Desk {
            drawers: [PRefCell<Option<Pbox<u64, P>>, P>; 2],
            opened: PCell<u64, P>,
        }
        let place = Place::new();
        let desk = P::open::<PRefCell<Pbox<Desk, P>, P>>(&place.path, options(engine)).unwrap();
        P::transaction(|j| {
            let mut guard = desk.borrow_mut(j);
            let mut later = guard.later().object();
            // A guard that is forgotten keeps nobody from what is changed by an exclusive reference.
            std::mem::forget(later.drawers[0].borrow());
            assert_eq!(later.drawers[0].try_borrow_mut(j).err(), Some(BorrowError::Read));
            *later.drawers[1].borrow_mut(j) = Some(Pbox::new(1, j));
            later.opened.set(1, j);
            let drawers = later.reborrow().parts().drawers.change();
            drawers.swap(0, 1);
            assert_eq!(drawers[0].borrow().as_deref(), Some(&1));
            assert!(later.drawers[1].try_borrow_mut(j).is_ok());
        })
        .unwrap();
        assert_eq!(desk.borrow().drawers[0].borrow().as_deref(), Some(&1));
        assert_eq!(desk.borrow().opened.get(), 1);
    }

    fn a_volatile_place_is_changed_too(engine) {
        durum::pool!(P);
        let place = Place::new();
        let root = P::open::<PRefCell<Tree<P>, P>>(&place.path, options(engine)).unwrap();
        let failed = P::try_transaction(|j| {
            let mut tree = Tree { top: None, length: 0 };
            for key in KEYS {
                insert(Later::from(&mut tree), key, 1, j);
            }
            std::mem::swap(&mut tree, &mut root.borrow_mut(j));
            assert_eq!(all(&root.borrow()).len(), 12);
            insert(Later::from(&mut tree), 1, 1, j);
            Err::<(), _>(durum::Error::Aborted)
        });
        assert!(failed.is_err());
        assert_eq!(all(&root.borrow()), []);
        drop(root);
        is_whole(&place);
    }
}

/// What an insertion into a tree costs on Hybrid: by `&mut` it logs the nodes on the way, and a fence for each.
#[test]
fn an_insertion_logs_a_link_and_no_node() {
    durum::pool!(P);
    let place = Place::new();
    let options = options(durum::Engine::Hybrid);
    let tree = P::open::<PRefCell<Tree<P>, P>>(&place.path, options).unwrap();
    for key in KEYS {
        P::transaction(|j| insert(tree.borrow_mut(j).later(), key, 1, j)).unwrap();
    }
    fn cost(body: impl FnOnce(&Journal<P>) + UnwindSafe) -> (u64, u64) {
        let before = thread_counters();
        P::transaction(body).unwrap();
        let cost = thread_counters() - before;
        (cost.fences, cost.bytes_logged)
    }
    // Nine nodes are above it.
    let late = cost(|j| insert(tree.borrow_mut(j).later(), 125, 1, j));
    // That of a tree of one node.
    let shallow = cost(|j| insert(tree.borrow_mut(j).later(), 40, 1, j));
    let early = cost(|j| {
        fn place(mut link: &mut Link<P>, key: u64) -> &mut Link<P> {
            while let Some(node) = link {
                link = if key < node.key {
                    &mut node.less
                } else {
                    &mut node.greater
                };
            }
            link
        }
        let mut tree = tree.borrow_mut(j);
        let (less, greater, filling) = (None, None, [126; 20]);
        let node = Node {
            key: 126,
            value: 1,
            less,
            greater,
            filling,
        };
        *place(&mut tree.top, 126) = Some(Pbox::new(node, j));
        tree.length += 1;
    });
    assert_eq!(late, shallow);
    assert!(late.0 <= 5 && late.1 < 200, "{late:?}");
    assert!(early.0 >= late.0 + 9 && early.1 > 2000, "{early:?}");
    let value = cost(|j| insert(tree.borrow_mut(j).later(), 126, 2, j));
    assert!(value.0 <= 3 && value.1 < 50, "{value:?}");
}
