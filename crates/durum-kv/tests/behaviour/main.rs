//! What a program may count on: options, errors, names of comparators, sizes, properties, damage.

mod batches;
mod contents;
mod damage;
mod databases;
#[path = "../support/mod.rs"]
mod support;

use std::cmp::Ordering;

use durum_kv::Comparator;

struct Named(&'static str);

impl Comparator for Named {
    fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        b.cmp(a)
    }

    fn name(&self) -> &str {
        self.0
    }
}
