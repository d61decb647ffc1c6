//! Collections against their twins in std: the same operations on both, in transactions that commit or not, in pools
//! that are closed and opened between them.

mod btree_map;
mod costs;
mod hash_map;
mod owners;
mod vectors;

use std::path::Path;

use durum::typed::*;
use durum_service::{self as service, Leaks};
use proptest::prelude::*;
use proptest::test_runner::Config;

/// How a transaction of a test ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Commit,
    Abort,
    CommitAndReopen,
}

fn any_end() -> impl Strategy<Value = End> {
    prop_oneof![
        4 => Just(End::Commit),
        2 => Just(End::Abort),
        1 => Just(End::CommitAndReopen),
    ]
}

/// Transactions of operations, some of which have no effect.
fn transactions<Op: std::fmt::Debug>(
    op: impl Strategy<Value = Op>,
) -> impl Strategy<Value = Vec<(Vec<Op>, End)>> {
    prop::collection::vec((prop::collection::vec(op, 0..80), any_end()), 1..12)
}

fn cases(cases: u32) -> Config {
    Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    }
}

/// Values that stand for numbers, in their order.
trait Sample<P: PoolType>: PSafe + PClone<P> {
    fn make(number: u64, j: &Journal<P>) -> Self;
    fn number(&self) -> u64;
    fn change(&mut self, number: u64, j: &Journal<P>);
}

impl<P: PoolType> Sample<P> for u64 {
    fn make(number: u64, _: &Journal<P>) -> Self {
        number
    }

    fn number(&self) -> u64 {
        *self
    }

    fn change(&mut self, number: u64, _: &Journal<P>) {
        *self = number;
    }
}

impl<P: PoolType> Sample<P> for PString<P> {
    fn make(number: u64, j: &Journal<P>) -> Self {
        PString::new(&format!("{number:020}"), j)
    }

    fn number(&self) -> u64 {
        self.parse().unwrap()
    }

    fn change(&mut self, number: u64, j: &Journal<P>) {
        self.clear();
        self.push_str(&format!("{number:020}"), j);
    }
}

impl<T: Sample<P>, P: PoolType> Sample<P> for Pbox<T, P> {
    fn make(number: u64, j: &Journal<P>) -> Self {
        Pbox::new(T::make(number, j), j)
    }

    fn number(&self) -> u64 {
        (**self).number()
    }

    /// Every other time by another object.
    fn change(&mut self, number: u64, j: &Journal<P>) {
        match number % 2 {
            0 => (**self).change(number, j),
            _ => *self = Self::make(number, j),
        }
    }
}

impl<T: Sample<P>, P: PoolType> Sample<P> for Prc<T, P> {
    fn make(number: u64, j: &Journal<P>) -> Self {
        Prc::new(T::make(number, j), j)
    }

    fn number(&self) -> u64 {
        (**self).number()
    }

    fn change(&mut self, number: u64, j: &Journal<P>) {
        *self = Self::make(number, j);
    }
}

impl<T: Sample<P>, P: PoolType> Sample<P> for Option<Pbox<T, P>> {
    fn make(number: u64, j: &Journal<P>) -> Self {
        (number != 0).then(|| Pbox::make(number, j))
    }

    fn number(&self) -> u64 {
        self.as_ref().map_or(0, Pbox::number)
    }

    fn change(&mut self, number: u64, j: &Journal<P>) {
        *self = Self::make(number, j);
    }
}

/// The service finds nothing wrong with a closed store, and nothing lost: all pointer maps are true.
fn assert_sound(path: &Path) {
    let report = service::check(path, &Default::default()).unwrap();
    assert!(report.findings.is_empty(), "{:?}", report.findings);
    for pool in &report.pools {
        let nothing = Leaks::Judged {
            objects: 0,
            bytes: 0,
        };
        assert_eq!(pool.leaks, nothing, "{}", pool.name);
    }
}
