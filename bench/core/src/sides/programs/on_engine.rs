//! The programs on one engine.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use durum::Engine;
use durum::typed::{Journal, PRefCell, PoolType, contended};

use crate::error::{Error, Result};
use crate::inputs::programs::{hash_of, sum_of_words};
use crate::inputs::{Texts, Walk};
use crate::side::{self, NumbersKind, Role, Side};
use crate::sides::numbers::Numbers;
use crate::sides::open::Open;

macro_rules! programs {
    ($($name:ident: $file:literal;)*) => { $(
        #[allow(dead_code, reason = "a program: what it does with commands is not used here")]
        #[path = $file]
        mod $name;
    )* };
}

programs! {
    list: "../../../../../examples/rust/src/bin/list_durum.rs";
    bst: "../../../../../examples/rust/src/bin/tree_durum.rs";
    hash: "../../../../../examples/rust/src/bin/map_durum.rs";
    bplus: "../../../../../examples/rust/src/bin/btree_durum.rs";
    store: "../../../../../examples/rust/src/bin/store_durum.rs";
    word_count: "../../../../../examples/rust/src/bin/word_count_durum.rs";
}

/// The side.
#[derive(Debug)]
pub(in crate::sides) struct Programs {
    pub(super) name: &'static str,
    pub(super) engine: Engine,
}

impl Side for Programs {
    fn name(&self) -> &str {
        self.name
    }

    fn role(&self) -> Role {
        Role::Engine
    }

    fn domain(&self) -> &str {
        "dram"
    }

    fn stack(&self, dir: &Path) -> Result<Box<dyn side::List>> {
        type Program = Open<PRefCell<list::List, list::P>, list::P>;
        Ok(Box::new(Program::new(self.name, self.engine, dir)?))
    }

    fn numbers(&self, dir: &Path, kind: NumbersKind) -> Result<Box<dyn side::Tree>> {
        type Program<T, P> = Open<PRefCell<T, P>, P>;
        let (name, engine) = (self.name, self.engine);
        Ok(match kind {
            NumbersKind::Bst => Box::new(Program::<bst::Tree, _>::new(name, engine, dir)?),
            NumbersKind::Hash => Box::new(Program::<hash::Map, _>::new(name, engine, dir)?),
            NumbersKind::BPlus => Box::new(Program::<bplus::Tree, _>::new(name, engine, dir)?),
        })
    }

    fn store(&self, dir: &Path) -> Result<Box<dyn side::TextStore>> {
        type Program = Open<PRefCell<store::Store, store::P>, store::P>;
        Ok(Box::new(Program::new(self.name, self.engine, dir)?))
    }

    fn words(&self, dir: &Path) -> Result<Box<dyn side::Words>> {
        type Program = Open<word_count::Work, word_count::P>;
        Ok(Box::new(Program::new(self.name, self.engine, dir)?))
    }
}

impl side::List for Open<PRefCell<list::List, list::P>, list::P> {
    fn append(&mut self, values: &[u64]) -> Result<()> {
        let root = &*self.root;
        for value in values {
            list::P::transaction(|j| root.borrow_mut(j).insert(0, *value as i64, j))
                .map_err(Error::side(self.name))?;
        }
        Ok(())
    }

    fn sum(&mut self) -> Walk {
        let mut walk = Walk {
            sorted: true,
            ..Walk::default()
        };
        for value in self.root.borrow().values() {
            walk.count += 1;
            walk.sum = walk.sum.wrapping_add(value as u64);
        }
        walk
    }

    fn pop(&mut self, count: usize) -> Result<u64> {
        let root = &*self.root;
        let mut sum = 0u64;
        for _ in 0..count {
            let popped = list::P::transaction(|j| root.borrow_mut(j).pop())
                .map_err(Error::side(self.name))?;
            match popped {
                Some(value) => sum = sum.wrapping_add(value as u64),
                None => break,
            }
        }
        Ok(sum)
    }
}

impl Numbers<bst::P> for bst::Tree {
    fn put(&mut self, key: u64, value: u64, j: &Journal<bst::P>) {
        self.insert(key as i64, value as i64, j);
    }

    fn take(&mut self, key: u64) -> bool {
        self.remove(key as i64).is_some()
    }

    fn find_value(&self, key: u64) -> Option<u64> {
        self.find(key as i64).map(|value| value as u64)
    }

    fn show(&self, see: &mut dyn FnMut(u64, u64)) -> bool {
        let nodes = || self.from(i64::MIN);
        nodes().for_each(|node| see(node.key as u64, node.value as u64));
        nodes().is_sorted_by(|a, b| a.key < b.key)
    }
}

impl Numbers<hash::P> for hash::Map {
    fn put(&mut self, key: u64, value: u64, j: &Journal<hash::P>) {
        self.insert(key, value, j);
    }

    fn take(&mut self, key: u64) -> bool {
        self.remove(key).is_some()
    }

    fn find_value(&self, key: u64) -> Option<u64> {
        self.find(key)
    }

    fn show(&self, see: &mut dyn FnMut(u64, u64)) -> bool {
        self.entries().for_each(|entry| see(entry.key, entry.value));
        true
    }
}

impl Numbers<bplus::P> for bplus::Tree {
    fn put(&mut self, key: u64, value: u64, j: &Journal<bplus::P>) {
        self.insert(key, value, j);
    }

    fn take(&mut self, key: u64) -> bool {
        self.remove(key).is_some()
    }

    fn find_value(&self, key: u64) -> Option<u64> {
        self.find(key)
    }

    fn show(&self, see: &mut dyn FnMut(u64, u64)) -> bool {
        // Without the key that is greater than all others; it is not among the inputs.
        let entries = self.range(0, u64::MAX);
        entries.iter().for_each(|(key, value)| see(*key, *value));
        entries.is_sorted_by(|(a, _), (b, _)| a < b)
    }
}

impl Open<PRefCell<store::Store, store::P>, store::P> {
    /// Does the same with each pair of texts, in a transaction of its own.
    fn change(
        &mut self,
        texts: &Texts,
        change: fn(&mut store::Store, &str, &str, &Journal<store::P>),
    ) -> Result<()> {
        let root = &*self.root;
        for (key, value) in texts.pairs() {
            store::P::transaction(|j| change(&mut root.borrow_mut(j), key, value, j))
                .map_err(Error::side(self.name))?;
        }
        Ok(())
    }
}

impl side::TextStore for Open<PRefCell<store::Store, store::P>, store::P> {
    fn put(&mut self, texts: &Texts) -> Result<()> {
        self.change(texts, |store, key, value, j| {
            store.put(key, value, j);
        })
    }

    fn append(&mut self, texts: &Texts) -> Result<()> {
        self.change(texts, store::Store::append)
    }

    fn read(&self, texts: &Texts) -> u64 {
        let store = self.root.borrow();
        let found = texts.pairs().filter_map(|(key, _)| store.get(key));
        found.fold(0, |sum, value| sum.wrapping_add(sum_of_words(value)))
    }

    fn delete(&mut self, texts: &Texts) -> Result<u64> {
        let root = &*self.root;
        let mut deleted = 0;
        for (key, _) in texts.pairs() {
            let was_there = store::P::transaction(|j| root.borrow_mut(j).delete(key))
                .map_err(Error::side(self.name))?;
            deleted += u64::from(was_there);
        }
        Ok(deleted)
    }

    fn walk(&mut self) -> Walk {
        let mut walk = Walk {
            sorted: true,
            ..Walk::default()
        };
        for pair in self.root.borrow().pairs("") {
            walk.count += 1;
            let sums = sum_of_words(&pair.key) ^ sum_of_words(&pair.value);
            walk.sum = walk.sum.wrapping_add(sums);
        }
        walk
    }
}

impl side::Words for Open<word_count::Work, word_count::P> {
    fn bring(&mut self, text: &str) -> Result<()> {
        self.root.read(0, text, usize::MAX);
        Ok(())
    }

    fn count(&self, thread: usize, threads: usize) -> Result<()> {
        let is_read = AtomicBool::new(true);
        self.root.count(thread, threads, &is_read);
        Ok(())
    }

    fn contended(&self) -> u64 {
        contended()
    }

    fn walk(&mut self) -> Walk {
        let totals = word_count::P::transaction(|j| self.root.totals(j)).unwrap_or_default();
        let mut walk = Walk {
            sorted: true,
            ..Walk::default()
        };
        for (word, count) in totals {
            walk.count += count;
            walk.sum = walk.sum.wrapping_add(hash_of(&word).wrapping_mul(count));
        }
        walk
    }
}
