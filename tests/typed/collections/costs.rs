//! What operations on collections make durable: lines written back and fences. The numbers are printed (`--nocapture`);
//! their bounds are asserted.

use durum::typed::*;
use durum::{Engine, thread_counters};

use crate::{Place, options};

/// Averages over many transactions of one operation each.
struct Cost {
    lines: f64,
    fences: f64,
    bytes_logged: f64,
}

const KEYS: u64 = 2000;

/// Keys in no order, each once.
fn keys() -> impl Iterator<Item = u64> {
    (0..KEYS).map(|n| n * 1237 % KEYS)
}

fn cost_of(what: &str, mut operation: impl FnMut(u64)) -> Cost {
    let before = thread_counters();
    keys().for_each(&mut operation);
    let all = thread_counters() - before;
    let cost = Cost {
        lines: (all.write_backs + all.streamed_lines) as f64 / KEYS as f64,
        fences: all.fences as f64 / KEYS as f64,
        bytes_logged: all.bytes_logged as f64 / KEYS as f64,
    };
    println!(
        "{what:40} {:6.2} lines {:6.2} fences {:8.1} bytes logged",
        cost.lines, cost.fences, cost.bytes_logged
    );
    cost
}

macro_rules! costs_of_maps {
    ($map:ident, $insertion:expr, $update:expr, $removal:expr) => {
        for engine in [Engine::Shadow, Engine::Hybrid] {
            durum::pool!(P);
            let place = Place::new();
            let root =
                P::open::<PRefCell<$map<u64, u64, P>, P>>(&place.path, options(engine)).unwrap();
            let name = |what: &str| format!("{engine:?} {} {what}", stringify!($map));
            let insertion = cost_of(&name("insertion"), |n| {
                P::transaction(|j| root.borrow_mut(j).insert(n, n, j)).unwrap();
            });
            let update = cost_of(&name("update"), |n| {
                P::transaction(|j| *root.borrow_mut(j).get_mut(&n).unwrap() += 1).unwrap();
            });
            let removal = cost_of(&name("removal"), |n| {
                P::transaction(|j| root.borrow_mut(j).remove(&n)).unwrap();
            });
            if engine == Engine::Shadow {
                for (cost, bound) in [
                    (insertion, $insertion),
                    (update, $update),
                    (removal, $removal),
                ] {
                    assert!(cost.lines <= bound, "{} lines", cost.lines);
                    assert!(cost.fences <= 1.1, "{} fences", cost.fences);
                    assert!(cost.bytes_logged <= 200.0, "{} bytes", cost.bytes_logged);
                }
            }
            root.close().unwrap();
        }
    };
}

#[test]
fn of_hash_maps() {
    // Of an insertion a half of a line and more is the table, which grows past the cache.
    costs_of_maps!(PHashMap, 4.0, 2.0, 2.0);
}

#[test]
fn of_ordered_maps() {
    costs_of_maps!(PBTreeMap, 3.0, 2.0, 2.5);
}
