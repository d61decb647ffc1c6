//! LevelDB and LMDB, through the C code in `bench/peers`.

use std::fs;
use std::path::{Path, PathBuf};

use durum_bench_peers::kv;

use crate::error::{Error, Result};
use crate::side::{self, PutsShape, Role, Side};

/// One of the two.
#[derive(Debug)]
pub struct Kv {
    name: &'static str,
    library: kv::Library,
}

impl Kv {
    /// LevelDB, each put with `sync`.
    pub fn leveldb() -> Kv {
        Kv {
            name: "leveldb",
            library: kv::Library::leveldb(),
        }
    }

    /// LMDB, a transaction for each put, with its default of durability.
    pub fn lmdb() -> Kv {
        Kv {
            name: "lmdb",
            library: kv::Library::lmdb(),
        }
    }
}

impl Side for Kv {
    fn name(&self) -> &str {
        self.name
    }

    fn role(&self) -> Role {
        Role::Peer
    }

    fn domain(&self) -> &str {
        "file"
    }

    fn version(&self) -> Option<String> {
        Some(self.library.version())
    }

    fn puts(&self, dir: &Path, shape: &PutsShape) -> Result<Box<dyn side::Puts>> {
        let path = dir.join(self.name);
        fs::create_dir(&path).map_err(Error::file(&path))?;
        let store = self.library.open(&path).map_err(Error::side(self.name))?;
        Ok(Box::new(KvPuts {
            store: Some(store),
            path,
            name: self.name,
            threads: shape.threads,
        }))
    }
}

struct KvPuts {
    /// `None` only while this is dropped: it has to be closed before its directory goes.
    store: Option<kv::Store>,
    path: PathBuf,
    name: &'static str,
    threads: usize,
}

impl side::Puts for KvPuts {
    fn handles(&mut self) -> Vec<Box<dyn side::Put + Send + '_>> {
        let handle = |store| {
            Box::new(Handle {
                store,
                name: self.name,
            }) as Box<dyn side::Put + Send>
        };
        let stores = std::iter::repeat_n(self.store.as_ref(), self.threads);
        stores.flatten().map(handle).collect()
    }

    fn visit(&mut self, see: &mut dyn FnMut(u64, &[u8])) -> Result<()> {
        let visited = self.store.iter().try_for_each(|store| store.visit(see));
        visited.map_err(Error::side(self.name))
    }
}

impl Drop for KvPuts {
    fn drop(&mut self) {
        drop(self.store.take());
        // What stays behind is found by the owner of the directory above, who removes that too.
        let _ = fs::remove_dir_all(&self.path);
    }
}

struct Handle<'s> {
    store: &'s kv::Store,
    name: &'static str,
}

impl side::Put for Handle<'_> {
    fn put(&mut self, key: u64, value: &[u8]) -> Result<()> {
        self.store.put(key, value).map_err(Error::side(self.name))
    }

    fn load(&mut self, keys: &[u64], values: &[u8]) -> Result<()> {
        let loaded = self.store.load(keys, values);
        loaded.map_err(Error::side(self.name))
    }
}
