//! Two pools that lead into each other.

use std::path::Path;

use durum::{PoolOptions, Store, StoreOptions};

use super::Node;

/// Two pools, each of which has a node of the other one behind its own.
pub fn make_pair(path: &Path) {
    let store = Store::create(path, StoreOptions::new()).unwrap();
    let pools = ["words", "index"].map(|name| {
        let pool = store.create_pool(name, PoolOptions::new()).unwrap();
        pool.root::<Node>().unwrap();
        pool
    });
    for (value, (pool, other)) in (1..).zip([(0, 1), (1, 0)]) {
        let next = pools[other].root::<Node>().unwrap();
        let root = pools[pool].root::<Node>().unwrap();
        pools[pool]
            .transaction(|tx| {
                // SAFETY: both are there, and there is one thread.
                unsafe {
                    tx.add(root)?;
                    root.write(Node { value, next });
                }
                Ok::<_, durum::Error>(())
            })
            .unwrap();
    }
}
