//! The leaks of each pool by type and by puddle, as a check tells of them one by one.

use std::collections::BTreeMap;

use durum_service::{Leak, Uuid};
use serde_json::{Value as Json, json};

use super::tree::hex;

/// Types of a pool whose leaks are told of, and puddles: what a check tells is as small, however large the store is.
const EACH_MAX: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Leaks {
    pools: BTreeMap<Uuid, LeaksOfPool>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct LeaksOfPool {
    types: Sums,
    puddles: Sums,
}

/// The leaks of each type or puddle: of those that came first, and of all others together.
#[derive(Clone, Debug, Default)]
struct Sums {
    each: BTreeMap<u64, Sum>,
    rest: Sum,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    objects: u64,
    bytes: u64,
}

impl Leaks {
    pub(super) fn add(&mut self, leak: &Leak) {
        let of_pool = self.pools.entry(leak.pool).or_default();
        of_pool.types.add(leak.type_id, leak.size);
        of_pool.puddles.add(leak.puddle, leak.size);
    }

    /// Those of the pool with this uuid.
    pub(super) fn of_pool(&self, pool: &str) -> LeaksOfPool {
        let mut pools = self.pools.iter();
        let found = pools.find(|(uuid, _)| uuid.to_string() == pool);
        found.map(|(_, leaks)| leaks.clone()).unwrap_or_default()
    }
}

impl LeaksOfPool {
    pub(super) fn to_json(&self) -> Json {
        json!({
            "type": self.types.to_json(),
            "puddle": self.puddles.to_json(),
            "rest": { "type": self.types.rest.to_json(), "puddle": self.puddles.rest.to_json() },
        })
    }
}

impl Sums {
    fn add(&mut self, key: u64, bytes: u64) {
        let is_full = self.each.len() == EACH_MAX && !self.each.contains_key(&key);
        let sum = match is_full {
            true => &mut self.rest,
            false => self.each.entry(key).or_default(),
        };
        sum.objects += 1;
        sum.bytes += bytes;
    }

    fn to_json(&self) -> Json {
        let each = self.each.iter();
        Json::Object(each.map(|(key, sum)| (hex(*key), sum.to_json())).collect())
    }
}

impl Sum {
    fn to_json(self) -> Json {
        json!({ "objects": self.objects, "bytes": self.bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_puddles_the_first_ones_are_told_and_none_is_left_out() {
        let mut leaks = Leaks::default();
        let pool = Uuid([7; 16]);
        let puddles = EACH_MAX as u64 + 3;
        for at in 0..2 * puddles {
            leaks.add(&Leak {
                pool,
                puddle: at % puddles,
                address: at,
                size: 10,
                type_id: at % 2,
            });
        }
        let told = leaks.of_pool(&pool.to_string()).to_json();
        assert_eq!(told["puddle"].as_object().unwrap().len(), EACH_MAX);
        assert_eq!(told["puddle"]["0x0"], json!({ "objects": 2, "bytes": 20 }));
        assert_eq!(told["rest"]["puddle"], json!({ "objects": 6, "bytes": 60 }));
        assert_eq!(
            told["type"]["0x1"],
            json!({ "objects": puddles, "bytes": 10 * puddles })
        );
        assert_eq!(told["rest"]["type"]["objects"], 0);
        let other = leaks.of_pool("another one").to_json();
        assert_eq!(other["type"], json!({}));
    }
}
