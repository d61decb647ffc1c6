//! A store with a pool, and a list in it.

use crate::support::pool_options;
use durum::{Error, Pool, PoolOptions, Store, StoreOptions};

#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Node {
    pub(crate) value: u64,
    pub(crate) next: *mut Node,
}
durum::describe!(Node as "node" { value, next });

#[repr(C)]
pub(crate) struct Root {
    pub(crate) head: *mut Node,
    pub(crate) count: u64,
    pub(crate) table: [u64; 600],
}
durum::describe!(Root as "root" { head, count, table });

pub(crate) struct Fixture {
    pub(crate) pool: Option<Pool>,
    pub(crate) store: Option<Store>,
    pub(crate) dir: tempfile::TempDir,
}

impl Fixture {
    pub(crate) fn new() -> Self {
        Self::with(StoreOptions::new(), pool_options())
    }

    pub(crate) fn with(options: StoreOptions, pool_options: PoolOptions) -> Self {
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let store = Store::create(dir.path().join("store"), options).unwrap();
        let pool = store.create_pool("pool", pool_options).unwrap();
        Self {
            pool: Some(pool),
            store: Some(store),
            dir,
        }
    }

    pub(crate) fn pool(&self) -> &Pool {
        self.pool.as_ref().unwrap()
    }

    pub(crate) fn root(&self) -> &'static mut Root {
        unsafe { &mut *self.pool().root::<Root>().unwrap() }
    }

    pub(crate) fn reopen(&mut self, options: StoreOptions) {
        self.pool = None;
        self.store = None;
        let store = Store::open(self.dir.path().join("store"), options).unwrap();
        assert!(store.recovery().unwrap().was_clean);
        self.pool = Some(store.open_pool("pool", pool_options()).unwrap());
        self.store = Some(store);
    }
}

pub(crate) fn push(pool: &Pool, root: *mut Root, value: u64) {
    pool.transaction(|tx| unsafe {
        let node = tx.alloc::<Node>()?;
        (*node).value = value;
        (*node).next = (*root).head;
        tx.set(&raw mut (*root).head, node)?;
        tx.set(&raw mut (*root).count, (*root).count + 1)?;
        Ok::<_, Error>(())
    })
    .unwrap();
}

pub(crate) fn values(root: *const Root) -> Vec<u64> {
    let mut values = Vec::new();
    let mut node = unsafe { (*root).head };
    while !node.is_null() {
        unsafe {
            values.push((*node).value);
            node = (*node).next;
        }
    }
    values
}
