//! What is counted, for other programs.

use std::collections::BTreeMap;

use durum_protocol::watching::{Number, Numbers};
use prometheus_client::encoding::text;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde_json::{Map, Value, json};

type Labels = Vec<(&'static str, String)>;

/// OpenMetrics text, as that of `durumd --metrics` is.
pub(super) fn prometheus(all: &[Numbers]) -> String {
    let mut registry = Registry::with_prefix("durum_program");
    // Each name once, with the values of all programs.
    let mut by_name: BTreeMap<&str, Vec<(&Numbers, &Number)>> = BTreeMap::new();
    for numbers in all {
        for number in &numbers.all {
            by_name
                .entry(&number.name)
                .or_default()
                .push((numbers, number));
        }
    }
    for (name, found) in by_name {
        let Some((_, first)) = found.first() else {
            continue;
        };
        let values = || found.iter().flat_map(|(of, number)| labelled(of, number));
        if first.grows {
            let family: Family<Labels, Counter> = Family::default();
            for (labels, value) in values() {
                family.get_or_create(&labels).inc_by(value);
            }
            registry.register(name, &*first.help, family);
        } else {
            let family: Family<Labels, Gauge> = Family::default();
            for (labels, value) in values() {
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                family.get_or_create(&labels).set(value);
            }
            registry.register(name, &*first.help, family);
        }
    }
    let mut shown = String::new();
    // Nothing fails that is written to memory.
    let _ = text::encode(&mut shown, &registry);
    shown
}

fn labelled<'n>(
    numbers: &'n Numbers,
    number: &'n Number,
) -> impl Iterator<Item = (Labels, u64)> + 'n {
    number.values.iter().enumerate().map(|(at, value)| {
        let mut labels = vec![
            ("store", numbers.store.to_string()),
            ("process", numbers.pid.to_string()),
        ];
        if let Some(pool) = numbers.pools.get(at).filter(|_| number.is_by_pool) {
            labels.push(("pool", pool.name.clone()));
        }
        (labels, *value)
    })
}

/// One line: what each program has counted.
pub(super) fn json(all: &[Numbers]) -> Value {
    let programs = all.iter().map(|numbers| {
        let mut own = Map::new();
        let mut pools: Vec<Map<String, Value>> = Vec::new();
        for pool in &numbers.pools {
            let mut shown = Map::new();
            shown.insert("pool".to_owned(), json!(pool.name));
            shown.insert("engine".to_owned(), json!(pool.engine.name()));
            shown.insert("read_only".to_owned(), json!(pool.is_read_only));
            pools.push(shown);
        }
        for number in &numbers.all {
            match number.is_by_pool {
                true => {
                    let name = number.name.strip_prefix("pool_").unwrap_or(&number.name);
                    for (pool, value) in pools.iter_mut().zip(&number.values) {
                        pool.insert(name.to_owned(), json!(value));
                    }
                }
                false => drop(own.insert(number.name.clone(), json!(number.values.first()))),
            }
        }
        json!({
            "store": numbers.store.to_string(),
            "process": numbers.pid,
            "open_seconds": numbers.open_us as f64 / 1e6,
            "numbers": own,
            "pools": pools,
        })
    });
    json!({ "programs": programs.collect::<Vec<_>>() })
}
