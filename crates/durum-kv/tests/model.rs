//! Whatever a program does, the database holds what a sorted map would: random histories on every engine and domain,
//! beside a model.
//!
//! Snapshots and iterators live through later writes, in both directions; batches, transactions, buffered writes and
//! reopening come in between.

mod support;

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

use durum::Domain;
use durum_kv::{
    Comparator, Db, Durability, Engine, Iter, Options, ReadOptions, Snapshot, StoreOptions,
    WriteBatch, WriteOptions,
};
use proptest::prelude::*;
use support::{Map, contents, entries};

#[derive(Clone, Debug)]
enum Op {
    Put(Vec<u8>, Vec<u8>),
    Buffered(Vec<u8>, Vec<u8>),
    Delete(Vec<u8>),
    Batch(Vec<(Vec<u8>, Option<Vec<u8>>)>),
    /// One after the other in a call.
    MultiPut(Vec<(Vec<u8>, Vec<u8>)>),
    /// Keys that may be there or not, some of them several times.
    MultiGet(Vec<Vec<u8>>),
    /// Left in flight: puts, deletes, and all together; whether the last one is waited for.
    Begin(Vec<(Vec<u8>, Option<Vec<u8>>)>, bool),
    /// Put, deleted again or not, and committed or not.
    Transaction(Vec<(Vec<u8>, Option<Vec<u8>>)>, bool),
    /// So many keys in a row, from a number on.
    Fill(u16, u16),
    /// The keys from one on go, so many of them.
    Clear(Vec<u8>, u16),
    TakeSnapshot,
    DropSnapshot(prop::sample::Index),
    MakeIter(Vec<u8>),
    StepIter(prop::sample::Index, Vec<bool>),
    DropIter(prop::sample::Index),
    Seek(Vec<u8>),
    Compact,
    Reopen,
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (0..300u16).prop_map(|number| format!("key {number:08}").into_bytes()),
        (0..40u16).prop_map(|number| format!("{number}").into_bytes()),
        prop::collection::vec(prop_oneof![Just(0u8), Just(0xff), Just(b'k')], 0..10),
    ]
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    // Often as long as the one before: its record is changed.
    let len =
        prop_oneof![4 => Just(16usize), 4 => 0..40usize, 2 => 200..300usize, 1 => 1000..9000usize];
    (any::<u8>(), len).prop_map(|(byte, len)| vec![byte; len])
}

fn changes() -> impl Strategy<Value = Vec<(Vec<u8>, Option<Vec<u8>>)>> {
    let few = prop::collection::vec((key(), prop::option::of(value())), 0..6);
    let many = prop::collection::vec((key(), prop::option::of(value())), 30..80);
    prop_oneof![4 => few, 1 => many]
}

fn pairs() -> impl Strategy<Value = Vec<(Vec<u8>, Vec<u8>)>> {
    let few = prop::collection::vec((key(), value()), 0..6);
    let many = prop::collection::vec((key(), value()), 20..120);
    prop_oneof![2 => few, 1 => many]
}

fn op() -> impl Strategy<Value = Op> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        6 => (key(), value()).prop_map(|(key, value)| Op::Put(key, value)),
        2 => (key(), value()).prop_map(|(key, value)| Op::Buffered(key, value)),
        4 => key().prop_map(Op::Delete),
        3 => changes().prop_map(Op::Batch),
        2 => pairs().prop_map(Op::MultiPut),
        2 => prop::collection::vec(key(), 0..150).prop_map(Op::MultiGet),
        2 => (changes(), any::<bool>()).prop_map(|(changes, waits)| Op::Begin(changes, waits)),
        2 => (changes(), any::<bool>()).prop_map(|(changes, commits)| Op::Transaction(changes, commits)),
        2 => (0..300u16, 20..200u16).prop_map(|(from, count)| Op::Fill(from, count)),
        2 => (key(), 20..200u16).prop_map(|(from, count)| Op::Clear(from, count)),
        2 => Just(Op::TakeSnapshot),
        1 => index().prop_map(Op::DropSnapshot),
        2 => key().prop_map(Op::MakeIter),
        3 => (index(), prop::collection::vec(any::<bool>(), 1..90)).prop_map(|(at, steps)| Op::StepIter(at, steps)),
        1 => index().prop_map(Op::DropIter),
        3 => key().prop_map(Op::Seek),
        1 => Just(Op::Compact),
        1 => Just(Op::Reopen),
    ]
}

/// An order that is not that of bytes: longer keys first, then from the last byte to the first.
struct Strange;

impl Comparator for Strange {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let backwards = || a.iter().rev().cmp(b.iter().rev());
        b.len().cmp(&a.len()).then_with(backwards)
    }

    fn name(&self) -> &str {
        "longer first"
    }
}

/// The model's keys are in the order of bytes; the database's in its own.
fn in_order(map: &Map, order: Option<&dyn Comparator>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut row: Vec<_> = map.clone().into_iter().collect();
    if let Some(order) = order {
        row.sort_by(|(a, _), (b, _)| order.compare(a, b));
    }
    row
}

struct Moving {
    iter: Iter,
    row: Vec<(Vec<u8>, Vec<u8>)>,
    at: Option<usize>,
}

struct World {
    db: Option<Db>,
    map: Map,
    snapshots: Vec<(Snapshot, Map)>,
    iters: Vec<Moving>,
    options: Options,
    path: std::path::PathBuf,
    order: Option<Arc<dyn Comparator>>,
}

impl World {
    fn db(&self) -> &Db {
        self.db.as_ref().unwrap()
    }

    fn row(&self, map: &Map) -> Vec<(Vec<u8>, Vec<u8>)> {
        in_order(map, self.order.as_deref())
    }

    fn place(&self, row: &[(Vec<u8>, Vec<u8>)], key: &[u8]) -> usize {
        row.partition_point(|(other, _)| match &self.order {
            Some(order) => order.compare(other, key).is_lt(),
            None => &other[..] < key,
        })
    }

    fn note(&mut self, changes: &[(Vec<u8>, Option<Vec<u8>>)]) {
        for (key, value) in changes {
            match value {
                Some(value) => self.map.insert(key.clone(), value.clone()),
                None => self.map.remove(key),
            };
        }
    }

    fn step(&mut self, op: &Op) {
        match op {
            Op::Put(key, value) => {
                self.db().put(key, value).unwrap();
                self.map.insert(key.clone(), value.clone());
            }
            Op::Buffered(key, value) => {
                let options = WriteOptions::new().durability(Durability::Buffered);
                self.db().put_with(key, value, &options).unwrap();
                self.map.insert(key.clone(), value.clone());
            }
            Op::Delete(key) => {
                self.db().delete(key).unwrap();
                self.map.remove(key);
            }
            Op::Batch(changes) => {
                let mut batch = WriteBatch::new();
                for (key, value) in changes {
                    match value {
                        Some(value) => batch.put(key, value),
                        None => batch.delete(key),
                    }
                }
                self.db().write(&batch).unwrap();
                self.note(changes);
            }
            Op::MultiPut(pairs) => {
                self.db().multi_put(pairs).unwrap();
                self.map.extend(pairs.iter().cloned());
            }
            Op::MultiGet(keys) => {
                let of = |map: &Map| -> Vec<_> {
                    keys.iter().map(|key| map.get(key).cloned()).collect()
                };
                assert_eq!(self.db().multi_get(keys).unwrap(), of(&self.map));
                for (snapshot, map) in &self.snapshots {
                    let options = ReadOptions::new().snapshot(snapshot).verify_checksums(true);
                    let found = self.db().multi_get_with(keys, &options).unwrap();
                    assert_eq!(found, of(map));
                }
            }
            Op::Begin(changes, waits) => self.begin(changes, *waits),
            Op::Transaction(changes, commits) => self.transaction(changes, *commits),
            Op::Fill(from, count) => {
                for number in *from..from + count {
                    let key = format!("key {number:08}").into_bytes();
                    self.step(&Op::Put(key, b"filled".to_vec()));
                }
            }
            Op::Clear(from, count) => {
                let keys: Vec<_> = (self.map.range(from.clone()..))
                    .take(usize::from(*count))
                    .map(|(key, _)| key.clone())
                    .collect();
                keys.into_iter().for_each(|key| self.step(&Op::Delete(key)));
            }
            Op::TakeSnapshot => {
                let snapshot = self.db().snapshot();
                self.snapshots.push((snapshot, self.map.clone()));
            }
            Op::DropSnapshot(at) => {
                if !self.snapshots.is_empty() {
                    self.snapshots.remove(at.index(self.snapshots.len()));
                }
            }
            Op::MakeIter(key) => self.make_iter(key),
            Op::StepIter(at, steps) => {
                if !self.iters.is_empty() {
                    let at = at.index(self.iters.len());
                    steps.iter().for_each(|forward| self.iters[at].go(*forward));
                }
            }
            Op::DropIter(at) => {
                if !self.iters.is_empty() {
                    self.iters.remove(at.index(self.iters.len()));
                }
            }
            Op::Seek(key) => {
                let mut iter = self.db().iter();
                let row = self.row(&self.map);
                let expected = row.get(self.place(&row, key));
                assert_eq!(iter.seek(key).unwrap(), expected.is_some());
                assert_eq!(iter.key(), expected.map(|(key, _)| &key[..]));
                assert_eq!(iter.value(), expected.map(|(_, value)| &value[..]));
            }
            Op::Compact => self.db().compact().unwrap(),
            Op::Reopen => self.reopen(),
        }
    }

    fn begin(&mut self, changes: &[(Vec<u8>, Option<Vec<u8>>)], waits: bool) {
        let mut batch = WriteBatch::new();
        for (key, value) in changes {
            let in_flight = match value {
                Some(value) => self.db().put_begin(key, value).unwrap(),
                None => self.db().delete_begin(key).unwrap(),
            };
            drop(in_flight);
            batch.put(key, b"begun");
        }
        let last = self.db().write_begin(&batch).unwrap();
        if waits {
            last.wait().unwrap();
        }
        let begun = changes
            .iter()
            .map(|(key, _)| (key.clone(), b"begun".to_vec()));
        self.map.extend(begun);
    }

    fn transaction(&mut self, changes: &[(Vec<u8>, Option<Vec<u8>>)], commits: bool) {
        let before = self.map.clone();
        let db = self.db().clone();
        let mut transaction = db.transaction().unwrap();
        for (key, value) in changes {
            match value {
                Some(value) => transaction.put(key, value),
                None => transaction.delete(key),
            }
        }
        self.note(changes);
        for (key, _) in changes {
            assert_eq!(transaction.get(key).unwrap(), self.map.get(key).cloned());
        }
        let mut seen = Vec::new();
        let mut from: Bound<Vec<u8>> = Bound::Unbounded;
        while let Some((key, value)) = transaction
            .first_from(from.as_ref().map(|key| &key[..]))
            .unwrap()
        {
            from = Bound::Excluded(key.clone());
            seen.push((key, value));
        }
        assert_eq!(seen, self.row(&self.map));
        match commits {
            true => transaction.commit().unwrap(),
            false => {
                transaction.abort();
                self.map = before;
            }
        }
    }

    fn make_iter(&mut self, key: &[u8]) {
        // Of a snapshot, if there is one; of now otherwise.
        let (mut iter, row) = match self.snapshots.last() {
            Some((snapshot, map)) => {
                let options = ReadOptions::new().snapshot(snapshot).verify_checksums(true);
                (self.db().iter_with(&options).unwrap(), self.row(map))
            }
            None => (self.db().iter(), self.row(&self.map)),
        };
        let at = self.place(&row, key);
        let at = (at < row.len()).then_some(at);
        assert_eq!(iter.seek(key).unwrap(), at.is_some());
        self.iters.push(Moving { iter, row, at });
    }

    fn reopen(&mut self) {
        self.snapshots.clear();
        self.iters.clear();
        self.db = None;
        self.db = Some(Db::open(&self.path, self.options.clone()).unwrap());
        let stale = self.db().property("durum.stale-keys").unwrap();
        assert_eq!(stale.as_deref(), Some("0"));
    }

    fn check(&self) {
        let row = self.row(&self.map);
        assert_eq!(entries(&mut self.db().iter()).unwrap(), row);
        for (snapshot, map) in &self.snapshots {
            let options = ReadOptions::new().snapshot(snapshot);
            let mut iter = self.db().iter_with(&options).unwrap();
            assert_eq!(entries(&mut iter).unwrap(), self.row(map));
            let keys: Vec<_> = map.keys().chain(self.map.keys()).collect();
            let mut bytes = b"before".to_vec();
            let places = self.db().multi_get_into(&keys, &options, &mut bytes);
            for (key, place) in keys.into_iter().zip(places.unwrap()) {
                let found = self.db().get_with(key, &options).unwrap();
                assert_eq!(found, map.get(key).cloned());
                assert_eq!(place.map(|place| &bytes[place]), found.as_deref());
            }
            assert!(bytes.starts_with(b"before"));
        }
    }
}

impl Moving {
    fn go(&mut self, forward: bool) {
        let is_there = match forward {
            true => self.iter.next().unwrap(),
            false => self.iter.prev().unwrap(),
        };
        self.at = match (self.at, forward) {
            (None, _) => None,
            (Some(at), true) => (at + 1 < self.row.len()).then_some(at + 1),
            (Some(at), false) => at.checked_sub(1),
        };
        let expected = self.at.map(|at| &self.row[at]);
        assert_eq!(is_there, expected.is_some());
        assert_eq!(self.iter.key(), expected.map(|(key, _)| &key[..]));
        assert_eq!(self.iter.value(), expected.map(|(_, value)| &value[..]));
    }
}

fn run(engine: Engine, domain: Domain, order: Option<Arc<dyn Comparator>>, ops: &[Op]) {
    let (_dir, path) = support::place();
    let mut options = support::options()
        .engine(engine)
        .store(StoreOptions::new().domain(domain));
    options.comparator = order.clone();
    let db = Db::open(&path, options.clone()).unwrap();
    let mut world = World {
        db: Some(db),
        map: Map::new(),
        snapshots: Vec::new(),
        iters: Vec::new(),
        options,
        path,
        order,
    };
    for (number, op) in ops.iter().enumerate() {
        world.step(op);
        if number % 8 == 0 {
            world.check();
        }
    }
    world.check();
    world.reopen();
    world.check();
    assert_eq!(contents(world.db()), world.map);
    let keys = world.db().property("durum.keys").unwrap();
    assert_eq!(keys, Some(world.map.len().to_string()));
    // Nothing is left of what was superseded, and nothing is lost.
    let World { db, path, .. } = world;
    drop(db);
    let report = durum_service::check(&path, &durum_service::CheckOptions::default()).unwrap();
    assert_eq!(report.findings.len(), 0, "{:?}", report.findings);
}

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig::with_cases(count)
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn on_shadow_it_is_a_sorted_map(ops in prop::collection::vec(op(), 1..60)) {
        run(Engine::Shadow, Domain::Dram, None, &ops);
    }

    #[test]
    fn on_hybrid_it_is_a_sorted_map(ops in prop::collection::vec(op(), 1..60)) {
        run(Engine::Hybrid, Domain::Dram, None, &ops);
    }

    #[test]
    fn on_twin_it_is_a_sorted_map(ops in prop::collection::vec(op(), 1..60)) {
        run(Engine::Twin, Domain::Dram, None, &ops);
    }

    #[test]
    fn on_a_file_system_it_is_a_sorted_map(ops in prop::collection::vec(op(), 1..60), engine in 0..3usize) {
        let engine = support::ENGINES[engine];
        run(engine, Domain::File, None, &ops);
    }

    #[test]
    fn in_an_order_of_its_own_it_is_a_sorted_map(ops in prop::collection::vec(op(), 1..60), is_file in any::<bool>()) {
        let domain = [Domain::Dram, Domain::File][usize::from(is_file)];
        run(Engine::Shadow, domain, Some(Arc::new(Strange)), &ops);
    }
}
