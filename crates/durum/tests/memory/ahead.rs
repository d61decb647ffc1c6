//! Pages of a pool that grows are made before they are needed.

use std::ops::Range;
use std::time::{Duration, Instant};

use durum::Domain;

use crate::private_pages::private_pages;
use crate::{Fixture, PAGE, PIECE, alone, make_piece, root};

const UNIT: usize = 2 << 20;
const COUNT: usize = 20;

/// Fills a pool so far that it has grown, and gives the 2 MiB behind what it holds.
fn grow(pages_ahead: bool) -> (Fixture, Range<usize>) {
    let mut fixture = Fixture::new(Domain::Dram, u64::MAX);
    fixture.options = fixture.options.clone().pages_ahead(pages_ahead);
    fixture.reopen();
    let pool = fixture.pool();
    for at in 0..COUNT {
        make_piece(&pool, at, |index| index as u64);
    }
    let root = root(&pool);
    let last = (0..COUNT).map(|at| root.pieces[at].addr()).max().unwrap();
    let next = (last + PIECE).next_multiple_of(UNIT);
    (fixture, next..next + UNIT)
}

#[test]
fn a_thread_makes_what_follows() {
    let Some(_alone) = alone() else { return };
    let (_fixture, next) = grow(true);
    let began = Instant::now();
    while private_pages(&next) < UNIT / PAGE {
        assert!(began.elapsed() < Duration::from_secs(20), "never made");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn no_thread_makes_what_it_shall_not() {
    let Some(_alone) = alone() else { return };
    let (_fixture, next) = grow(false);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!(private_pages(&next), 0);
}
